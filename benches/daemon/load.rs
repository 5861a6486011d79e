//! A broker sized for benchmarks, topics filled with the common traffic, and the daemon's configuration for them.

use abgauge::engine::event::Side;

use crate::common::stream::Stream;
use crate::support::kafka::{Kafka, Options};

/// Of each topic.
pub const N_PARTITIONS: i32 = 4;

pub fn broker() -> Kafka {
    Kafka::start_with(Options {
        fast: true,
        ..Options::default()
    })
}

/// A topic of served lists and one of clicks.
#[derive(Debug)]
pub struct Topics {
    pub served: String,
    pub clicks: String,
    pub n_records: u64,
}

impl Topics {
    pub fn empty(kafka: &Kafka) -> Topics {
        Topics {
            served: kafka.new_topic("served", N_PARTITIONS),
            clicks: kafka.new_topic("clicks", N_PARTITIONS),
            n_records: 0,
        }
    }

    /// Holding a stream, keyed by request id, compressed with lz4; each record's timestamp is its event time.
    pub fn holding(kafka: &Kafka, stream: &Stream) -> Topics {
        let mut topics = Topics::empty(kafka);
        let producer = kafka.producer_with(&[("compression.codec", "lz4")]);
        stream.for_each(|record| {
            let topic = match record.side {
                Side::Served => &topics.served,
                Side::Clicks => &topics.clicks,
            };
            let (key, payload) = (record.key.as_bytes(), record.payload.as_bytes());
            producer.produce(topic, None, Some(key), Some(payload), Some(record.ts_ms));
            topics.n_records += 1;
        });
        producer.flush();
        topics
    }

    /// A configuration of the daemon that reads all of them, in a group of its own; the rest are defaults.
    pub fn config(&self, kafka: &Kafka) -> String {
        format!(
            "[kafka]\nbrokers = \"{}\"\nserved_topic = \"{}\"\nclicks_topic = \"{}\"\ngroup_id = \"{}\"\nstart = \"earliest\"\n",
            kafka.brokers(),
            self.served,
            self.clicks,
            kafka.unique("benchmark"),
        )
    }
}

/// A stream of this length that ended a minute ago.
pub fn stream(n_lists: u64, span_ms: i64) -> Stream {
    Stream {
        n_lists,
        start_ms: now_ms() - span_ms - 60_000,
        span_ms,
        click_share: 0.2,
    }
}

pub fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the clock is after 1970");
    since_epoch.as_millis() as i64
}
