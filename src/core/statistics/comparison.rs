//! An arm against its control in one metric: the difference of ratios and the lift.
//!
//! ```text
//! Δ = R_T − R_C          ψ_b  = e_Tb − e_Cb
//! ρ = R_T/R_C − 1        ψρ_b = (e_Tb − (R_T/R_C) e_Cb)/R_C
//! V = n/(n−1) Σψ_b²      ν = min(n_T, n_C) − 1
//! ```
//! n counts the buckets in which either arm has a list. Over several epochs R and e are weighted sums.

use serde::Serialize;

use super::effect::Effect;
use super::epochs::EpochWeights;
use super::linear::{self, Linear};
use super::ratio::{RatioPart, RatioSums};
use super::sums;
use crate::metrics::Parts;

/// Sums of an arm and of its control in one epoch.
#[derive(Debug, Clone, Copy)]
pub struct ArmPair<'a> {
    pub arm: RatioSums<'a>,
    pub control: RatioSums<'a>,
}

/// Result of comparing two arms.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// R_C.
    pub control: f64,
    /// R_T.
    pub arm: f64,
    /// Parts of R_T and R_C. None over several epochs: a weighted mean of ratios is not a ratio of two sums.
    pub parts: Option<ComparedParts>,
    /// (ΣC_T + ΣC_C)/(ΣD_T + ΣD_C), over all epochs that count.
    pub pooled: f64,
    /// Δ.
    pub difference: Option<Effect>,
    /// ρ. None while R_C < 5 √V_C, because a ratio of two noisy numbers has no useful interval.
    pub lift: Option<Effect>,
    /// max ψ²/Σψ².
    pub top_bucket_share: Option<f64>,
}

/// The sums whose ratios are the values of both arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ComparedParts {
    pub control: Parts,
    pub arm: Parts,
}

/// Standard errors by which R_C must exceed 0 for a lift.
const MIN_PRECISION: f64 = 5.0;

/// Compares an arm with its control over the epochs in which both have a list and the metric is defined for both.
pub fn compare(epochs: &[ArmPair], weights: EpochWeights) -> Option<Comparison> {
    let parts: Vec<[RatioPart; 2]> = epochs.iter().filter_map(ArmPair::parts).collect();
    let parts: Vec<[&RatioPart; 2]> = parts.iter().map(|[arm, control]| [arm, control]).collect();
    compare_parts(&parts, weights)
}

/// Compares prepared parts of an arm and its control, epoch by epoch.
pub(super) fn compare_parts(epochs: &[[&RatioPart; 2]], weights: EpochWeights) -> Option<Comparison> {
    // An epoch in which only one of the two has lists offers nothing to compare with.
    let has_lists = |epoch: &&[&RatioPart; 2]| epoch.iter().all(|part| part.n_lists > 0.0);
    let used: Vec<[&RatioPart; 2]> = epochs.iter().filter(has_lists).copied().collect();
    let lists: Vec<[f64; 2]> = used.iter().map(|epoch| epoch.map(|part| part.n_lists)).collect();
    let n_buckets = used.first()?[0].linear.errors.len();
    let weights = weights.of(&lists);
    let [arm, control] = [0, 1].map(|side| {
        let parts = used.iter().map(|epoch| &epoch[side].linear);
        Linear::weighted(weights.iter().copied().zip(parts), n_buckets)
    });
    let ratio = arm.value / control.value;
    let [psi, psi_of_lift] = [1.0, ratio].map(|factor| linear::squared_difference(&arm, factor, &control));
    let (pooled, [squares, squares_of_lift]) = pooled_beside(&used, [&psi, &psi_of_lift]);
    Some(Comparison {
        control: control.value,
        arm: arm.value,
        parts: match used[..] {
            [[arm, control]] => Some(ComparedParts {
                control: control.parts(),
                arm: arm.parts(),
            }),
            _ => None,
        },
        pooled,
        difference: difference([&arm, &control], squares),
        lift: lift([&arm, &control], squares_of_lift),
        top_bucket_share: linear::top_share(&psi, squares),
    })
}

impl<'a> ArmPair<'a> {
    fn parts(&self) -> Option<[RatioPart<'a>; 2]> {
        Some([RatioPart::new(self.arm)?, RatioPart::new(self.control)?])
    }
}

