//! How much is known, against what a test needs to find an effect of the size that was asked for with power 0.8.
//!
//! x_plan = k (Φ.isf(α/2m) + Φ.isf(0.2/(G + 1)))², for m hypotheses and G guardrails that must pass as well; information = x/x_plan.

use super::normal::quantile_above;
use super::settings::Validity;

/// The share of true effects that may be missed, over the primary and all guardrails.
const MISSED: f64 = 0.2;

/// What there is to test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    pub validity: Validity,
    /// Whether one look was planned: it takes most of α.
    pub has_planned_end: bool,
    pub alpha: f64,
    /// m = treatment arms × primaries, at least 1.
    pub n_hypotheses: usize,
    pub n_guardrails: usize,
}

impl Plan {
    /// k: the sample that the test needs, against a fixed one.
    pub fn cost(&self) -> f64 {
        match self.validity {
            Validity::OneLook => 1.0,
            _ if self.has_planned_end => 1.07,
            Validity::Sequence => 1.67,
            Validity::Strict => 3.9,
        }
    }

    /// The x = τ²/V at which an effect of τ is found with power 0.8.
    pub fn x(&self) -> f64 {
        let m = self.n_hypotheses.max(1) as f64;
        let found = quantile_above(self.alpha / (2.0 * m));
        let passed = quantile_above(MISSED / (self.n_guardrails as f64 + 1.0));
        self.cost() * (found + passed).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_test_of_one_hypothesis_needs_the_known_sample() {
        let plan = Plan {
            validity: Validity::OneLook,
            has_planned_end: false,
            alpha: 0.05,
            n_hypotheses: 1,
            n_guardrails: 0,
        };
        // (1.959964 + 0.841621)².
        assert!((plan.x() - 7.848_879_734_349_086).abs() < 1e-12);
        let sequence = Plan {
            validity: Validity::Sequence,
            ..plan
        };
        assert!((sequence.x() / plan.x() - 1.67).abs() < 1e-12);
        let planned = Plan {
            has_planned_end: true,
            ..sequence
        };
        assert!((planned.x() / plan.x() - 1.07).abs() < 1e-12);
        let more = Plan {
            n_hypotheses: 4,
            n_guardrails: 2,
            ..plan
        };
        // α/8 and 0.2/3: (2.497705 + 1.501086)².
        assert!((more.x() - 15.990_327).abs() < 1e-4);
    }
}
