//! JSON Schema of `[experiments.NAME]`.

use std::collections::BTreeMap;

use abgauge_core::statistics::Settings;
use serde_json::{Map, Value, json};

use super::{described, of_row};
use crate::settings::Experiment;
use crate::settings::derived;
use crate::settings::raw::RawExperiment;
use crate::settings::rules::WITHOUT_CONTROL;
use crate::settings::sample::SettingNote;

pub(super) fn experiment(notes: &BTreeMap<String, SettingNote>) -> Value {
    let defaults = Experiment {
        settings: Some(Settings::new("")),
        ..Experiment::default()
    };
    let mut properties = Map::new();
    let mut needed = Map::new();
    for row in RawExperiment::ROWS {
        let mut schema = of_row(row);
        if let Some(default) = derived::of_experiment(row.name(), &defaults) {
            schema["default"] = serde_json::to_value(default).unwrap_or_default();
        }
        properties.insert(row.name().to_owned(), described(schema, notes.get(row.key)));
        let others = match row.name() {
            "control" => continue,
            name if WITHOUT_CONTROL.contains(&name) => continue,
            "epochs" => json!(["control", "shares"]),
            _ => json!(["control"]),
        };
        needed.insert(row.name().to_owned(), others);
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "dependentRequired": needed,
    })
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
        for setting in RawExperiment::ROWS
            .iter()
            .map(|row| row.name())
            .filter(|name| *name != "start")
        {
            for value in values {
                let needed = match setting {
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
        assert_eq!(settings.len(), 21);
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
