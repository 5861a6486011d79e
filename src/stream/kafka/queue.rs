//! Separate queues that the queues of partitions are forwarded to, and that are read in batches. Taking batches from the queue
//! of a subscribed consumer would swallow rebalances.
//!
//! ```text
//! served 0 ─┐              served 1 ─┐
//! clicks 0 ─┼─▶ queue 0    clicks 1 ─┼─▶ queue 1     (two queues)
//! served 2 ─┘              clicks 3 ─┘
//! ```

use std::ffi::{CStr, CString};
use std::fmt;
use std::ptr;
use std::slice;
use std::sync::Arc;

use abgauge_core::decode::framing::Headers;
use abgauge_core::engine::event::Side;
use anyhow::Context as _;
use rdkafka::bindings::{
    rd_kafka_consume_batch_queue, rd_kafka_header_get_last, rd_kafka_message_destroy,
    rd_kafka_message_errstr, rd_kafka_message_headers, rd_kafka_message_s, rd_kafka_message_timestamp,
    rd_kafka_queue_destroy, rd_kafka_queue_forward, rd_kafka_queue_get_partition, rd_kafka_queue_length,
    rd_kafka_queue_new, rd_kafka_queue_s, rd_kafka_resp_err_t, rd_kafka_timestamp_type_t,
    rd_kafka_topic_name,
};
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::callbacks::Client;
use super::client;
use super::names::TopicNames;
use crate::stream::{BatchDamage, Input, Record, Source, TopicPartition, queue_of};

/// Records taken at a time. Few enough for short rounds of the loop, and more than usually wait in a busy loop.
const BATCH: usize = 1024;
/// Records passed on at a time. Their decoded form fits into the first-level cache.
const SLICE: usize = 256;

/// Queue of records.
pub(super) struct RecordQueue {
    queue: *mut rd_kafka_queue_s,
    /// Keeps the client alive as long as its queue.
    _client: Arc<dyn Send + Sync>,
}

// SAFETY: librdkafka's queues have their own locks and may be used from any thread.
unsafe impl Send for RecordQueue {}
// SAFETY: as above.
unsafe impl Sync for RecordQueue {}

impl RecordQueue {
    pub fn new<C: ConsumerContext + 'static>(client: &Arc<BaseConsumer<C>>) -> RecordQueue {
        RecordQueue {
            // SAFETY: the queue holds the client, so the client outlives it.
            queue: unsafe { rd_kafka_queue_new(client.client().native_ptr()) },
            _client: Arc::clone(client) as Arc<dyn Send + Sync>,
        }
    }

    /// Forwards the records of a partition to this queue, until the partition is unassigned.
    pub fn take_over<C: ConsumerContext>(&self, client: &BaseConsumer<C>, topic: &CStr, partition: i32) {
        redirect(client, topic, partition, self.queue);
    }

    fn len(&self) -> usize {
        // SAFETY: the queue is alive.
        unsafe { rd_kafka_queue_length(self.queue) }
    }

    /// Takes the messages that are waiting.
    fn take(&self) -> Vec<Message> {
        self.take_at_most(BATCH, 0)
    }

    /// Takes the messages that are waiting, or else waits for the first one.
    pub fn wait(&self, wait_ms: u64) -> Vec<Message> {
        // A wait for a whole batch would delay the first records, so it waits for one record only.
        let messages = self.take();
        match messages.is_empty() && wait_ms > 0 {
            true => self.take_at_most(1, i32::try_from(wait_ms).unwrap_or(i32::MAX)),
            false => messages,
        }
    }

    /// Waits for this many messages, or for this long.
    fn take_at_most(&self, n_messages: usize, wait_ms: i32) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::with_capacity(n_messages);
        // SAFETY: a message has the layout of a pointer to it, there is room for `n_messages` of them, librdkafka returns how
        // many it wrote, and they are ours.
        unsafe {
            let into = messages.as_mut_ptr().cast();
            let n = rd_kafka_consume_batch_queue(self.queue, wait_ms, into, n_messages);
            messages.set_len(usize::try_from(n).unwrap_or(0));
        }
        messages
    }
}

impl Drop for RecordQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is ours and destroyed once. Partitions that still forward to it hold their own references.
        unsafe { rd_kafka_queue_destroy(self.queue) };
    }
}

/// Assignment of partitions to queues.
pub(super) struct Forwarding {
    queues: Vec<Arc<RecordQueue>>,
    forwarded: Vec<(CString, i32)>,
}

