//! Rate limit for log lines caused by clients, one per minute, so that they cannot flood the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time until the next line.
const LOG_AGAIN: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct RateLimit(Mutex<LastLine>);

#[derive(Default)]
struct LastLine {
    last: Option<Instant>,
    n_silent: u64,
}

impl RateLimit {
    /// Returns the number of lines suppressed since the last one if a line is due, else none.
    pub fn n_unlogged(&self) -> Option<u64> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.last.is_some_and(|last| last.elapsed() < LOG_AGAIN) {
            reported.n_silent += 1;
            return None;
        }
        reported.last = Some(Instant::now());
        Some(std::mem::take(&mut reported.n_silent))
    }
}
