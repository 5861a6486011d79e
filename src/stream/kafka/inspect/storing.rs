//! Inspection of the topics before the state of pairs is stored.

use std::time::Duration;

use rdkafka::consumer::Consumer as _;
use rdkafka::{Offset, TopicPartitionList};

use super::{ATTEMPT, Asker, Failure, StateFacts, TopicSettings};
use crate::settings;
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

/// Facts that may change while state is stored.
#[derive(Debug)]
pub struct TopicsAgain {
    pub state: Result<StateFacts, Failure>,
    /// Ids of the topics of events. 0 if the brokers have no ids.
    pub ids: Result<Vec<u128>, Failure>,
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
    Ok(StoringFacts {
        state: asker.state_topic(state_topic)?,
        has_read: inputs.iter().any(|topic| asker.has_read(topic)),
        inputs: inputs.iter().map(|topic| asker.input(topic)).collect(),
    })
}

/// Inspects again what may change while state is stored. Takes hardly longer than `within`.
///
/// # Errors
/// If the client cannot be created.
pub fn while_storing(
    kafka: &settings::Kafka,
    state_topic: &str,
    inputs: &[&str],
    within: Duration,
) -> Result<TopicsAgain, Failure> {
    let asker = Asker {
        within,
        ..Asker::new(within, kafka)?
    };
    Ok(TopicsAgain {
        state: asker.state_topic(state_topic),
        ids: descriptions::ids(&asker.admin, inputs, asker.left()).map_err(|error| Failure::of(&error, "")),
    })
}

impl Asker {
    /// Returns the facts about the state topic. Fails if no broker accepts the client.
    fn state_topic(&self, name: &str) -> Result<StateFacts, Failure> {
        let metadata = self.metadata(name)?;
        Ok(StateFacts {
            name: name.to_owned(),
            n_brokers: metadata.brokers().len(),
            found: self.found_state(name, &metadata),
        })
    }

    fn input(&self, name: &str) -> InputFacts {
        let ids = descriptions::ids(&self.admin, &[name], self.left());
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
