//! First clicks of lists of one length, counted by position in place of added to sums.
//!
//! ```text
//! counts ──▶ │ fresh, by position │ handed over, by position │ of another arm: …
//! ```
//! What such a click adds depends on its position alone, so that it is worked out once for many, when they are handed over;
//! and 40 bytes hold what an arm needs for lists of 10 items, where sums of the usual metrics take 512.

use std::ops::Range;

/// The counts of the arms of one slot.
#[derive(Debug, Default)]
pub struct FirstClicks {
    counts: Vec<u16>,
}

/// Where the counts of an arm stand.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    start: u32,
    n_items: u32,
}

impl FirstClicks {
    /// What the counts of an arm take in bytes.
    pub const fn bytes(n_items: usize) -> usize {
        2 * n_items * size_of::<u16>()
    }

    /// Counts a click at a position of lists with `n_items`, always as many for one arm; `place` is set to where its counts
    /// stand. Says whether the click was counted: a count may be full.
    pub fn count(&mut self, place: &mut Option<Place>, n_items: usize, position: usize) -> bool {
        let place = *place.get_or_insert_with(|| self.make_room(n_items));
        debug_assert_eq!(place.n_items as usize, n_items);
        let count = &mut self.counts[place.fresh()][position];
        let more = count.checked_add(1);
        *count = more.unwrap_or(*count);
        more.is_some()
    }

    #[cold]
    fn make_room(&mut self, n_items: usize) -> Place {
        let start = self.counts.len();
        self.counts.resize(start + 2 * n_items, 0);
        Place {
            start: start as u32,
            n_items: n_items as u32,
        }
    }

    /// Counts by position since the last hand-over.
    pub fn fresh(&self, place: Option<Place>) -> &[u16] {
        place.map_or(&[], |place| &self.counts[place.fresh()])
    }

    /// Counts by position up to the last hand-over.
    pub fn before(&self, place: Option<Place>) -> &[u16] {
        place.map_or(&[], |place| &self.counts[place.before()])
    }

    /// Adds what is fresh to what was handed over, if no count becomes too large; says whether that was done.
    pub fn hand_over(&mut self, place: Option<Place>) -> bool {
        let sum_of = |(fresh, before): (&u16, &u16)| before.checked_add(*fresh);
        let mut sums = self.fresh(place).iter().zip(self.before(place)).map(sum_of);
        if sums.any(|sum| sum.is_none()) {
            return false;
        }
        if let Some(place) = place {
            let (fresh, before) = self.counts[place.both()].split_at_mut(place.n_items as usize);
            before
                .iter_mut()
                .zip(&*fresh)
                .for_each(|(before, fresh)| *before += fresh);
            fresh.fill(0);
        }
        true
    }

    /// Forgets the counts of an arm.
    pub fn clear(&mut self, place: Option<Place>) {
        if let Some(place) = place {
            self.counts[place.both()].fill(0);
        }
    }
}

impl Place {
    fn both(self) -> Range<usize> {
        self.fresh().start..self.before().end
    }

    fn fresh(self) -> Range<usize> {
        self.start as usize..(self.start + self.n_items) as usize
    }

    fn before(self) -> Range<usize> {
        (self.start + self.n_items) as usize..(self.start + 2 * self.n_items) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_would_be_too_large_are_refused() {
        let mut clicks = FirstClicks::default();
        let (mut place, mut other) = (None, None);
        assert!(clicks.count(&mut other, 10, 3));
        for _ in 0..u16::MAX {
            assert!(clicks.count(&mut place, 3, 2));
        }
        assert!(!clicks.count(&mut place, 3, 2) && clicks.count(&mut place, 3, 0));
        assert!(clicks.hand_over(place));
        assert_eq!(clicks.fresh(place), [0; 3]);
        assert_eq!(clicks.before(place), [1, 0, u16::MAX]);
        assert!(clicks.hand_over(place) && clicks.count(&mut place, 3, 2));
        assert!(!clicks.hand_over(place));
        assert_eq!(clicks.fresh(place), [0, 0, 1]);
        assert_eq!(clicks.before(place), [1, 0, u16::MAX]);
        clicks.clear(place);
        assert_eq!([clicks.fresh(place), clicks.before(place)], [[0; 3]; 2]);
        assert_eq!(clicks.fresh(other), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            clicks.counts.len() * size_of::<u16>(),
            FirstClicks::bytes(10) + FirstClicks::bytes(3)
        );
        assert!(clicks.hand_over(None) && clicks.fresh(None).is_empty());
    }
}