/// Computes the pooled rate, and the sums of two more columns in the same pass.
fn pooled_beside(used: &[[&RatioPart; 2]], [one, other]: [&[f64]; 2]) -> (f64, [f64; 2]) {
    // The order determines the last bits: epoch by epoch, the arm and then its control. The first part already has its sums.
    let mut parts = used.iter().flatten();
    let first = parts.next().map_or([0.0; 2], |part| part.sums);
    let last = parts.next_back().map_or([&[][..]; 2], |part| part.terms);
    let [numerator, denominator] = parts.fold(first, |sums, part| sums::added(sums, part.terms));
    let columns = [last[0], last[1], one, other];
    let [numerator, denominator, one, other] = sums::added([numerator, denominator, 0.0, 0.0], columns);
    (numerator / denominator, [one, other])
}

fn difference([arm, control]: [&Linear; 2], squares: f64) -> Option<Effect> {
    let scale = arm.value.abs().max(control.value.abs());
    let spread = linear::spread_of_pair([arm, control], squares, scale)?;
    Some(Effect {
        value: arm.value - control.value,
        spread,
        arms: [arm.own(), control.own()],
    })
}

fn lift([arm, control]: [&Linear; 2], squares: f64) -> Option<Effect> {
    let base = control.value;
    let is_precise = base > 0.0 && base >= MIN_PRECISION * control.own().error();
    let ratio = arm.value / base;
    let scale = arm.value.abs().max(base);
    let spread = linear::spread_of_pair([arm, control], squares, scale).filter(|_| is_precise)?;
    Some(Effect {
        value: ratio - 1.0,
        spread: spread.times(1.0 / base),
        arms: [arm.own().times(1.0 / base), control.own().times(ratio / base)],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// R_T = 6/8, R_C = 4/8; e_T = (2 − 1.5, 1 − 1.5, 2 − 1.5, 1 − 1.5)/8, e_C = (2 − 1, 0 − 1, 1 − 1, 1 − 1)/8.
    #[test]
    fn four_buckets_by_hand() {
        let lists = [2.0; 4];
        let pair = pair([&lists, &[2.0, 1.0, 2.0, 1.0]], [&lists, &[2.0, 0.0, 1.0, 1.0]]);
        let found = compare(&[pair], EpochWeights::Overlap).expect("it is defined");
        assert_eq!([found.arm, found.control, found.pooled], [0.75, 0.5, 0.625]);
        let parts = found.parts.expect("there is one epoch");
        assert_eq!([parts.arm.numerator, parts.arm.denominator], [6.0, 8.0]);
        assert_eq!([parts.control.numerator, parts.control.denominator], [4.0, 8.0]);
        let difference = found.difference.expect("it is spread");
        assert_eq!(difference.value, 0.25);
        assert_eq!(difference.spread.degrees, 3.0);
        // ψ = (−.5, .5, .5, −.5)/8.
        assert!((difference.spread.variance - 4.0 / 3.0 / 64.0).abs() < 1e-16);
        assert!((difference.arms[1].variance - 4.0 / 3.0 * 2.0 / 64.0).abs() < 1e-16);
        assert!((found.top_bucket_share.expect("ψ is there") - 0.25).abs() < 1e-15);
        assert_eq!(found.lift, None); // R_C is 2.4 √V_C
    }

    #[test]
    fn an_arm_without_a_click_has_a_difference_and_no_lift() {
        let lists = [10.0; 8];
        let pair = pair(
            [&lists, &[0.0; 8]],
            [&lists, &[4.0, 5.0, 5.0, 6.0, 4.0, 5.0, 5.0, 6.0]],
        );
        let found = compare(&[pair], EpochWeights::Overlap).expect("it is defined");
        let difference = found.difference.expect("the control is spread");
        assert_eq!(difference.value, -0.5);
        assert_eq!(difference.arms[0].variance, 0.0);
        assert_eq!(found.lift, None);
    }

    #[test]
    fn an_epoch_without_one_of_the_arms_changes_nothing() {
        let lists = [10.0, 12.0, 9.0, 14.0];
        let full = pair([&lists, &[3.0, 4.0, 2.0, 5.0]], [&lists, &[4.0, 4.0, 3.0, 7.0]]);
        let empty = pair([&[0.0; 4], &[0.0; 4]], [&lists, &[9.0, 9.0, 9.0, 9.0]]);
        let rule = EpochWeights::Overlap;
        assert_eq!(compare(&[full], rule), compare(&[empty, full, empty], rule));
        assert_eq!(compare(&[empty], rule), None);
    }

    proptest! {
        #[test]
        fn swapping_the_arms_flips_only_the_difference(buckets in buckets()) {
            let columns = Columns::new(&buckets);
            let there = compare(&[columns.pair()], EpochWeights::Overlap);
            let back = compare(&[columns.pair().swapped()], EpochWeights::Overlap);
            prop_assert_eq!(there.is_some(), back.is_some());
            if let (Some(there), Some(back)) = (there, back) {
                prop_assert_eq!(there.difference.is_some(), back.difference.is_some());
                if let (Some(there), Some(back)) = (there.difference, back.difference) {
                    prop_assert_eq!(there.value, -back.value);
                    prop_assert_eq!(there.spread, back.spread);
                    prop_assert_eq!(there.p_at_one_look(), back.p_at_one_look());
                }
            }
        }

        #[test]
        fn repeating_an_epoch_adds_no_precision(buckets in buckets()) {
            let whole = Columns::new(&buckets);
            let rule = EpochWeights::Overlap;
            let [once, twice] = [vec![whole.pair()], vec![whole.pair(), whole.pair()]].map(|e| compare(&e, rule));
            if let (Some(once), Some(twice)) = (once, twice) {
                prop_assert!((once.arm - twice.arm).abs() <= 1e-12 * once.arm.abs());
                prop_assert_eq!([once.parts.is_some(), twice.parts.is_some()], [true, false]);
                if let (Some(once), Some(twice)) = (once.difference, twice.difference) {
                    let ratio = once.spread.variance / twice.spread.variance;
                    prop_assert!((ratio - 1.0).abs() < 1e-9, "{}", ratio);
                }
            }
        }

        #[test]
        fn every_result_is_finite(buckets in buckets()) {
            let columns = Columns::new(&buckets);
            if let Some(found) = compare(&[columns.pair()], EpochWeights::Overlap) {
                let effects = [found.difference, found.lift];
                for effect in effects.into_iter().flatten() {
                    prop_assert!(effect.value.is_finite() && effect.spread.variance.is_normal());
                    let p = effect.p_at_one_look();
                    prop_assert!((0.0..=1.0).contains(&p));
                    let [narrow, wide] = [0.2, 0.01].map(|alpha| effect.interval_at_one_look(alpha));
                    if let (Some(narrow), Some(wide)) = (narrow, wide) {
                        prop_assert!(wide.lower < narrow.lower && narrow.upper < wide.upper);
                    }
                }
            }
        }
    }

    /// Lists and clicks by bucket, then arm.
    fn buckets() -> impl Strategy<Value = Vec<[[f64; 2]; 2]>> {
        let arm =
            || (0_u32..20, 0_u32..20).prop_map(|(lists, clicks)| [lists, clicks.min(lists)].map(f64::from));
        prop::collection::vec((arm(), arm()).prop_map(|(one, other)| [one, other]), 2..40)
    }

    /// Columns by arm, then sum.
    struct Columns([[Vec<f64>; 2]; 2]);

    impl Columns {
        fn new(buckets: &[[[f64; 2]; 2]]) -> Columns {
            let column = |arm: usize, sum: usize| buckets.iter().map(|bucket| bucket[arm][sum]).collect();
            Columns([0, 1].map(|arm| [0, 1].map(|sum| column(arm, sum))))
        }

        fn pair(&self) -> ArmPair<'_> {
            let [arm, control] = [&self.0[0], &self.0[1]];
            pair([&arm[0], &arm[1]], [&control[0], &control[1]])
        }
    }

    impl<'a> ArmPair<'a> {
        fn swapped(self) -> ArmPair<'a> {
            ArmPair {
                arm: self.control,
                control: self.arm,
            }
        }
    }

    fn pair<'a>(arm: [&'a [f64]; 2], control: [&'a [f64]; 2]) -> ArmPair<'a> {
        let sums = |[lists, numerators]: [&'a [f64]; 2]| RatioSums {
            lists,
            numerators,
            denominators: lists,
        };
        ArmPair {
            arm: sums(arm),
            control: sums(control),
        }
    }
}
