//! Parquet files of seven writers, as `tests/data/parquet/make` has made them: 40 lists and 20 clicks, in the types that each
//! writer chooses.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::program::run;

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet");

/// Result of `evaluate --format json` for one file, or its exit code and messages.
fn evaluated(name: &str, config: Option<&str>) -> Result<Value, (Option<i32>, String)> {
    let path = format!("{FILES}/{name}.parquet");
    let mut arguments = vec![
        "evaluate",
        &path,
        "--metrics",
        "hit_rate",
        "--k",
        "3",
        "--format",
        "json",
    ];
    arguments.extend(config.into_iter().flat_map(|path| ["--config", path]));
    let ran = run(&arguments);
    match ran.code {
        Some(0) => Ok(serde_json::from_str(&ran.stdout).expect("JSON")),
        code => Err((code, ran.stderr)),
    }
}

#[track_caller]
fn check(name: &str, config: Option<&str>) {
    let document = evaluated(name, config).expect(name);
    let arm = json!({"lists": 20, "clicks": 10, "metrics": {"hit_rate@3": 0.5, "hit_rate": 0.5}});
    for arm_name in ["control", "b"] {
        assert_eq!(
            document["experiments"]["home"]["arms"][arm_name], arm,
            "{name}, {arm_name}"
        );
    }
}

#[test]
fn files_of_each_writer_have_the_same_values() {
    for name in [
        "clickhouse",
        "duckdb",
        "fastparquet",
        "hyparquet",
        "parquet-go",
        "polars",
    ] {
        check(name, None);
    }
}

/// parquet-avro drops the logical type `timestamp-nanos` from the schema of the file.
#[test]
fn nanoseconds_without_a_unit_are_refused_with_a_fix() {
    let (code, _) = evaluated("parquet-avro", None).expect_err("no unit");
    assert_eq!(code, Some(65));
    let sample = run(&["check", "--sample", &format!("{FILES}/parquet-avro.parquet")]);
    assert!(
        sample.stdout.contains("set events.ts_unit = \"us\" or \"ns\""),
        "{}",
        sample.stdout
    );
    let directory = TempDir::new().expect("a directory");
    let config = directory.path().join("abgauge.toml");
    fs::write(&config, "[events]\nts_unit = \"ns\"\n").expect("write the configuration");
    check("parquet-avro", config.to_str());
}
