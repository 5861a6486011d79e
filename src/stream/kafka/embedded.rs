//! Kafka cluster with one broker inside this process: librdkafka's mock cluster, for the demo and for quick tests.
//!
//! Limits: the cluster keeps at most 5 MiB per partition, so a consumer must not fall further behind. It answers every
//! look-up of offsets by time with "none", so reading starts at the earliest offset. It supports no admin requests and ignores
//! isolation levels.

use anyhow::{Context as _, Result};
use rdkafka::bindings::{rd_kafka_handle_mock_cluster, rd_kafka_mock_group_initial_rebalance_delay_ms};
use rdkafka::config::{ClientConfig, FromClientConfig, RDKafkaLogLevel};
use rdkafka::producer::{BaseProducer, Producer as _};

/// Running cluster, which ends when this is dropped.
pub struct Embedded {
    bootstrap: String,
    /// Client that contains the cluster. It sends nothing.
    #[cfg_attr(not(test), expect(dead_code, reason = "its drop ends the cluster"))]
    owner: BaseProducer,
}

impl Embedded {
    /// Starts the broker on a free port of 127.0.0.1, with these topics.
    ///
    /// # Errors
    /// If librdkafka cannot open a port or create a topic.
    pub fn start(topics: &[&str], n_partitions: i32) -> Result<Embedded> {
        let mut config = ClientConfig::new();
        config.set("test.mock.num.brokers", "1");
        // Suppress the warning that this is not a real cluster.
        config.set_log_level(RDKafkaLogLevel::Error);
        let owner = BaseProducer::from_config(&config).context("start the embedded broker")?;
        let bootstrap = create_topics(&owner, topics, n_partitions)?;
        join_groups_at_once(&owner);
        Ok(Embedded { bootstrap, owner })
    }

    /// Returns the address for `bootstrap.servers`. Other programs on this machine can connect, too.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Returns how many records a topic has received.
    #[cfg(test)]
    pub fn n_records(&self, topic: &str, n_partitions: i32) -> Result<u64> {
        let mut n_records = 0;
        for partition in 0..n_partitions {
            let within = std::time::Duration::from_secs(10);
            let (_, end) = self.owner.client().fetch_watermarks(topic, partition, within)?;
            n_records += end as u64;
        }
        Ok(n_records)
    }
}

/// Creates the topics and returns the cluster's address.
fn create_topics(owner: &BaseProducer, topics: &[&str], n_partitions: i32) -> Result<String> {
    let cluster = owner.client().mock_cluster();
    let cluster = cluster.context("librdkafka was built without its embedded broker")?;
    for topic in topics {
        let created = cluster.create_topic(topic, n_partitions, 1);
        created.with_context(|| format!("create topic {topic} on the embedded broker"))?;
    }
    Ok(cluster.bootstrap_servers())
}

/// Removes the initial rebalance delay. Otherwise the first consumer of a group waits 3 s for others.
fn join_groups_at_once(owner: &BaseProducer) {
    // SAFETY: the client outlives both calls. The cluster's pointer is null or valid as long as the client, and the setter
    // takes the cluster's lock. rdkafka has no safe wrapper for it.
    unsafe {
        let cluster = rd_kafka_handle_mock_cluster(owner.client().native_ptr());
        if !cluster.is_null() {
            rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use rdkafka::consumer::{BaseConsumer, Consumer};
    use rdkafka::message::Message;
    use rdkafka::{Offset, TopicPartitionList};

    use super::*;
    use crate::settings::Properties;
    use crate::stream::kafka::producer::{Outgoing, Producer};

    const N_PARTITIONS: i32 = 4;

    fn consumer(bootstrap: &str) -> BaseConsumer {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", bootstrap);
        config.set("group.id", "test");
        config.set("auto.offset.reset", "error");
        config.create().unwrap()
    }

    #[test]
    fn a_click_lands_in_the_partition_of_its_list_with_key_payload_and_timestamp() {
        let embedded = Embedded::start(&["served", "clicks"], N_PARTITIONS).unwrap();
        let linger = Duration::from_millis(2);
        let producer = Producer::connect(embedded.bootstrap(), &Properties::default(), linger).unwrap();
        assert_eq!(producer.n_partitions("served").unwrap(), Some(4));
        assert_eq!(producer.n_partitions("absent").unwrap(), None);
        for n in 0..100_i64 {
            for topic in ["served", "clicks"] {
                let (key, payload) = (format!("r-{n}"), format!("{topic} {n}"));
                let record = Outgoing {
                    topic,
                    partition: None,
                    key: key.as_bytes(),
                    payload: payload.as_bytes(),
                    timestamp_ms: 1_763_596_800_000 + n,
                };
                assert!(producer.send(&record, &AtomicBool::new(false)).unwrap());
            }
        }
        producer.flush(Duration::from_secs(10)).unwrap();

        let consumer = consumer(embedded.bootstrap());
        let mut all = TopicPartitionList::new();
        for partition in 0..N_PARTITIONS {
            for topic in ["served", "clicks"] {
                all.add_partition_offset(topic, partition, Offset::Beginning)
                    .unwrap();
            }
        }
        consumer.assign(&all).unwrap();
        let mut partitions: BTreeMap<Vec<u8>, Vec<i32>> = BTreeMap::new();
        for _ in 0..200 {
            let message = consumer.poll(Duration::from_secs(10)).expect("a record").unwrap();
            let key = String::from_utf8(message.key().unwrap().to_vec()).unwrap();
            let n: i64 = key[2..].parse().unwrap();
            let payload = format!("{} {n}", message.topic());
            assert_eq!(message.payload(), Some(payload.as_bytes()));
            assert_eq!(message.timestamp().to_millis(), Some(1_763_596_800_000 + n));
            partitions
                .entry(key.into_bytes())
                .or_default()
                .push(message.partition());
        }
        assert!(
            partitions.values().all(|p| p.len() == 2 && p[0] == p[1]),
            "{partitions:?}"
        );
        let used: std::collections::BTreeSet<_> = partitions.values().map(|p| p[0]).collect();
        assert_eq!(used.len(), 4);
        // Computed with Java's murmur2, independently of this code.
        let first = [0, 1, 2, 3, 4].map(|n| partitions[format!("r-{n}").as_bytes()][0]);
        assert_eq!(first, [3, 3, 3, 0, 1]);
    }

    #[test]
    fn the_first_consumer_of_a_group_does_not_wait_for_others() {
        let embedded = Embedded::start(&["served"], 1).unwrap();
        let consumer = consumer(embedded.bootstrap());
        consumer.subscribe(&["served"]).unwrap();
        let begin = Instant::now();
        while consumer.assignment().unwrap().count() == 0 {
            let _ = consumer.poll(Duration::from_millis(10));
            assert!(begin.elapsed() < Duration::from_millis(2_500), "still waiting");
        }
    }

    #[test]
    fn a_record_that_cannot_be_delivered_is_an_error_that_names_its_topic() {
        let embedded = Embedded::start(&["served"], 1).unwrap();
        let properties = Properties::default();
        let producer = Producer::connect(embedded.bootstrap(), &properties, Duration::ZERO).unwrap();
        let record = Outgoing {
            topic: "served",
            partition: Some(7),
            key: b"k",
            payload: b"p",
            timestamp_ms: 1_763_596_800_000,
        };
        let sent = producer.send(&record, &AtomicBool::new(false));
        let error = sent
            .and_then(|_| producer.flush(Duration::from_secs(10)))
            .unwrap_err();
        assert!(format!("{error:#}").contains("topic served"), "{error:#}");
    }
}
