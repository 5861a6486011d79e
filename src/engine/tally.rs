//! Sums per key in one arena: rows of equal width, reused once cleared.

use std::hash::Hash;

use hashbrown::HashMap;

use super::hashed::Hashed;

/// Rows of `width` integers by key, in the order in which the keys came.
#[derive(Debug)]
pub struct Tallies<K> {
    rows: HashMap<K, u32, Hashed>,
    keys: Vec<K>,
    sums: Vec<i64>,
}

impl<K> Default for Tallies<K> {
    fn default() -> Self {
        Tallies {
            rows: HashMap::default(),
            keys: Vec::new(),
            sums: Vec::new(),
        }
    }
}

impl<K: Copy + Eq + Hash> Tallies<K> {
    /// Adds to the row of `key`; says whether it is a new one.
    pub fn add(&mut self, key: K, contribution: &[i64]) -> bool {
        let before = self.keys.len();
        let width = contribution.len();
        let keys = &mut self.keys;
        let sums = &mut self.sums;
        let row = *self.rows.entry(key).or_insert_with(|| {
            keys.push(key);
            sums.resize(sums.len() + width, 0);
            (keys.len() - 1) as u32
        }) as usize;
        add(&mut self.sums[row * width..][..width], contribution);
        self.keys.len() > before
    }

    pub fn iter(&self, width: usize) -> impl Iterator<Item = (K, &[i64])> {
        self.keys.iter().copied().zip(self.sums.chunks_exact(width))
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

/// A slot of one pair's lists holds fewer than 2^31 of them, so its sums stay below 2^63 (each term is at most 2^32).
fn add(row: &mut [i64], contribution: &[i64]) {
    for (sum, term) in row.iter_mut().zip(contribution) {
        *sum += term;
    }
}
