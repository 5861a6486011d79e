//! `--output`: the numbers in a file, in the format that its ending names.

use crate::support::program::{Ran, file, run, temporary_dir};
use crate::{EVENTS, two_arms};

fn evaluated(arguments: &[&str]) -> Ran {
    let ran = run(&[&["evaluate"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran
}

#[test]
fn the_ending_names_the_format_and_a_file_is_replaced() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", EVENTS);
    for format in ["csv", "json"] {
        let path = file(&dir, &format!("numbers.{format}"), "old");
        let ran = evaluated(&[&events, "--by-day", "--output", &path, "--format", format]);
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), ran.stdout);
    }
    let names = std::fs::read_dir(dir.path()).expect("a directory").count();
    assert_eq!(names, 3, "nothing else is left");
}

#[test]
fn other_endings_and_absent_directories_are_refused_before_anything_is_read() {
    for (path, reported) in [
        (
            "numbers.xlsx",
            "the ending names the format: write .parquet, .csv or .json",
        ),
        ("numbers", "the ending names the format"),
        (
            "no/such/numbers.csv",
            "there is no directory no/such: create it first",
        ),
    ] {
        let ran = run(&["evaluate", "no/such/events", "--output", path]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(reported) && ran.stderr.contains("--output"),
            "{}",
            ran.stderr
        );
    }
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", &two_arms());
    let path = dir.path().join("folder.csv");
    std::fs::create_dir(&path).expect("a directory");
    let ran = run(&["evaluate", &events, "--output", path.to_str().expect("UTF-8")]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("write --output "), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("a directory").count(),
        2,
        "nothing else is left"
    );
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_a_feature() {
    let ran = run(&["evaluate", "-", "--output", "numbers.parquet"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("this build cannot write Parquet"),
        "{}",
        ran.stderr
    );
}

#[cfg(feature = "parquet")]
mod parquet {
    use std::fs::File;

    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;

    /// Returns the rows as CSV has them.
    fn rows(path: &str) -> Vec<Vec<String>> {
        let reader = SerializedFileReader::new(File::open(path).expect("a file")).expect("Parquet");
        let cell = |(name, field): (&String, &Field)| match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            Field::TimestampMillis(ms) => jiff::Timestamp::from_millisecond(*ms)
                .expect("a time")
                .to_string(),
            Field::Int(k) => k.to_string(),
            Field::Long(n) => n.to_string(),
            Field::Double(number) => number.to_string(),
            other => panic!("{name}: {other:?}"),
        };
        let rows = reader.get_row_iter(None).expect("rows");
        rows.map(|row| row.expect("a row").get_column_iter().map(cell).collect())
            .collect()
    }

    #[test]
    fn parquet_has_the_rows_and_columns_of_csv() {
        let dir = temporary_dir();
        let events = file(&dir, "events.jsonl", EVENTS);
        let path = dir.path().join("numbers.parquet");
        let path = path.to_str().expect("UTF-8");
        for arguments in [
            &["--k", "2"][..],
            &["--by-day", "--by", "user_id", "--convention", "default,ranx"],
            &["--compare", "control", "--by-day"],
        ] {
            let ran = evaluated(&[&[&events, "--format", "csv", "--output", path], arguments].concat());
            let mut csv = csv::Reader::from_reader(ran.stdout.as_bytes());
            let names: Vec<String> = csv
                .headers()
                .expect("a header")
                .iter()
                .map(str::to_owned)
                .collect();
            let reader = SerializedFileReader::new(File::open(path).expect("a file")).expect("Parquet");
            let schema = reader.metadata().file_metadata().schema().get_fields();
            assert_eq!(schema.iter().map(|field| field.name()).collect::<Vec<_>>(), names);
            let expected: Vec<Vec<String>> = csv
                .records()
                .map(|row| row.expect("a row").iter().map(str::to_owned).collect())
                .collect();
            assert!(expected.len() > 10);
            assert_eq!(rows(path), expected, "{arguments:?}");
        }
    }
}
