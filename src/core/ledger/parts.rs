//! Encoding of a ledger in parts. Most parts never change again, so storage need not write them twice.
//!
//! Whole numbers are LEB128, signed ones zigzag. Texts and the data of an aggregate are preceded by their length. A time is 0,
//! or 1 and Unix ms.
//!
//! ```text
//! head    3 │ time of the end │ overflowed: 0 or 1 │ columns: n, (id, time since)… │ users │ number of arms
//!         │ total: kept, n, (experiment, its start)… │ n spans: (length of a cell, 0 or 1 and how many, kept, cells)…
//!         │ n, (id, version) of each aggregate… │ of each: time since of the total and of each span, as far as it is kept
//! arms i  n, (experiment, arm)…: 256, or what is left of them
//! total   cells of each aggregate
//! cell    the same, of a span, by the length of its cells, and their number
//! memory  exposures: n, (user, n, (arm, 2 × epoch + 1 if in two arms) of each experiment…)… │ others: nothing
//!
//! kept    0: no total │ 1: all │ 2: by arm │ 3: by user
//! users   0: nobody │ 1, epochs: everybody │ 2: n, (experiment, epochs)…
//! epochs  time of the start, n, start of each later one…
//! cells   n, (arm, cell)…
//! cell    sums: a sum for each column │ buckets: n, (bucket, a sum for each column, lists with a click)…
//!         seen: n, (step to the item, column of the first cut-off)… │ exposures: first seen in it, in two arms
//!         units: lists without a user, lists beyond a cap
//!         refused: n, (bucket, refused)…, n, (hour of the week, refused, accepted)…
//!         frequent: n, (place, lists, lists with each bit…)… │ latest: Unix ms
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::aggregates::Books;
use super::columns::Columns;
use super::stored::{StoredAggregate, StoredLedger};
use super::{Keep, KeptAggregates, Ledger, LedgerError, Span, Starts, Users};
use crate::bytes::{Reader, Writer};
use crate::engine::Arm;
use crate::metrics::Ranking;

/// First byte of a head: version of the layout of all parts. Each aggregate has its own version in addition.
const VERSION: u8 = 3;

/// Arms per part.
const ARMS: usize = 256;

/// Part of an encoded ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Index of the other parts, with the start of everything kept.
    Head,
    /// Up to 256 arms, in order.
    Arms(usize),
    Total,
    /// Cell of a span. The span is identified by its contents and cell length.
    Cell {
        kept: KeptAggregates,
        cell_ms: i64,
        number: i64,
    },
    /// Data that aggregates remember besides cells.
    Memory,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Head => f.write_str("head"),
            Part::Arms(place) => write!(f, "arms {place}"),
            Part::Total => f.write_str("total"),
            Part::Cell {
                kept,
                cell_ms,
                number,
            } => write!(f, "cell {} {cell_ms} {number}", word(*kept)),
            Part::Memory => f.write_str("memory"),
        }
    }
}

fn word(kept: KeptAggregates) -> &'static str {
    match kept {
        KeptAggregates::All => "all",
        KeptAggregates::ByArm => "arms",
        KeptAggregates::ByUser => "users",
    }
}

/// Error: the text is not the name of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPart;

fn code(kept: KeptAggregates) -> u8 {
    match kept {
        KeptAggregates::All => 1,
        KeptAggregates::ByArm => 2,
        KeptAggregates::ByUser => 3,
    }
}

impl Part {
    fn cell(span: &Span, number: i64) -> Part {
        Part::Cell {
            kept: span.kept,
            cell_ms: span.cell_ms,
            number,
        }
    }

    /// Returns the number of the cell, if this is a cell of the span.
    fn number_in(&self, span: &Span) -> Option<i64> {
        match *self {
            Part::Cell {
                kept,
                cell_ms,
                number,
            } if (kept, cell_ms) == (span.kept, span.cell_ms) => Some(number),
            _ => None,
        }
    }
}

impl FromStr for Part {
    type Err = NoPart;

