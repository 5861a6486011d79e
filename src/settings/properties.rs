//! Properties of librdkafka, passed through except for those that abgauge's guarantees depend on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, de};
use toml::Spanned;

use super::error::ErrorReport;
use super::{Properties, files};

/// Value of a property as text. No `Debug`, and no error quotes it, because it may be a secret.
#[derive(Serialize)]
pub(super) struct PropertyValue(String);

impl<'de> Deserialize<'de> for PropertyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(PropertyValue(text)),
            toml::Value::Integer(number) => Ok(PropertyValue(number.to_string())),
            toml::Value::Boolean(truth) => Ok(PropertyValue(truth.to_string())),
            other => Err(de::Error::custom(format!(
                "{} is not the value of a property, expected text in quotes, a whole number, true or false",
                kind_of(&other)
            ))),
        }
    }
}

/// Returns the kind of a value without revealing the value.
pub(super) fn kind_of(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) => "a text",
        toml::Value::Integer(_) => "a number",
        toml::Value::Float(_) => "a number with a fraction",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Datetime(_) => "a time",
        toml::Value::Array(_) => "a list",
        toml::Value::Table(_) => "a table",
    }
}

/// Properties that operators set. Messages suggest them for misspelled names, and show them in full.
pub(crate) const USUAL: [&str; 47] = [
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

/// Returns the name of a known property. Of an unknown one, returns the leading parts that a known name shares, and `…`: the
/// name may be a misplaced secret.
pub(crate) fn shown_name(name: &str) -> String {
    let owned = OWNED.iter().map(|(owned, _)| *owned);
    let known: Vec<&str> = owned.chain(USUAL).collect();
    if known.contains(&name) {
        return name.to_owned();
    }
    let ends = name.match_indices('.').map(|(at, _)| &name[..=at]);
    let mut shared = ends.filter(|begin| known.iter().any(|known| known.starts_with(begin)));
    format!("{}…", shared.next_back().unwrap_or_default())
}

/// Returns true if a known property's name has this beginning, up to a dot or its end.
pub(super) fn is_known_prefix(begin: &str) -> bool {
    let inner = format!("{begin}.");
    shown_name(begin) == begin || shown_name(&inner) == format!("{inner}…")
}

/// Properties set by abgauge itself, and the reason or what to use instead.
const OWNED: [(&str, &str); 18] = [
    ("bootstrap.servers", "write `brokers` under [kafka]"),
    ("metadata.broker.list", "write `brokers` under [kafka]"),
    ("group.id", "write `group_id` under [kafka]"),
    (
        "auto.offset.reset",
        "leave it out: a silent reset loses or repeats records; set the start by `start` under [kafka]",
    ),
    ("enable.auto.commit", COMMITS),
    ("auto.commit.enable", COMMITS),
    ("auto.commit.interval.ms", COMMITS),
    ("enable.auto.offset.store", COMMITS),
    ("offset.store.method", COMMITS),
    (
        "enable.partition.eof",
        "leave it out: abgauge needs the end of a partition to detect that it is caught up or idle",
    ),
    ("partition.assignment.strategy", PAIRS),
    ("group.protocol", PAIRS),
    ("group.remote.assignor", PAIRS),
    (
        "check.crcs",
        "leave it out: records are always checked for damage",
    ),
    ("transactional.id", TRANSACTIONS),
    ("transaction.timeout.ms", TRANSACTIONS),
    ("enable.idempotence", TRANSACTIONS),
    ("enable.gapless.guarantee", TRANSACTIONS),
];

const COMMITS: &str = "leave it out: offsets are committed by abgauge once it has counted their records";
const PAIRS: &str =
    "leave it out: only `range` of the classic protocol gives a list and its clicks to the same process";
const TRANSACTIONS: &str = "leave it out: how records are written is decided by abgauge";

/// Returns all properties with their values. Files are read.
pub(super) fn collect(
    values: BTreeMap<String, Spanned<PropertyValue>>,
    files: &BTreeMap<String, Spanned<String>>,
    report: &mut ErrorReport,
) -> Properties {
    for (name, file) in files {
        let key = format!("kafka.property_files.{}", shown_name(name));
        check_name(&key, name, file, report);
        if values.contains_key(name) {
            let remedy = "keep either the value or the file";
            report.refuse(&key, file, "is also under [kafka.properties]", remedy);
        }
    }
    let mut properties = BTreeMap::new();
    for (name, value) in values {
        check_name(
            &format!("kafka.properties.{}", shown_name(&name)),
            &name,
            &value,
            report,
        );
        properties.insert(name, value.into_inner().0);
    }
    for (name, file) in files {
        match read_secret(file.get_ref()) {
            Ok(value) => {
                properties.insert(name.clone(), value);
            }
            // The path is not shown, in case the operator wrote the secret itself there.
            Err(error) => report.refuse(
                &format!("kafka.property_files.{}", shown_name(name)),
                file,
                format!("the file of this value cannot be used: {error}"),
                "write the path of a file that holds the value and nothing else, readable by abgauge's user",
            ),
        }
    }
    Properties(properties)
}

fn check_name<T>(key: &str, name: &str, value: &Spanned<T>, report: &mut ErrorReport) {
    if let Some((_, remedy)) = OWNED.iter().find(|(owned, _)| *owned == name) {
        report.refuse(key, value, "is set by abgauge itself", *remedy);
    }
    if name.split('.').any(str::is_empty) {
        let remedy =
            "write its name in librdkafka's spelling, such as `sasl.username` (SASL_USERNAME in a variable)";
        report.refuse(key, value, "is not the name of a property", remedy);
    }
}

fn read_secret(path: &str) -> io::Result<String> {
    let text = String::from_utf8(files::read(Path::new(path))?);
    let text = text.map_err(|_| io::Error::other("it is not UTF-8"))?;
    // Editors and `echo` end a file with a line break, which is not part of the secret.
    match text.trim() {
        "" => Err(io::Error::other("it is empty")),
        value => Ok(value.to_owned()),
    }
}
