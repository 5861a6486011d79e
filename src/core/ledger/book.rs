//! Totals and cells of one aggregate, by arm. Every aggregate is kept, merged and encoded the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use super::LedgerError;
use super::keep::{Keep, KeptAggregates, Span, Users};
use super::parts::Part;
use super::stored::StoredLedger;
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Sums over settled lists, arm by arm. The caller calls [`add`](Self::add) for each list, [`end_slot`](Self::end_slot)
/// after the last list of a slot, and then [`add_slot`](Self::add_slot) for the total and for each kept span.
pub trait Aggregate {
    /// Sums of one arm over a span of time.
    type Cell: Clone + Debug + PartialEq;
    /// Sums added by one slot, all arms together. Sent to the board if it needs them.
    type Slot;
    /// Name in stored state. It must never change.
    const ID: &'static str;
    /// Version of the encoding. When the bytes change, increment it and keep [`decode`](Self::decode) able to read the old
    /// ones.
    const VERSION: u64;
    /// True if the aggregate depends on tracked users. If nothing else is kept of it, the slots of a cell are ended
    /// together: with so many users, a slot adds almost as much data as a whole cell.
    const BY_USER: bool = false;
    /// True if totals also include slots before the start of an experiment.
    const BEFORE_START: bool = false;

    /// Creates an empty aggregate.
    fn new(ranking: &Ranking, keep: &Keep) -> Self;

    /// Registers the next arms, in the order of their numbers.
    fn admit(&mut self, _arms: &[Arm]) {}

    /// Stops tracking the users of an experiment, whose arms so far are given.
    fn forget_users(&mut self, _experiment: &str, _arms: &[ArmId]) {}

    /// Adds a list to the current slot.
    fn add(&mut self, list: &SettledList);

    /// Ends the current slot and starts the next one.
    fn end_slot(&mut self) -> Self::Slot;

    /// Adds a slot to the cells of its arms.
    fn add_slot(&self, slot: &Self::Slot, cells: &mut ByArm<Self::Cell>);

    /// Merges the sums of another span of time, or of the same arm in another pair.
    fn merge(cell: &mut Self::Cell, more: &Self::Cell);

    /// Encodes a cell. Equal cells have equal bytes.
    fn encode(&self, cell: &Self::Cell, to: &mut Writer);

    /// Encodes everything the aggregate remembers besides cells.
    fn encode_memory(&self, _to: &mut Writer) {}

    /// Replaces the remembered data with the stored data, as far as it can be resumed.
    ///
    /// # Errors
    /// Same as [`decode`](Self::decode).
    fn decode_memory(&mut self, _from: &mut Reader, _stored: &StoredLedger) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Merges the remembered data of another aggregate. `ids` maps its arms to arms of this one.
    fn merge_memory(&mut self, _other: &Self, _ids: &[ArmId])
    where
        Self: Sized,
    {
    }

    /// Decodes the part of a stored cell that can be resumed, or `None` if nothing can.
    ///
    /// # Errors
    /// If [`encode`](Self::encode) would not write these bytes. Damaged bytes must neither panic nor allocate more than a
    /// bounded amount of memory.
    fn decode(&self, from: &mut Reader, stored: &StoredLedger) -> Result<Option<Self::Cell>, LedgerError>;
}

/// Cells by arm number.
pub type ByArm<C> = BTreeMap<ArmId, C>;

/// Totals and cells of one aggregate.
#[derive(Debug)]
pub(super) struct Book<A: Aggregate> {
    pub aggregate: A,
    keep: Keep,
    distinguishes_users: bool,
    pub total: ByArm<A::Cell>,
    /// Start of each arm in the total, Unix ms. `None`: since the start of the ledger.
    starts_ms: Vec<Option<i64>>,
    /// Latest of these starts.
    last_start_ms: Option<i64>,
    /// Start of the total, Unix ms. `None`: since the start of the ledger.
    pub total_since_ms: Option<i64>,
    /// Cells by kept span and cell number.
    cells: Vec<BTreeMap<i64, ByArm<A::Cell>>>,
    /// Start of the cells by kept span, like `total_since_ms`.
    cells_since_ms: Vec<Option<i64>>,
    /// Empty cell, returned for cells that do not exist.
    none: ByArm<A::Cell>,
    /// Slots that the aggregate has not ended yet.
    open: Option<SlotRange>,
}

