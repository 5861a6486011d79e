//! One arm's ratio of sums and its interval, from sums by user bucket.
//!
//! R = ΣC_b/ΣD_b; e_b = (c_b − R d_b)/ΣD; V = n/(n−1) Σ e_b²; R ± t_{n−1} √V, where n counts buckets with a list.

use super::effect::{ErrorLevel, Interval, Spread};
use super::linear::{Linear, Occupied};
use super::sums;
use crate::metrics::Parts;

/// Sums of one arm in one epoch or one window, by user bucket. All columns have one length.
#[derive(Debug, Clone, Copy)]
pub struct RatioSums<'a> {
    /// Served lists.
    pub lists: &'a [f64],
    pub numerators: &'a [f64],
    pub denominators: &'a [f64],
}

/// A ratio of sums and its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EstimatedRatio {
    pub value: f64,
    pub parts: Parts,
    /// Spread over buckets. None if fewer than two have a list, or they do not differ.
    pub spread: Option<Spread>,
    /// n, the buckets with a list.
    pub occupied: f64,
}

/// Occupied buckets below which an interval covers too little.
const MIN_OCCUPIED: f64 = 30.0;
/// Lists with a click below which there is no interval, if the numerator counts clicks.
const MIN_HITS: f64 = 10.0;

/// Properties of a metric that determine its interval in one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioShape {
    /// Lists with a click, if the numerator counts clicks. Below 10 there is no interval.
    pub hits: Option<f64>,
    /// True if the metric lies in [0, 1].
    pub is_share: bool,
}

/// Computes the ratio of an arm. None if its denominator is 0.
pub fn ratio(sums: RatioSums) -> Option<EstimatedRatio> {
    ratios(sums.lists, &[[sums.numerators, sums.denominators]]).pop()?
}

/// Computes the ratios of an arm in several metrics, each given by its numerators and denominators.
pub fn ratios(lists: &[f64], terms: &[[&[f64]; 2]]) -> Vec<Option<EstimatedRatio>> {
    let parts = RatioPart::all(lists, terms).into_iter();
    parts.map(|part| Some(part?.ratio())).collect()
}

impl EstimatedRatio {
    /// Returns the pointwise interval of the arm over the time span of the sums, if at least 30 buckets are occupied.
    pub fn interval(&self, shape: RatioShape, level: &ErrorLevel) -> Option<Interval> {
        let has_hits = shape.hits.is_none_or(|hits| hits >= MIN_HITS);
        if self.occupied < MIN_OCCUPIED || !has_hits {
            return None;
        }
        let interval = Interval::around(self.value, level.half_width(&self.spread?))?;
        Some(if shape.is_share {
            interval.within_one()
        } else {
            interval
        })
    }
}

/// The ratio of an arm in one epoch, with its parts.
#[derive(Debug, Clone)]
pub(super) struct RatioPart<'a> {
    /// Numerators and denominators.
    pub terms: [&'a [f64]; 2],
    /// Sum of each term.
    pub sums: [f64; 2],
    pub n_lists: f64,
    pub linear: Linear,
}

