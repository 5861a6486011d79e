//! Corrections of p-values for all arms and metrics of an experiment.
//!
//! | metrics | p over all looks | p at a decision look |
//! |---|---|---|
//! | primaries | Holm, over treatment arms × primaries | Holm, likewise |
//! | guardrails | none: all of them must pass | none |
//! | others | e-BH on E of this look; at a single look Benjamini and Yekutieli on its p | |
//!
//! Holm counts unknown hypotheses as p = 1.

use std::collections::BTreeMap;

use super::arm::{LookedArm, LookedMetric};
use super::multiple;
use super::settings::{MetricRole, Settings, Validity};

/// Corrects the metrics of all tested arms.
pub(super) fn correct(settings: &Settings, n_treatments: usize, arms: &mut BTreeMap<String, LookedArm>) {
    let n_primaries = n_treatments * settings.primary.len();
    let mut primaries = of_role(settings, arms, MetricRole::Primary);
    for (p, set) in P_VALUES {
        holm(&mut primaries, n_primaries, p, set);
    }
    // All guardrails must pass, so one false pass alone has no effect, and they need no correction.
    for guardrail in of_role(settings, arms, MetricRole::Guardrail) {
        for (p, set) in P_VALUES {
            set(guardrail, p(guardrail));
        }
    }
    let mut others = of_role(settings, arms, MetricRole::Secondary);
    let adjusted = match settings.validity {
        Validity::OneLook => {
            let p: Vec<f64> = others.iter().map(|metric| metric.p().unwrap_or(1.0)).collect();
            multiple::benjamini_yekutieli(&p)
        }
        Validity::Sequence | Validity::Strict => {
            // E of this look, because its maximum over looks is not an e-value.
            let ln_e = others
                .iter()
                .map(|metric| metric.ln_e().unwrap_or(f64::NEG_INFINITY));
            multiple::e_bh(&ln_e.collect::<Vec<_>>())
        }
    };
    for (metric, adjusted) in others.iter_mut().zip(adjusted) {
        metric.report.p_adjusted = metric.p().map(|_| adjusted);
    }
}

/// Getter of a metric's p, and setter of the corrected one.
type PValue = (
    fn(&LookedMetric) -> Option<f64>,
    fn(&mut LookedMetric, Option<f64>),
);

const P_VALUES: [PValue; 2] = [
    (LookedMetric::p, |metric, p| metric.report.p_adjusted = p),
    (LookedMetric::p_at_decision, |metric, p| {
        metric.p_adjusted_at_decision = p
    }),
];

fn holm(
    metrics: &mut [&mut LookedMetric],
    n_hypotheses: usize,
    p_of: fn(&LookedMetric) -> Option<f64>,
    set: fn(&mut LookedMetric, Option<f64>),
) {
    let mut p: Vec<f64> = metrics.iter().map(|metric| p_of(metric).unwrap_or(1.0)).collect();
    // Hypotheses without data count too. Otherwise the correction would be weaker until every arm has lists.
    p.resize(p.len().max(n_hypotheses), 1.0);
    for (metric, adjusted) in metrics.iter_mut().zip(multiple::holm(&p)) {
        let adjusted = p_of(metric).map(|_| adjusted);
        set(metric, adjusted);
    }
}

fn of_role<'a>(
    settings: &Settings,
    arms: &'a mut BTreeMap<String, LookedArm>,
    role: MetricRole,
) -> Vec<&'a mut LookedMetric> {
    let tested = arms.iter_mut().filter(|(name, _)| settings.tests(name));
    let metrics = tested.flat_map(|(_, arm)| arm.metrics.values_mut());
    metrics.filter(|metric| metric.report.role == role).collect()
}

impl LookedMetric {
    fn p(&self) -> Option<f64> {
        self.report.p
    }

    fn p_at_decision(&self) -> Option<f64> {
        let judged = self.judged.as_ref()?;
        judged.at_decision.map(|decision| decision.p)
    }

    fn ln_e(&self) -> Option<f64> {
        self.judged.as_ref().and_then(|judged| judged.ln_e)
    }
}
