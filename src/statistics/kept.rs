//! What is kept of an experiment between two looks: running maxima, what was frozen, what was decided.

use std::collections::BTreeMap;

use super::decision::State;
use super::effect::Interval;
use super::progress::Progress;

/// Of one experiment. A new one knows nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Looks so far.
    pub n_looks: u64,
    /// The time of the last one, epoch ms.
    pub last_look_ms: Option<i64>,
    /// The largest ln of the Bayes factor against the shares of users, at least 0.
    pub max_ln_bayes_factor: f64,
    pub progress: Progress,
    /// By treatment arm.
    pub arms: BTreeMap<String, KeptArm>,
}

/// Of a treatment arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptArm {
    /// Whether burn-in is done. It is never undone.
    pub is_burned_in: bool,
    /// The largest ln E of the list ratio, at least 0.
    pub max_ln_e_list_ratio: f64,
    /// The decision that stands, or else the last decision look, which decided nothing.
    pub decided: Option<Decided>,
    /// By metric.
    pub metrics: BTreeMap<String, KeptMetric>,
}

/// Of a metric in a treatment arm. Nothing is added to it before burn-in is done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptMetric {
    /// τ, frozen at the first look after burn-in at which the metric is defined.
    pub tau: Option<f64>,
    /// The largest ln E, at least 0; under strict validity −ln of the smallest p.
    pub max_surprise: f64,
    /// The largest ln E_h, at least 0.
    pub max_ln_e_harm: f64,
    /// The first look at which it showed harm, Unix ms.
    pub harm_since_ms: Option<i64>,
}

/// A decision look at an arm, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// A win, a loss or no effect; no decision if nothing was decided.
    pub state: State,
    /// Why, without the day.
    pub reason: String,
    /// None of a decision by the rule of an earlier version: nothing else is known of it.
    pub at: Option<DecidedAt>,
    /// By primary and guardrail.
    pub metrics: BTreeMap<String, DecidedMetric>,
}

/// When something was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidedAt {
    /// Number of the look, from 1.
    pub look: u64,
    /// Event time of the look, Unix ms.
    pub as_of_ms: i64,
    /// Whole days since the start.
    pub day: u32,
    /// Number of the decision look, from 1; none for the planned look, and when every look decides.
    pub k: Option<u32>,
}

/// A metric at a decision look. Not turned when lower is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecidedMetric {
    pub lift: Option<f64>,
    /// The decision interval of the lift.
    pub interval: Option<Interval>,
    /// Two-sided, corrected for all decision looks.
    pub p: f64,
    /// Corrected for arms and metrics too: Holm for primaries, p itself for guardrails.
    pub p_adjusted: f64,
    /// Whether the band of the sequence excluded 0 as well.
    pub band_excludes_zero: bool,
}

impl Decided {
    /// Whether something was decided.
    pub fn is_decision(&self) -> bool {
        self.state != State::NoDecision
    }
}

/// Raises a running maximum; what is undefined does not.
pub(super) fn raise(maximum: &mut f64, value: Option<f64>) {
    *maximum = value.map_or(*maximum, |value| maximum.max(value));
}
