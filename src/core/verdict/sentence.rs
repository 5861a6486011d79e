//! Summary of an experiment: one sentence, and a badge with the same meaning in a word.
//!
//! The sentence follows the tested states of the arms (Holm-corrected, checked in the order of the rules), and names a winner
//! only if they do. Lifts come with the interval that holds at every look. Numbers have the same format as on the page.

mod write;

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeStruct, Serializer};

pub use self::write::count;
use self::write::{interval, percent, share};
use super::label::{Label, harmed_metric, lies_beyond_zero};
use crate::nouns::number_of;
use crate::statistics::chance::{best_of, stretch};
use crate::statistics::decision::MultiArm;
use crate::statistics::{
    ArmReport, ArmState, ComparisonReport, DecidedAt, Decision, Goal, HarmBound, Interval, MetricDecision,
    MetricReport, Settings, Size, name_of, srm,
};

/// Sentence and badge of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub badge: Badge,
    /// The badge in words.
    pub label: Label,
    pub parts: Vec<SentencePart>,
    /// Number of leading parts that make the claim. The rest is its evidence.
    pub n_claiming: usize,
    /// Arm that the claim is about.
    pub arm: Option<String>,
    /// Lift that the best arm may show by chance alone. Only if there are many arms.
    pub chance: Option<Chance>,
}

/// Kind of a sentence, in the order in which a reader needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Badge {
    /// A check failed: the numbers must not be used.
    Invalid,
    /// An arm is better.
    Win,
    /// An arm is worse, and no arm is better.
    Harm,
    /// Every lift is smaller than the smallest effect that matters.
    NoEffect,
    /// No result, and no later look to wait for.
    Open,
    /// Too early for a decision.
    Early,
    /// No look yet.
    Waiting,
    /// No comparison.
    Uncompared,
}

/// A piece of a sentence. Names come from events, so they may contain anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentencePart {
    Text(String),
    Name(String),
}

/// Chance level of many arms: if no arm differed, the best lift would be below `lift` in 39 of 40 cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    pub n_arms: usize,
    pub lift: f64,
}

/// A look at an experiment with a comparison.
#[derive(Debug)]
pub struct ComparedLook<'a> {
    pub settings: &'a Settings,
    pub report: &'a ComparisonReport,
    /// Sample sizes by arm, including the control.
    pub sizes: BTreeMap<&'a str, Size>,
    /// True if shares have never changed, so that the users of all time can be compared with them.
    pub is_one_epoch: bool,
}

/// Number of arms from which the chance level is reported.
const MANY: usize = 5;
/// Most arms whose split is written in full.
const MOST_IN_SPLIT: usize = 4;

/// Returns the sentence of an experiment without a comparison.
pub fn uncompared(n_arms: usize) -> Headline {
    let why = match n_arms {
        0 | 1 => "nothing to compare: there is only one arm",
        _ => {
            "nothing is tested: the configuration names no control for this experiment, so a difference here may be chance"
        }
    };
    Headline::new(Badge::Uncompared, None).text(why)
}

/// Returns the sentence before the first look. `settles_in_ms` is the event time until the first list settles, if it has not yet.
pub fn waiting(has_settled: bool, settles_in_ms: Option<i64>, settle_after_ms: i64) -> Headline {
    let headline = Headline::new(Badge::Waiting, None);
    match settles_in_ms {
        _ if has_settled => headline.text(
            "too early: the first lists are final, and the first analysis comes within ten minutes of event time",
        ),
        Some(ms) if ms > 0 => headline.text(format!(
            "too early: no list is final yet; the first becomes final in about {} of event time",
            write::span(ms)
        )),
        _ => headline.text(format!(
            "too early: no list is final yet; each becomes final {} after it was served",
            write::span(settle_after_ms)
        )),
    }
}

/// Returns the sentence of an experiment that was given up.
pub fn given_up() -> Headline {
    Headline::new(Badge::Uncompared, None)
        .text("no longer compared: statistics took more memory than limits.max_statistics allows")
}

/// Returns the sentence of a look.
pub fn of_look(look: &ComparedLook) -> Headline {
    let mut headline = look
        .nothing_to_test()
        .or_else(|| look.invalid())
        .unwrap_or_else(|| look.tested());
    // Numbers that must not be used need no yardstick.
    headline.chance = look.chance().filter(|_| headline.badge != Badge::Invalid);
    headline
}

