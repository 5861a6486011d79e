//! One metric of one arm against its control at one look: measurement, test and interval.

use super::calendar::Calendar;
use super::comparison::{self, Comparison};
use super::effect::{Effect, Interval};
use super::harm::HarmBound;
use super::per_user::{is_per_user, per_user_of};
use super::report::{AbsoluteEffect, MetricReport, PerUser};
use super::sequence::Evidence;
use super::settings::{MetricRole, Settings, Validity};
use super::spending::DecisionLook;
use super::test_state::{KeptMetric, raise};
use super::versus::Versus;
use super::{harm, sequence, student};

/// Effect of an arm on a metric, from the sums of this look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measure {
    /// Comparison of ratios. None for a metric per user.
    pub comparison: Option<Comparison>,
    /// g of the metric, or of its numerator.
    pub per_user: Option<Effect>,
    /// max ψ²/Σψ² of the metric.
    pub top_bucket_share: Option<f64>,
    scale: Scale,
    is_lower_better: bool,
}

/// Scale of a lift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// The lift itself.
    Relative,
    /// The logarithm of 1 + lift.
    Logarithm,
}

/// Results for a metric after burn-in that only decisions and corrections need. The others are in its report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// ln E of the sequence at this look.
    pub ln_e: Option<f64>,
    /// x = τ²/V.
    pub x: Option<f64>,
    /// Above 0 if the arm is better at this look.
    pub better: Option<f64>,
    /// Present at a decision look, for primaries and guardrails.
    pub at_decision: Option<AtDecision>,
}

/// A metric at a decision look, before correction for other arms and metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AtDecision {
    /// Two-sided p, corrected for all decision looks.
    pub p: f64,
    /// Decision interval of the lift.
    pub interval: Option<Interval>,
    /// Decision interval, oriented so that above 0 is better.
    pub better_interval: Option<Interval>,
}

impl Measure {
    pub fn new(versus: &Versus, metric: &str, settings: &Settings) -> Measure {
        let weights = settings.epoch_weights;
        let is_per_user = is_per_user(metric);
        let comparison = comparison::compare_parts(&versus.ratios(metric), weights).filter(|_| !is_per_user);
        let per_user = per_user_of(&versus.counts(metric), weights);
        let top_bucket_share = match is_per_user {
            true => per_user.and_then(|of| of.top_bucket_share),
            false => comparison.as_ref().and_then(|of| of.top_bucket_share),
        };
        Measure {
            comparison,
            per_user: per_user.map(|of| of.effect),
            top_bucket_share,
            scale: if is_per_user {
                Scale::Logarithm
            } else {
                Scale::Relative
            },
            is_lower_better: settings.lower_is_better.contains(metric),
        }
    }

    /// Reports whether there is any effect to report.
    pub fn is_defined(&self) -> bool {
        self.comparison.is_some() || self.per_user.is_some()
    }

    /// Returns the tested effect: Δ, or g.
    fn tested(&self) -> Option<&Effect> {
        match self.scale {
            Scale::Relative => self.comparison.as_ref()?.difference.as_ref(),
            Scale::Logarithm => self.per_user.as_ref(),
        }
    }

    /// Returns the effect that is shown as the lift: ρ, or g.
    fn relative(&self) -> Option<&Effect> {
        match self.scale {
            Scale::Relative => self.comparison.as_ref()?.lift.as_ref(),
            Scale::Logarithm => self.per_user.as_ref(),
        }
    }

    /// Reports the values alone, as before burn-in.
    pub fn values(&self, role: MetricRole) -> MetricReport {
        let comparison = self.comparison.as_ref();
        MetricReport {
            parts: comparison.and_then(|of| of.parts),
            top_bucket_share: self.top_bucket_share,
            ..MetricReport::untested(role, comparison.map(|of| of.control), comparison.map(|of| of.arm))
        }
    }

    /// Returns τ: mde × the pooled rate, or mde itself for a logarithm.
    fn tau(&self, mde: f64) -> Option<f64> {
        let rate = match self.scale {
            Scale::Relative => self.comparison.as_ref()?.pooled,
            Scale::Logarithm => 1.0,
        };
        Some(mde * rate).filter(|tau| *tau > 0.0 && tau.is_finite())
    }

