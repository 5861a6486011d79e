//! What scrapes ask of the global view: whether it may be shown, how old it is, and how far the pairs have come. Nobody waits for the
//! thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::state::Withheld;

/// All copies are one.
#[derive(Debug, Clone)]
pub struct Handle {
    lease_ms: i64,
    clock: Clock,
    status: Arc<Mutex<Status>>,
}

/// As of a round. Times are those of [`Clock::lasting_ms`].
#[derive(Debug, Clone, Default)]
pub(super) struct Status {
    /// Partitions of which the state is not known yet; none before it is known how many there are.
    pub n_unread: Option<usize>,
    /// When the oldest of the last ends was asked for.
    pub asked_ms: Option<i64>,
    /// By partition, epoch ms; none of a pair that has no state, or was never caught up.
    pub frontiers_ms: Vec<Option<i64>>,
    pub fault: Option<String>,
}

impl Handle {
    pub fn new(lease_ms: i64, clock: Clock) -> Handle {
        Handle {
            lease_ms,
            clock,
            status: Arc::default(),
        }
    }

    /// Of pairs that have come so far, epoch ms, all of them read just now.
    #[cfg(test)]
    pub fn read_now(frontiers_ms: &[Option<i64>], lease_ms: i64, clock: Clock) -> Handle {
        let handle = Handle::new(lease_ms, clock);
        handle.put(Status {
            n_unread: Some(0),
            asked_ms: Some(handle.clock.lasting_ms()),
            frontiers_ms: frontiers_ms.to_vec(),
            fault: None,
        });
        handle
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, status: Status) {
        *self.status() = status;
    }

    /// # Errors
    /// Why the view may not be shown at this moment.
    pub fn withheld(&self) -> Result<(), String> {
        let (n_unread, behind_ms) = {
            let status = self.status();
            (status.n_unread, self.behind(&status))
        };
        let withheld = match (n_unread, behind_ms) {
            (None, _) => return Err("it is not known yet how many partitions there are".to_owned()),
            (Some(0), Some(ms)) if ms > self.lease_ms => Withheld::Behind { ms },
            (Some(0), Some(_)) => return Ok(()),
            (Some(n_partitions), _) => Withheld::Reading { n_partitions },
        };
        Err(withheld.to_string())
    }

    /// How many partitions there are; 0 before that is known.
    pub fn n_partitions(&self) -> usize {
        self.status().frontiers_ms.len()
    }

    /// How old the oldest of the last ends is, ms; none before all were reached once.
    pub fn behind_ms(&self) -> Option<i64> {
        self.behind(&self.status())
    }

    fn behind(&self, status: &Status) -> Option<i64> {
        let asked_ms = status.asked_ms?;
        Some(self.clock.lasting_ms() - asked_ms)
    }

    /// How far each pair has settled that was ever caught up, epoch ms.
    pub fn frontiers_ms(&self) -> Vec<(i32, i64)> {
        let status = self.status();
        let known = (0..).zip(&status.frontiers_ms);
        known
            .filter_map(|(partition, ms)| Some((partition, (*ms)?)))
            .collect()
    }

    /// What keeps the topic from being read, or a pair from being shown as it is.
    pub fn fault(&self) -> Option<String> {
        self.status().fault.clone()
    }
}
