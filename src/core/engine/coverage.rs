//! Distinct catalogue items shown by one arm in one view: exact counts over any span of time up to now.
//!
//! ```text
//! part of a pair   │ class of k = 1               │ class of k = 3               │ …
//!                  │ last slot of place 0, 1, 2 … │ last slot of place 0, 1, 2 … │
//!                    shown at rank 1                at ranks 2 and 3
//! ```
//! An item is inside a window exactly if the last slot that showed it is. The ranks of a cut-off are the ranks of its class and
//! of the classes before. So showing an item writes a single number: O(1), for any windows and any number of cut-offs. Counts
//! are computed on request, in one walk over the catalogue, class by class, which keeps the latest slot so far. Each pair of
//! partitions has its own part, so removing a pair removes what it alone has shown. A reload of the catalogue only changes
//! which places are counted: items that it no longer lists are not counted, and new ones count from their first list on.

use crate::metrics::catalogue::Catalogue;

/// The number of a pair of partitions.
pub type PartId = i32;

/// Never shown. Slots are numbered from the first one, so four bytes are enough.
const NEVER: i32 = i32::MIN;

/// Catalogue items that an arm has shown.
#[derive(Debug)]
pub struct Coverage {
    /// Cut-offs ascending, the whole list last; an item at rank r counts at every k ≥ r.
    ks: Vec<u32>,
    slot_ms: i64,
    /// The slot that number 0 stands for.
    base: Option<i64>,
    /// Number of the newest slot that anything was shown in.
    newest: i32,
    parts: Vec<CoveragePart>,
    known: KnownCounts,
}

/// Counts that are valid until something is shown, with the arguments they were computed for.
#[derive(Debug, Default)]
struct KnownCounts {
    shown: Vec<PartId>,
    /// Number of the first slot inside, and the count of each cut-off.
    counts: Vec<(i32, Vec<u64>)>,
}

#[derive(Debug)]
struct CoveragePart {
    id: PartId,
    /// Number of the last slot that showed the item, by class (the first cut-off that a rank is within), then by place.
    last: Vec<i32>,
    /// Places per class.
    n_places: usize,
    /// Start of the class of each of the first ranks in `last`.
    class_at: Vec<usize>,
}

/// Ranks whose class is kept.
const N_RANKS: u32 = 64;

impl Coverage {
    /// Creates an empty coverage of lists in slots of `slot_ms`.
    pub fn new(ks: Vec<u32>, slot_ms: i64) -> Coverage {
        Coverage {
            ks,
            slot_ms,
            base: None,
            newest: NEVER,
            parts: Vec::new(),
            known: KnownCounts::default(),
        }
    }

    /// Maximum bytes of a part.
    pub fn part_bytes(catalogue: &Catalogue, n_cut_offs: usize) -> u64 {
        (catalogue.n_places() * n_cut_offs * size_of::<i32>()) as u64
    }

    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Gives a pair a part.
    pub fn add_part(&mut self, id: PartId) {
        self.parts.push(CoveragePart::new(id));
        self.forget_counts();
    }

    /// Forgets a pair.
    pub fn remove_part(&mut self, id: PartId) {
        self.parts.retain(|part| part.id != id);
        self.forget_counts();
    }

    /// Call it when the catalogue has changed.
    pub fn forget_counts(&mut self) {
        self.known.counts.clear();
    }

    /// Notes lists of a pair that has a part: the start of each list's slot, Unix ms, and the places of its items in rank order.
    pub fn observe<'a>(
        &mut self,
        id: PartId,
        lists: impl IntoIterator<Item = (i64, &'a [u32])>,
        catalogue: &Catalogue,
    ) {
        let Some(part) = part_of(&mut self.parts, id, &self.ks, catalogue) else {
            return;
        };
        self.known.counts.clear();
        let mut slot = None;
        for (start_ms, places) in lists {
            let number = match slot {
                // The usual case: a division would cost as much as several items.
                Some((same_ms, number)) if same_ms == start_ms => number,
                _ => {
                    let slot = start_ms.div_euclid(self.slot_ms);
                    number(slot, *self.base.get_or_insert(slot))
                }
            };
            slot = Some((start_ms, number));
            self.newest = self.newest.max(number);
            part.observe(&self.ks, number, places);
        }
    }

    /// Notes items shown by a pair that has a part, in a span that starts at `start_ms`: the place of each item, and the index
    /// of the first cut-off within which it was shown.
    pub fn observe_items(
        &mut self,
        id: PartId,
        start_ms: i64,
        items: impl IntoIterator<Item = (u32, usize)>,
        catalogue: &Catalogue,
    ) {
        let Some(part) = part_of(&mut self.parts, id, &self.ks, catalogue) else {
            return;
        };
        self.known.counts.clear();
        let slot = start_ms.div_euclid(self.slot_ms);
        let number = number(slot, *self.base.get_or_insert(slot));
        self.newest = self.newest.max(number);
        for (place, class) in items {
            // A place beyond the class would count in the next class.
            if (place as usize) < part.n_places {
                note(&mut part.last, class * part.n_places + place as usize, number);
            }
        }
    }

