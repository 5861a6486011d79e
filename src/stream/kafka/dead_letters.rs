//! Dead letters: unreadable records, sent unchanged or without content to a topic of their own, with headers that contain the
//! reason.
//!
//! Processing never waits for this. A queued record is sent until a broker acknowledges it, however long that takes, so at
//! least once. Records that do not fit into the bounded queue meanwhile are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use abgauge_core::decode::framing;
use abgauge_core::engine::event::Reason;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};

use super::client;
use super::names::TopicNames;
use super::producer::explain_refusal;
use crate::clock::Clock;
use crate::settings;
use crate::stream::Record;
use crate::telemetry::{DeadLetter, Telemetry};

/// Defaults, which `[kafka.properties]` may override.
const DEFAULTS: [(&str, &str); 4] = [
    ("queue.buffering.max.messages", "10000"),
    ("queue.buffering.max.kbytes", "65536"),
    // A record that barely fitted its own topic must not fail here because of its headers.
    ("message.max.bytes", "10000000"),
    // Brokers may be away for longer than the client's default of five minutes.
    ("message.timeout.ms", "0"),
];
/// Maximum time that shutdown waits for records in flight.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// Interval between log lines about lost letters.
const LOG_EVERY_MS: u64 = 60_000;

/// Producer for the dead-letter topic. Dropping it flushes for at most 2 s.
pub struct DeadLetters {
    producer: ThreadedProducer<LetterDeliveries>,
    topic: String,
    with_payload: bool,
    sources: TopicNames,
}

impl DeadLetters {
    /// Creates the producer, or returns `None` if no dead-letter topic is set. Brokers need not be reachable yet.
    ///
    /// # Errors
    /// If librdkafka refuses a property.
    pub fn start(kafka: &settings::Kafka, telemetry: Arc<Telemetry>) -> anyhow::Result<Option<DeadLetters>> {
        let Some(topic) = kafka.dead_letter_topic.clone() else {
            return Ok(None);
        };
        let mut config = client::base_config(kafka);
        client::set_defaults(&mut config, kafka, DEFAULTS);
        let deliveries = LetterDeliveries::new(topic.clone(), telemetry);
        let producer = config.create_with_context(deliveries).map_err(explain_refusal)?;
        Ok(Some(DeadLetters {
            producer,
            topic,
            with_payload: kafka.dead_letter_payload,
            sources: TopicNames::new(kafka),
        }))
    }

    /// Queues a copy of the record, including its timestamp. Never blocks.
    pub fn send(&self, record: &Record, reason: Reason) {
        let mut headers = OwnedHeaders::new_with_capacity(4)
            .insert(Header {
                key: "abgauge.reason",
                value: Some(reason.name()),
            })
            .insert(Header {
                key: "abgauge.topic",
                value: Some(self.sources.name(record.side)),
            })
            .insert(Header {
                key: "abgauge.partition",
                value: Some(&record.partition.to_string()),
            })
            .insert(Header {
                key: "abgauge.offset",
                value: Some(&record.offset.to_string()),
            });
        // Without them, nothing names the schema of the payload.
        for name in framing::HEADERS {
            if let (Some(value), Ok(key)) = (record.headers.last(name), name.to_str()) {
                headers = headers.insert(Header {
                    key,
                    value: Some(value),
                });
            }
        }
        let mut letter = BaseRecord::<[u8], [u8]>::to(&self.topic).headers(headers);
        if self.with_payload {
            (letter.key, letter.payload) = (record.key, record.payload);
        } else {
            // An empty payload rather than null, which would be a tombstone.
            letter.payload = Some(b"");
        }
        // The largest time means that the record has none.
        letter.timestamp = (record.timestamp_ms != i64::MAX).then_some(record.timestamp_ms);
        if let Err((error, _)) = self.producer.send(letter) {
            let is_full = error == KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            let result = if is_full {
                DeadLetter::Dropped
            } else {
                DeadLetter::Failed
            };
            self.producer.client().context().lose(result, &error);
        }
    }
}

impl Drop for DeadLetters {
    fn drop(&mut self) {
        if self.producer.flush(FLUSH_WITHIN).is_err() {
            let n = self.producer.in_flight_count();
            tracing::warn!(
                topic = self.topic,
                n,
                "dead letters that were in flight at the end are lost"
            );
        }
    }
}

