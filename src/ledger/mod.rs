//! The settled numbers of one pair of partitions: what outlives open lists.
//!
//! ```text
//! engine ─▶ settled lists, each once ─▶ aggregates ─▶ slot ─▶ cells, totals, and the change of the slot
//! ```
//! A list arrives once its outcome is final, slot by slot. The order of arrival no longer matters, and everything kept is
//! additive. A ledger is a value: ledgers of several pairs [merge](Ledger::merge) to the whole, in any order, and
//! [bytes](Ledger::encode) are the same for the same numbers of arms in the same order. It knows no clock, no Kafka and no board.
//! A ledger that keeps other things [goes on](Ledger::decode) with the bytes of one of before: what both keep goes on.
//!
//! # How to add an aggregate
//!
//! 1. A file here with an implementation of [`Aggregate`], and a case worked by hand; [`Seen`] is the one to begin from. What there
//!    is to add of a list is a [`SettledList`]. Its user and its items are halves of
//!    hashes, so of very many some count as one. `Slot` is what the board is told; where that is nothing, `ByArm<Cell>` will do.
//! 2. A line in `aggregates.rs`. From there on it is kept, merged, encoded and decoded; [`Numbers`] and [`OfArm`] have it by the name
//!    of that line, and the laws in `tests.rs` hold for it. Ledgers that were stored before stay readable: it begins where they
//!    end, and [`Since`] says when that was.
//! 3. What shows it. A metric has columns of the ranking (a `Term` of `TermSource::Window`), which `totals` in
//!    `evaluate/evaluation.rs` and `board/covering.rs` fill in, as they do for coverage; gauges, JSON and files follow. Anything else
//!    stands beside the sums in [`Totals`](crate::evaluate::Totals) and what `evaluate/report/` makes of these, and in
//!    [`SettledSlot`], which the board adds to its windows; then in the documents under docs/ and tests/evaluate/ that show it.
//!
//! The join does not know about it.

mod aggregates;
mod book;
mod bucket_sums;
mod buckets;
mod columns;
mod error;
mod exposures;
mod frequent;
mod keep;
mod latest;
mod marks;
mod packed;
mod parts;
mod refused;
mod seen;
mod starts;
mod stored;
mod sums;
#[cfg(test)]
mod tests;
mod tracker;
mod units;

use std::collections::HashMap;
use std::fmt;

use self::aggregates::Books;
pub use self::aggregates::{Cell, Numbers, OfArm, Since};
pub use self::book::{Aggregate, ByArm};
pub use self::bucket_sums::{BucketSums, N_BUCKETS, Row};
use self::columns::Columns;
pub use self::error::LedgerError;
pub use self::exposures::{Exposed, USER_BYTES};
pub use self::frequent::FrequentUsers;
pub use self::keep::{Epochs, Keep, Kept, Span, Users};
pub use self::packed::PackedBuckets;
pub use self::parts::{NoPart, Part, Parts};
pub use self::refused::{HourCounts, N_HOURS, RefusedCounts};
pub use self::seen::{Classes, Seen};
pub use self::starts::Starts;
pub use self::sums::Sums;
pub use self::tracker::{PairDelta, PairId, PairTracker, Reach};
pub use self::units::{CAPPED_USER_BYTES, UnitCounts};
use crate::engine::ranking::Ranking;
use crate::engine::settling::{Settled, SettledList};
use crate::engine::tally::Rows;
use crate::engine::{Arm, ArmId, RefusedList, ShownLists};

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

impl SettledSlot {
    /// What it takes in memory.
    pub fn bytes(&self) -> u64 {
        size_of::<SettledSlot>() as u64 + self.tallies.bytes() + self.shown.bytes()
    }
}

/// The settled numbers of a pair.
pub struct Ledger {
    /// In the order in which the pair has admitted them.
    arms: Vec<Arm>,
    /// End of what it covers, epoch ms.
    until_ms: Option<i64>,
    /// In a merged or decoded ledger, a sum had exceeded 64 bits.
    overflowed: bool,
    /// Of the sums, whatever they are by.
    columns: Columns,
    /// As far as they have not been forgotten.
    users: Users,
    books: Books,
    /// Complete cells that are kept as bytes alone.
    packed: Parts,
    /// Cells that are taken out stay among these.
    keeps_taken: bool,
}

impl Ledger {
    /// An empty ledger that keeps these spans.
    pub fn new(ranking: &Ranking, keep: &Keep) -> Ledger {
        Ledger {
            arms: Vec::new(),
            until_ms: None,
            overflowed: false,
            columns: Columns::new(ranking, keep),
            users: keep.users.clone(),
            books: Books::new(ranking, keep),
            packed: Parts::new(),
            keeps_taken: false,
        }
    }

