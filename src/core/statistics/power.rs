//! Information of an experiment relative to the amount that a test needs for power 0.8 at the effect of interest.
//!
//! x_plan = c (Φ.isf(α w/2m) + Φ.isf(0.2/(G + 1)))², for m hypotheses, G guardrails that must pass as well and a decision look of
//! weight w. The information is x/x_plan. c is 1 for a t test, and otherwise comes from simulation.

use super::normal::quantile_above;
use super::settings::Validity;
use super::spending::DecisionLook;

/// Share of true effects that may be missed, over the primary and all guardrails.
const MISSED: f64 = 0.2;

/// A test to plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedTest {
    pub validity: Validity,
    /// Look at which it is tested.
    pub look: DecisionLook,
    pub alpha: f64,
    /// m = treatment arms × primaries, at least 1.
    pub n_hypotheses: usize,
    pub n_guardrails: usize,
}

impl PlannedTest {
    /// Returns c, the sample size of the test relative to a t test at the same level.
    pub fn cost(&self) -> f64 {
        match self.validity {
            Validity::Strict => 3.9,
            Validity::Sequence if self.look.is_any => 1.67,
            Validity::Sequence | Validity::OneLook => 1.0,
        }
    }

    /// Returns the x = τ²/V at which an effect of τ is found with power 0.8.
    pub fn x(&self) -> f64 {
        let m = self.n_hypotheses.max(1) as f64;
        let found = quantile_above(self.look.weight * self.alpha / (2.0 * m));
        let passed = quantile_above(MISSED / (self.n_guardrails as f64 + 1.0));
        self.cost() * (found + passed).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_test_of_one_hypothesis_needs_the_known_sample() {
        let plan = PlannedTest {
            validity: Validity::OneLook,
            look: DecisionLook::ONLY,
            alpha: 0.05,
            n_hypotheses: 1,
            n_guardrails: 0,
        };
        // (1.959964 + 0.841621)².
        assert!((plan.x() - 7.848_879_734_349_086).abs() < 1e-12);
        let at = |look, validity| {
            PlannedTest {
                look,
                validity,
                ..plan
            }
            .x() / plan.x()
        };
        // (2.164887 + 0.841621)² for α w_1 = 0.030396, and (2.053749 + 0.841621)² for 0.8 α.
        let weekly = at(DecisionLook::weekly(1, false), Validity::Sequence);
        assert!(
            (weekly * plan.x() - 9.039_091).abs() < 1e-5,
            "{}",
            weekly * plan.x()
        );
        let planned = at(DecisionLook::PLANNED, Validity::Sequence);
        assert!((planned - 1.068).abs() < 1e-3, "{planned}");
        let any = at(DecisionLook::any(false), Validity::Sequence);
        assert!((any - 1.67).abs() < 1e-12);
        let strict = at(DecisionLook::any(false), Validity::Strict);
        assert!((strict - 3.9).abs() < 1e-12);
        let more = PlannedTest {
            n_hypotheses: 4,
            n_guardrails: 2,
            ..plan
        };
        // α/8 and 0.2/3: (2.497705 + 1.501086)².
        assert!((more.x() - 15.990_327).abs() < 1e-4);
    }
}
