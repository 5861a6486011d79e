//! Rule for the offset from which a new pair is read, and the time from which it counts.

use crate::settings::{self, Config};
use crate::stream::LogStart;

/// Rule by which a start without stored state rebuilds its windows from the log.
#[derive(Debug, Clone)]
pub struct StartRule {
    start: settings::Start,
    /// Time from the first record that is read to now: the longest window, one of its cells, and the time that joining may
    /// need.
    reach_ms: i64,
    /// Time from the time sought to the first one that counts. A record before the time sought may hold an event up to
    /// `max_future` later, and that event may be a click on a list up to `click_skew` later still.
    margin_ms: i64,
    /// Cell of the longest window. Counting begins at a cell boundary.
    cell_ms: i64,
}

impl StartRule {
    pub fn new(config: &Config) -> StartRule {
        let join = &config.join;
        let longest = config.windows.iter().max_by_key(|window| window.span_ms);
        // Without windows, counting begins at a slot boundary.
        let (span_ms, cell_ms) =
            longest.map_or((0, join.slot_ms), |window| (window.span_ms, window.cell_ms()));
        let margin_ms = join.max_future_ms + join.click_skew_ms;
        StartRule {
            start: config.kafka.start,
            reach_ms: span_ms + cell_ms + join.settle_after_ms() + margin_ms,
            margin_ms,
            cell_ms,
        }
    }

    /// Returns how far back a rebuilding start reads, ms.
    pub fn reach_ms(&self) -> i64 {
        self.reach_ms
    }

    /// Returns the time to seek for a start now. `None` means the beginning of the log.
    pub fn seek_ms(&self, now_ms: i64) -> Option<i64> {
        (self.start == settings::Start::Rebuild).then_some(now_ms - self.reach_ms)
    }

    /// Returns the offset to read a log from.
    pub fn offset(&self, log: &LogStart, seek_ms: Option<i64>) -> i64 {
        match (seek_ms, log.by_time) {
            (Some(_), Some(offset)) => offset,
            _ => log.low,
        }
    }

    /// Returns the time from which a pair counts, given its topics' logs: earlier events were not read completely. `None`
    /// if everything counts.
    pub fn begin_ms<'a>(
        &self,
        logs: impl IntoIterator<Item = &'a LogStart>,
        seek_ms: Option<i64>,
        now_ms: i64,
    ) -> Option<i64> {
        let seek_ms = seek_ms?;
        let known_from = |log: &LogStart| {
            if log.low == log.high {
                return None; // An empty partition takes no part.
            }
            if log.by_time != Some(log.low) {
                return Some(seek_ms);
            }
            // The first record is younger than the time sought: nothing precedes it, unless retention took it.
            (log.low > 0).then(|| log.first_record_ms.unwrap_or(now_ms).min(now_ms))
        };
        let latest_ms = logs.into_iter().filter_map(known_from).max()?;
        // Rounds up to a cell boundary, so that no cell counts in part.
        let cells = (latest_ms + self.margin_ms + self.cell_ms - 1).div_euclid(self.cell_ms);
        Some(cells * self.cell_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StartRule = StartRule {
        start: settings::Start::Rebuild,
        reach_ms: 10_000,
        margin_ms: 30,
        cell_ms: 1000,
    };

    fn log(low: i64, high: i64, by_time: Option<i64>, first_record_ms: Option<i64>) -> LogStart {
        LogStart {
            low,
            high,
            by_time,
            first_record_ms,
        }
    }

    /// Checks a start at 100,000, which seeks 90,000: the offset to read each log from, and the time from which the pair
    /// counts.
    fn check(logs: [LogStart; 2], offsets: [i64; 2], begin_ms: Option<i64>) {
        let seek_ms = RULE.seek_ms(100_000);
        assert_eq!(seek_ms, Some(90_000));
        assert_eq!(logs.map(|log| RULE.offset(&log, seek_ms)), offsets);
        assert_eq!(RULE.begin_ms(&logs, seek_ms, 100_000), begin_ms);
    }

    #[test]
    fn a_young_log_counts_from_its_first_record() {
        check([log(0, 9, Some(0), None), log(0, 5, Some(0), None)], [0, 0], None);
    }

    #[test]
    fn an_old_log_counts_from_the_first_whole_cell_after_the_seek() {
        check(
            [log(0, 9, Some(4), None), log(0, 5, Some(3), None)],
            [4, 3],
            Some(91_000),
        );
        check(
            [log(0, 9, Some(4), None), log(0, 5, Some(0), None)],
            [4, 0],
            Some(91_000),
        );
        check(
            [log(0, 9, Some(9), None), log(0, 5, Some(0), None)],
            [9, 0],
            Some(91_000),
        );
    }

    #[test]
    fn after_retention_the_first_remaining_record_decides() {
        check(
            [log(7, 9, Some(7), Some(95_970)), log(0, 5, Some(0), None)],
            [7, 0],
            Some(96_000),
        );
        check(
            [log(7, 9, Some(7), Some(95_971)), log(0, 5, Some(0), None)],
            [7, 0],
            Some(97_000),
        );
        let ahead = log(7, 9, Some(7), Some(i64::MAX));
        check([ahead, log(0, 5, Some(0), None)], [7, 0], Some(101_000));
    }

    #[test]
    fn an_empty_partition_is_ignored() {
        check([log(0, 9, Some(0), None), log(3, 3, None, None)], [0, 3], None);
    }

    #[test]
    fn does_not_skip_records_written_between_the_questions() {
        // The partition was empty when the time was asked for, and had two records when the end was.
        check([log(0, 2, Some(0), None), log(0, 5, Some(0), None)], [0, 0], None);
        // All records were older when the time was asked for.
        check(
            [log(0, 9, Some(7), None), log(0, 5, Some(0), None)],
            [7, 0],
            Some(91_000),
        );
    }

    #[test]
    fn reading_the_whole_log_starts_at_its_first_record() {
        let rule = StartRule {
            start: settings::Start::Earliest,
            ..RULE
        };
        assert_eq!(rule.seek_ms(100_000), None);
        assert_eq!(rule.offset(&log(7, 9, None, None), None), 7);
        assert_eq!(rule.begin_ms(&[log(7, 9, None, None)], None, 100_000), None);
    }
}
