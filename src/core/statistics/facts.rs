//! Facts about an arm for the decision rules.

use super::arm::{LookedArm, LookedMetric};
use super::calendar::Calendar;
use super::decision::{
    DecisionFacts, GuardrailFact, HarmFact, HarmNow, ListRatioFact, MultiArm, PrimaryFact,
};
use super::effect::Interval;
use super::measure::AtDecision;
use super::settings::{Settings, Validity};
use super::test_state::DecidedLook;
use super::units::UnitShares;

/// Facts that all arms of an experiment share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub settings: &'a Settings,
    pub calendar: Calendar,
    pub srm_p: Option<f64>,
    pub multi_arm: Option<MultiArm>,
    pub n_treatments: usize,
}

impl Shared<'_> {
    /// Collects the facts about an arm. `previous` is the current decision, or the last decision look.
    pub fn facts<'a>(
        &self,
        arm: &LookedArm,
        units: &UnitShares,
        previous: Option<&'a DecidedLook>,
    ) -> DecisionFacts<'a> {
        let settings = self.settings;
        let harms = settings
            .watched()
            .into_iter()
            .map(|metric| self.harm(arm, metric));
        let primaries = settings
            .primary
            .iter()
            .map(|metric| arm.primary(metric, settings));
        let guardrails = settings
            .guardrails
            .iter()
            .map(|(metric, margin)| arm.guardrail(metric, *margin));
        DecisionFacts {
            refused: units.refused.differ.then_some(units.refused.shares),
            has_shares: !settings.shares.is_empty(),
            srm_p: self.srm_p,
            multi_arm: self.multi_arm,
            without_user: units.without_user,
            top_user: units.top_user,
            list_ratio: arm.list_ratio.map(|ratio| ListRatioFact {
                g: ratio.g,
                p: ratio.p,
            }),
            list_ratio_margin: settings.list_ratio_margin,
            n_treatments: self.n_treatments,
            alpha: settings.alpha,
            lacks: (!arm.is_burned_in).then(|| arm.burn_in.to_string()),
            harms: harms.collect(),
            is_decision_look: self.calendar.decision().is_some(),
            wait: self.calendar.wait(),
            goal: settings.goal,
            primaries: primaries.collect(),
            guardrails: guardrails.collect(),
            previous,
        }
    }
    fn harm(&self, arm: &LookedArm, metric: &str) -> HarmFact {
        let of = arm.metrics.get(metric);
        let since_ms = of.and_then(|of| of.report.harm_since_ms);
        let band = of.and_then(|of| of.measure.oriented_lift(of.report.interval?));
        HarmFact {
            metric: metric.to_owned(),
            // Without a test there is no evidence of harm.
            p: of.and_then(|of| of.report.p_harm).unwrap_or(1.0),
            since_day: since_ms
                .filter(|_| self.has_days())
                .map(|ms| self.calendar.day_of(ms)),
            is_worse_now: of
                .and_then(|of| of.report.lift)
                .is_some_and(|lift| self.settings.better(metric, lift) < 0.0),
            now: match (band, of.and_then(|of| of.report.harm)) {
                (Some(band), _) if band.upper < 0.0 => HarmNow::Worse,
                (Some(band), _) if band.lower > 0.0 => HarmNow::Better,
                (_, Some(harm)) if self.settings.better(metric, harm.bound) < 0.0 => {
                    HarmNow::ProbablyWorse(harm)
                }
                _ => HarmNow::Unclear,
            },
        }
    }

    fn has_days(&self) -> bool {
        self.settings.validity != Validity::OneLook
    }
}

impl LookedArm {
    fn primary(&self, metric: &str, settings: &Settings) -> PrimaryFact {
        let lift = self.better_lift(metric);
        let effect = self.judged(metric, |metric| metric.judged.as_ref()?.better);
        PrimaryFact {
            metric: metric.to_owned(),
            p: self
                .judged(metric, |metric| metric.p_adjusted_at_decision)
                .unwrap_or(1.0),
            effect: effect.unwrap_or(0.0),
            lower: lift.map(|lift| lift.lower),
            upper: lift.map(|lift| lift.upper),
            mde: settings.mde,
            margin: settings.margin(metric),
        }
    }

    fn guardrail(&self, metric: &str, margin: f64) -> GuardrailFact {
        let lower = self.better_lift(metric).map(|lift| lift.lower);
        GuardrailFact {
            metric: metric.to_owned(),
            lower,
            margin,
        }
    }

    /// Returns the decision interval, oriented so that above 0 is better.
    fn better_lift(&self, metric: &str) -> Option<Interval> {
        let at_decision =
            |metric: &LookedMetric| -> Option<AtDecision> { metric.judged.as_ref()?.at_decision };
        self.judged(metric, at_decision)?.better_interval
    }

    fn judged<T>(&self, metric: &str, what: impl Fn(&LookedMetric) -> Option<T>) -> Option<T> {
        self.metrics.get(metric).and_then(what)
    }
}
