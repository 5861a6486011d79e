//! The group consumer: librdkafka's callbacks become inputs, orders become its calls. It decides nothing.
//!
//! Records are taken in batches, from a queue of our own that the queue of each assigned partition is forwarded to:
//! taking batches from the queue of a subscribed consumer would swallow rebalances. The main queue is polled for those.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use rdkafka::bindings::{
    rd_kafka_consume_batch_queue, rd_kafka_message_destroy, rd_kafka_message_errstr, rd_kafka_message_s,
    rd_kafka_message_timestamp, rd_kafka_queue_destroy, rd_kafka_queue_forward, rd_kafka_queue_get_partition,
    rd_kafka_queue_new, rd_kafka_queue_s, rd_kafka_resp_err_t, rd_kafka_timestamp_type_t,
    rd_kafka_topic_name,
};
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{Offset, TopicPartitionList};

use super::client;
use super::probe;
use super::producer::explain_refusal;
use crate::config;
use crate::engine::event::Side;
use crate::ingest::{Answer, Input, Order, Question, Record, TopicPartition};

/// Records taken at a time.
const BATCH: usize = 2000;

/// The names of our topics. Where both kinds share one, everything is on the side of served lists.
#[derive(Debug, Clone)]
pub struct Topics {
    pub served: String,
    pub clicks: String,
}

impl Topics {
    pub fn new(kafka: &config::Kafka) -> Topics {
        Topics {
            served: kafka.served_topic.clone(),
            clicks: kafka.clicks_topic.clone(),
        }
    }

    pub fn name(&self, side: Side) -> &str {
        match side {
            Side::Served => &self.served,
            Side::Clicks => &self.clicks,
        }
    }

    pub fn side(&self, name: &[u8]) -> Option<Side> {
        if name == self.served.as_bytes() {
            Some(Side::Served)
        } else {
            (name == self.clicks.as_bytes()).then_some(Side::Clicks)
        }
    }

    pub fn partitions<'a>(&self, of: impl IntoIterator<Item = &'a TopicPartition>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for (side, partition) in of {
            list.add_partition(self.name(*side), *partition);
        }
        list
    }

    fn offsets(&self, of: &[(TopicPartition, i64)]) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for ((side, partition), offset) in of {
            list.add_partition_offset(self.name(*side), *partition, Offset::Offset(*offset))?;
        }
        Ok(list)
    }
}

/// What callbacks noted, until the loop takes it.
#[derive(Debug)]
enum Note {
    Assigned(Vec<TopicPartition>),
    Revoked,
    Error(KafkaError, String),
}

/// Where librdkafka's callbacks end: they only take notes.
pub(super) struct Notes {
    topics: Topics,
    notes: Mutex<VecDeque<Note>>,
    closing: AtomicBool,
}

impl Notes {
    fn push(&self, note: Note) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(note);
    }

    fn pop(&self) -> Option<Note> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

impl ClientContext for Notes {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.push(Note::Error(error, reason.to_owned()));
    }
}

impl ConsumerContext for Notes {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, error: RDKafkaRespErr, list: &mut TopicPartitionList) {
        if error == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            let of =
                |topic: &str, partition| self.topics.side(topic.as_bytes()).map(|side| (side, partition));
            let partitions = list
                .elements()
                .iter()
                .filter_map(|e| of(e.topic(), e.partition()))
                .collect();
            return self.push(Note::Assigned(partitions));
        }
        self.push(Note::Revoked);
        if self.closing.load(Ordering::Acquire) {
            // Nobody is left to order it.
            if let Err(error) = consumer.unassign() {
                tracing::debug!(%error, "could not give partitions back while closing");
            }
        }
    }
}

pub(super) type Client = BaseConsumer<Notes>;

pub struct Consumer {
    // Dropped first, in this order: the queue belongs to the client.
    queue: Queue,
    questions: Option<Sender<Question>>,
    prober: Option<std::thread::JoinHandle<()>>,
    client: Arc<Client>,
    answers: Receiver<Answer>,
    topics: Topics,
    messages: Vec<*mut rd_kafka_message_s>,
}

// SAFETY: librdkafka's objects may be used from any thread; `messages` is empty between calls.
unsafe impl Send for Consumer {}

