//! Appends to the state topic: a plain producer with `acks=all` that writes to the given partition. Failed appends are not
//! retried: the rules of the state do not need it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use abgauge_core::journal::{LogEvent, Namespace, PartitionEvent, RecordKey, SharedBytes};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext};

use super::client;
use super::complaints::unwritten;
use crate::settings;
use crate::stream::kafka::producer::explain_refusal;

/// Maximum bytes handed to the client but not yet delivered: a record's five seconds start when it is handed over.
const MAX_IN_FLIGHT: usize = 4 << 20;
/// Age at which an append that is not handed over is dropped: its sender has replaced it by another record. This bounds the
/// queue while nothing can be written.
const STALE: Duration = Duration::from_secs(5);
/// Time that the shutdown waits for records in flight.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);

pub(super) struct StateWriter {
    producer: BaseProducer<StateDeliveries>,
    topic: String,
    namespace: Namespace,
    /// Appends not handed over yet.
    waiting: VecDeque<Append>,
    n_bytes_in_flight: usize,
}

struct Append {
    since: Instant,
    sent: Sent,
    text: String,
    value: Option<SharedBytes>,
}

/// Facts about a record in flight.
#[derive(Clone, Copy)]
struct Sent {
    partition: i32,
    key: RecordKey,
    is_put: bool,
    n_bytes: usize,
}

impl StateWriter {
    pub fn start(kafka: &settings::Kafka, topic: &str, namespace: Namespace) -> anyhow::Result<StateWriter> {
        let producer = writer_config(kafka).create_with_context(StateDeliveries::default());
        Ok(StateWriter {
            producer: producer.map_err(explain_refusal)?,
            topic: topic.to_owned(),
            namespace,
            waiting: VecDeque::new(),
            n_bytes_in_flight: 0,
        })
    }

    pub fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        let text = key.text(self.namespace);
        let sent = Sent {
            partition,
            key,
            is_put: value.is_some(),
            n_bytes: text.len() + value.as_ref().map_or(0, |value| value.len()),
        };
        let since = Instant::now();
        self.waiting.push_back(Append {
            since,
            sent,
            text,
            value,
        });
        self.send();
    }

    fn send(&mut self) {
        while self.n_bytes_in_flight < MAX_IN_FLIGHT
            && let Some(Append {
                since,
                sent,
                text,
                value,
            }) = self.waiting.pop_front()
        {
            if since.elapsed() > STALE {
                continue;
            }
            let mut record = BaseRecord::with_opaque_to(&self.topic, Box::new(sent))
                .partition(sent.partition)
                .key(text.as_bytes());
            record.payload = value.as_deref();
            self.n_bytes_in_flight += sent.n_bytes;
            if let Err((error, _)) = self.producer.send(record) {
                self.producer.context().end(Err(error), sent);
            }
        }
    }

    pub fn poll(&mut self, take: &mut dyn FnMut(LogEvent<'_>)) {
        self.producer.poll(Duration::ZERO);
        for (result, sent) in self.producer.context().take() {
            let Sent {
                partition,
                key,
                is_put,
                n_bytes,
            } = sent;
            self.n_bytes_in_flight = self.n_bytes_in_flight.saturating_sub(n_bytes);
            match result {
                Ok(()) if is_put => take(LogEvent::Partition(partition, PartitionEvent::Acknowledged(key))),
                // A tombstone is confirmed by reading it, not by its answer.
                Ok(()) => {}
                Err(error) => take(unwritten(&error, &self.topic)),
            }
        }
        self.send();
    }
}

impl Drop for StateWriter {
    fn drop(&mut self) {
        // At most tombstones are lost here, because a pair that leaves waits for its last seal.
        if self.producer.flush(FLUSH_WITHIN).is_err() {
            tracing::debug!("records for the state topic were still in flight at the end");
        }
    }
}

fn writer_config(kafka: &settings::Kafka) -> ClientConfig {
    let mut config = client::base_config(kafka);
    let names = ["compression.codec", "compression.type"];
    if !names.iter().any(|name| kafka.properties.0.contains_key(*name)) {
        config.set("compression.codec", "lz4");
    }
    config
        .set("acks", "all")
        .set("message.timeout.ms", "5000")
        .set("linger.ms", "2")
        .set("enable.idempotence", "false")
        .set("allow.auto.create.topics", "false");
    // A transaction is not wanted, and the others are aliases that would override the settings above.
    for name in ["transactional.id", "request.required.acks", "delivery.timeout.ms"] {
        config.remove(name);
    }
    config
}

/// Results of deliveries, until they are taken.
#[derive(Default)]
struct StateDeliveries(Mutex<Vec<(Result<(), KafkaError>, Sent)>>);

impl StateDeliveries {
    fn end(&self, result: Result<(), KafkaError>, sent: Sent) {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((result, sent));
    }

    fn take(&self) -> Vec<(Result<(), KafkaError>, Sent)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for StateDeliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The reader uses the same brokers and reports them.
        tracing::debug!(%error, reason, "state topic");
    }
}

impl ProducerContext for StateDeliveries {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let result = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.clone()),
        };
        self.end(result, *sent);
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::journal::Session;

    use super::*;

    /// A writer whose brokers are away, and which has handed over so much.
    fn writer(n_bytes_in_flight: usize) -> StateWriter {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "127.0.0.1:1".to_owned());
        let kafka = settings::load(None, std::iter::once(brokers)).unwrap().kafka;
        let mut writer = StateWriter::start(&kafka, "state", Namespace::of("fingerprint", "group")).unwrap();
        writer.n_bytes_in_flight = n_bytes_in_flight;
        writer
    }

    fn claim(epoch: u64) -> RecordKey {
        RecordKey::Claim(Session { epoch, unique: 5 })
    }

    fn waiting(writer: &StateWriter) -> Vec<RecordKey> {
        writer.waiting.iter().map(|append| append.sent.key).collect()
    }

    #[test]
    fn appends_wait_while_too_many_bytes_are_in_flight() {
        let mut writer = writer(MAX_IN_FLIGHT);
        writer.append(0, claim(1), Some(vec![7; 100].into()));
        assert_eq!(waiting(&writer), [claim(1)]);
        writer.n_bytes_in_flight -= 1;
        writer.send();
        assert_eq!(waiting(&writer), []);
        assert!(
            writer.n_bytes_in_flight > MAX_IN_FLIGHT,
            "{}",
            writer.n_bytes_in_flight
        );
    }

    /// Another record is in its place by then, and who restores would read both.
    #[test]
    fn gives_up_records_that_waited_too_long() {
        let mut writer = writer(MAX_IN_FLIGHT);
        for epoch in [1, 2] {
            writer.append(0, claim(epoch), Some(vec![7; 100].into()));
        }
        let too_long = STALE + Duration::from_millis(1);
        writer.waiting[0].since = Instant::now()
            .checked_sub(too_long)
            .expect("the machine runs for longer");
        let n_bytes_of_one = writer.waiting[1].sent.n_bytes;
        writer.n_bytes_in_flight = 0;
        writer.send();
        assert_eq!(waiting(&writer), []);
        assert_eq!(writer.n_bytes_in_flight, n_bytes_of_one, "the first is not sent");
    }
}
