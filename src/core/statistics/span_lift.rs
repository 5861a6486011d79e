//! Lifts over one span of time alone, such as the last day, for monitoring.
//!
//! ```text
//! ρ ± t_ν √V_ρ over the sums of the span      no running maxima, no correction: valid at one look
//! ```

use std::collections::BTreeMap;

use serde::Serialize;

use super::burn_in::{BurnIn, BurnInArm};
use super::comparison::{ArmPair, compare};
use super::effect::Interval;
use super::epochs::EpochWeights;
use super::ratio::RatioSums;
use super::totals::ArmTotals;

/// Lift of an arm over a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpanLift {
    pub lift: f64,
    /// Interval for one look.
    #[serde(flatten)]
    pub interval: Option<Interval>,
}

/// Computes the lifts of these metrics, by id, from the sums of an arm and its control over a span without a change of shares. Empty
/// until the span alone passes burn-in. Metrics per user and undefined lifts are left out.
pub fn span_lifts<'a>(
    arm: &ArmTotals,
    control: &ArmTotals,
    metrics: impl IntoIterator<Item = &'a str>,
    alpha: f64,
) -> BTreeMap<String, SpanLift> {
    if !BurnIn::new([arm, control].map(seen)).is_done() {
        return BTreeMap::new();
    }
    let lift = |metric: &str| {
        let pair = ArmPair {
            arm: sums(arm, metric)?,
            control: sums(control, metric)?,
        };
        let lift = compare(&[pair], EpochWeights::default())?.lift?;
        Some(SpanLift {
            lift: lift.value,
            interval: lift.interval_at_one_look(alpha),
        })
    };
    let metrics = metrics.into_iter();
    metrics
        .filter_map(|metric| Some((metric.to_owned(), lift(metric)?)))
        .collect()
}

fn seen(arm: &ArmTotals) -> BurnInArm {
    BurnInArm {
        occupied: arm.lists.iter().filter(|lists| **lists > 0.0).count(),
        lists: arm.lists.iter().sum(),
        hits: arm.hits.iter().sum(),
    }
}

fn sums<'a>(arm: &'a ArmTotals, metric: &str) -> Option<RatioSums<'a>> {
    let terms = arm.metrics.get(metric)?;
    Some(RatioSums {
        lists: &arm.lists,
        numerators: &terms.numerators,
        denominators: &terms.denominators,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Terms;

    /// Arm with two lists in each of `n` buckets, and as many clicked lists as `hits` has for even and odd buckets.
    fn arm(n: usize, hits: [f64; 2]) -> ArmTotals {
        let by_bucket = |of: &dyn Fn(usize) -> f64| (0..n).map(of).collect::<Vec<f64>>();
        let lists = by_bucket(&|_| 2.0);
        let hits = by_bucket(&|bucket| hits[bucket % 2]);
        let terms = Terms {
            numerators: hits.clone(),
            denominators: lists.clone(),
        };
        ArmTotals {
            lists,
            hits,
            metrics: [("hit_rate".to_owned(), terms)].into(),
            ..ArmTotals::default()
        }
    }

    /// R_T = 3/4 and R_C = 1/2; ψρ_b = (e_Tb − 3/2 e_Cb)/R_C with e_T = (1/2, −1/2)/512 and e_C = (0, 0), so ψρ = ±1/512 and
    /// V_ρ = 256/255 · 256/512² = 1/1020.
    #[test]
    fn a_lift_by_hand() {
        let found = span_lifts(&arm(256, [2.0, 1.0]), &arm(256, [1.0, 1.0]), ["hit_rate"], 0.05);
        let hit_rate = found["hit_rate"];
        assert_eq!(hit_rate.lift, 0.5);
        let interval = hit_rate.interval.expect("it is finite");
        let half_width = 1.969_310_570_4 / 1020.0_f64.sqrt(); // t of 255 degrees
        assert!((interval.lower - (0.5 - half_width)).abs() < 1e-9, "{interval:?}");
        assert!((interval.upper - (0.5 + half_width)).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn a_span_with_few_users_or_clicks_has_no_lift() {
        let control = |n| arm(n, [1.0, 1.0]);
        let lifts = |n, hits| {
            span_lifts(
                &arm(n, hits),
                &control(n),
                ["hit_rate", "mrr", "lists_per_user"],
                0.05,
            )
        };
        assert!(lifts(219, [2.0, 1.0]).is_empty());
        assert_eq!(lifts(220, [2.0, 1.0]).len(), 1, "other metrics have no sums");
        let few = arm(256, [0.0, 0.3]);
        assert!(span_lifts(&few, &few, ["hit_rate"], 0.05).is_empty());
    }
}
