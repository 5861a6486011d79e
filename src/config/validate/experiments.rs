//! `[experiments.NAME]`: where its `total` begins, and which arm is its control.

use std::collections::BTreeMap;

use toml::Spanned;

use crate::config::Experiment;
use crate::config::error::ErrorReport;
use crate::config::raw::RawExperiment;
use crate::statistics::Settings;

/// What is asked of each experiment, by name.
pub(super) fn experiments(
    raw: &BTreeMap<String, RawExperiment>,
    report: &mut ErrorReport,
) -> BTreeMap<String, Experiment> {
    let mut experiments = BTreeMap::new();
    for (name, RawExperiment { start, control }) in raw {
        let key = format!("experiments.{name}");
        if !is_label(name) {
            let remedy = "write a name of 1 to 128 bytes other than `__other__`, as it stands in the events";
            let message = "no experiment can have this name";
            match (start, control) {
                (Some(start), _) => report.refuse(&key, start, message, remedy),
                (None, Some(control)) => report.refuse(&key, control, message, remedy),
                (None, None) => {}
            }
        }
        let mut experiment = Experiment {
            start_ms: start.as_ref().and_then(|start| start_ms(&key, start, report)),
            ..Experiment::default()
        };
        if let Some(control) = control {
            if !is_label(control.get_ref()) {
                let remedy =
                    "write the arm's name as it stands in the events: 1 to 128 bytes, not `__other__`";
                report.refuse(
                    &format!("{key}.control"),
                    control,
                    "no arm can have this name",
                    remedy,
                );
            }
            experiment.settings = Some(Settings::new(control.get_ref()));
        }
        experiments.insert(name.clone(), experiment);
    }
    experiments
}

/// Whether an experiment or an arm can have this name.
fn is_label(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name != "__other__"
}

fn start_ms(key: &str, start: &Spanned<toml::Value>, report: &mut ErrorReport) -> Option<i64> {
    let text = match start.get_ref() {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time.as_millisecond()),
        Err(_) => {
            let remedy = "write date, time and offset, such as start = \"2026-01-31T09:00:00Z\"";
            report.refuse(
                &format!("{key}.start"),
                start,
                format!("`{text}` is not a time"),
                remedy,
            );
            None
        }
    }
}
