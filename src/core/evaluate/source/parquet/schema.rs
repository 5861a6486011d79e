//! Mapping from the columns of a Parquet file to the fields of a record.

use anyhow::bail;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::data_type::{FixedLenByteArray, Int96};
use parquet::schema::printer::print_schema;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use serde_json::value::RawValue;

use super::super::columns::{EventFields, Layout, placed, placed_at};
use super::super::rows::write_cell;
use super::super::table::NoColumn;
use super::decimal::{moved_point, unscaled};
use super::leaf::{Forms, Leaf, Render};
use super::nested::{self, Nested};
use crate::decode::Cell;
use crate::decode::shape::{Path, Shape, TsUnit, Zone};
use crate::engine::event::Kind;

/// Field of the record, with the leaf columns that hold it.
pub(super) enum FieldShape {
    Scalar(Leaf),
    List(Leaf),
    Map {
        key: Leaf,
        value: Leaf,
    },
    /// Leaf columns, each with the name of its field as JSON.
    Struct(Vec<(Vec<u8>, Leaf)>),
    /// Column of any type.
    Nested(Nested),
}

impl FieldShape {
    /// Starts the next row.
    #[inline]
    pub(super) fn begin_row(&mut self) {
        match self {
            FieldShape::Scalar(leaf) | FieldShape::List(leaf) => leaf.begin_row(),
            several => several.each_leaf(&mut Leaf::begin_row),
        }
    }

    pub(super) fn each_leaf(&mut self, act: &mut dyn FnMut(&mut Leaf)) {
        match self {
            FieldShape::Scalar(leaf) | FieldShape::List(leaf) => act(leaf),
            FieldShape::Map { key, value } => {
                act(key);
                act(value);
            }
            FieldShape::Struct(fields) => fields.iter_mut().for_each(|(_, leaf)| act(leaf)),
            FieldShape::Nested(value) => value.each_leaf(act),
        }
    }
}

/// Unit and zone assumed for times, the same as in the record decoder.
#[derive(Clone, Copy, Default)]
pub(super) struct AssumedTimes {
    /// Unit of numbers; `None` for milliseconds.
    unit: Option<TsUnit>,
    /// Zone of times without one; `None` for UTC.
    zone: Option<Zone>,
}

impl AssumedTimes {
    pub(super) fn of(shape: Option<&Shape>) -> AssumedTimes {
        shape.map_or(AssumedTimes::default(), |shape| AssumedTimes {
            unit: shape.ts_unit,
            zone: shape.ts_zone,
        })
    }
}

/// Column that is read: its name, whether every file has it, its reader, and the types that it may have.
type KnownColumn = (
    &'static str,
    bool,
    fn(&[LeafColumn], AssumedTimes) -> Option<FieldShape>,
    &'static str,
);
/// Types that an id may have.
const IDS: &str = "strings, integers, UUIDs or DECIMALs of up to 38 digits";
const COLUMNS: [KnownColumn; 7] = [
    (
        "type",
        true,
        |found, _| scalar(found, text),
        r#"strings, "served" or "click""#,
    ),
    ("request_id", true, |found, _| scalar(found, id), IDS),
    ("user_id", false, |found, _| scalar(found, id), IDS),
    (
        "ts",
        true,
        |found, times| scalar(found, |column| time(column, times)),
        "timestamps, 64-bit integers or doubles of epoch milliseconds, or strings of RFC 3339",
    ),
    (
        "experiments",
        false,
        |found, _| experiments(found),
        "maps of strings to strings, structs of strings, or strings of JSON",
    ),
    (
        "items",
        false,
        |found, _| items(found),
        "lists of strings, integers, UUIDs or DECIMALs of up to 38 digits, or strings of JSON arrays",
    ),
    ("item", false, |found, _| scalar(found, id), IDS),
];

/// Bound on the digits of a decimal: that many fit into 128 bits.
const MAX_PRECISION: i32 = 38;
const UUID_BYTES: i32 = 16;

/// Leaf column below a column of the file, with its index among all leaf columns.
struct LeafColumn<'a> {
    index: usize,
    column: &'a ColumnDescriptor,
}

/// Fields of a record, the names that lead to each, and their arrangement.
pub(super) type Fields = (Vec<FieldShape>, (Vec<Vec<String>>, Layout));

