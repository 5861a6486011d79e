//! The state topic on Kafka: read by a consumer without a group, asked for its ends by a thread, written by one plain producer.

mod complaints;
mod ends;
mod writer;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use abgauge_core::journal::{
    BlockedOperation, Cursor, EndQuestion, Log, LogEvent, LogProgress, Namespace, PartitionEvent, RecordKey,
    SharedBytes,
};
use anyhow::Context as _;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Message as _, Offset, TopicPartitionList};

use self::complaints::{fault, unread};
use self::ends::{EndRequests, PartitionEnd};
use self::writer::StateWriter;
use super::callbacks::{CallbackNotes, Client, Note};
use super::client;
use super::names::TopicNames;
use super::producer::explain_refusal;
use super::queue::{Message as QueuedMessage, RecordQueue};
use crate::clock::Clock;
use crate::settings;

/// Timeout for asking the brokers for the leaders of the partitions.
const LEADERS_WITHIN: Duration = Duration::from_secs(4);

/// The partitions of a state topic.
pub struct StateLog {
    topic: CString,
    clock: Clock,
    // Dropped before its client.
    queue: RecordQueue,
    client: Arc<Client>,
    followers: BTreeMap<i32, Cursor>,
    /// Partitions to be read from their first records, as soon as the client accepts that.
    starting: BTreeSet<i32>,
    /// A fault of reading was reported.
    is_unread: bool,
    /// Partitions whose reading failed, and was not tried again since.
    failed: BTreeSet<i32>,
    ends: EndRequests,
    /// Separate requests for the partitions that owners depend on, because one missing leader fails a whole request.
    ends_of_owners: EndRequests,
    preferred: BTreeSet<i32>,
    writer: StateWriter,
}

impl StateLog {
    /// Reads, and appends to this namespace. Brokers need not be reachable yet.
    ///
    /// # Errors
    /// librdkafka refuses a property.
    pub fn start(
        kafka: &settings::Kafka,
        topic: &str,
        namespace: Namespace,
        clock: Clock,
    ) -> anyhow::Result<StateLog> {
        let config = reader_config(kafka);
        let notes = CallbackNotes::new(&TopicNames::new(kafka));
        let client: Client = config.create_with_context(notes).map_err(explain_refusal)?;
        let client = Arc::new(client);
        look_up_leaders(Arc::clone(&client), topic.to_owned())?;
        Ok(StateLog {
            queue: RecordQueue::new(&client),
            client,
            followers: BTreeMap::new(),
            starting: BTreeSet::new(),
            is_unread: false,
            failed: BTreeSet::new(),
            ends: ends::start(&config, topic)?,
            ends_of_owners: ends::start(&config, topic)?,
            preferred: BTreeSet::new(),
            writer: StateWriter::start(kafka, topic, namespace)?,
            topic: CString::new(topic).context("the name of the state topic holds a NUL")?,
            clock,
        })
    }

    /// Returns the name of the topic.
    fn topic(&self) -> &str {
        self.topic.to_str().unwrap_or_default()
    }

