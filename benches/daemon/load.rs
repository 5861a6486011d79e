//! A broker sized for benchmarks, topics with the common traffic, and the daemon's configuration for them.

use abgauge_core::engine::event::Side;

use crate::common::stream::{Shape, Stream};
use crate::support::kafka::{Kafka, Options};
use crate::support::producer::Producer;

/// Number of partitions of each topic.
pub const N_PARTITIONS: i32 = 4;

/// Starts a broker with a heap of 512 MB that applies retention at once.
pub fn broker() -> Kafka {
    Kafka::start_with(Options {
        fast: true,
        properties: vec![
            ("log.retention.check.interval.ms", "1000"),
            ("log.segment.delete.delay.ms", "1000"),
        ],
        ..Options::default()
    })
}

/// A topic of served lists and one of clicks.
#[derive(Debug)]
pub struct Topics {
    pub served: String,
    pub clicks: String,
    pub n_lists: u64,
    pub n_clicks: u64,
}

impl Topics {
    pub fn empty(kafka: &Kafka) -> Topics {
        Topics::with(kafka, &[])
    }

    /// Creates topics whose partitions keep about `bytes` each, and delete older records.
    pub fn short_lived(kafka: &Kafka, bytes: u64) -> Topics {
        let [retention, segment] = [bytes / 2, bytes / 4].map(|bytes| bytes.to_string());
        Topics::with(
            kafka,
            &[
                ("retention.bytes", retention.as_str()),
                ("segment.bytes", &segment),
            ],
        )
    }

    /// Creates topics with a stream that is older than the broker's default retention.
    pub fn holding_for_good(kafka: &Kafka, stream: &Stream, shape: &Shape) -> Topics {
        let mut topics = Topics::with(kafka, &[("retention.ms", "-1")]);
        topics.append(kafka, stream, shape);
        topics
    }

    fn with(kafka: &Kafka, configs: &[(&str, &str)]) -> Topics {
        // A backlog of several seconds is sent faster than its event time passes.
        let configs = &[configs, &[("message.timestamp.after.max.ms", "60000")]].concat();
        let [served, clicks] = ["served", "clicks"].map(|stem| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, N_PARTITIONS, configs);
            name
        });
        Topics {
            served,
            clicks,
            n_lists: 0,
            n_clicks: 0,
        }
    }

    /// Creates topics with a stream, keyed by request id and compressed with lz4. Each record's timestamp is its event time.
    pub fn holding(kafka: &Kafka, stream: &Stream) -> Topics {
        Topics::holding_of(kafka, stream, &Shape::default())
    }

    /// Like `holding`, with another shape.
    pub fn holding_of(kafka: &Kafka, stream: &Stream, shape: &Shape) -> Topics {
        let mut topics = Topics::empty(kafka);
        topics.append(kafka, stream, shape);
        topics
    }

    /// Appends a stream.
    pub fn append(&mut self, kafka: &Kafka, stream: &Stream, shape: &Shape) {
        self.append_in_two(kafka, stream, shape, 0, |_| ());
    }

    /// Appends a stream, and calls `between` once `n_first` lists are there.
    pub fn append_in_two(
        &mut self,
        kafka: &Kafka,
        stream: &Stream,
        shape: &Shape,
        n_first: u64,
        between: impl FnOnce(&Topics),
    ) {
        let producer = producer(kafka);
        let mut between = Some(between);
        stream.for_each_of(shape, |record| {
            if self.n_lists >= n_first
                && let Some(between) = between.take()
            {
                producer.flush();
                between(self);
            }
            let (topic, n) = match record.side {
                Side::Served => (&self.served, &mut self.n_lists),
                Side::Clicks => (&self.clicks, &mut self.n_clicks),
            };
            let (key, payload) = (record.key.as_bytes(), record.payload.as_bytes());
            producer.produce(topic, None, Some(key), Some(payload), Some(record.ts_ms));
            *n += 1;
        });
        producer.flush();
    }

    pub fn n_records(&self) -> u64 {
        self.n_lists + self.n_clicks
    }

    /// Deletes the topics to free their disk space.
    pub fn delete(self, kafka: &Kafka) {
        kafka.delete_topic(&self.served);
        kafka.delete_topic(&self.clicks);
    }

    /// Returns a configuration that reads the topics in a new group; everything else is default.
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

/// Creates a producer tuned for throughput.
pub fn producer(kafka: &Kafka) -> Producer {
    kafka.producer_with(&[("compression.codec", "lz4"), ("linger.ms", "20")])
}

/// Settings that keep lists open for about 15 s, so that the state has its full size within the first minute.
pub const QUICK_JOIN: &str = "[join]\nattribution = \"10s\"\nlateness = \"2s\"\nmax_future = \"1s\"\n";

/// Returns a stream of this length that ended long enough ago for its last click to have come.
pub fn stream(n_lists: u64, span_ms: i64) -> Stream {
    Stream {
        n_lists,
        start_ms: now_ms() - span_ms - 21 * 60_000,
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
