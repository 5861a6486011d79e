//! Inspection of offsets: a separate client on its own thread reads the batch at an offset and finds the end of an unreadable
//! one.
//!
//! librdkafka reports only the start of such a batch. Its end is just before the first offset at which a fetch finds something
//! else:
//!
//! ```text
//! offset    0 … 1233 │ 1234 … 1240 │ 1241 …
//! fetch     records  │ damaged     │ records        the batch is 1234-1240
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::answering::AnsweringThread;
use super::callbacks::{CallbackNotes, Client, Note};
use super::client::{fault, too_large};
use super::names::TopicNames;
use super::queue::{First, Forwarding};
use crate::stream::{BatchDamage, Input, Inspection, OffsetState, TopicPartition};

/// Timeout of one fetch. A batch may be large.
const DEADLINE: Duration = Duration::from_secs(10);
/// Timeout of the search for the end of a batch.
const SEARCH: Duration = Duration::from_secs(60);
/// First step of the search. Each further step is twice as long.
const STEP: i64 = 16;

pub(super) struct Batches {
    closing: Arc<AtomicBool>,
    thread: AnsweringThread<Inspection, Input>,
}

struct BatchReader {
    topics: TopicNames,
    config: ClientConfig,
    closing: Arc<AtomicBool>,
}

/// First thing that a fetch at an offset finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchOutcome {
    /// A record, or the end of the readable log.
    Readable,
    /// An unreadable batch that starts at this offset, as far as known.
    Damaged(i64, BatchDamage),
}

impl Batches {
    /// Starts the thread. `config` is the configuration of the group's client.
    pub fn start(topics: TopicNames, config: &ClientConfig) -> anyhow::Result<Batches> {
        let closing = Arc::new(AtomicBool::new(false));
        let reader = BatchReader {
            topics,
            config: config_of(config),
            closing: Arc::clone(&closing),
        };
        let thread = AnsweringThread::start("kafka-batches", move |asked, reply| {
            for inspection in asked {
                let batch = reader.inspect(inspection).map_err(|error| fault(&error, ""));
                if reply.send(Input::Inspected(inspection, batch)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Batches { closing, thread })
    }

    pub fn ask(&self, inspection: Inspection) -> anyhow::Result<()> {
        self.thread.ask(inspection)
    }

    pub fn answers(&self) -> impl Iterator<Item = Input> {
        self.thread.answers()
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        // A fetch that is under way gives up at once, so that the thread, which is dropped next, does not wait for its deadline.
        self.closing.store(true, Ordering::Release);
    }
}

/// Returns the configuration of a client that reads one partition, a batch at a time. It never joins the group, but uses its id
/// because permissions are granted on that id.
fn config_of(group: &ClientConfig) -> ClientConfig {
    let mut config = group.clone();
    config.remove("group.instance.id");
    config.remove("max.partition.fetch.bytes");
    // A broker returns at least one batch, so this limit means exactly one.
    config
        .set("fetch.message.max.bytes", "1")
        .set("queued.min.messages", "1")
        .set("reconnect.backoff.ms", "50")
        .set("reconnect.backoff.max.ms", "500")
        .set("enable.partition.eof", "true");
    config
}

impl BatchReader {
    fn inspect(&self, inspection: Inspection) -> Result<OffsetState, KafkaError> {
        let Inspection {
            partition,
            offset,
            to_its_end,
        } = inspection;
        let (low, high) = {
            let (side, number) = partition;
            let client: Client = self
                .config
                .create_with_context(CallbackNotes::new(&self.topics))?;
            client.fetch_watermarks(self.topics.name(side), number, DEADLINE)?
        };
        if offset < low || offset >= high {
            return Ok(OffsetState::Readable); // Retention took it, or nothing is there yet.
        }
        match self.find(partition, offset)? {
            FetchOutcome::Readable => Ok(OffsetState::Readable),
            FetchOutcome::Damaged(first, damage) => {
                let damaged = (first, damage);
                // The damage is reported even if the end of the batch is not found in time.
                let last = to_its_end.then(|| self.last(partition, offset, damaged, high));
                Ok(OffsetState::Damaged {
                    first,
                    last: last.and_then(Result::ok),
                    damage,
                })
            }
        }
    }

    /// Finds the last offset of the batch that was found at `offset`, in a log that ends at `high`.
    fn last(
        &self,
        partition: TopicPartition,
        offset: i64,
        (first, damage): (i64, BatchDamage),
        high: i64,
    ) -> Result<i64, KafkaError> {
        let begin = Instant::now();
        let is_same = |offset| -> Result<bool, KafkaError> {
            if begin.elapsed() > SEARCH {
                return Err(timed_out());
            }
            Ok(match (self.find(partition, offset)?, damage) {
                // Its start is unknown, so adjacent batches of that kind count as one.
                (FetchOutcome::Damaged(_, BatchDamage::TooLarge { .. }), BatchDamage::TooLarge { .. }) => {
                    true
                }
                (FetchOutcome::Damaged(other, _), _) => other == first,
                (FetchOutcome::Readable, _) => false,
            })
        };
        // Double the step until a fetch is outside the batch, then bisect between the last two offsets.
        let (mut inside, mut step) = (offset, STEP);
        let mut outside = loop {
            let next = inside.saturating_add(step);
            if next >= high {
                break high;
            }
            if !is_same(next)? {
                break next;
            }
            (inside, step) = (next, step * 2);
        };
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if is_same(middle)? {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Ok(inside)
    }

    /// Fetches at an offset with a new client each time: after a damaged batch a client may be at any offset, and it reports
    /// the same error only twice.
    fn find(&self, partition: TopicPartition, offset: i64) -> Result<FetchOutcome, KafkaError> {
        let (side, number) = partition;
        let topic = self.topics.name(side);
        let client: Arc<Client> = Arc::new(
            self.config
                .create_with_context(CallbackNotes::new(&self.topics))?,
        );
        let (mut forwarding, mut readers) = Forwarding::new(&client, &self.topics, 1);
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, number, Offset::Offset(offset))?;
        let refused = |_| KafkaError::Subscription(topic.to_owned());
        forwarding.forward(&client, topic, number).map_err(refused)?;
        client.assign(&list)?;
        let found = self.wait(&client, || readers[0].first(), offset);
        forwarding.release(&client);
        client.context().close();
        found
    }

    fn wait(
        &self,
        client: &Client,
        mut first: impl FnMut() -> Option<First>,
        offset: i64,
    ) -> Result<FetchOutcome, KafkaError> {
        let begin = Instant::now();
        while begin.elapsed() < DEADLINE && !self.closing.load(Ordering::Acquire) {
            if let Some(Err(error)) = client.poll(Duration::from_millis(2)) {
                tracing::debug!(%error, "while looking at a batch");
            }
            while let Some(note) = client.context().pop() {
                if let Note::Error(_, reason) = note
                    && let Some(damage) = too_large(&reason)
                {
                    return Ok(FetchOutcome::Damaged(offset, damage));
                }
            }
            match first() {
                Some(First::Record | First::End) => return Ok(FetchOutcome::Readable),
                Some(First::Damaged(first, damage)) => return Ok(FetchOutcome::Damaged(first, damage)),
                Some(First::Error) | None => {}
            }
        }
        Err(timed_out())
    }
}

fn timed_out() -> KafkaError {
    KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut)
}
