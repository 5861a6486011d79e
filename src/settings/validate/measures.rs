//! `[metrics]` and `[profile.NAME]`: metrics to be measured, and their conventions.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use abgauge_core::metrics::profile::CHOICES;
use abgauge_core::metrics::{METRICS, Measures, Metric, Profile, usual_ids};
use toml::{Spanned, Value};

use super::values::{choice, chosen, cut_offs};
use crate::settings::MAX_CUT_OFFS;
use crate::settings::error::{ErrorReport, nearest};
use crate::settings::names;
use crate::settings::raw::{RawExport, RawMetrics, RawProfile};
use crate::settings::rules::metric_names;

/// Every profile that may be named: those that come with abgauge, by old names too, then custom ones.
pub(super) fn known_profiles(
    custom: &BTreeMap<String, RawProfile>,
    report: &mut ErrorReport,
) -> Vec<Profile> {
    let mut known = Profile::all();
    known.extend(Profile::all_by_old_names());
    for (name, choices) in custom {
        known.extend(custom_profile(name, choices, report));
    }
    known
}

/// Returns the measures, and the metrics as they were chosen, if any were.
pub(super) fn measures(
    raw: &RawMetrics,
    known: &[Profile],
    export: &RawExport,
    report: &mut ErrorReport,
) -> (Measures, Option<Vec<&'static str>>) {
    raw.check("metrics", report);
    let profiles = profiles(&raw.profile, known, report);
    let chosen = chosen_metrics(raw, export, &profiles, report);
    let is_wanted = |metric: &Metric| match &chosen {
        Some(chosen) => chosen.contains(&metric.id),
        None => metric.is_usual,
    };
    let is_measured = |metric: &&Metric| {
        let mut profiles = profiles.iter();
        is_wanted(metric) && profiles.any(|profile| profile.metrics.contains(&metric.id))
    };
    // Columns have the order of `METRICS`, whatever the order in the file.
    let metrics = METRICS
        .iter()
        .filter(is_measured)
        .map(|metric| metric.id)
        .collect();
    let measures = Measures {
        profiles,
        metrics,
        ks: ks(raw, report),
        alpha: *raw.alpha.get_ref(),
        catalogue: raw.catalog.is_some(),
    };
    (measures, chosen)
}

fn ks(raw: &RawMetrics, report: &mut ErrorReport) -> Vec<NonZeroU32> {
    const K: &str = "metrics.k";
    let ks = cut_offs(&raw.k);
    if !ks.is_sorted_by(|a, b| a < b) && report.is_sound(K) {
        let mut sorted = ks.clone();
        sorted.sort();
        sorted.dedup();
        report.refuse(
            K,
            &raw.k,
            "is not ascending, each value once",
            format!("write k = {sorted:?}"),
        );
    }
    if ks.len() > MAX_CUT_OFFS {
        let remedy = format!("write at most {MAX_CUT_OFFS}");
        report.refuse(K, &raw.k, "has too many cut-offs", remedy);
    }
    ks
}

/// Returns the chosen metrics, or else the usual ones plus the ones in the export; `None` if neither setting is given.
fn chosen_metrics(
    raw: &RawMetrics,
    export: &RawExport,
    profiles: &[Profile],
    report: &mut ErrorReport,
) -> Option<Vec<&'static str>> {
    const METRICS_KEY: &str = "metrics.metrics";
    const EXPORT_KEY: &str = "export.metrics";
    let mut of = |key: &str, list: &Option<Spanned<Vec<Spanned<String>>>>| -> Option<Vec<&'static str>> {
        let list = list.as_ref()?;
        let ids = chosen(key, list, &metric_names(), report);
        if key == METRICS_KEY && list.get_ref().is_empty() {
            let remedy = "write at least one, such as [\"hit_rate\"], or leave it out for the defaults";
            report.refuse(key, list, "is empty: nothing would be measured", remedy);
        }
        for word in list.get_ref() {
            if let Some(metric) = Metric::named(word.get_ref()) {
                can_be_measured(key, word, &metric, raw, profiles, report);
            }
        }
        Some(ids)
    };
    let chosen = of(METRICS_KEY, &raw.metrics);
    let exported = of(EXPORT_KEY, &export.metrics);
    if let (Some(chosen), Some(list)) = (&chosen, &export.metrics) {
        for word in list.get_ref() {
            let id = Metric::named(word.get_ref()).map(|metric| metric.id);
            // A list with an error may be incomplete, so nothing is compared with it.
            if id.is_some_and(|id| !chosen.contains(&id)) && report.is_sound(METRICS_KEY) {
                let message = format!("\"{}\" is not measured", word.get_ref());
                let remedy = "add it to `metrics` under [metrics], or leave it out";
                report.refuse(EXPORT_KEY, word, message, remedy);
            }
        }
    }
    chosen.or_else(|| Some([usual_ids(), exported?].concat()))
}

