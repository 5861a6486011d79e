//! The configuration file as a JSON Schema, for editors that complete and check while one writes.
//!
//! Which settings there are, and their defaults, the program knows; what each means is told by the comment above it in
//! `config/abgauge.toml`, and what one without a default looks like by its example there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::layers::known_settings;
use super::sample::{self, Note};

/// Settings that are one word or a list of words.
const WORD_OR_WORDS: [&str; 1] = ["metrics.profile"];

/// The schema, draft 2020-12.
pub(super) fn schema() -> Value {
    let notes = sample::notes();
    let mut schema = section("", &known_settings(), &notes);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "abgauge.toml".into();
    schema
}

fn section(path: &str, known: &Map<String, Value>, notes: &BTreeMap<String, Note>) -> Value {
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

/// A table whose names are the operator's.
fn free_names(key: &str, notes: &BTreeMap<String, Note>) -> Value {
    described(json!({"type": "object"}), notes.get(key))
}

fn setting(key: &str, default: &Value, notes: &BTreeMap<String, Note>) -> Value {
    let note = notes.get(key);
    let example = note.and_then(|note| note.value.as_ref());
    let mut schema = match default {
        Value::Null => example.map_or_else(|| json!({}), shape),
        default => shape(default),
    };
    if WORD_OR_WORDS.contains(&key) {
        schema = json!({"anyOf": [shape(&json!("")), shape(&json!([""]))]});
    }
    if !default.is_null() {
        schema["default"] = default.clone();
    }
    described(schema, note)
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

fn described(mut schema: Value, note: Option<&Note>) -> Value {
    if let Some(text) = note.map(|note| &note.text).filter(|text| !text.is_empty()) {
        schema["description"] = text.as_str().into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every setting with its schema.
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
    fn every_setting_has_a_type_and_says_what_it_is_for() {
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
    fn defaults_in_the_sample_are_those_of_the_program() {
        let notes = sample::notes();
        let mut all = Vec::new();
        settings("", &schema(), &mut all);
        for (key, schema) in all.iter().filter(|(_, schema)| !schema["default"].is_null()) {
            let told = notes.get(key).and_then(|note| note.value.as_ref());
            assert_eq!(told, Some(&schema["default"]), "{key}");
        }
    }
}