/// Slots that are ended together, from the start of the first to the end of the last, Unix ms.
#[derive(Debug, Clone, Copy)]
struct SlotRange {
    start_ms: i64,
    end_ms: i64,
}

impl<A: Aggregate> Book<A> {
    pub fn new(aggregate: A, keep: &Keep) -> Book<A> {
        Book {
            aggregate,
            distinguishes_users: keep.users != Users::Nobody,
            keep: keep.clone(),
            total: ByArm::new(),
            starts_ms: Vec::new(),
            last_start_ms: None,
            total_since_ms: None,
            cells: vec![BTreeMap::new(); keep.spans.len()],
            cells_since_ms: vec![None; keep.spans.len()],
            none: ByArm::new(),
            open: None,
        }
    }

    pub fn keep(&self) -> &Keep {
        &self.keep
    }

    /// Registers the next arms, in the order of their numbers.
    pub fn admit(&mut self, arms: &[Arm]) {
        self.aggregate.admit(arms);
        let starts = arms.iter().map(|arm| self.keep.starts.of(&arm.experiment));
        self.starts_ms.extend(starts);
        self.last_start_ms = self.starts_ms.iter().copied().max().flatten();
    }

    fn has_total(&self) -> bool {
        self.keep.total.is_some_and(keeps::<A>)
    }

    /// Returns the index of each span that has cells of this aggregate.
    fn kept_spans(&self) -> impl Iterator<Item = (usize, Span)> + use<A> {
        let spans = self.keep.spans.clone().into_iter().enumerate();
        spans.filter(|(_, span)| keeps::<A>(span.kept))
    }

    #[inline(always)]
    pub fn add(&mut self, list: &SettledList) {
        if A::BY_USER && !self.distinguishes_users {
            return;
        }
        self.end_until(list.start_ms);
        self.aggregate.add(list);
    }

    /// Ends a slot. Returns the sums it added, unless slots are ended together.
    pub fn end_slot(&mut self, start_ms: i64) -> Option<A::Slot> {
        // Pending slots of an earlier cell must end before this one.
        self.end_until(start_ms);
        let stretch_ms = self.keep.only_cell_ms(A::BY_USER).filter(|_| A::BY_USER);
        if let Some(cell_ms) = stretch_ms {
            let end_ms = (start_ms.div_euclid(cell_ms) + 1) * cell_ms;
            self.open.get_or_insert(SlotRange { start_ms, end_ms });
            return None;
        }
        Some(self.end(start_ms))
    }

    /// Ends all pending slots that are over by this time, Unix ms.
    pub fn end_until(&mut self, until_ms: i64) {
        if let Some(open) = self.open.take_if(|open| open.end_ms <= until_ms) {
            self.end(open.start_ms);
        }
    }

    /// Ends pending slots. They are all in the same cells as the slot that starts at `start_ms`.
    fn end(&mut self, start_ms: i64) -> A::Slot {
        let slot = self.aggregate.end_slot();
        if self.has_total() {
            self.aggregate.add_slot(&slot, &mut self.total);
            self.leave_out_before_start(start_ms);
        }
        let spans = self.keep.spans.iter().zip(&mut self.cells);
        for (span, cells) in spans.filter(|(span, _)| keeps::<A>(span.kept)) {
            let number = start_ms.div_euclid(span.cell_ms);
            self.aggregate.add_slot(&slot, cells.entry(number).or_default());
            span.trim(cells);
        }
        slot
    }