    /// Counts the distinct items that `catalogue` lists, by cut-off, in slots that start at each of `from_ms` or later, over
    /// the pairs in `shown`. Counts that have not changed since the last call are reused.
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
        let numbers: Vec<i32> = from_ms
            .iter()
            .map(|from_ms| number(first_slot(*from_ms), base))
            .collect();
        let mut known = std::mem::take(&mut self.known.counts);
        known.retain(|(number, _)| numbers.contains(number));
        let is_new = |number: &i32| known.iter().all(|(other, _)| other != number);
        let mut new: Vec<i32> = numbers
            .iter()
            .copied()
            .filter(|number| *number <= self.newest)
            .filter(is_new)
            .collect();
        new.dedup();
        if !new.is_empty() {
            known.extend(self.count(&new, catalogue));
        }
        let of = |number: &i32| {
            let count = known.iter().find(|(other, _)| other == number);
            count.map_or(nothing.clone(), |(_, counts)| counts.clone())
        };
        let counts = numbers.iter().map(of).collect();
        self.known.counts = known;
        counts
    }

    /// Walks over the catalogue and counts, for each of `numbers` and by cut-off, the items whose last slot is that or a later
    /// one.
    fn count(&self, numbers: &[i32], catalogue: &Catalogue) -> Vec<(i32, Vec<u64>)> {
        let parts = self.parts.iter();
        let shown: Vec<&CoveragePart> = parts.filter(|part| self.known.shown.contains(&part.id)).collect();
        let mut counts: Vec<(i32, Vec<u64>)> = numbers.iter().map(|number| (*number, Vec::new())).collect();
        // The last slot of each place within the cut-off that is counted.
        let mut within = vec![NEVER; catalogue.n_places()];
        for class in 0..self.ks.len() {
            for part in &shown {
                for (within, last) in within.iter_mut().zip(part.of_class(class)) {
                    *within = (*within).max(*last);
                }
            }
            // Items that are no longer listed keep their places, but do not count.
            if catalogue.len() < catalogue.n_places() {
                let places = (0..).zip(&mut within);
                let unlisted = places.filter(|(place, _)| !catalogue.lists(*place));
                unlisted.for_each(|(_, within)| *within = NEVER);
            }
            for (number, counts) in &mut counts {
                let inside: u32 = within.iter().map(|last| u32::from(*last >= *number)).sum();
                counts.push(u64::from(inside));
            }
        }
        counts
    }
}

impl CoveragePart {
    fn new(id: PartId) -> CoveragePart {
        CoveragePart {
            id,
            last: Vec::new(),
            n_places: 0,
            class_at: Vec::new(),
        }
    }

    /// Returns the last slot of each place at the ranks of a class.
    fn of_class(&self, class: usize) -> &[i32] {
        &self.last[class * self.n_places..][..self.n_places]
    }

    /// Rebuilds the classes for more places.
    #[cold]
    fn make_room(&mut self, n_places: usize, ks: &[u32]) {
        let mut last = vec![NEVER; ks.len() * n_places];
        if self.n_places > 0 {
            let wider = last.chunks_exact_mut(n_places);
            for (wider, before) in wider.zip(self.last.chunks_exact(self.n_places)) {
                wider[..before.len()].copy_from_slice(before);
            }
        }
        self.last = last;
        self.n_places = n_places;
        self.class_at = (1..=N_RANKS).map(|rank| class(ks, rank) * n_places).collect();
    }

    fn observe(&mut self, ks: &[u32], number: i32, places: &[u32]) {
        let (first, further) = places.split_at(places.len().min(self.class_at.len()));
        for (place, class_at) in first.iter().zip(&self.class_at) {
            note(&mut self.last, class_at + *place as usize, number);
        }
        for (place, rank) in further.iter().zip(N_RANKS + 1..) {
            let class_at = class(ks, rank) * self.n_places;
            note(&mut self.last, class_at + *place as usize, number);
        }
    }
}

/// Returns the part of a pair, with room for all places of the catalogue.
fn part_of<'a>(
    parts: &'a mut [CoveragePart],
    id: PartId,
    ks: &[u32],
    catalogue: &Catalogue,
) -> Option<&'a mut CoveragePart> {
    let part = parts.iter_mut().find(|part| part.id == id)?;
    if part.n_places < catalogue.n_places() {
        part.make_room(catalogue.n_places(), ks);
    }
    Some(part)
}

/// Unknown items have places that lie beyond the end.
fn note(last: &mut [i32], at: usize, number: i32) {
    if let Some(last) = last.get_mut(at) {
        *last = number.max(*last);
    }
}

/// Index of the first cut-off that a rank is within; the last one is the whole list.
fn class(ks: &[u32], rank: u32) -> usize {
    ks.partition_point(|k| *k < rank)
}

/// The number of a slot, with earlier ones below 0; never [`NEVER`].
fn number(slot: i64, base: i64) -> i32 {
    slot.saturating_sub(base)
        .clamp(i64::from(NEVER) + 1, i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::metrics::catalogue::{NewItem, UNKNOWN, item};
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
                        // The engine asks the catalogue, which has the listed items.
                        let places: Vec<u32> = places
                            .into_iter()
                            .map(|place| if items.lists(place) { place } else { UNKNOWN })
                            .collect();
                        if parts.insert(part, *parts.get(&part).unwrap_or(&true)).is_none() {
                            coverage.add_part(part);
                        }
                        coverage.observe(part, [(slot * SLOT_MS, &places[..])], &items);
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
