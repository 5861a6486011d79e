//! Producer with a bounded queue, murmur2 partitioning, and errors with advice.

mod outbox;
pub(super) mod polled;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use abgauge_core::nouns::number_of;
use anyhow::{Context as _, Result, anyhow, bail};
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{DeliveryResult, Producer as _, ProducerContext};

use self::outbox::ProducerOutbox;
use self::polled::Polled;
use super::client;
use crate::clock::Clock;
use crate::settings::Properties;

/// Timeout after which a broker counts as unreachable.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Record to send.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    pub topic: &'a str,
    /// Partition. `None`: by murmur2 of the key, as in Java clients.
    pub partition: Option<i32>,
    pub key: &'a [u8],
    pub payload: &'a [u8],
    /// Timestamp, Unix ms.
    pub timestamp_ms: i64,
}

/// Connected producer. The next [`send`](Producer::send) or [`flush`](Producer::flush) reports failed deliveries.
pub struct Producer {
    outbox: ProducerOutbox,
}

impl Producer {
    /// Connects and waits until a broker answers. `properties` are passed to librdkafka and override the defaults.
    ///
    /// # Errors
    /// If librdkafka refuses a property, or there is no answer within 10 s.
    pub fn connect(brokers: &str, properties: &Properties, linger: Duration) -> Result<Producer> {
        Producer::connect_within(ANSWER_WITHIN, brokers, properties, linger)
    }

    fn connect_within(
        answer: Duration,
        brokers: &str,
        properties: &Properties,
        linger: Duration,
    ) -> Result<Producer> {
        let mut config = client_config(brokers, properties, linger);
        // Only failures matter.
        config.set("delivery.report.only.error", "true");
        // Similar records compress well. The operator may choose another codec, by either name of the property.
        if !["compression.codec", "compression.type"]
            .iter()
            .any(|name| properties.0.contains_key(*name))
        {
            config.set("compression.codec", "lz4");
        }
        let client = Polled::start(&config, Deliveries::default()).map_err(explain_refusal)?;
        let producer = Producer {
            outbox: ProducerOutbox::new(client),
        };
        if let Err(error) = producer.client().fetch_metadata(None, answer) {
            let cause = producer.deliveries().last_error();
            let cause = cause.unwrap_or_else(|| error.to_string());
            bail!(
                "no broker answers at {brokers}: {cause}\n\
                 check the address and the port, and the settings of the listener (security.protocol, sasl.*, ssl.*)"
            );
        }
        Ok(producer)
    }

    /// Returns the number of partitions of a topic, or `None` if it does not exist.
    ///
    /// # Errors
    /// If no broker answers.
    pub fn n_partitions(&self, topic: &str) -> Result<Option<usize>> {
        let metadata = self.client().fetch_metadata(None, ANSWER_WITHIN);
        let metadata = metadata.context("ask the brokers for their topics")?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        Ok(found.map(|found| found.partitions().len()).filter(|n| *n > 0))
    }

    /// Returns the number of brokers.
    ///
    /// # Errors
    /// If no broker answers.
    pub fn n_brokers(&self) -> Result<usize> {
        let metadata = self.client().fetch_metadata(None, ANSWER_WITHIN);
        let metadata = metadata.context("ask for the brokers of the cluster")?;
        Ok(metadata.brokers().len())
    }

    /// Queues a record. While the queue is full it waits, until `cancel` is set: then it drops the record and returns false.
    /// The wait is bounded, because a record that is not delivered in time fails.
    ///
    /// # Errors
    /// If this record is refused, or an earlier one was not delivered.
    pub fn send(&self, record: &Outgoing, cancel: &AtomicBool) -> Result<bool> {
        self.deliveries().check()?;
        while !self.offer(record)? {
            if cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(2));
            self.deliveries().check()?;
        }
        Ok(true)
    }

    /// Tries to queue a record. Returns false if the queue is full.
    fn offer(&self, record: &Outgoing) -> Result<bool> {
        match self.outbox.send(record) {
            Ok(()) => Ok(true),
            Err(KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)) => Ok(false),
            Err(error) => Err(anyhow!(error).context(format!("send to topic {}", record.topic))),
        }
    }

    /// Returns the number of sent records that the brokers have not acknowledged yet.
    pub fn n_on_the_way(&self) -> u64 {
        self.outbox.client().in_flight_count().max(0) as u64
    }

    /// Waits until the brokers have every sent record.
    ///
    /// # Errors
    /// If a record was not delivered, or some are still in flight after `within`.
    pub fn flush(&self, within: Duration) -> Result<()> {
        let clock = Clock::system();
        loop {
            // Wait in small steps, so that a failure is reported immediately.
            match self.outbox.flush(Duration::from_millis(20)) {
                Ok(()) => return self.deliveries().check(),
                Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut)) => self.deliveries().check()?,
                Err(error) => return Err(error).context("flush the producer"),
            }
            if clock.uptime() > within {
                let waiting = self.outbox.client().in_flight_count();
                bail!(
                    "{} still not delivered after {within:?}: are the brokers overloaded or gone?",
                    number_of(waiting, "record")
                );
            }
        }
    }

    fn client(&self) -> &Client<Deliveries> {
        self.outbox.client().client()
    }

    fn deliveries(&self) -> &Deliveries {
        self.client().context()
    }
}

