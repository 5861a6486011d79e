//! Sums per key in one arena: rows of equal width, reused once cleared.

use std::hash::Hash;

use hashbrown::HashMap;

use super::hashed::Hashed;

/// Rows of `width` integers by key, in the order in which the keys came.
#[derive(Debug)]
pub struct Tallies<K> {
    rows: HashMap<K, u32, Hashed>,
    keys: Vec<K>,
    width: usize,
    sums: Vec<i64>,
    overflowed: bool,
}

impl<K: Copy + Eq + Hash> Tallies<K> {
    pub fn new(width: usize) -> Tallies<K> {
        Tallies {
            rows: HashMap::default(),
            keys: Vec::new(),
            width,
            sums: Vec::new(),
            overflowed: false,
        }
    }

    /// Adds to the first columns of the row of `key`; says whether it is a new one.
    pub fn add(&mut self, key: K, contribution: &[i64]) -> bool {
        let before = self.keys.len();
        let width = self.width;
        let keys = &mut self.keys;
        let sums = &mut self.sums;
        let row = *self.rows.entry(key).or_insert_with(|| {
            keys.push(key);
            sums.resize(sums.len() + width, 0);
            (keys.len() - 1) as u32
        }) as usize;
        self.overflowed |= add(&mut self.sums[row * width..][..width], contribution);
        self.keys.len() > before
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &[i64])> {
        self.keys.iter().copied().zip(self.sums.chunks_exact(self.width))
    }

    /// Whether a sum has left 64 bits: the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.keys.clear();
        self.sums.clear();
    }
}

/// Adds term by term; says whether a sum has run over.
fn add(row: &mut [i64], contribution: &[i64]) -> bool {
    let mut carried = 0;
    for (sum, term) in row.iter_mut().zip(contribution) {
        let before = *sum;
        *sum = before.wrapping_add(*term);
        // The sign bit is set where both had one sign and the result has the other.
        carried |= (before ^ *sum) & (*term ^ *sum);
    }
    carried < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_to_the_first_columns_of_a_row() {
        let mut tallies = Tallies::new(3);
        assert!(tallies.add('a', &[1, 2]));
        assert!(!tallies.add('a', &[10, 20, 30]));
        assert!(tallies.add('b', &[5]));
        let rows: Vec<_> = tallies.iter().collect();
        assert_eq!(rows, [('a', &[11, 22, 30][..]), ('b', &[5, 0, 0])]);
        assert!(!tallies.overflowed());
    }

    #[test]
    fn a_sum_that_runs_over_says_so() {
        for (first, second) in [(i64::MAX, 1), (i64::MIN, -1)] {
            let mut tallies = Tallies::new(2);
            tallies.add((), &[0, first]);
            assert!(!tallies.overflowed());
            tallies.add((), &[0, second]);
            assert!(tallies.overflowed());
        }
    }
}
