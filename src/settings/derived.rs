//! Values of settings that are not written but follow from another setting or from the machine.

use abgauge_core::decode::shape::Shape;
use toml::Value;

use super::names::EXPERIMENTS;
use super::row::Rule;
use super::sample::{self, SampleEntry};
use super::{Config, Experiment, raw};

/// Returns the value of `key` if it is not written, or `None` if nothing replaces it.
pub(super) fn value(key: &str, config: &Config) -> Option<Value> {
    raw::setting(key)?.find(|rule| match rule {
        Rule::Else(value) => value(config),
        Rule::OfShape(value) => value(config.events.as_ref().unwrap_or(&Shape::default())),
        _ => None,
    })
}

/// Returns the reason for a default, if it needs an explanation.
pub(super) fn reason(key: &str, is_written: impl Fn(&str) -> bool) -> Option<&'static str> {
    match key {
        // Checked before the preset, which that setting overrides.
        "events.served.user_id" | "events.click.user_id" if is_written("events.user_id") => {
            Some("of events.user_id")
        }
        _ if is_written("events.preset") && key.starts_with("events.") => Some("of the preset"),
        _ => raw::setting(key)?.find(|rule| match rule {
            Rule::Because(reason) => Some(*reason),
            _ => None,
        }),
    }
}

/// Returns the value of an experiment's setting if it is not written, or `None` if nothing replaces it.
pub(super) fn of_experiment(setting: &str, experiment: &Experiment) -> Option<Value> {
    let settings = experiment.settings.as_ref()?;
    raw::setting(&format!("{EXPERIMENTS}.{setting}"))?.find(|rule| match rule {
        Rule::OfExperiment(value) => value(settings),
        _ => None,
    })
}

/// Returns the reason for a default of an experiment's setting, if it needs an explanation.
pub(super) fn reason_of_experiment(setting: &str, name: &str, config: &Config) -> Option<&'static str> {
    let is_taken = setting == "primary" && config.without_primary.contains(name);
    is_taken.then_some("CTR at the largest k, else the first metric measured")
}

/// Returns the settings under `[events]` that describe a shape, with their values in TOML, in the order of the sample. A
/// setting such as `served.items` is included if it differs from abgauge's own shape or is `wanted`.
pub(crate) fn event_settings(shape: &Shape, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let own = Shape::default();
    let mut settings = Vec::new();
    for SampleEntry { section, name, .. } in sample::entries() {
        let Some(row) = name.and_then(|name| raw::setting(&format!("{section}.{name}"))) else {
            continue;
        };
        let of = |shape: &Shape| {
            row.find(|rule| match rule {
                Rule::OfShape(value) => value(shape),
                _ => None,
            })
        };
        let Some(key) = row.key.strip_prefix("events.") else {
            continue;
        };
        let value = of(shape);
        if value == of(&own) && !(wanted(key) && value.is_some()) {
            continue;
        }
        // A list of the preset is removed by an empty list, and everything else by an empty text.
        let text = match &value {
            Some(value) => written(value),
            None if row.is_list() => "[]".to_owned(),
            None => "\"\"".to_owned(),
        };
        settings.push((key.to_owned(), text));
    }
    settings
}

/// Formats a value on one line.
fn written(value: &Value) -> String {
    match value {
        // TOML reads JSON's escapes. The exception is DEL, which JSON does not escape.
        Value::String(text) => serde_json::Value::from(text.as_str())
            .to_string()
            .replace('\u{7f}', "\\u007F"),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(written).collect();
            format!("[{}]", values.join(", "))
        }
        other => other.to_string(),
    }
}
