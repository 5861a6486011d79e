//! Shares of a topic's records, or of clicks, that do not count for one cause. A share above its limit raises a warning.

use std::time::Duration;

use abgauge_core::engine::event::{Reason, Side};
use abgauge_core::engine::float_times::FloatTimes;
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome, SHELVES};

use crate::settings::Limits;
use crate::telemetry::{Excess, Warning};

/// Length of a span. A share covers the current span and those before it, [`N_SPANS`] in all: the last four to five
/// minutes.
const SPAN: Duration = Duration::from_secs(60);
const N_SPANS: usize = 5;
/// Number of records below which no share is reported.
const MIN_RECORDS: u64 = 100;

/// Recent counts of each topic.
#[derive(Debug)]
pub struct LossRates {
    /// Number of the current span.
    span: u64,
    /// Tallies by `Side as usize`, then by the number of the span modulo their count.
    tallies: [[Tally; N_SPANS]; 2],
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    n_records: u64,
    /// Clicks whose result is known.
    n_results: u64,
    /// Counts by `Excess as usize`.
    n: [u64; Excess::ALL.len()],
    /// Lists that share one request id, and clicks that belong to more lists than they count for.
    n_shared_id: u64,
    n_cut: u64,
    /// Copies of lists with other items or arms.
    n_conflicts: u64,
    /// Rows of gathered lists besides their heads.
    n_further_rows: u64,
    times: FloatTimes,
    n_days_late: u64,
}

impl LossRates {
    pub fn new() -> LossRates {
        LossRates {
            span: 0,
            tallies: [[Tally::default(); N_SPANS]; 2],
        }
    }

    /// Adds the counts of a batch to the current span. Results belong to the topic of clicks.
    pub fn count(&mut self, counts: &Counts) {
        let place = self.place();
        for side in Side::BOTH {
            let tally = &mut self.tallies[side as usize][place];
            let n_of = |outcomes: &[Outcome]| {
                outcomes
                    .iter()
                    .map(|outcome| counts.events(side, *outcome))
                    .sum::<u64>()
            };
            tally.n_records += n_of(&Outcome::OF_EVENTS);
            for (of, n) in Excess::ALL.into_iter().zip(&mut tally.n) {
                *n += n_of(outcomes_of(of));
            }
            // A compacted topic has tombstones, which are not a mistake.
            tally.n[Excess::Invalid as usize] -= counts.invalid(side, Reason::Tombstone);
            tally.times.add(counts.float_times(side));
            tally.n_days_late += counts.days_late[side as usize];
        }
        let lists = &mut self.tallies[Side::Served as usize][place];
        lists.n_shared_id += counts.shared_id_lists;
        lists.n_cut += counts.cut_clicks;
        lists.n_conflicts += counts.conflicting_lists;
        lists.n_further_rows += counts.further_rows;
        let clicks = &mut self.tallies[Side::Clicks as usize][place];
        let n_results = ClickResult::ALL.map(|result| counts.result(result));
        clicks.n_results += n_results.iter().sum::<u64>();
        clicks.n[Excess::Unmatched as usize] += counts.result(ClickResult::Unmatched);
    }

    /// Forgets the spans that have passed by `uptime`.
    pub fn advance(&mut self, uptime: Duration) {
        let now = uptime.as_secs() / SPAN.as_secs();
        // After a long pause it is enough to clear each span once.
        let n_passed = now.saturating_sub(self.span).min(N_SPANS as u64);
        for _ in 0..n_passed {
            self.span += 1;
            let place = self.place();
            self.tallies
                .iter_mut()
                .for_each(|spans| spans[place] = Tally::default());
        }
        // After a long pause the loop stops before the current span.
        self.span = self.span.max(now);
    }

    /// Returns the share of these sides together in the last minutes; `None` if there are too few records.
    pub fn of(&self, excess: Excess, sides: &[Side]) -> Option<f64> {
        let spans = sides.iter().flat_map(|side| &self.tallies[*side as usize]);
        let (whole, n) = spans.fold((0, 0), |(whole, n), tally| {
            let of = match excess {
                // Results become known later than records, so they are compared among themselves.
                Excess::Unmatched => tally.n_results,
                _ => tally.n_records,
            };
            (whole + of, n + tally.n[excess as usize])
        });
        (whole >= MIN_RECORDS).then(|| n as f64 / whole as f64)
    }

    /// Returns lists that share one request id ÷ all records of the topic of lists; `None` if there are too few records.
    pub fn of_shared_id(&self) -> Option<f64> {
        self.of_lists(|tally| tally.n_shared_id)
    }

