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
use crate::config;
use crate::engine::ArmId;
use crate::engine::window::{Cells, Overflow, Room, WideSums, Window};
use crate::snapshot::View;

/// Rows that are looked at together before they are added.
const GROUP: usize = 16;

#[derive(Debug)]
pub(super) struct Part {
    /// Of each sliding window.
    cells_ms: Vec<i64>,
    width: usize,
    arms: Vec<ArmPart>,
    cells: Cells,
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
    pub fn new(windows: &[config::Window], width: usize) -> Part {
        Part {
            cells_ms: windows.iter().map(config::Window::cell_ms).collect(),
            width,
            arms: Vec::new(),
            cells: Cells::new(width),
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

    /// Adds tallies of arms in slots: these rows, which can be walked through twice.
    ///
    /// Where there are many arms, hardly any of what a row touches is in the cache. So a few rows are looked at before
    /// they are added: the misses of a group then overlap.
    pub fn add_all<'a, Rows: Iterator<Item = (ArmId, i64, &'a [i64])>>(
        &mut self,
        view: View,
        rows: impl Fn() -> Rows,
    ) -> Result<(), Overflow> {
        let (mut rows, mut ahead, mut further) = (rows(), rows(), rows());
        let mut exact = Ok(());
        loop {
            let mut seen = 0;
            for (arm, start_ms, _) in ahead.by_ref().take(GROUP) {
                seen ^= self.look_at_windows(arm, view, start_ms);
            }
            for (arm, start_ms, _) in further.by_ref().take(GROUP) {
                seen ^= self.look_at_sums(arm, view, start_ms);
            }
            std::hint::black_box(seen);
            let mut any = false;
            for (arm, start_ms, tally) in rows.by_ref().take(GROUP) {
                any = true;
                exact = exact.and(self.add(arm, view, start_ms, tally));
            }
            if !any {
                return exact;
            }
        }
    }

    /// Reads what tells where a row's cells are.
    fn look_at_windows(&self, arm: ArmId, view: View, start_ms: i64) -> i64 {
        let of_view = self.windows_of(arm, view).iter().zip(&self.cells_ms);
        let rows = of_view.map(|(window, cell_ms)| window.row_of(start_ms.div_euclid(*cell_ms)));
        rows.fold(0, |all, row| all ^ i64::from(row.unwrap_or(0)))
    }

    /// Reads the first columns of cells and sums that a row adds to.
    fn look_at_sums(&self, arm: ArmId, view: View, start_ms: i64) -> i64 {
        let n_windows = self.cells_ms.len();
        let sums = &self.arms[arm as usize].sums;
        let first = view as usize * (n_windows + 1);
        let sums = (first..=first + n_windows).fold(0, |all, row| all ^ sums.look_at(row));
        let of_view = self.windows_of(arm, view).iter().zip(&self.cells_ms);
        let rows = of_view.filter_map(|(window, cell_ms)| window.row_of(start_ms.div_euclid(*cell_ms)));
        rows.fold(sums, |all, row| all ^ self.cells.look_at(row))
    }

    fn windows_of(&self, arm: ArmId, view: View) -> &[Window] {
        let n_windows = self.cells_ms.len();
        &self.arms[arm as usize].windows[view as usize * n_windows..][..n_windows]
    }

    /// Adds the tally of an arm in a slot.
    fn add(&mut self, arm: ArmId, view: View, start_ms: i64, tally: &[i64]) -> Result<(), Overflow> {
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
            exact = exact.and(window.add(start_ms.div_euclid(*cell_ms), tally, &mut room));
        }
        if start_ms >= arm.total_from_ms {
            arm.sums.add(first + n_windows, tally);
        }
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

    /// The touched cells of a window of an arm, by number.
    pub fn cells(&self, arm: ArmId, view: View, window: usize) -> impl Iterator<Item = (i64, &[i64])> {
        self.windows_of(arm, view)[window].cells(&self.cells)
    }
}
