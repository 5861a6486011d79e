//! What `abgauge evaluate` reads: the same events give the same numbers, whatever they are packed in.

use std::io::Write as _;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

const EVENTS: &str = include_str!("data/lists-a.events.jsonl");

fn evaluate(path: &str, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
    command.args(["evaluate", path, "--format", "json"]);
    assert_cmd::Command::from_std(command)
        .write_stdin(input)
        .output()
        .expect("abgauge starts")
}

/// Its result and its notes; it must succeed.
#[track_caller]
fn evaluated(path: &str, input: &[u8]) -> (String, String) {
    let output = evaluate(path, input);
    let [result, notes] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    assert_eq!(output.status.code(), Some(0), "{notes}");
    (result, notes)
}

/// It must fail without a result, and say this.
#[track_caller]
fn refused(path: &str, input: &[u8], told: &str) {
    let Output {
        status,
        stdout,
        stderr,
    } = evaluate(path, input);
    assert_eq!((status.code(), &*stdout), (Some(1), &b""[..]));
    assert_eq!(String::from_utf8_lossy(&stderr), format!("error: {told}\n"));
}

fn file(dir: &TempDir, content: &[u8]) -> String {
    let path = dir.path().join("events");
    std::fs::write(&path, content).expect("write a file");
    path.to_str().expect("UTF-8").to_owned()
}

fn temporary_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory under target")
}

fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).expect("pack");
    encoder.finish().expect("pack")
}

fn zstd(content: &str) -> Vec<u8> {
    zstd::encode_all(content.as_bytes(), 3).expect("pack")
}

#[test]
fn the_numbers_are_the_same_whatever_the_events_are_packed_in() {
    let dir = temporary_dir();
    let expected = evaluated(&file(&dir, EVENTS.as_bytes()), b"");
    assert!(expected.0.contains("hit_rate"), "{expected:?}");
    let windows = format!("\u{feff}{}", EVENTS.replace('\n', "\r\n"));
    let (first, second) = EVENTS.split_at(EVENTS.len() / 2);
    for content in [
        windows.into_bytes(),
        gzip(EVENTS),
        [gzip(first), gzip(second)].concat(),
        zstd(EVENTS),
        [zstd(first), zstd(second)].concat(),
    ] {
        assert_eq!(evaluated(&file(&dir, &content), b""), expected);
        assert_eq!(evaluated("-", &content), expected);
        // By its name, yet no file.
        assert_eq!(evaluated("/dev/stdin", &content), expected);
    }
}

#[test]
fn half_a_file_gives_no_numbers() {
    let dir = temporary_dir();
    for (packing, packed) in [("gzip", gzip(EVENTS)), ("zstd", zstd(EVENTS))] {
        let half = &packed[..packed.len() / 2];
        let path = file(&dir, half);
        let told = format!("it ends early: its {packing} is cut off");
        refused(&path, b"", &format!("read {path}: {told}"));
        refused("-", half, &format!("read standard input: {told}"));
    }
}

#[test]
fn a_directory_is_no_file() {
    let dir = temporary_dir();
    let path = dir.path().to_str().expect("UTF-8");
    refused(
        path,
        b"",
        &format!("open {path}: it is a directory: name the files in it"),
    );
}

#[test]
fn a_line_without_end_is_one_unreadable_line() {
    let long = format!("{EVENTS}{{\"x\":\"{}\"}}\n", "x".repeat(70 << 20));
    let (result, notes) = evaluated("-", long.as_bytes());
    let numbers = |result: &str| result.split(",\"records\":").next().map(str::to_owned);
    assert_eq!(numbers(&result), numbers(&evaluated("-", EVENTS.as_bytes()).0));
    assert!(notes.contains("not_json: 1 (standard input:"), "{notes}");
}

#[cfg(feature = "parquet")]
mod parquet {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::parser::parse_message_type;
    use serde_json::Value;

    use super::*;

