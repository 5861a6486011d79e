//! Validation of `[kafka.properties]` by librdkafka, without contacting a broker.

use std::fmt;

use miette::Diagnostic;
use rdkafka::ClientConfig;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use thiserror::Error;

use super::client::SilentContext;
use super::consumer;
use super::producer::explain_refusal;
use crate::settings::{self, USUAL, files, nearest, shown_name};

/// Error: no client can be created with these properties. Worded like an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Diagnostic)]
pub struct RefusedProperties {
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

impl fmt::Display for RefusedProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Kafka client refuses its properties")
    }
}

impl std::error::Error for RefusedProperties {}

/// Checks the name and value of each property with librdkafka. If all are valid, creates a client without a broker, so that
/// librdkafka reads the files they name and checks that they fit together.
///
/// # Errors
/// All errors at once.
pub fn judge(kafka: &settings::Kafka) -> Result<(), RefusedProperties> {
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
pub fn judge_flags(properties: &settings::Properties) -> Result<(), RefusedProperties> {
    refuse(faults_of_each(properties, |name| format!("--property {name}")))
}

fn refuse(faults: Vec<PropertyError>) -> Result<(), RefusedProperties> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(RefusedProperties { faults }),
    }
}

fn faults_of_each(properties: &settings::Properties, setting: impl Fn(&str) -> String) -> Vec<PropertyError> {
    let fault = |(name, value): (&String, &String)| fault_of(&setting, name, value);
    properties.0.iter().filter_map(fault).collect()
}

fn fault_of(setting: impl Fn(&str) -> String, name: &str, value: &str) -> Option<PropertyError> {
    if let Some(why) = why_no_file(name, value) {
        return Some(PropertyError {
            setting: setting(&shown_name(name)),
            message: format!("the file that it names cannot be used: {why}"),
            remedy: "name a file that abgauge's user may read".to_owned(),
        });
    }
    if !cfg!(feature = "kafka-tls") && needs_tls(name, value) {
        return Some(without_tls(setting(name)));
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
        (true, Some(near)) => (unknown(name), format!("did you mean {near}?")),
        (true, None) => (unknown(name), LOOK.to_owned()),
        (false, _) => (reason(error), LOOK.to_owned()),
    };
    Some(PropertyError {
        // A secret may be in the place of a name.
        setting: if is_unknown {
            setting(&shown_name(name))
        } else {
            setting(name)
        },
        message,
        remedy,
    })
}

/// Returns true if librdkafka has this property or value only with OpenSSL, which the feature `kafka-tls` links.
fn needs_tls(name: &str, value: &str) -> bool {
    let value = value.to_ascii_uppercase();
    match name {
        "security.protocol" => value.contains("SSL"),
        "sasl.mechanism" | "sasl.mechanisms" => value.starts_with("SCRAM-") || value == "OAUTHBEARER",
        _ => ["ssl.", "enable.ssl.", "sasl.oauthbearer."]
            .iter()
            .any(|begin| name.starts_with(begin)),
    }
}

fn without_tls(setting: String) -> PropertyError {
    PropertyError {
        setting,
        message: "needs OpenSSL, but this abgauge was built without it (feature `kafka-tls`)".to_owned(),
        remedy: "install it with all features: cargo install --locked --profile dist --path .".to_owned(),
    }
}

/// Returns why librdkafka would block forever when opening this file.
fn why_no_file(name: &str, value: &str) -> Option<&'static str> {
    let found = std::fs::metadata(value)
        .ok()
        .filter(|_| name.ends_with(".location"))?;
    // Certificate authorities may be in a directory.
    files::why_no_file(&found).filter(|_| !found.is_dir())
}

fn fault_of_all(kafka: &settings::Kafka) -> Option<PropertyError> {
    let mut config = consumer::client_config(kafka, 1);
    // Without an address, the client connects to nothing.
    config.remove("bootstrap.servers");
    let made: Result<BaseConsumer<SilentContext>, _> = config.create_with_context(SilentContext);
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

fn unknown(name: &str) -> String {
    format!("{UNKNOWN}; its name has {} characters", name.chars().count())
}

const LOOK: &str = "look up names and values in librdkafka's CONFIGURATION.md";

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(properties: &[(&str, &str)]) -> Vec<PropertyError> {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let mut kafka = settings::load(None, [brokers].into_iter()).expect("valid").kafka;
        kafka.properties.0 = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        judge(&kafka).map_or_else(|refused| refused.faults, |()| Vec::new())
    }

    #[test]
    fn every_usual_property_is_known() {
        for name in USUAL {
            let fault = fault_of(str::to_owned, name, "some value");
            assert!(
                fault.is_none_or(|fault| !fault.message.starts_with(UNKNOWN)),
                "{name}"
            );
        }
    }

    #[test]
    fn suggests_the_right_name_for_a_misspelled_property() {
        let faults = judged(&[("sasl.mechansim", "PLAIN"), ("zzz", "1"), ("client.rack", "a")]);
        let [misspelt, strange] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        assert_eq!(
            misspelt.to_string(),
            "kafka.properties.sasl.…: librdkafka has no such property; its name has 14 characters"
        );
        assert_eq!(misspelt.remedy, "did you mean sasl.mechanism?");
        assert_eq!(
            (&*strange.setting, &*strange.remedy),
            ("kafka.properties.…", LOOK)
        );
    }

    #[test]
    fn does_not_print_a_secret_in_place_of_a_name() {
        for name in [
            "sasl.password=hunter2",
            "hunter2",
            "sasl.hunter2",
            "hunter2.sasl.password",
        ] {
            let faults = judged(&[(name, "1")]);
            assert_eq!(faults.len(), 1);
            assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
        }
    }

    #[test]
    fn only_tls_scram_and_oauth_need_openssl() {
        for (name, value) in [
            ("security.protocol", "ssl"),
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanism", "SCRAM-SHA-512"),
            ("sasl.mechanisms", "OAUTHBEARER"),
            ("sasl.oauthbearer.method", "oidc"),
            ("ssl.ca.location", "/etc/ca.crt"),
            ("enable.ssl.certificate.verification", "false"),
        ] {
            assert!(needs_tls(name, value), "{name}");
        }
        for (name, value) in [
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.password", "ssl.password"),
            ("client.id", "SSL"),
        ] {
            assert!(!needs_tls(name, value), "{name}");
        }
    }

    #[cfg(not(feature = "kafka-tls"))]
    #[test]
    fn a_build_without_tls_refuses_it_and_names_the_feature() {
        let faults = judged(&[("security.protocol", "SASL_SSL"), ("sasl.mechanism", "PLAIN")]);
        let [fault] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        assert_eq!(fault.setting, "kafka.properties.security.protocol");
        assert!(fault.message.contains("`kafka-tls`"), "{fault:?}");
        assert!(fault.remedy.contains("cargo install"), "{fault:?}");
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
    fn properties_must_fit_together_and_their_files_must_exist() {
        assert_eq!(judged(&[("session.timeout.ms", "30000")]), []);
        for (properties, reported) in [
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
            assert!(fault.message.contains(reported), "{fault:?}");
        }
    }
}
