//! Times of lists: at a steady rate, or at one that follows the hour of the day.

use super::day;
use super::random::Random;

const NS_PER_MS: u64 = 1_000_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// Generator of list times. Gaps between lists are uniform from zero to twice the mean.
#[derive(Debug)]
pub struct TrafficPace {
    /// Unix ms.
    next_ms: i64,
    start_ms: i64,
    /// Time since `start_ms` at a steady rate.
    even_ns: u64,
    mean_gap_ns: u64,
    /// Even time and event time of the start since its midnight (ns), if the rate follows the hour.
    bent: Option<(u64, u64)>,
}

impl TrafficPace {
    /// Creates a pace whose first list is at `start_ms`. With `diurnal`, the rate is the daily mean.
    pub fn new(lists_per_second: f64, start_ms: i64, diurnal: bool) -> TrafficPace {
        let since_midnight_ns = start_ms.rem_euclid(DAY_MS) as u64 * NS_PER_MS;
        TrafficPace {
            next_ms: start_ms,
            start_ms,
            even_ns: 0,
            mean_gap_ns: (1e9 / lists_per_second).max(1.0) as u64,
            bent: diurnal.then(|| (day::straighten(since_midnight_ns), since_midnight_ns)),
        }
    }

    /// Returns the time of the next list, Unix ms.
    pub fn next_ms(&self) -> i64 {
        self.next_ms
    }

    /// Draws the time of the following list.
    pub fn advance(&mut self, random: &mut Random) {
        // Uniform gaps need only integers, so they are the same on every machine.
        self.even_ns += 1 + random.below(2 * self.mean_gap_ns);
        let event_ns = match self.bent {
            None => self.even_ns,
            Some((even_ns, event_ns)) => day::bend(even_ns + self.even_ns).saturating_sub(event_ns),
        };
        self.next_ms = self.start_ms + (event_ns / NS_PER_MS) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    /// Six in the evening.
    const START_MS: i64 = 1_763_596_800_000 + 18 * HOUR_MS;

    /// Lists by hour of the day, over two days at one list per second.
    fn hours(diurnal: bool) -> [f64; 24] {
        let mut pace = TrafficPace::new(1.0, START_MS, diurnal);
        let mut random = Random::new(1);
        let mut hours = [0.0; 24];
        let mut last_ms = START_MS;
        while pace.next_ms() < START_MS + 48 * HOUR_MS {
            assert!(pace.next_ms() >= last_ms);
            last_ms = pace.next_ms();
            hours[(last_ms / HOUR_MS % 24) as usize] += 1.0;
            pace.advance(&mut random);
        }
        hours
    }

    /// Checks within four standard errors. With uniform gaps, counts have a third of the variance of a Poisson process.
    #[track_caller]
    fn check(n_lists: f64, expected: f64) {
        let error = (expected / 3.0).sqrt();
        assert!(
            (n_lists - expected).abs() < 4.0 * error,
            "{n_lists}, not {expected}"
        );
    }

    #[test]
    fn a_steady_rate_is_the_same_in_every_hour() {
        for n_lists in hours(false) {
            check(n_lists, 7200.0);
        }
    }

    #[test]
    fn an_hourly_rate_has_the_requested_mean() {
        let hours = hours(true);
        for (hour, part) in [(3, 0.24), (4, 0.22), (12, 1.28), (17, 1.32), (20, 1.76)] {
            check(hours[hour], 7200.0 * part);
        }
        check(hours.iter().sum(), 24.0 * 7200.0);
    }
}
