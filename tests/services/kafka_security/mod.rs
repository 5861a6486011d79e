//! TLS and SASL to real Kafka: what works works end to end, what is refused is named with its setting. No secret is told.

mod refused;
mod secrets;
mod stored;
mod works;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::support::kafka::{Kafka, Options};

const TOPICS: [&str; 2] = ["served", "clicks"];

/// The broker that the tests share.
fn kafka() -> Arc<Kafka> {
    static SHARED: Mutex<Weak<Kafka>> = Mutex::new(Weak::new());
    // A start that failed has left the old value, which is as good as none.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let kafka = Arc::new(Kafka::start_with(Options {
            secured: true,
            encrypted: true,
            ..Options::default()
        }));
        for topic in TOPICS {
            kafka.create_topic(topic, 1, &[("message.timestamp.type", "LogAppendTime")]);
        }
        *shared = Arc::downgrade(&kafka);
        kafka
    })
}

/// Properties of librdkafka.
type Properties = BTreeMap<&'static str, String>;

/// TLS that trusts the brokers' authority.
fn tls(kafka: &Kafka) -> Properties {
    let authority = kafka.encrypted().authority.display().to_string();
    BTreeMap::from([
        ("security.protocol", "SSL".to_owned()),
        ("ssl.ca.location", authority),
    ])
}

/// The same with a name and a password.
fn sasl(kafka: &Kafka, mechanism: &str, (user, password): (&str, &str)) -> Properties {
    let mut properties = tls(kafka);
    properties.extend([
        ("security.protocol", "SASL_SSL".to_owned()),
        ("sasl.mechanism", mechanism.to_owned()),
        ("sasl.username", user.to_owned()),
        ("sasl.password", password.to_owned()),
    ]);
    properties
}

/// The same with a certificate of the client's.
fn mutual(kafka: &Kafka) -> Properties {
    let client = &kafka.encrypted().client;
    let mut properties = tls(kafka);
    properties.insert(
        "ssl.certificate.location",
        client.certificate.display().to_string(),
    );
    properties.insert("ssl.key.location", client.key.display().to_string());
    properties
}

/// What the daemon is told; its spans are so short that a list settles within seconds.
fn config(brokers: &str, group: &str, properties: &Properties) -> String {
    let mut text = format!(
        r#"
        metrics.windows = ["10m"]
        [kafka]
        brokers = "{brokers}"
        group_id = "{group}"
        start = "earliest"
        [kafka.properties]
        "#
    );
    for (name, value) in properties {
        text.push_str(&format!("{name:?} = {value:?}\n"));
    }
    text
}
