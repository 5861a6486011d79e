//! Everything that can wake the program but records, as one enum, and everything that it may ask of Kafka, as another.
//!
//! The worker takes inputs, reads records from a [`Source`](super::Source), and gives orders; it never sees the client.
//! This is the seam that tests push into.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::catalogue::Catalogue;
use crate::engine::event::Side;

/// One partition of one of our topics.
pub type TopicPartition = (Side, i32);

/// A record, borrowed from the client.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub side: Side,
    pub partition: i32,
    pub offset: i64,
    /// Epoch ms; `i64::MAX` where the record carries none.
    pub timestamp_ms: i64,
    pub key: Option<&'a [u8]>,
    pub payload: Option<&'a [u8]>,
}

#[derive(Debug)]
pub enum Input {
    /// The group gave us these; nothing is read before [`Order::Assign`].
    Assigned(Vec<TopicPartition>),
    /// The group took everything back; [`Order::Unassign`] acknowledges it.
    Revoked,
    /// The log no longer holds the position of a partition.
    OffsetLost(TopicPartition),
    Fault(Fault),
    Answer(Answer),
    /// The operator's catalogue, read at the start or anew; items keep the places that they had in the last one.
    Catalogue(Arc<Catalogue>),
}

/// What the client complains of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong and what to do about it.
    pub message: String,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The brokers do not answer, for a reason unknown.
    Silence,
    /// The way to the brokers is barred to us, which is why they do not answer.
    Barred,
    /// They answer, but not what is needed.
    Refusal,
    /// It cannot get better by itself.
    Fatal,
}

/// What a worker wants of Kafka.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Subscribe,
    /// Reads these partitions, and no other, from these offsets.
    Assign(Vec<(TopicPartition, i64)>),
    Unassign,
    Pause(TopicPartition),
    Resume(TopicPartition),
    /// Tells lag monitors how far we have read.
    Commit(Vec<(TopicPartition, i64)>),
    /// Asked in the background; answered by [`Input::Answer`].
    Ask(Question),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// How many partitions have the topics?
    Topics,
    /// Where to start these partitions, for a start at `seek_ms` (`None`: the begin of the log)?
    Starts {
        epoch: u64,
        partitions: Vec<TopicPartition>,
        seek_ms: Option<i64>,
    },
    /// Where do these partitions end? Asked at `asked_ms` of steady time, in one run of the clocks.
    Ends {
        epoch: u64,
        clock_run: u64,
        asked_ms: i64,
        partitions: Vec<TopicPartition>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Topics(Result<TopicCounts, Fault>),
    Starts {
        epoch: u64,
        starts: Result<BTreeMap<TopicPartition, LogStart>, Fault>,
    },
    Ends {
        epoch: u64,
        clock_run: u64,
        asked_ms: i64,
        ends: Result<BTreeMap<TopicPartition, LogEnd>, Fault>,
    },
}

/// Partitions of each topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicCounts {
    pub served: i32,
    pub clicks: i32,
}

/// What a log holds, as a start needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// Offset of the first record that is still there.
    pub low: i64,
    /// Offset after the last one.
    pub high: i64,
    /// The first offset whose timestamp is at or after the time asked for, or the end where all are older; none where
    /// no time was asked for.
    pub by_time: Option<i64>,
    /// Timestamp of the record at `low`; known only where records before it were deleted, and one can be read.
    pub first_record_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Offset after the last record.
    pub end: i64,
    /// The client's own position: past records that it keeps from us, such as the markers of transactions.
    pub position: Option<i64>,
}
