//! Loan of a shared body to its readers. If others need its memory, readers that have stalled lose it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time without a byte read after which a body may be called back.
pub(super) const STALLED: Duration = Duration::from_millis(500);
/// Time after which a body may be called back, however steadily it is read.
pub(super) const LONGEST: Duration = Duration::from_secs(3);

/// State of a body and its readers, shared by server and renderer.
#[derive(Default)]
pub(super) struct SharedBody {
    now: Mutex<LoanState>,
    called_back: CancellationToken,
}

#[derive(Default)]
struct LoanState {
    /// Absent until it has a reader.
    since: Option<Instant>,
    last_read: Option<Instant>,
    /// Number of tasks that prepare the body for readers.
    n_preparing: usize,
}

impl SharedBody {
    /// Notes that a task prepares the body for readers. It is not called back meanwhile.
    pub fn prepares(&self) {
        self.now().n_preparing += 1;
    }

    pub fn prepared(&self) {
        self.now().n_preparing -= 1;
    }

    /// Notes a new reader.
    pub fn lend(&self) {
        let mut now = self.now();
        let begin = Instant::now();
        now.since.get_or_insert(begin);
        now.last_read = Some(begin);
    }

    /// Notes that a reader has taken some bytes.
    pub fn read(&self) {
        self.now().last_read = Some(Instant::now());
    }

    /// Returns the time from which the body may be called back, or none if it has no reader or was called back already.
    pub fn due(&self) -> Option<Instant> {
        let now = self.now();
        if now.n_preparing > 0 || self.called_back.is_cancelled() {
            return None;
        }
        // Progress of any reader counts for all, so a stalled one can hide behind another, but only up to the longest
        // time.
        Some((now.last_read? + STALLED).min(now.since? + LONGEST))
    }

    /// Cuts off all readers, because others need the memory more.
    pub fn call_back(&self) {
        self.called_back.cancel();
    }

    /// Waits until the body is called back.
    pub async fn called_back(&self) {
        self.called_back.cancelled().await;
    }

    fn now(&self) -> MutexGuard<'_, LoanState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