    fn from_str(name: &str) -> Result<Part, NoPart> {
        let words: Vec<&str> = name.split(' ').collect();
        let part = match words[..] {
            ["head"] => Part::Head,
            ["arms", place] => Part::Arms(place.parse().map_err(|_| NoPart)?),
            ["total"] => Part::Total,
            ["cell", kept, cell_ms, number] => Part::Cell {
                kept: KeptAggregates::EACH
                    .into_iter()
                    .find(|each| word(*each) == kept)
                    .ok_or(NoPart)?,
                cell_ms: cell_ms.parse().map_err(|_| NoPart)?,
                number: number.parse().map_err(|_| NoPart)?,
            },
            ["memory"] => Part::Memory,
            _ => return Err(NoPart),
        };
        // Each part has exactly one name, so reject variants such as `arms 01`.
        (part.to_string() == name).then_some(part).ok_or(NoPart)
    }
}

/// Complete encoding of a ledger.
pub type EncodedLedger = BTreeMap<Part, Arc<[u8]>>;

fn get(parts: &EncodedLedger, part: Part) -> Result<Reader<'_>, LedgerError> {
    let bytes = parts.get(&part).ok_or(LedgerError::Missing(part))?;
    Ok(Reader::new(bytes))
}

/// Returns whether a cell can no longer get any list.
pub(super) fn is_complete(cell_ms: i64, number: i64, until_ms: Option<i64>) -> bool {
    let end_ms = number.saturating_add(1).saturating_mul(cell_ms);
    until_ms.is_some_and(|until_ms| end_ms <= until_ms)
}

impl Ledger {
    /// Encodes the ledger between two slots. Equal numbers have equal bytes.
    pub fn encode(&mut self) -> EncodedLedger {
        // Slots that wait for the end of their cell have no encoding of their own.
        self.books.end_until(i64::MAX);
        self.drop_packed_that_left();
        let mut parts = self.packed.clone();
        for part in self.unpacked() {
            parts.insert(part, self.encode_part(part).into());
        }
        parts
    }

    /// Keeps complete cells of arms only in encoded form, which takes a tenth of the memory. They never change again, and
    /// [`Self::cells`] no longer returns them.
    pub fn pack(&mut self) {
        let spans = self.keep().spans.clone();
        let by_arm = spans
            .iter()
            .enumerate()
            .filter(|(_, span)| span.kept == KeptAggregates::ByArm);
        for (index, _) in by_arm {
            let mut numbers: Vec<i64> = self.cells(index).map(|(number, _)| number).collect();
            numbers.retain(|number| self.is_complete(index, *number));
            for number in numbers {
                self.pack_cell(index, number);
                self.books.take(index, number);
            }
        }
        self.drop_packed_that_left();
    }

    /// Encodes a complete cell and keeps the bytes.
    pub(super) fn pack_cell(&mut self, span: usize, number: i64) {
        let part = Part::cell(&self.keep().spans[span], number);
        self.packed.insert(part, self.encode_part(part).into());
    }

    /// Drops removed cells of a span below this number.
    pub fn let_go(&mut self, span: usize, below: i64) {
        let span = self.keep().spans[span];
        let is_below = |part: &Part| part.number_in(&span).is_some_and(|number| number < below);
        self.packed.retain(|part, _| !is_below(part));
    }

    fn drop_packed_that_left(&mut self) {
        for (index, span) in self.keep().spans.clone().iter().enumerate() {
            let packed = self.packed.keys().filter_map(|part| part.number_in(span));
            let Some(newest) = self.cells(index).map(|(number, _)| number).chain(packed).max() else {
                continue;
            };
            let left = |number| {
                span.n_cells
                    .is_some_and(|n_cells| number <= newest.saturating_sub(n_cells))
            };
            self.packed
                .retain(|part, _| !part.number_in(span).is_some_and(left));
        }
    }

