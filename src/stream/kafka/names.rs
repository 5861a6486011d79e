//! Names of the event topics.

use abgauge_core::engine::event::Side;
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use crate::settings;
use crate::stream::TopicPartition;

/// Names of the event topics. If both kinds share a topic, all of its records are on the side of served lists.
#[derive(Debug, Clone)]
pub struct TopicNames {
    pub served: String,
    pub clicks: String,
}

impl TopicNames {
    pub fn new(kafka: &settings::Kafka) -> TopicNames {
        TopicNames {
            served: kafka.served_topic.clone(),
            clicks: kafka.clicks_topic.clone(),
        }
    }

    pub fn name(&self, side: Side) -> &str {
        match side {
            Side::Served => &self.served,
            Side::Clicks => &self.clicks,
        }
    }

    pub fn side(&self, name: &[u8]) -> Option<Side> {
        if name == self.served.as_bytes() {
            Some(Side::Served)
        } else {
            (name == self.clicks.as_bytes()).then_some(Side::Clicks)
        }
    }

    pub fn partitions<'a>(&self, of: impl IntoIterator<Item = &'a TopicPartition>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for (side, partition) in of {
            list.add_partition(self.name(*side), *partition);
        }
        list
    }

    pub fn offsets(&self, of: &[(TopicPartition, i64)]) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for ((side, partition), offset) in of {
            list.add_partition_offset(self.name(*side), *partition, Offset::Offset(*offset))?;
        }
        Ok(list)
    }
}
