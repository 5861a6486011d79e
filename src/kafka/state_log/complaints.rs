//! What keeps the state topic from being read or written, in words for the operator.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::kafka::client;
use crate::state::Happening;

/// In words of the state topic, where the client's would name the others.
pub(super) fn fault(error: &KafkaError, reason: &str) -> Happening<'static> {
    let remedy = match error.rdkafka_error_code() {
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
            "no permission: grant the user READ, WRITE and DESCRIBE on state.topic"
        }
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition,
        ) => {
            "the state topic, or a partition of it, does not exist: `abgauge check --create-topics` creates it"
        }
        Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
            "a record is too large for the state topic: its max.message.bytes must be 1048576 or more"
        }
        Some(RDKafkaErrorCode::MessageTimedOut) => "the brokers took no record for 5 s; trying again",
        Some(RDKafkaErrorCode::NotEnoughReplicas | RDKafkaErrorCode::NotEnoughReplicasAfterAppend) => {
            "too few replicas of the state topic are in sync; trying again"
        }
        _ => return Happening::Fault(client::fault(error, reason).message),
    };
    let detail = if reason.is_empty() {
        error.to_string()
    } else {
        reason.to_owned()
    };
    Happening::Fault(format!("{remedy} ({detail})"))
}

/// What the client says of itself, until it is taken.
#[derive(Default)]
pub(super) struct Complaints(Mutex<VecDeque<(KafkaError, String)>>);

impl Complaints {
    pub fn pop(&self) -> Option<(KafkaError, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn push(&self, error: KafkaError, reason: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back((error, reason));
    }
}

impl ClientContext for Complaints {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
        if let Some(reason) = client::refused_certificate(facility, message) {
            self.push(KafkaError::Global(RDKafkaErrorCode::SSL), reason);
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.push(error, reason.to_owned());
    }
}

impl ConsumerContext for Complaints {}
