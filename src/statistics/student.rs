//! Student's t by its upper tail, in log space: at 255 degrees of freedom 1e-308 is passed at t = 40.
//!
//! The tail is half a regularised incomplete beta function, I_x(ν/2, ½) with x = ν/(ν + t²): DLMF 8.17 and its continued
//! fraction 8.17.22. Own code, for no crate reaches: statrs, puruspe and special have the function to 1e-11, but not its
//! logarithm (0 at t = 300), and the quantile of statrs 0.19 is 5e-3 off at 8 standard errors.

use std::f64::consts::{LN_2, PI};

use super::normal::{self, N_STEPS};

/// ln P(t_ν > t), `degrees` = ν > 0.
pub fn ln_sf(t: f64, degrees: f64) -> f64 {
    if t < 0.0 {
        return (-ln_sf(-t, degrees).exp()).ln_1p();
    }
    let (a, b) = (0.5 * degrees, 0.5);
    let ratio = t * t / degrees;
    let x = 1.0 / (1.0 + ratio);
    let y = if ratio > 1.0 { 1.0 - x } else { ratio * x };
    let [ln_x, ln_y] = [-ratio.ln_1p(), y.ln()];
    if x <= (a + 1.0) / (a + b + 2.0) {
        ln_beta(a, b, x, [ln_x, ln_y]) - LN_2
    } else {
        (-ln_beta(b, a, y, [ln_y, ln_x]).exp()).ln_1p() - LN_2
    }
}

/// The t with ln P(t_ν > t) = `ln_tail` < 0. Infinite where an f64 does not reach it.
pub fn isf(ln_tail: f64, degrees: f64) -> f64 {
    if ln_tail > -LN_2 {
        return -isf((-ln_tail.exp_m1()).ln(), degrees);
    }
    let z = normal::isf(ln_tail);
    if z <= 0.0 {
        return 0.0;
    }
    // By ln t the tail is log-concave, so Newton's steps pass the root once at most.
    let mut ln_t = nearby(z, degrees).ln();
    for _ in 0..N_STEPS {
        let t = ln_t.exp();
        let ln_here = ln_sf(t, degrees);
        let step = (ln_here - ln_tail) / (ln_density(t, degrees) + ln_t - ln_here).exp();
        ln_t += step;
        if step.is_nan() || step.abs() <= f64::EPSILON * ln_t.abs().max(1.0) {
            break;
        }
    }
    if ln_t.is_nan() { f64::INFINITY } else { ln_t.exp() }
}

/// About where the t lies whose tail is that of z > 0: Cornish and Fisher's expansion, Abramowitz and Stegun 26.7.5, where it is
/// any good. Looks spend most of their time here, and from z alone it takes twice as many steps.
fn nearby(z: f64, degrees: f64) -> f64 {
    let square = z * z;
    if square > degrees {
        return z;
    }
    let first = (square + 1.0) / 4.0;
    let second = ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    z * (1.0 + (first + second / degrees) / degrees)
}

/// The t that a share `tail` of the distribution lies beyond, 0 < `tail` < 1.
pub fn quantile_above(tail: f64, degrees: f64) -> f64 {
    isf(tail.ln(), degrees)
}

fn ln_density(t: f64, degrees: f64) -> f64 {
    let half = 0.5 * degrees;
    let ln_constant = libm::lgamma(half + 0.5) - libm::lgamma(half) - 0.5 * (degrees * PI).ln();
    ln_constant - (half + 0.5) * (t * t / degrees).ln_1p()
}

/// ln I_x(a, b) for x ≤ (a + 1)/(a + b + 2), given ln x and ln (1 − x).
fn ln_beta(a: f64, b: f64, x: f64, [ln_x, ln_y]: [f64; 2]) -> f64 {
    let ln_complete = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    a * ln_x + b * ln_y - ln_complete - a.ln() + fraction(a, b, x).ln()
}

/// The continued fraction of DLMF 8.17.22 by Lentz's method, here 1/(1 + d₁/(1 + d₂/(1 + …))).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut d = 1.0 / (1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for m in 1..N_TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / (1.0 + term * d);
            c = 1.0 + term / c;
            change *= c * d;
        }
        value *= change;
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

/// Some 10 to 60 are needed for up to thousands of degrees of freedom.
const N_TERMS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// t₁ is Cauchy's distribution, and t₂ has a closed form.
    #[test]
    fn tails_of_one_and_two_degrees_are_in_closed_form() {
        for t in [1e-6, 0.1, 1.0, 3.0, 1e3, 1e6] {
            check(ln_sf(t, 1.0), (1.0_f64.atan2(t) / PI).ln());
            let root = (2.0 + t * t).sqrt();
            check(ln_sf(t, 2.0), (1.0 / (root * (root + t))).ln());
        }
    }

    #[test]
    fn a_quantile_is_where_its_tail_is() {
        for degrees in [1.0, 2.0, 29.0, 255.0, 5000.0] {
            for t in [-3.0, 0.0, 0.01, 1.0, 1.7, 4.0, 60.0, 1e6] {
                check(isf(ln_sf(t, degrees), degrees), t);
            }
        }
    }

    #[test]
    fn with_many_degrees_it_is_the_normal_distribution() {
        assert!((ln_sf(3.0, 1e7) - normal::ln_sf(3.0)).abs() < 1e-5);
    }

    #[test]
    fn tails_beyond_all_floats_are_infinite_and_no_error() {
        assert_eq!(isf(-50_000.0, 29.0), f64::INFINITY);
        assert_eq!(ln_sf(1e200, 29.0), f64::NEG_INFINITY);
    }

    #[track_caller]
    fn check(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() <= 1e-11 * expected.abs().max(1.0),
            "{value}, not {expected}"
        );
    }
}
