//! Distinct catalogue items that one arm has shown, in one view: exact counts over any span of time up to now.
//!
//! ```text
//! part of a pair   last slot of (place, cut-off) ──┐ the larger
//! part of a pair   last slot of (place, cut-off) ──┴─▶ items whose last slot is inside, for each window
//! ```
//! An item is inside a window exactly if the last slot in which it was shown is; so to show it is to write one number:
//! O(1), whatever the windows. They are counted when they are asked for, in one walk over the catalogue. Each pair of
//! partitions has a part of its own, so that a pair that is taken away takes away what it alone has shown; and a reload
//! of the catalogue is a matter of which places are counted: items that it no longer lists are not, new ones count from
//! their first list on.

use super::catalogue::{Catalogue, UNKNOWN};

/// What a pair of partitions is called.
pub type PartId = i32;

/// Never shown. Slots are told by their distance from the first one, so that four bytes hold them.
const NEVER: u32 = 0;

/// Ranks whose cut-off is kept.
const N_RANKS: u32 = 64;

/// What an arm has shown of the catalogue.
#[derive(Debug)]
pub struct Coverage {
    /// Cut-offs ascending, the whole list last; an item at rank r counts at every k ≥ r.
    ks: Vec<u32>,
    slot_ms: i64,
    /// Of the first ranks: index of the first cut-off that each is within.
    class_of_rank: Vec<usize>,
    /// The slot that number 2^31 stands for.
    base: Option<i64>,
    /// Number of the newest slot that anything was shown in.
    newest: u32,
    parts: Vec<Part>,
    known: Known,
}

/// Counts that hold until something is shown, by what they are of.
#[derive(Debug, Default)]
struct Known {
    shown: Vec<PartId>,
    /// Number of the first slot inside, and the count of each cut-off.
    counts: Vec<(u32, Vec<u64>)>,
}

#[derive(Debug)]
struct Part {
    id: PartId,
    /// By place × cut-offs + class: the number of the last slot in which the item stood within the cut-off.
    last: Vec<u32>,
}

impl Coverage {
    /// Nothing yet, of lists in slots of `slot_ms`.
    pub fn new(ks: Vec<u32>, slot_ms: i64) -> Coverage {
        Coverage {
            class_of_rank: (1..=N_RANKS).map(|rank| class(&ks, rank)).collect(),
            ks,
            slot_ms,
            base: None,
            newest: NEVER,
            parts: Vec::new(),
            known: Known::default(),
        }
    }

    /// Bytes that a part takes.
    pub fn part_bytes(catalogue: &Catalogue, n_cut_offs: usize) -> u64 {
        (catalogue.n_places() * n_cut_offs * size_of::<u32>()) as u64
    }

    /// Whether this pair has a part already.
    pub fn has_part(&self, id: PartId) -> bool {
        self.parts.iter().any(|part| part.id == id)
    }

    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Gives a pair a part.
    pub fn add_part(&mut self, id: PartId) {
        let last = Vec::new();
        self.parts.push(Part { id, last });
        self.forget_counts();
    }

    /// Forgets a pair.
    pub fn remove_part(&mut self, id: PartId) {
        self.parts.retain(|part| part.id != id);
        self.forget_counts();
    }

    /// To be called when another catalogue decides what counts.
    pub fn forget_counts(&mut self) {
        self.known.counts.clear();
    }

    /// Notes a list of a pair that has a part: the places of its items in rank order, in the slot that begins at
    /// `start_ms`.
    pub fn see(&mut self, id: PartId, start_ms: i64, places: &[u32], catalogue: &Catalogue) {
        let slot = start_ms.div_euclid(self.slot_ms);
        let number = number(slot, *self.base.get_or_insert(slot));
        let n = self.ks.len();
        let Some(part) = self.parts.iter_mut().find(|part| part.id == id) else {
            return;
        };
        self.known.counts.clear();
        self.newest = self.newest.max(number);
        let room = catalogue.n_places() * n;
        if part.last.len() < room {
            part.last.resize(room, NEVER);
        }
        for (rank, place) in places.iter().enumerate() {
            if *place == UNKNOWN {
                continue;
            }
            let class = match self.class_of_rank.get(rank) {
                Some(class) => *class,
                None => class(&self.ks, rank as u32 + 1),
            };
            for last in &mut part.last[*place as usize * n..][class..n] {
                // Within a longer cut-off it was shown no earlier.
                if *last >= number {
                    break;
                }
                *last = number;
            }
        }
    }

    /// Distinct items that `catalogue` lists, by cut-off, in the slots that begin at each of `from_ms` or later, over
    /// the pairs that are `shown`. What was counted before and has not changed is not counted again.
    pub fn counts(&mut self, from_ms: &[i64], shown: &[PartId], catalogue: &Catalogue) -> Vec<Vec<u64>> {
        let nothing = vec![0; self.ks.len()];
        let Some(base) = self.base else {
            return vec![nothing; from_ms.len()];
        };
        if self.known.shown != shown {
            self.known.shown = shown.to_vec();
            self.forget_counts();
        }
        let first_slot = |from_ms: i64| from_ms.saturating_add(self.slot_ms - 1).div_euclid(self.slot_ms);
        let numbers: Vec<u32> = from_ms
            .iter()
            .map(|from_ms| number(first_slot(*from_ms), base))
            .collect();
        let mut known = std::mem::take(&mut self.known.counts);
        known.retain(|(number, _)| numbers.contains(number));
        let is_new = |number: &u32| known.iter().all(|(other, _)| other != number);
        let mut new: Vec<u32> = numbers
            .iter()
            .copied()
            .filter(|number| *number <= self.newest)
            .filter(is_new)
            .collect();
        new.dedup();
        if !new.is_empty() {
            let counts = self.count(&new, catalogue);
            known.extend(new.into_iter().zip(counts));
        }
        let of = |number: &u32| {
            let count = known.iter().find(|(other, _)| other == number);
            count.map_or(nothing.clone(), |(_, counts)| counts.clone())
        };
        let counts = numbers.iter().map(of).collect();
        self.known.counts = known;
        counts
    }

