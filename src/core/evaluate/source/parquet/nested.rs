//! Values of a column of any type, at any depth: objects, lists and maps, assembled from their leaf columns.
//!
//! Parquet stores two numbers with each entry of a leaf. The definition level is the depth to which the path is not null, and the
//! repetition level is the depth of the list that the entry continues.

use anyhow::bail;
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::leaf::{Leaf, Render};
use super::render::{AssumedTimes, described, map_key, value};

/// Value of a column, or a part of one.
pub(super) enum Nested {
    Leaf(Leaf),
    /// Fields, each with its name as JSON.
    Object {
        level: i16,
        fields: Vec<(Vec<u8>, Nested)>,
    },
    List {
        levels: ListLevels,
        element: Box<Nested>,
    },
    Map {
        levels: ListLevels,
        key: Leaf,
        value: Box<Nested>,
    },
}

/// Levels of the entries of a list or map.
#[derive(Clone, Copy)]
pub(super) struct ListLevels {
    /// Definition level of a list that is not null.
    list: i16,
    /// Definition level of an entry.
    entry: i16,
    /// Repetition level of each entry but the first.
    repetition: i16,
}

impl ListLevels {
    /// Returns the levels of a list or map that is not inside another one.
    fn of_outermost(entry: i16) -> ListLevels {
        ListLevels {
            list: entry - 1,
            entry,
            repetition: 1,
        }
    }
}

/// Definition and repetition level of a place in the schema.
#[derive(Clone, Copy, Default)]
struct Levels {
    definition: i16,
    repetition: i16,
}

impl Levels {
    /// Returns the levels of a field at this place.
    fn of(self, field: &Type) -> Levels {
        match repetition(field) {
            Repetition::REQUIRED => self,
            Repetition::OPTIONAL => Levels {
                definition: self.definition + 1,
                ..self
            },
            Repetition::REPEATED => Levels {
                definition: self.definition + 1,
                repetition: self.repetition + 1,
            },
        }
    }
}

fn repetition(field: &Type) -> Repetition {
    let info = field.get_basic_info();
    match info.has_repetition() {
        true => info.repetition(),
        false => Repetition::REQUIRED,
    }
}

/// Returns the value of the column at this index, with only the fields to which the paths `within` lead; all of them if there
/// are none.
///
/// # Errors
/// The column has a type that cannot be read.
pub(super) fn column(
    schema: &SchemaDescriptor,
    index: usize,
    within: &[Vec<String>],
    times: AssumedTimes,
) -> anyhow::Result<Nested> {
    let columns = schema.root_schema().get_fields();
    let mut builder = Builder {
        schema,
        times,
        next_leaf: columns[..index].iter().map(|column| n_leaves(column)).sum(),
    };
    let column = &columns[index];
    match builder.field(
        column,
        Levels::default(),
        Some(within).filter(|within| !within.is_empty()),
    ) {
        Some(value) => Ok(value),
        None => bail!(
            "column {} is `{}`: write strings, numbers, booleans, timestamps, or lists, maps and structs of them",
            column.name(),
            described(column)
        ),
    }
}

fn n_leaves(column: &Type) -> usize {
    match column.is_primitive() {
        true => 1,
        false => column.get_fields().iter().map(|field| n_leaves(field)).sum(),
    }
}

struct Builder<'a> {
    schema: &'a SchemaDescriptor,
    times: AssumedTimes,
    /// Index of the next leaf among all of the file.
    next_leaf: usize,
}