/// Returns the sort key of arms, best first: the lower end of the lift of the first primary, oriented so that above 0 is
/// better, with an interval that holds for all arms together. Arms without an interval are absent.
pub fn lower_ends<'a>(settings: &'a Settings, report: &'a ComparisonReport) -> BTreeMap<&'a str, f64> {
    let Some(key) = settings.primary.first() else {
        return BTreeMap::new();
    };
    // Sorting picks the best of several arms, so the interval must hold for all of them together.
    let stretched = stretch(tested(settings, report).count(), settings.alpha);
    let ends = tested(settings, report).filter_map(|arm| {
        let metric = arm.of.metrics.get(key)?;
        Some((arm.name, lower_end(settings, key, metric, stretched)?))
    });
    ends.collect()
}

fn tested<'a>(settings: &'a Settings, report: &'a ComparisonReport) -> impl Iterator<Item = TestedArm<'a>> {
    let arms = report.arms.iter().filter(|(name, _)| settings.tests(name));
    arms.filter_map(|(name, of)| {
        let decision = of.decision.as_ref()?;
        let label = Label::of(settings, of)?;
        Some(TestedArm {
            name,
            of,
            decision,
            label,
        })
    })
}

fn lower_end(settings: &Settings, key: &str, metric: &MetricReport, stretched: f64) -> Option<f64> {
    let (lift, Interval { lower, upper }) = (metric.lift?, metric.interval?);
    // Turned over if lower is better, so that a larger end always means a better arm.
    Some(match settings.lower_is_better.contains(key) {
        true => -lift - stretched * (upper - lift),
        false => lift - stretched * (lift - lower),
    })
}

/// A tested arm.
#[derive(Clone, Copy)]
struct TestedArm<'a> {
    name: &'a str,
    of: &'a ArmReport,
    decision: &'a Decision,
    label: Label,
}

impl TestedArm<'_> {
    /// Writes the lift with its current band, or as decided: "CTR@10 +4.1% (+0.9% to +7.3%), decided Mon 24 Nov, day 7". If a later
    /// look has confirmed the decision, it ends with ", better since Mon 24 Nov (day 7), last confirmed Mon 1 Dec (day 14)".
    fn lift(&self, key: &str, metric: &MetricReport) -> String {
        let (shown, interval) = self.shown(metric);
        let lift = lift(key, shown, interval);
        match self.decided_metric(metric) {
            Some(MetricDecision { at, .. }) => format!("{lift}, {}", self.held(at)),
            None if self.has_decided() && self.of.decided.is_some() => {
                format!("{lift}, decided by the rule of an earlier version")
            }
            None => lift,
        }
    }

    /// Writes since when the arm has its state.
    fn held(&self, at: DecidedAt) -> String {
        let [since, decided] = [at.since_ms, at.as_of_ms].map(|ms| write::date(ms).unwrap_or_default());
        if since == decided {
            return format!("decided {decided}, day {}", at.day);
        }
        let state = match self.of.open_again {
            // A decision that is open again no longer holds.
            Some(_) => "decided".to_owned(),
            None => format!("{} since", self.label.words().to_lowercase()),
        };
        format!(
            "{state} {since} (day {}), last confirmed {decided} (day {})",
            at.since_day, at.day
        )
    }

    /// Returns the lift and its interval: as decided, or else as of this look.
    fn shown(&self, metric: &MetricReport) -> (Option<f64>, Option<Interval>) {
        match self.decided_metric(metric) {
            Some(decision) => (decision.metric.lift, decision.metric.interval),
            None => (metric.lift, metric.interval),
        }
    }

    /// Returns the metric at the current decision. None if an earlier version decided: it stored only the state.
    fn decided_metric(&self, metric: &MetricReport) -> Option<MetricDecision> {
        // In other states, such as harm, the stored decision is not what determines the state.
        metric.decision.filter(|_| self.has_decided())
    }

    fn has_decided(&self) -> bool {
        self.decision.state.is_decision()
    }

    fn open_again(&self) -> &'static str {
        match self.of.open_again {
            Some(_) => "; since then its interval has come to include 0",
            None => "",
        }
    }

    fn is(&self, states: &[ArmState]) -> bool {
        states.contains(&self.decision.state)
    }
}

