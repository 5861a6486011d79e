//! Validation of `[kafka.properties]` by librdkafka, without contacting a broker.

use std::fmt;

use miette::Diagnostic;
use rdkafka::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use thiserror::Error;

use super::client::Quiet;
use super::consumer;
use super::producer::explain_refusal;
use crate::config::{self, files, nearest};

/// Error: no client can be created with these properties. Worded like an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Diagnostic)]
pub struct Refused {
    #[related]
    pub faults: Vec<PropertyError>,
}

/// Error in one property, or in all of them together.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("{setting}: {message}")]
#[diagnostic(help("{remedy}"))]
pub struct PropertyError {
    /// Setting, such as `kafka.properties.sasl.mechanism`.
    pub setting: String,
    /// Message without the value, which may be a secret.
    pub message: String,
    pub remedy: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Kafka client refuses its properties")
    }
}

impl std::error::Error for Refused {}

/// Checks the name and value of each property with librdkafka. If all are valid, creates a client without a broker, so that
/// librdkafka reads the files they name and checks that they fit together.
///
/// # Errors
/// All errors at once.
pub fn judge(kafka: &config::Kafka) -> Result<(), Refused> {
    let mut faults = faults_of_each(&kafka.properties, |name| format!("kafka.properties.{name}"));
    if faults.is_empty() {
        faults.extend(fault_of_all(kafka));
    }
    refuse(faults)
}

/// Checks properties given as flags, each separately.
///
/// # Errors
/// All errors at once.
pub fn judge_flags(properties: &config::Properties) -> Result<(), Refused> {
    refuse(faults_of_each(properties, |name| format!("--property {name}")))
}

fn refuse(faults: Vec<PropertyError>) -> Result<(), Refused> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Refused { faults }),
    }
}

fn faults_of_each(properties: &config::Properties, setting: impl Fn(&str) -> String) -> Vec<PropertyError> {
    let fault = |(name, value): (&String, &String)| fault_of(setting(name), name, value);
    properties.0.iter().filter_map(fault).collect()
}

fn fault_of(setting: String, name: &str, value: &str) -> Option<PropertyError> {
    if let Some(why) = why_no_file(name, value) {
        return Some(PropertyError {
            setting,
            message: format!("the file that it names cannot be used: {why}"),
            remedy: "name a file that abgauge's user may read".to_owned(),
        });
    }
    let error = ClientConfig::new()
        .set(name, value)
        .create_native_config()
        .err()?;
    let is_unknown = matches!(
        error,
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)
    );
    let (message, remedy) = match (is_unknown, nearest(name, USUAL)) {
        (true, Some(near)) => (UNKNOWN.to_owned(), format!("did you mean {near}?")),
        (true, None) => (UNKNOWN.to_owned(), LOOK.to_owned()),
        (false, _) => (reason(error), LOOK.to_owned()),
    };
    Some(PropertyError {
        setting,
        message,
        remedy,
    })
}

/// Returns why librdkafka would block forever when opening this file.
fn why_no_file(name: &str, value: &str) -> Option<&'static str> {
    let found = std::fs::metadata(value)
        .ok()
        .filter(|_| name.ends_with(".location"))?;
    // Certificate authorities may be in a directory.
    files::why_no_file(&found).filter(|_| !found.is_dir())
}

fn fault_of_all(kafka: &config::Kafka) -> Option<PropertyError> {
    let mut config = consumer::client_config(kafka, 1);
    config.remove("bootstrap.servers");
    let made: Result<BaseConsumer<Quiet>, _> = config.create_with_context(Quiet);
    made.err().map(|error| PropertyError {
        setting: "kafka.properties".to_owned(),
        message: reason(error),
        remedy:
            "correct what it names: a file that abgauge's user can read, or properties that fit each other"
                .to_owned(),
    })
}

/// Returns librdkafka's message without the value.
fn reason(error: KafkaError) -> String {
    match error {
        KafkaError::ClientCreation(reason) => reason,
        error => {
            let text = format!("{:#}", explain_refusal(error));
            let (reason, _) = text.split_once('\n').unwrap_or((&text, ""));
            reason.to_owned()
        }
    }
}

const UNKNOWN: &str = "librdkafka has no such property";
const LOOK: &str = "look up names and values in librdkafka's CONFIGURATION.md";

/// Properties that operators usually set, to suggest one for an unknown name.
const USUAL: [&str; 47] = [
    "broker.address.family",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.codec",
    "compression.type",
    "connections.max.idle.ms",
    "debug",
    "fetch.error.backoff.ms",
    "fetch.max.bytes",
    "fetch.message.max.bytes",
    "fetch.min.bytes",
    "fetch.queue.backoff.ms",
    "fetch.wait.max.ms",
    "group.instance.id",
    "heartbeat.interval.ms",
    "isolation.level",
    "linger.ms",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "message.max.bytes",
    "metadata.max.age.ms",
    "queue.buffering.max.messages",
    "queued.max.messages.kbytes",
    "queued.min.messages",
    "receive.message.max.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "session.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(properties: &[(&str, &str)]) -> Vec<PropertyError> {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let mut kafka = config::load(None, [brokers].into_iter()).expect("valid").kafka;
        kafka.properties.0 = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        judge(&kafka).map_or_else(|refused| refused.faults, |()| Vec::new())
    }

    #[test]
    fn every_usual_property_is_one() {
        for name in USUAL {
            let fault = fault_of(String::new(), name, "some value");
            assert!(fault.is_none_or(|fault| fault.message != UNKNOWN), "{name}");
        }
    }

    #[test]
    fn a_misspelt_name_is_refused_with_the_right_one() {
        let faults = judged(&[("sasl.mechansim", "PLAIN"), ("zzz", "1"), ("client.rack", "a")]);
        let [misspelt, strange] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        assert_eq!(
            misspelt.to_string(),
            "kafka.properties.sasl.mechansim: librdkafka has no such property"
        );
        assert_eq!(misspelt.remedy, "did you mean sasl.mechanism?");
        assert_eq!(
            (&*strange.setting, &*strange.remedy),
            ("kafka.properties.zzz", LOOK)
        );
    }

    #[test]
    fn a_value_out_of_range_is_refused_and_not_shown() {
        for (name, value) in [
            ("security.protocol", "hunter2"),
            ("fetch.wait.max.ms", "987654321"),
        ] {
            let faults = judged(&[(name, value)]);
            let [fault] = faults.as_slice() else {
                panic!("{faults:?}");
            };
            assert_eq!(fault.setting, format!("kafka.properties.{name}"));
            assert!(!format!("{fault:?}").contains(value), "{fault:?}");
        }
    }

    #[test]
    fn what_fits_alone_must_fit_the_rest_and_its_files_be_there() {
        assert_eq!(judged(&[("session.timeout.ms", "30000")]), []);
        for (properties, told) in [
            (
                &[
                    ("session.timeout.ms", "400000"),
                    ("max.poll.interval.ms", "300000"),
                ][..],
                "session.timeout.ms",
            ),
            (
                &[
                    ("security.protocol", "SSL"),
                    ("ssl.ca.location", "/no/such/ca.crt"),
                ],
                "ssl.ca.location",
            ),
        ] {
            let faults = judged(properties);
            let [fault] = faults.as_slice() else {
                panic!("{faults:?}");
            };
            assert!(fault.message.contains(told), "{fault:?}");
        }
    }
}
