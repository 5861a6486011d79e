//! The windows of one arm: what each pair of partitions adds to it.
//!
//! ```text
//! (ranker, neural) ─▶ pair 0 │ live: 5m 1h 24h total, ahead │ settled: … │
//!                     pair 1 │ live: …                      │ settled: … │
//!                     covered: which items of the catalogue
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use abgauge_core::engine::ArmInSlot;
use abgauge_core::engine::View;
use abgauge_core::engine::window::{Cell, Overflow, Window, add_wide};
use abgauge_core::ledger::PairId;

use super::covering::Covered;
use super::progress::{ShownPairs, WindowEnds};
use crate::board::snapshot::{ArmSnapshot, Timeline};

/// Maximum number of waiting tallies in a board: about 30 MB with the usual metrics.
const MAX_AHEAD: usize = 65_536;

/// Properties shared by the windows of all arms.
#[derive(Debug)]
pub(super) struct WindowShape {
    /// Cell length of each sliding window.
    pub cells_ms: Vec<i64>,
    /// Number of waiting tallies.
    pub n_ahead: AtomicUsize,
}

/// Settled numbers of an arm in a resumed pair.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub last_list_ms: Option<i64>,
    pub total: Vec<i128>,
    /// Cells: index of the window, start of the cell (Unix ms), and its sums.
    pub cells: Vec<(usize, i64, Vec<i64>)>,
}

#[derive(Debug)]
pub(super) struct ArmWindows {
    /// Slots that begin before this (epoch ms) do not count in its total.
    pub total_from_ms: i64,
    parts: BTreeMap<PairId, PairWindows>,
    pub covered: Covered,
}

/// Sums that one pair adds to an arm.
#[derive(Debug)]
struct PairWindows {
    last_list_ms: i64,
    /// By `View as usize`.
    views: [ViewWindows; 2],
}

/// Sums over the slots of one view.
#[derive(Debug)]
struct ViewWindows {
    windows: Vec<Window>,
    total: Vec<i128>,
    /// Slots that start beyond the shown ends: one event ahead of its time must not slide a window past all others.
    ahead: BTreeMap<AheadSlot, SlotAhead>,
}

/// A slot, or the cell of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AheadSlot {
    start_ms: i64,
    /// `None` for a slot, which is in all windows.
    window: Option<usize>,
}

#[derive(Debug, Default)]
struct SlotAhead {
    tally: Cell,
    last_list_ms: Option<i64>,
}

impl ArmWindows {
    pub fn new(total_from_ms: i64) -> ArmWindows {
        ArmWindows {
            total_from_ms,
            parts: BTreeMap::new(),
            covered: Covered::default(),
        }
    }

    /// Makes room for the sums of a pair.
    pub fn admit(&mut self, pair: PairId, shape: &WindowShape) {
        self.parts.entry(pair).or_insert_with(|| PairWindows::new(shape));
    }

    /// Drops the sums of a pair.
    pub fn remove(&mut self, pair: PairId, shape: &WindowShape) {
        if let Some(part) = self.parts.remove(&pair) {
            let n_ahead = part.views.iter().map(|slots| slots.ahead.len()).sum();
            shape.n_ahead.fetch_sub(n_ahead, Ordering::Relaxed);
        }
    }

    /// Returns whether no pair is left.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds the tally of a slot of a pair that was [admitted](Self::admit). If the slot begins after `until_ms`, it counts in
    /// `total` immediately, and waits for the windows.
    ///
    /// # Errors
    /// [`Overflow`] if a cell's sum exceeds 64 bits, or too many tallies wait.
    pub fn add(
        &mut self,
        pair: PairId,
        view: View,
        of: &ArmInSlot,
        tally: &[i64],
        until_ms: i64,
        shape: &WindowShape,
    ) -> Result<(), Overflow> {
        let Some(PairWindows { last_list_ms, views }) = self.parts.get_mut(&pair) else {
            return Ok(());
        };
        let slots = &mut views[view as usize];
        // The total has no end that a slot could exceed, so the slot counts at once.
        if of.start_ms >= self.total_from_ms {
            add_wide(&mut slots.total, tally);
        }
        let released = slots.release(until_ms, last_list_ms, shape);
        let ahead = AheadSlot {
            start_ms: of.start_ms,
            window: None,
        };
        // The last list waits with its slot, and does not replace the shown one until then.
        if of.start_ms > until_ms {
            return slots.hold(ahead, of.last_list_ms, tally, shape).and(released);
        }
        *last_list_ms = (*last_list_ms).max(of.last_list_ms.unwrap_or(i64::MIN));
        slots.add(ahead, tally).and(released)
    }

