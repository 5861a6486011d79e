//! Partition of the state topic as this instance follows it: one view of its records, an onlooker, and an owner once the pair
//! has been assigned here.

use abgauge_core::journal::{
    EndQuestion, JournalRules, LogProgress, Namespace, Onlooker, Owner, OwnerCommand, OwnerInput,
    OwnerSettings, PartitionEvent, PartitionView, Refusal, Sealed,
};

use super::pair::KeptPair;
use crate::store::end_questions::EndQuestions;

/// Pause before the next question for an end if nothing waits for one, ms.
const ASK_EVERY_MS: i64 = 1_000;
/// Pause if something was read that may be a new state, ms.
const ASK_AGAIN_MS: i64 = 500;

pub(super) struct FollowedPartition {
    reader: Reader,
    pub onlooker: Onlooker,
    questions: EndQuestions,
    /// Bytes of keys and values up to the first end.
    n_bytes_first: Option<u64>,
}

enum Reader {
    /// The pair was never assigned here.
    View(PartitionView),
    Pair(Box<KeptPair>),
}

impl FollowedPartition {
    pub fn new(namespace: Namespace) -> FollowedPartition {
        let view = PartitionView::new(namespace, JournalRules::default());
        FollowedPartition {
            reader: Reader::View(view),
            onlooker: Onlooker::default(),
            questions: EndQuestions::new(),
            n_bytes_first: None,
        }
    }

    pub fn pair(&self) -> Option<&KeptPair> {
        match &self.reader {
            Reader::View(_) => None,
            Reader::Pair(pair) => Some(pair),
        }
    }

    pub fn pair_mut(&mut self) -> Option<&mut KeptPair> {
        match &mut self.reader {
            Reader::View(_) => None,
            Reader::Pair(pair) => Some(pair),
        }
    }

    /// Puts an owner over the view, unless there is one. The owner outlives revocations.
    pub fn own(&mut self, settings: &OwnerSettings, seed: u64, progress: LogProgress) {
        if let Reader::View(view) = &mut self.reader {
            let rules = JournalRules::default();
            let view = std::mem::replace(view, PartitionView::new(settings.namespace, rules));
            let owner = Owner::over(view, settings.clone(), seed);
            // Restoring needs the bytes of the first read, and of all reads from now on.
            let n_bytes_later = self.n_bytes_first.map_or(0, |first| progress.n_bytes - first);
            self.reader = Reader::Pair(Box::new(KeptPair::new(owner, n_bytes_later)));
        }
    }

    /// Takes an event of the partition.
    pub fn take(&mut self, now_ms: i64, event: PartitionEvent<'_>) -> Vec<OwnerCommand> {
        self.questions.note(&event);
        if event == PartitionEvent::StartOver {
            self.onlooker.start_over();
        }
        let view = match &mut self.reader {
            Reader::View(view) => view,
            Reader::Pair(pair) => return pair.owner.step(now_ms, OwnerInput::Log(event)),
        };
        match event {
            PartitionEvent::Record {
                offset, key, value, ..
            } => _ = view.take_at(offset, key, value),
            PartitionEvent::Begins(offset) => view.starts_at(offset),
            PartitionEvent::StartOver => view.start_over(),
            PartitionEvent::End(_) | PartitionEvent::Quiet(_) | PartitionEvent::Acknowledged(_) => {}
        }
        Vec::new()
    }

    /// Passes another input on to the owner, if there is one.
    pub fn step(&mut self, now_ms: i64, input: OwnerInput<'_>) -> Vec<OwnerCommand> {
        let pair = self.pair_mut();
        pair.map_or_else(Vec::new, |pair| pair.owner.step(now_ms, input))
    }

    /// Returns the state that is newly current at an end.
    pub fn look(&mut self, question: EndQuestion) -> Result<Option<Sealed>, Refusal> {
        let view = match &self.reader {
            Reader::View(view) => view,
            Reader::Pair(pair) => pair.owner.view(),
        };
        self.onlooker.end(view, question)
    }

    /// Notes how far the partition is read.
    pub fn note(&mut self, progress: LogProgress) {
        if !self.questions.is_new() {
            self.n_bytes_first.get_or_insert(progress.n_bytes);
        }
    }

    /// Returns whether its first end is still to come.
    pub fn is_new(&self) -> bool {
        self.questions.is_new()
    }

    /// Returns whether an owner waits for something, so that the loop should poll soon.
    pub fn is_busy(&self) -> bool {
        self.pair()
            .is_some_and(|pair| self.questions.is_asked() || pair.is_busy())
    }

    /// Returns a question for the end, if one is due. If the states are `published`, ends are also asked for without an owner.
    pub fn question(&mut self, is_published: bool, lease_ms: i64, now_ms: i64) -> Option<EndQuestion> {
        let owner = self
            .pair()
            .filter(|pair| pair.needs_ends())
            .map(|pair| &pair.owner);
        let awaits_end = match owner {
            Some(owner) => owner.awaits_end(),
            None if is_published => !self.onlooker.is_known(),
            None => return None,
        };
        let idle_ms = match awaits_end {
            true => None,
            false if owner.is_none() && self.questions.is_read_on() => Some(ASK_AGAIN_MS),
            false => Some(ASK_EVERY_MS),
        };
        // Each end renews the lease, so ask for one well before the lease is over.
        if !self.questions.is_due(idle_ms, lease_ms / 3, now_ms) {
            return None;
        }
        Some(match &self.reader {
            Reader::View(view) => view.question(now_ms),
            Reader::Pair(pair) => pair.owner.question(now_ms),
        })
    }
}
