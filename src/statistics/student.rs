//! Student's t by its upper tail, in log space: at 255 degrees of freedom 1e-308 is passed at t = 40.
//!
//! The tail is half a regularised incomplete beta function, I_x(ν/2, ½) with x = ν/(ν + t²): DLMF 8.17 and its continued
//! fraction 8.17.22. Own code, for no crate reaches: statrs, puruspe and special have the function to 1e-11, but not its
//! logarithm (0 at t = 300), and the quantile of statrs 0.19 is 5e-3 off at 8 standard errors.

use std::f64::consts::{LN_2, PI};

use super::normal::{self, N_STEPS};

/// ln P(t_ν > t), `degrees` = ν > 0.
pub fn ln_sf(t: f64, degrees: f64) -> f64 {
    Student::new(degrees).ln_sf(t)
}

/// The t with ln P(t_ν > t) = `ln_tail` < 0. Infinite where an f64 does not reach it.
pub fn isf(ln_tail: f64, degrees: f64) -> f64 {
    if ln_tail > -LN_2 {
        return -isf((-ln_tail.exp_m1()).ln(), degrees);
    }
    Student::new(degrees).isf(normal::isf(ln_tail), ln_tail)
}

/// The t that has as much of its distribution beyond it as `z` ≥ 0 has of the normal one. Infinite where an f64 does not reach it.
pub fn at_normal(z: f64, degrees: f64) -> f64 {
    Student::new(degrees).isf(z, normal::ln_sf(z))
}

/// The z that has as much of the normal distribution beyond it as `t` ≥ 0 has of its own.
pub fn to_normal(t: f64, degrees: f64) -> f64 {
    // Wallace, Bounds on normal approximations to Student's and the chi-square distributions, Ann. Math. Stat. 30, 1959.
    let nearby = (degrees * (t * t / degrees).ln_1p()).sqrt() * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
    normal::isf_near(ln_sf(t, degrees), nearby)
}

/// The t that a share `tail` of the distribution lies beyond, 0 < `tail` < 1.
pub fn quantile_above(tail: f64, degrees: f64) -> f64 {
    isf(tail.ln(), degrees)
}

/// The distribution of some degrees of freedom.
struct Student {
    degrees: f64,
    /// ln B(ν/2, ½).
    ln_complete: f64,
}

impl Student {
    fn new(degrees: f64) -> Student {
        Student {
            degrees,
            ln_complete: ln_complete_beta(0.5 * degrees),
        }
    }

    fn ln_sf(&self, t: f64) -> f64 {
        if t < 0.0 {
            return (-self.ln_sf(-t).exp()).ln_1p();
        }
        let (a, b) = (0.5 * self.degrees, 0.5);
        let ratio = t * t / self.degrees;
        let x = 1.0 / (1.0 + ratio);
        let y = if ratio > 1.0 { 1.0 - x } else { ratio * x };
        let [ln_x, ln_y] = [-ratio.ln_1p(), y.ln()];
        let ends = a * ln_x + b * ln_y - self.ln_complete;
        if x <= (a + 1.0) / (a + b + 2.0) {
            ends - a.ln() + fraction(a, b, x).ln() - LN_2
        } else {
            (-(ends - b.ln()).exp() * fraction(b, a, y)).ln_1p() - LN_2
        }
    }

    /// The t > 0 with that tail, which is that of z in the normal distribution.
    fn isf(&self, z: f64, ln_tail: f64) -> f64 {
        if z <= 0.0 {
            return 0.0;
        }
        // By ln t the tail is log-concave, so steps pass the root once at most.
        let mut ln_t = nearby(z, self.degrees).ln();
        for _ in 0..N_STEPS {
            let t = ln_t.exp();
            let ln_here = self.ln_sf(t);
            let hazard = (self.ln_density(t) + ln_t - ln_here).exp();
            let newton = (ln_here - ln_tail) / hazard;
            // Halley's method: how the hazard changes counts too.
            let bend = 1.0 + hazard - (self.degrees + 1.0) / (1.0 + self.degrees / (t * t));
            let halley = newton / (1.0 + 0.5 * newton * bend);
            let is_near = (newton * bend).abs() < 0.5;
            ln_t += if is_near { halley } else { newton };
            // What is left is about the cube of a step.
            let left = newton * bend.abs().max(1.0);
            if newton.is_nan() || left.abs() <= CUBE_ROOT_OF_EPSILON {
                break;
            }
        }
        if ln_t.is_nan() { f64::INFINITY } else { ln_t.exp() }
    }