/// Checks that a named metric can be measured with these profiles and this catalogue.
fn can_be_measured(
    key: &str,
    word: &Spanned<String>,
    metric: &Metric,
    raw: &RawMetrics,
    profiles: &[Profile],
    report: &mut ErrorReport,
) {
    if metric.needs_catalogue() && raw.catalog.is_none() {
        report.refuse(
            key,
            word,
            format!("\"{}\" needs the catalogue of items", word.get_ref()),
            "write catalog = \"FILE\" under [metrics], or leave the metric out",
        );
    }
    let known_to = |profile: &Profile| profile.metrics.contains(&metric.id);
    if !profiles.is_empty() && !profiles.iter().any(known_to) {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        report.refuse(
            key,
            word,
            format!(
                "the profile {} does not define \"{}\"",
                names.join(", "),
                word.get_ref()
            ),
            "leave it out, or add a profile that has it (`abgauge profiles` lists them)",
        );
    }
}

fn profiles(raw: &Spanned<Value>, known: &[Profile], report: &mut ErrorReport) -> Vec<Profile> {
    const PROFILE: &str = "metrics.profile";
    let words: Option<Vec<String>> = match raw.get_ref() {
        // A variable may hold several names.
        Value::String(names) => Some(names.split(',').map(|name| name.trim().to_owned()).collect()),
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    };
    let Some(words) = words.filter(|words| !words.is_empty()) else {
        let remedy = "write profile = \"default\", or several: profile = [\"default\", \"ranx\"]";
        report.refuse(PROFILE, raw, "is neither a name nor a list of names", remedy);
        return Vec::new();
    };
    let list = Spanned::new(
        raw.span(),
        words
            .into_iter()
            .map(|word| Spanned::new(raw.span(), word))
            .collect(),
    );
    let known: Vec<(&str, Profile)> = known
        .iter()
        .map(|profile| (profile.name.as_str(), profile.clone()))
        .collect();
    chosen(PROFILE, &list, &known, report)
}

/// The name is written in every series of a further profile.
const MAX_NAME_BYTES: usize = 128;

fn custom_profile(name: &str, raw: &RawProfile, report: &mut ErrorReport) -> Option<Profile> {
    let key = format!("profile.{name}");
    let place = raw.values().next().map_or(0..0, Spanned::span);
    let whole = Spanned::new(place, ());
    if Profile::named(name).is_some() {
        let remedy = "give yours another name, and name this one as its `base`";
        report.refuse(&key, &whole, "is the name of a built-in profile", remedy);
        return None;
    }
    let is_plain = |c: char| c != ',' && !c.is_control();
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
        report.refuse(
            &key,
            &whole,
            "no profile can have this name",
            "write a name of 1 to 128 bytes without a comma",
        );
        return None;
    }
    let mut all = Profile::all();
    // Older configurations may name these as their base.
    all.extend(Profile::all_by_old_names());
    let bases: Vec<(&str, Profile)> = all
        .iter()
        .map(|profile| (profile.name.as_str(), profile.clone()))
        .collect();
    let Some(base) = raw.get("base") else {
        let remedy = format!("write base = \"default\" below [{key}], or the name of another profile");
        report.refuse(&key, &whole, "has no base", remedy);
        return None;
    };
    let base = choice(
        &format!("{key}.base"),
        &word(&format!("{key}.base"), base, report)?,
        &bases,
        report,
    )?;
    let mut profile = Profile {
        name: name.to_owned(),
        source: format!("your own, based on {}", base.name),
        note: "",
        ..base
    };
    for (setting, value) in raw.iter().filter(|(setting, _)| *setting != "base") {
        let key = format!("{key}.{}", names::shown(setting));
        if setting == "metrics" {
            if let Some(ids) = own_metrics(&key, value, report) {
                profile.metrics = ids;
            }
            continue;
        }
        let Some(of) = CHOICES.iter().find(|of| of.setting == setting) else {
            let known = CHOICES.iter().map(|of| of.setting).chain(["base", "metrics"]);
            let remedy = match nearest(setting, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`abgauge profiles` lists the choices of a profile".to_owned(),
            };
            report.refuse(&key, value, "there is no such choice", remedy);
            continue;
        };
        let words: Vec<(&str, &str)> = (of.words)().into_iter().map(|(word, _)| (word, word)).collect();
        if let Some(written) = word(&key, value, report)
            && let Some(chosen) = choice(&key, &written, &words, report)
        {
            (of.set)(&mut profile, chosen);
        }
    }
    Some(profile)
}

fn own_metrics(key: &str, value: &Spanned<Value>, report: &mut ErrorReport) -> Option<Vec<&'static str>> {
    let names_written: Option<Vec<Spanned<String>>> = value.get_ref().as_array().and_then(|list| {
        let words = list.iter().map(|word| word.as_str().map(str::to_owned));
        words
            .map(|word| word.map(|word| Spanned::new(value.span(), word)))
            .collect()
    });
    let Some(written) = names_written else {
        let remedy = "write a list such as metrics = [\"hit_rate\", \"mrr\"]";
        report.refuse(key, value, "is not a list of names", remedy);
        return None;
    };
    Some(chosen(
        key,
        &Spanned::new(value.span(), written),
        &metric_names(),
        report,
    ))
}

fn word(key: &str, value: &Spanned<Value>, report: &mut ErrorReport) -> Option<Spanned<String>> {
    match value.get_ref() {
        Value::String(word) => Some(Spanned::new(value.span(), word.clone())),
        _ => {
            report.refuse(key, value, "is not a word", "write it in quotes");
            None
        }
    }
}
