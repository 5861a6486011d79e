//! The state of an arm at a look: the first of fourteen rules that applies.
//!
//! A decision is kept until a later decision look decides something else, or a check fails at one. The weights of all decision
//! looks add up to 1, so keeping a decision costs no α.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::definition::name_of;
use super::harm::HarmBound;
use super::probability::{equation, in_words};
use super::settings::Goal;
use super::test_state::{DecidedAt, DecidedLook};
use super::{harm, per_user, srm};
use crate::rounding::{percentage, signed_percentage};

/// The state of a treatment arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmState {
    NoDecision,
    /// Arms do not get their shares of users.
    InvalidSrm,
    /// Users were seen in two arms.
    InvalidMultiArm,
    /// Too many lists have no user, or one user has too many lists.
    InvalidUsers,
    /// Arms lose different shares of their lists.
    InvalidRefused,
    /// Arms do not get their shares of lists.
    InvalidListRatio,
    /// Too little is known for any test.
    Collecting,
    /// A primary or a guardrail is worse, at any look.
    Harm,
    /// A primary is worse at a decision look.
    Loss,
    Win,
    /// Every lift is smaller than the smallest effect that matters.
    NoEffect,
}

/// Recommendation for a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Hold,
    Rollback,
}

/// State of an arm with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub state: ArmState,
    /// Reason in words, without a full stop.
    pub reason: String,
    pub basis: Basis,
}

/// Origin of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A check, harm or burn-in, at any look.
    Check,
    /// An earlier decision look, or there was none yet.
    Earlier,
    /// The present decision look.
    ThisLook,
}

/// Input of the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionFacts<'a> {
    /// Shares of refused lists and clicks in the arm and in its control, if they differ.
    pub refused: Option<[f64; 2]>,
    /// True if shares of users are expected.
    pub has_shares: bool,
    /// p of the sample ratio. None if users are not counted.
    pub srm_p: Option<f64>,
    /// Users in two arms. None if users are not counted.
    pub multi_arm: Option<MultiArm>,
    /// Shares of lists without a user, in the arm and in its control. None if requests are assigned.
    pub without_user: Option<[f64; 2]>,
    /// Largest share of lists that one user has, in the arm or in the control. Known only for files.
    pub top_user: Option<f64>,
    /// Lists per user. None while too few buckets are in use.
    pub list_ratio: Option<ListRatioFact>,
    pub list_ratio_margin: f64,
    /// Number of tested treatment arms.
    pub n_treatments: usize,
    pub alpha: f64,
    /// Missing part of burn-in. None once it is done.
    pub lacks: Option<String>,
    /// Facts about the arm's primaries and guardrails.
    pub harms: Vec<HarmFact>,
    pub is_decision_look: bool,
    /// Time until the next decision look, in words, if this look is not one.
    pub wait: Option<String>,
    pub goal: Goal,
    pub primaries: Vec<PrimaryFact>,
    pub guardrails: Vec<GuardrailFact>,
    /// The current decision, or the last decision look.
    pub previous: Option<&'a DecidedLook>,
}

/// Users seen in two arms within one epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiArm {
    pub in_two: f64,
    /// Users in total.
    pub users: f64,
}

impl MultiArm {
    /// Returns the share of users in two arms. None without users.
    pub fn share(self) -> Option<f64> {
        (self.users > 0.0).then(|| self.in_two / self.users)
    }
}

/// Difference of lists per assigned user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListRatioFact {
    /// Logarithm of the ratio.
    pub g: f64,
    pub p: f64,
}

/// Significance of harm in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct HarmFact {
    pub metric: String,
    pub p: f64,
    /// Day of the first look that showed harm. None for a file.
    pub since_day: Option<u32>,
    /// True if its lift is worse than 0 now.
    pub is_worse_now: bool,
    pub now: HarmNow,
}

/// Position of a harmed metric's intervals at this look. The test of harm keeps its smallest p, so they may have changed since.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HarmNow {
    /// The two-sided interval is worse than 0.
    Worse,
    /// The two-sided interval includes 0, and this one-sided bound is worse than 0.
    ProbablyWorse(HarmBound),
    /// Both include 0.
    Unclear,
    /// The two-sided interval is better than 0.
    Better,
}

/// A primary metric at a decision look, oriented so that above 0 is better.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimaryFact {
    pub metric: String,
    /// p of this look alone, corrected for decision looks and by Holm.
    pub p: f64,
    /// Difference or lift at this look. Its sign shows which arm is better.
    pub effect: f64,
    /// Lower end of the lift's decision interval. None without an interval.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub mde: f64,
    /// Largest loss allowed under [`Goal::NonInferior`].
    pub margin: f64,
}