    /// Adds the numbers that an [admitted](Self::admit) pair had settled before it was resumed, to these views.
    ///
    /// # Errors
    /// The same as [`Self::add`].
    pub fn resume(
        &mut self,
        pair: PairId,
        base: &Base,
        resumed: &[View],
        until_ms: [i64; 2],
        shape: &WindowShape,
    ) -> Result<(), Overflow> {
        let mut exact = Ok(());
        let Some(PairWindows { last_list_ms, views }) = self.parts.get_mut(&pair) else {
            return exact;
        };
        *last_list_ms = (*last_list_ms).max(base.last_list_ms.unwrap_or(i64::MIN));
        for view in resumed.iter().map(|view| *view as usize) {
            let (slots, until_ms) = (&mut views[view], until_ms[view]);
            slots.total.clone_from(&base.total);
            for (window, start_ms, tally) in &base.cells {
                let (start_ms, window) = (*start_ms, Some(*window));
                exact = exact.and(if start_ms > until_ms {
                    slots.hold(AheadSlot { start_ms, window }, None, tally, shape)
                } else {
                    slots.add(AheadSlot { start_ms, window }, tally)
                });
            }
        }
        exact
    }

    /// Moves the windows of these pairs on, and adds the tallies that have waited long enough.
    ///
    /// # Errors
    /// [`Overflow`] if a cell's sum exceeds 64 bits.
    pub fn advance(
        &mut self,
        pairs: &ShownPairs,
        ends: &WindowEnds,
        shape: &WindowShape,
    ) -> Result<(), Overflow> {
        let mut exact = Ok(());
        for view in View::BOTH {
            for pair in pairs.of(view) {
                let Some(part) = self.parts.get_mut(pair) else {
                    continue;
                };
                let (slots, view) = (&mut part.views[view as usize], view as usize);
                exact = exact.and(slots.release(ends.until_ms[view], &mut part.last_list_ms, shape));
                if let Some(end_ms) = ends.ends_ms[view] {
                    slots.windows.iter_mut().for_each(|window| window.advance(end_ms));
                }
            }
        }
        exact
    }

    /// Adds up the sums of these pairs. Without any of them, the arm has no last list. A last list beyond `ends` counts as one
    /// at the end of the shown range.
    pub fn add_up(&self, pairs: &ShownPairs, ends: &WindowEnds, arm: &mut ArmSnapshot) {
        let until_ms = ends.until_ms[View::Live as usize];
        let parts = pairs.all().filter_map(|pair| self.parts.get(&pair));
        let last_ms = parts.map(|part| part.last_list_ms(until_ms)).max();
        arm.last_list_ms = last_ms.unwrap_or(i64::MIN);
        for (view, rows) in View::BOTH.into_iter().zip(&mut arm.sums) {
            for (place, row) in rows.iter_mut().enumerate() {
                let parts = self.parts_of(pairs.of(view));
                let mut of_pairs = parts.map(|part| part.views[view as usize].sums(place));
                // The row still has the numbers of an earlier snapshot: the first pair overwrites it, the others are
                // added.
                let first = of_pairs.next().unwrap_or_default();
                let (sums, rest) = row.split_at_mut(first.len());
                sums.copy_from_slice(first);
                rest.fill(0);
                for more in of_pairs {
                    row.iter_mut().zip(more).for_each(|(sum, term)| *sum += term);
                }
            }
        }
    }

    /// Returns whether one of these pairs contributes to the arm.
    pub fn is_of(&self, pairs: &ShownPairs) -> bool {
        pairs.all().any(|pair| self.parts.contains_key(&pair))
    }

    /// Adds the cells of one window to time lines of `width` columns, by `View as usize`.
    pub fn add_cells(&self, pairs: &ShownPairs, window: usize, width: usize, timelines: &mut [Timeline; 2]) {
        for (view, timeline) in View::BOTH.into_iter().zip(timelines) {
            for part in self.parts_of(pairs.of(view)) {
                timeline.add(width, part.views[view as usize].windows[window].cells());
            }
        }
    }

    fn parts_of(&self, pairs: &[PairId]) -> impl Iterator<Item = &PairWindows> {
        pairs.iter().filter_map(|pair| self.parts.get(pair))
    }
}

