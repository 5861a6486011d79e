//! Requests of tools about topics and the group, besides the state itself: partitions, log ranges, members. No group is joined.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rdkafka::Message as _;
use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::sample::{ReadCompleteness, StopCondition};
use super::{ANSWER_WITHIN, ATTEMPT, Asker, Failure, StateFacts, Trouble};
use crate::settings;
use crate::stream::kafka::descriptions;

/// Client for one cluster.
pub struct Survey {
    pub(super) asker: Asker,
    group_id: String,
}

/// Range of offsets in the log of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSpan {
    pub low: i64,
    pub high: i64,
}

impl Survey {
    /// Creates the client.
    ///
    /// # Errors
    /// If that fails.
    pub fn new(kafka: &settings::Kafka) -> Result<Survey, Failure> {
        Ok(Survey {
            asker: Asker::new(ANSWER_WITHIN, kafka)?,
            group_id: kafka.group_id.clone(),
        })
    }

    /// Returns the number of partitions of a topic.
    ///
    /// # Errors
    /// If the brokers do not answer, or do not show the topic.
    pub fn n_partitions(&self, topic: &str) -> Result<NonZeroU32, Failure> {
        self.asker.partitions(topic)
    }

    /// Returns the facts about the state topic.
    pub fn state(&self, topic: &str) -> StateFacts {
        self.asker.state(
            topic,
            self.asker
                .metadata(topic)
                .map_or(0, |metadata| metadata.brokers().len()),
        )
    }

    /// Returns the log range of each partition.
    ///
    /// # Errors
    /// Same as [`Survey::n_partitions`].
    pub fn logs(&self, topic: &str) -> Result<Vec<LogSpan>, Failure> {
        let n_partitions = self.n_partitions(topic)?;
        // The low offset goes first: both only grow, so it cannot exceed the high one even if records are deleted in
        // between.
        let low = self.asker.offsets(topic, n_partitions, Offset::Beginning)?;
        let high = self.asker.offsets(topic, n_partitions, Offset::End)?;
        let spans = low.into_iter().zip(high);
        Ok(spans.map(|(low, high)| LogSpan { low, high }).collect())
    }

    /// Passes the values of all current records of a topic to `take`, in order within each partition, until it has enough.
    ///
    /// # Errors
    /// Same as [`Survey::n_partitions`], or if no record comes for a minute.
    pub fn read_whole(
        &self,
        topic: &str,
        mut take: impl FnMut(Option<&[u8]>) -> bool,
    ) -> Result<(), Failure> {
        let logs = self.logs(topic)?;
        // The ends are fixed here, so that the read ends although the topic is being written to.
        let ends: Vec<i64> = logs.iter().map(|log| log.high).collect();
        // An empty partition delivers nothing that could end the wait for it.
        let holding = (0..).zip(&logs).filter(|(_, log)| log.low < log.high);
        let starts: BTreeMap<i32, i64> = holding.map(|(partition, log)| (partition, log.low)).collect();
        if starts.is_empty() {
            return Ok(());
        }
        let heard = self
            .asker
            .read(topic, &starts, &ends, StopCondition::Silence, |record| {
                take(record.payload())
            })?;
        match heard {
            ReadCompleteness::All => Ok(()),
            ReadCompleteness::Part => {
                let silence = || Failure::new(Trouble::Unreachable, "no record came within a minute");
                let complaints = self.asker.consumer.context();
                // A complaint of the client explains the silence better than the silence itself.
                Err(complaints.most_specific().unwrap_or_else(silence))
            }
        }
    }

    /// Returns the ids of topics. An id is new with each creation, and 0 if the brokers have no ids.
    ///
    /// # Errors
    /// Same as [`Survey::n_partitions`].
    pub fn ids(&self, topics: &[&str]) -> Result<Vec<u128>, Failure> {
        let ids = descriptions::ids(&self.asker.admin, topics, ANSWER_WITHIN);
        ids.map_err(|error| Failure::of(&error, ""))
    }

    /// Returns the current number of members in the consumer group.
    ///
    /// # Errors
    /// If the brokers do not answer, or do not show the group.
    pub fn n_members(&self) -> Result<usize, Failure> {
        let group = &self.group_id;
        let listed = self.asker.ask(&[Trouble::GroupForbidden], |consumer| {
            match consumer.fetch_group_list(Some(group), ATTEMPT) {
                // The brokers do not know a group before its first member, which is no failure.
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
