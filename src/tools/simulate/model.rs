//! Model of visits and clicks, from which the true values follow.
//!
//! An item at rank r is clicked, independently of all others, with probability appeal(arms) × eagerness(user) ×
//! examination(r). Arms and eagerness of a user come from hashes with separate salts, so they are independent of each other
//! and of the number of visits.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::assignment::Assignment;
use super::design::{Combination, Design};
use super::lists::{Lengths, MAX_ITEMS};
use super::population::{N_EAGERNESS, Population};
use super::random::{Random, scale};

/// Users, experiments and lists of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    pub population: Population,
    pub design: Design,
    pub lengths: Lengths,
}

/// Traits of a user in the click model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Visitor {
    /// Arms of the user.
    pub combination: Combination,
    /// Click probability at a rank that is examined for certain.
    attraction: f64,
}

impl Visitor {
    /// Returns the probability of a click at `rank` (from 1).
    pub fn click_probability(&self, rank: usize) -> f64 {
        self.attraction * EXAMINATION[rank]
    }

    /// Draws clicks for one rank (from 0) after the other, and returns the first rank that is clicked.
    pub fn draw_click(&self, mut ranks: Range<usize>, random: &mut Random) -> Option<usize> {
        // A local copy can stay in registers.
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

/// World with a seed.
#[derive(Debug, Clone)]
pub struct Model {
    world: World,
    assignment: Assignment,
    eagerness_salt: u64,
    /// Attraction of visitors, by combination and eagerness.
    attraction: Vec<[f64; N_EAGERNESS]>,
    /// Acceptance probability of requests by combination, absent if users of all combinations come equally often.
    kept: Option<Vec<f64>>,
}

impl Model {
    pub fn new(world: &World, seed: u64) -> Model {
        let World {
            design, population, ..
        } = world;
        let combinations = 0..design.n_combinations() as Combination;
        let attraction = |appeal: f64| {
            population
                .eagerness
                .map(|eagerness| (appeal * eagerness).min(1.0))
        };
        let visits: Vec<f64> = combinations.clone().map(|it| visits(design, it)).collect();
        let most = visits.iter().copied().fold(0.0, f64::max);
        let differ = visits.iter().any(|it| *it < most);
        Model {
            assignment: Assignment::new(design, seed),
            eagerness_salt: xxh3_64_with_seed(b"eagerness", seed),
            attraction: combinations.map(|it| attraction(design.appeal(it))).collect(),
            // Without differences no request is rejected, and no random number is drawn for that.
            kept: differ.then(|| visits.iter().map(|it| it / most).collect()),
            world: world.clone(),
        }
    }

    /// Returns the users, experiments and lists.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the traits of a user.
    pub fn visitor(&self, user: u32) -> Visitor {
        let hash = xxh3_64_with_seed(&u64::from(user).to_le_bytes(), self.eagerness_salt);
        let eagerness = scale(hash, N_EAGERNESS as u64) as usize;
        let combination = self.assignment.of(user);
        Visitor {
            combination,
            attraction: self.attraction[usize::from(combination)][eagerness],
        }
    }

    /// Draws the user of a request. A few users return often, most seldom.
    pub fn draw_user(&self, random: &mut Random) -> (u32, Visitor) {
        loop {
            let user = self.world.population.draw(random);
            let visitor = self.visitor(user);
            // Rejection sampling: dropping some requests of the other users makes users with more visits come more often.
            let is_kept = |kept: &Vec<f64>| random.chance(kept[usize::from(visitor.combination)]);
            if self.kept.as_ref().is_none_or(is_kept) {
                return (user, visitor);
            }
        }
    }

    /// Returns the kinds of visitors, each with its share of all requests, in the limit of infinitely many users.
    pub fn kinds(&self) -> Vec<(Visitor, f64)> {
        let design = &self.world.design;
        let weight = |combination| -> f64 {
            let shares = design.arms(combination).map(|(_, arm)| arm.share);
            shares.product::<f64>() * visits(design, combination)
        };
        let combinations = 0..design.n_combinations() as Combination;
        let total: f64 = combinations.clone().map(weight).sum();
        let of_combination = |combination: Combination| {
            let part = weight(combination) / total / N_EAGERNESS as f64;
            let attractions = self.attraction[usize::from(combination)];
            attractions.map(|attraction| {
                (
                    Visitor {
                        combination,
                        attraction,
                    },
                    part,
                )
            })
        };
        combinations
            .flat_map(of_combination)
            .filter(|(_, part)| *part > 0.0)
            .collect()
    }
}

/// Returns the visits of a user with these arms, relative to the controls.
fn visits(design: &Design, combination: Combination) -> f64 {
    design.arms(combination).map(|(_, arm)| arm.visits).product()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::*;
    use crate::tools::simulate::population::Activity;

    /// Model of a million users who come equally often.
    fn model(design: Design) -> Model {
        let world = World {
            population: Population {
                n_users: NonZeroU32::new(1_000_000).unwrap(),
                activity: Activity::Even,
                ..Population::default()
            },
            design,
            ..World::default()
        };
        Model::new(&world, 1)
    }

    /// Checks that each kind of visitor makes its stated share of the requests.
    #[track_caller]
    fn check(design: Design) {
        const N: u32 = 100_000;
        let model = model(design);
        let mut random = Random::new(1);
        let mut counts = BTreeMap::new();
        let key = |visitor: &Visitor| (visitor.combination, visitor.attraction.to_bits());
        for _ in 0..N {
            let (user, visitor) = model.draw_user(&mut random);
            assert_eq!(visitor, model.visitor(user));
            *counts.entry(key(&visitor)).or_insert(0.0) += 1.0;
        }
        let kinds = model.kinds();
        assert!((kinds.iter().map(|(_, part)| part).sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(kinds.len(), counts.len());
        for (visitor, part) in kinds {
            let n = f64::from(N);
            let count = counts[&key(&visitor)];
            let bound = 4.0 * (n * part * (1.0 - part)).sqrt();
            assert!(
                (count - n * part).abs() < bound,
                "{visitor:?}: {count}, not {}",
                n * part
            );
        }
    }

    #[test]
    fn visitor_kinds_occur_as_often_as_the_truth_assumes() {
        let of = |numbers: &[(&str, f64)]| -> Vec<(String, f64)> {
            numbers
                .iter()
                .map(|(arm, number)| ((*arm).to_owned(), *number))
                .collect()
        };
        check(Design::default());
        let design = Design::default();
        let design = design
            .with_shares(&of(&[("control", 0.3), ("neural", 0.7)]))
            .unwrap();
        check(
            design
                .with_visits(&of(&[("neural", 0.5), ("carousel", -0.5)]))
                .unwrap(),
        );
    }

    #[test]
    fn click_probabilities_never_exceed_one() {
        let world = World {
            design: Design::new(0.9, &[("e", &["a", "b"])]).unwrap(),
            ..World::default()
        };
        let kinds = Model::new(&world, 1).kinds();
        assert!(
            kinds
                .iter()
                .any(|(visitor, _)| visitor.click_probability(1) == 1.0)
        );
        assert!(
            kinds
                .iter()
                .all(|(visitor, _)| visitor.click_probability(1) <= 1.0)
        );
    }
}