impl<'a> RatioPart<'a> {
    pub fn new(sums: RatioSums<'a>) -> Option<RatioPart<'a>> {
        RatioPart::all(sums.lists, &[[sums.numerators, sums.denominators]]).pop()?
    }

    pub fn parts(&self) -> Parts {
        let [numerator, denominator] = self.sums;
        Parts {
            numerator,
            denominator,
        }
    }

    pub fn ratio(&self) -> EstimatedRatio {
        EstimatedRatio {
            value: self.linear.value,
            parts: self.parts(),
            spread: self.linear.spread(self.linear.value.abs()),
            occupied: self.linear.n(),
        }
    }

    /// Prepares several metrics. None if the denominator is 0.
    pub fn all(lists: &'a [f64], terms: &[[&'a [f64]; 2]]) -> Vec<Option<RatioPart<'a>>> {
        let columns: Vec<&[f64]> = [lists]
            .into_iter()
            .chain(terms.iter().copied().flatten())
            .collect();
        let sums = sums::sums(&columns);
        let (n_lists, sums) = (sums[0], sums[1..].chunks_exact(2).map(|sums| [sums[0], sums[1]]));
        let is_defined =
            |[numerator, denominator]: [f64; 2]| denominator > 0.0 && (numerator / denominator).is_finite();
        let (defined, estimates): (Vec<_>, Vec<_>) = terms
            .iter()
            .zip(sums.clone())
            .filter(|(_, sums)| is_defined(*sums))
            .map(|(terms, sums)| ((*terms, sums), estimate(*terms, sums)))
            .unzip();
        let linears = Linear::all(estimates, &occupied(lists));
        // `linears` has the defined metrics only. They are put back into their places below.
        let mut parts = defined
            .into_iter()
            .zip(linears)
            .map(|((terms, sums), linear)| RatioPart {
                terms,
                sums,
                n_lists,
                linear,
            });
        sums.map(|sums| is_defined(sums).then(|| parts.next()).flatten())
            .collect()
    }
}

/// Computes R and e_b.
fn estimate([numerators, denominators]: [&[f64]; 2], [numerator, denominator]: [f64; 2]) -> (f64, Vec<f64>) {
    let value = numerator / denominator;
    let terms = numerators.iter().zip(denominators);
    let errors = terms.map(|(c, d)| (c - value * d) / denominator);
    (value, errors.collect())
}

/// Returns the buckets with a list.
pub(super) fn occupied(lists: &[f64]) -> Occupied {
    Occupied::new(lists.iter().map(|lists| *lists > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R = 3/12; errors (1 − 1)/12 and (2 − 2)/12 … with c = 2, 1, 0: (2 − 1, 1 − 1, 0 − 1)/12.
    #[test]
    fn three_buckets_by_hand() {
        let found = ratio(sums(&[4.0, 4.0, 4.0, 0.0], &[2.0, 1.0, 0.0, 0.0])).expect("it is defined");
        assert_eq!(found.value, 0.25);
        assert_eq!([found.parts.numerator, found.parts.denominator], [3.0, 12.0]);
        assert_eq!(found.occupied, 3.0);
        let spread = found.spread.expect("it is spread");
        assert!((spread.variance - 1.5 * 2.0 / 144.0).abs() < 1e-16);
        assert_eq!(spread.degrees, 2.0);
    }

    #[test]
    fn an_interval_needs_thirty_buckets_and_ten_hits_and_ends_at_one() {
        let lists = |n: usize| (0..n).map(|b| 2.0 + (b % 3) as f64).collect::<Vec<_>>();
        let hits = |n: usize| (0..n).map(|b| 1.9 + (b % 3) as f64 * 1.05).collect::<Vec<_>>();
        let found = |n: usize, hit_lists, is_share| {
            let shape = RatioShape {
                hits: hit_lists,
                is_share,
            };
            let ratio = ratio(sums(&lists(n), &hits(n))).expect("it is defined");
            ratio.interval(shape, &ErrorLevel::new(1e-5))
        };
        assert_eq!(found(29, None, true), None);
        assert_eq!(found(30, Some(9.0), true), None);
        let cut = found(30, Some(10.0), true).expect("enough of both");
        let whole = found(30, None, false).expect("enough buckets");
        assert!(whole.upper > 1.0);
        assert_eq!(cut.upper, 1.0);
        assert_eq!(cut.lower, whole.lower);
    }

    #[test]
    fn nothing_is_shown_without_a_denominator_or_a_difference() {
        assert_eq!(ratio(sums(&[0.0, 0.0], &[0.0, 0.0])), None);
        let same = ratio(sums(&[3.0, 3.0, 6.0], &[0.3, 0.3, 0.6])).expect("it is defined");
        assert_eq!(same.spread, None);
    }

    fn sums<'a>(lists: &'a [f64], numerators: &'a [f64]) -> RatioSums<'a> {
        RatioSums {
            lists,
            numerators,
            denominators: lists,
        }
    }
}