/// Returns the fields that a file has. Its other columns are never read.
///
/// # Errors
/// A required column is absent, or a column has a type that it must not have.
pub(super) fn fields(schema: &SchemaDescriptor, fields: &EventFields) -> anyhow::Result<Fields> {
    let times = AssumedTimes::of(fields.shape);
    let names: Vec<&str> = schema
        .root_schema()
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    let has_own_fields = !fields.every_column && fields.shape.is_none_or(Shape::has_own_fields);
    let (mut places, mut shapes) = (Vec::new(), Vec::new());
    let placed = match has_own_fields {
        false => placed(&names, fields)?,
        true => {
            let own = own_fields(schema, times, fields.kind)?;
            for (name, shape) in own {
                places.push(vec![name.to_owned()]);
                shapes.push(shape);
            }
            let further: Vec<&Path> = fields.further.iter().collect();
            let mut further = placed_at(&names, &EventFields::default(), &further);
            further.retain(|column| !places.contains(&column.names));
            further
        }
    };
    for column in placed {
        let root = &schema.root_schema().get_fields()[column.index];
        if is_only_nulls(root) {
            continue;
        }
        let value = nested::column(schema, column.index, &column.within, times)?;
        shapes.push(FieldShape::Nested(value));
        places.push(column.names);
    }
    let layout = Layout::of(places.iter().map(Vec::as_slice))?;
    Ok((shapes, (places, layout)))
}

/// Returns our own fields, by name.
fn own_fields(
    schema: &SchemaDescriptor,
    times: AssumedTimes,
    kind: Option<Kind>,
) -> anyhow::Result<Vec<(&'static str, FieldShape)>> {
    let mut fields = Vec::new();
    for (name, is_required, shape, may_hold) in COLUMNS {
        let Some(column) = column(schema, name)? else {
            if is_required && !(name == "type" && kind.is_some()) {
                bail!("it has no column {name}: {may_hold}");
            }
            continue;
        };
        // Without a value the writer could not determine a type, so the column counts as absent.
        if is_only_nulls(column) {
            continue;
        }
        let found = leaves(schema, name);
        match shape(&found, times) {
            Some(shape) => fields.push((name, shape)),
            None => bail!("column {name} is `{}`: write {may_hold}", described(column)),
        }
    }
    Ok(fields)
}

/// Returns the columns of a table with these names. They contain text, numbers or booleans.
///
/// # Errors
/// A column is absent, or contains something else.
pub(super) fn columns(schema: &SchemaDescriptor, names: &[&str]) -> anyhow::Result<Vec<FieldShape>> {
    let field = |name: &&str| {
        let Some(column) = column(schema, name)? else {
            let all = schema.root_schema().get_fields();
            let known: Vec<&str> = all.iter().map(|field| field.name()).collect();
            return Err(NoColumn::new(name, &known).into());
        };
        match scalar(&leaves(schema, name), |column| {
            id(column)
                .or_else(|| float(column))
                .or_else(|| boolean(column))
                .or_else(|| nulls(column))
        }) {
            Some(shape) => Ok(shape),
            None => bail!(
                "column {name} is `{}`: write strings, numbers or booleans",
                described(column)
            ),
        }
    };
    names.iter().map(field).collect()
}

/// Returns the columns without these names that contain text, numbers or booleans, with their names.
pub(super) fn other_columns(schema: &SchemaDescriptor, names: &[&str]) -> (Vec<String>, Vec<FieldShape>) {
    let all = schema.root_schema().get_fields().iter();
    let others = all.map(|field| field.name()).filter(|name| !names.contains(name));
    // Columns that were not requested by name are left out if they have another type.
    let readable = others.filter_map(|name| {
        let fields = columns(schema, &[name]).ok()?;
        Some((name.to_owned(), fields))
    });
    let (names, fields): (Vec<String>, Vec<Vec<FieldShape>>) = readable.unzip();
    (names, fields.into_iter().flatten().collect())
}

/// Returns the file's column with this name.
fn column<'a>(schema: &'a SchemaDescriptor, name: &str) -> anyhow::Result<Option<&'a Type>> {
    let mut found = schema
        .root_schema()
        .get_fields()
        .iter()
        .filter(|field| field.name() == name);
    let column = found.next();
    if found.next().is_some() {
        bail!("it has several columns {name}: give each its own name");
    }
    Ok(column.map(|column| &**column))
}

/// Returns the leaf columns below the file's column with this name.
fn leaves<'a>(schema: &'a SchemaDescriptor, name: &str) -> Vec<LeafColumn<'a>> {
    (0..schema.num_columns())
        .filter(|index| schema.get_column_root(*index).name() == name)
        .map(|index| LeafColumn {
            index,
            column: &schema.columns()[index],
        })
        .collect()
}

