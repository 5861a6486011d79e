//! Comparison settings of an experiment, each validated alone.

use abgauge_core::statistics::Settings;
use std::collections::BTreeMap;
use toml::Spanned;

use super::allocation::shares;
use super::arm;
use super::comparable::Comparable;
use crate::settings::error::ErrorReport;
use crate::settings::ranges::is_between;
use crate::settings::raw::{RawExperiment, RawNumbers};
use crate::settings::rules::{EPOCH_WEIGHTS, GOALS, PART, UNITS, VALIDITIES};
use crate::settings::validate::values::choice;

/// Returns the settings of an experiment with this control, valid only if nothing was reported.
pub(super) fn settings(
    key: &str,
    raw: &RawExperiment,
    control: &Spanned<String>,
    comparable: &Comparable,
    report: &mut ErrorReport,
) -> Settings {
    let at = |setting: &str| format!("{key}.{setting}");
    arm(&at("control"), control, report);
    let defaults = Settings::new(control.get_ref());
    let or_default =
        |value: &Option<Spanned<f64>>, default: f64| value.as_ref().map_or(default, |value| *value.get_ref());
    Settings {
        shares: raw.shares.as_ref().map_or_else(BTreeMap::new, |raw| {
            shares(&at("shares"), raw, control.get_ref(), report)
        }),
        primary: primary(&at("primary"), raw, comparable, report),
        guardrails: raw.guardrails.as_ref().map_or_else(BTreeMap::new, |raw| {
            guardrails(&at("guardrails"), raw, comparable, report)
        }),
        mde: or_default(&raw.mde, defaults.mde),
        alpha: or_default(&raw.alpha, defaults.alpha),
        min_days: or_default(&raw.min_days, defaults.min_days),
        planned_days: raw.planned_days.as_ref().map(|days| *days.get_ref()),
        validity: word(&at("validity"), &raw.validity, &VALIDITIES, report),
        goal: word(&at("goal"), &raw.goal, &GOALS, report),
        unit: word(&at("unit"), &raw.unit, &UNITS, report),
        sticky: raw
            .sticky
            .as_ref()
            .map_or(defaults.sticky, |sticky| *sticky.get_ref()),
        lower_is_better: raw
            .lower_is_better
            .as_ref()
            .map_or_else(Default::default, |list| {
                let ids = comparable.list(&at("lower_is_better"), list, report);
                ids.into_iter().collect()
            }),
        list_ratio_margin: or_default(&raw.list_ratio_margin, defaults.list_ratio_margin),
        epoch_weights: word(&at("epoch_weights"), &raw.epoch_weights, &EPOCH_WEIGHTS, report),
        ..defaults
    }
}

fn word<T: Clone + Default>(
    key: &str,
    word: &Option<Spanned<String>>,
    known: &[(&str, T)],
    report: &mut ErrorReport,
) -> T {
    let chosen = word.as_ref().and_then(|word| choice(key, word, known, report));
    chosen.unwrap_or_default()
}

fn primary(key: &str, raw: &RawExperiment, comparable: &Comparable, report: &mut ErrorReport) -> Vec<String> {
    let Some(list) = &raw.primary else {
        return comparable.default_primary().into_iter().collect();
    };
    if list.get_ref().is_empty() {
        let remedy = "write at least one, or leave it out for a default";
        report.refuse(key, list, "is empty: nothing could be decided", remedy);
    }
    comparable.list(key, list, report)
}

fn guardrails(
    key: &str,
    raw: &RawNumbers,
    comparable: &Comparable,
    report: &mut ErrorReport,
) -> BTreeMap<String, f64> {
    let mut guardrails = BTreeMap::new();
    for (metric, margin) in raw.get_ref() {
        is_between(PART, key, margin, report);
        if let Some(id) = comparable.id(key, metric, report)
            && guardrails.insert(id, *margin.get_ref()).is_some()
        {
            report.refuse_twice(key, metric, format_args!("\"{}\"", metric.get_ref()));
        }
    }
    guardrails
}
