//! The true value of each metric, in closed form from the click model.
//!
//! With p_r the click probability at rank r and n = min(k, L): hit ratio@k = `E[1 − Π_{r≤n} (1 − p_r)]`,
//! CTR@k = `E[Σ_{r≤n} p_r] ÷ E[n]`, MRR@k = `E[Σ_{r≤n} p_r ÷ r · Π_{j<r} (1 − p_j)]`; E runs over the users of the
//! arm, by how often they come, and over the lengths L of lists.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::model::{EXPERIMENTS, MAX_ITEMS, Model, Visitor};

/// What a metric of an arm tends to as lists grow many.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    pub experiment: &'static str,
    pub arm: &'static str,
    /// As in the JSON API: `hit_rate@5`, or `hit_rate` over the whole list.
    pub key: String,
    pub value: f64,
}

/// Hit ratio, CTR and MRR of every arm at each of `ks` and over the whole list.
pub fn truth(model: &Model, ks: &[NonZeroU32]) -> Vec<Truth> {
    let mut shares: BTreeMap<Visitor, f64> = BTreeMap::new();
    for (visitor, share) in model.users() {
        *shares.entry(visitor).or_default() += share;
    }
    let mut truths = Vec::new();
    for (index, experiment) in EXPERIMENTS.iter().enumerate() {
        for (arm, arm_name) in experiment.arms.iter().copied().enumerate() {
            let visitors: Vec<_> = shares.iter().filter(|(v, _)| v.arms[index] == arm).collect();
            for k in ks.iter().map(|k| Some(k.get())).chain([None]) {
                let mean = mean_at(model, &visitors, k.map_or(usize::MAX, |k| k as usize));
                let metrics = [
                    ("hit_rate", mean.hit),
                    ("ctr", mean.clicks / mean.shown),
                    ("mrr", mean.reciprocal_rank),
                ];
                truths.extend(metrics.map(|(id, value)| Truth {
                    experiment: experiment.name,
                    arm: arm_name,
                    key: k.map_or(id.to_owned(), |k| format!("{id}@{k}")),
                    value,
                }));
            }
        }
    }
    truths
}

/// Expectations over one list.
#[derive(Debug, Clone, Copy, Default)]
struct Means {
    hit: f64,
    clicks: f64,
    shown: f64,
    reciprocal_rank: f64,
}

fn mean_at(model: &Model, visitors: &[(&Visitor, &f64)], k: usize) -> Means {
    let total: f64 = visitors.iter().map(|(_, share)| **share).sum();
    let mut mean = Means::default();
    for (visitor, share) in visitors {
        let by_length = means_by_length(visitor);
        for (length, probability) in model.lengths() {
            let list = by_length[length.min(k)];
            let weight = **share / total * probability;
            mean.hit += weight * list.hit;
            mean.clicks += weight * list.clicks;
            mean.shown += weight * list.shown;
            mean.reciprocal_rank += weight * list.reciprocal_rank;
        }
    }
    mean
}

/// Expectations over the first n ranks, for n = 0..=[`MAX_ITEMS`].
fn means_by_length(visitor: &Visitor) -> Vec<Means> {
    let mut means = vec![Means::default()];
    let mut here = Means::default();
    for rank in 1..=MAX_ITEMS as usize {
        let p = visitor.click_probability(rank);
        let none_above = 1.0 - here.hit;
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

    #[test]
    fn two_ranks_worked_by_hand() {
        let visitor = Model::new(1).visitor(5);
        let (p1, p2) = (visitor.click_probability(1), visitor.click_probability(2));
        let two = means_by_length(&visitor)[2];
        assert!((two.hit - (p1 + p2 - p1 * p2)).abs() < 1e-15);
        assert!((two.clicks - (p1 + p2)).abs() < 1e-15);
        assert!((two.reciprocal_rank - (p1 + (1.0 - p1) * p2 / 2.0)).abs() < 1e-15);
        assert_eq!(two.shown, 2.0);
    }

    #[test]
    fn every_arm_has_every_metric_at_every_k_once() {
        let ks = [1, 5, 10].map(|k| NonZeroU32::new(k).unwrap());
        let truths = truth(&Model::new(1), &ks);
        let mut keys: Vec<_> = truths.iter().map(|t| (t.experiment, t.arm, &t.key)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), truths.len()), (5 * 3 * 4, 5 * 3 * 4));
    }
}
