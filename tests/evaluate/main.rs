//! `abgauge evaluate` as an analyst uses it: all formats, conventions, comparisons, series and refusals. Also `abgauge plan`,
//! which reads the same files or asks a daemon.

mod answering;
mod asked;
mod avro;
mod capped;
mod catalogued;
mod compare;
mod conventions;
mod converted;
mod dominated;
mod drafted;
mod events;
mod feed;
mod field;
mod formats;
mod gathered;
mod groups;
mod growthbook;
mod input;
mod long;
mod parquet;
mod plan;
mod profiles;
#[cfg(feature = "real-services")]
mod recipes;
mod refusals;
mod series;
mod settings;
mod several;
mod shelves;
mod simulated;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod vectors;
mod written;

use serde_json::Value;

use crate::support::program::run_with_input;

const EVENTS: &str = include_str!("../data/lists-a.events.jsonl");

const EXPECTED: &str = include_str!("../data/lists-a.expected.json");

const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lists-a.catalog.jsonl");

const ALL: &str = "default,seed-0,rs_metrics,seed-2,jurity,seed-4,replay,rectools,ranx,trec_eval";

/// Start of 2025-11-20 UTC in Unix ms.
const MIDNIGHT_MS: i64 = 1_763_596_800_000;

/// Returns a list of the items `i` and `j`.
fn list(id: &str, ts_ms: i64, experiments: &str) -> String {
    format!(
        r#"{{"type":"served","request_id":"{id}","ts":{ts_ms},"experiments":{experiments},"items":["i","j"]}}"#
    )
}

fn click(id: &str, ts_ms: i64, item: &str) -> String {
    format!(r#"{{"type":"click","request_id":"{id}","ts":{ts_ms},"item":"{item}"}}"#)
}

/// Returns events of two arms. Arm `a` has two lists, one clicked at rank 2 after 8 s. Arm `b` has one list, clicked at rank
/// 1, and another one on the day before.
fn two_arms() -> String {
    [
        list("1", MIDNIGHT_MS, r#"{"e":"a"}"#),
        list("2", MIDNIGHT_MS + 1, r#"{"e":"a"}"#),
        list("3", MIDNIGHT_MS + 2, r#"{"e":"b"}"#),
        list("4", MIDNIGHT_MS - 1, r#"{"e":"b","f":"x"}"#),
        click("1", MIDNIGHT_MS + 8_000, "j"),
        click("3", MIDNIGHT_MS + 5, "i"),
    ]
    .join("\n")
}

/// Evaluates these events, which must succeed, and returns the output.
#[track_caller]
fn printed(arguments: &[&str], events: &str) -> String {
    let ran = run_with_input(&[&["evaluate", "-"], arguments].concat(), events);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

#[track_caller]
fn document(arguments: &[&str], events: &str) -> Value {
    let text = printed(&[arguments, &["--format", "json"]].concat(), events);
    serde_json::from_str(&text).expect("JSON")
}