    fn ln_density(&self, t: f64) -> f64 {
        let degrees = self.degrees;
        -self.ln_complete - 0.5 * degrees.ln() - 0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p()
    }
}

/// About where the t lies whose tail is that of z > 0: Cornish and Fisher's expansion, Abramowitz and Stegun 26.7.5, where it is
/// any good.
fn nearby(z: f64, degrees: f64) -> f64 {
    let w = z * z;
    if w > degrees {
        return z;
    }
    let terms = [
        (w + 1.0) / 4.0,
        ((5.0 * w + 16.0) * w + 3.0) / 96.0,
        (((3.0 * w + 19.0) * w + 17.0) * w - 15.0) / 384.0,
        ((((79.0 * w + 776.0) * w + 1482.0) * w - 1920.0) * w - 945.0) / 92160.0,
    ];
    z * (1.0 + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees))
}

/// ln B(a, ½) = ½ ln π − ln Γ(a + ½)/Γ(a): DLMF 5.11.13 where it has all digits.
fn ln_complete_beta(a: f64) -> f64 {
    if a < 20.0 {
        return libm::lgamma(a) + 0.5 * PI.ln() - libm::lgamma(a + 0.5);
    }
    let w = 1.0 / (a * a);
    let series = (1.0 / 8.0 - w * (1.0 / 192.0 - w * (1.0 / 640.0 - w * (17.0 / 14336.0)))) / a;
    0.5 * (PI / a).ln() + series
}

/// The continued fraction of DLMF 8.17.22, here 1/(1 + d₁/(1 + d₂/(1 + …))), by the recurrence of its numerators and
/// denominators: no division waits for the one before.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let first = -(a + b) * x / (a + 1.0);
    let [mut above, mut above_before] = [1.0, 1.0];
    let [mut below, mut below_before] = [1.0 + first, 1.0];
    for m in 1..N_TERMS {
        let m = f64::from(m);
        let n = a + 2.0 * m;
        let shared = x / ((n - 1.0) * n * (n + 1.0));
        let even = m * (b - m) * (n + 1.0) * shared;
        let odd = -(a + m) * (a + b + m) * (n - 1.0) * shared;
        let [last_above, last_below] = [above, below];
        for term in [even, odd] {
            (above, above_before) = (above + term * above_before, above);
            (below, below_before) = (below + term * below_before, below);
        }
        let [now, last] = [above * last_below, last_above * below];
        if (now - last).abs() <= f64::EPSILON * now.abs() {
            break;
        }
        if below.abs() < TINY {
            for sum in [&mut above, &mut above_before, &mut below, &mut below_before] {
                *sum /= TINY;
            }
        }
    }
    above / below
}

/// Numerators and denominators shrink from term to term; beyond this they are scaled.
const TINY: f64 = 1e-100;
/// A step of which all digits of an f64 are left.
const CUBE_ROOT_OF_EPSILON: f64 = 6e-6;

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
    fn the_same_tail_of_the_normal_distribution_is_as_far_both_ways() {
        for degrees in [1.0, 29.0, 255.0, 5000.0] {
            for z in [0.0, 1e-3, 1.0, 1.96, 4.4, 12.0] {
                check(to_normal(at_normal(z, degrees), degrees), z);
                check(ln_sf(at_normal(z, degrees), degrees), normal::ln_sf(z));
            }
        }
    }

    /// The series meets the gamma functions where it takes over.
    #[test]
    fn the_complete_function_has_no_step() {
        for a in [20.0, 33.5, 127.5] {
            let expected = libm::lgamma(a) + 0.5 * PI.ln() - libm::lgamma(a + 0.5);
            assert!(
                (ln_complete_beta(a) - expected).abs() < 1e-13 * libm::lgamma(a),
                "{a}"
            );
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