    /// Returns the share of copies with other items or arms than their list; `None` if there are too few records.
    pub fn of_conflicts(&self) -> Option<f64> {
        self.of_lists(|tally| tally.n_conflicts)
    }

    /// Returns the times of events of these sides together.
    pub fn float_times(&self, sides: &[Side]) -> FloatTimes {
        let mut times = FloatTimes::default();
        let spans = sides.iter().flat_map(|side| &self.tallies[*side as usize]);
        spans.for_each(|tally| times.add(tally.times));
        times
    }

    /// Returns whether most records of these sides are more than a day behind the newest, as in an old log that was loaded
    /// in disorder.
    pub fn is_old_log(&self, sides: &[Side]) -> bool {
        let spans = sides.iter().flat_map(|side| &self.tallies[*side as usize]);
        let (n_records, n_days_late) = spans.fold((0, 0), |(n_records, n_days_late), tally| {
            (n_records + tally.n_records, n_days_late + tally.n_days_late)
        });
        2 * n_days_late > n_records
    }

    fn of_lists(&self, n: fn(&Tally) -> u64) -> Option<f64> {
        let spans = &self.tallies[Side::Served as usize];
        let n_records: u64 = spans.iter().map(|tally| tally.n_records).sum();
        let n: u64 = spans.iter().map(n).sum();
        // A gathered list has several records, and only its head counts as a list.
        let n_further: u64 = spans.iter().map(|tally| tally.n_further_rows).sum();
        let n_lists = n_records.saturating_sub(n_further);
        (n_lists >= MIN_RECORDS).then(|| n as f64 / n_lists as f64)
    }

    /// Returns the number of clicks that belong to more lists than they count for.
    pub fn n_cut(&self) -> u64 {
        let spans = &self.tallies[Side::Served as usize];
        spans.iter().map(|tally| tally.n_cut).sum()
    }

    fn place(&self) -> usize {
        (self.span % N_SPANS as u64) as usize
    }
}

/// Returns the outcomes that it counts, or none if it counts results.
fn outcomes_of(excess: Excess) -> &'static [Outcome] {
    match excess {
        Excess::Invalid => &[Outcome::Invalid],
        Excess::Late => &[Outcome::Late, Outcome::AfterSettled, Outcome::LateRow],
        Excess::Future => &[Outcome::Future],
        Excess::Duplicate => &[Outcome::Duplicate],
        Excess::Unmatched => &[],
    }
}

/// Returns the limit of a share.
pub fn limit(excess: Excess, limits: &Limits) -> f64 {
    match excess {
        Excess::Invalid => limits.max_invalid_share,
        Excess::Late => limits.max_late_share,
        Excess::Future => limits.max_future_share,
        Excess::Duplicate => limits.max_duplicate_share,
        Excess::Unmatched => limits.max_unmatched_share,
    }
}

/// Returns the problem and its remedy, for a share of this topic above its limit.
pub fn warning(excess: Excess, topic: &str, share: f64, limit: f64) -> Warning {
    let (share, limit) = (format!("{:.1}%", 100.0 * share), format!("{}%", 100.0 * limit));
    let records = format!("topic `{topic}`: {share} of the records of the last minutes");
    match excess {
        Excess::Invalid => Warning::critical(format!(
            "{records} cannot be read, more than limits.max_invalid_share ({limit}): abgauge_invalid_records_total has the reasons, and `abgauge check --sample` shows the error of each record"
        ))
        .see("AbgaugeTooManyInvalid"),
        Excess::Late => Warning::critical(format!(
            "{records} are too late to count, more than limits.max_late_share ({limit}): fix the clock or the buffer of \
             their producers, or raise join.lateness"
        ))
        .see("AbgaugeLateRecords"),
        Excess::Future => Warning::critical(format!(
            "{records} are further ahead of their timestamp than join.max_future, more than limits.max_future_share \
             ({limit}): fix the clock of their producers"
        ))
        .see("AbgaugeFutureRecords"),
        Excess::Duplicate => Warning::new(format!(
            "{records} are repeated lists, more than limits.max_duplicate_share ({limit}): producers send lists again, or give several lists one request id"
        ))
        .see("AbgaugeDuplicateRecords"),
        Excess::Unmatched => Warning::critical(format!(
            "topic `{topic}`: {share} of the clicks of the last minutes find no list, more than limits.max_unmatched_share \
             ({limit}): check the partitioners of the producers, and that clicks carry the request id of their list"
        ))
        .see("AbgaugeUnmatchedClicks"),
    }
}

