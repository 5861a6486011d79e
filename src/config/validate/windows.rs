//! `metrics.windows`: the sliding windows.

use toml::Spanned;

use crate::config::error::Report;
use crate::config::raw::RawMetrics;
use crate::config::units::{TimeSpan, display_ms};
use crate::config::{N_CELLS, Window};

const WINDOWS: &str = "metrics.windows";

pub(super) fn windows(raw: &RawMetrics, slot: &Spanned<TimeSpan>, report: &mut Report) -> Vec<Window> {
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
    windows
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
