//! What lists contribute, remembered by outcome: most lists of a stream have one of few lengths and click patterns.

use hashbrown::HashMap;

use super::hashed::Hashed;
use super::ranking::{ListOutcome, Ranking};

/// Bytes of rows that are remembered.
const MAX_BYTES: usize = 1 << 20;
/// Longest list whose outcome is remembered: its mask is a number.
const MAX_ITEMS: u32 = 64;

/// An outcome as a key: length, mask, clicks off the list.
type Key = (u32, u64, u32);

#[derive(Debug)]
pub struct Contributions {
    width: usize,
    rows: HashMap<Key, u32, Hashed>,
    values: Vec<i64>,
    /// The row of an outcome that is not remembered.
    other: Vec<i64>,
}

impl Contributions {
    pub fn new(ranking: &Ranking) -> Contributions {
        Contributions {
            width: ranking.width(),
            rows: HashMap::default(),
            values: Vec::new(),
            other: vec![0; ranking.width()],
        }
    }

    /// What a list of this outcome contributes, as wide as the ranking.
    pub fn of(&mut self, list: &ListOutcome, ranking: &Ranking) -> &[i64] {
        let Some(key) = key(list) else {
            ranking.contribute(list, &mut self.other);
            return &self.other;
        };
        let row = match self.rows.get(&key) {
            Some(row) => *row as usize,
            None => self.remember(key, list, ranking),
        };
        &self.values[row * self.width..][..self.width]
    }

    fn remember(&mut self, key: Key, list: &ListOutcome, ranking: &Ranking) -> usize {
        if (self.values.len() + self.width) * size_of::<i64>() > MAX_BYTES {
            self.rows.clear();
            self.values.clear();
        }
        let row = self.rows.len();
        self.rows.insert(key, row as u32);
        let start = self.values.len();
        self.values.resize(start + self.width, 0);
        ranking.contribute(list, &mut self.values[start..]);
        row
    }
}

fn key(list: &ListOutcome) -> Option<Key> {
    let mask = list.clicked.iter().rev();
    (list.n_items <= MAX_ITEMS).then(|| {
        let mask = mask.fold(0, |mask, word| mask << 32 | u64::from(*word));
        (list.n_items, mask, list.n_off_list)
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::super::ranking::Measures;
    use super::*;

    #[test]
    fn a_remembered_row_is_the_one_that_is_worked_out() {
        let ks = [1, 5].map(|k| NonZeroU32::new(k).expect("not 0"));
        let ranking = Ranking::new(&Measures::usual(&ks));
        let mut contributions = Contributions::new(&ranking);
        let mut expected = vec![0; ranking.width()];
        for seed in 0..20_000_u32 {
            let words = [seed.wrapping_mul(2_654_435_761), seed >> 7, 1];
            let n_items = seed % 96;
            let list = ListOutcome {
                n_items,
                clicked: &words[..n_items.div_ceil(32) as usize],
                n_off_list: seed % 3,
            };
            ranking.contribute(&list, &mut expected);
            assert_eq!(contributions.of(&list, &ranking), expected, "{list:?}");
            assert!(contributions.values.len() * size_of::<i64>() <= MAX_BYTES);
        }
    }
}