/// A guardrail at a decision look, oriented so that above 0 is better.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardrailFact {
    pub metric: String,
    /// Lower end of the lift's decision interval. None without an interval.
    pub lower: Option<f64>,
    pub margin: f64,
}

/// Users from which on the share seen in two arms is checked.
const MIN_USERS: f64 = 1000.0;
const MAX_MULTI_ARM: f64 = 0.01;
/// Share of lists without a user above which intervals would be too narrow.
pub(super) const MAX_WITHOUT_USER: f64 = 0.2;
/// Share of an arm's lists above which the arm's numbers depend on a single user.
const MAX_TOP_USER: f64 = 1.0 / 3.0;

impl DecisionFacts<'_> {
    /// Applies the first rule that matches.
    pub fn decide(&self) -> Decision {
        let check = self
            .refused()
            .or_else(|| self.without_shares())
            .or_else(|| self.mismatch())
            .or_else(|| self.multi_arm())
            .or_else(|| self.users())
            // Harm per user comes before the list ratio, because it holds even if users get different numbers of lists. Harm in a
            // ratio comes after it, because it does not.
            .or_else(|| self.harm_of(per_user::is_per_user))
            .or_else(|| self.list_ratio())
            .or_else(|| self.collecting())
            .or_else(|| self.harm_of(|_| true));
        let decided = || self.loss().or_else(|| self.win()).or_else(|| self.no_effect());
        // A failed check overrides every decision. An earlier decision is kept unless this look decides something.
        let (basis, (state, reason)) = if let Some(check) = check {
            (Basis::Check, check)
        } else if !self.is_decision_look {
            (Basis::Earlier, self.between())
        } else if let Some((state, reason)) = decided() {
            (Basis::ThisLook, (state, reason))
        } else if let Some(standing) = self.standing() {
            (Basis::Earlier, standing)
        } else {
            (Basis::ThisLook, self.open())
        };
        Decision { state, reason, basis }
    }

    /// Returns the reason why neither the lift nor p of the arm can be believed: lists are missing, or the variance is too small.
    pub fn incomparable(&self) -> Option<String> {
        let (_, reason) = self.refused().or_else(|| self.users())?;
        Some(reason)
    }

    fn refused(&self) -> Option<ReasonedState> {
        let reason = refused_reason(self.refused?);
        Some((ArmState::InvalidRefused, reason))
    }

    fn without_shares(&self) -> Option<ReasonedState> {
        (!self.has_shares).then(|| (ArmState::NoDecision, "no shares".to_owned()))
    }

    fn mismatch(&self) -> Option<ReasonedState> {
        let p = self.srm_p.filter(|p| *p <= srm::ALARM)?;
        Some((
            ArmState::InvalidSrm,
            format!("users are not split as planned, {}", in_words(p)),
        ))
    }

    fn multi_arm(&self) -> Option<ReasonedState> {
        let MultiArm { in_two, users } = self.multi_arm?;
        let is_invalid = users >= MIN_USERS && in_two > MAX_MULTI_ARM * users;
        let reason = || format!("{in_two} of {users} users were seen in two arms");
        is_invalid.then(|| (ArmState::InvalidMultiArm, reason()))
    }

    fn users(&self) -> Option<ReasonedState> {
        // Intervals are too narrow as soon as either side lacks users.
        let without = self.without_user.map_or(0.0, |[arm, control]| arm.max(control));
        if without > MAX_WITHOUT_USER {
            let reason = format!(
                "{} of the lists of an arm have no user, so intervals would be too narrow",
                percentage(without, 0)
            );
            return Some((ArmState::InvalidUsers, reason));
        }
        let top = self.top_user.filter(|top| *top > MAX_TOP_USER)?;
        let reason = format!("one user has {} of the lists of an arm", percentage(top, 0));
        Some((ArmState::InvalidUsers, reason))
    }

    fn harm_of(&self, which: impl Fn(&str) -> bool) -> Option<ReasonedState> {
        let n_metrics = self.harms.len();
        let is_harm = |harm: &&HarmFact| harm::is_harm(harm.p, n_metrics, self.alpha) && which(&harm.metric);
        // Before burn-in is done no p is calibrated, so there is no harm.
        let harms = self.harms.iter().filter(|_| self.lacks.is_none()).filter(is_harm);
        // The same choice as for the label and the sentence: a metric that is worse now, with the smallest p.
        let first = harms.min_by(|a, b| {
            let order = b.is_worse_now.cmp(&a.is_worse_now);
            order.then(a.p.total_cmp(&b.p))
        });
        Some((ArmState::Harm, first?.in_words()))
    }

    fn list_ratio(&self) -> Option<ReasonedState> {
        let ListRatioFact { g, p } = self.list_ratio?;
        // Bonferroni over the arms, because each has its own list ratio.
        let is_sure = p <= srm::ALARM / self.n_treatments.max(1) as f64;
        let reason = || {
            format!(
                "lists per user differ by {}, {}",
                signed_percentage(g.exp_m1(), 1),
                in_words(p)
            )
        };
        (is_sure && g.abs() >= self.list_ratio_margin).then(|| (ArmState::InvalidListRatio, reason()))
    }

    fn collecting(&self) -> Option<ReasonedState> {
        let lacks = self.lacks.clone();
        lacks.map(|lacks| (ArmState::Collecting, lacks))
    }

    /// Returns the state between two decision looks.
    fn between(&self) -> ReasonedState {
        // Days are missing only until the first decision look. Its reason stays until the next one.
        let nothing = || match self.previous.and_then(|previous| Some((previous, previous.at?))) {
            Some((previous, at)) => format!("{} on day {}", previous.reason, at.day),
            None => self
                .wait
                .clone()
                .unwrap_or_else(|| "nothing is decided".to_owned()),
        };
        match self.previous {
            // Decisions of the earlier rule were stored without their look.
            Some(previous) if previous.is_decision() && previous.at.is_none() => {
                let reason =
                    "decided by the rule of an earlier version; the next day of a decision replaces it";
                (previous.state, reason.to_owned())
            }
            _ => self
                .standing()
                .unwrap_or_else(|| (ArmState::NoDecision, nothing())),
        }
    }

    /// Returns an earlier decision by the rule of this version.
    fn standing(&self) -> Option<ReasonedState> {
        let previous = self.previous.filter(|previous| previous.is_decision())?;
        let at = previous.at?;
        Some((previous.state, dated(&previous.reason, at)))
    }

    fn loss(&self) -> Option<ReasonedState> {
        let is_worse = |primary: &&PrimaryFact| primary.lies_beyond_zero(-1.0);
        let worse = self.significant().find(is_worse)?;
        Some((
            ArmState::Loss,
            format!("{} is worse, {}", name_of(&worse.metric), in_words(worse.p)),
        ))
    }

    fn win(&self) -> Option<ReasonedState> {
        let reason = match self.goal {
            Goal::Superior => {
                let better = self.significant().find(|primary| primary.lies_beyond_zero(1.0))?;
                format!("{} is better, {}", name_of(&better.metric), in_words(better.p))
            }
            Goal::NonInferior => {
                let holds =
                    |primary: &PrimaryFact| primary.lower.is_some_and(|lower| lower > -primary.margin);
                let all = !self.primaries.is_empty() && self.primaries.iter().all(holds);
                all.then(|| "no primary metric is worse by more than its margin".to_owned())?
            }
        };
        // A win also needs every guardrail to pass.
        self.failing().is_none().then_some((ArmState::Win, reason))
    }

    fn no_effect(&self) -> Option<ReasonedState> {
        let is_small = |primary: &PrimaryFact| {
            let lower = primary.lower.is_some_and(|lower| lower > -primary.mde);
            lower && primary.upper.is_some_and(|upper| upper < primary.mde)
        };
        let all = !self.primaries.is_empty() && self.primaries.iter().all(is_small);
        let reason = || "all lifts are within the smallest effect that matters".to_owned();
        (all && self.failing().is_none()).then(|| (ArmState::NoEffect, reason()))
    }

    fn open(&self) -> ReasonedState {
        let reason = match (self.significant().next(), self.failing()) {
            _ if self.primaries.is_empty() => "no primary metric".to_owned(),
            // A primary that is worse would be a loss.
            (Some(primary), Some(guardrail)) => format!(
                "{} is better, but the guardrail {} is still open",
                name_of(&primary.metric),
                name_of(&guardrail.metric)
            ),
            _ => "no primary metric differs significantly".to_owned(),
        };
        (ArmState::NoDecision, reason)
    }

    /// Returns the primaries that differ. The lift and the tested difference have slightly different errors, so p may be small
    /// while the shown interval still contains 0. Such a primary is left out, because a decision must never contradict its
    /// interval.
    fn significant(&self) -> impl Iterator<Item = &PrimaryFact> {
        let is_small = |primary: &&PrimaryFact| primary.p <= self.alpha;
        let differs = |primary: &&PrimaryFact| [1.0, -1.0].iter().any(|sign| primary.lies_beyond_zero(*sign));
        self.primaries.iter().filter(is_small).filter(differs)
    }

    /// Returns the first guardrail that does not pass.
    fn failing(&self) -> Option<&GuardrailFact> {
        let passes =
            |guardrail: &GuardrailFact| guardrail.lower.is_some_and(|lower| lower > -guardrail.margin);
        self.guardrails.iter().find(|guardrail| !passes(guardrail))
    }
}

