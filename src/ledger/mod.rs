//! The settled numbers of one pair of partitions: what outlives open lists.
//!
//! ```text
//! engine ─▶ settled lists, each once ─▶ aggregates ─▶ slot ─▶ cells, totals, and the change of the slot
//! ```
//! A list is told once its outcome is final, slot by slot; so the order of arrival is behind us, and all that is kept is
//! additive. A ledger is a value: ledgers of several pairs [merge](Ledger::merge) to the whole, in any order, and
//! [bytes](Ledger::encode) are the same for the same numbers. It knows no clock, no Kafka and no board.
//!
//! # How to add an aggregate
//!
//! 1. A file here with an implementation of [`Aggregate`]: what a list adds to the slot that is told, what arms add up to in
//!    a cell, how two cells merge, and their bytes. Its case by hand stands beside it.
//! 2. A field of [`Ledger`], in `new`, `add`, `end_slot`, `merge`, `encode` and `decode`.
//! 3. What shows it.
//!
//! The join does not know of it.

mod book;
mod bytes;
mod seen;
mod sums;
#[cfg(test)]
mod tests;
mod tracker;

use std::fmt;

use self::book::Book;
pub use self::book::{Aggregate, ByArm, Keep, Span};
pub use self::bytes::Damage;
use self::bytes::{Reader, Writer};
pub use self::seen::{Classes, Seen};
pub use self::sums::Sums;
pub use self::tracker::{PairDelta, PairTracker, Reach};
use crate::engine::ranking::Ranking;
use crate::engine::settling::{Settled, SettledList};
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
    /// In the order in which the pair has admitted them.
    arms: Vec<Arm>,
    /// End of the last slot that was told as a whole, epoch ms.
    until_ms: Option<i64>,
    sums: Book<Sums>,
    /// Where coverage is measured.
    seen: Option<Book<Seen>>,
}

impl Ledger {
    /// An empty one, which keeps what is asked for.
    pub fn new(ranking: &Ranking, keep: &Keep) -> Ledger {
        let seen = |columns: &crate::engine::ranking::CoverageColumns| {
            Book::new(Seen::new(columns.ks.clone()), keep)
        };
        Ledger {
            arms: Vec::new(),
            until_ms: None,
            sums: Book::new(Sums::new(ranking.clone()), keep),
            seen: ranking.coverage().map(seen),
        }
    }

    /// Takes what the engine tells of settled lists; returns what a slot has added, after its last list.
    pub fn take(&mut self, settled: Settled) -> Option<SettledSlot> {
        match settled {
            Settled::List(list) => {
                self.add(&list);
                None
            }
            Settled::Slot { start_ms, end_ms } => Some(self.end_slot(start_ms, end_ms)),
        }
    }

    fn add(&mut self, list: &SettledList) {
        self.sums.add(list);
        self.seen.iter_mut().for_each(|seen| seen.add(list));
    }

    fn end_slot(&mut self, start_ms: i64, end_ms: i64) -> SettledSlot {
        self.until_ms = self.until_ms.max(Some(end_ms));
        let shown = self.seen.as_mut().map(|seen| seen.end_slot(start_ms));
        SettledSlot {
            start_ms,
            tallies: self.sums.end_slot(start_ms),
            shown: shown.unwrap_or_default(),
        }
    }

    /// Names the arms that the engine has admitted since, in its order.
    pub fn admit(&mut self, arms: &[Arm]) {
        self.arms.extend_from_slice(arms);
    }

    /// The arms, by number.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// End of what it covers, epoch ms; none before a slot was told.
    pub fn until_ms(&self) -> Option<i64> {
        self.until_ms
    }

