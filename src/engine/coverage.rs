//! Distinct catalogue items that one arm has shown, in one view: exact counts over sliding windows and since a begin.
//!
//! ```text
//! part of a pair   last slot of (place, cut-off) ──┐ the larger
//! part of a pair   last slot of (place, cut-off) ──┴─▶ union ──▶ items by the cell of their last slot, for each window
//! ```
//! An item is inside a window exactly if the last slot in which it was shown is; so to show it again moves it from one
//! cell to another: O(1), whatever the window. Each pair of partitions has a part of its own, so that a pair that is
//! taken away takes away what it alone has shown; the union is then made anew from the others. A reload of the
//! catalogue does the same: items that it no longer lists leave the counts, new ones count from their first list on.

use super::catalogue::{Catalogue, UNKNOWN};
use super::window::N_CELLS;

/// What a pair of partitions is called.
pub type PartId = i32;

/// Never shown. Slots are told by their distance from the first one, so that four bytes hold them.
const NEVER: u32 = 0;

/// How lists, time and cut-offs are laid out, the same for every arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Cut-offs ascending; an item at rank r counts at every k ≥ r.
    pub ks: Vec<u32>,
    pub slot_ms: i64,
    /// Cell lengths of the windows; each is a multiple of the slot.
    pub cells_ms: Vec<i64>,
    /// Slots that begin before this (epoch ms) do not count in the total.
    pub total_from_ms: i64,
}

/// Ranks whose cut-off is kept.
const N_RANKS: u32 = 64;

/// Index of the first cut-off that a rank is within; the last one is the whole list.
fn class(ks: &[u32], rank: u32) -> usize {
    ks.partition_point(|k| *k < rank)
}

#[derive(Debug)]
pub struct Coverage {
    layout: Layout,
    /// Of the first ranks: index of the first cut-off that each is within.
    class_of_rank: Vec<usize>,
    /// The slot that number 2^31 stands for.
    base: Option<i64>,
    parts: Vec<Part>,
    union: Vec<u32>,
    windows: Vec<Cells>,
    total: Vec<u64>,
}

#[derive(Debug)]
struct Part {
    id: PartId,
    shown: bool,
    /// By place × cut-offs + class: the number of the last slot in which the item stood within the cut-off.
    last: Vec<u32>,
}

/// Items by the cell of their last slot, a ring over the cells of one window.
#[derive(Debug)]
struct Cells {
    cell_ms: i64,
    newest: i64,
    /// By cell modulo 60, then by cut-off.
    counts: Vec<u32>,
    sums: Vec<u64>,
}

impl Coverage {
    pub fn new(layout: Layout) -> Coverage {
        let n = layout.ks.len();
        Coverage {
            class_of_rank: (1..=N_RANKS).map(|rank| class(&layout.ks, rank)).collect(),
            base: None,
            parts: Vec::new(),
            union: Vec::new(),
            windows: layout
                .cells_ms
                .iter()
                .map(|cell_ms| Cells::new(*cell_ms, n))
                .collect(),
            total: vec![0; n],
            layout,
        }
    }

    /// Bytes that a part of its own and its share in the union take.
    pub fn part_bytes(catalogue: &Catalogue, n_cut_offs: usize) -> u64 {
        2 * (catalogue.n_places() * n_cut_offs * size_of::<u32>()) as u64
    }

    /// Whether this pair has a part already.
    pub fn has_part(&self, id: PartId) -> bool {
        self.parts.iter().any(|part| part.id == id)
    }

    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Gives a pair a part; it enters the counts as far as it is `shown`.
    pub fn add_part(&mut self, id: PartId, shown: bool) {
        let last = Vec::new();
        self.parts.push(Part { id, shown, last });
    }

    /// Notes a list of a pair: the places of its items in rank order, in the slot that begins at `start_ms`.
    pub fn see(&mut self, id: PartId, start_ms: i64, places: &[u32], catalogue: &Catalogue) {
        let Some(index) = self.parts.iter().position(|part| part.id == id) else {
            return;
        };
        let number = self.number(start_ms);
        let n = self.layout.ks.len();
        let room = catalogue.n_places() * n;
        if self.parts[index].last.len() < room {
            self.parts[index].last.resize(room, NEVER);
            self.union.resize(room.max(self.union.len()), NEVER);
        }
        for (rank, place) in places.iter().enumerate() {
            if *place == UNKNOWN {
                continue;
            }
            let class = match self.class_of_rank.get(rank) {
                Some(class) => *class,
                None => class(&self.layout.ks, rank as u32 + 1),
            };
            let row = *place as usize * n;
            for class in class..n {
                let part = &mut self.parts[index];
                // Within a longer cut-off it was shown no earlier.
                if part.last[row + class] >= number {
                    break;
                }
                part.last[row + class] = number;
                if part.shown && self.union[row + class] < number && catalogue.lists(*place) {
                    let before = std::mem::replace(&mut self.union[row + class], number);
                    self.move_item(class, before, number);
                }
            }
        }
    }