    fn leave_out_before_start(&mut self, slot_ms: i64) {
        if self.last_start_ms > Some(slot_ms) && !A::BEFORE_START {
            // `add_slot` adds all arms at once. An arm that has not started has nothing else in the total and can be
            // dropped.
            self.total
                .retain(|arm, _| self.starts_ms[*arm as usize] <= Some(slot_ms));
        }
    }

    /// Returns the numbers of the cells in a span.
    pub fn numbers(&self, span: usize) -> impl Iterator<Item = i64> {
        self.cells[span].keys().copied()
    }

    /// Returns a cell, or an empty one if there is no cell with this number.
    pub fn cell(&self, span: usize, number: i64) -> &ByArm<A::Cell> {
        self.cells[span].get(&number).unwrap_or(&self.none)
    }

    pub fn cells_since_ms(&self, span: usize) -> Option<i64> {
        self.cells_since_ms[span]
    }

    /// Creates missing cells of a span, if the aggregate is kept there.
    pub fn fill(&mut self, span: usize, numbers: &BTreeSet<i64>) {
        for (index, kept) in self.kept_spans().filter(|(index, _)| *index == span) {
            let cells = &mut self.cells[index];
            numbers
                .iter()
                .for_each(|number| _ = cells.entry(*number).or_default());
            kept.trim(cells);
        }
    }

    /// Removes a cell, if there is one with this number.
    pub fn take(&mut self, span: usize, number: i64) -> ByArm<A::Cell> {
        self.cells[span].remove(&number).unwrap_or_default()
    }

    /// Merges another book. `ids` maps its arms to arms of this one.
    pub fn merge(&mut self, other: &Book<A>, ids: &[ArmId]) {
        merge_all::<A>(&mut self.total, &other.total, ids);
        self.keep.starts.merge(&other.keep.starts);
        let cells = self.cells.iter_mut().zip(&other.cells);
        for (span, (own, others)) in self.keep.spans.iter().zip(cells) {
            for (number, cell) in others {
                merge_all::<A>(own.entry(*number).or_default(), cell, ids);
            }
            span.trim(own);
        }
        // A common sum is complete only from the later start on.
        self.total_since_ms = self.total_since_ms.max(other.total_since_ms);
        let since = self.cells_since_ms.iter_mut().zip(&other.cells_since_ms);
        since.for_each(|(own, other)| *own = (*own).max(*other));
        self.aggregate.merge_memory(&other.aggregate, ids);
    }

    /// Encodes one part of the ledger.
    pub fn encode(&self, part: Part, to: &mut Writer) {
        match part {
            Part::Head => self.encode_head(to),
            Part::Arms(_) => {}
            Part::Total => self.encode_all(&self.total, to),
            Part::Cell {
                kept,
                cell_ms,
                number,
            } => {
                let cell = self.span_of(kept, cell_ms).map(|span| self.cell(span, number));
                self.encode_all(cell.unwrap_or(&self.none), to);
            }
            Part::Memory => self.aggregate.encode_memory(to),
        }
    }

    /// Writes since when the total and the cells are kept.
    fn encode_head(&self, to: &mut Writer) {
        if self.has_total() {
            to.time(self.total_since_ms);
        }
        for (index, _) in self.kept_spans() {
            to.time(self.cells_since_ms[index]);
        }
    }

    /// Returns the index of the span with such cells, if it is kept.
    fn span_of(&self, kept: KeptAggregates, cell_ms: i64) -> Option<usize> {
        let mut spans = self.kept_spans();
        let found = spans.find(|(_, span)| (span.kept, span.cell_ms) == (kept, cell_ms));
        found.map(|(index, _)| index)
    }

    fn encode_all(&self, cells: &ByArm<A::Cell>, to: &mut Writer) {
        to.number(cells.len() as u64);
        for (arm, cell) in cells {
            to.number((*arm).into());
            self.aggregate.encode(cell, to);
        }
    }

