//! Settled numbers that wait until a state that holds them is in force.
//!
//! ```text
//!            settled since the last offer │ offer 7        │ offer 8
//! take ────▶ ▒▒▒▒▒▒▒▒                     │ ▒▒▒▒▒▒▒▒▒▒▒▒   │ ▒▒▒▒        ────▶ shown up to offer 7
//! ```

use std::collections::VecDeque;

use crate::keeper::Offer;
use crate::ledger::{PairDelta, Reach};

/// Of one pair.
#[derive(Debug, Default)]
pub struct Withheld {
    /// In no offer yet.
    open: Vec<PairDelta>,
    /// By offer, ascending: the first that holds them.
    offered: VecDeque<(Offer, Vec<PairDelta>)>,
    /// End of what is shown, epoch ms.
    shown_end_ms: Option<i64>,
}

impl Withheld {
    /// Nothing waits; what is settled up to then, epoch ms, was shown already.
    pub fn shown_to(end_ms: Option<i64>) -> Withheld {
        Withheld {
            shown_end_ms: end_ms,
            ..Withheld::default()
        }
    }

    /// Keeps what has settled; returns the rest, which need not wait. Cells of users are for looks, which read them where they are
    /// stored.
    pub fn take(&mut self, delta: PairDelta) -> PairDelta {
        let live = PairDelta {
            arms: delta.arms,
            live: delta.live,
            shown: delta.shown,
            counts: delta.counts,
            reach: Reach {
                settled_end_ms: self.shown_end_ms,
                ..delta.reach
            },
            ..PairDelta::default()
        };
        match self.open.last_mut() {
            Some(last) if delta.settled.is_empty() => last.reach = delta.reach,
            _ => self.open.push(PairDelta {
                settled: delta.settled,
                reach: delta.reach,
                ..PairDelta::default()
            }),
        }
        live
    }

    /// All that has been taken is in this offer.
    pub fn offered(&mut self, offer: Offer) {
        self.offered.push_back((offer, std::mem::take(&mut self.open)));
    }

    /// A state is in force: lets go what it holds, in the order in which it was taken.
    pub fn show(&mut self, in_force: Offer) -> Vec<PairDelta> {
        let n_shown = self.offered.partition_point(|(offer, _)| *offer <= in_force);
        let shown = self.offered.drain(..n_shown).flat_map(|(_, deltas)| deltas);
        let shown: Vec<PairDelta> = shown.collect();
        let ends = shown.iter().filter_map(|delta| delta.reach.settled_end_ms);
        self.shown_end_ms = self.shown_end_ms.max(ends.max());
        shown
    }
}
