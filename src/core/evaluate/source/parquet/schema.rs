//! Mapping from the columns of a Parquet file to the fields of a record.

use anyhow::bail;
use parquet::basic::LogicalType;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};

use super::super::columns::{EventFields, Layout, NoColumn, placed, placed_at};
use super::leaf::{Leaf, Render};
use super::nested::{self, Nested};
use super::render::{AssumedTimes, boolean, described, float, id, json, nulls, text, time};
use crate::decode::shape::{Path, Shape};
use crate::engine::event::Kind;

/// Column that is read: its name, whether every file has it, its reader, and the types that it may have.
type KnownColumn = (
    &'static str,
    bool,
    fn(&[LeafColumn], AssumedTimes) -> Option<Nested>,
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

/// Leaf column below a column of the file, with its index among all leaf columns.
struct LeafColumn<'a> {
    index: usize,
    column: &'a ColumnDescriptor,
}

/// Fields of a record, the names that lead to each, and their arrangement.
pub(super) type Fields = (Vec<Nested>, (Vec<Vec<String>>, Layout));

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
        shapes.push(nested::column(schema, column.index, &column.within, times)?);
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
) -> anyhow::Result<Vec<(&'static str, Nested)>> {
    let mut fields = Vec::new();
    for (name, is_required, shape, may_hold) in COLUMNS {
        let Some(column) = column(schema, name)? else {
            match name {
                "type" if kind.is_none() => bail!(
                    "it has no column type: {may_hold}; if all its rows are lists or all are clicks, name it with --lists FILE or --clicks FILE, \
                     or check it with --as served or --as click"
                ),
                "type" => {}
                _ if is_required => bail!("it has no column {name}: {may_hold}"),
                _ => {}
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
pub(super) fn columns(schema: &SchemaDescriptor, names: &[&str]) -> anyhow::Result<Vec<Nested>> {
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
pub(super) fn other_columns(schema: &SchemaDescriptor, names: &[&str]) -> (Vec<String>, Vec<Nested>) {
    let all = schema.root_schema().get_fields().iter();
    let others = all.map(|field| field.name()).filter(|name| !names.contains(name));
    // Columns that were not requested by name are left out if they have another type.
    let readable = others.filter_map(|name| {
        let fields = columns(schema, &[name]).ok()?;
        Some((name.to_owned(), fields))
    });
    let (names, fields): (Vec<String>, Vec<Vec<Nested>>) = readable.unzip();
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

fn leaf(found: &LeafColumn, reading: impl Fn(&ColumnDescriptor) -> Option<Render>) -> Option<Leaf> {
    Some(Leaf::new(found.index, found.column, reading(found.column)?))
}

fn is_plain(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 0 && found.column.path().parts().len() == 1
}

fn is_in_one_list(found: &LeafColumn) -> bool {
    found.column.max_rep_level() == 1
}

fn scalar(found: &[LeafColumn], reading: impl Fn(&ColumnDescriptor) -> Option<Render>) -> Option<Nested> {
    match found {
        [it] if is_plain(it) => Some(Nested::Leaf(leaf(it, reading)?)),
        _ => None,
    }
}

fn items(found: &[LeafColumn]) -> Option<Nested> {
    match found {
        [it] if is_plain(it) => scalar(found, json),
        [it] if is_in_one_list(it) => Some(Nested::list(leaf(it, |column| id(column).or(nulls(column)))?)),
        _ => None,
    }
}

fn experiments(found: &[LeafColumn]) -> Option<Nested> {
    let text_or_null = |column: &ColumnDescriptor| text(column).or(nulls(column));
    match found {
        [] => None,
        [it] if is_plain(it) => scalar(found, json),
        // A map has two leaves that repeat together.
        [key, value] if is_in_one_list(key) && is_in_one_list(value) => {
            Some(Nested::map(leaf(key, text)?, leaf(value, text_or_null)?))
        }
        _ => {
            let field = |it: &LeafColumn| {
                // Fields of a struct are exactly one level below it.
                let is_direct = it.column.max_rep_level() == 0 && it.column.path().parts().len() == 2;
                let name = serde_json::to_vec(it.column.name()).ok()?;
                is_direct.then_some((name, Nested::Leaf(leaf(it, text_or_null)?)))
            };
            Some(Nested::Object {
                // A struct that is null names no experiment, like an empty one.
                level: 0,
                fields: found.iter().map(field).collect::<Option<_>>()?,
            })
        }
    }
}
