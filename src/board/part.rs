//! What one pair of partitions adds to its arms, dense by the engine's numbers: a row is added without a search.
//!
//! ```text
//! arm 0 ─▶ │ live: 5m 1h 24h │ settled: 5m 1h 24h │  windows: where in the store their cells are
//! arm 1    │ live: 5m 1h 24h total │ settled: …   │  sums
//!   …
//! store ─▶ │ cell │ cell │ …                         of all arms of the pair
//! ```

use std::cmp::Reverse;
use std::sync::Arc;

use super::Entry;
use super::ahead::Ahead;
use super::runs::{ALL_TIME, Runs};
use crate::config;
use crate::engine::cells::Cells;
use crate::engine::window::{Overflow, Room, WideSums, Window};
use crate::engine::{ArmId, ArmInSlot};
use crate::snapshot::View;

#[derive(Debug)]
pub(super) struct Part {
    /// Of each sliding window.
    cells_ms: Vec<i64>,
    width: usize,
    arms: Vec<ArmPart>,
    cells: Cells,
    runs: Runs,
    ahead: Ahead,
}

/// The tally of an arm in a slot, on its way to the windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub of: ArmInSlot,
    pub sums: &'a [i64],
}

/// All that goes to one arm side by side, the newest first: so that all that goes to one cell is, too.
pub(super) fn in_order<'a>(rows: impl Iterator<Item = Row<'a>>) -> Vec<Row<'a>> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|row| (row.of.arm, Reverse(row.of.start_ms)));
    rows
}

/// What one pair adds to one arm.
#[derive(Debug)]
struct ArmPart {
    entry: Arc<Entry>,
    /// As its entry has it: one look-up less.
    total_from_ms: i64,
    last_list_ms: i64,
    /// By view, then window.
    windows: Box<[Window]>,
    /// By view, then window, `total` last.
    sums: WideSums,
}

impl Part {
    /// For tallies of `width` sums, the first ones of which a new list adds to.
    pub fn new(windows: &[config::Window], width: usize, n_of_new_list: usize) -> Part {
        Part {
            cells_ms: windows.iter().map(config::Window::cell_ms).collect(),
            width,
            arms: Vec::new(),
            cells: Cells::new(width, n_of_new_list),
            runs: Runs::new(width),
            ahead: Ahead::default(),
        }
    }

    pub fn n_arms(&self) -> usize {
        self.arms.len()
    }

