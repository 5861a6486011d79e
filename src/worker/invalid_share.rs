//! The share of a topic's records that cannot be read: above its limit it is a state that is told, not a trickle.

use std::time::Duration;

use crate::engine::event::Side;
use crate::engine::outcome::{Counts, Outcome};

/// A share is of the span that has begun and of those before it, [`N_SPANS`] in all: the last four to five minutes.
const SPAN: Duration = Duration::from_secs(60);
const N_SPANS: usize = 5;
/// Of fewer records no share is told.
const MIN_RECORDS: u64 = 100;

/// What was read lately of each topic.
#[derive(Debug)]
pub struct InvalidShare {
    /// Number of the span that has begun.
    span: u64,
    /// By `Side as usize`, then by the number of the span modulo their count.
    tallies: [[Tally; N_SPANS]; 2],
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    n_records: u64,
    n_invalid: u64,
}

impl InvalidShare {
    pub fn new() -> InvalidShare {
        InvalidShare {
            span: 0,
            tallies: [[Tally::default(); N_SPANS]; 2],
        }
    }

    /// Adds what a batch counted to the span that has begun.
    pub fn count(&mut self, counts: &Counts) {
        let place = self.place();
        for side in Side::BOTH {
            let tally = &mut self.tallies[side as usize][place];
            tally.n_records += counts.records(side);
            tally.n_invalid += counts.outcome(side, Outcome::Invalid);
        }
    }

    /// Forgets the spans that have passed by `uptime`.
    pub fn advance(&mut self, uptime: Duration) {
        let now = uptime.as_secs() / SPAN.as_secs();
        let n_passed = now.saturating_sub(self.span).min(N_SPANS as u64);
        for _ in 0..n_passed {
            self.span += 1;
            let place = self.place();
            self.tallies
                .iter_mut()
                .for_each(|spans| spans[place] = Tally::default());
        }
        self.span = self.span.max(now);
    }

    /// Unreadable records ÷ all records, of these sides together; none of too few records.
    pub fn of(&self, sides: &[Side]) -> Option<f64> {
        let spans = sides.iter().flat_map(|side| &self.tallies[*side as usize]);
        let (n_records, n_invalid) = spans.fold((0, 0), |(records, invalid), tally| {
            (records + tally.n_records, invalid + tally.n_invalid)
        });
        (n_records >= MIN_RECORDS).then(|| n_invalid as f64 / n_records as f64)
    }

    fn place(&self) -> usize {
        (self.span % N_SPANS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::Reason;

    fn counts(side: Side, n_accepted: u64, n_invalid: u64) -> Counts {
        let mut counts = Counts::default();
        (0..n_accepted).for_each(|_| counts.count(side, Outcome::Accepted));
        (0..n_invalid).for_each(|_| counts.count_invalid(side, Reason::NotJson));
        counts
    }

    #[test]
    fn is_the_share_of_the_last_minutes_of_each_topic() {
        let mut share = InvalidShare::new();
        share.count(&counts(Side::Served, 90, 9));
        assert_eq!(share.of(&[Side::Served]), None, "too few to tell");
        share.count(&counts(Side::Served, 0, 1));
        assert_eq!(share.of(&[Side::Served]), Some(0.1));
        assert_eq!(share.of(&[Side::Clicks]), None);
        share.advance(Duration::from_secs(299));
        share.count(&counts(Side::Clicks, 300, 0));
        assert_eq!(share.of(&[Side::Served]), Some(0.1), "the fifth span");
        assert_eq!(
            share.of(&Side::BOTH),
            Some(10.0 / 400.0),
            "where both share a topic"
        );
        share.advance(Duration::from_secs(300));
        assert_eq!(share.of(&[Side::Served]), None, "they have left");
        assert_eq!(share.of(&[Side::Clicks]), Some(0.0));
        share.advance(Duration::from_secs(90_000));
        assert_eq!(share.of(&[Side::Clicks]), None);
    }
}
