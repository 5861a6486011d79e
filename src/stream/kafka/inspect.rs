//! Inspection of a cluster as a start would find it. This module only gathers facts; `check` judges them.
//!
//! Nothing is changed: no group is joined, no offset committed, no topic created.

mod complaints;
mod failure;
mod latest;
mod sample;
mod state;
mod storing;
mod survey;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::time::Duration;

use abgauge_core::engine::event::{Kind, Side};
use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;
use rdkafka::{Offset, TopicPartitionList};

use self::complaints::ClientComplaints;
pub use self::failure::{Failure, Trouble};
pub use self::latest::LatestRecord;
pub use self::sample::{Sample, SampleReader, SchemaUse};
pub use self::state::{FoundState, StateFacts};
pub use self::storing::{InputFacts, StoringFacts, TopicsAgain, before_storing, while_storing};
pub use self::survey::{LogSpan, Survey};
use super::client::{self, SilentContext};
use super::producer::ANSWER_WITHIN;
use super::topics::wait;
use crate::clock::Clock;
use crate::settings::{self, Config};
use crate::stream::timestamps::Timestamps;

/// Timeout of one attempt at a request. The client's complaints are checked between attempts.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Time to wait for a further complaint.
const DRAIN: Duration = Duration::from_millis(20);

/// Facts about a cluster that answers.
#[derive(Debug)]
pub struct ClusterFacts {
    /// Advertised addresses of the brokers, as `host:port`.
    pub brokers: Vec<String>,
    pub served: Topic,
    /// Topic of clicks. `None` if one topic carries both.
    pub clicks: Option<Topic>,
    pub dead_letters: Option<Result<(), Failure>>,
    /// State topic. `None` if nothing is stored.
    pub state: Option<StateFacts>,
    /// Result of a check that the consumer group can be used.
    pub group: Result<(), Failure>,
}

#[derive(Debug)]
pub struct Topic {
    pub name: String,
    pub found: Result<VisibleTopic, Failure>,
}

/// Topic that exists and that abgauge may see.
#[derive(Debug)]
pub struct VisibleTopic {
    pub n_partitions: NonZeroU32,
    pub settings: Result<TopicSettings, Failure>,
    pub sample: Result<Sample, Failure>,
}

/// Topic settings that decide whether its log can be counted. `None` if the broker does not report a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicSettings {
    pub timestamps: Timestamps,
    /// `retention.ms`. Negative: forever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes` per partition. Negative: unlimited.
    pub retention_bytes: Option<i64>,
    /// `cleanup.policy`
    pub cleanup_policy: Option<String>,
}

/// Inspects the cluster of `config`. Takes some seconds, or up to about a minute if brokers hardly answer.
///
/// # Errors
/// If the client cannot be created, or no broker accepts it.
pub fn inspect(config: &Config) -> Result<ClusterFacts, Failure> {
    inspect_within(ANSWER_WITHIN, config)
}

fn inspect_within(answer: Duration, config: &Config) -> Result<ClusterFacts, Failure> {
    let asker = Asker::new(answer, &config.kafka)?;
    let kafka = &config.kafka;
    let metadata = asker.metadata(&kafka.served_topic)?;
    let brokers = metadata.brokers().iter();
    let brokers = brokers
        .map(|broker| format!("{}:{}", broker.host(), broker.port()))
        .collect();
    let shared = kafka.served_topic == kafka.clicks_topic;
    let served = partitions(&metadata, &kafka.served_topic);
    let served = asker.topic(
        config,
        Side::Served,
        &kafka.served_topic,
        served,
        (!shared).then_some(Kind::Served),
    );
    let clicks = (!shared).then(|| {
        let partitions = asker.partitions(&kafka.clicks_topic);
        asker.topic(
            config,
            Side::Clicks,
            &kafka.clicks_topic,
            partitions,
            Some(Kind::Click),
        )
    });
    let dead_letters = kafka.dead_letter_topic.as_ref();
    let state = config.state.as_ref();
    Ok(ClusterFacts {
        state: state.map(|state| asker.state(&state.topic, metadata.brokers().len())),
        brokers,
        served,
        clicks,
        dead_letters: dead_letters.map(|topic| asker.partitions(topic).map(|_| ())),
        group: asker.group(&kafka.served_topic),
    })
}

