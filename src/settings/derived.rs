//! Values of settings that are not written but follow from another setting or from the machine.

use abgauge_core::decode::shape::{Nested, Paths, Shape, TsUnit};
use toml::Value;

use super::rules::{EPOCH_WEIGHTS, GOALS, KINDS, NO_ITEMS, UNITS, VALIDITIES, WHOLE};
use super::units::display_ms;
use super::{Config, Experiment, TOTAL, paths};

/// Returns the value of `key` if it is not written, or `None` if nothing replaces it.
pub(super) fn value(key: &str, config: &Config) -> Option<Value> {
    let words = |words: &[String]| Some(list(words.iter().map(String::as_str)));
    let numbers = |ks: &[std::num::NonZeroU32]| Some(list(ks.iter().map(|k| i64::from(k.get()))));
    let export = &config.export;
    match key {
        "ingest.workers" => i64::try_from(config.ingest.n_workers()).ok().map(Value::from),
        "join.same_list" => Some(display_ms(config.join.same_list_ms).into()),
        "metrics.metrics" => Some(list(config.measures.metrics.iter().copied())),
        "export.metrics" => words(&export.metrics),
        "export.k" => numbers(export.k.as_ref().unwrap_or(&config.measures.ks)),
        "export.windows" => {
            let names = config
                .windows
                .iter()
                .map(|window| window.name.as_str())
                .chain([TOTAL]);
            let is_shown = |name: &str| {
                export
                    .live
                    .iter()
                    .chain(&export.settled)
                    .any(|shown| shown == name)
            };
            Some(list(names.filter(|name| is_shown(name))))
        }
        "http.tls_key" => {
            let tls = config.http.tls.as_ref()?;
            Some(tls.key.display().to_string().into())
        }
        _ => {
            let own = Shape::default();
            of_events(
                key.strip_prefix("events.")?,
                config.events.as_ref().unwrap_or(&own),
            )
        }
    }
}

/// Returns the reason for a default, if it needs an explanation.
pub(super) fn reason(key: &str, is_written: impl Fn(&str) -> bool) -> Option<&'static str> {
    match key {
        "ingest.workers" => Some("one for each core"),
        "http.tls_key" => Some("in the file of the certificate"),
        "join.same_list" => Some("as long as join.attribution"),
        "export.metrics" => Some("all that are measured"),
        "export.k" | "export.windows" => Some("all of them"),
        "export.views" => Some("live in the shortest window, settled in longer ones, both in total"),
        // Checked before the preset, which that setting overrides.
        "events.served.user_id" | "events.click.user_id" if is_written("events.user_id") => {
            Some("of events.user_id")
        }
        _ if is_written("events.preset") && key.starts_with("events.") => Some("of the preset"),
        _ => None,
    }
}

