//! JSON Schema of `[experiments.NAME]`.

use std::collections::BTreeMap;
use std::ops::Bound;

use abgauge_core::engine::OTHER;
use abgauge_core::metrics::Metric;
use abgauge_core::statistics::Settings;
use abgauge_core::statistics::per_user;
use serde_json::{Map, Value, json};

use super::described;
use crate::settings::Experiment;
use crate::settings::names::settings_of_an_experiment;
use crate::settings::rules;
use crate::settings::sample::SettingNote;
use crate::settings::{MAX_EPOCHS, derived};

pub(super) fn experiment(notes: &BTreeMap<String, SettingNote>) -> Value {
    let defaults = Experiment {
        settings: Some(Settings::new("")),
        ..Experiment::default()
    };
    let known = settings_of_an_experiment();
    let of = |setting: &String| {
        let mut schema = setting_schema(setting);
        if let Some(default) = derived::of_experiment(setting, &defaults) {
            schema["default"] = serde_json::to_value(default).unwrap_or_default();
        }
        let note = notes.get(&format!("experiments.{setting}"));
        (setting.clone(), described(schema, note))
    };
    let properties: Map<String, Value> = known.keys().map(of).collect();
    let needs = |setting: &str| match setting {
        "epochs" => json!(["control", "shares"]),
        _ => json!(["control"]),
    };
    let others = known
        .keys()
        .filter(|setting| !["start", "control"].contains(&&***setting));
    let needed: Map<String, Value> = others.map(|setting| (setting.clone(), needs(setting))).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "dependentRequired": needed,
    })
}

fn setting_schema(setting: &str) -> Value {
    match setting {
        "start" => time(),
        "control" => label(),
        "shares" => shares(),
        "primary" => json!({"type": "array", "items": metric(), "minItems": 1, "uniqueItems": true}),
        "lower_is_better" => json!({"type": "array", "items": metric(), "uniqueItems": true}),
        "guardrails" => {
            json!({"type": "object", "propertyNames": metric(), "additionalProperties": number(setting)})
        }
        "sticky" => json!({"type": "boolean"}),
        "max_lists_per_user" => json!({
            "type": "integer",
            "minimum": rules::MAX_LISTS_PER_USER.start(),
            "maximum": rules::MAX_LISTS_PER_USER.end(),
        }),
        "epochs" => json!({"type": "array", "maxItems": MAX_EPOCHS, "items": {
            "type": "object",
            "additionalProperties": false,
            "properties": {"start": time(), "shares": shares()},
            "required": ["start", "shares"],
        }}),
        _ => match rules::words(&format!("experiments.{setting}")) {
            Some(words) => json!({"type": "string", "enum": words}),
            None => number(setting),
        },
    }
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// Returns the schema of a name of an experiment or arm. The program limits bytes, which a schema cannot.
fn label() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 128, "not": {"const": OTHER}})
}

fn shares() -> Value {
    json!({
        "type": "object",
        "propertyNames": label(),
        "additionalProperties": number("shares"),
        "minProperties": 2,
    })
}

fn number(setting: &str) -> Value {
    let (low, high) = rules::between(setting);
    let mut schema = json!({"type": "number"});
    let mut bound = |inside: &str, outside: &str, bound: Bound<f64>| match bound {
        Bound::Included(most) => schema[inside] = most.into(),
        Bound::Excluded(most) => schema[outside] = most.into(),
        Bound::Unbounded => {}
    };
    bound("minimum", "exclusiveMinimum", low);
    bound("maximum", "exclusiveMaximum", high);
    schema
}

