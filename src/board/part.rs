//! What one pair of partitions adds to its arms, dense by the engine's numbers: a row is added without a search.
//!
//! ```text
//! arm 0 ─▶ │ live: 5m 1h 24h │ settled: 5m 1h 24h │  windows: where in the store their cells are
//! arm 1    │ live: 5m 1h 24h total │ settled: …   │  sums
//!   …
//! store ─▶ │ cell │ cell │ …                         of all arms of the pair
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Entry;
use crate::config;
use crate::engine::ArmId;
use crate::engine::window::{Cells, Overflow, Room, WideSums, Window};
use crate::snapshot::View;

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
            entry,
            last_list_ms: i64::MIN,
            windows: vec![Window::new(); 2 * n_windows].into(),
            sums: WideSums::new(2 * (n_windows + 1), self.width),
        });
    }

    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.arms.iter().map(|arm| &arm.entry)
    }

    /// Where an arm stands in a snapshot, and the newest list that it had from this pair.
    pub fn place(&self, arm: usize) -> (usize, i64) {
        let arm = &self.arms[arm];
        (arm.entry.place.load(Ordering::Relaxed), arm.last_list_ms)
    }

    pub fn entry(&self, arm: ArmId) -> &Arc<Entry> {
        &self.arms[arm as usize].entry
    }

    pub fn had_list(&mut self, arm: ArmId, last_ms: i64) {
        let arm = &mut self.arms[arm as usize];
        arm.last_list_ms = arm.last_list_ms.max(last_ms);
    }

    /// Adds the tally of an arm in a slot.
    pub fn add(&mut self, arm: ArmId, view: View, start_ms: i64, tally: &[i64]) -> Result<(), Overflow> {
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
        if start_ms >= arm.entry.total_from_ms {
            arm.sums.add(first + n_windows, tally);
        }
        exact
    }

    /// Moves the windows of an arm's view on to this end, and adds the sums of each, `total` last.
    pub fn add_to(&mut self, arm: usize, view: View, end_ms: Option<i64>, sums: &mut [Box<[i128]>]) {
        let n_windows = self.cells_ms.len();
        let arm = &mut self.arms[arm];
        let windows = &mut arm.windows[view as usize * n_windows..][..n_windows];
        let first = view as usize * (n_windows + 1);
        if let Some(end_ms) = end_ms {
            for (index, (window, cell_ms)) in windows.iter_mut().zip(&self.cells_ms).enumerate() {
                let mut room = Room {
                    cells: &mut self.cells,
                    sums: &mut arm.sums,
                    row: first + index,
                };
                window.advance(end_ms.div_euclid(*cell_ms), &mut room);
            }
        }
        for (index, sums) in sums.iter_mut().enumerate() {
            arm.sums.add_to(first + index, sums);
        }
    }

    /// The touched cells of a window of an arm, by number.
    pub fn cells(&self, arm: usize, view: View, window: usize) -> impl Iterator<Item = (i64, &[i64])> {
        let windows = &self.arms[arm].windows[view as usize * self.cells_ms.len()..];
        windows[window].cells(&self.cells)
    }
}
