//! Bounded waiting: the only place in the tests that sleeps.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time in which even a loaded machine starts a broker. A test that waits this long has failed.
pub const LONG: Duration = Duration::from_secs(90);
/// Time that a running broker may take for one request.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Polls `probe` and returns its first value.
///
/// # Panics
/// If there is no value by the deadline: "waited 90s for WHAT".
#[track_caller]
pub fn until<T>(what: &str, deadline: Duration, probe: impl FnMut() -> Option<T>) -> T {
    match try_until(deadline, probe) {
        Some(found) => found,
        None => panic!("waited {deadline:?} for {what}"),
    }
}

/// Polls `probe` and returns its first value, or `None` at the deadline. Probes at once, then after 10 ms, later every 50 ms.
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
