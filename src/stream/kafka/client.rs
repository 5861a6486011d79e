//! Common parts of all clients: properties, log lines, and errors with advice.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::settings;
use crate::stream::{BatchDamage, Fault, FaultKind};

/// Returns the configuration that all clients start from: the brokers and the operator's own properties.
pub fn base_config(kafka: &settings::Kafka) -> ClientConfig {
    let mut client = ClientConfig::new();
    client
        .set("bootstrap.servers", &kafka.brokers)
        .set("client.id", "abgauge");
    // Set last, so that the operator can override the others.
    for (name, value) in &kafka.properties.0 {
        client.set(name, value);
    }
    client.set_log_level(RDKafkaLogLevel::Warning);
    client
}

/// Sets properties that the operator has not set.
pub fn set_defaults<'a, V: Into<String>>(
    client: &mut ClientConfig,
    kafka: &settings::Kafka,
    defaults: impl IntoIterator<Item = (&'a str, V)>,
) {
    for (name, value) in defaults {
        if !kafka.properties.0.contains_key(name) {
            client.set(name, value);
        }
    }
}

/// Logs librdkafka's lines at a low level. Whatever matters also reaches abgauge as an error.
pub fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Debug | RDKafkaLogLevel::Info | RDKafkaLogLevel::Notice => {
            tracing::trace!(target: "librdkafka", facility, "{message}");
        }
        _ => tracing::debug!(target: "librdkafka", facility, "{message}"),
    }
}

/// Context of a client whose errors another client already reports. By default each would be logged as an error.
pub struct SilentContext;

impl ClientContext for SilentContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "a client that others speak for");
    }
}

impl ConsumerContext for SilentContext {}

/// Recognizes librdkafka's message about a response that is larger than its limit.
pub(super) fn too_large(reason: &str) -> Option<BatchDamage> {
    if !reason.contains("receive.message.max.bytes") {
        return None;
    }
    // The size is only used in messages, so it may be missing.
    let (_, after) = reason.split_once("Invalid response size ").unwrap_or_default();
    let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
    Some(BatchDamage::TooLarge {
        bytes: after[..n_digits].parse().ok(),
    })
}

/// Refreshes the leaders of a topic's partitions if an error shows that the client's metadata is outdated. After the death of a
/// broker the client might not do so for minutes, because it takes a topic with a request under way as already refreshed.
pub fn look_for_leaders<C: ConsumerContext>(
    client: &BaseConsumer<C>,
    topic: &str,
    error: &KafkaError,
    within: Duration,
) {
    let is_of_leaders = matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::NotLeaderForPartition
                | RDKafkaErrorCode::FencedLeaderEpoch
                | RDKafkaErrorCode::UnknownLeaderEpoch
        )
    );
    if is_of_leaders && let Err(error) = client.fetch_metadata(Some(topic), within) {
        tracing::debug!(%error, topic, "the brokers do not report the leaders of its partitions");
    }
}