    const SCHEMA: &str = "message events {
        required binary type (STRING);
        required binary request_id (STRING);
        required int64 ts (TIMESTAMP(MICROS,true));
        optional binary experiments (JSON);
        optional group items (LIST) { repeated group list { required binary element (STRING); } }
        optional binary item (STRING);
    }";

    fn write_texts(
        row_group: &mut SerializedRowGroupWriter<File>,
        texts: &[Option<String>],
        is_required: bool,
    ) {
        let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
        let texts: Vec<ByteArray> = texts
            .iter()
            .flatten()
            .map(|text| ByteArray::from(text.as_str()))
            .collect();
        let mut column = row_group.next_column().expect("write").expect("one more");
        let levels = (!is_required).then_some(&*levels);
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&texts, levels, None).expect("write");
        column.close().expect("write");
    }

    /// The events as a table, in row groups of a hundred.
    fn write_events(path: &str) {
        let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
        let file = File::create(path).expect("a file");
        let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("write");
        let events: Vec<Value> = EVENTS
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        for events in events.chunks(100) {
            let mut row_group = writer.next_row_group().expect("write");
            let texts = |name: &str| -> Vec<Option<String>> {
                let text = |event: &Value| event[name].as_str().map(str::to_owned);
                events.iter().map(text).collect()
            };
            write_texts(&mut row_group, &texts("type"), true);
            write_texts(&mut row_group, &texts("request_id"), true);
            let mut column = row_group.next_column().expect("write").expect("one more");
            let micros = |event: &Value| event["ts"].as_i64().expect("a time") * 1000;
            let times: Vec<i64> = events.iter().map(micros).collect();
            column
                .typed::<Int64Type>()
                .write_batch(&times, None, None)
                .expect("write");
            column.close().expect("write");
            let json = |event: &Value| event.get("experiments").map(Value::to_string);
            write_texts(
                &mut row_group,
                &events.iter().map(json).collect::<Vec<_>>(),
                false,
            );
            write_lists(&mut row_group, events);
            write_texts(&mut row_group, &texts("item"), false);
            row_group.close().expect("write");
        }
        writer.close().expect("write");
    }

    fn write_lists(row_group: &mut SerializedRowGroupWriter<File>, events: &[Value]) {
        let (mut items, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
        for event in events {
            let list = event["items"].as_array();
            repetition.push(0);
            match list.map_or(0, Vec::len) {
                0 => definition.push(i16::from(list.is_some())),
                n => {
                    definition.resize(definition.len() + n, 2);
                    repetition.resize(definition.len(), 1);
                }
            }
            let names = list.into_iter().flatten().filter_map(Value::as_str);
            items.extend(names.map(ByteArray::from));
        }
        let mut column = row_group.next_column().expect("write").expect("one more");
        let typed = column.typed::<ByteArrayType>();
        typed
            .write_batch(&items, Some(&definition), Some(&repetition))
            .expect("write");
        column.close().expect("write");
    }

    #[test]
    fn a_table_of_the_events_gives_their_numbers() {
        let dir = temporary_dir();
        let expected = evaluated("-", EVENTS.as_bytes());
        let path = file(&dir, b"");
        write_events(&path);
        assert_eq!(evaluated(&path, b""), expected);
    }

    #[test]
    fn a_table_has_our_columns_whatever_shape_other_events_have() {
        let dir = temporary_dir();
        let path = file(&dir, b"");
        write_events(&path);
        let expected = evaluated(&path, b"").0;
        let output = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
            command.args(arguments).env("ABGAUGE_EVENTS__PRESET", "metarank");
            String::from_utf8(command.output().expect("abgauge starts").stdout).expect("UTF-8")
        };
        assert_eq!(output(&["evaluate", &path, "--format", "json"]), expected);
        let checked = output(&["check", "--sample", &path]);
        assert!(checked.contains("ignored: 0, refused: 0"), "{checked}");
    }

    /// The seeds of fuzzing were written by pyarrow 26: packings, encodings, both versions of pages, types of columns.
    #[test]
    fn tables_of_another_writer_are_read_whatever_they_are_packed_in() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/parquet");
        let mut n_tables = 0;
        for seed in std::fs::read_dir(seeds).expect("the seeds can be listed") {
            let path = seed.expect("it can be read").path();
            let (result, notes) = evaluated(path.to_str().expect("UTF-8"), b"");
            // That there is no catalogue, and that one list is of no experiment.
            let told = notes.lines().filter(|line| !line.contains("name no experiment"));
            assert_eq!(told.count(), 1, "{}: {notes}", path.display());
            let counts = r#"{"ranker":{"arms":{"neural":{"lists":1,"clicks":1,"#;
            assert!(result.contains(counts), "{}: {result}", path.display());
            n_tables += 1;
        }
        assert!(n_tables >= 8, "{n_tables}");
    }

    #[test]
    fn a_table_cannot_be_piped() {
        let told = "it is Parquet, which can be read from a file only: write it to one and name that";
        refused("-", b"PAR1PAR1", &format!("read standard input: {told}"));
        refused("/dev/stdin", b"PAR1PAR1", &format!("read /dev/stdin: {told}"));
    }
}
