//! True value of each metric, in closed form from the click model.
//!
//! With p_r the click probability at rank r and n = min(k, L): hit ratio@k = `E[1 − Π_{r≤n} (1 − p_r)]`, CTR@k = `E[Σ_{r≤n}
//! p_r] ÷ E[n]`, MRR@k = `E[Σ_{r≤n} p_r ÷ r · Π_{j<r} (1 − p_j)]`. E runs over the list lengths L and over the kinds of
//! visitors, weighted by their visits.
//!
//! A user's eagerness depends neither on the arm nor on the number of visits. E therefore weights all kinds of users by
//! their probabilities, however many users there are. An arm's own users are a sample, which may be more or less eager. An
//! interval by user accounts for that.

use std::num::NonZeroU32;

use super::lists::MAX_ITEMS;
use super::model::{Model, Visitor};

/// Limit of an arm's metric for many users and lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    pub experiment: String,
    pub arm: String,
    /// Key as in the JSON API: `hit_rate@5`, or `hit_rate` over the whole list.
    pub key: String,
    pub value: f64,
}

/// Returns hit ratio, CTR and MRR of every arm with users, at each of `ks` and over the whole list.
pub fn truth(model: &Model, ks: &[NonZeroU32]) -> Vec<Truth> {
    let design = &model.world().design;
    let kinds = model.kinds();
    let mut truths = Vec::new();
    for (index, experiment) in design.experiments().iter().enumerate() {
        for (arm, of_arm) in experiment.arms.iter().enumerate() {
            let is_of_arm = |visitor: &Visitor| design.arm_of(visitor.combination, index) == arm;
            let visitors: Vec<_> = kinds.iter().filter(|(visitor, _)| is_of_arm(visitor)).collect();
            // An arm without users has no true value.
            if visitors.is_empty() {
                continue;
            }
            for k in ks.iter().map(|k| Some(k.get())).chain([None]) {
                let mean = mean_at(model, &visitors, k.map_or(usize::MAX, |k| k as usize));
                let metrics = [
                    ("hit_rate", mean.hit),
                    ("ctr", mean.clicks / mean.shown),
                    ("mrr", mean.reciprocal_rank),
                ];
                truths.extend(metrics.map(|(id, value)| Truth {
                    experiment: experiment.name.clone(),
                    arm: of_arm.name.clone(),
                    key: k.map_or(id.to_owned(), |k| format!("{id}@{k}")),
                    value,
                }));
            }
        }
    }
    truths
}

/// Expectations for one list.
#[derive(Debug, Clone, Copy, Default)]
struct Means {
    hit: f64,
    clicks: f64,
    shown: f64,
    reciprocal_rank: f64,
}

fn mean_at(model: &Model, visitors: &[&(Visitor, f64)], k: usize) -> Means {
    let total: f64 = visitors.iter().map(|(_, part)| part).sum();
    let mut mean = Means::default();
    for (visitor, part) in visitors {
        let by_length = means_by_length(visitor);
        for (length, probability) in model.world().lengths.all() {
            // At a cut-off, a longer list counts as its first k ranks.
            let list = by_length[length.min(k)];
            let weight = part / total * probability;
            mean.hit += weight * list.hit;
            mean.clicks += weight * list.clicks;
            mean.shown += weight * list.shown;
            mean.reciprocal_rank += weight * list.reciprocal_rank;
        }
    }
    mean
}

