//! The normal distribution by the logarithm of its upper tail, so that a tail beyond 38 standard errors is not 0.
//!
//! erfc is from libm, exact to an ulp. No crate has the logarithm of the tail or its inverse once the tail underflows.

use std::f64::consts::{LN_2, PI, SQRT_2};

/// Deviate from which erfc loses digits to underflow, while the asymptotic series is exact to all digits.
const FAR: f64 = 30.0;

/// Computes ln P(Z > z).
pub fn ln_sf(z: f64) -> f64 {
    match z {
        z if z < 0.0 => (-0.5 * libm::erfc(-z / SQRT_2)).ln_1p(),
        z if z < FAR => (0.5 * libm::erfc(z / SQRT_2)).ln(),
        z => ln_density(z) - z.ln() + mills(1.0 / (z * z)).ln_1p(),
    }
}

/// Computes ln Φ(z).
pub fn ln_cdf(z: f64) -> f64 {
    ln_sf(-z)
}

/// Finds the z with ln P(Z > z) = `ln_tail` < 0.
pub fn isf(ln_tail: f64) -> f64 {
    // A tail above ½ belongs to a negative z, whose other tail is the small one.
    if ln_tail > -LN_2 {
        return -isf((-ln_tail.exp_m1()).ln());
    }
    // P(Z > z) ≤ ½ exp(−z²/2), so this start is not below the root.
    isf_near(ln_tail, (-2.0 * (ln_tail + LN_2)).sqrt())
}

/// Finds the z ≥ 0 with this tail, starting near it.
pub(super) fn isf_near(ln_tail: f64, nearby: f64) -> f64 {
    // ln P(Z > z) is concave, so steps overshoot the root at most once.
    let mut z = nearby;
    for _ in 0..N_STEPS {
        let ln_here = ln_sf(z);
        let hazard = (ln_density(z) - ln_here).exp();
        let newton = (ln_here - ln_tail) / hazard;
        // Halley's method also uses the change of the hazard.
        let bend = hazard - z;
        z += newton / (1.0 + (0.5 * newton * bend).max(-0.5));
        // The remaining error is about the cube of a step.
        if newton.is_nan() || newton.abs() <= CUBE_ROOT_OF_EPSILON {
            break;
        }
    }
    z
}

/// Step whose cube is below the precision of an f64.
const CUBE_ROOT_OF_EPSILON: f64 = 6e-6;

/// Finds the z with P(Z > z) = `tail`, 0 < `tail` < 1.
pub fn quantile_above(tail: f64) -> f64 {
    isf(tail.ln())
}

/// Limit on the steps. Newton's method needs about 6 to 10.
pub(super) const N_STEPS: usize = 60;

fn ln_density(z: f64) -> f64 {
    -0.5 * (z * z + (2.0 * PI).ln())
}

/// Computes P(Z > z) z ÷ density − 1 from w = z⁻²: Abramowitz and Stegun 26.2.12.
fn mills(w: f64) -> f64 {
    -w * (1.0 - 3.0 * w * (1.0 - 5.0 * w * (1.0 - 7.0 * w * (1.0 - 9.0 * w))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from Laplace's continued fraction with 40 digits.
    #[test]
    fn tails_equal_published_tables() {
        check(ln_sf(0.0), -std::f64::consts::LN_2);
        check(ln_sf(1.959963984540054), 0.025_f64.ln());
        check(ln_sf(10.0), -53.231_285_150_512_47);
        check(ln_sf(50.0), -1_254.831_361_139_419_9);
        check(ln_sf(30.0), -454.321_243_956_343_2);
        check(ln_cdf(1.959963984540054), 0.975_f64.ln());
    }

    #[test]
    fn both_formulas_for_the_tail_meet() {
        let series = ln_density(FAR) - FAR.ln() + mills(1.0 / (FAR * FAR)).ln_1p();
        check(series, (0.5 * libm::erfc(FAR / SQRT_2)).ln());
    }

    #[test]
    fn quantiles_invert_tails() {
        for z in [-8.0, -1.0, 0.0, 1e-3, 0.5, 3.0, 8.0, 29.99, 30.01, 1e3, 1e9] {
            check(isf(ln_sf(z)), z);
        }
    }

    #[track_caller]
    fn check(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() <= 1e-12 * expected.abs().max(1.0),
            "{value}, not {expected}"
        );
    }
}