/// Clients for the requests.
struct Asker {
    /// Time limit for one request.
    answer: Duration,
    /// Time limit for all of them, from the start of `clock`.
    within: Duration,
    clock: Clock,
    consumer: BaseConsumer<ClientComplaints>,
    admin: AdminClient<SilentContext>,
}

impl Asker {
    fn new(answer: Duration, kafka: &settings::Kafka) -> Result<Asker, Failure> {
        let clock = Clock::system();
        let mut config = client::base_config(kafka);
        let admin =
            AdminClient::from_config_and_context(&config, SilentContext).map_err(Failure::of_config)?;
        // It is assigned by hand, so it reads without joining its group.
        config.remove("group.instance.id");
        config
            .set("group.id", &kafka.group_id)
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("allow.auto.create.topics", "false");
        let consumer = config
            .create_with_context(ClientComplaints::default())
            .map_err(Failure::of_config)?;
        Ok(Asker {
            answer,
            within: Duration::MAX,
            clock,
            consumer,
            admin,
        })
    }

    /// Returns the time that a request may take.
    fn left(&self) -> Duration {
        self.answer.min(self.within.saturating_sub(self.clock.uptime()))
    }

    /// Repeats a request until it is answered, time is up, or the client complains about something that retrying cannot fix.
    fn ask<T>(
        &self,
        hopeless: &[Trouble],
        question: impl Fn(&BaseConsumer<ClientComplaints>) -> KafkaResult<T>,
    ) -> Result<T, Failure> {
        let (clock, left) = (Clock::system(), self.left());
        loop {
            let error = match question(&self.consumer) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Complaints arrive while polling, between unremarkable log lines. No partition is assigned, so no record is lost.
            while self.consumer.poll(DRAIN).is_some() {}
            let complaints = self.consumer.context();
            let all_down = complaints.has(|failure| failure.code == Some(RDKafkaErrorCode::AllBrokersDown));
            let hopeless = complaints.has(|failure| hopeless.contains(&failure.trouble));
            let own = Failure::of(&error, "");
            // A refusal is an answer, so trying again is useless.
            if own.is_final() {
                return Err(own);
            }
            if hopeless || all_down || clock.uptime() >= left {
                return Err(complaints.most_specific().unwrap_or(own));
            }
        }
    }

    fn metadata(&self, topic: &str) -> Result<Metadata, Failure> {
        self.ask(&[Trouble::Credentials, Trouble::Tls], |consumer| {
            consumer.fetch_metadata(Some(topic), ATTEMPT)
        })
    }

    fn partitions(&self, topic: &str) -> Result<NonZeroU32, Failure> {
        partitions(&self.metadata(topic)?, topic)
    }

    fn topic(
        &self,
        config: &Config,
        side: Side,
        name: &str,
        partitions: Result<NonZeroU32, Failure>,
        topic_kind: Option<Kind>,
    ) -> Topic {
        let found = partitions.map(|n_partitions| VisibleTopic {
            n_partitions,
            settings: self.settings(name),
            sample: SampleReader::new(config, side, topic_kind)
                .map_err(|error| Failure::new(Trouble::Other, error.to_string()))
                .and_then(|mut reader| self.sample(&mut reader, name, n_partitions)),
        });
        Topic {
            name: name.to_owned(),
            found,
        }
    }

    fn settings(&self, topic: &str) -> Result<TopicSettings, Failure> {
        settings_of(&self.admin, topic, self.left())
    }

    /// Asks for committed offsets, which needs permission for the group and changes nothing.
    fn group(&self, topic: &str) -> Result<(), Failure> {
        let mut one = TopicPartitionList::new();
        one.add_partition(topic, 0);
        self.ask(&[Trouble::GroupForbidden], |consumer| {
            consumer.committed_offsets(one.clone(), ATTEMPT)
        })
        .map(|_| ())
    }