    /// Returns the parts that are not packed.
    fn unpacked(&self) -> BTreeSet<Part> {
        let mut parts = BTreeSet::from([Part::Head, Part::Memory]);
        parts.extend((0..self.arms.len().div_ceil(ARMS)).map(Part::Arms));
        parts.extend(self.keep().total.map(|_| Part::Total));
        for (index, span) in self.keep().spans.iter().enumerate() {
            let cells = self.cells(index);
            parts.extend(cells.map(|(number, _)| Part::cell(span, number)));
        }
        parts
    }

    fn encode_part(&self, part: Part) -> Vec<u8> {
        let mut to = Writer::default();
        match part {
            Part::Head => self.encode_head(&mut to),
            Part::Arms(place) => self.encode_arms(place, &mut to),
            _ => {}
        }
        if !matches!(part, Part::Arms(_)) {
            self.books.encode(part, &mut to);
        }
        to.into_bytes()
    }

    fn encode_head(&self, to: &mut Writer) {
        to.byte(VERSION);
        to.time(self.until_ms);
        to.byte(u8::from(self.overflowed()));
        self.columns.encode(to);
        self.users.encode(to);
        to.number(self.arms.len() as u64);
        to.byte(self.keep().total.map_or(0, code));
        self.keep().starts.encode(to);
        to.number(self.keep().spans.len() as u64);
        for (index, span) in self.keep().spans.iter().enumerate() {
            to.signed(span.cell_ms.into());
            to.time(span.n_cells);
            to.byte(code(span.kept));
            let n_packed = self
                .packed
                .keys()
                .filter(|part| part.number_in(span).is_some())
                .count();
            to.number((self.cells(index).count() + n_packed) as u64);
        }
        Books::encode_names(to);
    }

    fn encode_arms(&self, place: usize, to: &mut Writer) {
        let arms = self.arms.chunks(ARMS).nth(place).unwrap_or_default();
        to.number(arms.len() as u64);
        for Arm { experiment, arm } in arms {
            to.text(experiment);
            to.text(arm);
        }
    }

    /// Decodes a ledger and resumes everything that is still kept: columns and aggregates by id, spans by cell length, and
    /// tracked experiments by name. Anything new starts at the end of the stored ledger. Anything no longer kept is dropped.
    ///
    /// # Errors
    /// [`LedgerError`] if the parts are not a ledger, or were written by a newer program.
    pub fn decode(parts: &EncodedLedger, ranking: &Ranking, keep: &Keep) -> Result<Ledger, LedgerError> {
        let mut head = get(parts, Part::Head)?;
        if head.byte()? != VERSION {
            return Err(LedgerError::Version);
        }
        let (until_ms, overflowed) = (head.time()?, head.flag()?);
        let mut columns = Columns::new(ranking, keep);
        let own_columns = columns.resume(&mut head, until_ms)?;
        let stored_users = Users::decode(&mut head)?;
        let arms = decode_arms(head.number()?, parts)?;
        let users = keep.users.resumed(&stored_users, until_ms);
        let users_go_on = |arm: &Arm| keep.users.can_resume(&stored_users, &arm.experiment, until_ms);
        let (total, stored_starts) = (decode_kept(&mut head)?, Starts::decode(&mut head)?);
        let total_continues = |arm: &Arm| keep.starts.can_resume(&stored_starts, &arm.experiment, until_ms);
        let experiments = arms.iter().map(|arm| arm.experiment.to_string());
        let starts = keep.starts.resumed(&stored_starts, experiments, until_ms);
        let stored = StoredLedger {
            until_ms,
            columns: own_columns,
            users_go_on: arms.iter().map(users_go_on).collect(),
            users: keep.users.clone(),
            stored_users: stored_users.clone(),
            totals_go_on: arms.iter().map(total_continues).collect(),
            total,
            spans: decode_spans(&mut head, parts)?,
            aggregates: StoredAggregate::decode_all(&mut head)?,
        };
        let keep = Keep {
            users,
            starts,
            ..keep.clone()
        };
        let mut ledger = Ledger {
            until_ms,
            overflowed,
            columns,
            ..Ledger::new(ranking, &keep)
        };
        // Aggregates must know the arms before they decode sums.
        ledger.admit(&arms);
        ledger.resume(head, parts, &stored)?;
        Ok(ledger)
    }

