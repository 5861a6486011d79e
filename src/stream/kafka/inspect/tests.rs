//! Tests on librdkafka's embedded cluster, which supports no admin requests. Settings are tested on real Kafka.

use std::sync::atomic::AtomicBool;

use abgauge_core::engine::event::Reason;

use super::*;
use crate::stream::kafka::embedded::Embedded;
use crate::stream::kafka::producer::{Outgoing, Producer};
use crate::stream::keys::{Partitioner, PartitionerVerdict};

fn config(brokers: &str) -> Config {
    let env = [("ABGAUGE_KAFKA__BROKERS".to_owned(), brokers.to_owned())];
    settings::load(None, env.into_iter()).expect("valid")
}

/// Inspects with a short timeout, because the embedded broker ignores one of the requests.
fn look(config: &Config) -> Result<ClusterFacts, Failure> {
    inspect_within(Duration::from_secs(1), config)
}

/// Sends `n` records with the keys `r-0`, `r-1`, …
fn produce(brokers: &str, topic: &str, n: usize, partitioner: &str, payload: &str) {
    let properties = [("partitioner".to_owned(), partitioner.to_owned())].into();
    let producer = Producer::connect(brokers, &settings::Properties(properties), Duration::ZERO).unwrap();
    for n in 0..n {
        let key = format!("r-{n}");
        let record = Outgoing {
            topic,
            partition: None,
            key: key.as_bytes(),
            payload: payload.as_bytes(),
            timestamp_ms: 1_763_596_800_000,
        };
        assert!(producer.send(&record, &AtomicBool::new(false)).unwrap());
    }
    producer.flush(Duration::from_secs(10)).unwrap();
}

#[test]
fn samples_the_last_records_of_every_partition() {
    let embedded = Embedded::start(&["served", "clicks"], 4).unwrap();
    let brokers = embedded.bootstrap();
    // Records before the sample are not read.
    produce(brokers, "served", 1_000, "murmur2_random", "not JSON");
    produce(
        brokers,
        "served",
        1_000,
        "murmur2_random",
        r#"{"request_id":"r","ts":1763596800123,"items":[]}"#,
    );
    produce(
        brokers,
        "clicks",
        200,
        "consistent_random",
        r#"{"request_id":"r","ts":1763596800}"#,
    );
    let facts = look(&config(brokers)).unwrap();

    assert_eq!(facts.brokers.len(), 1);
    assert_eq!(facts.group, Ok(()));
    let served = facts.served.found.unwrap();
    assert_eq!(served.n_partitions.get(), 4);
    let sample = served.sample.unwrap();
    assert_eq!(
        (sample.n_records, sample.keys.verdict()),
        (600, PartitionerVerdict::By(Partitioner::Murmur2))
    );
    assert_eq!(sample.unreadable, [].into());
    let sample = facts.clicks.unwrap().found.unwrap().sample.unwrap();
    assert_eq!(
        (sample.n_records, sample.keys.verdict()),
        (200, PartitionerVerdict::By(Partitioner::Crc32))
    );
    assert_eq!(sample.unreadable, [(Reason::TsSeconds, 200)].into());
}

#[test]
fn a_missing_topic_fails_alone_and_an_empty_one_has_an_empty_sample() {
    let embedded = Embedded::start(&["served"], 2).unwrap();
    let mut config = config(embedded.bootstrap());
    config.kafka.clicks_topic = "served".to_owned();
    config.kafka.dead_letter_topic = Some("letters".to_owned());
    let facts = look(&config).unwrap();
    assert_eq!(facts.served.found.unwrap().sample.unwrap().n_records, 0);
    assert!(facts.clicks.is_none());
    let letters = facts.dead_letters.expect("a topic is set").unwrap_err();
    assert_eq!(letters.trouble, Trouble::NoSuchTopic);
}

#[test]
fn distinguishes_silent_brokers_from_unknown_names() {
    // Port 1 (tcpmux) has no listener.
    let failure = look(&config("127.0.0.1:1")).unwrap_err();
    assert_eq!(failure.trouble, Trouble::Unreachable);
    assert!(failure.detail.contains("127.0.0.1:1"), "{failure:?}");
    // Too long for a DNS name, so no server is asked.
    let failure = look(&config(&format!("{}:9092", "x".repeat(64)))).unwrap_err();
    assert_eq!(failure.trouble, Trouble::Resolve, "{failure:?}");
}

#[test]
fn a_refused_property_is_named_without_its_value() {
    let mut config = config("127.0.0.1:1");
    config
        .kafka
        .properties
        .0
        .insert("security.protocol".to_owned(), "hunter2".to_owned());
    let failure = look(&config).unwrap_err();
    assert_eq!(failure.trouble, Trouble::Property);
    assert!(failure.detail.contains("security.protocol"), "{failure:?}");
    assert!(!failure.detail.contains("hunter2"), "{failure:?}");
}
