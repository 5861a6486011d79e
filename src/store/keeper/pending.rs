//! Settled numbers that wait until a state that contains them is current.
//!
//! ```text
//!            settled since the last offer │ offer 7        │ offer 8
//! take ────▶ ▒▒▒▒▒▒▒▒                     │ ▒▒▒▒▒▒▒▒▒▒▒▒   │ ▒▒▒▒        ────▶ shown up to offer 7
//! ```

use std::collections::VecDeque;

use abgauge_core::ledger::{CountingProgress, PairDelta, SettledSlot};

use super::Offer;

/// Settled numbers of one pair that wait.
#[derive(Debug, Default)]
pub struct PendingNumbers {
    /// Delta that is in no offer yet.
    open: Option<PairDelta>,
    /// Deltas in ascending order of the first offer that contains them.
    offered: VecDeque<(Offer, PairDelta)>,
    /// End of the settled time that is shown, Unix ms.
    shown_end_ms: Option<i64>,
    /// Reach of the last delta taken.
    taken: Option<CountingProgress>,
    /// Size of all that waits.
    n_bytes: u64,
    /// Set while that exceeds its limit.
    is_full: bool,
}

impl PendingNumbers {
    /// Returns an empty queue of a pair whose settled numbers are already shown up to this time, Unix ms.
    pub fn shown_to(end_ms: Option<i64>) -> PendingNumbers {
        PendingNumbers {
            shown_end_ms: end_ms,
            ..PendingNumbers::default()
        }
    }

    /// Keeps the settled numbers and returns the rest, which need not wait. Cells of users are dropped, because looks read
    /// them from the stored state.
    pub fn take(&mut self, delta: PairDelta) -> PairDelta {
        let live = PairDelta {
            arms: delta.arms,
            live: delta.live,
            shown: delta.shown,
            counts: delta.counts,
            reach: CountingProgress {
                settled_end_ms: self.shown_end_ms,
                ..delta.reach
            },
            ..PairDelta::default()
        };
        let before = self.taken.replace(delta.reach);
        // Without settled slots, a later frontier must still wait for a state that contains it.
        if !delta.settled.is_empty() || before != Some(delta.reach) {
            self.keep(delta.settled, delta.reach);
        }
        live
    }

    fn keep(&mut self, settled: Vec<SettledSlot>, reach: CountingProgress) {
        let n_bytes = &mut self.n_bytes;
        let open = self.open.get_or_insert_with(|| {
            let open = PairDelta::default();
            *n_bytes += bytes(&open);
            open
        });
        *n_bytes += settled.iter().map(SettledSlot::bytes).sum::<u64>();
        open.settled.extend(settled);
        open.reach = reach;
    }

    /// Notes that everything taken so far is in this offer.
    pub fn offered(&mut self, offer: Offer) {
        let open = self.open.take();
        self.offered.extend(open.map(|open| (offer, open)));
    }

    /// Releases the deltas of the state that is now current, in the order in which they were taken.
    pub fn show(&mut self, current: Offer) -> Vec<PairDelta> {
        // Offers ascend, so the state contains everything before this point.
        let n_shown = self.offered.partition_point(|(offer, _)| *offer <= current);
        let shown = self.offered.drain(..n_shown).map(|(_, delta)| delta);
        let shown: Vec<PairDelta> = shown.collect();
        let ends = shown.iter().filter_map(|delta| delta.reach.settled_end_ms);
        self.shown_end_ms = self.shown_end_ms.max(ends.max());
        self.n_bytes -= shown.iter().map(bytes).sum::<u64>();
        shown
    }

    /// Checks whether the waiting deltas exceed `room_bytes`. Once they did, they must fall to half of that.
    pub fn measure(&mut self, room_bytes: u64) -> bool {
        let limit_bytes = if self.is_full { room_bytes / 2 } else { room_bytes };
        self.is_full = self.n_bytes > limit_bytes;
        self.is_full
    }

    /// Returns the size of the waiting deltas, if it was over the limit when last measured.
    pub fn too_many_bytes(&self) -> Option<u64> {
        self.is_full.then_some(self.n_bytes)
    }
}

