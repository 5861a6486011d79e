//! Bounded waiting: the only place of the tests that sleeps.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine to start a broker; a test that waits this long has failed.
pub const LONG: Duration = Duration::from_secs(90);
/// How long a broker that runs may take over one request.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What `probe` finds first.
///
/// # Panics
/// When it has found nothing by the deadline: "waited 90s for WHAT".
#[track_caller]
pub fn until<T>(what: &str, deadline: Duration, probe: impl FnMut() -> Option<T>) -> T {
    match try_until(deadline, probe) {
        Some(found) => found,
        None => panic!("waited {deadline:?} for {what}"),
    }
}

/// What `probe` finds first, or `None` at the deadline. Probes at once, then after 10 ms, later every 50 ms.
pub fn try_until<T>(deadline: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    let mut step = Duration::from_millis(10);
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        sleep(step);
        step = (step * 2).min(Duration::from_millis(50));
    }
}
