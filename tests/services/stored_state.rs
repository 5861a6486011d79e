//! Keeper of stored state on real Kafka: it must do the same as on the model.

#[path = "../core/keeper/script.rs"]
mod script;

use std::collections::BTreeMap;

use abgauge::clock::Clock;
use abgauge::settings;
use abgauge::stream::kafka::state_log::StateLog;
use abgauge_core::journal::RecordKey;

use crate::support::kafka::Kafka;

const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

fn log(kafka: &Kafka, topic: &str) -> StateLog {
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), kafka.brokers());
    let config = settings::load(None, [brokers].into_iter()).expect("valid");
    StateLog::start(&config.kafka, topic, script::namespace(), Clock::system()).expect("it starts")
}

/// Returns the keys in a partition.
fn keys(kafka: &Kafka, topic: &str, partition: usize) -> Vec<RecordKey> {
    let mut held = BTreeMap::new();
    for record in kafka.read_all(topic) {
        if record.partition == partition as i32 {
            let key = record.key.expect("all have keys");
            let (_, key) = RecordKey::parse(&key).expect("all are ours");
            held.insert(key, record.payload.is_some());
        }
    }
    let put = held.into_iter().filter(|(_, is_put)| *is_put);
    put.map(|(key, _)| key).collect()
}

#[test]
fn the_script_has_the_same_outcome_as_on_the_model() {
    let kafka = Kafka::shared();
    let topic = kafka.unique("state");
    kafka.create_topic(&topic, 2, &SETTINGS);
    let reported = script::run(
        || log(&kafka, &topic),
        |partition| keys(&kafka, &topic, partition),
    );
    assert_eq!(reported, script::OUTCOME);
}

#[test]
fn an_owner_rewrites_a_lost_topic() {
    let kafka = Kafka::shared();
    let topic = kafka.unique("lost");
    kafka.create_topic(&topic, 2, &SETTINGS);
    let reported = script::run_while_the_topic_is_lost(
        || log(&kafka, &topic),
        || {
            kafka.delete_topic(&topic);
            kafka.create_topic(&topic, 2, &SETTINGS);
        },
    );
    assert_eq!(reported, script::OUTCOME_OF_LOSS);
}

#[test]
fn a_state_of_many_parts_is_sealed_and_restored() {
    let kafka = Kafka::shared();
    let topic = kafka.unique("much");
    kafka.create_topic(&topic, 2, &SETTINGS);
    let reported = script::run_with_much(|| log(&kafka, &topic));
    assert_eq!(reported, script::OUTCOME_OF_MUCH);
}
