//! Sums that metrics are ratios of: integers, or multiples of 2⁻³².

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::keep::Keep;
use super::stored::StoredLedger;
use crate::bytes::{Reader, Writer};
use crate::engine::ArmId;
use crate::engine::contributions::Contributions;
use crate::engine::settling::{SettledItems, SettledList};
use crate::engine::tally::{Rows, SlotTally};
use crate::metrics::{self, ListOutcome, Ranking, Relevant};

/// Numerators and denominators of all metrics, by column of the ranking.
#[derive(Debug)]
pub struct Sums(SlotSums);

/// Sums of the lists of one slot, in numbered rows.
#[derive(Debug)]
pub(super) struct SlotSums {
    ranking: Ranking,
    contributions: Contributions,
    /// Tally of the current slot.
    tally: SlotTally,
    /// Scratch row for what the catalogue contributes to a list.
    of_items: Vec<i64>,
    of_aspects: Vec<i64>,
    scratch: metrics::RankingBuffers,
    relevant: Relevant,
    /// Scratch row for the contribution of a list.
    room: Vec<i64>,
    overflowed: bool,
}

impl Sums {
    /// Returns whether a sum has exceeded 64 bits within a slot.
    pub fn overflowed(&self) -> bool {
        self.0.overflowed()
    }
}

impl SlotSums {
    pub fn new(ranking: &Ranking) -> SlotSums {
        SlotSums {
            ranking: ranking.clone(),
            contributions: Contributions::new(ranking),
            tally: SlotTally::new(ranking.width()),
            of_items: vec![0; ranking.columns_of_catalogue().len()],
            of_aspects: vec![0; ranking.columns_of_aspects().len()],
            scratch: ranking.scratch(),
            relevant: Relevant::default(),
            room: Vec::new(),
            overflowed: false,
        }
    }

    /// Returns whether a sum has exceeded 64 bits within a slot.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Returns the number of columns in a row.
    pub fn width(&self) -> usize {
        self.ranking.width()
    }

    /// Adds a list to these rows.
    pub fn add(&mut self, rows: &[ArmId], list: &SettledList) {
        self.add_outcome(rows, &list.outcome);
        if let Some(items) = &list.items {
            self.add_items(rows, list, items);
        }
    }

    /// Ends the slot and starts the next one.
    pub fn end_slot(&mut self) -> Rows<ArmId> {
        let mut rows = Rows::new();
        self.overflowed |= self
            .tally
            .hand_over(&self.contributions, &mut self.room, |row, _, sums| {
                rows.push(row, sums)
            });
        rows
    }

    /// Adds the contribution of a list's length and clicks.
    fn add_outcome(&mut self, rows: &[ArmId], list: &ListOutcome) {
        let SlotSums {
            ranking,
            contributions,
            tally,
            room,
            ..
        } = self;
        let n_items = list.n_items as usize;
        // Contributions are remembered only for short lists. Compute the row of a long list.
        if !contributions.remember_new_list(n_items, ranking) {
            room.resize(ranking.width(), 0);
            ranking.contribute(list, room);
            for row in rows {
                let row = tally.row(*row);
                tally.add(row, 0, room);
            }
            return;
        }
        // Most lists have no click.
        let is_clicked = list.n_off_list > 0 || list.clicked.iter().any(|word| *word != 0);
        if !is_clicked {
            for row in rows {
                let row = tally.row(*row);
                tally.count(row, list.n_items, contributions);
            }
            return;
        }
        let only_click = only_click(list)
            .filter(|position| contributions.remember_first_click(n_items, *position, ranking));
        // Copy the row, because counting the list below borrows the contributions again.
        if only_click.is_none() {
            room.clear();
            room.extend_from_slice(contributions.of_clicks(list, ranking));
        }
        for row in rows {
            let row = tally.row(*row);
            tally.count(row, list.n_items, contributions);
            match only_click {
                Some(position) => tally.count_click(row, n_items, position, contributions),
                None => tally.add(row, 0, room),
            }
        }
    }

    /// Adds the contribution of the catalogue items that a list has shown.
    fn add_items(&mut self, rows: &[ArmId], list: &SettledList, items: &SettledItems) {
        let SlotSums {
            ranking,
            tally,
            of_items,
            of_aspects,
            scratch,
            relevant,
            ..
        } = self;
        ranking.contribute_places(items.places, items.catalogue, scratch, of_items);
        of_aspects.fill(0);
        if ranking.needs_aspects() {
            relevant.set(&list.outcome, items.places, list.off_list, items.catalogue);
            if !relevant.shown.is_empty() {
                ranking.contribute_aspects(relevant, items.catalogue, 1, scratch, of_aspects);
            }
        }
        for row in rows {
            let row = tally.row(*row);
            if !of_items.is_empty() {
                tally.add(row, ranking.columns_of_catalogue().start, of_items);
            }
            // Adding nothing but zeros would still allocate sums for the row.
            if of_aspects.iter().any(|term| *term != 0) {
                tally.add(row, ranking.columns_of_aspects().start, of_aspects);
            }
        }
    }
}

/// Returns the position of the only click on a list, if it is short enough to be counted by position.
fn only_click(list: &ListOutcome) -> Option<usize> {
    match list.clicked {
        [word] if list.n_off_list == 0 && word.is_power_of_two() => Some(word.trailing_zeros() as usize),
        _ => None,
    }
}

impl Aggregate for Sums {
    type Cell = Box<[i128]>;
    type Slot = Rows<ArmId>;
    const ID: &str = "sums";
    const VERSION: u64 = 1;

    fn new(ranking: &Ranking, _: &Keep) -> Sums {
        Sums(SlotSums::new(ranking))
    }

    fn add(&mut self, list: &SettledList) {
        self.0.add(list.arms, list);
    }

    fn end_slot(&mut self) -> Rows<ArmId> {
        self.0.end_slot()
    }

    fn add_slot(&self, slot: &Rows<ArmId>, cells: &mut ByArm<Box<[i128]>>) {
        let zeros = || vec![0; self.0.width()].into_boxed_slice();
        for (arm, terms) in slot.iter() {
            let sums = cells.entry(arm).or_insert_with(zeros).iter_mut();
            sums.zip(terms).for_each(|(sum, term)| *sum += i128::from(*term));
        }
    }

    fn merge(cell: &mut Box<[i128]>, more: &Box<[i128]>) {
        cell.iter_mut().zip(more).for_each(|(sum, term)| *sum += term);
    }

    fn encode(&self, cell: &Box<[i128]>, to: &mut Writer) {
        cell.iter().for_each(|sum| to.signed(*sum));
    }

    fn decode(&self, from: &mut Reader, stored: &StoredLedger) -> Result<Option<Box<[i128]>>, LedgerError> {
        let row = stored.row(from, self.0.width())?;
        Ok(Some(row.into()))
    }
}
