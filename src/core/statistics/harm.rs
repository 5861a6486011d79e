//! Test of harm: a one-sided test that holds at every look, under every validity.
//!
//! ```text
//! ln E_h = ln 2 − ½ ln(1 + x) + ½ · x/(1 + x) · z_h² + ln Φ(z_h √(x/(1 + x))) ;  p_harm = min(1, 1/max E_h)
//! ```
//! It is the mixture of the sequence, restricted to the half on the side of harm (Howard et al. 2021, section 3.2).

use std::f64::consts::LN_2;

use serde::Serialize;

use super::effect::Effect;
use super::root::root;
use super::sequence::Evidence;
use super::{normal, sequence, student};
use crate::rounding::percentage;

/// One-sided bound of a harmful lift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HarmBound {
    /// Least harmful lift that the test of harm does not reject. Not flipped if lower is better.
    pub bound: f64,
    /// Confidence level, 1 − α/M.
    pub level: f64,
}

/// Tolerance of the boundary, in standard errors.
const TOLERANCE: f64 = 1e-9;

impl HarmBound {
    /// Formats the bound: "at least 0.4% worse (one-sided 97.5%)".
    pub fn in_words(self) -> String {
        let percent = 100.0 * self.level;
        let digits = usize::from((percent - percent.round()).abs() >= 0.05);
        format!(
            "at least {} worse (one-sided {})",
            percentage(self.bound.abs(), 1),
            percentage(self.level, digits)
        )
    }
}

/// Computes ln E_h at x = τ²/V for a harm of `z` standard errors, which is −z* if higher is better.
pub fn ln_e(x: f64, z: f64) -> f64 {
    LN_2 + sequence::ln_e(x, z) + normal::ln_cdf(z * (x / (1.0 + x)).sqrt())
}

/// Computes ln E_h of this look. None if it is not finite.
pub fn ln_e_now(evidence: Evidence, is_lower_better: bool) -> Option<f64> {
    let z = if is_lower_better { evidence.z } else { -evidence.z };
    sequence::finite(ln_e(evidence.x, z))
}

/// Computes −ln p of the one-sided t test at a single look that was fixed beforehand.
pub fn surprise_at_one_look(better: &Effect) -> Option<f64> {
    sequence::finite(-student::ln_sf(-better.t(), better.spread.degrees))
}

/// Computes the distance between an effect and its one-sided bound in standard errors: the t with ln E_h = −ln α.
pub fn boundary_t(x: f64, alpha: f64, degrees: f64) -> f64 {
    let excess = |z: f64| ln_e(x, z) + alpha.ln();
    // The two-sided boundary lies beyond, because E_h is at least E on the side of harm.
    let beyond = sequence::boundary(x, alpha.ln());
    student::at_normal(root(excess, [0.0, beyond], TOLERANCE), degrees)
}

/// Returns the α of one of an arm's `n_metrics` primaries and guardrails, by Bonferroni.
pub fn alpha_of_one(n_metrics: usize, alpha: f64) -> f64 {
    alpha / n_metrics.max(1) as f64
}

/// Reports whether this p is harm in one of an arm's `n_metrics` primaries and guardrails, by Bonferroni.
pub fn is_harm(p: f64, n_metrics: usize, alpha: f64) -> bool {
    n_metrics as f64 * p <= alpha
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_difference_by_hand() {
        // z = 0: ln 2 − ½ ln(1 + x) + ln ½.
        assert!((ln_e(3.0, 0.0) + LN_2).abs() < 1e-15);
        assert!(is_harm(0.0125, 4, 0.05) && !is_harm(0.0126, 4, 0.05));
    }

    proptest! {
        #[test]
        fn the_boundary_is_where_the_evidence_reaches_one_over_alpha(x in 0.01_f64..100.0, alpha in 1e-5_f64..0.5) {
            // So many degrees of freedom that t is normal.
            let z = sequence::z_star(boundary_t(x, alpha, 1e9), 1e9);
            prop_assert!((ln_e(x, z) + alpha.ln()).abs() < 1e-5, "{z}");
            prop_assert!(z < sequence::boundary(x, alpha.ln()));
        }

        /// The one-sided mixtures add up to twice the two-sided one.
        #[test]
        fn both_sides_add_up_to_the_sequence(x in 0.01_f64..100.0, z in -10.0_f64..10.0) {
            let both = (ln_e(x, z).exp() + ln_e(x, -z).exp()) / 2.0;
            prop_assert!((both / sequence::ln_e(x, z).exp() - 1.0).abs() < 1e-10);
        }

        #[test]
        fn more_harm_gives_more_evidence(x in 0.01_f64..100.0, z in -40.0_f64..40.0) {
            prop_assert!(ln_e(x, z + 0.1) > ln_e(x, z));
        }
    }
}
