//! Status of the global view for scrapes: whether it may be shown, its age, and the progress of each pair. No call waits
//! for the thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abgauge_core::nouns::number_of;

use crate::clock::Clock;

/// Handle on the status; clones share it.
#[derive(Debug, Clone)]
pub struct GlobalHandle {
    lease_ms: i64,
    clock: Clock,
    status: Arc<Mutex<ViewStatus>>,
}

/// Status as of a round. Times are on [`Clock::lasting_ms`].
#[derive(Debug, Clone, Default)]
pub(super) struct ViewStatus {
    /// Number of partitions whose state is not known yet. `None` before the number of partitions is known.
    pub n_unread: Option<usize>,
    /// Time at which the oldest of the last ends was asked for.
    pub asked_ms: Option<i64>,
    /// Frontiers by partition, Unix ms. `None` for a pair that has no state or never caught up.
    pub frontiers_ms: Vec<Option<i64>>,
    pub fault: Option<String>,
}

impl GlobalHandle {
    pub fn new(lease_ms: i64, clock: Clock) -> GlobalHandle {
        GlobalHandle {
            lease_ms,
            clock,
            status: Arc::default(),
        }
    }

    /// Returns a handle on pairs with these frontiers, Unix ms, all read just now.
    #[cfg(test)]
    pub fn read_now(frontiers_ms: &[Option<i64>], lease_ms: i64, clock: Clock) -> GlobalHandle {
        let handle = GlobalHandle::new(lease_ms, clock);
        handle.put(ViewStatus {
            n_unread: Some(0),
            asked_ms: Some(handle.clock.lasting_ms()),
            frontiers_ms: frontiers_ms.to_vec(),
            fault: None,
        });
        handle
    }

    fn status(&self) -> MutexGuard<'_, ViewStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, status: ViewStatus) {
        *self.status() = status;
    }

    /// Returns whether the view may be shown now.
    ///
    /// # Errors
    /// Reason why it may not.
    pub fn unavailable(&self) -> Result<(), String> {
        // One lock for both, so that they are from the same round.
        let (n_unread, behind_ms) = {
            let status = self.status();
            (status.n_unread, self.behind(&status))
        };
        Err(match (n_unread, behind_ms) {
            (None, _) => "the number of partitions is not known yet".to_owned(),
            // The age is computed now, so that the view is also withheld if its thread stalls.
            (Some(0), Some(ms)) if ms > self.lease_ms => {
                format!("the state was last read to its end {ms} ms ago")
            }
            (Some(0), Some(_)) => return Ok(()),
            (Some(n), _) => format!("the state of {} is still being read", number_of(n, "partition")),
        })
    }

    /// Returns the number of partitions; 0 before it is known.
    pub fn n_partitions(&self) -> usize {
        self.status().frontiers_ms.len()
    }

    /// Returns the age of the oldest of the last ends, ms. `None` before all were reached once.
    pub fn behind_ms(&self) -> Option<i64> {
        self.behind(&self.status())
    }

    fn behind(&self, status: &ViewStatus) -> Option<i64> {
        let asked_ms = status.asked_ms?;
        Some(self.clock.lasting_ms() - asked_ms)
    }

    /// Returns the frontier of each pair that was ever caught up, Unix ms.
    pub fn frontiers_ms(&self) -> Vec<(i32, i64)> {
        let status = self.status();
        let known = (0..).zip(&status.frontiers_ms);
        known
            .filter_map(|(partition, ms)| Some((partition, (*ms)?)))
            .collect()
    }

    /// Returns why the topic cannot be read, or why a pair's latest state cannot be shown.
    pub fn fault(&self) -> Option<String> {
        self.status().fault.clone()
    }
}