impl Builder<'_> {
    /// Builds a field. `None` if nothing of it can be read, or no path leads to it. Passes its leaves in any case.
    fn field(&mut self, field: &Type, around: Levels, within: Option<&[Vec<String>]>) -> Option<Nested> {
        let levels = around.of(field);
        if repetition(field) != Repetition::REPEATED {
            return self.content(field, levels, within);
        }
        // Without an annotation, a repeated field is a list that is never null.
        let element = self.content(field, levels, None)?;
        Some(Nested::List {
            levels: ListLevels {
                list: around.definition,
                entry: levels.definition,
                repetition: levels.repetition,
            },
            element: Box::new(element),
        })
    }

    fn content(&mut self, field: &Type, levels: Levels, within: Option<&[Vec<String>]>) -> Option<Nested> {
        if field.is_primitive() {
            return self.leaf(value).map(Nested::Leaf);
        }
        match annotation(field) {
            Some(annotation) => self.repeated(annotation, field, levels),
            None => self.object(field, levels, within),
        }
    }

    fn leaf(
        &mut self,
        render: impl Fn(&parquet::schema::types::ColumnDescriptor, AssumedTimes) -> Option<Render>,
    ) -> Option<Leaf> {
        let index = self.next_leaf;
        self.next_leaf += 1;
        let column = self.schema.column(index);
        Some(Leaf::new(index, &column, render(&column, self.times)?))
    }

    fn object(&mut self, group: &Type, levels: Levels, within: Option<&[Vec<String>]>) -> Option<Nested> {
        let mut fields = Vec::new();
        for field in group.get_fields() {
            let below = within.map(|paths| {
                let below = paths
                    .iter()
                    .filter(|path| path.first().is_some_and(|name| name == field.name()));
                below.map(|path| path[1..].to_vec()).collect::<Vec<_>>()
            });
            let is_read = below.as_ref().is_none_or(|below| !below.is_empty());
            // If a path ends here, all of the field is read.
            let below = below.filter(|below| !below.iter().any(Vec::is_empty));
            let built = self.field(field, levels, below.as_deref());
            let key = serde_json::Value::from(field.name()).to_string().into_bytes();
            fields.extend(built.filter(|_| is_read).map(|value| (key, value)));
        }
        (!fields.is_empty()).then_some(Nested::Object {
            level: levels.definition,
            fields,
        })
    }

    /// Builds a list or map: a group around one repeated field.
    fn repeated(&mut self, annotation: Annotation, group: &Type, around: Levels) -> Option<Nested> {
        let entry = &group.get_fields()[0];
        let within = around.of(entry);
        let levels = ListLevels {
            list: around.definition,
            entry: within.definition,
            repetition: within.repetition,
        };
        if annotation == Annotation::Map {
            let key = self.leaf(map_key);
            let value = self.field(&entry.get_fields()[1], within, None);
            return Some(Nested::Map {
                levels,
                key: key?,
                value: Box::new(value?),
            });
        }
        let element = match is_element(entry) {
            true => self.content(entry, within, None),
            false => self.field(&entry.get_fields()[0], within, None),
        };
        Some(Nested::List {
            levels,
            element: Box::new(element?),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Annotation {
    List,
    Map,
}

/// Returns whether a group is a list or a map. A group that only claims it is read like any other.
fn annotation(group: &Type) -> Option<Annotation> {
    let info = group.get_basic_info();
    let is = |logical: LogicalType, old: &[ConvertedType]| match info.logical_type_ref() {
        Some(found) => *found == logical,
        None => old.contains(&info.converted_type()),
    };
    let [entry] = group.get_fields() else {
        return None;
    };
    if repetition(entry) != Repetition::REPEATED {
        return None;
    }
    if is(LogicalType::List, &[ConvertedType::LIST]) {
        return Some(Annotation::List);
    }
    let is_map = is(
        LogicalType::Map,
        &[ConvertedType::MAP, ConvertedType::MAP_KEY_VALUE],
    );
    let has_pairs = !entry.is_primitive()
        && matches!(entry.get_fields(), [key, _] if key.is_primitive() && repetition(key) == Repetition::REQUIRED);
    (is_map && has_pairs).then_some(Annotation::Map)
}

/// Returns whether the repeated field of a list is its element, as old writers have it, and not a group around the element.
fn is_element(entry: &Type) -> bool {
    entry.is_primitive()
        || entry.get_fields().len() != 1
        || entry.name() == "array"
        || entry.name().ends_with("_tuple")
        || repetition(&entry.get_fields()[0]) == Repetition::REPEATED
}

impl Nested {
    /// Makes a list of the values of a leaf that repeats once.
    pub(super) fn list(leaf: Leaf) -> Nested {
        Nested::List {
            levels: ListLevels::of_outermost(leaf.entry_level()),
            element: Box::new(Nested::Leaf(leaf)),
        }
    }

    /// Makes a map of two leaves that repeat together.
    pub(super) fn map(key: Leaf, value: Leaf) -> Nested {
        Nested::Map {
            levels: ListLevels::of_outermost(key.entry_level()),
            key,
            value: Box::new(Nested::Leaf(value)),
        }
    }

    /// Starts the next row.
    #[inline]
    pub(super) fn begin_row(&mut self) {
        match self {
            Nested::Leaf(leaf) => leaf.begin_row(),
            several => several.each_leaf(&mut Leaf::begin_row),
        }
    }

    /// Writes the current row, and returns whether the row has a value. `None` if the leaves do not fit together.
    pub(super) fn write_row(&mut self, out: &mut Vec<u8>) -> Option<bool> {
        let is_there = self.write(out);
        let mut is_done = true;
        self.each_leaf(&mut |leaf| is_done &= leaf.is_row_done());
        is_done.then_some(is_there)
    }

    pub(super) fn each_leaf(&mut self, act: &mut dyn FnMut(&mut Leaf)) {
        match self {
            Nested::Leaf(leaf) => act(leaf),
            Nested::Object { fields, .. } => fields.iter_mut().for_each(|(_, field)| field.each_leaf(act)),
            Nested::List { element, .. } => element.each_leaf(act),
            Nested::Map { key, value, .. } => {
                act(key);
                value.each_leaf(act);
            }
        }
    }

    /// Returns the leaf with the levels of the next entry.
    fn first(&self) -> &Leaf {
        match self {
            Nested::Leaf(leaf) | Nested::Map { key: leaf, .. } => leaf,
            Nested::Object { fields, .. } => fields[0].1.first(),
            Nested::List { element, .. } => element.first(),
        }
    }

    /// Passes one entry of each leaf, for a value that is null or empty.
    fn skip(&mut self) {
        self.each_leaf(&mut |leaf| _ = leaf.skip());
    }

    /// Writes the next value, unless it is null. Returns whether it is there.
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        // Without an entry the file is damaged, which is found at the end of the row.
        let definition = self.first().entry().map_or(-1, |(definition, _)| definition);
        match self {
            Nested::Leaf(leaf) => leaf.take(out),
            Nested::Object { level, .. } if definition < *level => {
                self.skip();
                false
            }
            Nested::Object { fields, .. } => {
                out.push(b'{');
                for (name, field) in fields {
                    let before = out.len();
                    out.extend_from_slice(name);
                    out.push(b':');
                    match field.write(out) {
                        true => out.push(b','),
                        // The name was written already.
                        false => out.truncate(before),
                    }
                }
                close(out, b'}');
                true
            }
            Nested::List { levels, .. } | Nested::Map { levels, .. } if definition < levels.entry => {
                let (is_null, brackets) = (definition < levels.list, self.brackets());
                self.skip();
                if !is_null {
                    out.extend_from_slice(&brackets);
                }
                !is_null
            }
            Nested::List { levels, element } => {
                out.push(b'[');
                loop {
                    if !element.write(out) {
                        out.extend_from_slice(b"null");
                    }
                    out.push(b',');
                    if element
                        .first()
                        .entry()
                        .is_none_or(|(_, repetition)| repetition != levels.repetition)
                    {
                        break;
                    }
                }
                close(out, b']');
                true
            }
            Nested::Map { levels, key, value } => {
                out.push(b'{');
                loop {
                    let before = out.len();
                    let has_key = key.take(out);
                    // Keys of JSON are text.
                    if has_key && out.get(before) != Some(&b'"') {
                        out.insert(before, b'"');
                        out.push(b'"');
                    }
                    out.push(b':');
                    match value.write(out) && has_key {
                        true => out.push(b','),
                        false => out.truncate(before),
                    }
                    if key
                        .entry()
                        .is_none_or(|(_, repetition)| repetition != levels.repetition)
                    {
                        break;
                    }
                }
                close(out, b'}');
                true
            }
        }
    }

    /// Returns an empty list or map.
    fn brackets(&self) -> [u8; 2] {
        match self {
            Nested::Map { .. } => *b"{}",
            _ => *b"[]",
        }
    }
}

/// Closes an array or object. The bracket replaces a trailing comma, if there is one.
fn close(json: &mut Vec<u8>, bracket: u8) {
    json.pop_if(|last| *last == b',');
    json.push(bracket);
}
