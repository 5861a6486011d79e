//! First clicks on lists of one length, counted by position instead of added to sums.
//!
//! ```text
//! counts ──▶ │ by position │ of another arm: … │
//! ```
//! The contribution of such a click depends only on its position, so it is computed once for many clicks, at the hand-over. And
//! an arm with lists of 10 items needs only 40 bytes, while sums of the usual metrics take 512.

use std::num::NonZeroU32;

/// The counts of the arms of one slot. None can run over: each click is of an arm of a list, which takes a word, and no memory
/// has 2^32 of these for one slot.
#[derive(Debug, Default)]
pub struct FirstClicks {
    counts: Vec<u32>,
}

/// Start of an arm's counts, counted from 1. The counts are always for lists of one length, which callers pass along.
#[derive(Debug, Clone, Copy)]
pub struct CountsStart(NonZeroU32);

impl FirstClicks {
    /// Returns the bytes of an arm's counts.
    pub fn bytes(n_items: usize) -> u64 {
        (n_items * size_of::<u32>()) as u64
    }

    /// Counts a click at a position; an arm that has no counts yet has them from now on.
    pub fn count(&mut self, start: &mut Option<CountsStart>, n_items: usize, position: usize) {
        let start = *start.get_or_insert_with(|| self.make_room(n_items));
        self.counts[start.at() + position] += 1;
    }

    #[cold]
    fn make_room(&mut self, n_items: usize) -> CountsStart {
        let n = self.counts.len();
        self.counts.resize(n + n_items, 0);
        CountsStart(NonZeroU32::MIN.saturating_add(n as u32))
    }

    /// Counts by position.
    pub fn of(&self, start: Option<CountsStart>, n_items: usize) -> &[u32] {
        start.map_or(&[], |start| &self.counts[start.at()..][..n_items])
    }

    /// Forgets the counts of all arms.
    pub fn clear(&mut self) {
        self.counts.clear();
    }
}

impl CountsStart {
    fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_count_separately_until_cleared() {
        let mut clicks = FirstClicks::default();
        for _ in 0..2 {
            let (mut one, mut other) = (None, None);
            for position in [2, 0, 2] {
                clicks.count(&mut one, 3, position);
                clicks.count(&mut other, 10, 9);
            }
            assert_eq!(clicks.of(one, 3), [1, 0, 2]);
            assert_eq!(clicks.of(other, 10), [0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
            assert_eq!(
                size_of_val(&clicks.counts[..]) as u64,
                FirstClicks::bytes(3) + FirstClicks::bytes(10)
            );
            assert!(clicks.of(None, 3).is_empty());
            clicks.clear();
        }
    }
}