impl Forwarding {
    /// Creates `n_queues` queues, each with its reader.
    pub fn new(client: &Arc<Client>, topics: &TopicNames, n_queues: usize) -> (Forwarding, Vec<QueueReader>) {
        let queues: Vec<_> = (0..n_queues)
            .map(|_| Arc::new(RecordQueue::new(client)))
            .collect();
        let reader = |queue: &Arc<RecordQueue>| QueueReader {
            queue: Arc::clone(queue),
            topics: topics.clone(),
        };
        let readers = queues.iter().map(reader).collect();
        let forwarding = Forwarding {
            queues,
            forwarded: Vec::new(),
        };
        (forwarding, readers)
    }

    /// Forwards the records of a partition to its queue, until the partition is unassigned.
    pub fn forward(&mut self, client: &Client, topic: &str, partition: i32) -> anyhow::Result<()> {
        let topic = CString::new(topic).context("a topic's name holds a NUL")?;
        let queue = &self.queues[queue_of(partition, self.queues.len())];
        redirect(client, &topic, partition, queue.queue);
        if !self
            .forwarded
            .iter()
            .any(|(name, number)| *name == topic && *number == partition)
        {
            self.forwarded.push((topic, partition));
        }
        Ok(())
    }

    /// Ends forwarding for all partitions.
    pub fn release(&mut self, client: &Client) {
        for (topic, partition) in self.forwarded.drain(..) {
            redirect(client, &topic, partition, ptr::null_mut());
        }
    }
}

fn redirect<C: ConsumerContext>(
    client: &BaseConsumer<C>,
    topic: &CStr,
    partition: i32,
    to: *mut rd_kafka_queue_s,
) {
    // SAFETY: client, name and target are alive. The reference to the partition's queue is returned immediately.
    unsafe {
        let from = rd_kafka_queue_get_partition(client.client().native_ptr(), topic.as_ptr(), partition);
        if !from.is_null() {
            rd_kafka_queue_forward(from, to);
            rd_kafka_queue_destroy(from);
        }
    }
}

/// Reader of a queue.
pub struct QueueReader {
    queue: Arc<RecordQueue>,
    topics: TopicNames,
}

/// Kind of the first message in a queue.
#[derive(Debug, Clone, Copy)]
pub enum First {
    Record,
    /// The end of the log, if the client reports it.
    End,
    Damaged(i64, BatchDamage),
    /// Another error.
    Error,
}

impl QueueReader {
    /// Takes waiting messages of one partition and returns the kind of the first.
    pub fn first(&mut self) -> Option<First> {
        let messages = self.queue.take();
        let first = messages.first()?;
        Some(match (first.code(), first.damage()) {
            (None, _) => First::Record,
            (Some(RDKafkaErrorCode::PartitionEOF), _) => First::End,
            (Some(_), Some(damage)) => First::Damaged(first.fields().offset, damage),
            (Some(_), None) => First::Error,
        })
    }
}

impl Source for QueueReader {
    fn n_waiting(&self) -> usize {
        self.queue.len()
    }