    /// Starts to read a waiting partition from its first record, if there is one.
    fn start_those_that_wait(&mut self) -> Option<LogEvent<'static>> {
        let partition = *self.starting.first()?;
        match self.read_from_the_first_record(partition) {
            Ok(()) => {
                self.starting.remove(&partition);
                None
            }
            Err(error) => Some(fault(&error, "", self.topic())),
        }
    }

    fn read_from_the_first_record(&self, partition: i32) -> KafkaResult<()> {
        let mut list = TopicPartitionList::new();
        let topic = self.topic();
        list.add_partition_offset(topic, partition, Offset::Beginning)?;
        let assigned = self.client.assignment()?;
        if assigned.find_partition(topic, partition).is_some() {
            self.client.incremental_unassign(&list)?;
        }
        // Forward before assigning, so that no record ends up in the main queue.
        self.queue.take_over(&self.client, &self.topic, partition);
        self.client.incremental_assign(&list)?;
        // Forward again: librdkafka stops a partition that was being read and thereby ends its forwarding, on the thread that
        // answers this request.
        self.client.assignment()?;
        self.queue.take_over(&self.client, &self.topic, partition);
        Ok(())
    }

    /// Restarts a partition from its first record.
    fn start_over(&mut self, partition: i32) -> Option<PartitionEvent<'static>> {
        self.followers.get_mut(&partition)?.start_over();
        self.starting.insert(partition);
        Some(PartitionEvent::StartOver)
    }

    fn take_answers(&mut self, take: &mut dyn FnMut(LogEvent<'_>)) {
        let now_ms = self.clock.steady_ms();
        while let Some((answer, of_owners)) = self.next_answer() {
            match answer {
                Ok(PartitionEnd {
                    partition,
                    question,
                    begin,
                    end,
                }) => {
                    let cursor = self.followers.get_mut(&partition);
                    let event = cursor.and_then(|cursor| {
                        // Reported before the end, so that an owner notices lost records at that end.
                        if let Some(offset) = begin.filter(|begin| cursor.begins(*begin)) {
                            take(LogEvent::Partition(partition, PartitionEvent::Begins(offset)));
                        }
                        cursor.answer(question, end, now_ms)
                    });
                    self.hand_over(partition, event, take);
                }
                Err(error) => take(match fault(&error, "", self.topic()) {
                    LogEvent::Fault { message, .. } => LogEvent::Fault { message, of_owners },
                    other => other,
                }),
            }
        }
    }

    /// Returns the next answer, and whether owners depend on it.
    fn next_answer(&self) -> Option<(Result<PartitionEnd, KafkaError>, bool)> {
        let of_owners = self.ends_of_owners.answers().next().map(|answer| (answer, true));
        of_owners.or_else(|| Some((self.ends.answers().next()?, false)))
    }

    fn hand_over(
        &mut self,
        partition: i32,
        event: Option<PartitionEvent<'static>>,
        take: &mut dyn FnMut(LogEvent<'_>),
    ) {
        let event = match event {
            Some(PartitionEvent::StartOver) => self.start_over(partition),
            other => other,
        };
        if let Some(event) = event {
            take(LogEvent::Partition(partition, event));
        }
    }

    fn take_messages(&mut self, wait_ms: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        for message in self.queue.wait(wait_ms) {
            let partition = message.partition();
            // Skip it: the partition is about to be read from its first record.
            if self.starting.contains(&partition) {
                continue;
            }
            match message.code() {
                None => self.take_record(&message, take),
                Some(code) => {
                    self.note_end(code, take);
                    self.take_error(&message, code, take);
                }
            }
        }
    }

    /// Clears a fault of reading at the end of a partition, which shows that it can be read.
    fn note_end(&mut self, code: RDKafkaErrorCode, take: &mut dyn FnMut(LogEvent<'_>)) {
        if code == RDKafkaErrorCode::PartitionEOF && std::mem::take(&mut self.is_unread) {
            take(LogEvent::Hindered(BlockedOperation::Reading, None));
        }
    }

    /// Tries again to read a partition from its position. librdkafka reports the end of a partition only once, so in a log that
    /// does not grow nothing else would show that it can be read again.
    fn try_again(&mut self, partition: i32, position: i64) {
        if self.failed.remove(&partition) && !self.starting.contains(&partition) {
            let position = Offset::Offset(position);
            let sought = self
                .client
                .seek(self.topic(), partition, position, Duration::ZERO);
            if let Err(error) = sought {
                tracing::debug!(%error, partition, "the state topic cannot be read again from its position");
                self.failed.insert(partition);
            }
        }
    }

    fn take_record(&mut self, message: &QueuedMessage, take: &mut dyn FnMut(LogEvent<'_>)) {
        let (partition, now_ms) = (message.partition(), self.clock.steady_ms());
        let (key, value) = (message.key().unwrap_or_default(), message.payload());
        let record = PartitionEvent::Record {
            offset: message.offset(),
            key,
            value,
            written_ms: message.timestamp_ms(),
        };
        take(LogEvent::Partition(partition, record));
        let n_bytes = key.len() + value.map_or(0, <[u8]>::len);
        // The end comes after the records below it, as `Log` requires.
        let cursor = self.followers.get_mut(&partition);
        let event = cursor.and_then(|cursor| cursor.read(message.offset() + 1, n_bytes as u64, now_ms));
        self.hand_over(partition, event, take);
    }

    fn take_error(
        &mut self,
        message: &QueuedMessage,
        code: RDKafkaErrorCode,
        take: &mut dyn FnMut(LogEvent<'_>),
    ) {
        let partition = message.partition();
        let event = match code {
            RDKafkaErrorCode::PartitionEOF => {
                let now_ms = self.clock.steady_ms();
                let cursor = self.followers.get_mut(&partition);
                cursor.and_then(|cursor| cursor.reach(message.offset(), now_ms))
            }
            RDKafkaErrorCode::AutoOffsetReset
            | RDKafkaErrorCode::OffsetOutOfRange
            | RDKafkaErrorCode::LogTruncation => Some(PartitionEvent::StartOver),
            code => {
                let error = KafkaError::MessageConsumption(code);
                let fault = unread(&error, &message.reason(), self.topic());
                if matches!(fault, LogEvent::Hindered(..)) {
                    self.is_unread = true;
                    self.failed.insert(partition);
                }
                return take(fault);
            }
        };
        self.hand_over(partition, event, take);
    }

    fn take_complaints(&mut self, take: &mut dyn FnMut(LogEvent<'_>)) {
        let strayed = match self.client.poll(Duration::ZERO) {
            // The record bypassed the queue, so it is missing from its partition.
            Some(Ok(record)) => Some(record.partition()),
            Some(Err(error)) => {
                take(fault(&error, "", self.topic()));
                None
            }
            None => None,
        };
        if let Some(partition) = strayed {
            self.hand_over(partition, Some(PartitionEvent::StartOver), take);
        }
        while let Some(note) = self.client.context().pop() {
            // It joins no group, so nothing else is noted.
            if let Note::Error(error, reason) = note {
                take(fault(&error, &reason, self.topic()));
            }
        }
    }

    fn look_at_the_clock(&mut self, take: &mut dyn FnMut(LogEvent<'_>)) {
        let now_ms = self.clock.steady_ms();
        for (partition, cursor) in &mut self.followers {
            if let Some(event) = cursor.look_at_the_clock(now_ms) {
                take(LogEvent::Partition(*partition, event));
            }
        }
    }
}

impl Log for StateLog {
    fn follow(&mut self, partition: i32) {
        if let Entry::Vacant(place) = self.followers.entry(partition) {
            place.insert(Cursor::default());
            self.starting.insert(partition);
        }
    }

    fn prefer(&mut self, partition: i32) {
        self.preferred.insert(partition);
    }

    fn ask(&mut self, partition: i32, question: EndQuestion) {
        if let Some(cursor) = self.followers.get_mut(&partition) {
            cursor.ask(question);
            let position = cursor.progress().position;
            let ends = match self.preferred.contains(&partition) {
                true => &self.ends_of_owners,
                false => &self.ends,
            };
            // If the thread has ended, answers stop, which is noticed soon enough.
            let _ = ends.ask((partition, question));
            self.try_again(partition, position);
        }
    }

    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        self.writer.append(partition, key, value);
    }

    fn poll(&mut self, wait_ms: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        self.start_those_that_wait().into_iter().for_each(&mut *take);
        self.writer.poll(take);
        self.take_answers(take);
        self.take_complaints(take);
        self.take_messages(wait_ms, take);
        // Comes last, so that everything that has arrived counts as progress.
        self.look_at_the_clock(take);
    }

    fn progress(&self, partition: i32) -> LogProgress {
        let cursor = self.followers.get(&partition);
        cursor.map_or_else(LogProgress::default, Cursor::progress)
    }
}

/// Returns the settings of the reader. It joins no group but uses the group's name, because permissions are granted on it.
fn reader_config(kafka: &settings::Kafka) -> ClientConfig {
    let mut config = client::base_config(kafka);
    // Records are read from the leader, whose end is asked for.
    config.remove("client.rack");
    config.remove("group.instance.id");
    client::set_defaults(&mut config, kafka, READER);
    config
        .set("group.id", &kafka.group_id)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("enable.partition.eof", "true")
        .set("check.crcs", "true")
        // No abgauge writes transactions here. If another client does, all instances must read the same.
        .set("isolation.level", "read_uncommitted")
        .set("allow.auto.create.topics", "false");
    config
}

/// Asks for the leaders of the partitions before they are read: a client without them starts up to a second later.
fn look_up_leaders(client: Arc<Client>, topic: String) -> anyhow::Result<()> {
    let ask = move || {
        if let Err(error) = client.fetch_metadata(Some(&topic), LEADERS_WITHIN) {
            tracing::debug!(%error, topic, "the brokers do not report the leaders of its partitions");
        }
    };
    let thread = std::thread::Builder::new()
        .name("state-leaders".into())
        .spawn(ask);
    thread.context("start the thread that finds the leaders of the state topic")?;
    Ok(())
}

/// Defaults, which the operator can override.
const READER: [(&str, &str); 3] = [
    // A partition that is added waits for the fetch that is under way.
    ("fetch.wait.max.ms", "100"),
    ("fetch.queue.backoff.ms", "10"),
    ("queued.max.messages.kbytes", "16384"),
];