impl<'a> ComparedLook<'a> {
    fn arms(&self) -> Vec<TestedArm<'a>> {
        tested(self.settings, self.report).collect()
    }

    fn control(&self) -> &'a str {
        &self.settings.control
    }

    fn nothing_to_test(&self) -> Option<Headline> {
        let headline = Headline::new(Badge::Uncompared, None);
        if self
            .sizes
            .get(self.control())
            .is_none_or(|size| size.lists == 0.0)
        {
            let headline = headline
                .text("nothing to compare: there is no final list of ")
                .name(self.control());
            return Some(headline.text(", with which the others are compared"));
        }
        let has_lists = |arm: &TestedArm| self.sizes.get(arm.name).is_some_and(|size| size.lists > 0.0);
        if !self.arms().iter().any(has_lists) {
            let headline = headline
                .text("nothing to compare: no arm other than ")
                .name(self.control());
            return Some(headline.text(" has a share of the users and a final list"));
        }
        None
    }

    /// Returns the sentence of a failed check.
    fn invalid(&self) -> Option<Headline> {
        let arms = self.arms();
        let headline = Headline::new(Badge::Invalid, None).text("do not trust this: ");
        // In the order of the rules, so that the first failed check is named.
        if arms.iter().any(|arm| arm.is(&[ArmState::InvalidSrm])) {
            return Some(self.split(headline));
        }
        if arms.iter().any(|arm| arm.is(&[ArmState::InvalidMultiArm])) {
            let seen = self.report.multi_arm.and_then(MultiArm::share);
            let seen = seen.map_or_else(|| "too many".to_owned(), |seen| share(seen, 1));
            return Some(headline.text(format!("{seen} of the users were seen in two arms")));
        }
        if let Some(arm) = arms.iter().find(|arm| arm.is(&[ArmState::InvalidUsers])) {
            return Some(headline.text(arm.decision.reason.clone()));
        }
        if let Some(arm) = arms.iter().find(|arm| arm.is(&[ArmState::InvalidRefused])) {
            return Some(headline.text(arm.decision.reason.clone()));
        }
        // A wrong list ratio invalidates only its own arm, so the experiment is invalid only if every arm has one.
        let is_ratio = |arm: &TestedArm| arm.is(&[ArmState::InvalidListRatio]);
        let first = arms
            .iter()
            .find(|arm| is_ratio(arm))
            .filter(|_| arms.iter().all(is_ratio))?;
        let headline = Headline {
            arm: Some(first.name.to_owned()),
            ..headline
        };
        let differ = first.of.list_ratio.map_or(0.0, |ratio| ratio.value - 1.0);
        let headline = headline.text(format!("lists per user differ by {} between ", percent(differ)));
        Some(headline.name(first.name).text(" and ").name(self.control()))
    }

    /// Adds "53:47, but 50:50 was planned", or the arm that is furthest from its share.
    fn split(&self, headline: Headline) -> Headline {
        let planned: Vec<(&str, f64)> = self
            .settings
            .shares
            .iter()
            .map(|(arm, share)| (arm.as_str(), *share))
            .collect();
        let users = |arm: &str| self.sizes.get(arm).map_or(Some(0.0), |size| size.users);
        let seen: Option<Vec<f64>> = planned.iter().map(|(arm, _)| users(arm)).collect();
        // Several epochs have no single planned split.
        let seen = seen.filter(|seen| self.is_one_epoch && seen.iter().sum::<f64>() > 0.0);
        let Some(seen) = seen else {
            return headline.text("users are not split between the arms as planned");
        };
        let [all_seen, all_planned] = [
            seen.iter().sum::<f64>(),
            planned.iter().map(|(_, share)| share).sum(),
        ];
        // Planned shares need not add up to 1.
        let arms = planned.iter().zip(&seen);
        let arms: Vec<(&str, [f64; 2])> = arms
            .map(|((arm, planned), seen)| (*arm, [seen / all_seen, planned / all_planned]))
            .collect();
        // The control comes first, then the treatments.
        let (control, others): (Vec<_>, Vec<_>) = arms.iter().partition(|(arm, _)| *arm == self.control());
        let ordered: Vec<_> = control.into_iter().chain(others).collect();
        if ordered.len() <= MOST_IN_SPLIT {
            let [seen, planned] = write::split(&ordered.iter().map(|(_, of)| *of).collect::<Vec<_>>());
            let headline = headline.text(format!("users are split {seen}, but {planned} was planned ("));
            let last = ordered.len() - 1;
            let named = ordered
                .iter()
                .enumerate()
                .fold(headline, |headline, (place, (arm, _))| {
                    headline.name(arm).text(if place == last { ")" } else { " : " })
                });
            return named;
        }
        // A ratio treats an arm with half of its users the same, whatever its share.
        let far = |of: &[f64; 2]| (of[0] / of[1]).ln().abs();
        let furthest = ordered.iter().max_by(|(_, a), (_, b)| far(a).total_cmp(&far(b)));
        let Some((arm, [seen, planned])) = furthest else {
            return headline;
        };
        let headline = headline.text("users are not split as planned: ").name(arm);
        headline.text(format!(
            " has {}, but {} was planned",
            share(*seen, 1),
            share(*planned, 1)
        ))
    }

    /// Returns the sentence of the tested states. All checks have passed.
    fn tested(&self) -> Headline {
        let arms = self.arms();
        let of = |states: &[ArmState]| -> Vec<TestedArm> {
            arms.iter().filter(|arm| arm.is(states)).copied().collect()
        };
        let [wins, worse] = [of(&[ArmState::Win]), of(&[ArmState::Harm, ArmState::Loss])];
        // A winner is named even if other arms are worse. These follow after it.
        if let Some(best) = self.best(&wins).or_else(|| wins.first().copied()) {
            return self.win(best, wins.len(), &worse, arms.len());
        }
        if let Some(first) = self.worst(&worse) {
            return self.harm(first, &worse, arms.len());
        }
        if self.settings.shares.is_empty() {
            let headline = Headline::new(Badge::Uncompared, None);
            let headline = headline.text("not tested: the planned shares of users (shares) are not set");
            return self.so_far(headline, "; ");
        }
        // An arm without lists cannot show a difference.
        let has_lists = |arm: &TestedArm| self.sizes.get(arm.name).is_some_and(|size| size.lists > 0.0);
        if arms
            .iter()
            .filter(|arm| has_lists(arm))
            .all(|arm| arm.is(&[ArmState::NoEffect]))
        {
            return self.no_effect(&arms);
        }
        self.undecided(&arms)
    }

    fn win(&self, best: TestedArm, n_wins: usize, worse: &[TestedArm], n_arms: usize) -> Headline {
        let key = self.decisive(&best);
        let metric = key.and_then(|key| Some((key, best.of.metrics.get(key)?)));
        let headline = Headline::new(Badge::Win, Some(best.name)).name(best.name);
        let headline = headline.labeled(best.label);
        let verb = match self.settings.goal {
            Goal::NonInferior => " is not worse than ",
            Goal::Superior if best.of.open_again.is_none() => " beats ",
            Goal::Superior => " beat ",
        };
        let mut headline = headline.text(verb).name(self.control());
        if let (Goal::NonInferior, Some((key, _))) = (self.settings.goal, metric) {
            let margin = share(self.settings.margin(key), 1);
            headline = headline.text(format!(" by more than {margin}"));
        }
        if let Some((key, metric)) = metric {
            headline = headline.text(format!(": {}{}", best.lift(key, metric), best.open_again()));
        }
        let headline = headline.resting_on(self.rests_on(best.name, metric));
        let headline = match (n_arms, self.settings.goal) {
            (0 | 1, _) => headline,
            (_, goal) => {
                let headline = headline.text(format!("; {n_wins} of {n_arms} arms "));
                match goal {
                    Goal::Superior if n_wins == 1 => headline.text("beats ").name(self.control()),
                    Goal::Superior => headline
                        .text("beat ")
                        .name(self.control())
                        .text(", not compared with each other"),
                    Goal::NonInferior if n_wins == 1 => headline.text("is not worse"),
                    Goal::NonInferior => headline.text("are not worse"),
                }
            }
        };
        named_invalid(self.named_others(headline, worse), &self.unread())
    }

    /// Arms whose numbers must not be used.
    fn unread(&self) -> Vec<TestedArm<'a>> {
        let mut arms = self.arms();
        arms.retain(|arm| arm.is(&[ArmState::InvalidListRatio]));
        arms
    }

    fn harm(&self, first: TestedArm, worse: &[TestedArm], n_arms: usize) -> Headline {
        let headline = Headline::new(Badge::Harm, Some(first.name)).name(first.name);
        let headline = headline.labeled(first.label);
        let worst = self.worst_metric(&first);
        // An interval that includes 0 now proves nothing about now, unless the one-sided bound still does.
        let is_shown_now = worst.is_some_and(|(key, metric)| self.harm_bound(key, metric).is_some());
        let verb = match headline.label {
            Label::ProbablyHarmful if is_shown_now => " is probably worse than ",
            Label::ProbablyHarmful => " was worse than ",
            _ => " is worse than ",
        };
        let mut headline = headline.text(verb).name(self.control());
        if let Some((key, metric)) = worst {
            headline = headline.text(match first.is(&[ArmState::Loss]) {
                true => format!(": {}{}", first.lift(key, metric), first.open_again()),
                false => self.harmed(&first, key, metric),
            });
        }
        let headline = headline.resting_on(self.rests_on(first.name, worst));
        match n_arms {
            0 | 1 => headline,
            _ => headline.text(format!(
                "; {} of {n_arms} arms {}, none is better",
                worse.len(),
                self.are_worse(worse)
            )),
        }
    }

    /// Adds "; blend and 2 more are worse".
    fn named_others(&self, headline: Headline, worse: &[TestedArm]) -> Headline {
        let Some((first, rest)) = worse.split_first() else {
            return headline;
        };
        let headline = headline.text("; ").name(first.name);
        let more = match rest.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        headline.text(format!("{more} {}", self.are_worse(worse)))
    }

    /// Writes "is worse", or how sure that is of several arms.
    fn are_worse(&self, arms: &[TestedArm]) -> String {
        let is_probable = |arm: &TestedArm| arm.label == Label::ProbablyHarmful;
        let verb = if arms.len() == 1 { "is" } else { "are" };
        match arms.iter().filter(|arm| is_probable(arm)).count() {
            0 => format!("{verb} worse"),
            n if n == arms.len() => format!("{verb} probably worse"),
            _ => format!("{verb} worse or probably worse"),
        }
    }

    /// Writes why an arm is harmful: the lift and, while its two-sided interval includes 0, the one-sided bound that shows harm.
    fn harmed(&self, arm: &TestedArm, key: &str, metric: &MetricReport) -> String {
        let lift = arm.lift(key, metric);
        let since = since(metric);
        if self.lies_beyond_zero(key, metric, -1.0) {
            let since = since.map_or_else(String::new, |since| format!(" ({since}, by the test of harm)"));
            return format!("{since}: {lift}");
        }
        let by = format!(
            " by the one-sided test of harm{}",
            since.map_or_else(String::new, |since| format!(" {since}"))
        );
        let now = match self.harm_bound(key, metric) {
            Some(bound) => format!(", {}", bound.in_words()),
            None if self.lies_beyond_zero(key, metric, 1.0) => {
                "; its interval is now on the better side of 0".to_owned()
            }
            None => "; both its one-sided and its two-sided interval include 0 now".to_owned(),
        };
        format!("{by}: {lift}{now}")
    }

    /// Returns the one-sided bound of harm if it is on the worse side of 0.
    fn harm_bound(&self, key: &str, metric: &MetricReport) -> Option<HarmBound> {
        metric.harm.filter(|harm| self.better(key, harm.bound) < 0.0)
    }

    /// Returns the metric by which an arm is worse.
    fn worst_metric<'b>(&self, arm: &TestedArm<'b>) -> Option<(&'a str, &'b MetricReport)> {
        match arm.is(&[ArmState::Loss]) {
            true => self.worst_at_decision(arm),
            false => harmed_metric(self.settings, arm.of),
        }
    }

    /// Returns the primary that lost with the smallest p.
    fn worst_at_decision<'b>(&self, arm: &TestedArm<'b>) -> Option<(&'a str, &'b MetricReport)> {
        self.first_at_decision(arm, -1.0)
            // An earlier version stored no numbers of its decision, so the test of harm names the metric.
            .or_else(|| harmed_metric(self.settings, arm.of))
    }

    /// Returns the primary with the smallest p at the current decision among those that are better, or worse if `sign` is −1.
    fn first_at_decision<'b>(&self, arm: &TestedArm<'b>, sign: f64) -> Option<(&'a str, &'b MetricReport)> {
        let primaries = self.settings.primary.iter().map(String::as_str);
        let decided = primaries.filter_map(|key| {
            let metric = arm.of.metrics.get(key)?;
            let decision = metric.decision?.metric;
            (sign * self.better(key, decision.lift?) > 0.0).then_some((key, metric, decision.p_adjusted))
        });
        let first = decided.min_by(|(_, _, a), (_, _, b)| a.total_cmp(b))?;
        Some((first.0, first.1))
    }

    fn no_effect(&self, arms: &[TestedArm]) -> Headline {
        let mde = share(self.settings.mde, 1);
        let headline = Headline::new(Badge::NoEffect, self.best(arms).map(|arm| arm.name));
        self.so_far(
            headline.text(format!("no difference that matters (±{mde})")),
            ": ",
        )
    }

    fn undecided(&self, arms: &[TestedArm]) -> Headline {
        let best = self.best(arms);
        let of = best.or_else(|| arms.first().copied());
        let Some(of) = of else {
            return Headline::new(Badge::Open, None).text("nothing is decided");
        };
        let (reason, dates) = (&of.decision.reason, self.dates_ahead());
        if arms.iter().all(|arm| arm.is(&[ArmState::Collecting])) {
            let headline = Headline::new(Badge::Early, Some(of.name));
            let headline = headline.labeled(Label::Collecting);
            return headline.text(format!("too early: too few users or clicks ({reason}){dates}"));
        }
        let badge = match self.report.next_decision_ms {
            Some(_) => Badge::Early,
            None => Badge::Open,
        };
        // After a decision look, more is missing than days.
        let lead = match (badge, &of.of.decided) {
            (Badge::Early, None) => "too early",
            (Badge::Early, Some(_)) => "not decided yet",
            _ => "not decided",
        };
        let missing = self.missing(&of);
        let headline = Headline::new(badge, Some(of.name)).text(format!("{lead}: {reason}{missing}{dates}"));
        named_invalid(self.so_far(headline, "; so far "), &self.unread())
    }

    /// Writes the missing conditions besides days: "; waiting for the guardrail MRR: may be down 13.9%, 5.0% allowed; data
    /// collected for a 5.0% effect: 20%, about 56 days in all".
    fn missing(&self, arm: &TestedArm) -> String {
        let Some(waiting) = &arm.of.waiting else {
            return String::new();
        };
        let is_better = |key: &String| {
            let metric = arm.of.metrics.get(key);
            metric.is_some_and(|metric| self.lies_beyond_zero(key, metric, 1.0))
        };
        let mut words = String::new();
        // Guardrails delay a decision only once a primary is better, or at a decision look.
        if arm.of.decided.is_some() || self.settings.primary.iter().any(is_better) {
            words += &self.open_guardrail(arm, &waiting.guardrails);
        }
        if let Some(information) = waiting.information {
            let effect = share(self.settings.mde, 1);
            words += &format!(
                "; data collected for a {effect} effect: {}",
                share(information, 0)
            );
            if let Some(days) = waiting.days_needed {
                words += &format!(", about {} in all", write::days(days));
            }
        }
        words
    }

    /// Writes the guardrail that is furthest from being shown to hold.
    fn open_guardrail(&self, arm: &TestedArm, open: &[String]) -> String {
        let room = |key: &str| -> Option<f64> {
            let guardrail = arm.of.metrics.get(key)?.guardrail?;
            Some(self.better(key, guardrail.bound?) + guardrail.margin)
        };
        let rooms = open
            .iter()
            .map(|key| (key, room(key).unwrap_or(f64::NEG_INFINITY)));
        let Some((key, _)) = rooms.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return String::new();
        };
        let guardrail = arm.of.metrics.get(key).and_then(|metric| metric.guardrail);
        let allowed = share(self.settings.margin(key), 1);
        let state = match guardrail.and_then(|guardrail| guardrail.bound) {
            Some(bound) => {
                let way = if bound < 0.0 { "down" } else { "up" };
                format!("may be {way} {}, {allowed} allowed", share(bound.abs(), 1))
            }
            None => format!("no interval yet, {allowed} allowed"),
        };
        let others = match open.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        format!("; waiting for the guardrail {}{others}: {state}", name_of(key))
    }

    /// Writes the days that lie ahead: ", next decision Mon 1 Dec, planned end Thu 4 Dec".
    fn dates_ahead(&self) -> String {
        let next = self.report.next_decision_ms;
        let is_ahead = |end: &i64| *end > self.report.as_of_ms;
        let planned = self.report.planned_end_ms.filter(is_ahead);
        // If both are the same look, it is named once; if both are absent, nothing is.
        let dates = match next == planned {
            true => [("next decision and planned end", next), ("", None)],
            false => [("next decision", next), ("planned end", planned)],
        };
        let dated = dates.into_iter().filter_map(|(name, ms)| {
            let date = write::date(ms?)?;
            Some(format!(", {name} {date}"))
        });
        dated.collect()
    }

    /// Adds the lift of the best arm so far.
    fn so_far(&self, headline: Headline, between: &str) -> Headline {
        let arms = self.arms();
        // Numbers of an arm with an invalid list ratio must not be used.
        let valid: Vec<TestedArm> = arms
            .iter()
            .filter(|arm| !arm.is(&[ArmState::InvalidListRatio]))
            .copied()
            .collect();
        let best = self.best(&valid);
        let metric = best.and_then(|best| {
            let key = self.settings.primary.first()?;
            Some((best, key, best.of.metrics.get(key)?))
        });
        let Some((best, key, metric)) = metric else {
            return headline;
        };
        let headline = Headline {
            arm: Some(best.name.to_owned()),
            ..headline
        };
        let headline = headline.text(between).name(best.name);
        let headline = match arms.len() {
            0 | 1 => headline,
            n => headline.text(format!(", the best of {n} arms,")),
        };
        let headline = headline.text(" against ").name(self.control()).text(": ");
        headline
            .text(best.lift(key, metric))
            .resting_on(self.rests_on(best.name, Some((key, metric))))
    }

    /// Writes ", 7.11% against 5.51%, 8,826 against 8,857 users, traffic split OK (p = 0.830)".
    fn rests_on(&self, arm: &str, metric: Option<(&str, &MetricReport)>) -> String {
        let values = metric.and_then(|(key, metric)| {
            let [own, of_control] = [metric.arm?, metric.control?].map(|it| write::value(key, it));
            Some(format!(", {own} against {of_control}"))
        });
        let values = values.unwrap_or_default();
        let of = [arm, self.control()].map(|arm| self.sizes.get(arm));
        // An experiment is planned in users. Lists are counted instead while users are unknown.
        let users = of.map(|size| size.and_then(|size| size.users));
        let ([own, of_control], noun) = match users {
            [Some(own), Some(of_control)] => ([own, of_control], "user"),
            _ => (of.map(|size| size.map_or(0.0, |size| size.lists)), "list"),
        };
        let sample = match own == of_control {
            true => format!("{} each", number_of(count(own), noun)),
            false => format!("{} against {}", count(own), number_of(count(of_control), noun)),
        };
        let split = self.report.srm_p.map(|p| format!(", {}", srm::in_words(p)));
        let split = split.unwrap_or_default();
        format!("{values}, {sample}{split}")
    }

    /// Returns the primary that a win is about: the one that is most significantly better, else the first.
    fn decisive(&self, arm: &TestedArm) -> Option<&'a str> {
        // A goal of not being worse is reached by all primaries, so the one closest to its margin is shown.
        if self.settings.goal == Goal::NonInferior {
            let room = |key: &&String| -> Option<f64> {
                let Interval { lower, upper } = arm.shown(arm.of.metrics.get(*key)?).1?;
                let [lower, upper] = [lower, upper].map(|end| self.better(key, end));
                Some(lower.min(upper) + self.settings.margin(key))
            };
            let known = self
                .settings
                .primary
                .iter()
                .filter_map(|key| Some((key, room(&key)?)));
            let closest = known.min_by(|(_, a), (_, b)| a.total_cmp(b));
            return closest.map(|(key, _)| key.as_str()).or(self
                .settings
                .primary
                .first()
                .map(String::as_str));
        }
        let best = self.first_at_decision(arm, 1.0).map(|(key, _)| key);
        best.or_else(|| self.settings.primary.first().map(String::as_str))
    }

    /// Returns the arm whose lower end is highest.
    fn best<'b>(&self, arms: &[TestedArm<'b>]) -> Option<TestedArm<'b>> {
        let ends = lower_ends(self.settings, self.report);
        let with = arms.iter().filter_map(|arm| Some((*arm, *ends.get(arm.name)?)));
        // Ties go to the first name.
        let first = with.reduce(|a, b| if b.1 > a.1 { b } else { a });
        first.map(|(arm, _)| arm)
    }

    /// Returns the arm that certainly loses most, out of the arms that are found to be worse: the better end of its interval is
    /// lowest. The other end would favor a small arm, because a wide interval reaches further down.
    fn worst<'b>(&self, worse: &[TestedArm<'b>]) -> Option<TestedArm<'b>> {
        let better_end = |arm: &TestedArm| {
            let (key, metric) = self.worst_metric(arm)?;
            let Interval { lower, upper } = arm.shown(metric).1?;
            Some(self.better(key, lower).max(self.better(key, upper)))
        };
        let mut first = None;
        for arm in worse {
            // An arm without an interval comes last. Ties go to the first name.
            let end = better_end(arm).unwrap_or(f64::INFINITY);
            if first.is_none_or(|(_, lowest)| end < lowest) {
                first = Some((*arm, end));
            }
        }
        first.map(|(arm, _)| arm)
    }

    fn better(&self, key: &str, lift: f64) -> f64 {
        self.settings.better(key, lift)
    }

    fn lies_beyond_zero(&self, key: &str, metric: &MetricReport, sign: f64) -> bool {
        lies_beyond_zero(self.settings, key, metric, sign)
    }

    fn chance(&self) -> Option<Chance> {
        let arms = self.arms();
        let key = self.settings.primary.first()?;
        let errors = arms
            .iter()
            .filter_map(|arm| arm.of.metrics.get(key)?.standard_error);
        let mut errors: Vec<f64> = errors.collect();
        let n_arms = errors.len();
        errors.sort_unstable_by(f64::total_cmp);
        // The median error represents arms of different sizes.
        let lift = best_of(n_arms, *errors.get(n_arms / 2)?);
        (n_arms >= MANY).then_some(Chance { n_arms, lift })
    }
}

