//! Interface to the partitions of a state topic for a driver of owners: follow them, ask for their ends, append.

use super::content::SharedBytes;
use super::key::RecordKey;
use super::view::EndQuestion;

/// All partitions of a state topic. Only [`poll`](Log::poll) blocks, and for `wait_ms` at most.
pub trait Log {
    /// Reads a partition from its first record on, from now on.
    fn follow(&mut self, partition: i32);

    /// Notes that an owner depends on this partition, so that other partitions must not delay the answers to its questions.
    fn prefer(&mut self, partition: i32) {
        let _ = partition;
    }

    /// Asks where a partition ends: now, not earlier. [`PartitionEvent::End`] or [`PartitionEvent::StartOver`] is the answer, if
    /// there is one; a later question replaces an earlier one.
    fn ask(&mut self, partition: i32, question: EndQuestion);

    /// Appends; without a value, a tombstone. It may land late, twice or never. Only an acknowledged value is
    /// answered.
    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>);

    /// Hands over all events, or waits up to `wait_ms` if there are none. Within a partition, records come in order, and an end
    /// comes after the records below it.
    fn poll(&mut self, wait_ms: u64, take: &mut dyn FnMut(LogEvent<'_>));

    /// Returns how far a partition has been read.
    fn progress(&self, partition: i32) -> LogProgress;
}

/// Event of the state topic.
#[derive(Debug)]
pub enum LogEvent<'a> {
    Partition(i32, PartitionEvent<'a>),
    /// Problem with asking the log for an end, as text for the operator. The log keeps trying.
    Fault {
        message: String,
        /// False if no owner depends on the affected partitions.
        of_owners: bool,
    },
    /// Problem with reading or writing; `None` when it is over. It may be reported only once while it lasts.
    Hindered(BlockedOperation, Option<Hindrance>),
}

/// Event of one partition of the state topic.
#[derive(Debug, PartialEq, Eq)]
pub enum PartitionEvent<'a> {
    /// The next record; a tombstone has no value.
    Record {
        offset: i64,
        key: &'a [u8],
        value: Option<&'a [u8]>,
        /// The time that the log has for it, Unix ms, if it has one. No rule reads it.
        written_ms: Option<i64>,
    },
    /// Everything below the end that this question asked for has been read.
    End(EndQuestion),
    /// The question was answered, but for a long time nothing came although records are missing below the end. This does not
    /// count as an end, but allows a claim.
    Quiet(EndQuestion),
    /// The log now begins at this offset, later than before: retention or an operator has deleted the earlier records.
    Begins(i64),
    /// The end lies before the read position, or the next record is gone. All records come again from the first one on.
    StartOver,
    /// The append of this key and value is acknowledged by all replicas in sync. A failed append counts as unanswered.
    Acknowledged(RecordKey),
}

/// Problem with reading or writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    /// Text for the operator.
    pub message: String,
    /// A permission is missing, so the problem lasts until an operator grants it.
    pub is_forbidden: bool,
}

/// Operation that is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedOperation {
    Reading,
    Writing,
}

/// Read progress in one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// Next offset to be read.
    pub position: i64,
    /// End of the partition when last asked for.
    pub end: Option<i64>,
    /// Bytes of the keys and values read.
    pub n_bytes: u64,
}

/// Silence after which missing records are given up: brokers before 4.0 may have cleaned away the last record (KAFKA-17076).
const QUIET_MS: i64 = 10_000;

/// Read position in a partition and the end that was asked for, shared by all implementations of [`Log`]. Its methods return the
/// event to hand over, if any: an end, quiet, or a restart.
#[derive(Debug, Default)]
pub struct Cursor {
    progress: LogProgress,
    asked: Option<Asked>,
    /// Time of the last sign of progress.
    received_ms: i64,
    /// First offset of the log when last asked for.
    begin: Option<i64>,
}

#[derive(Debug)]
struct Asked {
    question: EndQuestion,
    /// Read position at the time of the question.
    position: i64,
    end: Option<i64>,
}

impl Cursor {
    pub fn progress(&self) -> LogProgress {
        self.progress
    }

    pub fn ask(&mut self, question: EndQuestion) {
        self.asked = Some(Asked {
            question,
            position: self.progress.position,
            end: None,
        });
    }

    /// Notes the first offset of the log. Returns whether it has moved forward.
    pub fn begins(&mut self, offset: i64) -> bool {
        let is_farther = self.begin < Some(offset);
        self.begin = self.begin.max(Some(offset));
        is_farther
    }

