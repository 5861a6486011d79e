//! Looks at batches that may be damaged: one at a time, and each log again only after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ingest::{Look, TopicPartition};

#[derive(Debug, Default)]
pub struct Looks {
    /// Since when a log stands where it does, of those that more is to come of.
    standing: BTreeMap<TopicPartition, (i64, Duration)>,
    /// A batch is being looked at.
    is_open: bool,
}

/// A log that more is to come of, which is looked at once it has stood there for so long.
#[derive(Debug)]
pub struct StalledLog {
    pub look: Look,
    pub after: Duration,
}

impl Looks {
    /// Notes where these logs stand, and forgets the others; returns the first look that is due.
    pub fn due(&mut self, logs: &[StalledLog], uptime: Duration) -> Option<Look> {
        self.standing
            .retain(|partition, _| logs.iter().any(|log| log.look.partition == *partition));
        let mut due = None;
        for StalledLog { look, after } in logs {
            let here = (look.offset, uptime);
            let since = self.standing.entry(look.partition).or_insert(here);
            if since.0 != look.offset {
                *since = here;
            }
            if due.is_none() && !self.is_open && uptime.saturating_sub(since.1) >= *after {
                due = Some(*look);
            }
        }
        due
    }

    /// Begins a look, unless there is another; says whether it does.
    pub fn begin(&mut self, look: Look, uptime: Duration) -> bool {
        if self.is_open {
            return false;
        }
        self.is_open = true;
        self.standing.insert(look.partition, (look.offset, uptime));
        true
    }

    /// The look has been answered.
    pub fn end(&mut self) {
        self.is_open = false;
    }
}
