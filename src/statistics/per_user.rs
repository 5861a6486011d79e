//! An arm against its control per assigned user, with no user counted: shares say how many there are.
//!
//! ```text
//! g = ln(C_T/C_C) − ln(θ_T/θ_C)      ψ_b = c_Tb/C_T − c_Cb/C_C      lift e^g − 1
//! ```
//! C counts lists, lists with a click, clicks, or whatever a ratio has in its numerator. V and ν are those of a
//! difference of ratios. Of lists themselves it is the list ratio, 1 where the arms differ in nothing that changes how
//! many lists a user asks for. Source: the ratio of Poisson rates with variance clustered by bucket.

use super::effect::{Effect, Spread};
use super::epochs::EpochWeights;
use super::linear::{self, Linear};
use super::ratio;

/// What an arm and its control count in one epoch, and which users they were to get.
#[derive(Debug, Clone, Copy)]
pub struct Counts<'a> {
    pub arm: Count<'a>,
    pub control: Count<'a>,
}

/// What one arm counts, by user bucket.
#[derive(Debug, Clone, Copy)]
pub struct Count<'a> {
    /// Served lists.
    pub lists: &'a [f64],
    /// What is counted.
    pub counts: &'a [f64],
    /// θ, its expected share of users. Above 0.
    pub share: f64,
}

/// The id under which lists per assigned user are a metric.
pub const LISTS_PER_USER: &str = "lists_per_user";
/// The id under which lists with a click per assigned user are a metric.
pub const HITS_PER_USER: &str = "hits_per_user";
/// The id under which clicks per assigned user are a metric.
pub const CLICKS_PER_USER: &str = "clicks_per_user";

/// The ids of all metrics per assigned user.
pub const IDS: [&str; 3] = [LISTS_PER_USER, HITS_PER_USER, CLICKS_PER_USER];

/// Whether a metric is one of those per assigned user.
pub fn is_per_user(metric: &str) -> bool {
    IDS.contains(&metric)
}

/// g, over the epochs in which both arms have a list and have counted something.
pub fn per_user(epochs: &[Counts], weights: EpochWeights) -> Option<Effect> {
    let defined = epochs
        .iter()
        .filter_map(|epoch| Some((epoch.lists(), epoch.linear()?)));
    let (lists, used): (Vec<[f64; 2]>, Vec<[Linear; 2]>) = defined.unzip();
    let n_buckets = used.first()?[0].errors.len();
    let [mut arm, mut control] = [Linear::zero(n_buckets), Linear::zero(n_buckets)];
    for (weight, [of_arm, of_control]) in weights.of(&lists).into_iter().zip(&used) {
        arm.add(weight, of_arm);
        control.add(weight, of_control);
    }
    let psi = linear::difference(&arm, 1.0, &control);
    Some(Effect {
        value: arm.value - control.value,
        spread: linear::spread_of_pair([&arm, &control], &psi, 1.0)?,
        arms: [centred(arm), centred(control)],
    })
}

/// Of one arm alone e_b = c_b/C − 1/n over its n buckets with a list.
fn centred(mut arm: Linear) -> Spread {
    let mean = 1.0 / arm.n();
    for (error, occupied) in arm.errors.iter_mut().zip(&arm.occupied) {
        *error -= if *occupied { mean } else { 0.0 };
    }
    arm.own()
}

impl Counts<'_> {
    fn linear(&self) -> Option<[Linear; 2]> {
        let has_lists = self.lists().iter().all(|lists| *lists > 0.0);
        let [arm, control] = [self.arm.linear()?, self.control.linear()?];
        has_lists.then_some([arm, control])
    }

    fn lists(&self) -> [f64; 2] {
        [self.arm, self.control].map(|count| count.lists.iter().sum())
    }
}

impl Count<'_> {
    /// What it adds to V alone; none where nothing is counted, or nothing spreads.
    pub fn spread(&self) -> Option<Spread> {
        let Spread { variance, degrees } = centred(self.linear()?);
        Spread::new(variance, degrees, 1.0)
    }

    /// ln(C/θ), and c_b/C.
    fn linear(&self) -> Option<Linear> {
        let total: f64 = self.counts.iter().sum();
        let value = (total / self.share).ln();
        value.is_finite().then(|| Linear {
            value,
            errors: self.counts.iter().map(|count| count / total).collect(),
            occupied: ratio::occupied(self.lists),
        })
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
        let found = per_user(&[Counts { arm, control }], EpochWeights::Overlap).expect("it is defined");
        assert!((found.value - std::f64::consts::LN_2).abs() < 1e-15);
        assert!((found.spread.variance - 2.0 * 2.0 / 16.0).abs() < 1e-15);
        assert_eq!(found.spread.degrees, 1.0);
        // Alone: (¼ − ½, ¾ − ½) and (0, 0).
        assert_eq!(found.arms.map(|spread| spread.variance), [0.25, 0.0]);
    }

    #[test]
    fn what_was_expected_is_no_difference() {
        let arm = count(&[1.0, 3.0, 5.0], 0.1);
        let control = count(&[9.0, 27.0, 40.0, 5.0], 0.9);
        let found = per_user(&[Counts { arm, control }], EpochWeights::Overlap).expect("it is defined");
        assert!(found.value.abs() < 1e-15);
    }

    #[test]
    fn nothing_counted_is_undefined() {
        let arm = Count {
            counts: &[0.0; 3],
            ..count(&[1.0, 3.0, 5.0], 0.5)
        };
        let control = count(&[1.0, 3.0, 5.0], 0.5);
        assert_eq!(per_user(&[Counts { arm, control }], EpochWeights::Overlap), None);
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
