//! Events in tables, and in separate files of lists and clicks: the same events give the same numbers in any format, with the paths
//! of `[events]`. `tests/data/parquet/nested.py` and `tests/data/avro/make.py` write the files from `events.jsonl`.

use std::fmt::Write as _;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program::{Ran, file, run, run_with_input, temporary_dir};
use crate::{EVENTS, two_arms};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Shape of events whose fields are in an object, as the files have them.
const NESTED: &str = r#"
[events]
type = "kind"
user_id = "context.user"

[events.served]
types = ["list"]
request_id = "rec"
ts = "context.time"
items = "shown"
experiments = ""
experiment_name = "ranker"
arm = "context.variant"

[events.click]
types = ["tap"]
request_id = "rec"
ts = "context.time"
item = "sku"
"#;

/// Events of the shape [`NESTED`], with items as text.
pub fn events() -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{DATA}/avro/events.jsonl")).expect("a file");
    let event = |line: &str| {
        let mut event: Value = serde_json::from_str(line).expect("JSON");
        let [user, variant, time] = ["user", "variant", "time"].map(|name| event[name].take());
        event["context"] = serde_json::json!({"user": user, "variant": variant, "time": time});
        event
    };
    text.lines().map(event).collect()
}

fn lines(events: &[Value]) -> String {
    events.iter().fold(String::new(), |mut text, event| {
        let _ = writeln!(text, "{event}");
        text
    })
}

/// Splits events by their kind, which they no longer name.
fn by_kind(events: &[Value]) -> [Vec<Value>; 2] {
    ["list", "tap"].map(|kind| {
        let mut events: Vec<Value> = events
            .iter()
            .filter(|event| event["kind"] == kind)
            .cloned()
            .collect();
        for event in &mut events {
            event.as_object_mut().expect("an object").remove("kind");
        }
        events
    })
}

/// Writes events as CSV. A column holds the field at a path of the same text.
pub fn csv(columns: &[&str], events: &[Value]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).expect("memory");
    for event in events {
        let cells = columns.iter().map(|column| {
            let field = column.split('.').fold(event, |value, name| &value[name]);
            match field {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }
        });
        writer.write_record(cells).expect("memory");
    }
    String::from_utf8(writer.into_inner().expect("memory")).expect("UTF-8")
}

struct Case {
    dir: TempDir,
    config: String,
}

impl Case {
    fn new(config: &str) -> Case {
        let dir = temporary_dir();
        let config = file(&dir, "abgauge.toml", config);
        Case { dir, config }
    }

    fn file(&self, name: &str, text: &str) -> String {
        file(&self.dir, name, text)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run(&[
            &["evaluate", "--format", "json", "--config", &self.config],
            arguments,
        ]
        .concat())
    }

    /// Returns the result of these files, which must all be read.
    #[track_caller]
    fn evaluated(&self, arguments: &[&str]) -> Value {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    }
}

#[test]
fn a_table_has_the_numbers_of_its_events_in_json() {
    let case = Case::new(NESTED);
    let events = events();
    let json = case.file("events.jsonl", &lines(&events));
    let expected = case.evaluated(&[&json]);
    assert_eq!(expected["click_results"]["matched"], 46, "{expected}");
    // Columns for fields of an object, or one with the whole object.
    for columns in [
        &[
            "kind",
            "context.user",
            "context.variant",
            "rec",
            "shown",
            "sku",
            "context.time",
        ][..],
        &["", "shown", "rec", "kind", "context", "sku"],
    ] {
        let table = case.file("events.csv", &csv(columns, &events));
        assert_eq!(case.evaluated(&[&table]), expected, "{columns:?}");
    }
    let tabs = csv(&["kind", "rec", "context", "shown", "sku"], &events);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, tabs.as_bytes()).expect("memory");
    let packed = case.dir.path().join("packed");
    std::fs::write(&packed, encoder.finish().expect("memory")).expect("a file");
    assert_eq!(case.evaluated(&[packed.to_str().expect("UTF-8")]), expected);
}

#[cfg(feature = "parquet")]
#[test]
fn nested_columns_of_parquet_are_read_by_paths() {
    let case = Case::new(&NESTED.replace("items = \"shown\"", "items = \"shown\"\nitem_id = \"sku\""));
    let events = events();
    let json = case.file("events.jsonl", &lines(&events));
    let json = Case::new(NESTED).evaluated(&[&json]);
    assert_eq!(case.evaluated(&[&format!("{DATA}/parquet/nested.parquet")]), json);
    let config = NESTED.replace("\"rec\"", "\"record\"");
    let ran = Case::new(&config).run(&[&format!("{DATA}/parquet/nested.parquet")]);
    assert_eq!(ran.code, Some(65), "{}", ran.stderr);
    let reported = "it has no column record, which links clicks to lists: its columns are kind, note, rec, context, shown, sku; name \
                    another one in the section [events] of --config";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}

