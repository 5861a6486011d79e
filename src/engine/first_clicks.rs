//! First clicks of lists of one length, counted by position in place of added to sums.
//!
//! ```text
//! counts ──▶ │ fresh, by position │ handed over, by position │ of another arm: …
//! ```
//! What such a click adds depends on its position alone, so that it is worked out once for many, when they are handed over;
//! and 80 bytes hold what an arm needs for lists of 10 items, where sums of the usual metrics take 512.

use std::num::NonZeroU32;
use std::ops::Range;

/// The counts of the arms of one slot. None can run over: each click is of an arm of an open list, which takes a word, and
/// no memory has 2^32 of these for one slot.
#[derive(Debug, Default)]
pub struct FirstClicks {
    counts: Vec<u32>,
}

/// Where the counts of an arm begin, counted from 1. They are always of lists of one length, which is told with it.
#[derive(Debug, Clone, Copy)]
pub struct Start(NonZeroU32);

impl FirstClicks {
    /// What the counts of an arm take in bytes.
    pub fn bytes(n_items: usize) -> u64 {
        (2 * n_items * size_of::<u32>()) as u64
    }

    /// Counts a click at a position; an arm that has no counts yet has them from now on.
    pub fn count(&mut self, start: &mut Option<Start>, n_items: usize, position: usize) {
        let start = *start.get_or_insert_with(|| self.make_room(n_items));
        self.counts[start.fresh(n_items)][position] += 1;
    }

    #[cold]
    fn make_room(&mut self, n_items: usize) -> Start {
        let n = self.counts.len();
        self.counts.resize(n + 2 * n_items, 0);
        Start(NonZeroU32::MIN.saturating_add(n as u32))
    }

    /// Counts by position since the last hand-over.
    pub fn fresh(&self, start: Option<Start>, n_items: usize) -> &[u32] {
        start.map_or(&[], |start| &self.counts[start.fresh(n_items)])
    }

    /// Counts by position up to the last hand-over.
    pub fn before(&self, start: Option<Start>, n_items: usize) -> &[u32] {
        start.map_or(&[], |start| &self.counts[start.before(n_items)])
    }

    /// Adds what is fresh to what was handed over.
    pub fn hand_over(&mut self, start: Option<Start>, n_items: usize) {
        if let Some(start) = start {
            let (fresh, before) = self.counts[start.both(n_items)].split_at_mut(n_items);
            for (before, fresh) in before.iter_mut().zip(fresh) {
                *before += std::mem::take(fresh);
            }
        }
    }

    /// Forgets the counts of an arm.
    pub fn clear(&mut self, start: Option<Start>, n_items: usize) {
        if let Some(start) = start {
            self.counts[start.both(n_items)].fill(0);
        }
    }
}

impl Start {
    fn both(self, n_items: usize) -> Range<usize> {
        self.fresh(n_items).start..self.before(n_items).end
    }

    fn fresh(self, n_items: usize) -> Range<usize> {
        let start = self.0.get() as usize - 1;
        start..start + n_items
    }

    fn before(self, n_items: usize) -> Range<usize> {
        let fresh = self.fresh(n_items);
        fresh.end..fresh.end + n_items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_counted_apart_and_what_is_fresh_from_what_was_handed_over() {
        let mut clicks = FirstClicks::default();
        let (mut one, mut other) = (None, None);
        for position in [2, 0, 2] {
            clicks.count(&mut one, 3, position);
            clicks.count(&mut other, 10, 9);
        }
        assert_eq!(clicks.fresh(one, 3), [1, 0, 2]);
        assert_eq!(clicks.before(one, 3), [0; 3]);
        for _ in 0..2 {
            clicks.hand_over(one, 3);
            assert_eq!(clicks.fresh(one, 3), [0; 3]);
            assert_eq!(clicks.before(one, 3), [1, 0, 2]);
        }
        clicks.count(&mut one, 3, 2);
        clicks.hand_over(one, 3);
        assert_eq!(clicks.before(one, 3), [1, 0, 3]);
        clicks.clear(one, 3);
        assert_eq!(clicks.before(one, 3), [0; 3]);
        assert_eq!(clicks.fresh(other, 10), [0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(clicks.before(other, 10), [0; 10]);
        assert_eq!(
            size_of_val(&clicks.counts[..]) as u64,
            FirstClicks::bytes(3) + FirstClicks::bytes(10)
        );
        clicks.hand_over(None, 3);
        assert!(clicks.fresh(None, 3).is_empty() && clicks.before(None, 3).is_empty());
    }
}
