//! Result of a look at an experiment. Undefined values are absent.
//!
//! These types are also its JSON: the API, verdicts, the webhook and `evaluate` write them as they are, in the order of their
//! fields. A field with `skip` is for gauges, tables or sentences only.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::burn_in::BurnIn;
use super::comparison::ComparedParts;
use super::decision::{Decision, MultiArm};
use super::effect::Interval;
use super::guardrail::GuardrailReport;
use super::harm::HarmBound;
use super::progress::InformationGrowth;
use super::settings::MetricRole;
use super::test_state::{DecidedAt, DecidedLook, DecidedMetric};
use super::waiting::Waiting;

/// Comparison of an experiment's arms with its control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonReport {
    /// End of the totals, Unix ms.
    #[serde(rename = "as_of")]
    pub as_of_ms: i64,
    /// Number of the look, from 1.
    pub look: u64,
    /// Time of the next decision look, Unix ms. None if every look decides.
    #[serde(rename = "next_decision", skip_serializing_if = "Option::is_none")]
    pub next_decision_ms: Option<i64>,
    /// Time of the planned look, past or future, Unix ms. None if no look is planned.
    #[serde(rename = "planned_end", skip_serializing_if = "Option::is_none")]
    pub planned_end_ms: Option<i64>,
    /// p of the sample ratio. None if users are not counted, or no shares are expected.
    #[serde(skip)]
    pub srm_p: Option<f64>,
    /// Users in two arms. None if users are not counted.
    #[serde(skip)]
    pub multi_arm: Option<MultiArm>,
    /// Growth of the information about the primaries.
    #[serde(skip)]
    pub grown: InformationGrowth,
    /// Results by treatment arm.
    #[serde(skip)]
    pub arms: BTreeMap<String, ArmReport>,
    /// Notes on the whole experiment.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// One arm against the control.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ArmReport {
    /// Decision on the arm. None if it is shown but not tested.
    #[serde(flatten)]
    pub decision: Option<Decision>,
    /// Reason why the arm cannot be compared with the control. Then no metric has a lift, an interval or a p.
    #[serde(skip)]
    pub incomparable: Option<String>,
    /// The current decision, or else the last decision look. None before the first one, and while a check fails or the state is harm.
    #[serde(skip)]
    pub decided: Option<DecidedLook>,
    /// Metric of a current win or loss whose interval now contains 0.
    #[serde(skip)]
    pub open_again: Option<String>,
    /// Conditions for a decision that are not met. None for a state with a decision, without shares, and for a file.
    #[serde(rename = "waits_for", skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Notes on its numbers.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Shares of refused lists and clicks in the arm and in its control.
    #[serde(skip)]
    pub refused: [f64; 2],
    #[serde(skip)]
    pub burn_in: BurnIn,
    /// Lists per user. None without shares, or before both arms have the buckets for burn-in.
    #[serde(skip)]
    pub list_ratio: Option<ListRatio>,
    /// Results by metric id.
    #[serde(skip)]
    pub metrics: BTreeMap<String, MetricReport>,
}

/// Lists per assigned user, arm against control.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ListRatio {
    /// Logarithm of the ratio.
    #[serde(skip)]
    pub g: f64,
    /// The ratio e^g: 1 if users of both arms get equal numbers of lists.
    pub value: f64,
    /// Interval of the ratio.
    #[serde(flatten)]
    pub interval: Option<Interval>,
    pub p: f64,
}

/// A metric of an arm. Before burn-in it has only its two values, and a metric per user has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MetricReport {
    pub role: MetricRole,
    /// R_C. Over several epochs it is the weighted mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<f64>,
    /// R_T. Over several epochs it is the weighted mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<f64>,
    /// Parts of both values. None over several epochs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<ComparedParts>,
    /// Relative lift, not flipped if lower is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<f64>,
    /// Band of the lift, which holds at every look. For a file it is the t interval.
    #[serde(flatten)]
    pub interval: Option<Interval>,
    /// Difference of the two values. None for a metric per user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute: Option<AbsoluteEffect>,
    /// Two-sided p, uncorrected. None for an arm that is not tested, like all other p below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Corrected p: by Holm for primaries, uncorrected for guardrails, and for others by e-BH on this look, or by Benjamini and
    /// Yekutieli for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_adjusted: Option<f64>,
    /// One-sided p of harm, before Bonferroni's correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_harm: Option<f64>,
    /// First look that showed harm, Unix ms.
    #[serde(rename = "harm_since", skip_serializing_if = "Option::is_none")]
    pub harm_since_ms: Option<i64>,
    /// One-sided bound of the lift at this look. Only after harm was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harm: Option<HarmBound>,
    /// State of a guardrail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrail: Option<GuardrailReport>,
    /// x/x_plan of this decision look or the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub information: Option<f64>,
    /// Estimated days from the start until a decision look of the configured design has enough information. None for metrics
    /// that decide nothing, and if no look within two years has enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days_needed: Option<f64>,
    /// Lift of its numerator per assigned user. For a metric per user it is the lift itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_user: Option<PerUser>,
    /// The metric at the decision look of [`ArmReport::decided`]. Only for primaries and guardrails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<MetricDecision>,
    /// The t interval for one look at 1 − α. Only for primaries and guardrails.
    #[serde(skip)]
    pub interval_at_one_look: Option<Interval>,
    /// √V of the lift.
    #[serde(skip)]
    pub standard_error: Option<f64>,
    /// max ψ²/Σψ².
    #[serde(skip)]
    pub top_bucket_share: Option<f64>,
}

/// Δ = R_T − R_C in the metric's unit, not flipped if lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbsoluteEffect {
    pub value: f64,
    /// Band of Δ, which holds at every look. For a file it is the t interval.
    #[serde(flatten)]
    pub interval: Option<Interval>,
}

/// A metric at the current decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricDecision {
    #[serde(flatten)]
    pub at: DecidedAt,
    #[serde(flatten)]
    pub metric: DecidedMetric,
}

/// Sample size of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Size {
    /// Settled lists since the start.
    #[serde(serialize_with = "whole")]
    pub lists: f64,
    /// First exposures. None if users are not counted.
    #[serde(serialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub users: Option<f64>,
}

/// A lift per assigned user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PerUser {
    pub lift: f64,
    #[serde(flatten)]
    pub interval: Option<Interval>,
}

impl MetricReport {
    /// Returns the values of a metric that is not compared.
    pub fn untested(role: MetricRole, control: Option<f64>, arm: Option<f64>) -> MetricReport {
        MetricReport {
            role,
            control,
            arm,
            ..MetricReport::default()
        }
    }
}

impl ArmReport {
    /// Removes all results of the comparison with the control. The values of both arms stay.
    pub(super) fn withhold(&mut self, reason: String) {
        self.incomparable = Some(reason);
        for metric in self.metrics.values_mut() {
            *metric = MetricReport {
                parts: metric.parts,
                standard_error: metric.standard_error,
                information: metric.information,
                top_bucket_share: metric.top_bucket_share,
                ..MetricReport::untested(metric.role, metric.control, metric.arm)
            };
        }
    }
}

/// Writes a count as an integer.
pub(crate) fn whole<S: Serializer>(
    count: &(impl Copy + Into<Option<f64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let count: Option<f64> = (*count).into();
    count.map(|count| count as u64).serialize(serializer)
}