/// Returns the configuration of every client that writes.
pub(super) fn client_config(brokers: &str, properties: &Properties, linger: Duration) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config.set("client.id", "abgauge");
    // librdkafka's default is CRC32, which would put a record into another partition than a Java client would.
    config.set("partitioner", "murmur2_random");
    config.set("linger.ms", linger.as_millis().to_string());
    config.set("message.timeout.ms", "30000");
    for (name, value) in &properties.0 {
        config.set(name, value);
    }
    config
}

/// Describes a refused property by name, never by value, because it may be a secret.
pub(super) fn explain_refusal(error: KafkaError) -> anyhow::Error {
    match error {
        KafkaError::ClientConfig(_, reason, name, value) => {
            let reason = match value.is_empty() {
                true => reason,
                false => reason.replace(&value, "…"),
            };
            anyhow!(
                "the Kafka client refuses property {name}: {reason}\nlook it up in librdkafka's CONFIGURATION.md"
            )
        }
        other => anyhow!(other).context("create the Kafka client"),
    }
}

/// Delivery results of records, as reported by librdkafka.
#[derive(Default)]
pub(super) struct Deliveries {
    failed: AtomicU64,
    first_failure: Mutex<Option<String>>,
    last_error: Mutex<Option<String>>,
}

impl Deliveries {
    fn check(&self) -> Result<()> {
        match self.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            failed => {
                let first = lock(&self.first_failure).clone().unwrap_or_default();
                bail!(
                    "{} not delivered; the first: {first}",
                    number_of(failed, "record")
                )
            }
        }
    }

    fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "producer");
        // That all brokers are down is only the consequence; the reason came before.
        let mut last = lock(&self.last_error);
        if last.is_none() || error != KafkaError::Global(RDKafkaErrorCode::AllBrokersDown) {
            *last = Some(reason.to_owned());
        }
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let Err((error, record)) = result else {
            return;
        };
        // The message is stored before the count is raised, so that a reader of the count finds it.
        let mut first = lock(&self.first_failure);
        first.get_or_insert_with(|| {
            use rdkafka::Message;
            let topic = record.topic();
            format!("topic {topic}: {error}{}", remedy(error))
        });
        self.failed.fetch_add(1, Ordering::Release);
    }
}

fn remedy(error: &KafkaError) -> &'static str {
    use RDKafkaErrorCode as Code;
    match error.rdkafka_error_code() {
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition) => {
            "; create the topic, or check its number of partitions"
        }
        Some(Code::TopicAuthorizationFailed) => "; grant this user WRITE on the topic",
        Some(Code::MessageTimedOut) => "; the brokers did not take it within message.timeout.ms",
        Some(Code::MessageSizeTooLarge) => "; raise max.message.bytes of the topic",
        _ => "",
    }
}

/// Locks a mutex. A panic while one of these is locked leaves a valid value.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::kafka::embedded::Embedded;

    fn record(topic: &str) -> Outgoing<'_> {
        Outgoing {
            topic,
            partition: None,
            key: b"r-1",
            payload: b"{}",
            timestamp_ms: 1_763_596_800_000,
        }
    }

    fn connect(brokers: &str, name: &str, value: &str) -> String {
        let properties = Properties([(name.to_owned(), value.to_owned())].into());
        match Producer::connect_within(Duration::from_secs(1), brokers, &properties, Duration::ZERO) {
            Ok(_) => "connected".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_refused_property_is_named_without_its_value() {
        let message = connect("127.0.0.1:1", "sasl.mechanism.s", "hunter2");
        assert!(message.contains("sasl.mechanism.s"), "{message}");
        let message = connect("127.0.0.1:1", "security.protocol", "hunter2");
        assert!(message.contains("security.protocol"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }

    #[test]
    fn a_full_queue_waits_until_it_is_stopped() {
        let embedded = Embedded::start(&["served"], 1).unwrap();
        let properties = [("queue.buffering.max.messages".to_owned(), "1".to_owned())];
        // Longer than the test, so the first record stays in the queue.
        let linger = Duration::from_secs(20);
        let producer =
            Producer::connect(embedded.bootstrap(), &Properties(properties.into()), linger).unwrap();
        assert!(producer.send(&record("served"), &AtomicBool::new(false)).unwrap());
        assert!(!producer.send(&record("served"), &AtomicBool::new(true)).unwrap());
    }

    #[test]
    fn a_record_that_can_never_be_sent_is_an_error_that_names_its_topic() {
        let embedded = Embedded::start(&["served"], 1).unwrap();
        let producer =
            Producer::connect(embedded.bootstrap(), &Properties::default(), Duration::ZERO).unwrap();
        for topic in ["ser\0ved", &"x".repeat(600)] {
            let error = producer
                .send(&record(topic), &AtomicBool::new(false))
                .unwrap_err();
            assert!(
                error.to_string().contains(&format!("send to topic {topic}")),
                "{error:#}"
            );
        }
    }

    #[test]
    fn an_absent_broker_is_an_error_with_address_and_reason() {
        // Port 1 (tcpmux) has no listener.
        let message = connect("127.0.0.1:1", "client.id", "test");
        assert!(message.contains("no broker answers at 127.0.0.1:1"), "{message}");
        assert!(message.contains("refused"), "{message}");
    }
}
