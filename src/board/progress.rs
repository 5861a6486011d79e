//! How far the pairs have come, and which of them are shown.

use std::collections::BTreeMap;

use super::Lease;
use super::arm::WindowEnds;
use crate::ledger::{PairId, Reach};
use crate::snapshot::View;

/// Pairs by view, ascending.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ShownPairs([Vec<PairId>; 2]);

impl ShownPairs {
    pub fn of(&self, view: View) -> &[PairId] {
        &self.0[view as usize]
    }

    /// In any view; those of both come twice.
    pub fn all(&self) -> impl Iterator<Item = PairId> {
        self.0.iter().flatten().copied()
    }
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    live_end_ms: Option<i64>,
    /// The latest time that a shown pair has ever settled: windows do not slide back when that pair is removed.
    settled_end_ms: Option<i64>,
    /// No window is shown to end after this, by view.
    until_ms: [Option<i64>; 2],
    /// The furthest ends that were shown, by view.
    shown_ends_ms: [Option<i64>; 2],
    pairs: BTreeMap<PairId, PairProgress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PairProgress {
    /// By `View as usize`: whether it is complete, and owned.
    shown: [bool; 2],
    reach: Reach,
}

impl Progress {
    /// Moves the end of the live windows on; it never falls.
    pub fn set_live_end(&mut self, ms: i64) {
        self.live_end_ms = self.live_end_ms.max(Some(ms));
    }

    /// Shows no window beyond these ends, by view (epoch ms).
    pub fn show_until(&mut self, until_ms: [i64; 2]) {
        self.until_ms = until_ms.map(Some);
    }

    pub fn set_reach(&mut self, pair: PairId, reach: Reach) {
        self.pairs.entry(pair).or_default().reach = reach;
    }

    pub fn show(&mut self, pair: PairId, view: View) {
        self.pairs.entry(pair).or_default().shown[view as usize] = true;
    }

    pub fn hide(&mut self, pair: PairId) {
        self.note_settled_end();
        if let Some(progress) = self.pairs.get_mut(&pair) {
            progress.shown = [false; 2];
        }
    }

    pub fn remove(&mut self, pair: PairId) {
        self.note_settled_end();
        self.pairs.remove(&pair);
    }

    /// The pairs that are shown in each view.
    pub fn shown(&self, lease: Option<&Lease>) -> ShownPairs {
        let mut shown = ShownPairs::default();
        for (number, pair) in &self.pairs {
            let leased = lease.map_or([true; 2], |lease| lease(*number));
            for view in View::BOTH.map(|view| view as usize) {
                if pair.shown[view] && leased[view] {
                    shown.0[view].push(*number);
                }
            }
        }
        shown
    }

    /// How far those have come.
    pub fn reaches(&self) -> impl Iterator<Item = &Reach> {
        let shown = self.pairs.values().filter(|pair| pair.shown.contains(&true));
        shown.map(|pair| &pair.reach)
    }

    /// Notes how far the shown pairs have settled, before one is removed or begins anew.
    pub fn note_settled_end(&mut self) {
        let furthest_ms = self.reaches().filter_map(|reach| reach.settled_end_ms).max();
        self.settled_end_ms = self.settled_end_ms.max(furthest_ms);
    }

    /// Slots that begin after this wait, by view.
    pub fn until_ms(&self) -> [i64; 2] {
        self.until_ms.map(|until_ms| until_ms.unwrap_or(i64::MAX))
    }

    /// Where the windows end that are shown. They do not fall.
    pub fn ends(&mut self) -> WindowEnds {
        self.note_settled_end();
        let ends_ms = [self.live_end_ms.max(self.settled_end_ms), self.settled_end_ms];
        let until_ms = self.until_ms();
        for (shown, (end, until_ms)) in self
            .shown_ends_ms
            .iter_mut()
            .zip(ends_ms.into_iter().zip(until_ms))
        {
            *shown = (*shown).max(end.map(|end| end.min(until_ms)));
        }
        WindowEnds {
            ends_ms: self.shown_ends_ms,
            until_ms,
        }
    }
}