#[test]
fn rows_are_explained_and_drafted() {
    let case = Case::new(NESTED);
    let table = case.file(
        "events.csv",
        &csv(&["kind", "rec", "context", "shown", "sku"], &events()),
    );
    let sample = run(&["check", "--config", &case.config, "--sample", &table]);
    assert_eq!(sample.code, Some(0), "{}", sample.stdout);
    assert!(
        sample
            .stdout
            .starts_with("ok       line 2: served list b8a1abcd-"),
        "{}",
        sample.stdout
    );
    let mut files = vec![table];
    if cfg!(feature = "parquet") {
        files.push(format!("{DATA}/parquet/nested.parquet"));
    }
    for path in files {
        let drafted = run(&["check", "--suggest", "--sample", &path]).stdout;
        for line in ["ts = \"context.time\"", "items = \"shown\""] {
            assert!(drafted.contains(line), "{path}: {drafted}");
        }
    }
}

#[test]
fn files_of_one_kind_need_no_type() {
    let events = events();
    let [lists, clicks] = by_kind(&events);
    let case = Case::new(NESTED);
    let with_objects =
        Case::new(&NESTED.replace("items = \"shown\"", "items = \"shown\"\nitem_id = \"sku\""));
    let expected = case.evaluated(&[&case.file("events.jsonl", &lines(&events))]);
    let names = |lists: &str, clicks: &str| [lists.to_owned(), clicks.to_owned()];
    let mut files = vec![
        (
            &case,
            names(
                &case.file("l.jsonl", &lines(&lists)),
                &case.file("c.jsonl", &lines(&clicks)),
            ),
        ),
        (
            &case,
            names(
                &case.file("l.csv", &csv(&["rec", "context", "shown"], &lists)),
                &case.file(
                    "c.csv",
                    &csv(&["rec", "context.time", "context.user", "sku"], &clicks),
                ),
            ),
        ),
        (
            &with_objects,
            names(
                &format!("{DATA}/avro/lists.avro"),
                &format!("{DATA}/avro/clicks.avro"),
            ),
        ),
    ];
    if cfg!(feature = "parquet") {
        let [lists, clicks] = ["lists", "clicks"].map(|kind| format!("{DATA}/parquet/nested-{kind}.parquet"));
        files.push((&with_objects, [lists, clicks]));
    }
    for (case, [lists, clicks]) in &files {
        for arguments in [
            ["--lists", lists, "--clicks", clicks],
            ["--clicks", clicks, "--lists", lists],
        ] {
            assert_eq!(case.evaluated(&arguments), expected, "{arguments:?}");
        }
        // Without the flags, no record has a kind.
        assert_eq!(case.run(&[lists, clicks]).code, Some(65), "{lists}");
    }
}

#[test]
fn our_own_fields_are_read_from_files_of_one_kind() {
    let dir = temporary_dir();
    let all = file(&dir, "events.jsonl", EVENTS);
    let expected = run(&["evaluate", &all, "--format", "csv"]);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    let events: Vec<Value> = EVENTS
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of_kind = |kind: &str, name: &str, columns: &[&str]| {
        let events: Vec<Value> = events
            .iter()
            .filter(|event| event["type"] == kind)
            .cloned()
            .collect();
        file(&dir, name, &csv(columns, &events))
    };
    let lists = of_kind(
        "served",
        "lists.csv",
        &["request_id", "user_id", "ts", "items", "experiments"],
    );
    let clicks = of_kind("click", "clicks.csv", &["ts", "request_id", "item"]);
    let ran = run(&[
        "evaluate", "--lists", &lists, "--format", "csv", "--clicks", &clicks,
    ]);
    assert_eq!(
        (ran.code, ran.stdout),
        (Some(0), expected.stdout),
        "{}",
        ran.stderr
    );
    // A file with both kinds may come along, here with copies.
    let ran = run(&["evaluate", &all, "--lists", &lists, "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_record_of_the_other_kind_is_in_the_wrong_file() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", &two_arms());
    let ran = run(&["evaluate", "--lists", &events, "--clicks", &events]);
    assert!(
        ran.stderr.contains("lines skipped as wrong_topic: 6 ("),
        "{}",
        ran.stderr
    );
    for (arguments, reported) in [
        (
            &["--lists", "lists.csv"][..],
            "--lists needs the clicks too: give --clicks FILE",
        ),
        (
            &["--clicks", "c.csv"],
            "--clicks needs the served lists too: give --lists FILE",
        ),
        (
            &["--lists", "-", "--clicks", "-"],
            "standard input can be read only once",
        ),
        (
            &["--lists", "-", "--clicks", "c", "--catalog", "-"],
            "either the events or the catalogue",
        ),
    ] {
        let ran = run(&[&["evaluate"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

#[test]
fn a_table_of_recommendations_is_refused_with_its_remedy() {
    let ran = run_with_input(&["evaluate", "-"], "user_id,item_id,score\nu1,i1,0.5\n");
    assert_eq!((ran.code, &*ran.stdout), (Some(65), ""));
    assert_eq!(
        ran.stderr,
        "error: read standard input: it has no column request_id, which links clicks to lists: its columns are user_id, item_id, score; \
         name another one in the section [events] of --config, or convert a table of recommendations with `abgauge convert`\n"
    );
    let ragged = "type,request_id,ts,item\nclick,r,1763596800000,a,b\n";
    let ran = run_with_input(&["evaluate", "-"], ragged);
    let reported = "line 2 has 5 cells, but the header has 4: quote cells that contain a separator";
    assert_eq!(ran.code, Some(65));
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}
