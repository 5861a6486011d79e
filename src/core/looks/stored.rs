//! Codec for the state that looks need to resume as if there had been no restart.
//!
//! ```text
//! cells of a pair   … n−144 ┄┄┄ n−1 │ n │ n+1 … F        are stored by its ledger, each once
//!                   ╰── users ──────────╯                the sums of its users, as of look n
//!                       sequences   ╯                    state of the experiments before look n
//! ```
//! A restarted instance takes look n again. That shows it again, and every later look is the same as without a restart. Pairs may
//! have been stored as of different looks: the latest sequences are used, and the cells of each pair fill the gap. A look uses
//! sealed data only, so no pair can lack any of it.
//!
//! A pair drops cells in the same state that has its users as of the later look. So each state is complete, even if the pair's
//! owner resumes from users that were stored before: those only need more cells.

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
use super::{LookRules, Looks};
use crate::bytes::Malformed;
use crate::ledger::{LedgerError, PairId};
use crate::metrics::Ranking;

pub type Bytes = Arc<[u8]>;

/// Bytes to store as of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLooks {
    pub sequences: Bytes,
    pub pairs: BTreeMap<PairId, StoredLookPair>,
}

/// Bytes to store for a pair, besides the sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLookPair {
    /// Incarnation of the pair that the users belong to.
    pub incarnation_id: u64,
    pub users: Bytes,
    pub up_to: UpTo,
}

/// Stored bytes of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairLooks {
    pub users: Bytes,
    pub sequences: Bytes,
}

/// Extent of the stored sums of a pair's users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpTo {
    /// Number of the look to take first with them.
    pub look: i64,
    /// Cells below this number are included.
    pub end: i64,
    /// Cells below this number are no longer needed, and dropped.
    pub cells_from: i64,
}

impl UpTo {
    /// Reads the extent of these sums.
    ///
    /// # Errors
    /// [`AsOfError`] if the bytes are not such sums.
    pub fn of(users: &[u8]) -> Result<UpTo, AsOfError> {
        users::begin(users).map(|(up_to, _)| up_to)
    }

    fn continues_from(&self, before: &UpTo) -> bool {
        self.look >= before.look && self.end >= before.end && self.cells_from >= before.cells_from
    }

    fn is_settled(&self, until_ms: Option<i64>, every_ms: i64) -> bool {
        self.end == i64::MIN || until_ms.is_some_and(|until_ms| self.end <= until_ms.div_euclid(every_ms))
    }
}

impl StoredLookPair {
    /// Reports whether these may be stored with a pair of this incarnation that has settled until `until_ms` (Unix ms), in
    /// place of those up to `before`. They need no cell that was dropped, and cover only settled slots. So a running pair never
    /// goes back.
    pub fn fits(
        &self,
        incarnation_id: u64,
        until_ms: Option<i64>,
        every_ms: i64,
        before: Option<&UpTo>,
    ) -> bool {
        self.incarnation_id == incarnation_id
            && self.up_to.is_settled(until_ms, every_ms)
            && before.is_none_or(|before| self.up_to.continues_from(before))
    }
}

/// Decoded looks of a pair.
#[derive(Debug)]
pub struct AsOf {
    pub(super) users: StoredUsers,
    pub(super) sequences: StoredSequences,
}

/// Reason why looks cannot resume from stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOfError {
    /// The bytes have a version that this program does not read.
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
            AsOfError::Version => f.write_str("it has a version that this program cannot read"),
            AsOfError::Malformed(error) => error.fmt(f),
            AsOfError::Look => f.write_str("its user sums and its sequences belong to different analyses"),
        }
    }
}

impl std::error::Error for AsOfError {}

impl AsOf {
    /// Decodes the stored looks of a pair with `n_arms` arms, for this ranking.
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
    /// Returns the bytes to store as of the last look, or as of the first one to take. None until that one is known.
    pub fn stored(&self) -> Option<StoredLooks> {
        let next = self.next?;
        let (look, courses) = if self.has_looked {
            (next - 1, &self.before)
        } else {
            (next, &self.courses)
        };
        let pairs = self.pairs.iter().map(|(id, pair)| {
            // Cells from `end` on are missing in the sums, so they are needed whatever the window. Dropped cells cannot return.
            let needed = cells_from(&self.rules, look).min(pair.end);
            let up_to = UpTo {
                look,
                end: pair.end,
                cells_from: needed.max(pair.let_go),
            };
            let stored = StoredLookPair {
                incarnation_id: pair.incarnation_id,
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

/// Returns the first cell of a look's window. Without a window, the cell after the look.
fn cells_from(rules: &LookRules, look: i64) -> i64 {
    let window = rules.window.as_ref();
    window.map_or(look + 1, |window| window.begin(look))
}
