//! What the columns of a Parquet file are to a record, and which cannot be.

use anyhow::bail;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, Int96};
use parquet::schema::printer::print_schema;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use serde_json::value::RawValue;

use super::super::table::NoColumn;
use super::leaf::{Leaf, Render};

/// A field of the record, with the leaf columns that hold it.
pub(super) struct RecordField {
    pub name: &'static str,
    pub shape: FieldShape,
}

pub(super) enum FieldShape {
    Scalar(Leaf),
    List(Leaf),
    Map {
        key: Leaf,
        value: Leaf,
    },
    /// Each with the name of its field as JSON.
    Struct(Vec<(Vec<u8>, Leaf)>),
}

impl RecordField {
    pub(super) fn leaves(&mut self) -> Vec<&mut Leaf> {
        match &mut self.shape {
            FieldShape::Scalar(leaf) | FieldShape::List(leaf) => vec![leaf],
            FieldShape::Map { key, value } => vec![key, value],
            FieldShape::Struct(fields) => fields.iter_mut().map(|(_, leaf)| leaf).collect(),
        }
    }
}

/// The columns that are read: name, whether every file has it, reader, and what it may hold.
type KnownColumn = (
    &'static str,
    bool,
    fn(&[LeafColumn]) -> Option<FieldShape>,
    &'static str,
);
const COLUMNS: [KnownColumn; 7] = [
    (
        "type",
        true,
        |found| scalar(found, text),
        r#"strings, "served" or "click""#,
    ),
    (
        "request_id",
        true,
        |found| scalar(found, id),
        "strings or integers",
    ),
    ("user_id", false, |found| scalar(found, id), "strings or integers"),
    (
        "ts",
        true,
        |found| scalar(found, time),
        "timestamps, 64-bit integers of epoch milliseconds, or strings of RFC 3339",
    ),
    (
        "experiments",
        false,
        experiments,
        "maps of strings to strings, structs of strings, or strings of JSON",
    ),
    ("items", false, items, "lists of strings or integers"),
    ("item", false, |found| scalar(found, id), "strings or integers"),
];

/// A leaf column below a column of the file, with its place among all leaf columns.
struct LeafColumn<'a> {
    index: usize,
    column: &'a ColumnDescriptor,
}

/// The fields that a file has; its other columns are never read.
///
/// # Errors
/// Where a column is absent that every file has, or cannot be what it is to be.
pub(super) fn fields(schema: &SchemaDescriptor) -> anyhow::Result<Vec<RecordField>> {
    let mut fields = Vec::new();
    for (name, is_required, shape, may_hold) in COLUMNS {
        let Some(column) = schema
            .root_schema()
            .get_fields()
            .iter()
            .find(|field| field.name() == name)
        else {
            if is_required {
                bail!("it has no column {name}: {may_hold}");
            }
            continue;
        };
        if is_only_nulls(column) {
            continue;
        }
        let found: Vec<LeafColumn> = (0..schema.num_columns())
            .filter(|index| schema.get_column_root(*index).name() == name)
            .map(|index| LeafColumn {
                index,
                column: &schema.columns()[index],
            })
            .collect();
        match shape(&found) {
            Some(shape) => fields.push(RecordField { name, shape }),
            None => bail!("column {name} is `{}`: write {may_hold}", described(column)),
        }
    }
    Ok(fields)
}

/// Columns of a table, of texts or numbers, by their names.
///
/// # Errors
/// Where one is absent, or holds something else.
pub(super) fn columns(schema: &SchemaDescriptor, names: &[&str]) -> anyhow::Result<Vec<RecordField>> {
    let all = schema.root_schema().get_fields();
    let field = |name: &&str| {
        let Some(column) = all.iter().find(|field| field.name() == *name) else {
            let known: Vec<&str> = all.iter().map(|field| field.name()).collect();
            return Err(NoColumn::new(name, &known).into());
        };
        let leaves = (0..schema.num_columns()).filter(|index| schema.get_column_root(*index).name() == *name);
        let found: Vec<LeafColumn> = leaves
            .map(|index| LeafColumn {
                index,
                column: &schema.columns()[index],
            })
            .collect();
        match scalar(&found, |column| {
            id(column).or_else(|| float(column)).or_else(|| nulls(column))
        }) {
            Some(shape) => Ok(RecordField { name: "", shape }),
            None => bail!(
                "column {name} is `{}`: write strings or numbers",
                described(column)
            ),
        }
    };
    names.iter().map(field).collect()
}

/// A column that its writer saw no value of has no type either.
fn is_only_nulls(column: &Type) -> bool {
    column.is_primitive() && column.get_basic_info().logical_type_ref() == Some(&LogicalType::Unknown)
}

