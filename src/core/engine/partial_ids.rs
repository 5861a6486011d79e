//! Open lists by the ids of clicks that name fewer parts of a composite id than its list has.
//!
//! ```text
//! lists   (r-1, top)   (r-1, side)
//!              └──────┬─────┘
//! click       (r-1, any shelf)       has one id, by which both are found
//! ```
//! It is empty, and costs nothing, unless request ids have several parts.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use foldhash::HashMap;

use super::lists::{ChunkHandle, Crowded};

#[derive(Debug, Default)]
pub struct PartialIds {
    /// The lists of each id with their times, in the order of their offsets.
    lists: HashMap<u128, Vec<(i64, ChunkHandle)>>,
    /// Ids that have lists in a slot, by the start of the slot, Unix ms.
    by_slot: BTreeMap<i64, Vec<u128>>,
    bytes: u64,
}

impl PartialIds {
    /// Maximum bytes of a list under one id: an entry of each map, and spare room of vectors.
    pub const COST: u64 = 160;

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a list to the lists of an id.
    pub fn add(&mut self, id: u128, ts_ms: i64, slot_ms: i64, list: ChunkHandle) {
        let start_ms = ts_ms.div_euclid(slot_ms) * slot_ms;
        self.lists.entry(id).or_default().push((ts_ms, list));
        self.by_slot.entry(start_ms).or_default().push(id);
        self.bytes += PartialIds::COST;
    }

    /// The lists of an id with such a time.
    pub fn lists_of(&self, id: u128, times_ms: RangeInclusive<i64>) -> impl Iterator<Item = Crowded> {
        let lists = self.lists.get(&id).map_or(&[][..], Vec::as_slice);
        let of_times = (0..)
            .zip(lists)
            .filter(move |(_, (ts_ms, _))| times_ms.contains(ts_ms));
        of_times.map(|(arrival, (_, list))| Crowded { arrival, list: *list })
    }

    /// Forgets the lists of slots before this border, Unix ms.
    pub fn forget_before(&mut self, from_ms: i64) {
        while let Some(first) = self.by_slot.first_entry()
            && *first.key() < from_ms
        {
            let mut ids = first.remove();
            self.bytes -= PartialIds::COST * ids.len() as u64;
            // One pass for each id, however many lists of it the slot has.
            ids.sort_unstable();
            ids.dedup();
            for id in ids {
                let Some(lists) = self.lists.get_mut(&id) else {
                    continue;
                };
                lists.retain(|(ts_ms, _)| *ts_ms >= from_ms);
                if lists.is_empty() {
                    self.lists.remove(&id);
                }
            }
        }
        if self.bytes == 0 && self.lists.capacity() > 0 {
            // Gives memory back after a spike.
            self.lists = HashMap::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_their_order_and_leave_with_their_slots() {
        let mut partial = PartialIds::default();
        let lists: Vec<ChunkHandle> = (0..4).map(ChunkHandle::of_word).collect();
        for (id, ts_ms, list) in [(1, 17, 0), (1, 3, 1), (2, 4, 2), (1, 12, 3)] {
            partial.add(id, ts_ms, 10, lists[list]);
        }
        let found = |partial: &PartialIds, id, times_ms| -> Vec<ChunkHandle> {
            let mut all: Vec<Crowded> = partial.lists_of(id, times_ms).collect();
            all.sort_by_key(|other| other.arrival);
            all.iter().map(|other| other.list).collect()
        };
        assert_eq!(found(&partial, 1, 0..=100), [lists[0], lists[1], lists[3]]);
        assert_eq!(found(&partial, 1, 3..=12), [lists[1], lists[3]]);
        partial.forget_before(10);
        assert_eq!(found(&partial, 1, 0..=100), [lists[0], lists[3]]);
        assert_eq!(found(&partial, 2, 0..=100), []);
        assert_eq!(partial.bytes(), 2 * PartialIds::COST);
        partial.forget_before(20);
        assert_eq!((partial.bytes(), partial.lists.capacity()), (0, 0));
    }
}
