//! Problems with reading or writing the state topic, as text for the operator.

use abgauge_core::journal::{BlockedOperation, Hindrance, LogEvent};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::stream::kafka::client;

/// Reports that the partition cannot be read. The client complains only once, however long it lasts.
pub(super) fn unread(error: &KafkaError, reason: &str, topic: &str) -> LogEvent<'static> {
    if !is_forbidden(error) {
        return fault(error, reason, topic);
    }
    let hindrance = Hindrance {
        message: grant("READ", topic, error),
        is_forbidden: true,
    };
    LogEvent::Hindered(BlockedOperation::Reading, Some(hindrance))
}

/// Reports that a record was not written.
pub(super) fn unwritten(error: &KafkaError, topic: &str) -> LogEvent<'static> {
    let is_forbidden = is_forbidden(error);
    let message = match is_forbidden {
        true => grant("WRITE", topic, error),
        false => explain(error, "", topic),
    };
    let hindrance = Hindrance {
        message,
        is_forbidden,
    };
    LogEvent::Hindered(BlockedOperation::Writing, Some(hindrance))
}

/// Reports any other problem.
pub(super) fn fault(error: &KafkaError, reason: &str, topic: &str) -> LogEvent<'static> {
    LogEvent::Fault {
        message: match is_forbidden(error) {
            true => grant("DESCRIBE", topic, error),
            false => explain(error, reason, topic),
        },
        of_owners: true,
    }
}

fn is_forbidden(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAuthorizationFailed)
}

fn grant(right: &str, topic: &str, error: &KafkaError) -> String {
    format!("no permission: grant the user {right} on topic `{topic}` ({error})")
}

/// Explains an error in terms of the state topic; the client's own text is about the event topics.
fn explain(error: &KafkaError, reason: &str, topic: &str) -> String {
    let remedy = match error.rdkafka_error_code() {
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition,
        ) => "it, or a partition of it, does not exist: `abgauge check --create-topics` creates it",
        Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
            "a record is too large for it: its max.message.bytes must be 1048576 or more"
        }
        Some(RDKafkaErrorCode::MessageTimedOut) => "the brokers took no record for 5 s; trying again",
        Some(RDKafkaErrorCode::NotEnoughReplicas | RDKafkaErrorCode::NotEnoughReplicasAfterAppend) => {
            "too few of its replicas are in sync; trying again"
        }
        _ => return client::fault(error, reason).message,
    };
    let detail = if reason.is_empty() {
        error.to_string()
    } else {
        reason.to_owned()
    };
    format!("`{topic}`: {remedy} ({detail})")
}
