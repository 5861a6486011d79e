//! Window of the interval results, and the sums over a pair's users in it.
//!
//! ```text
//! cells  │ n−143 … n−1 │ n │ packed, each as long as it is in the window
//!        ╰──── sums ───────╯ a new cell is added, the oldest one is subtracted
//! ```

use std::collections::{BTreeMap, VecDeque};

use crate::engine::ArmId;
use crate::ledger::{BucketSums, N_BUCKETS, PackedBuckets};

/// A sliding window that consists of whole cells of looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellWindow {
    pub name: String,
    /// Number of cells: the window of a look has the look's cell and those before it.
    pub n_cells: i64,
}

impl CellWindow {
    /// Picks the longest window whose length is a multiple of the time between two looks. `windows` are names and lengths in ms.
    pub fn longest<'a>(windows: impl Iterator<Item = (&'a str, i64)>, every_ms: i64) -> Option<CellWindow> {
        let whole = windows.filter(|(_, span_ms)| span_ms % every_ms == 0);
        whole
            .max_by_key(|(_, span_ms)| *span_ms)
            .map(|(name, span_ms)| CellWindow {
                name: name.to_owned(),
                n_cells: span_ms / every_ms,
            })
    }

    /// Returns the first cell of a look's window.
    pub(super) fn begin(&self, look: i64) -> i64 {
        look - self.n_cells + 1
    }
}

/// Sums over an experiment's users in the last cells of a pair, by arm. Absent for arms without a list in them.
#[derive(Debug, Default)]
pub(super) struct WindowSums(BTreeMap<ArmId, ArmCells>);

#[derive(Debug, Default)]
struct ArmCells {
    /// Cells in which the arm has a list, by number, ascending.
    cells: VecDeque<(i64, PackedBuckets)>,
    /// Sum of all cells.
    sums: BucketSums,
    /// Bytes of the cells.
    n_bytes: u64,
}

/// Overhead of a kept cell, in bytes: its place in a queue that is at least half full, and its allocations.
pub(super) const CELL_BYTES: u64 = 2 * size_of::<(i64, PackedBuckets)>() as u64 + 16;

impl WindowSums {
    /// Adds a cell of an arm, later than its others, and drops cells before `begin`. `sums` is the cell unpacked.
    pub fn add(&mut self, number: i64, arm: ArmId, (cell, sums): (PackedBuckets, &BucketSums), begin: i64) {
        let own = self.0.entry(arm).or_default();
        own.sums.merge(sums);
        own.n_bytes += cell_bytes(&cell);
        own.cells.push_back((number, cell));
        // Drop old cells at once, so that memory never holds more than a window.
        own.start_at(begin);
    }

    /// Drops the cells before this number.
    pub fn start_at(&mut self, number: i64) {
        self.0.values_mut().for_each(|arm| arm.start_at(number));
        self.0.retain(|_, arm| !arm.cells.is_empty());
    }

    pub fn sums(&self) -> impl Iterator<Item = (ArmId, &BucketSums)> {
        self.0.iter().map(|(arm, own)| (*arm, &own.sums))
    }

    /// Returns the bytes of its cells and sums.
    pub fn bytes(&self) -> u64 {
        let arms = self.0.values();
        arms.map(|arm| arm.sums.bytes() + arm.n_bytes).sum()
    }
}

impl ArmCells {
    fn start_at(&mut self, number: i64) {
        let n_over = self.cells.partition_point(|(first, _)| *first < number);
        for (_, cell) in self.cells.drain(..n_over) {
            cell.take_from(&mut self.sums);
            self.n_bytes -= cell_bytes(&cell);
        }
    }
}

fn cell_bytes(cell: &PackedBuckets) -> u64 {
    cell.length() as u64 + CELL_BYTES
}

/// Most bytes of a packed sum with fewer than 65,536 lists in one bucket of a cell: 2^16 × 2^32, and a sign.
const SUM_BYTES: u64 = 7;

/// Most bytes of the counts of columns and buckets in a packed cell.
const LENGTHS_BYTES: u64 = 4;

/// Returns the most bytes that a window of one arm of one pair takes: its cells and its sums.
pub fn max_window_bytes(n_cells: i64, n_columns: usize) -> u64 {
    let bucket = 1 + n_columns as u64 * SUM_BYTES;
    let cell = CELL_BYTES + LENGTHS_BYTES + N_BUCKETS as u64 * bucket;
    n_cells.unsigned_abs() * cell + N_BUCKETS as u64 * row_bytes(n_columns)
}

/// Returns the bytes of the sums of one bucket with its number, as long as they fit into 64 bits.
pub fn row_bytes(n_columns: usize) -> u64 {
    (n_columns * size_of::<i64>() + size_of::<u8>()) as u64
}
