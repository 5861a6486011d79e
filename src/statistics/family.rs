//! Corrects p-values for all arms and metrics of an experiment.
//!
//! Primaries: Holm, over treatment arms × primaries, those that are still unknown included. Guardrails need no correction: all
//! of them must pass. All other metrics: e-BH on E of the sequence as of now, under any validity; it holds whatever depends on what.

use std::collections::BTreeMap;

use super::arm::{LookedArm, LookedMetric};
use super::multiple;
use super::settings::{Role, Settings};

/// Corrects the metrics of all arms that are tested.
pub(super) fn correct(settings: &Settings, n_treatments: usize, arms: &mut BTreeMap<String, LookedArm>) {
    let mut primaries = of_role(settings, arms, Role::Primary);
    let mut p: Vec<f64> = primaries.iter().map(|metric| metric.p().unwrap_or(1.0)).collect();
    p.resize(p.len().max(n_treatments * settings.primary.len()), 1.0);
    set(&mut primaries, multiple::holm(&p));
    for guardrail in of_role(settings, arms, Role::Guardrail) {
        guardrail.p_adjusted = guardrail.p();
    }
    let mut others = of_role(settings, arms, Role::Secondary);
    let ln_e: Vec<f64> = others
        .iter()
        .map(|metric| metric.ln_e().unwrap_or(f64::NEG_INFINITY))
        .collect();
    set(&mut others, multiple::e_bh(&ln_e));
}

fn of_role<'a>(
    settings: &Settings,
    arms: &'a mut BTreeMap<String, LookedArm>,
    role: Role,
) -> Vec<&'a mut LookedMetric> {
    let tested = arms.iter_mut().filter(|(name, _)| settings.tests(name));
    let metrics = tested.flat_map(|(_, arm)| arm.metrics.values_mut());
    metrics.filter(|metric| metric.role == role).collect()
}

fn set(metrics: &mut [&mut LookedMetric], adjusted: Vec<f64>) {
    for (metric, adjusted) in metrics.iter_mut().zip(adjusted) {
        metric.p_adjusted = metric.p().map(|_| adjusted);
    }
}

impl LookedMetric {
    fn p(&self) -> Option<f64> {
        self.judged.as_ref().map(|judged| judged.p)
    }

    fn ln_e(&self) -> Option<f64> {
        self.judged.as_ref().and_then(|judged| judged.ln_e)
    }
}
