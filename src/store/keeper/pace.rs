//! Bound on the bytes that seals write per second.

/// Rate limit for writes: each write occupies the time that it takes at the bound, and no state is due until that is over.
#[derive(Debug)]
pub struct WritePace {
    max_bytes_per_second: u64,
    /// Time at which earlier writes stop occupying the bound, µs.
    busy_until_us: i64,
}

impl WritePace {
    pub fn new(max_bytes_per_second: u64) -> WritePace {
        WritePace {
            max_bytes_per_second: max_bytes_per_second.max(1),
            busy_until_us: i64::MIN,
        }
    }

    pub fn wrote(&mut self, n_bytes: u64, now_ms: i64) {
        // Microseconds, so that small writes do not round to zero.
        let takes_us = u128::from(n_bytes) * 1_000_000 / u128::from(self.max_bytes_per_second);
        let takes_us = i64::try_from(takes_us).unwrap_or(i64::MAX);
        // Idle time is not saved for a later burst.
        let from_us = self.busy_until_us.max(now_ms.saturating_mul(1_000));
        self.busy_until_us = from_us.saturating_add(takes_us);
    }

    pub fn is_free(&self, now_ms: i64) -> bool {
        now_ms.saturating_mul(1_000) >= self.busy_until_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes written in this many seconds by a writer that writes `bytes` whenever it is allowed to, at most
    /// once per interval.
    fn written(bytes: u64, interval_ms: i64, seconds: i64) -> u64 {
        let mut pace = WritePace::new(1_000);
        let (mut n_bytes, mut due_ms) = (0, 0);
        for now_ms in 0..seconds * 1_000 {
            if now_ms >= due_ms && pace.is_free(now_ms) {
                pace.wrote(bytes, now_ms);
                n_bytes += bytes;
                due_ms = now_ms + interval_ms;
            }
        }
        n_bytes
    }

    #[test]
    fn a_small_state_is_written_at_each_interval() {
        assert_eq!(written(500, 1_000, 10), 10 * 500);
    }

    #[test]
    fn a_large_state_is_written_as_fast_as_the_bound_allows() {
        assert_eq!(written(2_500, 1_000, 10), 4 * 2_500);
        assert_eq!(written(2_500, 1_000, 1_000), 400 * 2_500);
    }

    #[test]
    fn writes_of_several_pairs_add_up() {
        let mut pace = WritePace::new(1_000);
        (0..3).for_each(|_| pace.wrote(1_000, 5_000));
        assert!(!pace.is_free(7_999));
        assert!(pace.is_free(8_000));
    }
}
