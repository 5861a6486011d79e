//! `[metrics]` and `[export]`: what is measured, and what of it is shown.

use std::num::NonZeroU32;

use toml::Spanned;

use super::values::{chosen, cut_offs, positive, whole};
use crate::config::error::Report;
use crate::config::raw::{RawExport, RawMetrics};
use crate::config::units::{TimeSpan, display_ms};
use crate::config::{Export, N_CELLS, TOTAL, Window};
use crate::engine::ranking::CATALOGUE;
use crate::snapshot::View;

pub(super) fn metrics(
    raw: &RawMetrics,
    slot: &Spanned<TimeSpan>,
    report: &mut Report,
) -> (Vec<NonZeroU32>, Vec<Window>) {
    const K: &str = "metrics.k";
    const WINDOWS: &str = "metrics.windows";
    let ks = cut_offs(K, &raw.k, report);
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
    if raw.windows.get_ref().is_empty() && report.is_sound(WINDOWS) {
        report.refuse(
            WINDOWS,
            &raw.windows,
            "is empty",
            "write at least one, such as [\"1h\"]",
        );
    }
    let mut windows: Vec<Window> = Vec::new();
    for span in raw.windows.get_ref() {
        let TimeSpan { text, ms } = span.get_ref();
        if let Some(same) = windows.iter().find(|window| window.span_ms == *ms) {
            let message = format!("\"{text}\" is the same window as \"{}\"", same.name);
            report.refuse(WINDOWS, span, message, "leave one of them out");
        }
        cell_fits(WINDOWS, span, slot, report);
        windows.push(Window {
            name: text.clone(),
            span_ms: *ms,
        });
    }
    windows.sort_by_key(|window| window.span_ms);
    (ks, windows)
}

/// A window's cell must consist of whole slots.
fn cell_fits(key: &str, window: &Spanned<TimeSpan>, slot: &Spanned<TimeSpan>, report: &mut Report) {
    let TimeSpan { text, ms } = window.get_ref();
    if *ms == 0 {
        report.refuse(
            key,
            window,
            format!("\"{text}\" is empty"),
            "write a longer span, such as \"5m\"",
        );
        return;
    }
    // The smallest window, of which every other is a multiple.
    let unit = N_CELLS * slot.get_ref().ms;
    if unit == 0 || !report.is_sound("join.slot") || ms % unit == 0 {
        return;
    }
    let message = format!(
        "\"{text}\" has {N_CELLS} cells that are not whole slots of {} (join.slot)",
        slot.get_ref().text
    );
    let above = display_ms((ms / unit + 1) * unit);
    let remedy = match ms / unit * unit {
        0 => format!("write \"{above}\", or a shorter slot"),
        below => format!(
            "write \"{}\" or \"{above}\", or a slot that divides its cells",
            display_ms(below)
        ),
    };
    report.refuse(key, window, message, remedy);
}

pub(super) fn export(raw: &RawExport, ks: &[NonZeroU32], windows: &[Window], report: &mut Report) -> Export {
    let catalogue: Vec<(&str, String)> = CATALOGUE
        .iter()
        .flat_map(|metric| {
            let gauge = (metric.gauge != metric.id).then_some(metric.gauge);
            [Some(metric.id), gauge]
                .into_iter()
                .flatten()
                .map(|name| (name, metric.id.to_owned()))
        })
        .collect();
    let metrics = match &raw.metrics {
        Some(list) => chosen("export.metrics", list, &catalogue, report),
        None => CATALOGUE.iter().map(|metric| metric.id.to_owned()).collect(),
    };
    let exported: Vec<_> = catalogue
        .into_iter()
        .filter(|(_, id)| metrics.contains(id))
        .collect();
    let numerators = match &raw.numerators {
        Some(list) if report.is_sound("export.metrics") => {
            chosen("export.numerators", list, &exported, report)
        }
        _ => metrics.clone(),
    };
    let k = raw.k.as_ref().map(|list| {
        let chosen = cut_offs("export.k", list, report);
        let comparable = report.is_sound("metrics.k") && report.is_sound("export.k");
        for (k, written) in chosen.iter().zip(list.get_ref()).filter(|_| comparable) {
            if !ks.contains(k) {
                let remedy = format!("write some of {ks:?}, or add it to `k` under [metrics]");
                report.refuse("export.k", written, format!("{k} is not computed"), remedy);
            }
        }
        chosen
    });
    let names = windows.iter().map(|window| window.name.as_str()).chain([TOTAL]);
    let names: Vec<_> = names.map(|name| (name, name.to_owned())).collect();
    let windows = match &raw.windows {
        Some(list) if report.is_sound("metrics.windows") => chosen("export.windows", list, &names, report),
        _ => names.into_iter().map(|(_, name)| name).collect(),
    };
    let views = chosen(
        "export.views",
        &raw.views,
        &View::BOTH.map(|view| (view.name(), view)),
        report,
    );
    if views.is_empty() && report.is_sound("export.views") {
        let remedy = "write [\"live\", \"settled\"], or one of them";
        report.refuse(
            "export.views",
            &raw.views,
            "is empty: nothing would be exported",
            remedy,
        );
    }
    Export {
        metrics,
        k,
        windows,
        live: views.contains(&View::Live),
        settled: views.contains(&View::Settled),
        numerators,
        max_series: whole("export.max_series", &raw.max_series, 1..=100_000_000, report),
        forget_after_ms: positive("export.forget_after", &raw.forget_after, report),
    }
}
