//! The global view as exporters see it.

use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::ledger::PairId;
use abgauge_core::metrics::catalogue::Catalogue;

use crate::board::Board;
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use crate::clock::Clock;
use crate::store::publications::Publications;
use crate::store::stored::DecodedState;

/// Global view as a whole: each snapshot shows either all pairs or nothing.
pub struct GlobalBoard {
    board: Board,
    publications: Publications,
    /// Bound on how far ahead of the clock a settled window may end, ms; usually negative.
    settled_ahead_ms: i64,
    clock: Clock,
}

impl GlobalBoard {
    pub fn new(board: Board, publications: Publications, settled_ahead_ms: i64, clock: Clock) -> GlobalBoard {
        GlobalBoard {
            board,
            publications,
            settled_ahead_ms,
            clock,
        }
    }

    pub fn set_catalogue(&self, catalogue: &Arc<Catalogue>) {
        self.board.set_catalogue(Arc::clone(catalogue));
    }

    /// Replaces the state of a pair as a whole, so that a scrape sees the old state or the new one.
    pub(super) fn replace(&self, pair: PairId, state: &DecodedState, was_caught_up: bool) {
        self.move_on();
        self.board.replace(pair, &state.ledger, state.reach());
        // A pair that never caught up lacks records, so it is in no view.
        if was_caught_up {
            self.board.show_in(View::Settled, pair);
        } else {
            self.board.hide(pair);
        }
    }

    fn is_shown(&self) -> bool {
        self.publications.unavailable().is_ok()
    }

    /// Moves the bound of the shown windows to the present time.
    fn move_on(&self) {
        let until_ms = self.clock.now_ms() + self.settled_ahead_ms;
        self.board.show_until([until_ms; 2]);
    }
}

impl SnapshotSource for GlobalBoard {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        if self.is_shown() {
            self.move_on();
            self.board.snapshot_into(timelines, snapshot);
        } else {
            *snapshot = Snapshot::default();
        }
    }

    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        if !self.is_shown() {
            return arms.iter().map(|_| None).collect();
        }
        self.move_on();
        self.board.timelines(window, arms)
    }
}
