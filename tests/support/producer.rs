//! A producer for tests: every record has been acknowledged when `flush` returns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};
use rdkafka::{ClientConfig, ClientContext};

use super::kafka::Kafka;
use super::wait::PATIENCE;

/// A producer to one cluster. It chooses partitions by key as Java's producers do, unless its properties differ.
pub struct Producer {
    inner: BaseProducer<Failures>,
}

/// Counts records that the broker never acknowledged.
#[derive(Default)]
struct Failures(AtomicU64);

impl ClientContext for Failures {}

impl ProducerContext for Failures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Kafka {
    /// Creates a producer on the open listener.
    pub fn producer(&self) -> Producer {
        self.producer_with(&[])
    }

    /// Creates a producer with these librdkafka properties, such as `("partitioner", "consistent_random")`.
    pub fn producer_with(&self, properties: &[(&str, &str)]) -> Producer {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", self.brokers())
            .set("partitioner", "murmur2_random")
            .set("linger.ms", "5")
            .set("message.max.bytes", "10000000");
        for (name, value) in properties {
            config.set(*name, *value);
        }
        Producer {
            inner: config
                .create_with_context(Failures::default())
                .expect("a producer"),
        }
    }
}

impl Producer {
    /// Queues a record, and waits while the queue is full. Without a partition the key selects one. Without a timestamp
    /// (milliseconds) the producer uses its clock.
    #[track_caller]
    pub fn produce(
        &self,
        topic: &str,
        partition: Option<i32>,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
        timestamp: Option<i64>,
    ) {
        let mut record = BaseRecord::<[u8], [u8]>::to(topic);
        record.partition = partition;
        record.key = key;
        record.payload = payload;
        record.timestamp = timestamp;
        while let Err((error, again)) = self.inner.send(record) {
            let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            assert_eq!(error, full, "produce to {topic}");
            self.inner.poll(Duration::from_millis(50));
            record = again;
        }
        // Delivery reports must be served, or their queue would grow.
        self.inner.poll(Duration::ZERO);
    }

    /// Waits until the broker has acknowledged everything.
    #[track_caller]
    pub fn flush(&self) {
        assert_eq!(self.flush_refused(), 0, "the broker refused records");
    }

    /// Waits until the broker has answered for every record. Returns the number of records refused so far.
    #[track_caller]
    pub fn flush_refused(&self) -> u64 {
        // Small steps are faster: one `flush` sleeps for 100 ms at a time, however soon the broker answers.
        let end = Instant::now() + PATIENCE;
        while let Err(error) = self.inner.flush(Duration::from_millis(2)) {
            assert!(Instant::now() < end, "the broker acknowledges in time: {error}");
        }
        self.inner.context().0.load(Ordering::Relaxed)
    }
}
