//! The global view as exporters see it.

use std::sync::Arc;

use super::GlobalHandle;
use crate::board::Board;
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};

/// Global view as a whole: each snapshot shows either all pairs or nothing.
pub struct GlobalBoard {
    board: Arc<Board>,
    handle: GlobalHandle,
}

impl GlobalBoard {
    pub fn new(board: Arc<Board>, handle: GlobalHandle) -> GlobalBoard {
        GlobalBoard { board, handle }
    }

    fn is_shown(&self) -> bool {
        self.handle.unavailable().is_ok()
    }
}

impl SnapshotSource for GlobalBoard {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        match self.is_shown() {
            true => self.board.snapshot_into(timelines, snapshot),
            false => *snapshot = Snapshot::default(),
        }
    }

    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        match self.is_shown() {
            true => self.board.timelines(window, arms),
            false => arms.iter().map(|_| None).collect(),
        }
    }
}
