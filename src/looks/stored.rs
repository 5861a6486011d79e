//! What looks need to go on after a restart as if there had been none, as bytes.
//!
//! ```text
//! cells of a pair   … n−144 ┄┄┄ n−1 │ n │ n+1 … F        are stored by its ledger, each once
//!                   ╰── users ──────────╯                the sums of its users, as of look n
//!                       sequences   ╯                    what was kept of experiments before look n
//! ```
//! Whoever begins takes look n again: that shows it again, and all that follows is what would have followed. Pairs may have been
//! stored as of different looks: the latest sequences stand, and the cells of each pair close the gap. A look uses nothing that
//! is not sealed, so there is none that a pair could lack.
//!
//! A pair lets go of cells with the same state that has its users as of the later look. So each state is whole by itself, also while
//! whoever owns the pair goes on with users that were stored before: they only need more cells.

mod asked;
mod history;
mod kept;
mod numbers;
mod sequences;
mod users;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub(super) use self::sequences::StoredSequences;
pub(super) use self::users::StoredUsers;
use super::{Looks, Rules};
use crate::bytes::Malformed;
use crate::engine::ranking::Ranking;
use crate::ledger::{LedgerError, PairId};

/// Bytes.
pub type Bytes = Arc<[u8]>;

/// What is to be stored as of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLooks {
    pub sequences: Bytes,
    pub pairs: BTreeMap<PairId, StoredPair>,
}

/// What is to be stored of a pair, beside the sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPair {
    /// The life of the pair whose users they are.
    pub life: u64,
    pub users: Bytes,
    pub up_to: UpTo,
}

/// What is stored of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairLooks {
    pub users: Bytes,
    pub sequences: Bytes,
}

/// How far the stored sums of a pair's users go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpTo {
    /// The look that is taken first with them.
    pub look: i64,
    /// Cells below this number are in them.
    pub end: i64,
    /// Cells below this number are needed no more, and let go.
    pub cells_from: i64,
}

impl UpTo {
    /// How far these sums go.
    ///
    /// # Errors
    /// [`AsOfError`] if they are none.
    pub fn of(users: &[u8]) -> Result<UpTo, AsOfError> {
        users::begin(users).map(|(up_to, _)| up_to)
    }

    fn goes_on_from(&self, before: &UpTo) -> bool {
        self.look >= before.look && self.end >= before.end && self.cells_from >= before.cells_from
    }

    fn is_settled(&self, until_ms: Option<i64>, every_ms: i64) -> bool {
        self.end == i64::MIN || until_ms.is_some_and(|until_ms| self.end <= until_ms.div_euclid(every_ms))
    }
}

impl StoredPair {
    /// Whether these may be stored with a pair that has this life, and has settled until then (epoch ms), in the place of those that it
    /// has. They need no cell that was let go, and are of slots that it has settled. So a pair that lives never goes back.
    pub fn fits(&self, life: u64, until_ms: Option<i64>, every_ms: i64, before: Option<&UpTo>) -> bool {
        self.life == life
            && self.up_to.is_settled(until_ms, every_ms)
            && before.is_none_or(|before| self.up_to.goes_on_from(before))
    }
}

/// What was stored of a pair.
#[derive(Debug)]
pub struct AsOf {
    pub(super) users: StoredUsers,
    pub(super) sequences: StoredSequences,
}

/// Why looks cannot go on with what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOfError {
    /// It is of another version than this program reads.
    Version,
    Malformed(Malformed),
    /// The sums of users and the sequences are of different looks.
    Look,
}

impl From<Malformed> for AsOfError {
    fn from(error: Malformed) -> AsOfError {
        AsOfError::Malformed(error)
    }
}

impl From<LedgerError> for AsOfError {
    fn from(error: LedgerError) -> AsOfError {
        AsOfError::Malformed(match error {
            LedgerError::Length => Malformed::Length,
            _ => Malformed::Number,
        })
    }
}

impl fmt::Display for AsOfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsOfError::Version => f.write_str("it is of a version that this program does not read"),
            AsOfError::Malformed(error) => error.fmt(f),
            AsOfError::Look => f.write_str("the sums of its users are of another look than its sequences"),
        }
    }
}

impl std::error::Error for AsOfError {}

impl AsOf {
    /// What was stored of a pair with so many arms, for this ranking.
    ///
    /// # Errors
    /// [`AsOfError`] if these are not the bytes of [`Looks::stored`].
    pub fn decode(
        users: &[u8],
        sequences: &[u8],
        ranking: &Ranking,
        n_arms: usize,
    ) -> Result<AsOf, AsOfError> {
        let users = StoredUsers::decode(users, ranking, n_arms)?;
        let sequences = StoredSequences::decode(sequences)?;
        if users.up_to.look != sequences.look {
            return Err(AsOfError::Look);
        }
        Ok(AsOf { users, sequences })
    }
}

impl Looks {
    /// What there is as of the last look, or as of the one that is to be taken first; none before it is known which.
    pub fn stored(&self) -> Option<StoredLooks> {
        let next = self.next?;
        let (look, courses) = if self.has_looked {
            (next - 1, &self.before)
        } else {
            (next, &self.courses)
        };
        let pairs = self.pairs.iter().map(|(id, pair)| {
            let needed = cells_from(&self.rules, look).min(pair.end);
            let up_to = UpTo {
                look,
                end: pair.end,
                cells_from: needed.max(pair.let_go),
            };
            let stored = StoredPair {
                life: pair.life,
                users: users::encode(&up_to, pair, &self.rules.ranking).into(),
                up_to,
            };
            (*id, stored)
        });
        Some(StoredLooks {
            sequences: sequences::encode(self, look, courses).into(),
            pairs: pairs.collect(),
        })
    }
}

/// The first cell that the window of a look has; where there is none, the one after it.
fn cells_from(rules: &Rules, look: i64) -> i64 {
    let window = rules.window.as_ref();
    window.map_or(look + 1, |window| window.begin(look))
}
