//! Two topics with a single writer, the test, so that the record at each offset is known.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;

/// Part of every payload and key, which must never appear in the log.
pub const SECRET: &str = "marker-of-a-secret";

pub struct Feed {
    pub served: String,
    pub clicks: String,
    producer: Producer,
    /// Next offset by topic and partition.
    ends: BTreeMap<(String, i32), i64>,
}

impl Feed {
    /// Creates topics that allow records of 10 MB.
    pub fn new(kafka: &Kafka, n_partitions: i32) -> Feed {
        Feed::with_limit(kafka, n_partitions, "10000000")
    }

    /// Creates topics with this limit for the bytes of a batch.
    pub fn with_limit(kafka: &Kafka, n_partitions: i32, max_bytes: &str) -> Feed {
        let [served, clicks] = ["served", "clicks"].map(|stem| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, n_partitions, &[("max.message.bytes", max_bytes)]);
            name
        });
        Feed {
            served,
            clicks,
            producer: kafka.producer_with(&[("enable.idempotence", "true")]),
            ends: BTreeMap::new(),
        }
    }

    /// Creates one topic for both kinds.
    pub fn in_one_topic(kafka: &Kafka, n_partitions: i32) -> Feed {
        let feed = Feed::new(kafka, n_partitions);
        Feed {
            clicks: feed.served.clone(),
            ..feed
        }
    }

    /// Sends a record and returns its offset.
    #[track_caller]
    pub fn send(&mut self, topic: &str, partition: i32, payload: Option<&[u8]>) -> i64 {
        self.send_keyed(topic, partition, Some(SECRET.as_bytes()), payload)
    }

    /// Like `send`, with another key or none.
    #[track_caller]
    pub fn send_keyed(
        &mut self,
        topic: &str,
        partition: i32,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
    ) -> i64 {
        self.producer.produce(topic, Some(partition), key, payload, None);
        let end = self.ends.entry((topic.to_owned(), partition)).or_default();
        *end += 1;
        *end - 1
    }

    pub fn list(&mut self, partition: i32, list: &Value) -> i64 {
        let topic = self.served.clone();
        self.send(&topic, partition, Some(list.to_string().as_bytes()))
    }

    pub fn click(&mut self, partition: i32, click: &Value) -> i64 {
        let topic = self.clicks.clone();
        self.send(&topic, partition, Some(click.to_string().as_bytes()))
    }

    #[track_caller]
    pub fn flush(&self) {
        self.producer.flush();
    }

    /// Returns the number of records sent to a topic.
    pub fn n_sent(&self, topic: &str) -> f64 {
        let of_topic = self.ends.iter().filter(|((name, _), _)| name == topic);
        of_topic.map(|(_, end)| *end).sum::<i64>() as f64
    }

    /// Starts a daemon in its own group with additional configuration lines `more`, all with dotted keys.
    pub fn daemon(&self, kafka: &Kafka, more: &str) -> Daemon {
        let Feed { served, clicks, .. } = self;
        Daemon::run(&format!(
            r#"
            kafka.brokers = "{}"
            kafka.served_topic = "{served}"
            kafka.clicks_topic = "{clicks}"
            kafka.group_id = "{}"
            log.filter = "info,abgauge=trace"
            {more}
            "#,
            kafka.brokers(),
            kafka.unique("group"),
        ))
    }

    /// Waits until every record has an outcome, and returns a scrape from that time.
    #[track_caller]
    pub fn wait_until_read(&self, daemon: &mut Daemon) -> Exposition {
        daemon.wait_until_ready();
        daemon.wait_until("an outcome for each record", |daemon| {
            let scrape = daemon.metrics();
            let is_read = |topic: &str| {
                let read = scrape.sum("abgauge_records_total", &[("topic", topic)]);
                assert!(read <= self.n_sent(topic), "more outcomes than records: {read}");
                read == self.n_sent(topic)
            };
            (is_read(&self.served) && is_read(&self.clicks)).then_some(scrape)
        })
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_millis() as i64
}

/// Parses the lines of the log, one JSON object each.
pub fn log(daemon: &Daemon) -> Vec<Value> {
    daemon
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no line of the log: {line}")))
        .collect()
}
