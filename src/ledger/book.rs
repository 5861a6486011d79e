//! What one aggregate keeps: totals and cells by arm. Every aggregate is kept, merged and encoded in the same way.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::bytes::{LedgerError, Reader, Writer};
use super::keep::{Keep, Span};
use crate::engine::ranking::Ranking;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};

/// What settled lists add up to, arm by arm. For each list [`add`](Self::add), after the last one of a slot
/// [`end_slot`](Self::end_slot), then [`add_slot`](Self::add_slot) for the total and for each kept span.
pub trait Aggregate {
    /// What one arm adds up to in a span of time.
    type Cell: Clone + Debug + PartialEq;
    /// What one slot adds, all arms together: this is what the board is told, if anything.
    type Slot;
    /// Whether it is among what is kept of users alone. If nothing else is kept, the slots of a cell are ended together: users are
    /// so many that what a slot adds is little smaller than what a cell does.
    const BY_USER: bool = false;

    /// One that was told nothing.
    fn new(ranking: &Ranking, keep: &Keep) -> Self;

    /// Takes note of the next arms, in the order of their numbers.
    fn admit(&mut self, _arms: &[Arm]) {}

    /// Tells the users of an experiment no longer apart; these are its arms so far.
    fn forget_users(&mut self, _experiment: &str, _arms: &[ArmId]) {}

    /// Adds a list to the current slot.
    fn add(&mut self, list: &SettledList);

    /// Ends the current slot, and begins the next one.
    fn end_slot(&mut self) -> Self::Slot;

    /// Adds a slot to the cells of its arms.
    fn add_slot(&self, slot: &Self::Slot, cells: &mut ByArm<Self::Cell>);

    /// Adds what another span of time, or the arm in another pair, adds up to.
    fn merge(cell: &mut Self::Cell, more: &Self::Cell);

    /// The same bytes for the same numbers.
    fn encode(cell: &Self::Cell, to: &mut Writer);

    /// What it remembers besides cells, as bytes.
    fn encode_memory(&self, _to: &mut Writer) {}

    /// Takes the place of what it remembers.
    ///
    /// # Errors
    /// As those of [`decode`](Self::decode).
    fn decode_memory(&mut self, _from: &mut Reader) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Adds what another one remembers, whose arms have these numbers here.
    fn merge_memory(&mut self, _other: &Self, _ids: &[ArmId])
    where
        Self: Sized,
    {
    }

    /// # Errors
    /// Where the bytes are no cell that [`encode`](Self::encode) would write so. Whatever is damaged must not make it panic, or
    /// take more memory than a bound.
    fn decode(&self, from: &mut Reader) -> Result<Self::Cell, LedgerError>;
}

/// Cells by the number of their arm.
pub type ByArm<C> = BTreeMap<ArmId, C>;

/// The numbers of one aggregate.
#[derive(Debug)]
pub(super) struct Book<A: Aggregate> {
    pub aggregate: A,
    keep: Keep,
    pub total: ByArm<A::Cell>,
    /// By kept span, then number of the cell.
    cells: Vec<BTreeMap<i64, ByArm<A::Cell>>>,
    /// Stands for a cell that there is not.
    none: ByArm<A::Cell>,
    /// The slots that the aggregate has not ended yet.
    open: Option<Stretch>,
}

/// Slots that are ended together: from the start of the first one to the end of the last, epoch ms.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start_ms: i64,
    end_ms: i64,
}

impl<A: Aggregate> Book<A> {
    pub fn new(aggregate: A, keep: &Keep) -> Book<A> {
        Book {
            aggregate,
            keep: keep.clone(),
            total: ByArm::new(),
            cells: vec![BTreeMap::new(); keep.spans.len()],
            none: ByArm::new(),
            open: None,
        }
    }

    pub fn spans(&self) -> &[Span] {
        &self.keep.spans
    }

    pub fn add(&mut self, list: &SettledList) {
        if self.open.is_some_and(|open| list.start_ms >= open.end_ms) {
            self.end_stretch();
        }
        self.aggregate.add(list);
    }

    /// Ends a slot; what it adds is returned where slots are not ended together.
    pub fn end_slot(&mut self, start_ms: i64) -> Option<A::Slot> {
        if self.open.is_some_and(|open| start_ms >= open.end_ms) {
            self.end_stretch();
        }
        if let Some(cell_ms) = self.keep.stretch_ms().filter(|_| A::BY_USER) {
            let end_ms = (start_ms.div_euclid(cell_ms) + 1) * cell_ms;
            self.open.get_or_insert(Stretch { start_ms, end_ms });
            return None;
        }
        Some(self.end(start_ms))
    }

    /// Ends all slots that have come up to this time, epoch ms.
    pub fn end_until(&mut self, until_ms: i64) {
        if self.open.is_some_and(|open| open.end_ms <= until_ms) {
            self.end_stretch();
        }
    }