    /// Returns the offset of each partition at `at`, with one request per broker.
    fn offsets(&self, topic: &str, n_partitions: NonZeroU32, at: Offset) -> Result<Vec<i64>, Failure> {
        let mut asked = TopicPartitionList::new();
        for partition in 0..n_partitions.get().cast_signed() {
            let added = asked.add_partition_offset(topic, partition, at);
            added.map_err(|error| Failure::of(&error, ""))?;
        }
        let offsets = self.ask(&[Trouble::TopicForbidden], |consumer| {
            let answer = consumer.offsets_for_times(asked.clone(), ATTEMPT)?;
            answer.elements().iter().try_for_each(|element| element.error())?;
            Ok(answer)
        })?;
        let offset = |partition| match offsets.find_partition(topic, partition)?.offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        };
        Ok((0..n_partitions.get().cast_signed())
            .map(|partition| offset(partition).unwrap_or(0))
            .collect())
    }
}

/// Returns the settings of a topic, using a separate client.
///
/// # Errors
/// If the client cannot be created, or the brokers do not answer within `answer`.
pub fn settings(kafka: &settings::Kafka, topic: &str, answer: Duration) -> Result<TopicSettings, Failure> {
    let config = client::base_config(kafka);
    let admin = AdminClient::from_config_and_context(&config, SilentContext).map_err(Failure::of_config)?;
    settings_of(&admin, topic, answer)
}

fn settings_of(
    admin: &AdminClient<SilentContext>,
    topic: &str,
    answer: Duration,
) -> Result<TopicSettings, Failure> {
    described(admin, topic, answer).map(|resource| TopicSettings::of(&resource))
}

fn described(
    admin: &AdminClient<SilentContext>,
    topic: &str,
    answer: Duration,
) -> Result<ConfigResource, Failure> {
    let options = AdminOptions::new().request_timeout(Some(answer));
    let asked = [ResourceSpecifier::Topic(topic)];
    let answer = wait(admin.describe_configs(&asked, &options));
    // rdkafka does not return the code of an admin client's error.
    let answer = answer.map_err(|error| match error {
        KafkaError::AdminOp(code) => Failure::of_code(code),
        error => Failure::of(&error, ""),
    });
    let answer = answer?.pop();
    let answer = answer.unwrap_or(Err(RDKafkaErrorCode::UnknownTopicOrPartition));
    match answer {
        // rdkafka does not check for an error here. Every topic has settings, so an empty answer is one.
        Ok(resource) if resource.entries.is_empty() => Err(Failure::new(
            Trouble::TopicForbidden,
            "the brokers returned no settings",
        )),
        answer => answer.map_err(Failure::of_code),
    }
}

fn partitions(metadata: &Metadata, topic: &str) -> Result<NonZeroU32, Failure> {
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    if let Some(code) = found.and_then(|found| found.error()) {
        return Err(Failure::of_code(code.into()));
    }
    let n = found.map_or(0, |found| found.partitions().len());
    let absent = || Failure::of_code(RDKafkaErrorCode::UnknownTopicOrPartition);
    u32::try_from(n).ok().and_then(NonZeroU32::new).ok_or_else(absent)
}

impl TopicSettings {
    fn of(resource: &ConfigResource) -> TopicSettings {
        let text = |name| resource.get(name).and_then(|entry| entry.value.clone());
        let number = |name| text(name).and_then(|value| value.parse().ok());
        // Before Kafka 3.6 there is one bound for both directions.
        let bounds = [
            "message.timestamp.after.max.ms",
            "message.timestamp.difference.max.ms",
        ];
        TopicSettings {
            timestamps: Timestamps {
                kind: text("message.timestamp.type"),
                after_max_ms: bounds.into_iter().filter_map(number).min(),
            },
            retention_ms: number("retention.ms"),
            retention_bytes: number("retention.bytes"),
            cleanup_policy: text("cleanup.policy"),
        }
    }
}
