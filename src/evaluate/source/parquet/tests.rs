use std::cell::Cell;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What one leaf column holds, as Parquet stores it.
#[derive(Clone)]
struct Stored {
    values: Values,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

#[derive(Clone)]
enum Values {
    Text(Vec<ByteArray>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Fixed(Vec<FixedLenByteArray>),
}

fn texts<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Values {
    Values::Text(
        values
            .into_iter()
            .map(|text| ByteArray::from(text.as_ref().to_vec()))
            .collect(),
    )
}

impl Values {
    /// Of a column that is never null and never repeats.
    fn required(self) -> Stored {
        self.stored(&[], &[])
    }

    fn stored(self, definition: &[i16], repetition: &[i16]) -> Stored {
        Stored {
            values: self,
            definition: definition.to_vec(),
            repetition: repetition.to_vec(),
        }
    }
}

fn write_column(mut writer: SerializedColumnWriter, stored: &Stored) {
    fn typed<'a, T: DataType>(writer: &mut SerializedColumnWriter, values: &[T::T], stored: &'a Stored) {
        let levels = |levels: &'a [i16]| (!levels.is_empty()).then_some(levels);
        let (definition, repetition) = (levels(&stored.definition), levels(&stored.repetition));
        let writer = writer.typed::<T>();
        writer.write_batch(values, definition, repetition).unwrap();
    }
    match &stored.values {
        Values::Text(values) => typed::<ByteArrayType>(&mut writer, values, stored),
        Values::Int32(values) => typed::<Int32Type>(&mut writer, values, stored),
        Values::Int64(values) => typed::<Int64Type>(&mut writer, values, stored),
        Values::Int96(values) => typed::<Int96Type>(&mut writer, values, stored),
        Values::Double(values) => typed::<DoubleType>(&mut writer, values, stored),
        Values::Bool(values) => typed::<BoolType>(&mut writer, values, stored),
        Values::Fixed(values) => typed::<FixedLenByteArrayType>(&mut writer, values, stored),
    }
    writer.close().unwrap();
}

/// A file of these columns, with row groups that are all alike.
fn file(columns: &str, stored: &[Stored], n_row_groups: usize, properties: WriterProperties) -> File {
    let schema = parse_message_type(&format!("message events {{ {columns} }}")).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties)).unwrap();
    for _ in 0..n_row_groups {
        let mut row_group = writer.next_row_group().unwrap();
        let mut stored = stored.iter();
        while let Some(column) = row_group.next_column().unwrap() {
            write_column(column, stored.next().unwrap());
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

fn records(file: File) -> anyhow::Result<Vec<(u64, String)>> {
    let mut records = Vec::new();
    read(file, &|_| {}, &mut |number, record| {
        records.push((number, String::from_utf8_lossy(record).into_owned()));
    })?;
    Ok(records)
}

/// Columns that every file has, in a click.
const CLICK: &str = "required binary type (STRING); required binary request_id (STRING); required int64 ts;";

fn click() -> Vec<Stored> {
    vec![
        texts(["click"]).required(),
        texts(["r"]).required(),
        Values::Int64(vec![1]).required(),
    ]
}

/// What becomes of one more column in a row.
#[track_caller]
fn check(column: &str, stored: &[Stored], expected: &str) {
    let stored = [click(), stored.to_vec()].concat();
    let file = file(
        &format!("{CLICK} {column}"),
        &stored,
        1,
        WriterProperties::default(),
    );
    let expected = format!(r#"{{"type":"click","request_id":"r","ts":1{expected}}}"#);
    assert_eq!(records(file).unwrap(), [(1, expected)], "{column}");
}

/// One more column of this type is refused with these words.
#[track_caller]
fn check_refused(column: &str, stored: Values, told: &str) {
    let stored = [click(), vec![stored.required()]].concat();
    let file = file(
        &format!("{CLICK} {column}"),
        &stored,
        1,
        WriterProperties::default(),
    );
    assert_eq!(records(file).unwrap_err().to_string(), told);
}

#[track_caller]
fn check_time(column: &str, stored: Values, expected: &str) {
    let stored = [texts(["click"]), texts(["r"]), stored].map(Values::required);
    let columns = format!("required binary type (STRING); required binary request_id (STRING); {column}");
    let file = file(&columns, &stored, 1, WriterProperties::default());
    let expected = format!(r#"{{"type":"click","request_id":"r","ts":{expected}}}"#);
    assert_eq!(records(file).unwrap(), [(1, expected)], "{column}");
}

#[test]
fn ids_are_strings_or_integers() {
    for (column, stored, expected) in [
        ("binary item (STRING)", texts(["i"]), r#""i""#),
        ("binary item", texts(["i"]), r#""i""#),
        ("binary item (ENUM)", texts(["i"]), r#""i""#),
        ("binary item (STRING)", texts(["\"\\\n\u{e9}"]), r#""\"\\\né""#),
        ("int32 item", Values::Int32(vec![-5]), "-5"),
        ("int32 item (INTEGER(8,true))", Values::Int32(vec![5]), "5"),
        ("int32 item (UINT_32)", Values::Int32(vec![-1]), "4294967295"),
        (
            "int64 item",
            Values::Int64(vec![i64::MIN]),
            "-9223372036854775808",
        ),
        (
            "int64 item (INTEGER(64,false))",
            Values::Int64(vec![-1]),
            "18446744073709551615",
        ),
    ] {
        check(
            &format!("required {column};"),
            &[stored.required()],
            &format!(r#","item":{expected}"#),
        );
    }
}

#[test]
fn text_that_is_no_utf_8_makes_a_record_that_is_none() {
    let file = file(
        "required binary type; required binary request_id; required int64 ts;",
        &[
            texts([b"click"]).required(),
            texts([b"\xff\""]).required(),
            Values::Int64(vec![1]).required(),
        ],
        1,
        WriterProperties::default(),
    );
    let mut is_text = None;
    read(file, &|_| {}, &mut |_, record| {
        is_text = Some(std::str::from_utf8(record).is_ok())
    })
    .unwrap();
    assert_eq!(is_text, Some(false));
}

#[test]
fn times_of_any_unit_become_milliseconds() {
    for (column, stored, expected) in [
        (
            "int64 ts",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MILLIS)",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP_MICROS)",
            Values::Int64(vec![1_763_596_800_123_999]),
            "1763596800123",
        ),
        (
            "int64 ts (TIMESTAMP(MILLIS,false))",
            Values::Int64(vec![1_763_596_800_123]),
            "1763596800123",
        ),
        ("int64 ts (TIMESTAMP(MICROS,true))", Values::Int64(vec![-1]), "-1"),
        (
            "int64 ts (TIMESTAMP(NANOS,true))",
            Values::Int64(vec![1_763_596_800_123_999_999]),
            "1763596800123",
        ),
        (
            "binary ts (STRING)",
            texts(["2025-11-20T00:00:00Z"]),
            r#""2025-11-20T00:00:00Z""#,
        ),
    ] {
        check_time(&format!("required {column};"), stored, expected);
    }
    // Nanoseconds of the day in 64 bits, then the Julian day: 2025-11-20, one second after midnight.
    let mut second = Int96::new();
    second.set_data(1_000_000_000, 0, 2_461_000);
    check_time("required int96 ts;", Values::Int96(vec![second]), "1763596801000");
}

#[test]
fn lists_are_null_or_empty_or_hold_strings_integers_or_nulls() {
    let column = "optional group items (LIST) { repeated group list { optional binary element (STRING); } }";
    for (values, definition, repetition, expected) in [
        (&[][..], &[0][..], &[0][..], ""),
        (&[], &[1], &[0], r#","items":[]"#),
        (&[], &[2], &[0], r#","items":[null]"#),
        (&["a"], &[3], &[0], r#","items":["a"]"#),
        (&["a", "b"], &[3, 2, 3], &[0, 1, 1], r#","items":["a",null,"b"]"#),
    ] {
        check(column, &[texts(values).stored(definition, repetition)], expected);
    }
    let integers = "required group items (LIST) { repeated group list { required int64 element; } }";
    check(
        integers,
        &[Values::Int64(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![5, 6]).stored(&[1, 1], &[0, 1])],
        r#","items":[5,6]"#,
    );
    check(
        "repeated int32 items;",
        &[Values::Int32(vec![]).stored(&[0], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn experiments_may_be_a_map() {
    for column in [
        "optional group experiments (MAP) { repeated group key_value {
            required binary key (STRING); optional binary value (STRING); } }",
        "optional group experiments (LIST) { repeated group list { required group element {
            required binary key (STRING); optional binary value (STRING); } } }",
    ] {
        let stored = |keys: &[&str], values: &[&str], key: &[i16], value: &[i16], repetition: &[i16]| {
            [
                texts(keys).stored(key, repetition),
                texts(values).stored(value, repetition),
            ]
        };
        check(column, &stored(&[], &[], &[0], &[0], &[0]), "");
        check(
            column,
            &stored(&[], &[], &[1], &[1], &[0]),
            r#","experiments":{}"#,
        );
        check(
            column,
            &stored(&["e", "f", "g"], &["a", "b"], &[2, 2, 2], &[3, 2, 3], &[0, 1, 1]),
            r#","experiments":{"e":"a","g":"b"}"#,
        );
    }
}

#[test]
fn experiments_may_be_a_struct() {
    let column = "optional group experiments { optional binary e (STRING); optional binary f\"g (STRING); }";
    let stored = |values: [&[&str]; 2], definition: [i16; 2]| {
        [0, 1].map(|field| texts(values[field]).stored(&[definition[field]], &[]))
    };
    check(column, &stored([&[], &[]], [0, 0]), r#","experiments":{}"#);
    check(
        column,
        &stored([&[], &["b"]], [1, 2]),
        r#","experiments":{"f\"g":"b"}"#,
    );
    check(
        column,
        &stored([&["a"], &["b"]], [2, 2]),
        r#","experiments":{"e":"a","f\"g":"b"}"#,
    );
}

#[test]
fn experiments_may_be_json_and_what_is_none_is_a_string() {
    let column = "required binary experiments (JSON);";
    check(
        column,
        &[texts([r#"{"e": "a"}"#]).required()],
        r#","experiments":{"e": "a"}"#,
    );
    check(
        column,
        &[texts([r#"{},"ts":2"#]).required()],
        r#","experiments":"{},\"ts\":2""#,
    );
    check(column, &[texts([""]).required()], r#","experiments":"""#);
}

#[test]
fn nulls_and_columns_of_nulls_are_absent() {
    check(
        "optional binary user_id (STRING);",
        &[texts([""; 0]).stored(&[0], &[])],
        "",
    );
    for name in ["user_id", "experiments", "items", "item"] {
        let nulls = Values::Int32(vec![]).stored(&[0], &[]);
        check(&format!("optional int32 {name} (UNKNOWN);"), &[nulls], "");
    }
    let empty = "optional group items (LIST) { repeated group list { optional int32 element (UNKNOWN); } }";
    check(
        empty,
        &[Values::Int32(vec![]).stored(&[1], &[0])],
        r#","items":[]"#,
    );
}

#[test]
fn other_columns_are_not_looked_at() {
    let column = "required double score; required group deep { required binary item (STRING); }";
    check(
        column,
        &[Values::Double(vec![0.5]).required(), texts(["i"]).required()],
        "",
    );
}

#[test]
fn a_column_of_another_type_is_named_with_what_to_write() {
    let ids = "strings or integers";
    for (column, stored, written, may_hold) in [
        ("item", Values::Double(vec![1.0]), "REQUIRED DOUBLE item", ids),
        ("item", Values::Bool(vec![true]), "REQUIRED BOOLEAN item", ids),
        (
            "item",
            Values::Int64(vec![1]),
            "REQUIRED INT64 item (TIMESTAMP(MILLIS,true))",
            ids,
        ),
        (
            "user_id",
            Values::Int32(vec![1]),
            "REQUIRED INT32 user_id (DATE)",
            ids,
        ),
        (
            "user_id",
            Values::Int64(vec![1]),
            "REQUIRED INT64 user_id (DECIMAL(9,2))",
            ids,
        ),
        (
            "items",
            texts(["[]"]),
            "REQUIRED BYTE_ARRAY items (STRING)",
            "lists of strings or integers",
        ),
        (
            "items",
            Values::Int32(vec![1]),
            "REQUIRED group items { REQUIRED INT32 first; }",
            "lists of strings or integers",
        ),
        (
            "experiments",
            Values::Int32(vec![1]),
            "REQUIRED group experiments { REQUIRED INT32 e; }",
            "maps of strings to strings, structs of strings, or strings of JSON",
        ),
    ] {
        let schema = written.replace("BYTE_ARRAY", "BINARY");
        let schema = if schema.ends_with('}') {
            schema
        } else {
            schema + ";"
        };
        check_refused(
            &schema,
            stored,
            &format!("column {column} is `{written}`: write {may_hold}"),
        );
    }
    let uuid = Values::Fixed(vec![FixedLenByteArray::from(vec![0; 16])]);
    let stored = [texts(["click"]), uuid, Values::Int64(vec![1])].map(Values::required);
    let columns =
        "required binary type; required fixed_len_byte_array(16) request_id (UUID); required int64 ts;";
    let error = records(file(columns, &stored, 1, WriterProperties::default())).unwrap_err();
    let told = "column request_id is `REQUIRED FIXED_LEN_BYTE_ARRAY (16) request_id (UUID)`: write strings or integers";
    assert_eq!(error.to_string(), told);
}

#[test]
fn a_column_that_every_file_has_must_be_there() {
    let columns = "required binary type; required binary request_id;";
    let stored = [texts(["click"]), texts(["r"])].map(Values::required);
    let error = records(file(columns, &stored, 1, WriterProperties::default())).unwrap_err();
    let times = "timestamps, 64-bit integers of epoch milliseconds, or strings of RFC 3339";
    assert_eq!(error.to_string(), format!("it has no column ts: {times}"));
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let mut whole = Vec::new();
    let mut written = file(CLICK, &click(), 1, WriterProperties::default());
    written.seek(SeekFrom::Start(0)).unwrap();
    written.read_to_end(&mut whole).unwrap();
    for end in 4..whole.len() {
        let cut = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut &cut, &whole[..end]).unwrap();
        let error = records(cut).unwrap_err().to_string();
        assert!(error.contains("ends early"), "{end}: {error}");
    }
}

#[test]
fn rows_are_counted_through_row_groups_and_all_bytes_are_told() {
    let file = file(CLICK, &click(), 3, WriterProperties::default());
    let n_bytes = file.metadata().unwrap().len();
    let n_told = Cell::new(0);
    let mut numbers = Vec::new();
    read(file, &|n| n_told.set(n_told.get() + n), &mut |number, _| {
        numbers.push(number)
    })
    .unwrap();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(n_told.get(), n_bytes);
}

#[test]
fn a_file_without_rows_has_no_records() {
    assert_eq!(
        records(file(CLICK, &click(), 0, WriterProperties::default())).unwrap(),
        []
    );
}

/// Row after row: an optional id, an optional list, an optional map.
type Row = (
    Option<String>,
    Option<Vec<Option<i64>>>,
    Option<Vec<(String, String)>>,
);

fn row() -> impl Strategy<Value = Row> {
    let text = || "[ab\"\u{e9}]{0,3}";
    (
        proptest::option::of(text()),
        proptest::option::of(proptest::collection::vec(
            proptest::option::of(any::<i64>()),
            0..8,
        )),
        proptest::option::of(proptest::collection::btree_map(text(), text(), 0..4).prop_map(Vec::from_iter)),
    )
}

/// The record of a row as it would stand in a file of lines.
fn record((user, items, experiments): &Row) -> Value {
    let mut record = json!({"type": "click", "request_id": "r", "ts": 1});
    if let Some(user) = user {
        record["user_id"] = json!(user);
    }
    if let Some(items) = items {
        record["items"] = json!(items);
    }
    if let Some(experiments) = experiments {
        record["experiments"] = experiments.iter().cloned().map(|(e, a)| (e, json!(a))).collect();
    }
    record
}

/// Levels of a list of which each element has a level of its own.
fn list_levels<T>(lists: &[Option<&[T]>], level: impl Fn(&T) -> i16) -> (Vec<i16>, Vec<i16>) {
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    for list in lists {
        match list {
            None => definition.push(0),
            Some([]) => definition.push(1),
            Some(list) => definition.extend(list.iter().map(&level)),
        }
        repetition.resize(repetition.len() + 1, 0);
        repetition.resize(definition.len(), 1);
    }
    (definition, repetition)
}

fn stored(rows: &[Row]) -> Vec<Stored> {
    let users: Vec<i16> = rows.iter().map(|(user, ..)| i16::from(user.is_some())).collect();
    let items: Vec<Option<&[Option<i64>]>> = rows.iter().map(|(_, items, _)| items.as_deref()).collect();
    let maps: Vec<Option<&[(String, String)]>> = rows.iter().map(|(.., map)| map.as_deref()).collect();
    let (item_definition, item_repetition) = list_levels(&items, |item| 2 + i16::from(item.is_some()));
    let (map_definition, map_repetition) = list_levels(&maps, |_| 2);
    let entries = || maps.iter().flatten().copied().flatten();
    vec![
        texts(rows.iter().map(|_| "click")).required(),
        texts(rows.iter().map(|_| "r")).required(),
        Values::Int64(vec![1; rows.len()]).required(),
        texts(rows.iter().filter_map(|(user, ..)| user.as_ref())).stored(&users, &[]),
        Values::Int64(
            items
                .iter()
                .flatten()
                .copied()
                .flatten()
                .copied()
                .flatten()
                .collect(),
        )
        .stored(&item_definition, &item_repetition),
        texts(entries().map(|(key, _)| key)).stored(&map_definition, &map_repetition),
        texts(entries().map(|(_, value)| value)).stored(&map_definition, &map_repetition),
    ]
}

fn properties() -> impl Strategy<Value = WriterProperties> {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let properties = (
        proptest::sample::select(codecs.to_vec()),
        proptest::sample::select(versions.to_vec()),
        any::<bool>(),
        1_usize..200,
    );
    properties.prop_map(|(codec, version, has_dictionary, page)| {
        WriterProperties::builder()
            .set_compression(codec)
            .set_writer_version(version)
            .set_dictionary_enabled(has_dictionary)
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(page)
            .build()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_are_the_records_that_were_written_however_they_are_stored(
        rows in proptest::collection::vec(row(), 1..1200),
        properties in properties(),
    ) {
        let columns = format!(
            "{CLICK} optional binary user_id (STRING);
            optional group items (LIST) {{ repeated group list {{ optional int64 element; }} }}
            optional group experiments (MAP) {{ repeated group key_value {{
                required binary key (STRING); required binary value (STRING); }} }}"
        );
        let found = records(file(&columns, &stored(&rows), 2, properties)).unwrap();
        let expected = rows.iter().chain(&rows).map(record);
        for (found, expected) in found.iter().zip((1..).zip(expected)) {
            prop_assert_eq!(found.0, expected.0);
            prop_assert_eq!(serde_json::from_str::<Value>(&found.1).unwrap(), expected.1);
        }
        prop_assert_eq!(found.len(), 2 * rows.len());
    }
}
