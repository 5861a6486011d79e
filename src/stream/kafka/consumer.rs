//! Group consumer, which turns librdkafka's callbacks into inputs and orders into calls. It makes no decisions.
//!
//! The main queue is polled for rebalances and errors. Records come through separate queues, each with a `QueueReader`.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Message};

use super::answering::AnsweringThread;
use super::batches::Batches;
use super::callbacks::{CallbackNotes, Client, Note};
use super::client;
use super::names::TopicNames;
use super::probe;
use super::producer::explain_refusal;
use super::queue::{Forwarding, QueueReader};
use crate::settings;
use crate::stream::{Answer, Fault, FaultKind, Input, Order, Question, TopicPartition};

pub struct Consumer {
    forwarding: Forwarding,
    prober: AnsweringThread<Question, Answer>,
    client: Arc<Client>,
    batches: Batches,
    topics: TopicNames,
}

impl Consumer {
    /// Creates a consumer that connects on the first order, and the readers of its queues. Brokers need not be reachable yet.
    pub fn new(kafka: &settings::Kafka, n_queues: usize) -> anyhow::Result<(Consumer, Vec<QueueReader>)> {
        let topics = TopicNames::new(kafka);
        let config = client_config(kafka, n_queues);
        let client: Arc<Client> = Arc::new(
            config
                .create_with_context(CallbackNotes::new(&topics))
                .map_err(explain_refusal)?,
        );
        let batches = Batches::start(topics.clone(), &config)?;
        let (forwarding, readers) = Forwarding::new(&client, &topics, n_queues);
        let prober = probe::start(Arc::clone(&client), kafka, config)?;
        let consumer = Consumer {
            forwarding,
            prober,
            client,
            batches,
            topics,
        };
        Ok((consumer, readers))
    }

    /// Passes all events except records to `take`. Never blocks.
    pub fn poll(&mut self, mut take: impl FnMut(Input)) {
        for answer in self.prober.answers() {
            take(Input::Answer(answer));
        }
        // A note reports a response that is too large, with its size. The client reports missing topics only once, at the first
        // response of any broker, while the probe asks reliably.
        let is_noted = |error: &KafkaError| {
            matches!(
                error.rdkafka_error_code(),
                Some(RDKafkaErrorCode::BadMessage | RDKafkaErrorCode::UnknownTopicOrPartition)
            )
        };
        match self.client.poll(Duration::ZERO) {
            Some(Ok(record)) => take(Input::Fault(strayed(&record))),
            Some(Err(error)) if !is_noted(&error) => take(Input::Fault(client::fault(&error, ""))),
            Some(Err(_)) | None => {}
        }
        while let Some(note) = self.client.context().pop() {
            take(match note {
                Note::Assigned(partitions) => Input::Assigned(partitions),
                Note::Misassigned(topics) => Input::Misassigned(topics),
                Note::Revoked => Input::Revoked,
                Note::Error(error, reason) => Input::Fault(client::fault(&error, &reason)),
            });
        }
        self.batches.answers().for_each(&mut take);
    }

    fn assign(&mut self, starts: &[(TopicPartition, i64)]) -> anyhow::Result<()> {
        let list = self.topics.offsets(starts)?;
        // Forward before assigning, so that no record ends up in the main queue.
        self.forward(starts)?;
        self.client.assign(&list).context("assign partitions")?;
        // Forward again for partitions that were being read: librdkafka stops them first and thereby ends their forwarding, on
        // the thread that answers this request. Records since then wait in the partition's own queue.
        self.client
            .assignment()
            .context("wait until the former assignment has stopped")?;
        self.forward(starts)?;
        // librdkafka keeps a partition paused across assignments.
        self.client.resume(&list).context("resume all partitions")
    }

    fn subscribe(&self) -> anyhow::Result<()> {
        let names = [self.topics.served.as_str(), self.topics.clicks.as_str()];
        let n = if names[0] == names[1] { 1 } else { 2 };
        self.client
            .subscribe(&names[..n])
            .context("subscribe to the topics")
    }

    fn forward(&mut self, starts: &[(TopicPartition, i64)]) -> anyhow::Result<()> {
        for ((side, partition), _) in starts {
            self.forwarding
                .forward(&self.client, self.topics.name(*side), *partition)?;
        }
        Ok(())
    }

