//! Conditions for a decision that an arm has not met.

use serde::Serialize;

use super::decision::ArmState;
use super::guardrail::GuardrailState;
use super::report::ArmReport;
use super::settings::{MetricRole, Settings, Validity};

/// Conditions for a decision that an arm has not met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiting {
    /// Days since the start of the counted lists.
    pub days: f64,
    /// Minimum days before a decision, until they have passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_days: Option<f64>,
    /// Ids of guardrails that are not shown to hold.
    pub guardrails: Vec<String>,
    /// Least information about a primary. None before burn-in is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub information: Option<f64>,
    /// Estimated days from the start until all primaries have enough information. None if that is unknown for one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_needed: Option<f64>,
}

impl Waiting {
    /// Returns the unmet conditions of an arm, given its report and the days since the start. None if it has a decision or cannot get one.
    pub(super) fn of(settings: &Settings, arm: &ArmReport, days: f64) -> Option<Waiting> {
        let is_waiting = matches!(
            arm.decision.as_ref()?.state,
            ArmState::NoDecision | ArmState::Collecting
        );
        if !is_waiting || settings.shares.is_empty() || settings.validity == Validity::OneLook {
            return None;
        }
        let primaries = || {
            let metrics = arm.metrics.values();
            metrics.filter(|metric| metric.role == MetricRole::Primary)
        };
        let holds = |id: &&String| {
            let guardrail = arm.metrics.get(*id).and_then(|metric| metric.guardrail);
            guardrail.is_some_and(|guardrail| guardrail.state == GuardrailState::Holds)
        };
        let open = settings.guardrails.keys().filter(|id| !holds(id));
        let needed: Option<Vec<f64>> = primaries().map(|metric| metric.days_needed).collect();
        Some(Waiting {
            days,
            min_days: Some(settings.min_days).filter(|min_days| days < *min_days),
            guardrails: open.cloned().collect(),
            information: primaries()
                .filter_map(|metric| metric.information)
                .reduce(f64::min),
            days_needed: needed.and_then(|needed| needed.into_iter().reduce(f64::max)),
        })
    }
}
