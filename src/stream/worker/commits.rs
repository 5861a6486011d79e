//! Commits of positions to the group, only for lag monitors: no start uses them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::stream::TopicPartition;

/// Interval between two commits.
const EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Commits {
    last: Duration,
    /// Positions of the last commit.
    positions: BTreeMap<TopicPartition, i64>,
}

impl Commits {
    /// Returns whether this round commits.
    pub fn is_due(&mut self, uptime: Duration) -> bool {
        let is_due = uptime.saturating_sub(self.last) >= EVERY;
        if is_due {
            self.last = uptime;
        }
        is_due
    }

    /// Returns the positions that have changed since the last commit, and marks them as committed.
    pub fn moved(
        &mut self,
        positions: impl Iterator<Item = (TopicPartition, i64)>,
    ) -> Vec<(TopicPartition, i64)> {
        positions
            .filter(|(key, position)| self.positions.insert(*key, *position) != Some(*position))
            .collect()
    }
}
