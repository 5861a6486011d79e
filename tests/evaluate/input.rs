//! Inputs of `abgauge evaluate`: the same events yield the same numbers in any format or compression.

use std::io::Write as _;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

const EVENTS: &str = include_str!("../data/lists-a.events.jsonl");

fn evaluate(path: &str, input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
    command.args(["evaluate", path, "--format", "json"]);
    assert_cmd::Command::from_std(command)
        .write_stdin(input)
        .output()
        .expect("abgauge starts")
}

/// Evaluates the input, which must succeed. Returns the result and the notes.
#[track_caller]
fn evaluated(path: &str, input: &[u8]) -> (String, String) {
    let output = evaluate(path, input);
    let [result, notes] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    assert_eq!(output.status.code(), Some(0), "{notes}");
    (result, notes)
}

/// Evaluates the input, which must fail with this exit code and message, and without a result.
#[track_caller]
fn refused(path: &str, input: &[u8], code: i32, reported: &str) {
    let Output {
        status,
        stdout,
        stderr,
    } = evaluate(path, input);
    assert_eq!((status.code(), &*stdout), (Some(code), &b""[..]));
    assert_eq!(String::from_utf8_lossy(&stderr), format!("error: {reported}\n"));
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
fn compression_does_not_change_the_numbers() {
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
        // The path refers to standard input and not to a file.
        assert_eq!(evaluated("/dev/stdin", &content), expected);
    }
}

#[test]
fn half_a_file_gives_no_numbers() {
    let dir = temporary_dir();
    for (packing, packed) in [("gzip", gzip(EVENTS)), ("zstd", zstd(EVENTS))] {
        let half = &packed[..packed.len() / 2];
        let path = file(&dir, half);
        let reported = format!("it ends early: its {packing} is truncated");
        refused(&path, b"", 65, &format!("read {path}: {reported}"));
        refused("-", half, 65, &format!("read standard input: {reported}"));
    }
}

