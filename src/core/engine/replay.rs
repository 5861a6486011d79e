//! A log that is read again: which of its records have had their outcome, and whether they are those that were counted.

use super::checkpoint::LogCheckpoint;
use super::open_events::{Digest, ResumePoint};

/// Result of replaying a topic partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// The position is not reached yet.
    UnderWay,
    /// The records before the position are those that were counted.
    Same,
    /// The records differ, so this is another log, or it was changed.
    Other,
    /// The records may differ, because some were shed.
    Unknown,
}

/// One topic partition, from its resume point to its position.
#[derive(Debug)]
pub struct Replay {
    position: ResumePoint,
    expected: Digest,
    /// Digest of the events that were accepted again.
    found: Digest,
    /// Set at the position.
    is_same: Option<bool>,
}

impl Replay {
    pub fn new(log: &LogCheckpoint) -> Replay {
        Replay {
            position: log.position,
            expected: log.open,
            found: Digest::default(),
            is_same: None,
        }
    }

    /// Returns whether a record at this offset already has its outcome.
    pub fn covers(&self, offset: i64) -> bool {
        offset < self.position.offset
    }

    pub fn accept(&mut self, hash: u64) {
        self.found.add(hash);
    }

    /// Notes that all records before this offset were read, and M at that point.
    pub fn reach(&mut self, at: ResumePoint) {
        if self.is_same.is_none() && !self.covers(at.offset) {
            // M must agree too: refused records are not in the digest, but may have moved M.
            let is_same = self.found == self.expected && at.newest_ms == self.position.newest_ms;
            self.is_same = Some(is_same);
        }
    }

    /// Returns whether the position was reached.
    pub fn has_ended(&self) -> bool {
        self.is_same.is_some()
    }

    pub fn outcome(&self, has_shed: bool) -> Replayed {
        match self.is_same {
            None => Replayed::UnderWay,
            Some(true) => Replayed::Same,
            Some(false) if has_shed => Replayed::Unknown,
            Some(false) => Replayed::Other,
        }
    }
}
