//! The settled numbers of one pair of partitions: what outlives open lists.
//!
//! ```text
//! engine ─▶ settled lists, each once ─▶ aggregates ─▶ slot ─▶ cells, totals, and the change of the slot
//! ```
//! A list arrives once its outcome is final, slot by slot. The order of arrival no longer matters, and everything kept is
//! additive. A ledger is a value: ledgers of several pairs [merge](Ledger::merge) to the whole, in any order, and
//! [bytes](Ledger::encode) are the same for the same numbers of arms in the same order. It knows no clock, no Kafka and no board.
//!
//! # How to add an aggregate
//!
//! 1. A file here with an implementation of [`Aggregate`], and a case worked by hand; [`Seen`] is the one to begin from. What there
//!    is to add of a list is a [`SettledList`](crate::engine::settling::SettledList). Its user and its items are halves of
//!    hashes, so of very many some count as one. `Slot` is what the board is told; where that is nothing, `ByArm<Cell>` will do.
//! 2. A line in `aggregates.rs`. From there on it is kept, merged, encoded and decoded; [`Numbers`] and [`OfArm`] have it by the name
//!    of that line, and the laws in `tests.rs` hold for it. If ledgers of before are stored somewhere, `VERSION` goes up.
//! 3. What shows it. A metric has columns of the ranking (a `Term` of `TermSource::Window`), which `totals` in
//!    `evaluate/evaluation.rs` and `board/covering.rs` fill in, as they do for coverage; gauges, JSON and files follow. Anything else
//!    stands beside the sums in [`Totals`](crate::evaluate::Totals) and what `evaluate/report/` makes of these, and in
//!    [`SettledSlot`], which the board adds to its windows; then in the documents under docs/ and tests/evaluate/ that show it.
//!
//! The join does not know about it.

mod aggregates;
mod book;
mod buckets;
mod bytes;
mod exposures;
mod keep;
mod marks;
mod packed;
mod seen;
mod sums;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{HashMap, HashSet};
use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use self::aggregates::Books;
pub use self::aggregates::{Cell, Numbers, OfArm};
pub use self::book::{Aggregate, ByArm};
pub use self::buckets::{BucketSums, N_BUCKETS, merge_buckets, subtract_buckets};
pub use self::bytes::LedgerError;
use self::bytes::{Reader, Writer};
pub use self::exposures::{Exposed, USER_BYTES};
pub use self::keep::{Epochs, Keep, Span, Users};
pub use self::packed::PackedBuckets;
pub use self::seen::{Classes, Seen};
pub use self::sums::Sums;
pub use self::tracker::{PairDelta, PairId, PairTracker, Reach};
use crate::engine::ranking::Ranking;
use crate::engine::settling::Settled;
use crate::engine::tally::Rows;
use crate::engine::{Arm, ArmId, ShownLists};

/// The first byte of an encoded ledger.
const VERSION: u8 = 1;

/// What one slot has added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledSlot {
    /// Begin of the slot, epoch ms.
    pub start_ms: i64,
    /// Sums by arm, up to the last column that is needed.
    pub tallies: Rows<ArmId>,
    /// What its lists have shown, where coverage is measured.
    pub shown: ShownLists,
}

/// The settled numbers of a pair.
pub struct Ledger {
    /// [`fingerprint`].
    configuration: u64,
    /// In the order in which the pair has admitted them.
    arms: Vec<Arm>,
    /// End of what it covers, epoch ms.
    until_ms: Option<i64>,
    /// In a merged or decoded ledger, a sum had exceeded 64 bits.
    overflowed: bool,
    books: Books,
}

impl Ledger {
    /// An empty ledger that keeps these spans.
    pub fn new(ranking: &Ranking, keep: &Keep) -> Ledger {
        Ledger {
            configuration: fingerprint(ranking, keep),
            arms: Vec::new(),
            until_ms: None,
            overflowed: false,
            books: Books::new(ranking, keep),
        }
    }

    /// Takes an event about settled lists from the engine; after the last list of a slot, returns what the slot has added.
    pub fn take(&mut self, settled: Settled) -> Option<SettledSlot> {
        match settled {
            Settled::List(list) => {
                self.books.add(&list);
                None
            }
            Settled::Slot { start_ms, end_ms } => Some(self.end_slot(start_ms, end_ms)),
        }
    }

    fn end_slot(&mut self, start_ms: i64, end_ms: i64) -> SettledSlot {
        let slots = self.books.end_slot(start_ms);
        self.cover_until(Some(end_ms));
        SettledSlot {
            start_ms,
            tallies: slots.sums.unwrap_or_default(),
            shown: slots.seen.unwrap_or_default(),
        }
    }

    /// Names the arms that the engine has admitted since, in its order. An arm comes before its first list.
    pub fn admit(&mut self, arms: &[Arm]) {
        self.books.admit(arms);
        self.arms.extend_from_slice(arms);
    }

    /// Notes that no list before this time (epoch ms) can still arrive, even if there was none.
    pub fn cover_until(&mut self, until_ms: Option<i64>) {
        self.until_ms = self.until_ms.max(until_ms);
        self.until_ms
            .iter()
            .for_each(|until_ms| self.books.end_until(*until_ms));
    }

    /// The arms, by number.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// End of what it covers, epoch ms; none before the first slot.
    pub fn until_ms(&self) -> Option<i64> {
        self.until_ms
    }

