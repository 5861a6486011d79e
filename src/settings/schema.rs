//! JSON Schema of the configuration file, for editors that complete and check.
//!
//! Types, defaults and allowed values come from the rows, and descriptions from the comments in `config/abgauge.toml`.
//! Dependencies on other settings or on the machine cannot be expressed in a schema; `abgauge check` finds those.

mod experiment;
pub(super) mod types;

use std::collections::BTreeMap;

use abgauge_core::metrics::profile::CHOICES;
use serde_json::{Map, Value, json};

use super::names::known_settings;
use super::raw;
use super::row::{Rule, Setting, names};
use super::rules::{metric_names, profiles};
use super::sample::{self, SettingNote};

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
    let table = match (raw::setting(key), key) {
        (Some(row), _) => of_row(row),
        (None, "profile") => types::table_of(profile()),
        (None, _) => types::table_of(experiment::experiment(notes)),
    };
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
    properties.insert("base".into(), json!({"type": "string", "enum": profiles()}));
    let metrics = json!({"type": "string", "enum": names(&metric_names())});
    properties.insert(
        "metrics".into(),
        json!({"type": "array", "items": metrics, "uniqueItems": true}),
    );
    json!({"type": "object", "additionalProperties": false, "required": ["base"], "properties": properties})
}

fn setting(key: &str, default: &Value, notes: &BTreeMap<String, SettingNote>) -> Value {
    let mut schema = raw::setting(key).map_or_else(|| json!({}), of_row);
    if !default.is_null() {
        schema["default"] = default.clone();
    }
    described(schema, notes.get(key))
}

/// Returns the schema of a setting, without default and description.
fn of_row(row: &Setting) -> Value {
    let mut schema = (row.schema)();
    for rule in row.rules {
        match rule {
            Rule::Schema(of) => schema = of(),
            Rule::NotEmpty => schema["minItems"] = 1.into(),
            Rule::MaxEntries(n) => schema["maxItems"] = (*n).into(),
            rule => restrict(rule, &mut schema),
        }
    }
    schema
}

/// Restricts a value, or each value of a list or table.
fn restrict(rule: &Rule, schema: &mut Value) {
    let schema = match schema["type"].as_str() {
        Some("array") => &mut schema["items"],
        Some("object") => &mut schema["additionalProperties"],
        _ => schema,
    };
    match rule {
        Rule::Within(range) => {
            schema["minimum"] = (*range.start()).into();
            schema["maximum"] = (*range.end()).into();
        }
        Rule::Between(bounds) => *schema = types::number(*bounds),
        Rule::OneOf(words) => schema["enum"] = words().into(),
        Rule::Like(pattern) => schema["pattern"] = (*pattern).into(),
        Rule::AtLeast(n) => schema["minLength"] = (*n).into(),
        Rule::AtMost(n) => schema["maxLength"] = (*n).into(),
        Rule::MayBeZero => *schema = types::span("[0-9]+"),
        _ => {}
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
    use crate::settings::access::COSTS;

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
                || key.starts_with("registry.")
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
        for cost in 8..=16 {
            let hash = format!("a:$2b${cost:02}${}", "a".repeat(53));
            let refused = refuses(&with("http.basic_passwords", &vec![hash].into()));
            assert_eq!(refused, [!COSTS.contains(&cost); 2], "cost {cost}");
        }
        for value in ["x", "0s"] {
            let refused = refuses(&with("events.served.gather", &value.into()));
            assert_eq!(refused, [true; 2], "gather = {value}");
        }
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