/// Returns whether the writer saw no value of the column. Then it has no type either.
fn is_only_nulls(column: &Type) -> bool {
    column.is_primitive() && column.get_basic_info().logical_type_ref() == Some(&LogicalType::Unknown)
}

/// Describes a type in the notation of Parquet, on one line.
pub(super) fn described(column: &Type) -> String {
    let mut text = Vec::new();
    print_schema(&mut text, column);
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

fn leaf(found: &LeafColumn, reading: impl Fn(&ColumnDescriptor) -> Option<Render>) -> Option<Leaf> {
    Some(Leaf::new(found.index, found.column, reading(found.column)?))
}

fn is_plain(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 0 && found.column.path().parts().len() == 1
}

fn is_in_one_list(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 1
}

fn scalar(found: &[LeafColumn], reading: impl Fn(&ColumnDescriptor) -> Option<Render>) -> Option<FieldShape> {
    match found {
        [it] if is_plain(it) => Some(FieldShape::Scalar(leaf(it, reading)?)),
        _ => None,
    }
}

fn items(found: &[LeafColumn]) -> Option<FieldShape> {
    match found {
        [it] if is_plain(it) => scalar(found, json),
        [it] if is_in_one_list(it) => {
            Some(FieldShape::List(leaf(it, |column| id(column).or(nulls(column)))?))
        }
        _ => None,
    }
}

fn experiments(found: &[LeafColumn]) -> Option<FieldShape> {
    let text_or_null = |column: &ColumnDescriptor| text(column).or(nulls(column));
    match found {
        [it] if is_plain(it) => scalar(found, json),
        // A map has two leaves that repeat together.
        [key, value] if is_in_one_list(key) && is_in_one_list(value) => Some(FieldShape::Map {
            key: leaf(key, text)?,
            value: leaf(value, text_or_null)?,
        }),
        _ => {
            let field = |it: &LeafColumn| {
                // Fields of a struct are exactly one level below it.
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

/// Renders strings, even if an old writer did not mark them as such. A column of JSON has them in quotes.
fn text(column: &ColumnDescriptor) -> Option<Render> {
    match is_json(column) {
        true => json(column),
        false => is_text(column)
            .then(|| Render::Bytes(Forms::json(write_text).or_cell(|text: &[u8]| Cell::Text(text)))),
    }
}

/// Renders strings of JSON, or of text that is not JSON.
fn json(column: &ColumnDescriptor) -> Option<Render> {
    is_text(column).then(|| Render::Bytes(Forms::json(write_json)))
}

fn is_json(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(logical) => *logical == LogicalType::Json,
        None => column.converted_type() == ConvertedType::JSON,
    }
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

/// Renders strings, integers, UUIDs or decimals.
fn id(column: &ColumnDescriptor) -> Option<Render> {
    text(column)
        .or_else(|| integer(column))
        .or_else(|| uuid(column))
        .or_else(|| decimal(column))
}

fn uuid(column: &ColumnDescriptor) -> Option<Render> {
    let is_uuid = column.logical_type_ref() == Some(&LogicalType::Uuid) && column.type_length() == UUID_BYTES;
    is_uuid.then(|| {
        Render::Fixed(Forms::json(|value: &FixedLenByteArray, out| {
            write_uuid(value.data(), out)
        }))
    })
}

/// Renders decimals of up to 38 digits as numbers.
fn decimal(column: &ColumnDescriptor) -> Option<Render> {
    // The logical type takes precedence. Older writers set only the converted one.
    let scale = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Decimal(decimal)), _) => decimal.scale,
        (None, ConvertedType::DECIMAL) => column.type_scale(),
        _ => return None,
    };
    if column.type_precision() > MAX_PRECISION || scale > MAX_PRECISION {
        return None;
    }
    let scale = usize::try_from(scale).ok()?;
    let of_bytes = move |bytes: &[u8], out: &mut Vec<u8>| match unscaled(bytes) {
        Some(value) => write_decimal(value, scale, out),
        // The value has more digits than its precision allows. The decoder refuses a record with NaN.
        None => out.extend_from_slice(b"NaN"),
    };
    Some(match column.physical_type() {
        Physical::INT32 => Render::Int32(Forms::json(move |value, out| write_decimal(*value, scale, out))),
        Physical::INT64 => Render::Int64(Forms::json(move |value, out| write_decimal(*value, scale, out))),
        Physical::BYTE_ARRAY => Render::Bytes(Forms::json(of_bytes)),
        Physical::FIXED_LEN_BYTE_ARRAY => {
            Render::Fixed(Forms::json(move |value: &FixedLenByteArray, out| {
                of_bytes(value.data(), out);
            }))
        }
        _ => return None,
    })
}

fn integer(column: &ColumnDescriptor) -> Option<Render> {
    use ConvertedType as Old;
    let is_signed = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(integer)), _) => integer.is_signed,
        (None, Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64) => true,
        (None, Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64) => false,
        _ => return None,
    };
    Some(match (column.physical_type(), is_signed) {
        (Physical::INT32, true) => Render::Int32(
            Forms::json(|value, out| write_integer(*value, out))
                .or_cell(|value: &i32| Cell::Integer((*value).into())),
        ),
        (Physical::INT32, false) => Render::Int32(
            Forms::json(|value: &i32, out| write_integer(value.cast_unsigned(), out))
                .or_cell(|value: &i32| Cell::Integer(value.cast_unsigned().into())),
        ),
        (Physical::INT64, true) => Render::Int64(
            Forms::json(|value, out| write_integer(*value, out)).or_cell(|value: &i64| Cell::Integer(*value)),
        ),
        (Physical::INT64, false) => Render::Int64(
            Forms::json(|value: &i64, out| write_integer(value.cast_unsigned(), out)).or_cell(
                |value: &i64| match *value {
                    // More than 63 bits.
                    ..0 => Cell::Other,
                    value => Cell::Integer(value),
                },
            ),
        ),
        _ => return None,
    })
}

