//! `[export]`: what a scrape shows of what is measured.

use super::measures::names;
use super::values::{chosen, cut_offs, positive, whole};
use crate::config::error::ErrorReport;
use crate::config::raw::RawExport;
use crate::config::{Export, TOTAL, WindowSpan};
use crate::engine::ranking::{Measures, Metric};
use crate::snapshot::View;

pub(super) fn export(
    raw: &RawExport,
    measures: &Measures,
    windows: &[WindowSpan],
    report: &mut ErrorReport,
) -> Export {
    let ks = &measures.ks;
    let metrics: Vec<String> = match &raw.metrics {
        // What is not measured was refused with the metrics.
        Some(list) => {
            let words = list.get_ref().iter().map(|word| word.get_ref());
            let known = words.filter_map(|word| Metric::named(word));
            known.map(|metric| metric.id.to_owned()).collect()
        }
        None => measures.metrics.iter().map(|id| (*id).to_owned()).collect(),
    };
    let is_additive = |id: &str| Metric::named(id).is_some_and(|metric| metric.is_additive());
    let with_parts: Vec<(&str, String)> = names()
        .into_iter()
        .map(|(name, id)| (name, id.to_owned()))
        .filter(|(_, id)| metrics.contains(id) && is_additive(id))
        .collect();
    let numerators = match &raw.numerators {
        Some(list) if report.is_sound("export.metrics") => {
            chosen("export.numerators", list, &with_parts, report)
        }
        _ => metrics.iter().filter(|id| is_additive(id)).cloned().collect(),
    };
    let k = raw.k.as_ref().map(|list| {
        let chosen = cut_offs("export.k", list, report);
        let comparable = report.is_sound("metrics.k") && report.is_sound("export.k");
        let twice = |n: &usize| chosen[..*n].contains(&chosen[*n]);
        if let (true, Some(n)) = (comparable, (0..chosen.len()).find(twice)) {
            let message = format!("{} is there twice", chosen[n]);
            report.refuse("export.k", &list.get_ref()[n], message, "leave one of them out");
        }
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
        max_series: whole("export.max_series", &raw.max_series, report),
        forget_after_ms: positive("export.forget_after", &raw.forget_after, report),
    }
}
