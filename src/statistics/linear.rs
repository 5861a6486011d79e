//! An estimate written as its value and what each bucket adds to its error: the delta method.
//!
//! Kohavi, Tang and Xu, Trustworthy Online Controlled Experiments, chapter 18; Deng et al., KDD 2018. Buckets hold whole
//! users, so what they add is independent however often a user returns.

use super::effect::Spread;

/// An estimate for one arm, linear in what buckets add.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    /// R, or whatever is estimated.
    pub value: f64,
    /// e_b of each bucket. They add up to 0.
    pub errors: Vec<f64>,
    /// Whether the arm has a list in the bucket.
    pub occupied: Vec<bool>,
}

impl Linear {
    /// Nothing of as many buckets.
    pub fn zero(n_buckets: usize) -> Linear {
        Linear {
            value: 0.0,
            errors: vec![0.0; n_buckets],
            occupied: vec![false; n_buckets],
        }
    }

    /// Adds `weight` times another.
    pub fn add(&mut self, weight: f64, other: &Linear) {
        self.value += weight * other.value;
        for (own, more) in self.errors.iter_mut().zip(&other.errors) {
            *own += weight * more;
        }
        for (own, more) in self.occupied.iter_mut().zip(&other.occupied) {
            *own |= more;
        }
    }

    /// n, the buckets with a list.
    pub fn n(&self) -> f64 {
        count(self.occupied.iter().copied())
    }

    /// V = n/(n−1) Σ e² and n − 1; V may be 0, and is no number with less than two buckets.
    pub fn own(&self) -> Spread {
        let n = self.n();
        Spread {
            variance: variance(n, &self.errors),
            degrees: n - 1.0,
        }
    }

    /// The same, where something spreads.
    pub fn spread(&self, scale: f64) -> Option<Spread> {
        let Spread { variance, degrees } = self.own();
        Spread::new(variance, degrees, scale)
    }
}

/// The errors of `arm` − `factor` × `control`.
pub(super) fn difference(arm: &Linear, factor: f64, control: &Linear) -> Vec<f64> {
    let pairs = arm.errors.iter().zip(&control.errors);
    pairs.map(|(arm, control)| arm - factor * control).collect()
}

/// V = n/(n−1) Σψ² over the buckets that either arm has a list in, and ν = min(n_T, n_C) − 1.
pub(super) fn spread_of_pair(arms: [&Linear; 2], psi: &[f64], scale: f64) -> Option<Spread> {
    let [arm, control] = arms;
    let pairs = arm.occupied.iter().zip(&control.occupied);
    let n = count(pairs.map(|(arm, control)| *arm || *control));
    Spread::new(variance(n, psi), arm.n().min(control.n()) - 1.0, scale)
}

/// max ψ²/Σψ²: one heavy user shows here.
pub(super) fn top_share(psi: &[f64]) -> Option<f64> {
    let squares = psi.iter().map(|psi| psi * psi);
    let top = squares.clone().fold(0.0, f64::max);
    let share = top / squares.sum::<f64>();
    share.is_finite().then_some(share)
}

fn variance(n: f64, errors: &[f64]) -> f64 {
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    n / (n - 1.0) * squares
}

fn count(which: impl Iterator<Item = bool>) -> f64 {
    which.filter(|is| *is).count() as f64
}
