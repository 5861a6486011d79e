//! When the next attempt may be made: at once, or some time after a failure.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// Attempts that failed one after the other.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    first: Duration,
    longest: Duration,
    failing: Option<Failing>,
}

#[derive(Debug, Clone)]
struct Failing {
    since: Instant,
    /// After the last one.
    wait: Duration,
    next: Instant,
}

/// 1 s after the first failure, twice as long after each further one, and at most five minutes.
impl Default for Pace {
    fn default() -> Self {
        Pace::new(FIRST, LONGEST)
    }
}

impl Pace {
    pub fn new(first: Duration, longest: Duration) -> Pace {
        Pace {
            first,
            longest,
            failing: None,
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.failing.as_ref().is_none_or(|failing| failing.next <= now)
    }

    /// How long to wait now.
    pub fn failed(&mut self, now: Instant) -> Duration {
        let (since, wait) = match &self.failing {
            None => (now, self.first),
            Some(failing) => (failing.since, (failing.wait * 2).min(self.longest)),
        };
        self.failing = Some(Failing {
            since,
            wait,
            next: now + wait,
        });
        wait
    }

    /// Since the first failure.
    pub fn failing_for(&self, now: Instant) -> Duration {
        let failing = self.failing.as_ref();
        failing.map_or(Duration::ZERO, |failing| {
            now.saturating_duration_since(failing.since)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_a_second_to_five_minutes() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let begin = now;
        let mut waits = Vec::new();
        for _ in 0..11 {
            assert!(pace.is_due(now));
            let wait = pace.failed(now);
            assert!(!pace.is_due(now + wait - Duration::from_millis(1)));
            now += wait;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pace.failing_for(now), now - begin);
    }
}