    /// Gives the next number of the engine to an arm.
    pub fn push(&mut self, entry: Arc<Entry>) {
        let n_windows = self.cells_ms.len();
        self.arms.push(ArmPart {
            total_from_ms: entry.total_from_ms,
            entry,
            last_list_ms: i64::MIN,
            windows: vec![Window::new(); 2 * n_windows].into(),
            sums: WideSums::new(2 * (n_windows + 1), self.width),
        });
    }

    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.arms.iter().map(|arm| &arm.entry)
    }

    pub fn entry(&self, arm: ArmId) -> &Arc<Entry> {
        &self.arms[arm as usize].entry
    }

    /// Adds tallies of arms in slots, which are [in order](in_order). Those of slots that begin after `until_ms` are added to
    /// `total` alone, and wait for the windows.
    ///
    /// # Errors
    /// [`Overflow`] where a cell's sum left 64 bits, or too much waits.
    pub fn add_all(&mut self, view: View, rows: &[Row], until_ms: i64) -> Result<(), Overflow> {
        let mut exact = Ok(());
        for of_arm in rows.chunk_by(|one, next| one.of.arm == next.of.arm) {
            let n_ahead = of_arm.partition_point(|row| row.of.start_ms > until_ms);
            let (ahead, rows) = of_arm.split_at(n_ahead);
            if let Some(row) = rows.first() {
                exact = exact.and(self.add_to_windows(view, row.of.arm, rows));
            }
            self.add_to_total(view, of_arm);
            exact = ahead
                .iter()
                .fold(exact, |exact, row| exact.and(self.ahead.hold(view, row)));
        }
        exact
    }

    /// Adds to the windows what waited for `until_ms`, by view.
    ///
    /// # Errors
    /// [`Overflow`] where a cell's sum left 64 bits.
    pub fn release(&mut self, until_ms: [i64; 2]) -> Result<(), Overflow> {
        let mut exact = Ok(());
        for (view, until_ms) in View::BOTH.into_iter().zip(until_ms) {
            while let Some(waiting) = self.ahead.take(view, until_ms) {
                let row = Row {
                    of: waiting.of,
                    sums: &waiting.sums,
                };
                exact = exact.and(self.add_to_windows(view, waiting.of.arm, &[row]));
            }
        }
        exact
    }

    fn windows_of(&self, arm: ArmId, view: View) -> &[Window] {
        let n_windows = self.cells_ms.len();
        &self.arms[arm as usize].windows[view as usize * n_windows..][..n_windows]
    }

    /// Adds tallies of one arm, the newest first.
    fn add_to_windows(&mut self, view: View, arm: ArmId, rows: &[Row]) -> Result<(), Overflow> {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[arm as usize];
        let last_lists_ms = rows.iter().filter_map(|row| row.of.last_list_ms);
        arm.last_list_ms = last_lists_ms.fold(arm.last_list_ms, i64::max);
        let tallies = rows.iter().map(|row| (row.of.start_ms, row.sums));
        let windows = &mut arm.windows[view as usize * n_windows..][..n_windows];
        let first = view as usize * (n_windows + 1);
        let mut exact = Ok(());
        for (index, (window, cell_ms)) in windows.iter_mut().zip(&self.cells_ms).enumerate() {
            let mut room = Room {
                cells: &mut self.cells,
                sums: &mut arm.sums,
                row: first + index,
            };
            self.runs.each(tallies.clone(), *cell_ms, |number, tally| {
                exact = exact.and(window.add(number, tally, &mut room));
            });
        }
        exact
    }

    /// Adds tallies of one arm, at least one.
    fn add_to_total(&mut self, view: View, rows: &[Row]) {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[rows[0].of.arm as usize];
        let tallies = rows.iter().map(|row| (row.of.start_ms, row.sums));
        let counted = tallies.filter(|(start_ms, _)| *start_ms >= arm.total_from_ms);
        self.runs.each(counted, ALL_TIME, |_, tally| {
            arm.sums.add(view as usize * (n_windows + 1) + n_windows, tally);
        });
    }

    /// Moves the windows of an arm on to these ends, by view.
    pub fn advance(&mut self, arm: ArmId, ends_ms: [Option<i64>; 2]) {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[arm as usize];
        for (view, end_ms) in ends_ms.into_iter().enumerate() {
            let Some(end_ms) = end_ms else { continue };
            let windows = &mut arm.windows[view * n_windows..][..n_windows];
            for (index, (window, cell_ms)) in windows.iter_mut().zip(&self.cells_ms).enumerate() {
                let mut room = Room {
                    cells: &mut self.cells,
                    sums: &mut arm.sums,
                    row: view * (n_windows + 1) + index,
                };
                window.advance(end_ms.div_euclid(*cell_ms), &mut room);
            }
        }
    }

    /// The sums of an arm, by view, then window, `total` last; and when it had its newest list.
    pub fn sums(&self, arm: ArmId) -> (&WideSums, i64) {
        let arm = &self.arms[arm as usize];
        (&arm.sums, arm.last_list_ms)
    }

    /// The touched cells of a window of an arm, by number: their first columns, the others are zero.
    pub fn cells(&self, arm: ArmId, view: View, window: usize) -> impl Iterator<Item = (i64, &[i64])> {
        self.windows_of(arm, view)[window].cells(&self.cells)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Arm;
    use crate::engine::ranking::LINE;

    const N_ARMS: ArmId = 40;
    const WIDTH: usize = 2 * LINE;

    fn part() -> Part {
        let window = |name: &str, span_ms| config::Window {
            name: name.into(),
            span_ms,
        };
        let mut part = Part::new(&[window("1m", 60_000), window("1h", 3_600_000)], WIDTH, LINE);
        for arm in 0..N_ARMS {
            let arm = Arm {
                experiment: "e".into(),
                arm: arm.to_string().into(),
            };
            part.push(Arc::new(Entry {
                arm,
                total_from_ms: i64::MIN,
                parts: Mutex::default(),
                covered: Mutex::default(),
            }));
        }
        part
    }

    /// Sums by view and window, the touched cells, and when the newest list was.
    type Told = (Vec<i128>, Vec<(i64, Vec<i64>)>, i64);

    fn told(part: &Part) -> Vec<Told> {
        let of_arm = |arm| {
            let (sums, last_list_ms) = part.sums(arm);
            let mut rows = vec![0; 6 * WIDTH];
            let each = rows.chunks_mut(WIDTH).enumerate();
            each.for_each(|(row, columns)| sums.add_to(row, columns));
            let windows = View::BOTH.into_iter().flat_map(|view| [(view, 0), (view, 1)]);
            let cells = windows.flat_map(|(view, window)| part.cells(arm, view, window));
            let whole = |cell: &[i64]| [cell, &[0; WIDTH][cell.len()..]].concat();
            (
                rows,
                cells.map(|(number, cell)| (number, whole(cell))).collect(),
                last_list_ms,
            )
        };
        (0..N_ARMS).map(of_arm).collect()
    }

    proptest! {
        /// Many arms, slots in any order, some with clicks, and windows that slide on from one hand-over to the next.
        #[test]
        fn a_hand_over_adds_what_its_rows_add_one_by_one(
            hand_overs in vec(vec((0..N_ARMS, 0_i64..90, any::<bool>(), prop::option::of(0_i64..1000)), 1..200), 1..4),
        ) {
            let [mut at_once, mut one_by_one] = [part(), part()];
            let mut column = [[0; WIDTH]; 2];
            column[0][0] = 3;
            column[1][0] = 1;
            column[1][LINE + 1] = 2;
            for (n, rows) in hand_overs.iter().enumerate() {
                let rows: Vec<Row> = rows
                    .iter()
                    .map(|(arm, second, is_clicked, list_ms)| {
                        let start_ms = 1000 * (100 * n as i64 + second);
                        let last_list_ms = list_ms.map(|list_ms| start_ms + list_ms);
                        let sums = &column[usize::from(*is_clicked)][..];
                        let of = ArmInSlot { arm: *arm, start_ms, last_list_ms };
                        Row { of, sums }
                    })
                    .collect();
                for view in View::BOTH {
                    prop_assert_eq!(at_once.add_all(view, &in_order(rows.iter().copied()), i64::MAX), Ok(()));
                    rows.iter().try_for_each(|row| one_by_one.add_all(view, &[*row], i64::MAX)).expect("small sums");
                }
                prop_assert_eq!(told(&at_once), told(&one_by_one));
            }
        }

        /// Whatever is held back meanwhile: once its time has come, all is as if it had not been.
        #[test]
        fn what_waited_is_added_as_if_it_had_not(
            rows in vec((0..N_ARMS, 0_i64..300, 0_i64..1000), 1..100),
            until in vec(0_i64..300, 1..5),
        ) {
            let [mut at_once, mut held] = [part(), part()];
            let mut until_ms: Vec<i64> = until.iter().map(|second| second * 1000).collect();
            until_ms.sort_unstable();
            let mut sums = [0; WIDTH];
            sums[0] = 1;
            for (n, (arm, second, list_ms)) in rows.iter().enumerate() {
                let until_ms = until_ms[n * until_ms.len() / rows.len()];
                let start_ms = second * 1000;
                let of = ArmInSlot { arm: *arm, start_ms, last_list_ms: Some(start_ms + list_ms) };
                let row = Row { of, sums: &sums };
                at_once.add_all(View::Live, &[row], i64::MAX).expect("small sums");
                held.release([until_ms; 2]).expect("small sums");
                held.add_all(View::Live, &[row], until_ms).expect("small sums");
            }
            held.release([i64::MAX; 2]).expect("small sums");
            for part in [&mut at_once, &mut held] {
                (0..N_ARMS).for_each(|arm| part.advance(arm, [Some(300_000); 2]));
            }
            prop_assert_eq!(told(&at_once), told(&held));
        }
    }
}
