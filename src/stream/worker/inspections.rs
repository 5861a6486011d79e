//! Schedule of checks for damaged batches: one at a time, and each log again only after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::stream::{Inspection, TopicPartition};

#[derive(Debug, Default)]
pub struct Inspections {
    /// Position of each log that has more records, and the time since which it has been there.
    standing: BTreeMap<TopicPartition, (i64, Duration)>,
    /// Set while a check is running.
    is_open: bool,
}

/// Log that has more records but does not advance. It is checked after `after`.
#[derive(Debug)]
pub struct StalledLog {
    pub inspection: Inspection,
    pub after: Duration,
}

impl Inspections {
    /// Notes the positions of these logs and forgets the others. Returns the first check that is due.
    pub fn due(&mut self, logs: &[StalledLog], uptime: Duration) -> Option<Inspection> {
        // Logs that are not stalled any more start over.
        self.standing
            .retain(|partition, _| logs.iter().any(|log| log.inspection.partition == *partition));
        let mut due = None;
        for StalledLog { inspection, after } in logs {
            let here = (inspection.offset, uptime);
            let since = self.standing.entry(inspection.partition).or_insert(here);
            // The log has advanced since, so the wait restarts.
            if since.0 != inspection.offset {
                *since = here;
            }
            if due.is_none() && !self.is_open && uptime.saturating_sub(since.1) >= *after {
                due = Some(*inspection);
            }
        }
        due
    }

    /// Begins a check unless one is running, and returns whether it did.
    pub fn begin(&mut self, inspection: Inspection, uptime: Duration) -> bool {
        if self.is_open {
            return false;
        }
        self.is_open = true;
        self.standing
            .insert(inspection.partition, (inspection.offset, uptime));
        true
    }

    /// Notes that the check was answered.
    pub fn end(&mut self) {
        self.is_open = false;
    }
}
