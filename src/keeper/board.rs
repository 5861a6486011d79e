//! What the keeper lets others see: each pair has a place of its own, so that nobody waits for the thread.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::faults::Faults;
use crate::ledger::PairId;
use crate::state::{Progress, Showing, Standing, Wanted};

/// How a pair stands. Times are those of [`Clock::lasting_ms`](crate::clock::Clock::lasting_ms).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub standing: Standing,
    /// Since when it is so.
    pub since_ms: i64,
    /// How far its partition of the state topic is read.
    pub progress: Progress,
    /// When a new state of it was last found in force.
    pub sealed_ms: Option<i64>,
    /// States of it that were found in force.
    pub n_sealed: u64,
    /// How often a higher claim was read.
    pub n_superseded: u64,
    /// Of keys and values that were handed over to be appended.
    pub n_bytes_written: u64,
    /// When the group gave it last.
    pub assigned_ms: Option<i64>,
    /// What it took since then to find out what is stored of it; none while that is not known.
    pub restored: Option<Restored>,
    /// Why it cannot be counted.
    pub refusal: Option<String>,
}

/// What it took to find out what is stored of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    pub took_ms: i64,
    /// Of keys and values that were read meanwhile.
    pub n_bytes_read: u64,
    /// Of the state that was found and made memory of, if one was.
    pub n_bytes_live: Option<u64>,
}

#[derive(Default)]
struct Place {
    wanted: AtomicU8,
    showing: Mutex<Option<Showing>>,
    status: Mutex<Status>,
}

/// By pair.
pub(super) struct Board {
    places: Vec<Place>,
    pub faults: Faults,
}

impl Board {
    pub fn new(n_pairs: u32) -> Board {
        Board {
            places: (0..n_pairs).map(|_| Place::default()).collect(),
            faults: Faults::default(),
        }
    }

    fn place(&self, pair: PairId) -> Option<&Place> {
        self.places.get(usize::try_from(pair).ok()?)
    }

    pub fn has(&self, pair: PairId) -> bool {
        self.place(pair).is_some()
    }

    pub fn put(&self, pair: PairId, wanted: Wanted, showing: Showing, status: &Status) {
        let Some(place) = self.place(pair) else { return };
        *lock(&place.showing) = Some(showing);
        lock(&place.status).clone_from(status);
        let wanted = match wanted {
            Wanted::No => 0,
            Wanted::WhenDue => 1,
            Wanted::AtOnce => 2,
        };
        place.wanted.store(wanted, Ordering::Relaxed);
    }

    pub fn wants_no_more(&self, pair: PairId) {
        if let Some(place) = self.place(pair) {
            place.wanted.store(0, Ordering::Relaxed);
        }
    }

    pub fn wants(&self, pair: PairId) -> Wanted {
        let place = self.place(pair);
        match place.map_or(0, |place| place.wanted.load(Ordering::Relaxed)) {
            0 => Wanted::No,
            1 => Wanted::WhenDue,
            _ => Wanted::AtOnce,
        }
    }

    pub fn showing(&self, pair: PairId) -> Option<Showing> {
        *lock(&self.place(pair)?.showing)
    }

    pub fn status(&self, pair: PairId) -> Status {
        let place = self.place(pair);
        place.map_or_else(Status::default, |place| lock(&place.status).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
