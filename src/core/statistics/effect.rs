//! A difference between two arms with its spread: the input of every test and interval.

use std::cell::Cell;
use std::f64::consts::LN_2;

use serde::Serialize;

use super::student;

/// A variance over buckets, with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// V of the estimate itself, not of one bucket. Above 0.
    pub variance: f64,
    /// ν, at least 1.
    pub degrees: f64,
}

/// A difference between an arm and its control: Δ of ratios, ρ relative, or g of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    pub value: f64,
    /// V and ν of both arms together. V is not the sum of the two if arms share users.
    pub spread: Spread,
    /// Spread of the arm and of its control alone, in the unit of `value`, for the strict sequence.
    pub arms: [Spread; 2],
}

/// A range of values, both ends finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub lower: f64,
    pub upper: f64,
}

/// Error probability of an interval at one look. All metrics of an arm have the same degrees of freedom, so the last quantile is
/// cached.
#[derive(Debug, Clone)]
pub struct ErrorLevel {
    alpha: f64,
    /// Degrees of freedom and their t.
    last: Cell<Option<(f64, f64)>>,
}

impl ErrorLevel {
    /// Creates the level of intervals that hold with probability 1 − `alpha`.
    pub fn new(alpha: f64) -> ErrorLevel {
        ErrorLevel {
            alpha,
            last: Cell::new(None),
        }
    }

    /// Returns t_ν √V.
    pub fn half_width(&self, spread: &Spread) -> f64 {
        self.t(spread.degrees) * spread.error()
    }

    fn t(&self, degrees: f64) -> f64 {
        let known = self.last.get().filter(|(last, _)| *last == degrees);
        let t = known.map_or_else(|| student::quantile_above(0.5 * self.alpha, degrees), |(_, t)| t);
        self.last.set(Some((degrees, t)));
        t
    }
}

impl Spread {
    /// Returns None if the variance is 0, undefined or only rounding, which is tiny next to the square of `scale`.
    pub(super) fn new(variance: f64, degrees: f64, scale: f64) -> Option<Spread> {
        let rounding = (1e-13 * scale).powi(2);
        let is_spread = variance > rounding && variance.is_finite() && variance.is_normal() && degrees >= 1.0;
        is_spread.then_some(Spread { variance, degrees })
    }

    /// Returns √V.
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns t_ν √V, the half width of an interval that holds with probability 1 − `alpha` at one look.
    pub fn half_width(&self, alpha: f64) -> f64 {
        ErrorLevel::new(alpha).half_width(self)
    }

    /// Returns the spread of a multiple.
    pub(super) fn times(self, factor: f64) -> Spread {
        let variance = factor * factor * self.variance;
        Spread { variance, ..self }
    }
}

impl Effect {
    /// Returns T = value ÷ √V.
    pub fn t(&self) -> f64 {
        self.value / self.spread.error()
    }

    /// Returns the two-sided p of a test at one look that was fixed beforehand.
    pub fn p_at_one_look(&self) -> f64 {
        (-self.surprise_at_one_look()).exp()
    }

    /// Returns −ln p of the test at one look. Infinite beyond the range of floats.
    pub fn surprise_at_one_look(&self) -> f64 {
        -(LN_2 + student::ln_sf(self.t().abs(), self.spread.degrees)).min(0.0)
    }

    /// Returns the interval that holds with probability 1 − `alpha` at one look that was fixed beforehand.
    pub fn interval_at_one_look(&self, alpha: f64) -> Option<Interval> {
        Interval::around(self.value, self.spread.half_width(alpha))
    }
}

impl Interval {
    /// Returns value ± half width. None if an end is not finite.
    pub fn around(value: f64, half_width: f64) -> Option<Interval> {
        let [lower, upper] = [value - half_width, value + half_width];
        (lower.is_finite() && upper.is_finite()).then_some(Interval { lower, upper })
    }

    /// Reports whether both ends are on the same side of 0.
    pub fn excludes_zero(self) -> bool {
        self.lower > 0.0 || self.upper < 0.0
    }

    /// Returns the interval of the negative value.
    #[must_use]
    pub fn flipped(self) -> Interval {
        let [lower, upper] = [-self.upper, -self.lower];
        Interval { lower, upper }
    }

    /// Converts a difference of logarithms to a relative difference, e^g − 1. None if an end is not finite.
    pub fn exp_m1(self) -> Option<Interval> {
        let [lower, upper] = [self.lower.exp_m1(), self.upper.exp_m1()];
        // The lower end is at least −1, so only the upper one can overflow.
        upper.is_finite().then_some(Interval { lower, upper })
    }

    /// Returns the interval of the value plus `by`.
    #[must_use]
    pub fn shifted(self, by: f64) -> Interval {
        let [lower, upper] = [self.lower + by, self.upper + by];
        Interval { lower, upper }
    }

    /// Returns the part in [0, 1].
    #[must_use]
    pub fn within_one(self) -> Interval {
        let [lower, upper] = [self.lower.clamp(0.0, 1.0), self.upper.clamp(0.0, 1.0)];
        Interval { lower, upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_with_one_degree_of_freedom_by_hand() {
        let spread = Spread::new(4.0, 1.0, 1.0).expect("it is spread");
        let effect = Effect {
            value: 2.0,
            spread,
            arms: [spread; 2],
        };
        assert_eq!(effect.t(), 1.0);
        assert!((effect.p_at_one_look() - 0.5).abs() < 1e-14); // quartiles of Cauchy's distribution are ±1
        let interval = effect.interval_at_one_look(0.5).expect("it is finite");
        assert!((interval.lower - 0.0).abs() < 1e-13 && (interval.upper - 4.0).abs() < 1e-13);
    }

    #[test]
    fn rounding_noise_and_undefined_values_have_no_spread() {
        assert_eq!(Spread::new(0.0, 10.0, 0.0), None);
        assert_eq!(Spread::new(1e-33, 10.0, 0.25), None);
        assert_eq!(Spread::new(f64::NAN, 10.0, 1.0), None);
        assert_eq!(Spread::new(f64::INFINITY, 10.0, 1.0), None);
        assert_eq!(Spread::new(1.0, 0.0, 1.0), None);
        assert_eq!(Interval::around(0.0, f64::INFINITY), None);
        let wide = Interval {
            lower: -1.0,
            upper: 1e4,
        };
        assert_eq!(wide.exp_m1(), None);
    }

    #[test]
    fn an_interval_can_be_flipped_and_cut() {
        let interval = Interval {
            lower: -0.25,
            upper: 1.5,
        };
        assert_eq!(
            interval.flipped(),
            Interval {
                lower: -1.5,
                upper: 0.25
            }
        );
        assert_eq!(
            interval.within_one(),
            Interval {
                lower: 0.0,
                upper: 1.0
            }
        );
    }
}