    /// The partition ended there when it was asked with this question.
    pub fn answer(
        &mut self,
        question: EndQuestion,
        end: i64,
        now_ms: i64,
    ) -> Option<PartitionEvent<'static>> {
        let asked = self.asked.as_mut().filter(|asked| asked.question == question)?;
        // The log is shorter than what had been read at the time of the question: it was truncated or replaced. Later
        // reads prove nothing, since those records may have been appended after the end was determined.
        if end < asked.position {
            return Some(PartitionEvent::StartOver);
        }
        asked.end = Some(end);
        // The same end as before is not a sign of progress.
        if self.progress.end.replace(end) != Some(end) {
            self.received_ms = now_ms;
        }
        self.look()
    }

    /// A record was handed over: the next one is at this offset, or behind it.
    pub fn read(&mut self, next: i64, n_bytes: u64, now_ms: i64) -> Option<PartitionEvent<'static>> {
        self.progress.n_bytes += n_bytes;
        self.reach(next, now_ms)
    }

    /// Moves the read position forward: all records below `next` have been read or do not exist.
    pub fn reach(&mut self, next: i64, now_ms: i64) -> Option<PartitionEvent<'static>> {
        // Compaction leaves gaps, so the position may jump. It moves back only through `start_over`.
        self.progress.position = self.progress.position.max(next);
        self.received_ms = now_ms;
        self.look()
    }

    fn look(&mut self) -> Option<PartitionEvent<'static>> {
        let position = self.progress.position;
        let is_there = |asked: &mut Asked| asked.end.is_some_and(|end| end <= position);
        // Taking the question reports each end once.
        let Asked { question, .. } = self.asked.take_if(is_there)?;
        Some(PartitionEvent::End(question))
    }

    pub fn look_at_the_clock(&mut self, now_ms: i64) -> Option<PartitionEvent<'static>> {
        // Without an answer nothing is known to be missing: the brokers may be down, which is not quiet.
        let is_quiet = |asked: &mut Asked| asked.end.is_some() && now_ms - self.received_ms >= QUIET_MS;
        let Asked { question, .. } = self.asked.take_if(is_quiet)?;
        Some(PartitionEvent::Quiet(question))
    }

    /// Restarts from the first record. Bytes already counted stay counted.
    pub fn start_over(&mut self) {
        (self.asked, self.begin) = (None, None);
        (self.progress.position, self.progress.end) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::key::Namespace;
    use crate::journal::rules::JournalRules;
    use crate::journal::view::PartitionView;

    fn question(asked_ms: i64) -> EndQuestion {
        PartitionView::new(Namespace::of("fingerprint", "group"), JournalRules::default()).question(asked_ms)
    }

    fn end(asked_ms: i64) -> Option<PartitionEvent<'static>> {
        Some(PartitionEvent::End(question(asked_ms)))
    }

    #[test]
    fn reaches_the_end_once_everything_below_it_is_read() {
        let mut cursor = Cursor::default();
        cursor.ask(question(1));
        assert_eq!(cursor.answer(question(1), 7, 0), None);
        assert_eq!(cursor.read(6, 100, 0), None);
        assert_eq!(cursor.read(9, 20, 0), end(1));
        assert_eq!(cursor.read(10, 0, 0), None, "once");
        let progress = LogProgress {
            position: 10,
            end: Some(7),
            n_bytes: 120,
        };
        assert_eq!(cursor.progress(), progress);
    }

    #[test]
    fn an_end_already_read_is_reached_with_the_answer() {
        let mut cursor = Cursor::default();
        cursor.ask(question(1));
        assert_eq!(cursor.answer(question(1), 0, 0), end(1));
    }

    #[test]
    fn ignores_the_answer_to_an_earlier_question() {
        let mut cursor = Cursor::default();
        cursor.ask(question(1));
        cursor.ask(question(2));
        assert_eq!(cursor.answer(question(1), 0, 0), None);
        assert_eq!(cursor.answer(question(2), 0, 0), end(2));
    }

    /// Records read since the question do not cause a restart.
    #[test]
    fn starts_over_if_the_end_is_before_the_read_position() {
        let mut cursor = Cursor::default();
        cursor.reach(8, 0);
        cursor.ask(question(1));
        cursor.reach(9, 0);
        assert_eq!(cursor.answer(question(1), 8, 0), end(1));
        cursor.ask(question(2));
        assert_eq!(cursor.answer(question(2), 8, 0), Some(PartitionEvent::StartOver));
        cursor.start_over();
        cursor.ask(question(3));
        assert_eq!(cursor.answer(question(3), 8, 0), None);
        assert_eq!(cursor.reach(8, 0), end(3));
    }

    #[test]
    fn reports_when_the_start_of_the_log_moves() {
        let mut cursor = Cursor::default();
        let moves = [0, 0, 7, 3, 7, 8].map(|offset| cursor.begins(offset));
        assert_eq!(moves, [true, false, true, false, false, true]);
        cursor.start_over();
        assert!(cursor.begins(0), "another log");
    }

    #[test]
    fn reports_quiet_if_missing_records_do_not_arrive() {
        let mut cursor = Cursor::default();
        cursor.ask(question(1));
        assert_eq!(cursor.look_at_the_clock(2 * QUIET_MS), None, "no answer");
        cursor.answer(question(1), 7, 0);
        cursor.reach(3, 5);
        // It is asked again and again meanwhile.
        cursor.ask(question(2));
        cursor.answer(question(2), 7, 5_000);
        assert_eq!(cursor.look_at_the_clock(QUIET_MS + 4), None);
        assert_eq!(
            cursor.look_at_the_clock(QUIET_MS + 5),
            Some(PartitionEvent::Quiet(question(2)))
        );
    }
}
