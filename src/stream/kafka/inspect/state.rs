//! Inspection of the state topic.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rdkafka::metadata::Metadata;

use super::{Asker, Failure, described, partitions};
use crate::stream::kafka::descriptions;

/// Facts about the state topic.
#[derive(Debug)]
pub struct StateFacts {
    pub name: String,
    pub n_brokers: usize,
    pub found: Result<FoundState, Failure>,
}

#[derive(Debug)]
pub struct FoundState {
    pub n_partitions: NonZeroU32,
    /// Number of replicas of the partition with the fewest.
    pub n_replicas: usize,
    /// Whether the user may write to it. `None` if the brokers do not report rights.
    pub may_write: Result<Option<bool>, Failure>,
    /// Settings by name.
    pub settings: Result<BTreeMap<String, String>, Failure>,
}

impl Asker {
    pub(super) fn state(&self, name: &str, n_brokers: usize) -> StateFacts {
        let metadata = self.metadata(name);
        StateFacts {
            name: name.to_owned(),
            n_brokers,
            found: metadata.and_then(|metadata| self.found_state(name, &metadata)),
        }
    }

    pub(super) fn found_state(&self, name: &str, metadata: &Metadata) -> Result<FoundState, Failure> {
        let n_partitions = partitions(metadata, name)?;
        let topics = metadata.topics().iter().filter(|topic| topic.name() == name);
        let replicas = topics
            .flat_map(|topic| topic.partitions())
            .map(|of| of.replicas().len());
        let may_write = descriptions::may_write(&self.admin, name, self.left());
        Ok(FoundState {
            n_partitions,
            n_replicas: replicas.min().unwrap_or(0),
            may_write: may_write.map_err(|error| Failure::of(&error, "")),
            settings: described(&self.admin, name, self.left()).map(|resource| {
                let entries = resource.entries.into_iter();
                entries
                    .filter_map(|entry| Some((entry.name, entry.value?)))
                    .collect()
            }),
        })
    }
}