#[test]
fn a_directory_or_a_pattern_means_its_files_and_no_argument_the_pipe() {
    let dir = temporary_dir();
    let (first, second) = EVENTS.split_at(EVENTS.find('\n').expect("a line") + 1);
    for (day, events) in [("day=1", first), ("day=2", second)] {
        std::fs::create_dir(dir.path().join(day)).expect("a directory");
        std::fs::write(dir.path().join(day).join("events.jsonl"), events).expect("a file");
    }
    std::fs::write(dir.path().join("_SUCCESS"), "").expect("a file");
    let expected = evaluated("-", EVENTS.as_bytes());
    let path = dir.path().to_str().expect("UTF-8");
    assert_eq!(evaluated(path, b""), expected);
    assert_eq!(evaluated(&format!("{path}/day=*"), b""), expected);
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    let empty = empty.to_str().expect("UTF-8");
    refused(empty, b"", 1, &format!("open {empty}: there is no file to read"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
    command.args(["evaluate", "--format", "json"]);
    let pipe = assert_cmd::Command::from_std(command)
        .write_stdin(EVENTS)
        .output()
        .expect("abgauge starts");
    assert_eq!(String::from_utf8_lossy(&pipe.stdout), expected.0);
}

#[test]
fn a_json_array_has_the_records_of_its_elements() {
    let lines: Vec<&str> = EVENTS.lines().collect();
    let array = format!("[\n  {}\n]\n", lines.join(",\n  "));
    let expected = evaluated("-", EVENTS.as_bytes());
    for content in [array.clone().into_bytes(), gzip(&array)] {
        assert_eq!(evaluated("-", &content), expected);
    }
    let half = &array.as_bytes()[..array.len() / 2];
    let reported =
        "read standard input: read its JSON array: EOF while parsing a string at line 1271 column 62";
    refused("-", half, 65, reported);
}

#[test]
fn an_oversized_line_is_one_unreadable_line() {
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

    use ::parquet::data_type::{
        ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
    };
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

    /// Writes the events as a table, in row groups of a hundred.
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
    fn a_parquet_table_gives_the_numbers_of_its_events() {
        let dir = temporary_dir();
        let expected = evaluated("-", EVENTS.as_bytes());
        let path = file(&dir, b"");
        write_events(&path);
        assert_eq!(evaluated(&path, b""), expected);
    }

    /// A file with these columns for a served list and a click on it.
    struct Pair {
        request_id: Column,
        ts: Column,
        items: &'static str,
    }

    /// Type and both values of a column.
    enum Column {
        Text(&'static str, [&'static str; 2]),
        Integer(&'static str, [i64; 2]),
        Double([f64; 2]),
        Uuid([u8; 16]),
    }

    impl Column {
        fn declared(&self, name: &str) -> String {
            match self {
                Column::Text(of, _) => format!("required binary {name} {of};"),
                Column::Integer(of, _) => format!("required int64 {name} {of};"),
                Column::Double(_) => format!("required double {name};"),
                Column::Uuid(_) => format!("required fixed_len_byte_array(16) {name} (UUID);"),
            }
        }

        fn write(&self, row_group: &mut SerializedRowGroupWriter<File>) {
            fn all<T: DataType>(row_group: &mut SerializedRowGroupWriter<File>, values: &[T::T]) {
                let mut column = row_group.next_column().expect("write").expect("one more");
                column
                    .typed::<T>()
                    .write_batch(values, None, None)
                    .expect("write");
                column.close().expect("write");
            }
            match self {
                Column::Text(_, texts) => all::<ByteArrayType>(row_group, &texts.map(ByteArray::from)),
                Column::Integer(_, integers) => all::<Int64Type>(row_group, integers),
                Column::Double(doubles) => all::<DoubleType>(row_group, doubles),
                Column::Uuid(uuid) => {
                    let uuids = [uuid, uuid].map(|uuid| FixedLenByteArray::from(uuid.to_vec()));
                    all::<FixedLenByteArrayType>(row_group, &uuids);
                }
            }
        }
    }

    impl Default for Pair {
        fn default() -> Pair {
            Pair {
                request_id: Column::Text("(STRING)", ["r", "r"]),
                ts: Column::Integer("", [1_763_596_800_123, 1_763_596_805_123]),
                items: r#"["a","b"]"#,
            }
        }
    }

    impl Pair {
        fn write(&self, path: &str) {
            let columns = [
                ("type", &Column::Text("(STRING)", ["served", "click"])),
                ("request_id", &self.request_id),
                ("ts", &self.ts),
                (
                    "experiments",
                    &Column::Text("(JSON)", [r#"{"ranker":"neural"}"#, "null"]),
                ),
                ("items", &Column::Text("(STRING)", [self.items, ""])),
                ("item", &Column::Text("(STRING)", ["", "b"])),
            ];
            let schema = columns.map(|(name, column)| column.declared(name)).concat();
            let schema = parse_message_type(&format!("message events {{ {schema} }}")).expect("a schema");
            let file = File::create(path).expect("a file");
            let mut writer =
                SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).expect("write");
            let mut row_group = writer.next_row_group().expect("write");
            for (_, column) in columns {
                column.write(&mut row_group);
            }
            row_group.close().expect("write");
            writer.close().expect("write");
        }
    }

    /// Returns the program's output with these settings, with its notes appended.
    fn printed(arguments: &[&str], settings: &[(&str, &str)]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
        command.args(arguments).envs(settings.iter().copied());
        let output = command.output().expect("abgauge starts");
        let [result, notes] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        result + &notes
    }

    const MATCHED: &str = r#"{"ranker":{"arms":{"neural":{"lists":1,"clicks":1,"#;

    #[test]
    fn parquet_from_many_writers_is_read() {
        let dir = temporary_dir();
        let path = file(&dir, b"");
        for pair in [
            Pair::default(),
            Pair {
                request_id: Column::Uuid(*b"0123456789abcdef"),
                ..Pair::default()
            },
            Pair {
                request_id: Column::Integer("(DECIMAL(18,2))", [700, 700]),
                ..Pair::default()
            },
            Pair {
                ts: Column::Double([1_763_596_800_123.0, 1_763_596_805_123.0]),
                ..Pair::default()
            },
            Pair {
                ts: Column::Text("(STRING)", ["1763596800123", "2025-11-20T00:00:05Z"]),
                ..Pair::default()
            },
        ] {
            pair.write(&path);
            let (result, _) = evaluated(&path, b"");
            assert!(result.contains(MATCHED), "{result}");
        }
    }

    /// Each row is refused with a reason and a remedy. If the remedy names a setting, that setting makes the row readable.
    #[test]
    fn a_refused_row_is_explained_with_a_working_fix() {
        let dir = temporary_dir();
        let path = file(&dir, b"");
        let seconds = [1_763_596_800, 1_763_596_805];
        let unit = |unit: &'static str| Some(("ABGAUGE_EVENTS__TS_UNIT", unit));
        for (pair, reported, remedy, setting) in [
            (
                Pair {
                    ts: Column::Integer("", seconds.map(|s| s * 1_000_000_000)),
                    ..Pair::default()
                },
                "ts_micros: `ts` is 1763596800000000000",
                "if they are numbers, set events.ts_unit = \"us\" or \"ns\"",
                unit("ns"),
            ),
            (
                Pair {
                    ts: Column::Integer("", seconds.map(|s| s * 1_000_000)),
                    ..Pair::default()
                },
                "ts_micros: `ts` is 1763596800000000",
                "if they are numbers, set events.ts_unit = \"us\" or \"ns\"",
                unit("us"),
            ),
            (
                Pair {
                    ts: Column::Integer("", seconds),
                    ..Pair::default()
                },
                "ts_seconds: `ts` is 1763596800",
                "if they are numbers, set events.ts_unit = \"s\"",
                unit("s"),
            ),
            (
                Pair {
                    ts: Column::Double([1_763_596_800_123.5; 2]),
                    ..Pair::default()
                },
                "number: `ts` is 1763596800123.5",
                "write whole milliseconds, or timestamps; or set events.ts_unit, which cuts fractions off",
                unit("ms"),
            ),
            (
                Pair {
                    ts: Column::Text("(STRING)", ["2025-11-20 00:00:00", "2025-11-20 00:00:05"]),
                    ..Pair::default()
                },
                "ts_range: `ts` is \"2025-11-20 00:00:00\"",
                "if text has no zone, events.ts_zone",
                Some(("ABGAUGE_EVENTS__TS_ZONE", "UTC")),
            ),
            (
                Pair {
                    items: "['a', 'b']",
                    ..Pair::default()
                },
                "wrong_type: `items` is \"['a', 'b']\"",
                r#"write a list of strings or integers, or one as JSON text such as ["i5","i9"]"#,
                None,
            ),
            (
                Pair {
                    request_id: Column::Integer("(DECIMAL(18,2))", [750, 750]),
                    ..Pair::default()
                },
                "number: `request_id` is 7.5",
                "send an integer of at most 20 digits, or text",
                None,
            ),
        ] {
            pair.write(&path);
            let checked = printed(&["check", "--sample", &path], &[]);
            for part in [reported, remedy] {
                assert!(checked.contains(part), "{part}: {checked}");
            }
            // Paths do not apply to a file of columns.
            for foreign in ["--suggest", "events.served", "events.click"] {
                assert!(!checked.contains(foreign), "{foreign}: {checked}");
            }
            if let Some(setting) = setting {
                let shown = printed(&["evaluate", &path, "--format", "json"], &[setting]);
                assert!(shown.contains(MATCHED), "{setting:?}: {shown}");
            }
        }
    }

    #[test]
    fn columns_are_our_own_fields_unless_events_have_another_shape() {
        let dir = temporary_dir();
        let path = file(&dir, b"");
        write_events(&path);
        let expected = evaluated(&path, b"").0;
        // Timestamps have a unit of their own.
        let setting = ("ABGAUGE_EVENTS__TS_UNIT", "s");
        let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
        command
            .args(["evaluate", &path, "--format", "json"])
            .envs([setting]);
        let output = command.output().expect("abgauge starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        for command in [&["evaluate"][..], &["check", "--sample"]] {
            let printed = printed(
                &[command, &[&path]].concat(),
                &[("ABGAUGE_EVENTS__PRESET", "metarank")],
            );
            assert!(
                printed.contains("it has no column id, which links clicks to lists"),
                "{printed}"
            );
        }
    }

    /// The fuzzing seeds were written by pyarrow 26, with various compressions, encodings, page versions and column types.
    #[test]
    fn parquet_with_any_compression_is_read() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/parquet");
        let mut n_tables = 0;
        for seed in std::fs::read_dir(seeds).expect("the seeds can be listed") {
            let path = seed.expect("it can be read").path();
            let (result, notes) = evaluated(path.to_str().expect("UTF-8"), b"");
            // One list has no experiment, and nothing else is reported.
            let reported = notes.lines().filter(|line| !line.contains("name no experiment"));
            assert_eq!(reported.count(), 0, "{}: {notes}", path.display());
            let counts = r#"{"ranker":{"arms":{"neural":{"lists":1,"clicks":1,"#;
            assert!(result.contains(counts), "{}: {result}", path.display());
            n_tables += 1;
        }
        assert!(n_tables >= 8, "{n_tables}");
    }

    #[test]
    fn a_parquet_table_cannot_be_piped() {
        let reported =
            "it is Parquet, which can be read only from a file: save it to a file, and pass the file's name";
        refused("-", b"PAR1PAR1", 65, &format!("read standard input: {reported}"));
        refused(
            "/dev/stdin",
            b"PAR1PAR1",
            65,
            &format!("read /dev/stdin: {reported}"),
        );
    }
}
