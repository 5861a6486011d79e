//! What the rules of the decision are told of an arm.

use super::arm::{LookedArm, LookedMetric};
use super::calendar::Calendar;
use super::decision::{Facts, GuardrailFact, HarmFact, ListRatioFact, MultiArm, PrimaryFact, State};
use super::settings::Settings;

/// What all arms of an experiment share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub settings: &'a Settings,
    pub calendar: Calendar,
    pub srm_p: Option<f64>,
    pub multi_arm: Option<MultiArm>,
    pub n_treatments: usize,
}

impl Shared<'_> {
    /// `previous` is what the last decision look said.
    pub fn facts(&self, arm: &LookedArm, previous: Option<State>) -> Facts {
        let settings = self.settings;
        let harms = settings.watched().into_iter().map(|metric| arm.harm(metric));
        let primaries = settings
            .primary
            .iter()
            .map(|metric| arm.primary(metric, settings));
        let guardrails = settings
            .guardrails
            .iter()
            .map(|(metric, margin)| arm.guardrail(metric, *margin));
        Facts {
            has_shares: !settings.shares.is_empty(),
            srm_p: self.srm_p,
            multi_arm: self.multi_arm,
            list_ratio: arm.list_ratio.map(|ratio| ListRatioFact {
                g: ratio.g,
                p: ratio.p,
            }),
            list_ratio_margin: settings.list_ratio_margin,
            n_treatments: self.n_treatments,
            alpha: settings.alpha,
            lacks: (!arm.is_burned_in).then(|| arm.burn_in.to_string()),
            harms: harms.collect(),
            is_decision_look: self.calendar.is_decision(),
            wait: self.calendar.wait(),
            goal: settings.goal,
            primaries: primaries.collect(),
            guardrails: guardrails.collect(),
            previous,
        }
    }
}

impl LookedArm {
    fn harm(&self, metric: &str) -> HarmFact {
        let p = self.judged(metric, |metric| metric.judged.map(|judged| judged.p_harm));
        HarmFact {
            metric: metric.to_owned(),
            p: p.unwrap_or(1.0),
        }
    }

    fn primary(&self, metric: &str, settings: &Settings) -> PrimaryFact {
        let lift = self.better_lift(metric);
        let effect = self.judged(metric, |metric| metric.judged.and_then(|judged| judged.better));
        PrimaryFact {
            metric: metric.to_owned(),
            p: self.judged(metric, |metric| metric.p_adjusted).unwrap_or(1.0),
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

    fn better_lift(&self, metric: &str) -> Option<super::Interval> {
        self.judged(metric, |metric| {
            metric.judged.and_then(|judged| judged.better_lift)
        })
    }

    fn judged<T>(&self, metric: &str, what: impl Fn(&LookedMetric) -> Option<T>) -> Option<T> {
        self.metrics.get(metric).and_then(what)
    }
}