fn float(column: &ColumnDescriptor) -> Option<Render> {
    match column.physical_type() {
        Physical::FLOAT => Some(Render::Float(Forms::json(|value, out| write_float(*value, out)))),
        Physical::DOUBLE => Some(Render::Double(Forms::json(|value, out| write_float(*value, out)))),
        _ => None,
    }
}

fn boolean(column: &ColumnDescriptor) -> Option<Render> {
    let is_boolean = column.physical_type() == Physical::BOOLEAN;
    is_boolean.then(|| {
        Render::Bool(Forms::json(|value: &bool, out| {
            out.extend_from_slice(value.to_string().as_bytes());
        }))
    })
}

/// Renders times: text and numbers unchanged, and timestamps as numbers in the decoder's unit. Parts of a millisecond are
/// cut off. A timestamp without a zone is in the zone of text without one, or else in UTC.
fn time(column: &ColumnDescriptor, times: AssumedTimes) -> Option<Render> {
    let (unit, is_utc) = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => (timestamp.unit, timestamp.is_adjusted_to_u_t_c),
        (None, ConvertedType::TIMESTAMP_MILLIS) => (TimeUnit::MILLIS, true),
        (None, ConvertedType::TIMESTAMP_MICROS) => (TimeUnit::MICROS, true),
        // Older writers, such as Impala, store timestamps as INT96, without a logical type.
        _ if column.physical_type() == Physical::INT96 => {
            let write = move |value: &Int96, out: &mut Vec<u8>| write_ms(value.to_millis(), times.unit, out);
            let forms = Forms::json(write).or_cell(|value: &Int96| Cell::Time(value.to_millis()));
            return Some(Render::Int96(forms));
        }
        _ => return text(column).or_else(|| number(column)),
    };
    let divisor = match unit {
        TimeUnit::MILLIS => 1,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1_000_000,
    };
    let ahead_ms = times.zone.filter(|_| !is_utc).map_or(0, Zone::ahead_ms);
    // Rounding down treats times before 1970 like later ones.
    let ms = move |value: &i64| value.div_euclid(divisor).saturating_sub(ahead_ms);
    let forms = Forms::json(move |value, out| write_ms(ms(value), times.unit, out))
        .or_cell(move |value: &i64| Cell::Time(ms(value)));
    Some(Render::Int64(forms))
}