impl Consumer {
    /// A consumer that asks and subscribes once it is ordered to. Brokers need not be there yet.
    pub fn new(kafka: &config::Kafka) -> anyhow::Result<Consumer> {
        let topics = Topics::new(kafka);
        let mut config = client::base_config(kafka);
        config
            .set("group.id", &kafka.group_id)
            .set("partition.assignment.strategy", "range")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("check.crcs", "true");
        // What the operator may set otherwise. A consumer that keeps up must not wait a second for its queue to drain.
        for (name, value) in [
            ("isolation.level", "read_committed"),
            ("fetch.queue.backoff.ms", "10"),
            ("fetch.wait.max.ms", "100"),
        ] {
            if !kafka.properties.0.contains_key(name) {
                config.set(name, value);
            }
        }
        let notes = Notes {
            topics: topics.clone(),
            notes: Mutex::new(VecDeque::new()),
            closing: AtomicBool::new(false),
        };
        let client: Arc<Client> = Arc::new(config.create_with_context(notes).map_err(explain_refusal)?);
        let queue = Queue::new(&client);
        let (questions, asked) = channel();
        let (reply, answers) = channel();
        let prober = probe::start(Arc::clone(&client), topics.clone(), config, asked, reply)?;
        Ok(Consumer {
            queue,
            questions: Some(questions),
            prober: Some(prober),
            client,
            answers,
            topics,
            messages: Vec::with_capacity(BATCH),
        })
    }

    /// Hands everything that has come to `take`; gathers records for at most `wait`. Says whether any came.
    pub fn poll(&mut self, wait: Duration, mut take: impl FnMut(Input)) -> bool {
        while let Ok(answer) = self.answers.try_recv() {
            take(Input::Answer(answer));
        }
        // Rebalances and errors come through the main queue; records do not.
        if let Some(Err(error)) = self.client.poll(Duration::ZERO) {
            take(Input::Fault(client::fault(&error, "")));
        }
        let mut rebalanced = false;
        while let Some(note) = self.client.context().pop() {
            rebalanced |= !matches!(note, Note::Error(..));
            take(match note {
                Note::Assigned(partitions) => Input::Assigned(partitions),
                Note::Revoked => Input::Revoked,
                Note::Error(error, reason) => Input::Fault(client::fault(&error, &reason)),
            });
        }
        if rebalanced {
            return true; // Orders come first.
        }
        // It returns once a batch is full, or with what came in that time: many small batches would cost more than they
        // carry.
        let n = self.queue.consume(wait, &mut self.messages);
        for message in self.messages.drain(..) {
            let message = Message(message);
            if let Some(input) = message.input(&self.topics) {
                take(input);
            }
        }
        n > 0
    }

    fn assign(&mut self, starts: &[(TopicPartition, i64)]) -> anyhow::Result<()> {
        let list = self.topics.offsets(starts)?;
        // Before, so that no record takes the main queue, where nobody expects it.
        self.forward(starts)?;
        self.client.assign(&list).context("assign partitions")?;
        // After, for those that were being read: librdkafka stops them first, which ends their forwarding, on the
        // thread that then answers this question. What has come since waits in the partition's own queue.
        self.client
            .assignment()
            .context("wait until the former assignment has stopped")?;
        self.forward(starts)?;
        // To librdkafka a partition that was paused stays so, whoever it is assigned to meanwhile.
        self.client.resume(&list).context("resume all partitions")
    }

    fn forward(&mut self, starts: &[(TopicPartition, i64)]) -> anyhow::Result<()> {
        for ((side, partition), _) in starts {
            self.queue
                .forward(&self.client, self.topics.name(*side), *partition)?;
        }
        Ok(())
    }

