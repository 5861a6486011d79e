//! Inputs and outputs of an owner.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::journal::content::{Role, SharedBytes, State};
use crate::journal::identity::{LogDifference, LogIdentity};
use crate::journal::key::{Namespace, RecordKey, SealId, Session};
use crate::journal::log::PartitionEvent;
use crate::journal::record::{Claim, MAX_RECORD_BYTES, RecordError, Seal};
use crate::journal::view::DamagedBlob;

/// Settings of an owner.
#[derive(Debug, Clone)]
pub struct OwnerSettings {
    pub namespace: Namespace,
    pub identity: LogIdentity,
    /// Details in our claim, for people.
    pub claim: Claim,
    /// Time to wait for an answer.
    pub answer_ms: i64,
    /// The session timeout of the group.
    pub lease_ms: i64,
    /// Time without input after which the loop counts as stalled.
    pub still_ms: i64,
}

/// Input of an owner.
#[derive(Debug)]
pub enum OwnerInput<'a> {
    /// The group assigns the pair.
    Assigned,
    /// The group revokes the pair, or the membership is lost.
    Revoked,
    /// The memory of the pair is gone. The next claim rebuilds it from the stored state.
    Forgotten,
    /// An event of the state partition. The [`Owner`](super::Owner) issued the question of an end when the end was asked for.
    Log(PartitionEvent<'a>),
    /// The memory of the pair at a batch border.
    State(State),
    /// Answer to a [`OwnerCommand::Commit`]: whether the group knows this member and its generation. Any other failure is not an
    /// answer.
    Committed { number: u64, is_known: bool },
    /// Time has passed.
    Tick,
}

/// Command of an owner.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnerCommand {
    /// Append to the state partition. No value means a tombstone.
    Send {
        key: RecordKey,
        value: Option<SharedBytes>,
    },
    /// Commit the offsets of the pair, for the answer.
    Commit { number: u64 },
    /// No state is stored: start by the start rule, and offer a state from there.
    Begin,
    /// Drop the memory and make it again from this state.
    Restore {
        seal: Arc<Seal>,
        roles: BTreeMap<Role, SharedBytes>,
    },
    /// The state with this content is in force: its settled numbers are to be shown.
    Show { content: u128 },
    /// The group has assigned the pair to another member: drop the memory.
    Drop,
    /// The pair cannot be counted.
    Refuse(Refusal),
}

impl OwnerCommand {
    pub(super) fn send(key: RecordKey, value: SharedBytes) -> OwnerCommand {
        OwnerCommand::Send {
            key,
            value: Some(value),
        }
    }
}

/// Reason why the state of a pair cannot be resumed.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// A newer version of this program has written a key that this one does not know.
    Key(String),
    /// The highest seal cannot be read.
    Seal { id: SealId, error: RecordError },
    /// The highest seal is of another log.
    Identity { id: SealId, difference: LogDifference },
    /// The base is incomplete.
    Damage(DamagedBlob),
    /// The state has so many parts that its seal would be of this size: it is not sealed.
    TooLarge { n_bytes: usize },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Key(key) => write!(f, "key {key} is of a version that this program does not read"),
            Refusal::Seal { id, error } => write!(f, "seal {id}: {error}"),
            Refusal::Identity { id, difference } => {
                write!(f, "seal {id} is of another log: {difference}")
            }
            Refusal::Damage(damage) => damage.fmt(f),
            Refusal::TooLarge { n_bytes } => write!(
                f,
                "the state has too many parts: its seal would have {n_bytes} bytes, but fewer than {MAX_RECORD_BYTES} are allowed"
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

/// A fault of the stored state of a pair that has an owner. It ends once it is repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateFault {
    /// The topic has lost this, and it is being written again.
    Lost(Loss),
    /// A key with an epoch that no instance claims above.
    Unsurpassable(String),
    /// A key of a newer version: a start would be refused.
    Newer(String),
}

impl fmt::Display for StateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateFault::Lost(loss) => write!(
                f,
                "the state topic has lost {loss}, which is being written again: another program or a setting deletes records there"
            ),
            StateFault::Unsurpassable(key) => write!(
                f,
                "another program wrote the key `{key}` into the state topic, and no claim can be above it, so nothing more is stored or shown \
                 as final. Delete that key with a record without a value; no totals are lost then"
            ),
            StateFault::Newer(key) => write!(
                f,
                "a newer version of abgauge wrote the key `{key}` into the state topic, and this one would refuse to start: run the newer \
                 version, or delete that key with a record without a value"
            ),
        }
    }
}

/// Parts of a pair that may be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShownState {
    pub live: bool,
    /// The content of the state whose settled numbers may be shown.
    pub settled: Option<u128>,
}

/// Rule for what may be shown of a pair until the owner takes its next input. It is a value, so that scrapes never wait for the
/// loop.
#[derive(Debug, Clone, Copy)]
pub struct Visibility {
    pub(super) session: Option<Session>,
    pub(super) is_holder: bool,
    pub(super) settled: Option<u128>,
    /// End of the lease, inclusive.
    pub(super) lease_ms: i64,
    pub(super) still_ms: i64,
}

impl Visibility {
    /// Returns the session under which it is shown, if anything may be. Of two instances, the one with the greater session
    /// wins.
    pub fn session(&self) -> Option<Session> {
        self.session
    }

    /// Returns what a scrape may show at this time (S7).
    pub fn shown(&self, now_ms: i64) -> ShownState {
        // A stalled loop shows nothing: the pair may have a new owner by now.
        if self.session.is_none() || now_ms > self.still_ms {
            return ShownState::default();
        }
        // A lease ends by itself, so an instance that is cut off from the log stops showing old numbers.
        let has_lease = now_ms <= self.lease_ms;
        ShownState {
            live: has_lease || self.is_holder,
            settled: self.settled.filter(|_| has_lease),
        }
    }
}
