//! Schedule of a worker's hand-overs: immediately if it is idle, else rarely enough to cost almost nothing. A hand-over
//! would have to wait while a scrape copies the board, so it is then put off for up to a second.

use std::time::Duration;

/// Interval between two hand-overs of a busy worker.
const USUAL: Duration = Duration::from_millis(50);
/// Longest time between two hand-overs of changes.
const LONGEST: Duration = Duration::from_secs(1);
/// Divisor: a hand-over may take 1/n of the time. With ten thousand arms it takes some milliseconds.
const SHARE: u32 = 20;

#[derive(Debug, Default)]
pub struct ShardPace {
    last: Duration,
    /// Duration of the last round with a hand-over.
    took: Duration,
    /// Set if this round hands over.
    is_now: bool,
}

impl ShardPace {
    /// Returns whether this round hands over. `busy`: records arrive. `copied`: a scrape is copying the board, and a
    /// hand-over would wait for it.
    pub fn hands_over(&mut self, busy: bool, copied: bool, uptime: Duration) -> bool {
        self.is_now = self.is_due(busy, copied, uptime);
        if self.is_now {
            self.last = uptime;
        }
        self.is_now
    }

    fn is_due(&self, busy: bool, copied: bool, uptime: Duration) -> bool {
        let rest = (self.took * SHARE).min(LONGEST);
        let wait = match (copied, busy) {
            (true, _) => LONGEST,
            (false, true) => rest.max(USUAL),
            (false, false) => rest,
        };
        uptime.saturating_sub(self.last) >= wait
    }

    /// Notes how long this round took.
    pub fn took(&mut self, time: Duration) {
        if self.is_now {
            self.took = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks how long a worker waits after a hand-over that took `took_ms`: `busy_ms` or `quiet_ms`.
    #[track_caller]
    fn check(took_ms: u64, busy_ms: u64, quiet_ms: u64) {
        let begin = Duration::from_secs(100);
        let mut pace = ShardPace::default();
        assert!(pace.hands_over(true, false, begin), "the first one is due");
        pace.took(Duration::from_millis(took_ms));
        for (busy, copied, ms) in [
            (true, false, busy_ms),
            (false, false, quiet_ms),
            (true, true, 1000),
            (false, true, 1000),
        ] {
            let due = |after_ms| pace.is_due(busy, copied, begin + Duration::from_millis(after_ms));
            assert!(due(ms), "busy: {busy}, copied: {copied}");
            assert!(ms == 0 || !due(ms - 1), "busy: {busy}, copied: {copied}");
        }
    }

    #[test]
    fn hand_overs_take_at_most_a_twentieth_of_the_time_and_come_each_second() {
        check(0, 50, 0);
        check(2, 50, 40);
        check(4, 80, 80);
        check(49, 980, 980);
        check(51, 1000, 1000);
        check(5000, 1000, 1000);
    }
}
