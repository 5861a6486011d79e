//! Settled numbers of one pair of partitions, kept after its open lists are gone.
//!
//! ```text
//! engine ─▶ settled lists, each once ─▶ aggregates ─▶ slot ─▶ cells, totals, and the change of the slot
//! ```
//! A list arrives once its outcome is final, slot by slot. From then on the order of arrival does not matter, and
//! everything kept is additive. A ledger is a plain value without a clock, Kafka or a board. Ledgers of several pairs can
//! be [merged](Ledger::merge) in any order. Equal numbers with the arms in the same order [encode](Ledger::encode) to equal
//! bytes. [`decode`](Ledger::decode) accepts bytes written with another [`Keep`]; whatever both keep is carried over.
//!
//! # How to add an aggregate
//!
//! 1. Write a file here with an implementation of [`Aggregate`] and a case worked by hand. [`DistinctItems`] is a good
//!    template. The input is a [`SettledList`]. Its user and its items are halves of hashes, so among very many a few collide
//!    and count as one. `Slot` is the change sent to the board; use `ByArm<Cell>` if the board does not need it.
//! 2. Add a line to `aggregates.rs`. The aggregate is then kept, merged, encoded and decoded. [`Numbers`] and [`OfArm`] get a
//!    field with that name, and the laws in `tests.rs` cover it. Ledgers stored earlier stay readable: the aggregate starts
//!    where they end, and [`Since`] contains that time.
//! 3. Show it. A metric has columns of the ranking (a `Term` of `TermSource::Window`). Fill them in `totals` in
//!    `evaluate/evaluation.rs` and in `board/covering.rs`, as for coverage; gauges, JSON and files follow. Anything else goes
//!    next to the sums in [`Totals`](crate::evaluate::TotalsByArm), into `evaluate/report/`, and into [`SettledSlot`], which the
//!    board adds to its windows. Then update the documents under docs/ and tests/evaluate/ that show it.
//!
//! The join does not change.

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
mod packed;
mod parts;
mod refused;
mod seen;
mod sightings;
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
pub use self::keep::{Epochs, Keep, KeptAggregates, Span, Users};
pub use self::packed::PackedBuckets;
pub use self::parts::{EncodedLedger, NoPart, Part};
pub use self::refused::{HourCounts, N_HOURS, RefusedCounts};
pub use self::seen::{Classes, DistinctItems};
pub use self::starts::Starts;
pub use self::sums::Sums;
pub use self::tracker::{CountingProgress, PairDelta, PairId, PairTracker};
pub use self::units::{CAPPED_USER_BYTES, UnitCounts};
use crate::bytes::Reader;
use crate::engine::settling::{Settled, SettledList};
use crate::engine::tally::Rows;
use crate::engine::{Arm, ArmId, RefusedEvent, ShownLists};
use crate::metrics::Ranking;

/// Sums added by one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledSlot {
    /// Start of the slot, Unix ms.
    pub start_ms: i64,
    /// Sums by arm. Each row ends with the last column that the slot needed.
    pub tallies: Rows<ArmId>,
    /// Items shown by its lists, if coverage is measured.
    pub shown: ShownLists,
}

impl SettledSlot {
    /// Returns its size in memory.
    pub fn bytes(&self) -> u64 {
        size_of::<SettledSlot>() as u64 + self.tallies.bytes() + self.shown.bytes()
    }
}

/// Settled numbers of one pair.
pub struct Ledger {
    /// Arms in the order in which the pair admitted them.
    arms: Vec<Arm>,
    /// End of the covered time, Unix ms.
    until_ms: Option<i64>,
    /// True if a sum exceeded 64 bits in a ledger that was decoded or merged into this one.
    overflowed: bool,
    /// Columns of all sums, by arm and by bucket.
    columns: Columns,
    /// Users still tracked.
    users: Users,
    books: Books,
    /// Complete cells kept only in encoded form.
    packed: EncodedLedger,
    /// True if removed cells stay among the packed ones.
    keeps_taken: bool,
}

impl Ledger {
    /// Creates an empty ledger.
    pub fn new(ranking: &Ranking, keep: &Keep) -> Ledger {
        Ledger {
            arms: Vec::new(),
            until_ms: None,
            overflowed: false,
            columns: Columns::new(ranking, keep),
            users: keep.users.clone(),
            books: Books::new(ranking, keep),
            packed: EncodedLedger::new(),
            keeps_taken: false,
        }
    }

