//! State of an arm or an experiment in the words that people read, the same on the page, in the API and on the terminal.

use serde::{Serialize, Serializer};

use crate::statistics::per_user::is_per_user;
use crate::statistics::{ArmReport, ArmState, Goal, MetricReport, Settings};

/// A state in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Better,
    Worse,
    /// Harm or a loss whose two-sided interval includes 0 at this look.
    ProbablyHarmful,
    /// A win if the goal is not to be worse.
    NotWorse,
    NoEffect,
    Undecided,
    Collecting,
    Invalid,
    NotCompared,
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}

impl Label {
    /// Returns the label of an arm. None if it is not tested.
    pub fn of(settings: &Settings, arm: &ArmReport) -> Option<Label> {
        Some(match arm.decision.as_ref()?.state {
            ArmState::Win => match settings.goal {
                Goal::Superior => Label::Better,
                Goal::NonInferior => Label::NotWorse,
            },
            // The decision is still current, but the interval of this look does not agree with it.
            ArmState::Loss if arm.open_again.is_some() => Label::ProbablyHarmful,
            ArmState::Loss => Label::Worse,
            // Harm is tested one-sided and over all looks, so the interval shown next to it may include 0.
            ArmState::Harm => match harmed_metric(settings, arm) {
                Some((key, metric)) if lies_beyond_zero(settings, key, metric, -1.0) => Label::Worse,
                _ => Label::ProbablyHarmful,
            },
            ArmState::NoEffect => Label::NoEffect,
            ArmState::NoDecision => Label::Undecided,
            ArmState::Collecting => Label::Collecting,
            ArmState::InvalidSrm
            | ArmState::InvalidMultiArm
            | ArmState::InvalidUsers
            | ArmState::InvalidRefused
            | ArmState::InvalidListRatio => Label::Invalid,
        })
    }

    /// Returns the label's words, such as "Probably harmful".
    pub fn words(self) -> &'static str {
        match self {
            Label::Better => "Better",
            Label::Worse => "Worse",
            Label::ProbablyHarmful => "Probably harmful",
            Label::NotWorse => "Not worse",
            Label::NoEffect => "No effect",
            Label::Undecided => "Undecided",
            Label::Collecting => "Collecting",
            Label::Invalid => "Invalid",
            Label::NotCompared => "Not compared",
        }
    }
}

/// Returns the harmed metric that the rules name: metrics per user come first, then those that are worse now, then the smallest p of
/// harm. Without a harmed metric, all watched ones are candidates.
pub(super) fn harmed_metric<'a, 'b>(
    settings: &'a Settings,
    arm: &'b ArmReport,
) -> Option<(&'a str, &'b MetricReport)> {
    let keys = settings.watched().into_iter();
    let mut candidates: Vec<_> = keys
        .filter_map(|key| Some((key, arm.metrics.get(key)?)))
        .collect();
    let is_harmed = |metric: &MetricReport| metric.harm_since_ms.is_some();
    if candidates.iter().any(|(_, metric)| is_harmed(metric)) {
        candidates.retain(|(_, metric)| is_harmed(metric));
        if candidates.iter().any(|(key, _)| is_per_user(key)) {
            candidates.retain(|(key, _)| is_per_user(key));
        }
    }
    let p = |metric: &MetricReport| metric.p_harm.unwrap_or(1.0);
    let is_worse =
        |key: &str, metric: &MetricReport| metric.lift.is_some_and(|lift| settings.better(key, lift) < 0.0);
    // p of harm is running, so a metric with a small p may be better by now.
    if candidates.iter().any(|(key, metric)| is_worse(key, metric)) {
        candidates.retain(|(key, metric)| is_worse(key, metric));
    }
    candidates
        .into_iter()
        .min_by(|(_, a), (_, b)| p(a).total_cmp(&p(b)))
}

/// Reports whether the whole interval is better, or worse if `sign` is −1.
pub(super) fn lies_beyond_zero(settings: &Settings, key: &str, metric: &MetricReport, sign: f64) -> bool {
    metric.interval.is_some_and(|interval| {
        let ends = [interval.lower, interval.upper];
        ends.iter().all(|end| sign * settings.better(key, *end) > 0.0)
    })
}
