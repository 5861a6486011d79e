//! JSON Schema of the configuration file, for editors that complete and check.
//!
//! The program knows the settings, their defaults and allowed values. Descriptions are the comments in `config/abgauge.toml`,
//! and settings without a default get their type from the example there. Dependencies on other settings or on the machine
//! cannot be expressed in a schema; `abgauge check` finds those.

mod experiment;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use abgauge_core::decode::shape::{Paths, Shape};
use abgauge_core::metrics::profile::CHOICES;
use serde_json::{Map, Value, json};

use super::access::{COSTS, MAX_ENTRIES};
use super::hosts::MAX_NAME;
use super::names::known_settings;
use super::paths::{ALL, ANY};
use super::sample::{self, SettingNote};
use super::units::{SIZE_UNITS, TIME_UNITS, TimeSpan, is_size};
use super::{MAX_CUT_OFFS, rules};

/// Settings that are a word or a list of words.
const WORD_OR_WORDS: [&str; 1] = ["metrics.profile"];

/// Returns the schema, draft 2020-12.
pub(super) fn schema() -> Value {
    let notes = sample::notes();
    let mut schema = section("", &known_settings(), &notes);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "abgauge.toml".into();
    schema["required"] = json!(["kafka"]);
    schema["properties"]["kafka"]["required"] = json!(["brokers"]);
    // librdkafka's names contain dots, so TOML makes nested tables of unquoted ones.
    schema["$defs"] = json!({
        "property": {
            "type": ["string", "integer", "boolean", "object"],
            "additionalProperties": {"$ref": "#/$defs/property"},
        },
        "file": {"type": ["string", "object"], "additionalProperties": {"$ref": "#/$defs/file"}},
    });
    schema
}

fn section(path: &str, known: &Map<String, Value>, notes: &BTreeMap<String, SettingNote>) -> Value {
    let join = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    let of = |(name, default): (&String, &Value)| {
        let key = join(name);
        let schema = match default {
            Value::Object(free) if free.is_empty() => free_names(&key, notes),
            Value::Object(inner) => section(&key, inner, notes),
            default => setting(&key, default, notes),
        };
        (name.clone(), schema)
    };
    let properties: Map<String, Value> = known.iter().map(of).collect();
    described(
        json!({"type": "object", "additionalProperties": false, "properties": properties}),
        notes.get(path),
    )
}

/// Returns the schema of a table with free names.
fn free_names(key: &str, notes: &BTreeMap<String, SettingNote>) -> Value {
    let values = match key {
        "kafka.properties" => json!({"$ref": "#/$defs/property"}),
        "kafka.property_files" => json!({"$ref": "#/$defs/file"}),
        "profile" => profile(),
        _ => experiment::experiment(notes),
    };
    let table = json!({"type": "object", "additionalProperties": values});
    described(table, notes.get(key))
}

/// Returns the schema of a custom profile: its base, and a word for each choice that differs.
fn profile() -> Value {
    let choice = |choice: &abgauge_core::metrics::profile::Choice| {
        let words: Vec<_> = (choice.words)().into_iter().map(|(word, _)| word).collect();
        let schema = json!({"type": "string", "enum": words, "description": choice.about});
        (choice.setting.to_owned(), schema)
    };
    let mut properties: Map<String, Value> = CHOICES.iter().map(choice).collect();
    properties.insert(
        "base".into(),
        json!({"type": "string", "enum": rules::profiles()}),
    );
    let metrics = json!({"type": "string", "enum": rules::words("metrics.metrics")});
    properties.insert(
        "metrics".into(),
        json!({"type": "array", "items": metrics, "uniqueItems": true}),
    );
    json!({"type": "object", "additionalProperties": false, "required": ["base"], "properties": properties})
}