    /// Takes a settled list or the end of a slot from the engine. The end of a slot returns the sums it added.
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
            Settled::Refused { start_ms, click } => {
                self.refuse(&click.in_slot(start_ms));
                None
            }
        }
    }

    fn end_slot(&mut self, start_ms: i64, end_ms: i64) -> SettledSlot {
        let slots = self.books.end_slot(start_ms);
        // This also ends pending slots of aggregates that end a whole cell at once.
        self.cover_until(Some(end_ms));
        SettledSlot {
            start_ms,
            tallies: slots.sums.unwrap_or_default(),
            shown: slots.seen.unwrap_or_default(),
        }
    }

    /// Adds a list with caps applied. Never inlined, because its code would slow down every list without caps.
    #[inline(never)]
    fn take_capped(&mut self, list: SettledList) {
        let capped = self.books.units.aggregate.cap(&list);
        self.books.add(&SettledList {
            capped: &capped,
            ..list
        });
        self.books.units.aggregate.reuse(capped);
    }

    /// Counts a refused list or click. Its arm must be registered if the engine has admitted it.
    pub fn refuse(&mut self, list: &RefusedEvent) {
        self.books.refused.aggregate.refuse(list);
    }

    /// Returns the arms of compared experiments that have refused lists and no settled one, with the number of refused lists.
    pub fn unlisted(&self) -> impl Iterator<Item = (&Arm, u64)> {
        self.books.refused.aggregate.unlisted()
    }

    /// Counts the refused lists of a registered arm without a settled list with the next slot from this time on, Unix ms.
    pub fn count_unlisted(&mut self, arm: ArmId, with_ms: i64) {
        self.books.refused.aggregate.count_unlisted(arm, with_ms);
    }

    /// Registers arms newly admitted by the engine, in its order. An arm must be registered before its first list.
    pub fn admit(&mut self, arms: &[Arm]) {
        self.books.admit(arms);
        self.arms.extend_from_slice(arms);
    }

    /// Notes that no list before this time (Unix ms) can arrive any more, even if there never was one.
    pub fn cover_until(&mut self, until_ms: Option<i64>) {
        self.until_ms = self.until_ms.max(until_ms);
        self.until_ms
            .iter()
            .for_each(|until_ms| self.books.end_until(*until_ms));
    }

    /// Returns the arms by number.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// Returns the end of the covered time, Unix ms, or `None` before the first slot.
    pub fn until_ms(&self) -> Option<i64> {
        self.until_ms
    }

    /// Returns whether a sum has exceeded 64 bits within a slot, so that the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        let books = &self.books;
        self.overflowed || books.sums.aggregate.overflowed() || books.buckets.aggregate.overflowed()
    }

    /// Returns since when a column of the ranking is summed, Unix ms, or `None` if since the start of the ledger. A sum is
    /// complete from the latest of three times on: this one, the start of its span, and for sums by user the start of
    /// tracking. In a merged ledger each of them is the later one of both.
    pub fn column_since_ms(&self, column: usize) -> Option<i64> {
        self.columns.since_ms(column)
    }

    /// Returns since when all columns are summed, Unix ms, or `None` if since the start of the ledger.
    pub fn columns_since_ms(&self) -> Option<i64> {
        self.columns.all_since_ms()
    }

    /// Returns since when totals are kept. Exposures count only users first seen since then, not users known before.
    pub fn total_since(&self) -> Since {
        self.books.total_since()
    }

    /// Returns when an experiment starts to count in totals, Unix ms, or `None` if at the start of the ledger.
    pub fn total_start_ms(&self, experiment: &str) -> Option<i64> {
        self.keep().starts.of(experiment)
    }

    /// Returns since when the cells of a span are complete.
    pub fn cells_since(&self, span: usize) -> Since {
        self.books.cells_since(span)
    }

    /// Returns since when the users of an experiment are tracked, Unix ms: `i64::MIN` since the start of the ledger, `None`
    /// if never.
    pub fn users_since_ms(&self, experiment: &str) -> Option<i64> {
        let epochs = self.users.epochs(experiment)?;
        Some(epochs.start_ms.unwrap_or(i64::MIN))
    }

    /// Returns the sums of all arms since the start, until [`Self::until_ms`].
    pub fn total(&self) -> Numbers<'_> {
        self.books.total()
    }

    /// Returns the cells of a kept span by number (Unix ms ÷ cell length), without [packed](Self::pack) ones.
    pub fn cells(&self, span: usize) -> impl Iterator<Item = (i64, Numbers<'_>)> {
        let numbers = self.books.numbers(span);
        numbers.map(move |number| (number, self.books.cell(span, number)))
    }

    /// Returns whether a cell of a kept span is final.
    pub fn is_complete(&self, span: usize, number: i64) -> bool {
        parts::is_complete(self.keep().spans[span].cell_ms, number, self.until_ms)
    }

    /// Keeps removed cells in the encoded ledger from now on, until [`let_go`](Self::let_go) drops them.
    pub fn keep_taken(&mut self) {
        self.keeps_taken = true;
    }

    /// Removes the [complete](Self::is_complete) cells of a kept span and returns them by number.
    pub fn take_complete(&mut self, span: usize) -> Vec<(i64, Cell)> {
        let numbers = self.books.numbers(span);
        let complete: Vec<i64> = numbers.filter(|number| self.is_complete(span, *number)).collect();
        // Before the cell is removed: its consumer may need it again after a restart.
        if self.keeps_taken {
            complete.iter().for_each(|number| self.pack_cell(span, *number));
        }
        let taken = complete
            .into_iter()
            .map(|number| (number, self.books.take(span, number)));
        taken.collect()
    }

    /// Stops tracking the users of an experiment. Data collected so far stays, and nothing is added.
    pub fn forget_users(&mut self, experiment: &str) {
        let arms = (0..)
            .zip(&self.arms)
            .filter(|(_, arm)| &*arm.experiment == experiment);
        let arms: Vec<ArmId> = arms.map(|(id, _)| id).collect();
        self.users.forget(experiment);
        self.books.forget_users(experiment, &arms);
    }

    /// Merges the ledger of another pair with the same configuration. The result covers the time that both cover. If one
    /// covers nothing, neither does the result, so leave out pairs that never had a record. No user may be in both pairs,
    /// and neither ledger may be packed.
    pub fn merge(&mut self, other: &mut Ledger) {
        // Only cells and totals are merged, so slots that wait for the end of their cell must be ended first.
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
        // Aggregates must know an arm before sums arrive under its number.
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

    /// Returns the kept spans.
    pub fn spans(&self) -> &[Span] {
        &self.keep().spans
    }

    fn keep(&self) -> &Keep {
        self.books.keep()
    }
}

/// Decodes a count. It is below 2⁵⁶, so that sums of counts fit into 64 bits.
fn decode_count(from: &mut Reader) -> Result<u64, LedgerError> {
    let count = from.number().ok();
    count.filter(|n| *n < 1 << 56).ok_or(LedgerError::Number)
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("arms", &self.arms)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}