/// The type in the notation of Parquet, on one line.
fn described(column: &Type) -> String {
    let mut text = Vec::new();
    print_schema(&mut text, column);
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

type Reading = fn(&ColumnDescriptor) -> Option<Render>;

fn leaf(found: &LeafColumn, reading: Reading) -> Option<Leaf> {
    Some(Leaf::new(found.index, found.column, reading(found.column)?))
}

fn is_plain(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 0 && found.column.path().parts().len() == 1
}

fn is_in_one_list(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 1
}

fn scalar(found: &[LeafColumn], reading: Reading) -> Option<FieldShape> {
    match found {
        [it] if is_plain(it) => Some(FieldShape::Scalar(leaf(it, reading)?)),
        _ => None,
    }
}

fn items(found: &[LeafColumn]) -> Option<FieldShape> {
    match found {
        [it] if is_in_one_list(it) => {
            Some(FieldShape::List(leaf(it, |column| id(column).or(nulls(column)))?))
        }
        _ => None,
    }
}

fn experiments(found: &[LeafColumn]) -> Option<FieldShape> {
    let text_or_null: Reading = |column| text(column).or(nulls(column));
    match found {
        [it] if is_plain(it) => scalar(found, json),
        [key, value] if is_in_one_list(key) && is_in_one_list(value) => Some(FieldShape::Map {
            key: leaf(key, text)?,
            value: leaf(value, text_or_null)?,
        }),
        _ => {
            let field = |it: &LeafColumn| {
                let is_direct = it.column.max_rep_level() == 0 && it.column.path().parts().len() == 2;
                let name = serde_json::to_vec(it.column.name()).ok()?;
                is_direct.then_some((name, leaf(it, text_or_null)?))
            };
            found
                .iter()
                .map(field)
                .collect::<Option<_>>()
                .map(FieldShape::Struct)
        }
    }
}

/// Strings, also those that an old writer does not say to be such.
fn text(column: &ColumnDescriptor) -> Option<Render> {
    is_text(column).then_some(Render::Bytes(write_text))
}

/// Strings that hold JSON themselves.
fn json(column: &ColumnDescriptor) -> Option<Render> {
    is_text(column).then_some(Render::Bytes(write_json))
}

fn is_text(column: &ColumnDescriptor) -> bool {
    use ConvertedType as Old;
    use LogicalType::{Enum, Json, String};
    column.physical_type() == Physical::BYTE_ARRAY
        && match column.logical_type_ref() {
            Some(logical) => matches!(logical, String | Enum | Json),
            None => matches!(
                column.converted_type(),
                Old::NONE | Old::UTF8 | Old::ENUM | Old::JSON
            ),
        }
}

/// Strings or integers.
fn id(column: &ColumnDescriptor) -> Option<Render> {
    text(column).or_else(|| integer(column))
}

fn integer(column: &ColumnDescriptor) -> Option<Render> {
    use ConvertedType as Old;
    let is_signed = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(integer)), _) => integer.is_signed,
        (None, Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64) => true,
        (None, Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64) => false,
        _ => return None,
    };
    match (column.physical_type(), is_signed) {
        (Physical::INT32, true) => Some(Render::Int32(|value, out| write_integer(*value, out))),
        (Physical::INT32, false) => Some(Render::Int32(|value, out| write_integer(*value as u32, out))),
        (Physical::INT64, true) => Some(Render::Int64(|value, out| write_integer(*value, out))),
        (Physical::INT64, false) => Some(Render::Int64(|value, out| write_integer(*value as u64, out))),
        _ => None,
    }
}

fn float(column: &ColumnDescriptor) -> Option<Render> {
    match column.physical_type() {
        Physical::FLOAT => Some(Render::Float(|value, out| write_float(*value, out))),
        Physical::DOUBLE => Some(Render::Double(|value, out| write_float(*value, out))),
        _ => None,
    }
}

/// Times: as they are, or in epoch milliseconds; what is finer is cut off. A timestamp without a zone is taken for UTC.
fn time(column: &ColumnDescriptor) -> Option<Render> {
    let unit = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => timestamp.unit,
        (None, ConvertedType::TIMESTAMP_MILLIS) => TimeUnit::MILLIS,
        (None, ConvertedType::TIMESTAMP_MICROS) => TimeUnit::MICROS,
        _ if column.physical_type() == Physical::INT96 => {
            return Some(Render::Int96(|value: &Int96, out| {
                write_integer(value.to_millis(), out)
            }));
        }
        _ => return id(column),
    };
    Some(Render::Int64(match unit {
        TimeUnit::MILLIS => |value, out| write_integer(*value, out),
        TimeUnit::MICROS => |value, out| write_integer(value.div_euclid(1_000), out),
        TimeUnit::NANOS => |value, out| write_integer(value.div_euclid(1_000_000), out),
    }))
}

/// Elements of which the writer saw none but nulls: they are never written.
fn nulls(column: &ColumnDescriptor) -> Option<Render> {
    let is_unknown = column.logical_type_ref() == Some(&LogicalType::Unknown);
    (is_unknown && column.physical_type() == Physical::INT32)
        .then_some(Render::Int32(|value, out| write_integer(*value, out)))
}

fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that is this number again; one that is none, as Rust has it.
fn write_float(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// What is not UTF-8 stays so: the decoder refuses the record for it.
fn write_text(value: &ByteArray, out: &mut Vec<u8>) {
    let bytes = value.data();
    // Nearly all text needs no escape: this saves a fifth of the time that a row takes.
    if bytes
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'))
    {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::to_writer(out, text).expect("memory takes any text"),
        Err(_) => out.extend_from_slice(bytes),
    }
}

/// What is no JSON becomes a string, which is refused as experiments.
fn write_json(value: &ByteArray, out: &mut Vec<u8>) {
    match serde_json::from_slice::<&RawValue>(value.data()) {
        Ok(json) => out.extend_from_slice(json.get().as_bytes()),
        Err(_) => write_text(value, out),
    }
}
