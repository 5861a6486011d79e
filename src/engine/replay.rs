//! A log that is read again: which of its records have had their outcome, and whether they are those that were counted.

use super::checkpoint::LogCheckpoint;
use super::open_events::{Digest, ResumePoint};

/// What has come of reading a topic partition again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It has not reached the position yet.
    UnderWay,
    /// The records before the position are those that were counted.
    Same,
    /// They are not, so this is another log, or one that was changed.
    Other,
    /// They need not be, because records were shed.
    Unknown,
}

/// One topic partition, from its resume point to its position.
#[derive(Debug)]
pub struct Replay {
    position: ResumePoint,
    expected: Digest,
    /// Of the events that were accepted again.
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

    /// Whether a record of this offset has had its outcome.
    pub fn covers(&self, offset: i64) -> bool {
        offset < self.position.offset
    }

    pub fn accept(&mut self, hash: u64) {
        self.found.add(hash);
    }

    /// Notes that all records before this offset were read, and what M is there.
    pub fn reach(&mut self, at: ResumePoint) {
        if self.is_same.is_none() && !self.covers(at.offset) {
            let is_same = self.found == self.expected && at.newest_ms == self.position.newest_ms;
            self.is_same = Some(is_same);
        }
    }

    /// Whether it has reached the position.
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