    /// Whether a sum has left 64 bits in a slot: the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        self.sums.aggregate.overflowed()
    }

    /// What each arm adds up to since the begin, as of [`Self::until_ms`].
    pub fn total(&self) -> Numbers<'_> {
        let seen = self.seen.as_ref();
        Numbers {
            sums: &self.sums.total,
            seen: seen.map(|seen| &seen.total),
        }
    }

    /// The cells of a kept span, by number: epoch ms ÷ their length.
    pub fn cells(&self, span: usize) -> impl Iterator<Item = (i64, Numbers<'_>)> {
        let seen = self.seen.as_ref();
        self.sums.cells(span).map(move |(number, sums)| {
            let seen = seen.and_then(|seen| seen.cell(span, number));
            (number, Numbers { sums, seen })
        })
    }

    /// Whether nothing can be added any more to a cell of a kept span.
    pub fn is_complete(&self, span: usize, number: i64) -> bool {
        let cell_ms = self.sums.spans()[span].cell_ms;
        self.until_ms
            .is_some_and(|until_ms| (number + 1) * cell_ms <= until_ms)
    }

    /// Adds what another pair has, under the same configuration. It covers what both cover.
    pub fn merge(&mut self, other: &Ledger) {
        let ids: Vec<ArmId> = other.arms.iter().map(|arm| self.number_of(arm)).collect();
        self.sums.merge(&other.sums, &ids);
        if let (Some(own), Some(other)) = (&mut self.seen, &other.seen) {
            own.merge(other, &ids);
        }
        self.until_ms = match (self.until_ms, other.until_ms) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    /// The number of an arm, which is admitted if need be.
    fn number_of(&mut self, arm: &Arm) -> ArmId {
        let known = self.arms.iter().position(|known| known == arm);
        let number = known.unwrap_or_else(|| {
            self.arms.push(arm.clone());
            self.arms.len() - 1
        });
        number as ArmId
    }

    /// The same bytes for the same numbers. Whole numbers are LEB128, signed ones zigzag; texts and rows have their length
    /// before them.
    ///
    /// ```text
    /// 1 │ arms: n, (experiment, arm)… │ end + 1 or 0 │ sums: total, spans… │ seen: 0, or 1 and total, spans…
    /// total  n, (arm, cell)…          span  cell length, n, (number, total)…
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.byte(VERSION);
        to.number(self.arms.len() as u64);
        for Arm { experiment, arm } in &self.arms {
            to.text(experiment);
            to.text(arm);
        }
        to.signed(self.until_ms.map_or(0, |ms| i128::from(ms) + 1));
        self.sums.encode(&mut to);
        to.byte(u8::from(self.seen.is_some()));
        self.seen.iter().for_each(|seen| seen.encode(&mut to));
        to.into_bytes()
    }

    /// A ledger of these bytes, for the same configuration.
    ///
    /// # Errors
    /// [`Damage`], where they are none.
    pub fn decode(bytes: &[u8], ranking: &Ranking, keep: &Keep) -> Result<Ledger, Damage> {
        let mut from = Reader::new(bytes);
        if from.byte()? != VERSION {
            return Err(Damage::Version);
        }
        let mut ledger = Ledger::new(ranking, keep);
        for _ in 0..from.length()? {
            let [experiment, arm] = [from.text()?.into(), from.text()?.into()];
            ledger.arms.push(Arm { experiment, arm });
        }
        let until_ms = from.signed()?;
        ledger.until_ms = match until_ms {
            0 => None,
            ms => Some(i64::try_from(ms - 1).map_err(|_| Damage::Number)?),
        };
        ledger.sums.decode(&mut from, ledger.arms.len())?;
        match (from.byte()?, &mut ledger.seen) {
            (1, Some(seen)) => seen.decode(&mut from, ledger.arms.len())?,
            (0, None) => {}
            _ => return Err(Damage::Configuration),
        }
        from.end()?;
        Ok(ledger)
    }
}

/// What arms add up to in one span of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers<'a> {
    /// As wide as the ranking.
    pub sums: &'a ByArm<Box<[i128]>>,
    /// Where coverage is measured.
    pub seen: Option<&'a ByArm<Classes>>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("arms", &self.arms)
            .field("until_ms", &self.until_ms)
            .finish_non_exhaustive()
    }
}