    fn resume(
        &mut self,
        head: Reader,
        parts: &EncodedLedger,
        stored: &StoredLedger,
    ) -> Result<(), LedgerError> {
        self.books.begin(stored)?;
        let mut resume = |part, mut from: Reader| {
            self.books.resume(part, &mut from, stored)?;
            Ok::<_, LedgerError>(from.end()?)
        };
        resume(Part::Head, head)?;
        if stored.total.is_some() {
            resume(Part::Total, get(parts, Part::Total)?)?;
        }
        for part in parts.keys() {
            if let Part::Cell { .. } = part {
                // A cell outside of all spans would be lost without a message.
                let is_named = stored.spans.iter().any(|span| part.number_in(span).is_some());
                is_named.then_some(()).ok_or(LedgerError::Number)?;
                resume(*part, get(parts, *part)?)?;
            }
        }
        resume(Part::Memory, get(parts, Part::Memory)?)?;
        // Only once all cells are there, because the newest one decides which others leave.
        self.books.trim(stored);
        Ok(())
    }
}

fn decode_arms(n_arms: u64, parts: &EncodedLedger) -> Result<Vec<Arm>, LedgerError> {
    let (mut arms, mut known) = (Vec::new(), HashSet::new());
    let n_arms = usize::try_from(n_arms).map_err(|_| LedgerError::Number)?;
    for place in 0..n_arms.div_ceil(ARMS) {
        let mut from = get(parts, Part::Arms(place))?;
        for _ in 0..from.length()? {
            let [experiment, arm] = [from.text()?.into(), from.text()?.into()];
            arms.push(Arm { experiment, arm });
        }
        from.end()?;
    }
    // An arm that occurred twice would have two numbers.
    let are_all = arms.len() == n_arms && arms.iter().all(|arm| known.insert(arm));
    are_all.then_some(()).ok_or(LedgerError::Number)?;
    Ok(arms)
}

/// Decodes a selection of aggregates, or `None` for 0.
fn decode_kept(from: &mut Reader) -> Result<Option<KeptAggregates>, LedgerError> {
    let found = from.byte()?;
    let kept = KeptAggregates::EACH.into_iter().find(|kept| code(*kept) == found);
    (kept.is_some() || found == 0)
        .then_some(kept)
        .ok_or(LedgerError::Number)
}

/// Decodes the spans and checks that all of their cells exist.
fn decode_spans(from: &mut Reader, parts: &EncodedLedger) -> Result<Vec<Span>, LedgerError> {
    let (mut spans, mut known) = (Vec::new(), BTreeSet::new());
    for _ in 0..from.length()? {
        let span = Span {
            cell_ms: from.ms()?,
            n_cells: from.time()?,
            kept: decode_kept(from)?.ok_or(LedgerError::Number)?,
        };
        // A missing cell must not pass for a span of time without lists.
        let n_found = parts
            .keys()
            .filter(|part| part.number_in(&span).is_some())
            .count();
        if from.number()? != n_found as u64 || !known.insert((span.kept, span.cell_ms)) {
            return Err(LedgerError::Number);
        }
        spans.push(span);
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_name() {
        for (part, name) in [
            (Part::Head, "head"),
            (Part::Arms(12), "arms 12"),
            (Part::Total, "total"),
            (
                Part::Cell {
                    kept: KeptAggregates::ByArm,
                    cell_ms: 60_000,
                    number: -7,
                },
                "cell arms 60000 -7",
            ),
            (Part::Memory, "memory"),
        ] {
            assert_eq!(part.to_string(), name);
            assert_eq!(name.parse(), Ok(part));
        }
        for name in [
            "",
            "heads",
            "arms",
            "arms 01",
            "arms +1",
            "cell arms 1",
            "cell some 1 2",
            "total ",
            "memory 1",
        ] {
            assert_eq!(name.parse::<Part>(), Err(NoPart), "{name}");
        }
    }
}
