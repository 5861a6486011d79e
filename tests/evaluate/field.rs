//! Event files as teams have them, read as a newcomer would: the draft of `check --suggest`, its exit code, and the values of
//! `evaluate` with it. docs/quality.md shows them as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::program::{file, run, temporary_dir};

const QUALITY: &str = include_str!("../../docs/quality.md");

/// Lists and hits by experiment and arm.
type Hits = BTreeMap<String, BTreeMap<String, (u64, u64)>>;

/// A file and its contents: lists and hits by experiment and arm, or the reason why it cannot be read.
type Expected = (&'static str, Result<&'static str, &'static str>);

const NO_ARM: &str = "no list names an arm";
const NO_CLICK: &str = "`evaluate` would count no click";

/// The values of files 01 to 18 come from their makers, those of the others from the four lists and two clicks that they all hold.
const FILES: [Expected; 36] = [
    (
        "01-empty-list-omitted.jsonl.gz",
        Ok("filter: loose 300, 59; strict 300, 49"),
    ),
    (
        "01-empty-list-twin.jsonl.gz",
        Ok("filter: loose 300, 59; strict 300, 49"),
    ),
    ("03-own-fields-other-type.jsonl", Ok("ranker: a 15, 5; b 15, 5")),
    ("04-click-ids-in-array.jsonl", Ok("main: 1 30, 10; 2 30, 10")),
    (
        "05-arm-false-or-null.jsonl",
        Ok("banner: on 27, 13. ranker: control 40, 20; test 40, 20"),
    ),
    (
        "06-served-twice-8s.jsonl.gz",
        Ok("render: csr 200, 65; ssr 200, 55"),
    ),
    ("08-empty-user.jsonl.gz", Ok("x: a 200, 34; b 200, 49")),
    (
        "09-record-per-item.jsonl.gz",
        Ok("ranker: base 30, 10; neural 30, 10"),
    ),
    ("10-clicks-inside-list.jsonl", Ok("main: a 30, 10; b 30, 10")),
    ("11-assignment-apart.jsonl", Err(NO_ARM)),
    ("13-double-encoded.jsonl", Ok("ranker: neural 1, 1")),
    ("14-bigquery-utc.jsonl", Ok("ranker: base 1, 0; neural 1, 1")),
    (
        "15-no-request-id.jsonl",
        Err("events that it cannot read: 4: there is no `request_id`"),
    ),
    (
        "15b-text-lines.txt",
        Err("no record looks like a served list or a click"),
    ),
    (
        "16-click-names-shown-item.jsonl",
        Err("events that it cannot read: 2: there is no `request_id`"),
    ),
    (
        "18-experiments-strings.jsonl",
        Ok("layout: grid 1, 1; list 1, 0. ranker: base 1, 0; neural 1, 1"),
    ),
    ("19-experiment-object.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    (
        "20-arms-in-json-text.jsonl",
        Ok("layout: grid 4, 2. ranker: a 2, 1; b 2, 1"),
    ),
    ("21-flag-payloads.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    ("22-user-among-experiments.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    ("23-arm-none.jsonl", Ok("banner: on 2, 1. ranker: a 2, 1; b 2, 1")),
    ("24-pairs-as-query.jsonl", Ok("lay: x 4, 2. rank: a 2, 1; b 2, 1")),
    ("25-clicks-five-hours-late.jsonl", Err(NO_CLICK)),
    ("26-clicks-before-their-list.jsonl", Err(NO_CLICK)),
    ("27-shelves.jsonl", Ok("ranker: a 4, 1; b 4, 1")),
    ("28-shelves-without-a-name.jsonl", Err(NO_CLICK)),
    ("29-array-times.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    ("30-record-per-viewed-item.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    (
        "31-empty-arm-in-array.jsonl",
        Ok("banner: on 3, 2. ranker: a 2, 1; b 2, 1"),
    ),
    ("32-time-named-variant.jsonl", Err(NO_ARM)),
    (
        "33-clicks-with-objects.jsonl",
        Err("events that it cannot read: 4: `item` is [{\"id\":\"sku-2\"},{\"id\":\"x\"}]"),
    ),
    (
        "34-ga4-bigquery.jsonl",
        Err("events that it cannot read: 6: there is no `request_id`"),
    ),
    ("35-growthbook-result.jsonl", Ok("ranker: 0 2, 1; 1 2, 1")),
    ("36-second-user-id.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    ("37-events-in-a-request.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
    ("38-map-of-assignments.jsonl", Ok("ranker: a 2, 1; b 2, 1")),
];

/// Settings that name a field or a type, which every draft has.
const USUAL: [&str; 9] = [
    "type",
    "types",
    "request_id",
    "user_id",
    "ts",
    "items",
    "item_id",
    "item",
    "experiments",
];

fn path_of(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/field");
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

/// Returns the drafted settings that are not usual.
fn settings_of(draft: &str) -> Vec<String> {
    let settings = draft
        .lines()
        .filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
    let is_unusual = |line: &&str| {
        let name = line.split(" = ").next().unwrap_or_default();
        !USUAL.contains(&name) || line.contains("{ all")
    };
    settings
        .filter(is_unusual)
        .map(|line| format!("`{line}`"))
        .collect()
}

fn hits(evaluated: &str) -> Hits {
    let all: Value = serde_json::from_str(evaluated).expect("JSON");
    let mut hits = Hits::new();
    for (experiment, results) in all["experiments"].as_object().expect("experiments") {
        for (arm, of) in results["arms"].as_object().expect("arms") {
            let n_lists = of["lists"].as_u64().expect("a number");
            let hit_rate = of["metrics"]["hit_rate"].as_f64().expect("a number");
            let n_hits = (hit_rate * n_lists as f64).round() as u64;
            hits.entry(experiment.clone())
                .or_default()
                .insert(arm.clone(), (n_lists, n_hits));
        }
    }
    hits
}

fn written(hits: &Hits) -> String {
    let of_arms = |arms: &BTreeMap<String, (u64, u64)>| {
        let arms = arms
            .iter()
            .map(|(arm, (n_lists, n_hits))| format!("{arm} {n_lists}, {n_hits}"));
        arms.collect::<Vec<_>>().join("; ")
    };
    let experiments = hits
        .iter()
        .map(|(name, arms)| format!("{name}: {}", of_arms(arms)));
    experiments.collect::<Vec<_>>().join(". ")
}

#[test]
fn field_files_yield_their_known_numbers_or_are_refused_as_the_table_shows() {
    let mut table = String::new();
    for (name, expected) in FILES {
        let events = path_of(name);
        let drafted = run(&["check", "--sample", &events, "--suggest"]);
        let settings = settings_of(&drafted.stdout).join(", ");
        let (code, result) = match expected {
            Ok(expected) => {
                assert_eq!(
                    drafted.code,
                    Some(0),
                    "{name}: {}{}",
                    drafted.stdout,
                    drafted.stderr
                );
                let dir = temporary_dir();
                let config = file(&dir, "draft.toml", &drafted.stdout);
                let ran = run(&[
                    "evaluate",
                    &events,
                    "--config",
                    &config,
                    "--metrics",
                    "hit_rate",
                    "--format",
                    "json",
                ]);
                assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
                assert_eq!(
                    written(&hits(&ran.stdout)),
                    expected,
                    "{name}: {}",
                    drafted.stdout
                );
                (0, expected)
            }
            Err(reason) => {
                assert_eq!(drafted.code, Some(65), "{name}: {}", drafted.stdout);
                let is_given = drafted
                    .stderr
                    .contains(&format!("cannot be used unchanged: {reason};"));
                assert!(is_given, "{name}: {}", drafted.stderr);
                (65, reason)
            }
        };
        let settings = if code == 0 { settings.as_str() } else { "" };
        let name = name.trim_end_matches(".gz");
        let _ = writeln!(table, "| {name} | {settings} | {code} | {result} |");
    }
    assert!(
        QUALITY.contains(&table),
        "docs/quality.md lacks the table\n{table}"
    );
}
