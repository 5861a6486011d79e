//! Items that a list holds more than once.

/// Longest list that is filtered: of longer ones most would share a mark.
const MAX_FILTERED: usize = 32;

/// Room to find repeated items in.
#[derive(Debug)]
pub struct Repeats {
    /// Number of the list that left a mark last, as far as it fits.
    marks: [u16; 1024],
    n_lists: u16,
    sorted: Vec<u64>,
}

impl Repeats {
    pub fn new() -> Repeats {
        Repeats {
            marks: [0; 1024],
            n_lists: 0,
            sorted: Vec::new(),
        }
    }

    /// Counts the positions whose item already has a higher rank.
    pub fn count(&mut self, items: &[u64]) -> u64 {
        if items.len() <= MAX_FILTERED && !self.may_repeat(items) {
            return 0;
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(items);
        self.sorted.sort_unstable();
        let pairs = self.sorted.windows(2);
        pairs.filter(|pair| pair[0] == pair[1]).count() as u64
    }

    /// Returns false only if all items differ. Then no item finds a mark of its own list.
    fn may_repeat(&mut self, items: &[u64]) -> bool {
        // The number wraps, so an old mark may pass for one of this list. The caller then sorts in vain, but counts right.
        self.n_lists = self.n_lists.wrapping_add(1);
        let mut repeats = false;
        for item in items {
            let mark = &mut self.marks[*item as usize % 1024];
            repeats |= *mark == self.n_lists;
            *mark = self.n_lists;
        }
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_in_short_and_long_lists() {
        for n_items in [0_u64, 3, 5, 32, 33, 100] {
            let items: Vec<u64> = (0..n_items).map(|rank| rank % 5).collect();
            assert_eq!(Repeats::new().count(&items), n_items.saturating_sub(5));
        }
    }
}