impl HarmFact {
    /// Writes "CTR@10 is probably worse by the one-sided test of harm, p of harm = 0.042, since day 7, at least 0.4% worse (one-sided
    /// 97.5%)".
    fn in_words(&self) -> String {
        let verb = match self.now {
            HarmNow::Worse => "is",
            HarmNow::ProbablyWorse(_) => "is probably",
            HarmNow::Unclear | HarmNow::Better => "was",
        };
        let since = self.since_day.map(|day| format!(", since day {day}"));
        let now = match self.now {
            HarmNow::Worse => String::new(),
            HarmNow::ProbablyWorse(bound) => format!(", {}", bound.in_words()),
            HarmNow::Unclear => "; its interval includes 0 now".to_owned(),
            HarmNow::Better => "; its interval is now on the better side of 0".to_owned(),
        };
        format!(
            "{} {verb} worse by the one-sided test of harm, {}{}{now}",
            name_of(&self.metric),
            equation("p of harm", self.p),
            since.unwrap_or_default(),
        )
    }
}

impl PrimaryFact {
    /// Reports whether the arm is better, or worse if `sign` is −1, and the whole interval too, if there is one.
    fn lies_beyond_zero(&self, sign: f64) -> bool {
        let end = if sign > 0.0 { self.lower } else { self.upper };
        sign * self.effect > 0.0 && end.is_none_or(|end| sign * end > 0.0)
    }
}

