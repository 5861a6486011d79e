//! The one home of the system clock. Everything else is handed a [`Clock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall time, for ages and where to start; and steady time, for idle partitions and for the live end.
#[derive(Debug, Clone)]
pub struct Clock {
    started: Instant,
    source: TimeSource,
}

#[derive(Debug, Clone)]
enum TimeSource {
    System,
    /// Epoch ms, as far as the simulator has produced and flushed; never falls.
    Simulated(Arc<AtomicI64>),
}

/// Moves a simulated clock.
#[derive(Debug)]
pub struct Hand(Arc<AtomicI64>);

impl Hand {
    /// Advances to `ms`, or stays where it is if that is earlier.
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

    /// A clock that stands at `ms` until its hand moves it.
    pub fn simulated(ms: i64) -> (Clock, Hand) {
        let time = Arc::new(AtomicI64::new(ms));
        let clock = Clock {
            started: Instant::now(),
            source: TimeSource::Simulated(Arc::clone(&time)),
        };
        (clock, Hand(time))
    }

    /// Epoch milliseconds.
    pub fn now_ms(&self) -> i64 {
        match &self.source {
            TimeSource::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as i64),
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Milliseconds that never go back and do not follow corrections of the wall clock.
    pub fn steady_ms(&self) -> i64 {
        match &self.source {
            TimeSource::System => self.started.elapsed().as_millis() as i64,
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Milliseconds that never go back and count suspension of the machine, for leases.
    pub fn lasting_ms(&self) -> i64 {
        match &self.source {
            TimeSource::System => since_boot_ms(self.started),
            TimeSource::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// Real time since this clock was made, simulated or not: for stalls of the process and for rates of log lines.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(target_os = "linux")]
fn since_boot_ms(_: Instant) -> i64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec * 1_000 + since.tv_nsec / 1_000_000
}

/// Others have no such clock that std knows: there a machine that was suspended may believe its lease for longer.
#[cfg(not(target_os = "linux"))]
fn since_boot_ms(started: Instant) -> i64 {
    started.elapsed().as_millis() as i64
}
