//! One arm against the control at one look, before corrections for other arms.

use std::collections::BTreeMap;

use super::burn_in::BurnIn;
use super::calendar::Calendar;
use super::effect::Interval;
use super::list_ratio;
use super::measure::{Judged, Measure};
use super::report::{ArmReport, ListRatio, MetricReport};
use super::settings::Settings;
use super::test_state::{DecidedMetric, KeptArm};
use super::versus::Versus;

/// An arm at a look.
#[derive(Debug)]
pub(super) struct LookedArm {
    pub burn_in: BurnIn,
    pub is_burned_in: bool,
    pub list_ratio: Option<ListRatio>,
    pub metrics: BTreeMap<String, LookedMetric>,
}

/// A metric of an arm at a look.
#[derive(Debug)]
pub(super) struct LookedMetric {
    pub measure: Measure,
    /// Results as if the arm were tested, without its information and its decision.
    pub report: MetricReport,
    /// None before burn-in is done.
    pub judged: Option<Judged>,
    /// Decision p corrected for other arms and metrics.
    pub p_adjusted_at_decision: Option<f64>,
}

impl LookedArm {
    /// Takes a look at an arm and updates its state.
    pub fn new(versus: &Versus, settings: &Settings, calendar: &Calendar, kept: &mut KeptArm) -> LookedArm {
        let burn_in = BurnIn::new(versus.seen());
        // Once done, burn-in stays done, even if later sums fall short of it.
        kept.is_burned_in |= burn_in.is_done();
        let list_ratio = burn_in
            .has_buckets()
            .then(|| list_ratio::look(versus, settings, kept));
        let is_burned_in = kept.is_burned_in;
        let ids = versus.metrics().into_iter();
        let looked = ids.map(|id| {
            (
                id.to_owned(),
                LookedMetric::new(versus, id, settings, calendar, kept),
            )
        });
        let metrics = looked.filter(|(_, metric)| metric.measure.is_defined()).collect();
        LookedArm {
            burn_in,
            is_burned_in,
            list_ratio: list_ratio.flatten(),
            metrics,
        }
    }

    /// Reports the arm without its decision.
    pub fn report(&self, is_tested: bool, x_plan: f64) -> ArmReport {
        let shown = |(id, metric): (&String, &LookedMetric)| (id.clone(), metric.report(is_tested, x_plan));
        ArmReport {
            burn_in: self.burn_in,
            list_ratio: self.list_ratio,
            metrics: self.metrics.iter().map(shown).collect(),
            ..ArmReport::default()
        }
    }
}

impl LookedMetric {
    fn new(
        versus: &Versus,
        id: &str,
        settings: &Settings,
        calendar: &Calendar,
        kept: &mut KeptArm,
    ) -> LookedMetric {
        let measure = Measure::new(versus, id, settings);
        let is_judged = kept.is_burned_in && measure.is_defined();
        let mut report = measure.values(settings.role(id));
        let judged = is_judged.then(|| {
            let kept = kept.metrics.entry(id.to_owned()).or_default();
            measure.look(settings, calendar, kept, &mut report)
        });
        LookedMetric {
            measure,
            report,
            judged,
            p_adjusted_at_decision: None,
        }
    }

    /// Returns the part that is kept at a decision look.
    pub fn decided(&self) -> Option<DecidedMetric> {
        let decision = self.judged?.at_decision?;
        Some(DecidedMetric {
            lift: self.report.lift,
            interval: decision.interval,
            p: decision.p,
            p_adjusted: self.p_adjusted_at_decision.unwrap_or(1.0),
            band_excludes_zero: self.report.interval.is_some_and(Interval::excludes_zero),
        })
    }

    fn report(&self, is_tested: bool, x_plan: f64) -> MetricReport {
        if !is_tested {
            return MetricReport {
                p: None,
                p_harm: None,
                harm_since_ms: None,
                harm: None,
                ..self.report
            };
        }
        let x = self.judged.and_then(|judged| judged.x);
        MetricReport {
            information: x.map(|x| x / x_plan),
            ..self.report
        }
    }
}
