//! `[export]`: metrics, windows and views that a scrape shows.

use abgauge_core::engine::View;
use abgauge_core::metrics::{Measures, Metric};
use toml::Spanned;

use super::values::{chosen, cut_offs, whole};
use crate::settings::error::ErrorReport;
use crate::settings::raw::RawExport;
use crate::settings::rules::metric_names;
use crate::settings::{Export, TOTAL, WindowSpan};

pub(super) fn export(
    raw: &RawExport,
    measures: &Measures,
    windows: &[WindowSpan],
    report: &mut ErrorReport,
) -> Export {
    raw.check("export", report);
    let ks = &measures.ks;
    let metrics: Vec<String> = match &raw.metrics {
        // Metrics that are not measured were refused with `[metrics]`.
        Some(list) => {
            let words = list.get_ref().iter().map(|word| word.get_ref());
            let known = words.filter_map(|word| Metric::named(word));
            known.map(|metric| metric.id.to_owned()).collect()
        }
        None => measures.metrics.iter().map(|id| (*id).to_owned()).collect(),
    };
    let is_additive = |id: &str| Metric::named(id).is_some_and(|metric| metric.is_additive);
    let with_parts: Vec<(&str, String)> = metric_names()
        .into_iter()
        .map(|(name, id)| (name, id.to_owned()))
        .filter(|(_, id)| metrics.contains(id) && is_additive(id))
        .collect();
    let numerators = match &raw.numerators {
        // If metrics were refused, numerators might look wrong without being so.
        Some(list) if report.is_sound("export.metrics") => {
            chosen("export.numerators", list, &with_parts, report)
        }
        _ => Vec::new(),
    };
    let k = raw.k.as_ref().map(|list| {
        let chosen = cut_offs(list);
        // Refused entries are left out of `chosen`, so its places match the written ones only without errors.
        let comparable = report.is_sound("metrics.k") && report.is_sound("export.k");
        let twice = |n: &usize| chosen[..*n].contains(&chosen[*n]);
        if let (true, Some(n)) = (comparable, (0..chosen.len()).find(twice)) {
            report.refuse_twice("export.k", &list.get_ref()[n], chosen[n]);
        }
        for (k, written) in chosen.iter().zip(list.get_ref()).filter(|_| comparable) {
            if !ks.contains(k) {
                let remedy = format!("write some of {ks:?}, or add it to `k` under [metrics]");
                report.refuse("export.k", written, format!("{k} is not computed"), remedy);
            }
        }
        chosen
    });
    let windows = shown_windows(&raw.windows, windows, report);
    let views = raw.views.as_ref().map(|list| views(list, report));
    let shown = |view| match &views {
        Some(views) if !views.contains(&view) => Vec::new(),
        Some(_) => windows.clone(),
        None => serving(view, &windows),
    };
    Export {
        metrics,
        k,
        live: shown(View::Live),
        // Numbers of all partitions are not added up further, and looks use `total`, so that window is enough unless views
        // are set.
        global: match &views {
            Some(_) => shown(View::Settled),
            None => windows.iter().filter(|name| *name == TOTAL).cloned().collect(),
        },
        settled: shown(View::Settled),
        numerators,
        secondary: *raw.secondary.get_ref(),
        max_series: whole(&raw.max_series),
        forget_after_ms: raw.forget_after.get_ref().ms,
    }
}

/// Returns the names of the windows in the order of their spans, `total` last.
fn shown_windows(
    list: &Option<Spanned<Vec<Spanned<String>>>>,
    windows: &[WindowSpan],
    report: &mut ErrorReport,
) -> Vec<String> {
    let names = windows.iter().map(|window| window.name.as_str()).chain([TOTAL]);
    let mut names: Vec<_> = names.map(|name| (name, name.to_owned())).collect();
    if let Some(list) = list
        && report.is_sound("metrics.windows")
    {
        let chosen = chosen("export.windows", list, &names, report);
        names.retain(|(_, name)| chosen.contains(name));
    }
    names.into_iter().map(|(_, name)| name).collect()
}

fn views(list: &Spanned<Vec<Spanned<String>>>, report: &mut ErrorReport) -> Vec<View> {
    let known = View::BOTH.map(|view| (view.name(), view));
    let views = chosen("export.views", list, &known, report);
    if views.is_empty() && report.is_sound("export.views") {
        let remedy = "write [\"live\", \"settled\"], or one of them, or leave it out";
        report.refuse(
            "export.views",
            list,
            "is empty: nothing would be exported",
            remedy,
        );
    }
    views
}

/// Returns the windows that a view serves best. Live lists show the present, in the shortest window; settled lists compare arms
/// in the longer ones. `total`, or a window that is alone, gets both views.
fn serving(view: View, windows: &[String]) -> Vec<String> {
    let sliding: Vec<&String> = windows.iter().filter(|name| *name != TOTAL).collect();
    let serves = |name: &String| match sliding[..] {
        [shortest, _, ..] if name != TOTAL => (name == shortest) == (view == View::Live),
        _ => true,
    };
    windows.iter().filter(|name| serves(name)).cloned().collect()
}
