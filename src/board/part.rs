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
use super::runs::{ALL_TIME, Runs};
use crate::config;
use crate::engine::ArmId;
use crate::engine::cells::Cells;
use crate::engine::prefetch::prefetch;
use crate::engine::window::{Overflow, Room, WideSums, Window};
use crate::snapshot::View;

/// So many rows ahead of its turn the arm of a row is asked for, at half of it what the arm points to, and at a quarter the
/// cells that the row touches: where arms are many, hardly any is in the cache.
const AHEAD: usize = 16;
/// Of so few all stays there.
const FEW_ARMS: usize = 16;

#[derive(Debug)]
pub(super) struct Part {
    /// Of each sliding window.
    cells_ms: Vec<i64>,
    width: usize,
    arms: Vec<ArmPart>,
    cells: Cells,
    runs: Runs,
}

/// The tally of an arm in a slot, on its way to the windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub arm: ArmId,
    /// Begin of the slot, epoch ms.
    pub start_ms: i64,
    /// The largest time of a new list in it, epoch ms.
    pub last_list_ms: Option<i64>,
    pub sums: &'a [i64],
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

    /// Adds tallies of arms in slots; `rows` are put in order.
    ///
    /// # Errors
    /// [`Overflow`] where a cell's sum left 64 bits.
    pub fn add_all(&mut self, view: View, rows: &mut [Row]) -> Result<(), Overflow> {
        // All that goes to one arm goes there at once, and of that all that goes to one cell.
        rows.sort_unstable_by_key(|row| (row.arm, Reverse(row.start_ms)));
        let mut exact = Ok(());
        let mut first = 0;
        for of_arm in rows.chunk_by(|one, next| one.arm == next.arm) {
            if self.arms.len() > FEW_ARMS {
                (0..of_arm.len()).for_each(|row| self.foresee(view, &rows[first + row..]));
                first += of_arm.len();
            }
            exact = exact.and(self.add(view, of_arm));
        }
        exact
    }

    /// Lets what later rows touch be fetched, as far as one can tell.
    fn foresee(&self, view: View, rows: &[Row]) {
        if let Some(row) = rows.get(AHEAD) {
            prefetch(&self.arms[row.arm as usize]);
        }
        if let Some(row) = rows.get(AHEAD / 2) {
            prefetch(row.sums);
            self.each_cell(view, row, |window, number| window.prefetch(number));
            let sums = &self.arms[row.arm as usize].sums;
            let first = view as usize * (self.cells_ms.len() + 1);
            (first..=first + self.cells_ms.len()).for_each(|row| sums.prefetch(row));
        }
        if let Some(row) = rows.get(AHEAD / 4) {
            self.each_cell(view, row, |window, number| {
                window.prefetch_cells(number, &self.cells)
            });
        }
    }

    /// Calls `go` with each window of a row's arm, and with the number of the cell there that the row goes to.
    fn each_cell(&self, view: View, row: &Row, go: impl Fn(&Window, i64)) {
        let windows = self.windows_of(row.arm, view).iter().zip(&self.cells_ms);
        windows.for_each(|(window, cell_ms)| go(window, row.start_ms.div_euclid(*cell_ms)));
    }

    fn windows_of(&self, arm: ArmId, view: View) -> &[Window] {
        let n_windows = self.cells_ms.len();
        &self.arms[arm as usize].windows[view as usize * n_windows..][..n_windows]
    }

    /// Adds tallies of one arm, the newest first.
    fn add(&mut self, view: View, rows: &[Row]) -> Result<(), Overflow> {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[rows[0].arm as usize];
        let last_list_ms = rows.iter().filter_map(|row| row.last_list_ms).max();
        arm.last_list_ms = last_list_ms.map_or(arm.last_list_ms, |ms| ms.max(arm.last_list_ms));
        let tallies = rows.iter().map(|row| (row.start_ms, row.sums));
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
        let counted = tallies.filter(|(start_ms, _)| *start_ms >= arm.total_from_ms);
        self.runs.each(counted, ALL_TIME, |_, tally| {
            arm.sums.add(first + n_windows, tally);
        });
        exact
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