impl PairWindows {
    fn new(shape: &WindowShape) -> PairWindows {
        let slots = |_| ViewWindows {
            windows: shape
                .cells_ms
                .iter()
                .map(|cell_ms| Window::new(*cell_ms))
                .collect(),
            total: Vec::new(),
            ahead: BTreeMap::new(),
        };
        PairWindows {
            last_list_ms: i64::MIN,
            views: View::BOTH.map(slots),
        }
    }

    /// Returns the time of its last list, `until_ms` at the most, and `i64::MIN` without lists.
    fn last_list_ms(&self, until_ms: i64) -> i64 {
        // Waiting lists do not set the last list yet, but they are in the total: an arm that has only these is shown as well.
        let only_waiting =
            self.last_list_ms == i64::MIN && self.views.iter().any(|slots| !slots.total.is_empty());
        match only_waiting {
            true => until_ms,
            false => self.last_list_ms.min(until_ms),
        }
    }
}

impl ViewWindows {
    /// Returns the sums of a window, or the total, which comes last.
    fn sums(&self, place: usize) -> &[i128] {
        self.windows.get(place).map_or(&self.total, Window::sums)
    }

    fn add(&mut self, of: AheadSlot, tally: &[i64]) -> Result<(), Overflow> {
        let mut exact = Ok(());
        let windows = self.windows.iter_mut().enumerate();
        for (_, window) in windows.filter(|(place, _)| of.window.is_none_or(|window| window == *place)) {
            exact = exact.and(window.add(of.start_ms, tally));
        }
        exact
    }

    /// Lets a tally wait. If too many wait already, it is dropped.
    fn hold(
        &mut self,
        of: AheadSlot,
        last_list_ms: Option<i64>,
        tally: &[i64],
        shape: &WindowShape,
    ) -> Result<(), Overflow> {
        // A slot that waits already takes no additional place.
        if !self.ahead.contains_key(&of) {
            if shape.n_ahead.load(Ordering::Relaxed) >= MAX_AHEAD {
                return Err(Overflow);
            }
            shape.n_ahead.fetch_add(1, Ordering::Relaxed);
        }
        let ahead = self.ahead.entry(of).or_default();
        ahead.last_list_ms = ahead.last_list_ms.max(last_list_ms);
        ahead.tally.add(tally)
    }

