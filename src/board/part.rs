//! What one pair of partitions adds to its arms, dense by the engine's numbers: a row is added without a search.
//!
//! ```text
//! arm 0 ─▶ │ live: 5m 1h 24h │ settled: 5m 1h 24h │  windows: where in the store their cells are
//! arm 1    │ live: 5m 1h 24h total │ settled: …   │  sums
//!   …
//! store ─▶ │ cell │ cell │ …                         of all arms of the pair
//! ```

use std::sync::Arc;

use super::Entry;
use super::by_arm::ByArm;
use super::runs::{ALL_TIME, Runs};
use crate::config;
use crate::engine::ArmId;
use crate::engine::cells::Cells;
use crate::engine::prefetch::prefetch;
use crate::engine::window::{Overflow, Room, WideSums, Window};
use crate::snapshot::View;

/// So many arms ahead of its turn an arm is asked for, at half of it what it points to, and its cells at a quarter: where
/// there are many, hardly any is in the cache.
const AHEAD: usize = 8;

#[derive(Debug)]
pub(super) struct Part {
    /// Of each sliding window.
    cells_ms: Vec<i64>,
    width: usize,
    arms: Vec<ArmPart>,
    cells: Cells,
    by_arm: ByArm,
    runs: Runs,
}

/// The tally of an arm in a slot, on its way to the windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub arm: ArmId,
    /// Begin of the slot, epoch ms.
    pub start_ms: i64,
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
            by_arm: ByArm::default(),
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

    pub fn had_list(&mut self, arm: ArmId, last_ms: i64) {
        let arm = &mut self.arms[arm as usize];
        arm.last_list_ms = arm.last_list_ms.max(last_ms);
    }

    /// Adds tallies of arms in slots, ascending by slot where that can be had.
    ///
    /// # Errors
    /// [`Overflow`] where a cell's sum left 64 bits.
    pub fn add_all(&mut self, view: View, rows: &[Row]) -> Result<(), Overflow> {
        let mut by_arm = std::mem::take(&mut self.by_arm);
        by_arm.set(rows, self.arms.len());
        let mut exact = Ok(());
        for (at, arm) in by_arm.arms().iter().enumerate() {
            if let Some(later) = by_arm.arms().get(at + AHEAD) {
                prefetch(&self.arms[*later as usize]);
            }
            if let Some(next) = by_arm.arms().get(at + AHEAD / 2) {
                self.arms[*next as usize].prefetch(view, self.cells_ms.len());
            }
            if let Some(next) = by_arm.arms().get(at + AHEAD / 4) {
                let newest = by_arm.newest_first(*next).next();
                newest
                    .iter()
                    .for_each(|row| self.prefetch_cells(view, &rows[*row]));
            }
            let of_arm = by_arm
                .newest_first(*arm)
                .map(|row| (rows[row].start_ms, rows[row].sums));
            exact = exact.and(self.add(*arm, view, of_arm));
        }
        self.by_arm = by_arm;
        exact
    }

    /// Lets the cells be fetched that a row touches.
    fn prefetch_cells(&self, view: View, row: &Row) {
        let windows = self.windows_of(row.arm, view).iter().zip(&self.cells_ms);
        windows.for_each(|(window, cell_ms)| window.prefetch(row.start_ms.div_euclid(*cell_ms), &self.cells));
    }

    fn windows_of(&self, arm: ArmId, view: View) -> &[Window] {
        let n_windows = self.cells_ms.len();
        &self.arms[arm as usize].windows[view as usize * n_windows..][..n_windows]
    }

    /// Adds tallies of an arm, by begin of their slots.
    fn add<'a>(
        &mut self,
        arm: ArmId,
        view: View,
        tallies: impl Iterator<Item = (i64, &'a [i64])> + Clone,
    ) -> Result<(), Overflow> {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[arm as usize];
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

impl ArmPart {
    /// Lets what a row of this view touches be fetched, as far as one can tell.
    fn prefetch(&self, view: View, n_windows: usize) {
        let windows = &self.windows[view as usize * n_windows..][..n_windows];
        windows.iter().for_each(prefetch);
        let first = view as usize * (n_windows + 1);
        (first..=first + n_windows).for_each(|row| self.sums.prefetch(row));
    }
}
