//! A test's topics, several producers that fill them, and the configuration of a daemon that reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::real_input::accounts::Accounts;
use crate::real_input::answers::{self, KS};
use crate::real_input::events::{Arrival, Event};
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::support::tools;

const N_PARTITIONS: i32 = 4;
/// Interval at which producers flush, in event time.
const FLUSH_EVERY_MS: i64 = 10_000;
const HOUR_MS: i64 = 3_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topics {
    One,
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Request,
    User,
}

pub struct Feed {
    kafka: Arc<Kafka>,
    served: String,
    clicks: String,
    key: Key,
    config: String,
    /// Path of the catalogue in the configuration, a copy for this feed.
    catalogue: PathBuf,
    producers: Vec<Producer>,
    sent: Vec<Event>,
    _dir: TempDir,
}

impl Feed {
    pub fn new(topics: Topics, key: Key) -> Feed {
        let kafka = Kafka::shared();
        let served = kafka.new_topic("served", N_PARTITIONS);
        let clicks = match topics {
            Topics::One => served.clone(),
            Topics::Two => kafka.new_topic("clicks", N_PARTITIONS),
        };
        let dir = tools::temporary_dir("feed");
        let catalogue = dir.path().join("items.jsonl");
        fs::copy(tools::repository(answers::CATALOGUE), &catalogue).expect("copy the catalogue");
        let config = format!(
            "{section}key = \"{key}\"
[metrics]
profile = {profiles:?}
metrics = {metrics:?}
catalog = {catalogue:?}
k = {KS:?}
[export]
windows = [\"total\"]
[limits]
max_duplicate_share = 1.0
max_unmatched_share = 1.0
",
            profiles = answers::profiles(),
            metrics = answers::metrics(),
            section = kafka.section(&served, &clicks),
            key = match key {
                Key::Request => "request",
                Key::User => "user",
            },
        );
        let producers = (0..3).map(|_| kafka.producer()).collect();
        Feed {
            kafka,
            served,
            clicks,
            key,
            config,
            catalogue,
            producers,
            sent: Vec::new(),
            _dir: dir,
        }
    }

    /// Returns a configuration with all profiles and metrics at the cut-offs of the reference values, for the window `total`.
    /// Everything else is default.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Replaces the catalogue that daemons read.
    pub fn replace_catalogue(&self, text: &str) {
        let new = self.catalogue.with_extension("new");
        fs::write(&new, text).expect("write the new catalogue");
        fs::rename(&new, &self.catalogue).expect("put it into place");
    }

    pub fn clicks_topic(&self) -> &str {
        &self.clicks
    }

    /// Sends the events with the producers in turn, which all flush every 10 s of event time. On return everything is on the
    /// broker.
    pub fn send(&mut self, arrivals: &[Arrival]) {
        let stretch = |arrival: &Arrival| arrival.at_ms.div_euclid(FLUSH_EVERY_MS);
        for stretch in arrivals.chunk_by(|one, next| stretch(one) == stretch(next)) {
            for (index, arrival) in stretch.iter().enumerate() {
                let producer = &self.producers[index % self.producers.len()];
                self.produce(producer, None, &arrival.event);
            }
            self.producers.iter().for_each(Producer::flush);
        }
        self.sent
            .extend(arrivals.iter().map(|arrival| arrival.event.clone()));
    }

    /// Sends a list and a click of the experiment `end` to each partition, one hour after everything else, so that everything
    /// else settles.
    pub fn send_end(&mut self) {
        let newest_ms = self.sent.iter().map(|event| event.ts_ms).max();
        let ts_ms = newest_ms.expect("it comes after all else") + HOUR_MS;
        for partition in 0..N_PARTITIONS {
            let events = Event::end(&format!("end-{partition}"), ts_ms);
            for event in &events {
                self.produce(&self.producers[0], Some(partition), event);
            }
            self.sent.extend(events);
        }
        self.producers[0].flush();
    }

    fn produce(&self, producer: &Producer, partition: Option<i32>, event: &Event) {
        let topic = if event.is_click() {
            &self.clicks
        } else {
            &self.served
        };
        let key = match self.key {
            Key::Request => &event.request_id,
            Key::User => &event.user_id,
        };
        let (key, payload) = (key.as_bytes(), event.json.as_bytes());
        producer.produce(topic, partition, Some(key), Some(payload), None);
    }

    /// Returns the counts that a daemon must have once it has read everything sent.
    pub fn accounts(&self) -> Accounts {
        let accounts = Accounts::of(&self.sent, &self.served, &self.clicks);
        let n_records = self.ends().values().sum::<i64>().cast_unsigned();
        assert_eq!(
            accounts.outcomes.values().sum::<u64>(),
            n_records,
            "records on the broker"
        );
        accounts
    }

    /// Returns the number of records by partition, in all topics.
    pub fn ends(&self) -> BTreeMap<i32, i64> {
        let mut topics = vec![&self.served, &self.clicks];
        topics.dedup();
        let end = |partition| {
            let ends = topics.iter().map(|topic| self.kafka.offsets(topic, partition).1);
            (partition, ends.sum())
        };
        (0..N_PARTITIONS).map(end).collect()
    }
}
