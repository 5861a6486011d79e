//! Inbox of states for looks: only the newest of each pair, so that there are never more than pairs.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::PairState;
use crate::ledger::PairId;

/// Hand-over between the thread that follows the current states and the thread that takes looks. Neither waits for the other.
#[derive(Debug, Default)]
pub struct Inbox {
    waiting: Mutex<InboxContents>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InboxContents {
    n_pairs: usize,
    states: BTreeMap<PairId, PairState>,
    is_closed: bool,
    has_reader_left: bool,
}

/// Contents of the inbox.
#[derive(Debug)]
pub struct Taken {
    /// Number of pairs in the inputs. Each of them has a state sooner or later.
    pub n_pairs: usize,
    pub states: BTreeMap<PairId, PairState>,
}

impl Inbox {
    /// Adds a current state. It replaces one of the same pair that was not taken yet.
    pub fn put(&self, n_pairs: usize, pair: PairId, state: PairState) {
        let mut waiting = self.lock();
        waiting.n_pairs = n_pairs;
        waiting.states.insert(pair, state);
        self.changed.notify_all();
    }

    /// Closes the inbox: no more states will come.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Takes everything as soon as there is something. Empty after `wait` without any state, and none once closed.
    pub fn take(&self, wait: Duration) -> Option<Taken> {
        let is_idle = |waiting: &mut InboxContents| waiting.states.is_empty() && !waiting.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), wait, is_idle);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waiting.is_closed).then(|| Taken {
            n_pairs: waiting.n_pairs,
            states: std::mem::take(&mut waiting.states),
        })
    }

    /// Marks the reader as gone.
    pub fn leave(&self) {
        self.lock().has_reader_left = true;
    }

    pub fn has_reader_left(&self) -> bool {
        self.lock().has_reader_left
    }

    /// Ignores poisoning: values are only put in and taken out, so a panic cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, InboxContents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(incarnation_id: u64) -> PairState {
        PairState {
            incarnation_id,
            holds: true,
            until_ms: None,
            ledger: BTreeMap::new(),
            looks: None,
        }
    }

    #[test]
    fn the_newest_state_of_each_pair_waits_and_is_taken_once() {
        let inbox = Inbox::default();
        for (pair, incarnation_id) in [(0, 1), (1, 2), (0, 3)] {
            inbox.put(2, pair, state(incarnation_id));
        }
        let taken = inbox.take(Duration::ZERO).expect("it is open");
        let lives = taken
            .states
            .iter()
            .map(|(pair, state)| (*pair, state.incarnation_id));
        assert_eq!(lives.collect::<Vec<_>>(), [(0, 3), (1, 2)]);
        assert_eq!(taken.n_pairs, 2);
        let taken = inbox.take(Duration::ZERO).expect("it is open");
        assert!(taken.states.is_empty());
    }

    #[test]
    fn closing_wakes_a_waiting_reader() {
        let inbox = Inbox::default();
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| inbox.take(Duration::MAX).is_none());
            inbox.close();
            assert!(waiting.join().expect("it does not panic"));
        });
    }
}