/// Delivery results of letters, reported on librdkafka's own thread.
struct LetterDeliveries {
    topic: String,
    telemetry: Arc<Telemetry>,
    clock: Clock,
    /// Uptime before which no further loss is logged.
    quiet_until_ms: AtomicU64,
}

impl LetterDeliveries {
    fn new(topic: String, telemetry: Arc<Telemetry>) -> LetterDeliveries {
        LetterDeliveries {
            topic,
            telemetry,
            clock: Clock::system(),
            quiet_until_ms: AtomicU64::new(0),
        }
    }

    fn lose(&self, result: DeadLetter, error: &KafkaError) {
        self.telemetry.add_dead_letters(result, 1);
        let now_ms = self.clock.uptime().as_millis() as u64;
        let quiet_until_ms = self.quiet_until_ms.load(Ordering::Relaxed);
        let next = now_ms + LOG_EVERY_MS;
        // Callbacks may run at the same time. Only the one that moves the limit logs.
        let may_log = now_ms >= quiet_until_ms
            && self
                .quiet_until_ms
                .compare_exchange(quiet_until_ms, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if may_log {
            let (topic, result, remedy) = (&self.topic, result.name(), remedy(error));
            tracing::warn!(topic, result, %error, "a dead letter is lost{remedy}");
        }
    }
}

fn remedy(error: &KafkaError) -> &'static str {
    match error.rdkafka_error_code() {
        Some(
            RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition,
        ) => ": create the topic, or remove kafka.dead_letter_topic",
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => ": grant the user WRITE on the topic",
        Some(RDKafkaErrorCode::MessageSizeTooLarge) => ": raise max.message.bytes of the topic",
        Some(RDKafkaErrorCode::QueueFull) => {
            ": too many wait for the brokers; queue.buffering.max.messages under [kafka.properties] sets the limit"
        }
        _ => "",
    }
}

impl ClientContext for LetterDeliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The consumer uses the same brokers and reports their errors.
        tracing::debug!(%error, reason, "dead letters");
    }
}

