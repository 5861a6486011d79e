//! A body is on loan to its readers. If others need its memory, readers that have stalled lose it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Without a byte read for this long, a body may be called back.
pub(super) const STALLED: Duration = Duration::from_millis(500);
/// The same, however steadily it is read.
pub(super) const LONGEST: Duration = Duration::from_secs(3);

/// The state of a body and its readers, shared by server and renderer.
#[derive(Default)]
pub(super) struct Loan {
    now: Mutex<LoanState>,
    called_back: CancellationToken,
}

#[derive(Default)]
struct LoanState {
    /// None: it has no reader yet.
    since: Option<Instant>,
    last_read: Option<Instant>,
    /// How many tasks prepare it for readers.
    n_preparing: usize,
}

impl Loan {
    /// A task prepares the body for readers; it is not called back meanwhile.
    pub fn prepares(&self) {
        self.now().n_preparing += 1;
    }

    pub fn prepared(&self) {
        self.now().n_preparing -= 1;
    }

    /// A reader has it from now on.
    pub fn lend(&self) {
        let mut now = self.now();
        let begin = Instant::now();
        now.since.get_or_insert(begin);
        now.last_read = Some(begin);
    }

    /// A reader has taken some of it.
    pub fn read(&self) {
        self.now().last_read = Some(Instant::now());
    }

    /// When it may be called back; none if it has no reader, or was called back.
    pub fn due(&self) -> Option<Instant> {
        let now = self.now();
        if now.n_preparing > 0 || self.called_back.is_cancelled() {
            return None;
        }
        Some((now.last_read? + STALLED).min(now.since? + LONGEST))
    }

    /// Others need it more: its readers are cut.
    pub fn call_back(&self) {
        self.called_back.cancel();
    }

    /// Waits until it is called back.
    pub async fn called_back(&self) {
        self.called_back.cancelled().await;
    }

    fn now(&self) -> MutexGuard<'_, LoanState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