/// Describes an error of the client and what to do about it.
pub fn fault(error: &KafkaError, reason: &str) -> Fault {
    let code = error.rdkafka_error_code();
    let detail = match code {
        Some(code) if reason.is_empty() => code.to_string(),
        _ if reason.is_empty() => error.to_string(),
        _ => reason.to_owned(),
    };
    let message = match code {
        _ if too_large(&detail).is_some() => format!(
            "an answer of the brokers is larger than kafka.properties.\"receive.message.max.bytes\" allows ({detail}): raise it; meanwhile trying to find the partition"
        ),
        Some(RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SaslAuthenticationFailed) => format!(
            "the brokers refuse the credentials ({detail}): check kafka.properties.\"sasl.mechanism\", \
             \"sasl.username\" and \"sasl.password\" (or its file under kafka.property_files)"
        ),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => format!(
            "no permission to read a topic ({detail}): grant the user READ and DESCRIBE on kafka.served_topic and \
             kafka.clicks_topic"
        ),
        Some(RDKafkaErrorCode::GroupAuthorizationFailed) => {
            format!(
                "no permission for the consumer group ({detail}): grant the user READ on the group kafka.group_id"
            )
        }
        Some(RDKafkaErrorCode::UnknownTopicOrPartition) => {
            format!(
                "a topic does not exist ({detail}): create it, or correct kafka.served_topic and kafka.clicks_topic"
            )
        }
        // These errors come from the client, not from the brokers.
        Some(RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownPartition) => format!(
            "the brokers have not reported the place of a partition yet ({detail}): trying again; if this persists, check whether the topic was recreated with fewer partitions"
        ),
        Some(RDKafkaErrorCode::Resolve) => {
            format!("a broker's name cannot be resolved ({detail}): check kafka.brokers")
        }
        Some(RDKafkaErrorCode::SSL) => {
            let TlsFault { what, remedy } = TlsFault::of(&detail);
            format!("{what} ({detail}): {remedy}")
        }
        Some(
            RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::BrokerNotAvailable,
        ) => format!(
            "the brokers do not answer ({detail}): check kafka.brokers and that they run; trying again"
        ),
        _ => detail,
    };
    Fault {
        message,
        kind: code.map_or(FaultKind::Refusal, kind),
    }
}

/// Explanation of a TLS failure, as far as librdkafka's message reveals it.
pub(super) struct TlsFault {
    pub what: &'static str,
    pub remedy: &'static str,
}

impl TlsFault {
    pub fn of(detail: &str) -> TlsFault {
        if is_about_our_certificate(detail) {
            return TlsFault {
                what: "the brokers require a client certificate, or refuse it",
                remedy: "set kafka.properties.\"ssl.certificate.location\" and \"ssl.key.location\" to a certificate that their authority has signed and that has not expired",
            };
        }
        if detail.contains("verify") {
            // librdkafka does not report the reason.
            return TlsFault {
                what: "the brokers' certificate is refused",
                remedy: "kafka.properties.\"ssl.ca.location\" must name the authority that signed it, it must be for the \
                         host in kafka.brokers, and it must not have expired; `openssl s_client -connect HOST:PORT -verify_hostname HOST -CAfile FILE` shows which of these it is",
            };
        }
        TlsFault {
            what: "TLS with the brokers failed",
            remedy: "check kafka.properties.\"security.protocol\" and \"ssl.ca.location\"",
        }
    }
}

/// Finds a refused client certificate in librdkafka's log. Brokers refuse it only after the handshake, and then librdkafka just
/// logs it like a lost connection.
pub(super) fn refused_certificate(facility: &str, message: &str) -> Option<String> {
    let message = message
        .split_once("]: ")
        .map_or(message, |(_thread, message)| message);
    (facility == "FAIL" && is_about_our_certificate(message)).then(|| message.to_owned())
}

fn is_about_our_certificate(detail: &str) -> bool {
    let is_alert = detail.contains("alert") && detail.contains("certificate");
    is_alert || detail.contains("client SSL authentication might be required")
}

fn kind(code: RDKafkaErrorCode) -> FaultKind {
    match code {
        RDKafkaErrorCode::AllBrokersDown
        | RDKafkaErrorCode::BrokerTransportFailure
        | RDKafkaErrorCode::OperationTimedOut
        | RDKafkaErrorCode::BrokerNotAvailable
        | RDKafkaErrorCode::UnknownTopic
        | RDKafkaErrorCode::UnknownPartition => FaultKind::Silence,
        RDKafkaErrorCode::Authentication
        | RDKafkaErrorCode::SaslAuthenticationFailed
        | RDKafkaErrorCode::Resolve
        | RDKafkaErrorCode::SSL => FaultKind::Barred,
        RDKafkaErrorCode::Fatal => FaultKind::Fatal,
        _ => FaultKind::Refusal,
    }
}
