//! Topics of a test's own, several producers that fill them, and the configuration of a daemon that reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::accounts::Accounts;
use crate::answers::{self, KS};
use crate::events::{Arrival, Event};
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::support::tools;

const N_PARTITIONS: i32 = 4;
/// Producers send what they hold this often, in event time.
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
    /// The catalogue that the configuration names, the feed's own.
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

    /// All profiles and metrics at the cut-offs of the reference values; defaults else. What is shown is `total`.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Puts another catalogue in the place of the one that daemons read.
    pub fn replace_catalogue(&self, text: &str) {
        let new = self.catalogue.with_extension("new");
        fs::write(&new, text).expect("write the new catalogue");
        fs::rename(&new, &self.catalogue).expect("put it into place");
    }

    pub fn clicks_topic(&self) -> &str {
        &self.clicks
    }

    /// The producers take turns, record by record, and all flush every 10 s of event time. Everything is on the
    /// broker at the end.
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

    /// One hour after all else: a list and a click of experiment `end` in each partition, so that all else settles.
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

    /// What a daemon that has read all that was sent has to say of it.
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

    /// Records by partition, in all topics.
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
