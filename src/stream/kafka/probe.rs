//! Requests to the brokers that may take long, made on a thread so that the loop never waits.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abgauge_core::engine::event::Side;
use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::answering::AnsweringThread;
use super::callbacks::Client;
use super::client::{SilentContext, fault, look_for_leaders};
use super::names::TopicNames;
use super::{group, inspect};
use crate::settings;
use crate::stream::timestamps::Timestamps;
use crate::stream::{
    Answer, Fault, FaultKind, GroupState, LogEnd, LogStart, Question, TopicCounts, TopicPartition,
};

/// Timeout of one request to the brokers.
const DEADLINE: Duration = Duration::from_secs(4);
/// Time for which brokers must report a topic as unknown until it counts as missing. A broker that just started may know none.
const CERTAIN: Duration = Duration::from_secs(10);

struct Prober {
    client: Arc<Client>,
    /// Client for log ranges, which reads no records. On the connection of the group's client an answer waits behind fetches.
    /// Unlike that client it also sees records of open transactions.
    uncommitted: BaseConsumer<SilentContext>,
    topics: TopicNames,
    kafka: settings::Kafka,
    /// Configuration for reading a single record, for which the group consumer cannot be used.
    config: ClientConfig,
    /// Topic that was unknown to the brokers at the last request, and since when.
    absent: Cell<Option<(Side, Instant)>>,
    /// Positions of partitions at the last request for ends.
    positions: RefCell<BTreeMap<TopicPartition, Option<i64>>>,
}

/// Starts a thread that answers questions.
pub(super) fn start(
    client: Arc<Client>,
    kafka: &settings::Kafka,
    config: ClientConfig,
) -> anyhow::Result<AnsweringThread<Question, Answer>> {
    let mut own = config.clone();
    // Under the same instance id, this client would take the place of the group's own one.
    own.remove("group.instance.id");
    own.set("isolation.level", "read_uncommitted");
    let prober = Prober {
        uncommitted: own
            .create_with_context(SilentContext)
            .context("create the client that queries the ends of the logs")?,
        client,
        topics: TopicNames::new(kafka),
        kafka: kafka.clone(),
        config,
        absent: Cell::new(None),
        positions: RefCell::default(),
    };
    AnsweringThread::start("kafka-probe", move |questions, answers| {
        for question in questions {
            if answers.send(prober.answer(question)).is_err() {
                return;
            }
        }
    })
}

