//! Inputs of the worker other than records, and its orders to Kafka, each as one enum.
//!
//! The worker takes inputs, reads records from a [`Source`](super::Source), and gives orders; it never sees the client.
//! Tests drive the worker through this interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge_core::decode::framing::Headers;
use abgauge_core::engine::event::Side;
use abgauge_core::journal::LogIdentity;
use abgauge_core::ledger::PairId;
use abgauge_core::looks::{GivenUp, StoredLooks};
use abgauge_core::metrics::catalogue::Catalogue;

use super::TopicPartition;
use crate::store::keeper;
use crate::stream::timestamps::Timestamps;

/// Record borrowed from the client.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub side: Side,
    pub partition: i32,
    pub offset: i64,
    /// Unix ms; `i64::MAX` if the record has no timestamp.
    pub timestamp_ms: i64,
    pub key: Option<&'a [u8]>,
    pub payload: Option<&'a [u8]>,
    pub headers: &'a dyn Headers,
}

#[derive(Debug)]
pub enum Input {
    /// Partitions assigned by the group. Nothing is read before [`Order::Assign`].
    Assigned(Vec<TopicPartition>),
    /// Partitions of these topics, which are not ours, assigned by the group. It knows a static member only by its name,
    /// and assigns what that member had before, whatever it reads now.
    Misassigned(Vec<String>),
    /// Revocation of all partitions by the group; [`Order::Unassign`] acknowledges it.
    Revoked,
    /// Report by the client that the log no longer has the position of a partition.
    OffsetLost(TopicPartition),
    /// Unreadable batch that begins at this offset. The partition delivers no more records.
    Damaged(TopicPartition, i64, BatchDamage),
    /// Result of [`Order::Inspect`].
    Inspected(Inspection, Result<OffsetState, Fault>),
    Fault(Fault),
    Answer(Answer),
    /// Operator's catalogue, read at the start or reloaded. Items keep the places of the previous one.
    Catalogue(Arc<Catalogue>),
    /// Keeper of the stored state, before anything is subscribed to, with the identity of the counted topics, as far as the
    /// brokers know it.
    Keeper(keeper::KeeperHandle, LogIdentity),
    /// Order of the keeper of the stored state for a pair.
    Kept(PairId, keeper::KeeperOrder),
    /// Current fault of the state topic with its remedy; none while the topic is fit.
    StateTopic(Option<String>),
    /// Experiment whose users need no longer be kept apart, because its statistics were given up.
    GivenUp(GivenUp),
    /// Data that looks need to resume after a restart.
    LooksStored(StoredLooks),
}

/// Problem that the client reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Message with the problem and its remedy.
    pub message: String,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Brokers do not answer, for an unknown reason.
    Silence,
    /// Brokers do not answer, because access to them is denied.
    Barred,
    /// Brokers answer, but may have just started, so the answer may still change.
    Uncertain,
    /// Brokers answer, but not what is needed.
    Refusal,
    /// Problem from which the client cannot recover.
    Fatal,
}

/// Reason why a batch of records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchDamage {
    /// Wrong checksum, or invalid layout.
    Checksum,
    /// Batch that cannot be decompressed within the bound on a response.
    Compression,
    /// Response of this many bytes that exceeds the bound. The batch is in it.
    TooLarge { bytes: Option<u64> },
}

/// Request to check the batch at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    pub partition: TopicPartition,
    pub offset: i64,
    /// Set to find the end of a damaged batch, too, which takes many fetches.
    pub to_its_end: bool,
}

/// State of the batch at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetState {
    /// Batch that can be read, or is no longer there.
    Readable,
    /// Damaged offsets from the first to the last. If the batch is too large, `first` is the requested offset.
    Damaged {
        first: i64,
        last: Option<i64>,
        damage: BatchDamage,
    },
}

/// Order of the worker to Kafka.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Keeps the state of the pairs of this log; answered by [`Input::Keeper`].
    Keep(LogIdentity),
    Subscribe,
    /// Leaves and rejoins the group, for a new assignment.
    Rejoin,
    /// Reads these partitions, and no other, from these offsets.
    Assign(Vec<(TopicPartition, i64)>),
    Unassign,
    Pause(TopicPartition),
    Resume(TopicPartition),
    /// Commits these positions, for lag monitors.
    Commit(Vec<(TopicPartition, i64)>),
    /// Reads a single batch; answered by [`Input::Inspected`].
    Inspect(Inspection),
    /// Asks in the background; answered by [`Input::Answer`].
    Ask(Question),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// Asks how many partitions each topic has.
    Topics,
    /// Asks who sets the timestamps of each topic's records.
    Timestamps,
    /// Asks what the members of our group own.
    Group { epoch: u64 },
    /// Asks for the offsets at which to start these partitions. `seek_ms` is the time to seek; `None` for the beginning of
    /// the log.
    Starts {
        epoch: u64,
        partitions: Vec<TopicPartition>,
        seek_ms: Option<i64>,
    },
    /// Asks whether the group knows us, by committing these positions of a pair.
    Commit {
        epoch: u64,
        pair: PairId,
        number: u64,
        positions: Vec<(TopicPartition, i64)>,
    },
    /// Asks for the ends of these partitions. `asked_ms` is steady time, within one run of the clocks.
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
    /// Settings of each topic that we may see.
    Timestamps(Vec<(Side, Timestamps)>),
    Group {
        epoch: u64,
        state: Result<GroupState, Fault>,
    },
    Starts {
        epoch: u64,
        starts: Result<BTreeMap<TopicPartition, LogStart>, Fault>,
    },
    Commit {
        epoch: u64,
        pair: PairId,
        number: u64,
        /// Set if the group knows us; `None` if the answer does not show it.
        is_known: Option<bool>,
    },
    Ends {
        epoch: u64,
        clock_run: u64,
        asked_ms: i64,
        ends: Result<BTreeMap<TopicPartition, LogEnd>, Fault>,
    },
}

/// Number of partitions of each topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicCounts {
    pub served: i32,
    pub clicks: i32,
}

/// Partitions that all members of the group own together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// Set if no rebalance is in progress.
    pub is_stable: bool,
    /// Number of partitions of each topic, by `Side as usize`.
    pub n_owned: [i32; 2],
}

/// Bounds of a log that a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// Offset of the first record that is still there.
    pub low: i64,
    /// Offset after the last one: the high watermark.
    pub high: i64,
    /// First offset whose timestamp is at or after the requested time, or the end if all are older. `None` if no time was
    /// requested.
    pub by_time: Option<i64>,
    /// Timestamp of the record at `low`; known only if records before it were deleted, and one can be read.
    pub first_record_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Offset after the last record: the high watermark.
    pub end: i64,
    /// Last stable offset: no transaction before it is open. Known only if the position is not at the end.
    pub stable: Option<i64>,
    /// Position of the client itself: past records that it does not deliver, such as transaction markers.
    pub position: Option<i64>,
}
