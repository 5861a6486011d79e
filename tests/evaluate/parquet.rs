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

/// `--suggest` reads columns of any type, but `evaluate` reads ids only from columns of their types.
#[test]
fn a_column_that_evaluate_refuses_is_refused_by_suggest() {
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("lists.parquet");
    let schema = "message m { REQUIRED BYTE_ARRAY type (UTF8); REQUIRED DOUBLE request_id; REQUIRED INT64 ts; \
                  REQUIRED BYTE_ARRAY experiments (UTF8); REQUIRED BYTE_ARRAY items (UTF8); REQUIRED BYTE_ARRAY item (UTF8); }";
    let schema = parse_message_type(schema).expect("a schema").into();
    let file = fs::File::create(&path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).expect("a writer");
    let mut rows = writer.next_row_group().expect("rows");
    let is_list = |n: i32| n % 2 == 0;
    let text = |of_list: &str, of_click: &str| -> Vec<ByteArray> {
        (0..40)
            .map(|n| ByteArray::from(if is_list(n) { of_list } else { of_click }))
            .collect()
    };
    let texts = [
        text("served", "click"),
        text(r#"{"e":"a"}"#, "{}"),
        text(r#"["i","j"]"#, "[]"),
        text("", "j"),
    ];
    let mut texts = texts.iter();
    while let Some(mut column) = rows.next_column().expect("a column") {
        match column.untyped() {
            parquet::column::writer::ColumnWriter::DoubleColumnWriter(_) => {
                let ids: Vec<f64> = (0..40).map(|n| f64::from(n / 2)).collect();
                column
                    .typed::<DoubleType>()
                    .write_batch(&ids, None, None)
                    .expect("ids");
            }
            parquet::column::writer::ColumnWriter::Int64ColumnWriter(_) => {
                column
                    .typed::<Int64Type>()
                    .write_batch(&[1_763_596_800_000; 40], None, None)
                    .expect("times");
            }
            _ => {
                let text = texts.next().expect("as many as columns of text");
                column
                    .typed::<ByteArrayType>()
                    .write_batch(text, None, None)
                    .expect("text");
            }
        }
        column.close().expect("a column");
    }
    rows.close().expect("rows");
    writer.close().expect("a file");
    let path = path.to_str().expect("UTF-8");
    for arguments in [
        &["evaluate", path][..],
        &["check", "--sample", path],
        &["check", "--sample", path, "--suggest"],
    ] {
        let ran = run(arguments);
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(65), ""),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr
                .contains("column request_id is `REQUIRED DOUBLE request_id`"),
            "{arguments:?}: {}",
            ran.stderr
        );
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
