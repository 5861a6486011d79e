//! What is said of an arm at a look: the first of twelve rules that applies.

use std::fmt;

use super::names::name_of;
use super::probability::in_words;
use super::settings::Goal;
use super::{harm, per_user, srm};

/// The state of a treatment arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    NoDecision,
    /// Arms do not get their shares of users.
    InvalidSrm,
    /// Users were seen in two arms.
    InvalidMultiArm,
    /// Arms do not get their shares of lists.
    InvalidListRatio,
    /// Too little is known for any test.
    Collecting,
    /// A primary or a guardrail is worse, whenever one looks.
    Harm,
    /// A primary is worse at a decision look.
    Loss,
    Win,
    /// All lifts lie within what matters.
    NoEffect,
}

/// What a rollout is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Hold,
    Rollback,
}

/// What is said of an arm, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub state: State,
    /// In words, without a full stop.
    pub reason: String,
    /// Whether rules 9 to 12 said it, at a decision look.
    pub is_fresh: bool,
}

/// Everything that the rules ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Whether shares of users are expected.
    pub has_shares: bool,
    /// None where users are not counted.
    pub srm_p: Option<f64>,
    /// None where users are not counted.
    pub multi_arm: Option<MultiArm>,
    /// None while too few buckets are in use.
    pub list_ratio: Option<ListRatioFact>,
    pub list_ratio_margin: f64,
    /// Treatment arms that are tested.
    pub n_treatments: usize,
    pub alpha: f64,
    /// What burn-in still lacks; none once it is done.
    pub lacks: Option<String>,
    /// Of the arm's primaries and guardrails.
    pub harms: Vec<HarmFact>,
    pub is_decision_look: bool,
    /// What is waited for, where this is no decision look.
    pub wait: Option<String>,
    pub goal: Goal,
    pub primaries: Vec<PrimaryFact>,
    pub guardrails: Vec<GuardrailFact>,
    /// What the last decision look said.
    pub previous: Option<State>,
}

/// Users seen in two arms within one epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiArm {
    pub in_two: f64,
    /// Of so many.
    pub users: f64,
}

/// How lists per assigned user differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListRatioFact {
    /// ln of the ratio.
    pub g: f64,
    pub p: f64,
}

/// How sure harm is in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct HarmFact {
    pub metric: String,
    pub p: f64,
}

/// A primary metric; signs are such that above 0 is better, also where lower values are.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimaryFact {
    pub metric: String,
    /// After Holm's correction.
    pub p: f64,
    /// The difference or the lift: its sign says which arm is better.
    pub effect: f64,
    /// Of the lift; none where it has no interval.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub mde: f64,
    /// By how much it may be worse under [`Goal::NonInferior`].
    pub margin: f64,
}

/// A guardrail; signs are such that above 0 is better.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardrailFact {
    pub metric: String,
    /// Of the lift; none where it has no interval.
    pub lower: Option<f64>,
    pub margin: f64,
}

/// Users of whom 1% may be seen in two arms.
const MIN_USERS: f64 = 1000.0;
const MAX_MULTI_ARM: f64 = 0.01;

impl Facts {
    /// The first rule that applies.
    pub fn decide(&self) -> Decision {
        let standing = self
            .without_shares()
            .or_else(|| self.mismatch())
            .or_else(|| self.multi_arm())
            .or_else(|| self.harm_of(per_user::is_per_user))
            .or_else(|| self.list_ratio())
            .or_else(|| self.collecting())
            .or_else(|| self.harm_of(|_| true))
            .or_else(|| self.between());
        let fresh = || self.loss().or_else(|| self.win()).or_else(|| self.no_effect());
        let is_fresh = standing.is_none();
        let said = standing.or_else(fresh).unwrap_or_else(|| self.open());
        let (state, reason) = said;
        Decision {
            state,
            reason,
            is_fresh,
        }
    }

    fn without_shares(&self) -> Option<Said> {
        (!self.has_shares).then(|| (State::NoDecision, "no shares".to_owned()))
    }

    fn mismatch(&self) -> Option<Said> {
        let p = self.srm_p.filter(|p| *p <= srm::ALARM)?;
        Some((
            State::InvalidSrm,
            format!("sample ratio mismatch, {}", in_words(p)),
        ))
    }

    fn multi_arm(&self) -> Option<Said> {
        let MultiArm { in_two, users } = self.multi_arm?;
        let is_invalid = users >= MIN_USERS && in_two > MAX_MULTI_ARM * users;
        let reason = || format!("{in_two} of {users} users were seen in two arms");
        is_invalid.then(|| (State::InvalidMultiArm, reason()))
    }

