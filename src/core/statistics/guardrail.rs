//! State of a guardrail: its interval compared with its margin.

use serde::Serialize;

use super::effect::Interval;

/// Bound and state of a guardrail in one arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GuardrailReport {
    /// Share by which the metric may be worse.
    pub margin: f64,
    /// Worst lift that the data do not contradict: the worse end of the decision interval while a decision is in force, else of
    /// the band. Not flipped if lower is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    pub state: GuardrailState,
}

/// State of a guardrail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardrailState {
    /// The metric is shown not to be worse by more than its margin.
    Holds,
    /// The metric may still be worse by more than its margin.
    NotYet,
    /// The metric shows harm, or its whole interval is beyond its margin.
    Broken,
}

impl GuardrailState {
    /// Returns the state in the words of the page.
    pub fn words(self) -> &'static str {
        match self {
            GuardrailState::Holds => "holds",
            GuardrailState::NotYet => "not shown to hold yet",
            GuardrailState::Broken => "broken",
        }
    }
}

impl GuardrailReport {
    /// Judges a guardrail by an interval of its lift, as shown and as `oriented` so that above 0 is better.
    pub(super) fn new(
        margin: f64,
        shown: Option<Interval>,
        oriented: Option<Interval>,
        is_lower_better: bool,
        is_harmed: bool,
    ) -> GuardrailReport {
        let state = match oriented {
            _ if is_harmed => GuardrailState::Broken,
            Some(interval) if interval.upper < -margin => GuardrailState::Broken,
            Some(interval) if interval.lower > -margin => GuardrailState::Holds,
            _ => GuardrailState::NotYet,
        };
        GuardrailReport {
            margin,
            bound: shown.map(|shown| if is_lower_better { shown.upper } else { shown.lower }),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guardrail_holds_only_if_its_whole_interval_is_within_the_margin() {
        let judge = |ends: Option<[f64; 2]>, is_harmed| {
            let interval = ends.map(|[lower, upper]| Interval { lower, upper });
            GuardrailReport::new(0.05, interval, interval, false, is_harmed)
        };
        let state = |ends| judge(ends, false).state;
        assert_eq!(state(Some([-0.049, 0.1])), GuardrailState::Holds);
        assert_eq!(state(Some([-0.05, 0.1])), GuardrailState::NotYet);
        assert_eq!(state(Some([-0.2, -0.04])), GuardrailState::NotYet);
        assert_eq!(state(Some([-0.2, -0.06])), GuardrailState::Broken);
        assert_eq!(state(None), GuardrailState::NotYet);
        // Harm rolls an arm back even within the margin.
        let harmed = judge(Some([-0.04, -0.01]), true);
        assert_eq!(
            (harmed.state, harmed.bound),
            (GuardrailState::Broken, Some(-0.04))
        );
    }

    #[test]
    fn the_bound_is_the_upper_end_if_lower_is_better() {
        let shown = Interval {
            lower: -0.1,
            upper: 0.03,
        };
        let guardrail = GuardrailReport::new(0.05, Some(shown), Some(shown.flipped()), true, false);
        assert_eq!(
            (guardrail.bound, guardrail.state),
            (Some(0.03), GuardrailState::Holds)
        );
    }
}
