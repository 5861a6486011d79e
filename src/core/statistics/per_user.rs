//! Comparison of an arm with its control per assigned user. Users are not counted: their expected shares are used.
//!
//! ```text
//! g = ln(C_T/C_C) − ln(θ_T/θ_C)      ψ_b = c_Tb/C_T − c_Cb/C_C      lift e^g − 1
//! ```
//! C counts lists, lists with a click, clicks, or the numerator of a ratio. V and ν are computed as for a difference of ratios.
//! For lists themselves the ratio e^g is the list ratio. It is 1 unless the arms change how many lists a user requests. Source:
//! the ratio of Poisson rates with variance clustered by bucket.

use std::borrow::Cow;

use super::effect::{Effect, Spread};
use super::epochs::EpochWeights;
use super::linear::{self, Linear};
use super::{ArmTotals, ratio, sums};

/// Counts of an arm and its control in one epoch, with their expected shares of users.
#[derive(Debug, Clone, Copy)]
pub struct UserCounts<'a> {
    pub arm: Count<'a>,
    pub control: Count<'a>,
}

/// Counts of one arm by user bucket.
#[derive(Debug, Clone, Copy)]
pub struct Count<'a> {
    /// Served lists.
    pub lists: &'a [f64],
    /// Counted things.
    pub counts: &'a [f64],
    /// θ, its expected share of users. Above 0.
    pub share: f64,
}

/// Id of lists per assigned user as a metric.
pub const LISTS_PER_USER: &str = "lists_per_user";
/// Id of lists with a click per assigned user as a metric.
pub const HITS_PER_USER: &str = "hits_per_user";
/// Id of clicks per assigned user as a metric.
pub const CLICKS_PER_USER: &str = "clicks_per_user";

/// Row that describes a metric per assigned user.
#[derive(Debug, Clone, Copy)]
pub struct UserMetric {
    /// Name in JSON, in the configuration and in the label `metric`.
    pub id: &'static str,
    /// Name in sentences and on the page.
    pub name: &'static str,
    /// Explanation on the page.
    pub meaning: &'static str,
    /// Returns the counted things of an arm by user bucket.
    pub counts: fn(&ArmTotals) -> &[f64],
}

/// Metrics per assigned user in the order of export.
pub const USER_METRICS: [UserMetric; 3] = [
    UserMetric {
        id: LISTS_PER_USER,
        name: "lists per assigned user",
        meaning: "Served lists per assigned user, seen or not: users are the planned share. Only the lift is known: it compares lists ÷ planned share.",
        counts: |arm| &arm.lists,
    },
    UserMetric {
        id: HITS_PER_USER,
        name: "hits per assigned user",
        meaning: "Lists with a click per assigned user, seen or not: users are the planned share. Only the lift is known: it compares lists with a click ÷ planned share.",
        counts: |arm| &arm.hits,
    },
    UserMetric {
        id: CLICKS_PER_USER,
        name: "clicks per assigned user",
        meaning: "Clicked items per assigned user, seen or not: users are the planned share. Only the lift is known: it compares clicked items ÷ planned share.",
        counts: |arm| &arm.clicks,
    },
];

impl UserMetric {
    /// Returns the metric with this id.
    pub fn named(id: &str) -> Option<UserMetric> {
        USER_METRICS.into_iter().find(|metric| metric.id == id)
    }
}

/// Returns the ids of all metrics per assigned user, in the order of export.
pub fn ids() -> [&'static str; 3] {
    USER_METRICS.map(|metric| metric.id)
}

/// Reports whether a metric is one per assigned user.
pub fn is_per_user(metric: &str) -> bool {
    UserMetric::named(metric).is_some()
}

/// Computes g over the epochs in which both arms have a list and a count.
pub fn per_user(epochs: &[UserCounts], weights: EpochWeights) -> Option<Effect> {
    let parts: Vec<[CountPart; 2]> = epochs.iter().filter_map(UserCounts::parts).collect();
    let parts: Vec<[&CountPart; 2]> = parts.iter().map(|[arm, control]| [arm, control]).collect();
    Some(per_user_of(&parts, weights)?.effect)
}

/// Comparison of an arm's count per user with its control's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerUserComparison {
    /// g.
    pub effect: Effect,
    /// max ψ²/Σψ².
    pub top_bucket_share: Option<f64>,
}

/// Computes g from prepared counts.
pub(super) fn per_user_of(epochs: &[[&CountPart; 2]], weights: EpochWeights) -> Option<PerUserComparison> {
    let has_lists = |epoch: &&[&CountPart; 2]| epoch.iter().all(|part| part.n_lists > 0.0);
    let used: Vec<[&CountPart; 2]> = epochs.iter().filter(has_lists).copied().collect();
    let lists: Vec<[f64; 2]> = used.iter().map(|epoch| epoch.map(|part| part.n_lists)).collect();
    let n_buckets = used.first()?[0].linear.errors.len();
    let weights = weights.of(&lists);
    let [arm, control] = [0, 1].map(|side| {
        let parts = used.iter().map(|epoch| &epoch[side].linear);
        Linear::weighted(weights.iter().copied().zip(parts), n_buckets)
    });
    // A bucket has users of both arms, so errors are subtracted bucket by bucket.
    let psi = linear::squared_difference(&arm, 1.0, &control);
    let [squares] = sums::added([0.0], [&psi]);
    // A single epoch has it prepared.
    let own = |side: usize, linear: &Cow<Linear>| match linear {
        Cow::Borrowed(_) => used[0][side].own,
        Cow::Owned(linear) => centred(&[linear])[0],
    };
    Some(PerUserComparison {
        effect: Effect {
            value: arm.value - control.value,
            spread: linear::spread_of_pair([&arm, &control], squares, 1.0)?,
            arms: [own(0, &arm), own(1, &control)],
        },
        top_bucket_share: linear::top_share(&psi, squares),
    })
}

