//! Student's t by the logarithm of its upper tail: with 255 degrees of freedom the tail falls below 1e-308 at t = 40.
//!
//! The tail is half a regularized incomplete beta function, I_x(ν/2, ½) with x = ν/(ν + t²): DLMF 8.17 and its continued fraction
//! 8.17.22. The code is our own because no crate suffices: statrs, puruspe and special have the function to 1e-11, but not its
//! logarithm (0 at t = 300), and the quantile of statrs 0.19 is 5e-3 off at 8 standard errors.

use std::f64::consts::{LN_2, PI};

use super::normal::{self, N_STEPS};

/// Computes ln P(t_ν > t) for `degrees` = ν > 0.
pub fn ln_sf(t: f64, degrees: f64) -> f64 {
    Student::new(degrees).ln_sf(t)
}

/// Finds the t with ln P(t_ν > t) = `ln_tail` < 0. Infinite beyond the range of an f64.
pub fn isf(ln_tail: f64, degrees: f64) -> f64 {
    if ln_tail > -LN_2 {
        return -isf((-ln_tail.exp_m1()).ln(), degrees);
    }
    Student::new(degrees).isf(normal::isf(ln_tail), ln_tail)
}

/// Finds the t whose tail equals the normal tail of `z` ≥ 0. Infinite beyond the range of an f64.
pub fn at_normal(z: f64, degrees: f64) -> f64 {
    Student::new(degrees).isf(z, normal::ln_sf(z))
}

/// Finds the z whose normal tail equals the tail of `t` ≥ 0.
pub fn to_normal(t: f64, degrees: f64) -> f64 {
    // Wallace, Bounds on normal approximations to Student's and the chi-square distributions, Ann. Math. Stat. 30, 1959.
    let nearby = (degrees * (t * t / degrees).ln_1p()).sqrt() * (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
    normal::isf_near(ln_sf(t, degrees), nearby)
}

/// Finds the t with P(t_ν > t) = `tail`, 0 < `tail` < 1.
pub fn quantile_above(tail: f64, degrees: f64) -> f64 {
    isf(tail.ln(), degrees)
}

/// Distribution with some degrees of freedom.
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
        // y = 1 − x without cancellation.
        let y = if ratio > 1.0 { 1.0 - x } else { ratio * x };
        let [ln_x, ln_y] = [-ratio.ln_1p(), y.ln()];
        let ends = a * ln_x + b * ln_y - self.ln_complete;
        // The fraction converges fast on this side, and the one of the complement on the other.
        if x <= (a + 1.0) / (a + b + 2.0) {
            ends - a.ln() + fraction(a, b, x).ln() - LN_2
        } else {
            (-(ends - b.ln()).exp() * fraction(b, a, y)).ln_1p() - LN_2
        }
    }

    /// Finds the t > 0 with this tail, which is also the normal tail of z.
    fn isf(&self, z: f64, ln_tail: f64) -> f64 {
        if z <= 0.0 {
            return 0.0;
        }
        // In ln t the tail is log-concave, so steps overshoot the root at most once.
        let mut ln_t = nearby(z, self.degrees).ln();
        for _ in 0..N_STEPS {
            let t = ln_t.exp();
            let ln_here = self.ln_sf(t);
            let hazard = (self.ln_density(t) + ln_t - ln_here).exp();
            let newton = (ln_here - ln_tail) / hazard;
            // Halley's method also uses the change of the hazard.
            let bend = 1.0 + hazard - (self.degrees + 1.0) / (1.0 + self.degrees / (t * t));
            let halley = newton / (1.0 + 0.5 * newton * bend);
            // Far from the root Halley's step can go astray, so Newton's is used.
            let is_near = (newton * bend).abs() < 0.5;
            ln_t += if is_near { halley } else { newton };
            // The remaining error is about the cube of a step.
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

/// Approximates the t whose tail equals the normal tail of z > 0: Cornish and Fisher's expansion, Abramowitz and Stegun 26.7.5,
/// or z itself if the expansion is useless.
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

/// Computes ln B(a, ½) = ½ ln π − ln Γ(a + ½)/Γ(a), by DLMF 5.11.13 if that is exact to all digits.
fn ln_complete_beta(a: f64) -> f64 {
    if a < 20.0 {
        return libm::lgamma(a) + 0.5 * PI.ln() - libm::lgamma(a + 0.5);
    }
    let w = 1.0 / (a * a);
    let series = (1.0 / 8.0 - w * (1.0 / 192.0 - w * (1.0 / 640.0 - w * (17.0 / 14336.0)))) / a;
    0.5 * (PI / a).ln() + series
}

/// Computes the continued fraction of DLMF 8.17.22 as 1/(1 + d₁/(1 + d₂/(1 + …))), by the recurrence of its numerators and
/// denominators, so that no division waits for the one before.
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
        // Compares above/below with the quotient before it, without dividing.
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

/// Limit below which numerators and denominators are scaled up, because they shrink from term to term.
const TINY: f64 = 1e-100;
/// Step whose cube is below the precision of an f64.
const CUBE_ROOT_OF_EPSILON: f64 = 6e-6;

/// Limit on the terms. About 10 to 60 are needed for up to thousands of degrees of freedom.
const N_TERMS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t with 1 degree is Cauchy's distribution, and with 2 degrees it has a closed form.
    #[test]
    fn tails_of_one_and_two_degrees_match_closed_forms() {
        for t in [1e-6, 0.1, 1.0, 3.0, 1e3, 1e6] {
            check(ln_sf(t, 1.0), (1.0_f64.atan2(t) / PI).ln());
            let root = (2.0 + t * t).sqrt();
            check(ln_sf(t, 2.0), (1.0 / (root * (root + t))).ln());
        }
    }

    #[test]
    fn quantiles_invert_tails() {
        for degrees in [1.0, 2.0, 29.0, 255.0, 5000.0] {
            for t in [-3.0, 0.0, 0.01, 1.0, 1.7, 4.0, 60.0, 1e6] {
                check(isf(ln_sf(t, degrees), degrees), t);
            }
        }
    }

    #[test]
    fn mapping_to_and_from_the_normal_distribution_keeps_the_tail() {
        for degrees in [1.0, 29.0, 255.0, 5000.0] {
            for z in [0.0, 1e-3, 1.0, 1.96, 4.4, 12.0] {
                check(to_normal(at_normal(z, degrees), degrees), z);
                check(ln_sf(at_normal(z, degrees), degrees), normal::ln_sf(z));
            }
        }
    }

    /// The series meets the gamma functions at the change-over.
    #[test]
    fn the_complete_beta_function_has_no_step() {
        for a in [20.0, 33.5, 127.5] {
            let expected = libm::lgamma(a) + 0.5 * PI.ln() - libm::lgamma(a + 0.5);
            assert!(
                (ln_complete_beta(a) - expected).abs() < 1e-13 * libm::lgamma(a),
                "{a}"
            );
        }
    }

    #[test]
    fn many_degrees_approach_the_normal_distribution() {
        assert!((ln_sf(3.0, 1e7) - normal::ln_sf(3.0)).abs() < 1e-5);
    }

    #[test]
    fn tails_beyond_floats_are_infinite() {
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