    fn harm_of(&self, which: impl Fn(&str) -> bool) -> Option<Said> {
        let n_metrics = self.harms.len();
        let is_harm = |harm: &&HarmFact| harm::is_harm(harm.p, n_metrics, self.alpha) && which(&harm.metric);
        let harm = self.harms.iter().filter(|_| self.lacks.is_none()).find(is_harm)?;
        Some((
            State::Harm,
            format!("{} is worse, {}", name_of(&harm.metric), in_words(harm.p)),
        ))
    }

    fn list_ratio(&self) -> Option<Said> {
        let ListRatioFact { g, p } = self.list_ratio?;
        let is_sure = p <= srm::ALARM / self.n_treatments.max(1) as f64;
        let reason = || {
            format!(
                "lists per user differ by {:+.1}%, {}",
                100.0 * g.exp_m1(),
                in_words(p)
            )
        };
        (is_sure && g.abs() >= self.list_ratio_margin).then(|| (State::InvalidListRatio, reason()))
    }

    fn collecting(&self) -> Option<Said> {
        let lacks = self.lacks.clone();
        lacks.map(|lacks| (State::Collecting, lacks))
    }

    /// What the last decision look said.
    fn between(&self) -> Option<Said> {
        let state = self.previous.unwrap_or(State::NoDecision);
        let reason = match (state, &self.wait) {
            (State::NoDecision, Some(wait)) => wait.clone(),
            _ => "as of the last decision look".to_owned(),
        };
        (!self.is_decision_look).then_some((state, reason))
    }

    fn loss(&self) -> Option<Said> {
        let worse = self.significant().find(|primary| primary.effect < 0.0)?;
        Some((
            State::Loss,
            format!("{} is worse, {}", name_of(&worse.metric), in_words(worse.p)),
        ))
    }

    fn win(&self) -> Option<Said> {
        let reason = match self.goal {
            Goal::Superior => {
                let better = self.significant().find(|primary| primary.effect > 0.0)?;
                format!("{} is better, {}", name_of(&better.metric), in_words(better.p))
            }
            Goal::NonInferior => {
                let holds =
                    |primary: &PrimaryFact| primary.lower.is_some_and(|lower| lower > -primary.margin);
                let all = !self.primaries.is_empty() && self.primaries.iter().all(holds);
                all.then(|| "no primary metric is worse by more than its margin".to_owned())?
            }
        };
        self.failing().is_none().then_some((State::Win, reason))
    }

    fn no_effect(&self) -> Option<Said> {
        let is_small = |primary: &PrimaryFact| {
            let lower = primary.lower.is_some_and(|lower| lower > -primary.mde);
            lower && primary.upper.is_some_and(|upper| upper < primary.mde)
        };
        let all = !self.primaries.is_empty() && self.primaries.iter().all(is_small);
        let reason = || "all lifts lie within the smallest effect that matters".to_owned();
        (all && self.failing().is_none()).then(|| (State::NoEffect, reason()))
    }

    fn open(&self) -> Said {
        let reason = match self.failing() {
            _ if self.primaries.is_empty() => "no primary metric".to_owned(),
            Some(guardrail) if self.significant().next().is_some() => {
                format!("the guardrail {} is still open", name_of(&guardrail.metric))
            }
            _ => "no primary metric differs significantly".to_owned(),
        };
        (State::NoDecision, reason)
    }

    fn significant(&self) -> impl Iterator<Item = &PrimaryFact> {
        self.primaries.iter().filter(|primary| primary.p <= self.alpha)
    }

    /// The first guardrail that does not pass.
    fn failing(&self) -> Option<&GuardrailFact> {
        let passes =
            |guardrail: &GuardrailFact| guardrail.lower.is_some_and(|lower| lower > -guardrail.margin);
        self.guardrails.iter().find(|guardrail| !passes(guardrail))
    }
}

/// A state, and why.
type Said = (State, String);

impl State {
    /// All of them, in the order of export.
    pub const ALL: [State; 9] = [
        State::NoDecision,
        State::InvalidSrm,
        State::InvalidMultiArm,
        State::InvalidListRatio,
        State::Collecting,
        State::Harm,
        State::Loss,
        State::Win,
        State::NoEffect,
    ];

    /// Its name in labels and JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::NoDecision => "no_decision",
            State::InvalidSrm => "invalid(srm)",
            State::InvalidMultiArm => "invalid(multi_arm)",
            State::InvalidListRatio => "invalid(list_ratio)",
            State::Collecting => "collecting",
            State::Harm => "harm",
            State::Loss => "loss",
            State::Win => "win",
            State::NoEffect => "no_effect",
        }
    }

    pub fn verdict(self) -> Verdict {
        match self {
            State::Win => Verdict::Pass,
            State::Loss | State::Harm => Verdict::Rollback,
            _ => Verdict::Hold,
        }
    }
}

impl Verdict {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Hold => "hold",
            Verdict::Rollback => "rollback",
        }
    }

    /// 1, 0 or −1.
    pub fn value(self) -> i8 {
        match self {
            Verdict::Pass => 1,
            Verdict::Hold => 0,
            Verdict::Rollback => -1,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
