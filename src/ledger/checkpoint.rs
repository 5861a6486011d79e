//! What a pair stands at between two batches: what, beside its ledger, must be known to go on elsewhere.

use crate::engine::ResumePoint;
use crate::engine::event::Side;

/// The ledger as of the same moment covers all before `until_ms`; the rest comes back if the logs are read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// End of what the ledger covers, epoch ms; none before the pair had a record.
    pub until_ms: Option<i64>,
    /// Where the pair begins to count, epoch ms; none: with the first record.
    pub begin_ms: Option<i64>,
    /// No sum has exceeded 64 bits, and no record was shed.
    pub is_exact: bool,
    /// One for each topic.
    pub logs: Vec<LogCheckpoint>,
}

/// How far one topic partition has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogCheckpoint {
    pub side: Side,
    /// The next record to read, and M there. What lies before has had its outcome.
    pub position: ResumePoint,
    /// The record to read again from, and M there; the position where nothing before it is open.
    pub resume: ResumePoint,
}
