//! The stored state of a pair, and who may write it: pure, without a clock, Kafka or a board.
//!
//! A compacted *state topic* holds what must outlive a process; its partition p belongs to pair p. The order of that one log decides:
//!
//! ```text
//! claim ── a session asks for the pair
//! seal  ── a state of the pair: a header, and a table that says which blobs have the bytes of which role
//! blob  ── bytes of a role, or a part of them
//! ```
//! Any record may land late, twice, or without an answer, and compaction may take what a later record of the same key replaces. So a key is
//! written by one session only, and never with other content; no rule reads the order of records. Claims are ordered by what they
//! are, and so are seals: a seal is *in force* if it is the highest, and no claim is higher than that of its session.
//!
//! - [`View`] is what a reader of the partition holds. At an [`End`], it says what is in force.
//! - [`Owner`] is the machine that claims, seals and collects garbage for one pair: rules S1 to S7. Its driver reads, appends and asks; it
//!   decides nothing.
//! - [`Log`] is what a driver needs of the partitions, and [`Follower`] how far one of them is read.
//! - [`Onlooker`] reads all partitions and says what is in force in each.
//! - [`Census`] is all that a partition holds, of all namespaces: for tools.
//! - [`Key`], [`Seal`] and [`Claim`] are the records, as text and bytes.
//!
//! What a state is made of is not known here: roles are names with bytes.

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
