//! Everything that can wake the program but records, as one enum, and everything that it may ask of Kafka, as another.
//!
//! The worker takes inputs, reads records from a [`Source`](super::Source), and gives orders; it never sees the client.
//! This is the seam that tests push into.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::catalogue::Catalogue;
use crate::engine::event::Side;
use crate::ingest::timestamps::Timestamps;

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
    /// The group gave us partitions of these topics, which are not ours. It knows a static member by its name alone, and
    /// gives it what it had before, whatever it reads now.
    Misassigned(Vec<String>),
    /// The group took everything back; [`Order::Unassign`] acknowledges it.
    Revoked,
    /// The log no longer holds the position of a partition, the client says.
    OffsetLost(TopicPartition),
    /// The batch of a partition that begins at this offset cannot be read: nothing comes of the partition any more.
    Damaged(TopicPartition, i64, Damage),
    /// What [`Order::Look`] asked for.
    Seen(Look, Result<OffsetState, Fault>),
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
    /// They answer, but may have just started: what they say may yet change.
    Uncertain,
    /// They answer, but not what is needed.
    Refusal,
    /// It cannot get better by itself.
    Fatal,
}

/// Why a batch of records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Its checksum is another than that of its bytes, or it is laid out as no batch is.
    Checksum,
    /// It cannot be decompressed, or not within the bound on an answer.
    Compression,
    /// The answer that holds it, of so many bytes, is larger than the bound on one.
    TooLarge { bytes: Option<u64> },
}

/// A question what stands at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub partition: TopicPartition,
    pub offset: i64,
    /// Also where a damaged batch ends, which takes many fetches.
    pub to_its_end: bool,
}

/// What stands at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetState {
    /// It can be read, or is there no more.
    Readable,
    /// Offsets from the first to the last; where it is too large, `first` is the offset asked for.
    Damaged {
        first: i64,
        last: Option<i64>,
        damage: Damage,
    },
}

/// What a worker wants of Kafka.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Subscribe,
    /// Leaves the group and joins it anew: it then assigns afresh.
    Rejoin,
    /// Reads these partitions, and no other, from these offsets.
    Assign(Vec<(TopicPartition, i64)>),
    Unassign,
    Pause(TopicPartition),
    Resume(TopicPartition),
    /// Tells lag monitors how far we have read.
    Commit(Vec<(TopicPartition, i64)>),
    /// Reads a batch apart from all others; answered by [`Input::Seen`].
    Look(Look),
    /// Asked in the background; answered by [`Input::Answer`].
    Ask(Question),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// How many partitions have the topics?
    Topics,
    /// Who stamps the records of each topic?
    Timestamps,
    /// What do the members of our group own?
    Group { epoch: u64 },
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
    /// Of each topic whose settings we may see.
    Timestamps(Vec<(Side, Timestamps)>),
    Group {
        epoch: u64,
        state: Result<GroupState, Fault>,
    },
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

/// What the members of the group own, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupState {
    /// It is not being assigned anew.
    pub is_stable: bool,
    /// Partitions of each topic, by `Side as usize`.
    pub n_owned: [i32; 2],
}

/// What a log holds, as a start needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStart {
    /// Offset of the first record that is still there.
    pub low: i64,
    /// Offset after the last one: the high watermark.
    pub high: i64,
    /// The first offset whose timestamp is at or after the time asked for, or the end where all are older; none where
    /// no time was asked for.
    pub by_time: Option<i64>,
    /// Timestamp of the record at `low`; known only where records before it were deleted, and one can be read.
    pub first_record_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Offset after the last record: the high watermark.
    pub end: i64,
    /// Offset after the last record that nobody may take back: before it no transaction is open. Known where the position
    /// is not at the end.
    pub stable: Option<i64>,
    /// The client's own position: past records that it keeps from us, such as the markers of transactions.
    pub position: Option<i64>,
}
