//! Chance level of many arms: the lift that the best one may show if no arm differs.
//!
//! ```text
//! best of n arms that do not differ: z_n √V with Φ(z_n)^n = 0.975      an interval for the best of n: z(1 − α/2n)/z(1 − α/2) times as wide
//! ```
//! Arms count as independent. In fact they share a control, so their lifts move together and the largest is lower [Šidák 1967].
//! Both formulas are therefore conservative.

use super::normal::{isf, quantile_above};

/// Probability that the best of the arms stays below [`best_of`].
const SURE: f64 = 0.975;

/// Returns the lift below which the best of `n` equal arms stays in 39 of 40 cases, if each lift has this standard error.
pub fn best_of(n: usize, standard_error: f64) -> f64 {
    // 1 − Φ(z) = 1 − 0.975^(1/n).
    let ln_tail = (-(SURE.ln() / n.max(1) as f64).exp_m1()).ln();
    isf(ln_tail) * standard_error
}

/// Returns the factor by which an interval at `alpha` must be widened to hold for all of `n` arms (Bonferroni).
pub fn stretch(n: usize, alpha: f64) -> f64 {
    quantile_above(alpha / (2.0 * n.max(1) as f64)) / quantile_above(alpha / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_arm_needs_no_stretch() {
        assert!((best_of(1, 1.0) - 1.959_963_984_540_054).abs() < 1e-12);
        assert_eq!(stretch(1, 0.05), 1.0);
    }

    #[test]
    fn the_best_of_many_by_hand() {
        // 0.975^(1/300) = 0.99991561; Φ(3.7612) is that.
        assert!((best_of(300, 1.0) - 3.7612).abs() < 1e-3, "{}", best_of(300, 1.0));
        assert!((best_of(300, 0.1) - 0.1 * best_of(300, 1.0)).abs() < 1e-15);
        // z(1 − 0.0125/2) = 2.4977, z(1 − 0.05/2) = 1.9600.
        assert!((stretch(4, 0.05) - 1.2744).abs() < 1e-3, "{}", stretch(4, 0.05));
    }

    /// Best of 20, drawn 4,000 times: the expected share stays below.
    #[test]
    fn the_best_arm_stays_below_the_bound_at_the_expected_rate() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let bound = best_of(20, 1.0);
        let mut best = || {
            let arms = (0..20).map(|_| quantile_above(uniform()));
            arms.fold(f64::NEG_INFINITY, f64::max)
        };
        let below = (0..4000).filter(|_| best() <= bound).count();
        assert!((3860..=3940).contains(&below), "{below} of 4000");
    }
}
