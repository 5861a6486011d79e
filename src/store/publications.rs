//! Current states of all pairs, on their way from the keeper to the global view, and how far the state topic has been read.
//! Only `wait` blocks until another thread acts.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use abgauge_core::journal::{LogEvent, Onlooker, Sealed};
use abgauge_core::ledger::PairId;
use abgauge_core::nouns::number_of;
use tracing::warn;

use super::faults::{Faults, Operation};
use crate::clock::Clock;

/// Handle on the publications; clones share them.
#[derive(Debug, Clone)]
pub struct Publications {
    lease_ms: i64,
    clock: Clock,
    shared: Arc<(Mutex<Published>, Condvar)>,
    /// Problems with asking the log for ends, until it answers, and with reading it.
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Published {
    /// Empty before the number of partitions is known.
    partitions: Vec<PublishedPair>,
    /// Pairs with a state that is not taken yet, oldest first.
    waiting: VecDeque<PairId>,
    is_over: bool,
}

/// One pair. Times are on [`Clock::lasting_ms`].
#[derive(Debug, Default)]
struct PublishedPair {
    /// Time of the question for its last end.
    asked_ms: Option<i64>,
    is_known: bool,
    /// Newest current state, until it is taken. `has_state` remains set.
    state: Option<Sealed>,
    has_state: bool,
    is_shown: bool,
    frontier_ms: Option<i64>,
    /// Reason why the last state is not shown.
    refused: Option<String>,
}

impl PublishedPair {
    /// Returns whether the view must still wait for the pair: for its first end, or for its first state to be shown. So the
    /// view appears complete.
    fn is_unread(&self) -> bool {
        !self.is_known || (self.has_state && !self.is_shown)
    }
}

impl Publications {
    /// Creates publications. The view is withheld if any last end is older than `lease_ms`.
    pub fn new(lease_ms: i64, clock: Clock) -> Publications {
        Publications {
            lease_ms,
            clock,
            shared: Arc::default(),
            faults: Arc::default(),
        }
    }

    /// Returns publications of pairs with these frontiers, Unix ms, all read just now.
    #[cfg(test)]
    pub fn read_now(frontiers_ms: &[Option<i64>], lease_ms: i64, clock: Clock) -> Publications {
        let publications = Publications::new(lease_ms, clock);
        let asked_ms = Some(publications.clock.lasting_ms());
        let pair = |frontier_ms: &Option<i64>| PublishedPair {
            asked_ms,
            is_known: true,
            frontier_ms: *frontier_ms,
            ..PublishedPair::default()
        };
        publications.lock().partitions = frontiers_ms.iter().map(pair).collect();
        publications
    }

    fn lock(&self) -> MutexGuard<'_, Published> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of<T>(&self, pair: PairId, act: impl FnOnce(&mut PublishedPair) -> T) -> Option<T> {
        let place = usize::try_from(pair).ok()?;
        self.lock().partitions.get_mut(place).map(act)
    }
}

/// Reports of the keeper.
impl Publications {
    /// Notes the number of partitions.
    pub(super) fn open(&self, n_partitions: u32) {
        let pairs = (0..n_partitions).map(|_| PublishedPair::default());
        self.lock().partitions = pairs.collect();
    }

    /// Notes an end of a partition, and the state that is newly current there.
    pub(super) fn put(&self, pair: PairId, onlooker: &Onlooker, state: Option<Sealed>) {
        let is_new = state.is_some();
        self.of(pair, |of| {
            (of.asked_ms, of.is_known) = (onlooker.asked_ms(), onlooker.is_known());
            of.has_state |= is_new;
            // It replaces one that was not taken yet.
            of.state = state.or(of.state.take());
        });
        let mut published = self.lock();
        if is_new && !published.waiting.contains(&pair) {
            published.waiting.push_back(pair);
            self.shared.1.notify_all();
        }
    }

    /// Notes that the current state of a pair cannot be shown, and logs the reason once. The last state that was shown stays.
    pub(super) fn refuse(&self, pair: PairId, why: String) {
        let is_new = self.of(pair, |of| of.refused.as_ref() != Some(&why));
        if is_new == Some(true) {
            warn!(
                partition = pair,
                "the global view cannot show the stored state: {why}"
            );
            self.of(pair, |of| of.refused = Some(why));
        }
    }

