//! Reads the whole state topic, to the ends of all partitions, for tools: it joins no group, claims nothing and waits for a
//! bounded time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use abgauge_core::journal::{
    Inventory, Log, LogEvent, Namespace, NamespaceContents, PartitionEvent, RecordKey,
};

use super::end_questions::EndQuestions;
use super::faults::Faults;
use crate::clock::Clock;

/// Time that a round waits for input, ms.
const WAIT_MS: u64 = 20;

/// Follows all partitions of a state topic.
pub struct TopicReader<L> {
    log: L,
    clock: Clock,
    partitions: BTreeMap<i32, ReadPartition>,
    /// Problems that keep the topic from being read.
    faults: Faults,
}

struct ReadPartition {
    inventory: Inventory,
    questions: EndQuestions,
    is_at_end: bool,
}

/// Error: a topic could not be read completely in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub partitions: Vec<i32>,
    /// The client's last complaints.
    pub fault: Option<String>,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unread { partitions, fault } = self;
        write!(
            f,
            "partitions {partitions:?} of the state topic were not read to their ends in time"
        )?;
        match fault {
            Some(fault) => write!(f, ": {fault}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Unread {}

/// Result of deleting a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub n_keys: usize,
    /// Partitions in which new keys were written meanwhile, which are left.
    pub written_again: BTreeSet<i32>,
}

impl<L: Log> TopicReader<L> {
    pub fn new(mut log: L, n_partitions: i32, clock: Clock) -> TopicReader<L> {
        let follow = |partition| {
            log.follow(partition);
            let read = ReadPartition {
                inventory: Inventory::default(),
                questions: EndQuestions::new(),
                is_at_end: false,
            };
            (partition, read)
        };
        TopicReader {
            partitions: (0..n_partitions).map(follow).collect(),
            log,
            clock,
            faults: Faults::default(),
        }
    }

    /// Returns the records read of each partition, in order.
    pub fn partitions(&self) -> impl Iterator<Item = (i32, &Inventory)> {
        self.partitions
            .iter()
            .map(|(number, partition)| (*number, &partition.inventory))
    }

    /// Returns the records of a namespace in each partition that has any, in order.
    pub fn contents(&self, namespace: Namespace) -> impl Iterator<Item = (i32, &NamespaceContents)> {
        self.partitions()
            .filter_map(move |(number, inventory)| Some((number, inventory.of(namespace)?)))
    }

    /// Reads to the present ends of all partitions. If nothing comes for a long time although records are missing, that counts
    /// as the end, unless a missing permission explains it.
    ///
    /// # Errors
    /// [`Unread`] if it takes longer than `within`.
    pub fn read(&mut self, within: Duration) -> Result<(), Unread> {
        let deadline_ms = self.clock.steady_ms() + within.as_millis() as i64;
        // An end from an earlier call proves nothing about the present one.
        for partition in self.partitions.values_mut() {
            partition.is_at_end = false;
        }
        loop {
            self.ask();
            self.poll();
            let unread: BTreeSet<i32> = self
                .partitions
                .iter()
                .filter(|(_, partition)| !partition.is_at_end)
                .map(|(number, _)| *number)
                .collect();
            if unread.is_empty() {
                return Ok(());
            }
            if self.clock.steady_ms() >= deadline_ms {
                return Err(self.unread(unread));
            }
        }
    }

    fn unread(&self, partitions: BTreeSet<i32>) -> Unread {
        Unread {
            partitions: partitions.into_iter().collect(),
            fault: self.faults.all(),
        }
    }

    fn ask(&mut self) {
        let now_ms = self.clock.steady_ms();
        for (number, partition) in &mut self.partitions {
            if !partition.is_at_end && partition.questions.is_due(None, i64::MAX, now_ms) {
                self.log.ask(*number, partition.inventory.question(now_ms));
            }
        }
    }

    fn poll(&mut self) {
        let (partitions, faults) = (&mut self.partitions, &self.faults);
        self.log.poll(WAIT_MS, &mut |event| {
            // Errors report the faults, so they are not logged.
            faults.note(&event, 0);
            if let LogEvent::Partition(number, event) = event
                && let Some(partition) = partitions.get_mut(&number)
            {
                partition.take(&event, faults);
            }
        });
    }

    /// Deletes the keys of a namespace in these partitions, and reads to verify that they are gone. A lost tombstone is written
    /// again.
    ///
    /// # Errors
    /// [`Unread`] if they are not gone within that time.
    pub fn forget(
        &mut self,
        namespace: Namespace,
        partitions: &BTreeSet<i32>,
        within: Duration,
    ) -> Result<Forgotten, Unread> {
        let deadline_ms = self.clock.steady_ms() + within.as_millis() as i64;
        let before = self.keys(namespace, partitions);
        let mut forgotten = Forgotten {
            n_keys: before.len(),
            written_again: BTreeSet::new(),
        };
        loop {
            let left = self.keys(namespace, partitions);
            // Keys that were not there before come from a running instance, and are not deleted.
            let new = left.iter().filter(|key| !before.contains(key));
            forgotten
                .written_again
                .extend(new.map(|(partition, _)| *partition));
            let ours: Vec<_> = left.intersection(&before).copied().collect();
            if ours.is_empty() {
                return Ok(forgotten);
            }
            for (partition, key) in &ours {
                self.log.append(*partition, *key, None);
            }
            let left_ms = deadline_ms - self.clock.steady_ms();
            if left_ms <= 0 {
                return Err(self.unread(ours.iter().map(|(partition, _)| *partition).collect()));
            }
            // Give the appends one round to land before asking for the ends.
            self.poll();
            self.read(Duration::from_millis(left_ms.unsigned_abs()))?;
        }
    }

    fn keys(&self, namespace: Namespace, partitions: &BTreeSet<i32>) -> BTreeSet<(i32, RecordKey)> {
        self.contents(namespace)
            .filter(|(partition, _)| partitions.contains(partition))
            .flat_map(|(partition, contents)| contents.keys().map(move |key| (partition, key)))
            .collect()
    }
}

impl ReadPartition {
    fn take(&mut self, event: &PartitionEvent<'_>, faults: &Faults) {
        self.questions.note(event);
        match *event {
            PartitionEvent::Record {
                key,
                value,
                written_ms,
                ..
            } => self.inventory.take(key, value, written_ms),
            // If a record was read since the question, ask again.
            PartitionEvent::End(question) => self.is_at_end |= self.inventory.is_end(question),
            // A partition that may not be read is quiet, too, but its records are not missing.
            PartitionEvent::Quiet(_) => self.is_at_end |= !faults.is_forbidden(),
            PartitionEvent::StartOver => {
                self.inventory.start_over();
                self.is_at_end = false;
            }
            // A later start of the log does not matter: the topic is read only once, from its first record.
            PartitionEvent::Begins(_) | PartitionEvent::Acknowledged(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::journal::{BlockedOperation, EndQuestion, Hindrance, LogProgress, SharedBytes};

    use super::*;
    use crate::clock::ClockControl;

    /// A log of records that never come, with the reasons.
    struct Silent {
        clock: Clock,
        control: ClockControl,
        reasons: Vec<LogEvent<'static>>,
        question: Option<EndQuestion>,
    }

    impl Log for Silent {
        fn follow(&mut self, _: i32) {}

        fn ask(&mut self, _: i32, question: EndQuestion) {
            self.question = Some(question);
        }

        fn append(&mut self, _: i32, _: RecordKey, _: Option<SharedBytes>) {}

        fn poll(&mut self, _: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
            self.control.advance_to(self.clock.steady_ms() + 500);
            for reason in self.reasons.drain(..) {
                take(reason);
            }
            if let Some(question) = self.question.take() {
                take(LogEvent::Partition(0, PartitionEvent::Quiet(question)));
            }
        }

        fn progress(&self, _: i32) -> LogProgress {
            LogProgress::default()
        }
    }

    fn read(reasons: Vec<LogEvent<'static>>) -> Result<(), Unread> {
        let (clock, control) = Clock::simulated(0);
        let log = Silent {
            clock: clock.clone(),
            control,
            reasons,
            question: None,
        };
        TopicReader::new(log, 1, clock).read(Duration::from_secs(60))
    }

    /// `state verify` found nothing sealed, and succeeded, in a topic that its user might not read.
    #[test]
    fn a_forbidden_topic_is_not_an_empty_one() {
        assert_eq!(read(vec![]), Ok(()));
        let unread = Unread {
            partitions: vec![0],
            fault: Some("broker:1 does not answer; no READ".to_owned()),
        };
        assert_eq!(read(vec![forbidden(), unreachable()]), Err(unread));
    }

    /// An unreachable broker of the list used to keep the end from being reached until the next record.
    #[test]
    fn a_fault_of_the_client_does_not_replace_an_end() {
        assert_eq!(read(vec![unreachable()]), Ok(()));
    }

    fn forbidden() -> LogEvent<'static> {
        let hindrance = Hindrance {
            message: "no READ".to_owned(),
            is_forbidden: true,
        };
        LogEvent::Hindered(BlockedOperation::Reading, Some(hindrance))
    }

    fn unreachable() -> LogEvent<'static> {
        LogEvent::Fault {
            message: "broker:1 does not answer".to_owned(),
            of_owners: true,
        }
    }
}
