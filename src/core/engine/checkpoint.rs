//! Checkpoint of a pair between two batches: everything besides its ledger that is needed to resume it elsewhere.

use std::fmt;

use super::copies::{CopiesCheckpoint, CopiesReach};
use super::event::Side;
use super::gather::GatherCheckpoint;
use super::open_events::{Digest, ResumePoint};

/// The ledger as of the same moment covers all before `until_ms`; the rest comes back if the logs are read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// start(F), the end of the range that the ledger covers, Unix ms; `None` before the pair had a record.
    pub until_ms: Option<i64>,
    /// Time at which counting starts, Unix ms; `None`: with the first record.
    pub begin_ms: Option<i64>,
    /// `None` before the first accepted event.
    pub accepted: Option<Accepted>,
    /// No sum has exceeded 64 bits, and no record was shed.
    pub is_exact: bool,
    /// One per topic.
    pub logs: Vec<LogCheckpoint>,
    pub copies: CopiesCheckpoint,
    /// Empty unless lists are gathered.
    pub gathered: GatherCheckpoint,
    /// Hashes of the folded arms, in the order of their first lists.
    pub folded: Vec<u128>,
}

impl Checkpoint {
    /// Returns the logs as they are read again if they still reach back far enough: further back if settled lists may still be
    /// copied.
    pub fn logs_for_copies(&self) -> impl Iterator<Item = LogCheckpoint> {
        self.logs.iter().map(|log| match self.copies.reach {
            Some(CopiesReach { resume, open }) if log.side == Side::Served => {
                LogCheckpoint { resume, open, ..*log }
            }
            _ => *log,
        })
    }
}

/// Read progress in one topic partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCheckpoint {
    pub side: Side,
    /// The next record to read, and M there. Earlier records have their outcomes.
    pub position: ResumePoint,
    /// The record to replay from, and M there; equals the position if nothing before it is open.
    pub resume: ResumePoint,
    /// Digest of the accepted events before the position that are open: lists of slots that are not settled, and clicks that
    /// may belong to such a list.
    pub open: Digest,
}

/// Times of accepted events, Unix ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    pub first_ms: i64,
    pub last_ms: i64,
    /// The timestamp of the first record with the last time.
    pub last_record_ms: i64,
}

/// Reason why a pair cannot resume from a checkpoint: it is damaged, or was made under other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeError {
    /// Its end differs from the ledger's, or is not the border of a slot.
    Until,
    /// More arms than the rules admit, or one twice.
    Arms,
    /// The topics are not the ones that the pair reads, or a replay would start after its position.
    Logs,
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResumeError::Until => {
                "the checkpoint does not end where its ledger does, at the border of a slot"
            }
            ResumeError::Arms => "its arms are not those that these rules admit",
            ResumeError::Logs => "its positions are not those of the topics that the pair reads",
        })
    }
}

impl std::error::Error for ResumeError {}
