//! State of an experiment between two looks: running maxima, frozen values and decisions.

use std::collections::BTreeMap;

use serde::Serialize;

use super::decision::ArmState;
use super::effect::Interval;
use super::progress::TestProgress;

/// State of one experiment. The default is a new one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestState {
    /// Number of looks so far.
    pub n_looks: u64,
    /// Time of the last look, Unix ms.
    pub last_look_ms: Option<i64>,
    /// The largest ln of the Bayes factor against the shares of users, at least 0.
    pub max_ln_bayes_factor: f64,
    pub progress: TestProgress,
    /// State by treatment arm.
    pub arms: BTreeMap<String, KeptArm>,
}

/// State of a treatment arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptArm {
    /// True once burn-in is done, for good.
    pub is_burned_in: bool,
    /// The largest ln E of the list ratio, at least 0.
    pub max_ln_e_list_ratio: f64,
    /// The current decision, or else the last decision look, which made no decision.
    pub decided: Option<DecidedLook>,
    /// State by metric.
    pub metrics: BTreeMap<String, KeptMetric>,
}

/// State of a metric in a treatment arm. It does not change before burn-in is done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptMetric {
    /// τ, frozen at the first look after burn-in at which the metric is defined.
    pub tau: Option<f64>,
    /// The largest ln E, at least 0. Under strict validity −ln of the smallest p.
    pub max_surprise: f64,
    /// The largest ln E_h, at least 0.
    pub max_ln_e_harm: f64,
    /// First look that showed harm, Unix ms.
    pub harm_since_ms: Option<i64>,
}

/// A decision look at an arm, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedLook {
    /// A win, a loss or no effect, or no decision.
    pub state: ArmState,
    /// Reason without the day.
    pub reason: String,
    /// Time of the look. None for a decision by the rule of an earlier version, which left only its state.
    pub at: Option<DecidedAt>,
    /// Metrics by id, primaries and guardrails only.
    pub metrics: BTreeMap<String, DecidedMetric>,
}

/// Time of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DecidedAt {
    /// Number of the look, from 1.
    pub look: u64,
    /// Event time of the look, Unix ms.
    #[serde(rename = "at")]
    pub as_of_ms: i64,
    /// Event time of the first decision look with this state, Unix ms: no look between the two has ended it.
    #[serde(rename = "since")]
    pub since_ms: i64,
    /// Whole days since the start.
    #[serde(skip)]
    pub day: u32,
    /// Whole days from the start to `since_ms`.
    #[serde(skip)]
    pub since_day: u32,
    /// Number of the decision look, from 1. None for the planned look, and if every look decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
}

/// A metric at a decision look. Values are not flipped if lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DecidedMetric {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<f64>,
    /// Decision interval of the lift.
    #[serde(flatten)]
    pub interval: Option<Interval>,
    /// Two-sided p, corrected for all decision looks.
    pub p: f64,
    /// p corrected for arms and metrics too: by Holm for primaries, uncorrected for guardrails.
    pub p_adjusted: f64,
    /// True if the band of the sequence excluded 0 as well.
    #[serde(skip)]
    pub band_excludes_zero: bool,
}

impl DecidedLook {
    /// Reports whether something was decided.
    pub fn is_decision(&self) -> bool {
        self.state != ArmState::NoDecision
    }
}

/// Raises a running maximum. An undefined value leaves it unchanged.
pub(super) fn raise(maximum: &mut f64, value: Option<f64>) {
    *maximum = value.map_or(*maximum, |value| maximum.max(value));
}
