//! One metric of one arm against its control at one look: what is measured, tested and shown of it.

use super::calendar::Calendar;
use super::comparison::{self, Comparison};
use super::effect::{Effect, Interval};
use super::kept::{KeptMetric, raise};
use super::per_user::{is_per_user, per_user_of};
use super::planned::{self, PlannedEnd};
use super::report::PerUser;
use super::sequence::Evidence;
use super::settings::{Settings, Validity};
use super::versus::Versus;
use super::{harm, sequence};

/// What the sums of a metric say as of now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measure {
    /// None where it is one per user.
    pub comparison: Option<Comparison>,
    /// g of the metric, or of its numerator.
    pub per_user: Option<Effect>,
    scale: Scale,
    is_lower_better: bool,
}

/// How a lift is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// As it is.
    Relative,
    /// As its logarithm.
    Logarithm,
}

/// What is said of a metric, after burn-in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// Running, before any correction.
    pub p: f64,
    /// Running, before any correction.
    pub p_harm: f64,
    /// Of the sequence, as of now.
    pub ln_e: Option<f64>,
    /// x = τ²/V.
    pub x: Option<f64>,
    /// ρ, or e^g − 1: as of now, or from the planned look on as it was then.
    pub lift: Option<f64>,
    /// That of the lift.
    pub interval: Option<Interval>,
    /// The lift of the numerator per user, likewise.
    pub per_user: Option<PerUser>,
    /// Above 0 where the arm is better now.
    pub better: Option<f64>,
    /// The interval of the lift, such that above 0 is better.
    pub better_lift: Option<Interval>,
}

impl Measure {
    pub fn new(versus: &Versus, metric: &str, settings: &Settings) -> Measure {
        let weights = settings.epoch_weights;
        let is_per_user = is_per_user(metric);
        let comparison = comparison::compare_parts(&versus.ratios(metric), weights);
        Measure {
            comparison: comparison.filter(|_| !is_per_user),
            per_user: per_user_of(&versus.counts(metric), weights),
            scale: if is_per_user {
                Scale::Logarithm
            } else {
                Scale::Relative
            },
            is_lower_better: settings.lower_is_better.contains(metric),
        }
    }

    /// Whether anything can be said.
    pub fn is_defined(&self) -> bool {
        self.comparison.is_some() || self.per_user.is_some()
    }

    /// What is tested: Δ, or g.
    fn tested(&self) -> Option<&Effect> {
        match self.scale {
            Scale::Relative => self.comparison.as_ref()?.difference.as_ref(),
            Scale::Logarithm => self.per_user.as_ref(),
        }
    }

    /// What is shown as the lift: ρ, or g.
    fn relative(&self) -> Option<&Effect> {
        match self.scale {
            Scale::Relative => self.comparison.as_ref()?.lift.as_ref(),
            Scale::Logarithm => self.per_user.as_ref(),
        }
    }

    /// √V of the lift; of a logarithm that of the logarithm, which is about the same.
    pub fn standard_error(&self) -> Option<f64> {
        self.relative().map(|effect| effect.spread.error())
    }

    /// τ = mde × the pooled rate; mde of a logarithm.
    fn tau(&self, mde: f64) -> Option<f64> {
        let rate = match self.scale {
            Scale::Relative => self.comparison.as_ref()?.pooled,
            Scale::Logarithm => 1.0,
        };
        Some(mde * rate).filter(|tau| *tau > 0.0 && tau.is_finite())
    }

    /// Takes a look after burn-in, and says what is known by then.
    pub fn look(&self, settings: &Settings, calendar: &Calendar, kept: &mut KeptMetric) -> Judged {
        kept.tau = kept.tau.or_else(|| self.tau(settings.mde));
        let known = self.tested().zip(kept.tau);
        let evidence = known.map(|(effect, tau)| Evidence::new(effect, tau));
        self.raise(settings.validity, evidence, kept);
        if calendar.is_planned_end() && kept.planned_end.is_none() {
            kept.planned_end = self.planned_end(settings.alpha);
        }
        self.judge(settings, evidence, kept)
    }

    fn raise(&self, validity: Validity, evidence: Option<Evidence>, kept: &mut KeptMetric) {
        if let (Some(effect), Some(tau), Some(evidence)) = (self.tested(), kept.tau, evidence) {
            let surprise = match validity {
                Validity::Sequence => evidence.ln_e(),
                Validity::Strict => sequence::strict_surprise(effect, tau, kept.max_surprise),
                Validity::OneLook => sequence::finite(effect.surprise_at_one_look()),
            };
            raise(&mut kept.max_surprise, surprise);
            let harm = match validity {
                Validity::OneLook => harm::surprise_at_one_look(&self.oriented(*effect)),
                _ => harm::ln_e_now(evidence, self.is_lower_better),
            };
            raise(&mut kept.max_ln_e_harm, harm);
        }
    }

    fn planned_end(&self, alpha: f64) -> Option<PlannedEnd> {
        let at_end = |effect: &Effect| effect.interval_at_one_look(planned::END_SHARE * alpha);
        Some(PlannedEnd {
            p: self.tested()?.p_at_one_look(),
            lift: self
                .relative()
                .and_then(at_end)
                .and_then(|interval| self.scale.show(interval)),
            per_user: self.per_user.as_ref().and_then(at_end).and_then(Interval::exp_m1),
        })
    }

