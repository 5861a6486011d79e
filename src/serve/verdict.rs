//! `/api/v1/verdict`: recommendation of whether to roll out an arm, in the form that Argo Rollouts and Flagger request.
//!
//! Unknown parameters and names are refused rather than ignored, so that a typo cannot let a rollout proceed.

use std::collections::BTreeMap;

use abgauge_core::looks::{Experiment, ExperimentLook, PublishedLooks};
use abgauge_core::statistics::{ArmReport, ComparisonReport, Settings, Verdict};
use abgauge_core::table::visible;
use abgauge_core::verdict::{self, ArmVerdict};
use axum::http::StatusCode;
use serde::Deserialize;

use super::Exporter;

/// Maximum number of names listed in a refusal.
const MAX_LISTED: usize = 20;

/// Parameters as received.
#[derive(Debug, Default, Deserialize)]
pub struct VerdictParameters {
    pub experiment: Option<String>,
    /// Optional if only one arm is compared with the control.
    pub arm: Option<String>,
    /// `promote` or `rollback`: the answer's status shows whether the verdict agrees.
    pub gate: Option<String>,
    /// Unknown parameters.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// Reason why there is no verdict, with advice on what to request or configure.
#[derive(Debug, PartialEq, Eq)]
pub struct VerdictRefusal {
    pub status: StatusCode,
    /// Single line, without a line break.
    pub message: String,
}

/// Returns the verdict as JSON, and the status to send it with.
///
/// # Errors
/// - 400: a parameter is missing or unknown.
/// - 404: the experiment or the arm does not exist, or is not compared with anything.
/// - 503: nothing is known yet.
pub fn verdict(
    exporter: &Exporter,
    wanted: &VerdictParameters,
) -> Result<(StatusCode, Vec<u8>), VerdictRefusal> {
    let known = "the parameters are `experiment`, `arm` and `gate`";
    if let Some(other) = wanted.others.keys().next() {
        return Err(bad(format!(
            "there is no parameter `{}` here: {known}",
            visible(other)
        )));
    }
    let gate = gate(wanted.gate.as_deref())?;
    let name = experiment(exporter, wanted.experiment.as_deref())?;
    // Until the daemon is ready it repeats looks of the past, on which a rollout must not act.
    let waiting_for = exporter.telemetry.waiting_for();
    if !waiting_for.is_empty() {
        return Err(unknown_yet(format!("not ready: {}", waiting_for.join(", "))));
    }
    let shown = exporter.looks.shown();
    let (look, (settings, report)) = compared(name, &shown)?;
    let arm = arm(settings, report, wanted.arm.as_deref())?;
    let json = serde_json::to_vec(&of_look(name, arm, look)).map_err(|error| VerdictRefusal {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        message: error.to_string(),
    })?;
    let is_open = gate.is_none_or(|gate| has_verdict(&report.arms[arm], gate));
    let status = if is_open {
        StatusCode::OK
    } else {
        StatusCode::CONFLICT
    };
    Ok((status, json))
}

/// Returns the verdict on an arm at a look, or none for the control and without a comparison.
pub(super) fn of_look<'a>(
    experiment: &'a str,
    arm: &str,
    look: &'a ExperimentLook,
) -> Option<ArmVerdict<'a>> {
    let (settings, report) = look.comparison.as_ref()?;
    verdict::of_arm(experiment, arm, settings, report, look.no_users)
}

fn bad(message: String) -> VerdictRefusal {
    VerdictRefusal {
        status: StatusCode::BAD_REQUEST,
        message,
    }
}

fn absent(message: String) -> VerdictRefusal {
    VerdictRefusal {
        status: StatusCode::NOT_FOUND,
        message,
    }
}

fn unknown_yet(message: String) -> VerdictRefusal {
    VerdictRefusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message,
    }
}

