//! Names that messages may repeat. A name that is not a setting may be a secret in the wrong place, such as a pasted password.
//!
//! Experiments, arms and profiles are outside of this rule: their names are labels, which every scrape shows.

use std::collections::BTreeSet;

use abgauge_core::metrics::profile::CHOICES;
use serde_json::{Map, Value};

use super::error::nearest;
use super::properties::{is_known_prefix, shown_name};
use super::raw::{self, Raw, RawExperiment};

pub(super) const PREFIX: &str = "ABGAUGE_";
/// Section of tables with known settings under names chosen by the operator. There is only this one.
pub(super) const EXPERIMENTS: &str = "experiments";

/// Length in bytes beyond which no name is repeated.
const LONGEST: usize = 40;
/// Replacement for a name that may be a secret. The error shows its line and column.
const HIDDEN: &str = "…";

/// Returns the name if it looks like a misspelled or misplaced setting, and `…` otherwise.
pub(super) fn shown(name: &str) -> &str {
    if looks_like_a_setting(name) { name } else { HIDDEN }
}

/// Returns whether a name has the characters of a setting and is close to one.
pub(super) fn looks_like_a_setting(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
    let is_short = name.len() <= LONGEST;
    is_short
        && name.bytes().all(is_plain)
        && (is_known_prefix(name) || nearest(name, known().iter().map(String::as_str)).is_some())
}

/// Returns whether a name is a setting, or a usual property of librdkafka.
pub(super) fn is_a_setting(name: &str) -> bool {
    known().contains(name) || shown_name(name) == name
}

/// Returns the names of all settings and sections, without the sections around them.
fn known() -> BTreeSet<String> {
    let of_rows = raw::settings().flat_map(|setting| setting.key.split('.'));
    let names = of_rows.chain(["profile"]).map(str::to_owned);
    names
        .chain(settings_of_a_profile().into_iter().map(|(name, _)| name))
        .collect()
}

/// Returns every setting that a custom profile can have.
pub(super) fn settings_of_a_profile() -> Map<String, Value> {
    let choices = CHOICES.iter().map(|choice| choice.setting);
    let settings = choices.chain(["base", "metrics"]);
    settings
        .map(|setting| (setting.to_owned(), Value::Null))
        .collect()
}

/// Returns every setting under its section, with its default. An empty object is a table of free names.
pub(super) fn known_settings() -> Map<String, Value> {
    match serde_json::to_value(Raw::default()) {
        Ok(Value::Object(known)) => known,
        _ => Map::new(),
    }
}

/// Returns every setting that an experiment can have.
pub(super) fn settings_of_an_experiment() -> Map<String, Value> {
    match serde_json::to_value(RawExperiment::default()) {
        Ok(Value::Object(known)) => known,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_shown_and_possible_secrets_are_hidden() {
        for name in [
            "brokrs",
            "latenes",
            "group.id",
            "session",
            "request-id",
            "kafka",
            "ndcg_dicsount",
        ] {
            assert_eq!(shown(name), name);
        }
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
        let long = "clicks_topic_".repeat(4);
        for name in [
            "",
            "hunter2",
            "correct horse",
            "Brokers",
            "s3cr3t-4f9a",
            "brokers=a:1",
            key,
            &long,
        ] {
            assert_eq!(shown(name), HIDDEN, "{name}");
        }
    }

    #[test]
    fn settings_of_all_sections_are_known() {
        for name in [
            "join",
            "lateness",
            "request_id",
            "primary",
            "base",
            "sasl.mechanism",
        ] {
            assert!(is_a_setting(name), "{name}");
        }
        assert!(!is_a_setting("brokrs"));
    }
}
