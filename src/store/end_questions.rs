//! Schedule of the questions for the end of one partition of the state topic, for the keeper and for tools.

use abgauge_core::journal::PartitionEvent;

/// Pause if something waits for an end but nothing new was read, ms.
const ASK_SOON_MS: i64 = 100;
/// Time to wait for an answer before the question is repeated, ms.
const ANSWER_MS: i64 = 5_000;

/// Questions for the end of one partition.
#[derive(Debug)]
pub struct EndQuestions {
    /// Time of the last question; `is_asked` while it waits for its answer.
    asked_ms: Option<i64>,
    is_asked: bool,
    /// Something was read since the last question.
    is_read_on: bool,
    /// The first end has been neither reached nor given up.
    is_new: bool,
}

impl EndQuestions {
    pub fn new() -> EndQuestions {
        EndQuestions {
            asked_ms: None,
            is_asked: false,
            is_read_on: true,
            is_new: true,
        }
    }

    /// Notes an event of the partition.
    pub fn note(&mut self, event: &PartitionEvent<'_>) {
        match event {
            PartitionEvent::Record { .. } => self.is_read_on = true,
            PartitionEvent::End(_) | PartitionEvent::Quiet(_) => {
                (self.is_asked, self.is_new) = (false, false)
            }
            // All records will be read again, so the open question is void.
            PartitionEvent::StartOver => (self.is_asked, self.is_read_on) = (false, true),
            PartitionEvent::Begins(_) | PartitionEvent::Acknowledged(_) => {}
        }
    }

    pub fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub fn is_read_on(&self) -> bool {
        self.is_read_on
    }

    /// Returns whether the first end is still to come.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns whether to ask now, and notes the question then. The pause after an answer is `idle_ms`, or `None` if something
    /// waits for an end. No pause is longer than `max_ms`.
    pub fn is_due(&mut self, idle_ms: Option<i64>, max_ms: i64, now_ms: i64) -> bool {
        let pause_ms = match (self.is_asked, idle_ms) {
            (true, _) => ANSWER_MS,
            (false, Some(idle_ms)) => idle_ms,
            (false, None) if self.is_read_on => 0,
            (false, None) => ASK_SOON_MS,
        };
        let since_ms = self.asked_ms.map_or(i64::MAX, |asked_ms| now_ms - asked_ms);
        let is_due = since_ms >= pause_ms.min(max_ms);
        if is_due {
            (self.asked_ms, self.is_asked, self.is_read_on) = (Some(now_ms), true, false);
        }
        is_due
    }
}
