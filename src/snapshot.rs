//! One instant of the board, by value: what the exporters render.

use std::sync::Arc;

use crate::engine::ranking::LISTS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// Every list counts as soon as it is read.
    Live,
    /// A list counts once its attribution window has closed.
    Settled,
}

impl View {
    pub const BOTH: [View; 2] = [View::Live, View::Settled];

    /// The value of the label `view`.
    pub fn name(self) -> &'static str {
        match self {
            View::Live => "live",
            View::Settled => "settled",
        }
    }
}

/// All arms at one instant, sorted by experiment and arm.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub live_end_ms: Option<i64>,
    /// The last instant that the settled view covers.
    pub settled_end_ms: Option<i64>,
    /// Where `total` begins.
    pub since_ms: Option<i64>,
    /// Arms folded into `__other__`.
    pub folded_arms: u64,
    /// Arms without coverage because of its bound on memory.
    pub arms_without_coverage: u64,
    pub arms: Vec<ArmSnapshot>,
}

#[derive(Debug, Clone)]
pub struct ArmSnapshot {
    pub experiment: Arc<str>,
    pub arm: Arc<str>,
    /// Event time of its newest accepted list.
    pub last_list_ms: i64,
    /// By `View as usize`, then by index of the configured window, `total` last. Each is as wide as
    /// `Ranking::width`; all zero where the window is empty.
    pub sums: [Vec<Box<[i128]>>; 2],
    /// Only where asked for, and only for the arms with the most lists: by `View as usize`, the cells of one window.
    pub timelines: Option<[Timeline; 2]>,
}

/// One of this instance's partitions, and one of all: their memory is used again.
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
    /// Lists of `total`, by the view that has more of them: what decides which arms are left out where there are too many.
    pub fn n_lists(&self) -> i128 {
        let of_views = self.sums.iter().filter_map(|rows| rows.last());
        of_views.map(|total| total[LISTS]).max().unwrap_or(0)
    }

    pub fn sums(&self, view: View, window: usize) -> &[i128] {
        &self.sums[view as usize][window]
    }
}

/// The 60 cells of a window, oldest first; empty cells are `None`.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Begin of the first cell, epoch ms.
    pub start_ms: i64,
    pub cell_ms: i64,
    pub cells: Vec<Option<Box<[i128]>>>,
}

/// Where snapshots come from.
pub trait SnapshotSource: Send + Sync + 'static {
    /// One instant; `timelines` is the index of the window whose cells are wanted.
    fn snapshot(&self, timelines: Option<usize>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.snapshot_into(timelines, &mut snapshot);
        snapshot
    }

    /// The same over an earlier one, whose memory is used again.
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot);

    /// The cells of a window of just these arms, in their order, by `View as usize`; of now, which may be later than
    /// they were taken. None of an arm that is gone.
    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>>;
}