    /// Takes an item out of the cell of one slot and puts it into that of another.
    fn move_item(&mut self, class: usize, from: u32, to: u32) {
        let base = self.base.unwrap_or(0);
        let start_ms = |number: u32| (base + i64::from(number) - (1 << 31)) * self.layout.slot_ms;
        let to_ms = start_ms(to);
        for window in &mut self.windows {
            if from != NEVER {
                window.add(start_ms(from), class, -1);
            }
            window.add(to_ms, class, 1);
        }
        let from_ms = self.layout.total_from_ms;
        self.total[class] -= u64::from(from != NEVER && start_ms(from) >= from_ms);
        self.total[class] += u64::from(to_ms >= from_ms);
    }

    /// The number of a slot: 2^31 for the first one that was seen, so that earlier ones have numbers too.
    fn number(&mut self, start_ms: i64) -> u32 {
        let slot = start_ms.div_euclid(self.layout.slot_ms);
        let base = *self.base.get_or_insert(slot);
        (slot - base + (1 << 31)).clamp(1, i64::from(u32::MAX)) as u32
    }

    /// Lets a pair's part into the counts, or out of them.
    pub fn set_shown(&mut self, id: PartId, shown: bool, catalogue: &Catalogue) {
        let part = self.parts.iter_mut().find(|part| part.id == id);
        if part.is_some_and(|part| std::mem::replace(&mut part.shown, shown) != shown) {
            self.recount(catalogue);
        }
    }

    /// Forgets a pair.
    pub fn remove_part(&mut self, id: PartId, catalogue: &Catalogue) {
        let before = self.parts.len();
        self.parts.retain(|part| part.id != id);
        if self.parts.len() != before {
            self.recount(catalogue);
        }
    }

    /// Makes the union and the counts anew, of the items that this catalogue lists.
    pub fn recount(&mut self, catalogue: &Catalogue) {
        let n = self.layout.ks.len();
        self.union.clear();
        self.total.fill(0);
        self.windows.iter_mut().for_each(Cells::clear);
        self.union.resize(catalogue.n_places() * n, NEVER);
        for part in self.parts.iter().filter(|part| part.shown) {
            for (union, last) in self.union.iter_mut().zip(&part.last) {
                *union = (*union).max(*last);
            }
        }
        for index in 0..self.union.len() {
            let last = self.union[index];
            if !catalogue.lists((index / n) as u32) {
                self.union[index] = NEVER;
            } else if last != NEVER {
                self.move_item(index % n, NEVER, last);
            }
        }
    }

    /// Moves the end of the windows on; it never goes back.
    pub fn advance(&mut self, end_ms: i64) {
        self.windows.iter_mut().for_each(|window| window.advance(end_ms));
    }

    /// Distinct items by cut-off in a window; in the total where `window` is none.
    pub fn counts(&self, window: Option<usize>) -> &[u64] {
        window.map_or(&self.total, |window| &self.windows[window].sums)
    }
}

impl Cells {
    fn new(cell_ms: i64, n_classes: usize) -> Cells {
        Cells {
            cell_ms,
            newest: i64::MIN,
            counts: vec![0; N_CELLS as usize * n_classes],
            sums: vec![0; n_classes],
        }
    }

    /// Empties the cells and keeps the window's end.
    fn clear(&mut self) {
        self.counts.fill(0);
        self.sums.fill(0);
    }

    /// Counts an item in or out; what lies before the window is not in it.
    fn add(&mut self, ts_ms: i64, class: usize, sign: i32) {
        let cell = ts_ms.div_euclid(self.cell_ms);
        self.advance_to_cell(cell);
        if cell > self.newest - N_CELLS {
            let count = self.row(cell) + class;
            self.counts[count] = self.counts[count].wrapping_add_signed(sign);
            self.sums[class] = self.sums[class].wrapping_add_signed(i64::from(sign));
        }
    }

    fn advance(&mut self, end_ms: i64) {
        self.advance_to_cell(end_ms.div_euclid(self.cell_ms));
    }

