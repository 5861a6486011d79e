//! Contents of lists: how many items, and which.

use anyhow::{Result, bail};

use super::random::Random;

/// Number of items in the catalogue of lists, fewer than 2¹⁵.
pub const N_ITEMS: u64 = 3_000;
pub const MAX_ITEMS: u16 = 20;

/// Distribution of list lengths: some lists are empty, all other lengths are equally likely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    empty: f64,
    least: u16,
    most: u16,
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths {
            empty: 0.02,
            least: 3,
            most: MAX_ITEMS,
        }
    }
}

impl Lengths {
    /// Creates a distribution from `least` to `most` items, with this share of empty lists.
    ///
    /// # Errors
    /// Not 1 ≤ least ≤ most ≤ [`MAX_ITEMS`], or a share outside of 0 to 1.
    pub fn new(empty: f64, least: u16, most: u16) -> Result<Lengths> {
        if !(1 <= least && least <= most && most <= MAX_ITEMS) {
            bail!("lists have from 1 to {MAX_ITEMS} items, not from {least} to {most}");
        }
        if !(0.0..=1.0).contains(&empty) {
            bail!("the share of empty lists is from 0 to 1, not {empty}");
        }
        Ok(Lengths { empty, least, most })
    }

    pub fn draw(&self, random: &mut Random) -> usize {
        match random.chance(self.empty) {
            true => 0,
            false => usize::from(self.least) + random.below(self.n_filled()) as usize,
        }
    }

    /// Returns each length with its probability.
    pub fn all(&self) -> impl Iterator<Item = (usize, f64)> {
        let each = (1.0 - self.empty) / self.n_filled() as f64;
        let filled = (self.least..=self.most).map(move |n| (usize::from(n), each));
        std::iter::once((0, self.empty)).chain(filled)
    }

    /// Returns the number of lengths, not counting empty lists.
    fn n_filled(&self) -> u64 {
        u64::from(self.most - self.least) + 1
    }
}

/// Draws `n` distinct items, popular ones more often, and replaces the contents of `items`.
pub fn draw_items(n: usize, random: &mut Random, items: &mut Vec<u16>) {
    items.clear();
    // A local copy can stay in registers.
    let mut source = random.clone();
    // One bit per residue modulo 64: a clear bit proves that an item is new, which saves most searches.
    let mut seen = 0_u64;
    while items.len() < n {
        let item = source.skewed(N_ITEMS) as u16;
        let bit = 1 << (item % 64);
        if seen & bit == 0 || !items.contains(&item) {
            items.push(item);
            seen |= bit;
        }
    }
    *random = source;
}

/// Draws an item that no list contains.
pub fn foreign_item(random: &mut Random) -> u16 {
    (N_ITEMS + random.below(N_ITEMS)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_never_repeats_an_item() {
        let mut random = Random::new(3);
        let mut items = Vec::new();
        for _ in 0..500 {
            draw_items(20, &mut random, &mut items);
            items.sort_unstable();
            items.dedup();
            assert_eq!(items.len(), 20);
        }
    }

    #[test]
    fn lengths_are_drawn_with_their_probabilities() {
        const N: u32 = 50_000;
        for lengths in [
            Lengths::default(),
            Lengths::new(0.0, 1, 1).unwrap(),
            Lengths::new(0.3, 2, 3).unwrap(),
        ] {
            let mut random = Random::new(1);
            let mut counts = [0.0; MAX_ITEMS as usize + 1];
            for _ in 0..N {
                counts[lengths.draw(&mut random)] += 1.0;
            }
            let mut sum = 0.0;
            for (length, probability) in lengths.all() {
                let n = f64::from(N);
                let bound = 4.0 * (n * probability * (1.0 - probability)).sqrt();
                assert!(
                    (counts[length] - n * probability).abs() <= bound,
                    "{lengths:?}: {counts:?}"
                );
                sum += probability;
            }
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        }
    }

    #[test]
    fn invalid_lengths_are_refused() {
        for (empty, least, most) in [
            (0.0, 0, 3),
            (0.0, 4, 3),
            (0.0, 1, 21),
            (1.1, 1, 3),
            (f64::NAN, 1, 3),
        ] {
            assert!(
                Lengths::new(empty, least, most).is_err(),
                "{empty} {least} {most}"
            );
        }
    }
}
