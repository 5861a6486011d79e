//! What goes into an owner, and what comes out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::state::content::{Bytes, Role, State};
use crate::state::identity::{Difference, Identity};
use crate::state::key::{Key, Namespace, SealId, Session};
use crate::state::record::{Claim, MAX_RECORD_BYTES, RecordError, Seal};
use crate::state::view::{Damage, Question};

/// What an owner goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    pub namespace: Namespace,
    pub identity: Identity,
    /// What a claim says of us, for people.
    pub claim: Claim,
    /// So long an answer is waited for.
    pub answer_ms: i64,
    /// The session timeout of the group.
    pub lease_ms: i64,
    /// A loop that takes no input for longer than this stands still.
    pub still_ms: i64,
}

/// What happens to an owner.
#[derive(Debug)]
pub enum Input<'a> {
    /// The group gives the pair.
    Assigned,
    /// The group takes the pair, or the membership is lost.
    Revoked,
    /// The memory of the pair is gone: it is made anew from what stands at the next claim.
    Forgotten,
    /// The next record of the state partition; a tombstone has no value.
    Record {
        offset: i64,
        key: &'a [u8],
        value: Option<&'a [u8]>,
    },
    /// The log of the state partition begins at this offset: what lay before it is gone.
    Begins(i64),
    /// All below the end of the state partition is read. That end was asked for when the [`Owner`](super::Owner) gave this question.
    End(Question),
    /// The end was asked for with this question, and nothing comes any more before it is reached: this is no end, but one may claim.
    Quiet(Question),
    /// The append of this key is acknowledged by all replicas in sync. One that failed is one without an answer.
    Acknowledged(Key),
    /// The memory of the pair as of a border of a batch.
    State(State),
    /// The answer to a [`Command::Commit`]: whether the group knows this member and its generation. Any other failure is no answer.
    Committed { number: u64, is_known: bool },
    /// The end of the state partition lies before what was read: it is read from its first record again.
    StartOver,
    /// Time goes by.
    Tick,
}

/// What is to be done for an owner.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Append to the state partition; without a value, a tombstone.
    Send { key: Key, value: Option<Bytes> },
    /// Commit the offsets of the pair, for the answer.
    Commit { number: u64 },
    /// There is no state: begin by the rule of a start, and offer where that is.
    Begin,
    /// Throw memory away and make it anew from this.
    Restore {
        seal: Arc<Seal>,
        roles: BTreeMap<Role, Bytes>,
    },
    /// The state with this content is in force: its settled numbers are to be shown.
    Show { content: u128 },
    /// The group has given the pair to another: throw memory away.
    Drop,
    /// The pair cannot be counted.
    Refuse(Refusal),
}

impl Command {
    pub(super) fn send(key: Key, value: Bytes) -> Command {
        Command::Send {
            key,
            value: Some(value),
        }
    }
}

/// Why the state of a pair is not gone on from.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// A newer version of this program has written a key that this one does not know.
    Key(String),
    /// The highest seal cannot be read.
    Seal { id: SealId, error: RecordError },
    /// The highest seal is of another log.
    Identity { id: SealId, difference: Difference },
    /// The base is not whole.
    Damage(Damage),
    /// The state has so many parts that its seal would be of this size: it is not sealed.
    TooLarge { n_bytes: usize },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Key(key) => write!(f, "key {key} is of a version that this program does not read"),
            Refusal::Seal { id, error } => write!(f, "seal {}|{}: {error}", id.session, id.number),
            Refusal::Identity { id, difference } => {
                write!(
                    f,
                    "seal {}|{} is of another log: {difference}",
                    id.session, id.number
                )
            }
            Refusal::Damage(damage) => damage.fmt(f),
            Refusal::TooLarge { n_bytes } => write!(
                f,
                "the state has too many parts: its seal would have {n_bytes} bytes, and {MAX_RECORD_BYTES} are too many"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Parts of the stored state that the topic has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Claim,
    Seal,
    Parts,
    Log,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Loss::Claim => "its claim",
            Loss::Seal => "its seal",
            Loss::Parts => "parts of it",
            Loss::Log => "all of it",
        })
    }
}

/// A fault of the stored state of a pair that has an owner. It ends once it is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The topic has lost this, and it is being written again.
    Lost(Loss),
    /// A key of the highest epoch: no claim can be above it.
    Unsurpassable(String),
    /// A key of a newer version: a start would be refused.
    Newer(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Lost(loss) => write!(
                f,
                "the state topic has lost {loss}, and it is being written again: somebody or some setting deletes there"
            ),
            Trouble::Unsurpassable(key) => write!(
                f,
                "somebody has written the key `{key}` into the state topic, and no claim can be above it, so nothing more is stored or shown \
                 as settled. Delete that key by a record of it without a value; no totals are lost then"
            ),
            Trouble::Newer(key) => write!(
                f,
                "a newer version of abgauge has written the key `{key}` into the state topic, and this one would refuse to start: run the newer \
                 version, or delete that key by a record of it without a value"
            ),
        }
    }
}

/// What may be shown of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    pub live: bool,
    /// The content of the state whose settled numbers may be shown.
    pub settled: Option<u128>,
}

/// What may be shown of a pair, for as long as the owner takes no other input: a value, so that scrapes wait for no loop.
#[derive(Debug, Clone, Copy)]
pub struct Showing {
    pub(super) session: Option<Session>,
    pub(super) is_holder: bool,
    pub(super) settled: Option<u128>,
    /// Until when, inclusive.
    pub(super) lease_ms: i64,
    pub(super) still_ms: i64,
}

impl Showing {
    /// Whose claim it is shown by, if anything may be: of two instances, the greater one has it.
    pub fn session(&self) -> Option<Session> {
        self.session
    }

    /// S7: what a scrape may show at this time.
    pub fn shown(&self, now_ms: i64) -> Shown {
        if self.session.is_none() || now_ms > self.still_ms {
            return Shown::default();
        }
        let has_lease = now_ms <= self.lease_ms;
        Shown {
            live: has_lease || self.is_holder,
            settled: self.settled.filter(|_| has_lease),
        }
    }
}