    /// Takes a look after burn-in: raises running maxima, and adds the results from them and from this look to `report`.
    pub fn look(
        &self,
        settings: &Settings,
        calendar: &Calendar,
        kept: &mut KeptMetric,
        report: &mut MetricReport,
    ) -> Judged {
        // The mixture must be the same at every look, so τ is frozen at the first one.
        kept.tau = kept.tau.or_else(|| self.tau(settings.mde));
        let known = self.tested().zip(kept.tau);
        let evidence = known.map(|(effect, tau)| Evidence::new(effect, tau));
        self.raise(settings.validity, evidence, kept);
        let is_watched = report.role != MetricRole::Secondary;
        let p_harm = sequence::p_of(kept.max_ln_e_harm);
        if is_watched && harm::is_harm(p_harm, settings.watched().len(), settings.alpha) {
            // The first time stays, even if the effect changes its sign later.
            kept.harm_since_ms.get_or_insert(calendar.as_of_ms());
        }
        let watched = || self.relative().filter(|_| is_watched);
        // Secondary metrics decide nothing, so they need no test of their own at a decision look.
        let decision = calendar.decision().filter(|_| is_watched);
        *report = MetricReport {
            lift: self.relative().and_then(|effect| self.scale.value(effect.value)),
            interval: self.band(self.relative(), self.scale, settings),
            absolute: self.absolute(settings, kept.tau),
            interval_at_one_look: watched().and_then(|effect| {
                let interval = effect.interval_at_one_look(settings.alpha)?;
                self.scale.show(interval)
            }),
            // For a logarithm it is √V of the logarithm, which is about the same.
            standard_error: self.relative().map(|effect| effect.spread.error()),
            p: Some(sequence::p_of(kept.max_surprise)),
            p_harm: Some(p_harm),
            harm_since_ms: kept.harm_since_ms,
            harm: kept.harm_since_ms.and_then(|_| self.harm_bound(settings)),
            per_user: self.per_user(settings),
            ..*report
        };
        Judged {
            ln_e: evidence.and_then(Evidence::ln_e),
            x: evidence.and_then(|evidence| sequence::finite(evidence.x)),
            better: self.tested().map(|effect| self.oriented(*effect).value),
            at_decision: decision.and_then(|look| self.at_decision(settings, look, evidence, kept)),
        }
    }

    /// Computes the bound of harm at this look, which holds at every look like its test.
    fn harm_bound(&self, settings: &Settings) -> Option<HarmBound> {
        let effect = self.relative()?;
        let alpha = harm::alpha_of_one(settings.watched().len(), settings.alpha);
        let degrees = effect.spread.degrees;
        let t = match settings.validity {
            Validity::OneLook => student::quantile_above(alpha, degrees),
            _ => harm::boundary_t(sequence::x(settings.mde, &effect.spread), alpha, degrees),
        };
        let distance = t * effect.spread.error();
        let bound = match self.is_lower_better {
            true => effect.value - distance,
            false => effect.value + distance,
        };
        Some(HarmBound {
            bound: self.scale.value(sequence::finite(bound)?)?,
            level: 1.0 - alpha,
        })
    }

    fn raise(&self, validity: Validity, evidence: Option<Evidence>, kept: &mut KeptMetric) {
        if let (Some(effect), Some(tau), Some(evidence)) = (self.tested(), kept.tau, evidence) {
            let surprise = match validity {
                Validity::Sequence => evidence.ln_e(),
                Validity::Strict => sequence::strict_surprise(effect, tau, kept.max_surprise),
                Validity::OneLook => sequence::finite(effect.surprise_at_one_look()),
            };
            raise(&mut kept.max_surprise, surprise);
            // Harm is tested by a sequence under every validity, except at a single look.
            let harm = match validity {
                Validity::OneLook => harm::surprise_at_one_look(&self.oriented(*effect)),
                _ => harm::ln_e_now(evidence, self.is_lower_better),
            };
            raise(&mut kept.max_ln_e_harm, harm);
        }
    }