    fn end_stretch(&mut self) {
        if let Some(open) = self.open.take() {
            self.end(open.start_ms);
        }
    }

    /// Ends slots that are all in the cells of one that starts then.
    fn end(&mut self, start_ms: i64) -> A::Slot {
        let slot = self.aggregate.end_slot();
        if self.keep.total {
            self.aggregate.add_slot(&slot, &mut self.total);
        }
        let spans = self.keep.spans.iter().zip(&mut self.cells);
        for (span, cells) in spans.filter(|(span, _)| A::BY_USER || !span.by_user_only) {
            let number = start_ms.div_euclid(span.cell_ms);
            self.aggregate.add_slot(&slot, cells.entry(number).or_default());
            span.trim(cells);
        }
        slot
    }

    /// Which cells of a span there are.
    pub fn numbers(&self, span: usize) -> impl Iterator<Item = i64> {
        self.cells[span].keys().copied()
    }

    /// Empty where there is no cell of this number.
    pub fn cell(&self, span: usize, number: i64) -> &ByArm<A::Cell> {
        self.cells[span].get(&number).unwrap_or(&self.none)
    }

    /// Whether it has cells of the same numbers, as far as it keeps them.
    pub fn has_cells_of<B: Aggregate>(&self, other: &Book<B>) -> bool {
        let kept = |(_, span): &(usize, &Span)| A::BY_USER || !span.by_user_only;
        let mut spans = self.keep.spans.iter().enumerate().filter(kept);
        spans.all(|(span, _)| self.numbers(span).eq(other.numbers(span)))
    }

    /// Takes a cell out, if there is one of this number.
    pub fn take(&mut self, span: usize, number: i64) -> ByArm<A::Cell> {
        self.cells[span].remove(&number).unwrap_or_default()
    }

    /// Adds another book, whose arms have these numbers here.
    pub fn merge(&mut self, other: &Book<A>, ids: &[ArmId]) {
        merge_all::<A>(&mut self.total, &other.total, ids);
        let cells = self.cells.iter_mut().zip(&other.cells);
        for (span, (own, others)) in self.keep.spans.iter().zip(cells) {
            for (number, cell) in others {
                merge_all::<A>(own.entry(*number).or_default(), cell, ids);
            }
            span.trim(own);
        }
        self.aggregate.merge_memory(&other.aggregate, ids);
    }

    pub fn encode(&self, to: &mut Writer) {
        encode_all::<A>(&self.total, to);
        for (span, cells) in self.keep.spans.iter().zip(&self.cells) {
            to.signed(span.cell_ms.into());
            to.number(cells.len() as u64);
            for (number, cell) in cells {
                to.signed((*number).into());
                encode_all::<A>(cell, to);
            }
        }
        self.aggregate.encode_memory(to);
    }

    /// Takes the place of what is kept. Arms are below `n_arms`.
    pub fn decode(&mut self, from: &mut Reader, n_arms: usize) -> Result<(), LedgerError> {
        self.total = self.decode_all(from, n_arms)?;
        for index in 0..self.keep.spans.len() {
            if from.signed()? != i128::from(self.keep.spans[index].cell_ms) {
                return Err(LedgerError::Configuration);
            }
            for _ in 0..from.length()? {
                let number = i64::try_from(from.signed()?).map_err(|_| LedgerError::Number)?;
                let cell = self.decode_all(from, n_arms)?;
                insert_last(&mut self.cells[index], number, cell)?;
            }
        }
        self.aggregate.decode_memory(from)
    }

    fn decode_all(&self, from: &mut Reader, n_arms: usize) -> Result<ByArm<A::Cell>, LedgerError> {
        let mut cells = ByArm::new();
        for _ in 0..from.length()? {
            let arm = from.number()?;
            if arm >= n_arms as u64 {
                return Err(LedgerError::Number);
            }
            insert_last(&mut cells, arm as ArmId, self.aggregate.decode(from)?)?;
        }
        Ok(cells)
    }
}

/// Keys ascend: the same numbers have one encoding.
pub(super) fn insert_last<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) -> Result<(), LedgerError> {
    if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
        return Err(LedgerError::Number);
    }
    map.insert(key, value);
    Ok(())
}

fn merge_all<A: Aggregate>(own: &mut ByArm<A::Cell>, others: &ByArm<A::Cell>, ids: &[ArmId]) {
    for (arm, cell) in others {
        own.entry(ids[*arm as usize])
            .and_modify(|own| A::merge(own, cell))
            .or_insert_with(|| cell.clone());
    }
}

fn encode_all<A: Aggregate>(cells: &ByArm<A::Cell>, to: &mut Writer) {
    to.number(cells.len() as u64);
    for (arm, cell) in cells {
        to.number((*arm).into());
        A::encode(cell, to);
    }
}
