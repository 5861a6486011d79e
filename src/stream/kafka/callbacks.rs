//! Notes of librdkafka's callbacks: they wait until the loop takes them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaRespErr;

use super::client;
use super::names::TopicNames;
use crate::stream::TopicPartition;

/// Event of a callback, kept until the loop takes it.
#[derive(Debug)]
pub(super) enum Note {
    Assigned(Vec<TopicPartition>),
    Misassigned(Vec<String>),
    Revoked,
    Error(KafkaError, String),
}

/// Target of librdkafka's callbacks, which only take notes.
pub(super) struct CallbackNotes {
    topics: TopicNames,
    notes: Mutex<VecDeque<Note>>,
    closing: AtomicBool,
}

impl CallbackNotes {
    pub fn new(topics: &TopicNames) -> CallbackNotes {
        CallbackNotes {
            topics: topics.clone(),
            notes: Mutex::new(VecDeque::new()),
            closing: AtomicBool::new(false),
        }
    }

    fn push(&self, note: Note) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(note);
    }

    /// Unassigns revoked partitions without an order from now on, because the loop has ended.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    pub fn pop(&self) -> Option<Note> {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

impl ClientContext for CallbackNotes {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
        if let Some(reason) = client::refused_certificate(facility, message) {
            self.push(Note::Error(KafkaError::Global(RDKafkaErrorCode::SSL), reason));
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.push(Note::Error(error, reason.to_owned()));
    }
}

impl ConsumerContext for CallbackNotes {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, error: RDKafkaRespErr, list: &mut TopicPartitionList) {
        // Only a note is taken here. The loop assigns the partitions once it knows where to start.
        if error == RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            return self.push(sorted(list, &self.topics));
        }
        self.push(Note::Revoked);
        if self.closing.load(Ordering::Acquire) {
            // The loop that would order this has ended.
            if let Err(error) = consumer.unassign() {
                tracing::debug!(%error, "could not give partitions back while closing");
            }
        }
    }
}

/// Client of the consumer group.
pub(super) type Client = BaseConsumer<CallbackNotes>;

/// Sorts assigned partitions: a [`Note`] with them if all are of our topics, or with the other topics.
fn sorted(given: &TopicPartitionList, topics: &TopicNames) -> Note {
    let (mut ours, mut others) = (Vec::new(), BTreeSet::new());
    for element in given.elements() {
        match topics.side(element.topic().as_bytes()) {
            Some(side) => ours.push((side, element.partition())),
            None => _ = others.insert(element.topic().to_owned()),
        }
    }
    if others.is_empty() {
        Note::Assigned(ours)
    } else {
        Note::Misassigned(others.into_iter().collect())
    }
}
