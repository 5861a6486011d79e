//! Which catalogue items the lists of each arm have shown, on the way to their distinct count.

use std::ops::Range;

use super::arms::ArmId;

/// The places of shown items, list by list, in one arena.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShownLists {
    places: Vec<u32>,
    lists: Vec<ShownList>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownList {
    arm: ArmId,
    /// Begin of the list's slot, epoch ms.
    start_ms: i64,
    places: Range<u32>,
}

impl ShownLists {
    /// Adds a list of an arm whose places stand in the arena at `places`.
    fn refer(&mut self, arm: ArmId, start_ms: i64, places: Range<usize>) {
        self.lists.push(ShownList {
            arm,
            start_ms,
            places: places.start as u32..places.end as u32,
        });
    }

    /// Adds a list in its arms.
    pub(super) fn push(&mut self, arms: &[ArmId], start_ms: i64, places: &[u32]) {
        let start = self.places.len();
        self.places.extend_from_slice(places);
        for arm in arms {
            self.refer(*arm, start_ms, start..start + places.len());
        }
    }

    /// Each arm's lists: the begin of their slot, and the places of their items in rank order.
    pub fn iter(&self) -> impl Iterator<Item = (ArmId, i64, &[u32])> {
        self.lists.iter().map(|list| {
            let places = &self.places[list.places.start as usize..list.places.end as usize];
            (list.arm, list.start_ms, places)
        })
    }

    pub fn clear(&mut self) {
        self.places.clear();
        self.lists.clear();
    }
}
