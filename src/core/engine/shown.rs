//! Which catalogue items the lists of each arm have shown, on the way to their distinct count.
//!
//! ```text
//! newest list of an arm ──▶ list ──▶ the one before, of the same arm ──▶ …
//!                            └──▶ its places, in one arena
//! ```

use std::ops::Range;

use super::arms::ArmId;

/// No list.
const NONE: u32 = u32::MAX;

/// The places of shown items, list by list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShownLists {
    places: Vec<u32>,
    lists: Vec<ShownList>,
    /// Index of the newest list of each arm, up to the last arm with one.
    newest: Vec<u32>,
    /// Arms with lists.
    arms: Vec<ArmId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownList {
    /// Start of the list's slot, Unix ms.
    start_ms: i64,
    places: Range<u32>,
    /// Previous list of the same arm.
    before: u32,
}

impl ShownLists {
    /// Adds a list in its arms.
    pub fn push(&mut self, arms: &[ArmId], start_ms: i64, places: &[u32]) {
        let start = self.places.len();
        self.places.extend_from_slice(places);
        self.add_from(start, arms, start_ms);
    }

    /// Returns the places of all lists. Appended places become a list when it is [added](Self::add_from).
    pub(super) fn places_mut(&mut self) -> &mut Vec<u32> {
        &mut self.places
    }

    /// Adds a list in its arms, whose places are all those from `start` on.
    pub(super) fn add_from(&mut self, start: usize, arms: &[ArmId], start_ms: i64) {
        let places = start as u32..self.places.len() as u32;
        for arm in arms {
            let list = self.lists.len() as u32;
            let before = std::mem::replace(self.newest_of(*arm), list);
            if before == NONE {
                self.arms.push(*arm);
            }
            self.lists.push(ShownList {
                start_ms,
                places: places.clone(),
                before,
            });
        }
    }

    fn newest_of(&mut self, arm: ArmId) -> &mut u32 {
        if self.newest.len() <= arm as usize {
            self.newest.resize(arm as usize + 1, NONE);
        }
        &mut self.newest[arm as usize]
    }

    /// Returns the memory taken by the lists.
    pub fn bytes(&self) -> u64 {
        let numbers = self.places.capacity() + self.newest.capacity();
        let n_bytes = numbers * size_of::<u32>()
            + self.lists.capacity() * size_of::<ShownList>()
            + self.arms.capacity() * size_of::<ArmId>();
        n_bytes as u64
    }

    /// Returns the lists of each arm, in no particular order: the start of their slot, and the places of their items in rank
    /// order.
    pub fn by_arm(&self) -> impl Iterator<Item = (ArmId, impl Iterator<Item = (i64, &[u32])>)> {
        let list = |number: u32| self.lists.get(number as usize);
        self.arms.iter().map(move |arm| {
            let newest = list(self.newest[*arm as usize]);
            let lists = std::iter::successors(newest, move |after| list(after.before));
            let shown = lists.map(|list| {
                let places = list.places.start as usize..list.places.end as usize;
                (list.start_ms, &self.places[places])
            });
            (*arm, shown)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shown: &ShownLists, expected: &[(ArmId, i64, &[u32])]) {
        let of_arm = |(arm, lists): (ArmId, _)| -> Vec<(ArmId, i64, Vec<u32>)> {
            let lists: Vec<(i64, &[u32])> = Iterator::collect::<Vec<_>>(lists);
            let lists = lists.into_iter();
            lists
                .map(|(start_ms, places)| (arm, start_ms, places.to_vec()))
                .collect()
        };
        let mut lists: Vec<_> = shown.by_arm().flat_map(of_arm).collect();
        lists.sort_unstable();
        let expected: Vec<_> = expected
            .iter()
            .map(|(arm, start_ms, places)| (*arm, *start_ms, places.to_vec()))
            .collect();
        assert_eq!(lists, expected);
    }

    #[test]
    fn each_arm_has_its_lists() {
        let mut shown = ShownLists::default();
        check(&shown, &[]);
        shown.push(&[7], 5, &[1, 2]);
        shown.push(&[], 5, &[9]);
        shown.push(&[2, 7], 10, &[3]);
        shown.push(&[7], 15, &[]);
        check(
            &shown,
            &[(2, 10, &[3]), (7, 5, &[1, 2]), (7, 10, &[3]), (7, 15, &[])],
        );
    }
}