    /// Computes the test and the interval of this look alone, at its share of α. None if nothing can be tested.
    fn at_decision(
        &self,
        settings: &Settings,
        look: DecisionLook,
        evidence: Option<Evidence>,
        kept: &KeptMetric,
    ) -> Option<AtDecision> {
        let effect = self.tested()?;
        let uses_sequence = look.is_any && settings.validity == Validity::Sequence;
        let surprise = match settings.validity {
            // From 0, because this look counts alone and not the smallest p so far.
            Validity::Strict => sequence::strict_surprise(effect, kept.tau?, 0.0)?,
            // E of this look: a running maximum could come from an earlier effect of the other sign.
            Validity::Sequence if uses_sequence => evidence?.ln_e()?,
            Validity::Sequence | Validity::OneLook => effect.surprise_at_one_look(),
        };
        let alpha = look.weight * settings.alpha;
        let interval = self.relative().and_then(|effect| {
            let half_width = match settings.validity {
                Validity::Strict => sequence::strict_half_width(effect, settings.mde, alpha),
                Validity::Sequence if uses_sequence => sequence::half_width(effect, settings.mde, alpha),
                Validity::Sequence | Validity::OneLook => effect.spread.half_width(alpha),
            };
            self.scale.show(Interval::around(effect.value, half_width)?)
        });
        Some(AtDecision {
            p: look.p(sequence::p_of(surprise)),
            interval,
            better_interval: interval.and_then(|interval| self.oriented_lift(interval)),
        })
    }

    fn per_user(&self, settings: &Settings) -> Option<PerUser> {
        let effect = self.per_user.as_ref()?;
        Some(PerUser {
            lift: Scale::Logarithm.value(effect.value)?,
            interval: self.band(Some(effect), Scale::Logarithm, settings),
        })
    }

    /// Returns Δ. Its interval has the same τ as its test, so it excludes 0 at the looks at which the test rejects.
    fn absolute(&self, settings: &Settings, tau: Option<f64>) -> Option<AbsoluteEffect> {
        let effect = self.comparison.as_ref()?.difference.as_ref()?;
        let half_width = |tau| half_width(effect, tau, settings.validity, settings.alpha);
        Some(AbsoluteEffect {
            value: effect.value,
            interval: tau.and_then(|tau| Interval::around(effect.value, half_width(tau))),
        })
    }

    /// Computes the interval that holds at every look, for a relative effect whose τ is mde.
    fn band(&self, effect: Option<&Effect>, scale: Scale, settings: &Settings) -> Option<Interval> {
        let effect = effect?;
        let half_width = half_width(effect, settings.mde, settings.validity, settings.alpha);
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

    /// Orients a lift so that above 0 is better. For a logarithm, −g is the lift of the control against the arm: 1/(1 + lift) −
    /// 1.
    pub fn oriented_lift(&self, lift: Interval) -> Option<Interval> {
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
    /// Converts an effect to a lift. None if it is not finite.
    fn value(self, effect: f64) -> Option<f64> {
        match self {
            Scale::Relative => Some(effect),
            Scale::Logarithm => sequence::finite(effect.exp_m1()),
        }
    }

    fn show(self, interval: Interval) -> Option<Interval> {
        match self {
            Scale::Relative => Some(interval),
            Scale::Logarithm => interval.exp_m1(),
        }
    }
}

/// Computes half the width of the interval at `alpha`. May be infinite.
pub(super) fn half_width(effect: &Effect, tau: f64, validity: Validity, alpha: f64) -> f64 {
    match validity {
        Validity::Sequence => sequence::half_width(effect, tau, alpha),
        Validity::Strict => sequence::strict_half_width(effect, tau, alpha),
        Validity::OneLook => effect.spread.half_width(alpha),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lift_is_flipped_if_lower_is_better() {
        let turned = |scale, lower, upper| {
            let measure = Measure {
                comparison: None,
                per_user: None,
                top_bucket_share: None,
                scale,
                is_lower_better: true,
            };
            measure
                .oriented_lift(Interval { lower, upper })
                .expect("it is finite")
        };
        let relative = turned(Scale::Relative, -0.25, 1.0);
        assert_eq!([relative.lower, relative.upper], [-1.0, 0.25]);
        // Four times as many is a quarter when arm and control change places.
        let logarithm = turned(Scale::Logarithm, -0.5, 3.0);
        assert!((logarithm.lower + 0.75).abs() < 1e-15 && (logarithm.upper - 1.0).abs() < 1e-15);
    }
}
