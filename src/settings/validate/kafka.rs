//! `[kafka]`: where the records come from.

use toml::Spanned;

use super::values::choice;
use crate::settings::error::{ErrorReport, Location};
use crate::settings::raw::RawKafka;
use crate::settings::{Kafka, Start, TopicKey, properties};

pub(super) fn kafka(raw: RawKafka, report: &mut ErrorReport) -> Kafka {
    raw.check("kafka", report);
    let served_topic = topic("kafka.served_topic", &raw.served_topic, report);
    let clicks_topic = topic("kafka.clicks_topic", &raw.clicks_topic, report);
    let dead_letter_topic = raw.dead_letter_topic.map(|name| {
        if [&served_topic, &clicks_topic].contains(&name.get_ref()) {
            let remedy = "write another topic: unreadable records would be read again";
            report.refuse(
                "kafka.dead_letter_topic",
                &name,
                "is a topic that abgauge reads",
                remedy,
            );
        }
        topic("kafka.dead_letter_topic", &name, report)
    });
    if raw.group_id.get_ref().trim().is_empty() {
        let remedy = "write a name, such as \"abgauge\"";
        report.refuse("kafka.group_id", &raw.group_id, "is empty", remedy);
    }
    Kafka {
        brokers: brokers(raw.brokers.as_ref(), report),
        served_topic,
        clicks_topic,
        group_id: raw.group_id.get_ref().trim().to_owned(),
        key: choice("kafka.key", &raw.key, &TopicKey::ALL, report).unwrap_or(TopicKey::Request),
        start: choice("kafka.start", &raw.start, &Start::ALL, report).unwrap_or(Start::Rebuild),
        dead_letter_topic,
        dead_letter_payload: *raw.dead_letter_payload.get_ref(),
        properties: properties::collect(raw.properties, &raw.property_files, report),
    }
}

fn brokers(brokers: Option<&Spanned<String>>, report: &mut ErrorReport) -> String {
    const KEY: &str = "kafka.brokers";
    let Some(brokers) = brokers else {
        // A value that could not be read was reported before, and is not missing.
        if report.is_sound(KEY) {
            let remedy = "write brokers = \"host:9092\" under [kafka], or set ABGAUGE_KAFKA__BROKERS";
            report.refuse_at(KEY, Location::Nowhere, "is missing", remedy);
        }
        return String::new();
    };
    if let Err((fault, remedy)) = brokers_of(brokers.get_ref()) {
        report.refuse(KEY, brokers, fault, remedy);
    }
    brokers.get_ref().clone()
}

const BROKERS_REMEDY: &str =
    "write HOST:PORT, several separated by commas, such as \"kafka-1:9092,kafka-2:9092\"";

const NO_USER_REMEDY: &str = "write only HOST:PORT; the user belongs in kafka.properties.\"sasl.username\", and the password in a file, named by kafka.property_files.\"sasl.password\"";

const BRACKETS_REMEDY: &str = "write HOST:PORT, separated by commas; put an IPv6 address in brackets, such as \
                               \"[::1]:9092\"";

const NO_HTTP_REMEDY: &str = "brokers speak Kafka's own protocol, mostly at port 9092: write HOST:PORT of a listener; a REST \
                              proxy, a schema registry or a Kafka console does not";

/// Schemes of a listener, which librdkafka would compare with `security.protocol`.
const LISTENERS: [&str; 4] = ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"];

/// Checks a list of brokers; the error has the problem and the remedy.
fn brokers_of(text: &str) -> Result<(), (String, String)> {
    let wrong = |fault: String| Err((fault, BROKERS_REMEDY.to_owned()));
    if text.contains('@') {
        // It may contain a password, so it is not repeated.
        let fault = "names a user before an @, which brokers do not accept".to_owned();
        return Err((fault, NO_USER_REMEDY.to_owned()));
    }
    if text.contains(';') {
        return wrong("has a semicolon between brokers".to_owned());
    }
    for broker in text.split(',').map(str::trim) {
        let (scheme, broker) = match broker.split_once("://") {
            Some((scheme, rest)) => (scheme.to_lowercase(), rest),
            None => (LISTENERS[0].to_owned(), broker),
        };
        if ["http", "https"].contains(&&*scheme) {
            let fault = format!("{scheme}://{broker} is an HTTP address");
            return Err((fault, NO_HTTP_REMEDY.to_owned()));
        } else if !LISTENERS.contains(&&*scheme) {
            return wrong(format!("\"{scheme}://\" cannot start the address of a broker"));
        }
        // Without a port librdkafka takes 9092; an IPv6 address has colons inside its brackets.
        let (host, port) = match broker.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (broker, "9092"),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return wrong(format!("\"{broker}\" has no host"));
        } else if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            let fault = format!("\"{broker}\" has more than one colon");
            return Err((fault, BRACKETS_REMEDY.to_owned()));
        } else if !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return wrong(format!("\"{port}\" is not a port"));
        }
    }
    Ok(())
}

/// Parses the brokers of a flag.
///
/// # Errors
/// What to write instead.
pub fn parse_brokers(text: &str) -> Result<String, String> {
    match brokers_of(text) {
        Ok(()) => Ok(text.to_owned()),
        Err((fault, remedy)) => Err(format!("{fault}: {remedy}")),
    }
}

/// Parses the name of a topic in a flag.
///
/// # Errors
/// What to write instead.
pub fn parse_topic(text: &str) -> Result<String, String> {
    match is_topic(text) {
        true => Ok(text.to_owned()),
        false => Err(TOPIC_REMEDY.to_owned()),
    }
}

/// Checks a name by Kafka's own rule, which also excludes `^`: librdkafka would read such a name as a pattern.
pub(super) fn topic(key: &str, name: &Spanned<String>, report: &mut ErrorReport) -> String {
    let text = name.get_ref();
    if text.is_empty() {
        report.refuse(key, name, "is empty", "write the name of a topic");
    } else if !is_topic(text) {
        report.refuse(key, name, "is not the name of a topic", TOPIC_REMEDY);
    }
    text.clone()
}

const TOPIC_REMEDY: &str = "write 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`";

fn is_topic(text: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=249).contains(&text.len()) && text != "." && text != ".." && text.chars().all(is_legal)
}
