//! `[experiments.NAME]`: start of its `total`, and settings for comparing its arms.

mod allocation;
mod comparable;
mod conflicts;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};

use abgauge_core::metrics::Measures;
use abgauge_core::statistics::after_days;
use toml::Spanned;

use self::comparable::Comparable;
use crate::settings::error::ErrorReport;
use crate::settings::names::EXPERIMENTS;
use crate::settings::ranges::{Ranged as _, is_between};
use crate::settings::raw::{RawExperiment, setting};
use crate::settings::rules::{DAYS, WITHOUT_CONTROL};
use crate::settings::validate::values::{is_short_text, whole};
use crate::settings::{AboutExperiment, Experiment, Schedule};

/// Returns the settings of each experiment by name, and the experiments that have a control but no primary metric.
pub(super) fn experiments(
    raw: &BTreeMap<String, RawExperiment>,
    measures: &Measures,
    report: &mut ErrorReport,
) -> (BTreeMap<String, Experiment>, BTreeSet<String>) {
    if raw.is_empty() {
        return Default::default();
    }
    let comparable = Comparable::of(measures, report);
    let experiments = raw.iter().map(|(name, raw)| {
        let experiment = experiment(&format!("experiments.{name}"), raw, &comparable, report);
        if !is_label(name) {
            // Tables have no place of their own, so the error points to the first setting.
            let place = written(&format!("experiments.{name}"), report)
                .next()
                .map_or(Spanned::new(0..0, ()), |(_, place)| place);
            let remedy = "write a name of 1 to 128 bytes other than `__other__`, as in the events";
            let message = "no experiment can have this name";
            report.refuse(&format!("experiments.{name}"), &place, message, remedy);
        }
        (name.clone(), experiment)
    });
    let is_without = |raw: &RawExperiment| raw.control.is_some() && raw.primary.is_none();
    let without_primary = raw.iter().filter(|(_, raw)| is_without(raw));
    let without_primary = without_primary.map(|(name, _)| name.clone()).collect();
    (experiments.collect(), without_primary)
}

/// Returns the descriptions of the experiments that have one.
pub(super) fn about(
    raw: &BTreeMap<String, RawExperiment>,
    report: &mut ErrorReport,
) -> BTreeMap<String, AboutExperiment> {
    let mut all = BTreeMap::new();
    for (name, raw) in raw {
        let mut text = |setting: &str, written: &Option<Spanned<String>>| {
            let written = written.as_ref()?;
            is_short_text(&format!("experiments.{name}.{setting}"), setting, written, report);
            Some(written.get_ref().clone())
        };
        let about = AboutExperiment {
            description: text("description", &raw.description),
            owner: text("owner", &raw.owner),
            planned_users: planned_users(&format!("experiments.{name}.planned_users"), raw, report),
        };
        if about != AboutExperiment::default() {
            all.insert(name.clone(), about);
        }
    }
    all
}

/// Returns the planned users. Their range is checked here, because they need no control.
fn planned_users(key: &str, raw: &RawExperiment, report: &mut ErrorReport) -> Option<NonZeroU64> {
    let users = raw.planned_users.as_ref()?;
    let row = setting(&format!("{EXPERIMENTS}.planned_users")).expect("it has a row");
    users.check(row, key, report);
    NonZeroU64::new(whole(users))
}

/// Returns the calendar of each experiment with a start. Their other settings may be wrong.
pub(super) fn schedules(
    raw: &BTreeMap<String, RawExperiment>,
    report: &mut ErrorReport,
) -> BTreeMap<String, Schedule> {
    let mut schedules = BTreeMap::new();
    for (name, raw) in raw {
        let key = |setting: &str| format!("experiments.{name}.{setting}");
        let start = raw.start.as_ref();
        let Some(start_ms) = start.and_then(|start| time_ms(&key("start"), start, report)) else {
            continue;
        };
        let planned_days = raw.planned_days.as_ref();
        if let Some(days) = planned_days {
            is_between(DAYS, &key("planned_days"), days, report);
        }
        let schedule = Schedule {
            start_ms,
            planned_end_ms: planned_days.map(|days| after_days(start_ms, *days.get_ref())),
        };
        schedules.insert(name.clone(), schedule);
    }
    schedules
}

fn experiment(
    key: &str,
    raw: &RawExperiment,
    comparable: &Comparable,
    report: &mut ErrorReport,
) -> Experiment {
    let start_key = format!("{key}.start");
    let start_ms = raw
        .start
        .as_ref()
        .and_then(|start| time_ms(&start_key, start, report));
    let Some(control) = &raw.control else {
        without_control(key, report);
        return Experiment {
            start_ms,
            ..Experiment::default()
        };
    };
    raw.check(key, report);
    let settings = settings::settings(key, raw, control, comparable, report);
    let epochs = allocation::epochs(key, raw, start_ms, &settings, report);
    conflicts::refuse(key, raw, &settings, &epochs, report);
    Experiment {
        start_ms,
        settings: Some(settings),
        epochs,
        max_lists_per_user: raw
            .max_lists_per_user
            .as_ref()
            .map(whole)
            .and_then(NonZeroU32::new),
    }
}

/// Refuses settings that are meaningless without a control.
fn without_control(key: &str, report: &mut ErrorReport) {
    let others = written(key, report).filter(|(setting, _)| !WITHOUT_CONTROL.contains(setting));
    // One error is enough, at the first such setting of the file.
    if let Some((setting, place)) = others.min_by_key(|(_, place)| place.span().start) {
        report.refuse(
            &format!("{key}.{setting}"),
            &place,
            "is for comparisons with a control, but no control is set",
            format!("write control = \"ARM\" below [{key}], or leave it out"),
        );
    }
}

/// Returns the settings of an experiment that are written, with their places.
fn written(key: &str, report: &ErrorReport) -> impl Iterator<Item = (&'static str, Spanned<()>)> {
    RawExperiment::ROWS.iter().filter_map(move |row| {
        let place = report.place(&format!("{key}.{}", row.name()))?;
        Some((row.name(), place))
    })
}

/// Returns whether an experiment or an arm can have this name.
fn is_label(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name != "__other__"
}

/// Checks the name of an arm.
fn arm(key: &str, name: &Spanned<String>, report: &mut ErrorReport) {
    if !is_label(name.get_ref()) {
        let remedy = "write the arm's name as in the events: 1 to 128 bytes, not `__other__`";
        report.refuse(key, name, "no arm can have this name", remedy);
    }
}

/// Parses a time as Unix ms.
fn time_ms(key: &str, time: &Spanned<toml::Value>, report: &mut ErrorReport) -> Option<i64> {
    let text = match time.get_ref() {
        toml::Value::String(text) => text.clone(),
        // TOML has a notation for times, which arrives as a value of its own type.
        other => other.to_string(),
    };
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time.as_millisecond()),
        Err(_) => {
            let remedy = "write date, time and offset, such as start = \"2026-01-31T09:00:00Z\"";
            report.refuse(key, time, format!("`{text}` is not a time"), remedy);
            None
        }
    }
}
