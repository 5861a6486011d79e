//! Avro files from fastavro, in every codec, give the same numbers as the same events in JSON. `tests/data/avro/make.py` writes
//! them.

use std::path::Path;

use serde_json::Value;

use crate::support::program::{Ran, file, program, run, temporary_dir};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/avro");
/// Shape of `events.jsonl`.
const JSON: &str = r#"
[events]
type = "kind"
user_id = "user"

[events.served]
types = ["list"]
request_id = "rec"
ts = "time"
items = "shown"
experiments = ""
experiment_name = "ranker"
arm = "variant"

[events.click]
types = ["tap"]
request_id = "rec"
ts = "time"
item = "sku"
"#;
/// Shape of the Avro files.
const AVRO: &str = r#"
[events]
type = "kind"
user_id = "context.user"

[events.served]
types = ["list"]
request_id = "rec"
ts = "context.time"
items = "shown"
item_id = "sku"
experiments = ""
experiment_name = "ranker"
arm = "context.variant"

[events.click]
types = ["tap"]
request_id = "rec"
ts = "context.time"
item = "sku"
"#;

fn run_on(command: &[&str], name: &str, config: &str) -> Ran {
    let dir = temporary_dir();
    let config = file(&dir, "events.toml", config);
    let path = format!("{FOLDER}/{name}");
    run(&[command, &[&path, "--config", &config]].concat())
}

fn evaluated(name: &str, config: &str) -> Value {
    let ran = run_on(&["evaluate", "--format", "json"], name, config);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn files_in_every_codec_give_the_numbers_of_json() {
    let expected = evaluated("events.jsonl", JSON);
    assert_eq!(expected["records"]["accepted"].as_u64(), Some(166), "{expected}");
    assert_eq!(
        expected["click_results"]["matched"].as_u64(),
        Some(46),
        "{expected}"
    );
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        assert_eq!(evaluated(&format!("{codec}.avro"), AVRO), expected, "{codec}");
    }
}

#[test]
fn records_of_avro_are_explained_and_drafted() {
    let sample = run_on(&["check", "--sample"], "null.avro", AVRO);
    assert_eq!(sample.code, Some(0), "{}", sample.stdout);
    let first = "\
ok       line 1: served list b8a1abcd-1a69-16c7-4da4-f9fc3c6da5d7 at 2025-11-20T00:00:00Z
         experiments: ranker = NEURAL
         items: i30, i9, i5, i4
";
    assert!(sample.stdout.starts_with(first), "{}", sample.stdout);
    let refused = run_on(
        &["check", "--sample"],
        "null.avro",
        &AVRO.replace("context.time", "context.at"),
    );
    assert_eq!(refused.code, Some(65), "{}", refused.stdout);
    let there_is_none = "refused as missing_field: there is no `context.at`";
    assert!(refused.stdout.contains(there_is_none), "{}", refused.stdout);
    let drafted = run_on(&["check", "--suggest", "--sample"], "null.avro", "");
    assert!(
        drafted.stdout.contains("ts = \"context.time\""),
        "{}",
        drafted.stdout
    );
    assert!(drafted.stdout.contains("item_id = \"sku\""), "{}", drafted.stdout);
}

#[test]
fn a_file_that_is_cut_off_or_damaged_is_named() {
    let whole = std::fs::read(Path::new(FOLDER).join("snappy.avro")).expect("a file");
    let dir = temporary_dir();
    let check = |bytes: &[u8], expected: &str| {
        let path = dir.path().join("damaged.avro");
        std::fs::write(&path, bytes).expect("a file");
        let config = file(&dir, "events.toml", AVRO);
        let ran = run(&["evaluate", &path.to_string_lossy(), "--config", &config]);
        assert_eq!(ran.code, Some(65), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    check(
        &whole[..whole.len() - 20],
        "it ends early: its Avro is truncated, or still being written",
    );
    let mut flipped = whole.clone();
    let middle = whole.len() - 300;
    flipped[middle] ^= 1;
    check(&flipped, "damaged.avro");
    let other: Vec<u8> = String::from_utf8_lossy(&whole[..120])
        .replace("snappy", "lzipXX")
        .into_bytes();
    check(
        &other,
        "its codec is not supported (lzipXX): write it with the codec deflate, snappy, zstandard or null",
    );
}

#[test]
fn avro_is_read_from_standard_input_too() {
    let dir = temporary_dir();
    let config = file(&dir, "events.toml", AVRO);
    let from_file = run_on(&["evaluate"], "deflate.avro", AVRO);
    let bytes = std::fs::read(Path::new(FOLDER).join("deflate.avro")).expect("a file");
    let mut command = assert_cmd::Command::from_std(program(&["evaluate", "-", "--config", &config]));
    let from_input: Ran = command
        .write_stdin(bytes)
        .output()
        .expect("abgauge starts")
        .into();
    assert_eq!(
        (from_input.code, from_input.stdout),
        (from_file.code, from_file.stdout)
    );
}