    /// Resumes one stored part. Anything without a stored part starts at the end of the stored ledger.
    pub fn resume(
        &mut self,
        part: Part,
        from: &mut Reader,
        stored: &StoredLedger,
    ) -> Result<(), LedgerError> {
        match part {
            Part::Head => self.resume_head(from, stored)?,
            Part::Arms(_) => {}
            Part::Total => {
                // Decode it even if it is not kept any more, so that damaged bytes are refused in any case.
                let mut total = self.decode_all(from, stored)?;
                total.retain(|arm, _| A::BEFORE_START || stored.totals_go_on[*arm as usize]);
                if self.has_total() {
                    self.total = total;
                }
            }
            Part::Cell {
                kept,
                cell_ms,
                number,
            } => {
                // Damaged bytes are refused even in a cell that is no longer kept.
                let cell = self.decode_all(from, stored)?;
                if let Some(span) = self.span_of(kept, cell_ms) {
                    self.cells[span].insert(number, cell);
                }
            }
            Part::Memory => self.aggregate.decode_memory(from, stored)?,
        }
        Ok(())
    }

    fn resume_head(&mut self, from: &mut Reader, stored: &StoredLedger) -> Result<(), LedgerError> {
        if stored.total.is_some_and(keeps::<A>) {
            // Read it even if it is no longer kept: the next field follows.
            let since_ms = from.time()?;
            if self.has_total() {
                self.total_since_ms = since_ms;
            }
        }
        for span in stored.spans.iter().filter(|span| keeps::<A>(span.kept)) {
            let since_ms = from.time()?;
            if let Some(index) = self.span_of(span.kept, span.cell_ms) {
                self.cells_since_ms[index] = since_ms;
            }
        }
        Ok(())
    }

    /// Sets all starts to the end of the stored ledger. [`resume`](Self::resume) then restores the stored ones.
    pub fn begin(&mut self, stored: &StoredLedger) {
        self.total_since_ms = stored.until_ms;
        self.cells_since_ms.fill(stored.until_ms);
    }

    /// Drops resumed cells beyond the size of their span.
    pub fn trim(&mut self, stored: &StoredLedger) {
        for (index, span) in self.kept_spans() {
            let cells = &mut self.cells[index];
            let of_span = |stored: &&Span| (stored.kept, stored.cell_ms) == (span.kept, span.cell_ms);
            if let Some(stored) = stored.spans.iter().find(of_span) {
                // A shorter stored span has dropped its older cells, so this one is complete only from its oldest cell on.
                let since_ms = &mut self.cells_since_ms[index];
                *since_ms = (*since_ms).max(span.since_ms(stored.n_cells, cells));
            }
            span.trim(cells);
        }
    }

    fn decode_all(&self, from: &mut Reader, stored: &StoredLedger) -> Result<ByArm<A::Cell>, LedgerError> {
        let (mut cells, mut last) = (ByArm::new(), None);
        for _ in 0..from.length()? {
            let arm = from.number()?;
            let users_go_on = usize::try_from(arm)
                .ok()
                .and_then(|arm| stored.users_go_on.get(arm));
            let users_go_on = users_go_on.ok_or(LedgerError::Number)?;
            // Arms ascend in every encoding, so that equal cells have equal bytes.
            if last.replace(arm).is_some_and(|last| last >= arm) {
                return Err(LedgerError::Number);
            }
            let cell = self.aggregate.decode(from, stored)?;
            // Sums of users that restart are decoded only to get past them.
            if let Some(cell) = cell.filter(|_| *users_go_on || !A::BY_USER) {
                cells.insert(arm as ArmId, cell);
            }
        }
        Ok(cells)
    }
}

/// Returns whether an aggregate belongs to a selection.
fn keeps<A: Aggregate>(kept: KeptAggregates) -> bool {
    kept.has(A::BY_USER)
}

fn merge_all<A: Aggregate>(own: &mut ByArm<A::Cell>, others: &ByArm<A::Cell>, ids: &[ArmId]) {
    for (arm, cell) in others {
        own.entry(ids[*arm as usize])
            .and_modify(|own| A::merge(own, cell))
            .or_insert_with(|| cell.clone());
    }
}
