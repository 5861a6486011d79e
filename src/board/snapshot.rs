//! Copy of the board at one instant, for exporters.

use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::metrics::LISTS;

/// Arms at one instant, sorted by experiment and arm.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub live_end_ms: Option<i64>,
    /// Last instant that the settled view covers.
    pub settled_end_ms: Option<i64>,
    /// Start of `total`.
    pub since_ms: Option<i64>,
    /// Number of arms folded into `__other__`.
    pub folded_arms: u64,
    /// Number of arms without coverage because of its memory limit.
    pub arms_without_coverage: u64,
    pub arms: Vec<ArmSnapshot>,
}

#[derive(Debug, Clone)]
pub struct ArmSnapshot {
    pub experiment: Arc<str>,
    pub arm: Arc<str>,
    /// Event time of its newest accepted list.
    pub last_list_ms: i64,
    /// Sums by `View as usize`, then by index of the configured window, `total` last. Each row has `Ranking::width` columns, all
    /// zero if the window is empty.
    pub sums: [Vec<Box<[i128]>>; 2],
    /// Cells of one window by `View as usize`. Present on request, and only for the arms with the most lists.
    pub timelines: Option<[Timeline; 2]>,
}

/// Snapshots of this instance's partitions and of all partitions, kept to reuse their memory.
#[derive(Debug, Default)]
pub struct Snapshots {
    pub own: Snapshot,
    pub global: Snapshot,
}

impl Snapshots {
    pub fn of(&mut self, is_global: bool) -> &mut Snapshot {
        match is_global {
            true => &mut self.global,
            false => &mut self.own,
        }
    }
}

impl ArmSnapshot {
    /// Returns the lists of `total` in the larger view. Arms with the fewest are left out if there are too many arms.
    pub fn n_lists(&self) -> i128 {
        let of_views = self.sums.iter().filter_map(|rows| rows.last());
        of_views.map(|total| total[LISTS]).max().unwrap_or(0)
    }

    pub fn sums(&self, view: View, window: usize) -> &[i128] {
        &self.sums[view as usize][window]
    }
}

/// The 60 cells of a window, oldest first. Empty cells are `None`.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Start of the first cell, Unix ms.
    pub start_ms: i64,
    pub cell_ms: i64,
    pub cells: Vec<Option<Box<[i128]>>>,
}

/// Source of snapshots.
pub trait SnapshotSource: Send + Sync + 'static {
    /// Takes a snapshot. `timelines` is the index of the window whose cells are wanted.
    fn snapshot(&self, timelines: Option<usize>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(timelines, &mut snapshot);
        snapshot
    }

    /// Takes a snapshot into an earlier one, to reuse its memory.
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot);

    /// Returns the cells of a window for these arms, in their order, by `View as usize`. They are current, so they may be newer
    /// than the arms' snapshot. None for an arm that is gone.
    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>>;
}
