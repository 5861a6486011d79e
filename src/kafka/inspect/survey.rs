//! What tools ask about topics and the group besides the state itself: partitions, where logs begin and end, members. No group is joined.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::sample::{Heard, Patience};
use super::{ANSWER_WITHIN, ATTEMPT, Asker, Failure, StateFacts, Trouble};
use crate::config;
use crate::kafka::topic_ids;

/// Asks one cluster.
pub struct Survey {
    asker: Asker,
    group_id: String,
}

/// Where the log of a partition begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSpan {
    pub low: i64,
    pub high: i64,
}

impl Survey {
    /// # Errors
    /// The client cannot be made.
    pub fn new(kafka: &config::Kafka) -> Result<Survey, Failure> {
        Ok(Survey {
            asker: Asker::new(ANSWER_WITHIN, kafka)?,
            group_id: kafka.group_id.clone(),
        })
    }

    /// # Errors
    /// The brokers do not answer, or do not show the topic.
    pub fn n_partitions(&self, topic: &str) -> Result<NonZeroU32, Failure> {
        self.asker.partitions(topic)
    }

    /// Looks at the state topic.
    pub fn state(&self, topic: &str) -> StateFacts {
        self.asker.state(
            topic,
            self.asker
                .metadata(topic)
                .map_or(0, |metadata| metadata.brokers().len()),
        )
    }

    /// Of each partition.
    ///
    /// # Errors
    /// As those of [`Survey::n_partitions`].
    pub fn logs(&self, topic: &str) -> Result<Vec<LogSpan>, Failure> {
        let n_partitions = self.n_partitions(topic)?;
        let low = self.asker.offsets(topic, n_partitions, Offset::Beginning)?;
        let high = self.asker.offsets(topic, n_partitions, Offset::End)?;
        let spans = low.into_iter().zip(high);
        Ok(spans.map(|(low, high)| LogSpan { low, high }).collect())
    }

    /// Hands over the values of all records that a topic has now, of each partition in its order, until `take` has had enough.
    ///
    /// # Errors
    /// As those of [`Survey::n_partitions`], or no record comes for a minute.
    pub fn read_whole(
        &self,
        topic: &str,
        mut take: impl FnMut(Option<&[u8]>) -> bool,
    ) -> Result<(), Failure> {
        let logs = self.logs(topic)?;
        let ends: Vec<i64> = logs.iter().map(|log| log.high).collect();
        let holding = (0..).zip(&logs).filter(|(_, log)| log.low < log.high);
        let starts: BTreeMap<i32, i64> = holding.map(|(partition, log)| (partition, log.low)).collect();
        if starts.is_empty() {
            return Ok(());
        }
        let heard = self
            .asker
            .read(topic, &starts, &ends, Patience::Silence, |_, _, payload| {
                take(payload)
            })?;
        match heard {
            Heard::All => Ok(()),
            Heard::Part => {
                let silence = || Failure::new(Trouble::Unreachable, "no record came within a minute");
                let complaints = self.asker.consumer.context();
                Err(complaints.most_telling().unwrap_or_else(silence))
            }
        }
    }

    /// What Kafka calls the topics: new with each creation, and 0 where it does not tell.
    ///
    /// # Errors
    /// As those of [`Survey::n_partitions`].
    pub fn ids(&self, topics: &[&str]) -> Result<Vec<u128>, Failure> {
        let ids = topic_ids::ids(&self.asker.admin, topics, ANSWER_WITHIN);
        ids.map_err(|error| Failure::of(&error, ""))
    }

    /// How many members the consumer group has now.
    ///
    /// # Errors
    /// The brokers do not answer, or do not show the group.
    pub fn n_members(&self) -> Result<usize, Failure> {
        let group = &self.group_id;
        let listed = self.asker.ask(&[Trouble::GroupForbidden], |consumer| {
            match consumer.fetch_group_list(Some(group), ATTEMPT) {
                Err(KafkaError::GroupListFetch(RDKafkaErrorCode::GroupIdNotFound)) => Ok(None),
                listed => listed.map(Some),
            }
        })?;
        let listed = listed.iter().flat_map(|listed| listed.groups());
        Ok(listed
            .filter(|found| found.name() == group)
            .map(|found| found.members().len())
            .sum())
    }
}
