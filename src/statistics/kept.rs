//! What is kept of an experiment between two looks: running maxima, what was frozen, what was decided.

use std::collections::BTreeMap;

use super::decision::State;
use super::planned::PlannedEnd;
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
    /// What the last decision look said.
    pub decided: Option<State>,
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
    /// What the planned look has said.
    pub planned_end: Option<PlannedEnd>,
}

/// Raises a running maximum; what is undefined does not.
pub(super) fn raise(maximum: &mut f64, value: Option<f64>) {
    *maximum = value.map_or(*maximum, |value| maximum.max(value));
}
