//! Inspection of the topics before the state of pairs is stored.

use std::time::Duration;

use rdkafka::admin::AdminClient;
use rdkafka::config::FromClientConfigAndContext as _;
use rdkafka::consumer::Consumer as _;
use rdkafka::{Offset, TopicPartitionList};

use super::{ATTEMPT, Asker, Failure, StateFacts, TopicSettings};
use crate::settings;
use crate::stream::kafka::client::{self, SilentContext};
use crate::stream::kafka::descriptions;

#[derive(Debug)]
pub struct StoringFacts {
    pub state: StateFacts,
    /// Topic of lists, then topic of clicks, or one for both.
    pub inputs: Vec<InputFacts>,
    /// True if the group has committed offsets, and so has read these topics before.
    pub has_read: bool,
}

/// Facts about a topic of events.
#[derive(Debug)]
pub struct InputFacts {
    pub name: String,
    /// Id that is new with each creation. 0 if the brokers have no ids.
    pub id: Result<u128, Failure>,
    pub settings: Result<TopicSettings, Failure>,
}

/// Inspects the state topic and these topics of events. Takes some seconds, and at most a few times `answer`.
///
/// # Errors
/// If the client cannot be created, or no broker accepts it.
pub fn before_storing(
    kafka: &settings::Kafka,
    state_topic: &str,
    inputs: &[&str],
    answer: Duration,
) -> Result<StoringFacts, Failure> {
    let asker = Asker::new(answer, kafka)?;
    let n_brokers = asker.metadata(state_topic)?.brokers().len();
    Ok(StoringFacts {
        state: asker.state(state_topic, n_brokers),
        has_read: inputs.iter().any(|topic| asker.has_read(topic)),
        inputs: inputs.iter().map(|topic| asker.input(topic)).collect(),
    })
}

/// Returns the facts about the state topic alone.
///
/// # Errors
/// If the client cannot be created, or no broker accepts it.
pub fn state_topic(kafka: &settings::Kafka, name: &str, answer: Duration) -> Result<StateFacts, Failure> {
    let asker = Asker::new(answer, kafka)?;
    let n_brokers = asker.metadata(name)?.brokers().len();
    Ok(asker.state(name, n_brokers))
}

/// Returns the ids of topics in the given order, using a separate client. They are 0 if the brokers have no ids.
///
/// # Errors
/// If the client cannot be created, or the brokers do not answer within `answer`.
pub fn topic_ids(kafka: &settings::Kafka, topics: &[&str], answer: Duration) -> Result<Vec<u128>, Failure> {
    let config = client::base_config(kafka);
    let admin = AdminClient::from_config_and_context(&config, SilentContext).map_err(Failure::of_config)?;
    descriptions::ids(&admin, topics, answer).map_err(|error| Failure::of(&error, ""))
}

impl Asker {
    fn input(&self, name: &str) -> InputFacts {
        let ids = descriptions::ids(&self.admin, &[name], self.answer);
        let id = ids.map(|ids| ids.first().copied().unwrap_or(0));
        InputFacts {
            name: name.to_owned(),
            id: id.map_err(|error| Failure::of(&error, "")),
            settings: self.settings(name),
        }
    }

    /// Returns whether our group has committed an offset of the topic. Without permission to ask, it cannot have.
    fn has_read(&self, topic: &str) -> bool {
        let mut all = TopicPartitionList::new();
        let n_partitions = self.partitions(topic).map_or(0, |n| n.get().cast_signed());
        for partition in 0..n_partitions {
            all.add_partition(topic, partition);
        }
        let committed = self.consumer.committed_offsets(all, ATTEMPT);
        committed.is_ok_and(|committed| {
            let elements = committed.elements();
            elements
                .iter()
                .any(|element| matches!(element.offset(), Offset::Offset(_)))
        })
    }
}
