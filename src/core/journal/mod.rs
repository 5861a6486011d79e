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
//! Any record may land late, twice, or without an answer, and compaction may remove a record once a later one has the same key.
//! So a key is written by one session only, and always with the same content, and no rule depends on the order of records.
//! Claims are ordered by their sessions, and so are seals: a seal is *in force* if it is the highest and no claim is higher
//! than its session's.
//!
//! - [`PartitionView`] holds the records that a reader of the partition has read. At an [`NamespaceEnd`] it yields the current
//!   state.
//! - [`Owner`] is the machine that claims, seals and collects garbage for one pair: rules S1 to S8. Its driver reads, appends
//!   and asks; it makes no decisions.
//! - [`Log`] is a driver's interface to the partitions, and [`Cursor`] tracks how far one of them is read.
//! - [`Onlooker`] finds states as they become current, whoever owns the pair.
//! - [`Inventory`] has all records of a partition, in all namespaces, for tools.
//! - [`RecordKey`], [`Seal`] and [`Claim`] are the records, as text and bytes.
//!
//! This module does not interpret states: roles are names with bytes.

mod content;
#[cfg(test)]
mod fixture;
mod identity;
mod inventory;
mod key;
mod log;
mod onlooker;
mod owner;
mod record;
mod rules;
mod view;

pub use self::content::{
    CountedColumn, Header, MAX_PART_BYTES, ReplayDigest, Role, RolePart, SharedBytes, State, TopicProgress,
};
pub use self::identity::{CountedTopic, LogDifference, LogIdentity};
pub use self::inventory::{Breach, Inventory, NamespaceContents, Weight};
pub use self::key::{BlobId, Namespace, NoNamespace, RecordKey, SealId, Session};
pub use self::log::{BlockedOperation, Cursor, Hindrance, Log, LogEvent, LogProgress, PartitionEvent};
pub use self::onlooker::{Onlooker, Sealed};
pub use self::owner::{
    Loss, Owner, OwnerCommand, OwnerInput, OwnerSettings, OwnerStatus, Refusal, ShownState, StateFault,
    Urgency, Visibility,
};
pub use self::record::{Claim, Entry, MAX_RECORD_BYTES, RecordError, Seal};
#[doc(hidden)]
pub use self::rules::{Clause, JournalRules};
pub use self::view::{DamagedBlob, EndQuestion, NamespaceEnd, PartitionView, ReadSeal};
