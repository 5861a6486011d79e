//! What the group is told of positions: for lag monitors alone, since no start goes by it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ingest::TopicPartition;

/// How often positions are committed.
const EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Commits {
    last: Duration,
    /// What was committed last.
    positions: BTreeMap<TopicPartition, i64>,
}

impl Commits {
    /// Whether this round commits.
    pub fn is_due(&mut self, uptime: Duration) -> bool {
        let is_due = uptime.saturating_sub(self.last) >= EVERY;
        if is_due {
            self.last = uptime;
        }
        is_due
    }

    /// Those of these positions that were not committed yet: they are now.
    pub fn moved(
        &mut self,
        positions: impl Iterator<Item = (TopicPartition, i64)>,
    ) -> Vec<(TopicPartition, i64)> {
        positions
            .filter(|(key, position)| self.positions.insert(*key, *position) != Some(*position))
            .collect()
    }
}