/// Returns the problem and its remedy, for a topic most of whose records are days late.
pub fn old_log_warning(topic: &str, share: f64) -> Warning {
    Warning::critical(format!(
        "topic `{topic}`: {:.1}% of the records of the last minutes are too late to count, and most of them are more than a day behind the newest: this is an old log that was loaded out of order. Sort it by time first, or use `abgauge evaluate` on its file",
        100.0 * share
    ))
    .see("AbgaugeLateRecords")
}

/// Returns the problem and its remedy, for too many copies with different contents. Those lists are lost, while plain
/// copies are not.
pub fn conflict_warning(topic: &str, share: f64, limit: f64) -> Warning {
    Warning::new(format!(
        "topic `{topic}`: {:.1}% of the records of the last minutes are copies with other items or arms, more than \
         limits.max_duplicate_share ({}%): {SHELVES}",
        100.0 * share,
        100.0 * limit
    ))
    .see("AbgaugeDuplicateRecords")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(side: Side, n_accepted: u64, n_invalid: u64) -> Counts {
        let mut counts = Counts::default();
        (0..n_accepted).for_each(|_| counts.count(side, Outcome::Accepted));
        counts.count_many(side, Outcome::Invalid, n_invalid);
        counts
    }

    #[test]
    fn reports_shared_ids_and_cut_clicks_until_they_have_left() {
        let mut shares = LossRates::new();
        let mut shared = counts(Side::Served, 99, 0);
        (shared.shared_id_lists, shared.cut_clicks) = (30, 7);
        shares.count(&shared);
        assert_eq!(
            (shares.of_shared_id(), shares.n_cut()),
            (None, 7),
            "too few to tell"
        );
        shares.count(&counts(Side::Served, 1, 0));
        assert_eq!(shares.of_shared_id(), Some(0.3));
        shares.advance(Duration::from_secs(300));
        assert_eq!((shares.of_shared_id(), shares.n_cut()), (None, 0));
    }

    #[test]
    fn shares_cover_the_last_minutes_of_each_topic() {
        let mut shares = LossRates::new();
        let of = |shares: &LossRates, sides: &[Side]| shares.of(Excess::Invalid, sides);
        shares.count(&counts(Side::Served, 90, 9));
        assert_eq!(of(&shares, &[Side::Served]), None, "too few to tell");
        shares.count(&counts(Side::Served, 0, 1));
        assert_eq!(of(&shares, &[Side::Served]), Some(0.1));
        assert_eq!(of(&shares, &[Side::Clicks]), None);
        shares.advance(Duration::from_secs(299));
        shares.count(&counts(Side::Clicks, 300, 0));
        assert_eq!(of(&shares, &[Side::Served]), Some(0.1), "the fifth span");
        assert_eq!(
            of(&shares, &Side::BOTH),
            Some(10.0 / 400.0),
            "where both share a topic"
        );
        shares.advance(Duration::from_secs(300));
        assert_eq!(of(&shares, &[Side::Served]), None, "they have left");
        assert_eq!(of(&shares, &[Side::Clicks]), Some(0.0));
        shares.advance(Duration::from_secs(90_000));
        assert_eq!(of(&shares, &[Side::Clicks]), None);
    }

    #[test]
    fn conflicts_are_a_share_of_lists_not_of_records() {
        let mut counts = Counts::default();
        counts.count_many(Side::Served, Outcome::Accepted, 900);
        counts.count_many(Side::Served, Outcome::Duplicate, 100);
        (counts.further_rows, counts.conflicting_lists) = (800, 20);
        let mut shares = LossRates::new();
        shares.count(&counts);
        assert_eq!(shares.of_conflicts(), Some(0.1));
    }

    #[test]
    fn causes_and_click_results_have_separate_shares() {
        let mut counts = Counts::default();
        for (outcome, n) in [
            (Outcome::Accepted, 60),
            (Outcome::Late, 10),
            (Outcome::AfterSettled, 10),
            (Outcome::Future, 5),
            (Outcome::Duplicate, 15),
        ] {
            (0..n).for_each(|_| counts.count(Side::Clicks, outcome));
        }
        counts.count_results(ClickResult::Matched, 150);
        counts.count_results(ClickResult::Unmatched, 50);
        let mut shares = LossRates::new();
        shares.count(&counts);
        let of = |excess| shares.of(excess, &[Side::Clicks]);
        assert_eq!(of(Excess::Late), Some(0.2));
        assert_eq!(of(Excess::Future), Some(0.05));
        assert_eq!(of(Excess::Duplicate), Some(0.15));
        assert_eq!(of(Excess::Invalid), Some(0.0));
        assert_eq!(of(Excess::Unmatched), Some(0.25));
        assert_eq!(shares.of(Excess::Unmatched, &[Side::Served]), None);
    }
}
