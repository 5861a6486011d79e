//! Settings of an experiment for the statistics, validated elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use super::epochs::EpochWeights;

/// Settings of an experiment with a control.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Arm that all others are compared with.
    pub control: String,
    /// Expected shares of users by arm. Other arms are shown but not tested. Without shares nothing is decided.
    pub shares: BTreeMap<String, f64>,
    /// Ids of the metrics that decide.
    pub primary: Vec<String>,
    /// Metrics that must not fall by more than this share, in (0, 1), by id.
    pub guardrails: BTreeMap<String, f64>,
    /// Smallest relative effect that matters, above 0.
    pub mde: f64,
    /// Probability of a false alarm, in (0, 1).
    pub alpha: f64,
    /// Days from the start without decisions.
    pub min_days: f64,
    /// Days from the start to the one look that gets most of α.
    pub planned_days: Option<f64>,
    pub validity: Validity,
    pub goal: Goal,
    pub unit: Unit,
    /// True if a user keeps the first arm when shares change.
    pub sticky: bool,
    /// Ids of the metrics that are better if lower.
    pub lower_is_better: BTreeSet<String>,
    /// Difference |g| of lists per user from which on it matters.
    pub list_ratio_margin: f64,
    pub epoch_weights: EpochWeights,
}

/// Number of looks under which tests hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    /// Any number of looks.
    #[default]
    Sequence,
    /// Any number of looks, with arms judged separately: intervals are 1.5 times as wide.
    Strict,
    /// One look that was fixed in advance. Used by `evaluate`, and never by a daemon.
    OneLook,
}

/// Definition of a win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// A primary is better.
    #[default]
    Superior,
    /// No primary is worse by more than its margin.
    NonInferior,
}

/// Unit that is assigned to arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    #[default]
    User,
    /// A request. Sample ratios cannot be tested.
    Request,
}

/// Role of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricRole {
    Primary,
    Guardrail,
    #[default]
    Secondary,
}

impl Settings {
    /// Returns the documented defaults for an experiment with this control.
    pub fn new(control: &str) -> Settings {
        Settings {
            control: control.to_owned(),
            shares: BTreeMap::new(),
            primary: Vec::new(),
            guardrails: BTreeMap::new(),
            mde: 0.05,
            alpha: 0.05,
            min_days: 7.0,
            planned_days: None,
            validity: Validity::default(),
            goal: Goal::default(),
            unit: Unit::default(),
            sticky: false,
            lower_is_better: BTreeSet::new(),
            list_ratio_margin: 0.01,
            epoch_weights: EpochWeights::default(),
        }
    }

    /// Reports whether an arm is tested against the control.
    pub fn tests(&self, arm: &str) -> bool {
        arm != self.control && (self.shares.is_empty() || self.shares.contains_key(arm))
    }

    /// Returns M, the metrics by which an arm can harm, each once.
    pub fn watched(&self) -> BTreeSet<&str> {
        let guardrails = self.guardrails.keys();
        self.primary
            .iter()
            .chain(guardrails)
            .map(String::as_str)
            .collect()
    }

    /// Returns the role of a metric.
    pub fn role(&self, metric: &str) -> MetricRole {
        match metric {
            _ if self.primary.iter().any(|primary| primary == metric) => MetricRole::Primary,
            _ if self.guardrails.contains_key(metric) => MetricRole::Guardrail,
            _ => MetricRole::Secondary,
        }
    }

    /// Returns the largest tolerated loss of a metric: its margin as a guardrail, else the smallest effect that matters.
    pub fn margin(&self, metric: &str) -> f64 {
        self.guardrails.get(metric).copied().unwrap_or(self.mde)
    }

    /// Orients a lift so that above 0 is better.
    pub fn better(&self, metric: &str, lift: f64) -> f64 {
        match self.lower_is_better.contains(metric) {
            true => -lift,
            false => lift,
        }
    }

    /// Reports whether one look is planned to be the last.
    pub fn has_planned_end(&self) -> bool {
        self.planned_days.is_some() && self.validity != Validity::OneLook
    }
}