/// Writes the day of the first look that showed harm: "since Mon 24 Nov".
fn since(metric: &MetricReport) -> Option<String> {
    Some(format!("since {}", write::date(metric.harm_since_ms?)?))
}

/// Writes "CTR@10 +29.1% (+24.0% to +34.2%)".
fn lift(key: &str, lift: Option<f64>, ends: Option<Interval>) -> String {
    let name = name_of(key);
    match (lift, ends) {
        (Some(lift), Some(ends)) => format!("{name} {} ({})", percent(lift), interval(ends)),
        (Some(lift), None) => format!("{name} {}, no interval yet", percent(lift)),
        _ => format!("{name} not known yet"),
    }
}

fn named_invalid(headline: Headline, invalid: &[TestedArm]) -> Headline {
    match invalid {
        [] => headline,
        [one, rest @ ..] => {
            let headline = headline.text("; do not read ").name(one.name);
            match rest.len() {
                0 => headline,
                n => headline.text(format!(" and {n} more")),
            }
        }
    }
}

impl Headline {
    fn new(badge: Badge, arm: Option<&str>) -> Headline {
        Headline {
            badge,
            label: badge.label(),
            parts: Vec::new(),
            // All parts make the claim until `resting_on` ends it.
            n_claiming: usize::MAX,
            arm: arm.map(str::to_owned),
            chance: None,
        }
    }