    /// Whether a sum has exceeded 64 bits in a slot: the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        let books = &self.books;
        self.overflowed || books.sums.aggregate.overflowed() || books.buckets.aggregate.overflowed()
    }

    /// The sums of each arm since the begin, as of [`Self::until_ms`].
    pub fn total(&self) -> Numbers<'_> {
        self.books.total()
    }

    /// The cells of a kept span, by number: epoch ms ÷ their length.
    pub fn cells(&self, span: usize) -> impl Iterator<Item = (i64, Numbers<'_>)> {
        let numbers = self.books.buckets.numbers(span);
        numbers.map(move |number| (number, self.books.cell(span, number)))
    }

    /// Whether a cell of a kept span is final.
    pub fn is_complete(&self, span: usize, number: i64) -> bool {
        let cell_ms = self.books.sums.spans()[span].cell_ms;
        let end_ms = number.saturating_add(1).saturating_mul(cell_ms);
        self.until_ms.is_some_and(|until_ms| end_ms <= until_ms)
    }

    /// Takes out the [complete](Self::is_complete) cells of a kept span, by number.
    pub fn take_complete(&mut self, span: usize) -> Vec<(i64, Cell)> {
        let numbers = self.books.buckets.numbers(span);
        let complete: Vec<i64> = numbers.filter(|number| self.is_complete(span, *number)).collect();
        let taken = complete
            .into_iter()
            .map(|number| (number, self.books.take(span, number)));
        taken.collect()
    }

    /// Tells the users of an experiment no longer apart: what it has of them so far stays, nothing is added.
    pub fn forget_users(&mut self, experiment: &str) {
        let arms = (0..)
            .zip(&self.arms)
            .filter(|(_, arm)| &*arm.experiment == experiment);
        let arms: Vec<ArmId> = arms.map(|(id, _)| id).collect();
        self.books.forget_users(experiment, &arms);
    }

    /// Adds the ledger of another pair with the same configuration. The result covers what both cover. If one of them covers
    /// nothing, neither does the result: leave out pairs that never had a record. A user is in one of them alone.
    pub fn merge(&mut self, other: &mut Ledger) {
        self.books.end_until(i64::MAX);
        other.books.end_until(i64::MAX);
        let mut known: HashMap<Arm, ArmId> = self.arms.iter().cloned().zip(0..).collect();
        let mut new = Vec::new();
        let n_arms = self.arms.len();
        let number_of = |arm: &Arm| {
            *known.entry(arm.clone()).or_insert_with(|| {
                new.push(arm.clone());
                (n_arms + new.len() - 1) as ArmId
            })
        };
        let ids: Vec<ArmId> = other.arms.iter().map(number_of).collect();
        self.admit(&new);
        self.overflowed |= other.overflowed();
        self.books.merge(&other.books, &ids);
        self.until_ms = self
            .until_ms
            .zip(other.until_ms)
            .map(|(one, other)| one.min(other));
    }

    /// The same bytes for the same numbers, between two slots. Whole numbers are LEB128, signed ones zigzag; texts and rows have their length
    /// before them.
    ///
    /// ```text
    /// 1 │ configuration │ arms: n, (experiment, arm)… │ 0, or 1 and end │ overflowed: 0 or 1 │ book of each aggregate…
    /// book  total, spans…, what it remembers      total  n, (arm, cell)…      span  cell length, n, (number, total)…
    /// ```
    pub fn encode(&mut self) -> Vec<u8> {
        self.books.end_until(i64::MAX);
        let mut to = Writer::default();
        to.byte(VERSION);
        to.number(self.configuration);
        to.number(self.arms.len() as u64);
        for Arm { experiment, arm } in &self.arms {
            to.text(experiment);
            to.text(arm);
        }
        to.byte(u8::from(self.until_ms.is_some()));
        self.until_ms.iter().for_each(|ms| to.signed((*ms).into()));
        to.byte(u8::from(self.overflowed()));
        self.books.encode(&mut to);
        to.into_bytes()
    }

    /// A ledger of these bytes, for the same configuration.
    ///
    /// # Errors
    /// [`LedgerError`] if they are no ledger.
    pub fn decode(bytes: &[u8], ranking: &Ranking, keep: &Keep) -> Result<Ledger, LedgerError> {
        let mut from = Reader::new(bytes);
        if from.byte()? != VERSION {
            return Err(LedgerError::Version);
        }
        let mut ledger = Ledger::new(ranking, keep);
        if from.number()? != ledger.configuration {
            return Err(LedgerError::Configuration);
        }
        let mut known = HashSet::new();
        for _ in 0..from.length()? {
            let [experiment, arm] = [from.text()?.into(), from.text()?.into()];
            let arm = Arm { experiment, arm };
            if !known.insert(arm.clone()) {
                return Err(LedgerError::Number);
            }
            ledger.admit(&[arm]);
        }
        if from.flag()? {
            ledger.until_ms = Some(i64::try_from(from.signed()?).map_err(|_| LedgerError::Number)?);
        }
        ledger.overflowed = from.flag()?;
        ledger.books.decode(&mut from, ledger.arms.len())?;
        from.end()?;
        Ok(ledger)
    }
}

/// Stands for all that the numbers of a ledger depend on: its columns in their order, and what is kept.
fn fingerprint(ranking: &Ranking, keep: &Keep) -> u64 {
    let profiles = ranking.profiles();
    let columns = ranking.columns().iter();
    let columns = columns.map(|column| format!("{} {}\n", profiles[column.profile].name, column.key()));
    let spans = keep.spans.iter();
    let spans = spans.map(|span| format!("{span:?}\n"));
    let rest = format!("{} {:?}", keep.total, keep.users);
    let text: String = columns.chain(spans).chain([rest]).collect();
    xxh3_64(text.as_bytes())
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("arms", &self.arms)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}