    /// Takes an event about settled lists from the engine; after the last list of a slot, returns what the slot has added.
    pub fn take(&mut self, settled: Settled) -> Option<SettledSlot> {
        match settled {
            Settled::List(list) => {
                if self.books.units.aggregate.has_caps() {
                    self.take_capped(list);
                } else {
                    self.books.add(&list);
                }
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

    /// Never inlined: without caps its lines would cost every list.
    #[inline(never)]
    fn take_capped(&mut self, list: SettledList) {
        let capped = self.books.units.aggregate.cap(&list);
        self.books.add(&SettledList {
            capped: &capped,
            ..list
        });
        self.books.units.aggregate.reuse(capped);
    }

    /// Counts a list that was refused; its arm is admitted.
    pub fn refuse(&mut self, list: &RefusedList) {
        self.books.refused.aggregate.refuse(list);
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

    /// Since when a column of the ranking is summed, epoch ms; none: from the begin of the ledger on. A sum is whole from the latest
    /// of these on: this, since when its span of time is kept, and by user since when users are told apart. Of merged ledgers
    /// each of them is the later one.
    pub fn column_since_ms(&self, column: usize) -> Option<i64> {
        self.columns.since_ms(column)
    }

    /// Since when all columns are summed, epoch ms; none: from the begin of the ledger on.
    pub fn columns_since_ms(&self) -> Option<i64> {
        self.columns.all_since_ms()
    }

    /// Since when totals are kept. Exposures since then are of users who were first seen since, not of those who were known.
    pub fn total_since(&self) -> Since {
        self.books.total_since()
    }

    /// From when on an experiment counts in totals, epoch ms; none: from the begin of the ledger on.
    pub fn total_start_ms(&self, experiment: &str) -> Option<i64> {
        self.keep().starts.of(experiment)
    }

    /// Since when the cells of a span are kept, as many as it is to have.
    pub fn cells_since(&self, span: usize) -> Since {
        self.books.cells_since(span)
    }

    /// Since when the users of an experiment are told apart, epoch ms: `i64::MIN` from the begin of the ledger on, none if they are not.
    pub fn users_since_ms(&self, experiment: &str) -> Option<i64> {
        let epochs = self.users.epochs(experiment)?;
        Some(epochs.start_ms.unwrap_or(i64::MIN))
    }

    /// The sums of each arm since the begin, as of [`Self::until_ms`].
    pub fn total(&self) -> Numbers<'_> {
        self.books.total()
    }

    /// The cells of a kept span, by number: epoch ms ÷ their length; not those that are [packed](Self::pack).
    pub fn cells(&self, span: usize) -> impl Iterator<Item = (i64, Numbers<'_>)> {
        let numbers = self.books.numbers(span);
        numbers.map(move |number| (number, self.books.cell(span, number)))
    }

    /// Whether a cell of a kept span is final.
    pub fn is_complete(&self, span: usize, number: i64) -> bool {
        parts::is_complete(self.keep().spans[span].cell_ms, number, self.until_ms)
    }

    /// From now on its bytes have the cells that are taken out too, until they are [let go](Self::let_go).
    pub fn keep_taken(&mut self) {
        self.keeps_taken = true;
    }

    /// Takes out the [complete](Self::is_complete) cells of a kept span, by number.
    pub fn take_complete(&mut self, span: usize) -> Vec<(i64, Cell)> {
        let numbers = self.books.numbers(span);
        let complete: Vec<i64> = numbers.filter(|number| self.is_complete(span, *number)).collect();
        if self.keeps_taken {
            complete.iter().for_each(|number| self.pack_cell(span, *number));
        }
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
        self.users.forget(experiment);
        self.books.forget_users(experiment, &arms);
    }

    /// Adds the ledger of another pair with the same configuration. The result covers what both cover. If one of them covers
    /// nothing, neither does the result: leave out pairs that never had a record. A user is in one of them alone. Neither is packed.
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
        self.columns.merge(&other.columns);
        self.users.merge(&other.users);
        self.books.merge(&other.books, &ids);
        self.until_ms = self
            .until_ms
            .zip(other.until_ms)
            .map(|(one, other)| one.min(other));
    }

    /// The kept spans.
    pub fn spans(&self) -> &[Span] {
        &self.keep().spans
    }

    fn keep(&self) -> &Keep {
        self.books.keep()
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("arms", &self.arms)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}