    fn read(&mut self, take: &mut dyn FnMut(&[Record<'_>]), others: &mut Vec<Input>) -> usize {
        let mut messages = self.queue.take().into_iter();
        let mut n_records = 0;
        // Later messages of a partition with an error do not continue where the earlier ones ended.
        let mut broken: Vec<TopicPartition> = Vec::new();
        // The client fetches many records of a partition together, so look up their common properties only once.
        while let Some(run) = first_run(messages.as_slice()) {
            let side = self.topics.side(run[0].topic());
            let is_broken = || {
                broken
                    .iter()
                    .any(|(of, number)| Some(*of) == side && *number == run[0].partition())
            };
            if !broken.is_empty() && is_broken() {
                // Dropped below without being read.
            } else if run[0].is_error() {
                let input = run[0].error(side);
                if let Input::OffsetLost(partition) | Input::Damaged(partition, ..) = input {
                    broken.push(partition);
                }
                others.push(input);
            } else if let Some(side) = side {
                let records: Vec<_> = run.iter().map(|message| message.record(side)).collect();
                take(&records);
                n_records += records.len();
            }
            // Free the records while they are still cached. A whole batch would have left the inner cache.
            let n_done = run.len();
            messages.by_ref().take(n_done).for_each(drop);
        }
        n_records
    }
}

/// Returns the first records of `messages` that are of one partition, up to a slice, or a single error.
fn first_run(messages: &[Message]) -> Option<&[Message]> {
    let slice = &messages[..messages.len().min(SLICE)];
    slice.chunk_by(Message::is_followed_by).next()
}

/// Message of a batch, returned to librdkafka when dropped.
#[repr(transparent)]
pub(super) struct Message(*mut rd_kafka_message_s);

impl Message {
    fn fields(&self) -> &rd_kafka_message_s {
        // SAFETY: librdkafka handed this message to us alone. Its fields are valid until it is destroyed in `drop`.
        unsafe { &*self.0 }
    }

    fn is_error(&self) -> bool {
        self.fields().err != rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
    }

    pub fn code(&self) -> Option<RDKafkaErrorCode> {
        self.is_error().then(|| self.fields().err.into())
    }

    /// Returns the text of an error.
    pub fn reason(&self) -> String {
        // SAFETY: the message is alive, and so is its error text.
        let text = unsafe { CStr::from_ptr(rd_kafka_message_errstr(self.0)) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the offset of a record, or of the end of the log.
    pub fn offset(&self) -> i64 {
        self.fields().offset
    }

    pub fn key(&self) -> Option<&[u8]> {
        self.bytes(self.fields().key, self.fields().key_len)
    }

    pub fn payload(&self) -> Option<&[u8]> {
        self.bytes(self.fields().payload, self.fields().len)
    }

    pub fn partition(&self) -> i32 {
        self.fields().partition
    }

    /// Returns the damage that an error reports, if it is about a batch.
    fn damage(&self) -> Option<BatchDamage> {
        match self.code()? {
            RDKafkaErrorCode::BadMessage
            | RDKafkaErrorCode::NotImplemented
            | RDKafkaErrorCode::InvalidMessage => Some(BatchDamage::Checksum),
            RDKafkaErrorCode::BadCompression => Some(BatchDamage::Compression),
            RDKafkaErrorCode::MessageSizeTooLarge => Some(BatchDamage::TooLarge { bytes: None }),
            _ => None,
        }
    }

    /// Returns whether both are records of one partition, in order. Topics live as long as their messages, so equal pointers
    /// mean equal topics.
    fn is_followed_by(&self, next: &Message) -> bool {
        let (one, other) = (self.fields(), next.fields());
        one.partition == other.partition
            && ptr::eq(one.rkt, other.rkt)
            && one.offset < other.offset
            && !self.is_error()
            && !next.is_error()
    }

    fn topic(&self) -> &[u8] {
        let topic = self.fields().rkt;
        if topic.is_null() {
            return b"";
        }
        // SAFETY: the topic and its name live at least as long as the message.
        unsafe { CStr::from_ptr(rd_kafka_topic_name(topic)) }.to_bytes()
    }

    fn record(&self, side: Side) -> Record<'_> {
        let message = self.fields();
        Record {
            side,
            partition: message.partition,
            offset: message.offset,
            timestamp_ms: self.timestamp_ms().unwrap_or(i64::MAX),
            key: self.key(),
            payload: self.payload(),
            headers: self,
        }
    }

    /// Returns the timestamp, Unix ms, if there is one.
    pub fn timestamp_ms(&self) -> Option<i64> {
        let mut kind = rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is alive.
        let timestamp_ms = unsafe { rd_kafka_message_timestamp(self.0, &mut kind) };
        (timestamp_ms >= 0).then_some(timestamp_ms)
    }

    fn bytes(&self, start: *mut std::ffi::c_void, len: usize) -> Option<&[u8]> {
        // SAFETY: librdkafka returns a valid range of the message, or null.
        (!start.is_null()).then(|| unsafe { slice::from_raw_parts(start.cast::<u8>(), len) })
    }

    fn error(&self, side: Option<Side>) -> Input {
        let code = RDKafkaErrorCode::from(self.fields().err);
        let left_the_log = matches!(
            code,
            RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange
        );
        if let (true, Some(side)) = (left_the_log, side) {
            return Input::OffsetLost((side, self.partition()));
        }
        if let (Some(damage), Some(side)) = (self.damage(), side) {
            return Input::Damaged((side, self.partition()), self.fields().offset, damage);
        }
        let error = KafkaError::MessageConsumption(code);
        Input::Fault(client::fault(&error, &self.reason()))
    }
}

impl Headers for Message {
    fn last(&self, name: &CStr) -> Option<&[u8]> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is alive. It owns its headers, which are parsed by the first call.
        let error = unsafe { rd_kafka_message_headers(self.0, &mut headers) };
        if error != rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        let (mut value, mut len) = (ptr::null(), 0);
        // SAFETY: the headers live as long as the message, and the name ends with a zero byte.
        let error = unsafe { rd_kafka_header_get_last(headers, name.as_ptr(), &mut value, &mut len) };
        match error {
            rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => self.bytes(value.cast_mut(), len),
            _ => None,
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "message at offset {}", self.offset())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the message is ours and destroyed once.
        unsafe { rd_kafka_message_destroy(self.0) };
    }
}
