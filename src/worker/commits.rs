//! Commits of positions to the group. Only lag monitors use them; no start does.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ingest::TopicPartition;

/// How often positions are committed.
const EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Commits {
    last: Duration,
    /// The last commit.
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

    /// The positions that have changed since the last commit; marks them as committed.
    pub fn moved(
        &mut self,
        positions: impl Iterator<Item = (TopicPartition, i64)>,
    ) -> Vec<(TopicPartition, i64)> {
        positions
            .filter(|(key, position)| self.positions.insert(*key, *position) != Some(*position))
            .collect()
    }
}