/// Returns the schema of a metric id with or without a cut-off. A schema cannot know which of them are measured.
fn metric() -> Value {
    let names = rules::words("metrics.metrics").unwrap_or_default();
    // Distinct counts are not sums over users, so arms cannot be compared by them.
    let is_additive = |name: &&str| Metric::named(name).is_some_and(|metric| metric.is_additive);
    let names: Vec<&str> = names.into_iter().filter(is_additive).collect();
    let pattern = format!(
        "^(({})(@[1-9][0-9]*)?|{})$",
        names.join("|"),
        per_user::ids().join("|")
    );
    json!({"type": "string", "pattern": pattern})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{sample, schema};

    /// Returns whether the schema and the program refuse an experiment.
    fn refuses(judge: &jsonschema::Validator, experiment: &str) -> [bool; 2] {
        let text = format!("[kafka]\nbrokers = \"b:1\"\n[experiments.a]\n{experiment}");
        let config: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let as_json = serde_json::to_value(config).expect("no dates");
        let loaded = crate::settings::load_text("abgauge.toml", &text, std::iter::empty());
        [!judge.is_valid(&as_json), loaded.is_err()]
    }

    #[test]
    fn the_schema_and_the_validation_of_experiments_agree() {
        let epoch = "start = '2026-01-31T09:00:00Z', shares = {base = 0.4, b = 0.6}";
        let values = [
            "''",
            "'x'",
            "-1",
            "0",
            "1e-9",
            "0.4",
            "0.5",
            "1",
            "257",
            "3653.5",
            "nan",
            "true",
            "[]",
            "[1]",
            "['x']",
            "['ctr@5']",
            "['hit_ratio@1']",
            "['ctr@05']",
            "['coverage@5']",
            "['mrr', 'mrr']",
            "'strict'",
            "'lists'",
            "'request'",
            "{}",
            "{base = 0.5}",
            "{base = 0.5, b = 0.5}",
            "{base = 0.0, b = 1.0}",
            "{base = 0.5, __other__ = 0.5}",
            "{'ctr@5' = 0.02}",
            "{'ctr@5' = 1.5}",
            "{ctr = 'x'}",
            &format!("[{{{epoch}}}]"),
            &format!("[{{{epoch}, share = 1}}]"),
            "[{shares = {base = 0.4, b = 0.6}}]",
        ];
        let judge = jsonschema::validator_for(&schema::schema()).expect("a schema");
        let [mut n_taken, mut n_refused] = [0, 0];
        for setting in settings_of_an_experiment().keys().filter(|name| *name != "start") {
            for value in values {
                let needed = match &**setting {
                    "control" => "",
                    "epochs" => "control = 'base'\nshares = {base = 0.5, b = 0.5}\n",
                    // Earlier than the first decision is refused.
                    "planned_days" => "control = 'base'\nmin_days = 1e-10\n",
                    _ => "control = 'base'\n",
                };
                let [by_schema, by_program] = refuses(&judge, &format!("{needed}{setting} = {value}"));
                // JSON has no NaN.
                assert!(
                    by_schema == by_program || value == "nan",
                    "{setting} = {value}: {by_schema} {by_program}"
                );
                n_taken += usize::from(!by_program);
                n_refused += usize::from(by_program);
            }
        }
        assert!(n_taken > 30 && n_refused > 300, "{n_taken} {n_refused}");
        for (text, why) in [
            ("mde = 0.1", "a control is required"),
            ("control = 'a'\nepochs = []", "shares are required"),
            ("control = 'a'\nmd = 0.1", "there are no other settings"),
        ] {
            assert_eq!(refuses(&judge, text), [true; 2], "{why}");
        }
        assert_eq!(refuses(&judge, "start = '2026-01-31T09:00:00Z'"), [false; 2]);
    }

    /// The sample documents every setting, with its default or otherwise with an example.
    #[test]
    fn every_setting_is_documented_with_its_default() {
        let notes = sample::notes();
        let schema = experiment(&notes);
        let settings = schema["properties"].as_object().expect("settings");
        assert_eq!(settings.len(), 18);
        let reported = notes.keys().filter(|key| key.starts_with("experiments."));
        assert_eq!(reported.count(), settings.len());
        for (setting, schema) in settings {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.len() > 40, "{setting}: {text}");
            let reported = notes[&format!("experiments.{setting}")]
                .value
                .as_ref()
                .expect("a value");
            match (&schema["default"], text.contains("Default: ")) {
                (Value::Null, true) => {}
                (default, false) if default.is_number() => {
                    assert_eq!(reported.as_f64(), default.as_f64(), "{setting}")
                }
                (default, false) => assert_eq!(reported, default, "{setting}"),
                (default, true) => {
                    panic!("{setting}: {default} is its default, and the comment says another")
                }
            }
        }
    }
}
