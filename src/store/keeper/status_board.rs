//! Board on which the keeper publishes the state of each pair, so that readers never wait for its thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abgauge_core::journal::{LogProgress, OwnerStatus, ShownState, Urgency, Visibility};
use abgauge_core::ledger::PairId;

use super::Memory;
use crate::store::faults::Faults;

/// Status of a pair. Times are on [`Clock::lasting_ms`](crate::clock::Clock::lasting_ms).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairStatus {
    pub standing: OwnerStatus,
    /// Time of the last change of `standing`.
    pub since_ms: i64,
    /// Read progress in its partition of the state topic.
    pub progress: LogProgress,
    /// Time at which a new state of it was last found current.
    pub sealed_ms: Option<i64>,
    /// Number of its states that were found current.
    pub n_sealed: u64,
    /// Number of times a higher claim was read.
    pub n_superseded: u64,
    /// Bytes of keys and values handed over to be appended.
    pub n_bytes_written: u64,
    /// Time of its last assignment by the group.
    pub assigned_ms: Option<i64>,
    /// Cost of finding the stored state since then; `None` until it is known.
    pub restored: Option<Restored>,
    /// Reason why it cannot be counted.
    pub refusal: Option<String>,
    /// Fault that keeps its stored state from being complete and current, for the operator.
    pub trouble: Option<String>,
    /// Number of losses of the topic, and when the last one was found.
    pub n_lost: u64,
    pub lost_ms: Option<i64>,
    /// Key in our namespace that no abgauge writes. It is ignored.
    pub malformed_key: Option<String>,
}

/// Cost of finding the stored state of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    pub took_ms: i64,
    /// Bytes of keys and values read meanwhile.
    pub n_bytes_read: u64,
    /// Bytes of the state that was found and restored, if there was one.
    pub n_bytes_live: Option<u64>,
}

#[derive(Default)]
struct PairBoard {
    now: Mutex<PublishedPair>,
    /// The memory that the worker has made; 0 before the first.
    made: AtomicU64,
}

/// Last report of the keeper about a pair.
#[derive(Default)]
struct PublishedPair {
    wanted: Urgency,
    /// And the memory that the worker was ordered to make, if any.
    showing: Option<(Visibility, Option<Memory>)>,
    status: PairStatus,
}

/// One place per pair, indexed by pair.
pub(super) struct KeeperBoard {
    places: Vec<PairBoard>,
    pub faults: Faults,
}

impl KeeperBoard {
    pub fn new(n_pairs: u32) -> KeeperBoard {
        KeeperBoard {
            places: (0..n_pairs).map(|_| PairBoard::default()).collect(),
            faults: Faults::default(),
        }
    }

    fn place(&self, pair: PairId) -> Option<&PairBoard> {
        self.places.get(usize::try_from(pair).ok()?)
    }

    fn now(&self, pair: PairId) -> Option<MutexGuard<'_, PublishedPair>> {
        let place = self.place(pair)?;
        Some(place.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn has(&self, pair: PairId) -> bool {
        self.place(pair).is_some()
    }

    pub fn put(
        &self,
        pair: PairId,
        wanted: Urgency,
        showing: (Visibility, Option<Memory>),
        status: &PairStatus,
    ) {
        if let Some(mut now) = self.now(pair) {
            (now.wanted, now.showing) = (wanted, Some(showing));
            now.status.clone_from(status);
        }
    }

    pub fn wants_no_more(&self, pair: PairId) {
        if let Some(mut now) = self.now(pair) {
            now.wanted = Urgency::No;
        }
    }

    pub fn wants(&self, pair: PairId) -> Urgency {
        self.now(pair).map_or(Urgency::No, |now| now.wanted)
    }

    pub fn showing(&self, pair: PairId) -> Option<Visibility> {
        self.now(pair)?.showing.map(|(showing, _)| showing)
    }

    pub fn made(&self, pair: PairId, incarnation: Memory) {
        if let Some(place) = self.place(pair) {
            place.made.store(incarnation.0, Ordering::Release);
        }
    }

    /// Returns what may be shown. Settled numbers belong to the memory that was ordered last, so they are hidden until the
    /// worker has made it.
    pub fn shown(&self, pair: PairId, now_ms: i64) -> ShownState {
        let Some(place) = self.place(pair) else {
            return ShownState::default();
        };
        let Some((showing, incarnation)) = self.now(pair).and_then(|now| now.showing) else {
            return ShownState::default();
        };
        // Acquire pairs with the release in `made`: a scrape that sees this memory also sees the board without the
        // former one.
        let made = place.made.load(Ordering::Acquire);
        let is_obeyed = incarnation.is_some_and(|incarnation| incarnation.0 == made);
        let shown = showing.shown(now_ms);
        ShownState {
            settled: shown.settled.filter(|_| is_obeyed),
            ..shown
        }
    }

    pub fn status(&self, pair: PairId) -> PairStatus {
        self.now(pair)
            .map_or_else(PairStatus::default, |now| now.status.clone())
    }
}
