//! What is shown of an experiment at a look. What is undefined is absent.

use std::collections::BTreeMap;

use super::burn_in::BurnIn;
use super::decision::{Decision, MultiArm};
use super::effect::Interval;
use super::kept::{Decided, DecidedAt, DecidedMetric};
use super::progress::Grown;
use super::settings::Role;

/// All arms of an experiment against its control.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The time up to which totals go, epoch ms.
    pub as_of_ms: i64,
    /// Which look it is, from 1.
    pub look: u64,
    /// When something is decided next, epoch ms; none where every look decides.
    pub next_decision_ms: Option<i64>,
    /// The p of the sample ratio; none where users are not counted, or no shares are expected.
    pub srm_p: Option<f64>,
    /// None where users are not counted.
    pub multi_arm: Option<MultiArm>,
    /// How what is known of the primaries has grown.
    pub grown: Grown,
    /// By treatment arm.
    pub arms: BTreeMap<String, ArmReport>,
    /// About the whole experiment.
    pub notes: Vec<String>,
}

/// One arm against the control.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmReport {
    /// None of an arm that is shown and not tested.
    pub decision: Option<Decision>,
    /// The decision that stands, or else the last decision look. None before the first one.
    pub decided: Option<Decided>,
    /// The metric of a standing win or loss whose interval has come to hold 0 since.
    pub open_again: Option<String>,
    /// What a reader must know of its numbers.
    pub notes: Vec<String>,
    /// Shares of refused lists, of the arm and of its control.
    pub refused: [f64; 2],
    pub burn_in: BurnIn,
    /// None without shares, or before both arms have the buckets that burn-in asks for.
    pub list_ratio: Option<ListRatio>,
    /// By id.
    pub metrics: BTreeMap<String, MetricReport>,
}

/// Lists per assigned user, arm against control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListRatio {
    /// Its logarithm.
    pub g: f64,
    /// e^g: 1 where nothing differs.
    pub value: f64,
    /// Of the value.
    pub interval: Option<Interval>,
    pub p: f64,
}

/// A metric of an arm. Before burn-in it has the two values alone, and one per user has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricReport {
    pub role: Role,
    /// R_C; over several epochs their weighted mean.
    pub control: Option<f64>,
    /// R_T, likewise.
    pub arm: Option<f64>,
    /// Relative; not turned where lower is better.
    pub lift: Option<f64>,
    /// The band of the lift, which may be read at any look; of a file the t interval.
    pub interval: Option<Interval>,
    /// The t interval for one look at 1 − α. Only of primaries and guardrails.
    pub interval_at_one_look: Option<Interval>,
    /// √V of the lift.
    pub standard_error: Option<f64>,
    /// Two-sided, before any correction. None of an arm that is not tested, as all that follow.
    pub p: Option<f64>,
    /// Primaries by Holm, guardrails p itself, all others by e-BH as of now, or by Benjamini and Yekutieli in a file.
    pub p_adjusted: Option<f64>,
    /// One-sided, before Bonferroni's correction.
    pub p_harm: Option<f64>,
    /// The first look that showed harm, Unix ms.
    pub harm_since_ms: Option<i64>,
    /// At the decision look of [`ArmReport::decided`]. Only of primaries and guardrails.
    pub decision: Option<DecidedMetric>,
    /// x/x_plan of this or the next decision look.
    pub information: Option<f64>,
    /// max ψ²/Σψ².
    pub top_bucket_share: Option<f64>,
    /// Its numerator per assigned user; of a metric per user the same as its lift.
    pub per_user: Option<PerUser>,
}

/// A lift per assigned user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerUser {
    pub lift: f64,
    pub interval: Option<Interval>,
}

impl ArmReport {
    /// When [`Self::decided`] was, unless an earlier version decided.
    pub fn decided_at(&self) -> Option<DecidedAt> {
        self.decided.as_ref()?.at
    }
}