fn setting(key: &str, default: &Value, notes: &BTreeMap<String, SettingNote>) -> Value {
    let note = notes.get(key);
    let example = note.and_then(|note| note.value.as_ref());
    let mut schema = match default {
        // A setting without a default has the type of its example.
        Value::Null => example.map_or_else(|| json!({}), shape),
        default => shape(default),
    };
    if !default.is_null() {
        schema["default"] = default.clone();
    }
    if WORD_OR_WORDS.contains(&key) {
        let names = json!({"type": "string", "minLength": 1, "examples": rules::profiles()});
        let list = json!({"type": "array", "items": names, "minItems": 1, "uniqueItems": true});
        schema = json!({"anyOf": [names, list], "default": default});
    }
    if key == "events.served.not_in" {
        schema["items"] = json!({"type": ["string", "boolean", "integer"]});
    }
    if rules::is_path_in_event(key) {
        schema = json!({"anyOf": [{"type": "string"}, table_of_paths(ANY, 1..=Paths::MAX)]});
    }
    if key.ends_with(".request_id") {
        let all = table_of_paths(ALL, 2..=Shape::MAX_ID_PARTS);
        schema["anyOf"]
            .as_array_mut()
            .into_iter()
            .for_each(|forms| forms.push(all.clone()));
    }
    restrict(key, default.as_str().or_else(|| example?.as_str()), &mut schema);
    described(schema, note)
}

/// Returns the schema of a table with several paths under a single name.
fn table_of_paths(name: &str, n: RangeInclusive<usize>) -> Value {
    let paths = json!({
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "minItems": n.start(),
        "maxItems": n.end(),
        "uniqueItems": true,
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": [name],
        "properties": {name: paths},
    })
}

/// Adds the restrictions of a setting beyond its type. `text` is its default or example, if that is a text.
fn restrict(key: &str, text: Option<&str>, schema: &mut Value) {
    match schema["type"].as_str() {
        Some("array") => {
            schema["uniqueItems"] = true.into();
            let max_items = match key {
                "metrics.k" => Some(MAX_CUT_OFFS),
                "http.bearer_tokens" | "http.basic_passwords" | "http.hosts" => Some(MAX_ENTRIES),
                _ => None,
            };
            if let Some(max_items) = max_items {
                schema["maxItems"] = max_items.into();
            }
            if rules::must_hold_something(key) {
                schema["minItems"] = 1.into();
            }
            let example = schema["default"][0].as_str().map(str::to_owned);
            if schema["items"].is_null() {
                schema["items"] = json!({"type": "string"});
            }
            // Ranges and words are listed by the key of the list, and apply to its entries.
            restrict(key, example.as_deref(), &mut schema["items"]);
        }
        Some("integer") => {
            let range = rules::range(key);
            schema["minimum"] = (*range.start()).into();
            schema["maximum"] = (*range.end()).into();
        }
        Some("number") => {
            schema["minimum"] = (*rules::SHARE.start()).into();
            schema["maximum"] = (*rules::SHARE.end()).into();
        }
        Some("string") => match rules::words(key) {
            Some(words) => schema["enum"] = words.into(),
            None => restrict_text(key, text.unwrap_or_default(), schema),
        },
        _ => {}
    }
}