/// Count of one arm in one epoch.
#[derive(Debug, Clone)]
pub(super) struct CountPart {
    n_lists: f64,
    /// ln(C/θ), and c_b/C.
    linear: Linear,
    /// Contribution of the arm alone to V. May be 0.
    own: Spread,
}

impl CountPart {
    /// Prepares several counts. None if a count is 0, or there is no share.
    pub fn all(lists: &[f64], counts: &[&[f64]], share: f64) -> Vec<Option<CountPart>> {
        let columns: Vec<&[f64]> = [lists].into_iter().chain(counts.iter().copied()).collect();
        let sums = sums::sums(&columns);
        let (n_lists, totals) = (sums[0], &sums[1..]);
        let value = |total: &f64| Some((total / share).ln()).filter(|value| value.is_finite());
        let estimate = |(counts, total): (&&[f64], &f64)| {
            let errors = counts.iter().map(|count| count / total);
            Some((value(total)?, errors.collect()))
        };
        let estimates = counts.iter().zip(totals).filter_map(estimate).collect();
        let linears = Linear::all(estimates, &ratio::occupied(lists));
        let owns = centred(&linears.iter().collect::<Vec<_>>());
        let mut parts = linears
            .into_iter()
            .zip(owns)
            .map(|(linear, own)| CountPart { n_lists, linear, own });
        let part = |total| value(total).and_then(|_| parts.next());
        totals.iter().map(part).collect()
    }
}

/// Computes the spreads of single arms: e_b = c_b/C − 1/n over an arm's n buckets with a list.
fn centred(linears: &[&Linear]) -> Vec<Spread> {
    let errors = |linear: &&Linear| -> Vec<f64> {
        let mean = 1.0 / linear.n();
        let errors = linear.errors.iter().zip(linear.occupied.iter());
        errors
            .map(|(error, is_occupied)| error - if is_occupied { mean } else { 0.0 })
            .collect()
    };
    let errors: Vec<Vec<f64>> = linears.iter().map(errors).collect();
    let errors: Vec<&[f64]> = errors.iter().map(Vec::as_slice).collect();
    let squares = sums::squares(&errors).into_iter();
    let own = |(linear, squares): (&&Linear, f64)| linear::own(linear.n(), squares);
    linears.iter().zip(squares).map(own).collect()
}

impl UserCounts<'_> {
    fn parts(&self) -> Option<[CountPart; 2]> {
        Some([self.arm.part()?, self.control.part()?])
    }
}

impl Count<'_> {
    /// Returns the contribution of the arm alone to V. None if the count is 0, or buckets do not differ.
    pub fn spread(&self) -> Option<Spread> {
        let Spread { variance, degrees } = self.part()?.own;
        Spread::new(variance, degrees, 1.0)
    }

    fn part(&self) -> Option<CountPart> {
        CountPart::all(self.lists, &[self.counts], self.share).pop()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the lists at the same share: g = ln 2; ψ = (¼ − ½, ¾ − ½, 0 − 0).
    #[test]
    fn three_buckets_by_hand() {
        let arm = count(&[2.0, 6.0, 0.0], 0.5);
        let control = count(&[2.0, 2.0, 0.0], 0.5);
        let found = per_user(&[UserCounts { arm, control }], EpochWeights::Overlap).expect("it is defined");
        assert!((found.value - std::f64::consts::LN_2).abs() < 1e-15);
        assert!((found.spread.variance - 2.0 * 2.0 / 16.0).abs() < 1e-15);
        assert_eq!(found.spread.degrees, 1.0);
        // Alone: (¼ − ½, ¾ − ½) and (0, 0).
        assert_eq!(found.arms.map(|spread| spread.variance), [0.25, 0.0]);
    }

    #[test]
    fn expected_counts_give_no_difference() {
        let arm = count(&[1.0, 3.0, 5.0], 0.1);
        let control = count(&[9.0, 27.0, 40.0, 5.0], 0.9);
        let found = per_user(&[UserCounts { arm, control }], EpochWeights::Overlap).expect("it is defined");
        assert!(found.value.abs() < 1e-15);
    }

    #[test]
    fn no_counts_are_undefined() {
        let arm = Count {
            counts: &[0.0; 3],
            ..count(&[1.0, 3.0, 5.0], 0.5)
        };
        let control = count(&[1.0, 3.0, 5.0], 0.5);
        assert_eq!(
            per_user(&[UserCounts { arm, control }], EpochWeights::Overlap),
            None
        );
        assert_eq!(per_user(&[], EpochWeights::Overlap), None);
    }

    fn count(lists: &[f64], share: f64) -> Count<'_> {
        Count {
            lists,
            counts: lists,
            share,
        }
    }
}