    /// Carries out an order. What fails is told in words; the client goes on trying by itself.
    ///
    /// # Errors
    /// Where librdkafka refuses the call.
    pub fn execute(&mut self, order: Order) -> anyhow::Result<()> {
        match order {
            Order::Subscribe => {
                let names = [self.topics.served.as_str(), self.topics.clicks.as_str()];
                let n = if names[0] == names[1] { 1 } else { 2 };
                self.client
                    .subscribe(&names[..n])
                    .context("subscribe to the topics")?;
            }
            Order::Assign(starts) => self.assign(&starts)?,
            Order::Unassign => self.client.unassign().context("give partitions back")?,
            Order::Pause(partition) => {
                self.client
                    .pause(&self.topics.partitions([&partition]))
                    .context("pause a partition")?;
            }
            Order::Resume(partition) => {
                self.client
                    .resume(&self.topics.partitions([&partition]))
                    .context("resume a partition")?;
            }
            Order::Commit(positions) => {
                let list = self.topics.offsets(&positions)?;
                self.client
                    .commit(&list, CommitMode::Async)
                    .context("commit read positions")?;
            }
            Order::Ask(question) => {
                if let Some(questions) = &self.questions {
                    questions
                        .send(question)
                        .context("ask the brokers in the background")?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Consumer {
    /// Leaves the group, unless it is a static member: librdkafka knows.
    fn drop(&mut self) {
        self.questions = None;
        if let Some(prober) = self.prober.take() {
            // It may be waiting for a broker, at most as long as its own deadline.
            if prober.join().is_err() {
                tracing::error!("the thread that asks the brokers panicked");
            }
        }
        self.queue.release(&self.client);
        self.client.context().closing.store(true, Ordering::Release);
    }
}

/// Our own queue, which those of partitions are forwarded to.
struct Queue {
    queue: *mut rd_kafka_queue_s,
    forwarded: Vec<(CString, i32)>,
}

impl Queue {
    fn new(client: &Client) -> Queue {
        // SAFETY: the client outlives its queue, see `Consumer`.
        let queue = unsafe { rd_kafka_queue_new(client.client().native_ptr()) };
        Queue {
            queue,
            forwarded: Vec::new(),
        }
    }

    /// Leads the records of a partition here, until it stops being read.
    fn forward(&mut self, client: &Client, topic: &str, partition: i32) -> anyhow::Result<()> {
        let topic = CString::new(topic).context("a topic's name holds a NUL")?;
        redirect(client, &topic, partition, self.queue);
        if !self
            .forwarded
            .iter()
            .any(|(name, number)| *name == topic && *number == partition)
        {
            self.forwarded.push((topic, partition));
        }
        Ok(())
    }

    /// Takes what is there, or waits up to `wait` for it.
    fn consume(&mut self, wait: Duration, messages: &mut Vec<*mut rd_kafka_message_s>) -> usize {
        debug_assert!(messages.is_empty());
        // SAFETY: the queue is alive, `messages` has room for `BATCH`, and librdkafka tells how many it wrote.
        unsafe {
            let n = rd_kafka_consume_batch_queue(
                self.queue,
                wait.as_millis() as i32,
                messages.as_mut_ptr(),
                messages.capacity().min(BATCH),
            );
            let n = usize::try_from(n).unwrap_or(0);
            messages.set_len(n);
            n
        }
    }

    /// Ends the forwarding and gives the queue back.
    fn release(&mut self, client: &Client) {
        for (topic, partition) in self.forwarded.drain(..) {
            redirect(client, &topic, partition, ptr::null_mut());
        }
        if !self.queue.is_null() {
            // SAFETY: nothing is forwarded here any more, and it is destroyed once.
            unsafe { rd_kafka_queue_destroy(self.queue) };
            self.queue = ptr::null_mut();
        }
    }
}

fn redirect(client: &Client, topic: &CStr, partition: i32, to: *mut rd_kafka_queue_s) {
    // SAFETY: client, name and target are alive; the reference to the partition's queue is given back at once.
    unsafe {
        let from = rd_kafka_queue_get_partition(client.client().native_ptr(), topic.as_ptr(), partition);
        if !from.is_null() {
            rd_kafka_queue_forward(from, to);
            rd_kafka_queue_destroy(from);
        }
    }
}

/// One message of the batch; given back when dropped.
struct Message(*mut rd_kafka_message_s);

impl Message {
    fn input<'a>(&'a self, topics: &Topics) -> Option<Input<'a>> {
        // SAFETY: librdkafka handed this message to us alone; its fields are valid until it is destroyed in `drop`,
        // which the lifetime of the input does not outlive.
        let message = unsafe { &*self.0 };
        let name = if message.rkt.is_null() {
            c""
        } else {
            // SAFETY: the topic lives at least as long as the message.
            unsafe { CStr::from_ptr(rd_kafka_topic_name(message.rkt)) }
        };
        let side = topics.side(name.to_bytes());
        if message.err != rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return self.error(message.err, side.map(|side| (side, message.partition)));
        }
        let mut kind = rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is alive.
        let timestamp_ms = unsafe { rd_kafka_message_timestamp(self.0, &mut kind) };
        Some(Input::Record(Record {
            side: side?,
            partition: message.partition,
            offset: message.offset,
            timestamp_ms: if timestamp_ms < 0 { i64::MAX } else { timestamp_ms },
            key: bytes(message.key, message.key_len),
            payload: bytes(message.payload, message.len),
        }))
    }

    fn error(&self, code: rd_kafka_resp_err_t, partition: Option<TopicPartition>) -> Option<Input<'static>> {
        let code = RDKafkaErrorCode::from(code);
        if let (RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange, Some(partition)) =
            (code, partition)
        {
            return Some(Input::OffsetLost(partition));
        }
        // SAFETY: the message is alive, and its error text with it.
        let text = unsafe { CStr::from_ptr(rd_kafka_message_errstr(self.0)) };
        let error = KafkaError::MessageConsumption(code);
        Some(Input::Fault(client::fault(&error, &text.to_string_lossy())))
    }
}

fn bytes<'a>(start: *mut std::ffi::c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: librdkafka gives a valid range of the message, or null; the caller bounds the lifetime by the message.
    (!start.is_null()).then(|| unsafe { slice::from_raw_parts(start.cast::<u8>(), len) })
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: ours, and destroyed once.
        unsafe { rd_kafka_message_destroy(self.0) };
    }
}

#[cfg(test)]
mod tests;
