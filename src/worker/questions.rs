//! What the brokers are asked: one question at a time, and which answers still count.

use std::time::Duration;

use super::{Phase, Worker};
use crate::ingest::{Order, Question, TopicPartition};

/// How often the brokers are asked.
const ASK: Duration = Duration::from_millis(500);
/// How often they are asked who stamps the records.
const ASK_TIMESTAMPS: Duration = Duration::from_secs(3 * 60);
/// A start that takes longer is not waited for with that.
const LONG_START: Duration = Duration::from_secs(60);

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
    /// When it was asked last who stamps the records.
    asked_timestamps: Option<Duration>,
}

impl Questions {
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What is owned, or from where it is read, is another from now on.
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

    /// Whether it is to be asked who stamps the records: first when a start has its numbers, or takes long to; then again and
    /// again, since somebody may have fixed it.
    pub fn is_turn_of_timestamps(&self, has_started: bool, uptime: Duration) -> bool {
        match self.asked_timestamps {
            None => has_started || uptime >= LONG_START,
            Some(asked) => uptime.saturating_sub(asked) >= ASK_TIMESTAMPS,
        }
    }

    /// This was asked, in its turn.
    pub fn asked(&mut self, question: &Question, uptime: Duration) {
        match question {
            Question::Starts { .. } => self.starts_were_last = true,
            Question::Ends { .. } => self.starts_were_last = false,
            Question::Timestamps => self.asked_timestamps = Some(uptime),
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

impl Worker {
    pub(super) fn ask(&mut self, uptime: Duration) {
        if !self.questions.is_due(uptime) {
            return;
        }
        if let Some(question) = self.next_question() {
            self.questions.asked(&question, uptime);
            self.orders.push(Order::Ask(question));
        }
    }

    fn next_question(&mut self) -> Option<Question> {
        let is_start = !self.shards.locating().is_empty();
        let reads_nothing = self.shards.reads_nothing();
        let question = match self.phase {
            Phase::Topics => Question::Topics,
            Phase::Joining => return None,
            // In turns with the question for ends: a partition that cannot start must not hold up the others.
            Phase::Owning if is_start && (reads_nothing || self.questions.is_turn_of_starts()) => {
                self.ask_starts()
            }
            Phase::Owning if self.membership.asks() => Question::Group {
                epoch: self.questions.epoch(),
            },
            // Whoever owns nothing learns so of brokers and topics that go and come.
            Phase::Owning if reads_nothing => Question::Topics,
            Phase::Owning if self.is_turn_of_timestamps() => Question::Timestamps,
            Phase::Owning => self.ask_ends(),
        };
        Some(question)
    }

    fn is_turn_of_timestamps(&self) -> bool {
        let uptime = self.clocks.uptime();
        self.questions
            .is_turn_of_timestamps(self.clocks.has_started(), uptime)
    }

    fn ask_ends(&mut self) -> Question {
        self.clocks.ask();
        Question::Ends {
            epoch: self.questions.epoch(),
            clock_run: self.clocks.run(),
            asked_ms: self.clock.steady_ms(),
            partitions: self.partitions_of(self.shards.pairs().map(|(partition, _)| partition)),
        }
    }

    pub(super) fn ask_starts(&self) -> Question {
        Question::Starts {
            epoch: self.questions.epoch(),
            partitions: self.partitions_of(self.shards.locating().into_iter()),
            seek_ms: self.setup.start.seek_ms(self.clock.now_ms()),
        }
    }

    fn partitions_of(&self, partitions: impl Iterator<Item = i32>) -> Vec<TopicPartition> {
        let both = |partition| self.setup.sides().iter().map(move |side| (*side, partition));
        partitions.flat_map(both).collect()
    }
}