fn restrict_text(key: &str, text: &str, schema: &mut Value) {
    const TOPIC: &str = "^[a-zA-Z0-9._-]+$";
    let units = |units: &[(&str, u64)]| units.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join("|");
    if key.ends_with("_topic") || key == "state.topic" {
        (schema["pattern"], schema["maxLength"]) = (TOPIC.into(), 249.into());
    } else if key == "ingest.skip_records" {
        schema["pattern"] = "^[a-zA-Z0-9._-]+/[0-9]+/[0-9]+(-[0-9]+)?$".into();
    } else if key == "http.bearer_tokens" {
        schema["pattern"] = "^[0-9a-fA-F]{64}$".into();
    } else if key == "http.basic_passwords" {
        let costs: Vec<String> = COSTS.map(|cost| cost.to_string()).collect();
        let costs = costs.join("|");
        schema["pattern"] = format!("^[^:]+:\\$2[aby]\\$({costs})\\$[./A-Za-z0-9]{{53}}$").into();
    } else if key == "http.hosts" {
        let host = "^(\\*|[a-zA-Z0-9._-]*[a-zA-Z0-9_-][a-zA-Z0-9._-]*|\\[[0-9a-fA-F:.]+\\])$";
        (schema["pattern"], schema["maxLength"]) = (host.into(), MAX_NAME.into());
    } else if key == "webhook.url" {
        schema["pattern"] = "^https?://(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)(:[0-9]+)?([/?#].*)?$".into();
    } else if key == "webhook.header" {
        schema["pattern"] = "^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$".into();
    } else if ["kafka.group_id", "kafka.brokers", "log.filter"].contains(&key) {
        schema["pattern"] = "\\S".into();
    } else if key == "join.user_key" {
        schema["minLength"] = rules::MIN_SECRET.into();
    } else if rules::is_path(key) {
        schema["minLength"] = 1.into();
    } else if TimeSpan::is_one(text) && key != "export.windows" {
        let digits = match rules::may_be_nothing(key) {
            true => "[0-9]+",
            false => "0*[1-9][0-9]*",
        };
        schema["pattern"] = format!("^{digits}({})$", units(&TIME_UNITS)).into();
    } else if is_size(text) {
        schema["pattern"] = format!("^[0-9]+({})$", units(&SIZE_UNITS)).into();
    }
}

fn shape(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::Array(values) => match values.first() {
            Some(first) => json!({"type": "array", "items": shape(first)}),
            None => json!({"type": "array"}),
        },
        Value::Object(_) => json!({"type": "object"}),
        Value::String(_) | Value::Null => json!({"type": "string"}),
    }
}