impl Prober {
    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Topics => Answer::Topics(self.topics()),
            Question::Timestamps => Answer::Timestamps(self.timestamps()),
            Question::Group { epoch } => Answer::Group {
                epoch,
                state: self.group().map_err(|error| fault(&error, "")),
            },
            Question::Starts {
                epoch,
                partitions,
                seek_ms,
            } => {
                let starts = self.starts(&partitions, seek_ms);
                let starts = starts.map_err(|error| self.look_into(&error));
                Answer::Starts { epoch, starts }
            }
            Question::Commit {
                epoch,
                pair,
                number,
                positions,
            } => Answer::Commit {
                epoch,
                pair,
                number,
                is_known: self.is_known(pair, &positions),
            },
            Question::Ends {
                epoch,
                clock_run,
                asked_ms,
                partitions,
            } => {
                let ends = self.ends(&partitions).map_err(|error| self.look_into(&error));
                Answer::Ends {
                    epoch,
                    clock_run,
                    asked_ms,
                    ends,
                }
            }
        }
    }

    /// Returns whether the group knows this member and generation, by committing. `None` if the answer does not reveal it.
    fn is_known(&self, pair: i32, positions: &[(TopicPartition, i64)]) -> Option<bool> {
        let list = match positions {
            [] => self.committed(pair).ok()?,
            positions => self.topics.offsets(positions).ok()?,
        };
        match self.client.commit(&list, CommitMode::Sync) {
            Ok(()) => Some(true),
            Err(error) => match error.rdkafka_error_code()? {
                RDKafkaErrorCode::UnknownMemberId
                | RDKafkaErrorCode::IllegalGeneration
                | RDKafkaErrorCode::FencedInstanceId
                | RDKafkaErrorCode::RebalanceInProgress => Some(false),
                // Anything else, such as a timeout, proves neither.
                _ => None,
            },
        }
    }

    /// Returns the group's committed offsets of a pair that is not read yet, for committing them again. Without an offset the
    /// client would not ask the group.
    fn committed(&self, pair: i32) -> Result<TopicPartitionList, KafkaError> {
        let mut asked = TopicPartitionList::new();
        for topic in BTreeSet::from([&self.topics.served, &self.topics.clicks]) {
            asked.add_partition(topic, pair);
        }
        let known = self.client.committed_offsets(asked, DEADLINE)?;
        let mut list = TopicPartitionList::new();
        for element in known.elements() {
            element.error()?;
            let offset = Offset::Offset(raw(element.offset()).unwrap_or(0));
            list.add_partition_offset(element.topic(), element.partition(), offset)?;
        }
        Ok(list)
    }

    /// Returns the timestamp settings of the topics. Without permission they are missing, which `abgauge check --connect`
    /// reports.
    fn timestamps(&self) -> Vec<(Side, Timestamps)> {
        let sides: &[Side] = match self.topics.served == self.topics.clicks {
            true => &[Side::Served],
            false => &Side::BOTH,
        };
        let of = |side: &Side| {
            let settings = inspect::settings(&self.kafka, self.topics.name(*side), DEADLINE).ok()?;
            Some((*side, settings.timestamps))
        };
        sides.iter().filter_map(of).collect()
    }

    fn topics(&self) -> Result<TopicCounts, Fault> {
        let served = self.partition_count(Side::Served)?;
        let clicks = self.partition_count(Side::Clicks)?;
        Ok(TopicCounts { served, clicks })
    }

    fn group(&self) -> Result<GroupState, KafkaError> {
        let group_id = self.config.get("group.id").unwrap_or_default();
        let topics = [&*self.topics.served, &*self.topics.clicks];
        group::state(&self.client, group_id, topics, DEADLINE)
    }

    fn partition_count(&self, side: Side) -> Result<i32, Fault> {
        const ABSENT: RDKafkaErrorCode = RDKafkaErrorCode::UnknownTopicOrPartition;
        let topic = self.topics.name(side);
        let metadata = self.client.fetch_metadata(Some(topic), DEADLINE);
        let metadata = metadata.map_err(|error| {
            // Without an answer the topic may exist, so the time of its absence restarts.
            self.absent.set(None);
            fault(&error, "")
        })?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let code = match found.map(|found| (found.error(), found.partitions().len())) {
            Some((None, n)) if n > 0 => None,
            Some((Some(code), _)) => Some(code.into()),
            _ => Some(ABSENT),
        };
        let since = match self.absent.get() {
            Some((known, since)) if known == side => since,
            _ => Instant::now(),
        };
        // An answer about one topic must not affect the other.
        if code == Some(ABSENT) {
            self.absent.set(Some((side, since)));
        } else if self.absent.get().is_some_and(|(known, _)| known == side) {
            self.absent.set(None);
        }
        match code {
            None => Ok(found.map_or(0, |found| found.partitions().len() as i32)),
            Some(ABSENT) if since.elapsed() < CERTAIN => Err(Fault {
                message: format!(
                    "the brokers do not have topic `{topic}` yet: trying again, because they may have just started"
                ),
                kind: FaultKind::Uncertain,
            }),
            Some(code) => {
                let error = KafkaError::MetadataFetch(code);
                Err(fault(&error, &format!("`{topic}`: {error}")))
            }
        }
    }

    fn look_into(&self, error: &KafkaError) -> Fault {
        for topic in BTreeSet::from([&self.topics.served, &self.topics.clicks]) {
            look_for_leaders(&*self.client, topic, error, DEADLINE);
            look_for_leaders(&self.uncommitted, topic, error, DEADLINE);
        }
        self.explain(error)
    }

    /// Explains an error. If the client knows nothing about a partition, the brokers' metadata decides.
    fn explain(&self, error: &KafkaError) -> Fault {
        let code = error.rdkafka_error_code();
        let is_unknown = matches!(
            code,
            Some(
                RDKafkaErrorCode::UnknownTopic
                    | RDKafkaErrorCode::UnknownPartition
                    | RDKafkaErrorCode::UnknownTopicOrPartition
            )
        );
        match is_unknown.then(|| self.topics()) {
            Some(Err(of_topics)) => of_topics,
            // The topics exist, but the client has not learned about them yet.
            Some(Ok(_)) => fault(&KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownPartition), ""),
            None => fault(error, ""),
        }
    }

    /// Returns offsets with one request per broker, because librdkafka groups partitions by leader.
    fn offsets<C: ConsumerContext>(
        &self,
        client: &BaseConsumer<C>,
        partitions: &[TopicPartition],
        at: Offset,
    ) -> Result<BTreeMap<TopicPartition, Offset>, KafkaError> {
        let mut asked = TopicPartitionList::new();
        for (side, partition) in partitions {
            asked.add_partition_offset(self.topics.name(*side), *partition, at)?;
        }
        let mut offsets = BTreeMap::new();
        for element in client.offsets_for_times(asked, DEADLINE)?.elements() {
            element.error()?;
            if let Some(side) = self.topics.side(element.topic().as_bytes()) {
                offsets.insert((side, element.partition()), element.offset());
            }
        }
        Ok(offsets)
    }

    fn ends(&self, partitions: &[TopicPartition]) -> Result<BTreeMap<TopicPartition, LogEnd>, KafkaError> {
        let ends = self.offsets(&self.uncommitted, partitions, Offset::End)?;
        let positions = self.client.position()?;
        let position = |(side, partition): &TopicPartition| {
            let element = positions.find_partition(self.topics.name(*side), *partition)?;
            raw(element.offset())
        };
        // Also ask for the end that readers of committed records see, but only for partitions that stand still before their
        // end. On this connection an answer waits behind fetches.
        let before = self.positions.take();
        let stands = |key: &&TopicPartition| {
            let position = position(key);
            position < ends.get(key).copied().and_then(raw) && before.get(*key) == Some(&position)
        };
        let standing: Vec<TopicPartition> = partitions.iter().filter(stands).copied().collect();
        let stable = match standing.is_empty() {
            true => BTreeMap::new(),
            false => self.offsets(&*self.client, &standing, Offset::End)?,
        };
        self.positions
            .replace(partitions.iter().map(|key| (*key, position(key))).collect());
        let of = |(key, end): (&TopicPartition, &Offset)| {
            Some((
                *key,
                LogEnd {
                    end: raw(*end)?,
                    stable: stable.get(key).copied().and_then(raw),
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
        let offsets = |at| self.offsets(&self.uncommitted, partitions, at);
        let lows = offsets(Offset::Beginning)?;
        // If all records of a log are older, there is no offset for the time. Then it is read from the end it had before that
        // request, so that a record arriving in between is not skipped.
        let ends_before = offsets(Offset::End)?;
        let by_time = match seek_ms {
            Some(seek_ms) => offsets(Offset::Offset(seek_ms))?,
            None => BTreeMap::new(),
        };
        // Asked last, so that the end is not before any of the other offsets.
        let highs = offsets(Offset::End)?;
        let mut starts = BTreeMap::new();
        for key in partitions {
            let of = |offsets: &BTreeMap<_, Offset>| offsets.get(key).copied().and_then(raw);
            let (Some(low), Some(high)) = (of(&lows), of(&highs)) else {
                return Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownPartition));
            };
            let by_time = seek_ms.and_then(|_| of(&by_time).or_else(|| of(&ends_before)));
            // Retention has removed records that would be needed only if reading starts at the first one left.
            let starts_inside = by_time.is_none_or(|offset| offset == low);
            let first_record_ms = if low > 0 && low < high && starts_inside {
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

    /// Returns the timestamp of the first record that retention has left, or `None` if there are only transaction markers.
    fn first_record_ms(&self, (side, partition): (Side, i32), low: i64) -> Result<Option<i64>, KafkaError> {
        let mut config = self.config.clone();
        config.remove("group.instance.id");
        // It never joins the group whose id it uses: permissions are granted on that id.
        config
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true");
        let reader: BaseConsumer<SilentContext> = config.create_with_context(SilentContext)?;
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
                // Keep trying, because only one of several brokers may be down.
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
