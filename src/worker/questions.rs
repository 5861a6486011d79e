//! What the brokers were asked: one question at a time, and which answers still count.

use std::time::Duration;

use crate::ingest::Question;

/// How often the brokers are asked.
const ASK: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct Questions {
    /// Counts assignments: an answer to a question of an earlier one is void.
    epoch: u64,
    /// Asked, and not yet answered.
    is_open: bool,
    /// When one was last asked in its turn.
    last: Option<Duration>,
    /// Of starts and ends, the last question was where to start.
    starts_were_last: bool,
    /// Who stamps the records was asked.
    asked_timestamps: bool,
}

impl Questions {
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What is owned is another from now on.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
    }

    pub fn is_due(&self, uptime: Duration) -> bool {
        let waits = |last| uptime.saturating_sub(last) < ASK;
        !self.is_open && !self.last.is_some_and(waits)
    }

    /// Whether it is the turn of starts, which are asked for in turns with the ends.
    pub fn is_turn_of_starts(&self) -> bool {
        !self.starts_were_last
    }

    pub fn has_asked_timestamps(&self) -> bool {
        self.asked_timestamps
    }

    /// This was asked, in its turn.
    pub fn asked(&mut self, question: &Question, uptime: Duration) {
        match question {
            Question::Starts { .. } => self.starts_were_last = true,
            Question::Ends { .. } => self.starts_were_last = false,
            Question::Timestamps => self.asked_timestamps = true,
            Question::Topics | Question::Group { .. } => {}
        }
        self.last = Some(uptime);
        self.is_open = true;
    }

    /// Something was asked at once: the next question waits for its answer.
    pub fn asked_at_once(&mut self) {
        self.is_open = true;
    }

    pub fn answered(&mut self) {
        self.is_open = false;
    }
}
