//! `metrics.windows`: the sliding windows.

use toml::Spanned;

use crate::settings::error::ErrorReport;
use crate::settings::raw::RawMetrics;
use crate::settings::units::{TimeSpan, display_ms};
use crate::settings::{N_CELLS, WindowSpan};

const WINDOWS: &str = "metrics.windows";
const SLOT: &str = "join.slot";

pub(super) fn windows(
    raw: &RawMetrics,
    slot: &Spanned<TimeSpan>,
    report: &mut ErrorReport,
) -> Vec<WindowSpan> {
    if raw.windows.get_ref().is_empty() && report.is_sound(WINDOWS) {
        report.refuse(
            WINDOWS,
            &raw.windows,
            "is empty",
            "write at least one, such as [\"1h\"]",
        );
    }
    let mut windows: Vec<WindowSpan> = Vec::new();
    for span in raw.windows.get_ref() {
        let TimeSpan { text, ms } = span.get_ref();
        if let Some(same) = windows.iter().find(|window| window.span_ms == *ms) {
            let message = format!("\"{text}\" is the same window as \"{}\"", same.name);
            report.refuse(WINDOWS, span, message, "leave one of them out");
        }
        windows.push(WindowSpan {
            name: text.clone(),
            span_ms: *ms,
        });
    }
    windows.sort_by_key(|window| window.span_ms);
    let is_chosen = report.is_written(WINDOWS, &raw.windows);
    // The error is reported for the setting that the operator wrote, not for a default.
    if report.is_written(SLOT, slot) && !is_chosen {
        slot_fits(slot, &windows, report);
    } else {
        let spans = raw.windows.get_ref().iter();
        spans.for_each(|span| cell_fits(span, slot, report));
    }
    windows
}

/// The configured slot, with default windows: their cells must consist of whole slots.
fn slot_fits(slot: &Spanned<TimeSpan>, windows: &[WindowSpan], report: &mut ErrorReport) {
    let TimeSpan { text, ms: slot_ms } = slot.get_ref();
    let is_whole = |window: &WindowSpan| window.cell_ms() % slot_ms == 0;
    if *slot_ms == 0 || !report.is_sound(SLOT) || windows.iter().all(is_whole) {
        return;
    }
    let names: Vec<&str> = windows.iter().map(|window| &*window.name).collect();
    let names = names.join(", ");
    let message = format!(
        "the cells of the windows {names} (metrics.windows), each 1/{N_CELLS}, are not whole slots of {text}"
    );
    let divisor = windows
        .iter()
        .fold(0, |divisor, window| gcd(divisor, window.cell_ms()));
    let fits = display_ms(shorter_part(divisor, *slot_ms));
    report.refuse(
        SLOT,
        slot,
        message,
        format!("write slot = \"{fits}\", or other windows"),
    );
}

/// Returns the longest divisor of `whole` that is at most `most`, or 1 if none is found within 10,000 steps.
fn shorter_part(whole: i64, most: i64) -> i64 {
    let first = (whole / most).max(1);
    let mut counts = first..=first.saturating_add(10_000);
    let part = counts.find(|n| whole % n == 0 && whole / n <= most);
    part.map_or(1, |n| whole / n)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A window's cell must consist of whole slots.
fn cell_fits(window: &Spanned<TimeSpan>, slot: &Spanned<TimeSpan>, report: &mut ErrorReport) {
    let TimeSpan { text, ms } = window.get_ref();
    // The smallest window, of which every other is a multiple.
    let unit = N_CELLS * slot.get_ref().ms;
    if unit == 0 || *ms == 0 || !report.is_sound(SLOT) || ms % unit == 0 {
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
    report.refuse(WINDOWS, window, message, remedy);
}