/// Returns the size of a delta of settled slots.
fn bytes(delta: &PairDelta) -> u64 {
    let slots = delta.settled.iter().map(SettledSlot::bytes);
    size_of::<(Offer, PairDelta)>() as u64 + slots.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delta in which one slot of `n_arms` arms, each with this sum, has settled.
    fn settled(start_ms: i64, n_arms: u32, sum: i64) -> PairDelta {
        let mut slot = SettledSlot {
            start_ms,
            tallies: Default::default(),
            shown: Default::default(),
        };
        (0..n_arms).for_each(|arm| slot.tallies.push(arm, &[sum]));
        PairDelta {
            settled: vec![slot],
            reach: reach(start_ms),
            ..PairDelta::default()
        }
    }

    fn reach(settled_end_ms: i64) -> CountingProgress {
        CountingProgress {
            settled_end_ms: Some(settled_end_ms),
            ..CountingProgress::default()
        }
    }

    fn begins(deltas: &[PairDelta]) -> Vec<Vec<i64>> {
        let of_delta = |delta: &PairDelta| delta.settled.iter().map(|slot| slot.start_ms).collect();
        deltas.iter().map(of_delta).collect()
    }

    #[test]
    fn settled_deltas_wait_for_the_first_state_that_contains_them() {
        let [seven, eight] = [7, 8].map(Offer::of);
        let mut pending = PendingNumbers::shown_to(Some(9));
        for start_ms in [10, 20] {
            let live = pending.take(settled(start_ms, 1, 1));
            assert_eq!((live.settled, live.reach.settled_end_ms), (vec![], Some(9)));
        }
        pending.offered(seven);
        pending.take(settled(30, 1, 1));
        pending.offered(eight);
        assert_eq!(begins(&pending.show(seven)), [[10, 20]]);
        let live = pending.take(settled(40, 1, 1));
        assert_eq!(live.reach.settled_end_ms, Some(20));
        assert_eq!(begins(&pending.show(eight)), [[30]]);
        assert_eq!(begins(&pending.show(eight)), Vec::<Vec<i64>>::new());
    }

    #[test]
    fn measures_waiting_deltas_until_they_are_released() {
        let mut pending = PendingNumbers::default();
        for n in 1..=100 {
            pending.take(settled(n, 3, 1));
            pending.offered(Offer::of(n as u64));
        }
        let n_bytes = pending.n_bytes;
        // Each arm stores its number, the end of its sums, and one sum.
        assert!(n_bytes > 100 * 3 * (8 + 8 + 8), "{n_bytes}");
        assert!(!pending.measure(n_bytes));
        assert!(pending.measure(n_bytes - 1));
        assert_eq!(pending.too_many_bytes(), Some(n_bytes));
        pending.show(Offer::of(40));
        assert_eq!(pending.n_bytes, n_bytes * 6 / 10);
        assert!(pending.measure(n_bytes), "until half of it is left");
        pending.show(Offer::of(50));
        assert!(!pending.measure(n_bytes));
        assert_eq!(pending.too_many_bytes(), None);
        pending.show(Offer::of(100));
        assert_eq!(pending.n_bytes, 0);
    }

    /// While nothing can be stored, a state is offered every few seconds.
    #[test]
    fn repeated_offers_take_no_memory() {
        let mut pending = PendingNumbers::default();
        pending.take(settled(10, 1, 1));
        pending.offered(Offer::of(1));
        let n_bytes = pending.n_bytes;
        for n in 2..100 {
            pending.take(PairDelta {
                reach: reach(10),
                ..PairDelta::default()
            });
            pending.offered(Offer::of(n));
        }
        assert_eq!((pending.n_bytes, pending.offered.len()), (n_bytes, 1));
        pending.take(PairDelta {
            reach: reach(11),
            ..PairDelta::default()
        });
        pending.offered(Offer::of(100));
        assert_eq!(pending.show(Offer::of(100)).len(), 2, "time has passed");
    }
}