/// Returns the value of an experiment's setting if it is not written, or `None` if nothing replaces it.
pub(super) fn of_experiment(setting: &str, experiment: &Experiment) -> Option<Value> {
    let settings = experiment.settings.as_ref()?;
    let word = |word: &str| Some(Value::from(word));
    match setting {
        "primary" if settings.primary.is_empty() => None,
        "primary" => Some(list(settings.primary.iter().map(String::as_str))),
        "mde" => Some(settings.mde.into()),
        "alpha" => Some(settings.alpha.into()),
        "min_days" => Some(settings.min_days.into()),
        "validity" => word(word_of(&VALIDITIES, &settings.validity)),
        "goal" => word(word_of(&GOALS, &settings.goal)),
        "unit" => word(word_of(&UNITS, &settings.unit)),
        "sticky" => Some(settings.sticky.into()),
        "list_ratio_margin" => Some(settings.list_ratio_margin.into()),
        "epoch_weights" => word(word_of(&EPOCH_WEIGHTS, &settings.epoch_weights)),
        _ => None,
    }
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
    let of_sample = super::sample::entries().into_iter().filter_map(|entry| {
        let key = format!("{}.{}", entry.section, entry.name?);
        key.strip_prefix("events.").map(str::to_owned)
    });
    let settings = of_sample.filter_map(|key| {
        let (value, default) = (of_events(&key, shape), of_events(&key, &own));
        // A list of the preset is removed by an empty list, and everything else by an empty text.
        let is_list = ["types", "actions", "only", "not_in"]
            .iter()
            .any(|list| key.ends_with(list));
        let text = match &value {
            Some(value) => written(value),
            None if is_list => "[]".to_owned(),
            None => "\"\"".to_owned(),
        };
        let is_reported = value != default || (wanted(&key) && value.is_some());
        is_reported.then_some((key, text))
    });
    settings.collect()
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

fn of_events(key: &str, shape: &Shape) -> Option<Value> {
    let path = |path: &Paths| Some(paths::written(path));
    let opt_path = |path: &Option<Paths>| path.as_ref().map(paths::written);
    let word = |word: &Option<String>| word.clone().map(Value::from);
    let words = |words: &[String]| (!words.is_empty()).then(|| list(words.iter().map(String::as_str)));
    let (served, click, arms) = (&shape.served, &shape.click, &shape.served.arms);
    match key {
        "type" => opt_path(&shape.kind),
        "without_type" => shape.without_kind.map(|kind| word_of(&KINDS, &Some(kind)).into()),
        "nested" => shape.nested.as_ref().map(|nested| match nested {
            Nested::Whole => WHOLE.into(),
            Nested::At(path) => path.to_string().into(),
        }),
        "records" => shape.records.as_ref().map(|path| path.to_string().into()),
        "ts_unit" => shape.ts_unit.map(|unit| word_of(&TsUnit::ALL, &unit).into()),
        "ts_zone" => shape.ts_zone.map(|zone| zone.to_string().into()),
        "served.types" => words(&served.kinds),
        "served.request_id" => Some(paths::written_id(&served.request_id, &served.further_ids)),
        "served.user_id" => opt_path(&served.user_id),
        "served.ts" => path(&served.ts),
        "served.items" => path(&served.items),
        "served.no_items" => Some(word_of(&NO_ITEMS, &served.absent_is_empty).into()),
        "served.gather" => served.gather_ms.map(|span_ms| display_ms(span_ms).into()),
        "served.clicked" => opt_path(&served.clicked),
        "served.clicked_items" => opt_path(&served.clicked_items),
        "served.clicked_ts" => opt_path(&served.clicked_ts),
        "served.item_id" => opt_path(&served.item_id),
        "served.position" => opt_path(&served.position),
        "served.skip_others" => Some(served.skip_others.into()),
        "served.rows" => Some(served.rows.into()),
        "served.row_items" => opt_path(&served.row_items),
        "served.experiments" => opt_path(&arms.experiments),
        "served.experiment" => opt_path(&arms.experiment),
        "served.arm" => opt_path(&arms.arm),
        "served.only" => words(&arms.only),
        "served.not_in" => words(&arms.not_in),
        "served.prefix" => word(&arms.prefix),
        "served.arm_separator" => word(&arms.arm_separator),
        "served.pair_separator" => word(&arms.pair_separator),
        "served.experiment_name" => word(&arms.experiment_name),
        "served.arm_name" => word(&arms.arm_name),
        "click.types" => words(&click.kinds),
        "click.action" => opt_path(&click.action),
        "click.actions" => words(&click.actions),
        "click.request_id" => Some(paths::written_id(&click.request_id, &click.further_ids)),
        "click.user_id" => opt_path(&click.user_id),
        "click.ts" => path(&click.ts),
        "click.item" => path(&click.item),
        _ => None,
    }
}

/// Returns the word that means `value` in the configuration.
fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let mut words = words.iter();
    words.find(|(_, of)| of == value).map_or("", |(word, _)| word)
}

fn list<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    Value::Array(values.into_iter().map(Into::into).collect())
}
