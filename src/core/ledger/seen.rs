//! Catalogue items shown by each arm, and the cut-offs within which they were shown. The only aggregate that is not a sum.

use std::ops::Range;

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::keep::Keep;
use super::stored::StoredLedger;
use crate::bytes::{Reader, Writer};
use crate::engine::ShownLists;
use crate::engine::settling::SettledList;
use crate::metrics::Ranking;
use crate::metrics::catalogue::{Catalogue, UNKNOWN};

/// Distinct items by cut-off.
#[derive(Debug)]
pub struct DistinctItems {
    /// Columns of the ranking filled by this aggregate.
    columns: Range<usize>,
    /// Cut-offs, ascending, with the whole list last. Empty unless coverage is measured.
    ks: Vec<u32>,
    /// Lists of the current slot.
    shown: ShownLists,
}

/// Class of each catalogue place: 1 + the index of the first cut-off within which its item was shown, or 0.
#[derive(Debug, Clone, Default)]
pub struct Classes(Vec<u8>);

impl PartialEq for Classes {
    /// Compares the items shown. Trailing places that were never shown may be missing.
    fn eq(&self, other: &Classes) -> bool {
        self.shown().eq(other.shown())
    }
}

impl Classes {
    /// Returns the number of distinct items in `catalogue`, by cut-off.
    pub fn counts(&self, n_cut_offs: usize, catalogue: &Catalogue) -> Vec<u64> {
        let mut counts = vec![0; n_cut_offs];
        for (place, class) in self.shown().filter(|(place, _)| catalogue.lists(*place)) {
            debug_assert!(place != UNKNOWN);
            counts[usize::from(class) - 1..]
                .iter_mut()
                .for_each(|count| *count += 1);
        }
        counts
    }

    /// Returns the places shown, ascending, with their class: 1 + the index of the first cut-off.
    pub fn shown(&self) -> impl Iterator<Item = (u32, u8)> {
        let places = (0..).zip(self.0.iter().copied());
        places.filter(|(_, class)| *class > 0)
    }

    fn see(&mut self, place: u32, class: u8) {
        let at = place as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        let own = &mut self.0[at];
        // An item counts at its smallest cut-off, and thereby at all larger ones.
        if *own == 0 || class < *own {
            *own = class;
        }
    }
}

impl DistinctItems {
    /// Returns the class of an item first seen within a stored cut-off: the class of the next larger cut-off that still exists.
    fn class(&self, column: u64, stored: &StoredLedger) -> Option<u8> {
        let columns = stored.columns.get(usize::try_from(column).ok()?..)?;
        let own = columns.iter().flatten().next()?;
        let is_own = self.columns.contains(own);
        is_own.then(|| (own - self.columns.start + 1) as u8)
    }

    /// Returns the positions that belong to each class in a list of `n_items`, first position first.
    fn classes(&self, n_items: usize) -> impl Iterator<Item = (u8, Range<usize>)> {
        let ends = self.ks.iter().map(move |k| n_items.min(*k as usize));
        (1..).zip(ends).scan(0, |start, (class, end)| {
            let positions = *start..end;
            *start = end;
            Some((class, positions))
        })
    }
}

impl Aggregate for DistinctItems {
    type Cell = Classes;
    type Slot = ShownLists;
    const ID: &str = "seen";
    const VERSION: u64 = 1;

    fn new(ranking: &Ranking, _: &Keep) -> DistinctItems {
        let columns = ranking.coverage();
        DistinctItems {
            columns: columns.map_or(0..0, |columns| columns.seen.clone()),
            ks: columns.map(|columns| columns.ks.clone()).unwrap_or_default(),
            shown: ShownLists::default(),
        }
    }

    fn add(&mut self, list: &SettledList) {
        if let Some(items) = list.items.filter(|_| !self.ks.is_empty()) {
            self.shown.push(list.arms, list.start_ms, items.places);
        }
    }

    fn end_slot(&mut self) -> ShownLists {
        std::mem::take(&mut self.shown)
    }

    fn add_slot(&self, slot: &ShownLists, cells: &mut ByArm<Classes>) {
        for (arm, lists) in slot.by_arm() {
            let cell = cells.entry(arm).or_default();
            for (_, places) in lists {
                for (class, positions) in self.classes(places.len()) {
                    let known = places[positions].iter().filter(|place| **place != UNKNOWN);
                    known.for_each(|place| cell.see(*place, class));
                }
            }
        }
    }

    fn merge(cell: &mut Classes, more: &Classes) {
        more.shown().for_each(|(place, class)| cell.see(place, class));
    }

    fn encode(&self, cell: &Classes, to: &mut Writer) {
        to.number(cell.shown().count() as u64);
        let mut next = 0;
        for (place, class) in cell.shown() {
            // Store steps between places, because they are small.
            to.number((place - next).into());
            to.number((self.columns.start + usize::from(class) - 1) as u64);
            next = place + 1;
        }
    }

    fn decode(&self, from: &mut Reader, stored: &StoredLedger) -> Result<Option<Classes>, LedgerError> {
        let continues = self
            .columns
            .clone()
            .any(|column| stored.columns.contains(&Some(column)));
        let mut cell = Classes::default();
        let mut next = 0_u64;
        for _ in 0..from.length()? {
            let place = next.checked_add(from.number()?).ok_or(LedgerError::Number)?;
            let column = from.number()?;
            if place >= MAX_PLACES {
                return Err(LedgerError::Number);
            }
            if continues {
                let class = self.class(column, stored).ok_or(LedgerError::Number)?;
                cell.see(place as u32, class);
            }
            next = place + 1;
        }
        Ok(continues.then_some(cell))
    }
}

/// Maximum number of catalogue items in an encoding. Damaged bytes must not make a cell allocate more than this.
const MAX_PLACES: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::item;

    #[test]
    fn an_item_counts_at_the_smallest_cut_off_that_shows_it() {
        let seen = DistinctItems {
            columns: 0..3,
            ks: vec![1, 3, u32::MAX],
            shown: ShownLists::default(),
        };
        let mut shown = ShownLists::default();
        shown.push(&[7], 0, &[5, 0, UNKNOWN, 2]);
        shown.push(&[7, 8], 0, &[0, 5]);
        let mut cells = ByArm::new();
        seen.add_slot(&shown, &mut cells);
        let all = (0..6).map(|n| item(&format!("i{n}"), &[], 0)).collect();
        let catalogue = Catalogue::new(all, 1, None);
        // Arm 7: 5 and 0 at rank 1, 2 at rank 4.
        assert_eq!(cells[&7].counts(3, &catalogue), [2, 2, 3]);
        assert_eq!(cells[&8].counts(3, &catalogue), [1, 2, 2]);
    }
}
