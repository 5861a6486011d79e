//! Result of a look at an experiment. Undefined values are absent.

use std::collections::BTreeMap;

use super::burn_in::BurnIn;
use super::decision::{Decision, MultiArm};
use super::effect::Interval;
use super::progress::InformationGrowth;
use super::settings::MetricRole;
use super::test_state::{DecidedAt, DecidedLook, DecidedMetric};

/// Comparison of an experiment's arms with its control.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonReport {
    /// End of the totals, Unix ms.
    pub as_of_ms: i64,
    /// Number of the look, from 1.
    pub look: u64,
    /// Time of the next decision look, Unix ms. None if every look decides.
    pub next_decision_ms: Option<i64>,
    /// Time of the planned look, past or future, Unix ms. None if no look is planned.
    pub planned_end_ms: Option<i64>,
    /// p of the sample ratio. None if users are not counted, or no shares are expected.
    pub srm_p: Option<f64>,
    /// Users in two arms. None if users are not counted.
    pub multi_arm: Option<MultiArm>,
    /// Growth of the information about the primaries.
    pub grown: InformationGrowth,
    /// Results by treatment arm.
    pub arms: BTreeMap<String, ArmReport>,
    /// Notes on the whole experiment.
    pub notes: Vec<String>,
}

/// One arm against the control.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmReport {
    /// Decision on the arm. None if it is shown but not tested.
    pub decision: Option<Decision>,
    /// Reason why the arm cannot be compared with the control. Then no metric has a lift, an interval or a p.
    pub incomparable: Option<String>,
    /// The current decision, or else the last decision look. None before the first one, and while a check fails or the state is harm.
    pub decided: Option<DecidedLook>,
    /// Metric of a current win or loss whose interval now contains 0.
    pub open_again: Option<String>,
    /// Notes on its numbers.
    pub notes: Vec<String>,
    /// Shares of refused lists and clicks in the arm and in its control.
    pub refused: [f64; 2],
    pub burn_in: BurnIn,
    /// Lists per user. None without shares, or before both arms have the buckets for burn-in.
    pub list_ratio: Option<ListRatio>,
    /// Results by metric id.
    pub metrics: BTreeMap<String, MetricReport>,
}

/// Lists per assigned user, arm against control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListRatio {
    /// Logarithm of the ratio.
    pub g: f64,
    /// The ratio e^g: 1 if users of both arms get equal numbers of lists.
    pub value: f64,
    /// Interval of the ratio.
    pub interval: Option<Interval>,
    pub p: f64,
}

/// A metric of an arm. Before burn-in it has only its two values, and a metric per user has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricReport {
    pub role: MetricRole,
    /// R_C. Over several epochs it is the weighted mean.
    pub control: Option<f64>,
    /// R_T. Over several epochs it is the weighted mean.
    pub arm: Option<f64>,
    /// Relative lift, not flipped if lower is better.
    pub lift: Option<f64>,
    /// Band of the lift, which holds at every look. For a file it is the t interval.
    pub interval: Option<Interval>,
    /// The t interval for one look at 1 − α. Only for primaries and guardrails.
    pub interval_at_one_look: Option<Interval>,
    /// √V of the lift.
    pub standard_error: Option<f64>,
    /// Two-sided p, uncorrected. None for an arm that is not tested, like all other p below.
    pub p: Option<f64>,
    /// Corrected p: by Holm for primaries, uncorrected for guardrails, and for others by e-BH on this look, or by Benjamini and
    /// Yekutieli for a file.
    pub p_adjusted: Option<f64>,
    /// One-sided p of harm, before Bonferroni's correction.
    pub p_harm: Option<f64>,
    /// First look that showed harm, Unix ms.
    pub harm_since_ms: Option<i64>,
    /// The metric at the decision look of [`ArmReport::decided`]. Only for primaries and guardrails.
    pub decision: Option<DecidedMetric>,
    /// x/x_plan of this decision look or the next one.
    pub information: Option<f64>,
    /// max ψ²/Σψ².
    pub top_bucket_share: Option<f64>,
    /// Lift of its numerator per assigned user. For a metric per user it is the lift itself.
    pub per_user: Option<PerUser>,
}

/// A lift per assigned user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerUser {
    pub lift: f64,
    pub interval: Option<Interval>,
}

impl MetricReport {
    /// Returns the values of a metric that is not compared.
    pub fn untested(role: MetricRole, control: Option<f64>, arm: Option<f64>) -> MetricReport {
        MetricReport {
            role,
            control,
            arm,
            lift: None,
            interval: None,
            interval_at_one_look: None,
            standard_error: None,
            p: None,
            p_adjusted: None,
            p_harm: None,
            harm_since_ms: None,
            decision: None,
            information: None,
            top_bucket_share: None,
            per_user: None,
        }
    }
}

impl ArmReport {
    /// Removes all results of the comparison with the control. The values of both arms stay.
    pub(super) fn withhold(&mut self, reason: String) {
        self.incomparable = Some(reason);
        for metric in self.metrics.values_mut() {
            *metric = MetricReport {
                standard_error: metric.standard_error,
                information: metric.information,
                top_bucket_share: metric.top_bucket_share,
                ..MetricReport::untested(metric.role, metric.control, metric.arm)
            };
        }
    }

    /// Returns the time of [`Self::decided`], unless an earlier version decided.
    pub fn decided_at(&self) -> Option<DecidedAt> {
        self.decided.as_ref()?.at
    }
}