    /// Adds the waiting slots that start by `until_ms` to the windows.
    fn release(
        &mut self,
        until_ms: i64,
        last_list_ms: &mut i64,
        shape: &WindowShape,
    ) -> Result<(), Overflow> {
        let mut exact = Ok(());
        // Waiting slots are ordered by time, so the first one that must wait ends the loop.
        while let Some(first) = self
            .ahead
            .first_entry()
            .filter(|first| first.key().start_ms <= until_ms)
        {
            let (of, ahead) = first.remove_entry();
            shape.n_ahead.fetch_sub(1, Ordering::Relaxed);
            *last_list_ms = (*last_list_ms).max(ahead.last_list_ms.unwrap_or(i64::MIN));
            exact = exact.and(self.add(of, ahead.tally.sums()));
        }
        exact
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::progress::BoardProgress;
    use super::*;

    const PAIR: PairId = 3;

    fn shape() -> WindowShape {
        WindowShape {
            cells_ms: vec![1000, 60_000],
            n_ahead: AtomicUsize::new(0),
        }
    }

    fn windows(shape: &WindowShape) -> ArmWindows {
        let mut windows = ArmWindows::new(i64::MIN);
        windows.admit(PAIR, shape);
        windows
    }

    fn of(start_ms: i64) -> ArmInSlot {
        ArmInSlot {
            arm: 0,
            start_ms,
            last_list_ms: Some(start_ms + 1),
        }
    }

    /// These pairs in both views.
    fn both(pairs: &[PairId]) -> ShownPairs {
        let mut progress = BoardProgress::default();
        for (pair, view) in pairs.iter().flat_map(|pair| View::BOTH.map(|view| (*pair, view))) {
            progress.show(pair, view);
        }
        progress.shown(None)
    }

    fn reported(windows: &ArmWindows, ends: &WindowEnds) -> ArmSnapshot {
        let mut arm = ArmSnapshot {
            experiment: "e".into(),
            arm: "a".into(),
            last_list_ms: i64::MIN,
            sums: View::BOTH.map(|_| vec![vec![0; 2].into(); 3]),
            timelines: None,
        };
        windows.add_up(&both(&[PAIR]), ends, &mut arm);
        arm
    }

    proptest! {
        /// Whatever is held back meanwhile: once its time has come, all is as if it had not been.
        #[test]
        fn waiting_tallies_add_up_as_if_they_had_not_waited(
            rows in vec((0_i64..300, 0_usize..2), 1..100),
            until in vec(0_i64..300, 1..5),
        ) {
            let shape = shape();
            let [mut at_once, mut held] = [windows(&shape), windows(&shape)];
            let mut until_ms: Vec<i64> = until.iter().map(|second| second * 1000).collect();
            until_ms.sort_unstable();
            for (n, (second, column)) in rows.iter().enumerate() {
                let until_ms = until_ms[n * until_ms.len() / rows.len()];
                let of = of(second * 1000);
                let tally = &[[1, 0], [0, 1]][*column][..=*column];
                at_once.add(PAIR, View::Live, &of, tally, i64::MAX, &shape).expect("small sums");
                held.add(PAIR, View::Live, &of, tally, until_ms, &shape).expect("small sums");
            }
            let ends = WindowEnds { ends_ms: [Some(300_000); 2], until_ms: [i64::MAX; 2] };
            for windows in [&mut at_once, &mut held] {
                windows.advance(&both(&[PAIR]), &ends, &shape).expect("small sums");
            }
            prop_assert_eq!(format!("{:?}", reported(&at_once, &ends)), format!("{:?}", reported(&held, &ends)));
            prop_assert_eq!(shape.n_ahead.into_inner(), 0);
        }
    }

    #[test]
    fn future_lists_count_only_in_the_total_until_their_time_has_come() {
        let shape = shape();
        let mut windows = windows(&shape);
        for start_ms in [20_000, 10_000, 20_000] {
            let added = windows.add(PAIR, View::Live, &of(start_ms), &[1], 9_999, &shape);
            assert_eq!(added, Ok(()));
        }
        for (until_ms, in_windows) in [(9_999, 0), (10_000, 1), (19_999, 1), (20_000, 3)] {
            let ends = WindowEnds {
                ends_ms: [Some(until_ms), None],
                until_ms: [until_ms; 2],
            };
            assert_eq!(windows.advance(&both(&[PAIR]), &ends, &shape), Ok(()));
            let live: Vec<i128> = reported(&windows, &ends).sums[0]
                .iter()
                .map(|sums| sums[0])
                .collect();
            assert_eq!(live, [in_windows, in_windows, 3], "until {until_ms}");
        }
    }

    #[test]
    fn drops_and_reports_tallies_beyond_the_bound_until_there_is_room() {
        let shape = shape();
        let mut windows = windows(&shape);
        let mut add = |start_ms| windows.add(PAIR, View::Live, &of(start_ms), &[1], -1, &shape);
        for start_ms in 0..MAX_AHEAD as i64 {
            add(start_ms).expect("there is room");
        }
        assert_eq!(add(i64::MAX - 1), Err(Overflow));
        assert_eq!(add(0), Ok(()), "this slot waits already");
        windows.remove(PAIR, &shape);
        windows.admit(PAIR, &shape);
        let added = windows.add(PAIR, View::Live, &of(0), &[1], -1, &shape);
        assert_eq!(added, Ok(()));
        assert_eq!(shape.n_ahead.into_inner(), 1);
    }

    #[test]
    fn an_arm_has_the_sums_of_the_requested_pairs() {
        let shape = shape();
        let mut windows = windows(&shape);
        windows.admit(4, &shape);
        for (pair, tally) in [(PAIR, &[1][..]), (4, &[10, 20])] {
            let added = windows.add(pair, View::Settled, &of(0), tally, i64::MAX, &shape);
            assert_eq!(added, Ok(()));
        }
        let ends = WindowEnds {
            ends_ms: [None; 2],
            until_ms: [i64::MAX; 2],
        };
        let mut arm = reported(&windows, &ends);
        assert_eq!(arm.sums[1], vec![Box::from([1, 0]); 3]);
        windows.add_up(&both(&[PAIR, 4]), &ends, &mut arm);
        assert_eq!(arm.sums[1], vec![Box::from([11, 20]); 3]);
        assert_eq!(arm.sums[0], vec![Box::from([0, 0]); 3]);
        windows.remove(PAIR, &shape);
        assert!(!windows.is_of(&both(&[PAIR])) && windows.is_of(&both(&[4])) && !windows.is_empty());
    }
}
