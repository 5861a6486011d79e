//! What an operator asks of an experiment, checked elsewhere.

use std::collections::{BTreeMap, BTreeSet};

pub use super::epochs::EpochWeights;

/// What is asked of an experiment that has a control.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The arm that all others are compared with.
    pub control: String,
    /// Expected shares of users by arm. Arms that are not named are shown, not tested; if none is, nothing is decided.
    pub shares: BTreeMap<String, f64>,
    /// Ids of the metrics that decide.
    pub primary: Vec<String>,
    /// Ids of the metrics that must not fall by more than this share, in (0, 1).
    pub guardrails: BTreeMap<String, f64>,
    /// The smallest relative effect that matters, above 0.
    pub mde: f64,
    /// The probability of a false alarm, in (0, 1).
    pub alpha: f64,
    /// Days from the start on which nothing is decided.
    pub min_days: f64,
    /// The days from the start to the one look that gets most of α.
    pub planned_days: Option<f64>,
    pub validity: Validity,
    pub goal: Goal,
    pub unit: Unit,
    /// Whether a user keeps the first arm when shares change.
    pub sticky: bool,
    /// Ids of the metrics that are better lower.
    pub lower_is_better: BTreeSet<String>,
    /// The difference |g| of lists per user from which on it matters.
    pub list_ratio_margin: f64,
    pub epoch_weights: EpochWeights,
}

/// What tests hold under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    /// Any number of looks.
    #[default]
    Sequence,
    /// Any number of looks, and arms that are judged each on its own: 1.5 times as wide.
    Strict,
    /// One look that was fixed before anything was seen: what `evaluate` has, and no daemon.
    OneLook,
}

/// What a win is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// A primary is better.
    #[default]
    Superior,
    /// No primary is worse by more than its margin.
    NonInferior,
}

/// What is assigned to arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    #[default]
    User,
    /// Requests: nothing is known of sample ratios.
    Request,
}

/// What a metric is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Primary,
    Guardrail,
    Secondary,
}

impl Role {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Guardrail => "guardrail",
            Role::Secondary => "secondary",
        }
    }
}

impl Settings {
    /// The documented defaults, for an experiment with this control.
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

    /// Whether an arm is tested against the control.
    pub fn tests(&self, arm: &str) -> bool {
        arm != self.control && (self.shares.is_empty() || self.shares.contains_key(arm))
    }

    /// M: the metrics of an arm by which it can harm, each once.
    pub fn watched(&self) -> BTreeSet<&str> {
        let guardrails = self.guardrails.keys();
        self.primary
            .iter()
            .chain(guardrails)
            .map(String::as_str)
            .collect()
    }

    /// What a metric is there for.
    pub fn role(&self, metric: &str) -> Role {
        match metric {
            _ if self.primary.iter().any(|primary| primary == metric) => Role::Primary,
            _ if self.guardrails.contains_key(metric) => Role::Guardrail,
            _ => Role::Secondary,
        }
    }

    /// By how much a metric may be worse: its margin as a guardrail, else the smallest effect that matters.
    pub fn margin(&self, metric: &str) -> f64 {
        self.guardrails.get(metric).copied().unwrap_or(self.mde)
    }

    /// Whether one look was planned to be the last.
    pub fn has_planned_end(&self) -> bool {
        self.planned_days.is_some() && self.validity != Validity::OneLook
    }
}
