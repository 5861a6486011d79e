//! An estimate as its value and each bucket's contribution to its error: the delta method.
//!
//! Kohavi, Tang and Xu, Trustworthy Online Controlled Experiments, chapter 18; Deng et al., KDD 2018. Buckets contain whole
//! users, so their contributions are independent however often a user returns.

use std::borrow::Cow;
use std::rc::Rc;

use super::effect::Spread;
use super::sums;

/// An estimate for one arm, linear in the contributions of buckets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    /// R, or another estimate.
    pub value: f64,
    /// e_b of each bucket. They add up to 0 for a ratio, and to 1 for a count per user.
    pub errors: Vec<f64>,
    /// Σe².
    squares: f64,
    pub occupied: Occupied,
}

/// The buckets in which an arm has a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Occupied {
    is_occupied: Rc<[bool]>,
    /// n, their number.
    n: f64,
}

impl Linear {
    /// Prepares several estimates of one arm, each from its value and its errors.
    pub fn all(estimates: Vec<(f64, Vec<f64>)>, occupied: &Occupied) -> Vec<Linear> {
        let errors: Vec<&[f64]> = estimates.iter().map(|(_, errors)| &errors[..]).collect();
        let squares = sums::squares(&errors);
        let all = estimates.into_iter().zip(squares);
        all.map(|((value, errors), squares)| Linear {
            value,
            errors,
            squares,
            occupied: occupied.clone(),
        })
        .collect()
    }

    /// Returns the weighted sum of several estimates over `n_buckets` buckets. A single estimate of weight 1 is borrowed.
    pub fn weighted<'a>(
        parts: impl Iterator<Item = (f64, &'a Linear)> + Clone,
        n_buckets: usize,
    ) -> Cow<'a, Linear> {
        let mut only = parts.clone();
        if let (Some((1.0, part)), None) = (only.next(), only.next())
            && part.errors.len() == n_buckets
        {
            return Cow::Borrowed(part);
        }
        let (mut value, mut errors, mut is_occupied) = (0.0, vec![0.0; n_buckets], vec![false; n_buckets]);
        for (weight, part) in parts {
            value += weight * part.value;
            for (own, more) in errors.iter_mut().zip(&part.errors) {
                *own += weight * more;
            }
            // A bucket counts once, even if it has lists in several epochs.
            for (own, more) in is_occupied.iter_mut().zip(&*part.occupied.is_occupied) {
                *own |= more;
            }
        }
        Cow::Owned(Linear {
            value,
            squares: sums::squares(&[&errors])[0],
            errors,
            occupied: Occupied::new(is_occupied.into_iter()),
        })
    }

    /// Returns n, the number of buckets with a list.
    pub fn n(&self) -> f64 {
        self.occupied.n
    }

    /// Returns V = n/(n−1) Σ e² and n − 1. V may be 0, and is not a number with fewer than two buckets.
    pub fn own(&self) -> Spread {
        own(self.n(), self.squares)
    }

    /// Returns the spread, if buckets differ.
    pub fn spread(&self, scale: f64) -> Option<Spread> {
        let Spread { variance, degrees } = self.own();
        Spread::new(variance, degrees, scale)
    }
}

impl Occupied {
    pub fn new(is_occupied: impl Iterator<Item = bool>) -> Occupied {
        let is_occupied: Rc<[bool]> = is_occupied.collect();
        let n = count(is_occupied.iter().copied());
        Occupied { is_occupied, n }
    }

    /// Iterates over all buckets.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        self.is_occupied.iter().copied()
    }

    /// Counts buckets that either has.
    fn n_of_either(&self, other: &Occupied) -> f64 {
        let pairs = self.iter().zip(other.iter());
        count(pairs.map(|(own, other)| own || other))
    }
}

/// Computes the spread of n buckets with this Σe².
pub(super) fn own(n: f64, squares: f64) -> Spread {
    Spread {
        variance: variance(n, squares),
        degrees: n - 1.0,
    }
}

/// Computes ψ², the squared errors of `arm` − `factor` × `control`.
pub(super) fn squared_difference(arm: &Linear, factor: f64, control: &Linear) -> Vec<f64> {
    let pairs = arm.errors.iter().zip(&control.errors);
    let squares = pairs.map(|(arm, control)| {
        let psi = arm - factor * control;
        psi * psi
    });
    squares.collect()
}

/// Computes V = n/(n−1) Σψ² over the buckets in which either arm has a list, and ν = min(n_T, n_C) − 1.
pub(super) fn spread_of_pair(arms: [&Linear; 2], squares: f64, scale: f64) -> Option<Spread> {
    let [arm, control] = arms;
    let n = arm.occupied.n_of_either(&control.occupied);
    Spread::new(variance(n, squares), arm.n().min(control.n()) - 1.0, scale)
}

/// Computes max ψ²/Σψ², which shows a single heavy user.
pub(super) fn top_share(squares: &[f64], sum: f64) -> Option<f64> {
    let top = squares.iter().copied().fold(0.0, f64::max);
    let share = top / sum;
    share.is_finite().then_some(share)
}

fn variance(n: f64, squares: f64) -> f64 {
    n / (n - 1.0) * squares
}

fn count(which: impl Iterator<Item = bool>) -> f64 {
    f64::from(which.map(u32::from).sum::<u32>())
}