impl ProducerContext for LetterDeliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => self.telemetry.add_dead_letters(DeadLetter::Delivered, 1),
            Err((error, _)) => self.lose(DeadLetter::Failed, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use abgauge_core::decode::framing::NoHeaders;
    use abgauge_core::engine::event::Side;
    use rdkafka::consumer::{BaseConsumer, Consumer as _};
    use rdkafka::message::{Headers as _, Message as _};
    use rdkafka::{ClientConfig, Offset, TopicPartitionList};

    use super::*;
    use crate::stream::kafka::embedded::Embedded;

    fn kafka(brokers: &str, properties: &[(&str, &str)]) -> settings::Kafka {
        let env = [
            ("ABGAUGE_KAFKA__BROKERS".to_owned(), brokers.to_owned()),
            (
                "ABGAUGE_KAFKA__DEAD_LETTER_TOPIC".to_owned(),
                "letters".to_owned(),
            ),
        ];
        let mut kafka = settings::load(None, env.into_iter()).expect("valid").kafka;
        for (name, value) in properties {
            kafka.properties.0.insert((*name).to_owned(), (*value).to_owned());
        }
        kafka
    }

    fn telemetry() -> Arc<Telemetry> {
        Arc::new(Telemetry::new("served", "clicks", "test"))
    }

    fn counts(telemetry: &Telemetry) -> [u64; 3] {
        let mut text = Vec::new();
        telemetry.render(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        DeadLetter::ALL.map(|result| {
            let series = format!("abgauge_dead_letters_total{{result=\"{}\"}} ", result.name());
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&series))
                .expect("the series");
            line.parse().unwrap()
        })
    }

    fn record<'a>(key: Option<&'a [u8]>, payload: Option<&'a [u8]>) -> Record<'a> {
        Record {
            side: Side::Clicks,
            partition: 3,
            offset: 42,
            timestamp_ms: 1_763_596_800_123,
            key,
            payload,
            headers: &NoHeaders,
        }
    }

    fn reader(embedded: &Embedded) -> BaseConsumer {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", embedded.bootstrap())
            .set("group.id", "test");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset("letters", 0, Offset::Beginning)
            .unwrap();
        consumer.assign(&list).unwrap();
        consumer
    }

    #[test]
    fn a_letter_is_the_record_with_its_reason_in_headers() {
        let embedded = Embedded::start(&["letters"], 1).unwrap();
        let telemetry = telemetry();
        let letters = DeadLetters::start(&kafka(embedded.bootstrap(), &[]), Arc::clone(&telemetry)).unwrap();
        let letters = letters.expect("a topic is set");
        letters.send(&record(Some(b"k"), Some(b"\xff{")), Reason::NotJson);
        letters.send(&record(None, None), Reason::Tombstone);
        letters.send(
            &Record {
                timestamp_ms: i64::MAX,
                ..record(Some(b""), Some(b""))
            },
            Reason::NotJson,
        );
        drop(letters);
        assert_eq!(counts(&telemetry), [3, 0, 0]);

        let consumer = reader(&embedded);
        let expected = [
            (Some(&b"k"[..]), Some(&b"\xff{"[..]), "not_json"),
            (None, None, "tombstone"),
            (Some(b""), Some(b""), "not_json"),
        ];
        for (n, (key, payload, reason)) in expected.into_iter().enumerate() {
            let letter = consumer.poll(Duration::from_secs(10)).expect("a letter").unwrap();
            assert_eq!((letter.key(), letter.payload()), (key, payload));
            assert_eq!(
                letter.timestamp().to_millis() == Some(1_763_596_800_123),
                n < 2,
                "{n}"
            );
            let headers = letter.headers().expect("headers");
            let headers: Vec<_> = headers
                .iter()
                .map(|h| (h.key, h.value.map(String::from_utf8_lossy)))
                .collect();
            let expected = [
                ("reason", reason),
                ("topic", "clicks"),
                ("partition", "3"),
                ("offset", "42"),
            ];
            let expected = expected.map(|(key, value)| (format!("abgauge.{key}"), value));
            let expected: Vec<_> = expected
                .iter()
                .map(|(key, value)| (&**key, Some((*value).into())))
                .collect();
            assert_eq!(headers, expected);
        }
    }

    #[test]
    fn a_letter_without_a_payload_still_identifies_its_record() {
        let embedded = Embedded::start(&["letters"], 1).unwrap();
        let telemetry = telemetry();
        let mut kafka = kafka(embedded.bootstrap(), &[]);
        kafka.dead_letter_payload = false;
        let letters = DeadLetters::start(&kafka, Arc::clone(&telemetry)).unwrap();
        let letters = letters.expect("a topic is set");
        letters.send(
            &record(Some(b"u-7"), Some(b"{\"user_id\":\"u-7\"")),
            Reason::NotJson,
        );
        drop(letters);
        let consumer = reader(&embedded);
        let letter = consumer.poll(Duration::from_secs(10)).expect("a letter").unwrap();
        assert_eq!((letter.key(), letter.payload()), (None, Some(&b""[..])));
        let headers = letter.headers().expect("headers");
        let offset = headers.iter().find(|header| header.key == "abgauge.offset");
        assert_eq!(offset.and_then(|header| header.value), Some(&b"42"[..]));
    }

    #[test]
    fn without_brokers_letters_do_not_block_and_excess_is_dropped() {
        // Port 1 (tcpmux) has no listener.
        let kafka = kafka("127.0.0.1:1", &[("queue.buffering.max.messages", "2")]);
        let telemetry = telemetry();
        let begin = Instant::now();
        let letters = DeadLetters::start(&kafka, Arc::clone(&telemetry))
            .unwrap()
            .expect("a topic is set");
        for _ in 0..5 {
            letters.send(&record(None, Some(b"?")), Reason::NotJson);
        }
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        assert_eq!(counts(&telemetry), [0, 0, 3]);
        drop(letters);
        assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
        assert_eq!(counts(&telemetry), [0, 2, 3], "none is forgotten");
    }

    #[test]
    fn no_topic_means_no_letters() {
        let mut kafka = kafka("127.0.0.1:1", &[]);
        kafka.dead_letter_topic = None;
        assert!(DeadLetters::start(&kafka, telemetry()).unwrap().is_none());
    }
}
