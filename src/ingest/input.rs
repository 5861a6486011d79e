//! Everything that can wake the program except records, as one enum, and everything that it may ask of Kafka, as another.
//!
//! The worker takes inputs, reads records from a [`Source`](super::Source), and gives orders; it never sees the client.
//! Tests drive the worker through this interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::catalogue::Catalogue;
use crate::engine::event::Side;
use crate::ingest::timestamps::Timestamps;
use crate::keeper;
use crate::ledger::PairId;
use crate::looks::{GivenUp, StoredLooks};
use crate::state::Identity;

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
    /// The group assigned these; nothing is read before [`Order::Assign`].
    Assigned(Vec<TopicPartition>),
    /// The group assigned partitions of these topics, which are not ours. It knows a static member only by its name, and
    /// assigns what that member had before, whatever it reads now.
    Misassigned(Vec<String>),
    /// The group revoked everything; [`Order::Unassign`] acknowledges it.
    Revoked,
    /// The client reports that the log no longer holds the position of a partition.
    OffsetLost(TopicPartition),
    /// The batch that begins at this offset is unreadable: the partition delivers nothing more.
    Damaged(TopicPartition, i64, Damage),
    /// What [`Order::Inspect`] asked for.
    Inspected(Inspection, Result<OffsetState, Fault>),
    Fault(Fault),
    Answer(Answer),
    /// The operator's catalogue, read at the start or reloaded; items keep the places of the previous one.
    Catalogue(Arc<Catalogue>),
    /// The keeper of the stored state, before anything is subscribed to, and what is counted, as far as the brokers tell.
    Keeper(keeper::Handle, Identity),
    /// What the keeper of the stored state orders for a pair.
    Kept(PairId, keeper::Order),
    /// Fault of the state topic itself as it is now, with the remedy; none while it is fit.
    StateTopic(Option<String>),
    /// What of an experiment was given up: without any statistics, its users need no longer be told apart.
    GivenUp(GivenUp),
    /// What looks need to go on after a restart.
    LooksStored(StoredLooks),
}

/// A problem that the client reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong and what to do about it.
    pub message: String,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The brokers do not answer, for an unknown reason.
    Silence,
    /// Access to the brokers is denied, which is why they do not answer.
    Barred,
    /// They answer, but may have just started: their answer may still change.
    Uncertain,
    /// They answer, but not what is needed.
    Refusal,
    /// It cannot recover by itself.
    Fatal,
}

/// Why a batch of records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Its checksum does not match its bytes, or its layout is invalid.
    Checksum,
    /// It cannot be decompressed within the bound on a response.
    Compression,
    /// The response that holds it, of this many bytes, exceeds the bound on one.
    TooLarge { bytes: Option<u64> },
}

/// A request to check what is at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    pub partition: TopicPartition,
    pub offset: i64,
    /// Also find the end of a damaged batch, which takes many fetches.
    pub to_its_end: bool,
}

/// What is at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetState {
    /// It can be read, or is no longer there.
    Readable,
    /// Offsets from the first to the last; if the batch is too large, `first` is the requested offset.
    Damaged {
        first: i64,
        last: Option<i64>,
        damage: Damage,
    },
}

/// What a worker wants of Kafka.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Keep the state of the pairs of this log; answered by [`Input::Keeper`].
    Keep(Identity),
    Subscribe,
    /// Leaves and rejoins the group, for a new assignment.
    Rejoin,
    /// Reads these partitions, and no other, from these offsets.
    Assign(Vec<(TopicPartition, i64)>),
    Unassign,
    Pause(TopicPartition),
    Resume(TopicPartition),
    /// Tells lag monitors how far we have read.
    Commit(Vec<(TopicPartition, i64)>),
    /// Reads a single batch; answered by [`Input::Inspected`].
    Inspect(Inspection),
    /// Asked in the background; answered by [`Input::Answer`].
    Ask(Question),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// How many partitions have the topics?
    Topics,
    /// Who sets the timestamps of each topic's records?
    Timestamps,
    /// What do the members of our group own?
    Group { epoch: u64 },
    /// Where to start these partitions, for a start at `seek_ms` (`None`: the begin of the log)?
    Starts {
        epoch: u64,
        partitions: Vec<TopicPartition>,
        seek_ms: Option<i64>,
    },
    /// Does the group know us? It is asked to commit these positions of a pair.
    Commit {
        pair: PairId,
        number: u64,
        positions: Vec<(TopicPartition, i64)>,
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
    /// For each topic whose settings we may see.
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
        pair: PairId,
        number: u64,
        /// None: no answer that says so.
        is_known: Option<bool>,
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

/// What all members of the group own together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// No rebalance is in progress.
    pub is_stable: bool,
    /// Partitions of each topic, by `Side as usize`.
    pub n_owned: [i32; 2],
}

/// What a start needs to know about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// Offset of the first record that is still there.
    pub low: i64,
    /// Offset after the last one: the high watermark.
    pub high: i64,
    /// The first offset whose timestamp is at or after the requested time, or the end if all are older; none if no time
    /// was requested.
    pub by_time: Option<i64>,
    /// Timestamp of the record at `low`; known only if records before it were deleted, and one can be read.
    pub first_record_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Offset after the last record: the high watermark.
    pub end: i64,
    /// The last stable offset: no transaction before it is open. Known if the position is not at the end.
    pub stable: Option<i64>,
    /// The client's own position: past records that it does not deliver, such as transaction markers.
    pub position: Option<i64>,
}