    fn judge(&self, settings: &Settings, evidence: Option<Evidence>, kept: &KeptMetric) -> Judged {
        let end = kept.planned_end;
        let lift = self.shown(
            self.relative(),
            self.scale,
            settings,
            end.and_then(|end| end.lift),
        );
        let per_user = self.per_user.as_ref();
        let per_user = self.shown(
            per_user,
            Scale::Logarithm,
            settings,
            end.and_then(|end| end.per_user),
        );
        let interval = lift.and_then(|(_, interval)| interval);
        Judged {
            p: running_p(settings, kept),
            p_harm: sequence::p_of(kept.max_ln_e_harm),
            ln_e: evidence.and_then(Evidence::ln_e),
            x: evidence.and_then(|evidence| sequence::finite(evidence.x)),
            lift: lift.map(|(lift, _)| lift),
            interval,
            per_user: per_user.map(|(lift, interval)| PerUser { lift, interval }),
            better: self.tested().map(|effect| self.oriented(*effect).value),
            better_lift: interval.and_then(|interval| self.oriented_lift(interval)),
        }
    }

    /// A lift and its interval: those of the planned look if it has said one, else as of now.
    fn shown(
        &self,
        effect: Option<&Effect>,
        scale: Scale,
        settings: &Settings,
        at_end: Option<Interval>,
    ) -> Option<(f64, Option<Interval>)> {
        if let Some(interval) = at_end {
            return Some((scale.middle(interval), at_end));
        }
        let effect = effect?;
        Some((scale.value(effect.value)?, self.interval(effect, scale, settings)))
    }

    /// That of a relative effect, whose τ is mde: as wide as what is left of α allows.
    fn interval(&self, effect: &Effect, scale: Scale, settings: &Settings) -> Option<Interval> {
        let spent = if settings.has_planned_end() {
            planned::SEQUENCE_SHARE
        } else {
            1.0
        };
        let half_width = half_width(effect, settings.mde, settings.validity, spent * settings.alpha);
        scale.show(Interval::around(effect.value, half_width)?)
    }

    fn oriented(&self, effect: Effect) -> Effect {
        let value = if self.is_lower_better {
            -effect.value
        } else {
            effect.value
        };
        Effect { value, ..effect }
    }

    /// Of a lift that is a logarithm −g is the lift of the control against the arm: 1/(1 + lift) − 1.
    fn oriented_lift(&self, lift: Interval) -> Option<Interval> {
        match self.scale {
            _ if !self.is_lower_better => Some(lift),
            Scale::Relative => Some(lift.flipped()),
            Scale::Logarithm => {
                let [lower, upper] = [lift.lower.ln_1p(), lift.upper.ln_1p()];
                Interval { lower, upper }.flipped().exp_m1()
            }
        }
    }
}

impl Scale {
    /// None where it is no finite number.
    fn value(self, effect: f64) -> Option<f64> {
        match self {
            Scale::Relative => Some(effect),
            Scale::Logarithm => sequence::finite(effect.exp_m1()),
        }
    }

    /// What an interval that `show` has written lies around.
    fn middle(self, Interval { lower, upper }: Interval) -> f64 {
        match self {
            Scale::Relative => f64::midpoint(lower, upper),
            Scale::Logarithm => f64::midpoint(lower.ln_1p(), upper.ln_1p()).exp_m1(),
        }
    }

    fn show(self, interval: Interval) -> Option<Interval> {
        match self {
            Scale::Relative => Some(interval),
            Scale::Logarithm => interval.exp_m1(),
        }
    }
}

/// Half the width of the interval at `alpha`; may be infinite.
pub(super) fn half_width(effect: &Effect, tau: f64, validity: Validity, alpha: f64) -> f64 {
    match validity {
        Validity::Sequence => sequence::half_width(effect, tau, alpha),
        Validity::Strict => sequence::strict_half_width(effect, tau, alpha),
        Validity::OneLook => effect.spread.half_width(alpha),
    }
}

fn running_p(settings: &Settings, kept: &KeptMetric) -> f64 {
    let p = sequence::p_of(kept.max_surprise);
    if settings.has_planned_end() {
        planned::p(p, kept.planned_end.map(|end| end.p))
    } else {
        p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lift_is_turned_where_lower_is_better() {
        let turned = |scale, lower, upper| {
            let measure = Measure {
                comparison: None,
                per_user: None,
                scale,
                is_lower_better: true,
            };
            measure
                .oriented_lift(Interval { lower, upper })
                .expect("it is finite")
        };
        let relative = turned(Scale::Relative, -0.25, 1.0);
        assert_eq!([relative.lower, relative.upper], [-1.0, 0.25]);
        // Four times as many is a quarter, the other way round.
        let logarithm = turned(Scale::Logarithm, -0.5, 3.0);
        assert!((logarithm.lower + 0.75).abs() < 1e-15 && (logarithm.upper - 1.0).abs() < 1e-15);
    }
}