/// Renders any value: text that is a JSON object or array as such, timestamps as numbers in the decoder's unit, dates as text,
/// and bytes without a type as text.
pub(super) fn value(column: &ColumnDescriptor, times: AssumedTimes) -> Option<Render> {
    let text_or_json = || {
        is_text(column).then(|| {
            Render::Bytes(Forms::json(write_text_or_json).or_cell(|text: &[u8]| match text {
                [b'{' | b'[', ..] => Cell::Other,
                text => Cell::Text(text),
            }))
        })
    };
    match is_json(column) {
        true => json(column),
        false => text_or_json(),
    }
    .or_else(|| uuid(column))
    .or_else(|| date(column))
    .or_else(|| boolean(column))
    .or_else(|| time(column, times))
    .or_else(|| single(column))
    .or_else(|| nulls(column))
}

/// Renders the key of a map.
pub(super) fn map_key(column: &ColumnDescriptor, _: AssumedTimes) -> Option<Render> {
    match is_text(column) {
        true => Some(Render::Bytes(Forms::json(write_text))),
        false => id(column),
    }
}

fn date(column: &ColumnDescriptor) -> Option<Render> {
    let is_date = match column.logical_type_ref() {
        Some(logical) => *logical == LogicalType::Date,
        None => column.converted_type() == ConvertedType::DATE,
    };
    is_date.then(|| Render::Int32(Forms::json(|days, out| write_date(*days, out))))
}

fn single(column: &ColumnDescriptor) -> Option<Render> {
    (column.physical_type() == Physical::FLOAT).then(|| {
        Render::Float(Forms::json(|value: &f32, out| match value.is_finite() {
            true => write_float(*value, out),
            false => out.extend_from_slice(b"null"),
        }))
    })
}

/// Renders integers, decimals and doubles. NaN becomes null: pandas writes it for an absent number.
fn number(column: &ColumnDescriptor) -> Option<Render> {
    if column.physical_type() == Physical::DOUBLE {
        return Some(Render::Double(Forms::json(|value: &f64, out| {
            match value.is_finite() {
                true => write_float(*value, out),
                false => out.extend_from_slice(b"null"),
            }
        })));
    }
    integer(column).or_else(|| decimal(column))
}

/// Renders elements whose writer saw only nulls: they never have a value.
fn nulls(column: &ColumnDescriptor) -> Option<Render> {
    let is_unknown = column.logical_type_ref() == Some(&LogicalType::Unknown);
    (is_unknown && column.physical_type() == Physical::INT32)
        // A column without values never calls this.
        .then(|| Render::Int32(Forms::json(|value, out| write_integer(*value, out))))
}

fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes Unix milliseconds as a number of this unit.
fn write_ms(ms: i64, unit: Option<TsUnit>, out: &mut Vec<u8>) {
    write_integer(ms, out);
    // An exponent keeps all digits, where a multiplication could overflow.
    out.extend_from_slice(match unit {
        None | Some(TsUnit::Milliseconds) => b"",
        Some(TsUnit::Seconds) => b"e-3",
        Some(TsUnit::Microseconds) => b"e3",
        Some(TsUnit::Nanoseconds) => b"e6",
    });
}

fn write_decimal(unscaled: impl itoa::Integer, scale: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(moved_point(itoa::Buffer::new().format(unscaled), scale).as_bytes());
}

/// Writes a UUID such as `"00112233-4455-6677-8899-aabbccddeeff"`.
fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for (n, byte) in bytes.iter().enumerate() {
        if matches!(n, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    out.push(b'"');
}

/// Writes the shortest text that parses to the same number. NaN and infinities are written as Rust formats them.
fn write_float(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Writes a string. Bytes that are not UTF-8 stay, so that the decoder refuses the record.
fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    // Nearly all text needs no escape. This saves a fifth of the time that a row takes.
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

/// Writes a string, or the JSON object or array that it holds.
fn write_text_or_json(value: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(value) {
        Ok(text) if text.starts_with(['{', '[']) => write_cell(text, out),
        _ => write_text(value, out),
    }
}

/// Writes days since 1970 as text such as `"2025-11-20"`.
fn write_date(days: i32, out: &mut Vec<u8>) {
    let date = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days));
    match date {
        Ok(date) => {
            out.push(b'"');
            out.extend_from_slice(date.to_string().as_bytes());
            out.push(b'"');
        }
        Err(_) => out.extend_from_slice(b"null"),
    }
}

/// Writes JSON. Text that is not JSON becomes a string, which the decoder refuses as items and as experiments.
fn write_json(value: &[u8], out: &mut Vec<u8>) {
    match serde_json::from_slice::<&RawValue>(value) {
        Ok(json) => out.extend_from_slice(json.get().as_bytes()),
        Err(_) => write_text(value, out),
    }
}
