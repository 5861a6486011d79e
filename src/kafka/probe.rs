//! Questions to the brokers that may take long: a thread asks them, so that the loop never waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::client::fault;
use super::consumer::{Client, Topics};
use crate::engine::event::Side;
use crate::ingest::{Answer, Fault, LogEnd, LogStart, Question, TopicCounts, TopicPartition};

/// How long one request to the brokers may take.
const DEADLINE: Duration = Duration::from_secs(4);

struct Prober {
    client: Arc<Client>,
    topics: Topics,
    /// For the reading of a single record: the group consumer cannot be used for that.
    config: ClientConfig,
}

/// Answers questions until their sender is gone.
pub(super) fn start(
    client: Arc<Client>,
    topics: Topics,
    config: ClientConfig,
    questions: Receiver<Question>,
    answers: Sender<Answer>,
) -> anyhow::Result<JoinHandle<()>> {
    let prober = Prober {
        client,
        topics,
        config,
    };
    let run = move || {
        for question in questions {
            if answers.send(prober.answer(question)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("kafka-probe".into())
        .spawn(run)
        .context("start the thread that asks the brokers")
}

impl Prober {
    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Topics => Answer::Topics(self.topics()),
            Question::Starts {
                epoch,
                partitions,
                seek_ms,
            } => {
                let starts = self
                    .starts(&partitions, seek_ms)
                    .map_err(|error| fault(&error, ""));
                Answer::Starts { epoch, starts }
            }
            Question::Ends {
                epoch,
                clock_run,
                asked_ms,
                partitions,
            } => {
                let ends = self.ends(&partitions).map_err(|error| fault(&error, ""));
                Answer::Ends {
                    epoch,
                    clock_run,
                    asked_ms,
                    ends,
                }
            }
        }
    }

    fn topics(&self) -> Result<TopicCounts, Fault> {
        let served = self.partition_count(&self.topics.served)?;
        let clicks = self.partition_count(&self.topics.clicks)?;
        Ok(TopicCounts { served, clicks })
    }

    fn partition_count(&self, topic: &str) -> Result<i32, Fault> {
        let metadata = self
            .client
            .fetch_metadata(Some(topic), DEADLINE)
            .map_err(|error| fault(&error, ""))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        if let Some(code) = found.and_then(|found| found.error()) {
            let error = KafkaError::MetadataFetch(RDKafkaErrorCode::from(code));
            return Err(fault(&error, &format!("`{topic}`: {error}")));
        }
        match found.map_or(0, |found| found.partitions().len()) {
            0 => {
                let error = KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopic);
                Err(fault(&error, &format!("`{topic}`")))
            }
            n => Ok(n as i32),
        }
    }

    /// One request for each broker: librdkafka groups the partitions by their leaders.
    fn offsets(
        &self,
        partitions: &[TopicPartition],
        at: Offset,
    ) -> Result<BTreeMap<TopicPartition, Offset>, KafkaError> {
        let mut asked = TopicPartitionList::new();
        for (side, partition) in partitions {
            asked.add_partition_offset(self.topics.name(*side), *partition, at)?;
        }
        let mut offsets = BTreeMap::new();
        for element in self.client.offsets_for_times(asked, DEADLINE)?.elements() {
            element.error()?;
            if let Some(side) = self.topics.side(element.topic().as_bytes()) {
                offsets.insert((side, element.partition()), element.offset());
            }
        }
        Ok(offsets)
    }

    fn ends(&self, partitions: &[TopicPartition]) -> Result<BTreeMap<TopicPartition, LogEnd>, KafkaError> {
        let ends = self.offsets(partitions, Offset::End)?;
        let positions = self.client.position()?;
        let position = |(side, partition): &TopicPartition| {
            let element = positions.find_partition(self.topics.name(*side), *partition)?;
            raw(element.offset())
        };
        let of = |(key, end): (&TopicPartition, &Offset)| {
            Some((
                *key,
                LogEnd {
                    end: raw(*end)?,
                    position: position(key),
                },
            ))
        };
        Ok(ends.iter().filter_map(of).collect())
    }

    fn starts(
        &self,
        partitions: &[TopicPartition],
        seek_ms: Option<i64>,
    ) -> Result<BTreeMap<TopicPartition, LogStart>, KafkaError> {
        let lows = self.offsets(partitions, Offset::Beginning)?;
        // A log whose records are all older has no offset for the time. It is read from the end that it had before the
        // question: a record that comes between two questions is not passed over.
        let ends_before = self.offsets(partitions, Offset::End)?;
        let by_time = match seek_ms {
            Some(seek_ms) => self.offsets(partitions, Offset::Offset(seek_ms))?,
            None => BTreeMap::new(),
        };
        // Asked last, so that what is noted as the end is not before anything that was found.
        let highs = self.offsets(partitions, Offset::End)?;
        let mut starts = BTreeMap::new();
        for key in partitions {
            let of = |offsets: &BTreeMap<_, Offset>| offsets.get(key).copied().and_then(raw);
            let (Some(low), Some(high)) = (of(&lows), of(&highs)) else {
                return Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownPartition));
            };
            let by_time = seek_ms.and_then(|_| of(&by_time).or_else(|| of(&ends_before)));
            let begins_inside = by_time.is_none_or(|offset| offset == low);
            let first_record_ms = if low > 0 && low < high && begins_inside {
                self.first_record_ms(*key, low)?
            } else {
                None
            };
            starts.insert(
                *key,
                LogStart {
                    low,
                    high,
                    by_time,
                    first_record_ms,
                },
            );
        }
        Ok(starts)
    }

    /// The timestamp of the first record that retention has left; none where nothing is left that can be read, but
    /// markers of transactions.
    fn first_record_ms(&self, (side, partition): (Side, i32), low: i64) -> Result<Option<i64>, KafkaError> {
        let mut config = self.config.clone();
        config.remove("group.instance.id");
        // It never joins the group whose name it bears: permissions are granted on that one.
        config
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true");
        let reader: BaseConsumer = config.create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(self.topics.name(side), partition, Offset::Offset(low))?;
        reader.assign(&list)?;
        let mut last_error = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            match reader.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => {
                    return Ok(Some(message.timestamp().to_millis().unwrap_or(i64::MAX)));
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(None),
                // One broker of several may be away.
                Some(Err(error)) => last_error = error,
                None => {}
            }
        }
        Err(last_error)
    }
}

fn raw(offset: Offset) -> Option<i64> {
    match offset {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}
