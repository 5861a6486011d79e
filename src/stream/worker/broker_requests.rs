//! Questions to the brokers: one at a time, with a check whether an answer is still valid.

use std::time::Duration;

use super::{StartPhase, Worker};
use crate::stream::{Order, Question, TopicPartition};

/// Interval between two questions.
const ASK: Duration = Duration::from_millis(500);
/// Interval between two questions about the timestamps of the topics.
const ASK_TIMESTAMPS: Duration = Duration::from_secs(3 * 60);
/// Duration of a start after which the question about timestamps no longer waits for it.
const LONG_START: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Questions {
    /// Number of the assignment. Answers to questions of an earlier one are void.
    epoch: u64,
    /// Set while a question is not answered.
    is_open: bool,
    /// Time at which a question was last asked in its turn.
    last: Option<Duration>,
    /// Set if the last question was about starts, not ends.
    starts_were_last: bool,
    /// Time at which the timestamps of the topics were last asked for.
    asked_timestamps: Option<Duration>,
}

impl Questions {
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Starts a new epoch, because the assignment or the read positions have changed.
    pub fn start_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Makes the next question one about starts, without a wait, because there are pairs to locate.
    pub fn hasten_starts(&mut self) {
        self.last = None;
        self.starts_were_last = false;
    }

    pub fn is_due(&self, uptime: Duration) -> bool {
        let waits = |last| uptime.saturating_sub(last) < ASK;
        !self.is_open && !self.last.is_some_and(waits)
    }

    /// Returns whether it is the turn of starts. Questions about starts and ends alternate.
    pub fn is_turn_of_starts(&self) -> bool {
        !self.starts_were_last
    }

    /// Returns whether to ask about the timestamps of the topics: first when a start is complete or takes too long, then
    /// periodically, since the setting may have been fixed.
    pub fn is_turn_of_timestamps(&self, has_started: bool, uptime: Duration) -> bool {
        match self.asked_timestamps {
            None => has_started || uptime >= LONG_START,
            Some(asked) => uptime.saturating_sub(asked) >= ASK_TIMESTAMPS,
        }
    }

    /// Notes that this question was asked in its turn.
    pub fn asked(&mut self, question: &Question, uptime: Duration) {
        match question {
            Question::Starts { .. } => self.starts_were_last = true,
            Question::Ends { .. } => self.starts_were_last = false,
            Question::Timestamps => self.asked_timestamps = Some(uptime),
            Question::Topics | Question::Group { .. } | Question::Commit { .. } => {}
        }
        self.last = Some(uptime);
        self.is_open = true;
    }

    /// Notes that a question was asked out of turn. The next one waits for its answer.
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
            StartPhase::Topics => Question::Topics,
            StartPhase::Joining => return None,
            // Alternates with the question for ends: a partition that cannot start must not block the others.
            StartPhase::Owning if is_start && (reads_nothing || self.questions.is_turn_of_starts()) => {
                self.ask_starts()
            }
            StartPhase::Owning if self.membership.asks() => Question::Group {
                epoch: self.questions.epoch(),
            },
            // A member without partitions notices this way that brokers or topics disappear and return.
            StartPhase::Owning if reads_nothing => Question::Topics,
            StartPhase::Owning if self.is_turn_of_timestamps() => Question::Timestamps,
            StartPhase::Owning => self.ask_ends(),
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
