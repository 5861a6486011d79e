mod cells;
mod random;
mod refused;
mod types;

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
use crate::decode::schema::RawRecord;

/// Content of one leaf column, as Parquet stores it.
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
    /// Makes a column that is never null and never repeats.
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

/// Writes a file of these columns, with identical row groups.
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

/// Every column of a file, whatever its name.
const EVERY_COLUMN: EventFields = EventFields {
    shape: None,
    kind: None,
    further: &[],
    every_column: true,
};

fn records(file: File) -> anyhow::Result<Vec<(u64, String)>> {
    records_of(file, &EventFields::default())
}

fn records_of(file: File, fields: &EventFields) -> anyhow::Result<Vec<(u64, String)>> {
    let mut records = Vec::new();
    let mut take = |number, record: RawRecord| {
        records.push((number, String::from_utf8_lossy(record.bytes).into_owned()));
    };
    read(file, fields, &|_| Ok(()), &mut take)?;
    Ok(records)
}

/// Columns of a click that every file has.
const CLICK: &str = "required binary type (STRING); required binary request_id (STRING); required int64 ts;";

fn click() -> Vec<Stored> {
    vec![
        texts(["click"]).required(),
        texts(["r"]).required(),
        Values::Int64(vec![1]).required(),
    ]
}

/// Checks how one more column of a row is written.
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

/// Checks that one more column of this type is refused with this message.
#[track_caller]
fn check_refused(column: &str, stored: Values, reported: &str) {
    let stored = [click(), vec![stored.required()]].concat();
    let file = file(
        &format!("{CLICK} {column}"),
        &stored,
        1,
        WriterProperties::default(),
    );
    assert_eq!(records(file).unwrap_err().to_string(), reported);
}

#[track_caller]
fn check_time(column: &str, stored: Values, expected: &str) {
    let stored = [texts(["click"]), texts(["r"]), stored].map(Values::required);
    let columns = format!("required binary type (STRING); required binary request_id (STRING); {column}");
    let file = file(&columns, &stored, 1, WriterProperties::default());
    let expected = format!(r#"{{"type":"click","request_id":"r","ts":{expected}}}"#);
    assert_eq!(records(file).unwrap(), [(1, expected)], "{column}");
}

/// Reads the cells of these columns from a table of users, items and scores.
fn cells(columns: &[&str]) -> anyhow::Result<Vec<Cells>> {
    let schema = "optional binary user (STRING); required int32 item; required double score; required boolean seen; required int32 day (DATE);";
    let stored = [
        texts(["u \"1\""]).stored(&[1, 0], &[]),
        Values::Int32(vec![5, -6]).required(),
        Values::Double(vec![0.5, 2.0]).required(),
        Values::Bool(vec![true, false]).required(),
        Values::Int32(vec![1, 2]).required(),
    ];
    let file = file(schema, &stored, 2, WriterProperties::default());
    let mut rows = Vec::new();
    read_table(file, columns, None, &|_| Ok(()), &mut |number, cells| {
        rows.push(cells);
        assert_eq!(number, rows.len() as u64);
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn a_table_returns_the_requested_columns_as_text() {
    let cell = |text: &str| Some(text.to_owned());
    let rows = [
        vec![cell("0.5"), cell("u \"1\""), cell("5"), cell("true")],
        vec![cell("2"), None, cell("-6"), cell("false")],
    ];
    let expected = [rows.clone(), rows].concat();
    assert_eq!(cells(&["score", "user", "item", "seen"]).unwrap(), expected);
    for (column, reported) in [
        (
            "users",
            "it has no column users: its columns are user, item, score, seen, day",
        ),
        (
            "day",
            "column day is `REQUIRED INT32 day (DATE)`: write strings, numbers or booleans",
        ),
    ] {
        assert_eq!(cells(&[column]).unwrap_err().to_string(), reported);
    }
}