    /// Notes an event of the log, which may be a fault.
    pub(super) fn note(&self, event: &LogEvent<'_>) {
        self.faults.note(event, self.clock.lasting_ms());
    }
}

/// Calls of the thread that shows the states.
impl Publications {
    /// Returns the next waiting state. A pair's first state comes before others, because a pair that is not shown hides the
    /// whole view. Later states are returned only if `also_later` is set.
    pub fn next(&self, also_later: bool) -> Option<(PairId, Sealed)> {
        let published = &mut *self.lock();
        let Published {
            partitions, waiting, ..
        } = published;
        let is_first = |pair: &PairId| !partitions[*pair as usize].is_shown;
        let place = waiting.iter().position(is_first).or(also_later.then_some(0))?;
        let pair = waiting.remove(place)?;
        let state = partitions[pair as usize].state.take()?;
        Some((pair, state))
    }

    /// Waits until there is a state, or until the [end](Self::end). Returns whether to continue.
    pub(super) fn wait(&self) -> bool {
        let is_idle = |published: &mut Published| published.waiting.is_empty() && !published.is_over;
        let waited = self.shared.1.wait_while(self.lock(), is_idle);
        !waited.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Notes that the last state taken of this pair is shown.
    pub(super) fn shown(&self, pair: PairId, frontier_ms: Option<i64>) {
        self.of(pair, |of| {
            (of.is_shown, of.frontier_ms, of.refused) = (true, frontier_ms, None);
        });
    }

    /// Ends the thread that waits.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.shared.1.notify_all();
    }
}

/// Status of the global view for scrapes.
impl Publications {
    /// Returns whether the view may be shown now.
    ///
    /// # Errors
    /// Reason why it may not.
    pub fn unavailable(&self) -> Result<(), String> {
        // One lock for both values, so that they are consistent.
        let published = self.lock();
        let n_unread = published.partitions.iter().filter(|of| of.is_unread()).count();
        // The age is computed now, so that the view is also withheld if the keeper stalls.
        let behind_ms = self.behind(&published);
        Err(match (published.partitions.len(), n_unread, behind_ms) {
            (0, ..) => "the number of partitions is not known yet".to_owned(),
            (_, 0, Some(ms)) if ms > self.lease_ms => {
                format!("the state was last read to its end {ms} ms ago")
            }
            (_, 0, Some(_)) => return Ok(()),
            (_, n, _) => format!("the state of {} is still being read", number_of(n, "partition")),
        })
    }

    /// Returns the number of partitions; 0 before it is known.
    pub fn n_partitions(&self) -> usize {
        self.lock().partitions.len()
    }

    /// Returns the age of the last end of the partition that is furthest behind, ms. `None` until each partition has reached
    /// one.
    pub fn behind_ms(&self) -> Option<i64> {
        self.behind(&self.lock())
    }

    fn behind(&self, published: &Published) -> Option<i64> {
        // `None` is less than any time, so one partition without an end makes the age unknown.
        let oldest = published.partitions.iter().map(|of| of.asked_ms).min().flatten();
        Some(self.clock.lasting_ms() - oldest?)
    }

    /// Returns the frontier of each pair that has ever caught up, Unix ms.
    pub fn frontiers_ms(&self) -> Vec<(i32, i64)> {
        let published = self.lock();
        let known = (0..).zip(&published.partitions);
        known
            .filter_map(|(partition, of)| Some((partition, of.frontier_ms?)))
            .collect()
    }

    /// Returns why the topic cannot be read, or why a pair's latest state cannot be shown.
    pub fn fault_in_words(&self) -> Option<String> {
        let operations = [Operation::Asking, Operation::Reading];
        if let Some(fault) = operations.iter().find_map(|operation| self.faults.of(*operation)) {
            return Some(format!("the state topic: {fault}"));
        }
        let published = self.lock();
        let mut refused = (0_i32..).zip(&published.partitions);
        let (number, why) = refused.find_map(|(number, of)| Some((number, of.refused.as_ref()?)))?;
        Some(format!(
            "the stored state of partition {number} cannot be shown: {why}"
        ))
    }
}
