//! Spending of α over decision looks: a look of weight w tests at α·w, and all weights add up to 1.
//!
//! ```text
//! w_k = 6/(π² k²), k = 1, 2, …                          Σ w_k = 1
//! with a planned look: 0.8 for it, 0.2 w_k for others   k counts the others
//! ```
//! By the union bound (Bonferroni over looks) the probability of any false decision is at most α, however long an experiment
//! runs. A decision look tests the average since the start, so a decision never contradicts the lift shown with it.

use std::f64::consts::PI;

/// Share of α for the planned look.
pub const PLANNED_WEIGHT: f64 = 0.8;
/// Share of α for all other looks together, with a planned look.
pub const OTHER_WEIGHT: f64 = 0.2;

/// Returns w_k of the k-th decision look, from 1.
pub fn weight(k: u32) -> f64 {
    6.0 / (PI * f64::from(k)).powi(2)
}

/// A look at which something may be decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecisionLook {
    /// Number among decision looks, from 1. None for the planned look, and if every look decides.
    pub k: Option<u32>,
    /// Share of α.
    pub weight: f64,
    /// True if every look decides, which requires a test that holds at every look.
    pub is_any: bool,
}

impl DecisionLook {
    /// The only look at a file.
    pub const ONLY: DecisionLook = DecisionLook {
        k: None,
        weight: 1.0,
        is_any: false,
    };
    /// The look at start + `planned_days`.
    pub const PLANNED: DecisionLook = DecisionLook {
        k: None,
        weight: PLANNED_WEIGHT,
        is_any: false,
    };

    /// Returns the k-th weekly look.
    pub fn weekly(k: u32, has_planned_end: bool) -> DecisionLook {
        DecisionLook {
            k: Some(k),
            weight: others(has_planned_end) * weight(k),
            is_any: false,
        }
    }

    /// Returns the k-th weekly look with strict intervals. They hold at all looks together, so a look needs no share of its own.
    pub fn strict(k: u32) -> DecisionLook {
        DecisionLook {
            k: Some(k),
            weight: 1.0,
            is_any: false,
        }
    }

    /// Returns a look of a sequence in which every look decides.
    pub fn any(has_planned_end: bool) -> DecisionLook {
        DecisionLook {
            k: None,
            weight: others(has_planned_end),
            is_any: true,
        }
    }

    /// Corrects p for all decision looks.
    pub fn p(self, p_of_look: f64) -> f64 {
        (p_of_look / self.weight).min(1.0)
    }
}

/// Returns the share of α for all looks except the planned one.
fn others(has_planned_end: bool) -> f64 {
    if has_planned_end { OTHER_WEIGHT } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_by_hand() {
        check(weight(1), 0.607_927_101_854_026_6);
        check(weight(2), weight(1) / 4.0);
        check(DecisionLook::weekly(2, true).weight, 0.2 * weight(2));
        check(DecisionLook::weekly(1, false).p(0.01), 0.016_449_340_668_482_264);
        check(DecisionLook::PLANNED.p(0.02), 0.025);
        check(DecisionLook::any(true).p(0.3), 1.0);
    }

    #[test]
    fn all_looks_together_spend_exactly_alpha() {
        for has_planned_end in [false, true] {
            let weekly: f64 = (1..100_000)
                .map(|k| DecisionLook::weekly(k, has_planned_end).weight)
                .sum();
            let all = weekly + if has_planned_end { PLANNED_WEIGHT } else { 0.0 };
            assert!(all < 1.0 && all > 1.0 - 1e-5, "{all}");
        }
    }

    #[track_caller]
    fn check(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-15, "{value}");
    }
}
