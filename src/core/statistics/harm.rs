//! Test of harm: a one-sided test that holds at every look, under every validity.
//!
//! ```text
//! ln E_h = ln 2 − ½ ln(1 + x) + ½ · x/(1 + x) · z_h² + ln Φ(z_h √(x/(1 + x))) ;  p_harm = min(1, 1/max E_h)
//! ```
//! It is the mixture of the sequence, restricted to the half on the side of harm (Howard et al. 2021, section 3.2).

use std::f64::consts::LN_2;

use super::effect::Effect;
use super::sequence::Evidence;
use super::{normal, sequence, student};

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
