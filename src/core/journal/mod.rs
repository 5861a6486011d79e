//! Stored state of a pair, and the right to write it: pure, without a clock, Kafka or a board.
//!
//! A compacted *state topic* contains everything that must outlive a process; its partition p belongs to pair p:
//!
//! ```text
//! claim ── a session asks for the pair
//! seal  ── a state of the pair: a header, and a table of the blobs with the bytes of each role
//! blob  ── bytes of a role, or a part of them
//! ```
//!
//! Any record may land late, twice, or without an answer, and compaction may remove a record once a later one has the same key. So a key
//! is written by one session only, and always with the same content, and no rule depends on the order of records. Claims are ordered by
//! their sessions, and so are seals: a seal is *in force* if it is the highest and no claim is higher than its session's.
//!
//! - [`View`] holds the records that a reader of the partition has read. At an [`End`] it yields the current state.
//! - [`Owner`] is the machine that claims, seals and collects garbage for one pair: rules S1 to S8. Its driver reads, appends
//!   and asks; it makes no decisions.
//! - [`Log`] is a driver's interface to the partitions, and [`Follower`] tracks how far one of them is read.
//! - [`Onlooker`] reads all partitions and returns the current state of each.
//! - [`Census`] has all records of a partition, in all namespaces, for tools.
//! - [`Key`], [`Seal`] and [`Claim`] are the records, as text and bytes.
//!
//! This module does not interpret states: roles are names with bytes.

mod census;
mod content;
#[cfg(test)]
mod fixture;
mod identity;
mod key;
mod log;
mod onlooker;
mod owner;
mod record;
mod rules;
mod view;

pub use self::census::{Breach, Census, Estate, Weight};
pub use self::content::{Bytes, Column, Digest, Header, MAX_PART_BYTES, Part, Reach, Role, State};
pub use self::identity::{Difference, Identity, Topic};
pub use self::key::{BlobId, Key, Namespace, NoNamespace, SealId, Session};
pub use self::log::{Answer, Follower, Happening, Hindered, Log, Progress};
pub use self::onlooker::{Onlooker, Sealed, Withheld};
pub use self::owner::{
    Command, Input, Loss, Owner, Refusal, Settings, Showing, Shown, Standing, Trouble, Wanted,
};
pub use self::record::{Claim, Entry, MAX_RECORD_BYTES, RecordError, Seal};
#[doc(hidden)]
pub use self::rules::{Clause, Rules};
pub use self::view::{Damage, End, Question, ReadSeal, View};