    fn advance_to_cell(&mut self, cell: i64) {
        if cell <= self.newest {
            return;
        }
        let n_left = cell.saturating_sub(self.newest).min(N_CELLS);
        self.newest = cell;
        for left in cell - n_left + 1..=cell {
            let row = self.row(left);
            for (count, sum) in self.counts[row..].iter_mut().zip(&mut self.sums) {
                *sum -= u64::from(std::mem::take(count));
            }
        }
    }

    fn row(&self, cell: i64) -> usize {
        cell.rem_euclid(N_CELLS) as usize * self.sums.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::catalogue::{NewItem, item};
    use super::*;
    use proptest::prelude::*;

    const SLOT_MS: i64 = 10;

    fn catalogue(names: &[usize], previous: Option<&Catalogue>) -> Catalogue {
        let items: Vec<NewItem> = names
            .iter()
            .map(|name| item(&format!("i{name}"), &[], 0))
            .collect();
        Catalogue::new(items, 1, previous)
    }

    fn layout() -> Layout {
        Layout {
            ks: vec![1, 3, u32::MAX],
            slot_ms: SLOT_MS,
            cells_ms: vec![SLOT_MS, 3 * SLOT_MS],
            total_from_ms: 900,
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        List { part: i32, slot: i64, places: Vec<u32> },
        Advance { slots: i64 },
        Show { part: i32, shown: bool },
        Remove { part: i32 },
        Reload { listed: BTreeSet<usize> },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let list = (0..3_i32, 0_i64..400, prop::collection::vec(0_u32..9, 0..6));
        let step = prop_oneof![
            12 => list.prop_map(|(part, slot, places)| Step::List { part, slot, places }),
            2 => (0_i64..80).prop_map(|slots| Step::Advance { slots }),
            2 => (0..3_i32, any::<bool>()).prop_map(|(part, shown)| Step::Show { part, shown }),
            1 => (0..3_i32).prop_map(|part| Step::Remove { part }),
            1 => prop::collection::btree_set(0_usize..8, 0..8).prop_map(|listed| Step::Reload { listed }),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        /// A recount of every list of the shown pairs, from the lists themselves.
        #[test]
        fn counts_equal_a_recount_of_the_lists(steps in steps()) {
            let all: Vec<usize> = (0..8).collect();
            let mut items = catalogue(&all, None);
            let mut listed: BTreeSet<usize> = all.into_iter().collect();
            let mut coverage = Coverage::new(layout());
            let mut parts: BTreeMap<i32, bool> = BTreeMap::new();
            let mut lists: Vec<(i32, i64, Vec<u32>)> = Vec::new();
            let mut end_ms = 0;
            for step in steps {
                match step {
                    Step::List { part, slot, places } => {
                        // The engine asks the catalogue, which knows what it lists.
                        let places: Vec<u32> = places
                            .into_iter()
                            .map(|place| if items.lists(place) { place } else { UNKNOWN })
                            .collect();
                        if parts.insert(part, *parts.get(&part).unwrap_or(&true)).is_none() {
                            coverage.add_part(part, true);
                        }
                        coverage.see(part, slot * SLOT_MS, &places, &items);
                        end_ms = end_ms.max(slot * SLOT_MS);
                        lists.push((part, slot * SLOT_MS, places));
                    }
                    Step::Advance { slots } => end_ms += slots * SLOT_MS,
                    Step::Show { part, shown } => {
                        coverage.set_shown(part, shown, &items);
                        parts.entry(part).and_modify(|known| *known = shown);
                    }
                    Step::Remove { part } => {
                        coverage.remove_part(part, &items);
                        parts.remove(&part);
                        lists.retain(|(of, ..)| *of != part);
                    }
                    Step::Reload { listed: names } => {
                        items = catalogue(&names.iter().copied().collect::<Vec<_>>(), Some(&items));
                        coverage.recount(&items);
                        listed = names;
                    }
                }
                coverage.advance(end_ms);
                for window in [Some(0), Some(1), None] {
                    for (class, k) in layout().ks.iter().enumerate() {
                        let inside = |ts_ms: i64| match window {
                            Some(window) => {
                                let cell_ms = layout().cells_ms[window];
                                ts_ms / cell_ms > end_ms / cell_ms - N_CELLS
                            }
                            None => ts_ms >= layout().total_from_ms,
                        };
                        let shown = lists.iter().filter(|(part, ts_ms, _)| parts[part] && inside(*ts_ms));
                        let recount: BTreeSet<u32> = shown
                            .flat_map(|(.., places)| places.iter().take(*k as usize).copied())
                            .filter(|place| *place != UNKNOWN && listed.contains(&(*place as usize)))
                            .collect();
                        prop_assert_eq!(coverage.counts(window)[class], recount.len() as u64);
                    }
                }
            }
        }
    }
}