    /// Carries out an order. Failures are reported as messages; the client keeps retrying by itself.
    ///
    /// # Errors
    /// If librdkafka refuses the call.
    pub fn execute(&mut self, order: Order) -> anyhow::Result<()> {
        match order {
            // An order for the keeper.
            Order::Keep(_) => {}
            Order::Subscribe => self.subscribe()?,
            Order::Rejoin => {
                // The client leaves the group once its partitions are revoked, and joins it again afterwards.
                self.client.unsubscribe();
                self.subscribe()?;
            }
            Order::Assign(starts) => self.assign(&starts)?,
            Order::Unassign => self.client.unassign().context("give partitions back")?,
            Order::Pause(partition) => {
                self.client
                    .pause(&self.topics.partitions([&partition]))
                    .context("pause a partition")?;
            }
            Order::Resume(partition) => {
                self.client
                    .resume(&self.topics.partitions([&partition]))
                    .context("resume a partition")?;
            }
            Order::Commit(positions) => {
                let list = self.topics.offsets(&positions)?;
                self.client
                    .commit(&list, CommitMode::Async)
                    .context("commit read positions")?;
            }
            Order::Inspect(inspection) => self.batches.ask(inspection)?,
            Order::Ask(question) => self.prober.ask(question)?,
        }
        Ok(())
    }
}

/// Fault for a record in the main queue, which has no reader: it would be missing from the numbers, so the daemon must restart.
fn strayed(record: &impl Message) -> Fault {
    let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
    Fault {
        kind: FaultKind::Fatal,
        message: format!(
            "the record at offset {offset} of partition {partition} of topic `{topic}` bypassed the queue of its partition, which is a bug in abgauge: restart it, so that it reads the log again"
        ),
    }
}

/// Returns the configuration of the group's client.
pub(super) fn client_config(kafka: &settings::Kafka, n_queues: usize) -> ClientConfig {
    let mut config = client::base_config(kafka);
    config
        .set("group.id", &kafka.group_id)
        .set("partition.assignment.strategy", "range")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        // A lost position must reach the worker. The client must not move it silently.
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true");
    client::set_defaults(&mut config, kafka, defaults(n_queues));
    config
}

/// Returns the defaults that the operator may override.
fn defaults(n_queues: usize) -> [(&'static str, String); 5] {
    [
        ("isolation.level", "read_committed".into()),
        // The broker answers immediately if there are records, and an idle one costs fifty requests per second. One request
        // asks a broker for all partitions except those with a full queue. While the broker waits for the others, these get no
        // records either. So it must not wait longer than the queued records last.
        ("fetch.wait.max.ms", "20".into()),
        // A consumer that keeps up must not wait a second (the client's default) for its queue to be checked again.
        ("fetch.queue.backoff.ms", "10".into()),
        // As many records as a core reads in about 20 ms. More would only take memory that is cold when read: with the client's
        // 100,000 the daemon used 2.9 times the CPU time of a bare consumer. With this value, as with 3,000, it was 2.5 times.
        (QUEUED_RECORDS, "20000".into()),
        // Large records are bounded by their bytes. The client has one limit for every queue, so divide the total.
        (
            QUEUED_KBYTES,
            (QUEUED_KIB / n_queues).max(MIN_QUEUED_KIB).to_string(),
        ),
    ]
}

/// Returns the maximum bytes of records that wait to be read, including the client's overhead. A fetch in flight when a bound
/// is reached adds up to `fetch.max.bytes` per broker.
pub fn queued_bytes(kafka: &settings::Kafka, n_queues: usize) -> u64 {
    let defaults = defaults(n_queues);
    let value = |name: &str| {
        let default = defaults.iter().find(|(other, _)| *other == name);
        let value = kafka.properties.0.get(name).or(default.map(|(_, value)| value));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    n_queues as u64 * (value(QUEUED_KBYTES) * 1024 + value(QUEUED_RECORDS) * BYTES_BESIDE)
}

/// Overhead in bytes that librdkafka adds to a fetched record.
const BYTES_BESIDE: u64 = 400;
const QUEUED_RECORDS: &str = "queued.min.messages";
const QUEUED_KBYTES: &str = "queued.max.messages.kbytes";
/// Default size of all queues together, in KiB.
const QUEUED_KIB: usize = 64 << 10;
/// Minimum default size of each queue, in KiB.
const MIN_QUEUED_KIB: usize = 8 << 10;

impl Drop for Consumer {
    /// Leaves the group, unless this is a static member; librdkafka knows which.
    fn drop(&mut self) {
        // It uses the client, and may be waiting for a broker, but at most until its own deadline.
        self.prober.close();
        self.forwarding.release(&self.client);
        self.client.context().close();
    }
}