    fn labeled(self, label: Label) -> Headline {
        Headline { label, ..self }
    }

    fn text(mut self, text: impl Into<String>) -> Headline {
        let text = text.into();
        // Text is appended to the last part, but not across the end of the claim.
        let is_first_of_basis = self.parts.len() == self.n_claiming;
        match self.parts.last_mut() {
            Some(SentencePart::Text(last)) if !is_first_of_basis => last.push_str(&text),
            _ => self.parts.push(SentencePart::Text(text)),
        }
        self
    }

    /// Ends the claim and adds its evidence.
    fn resting_on(mut self, text: String) -> Headline {
        self.n_claiming = self.parts.len();
        self.text(text)
    }

    fn name(mut self, name: &str) -> Headline {
        self.parts.push(SentencePart::Name(name.to_owned()));
        self
    }

    /// Joins the parts, with names formatted by `name`.
    pub fn sentence(&self, name: impl Fn(&str) -> String) -> String {
        let words = self.parts.iter().map(|part| match part {
            SentencePart::Text(text) => text.clone(),
            SentencePart::Name(arm) => name(arm),
        });
        words.collect()
    }
}

impl Chance {
    /// Writes "best of 300 by chance alone: up to +34.0%".
    pub fn sentence(&self) -> String {
        format!(
            "best of {} by chance alone: up to {}",
            count(self.n_arms as f64),
            percent(self.lift)
        )
    }
}

