//! Clocks. Only this module reads the system clock; everything else receives a [`Clock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of time: wall time for ages and starting points, steady time for idle partitions and the live end.
#[derive(Debug, Clone)]
pub struct Clock {
    started: Instant,
    source: TimeSource,
}

#[derive(Debug, Clone)]
enum TimeSource {
    System,
    /// Time up to which the simulator has produced and flushed, Unix ms. It never decreases.
    Simulated(Arc<AtomicI64>),
}

/// Control of a simulated clock.
#[derive(Debug)]
pub struct ClockControl(Arc<AtomicI64>);

impl ClockControl {
    /// Advances to `ms`, unless the clock is already past it.
    pub fn advance_to(&self, ms: i64) {
        self.0.fetch_max(ms, Ordering::Release);
    }
}

impl Clock {
    pub fn system() -> Clock {
        Clock {
            started: Instant::now(),
            source: TimeSource::System,
        }
    }

    /// Creates a clock that shows `ms` until its hand moves it.
    pub fn simulated(ms: i64) -> (Clock, ClockControl) {
        let time = Arc::new(AtomicI64::new(ms));
        let clock = Clock {
            started: Instant::now(),
            source: TimeSource::Simulated(Arc::clone(&time)),
        };
        (clock, ClockControl(time))
    }

    /// Returns wall time, Unix ms.
    pub fn now_ms(&self) -> i64 {
        match &self.source {
            // A clock that is set to a time before 1970 counts as 1970.
            TimeSource::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as i64),
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Returns milliseconds that never decrease and ignore corrections of the wall clock.
    pub fn steady_ms(&self) -> i64 {
        match &self.source {
            TimeSource::System => self.started.elapsed().as_millis() as i64,
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Returns milliseconds that never decrease and include suspension of the machine, for leases.
    pub fn lasting_ms(&self) -> i64 {
        match &self.source {
            TimeSource::System => since_boot_ms(self.started),
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Returns the real time since the clock was created, even if it is simulated. For stalls of the process and rates of log
    /// lines.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(target_os = "linux")]
fn since_boot_ms(_: Instant) -> i64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec * 1_000 + since.tv_nsec / 1_000_000
}

/// Approximates time since boot: std offers no clock that counts suspension on these systems. After being suspended, such a
/// machine may trust its lease for too long.
#[cfg(not(target_os = "linux"))]
fn since_boot_ms(started: Instant) -> i64 {
    started.elapsed().as_millis() as i64
}
