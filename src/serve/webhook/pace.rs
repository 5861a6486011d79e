//! Exponential backoff: the time of the next attempt after failures.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// Backoff state of consecutive failures.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    failing: Option<Failing>,
}

#[derive(Debug, Clone)]
struct Failing {
    since: Instant,
    /// Delay after the last failure.
    wait: Duration,
    next: Instant,
}

/// Delay of 1 s after the first failure, doubled after each further one, up to 5 minutes.
impl Default for Backoff {
    fn default() -> Self {
        Backoff::new(FIRST, LONGEST)
    }
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff {
            first,
            longest,
            failing: None,
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.failing.as_ref().is_none_or(|failing| failing.next <= now)
    }

    /// Records a failure and returns the delay until the next attempt.
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

    /// Returns the time since the first failure after the last success.
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
    fn pauses_double_from_one_second_to_five_minutes() {
        let mut pace = Backoff::default();
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
