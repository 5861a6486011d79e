//! Who visits, which arms serve them, and how likely they click: everything that the true values follow from.
//!
//! An item at rank r is clicked, independently of all others, with probability
//! attractiveness(arms) × eagerness(user) × examination(r). The arms of the two experiments interact, so the true
//! value of an arm is a mean over the arms of the other experiment.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::random::{Random, scale};

/// An experiment of the simulation.
#[derive(Debug)]
pub struct Experiment {
    pub name: &'static str,
    pub arms: &'static [&'static str],
}

pub const N_EXPERIMENTS: usize = 2;
/// Every request is in each of them.
pub const EXPERIMENTS: [Experiment; N_EXPERIMENTS] = [
    Experiment {
        name: "ranker",
        arms: &["control", "neural", "blend"],
    },
    Experiment {
        name: "layout",
        arms: &["grid", "carousel"],
    },
];

/// Click probability at rank 1 of a user of eagerness 1, by ranker and layout.
const ATTRACTIVENESS: [[f64; 2]; 3] = [[0.060, 0.054], [0.081, 0.069], [0.068, 0.066]];
/// Some click half as much as others: what makes the lists of one user alike.
const EAGERNESS: [f64; 3] = [0.5, 1.0, 1.5];

/// Fewer than 2¹⁶, like the items.
const N_USERS: u64 = 20_000;
/// Those that lists hold; half of all.
pub const N_ITEMS: u64 = 3_000;
/// Probability of a list without items.
const EMPTY_LISTS: f64 = 0.02;
const MIN_ITEMS: u64 = 3;
pub const MAX_ITEMS: u64 = 20;

/// What the click model knows of a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visitor {
    /// Index of the arm in each experiment.
    pub arms: [usize; N_EXPERIMENTS],
    eagerness: usize,
}

impl Visitor {
    /// Probability of a click at `rank` (from 1).
    pub fn click_probability(&self, rank: usize) -> f64 {
        let [ranker, layout] = self.arms;
        ATTRACTIVENESS[ranker][layout] * EAGERNESS[self.eagerness] * EXAMINATION[rank]
    }

    /// Draws for one rank (from 0) after the other whether it is clicked, up to the first that is.
    pub fn draw_click(&self, mut ranks: Range<usize>, random: &mut Random) -> Option<usize> {
        // A copy can stay in registers.
        let mut source = random.clone();
        let clicked = ranks.find(|rank| source.chance(self.click_probability(rank + 1)));
        *random = source;
        clicked
    }
}

/// Position bias by rank (from 1): 1 at the first, 1/4 at the tenth.
const EXAMINATION: [f64; MAX_ITEMS as usize + 1] = {
    let mut table = [0.0; MAX_ITEMS as usize + 1];
    let mut rank = 1;
    while rank < table.len() {
        table[rank] = 3.0 / (rank as f64 + 2.0);
        rank += 1;
    }
    table
};

/// The population of one seed.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Of the arms, by experiment.
    salts: [u64; N_EXPERIMENTS],
    eagerness_salt: u64,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        let salt = |of: &str| xxh3_64_with_seed(of.as_bytes(), seed);
        Model {
            salts: EXPERIMENTS.each_ref().map(|experiment| salt(experiment.name)),
            eagerness_salt: salt("eagerness"),
        }
    }

    /// The traits of a user: each by a hash with a salt of its own, so that they are independent.
    pub fn visitor(&self, user: u64) -> Visitor {
        let pick = |salt, n: usize| scale(xxh3_64_with_seed(&user.to_le_bytes(), salt), n as u64) as usize;
        Visitor {
            arms: std::array::from_fn(|index| pick(self.salts[index], EXPERIMENTS[index].arms.len())),
            eagerness: pick(self.eagerness_salt, EAGERNESS.len()),
        }
    }

    /// Draws the user of a request; some return often, most seldom.
    pub fn user(&self, random: &mut Random) -> u64 {
        random.skewed(N_USERS)
    }

    /// Each user with the probability that a request is theirs.
    pub fn users(&self) -> impl Iterator<Item = (Visitor, f64)> {
        let share_below = |user: u64| (user as f64 / N_USERS as f64).sqrt();
        (0..N_USERS).map(move |user| (self.visitor(user), share_below(user + 1) - share_below(user)))
    }

    /// Draws the length of a list.
    pub fn n_items(&self, random: &mut Random) -> usize {
        match random.chance(EMPTY_LISTS) {
            true => 0,
            false => (MIN_ITEMS + random.below(MAX_ITEMS - MIN_ITEMS + 1)) as usize,
        }
    }

    /// Each length with its probability.
    pub fn lengths(&self) -> impl Iterator<Item = (usize, f64)> {
        let n_lengths = (MAX_ITEMS - MIN_ITEMS + 1) as f64;
        let filled = (MIN_ITEMS..=MAX_ITEMS).map(move |n| (n as usize, (1.0 - EMPTY_LISTS) / n_lengths));
        std::iter::once((0, EMPTY_LISTS)).chain(filled)
    }

    /// Draws `n` distinct items, popular ones more often; they replace those in `items`.
    pub fn draw_items(&self, n: usize, random: &mut Random, items: &mut Vec<u16>) {
        items.clear();
        // A copy can stay in registers.
        let mut source = random.clone();
        // A bit for each 64th item: most of the time it says that an item is new.
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

    /// Draws an item that no list holds.
    pub fn foreign_item(&self, random: &mut Random) -> u16 {
        (N_ITEMS + random.below(N_ITEMS)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_users_and_of_lengths_add_up_to_one() {
        let model = Model::new(1);
        let users: f64 = model.users().map(|(_, share)| share).sum();
        let lengths: f64 = model.lengths().map(|(_, share)| share).sum();
        assert!((users - 1.0).abs() < 1e-9, "{users}");
        assert!((lengths - 1.0).abs() < 1e-9, "{lengths}");
    }

    #[test]
    fn the_arm_in_one_experiment_says_nothing_of_the_arm_in_the_other() {
        let model = Model::new(1);
        let mut n = [[0.0_f64; 2]; 3];
        for (visitor, _) in model.users() {
            n[visitor.arms[0]][visitor.arms[1]] += 1.0;
        }
        let expected = N_USERS as f64 / 6.0;
        for count in n.as_flattened() {
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{n:?}");
        }
    }

    #[test]
    fn a_list_holds_no_item_twice() {
        let mut random = Random::new(3);
        let mut items = Vec::new();
        for _ in 0..500 {
            Model::new(1).draw_items(20, &mut random, &mut items);
            items.sort_unstable();
            items.dedup();
            assert_eq!(items.len(), 20);
        }
    }
}