impl Badge {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Badge::Win => "win",
            Badge::Harm => "harm",
            Badge::NoEffect => "no_effect",
            Badge::Open => "open",
            Badge::Early => "early",
            Badge::Invalid => "invalid",
            Badge::Uncompared => "uncompared",
            Badge::Waiting => "waiting",
        }
    }

    /// Returns the usual label. An experiment that names an arm has the label of that arm.
    fn label(self) -> Label {
        match self {
            Badge::Win => Label::Better,
            Badge::Harm => Label::Worse,
            Badge::NoEffect => Label::NoEffect,
            Badge::Open | Badge::Early => Label::Undecided,
            Badge::Invalid => Label::Invalid,
            Badge::Uncompared => Label::NotCompared,
            Badge::Waiting => Label::Collecting,
        }
    }
}

/// Serializes as
///
/// ```json
/// {"badge":"win","label":"Better","sentence":"neural beats control: …","parts":[{"name":"neural"}," beats ",{"name":"control"},": …"],"arm":"neural",
///  "n_claiming":4,"chance":"best of 300 by chance alone: up to +34.0%"}
/// ```
/// `arm` and `chance` are null if there is none.
impl Serialize for Headline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut headline = serializer.serialize_struct("Said", 7)?;
        headline.serialize_field("badge", self.badge.name())?;
        headline.serialize_field("label", &self.label)?;
        headline.serialize_field("sentence", &self.sentence(str::to_owned))?;
        headline.serialize_field("parts", &self.parts)?;
        headline.serialize_field("n_claiming", &self.n_claiming.min(self.parts.len()))?;
        headline.serialize_field("arm", &self.arm)?;
        headline.serialize_field("chance", &self.chance.map(|chance| chance.sentence()))?;
        headline.end()
    }
}

impl Serialize for SentencePart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SentencePart::Text(text) => serializer.serialize_str(text),
            SentencePart::Name(name) => {
                let mut named = serializer.serialize_struct("Name", 1)?;
                named.serialize_field("name", name)?;
                named.end()
            }
        }
    }
}

#[cfg(test)]
mod tests;
