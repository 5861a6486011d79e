//! Laws that hold for any sums: variances by small changes equal the delta method, and partitions add up to the whole.

use abgauge_core::statistics::per_user::{Count, UserCounts, per_user};
use abgauge_core::statistics::{ArmPair, Comparison, EpochWeights, RatioSums, compare};
use proptest::prelude::*;

/// Lists and lists with a click of one arm, by bucket.
#[derive(Debug, Clone, PartialEq)]
struct Arm {
    lists: Vec<f64>,
    hits: Vec<f64>,
}

impl Arm {
    fn sums(&self) -> RatioSums<'_> {
        RatioSums {
            lists: &self.lists,
            numerators: &self.hits,
            denominators: &self.lists,
        }
    }

    /// Returns the arm with one bucket `factor` times as heavy.
    fn with(&self, bucket: usize, factor: f64) -> Arm {
        let mut changed = self.clone();
        changed.lists[bucket] *= factor;
        changed.hits[bucket] *= factor;
        changed
    }
}

fn compared(arms: &[Arm; 2]) -> Option<Comparison> {
    let [arm, control] = [arms[0].sums(), arms[1].sums()];
    compare(&[ArmPair { arm, control }], EpochWeights::Overlap)
}

fn hits_per_user(arms: &[Arm; 2]) -> Option<abgauge_core::statistics::Effect> {
    let [arm, control] = [(&arms[0], 0.3), (&arms[1], 0.7)].map(|(arm, share)| Count {
        lists: &arm.lists,
        counts: &arm.hits,
        share,
    });
    per_user(&[UserCounts { arm, control }], EpochWeights::Overlap)
}

/// Computes V = n/(n−1) Σ (∂ value/∂ weight of bucket b)², by small changes of each bucket in turn.
fn variance_by_changes(arms: &[Arm; 2], value: impl Fn(&[Arm; 2]) -> f64) -> f64 {
    const STEP: f64 = 1e-4;
    let n_buckets = arms[0].lists.len();
    let slope = |bucket: usize| {
        let at = |factor: f64| value(&arms.clone().map(|arm| arm.with(bucket, factor)));
        (at(1.0 + STEP) - at(1.0 - STEP)) / (2.0 * STEP)
    };
    let occupied = |bucket: &usize| arms.iter().any(|arm| arm.lists[*bucket] > 0.0);
    let n = (0..n_buckets).filter(occupied).count() as f64;
    n / (n - 1.0) * (0..n_buckets).map(|bucket| slope(bucket).powi(2)).sum::<f64>()
}

fn arms() -> impl Strategy<Value = [Arm; 2]> {
    let arm = || (0_u32..30, 0_u32..30).prop_map(|(lists, hits)| [lists, hits.min(lists)].map(f64::from));
    let column = |buckets: &[[[f64; 2]; 2]], arm: usize, sum: usize| -> Vec<f64> {
        buckets.iter().map(|bucket| bucket[arm][sum]).collect()
    };
    let buckets = prop::collection::vec((arm(), arm()).prop_map(|(one, other)| [one, other]), 8..40);
    buckets.prop_map(move |buckets| {
        [0, 1].map(|arm| Arm {
            lists: column(&buckets, arm, 0),
            hits: column(&buckets, arm, 1),
        })
    })
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 1e-5
}

proptest! {
    #[test]
    fn variances_equal_a_recomputation_by_small_changes(arms in arms()) {
        if let Some(found) = compared(&arms) {
            let of = |value: fn(Comparison) -> f64| move |arms: &[Arm; 2]| value(compared(arms).unwrap());
            if let Some(difference) = found.difference {
                let twin = variance_by_changes(&arms, of(|found| found.arm - found.control));
                prop_assert!(is_near(difference.spread.variance, twin));
            }
            if let Some(lift) = found.lift {
                let twin = variance_by_changes(&arms, of(|found| found.arm / found.control));
                prop_assert!(is_near(lift.spread.variance, twin));
            }
        }
        if let Some(found) = hits_per_user(&arms) {
            let twin = variance_by_changes(&arms, |arms| hits_per_user(arms).unwrap().value);
            prop_assert!(is_near(found.spread.variance, twin));
        }
    }

    /// Draws single lists: bucket, arm, click, partition.
    #[test]
    fn partitions_add_up_to_the_whole(
        lists in prop::collection::vec((0_usize..16, 0_usize..2, any::<bool>(), 0_usize..3), 50..300)
    ) {
        let count = |partition: Option<usize>| {
            let mut arms = [0, 1].map(|_| Arm { lists: vec![0.0; 16], hits: vec![0.0; 16] });
            for (bucket, arm, is_hit, of) in &lists {
                if partition.is_none_or(|partition| partition == *of) {
                    arms[*arm].lists[*bucket] += 1.0;
                    arms[*arm].hits[*bucket] += f64::from(u8::from(*is_hit));
                }
            }
            arms
        };
        let mut merged = count(Some(0));
        for partition in [1, 2] {
            for (arm, more) in merged.iter_mut().zip(count(Some(partition))) {
                arm.lists.iter_mut().zip(more.lists).for_each(|(own, more)| *own += more);
                arm.hits.iter_mut().zip(more.hits).for_each(|(own, more)| *own += more);
            }
        }
        prop_assert_eq!(compared(&merged), compared(&count(None)));
        prop_assert_eq!(hits_per_user(&merged), hits_per_user(&count(None)));
    }

    #[test]
    fn swapping_the_arms_flips_the_lift_per_user(arms in arms()) {
        let [arm, control] = arms.clone();
        let there = per_user_of_equal_shares(&arms);
        let back = per_user_of_equal_shares(&[control, arm]);
        prop_assert_eq!(there.is_some(), back.is_some());
        if let (Some(there), Some(back)) = (there, back) {
            prop_assert!((there.value + back.value).abs() < 1e-12);
            prop_assert_eq!(there.spread, back.spread);
        }
    }
}

fn per_user_of_equal_shares(arms: &[Arm; 2]) -> Option<abgauge_core::statistics::Effect> {
    let [arm, control] = [&arms[0], &arms[1]].map(|arm| Count {
        lists: &arm.lists,
        counts: &arm.hits,
        share: 0.5,
    });
    per_user(&[UserCounts { arm, control }], EpochWeights::Overlap)
}