    /// Walks over the catalogue: for each of `numbers` and each cut-off, items whose last slot is that or a later one.
    fn count(&self, numbers: &[u32], catalogue: &Catalogue) -> Vec<Vec<u64>> {
        let parts = self.parts.iter();
        let mut shown = parts.filter(|part| self.known.shown.contains(&part.id));
        let first: &[u32] = shown.next().map_or(&[], |part| &part.last);
        let mut union = Vec::new();
        for part in shown {
            if union.is_empty() {
                union = first.to_vec();
            }
            union.resize(union.len().max(part.last.len()), NEVER);
            let both = union.iter_mut().zip(&part.last);
            both.for_each(|(union, last)| *union = (*union).max(*last));
        }
        let last = if union.is_empty() { first } else { &union };
        let n = self.ks.len();
        // The usual numbers of cut-offs are known to the compiler, which then counts several at a time.
        let walk = match n {
            1 => walk::<1>,
            2 => walk::<2>,
            3 => walk::<3>,
            4 => walk::<4>,
            5 => walk::<5>,
            6 => walk::<6>,
            _ => walk_any,
        };
        numbers
            .iter()
            .map(|number| walk(last, n, *number, catalogue))
            .collect()
    }
}

/// Listed items whose last slot has this number or a later one, by cut-off.
fn walk<const N: usize>(last: &[u32], _n: usize, number: u32, catalogue: &Catalogue) -> Vec<u64> {
    let mut counts = [0_u32; N];
    let (rows, _) = last.as_chunks::<N>();
    if catalogue.len() == catalogue.n_places() {
        for row in rows {
            for (count, last) in counts.iter_mut().zip(row) {
                *count += u32::from(*last >= number);
            }
        }
    } else {
        for (place, row) in rows.iter().enumerate() {
            let listed = u32::from(catalogue.lists(place as u32));
            for (count, last) in counts.iter_mut().zip(row) {
                *count += u32::from(*last >= number) & listed;
            }
        }
    }
    counts.map(u64::from).into()
}

/// The same for any number of cut-offs.
fn walk_any(last: &[u32], n: usize, number: u32, catalogue: &Catalogue) -> Vec<u64> {
    let mut counts = vec![0; n];
    for (place, row) in last.chunks_exact(n).enumerate() {
        let listed = u64::from(catalogue.lists(place as u32));
        for (count, last) in counts.iter_mut().zip(row) {
            *count += u64::from(*last >= number) & listed;
        }
    }
    counts
}

/// Index of the first cut-off that a rank is within; the last one is the whole list.
fn class(ks: &[u32], rank: u32) -> usize {
    ks.partition_point(|k| *k < rank)
}

/// The number of a slot: 2^31 for `base`, so that earlier ones have numbers too; never [`NEVER`].
fn number(slot: i64, base: i64) -> u32 {
    slot.saturating_sub(base)
        .saturating_add(1 << 31)
        .clamp(1, i64::from(u32::MAX)) as u32
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
        fn counts_equal_a_recount_of_the_lists(
            steps in steps(),
            ks in prop::sample::subsequence(vec![1, 2, 3, 4, 5, 7, 9], 0..=7),
        ) {
            let ks: Vec<u32> = ks.into_iter().chain([u32::MAX]).collect();
            let all: Vec<usize> = (0..8).collect();
            let mut items = catalogue(&all, None);
            let mut listed: BTreeSet<usize> = all.into_iter().collect();
            let mut coverage = Coverage::new(ks.clone(), SLOT_MS);
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
                            coverage.add_part(part);
                        }
                        coverage.see(part, slot * SLOT_MS, &places, &items);
                        end_ms = end_ms.max(slot * SLOT_MS);
                        lists.push((part, slot * SLOT_MS, places));
                    }
                    Step::Advance { slots } => end_ms += slots * SLOT_MS,
                    Step::Show { part, shown } => {
                        parts.entry(part).and_modify(|known| *known = shown);
                    }
                    Step::Remove { part } => {
                        coverage.remove_part(part);
                        parts.remove(&part);
                        lists.retain(|(of, ..)| *of != part);
                    }
                    Step::Reload { listed: names } => {
                        items = catalogue(&names.iter().copied().collect::<Vec<_>>(), Some(&items));
                        listed = names;
                        coverage.forget_counts();
                    }
                }
                let from_ms = [end_ms - 500, end_ms - 130, 900, i64::MIN];
                let shown: Vec<i32> = parts.iter().filter(|(_, shown)| **shown).map(|(part, _)| *part).collect();
                let counts = coverage.counts(&from_ms, &shown, &items);
                for (from_ms, counts) in from_ms.iter().zip(counts) {
                    for (k, count) in ks.iter().zip(counts) {
                        let inside = lists.iter().filter(|(part, ts_ms, _)| parts[part] && ts_ms >= from_ms);
                        let recount: BTreeSet<u32> = inside
                            .flat_map(|(.., places)| places.iter().take(*k as usize).copied())
                            .filter(|place| *place != UNKNOWN && listed.contains(&(*place as usize)))
                            .collect();
                        prop_assert_eq!(count, recount.len() as u64);
                    }
                }
            }
        }
    }
}