fn described(mut schema: Value, note: Option<&SettingNote>) -> Value {
    if let Some(text) = note.map(|note| &note.text).filter(|text| !text.is_empty()) {
        schema["description"] = text.as_str().into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects every setting with its schema.
    fn settings(path: &str, schema: &Value, to: &mut Vec<(String, Value)>) {
        for (name, inner) in schema["properties"].as_object().expect("a section") {
            let key = format!("{path}{name}");
            if inner["properties"].is_object() {
                settings(&format!("{key}."), inner, to);
            } else {
                to.push((key, inner.clone()));
            }
        }
    }

    #[test]
    fn every_setting_has_a_type_and_a_description() {
        let mut all = Vec::new();
        settings("", &schema(), &mut all);
        assert!(all.len() > 35, "{}", all.len());
        for (key, schema) in &all {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.len() > 10, "{key}: {schema}");
            assert!(
                schema["type"].is_string() || schema["anyOf"].is_array(),
                "{key}: {schema}"
            );
        }
    }

    /// Returns a configuration with brokers and one more setting.
    fn with(key: &str, value: &toml::Value) -> toml::Table {
        let mut names: Vec<&str> = key.split('.').collect();
        let last = names.pop().expect("a name");
        let mut config = toml::Table::new();
        let brokers = toml::Table::from_iter([("brokers".to_owned(), "b:1".into())]);
        config.insert("kafka".to_owned(), brokers.into());
        let mut table = &mut config;
        for name in names {
            let inner = table.entry(name).or_insert_with(|| toml::Table::new().into());
            table = inner.as_table_mut().expect("a table");
        }
        table.insert(last.to_owned(), value.clone());
        config
    }

    /// The program refuses whatever the schema refuses. The schema refuses every error within a single setting.
    #[test]
    fn the_schema_and_the_validation_agree() {
        let schema = schema();
        let judge = jsonschema::validator_for(&schema).expect("a schema");
        let refuses = |config: &toml::Table| -> [bool; 2] {
            let as_json = serde_json::to_value(config).expect("no dates");
            let loaded = crate::settings::load_text("abgauge.toml", &config.to_string(), std::iter::empty());
            [!judge.is_valid(&as_json), loaded.is_err()]
        };
        let samples = "values = ['', 'x', '5m', '0s', '-5m', '1.5h', '4GiB', 'live', 'ctr', 'request', -1, 0, 1, 257, 100001, \
                       0.5, 1.5, true, [], [1], [1, 1], [0], ['5m'], ['0s'], ['live'], ['live', 'live'], ['x'], [true], \
                       {any = ['x']}, {any = ['x', 'y']}, {any = []}, {any = ['x', 'x']}, {any = [1]}, {any = ''}, {all = ['x']}]";
        let samples: toml::Table = samples.parse().expect("TOML");
        let samples = samples["values"].as_array().expect("a list");
        // Errors that depend on other settings, or on the meaning of a text.
        let beyond = |key: &str| {
            let of_others = [
                "metrics.windows",
                "export.windows",
                "export.metrics",
                "export.numerators",
                "metrics.profile",
            ];
            let of_its_text = [
                "http.listen",
                "log.filter",
                "limits.max_state",
                "kafka.group_id",
                "state.interval",
            ];
            of_others.contains(&key)
                || of_its_text.contains(&key)
                || key.starts_with("events.")
                || [
                    "join.max_future",
                    "join.slot",
                    "join.lateness",
                    "join.attribution",
                    "http.tls_key",
                    "export.k",
                    "global.enabled",
                    "webhook.ca_file",
                    "webhook.secret_file",
                ]
                .contains(&key)
        };
        let mut all = Vec::new();
        settings("", &schema, &mut all);
        let free = [
            "kafka.properties.a",
            "kafka.property_files.a",
            "profile.a.base",
            "experiments.a.control",
        ];
        let keys = all.iter().map(|(key, _)| &**key).chain(free);
        let mut n_refused = 0;
        for key in keys.filter(|key| {
            ![
                "kafka.properties",
                "kafka.property_files",
                "profile",
                "experiments",
            ]
            .contains(key)
        }) {
            for sample in samples {
                let config = with(key, sample);
                let [by_schema, by_program] = refuses(&config);
                n_refused += usize::from(by_schema);
                assert!(
                    !by_schema || by_program,
                    "{key} = {sample}: only the schema refuses it"
                );
                let may_differ = beyond(key) || key.starts_with("kafka.property_files");
                assert!(
                    by_schema || !by_program || may_differ,
                    "{key} = {sample}: only the program refuses it"
                );
            }
        }
        assert!(n_refused > 1000, "{n_refused}");
        assert_eq!(refuses(&toml::Table::new()), [true; 2], "brokers are required");
        assert_eq!(
            refuses(&with("join.latenes", &"2m".into())),
            [true; 2],
            "no other settings"
        );
        let empty = toml::Value::from(toml::Table::new());
        assert_eq!(
            refuses(&with("profile.mine", &empty)),
            [true; 2],
            "a base is required"
        );
    }

    #[test]
    fn settings_without_a_default_have_the_type_of_their_example() {
        let mut all = Vec::new();
        settings("", &schema(), &mut all);
        let of = |key: &str| &all.iter().find(|(other, _)| other == key).expect("a setting").1;
        assert_eq!(of("ingest.workers")["type"], "integer");
        assert_eq!(of("export.k")["items"]["type"], "integer");
        assert_eq!(of("kafka.dead_letter_topic")["type"], "string");
        assert_eq!(of("limits.max_invalid_share")["default"], 0.05);
        assert_eq!(of("kafka.dead_letter_payload")["type"], "boolean");
    }

    #[test]
    fn defaults_in_the_sample_match_the_program() {
        let notes = sample::notes();
        let mut all = Vec::new();
        settings("", &schema(), &mut all);
        for (key, schema) in all.iter().filter(|(_, schema)| !schema["default"].is_null()) {
            let reported = notes.get(key).and_then(|note| note.value.as_ref());
            assert_eq!(reported, Some(&schema["default"]), "{key}");
        }
    }
}