/// Parses the verdict that the status should confirm.
fn gate(wanted: Option<&str>) -> Result<Option<Verdict>, VerdictRefusal> {
    match wanted {
        None => Ok(None),
        Some("promote") => Ok(Some(Verdict::Pass)),
        Some("rollback") => Ok(Some(Verdict::Rollback)),
        Some(other) => Err(bad(format!(
            "there is no gate `{}`: it is `promote` or `rollback`",
            visible(other)
        ))),
    }
}

fn has_verdict(arm: &ArmReport, verdict: Verdict) -> bool {
    let decision = arm.decision.as_ref();
    decision.is_some_and(|decision| decision.state.verdict() == verdict)
}

/// Returns the experiment's name, if its arms are compared with a control.
fn experiment<'a>(exporter: &'a Exporter, wanted: Option<&str>) -> Result<&'a str, VerdictRefusal> {
    let has_control = |(_, experiment): &(&String, &Experiment)| experiment.settings.is_some();
    let compared = exporter.experiments.iter().filter(has_control);
    let compared = listed(compared.map(|(name, _)| name.as_str()));
    let Some(wanted) = wanted else {
        return Err(bad(format!(
            "name an experiment: `experiment=NAME`; experiments with a control: {compared}"
        )));
    };
    let set = || format!("set `control` under [experiments.{}]", visible(wanted));
    match exporter.experiments.get_key_value(wanted) {
        Some((name, experiment)) if experiment.settings.is_some() => Ok(name),
        Some(_) => Err(absent(format!(
            "experiment `{}` has no control: {}",
            visible(wanted),
            set()
        ))),
        None => Err(absent(format!(
            "experiment `{}` is not configured; experiments with a control: {compared}. For another one {}",
            visible(wanted),
            set()
        ))),
    }
}

/// Returns the latest look at an experiment, and its comparison.
fn compared<'a>(
    name: &str,
    shown: &'a PublishedLooks,
) -> Result<(&'a ExperimentLook, &'a (Settings, ComparisonReport)), VerdictRefusal> {
    if shown.given_up.iter().any(|given_up| given_up == name) {
        return Err(unknown_yet(format!(
            "experiment `{}` was given up, because statistics took more than limits.max_statistics: raise it, and restart abgauge",
            visible(name)
        )));
    }
    let look = shown.experiments.get(name);
    let compared = look.and_then(|look| Some((look.as_ref(), look.comparison.as_ref()?)));
    compared.ok_or_else(|| {
        unknown_yet(format!(
            "there is no analysis of experiment `{}` yet: its first lists must be final, and analyses are ten minutes apart",
            visible(name)
        ))
    })
}

/// Returns the arm to judge: the requested one, or the only tested one.
fn arm<'a>(
    settings: &Settings,
    report: &'a ComparisonReport,
    wanted: Option<&str>,
) -> Result<&'a str, VerdictRefusal> {
    let arms = || report.arms.keys().map(String::as_str);
    let control = visible(&settings.control);
    if let Some(wanted) = wanted {
        let message = || match wanted == settings.control {
            true => format!("`{control}` is the control; compared with it: {}", listed(arms())),
            false => format!(
                "there is no arm `{}` to compare with the control `{control}`; arms: {}",
                visible(wanted),
                listed(arms())
            ),
        };
        return arms().find(|arm| *arm == wanted).ok_or_else(|| absent(message()));
    }
    let tested: Vec<&str> = arms().filter(|arm| settings.tests(arm)).collect();
    match tested[..] {
        [only] => Ok(only),
        [] => Err(absent(format!(
            "no arm except the control `{control}` has a list yet"
        ))),
        _ => Err(bad(format!(
            "name an arm: `arm=NAME`; compared with the control `{control}`: {}",
            listed(tested.into_iter())
        ))),
    }
}

/// Joins names into a list such as ``"`a`, `b` and 3 more"``.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let first = names.iter().take(MAX_LISTED);
    let first: Vec<String> = first.map(|name| format!("`{}`", visible(name))).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n > MAX_LISTED => format!("{} and {} more", first.join(", "), n - MAX_LISTED),
        _ => first.join(", "),
    }
}

#[cfg(test)]
mod tests;