/// Writes why arms that lose different shares of their lists and clicks cannot be compared.
pub(super) fn refused_reason(shares: [f64; 2]) -> String {
    let [arm, control] = shares.map(|share| percentage(share, 1));
    format!("{arm} of the arm's lists were refused or lost a click, but {control} of its control's lists")
}

/// Appends the day of the decision to a reason: ", decided on day 7" or ", since day 7, last confirmed on day 14".
pub(super) fn dated(reason: &str, at: DecidedAt) -> String {
    let DecidedAt { day, since_day, .. } = at;
    match since_day == day {
        true => format!("{reason}, decided on day {day}"),
        false => format!("{reason}, since day {since_day}, last confirmed on day {day}"),
    }
}

/// State and reason.
type ReasonedState = (ArmState, String);

impl ArmState {
    /// States in the order of export.
    pub const ALL: [ArmState; 11] = [
        ArmState::NoDecision,
        ArmState::InvalidSrm,
        ArmState::InvalidMultiArm,
        ArmState::InvalidUsers,
        ArmState::InvalidRefused,
        ArmState::InvalidListRatio,
        ArmState::Collecting,
        ArmState::Harm,
        ArmState::Loss,
        ArmState::Win,
        ArmState::NoEffect,
    ];

    /// Returns its name in labels and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ArmState::NoDecision => "no_decision",
            ArmState::InvalidSrm => "invalid(srm)",
            ArmState::InvalidMultiArm => "invalid(multi_arm)",
            ArmState::InvalidUsers => "invalid(users)",
            ArmState::InvalidRefused => "invalid(refused)",
            ArmState::InvalidListRatio => "invalid(list_ratio)",
            ArmState::Collecting => "collecting",
            ArmState::Harm => "harm",
            ArmState::Loss => "loss",
            ArmState::Win => "win",
            ArmState::NoEffect => "no_effect",
        }
    }

    /// Returns whether the state is the result of a decision look.
    pub fn is_decision(self) -> bool {
        matches!(self, ArmState::Win | ArmState::Loss | ArmState::NoEffect)
    }

    pub fn verdict(self) -> Verdict {
        match self {
            ArmState::Win => Verdict::Pass,
            ArmState::Loss | ArmState::Harm => Verdict::Rollback,
            _ => Verdict::Hold,
        }
    }
}

impl Verdict {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Hold => "hold",
            Verdict::Rollback => "rollback",
        }
    }

    /// Returns 1, 0 or −1.
    pub fn value(self) -> i8 {
        match self {
            Verdict::Pass => 1,
            Verdict::Hold => 0,
            Verdict::Rollback => -1,
        }
    }
}

/// Writes the state with its verdict.
impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verdict = self.state.verdict();
        let mut fields = serializer.serialize_struct("Decision", 4)?;
        fields.serialize_field("result", verdict.name())?;
        fields.serialize_field("value", &verdict.value())?;
        fields.serialize_field("state", self.state.name())?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

impl fmt::Display for ArmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