/// Returns expectations over the first n ranks, for n = 0..=[`MAX_ITEMS`].
fn means_by_length(visitor: &Visitor) -> Vec<Means> {
    let mut means = vec![Means::default()];
    let mut here = Means::default();
    for rank in 1..=MAX_ITEMS as usize {
        let p = visitor.click_probability(rank);
        let none_above = 1.0 - here.hit;
        // The first click is at this rank if none is above it.
        here.hit += none_above * p;
        here.clicks += p;
        here.shown += 1.0;
        here.reciprocal_rank += none_above * p / rank as f64;
        means.push(here);
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::simulate::design::Design;
    use crate::tools::simulate::model::World;

    fn model(design: Design) -> Model {
        let world = World {
            design,
            ..World::default()
        };
        Model::new(&world, 1)
    }

    fn lifts(numbers: &[(&str, f64)]) -> Vec<(String, f64)> {
        numbers
            .iter()
            .map(|(arm, number)| ((*arm).to_owned(), *number))
            .collect()
    }

    fn values(design: Design, key: &str) -> Vec<(String, f64)> {
        let truths = truth(&model(design), &[NonZeroU32::new(5).unwrap()]);
        let of_key = truths.into_iter().filter(|truth| truth.key == key);
        of_key.map(|truth| (truth.arm, truth.value)).collect()
    }

    #[test]
    fn two_ranks_worked_by_hand() {
        let visitor = model(Design::default()).visitor(5);
        let (p1, p2) = (visitor.click_probability(1), visitor.click_probability(2));
        let two = means_by_length(&visitor)[2];
        assert!((two.hit - (p1 + p2 - p1 * p2)).abs() < 1e-15);
        assert!((two.clicks - (p1 + p2)).abs() < 1e-15);
        assert!((two.reciprocal_rank - (p1 + (1.0 - p1) * p2 / 2.0)).abs() < 1e-15);
        assert_eq!(two.shown, 2.0);
    }

    #[test]
    fn every_arm_has_every_metric_once_per_k() {
        let ks = [1, 5, 10].map(|k| NonZeroU32::new(k).unwrap());
        let truths = truth(&model(Design::default()), &ks);
        let mut keys: Vec<_> = truths.iter().map(|t| (&t.experiment, &t.arm, &t.key)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), truths.len()), (5 * 3 * 4, 5 * 3 * 4));
    }

    #[test]
    fn a_lift_of_clicks_lifts_ctr_exactly_and_other_metrics_nearly() {
        let design = || {
            Design::default()
                .with_effects(&lifts(&[("neural", 0.1)]))
                .unwrap()
        };
        let lift = |key| {
            let values = values(design(), key);
            let value = |arm| values.iter().find(|(of, _)| of == arm).unwrap().1;
            value("neural") / value("control") - 1.0
        };
        assert!((lift("ctr@5") - 0.1).abs() < 1e-12, "{}", lift("ctr@5"));
        assert!(
            (0.08..0.1).contains(&lift("hit_rate@5")),
            "{}",
            lift("hit_rate@5")
        );
        assert!((0.08..0.1).contains(&lift("mrr")), "{}", lift("mrr"));
    }

    #[test]
    fn arms_without_differences_share_one_truth() {
        for key in ["hit_rate@5", "ctr", "mrr@5"] {
            let values = values(Design::default().without_differences(), key);
            assert_eq!(values.len(), 5);
            assert!(
                values
                    .iter()
                    .all(|(_, value)| (value / values[0].1 - 1.0).abs() < 1e-12),
                "{values:?}"
            );
        }
    }

    #[test]
    fn the_truth_of_an_arm_weighs_other_experiments_by_their_requests() {
        let alone = |ranker: &str| {
            let design = Design::default().with_shares(&lifts(&[(ranker, 1.0)])).unwrap();
            let values = values(design, "ctr@5");
            assert_eq!(
                values.len(),
                1 + 2,
                "arms without users have no truth: {values:?}"
            );
            values[1].1
        };
        let mixed = Design::default().with_shares(&lifts(&[("control", 0.25), ("neural", 0.75)]));
        // A user of `neural` comes twice as often.
        let mixed = mixed.unwrap().with_visits(&lifts(&[("neural", 1.0)])).unwrap();
        let expected = (alone("control") * 0.25 + alone("neural") * 1.5) / 1.75;
        assert!((values(mixed, "ctr@5")[2].1 / expected - 1.0).abs() < 1e-12);
    }
}
