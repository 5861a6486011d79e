//! Columns of a table as fields of records: each column is placed where a path leads.
//!
//! ```text
//! ts   ctx.user   ctx.arm   price          columns
//! {"ts":…,"ctx":{"user":…,"arm":…}}        record, if paths are ts, ctx.user and ctx.arm
//! ```

use std::fmt;

use anyhow::bail;

use crate::decode::shape::{Nested, Path, Shape};
use crate::engine::event::Kind;

/// Fields of events that are read from the columns of a table.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventFields<'a> {
    /// Shape of the events; `None`: our own.
    pub shape: Option<&'a Shape>,
    /// Kind of all records; `None` if they name it.
    pub kind: Option<Kind>,
    /// Paths that are read in addition to the shape's.
    pub further: &'a [Path],
    /// True if every column is read, whatever the shape.
    pub every_column: bool,
}

impl EventFields<'_> {
    /// Returns the paths that are read.
    fn paths<'b>(&'b self, own: &'b Shape) -> Vec<&'b Path> {
        let mut paths = self.shape.unwrap_or(own).record_paths();
        paths.extend(self.further);
        paths
    }

    /// Returns the paths without which no record can be read: one of them must lead to a column.
    fn needed<'b>(&'b self, own: &'b Shape) -> Vec<&'b Path> {
        let shape = self.shape.unwrap_or(own);
        match (&shape.nested, &shape.records) {
            (Some(Nested::At(path)), _) | (None, Some(path)) => vec![path],
            // The record is not a row.
            (Some(Nested::Whole), _) => Vec::new(),
            (None, None) => {
                let ids = [
                    (Kind::Served, &shape.served.request_id),
                    (Kind::Click, &shape.click.request_id),
                ];
                let possible = ids
                    .iter()
                    .filter(|(kind, _)| self.kind.is_none_or(|only| only == *kind));
                possible.flat_map(|(_, paths)| paths.iter()).collect()
            }
        }
    }
}

/// A column that is read, and the names that lead to it in a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedColumn {
    /// Index among the columns of the table.
    pub index: usize,
    pub names: Vec<String>,
    /// Paths within the column that are read; empty if all of it is.
    pub within: Vec<Vec<String>>,
}

/// Returns the columns that are read, in their order.
///
/// # Errors
/// No column has the id of a list or click.
pub(super) fn placed(columns: &[&str], fields: &EventFields) -> anyhow::Result<Vec<PlacedColumn>> {
    let own = Shape::default();
    let placed = placed_at(columns, fields, &fields.paths(&own));
    let needed = fields.needed(&own);
    let leads_to_one = |path: &&Path| placed.iter().any(|column| meets(path.names(), &column.names));
    match needed.first() {
        Some(first) if !fields.every_column && !needed.iter().any(leads_to_one) => bail!(
            "it has no column {first}, which links clicks to lists: its columns are {}; name another one in the section [events] of \
             --config, or convert a table of recommendations with `abgauge convert`",
            columns.join(", ")
        ),
        _ => Ok(placed),
    }
}

/// Returns the columns to which these paths lead.
pub(super) fn placed_at(columns: &[&str], fields: &EventFields, paths: &[&Path]) -> Vec<PlacedColumn> {
    let prefix = fields.shape.and_then(Shape::column_prefix);
    let place = |(index, column): (usize, &&str)| {
        let is_whole = fields.every_column || prefix.is_some_and(|prefix| column.starts_with(prefix));
        let names = match is_whole {
            true => vec![(*column).to_owned()],
            false => names_of(column, paths)?,
        };
        let within = paths
            .iter()
            .filter_map(|path| path.names().strip_prefix(&names[..]));
        let mut within: Vec<Vec<String>> = within.map(<[String]>::to_vec).collect();
        if is_whole || within.iter().any(Vec::is_empty) {
            within.clear();
        }
        Some(PlacedColumn { index, names, within })
    };
    columns.iter().enumerate().filter_map(place).collect()
}

/// Returns the names that lead to a column: its own name, or the names of a path, or of its start, that give the column's name with
/// dots between them. `None` if no path leads to it.
fn names_of(column: &str, paths: &[&Path]) -> Option<Vec<String>> {
    if paths.iter().any(|path| path.names()[0] == column) {
        return Some(vec![column.to_owned()]);
    }
    paths.iter().find_map(|path| {
        let names = path.names();
        let starts = (1..=names.len()).map(|n| (n, names[..n].join(".")));
        starts
            .into_iter()
            .find_map(|(n, start)| match column.strip_prefix(&start)? {
                "" => Some(names[..n].to_vec()),
                // A field of the object to which the whole path leads.
                rest if n == names.len() => Some([names, &[rest.strip_prefix('.')?.to_owned()]].concat()),
                _ => None,
            })
    })
}

/// Returns whether one leads to the other, or through it.
fn meets(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Arrangement of columns in a JSON object.
pub(super) struct Layout {
    fields: Vec<(Vec<u8>, Place)>,
}

enum Place {
    /// Index of a placed column.
    Column(usize),
    Object(Layout),
}

impl Layout {
    /// Arranges columns by the names that lead to them.
    ///
    /// # Errors
    /// One of them is a field of another.
    pub(super) fn of<'a>(columns: impl IntoIterator<Item = &'a [String]>) -> anyhow::Result<Layout> {
        let mut layout = Layout { fields: Vec::new() };
        for (index, names) in columns.into_iter().enumerate() {
            if !layout.add(index, names) {
                bail!("it has several columns for {}: keep one of them", names.join("."));
            }
        }
        Ok(layout)
    }

    /// Adds a column. Returns false if its place is taken.
    fn add(&mut self, index: usize, names: &[String]) -> bool {
        let Some((name, rest)) = names.split_first() else {
            return false;
        };
        let key = serde_json::Value::from(name.as_str()).to_string().into_bytes();
        let known = self.fields.iter_mut().find(|(other, _)| *other == key);
        match known {
            Some((_, Place::Object(inner))) if !rest.is_empty() => inner.add(index, rest),
            Some(_) => false,
            None => {
                let mut inner = Layout { fields: Vec::new() };
                let place = match rest.is_empty() || !inner.add(index, rest) {
                    true => Place::Column(index),
                    false => Place::Object(inner),
                };
                self.fields.push((key, place));
                true
            }
        }
    }

    /// Writes a row as an object. `cell` writes the value of a column and returns whether the row has one.
    pub(super) fn write(&self, out: &mut Vec<u8>, cell: &mut impl FnMut(usize, &mut Vec<u8>) -> bool) {
        out.push(b'{');
        let start = out.len();
        for (key, place) in &self.fields {
            let before = out.len();
            out.extend_from_slice(if before > start { b"," } else { b"" });
            out.extend_from_slice(key);
            out.push(b':');
            let is_there = match place {
                Place::Column(index) => cell(*index, out),
                Place::Object(inner) => {
                    inner.write(out, cell);
                    true
                }
            };
            // The key was written already, so an absent field is taken back.
            if !is_there {
                out.truncate(before);
            }
        }
        out.push(b'}');
    }
}

/// Text of each requested cell of a row; `None` if it is empty or null.
pub type Cells = Vec<Option<String>>;

/// Error: the table has no such column.
#[derive(Debug)]
pub struct NoColumn {
    pub column: String,
    /// The columns that it has.
    known: String,
}

impl fmt::Display for NoColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it has no column {}: its columns are {}",
            self.column, self.known
        )
    }
}

impl std::error::Error for NoColumn {}

impl NoColumn {
    pub(super) fn new(column: &str, known: &[&str]) -> NoColumn {
        NoColumn {
            column: column.to_owned(),
            known: known.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(paths: &[&str]) -> Vec<Path> {
        paths.iter().map(|path| Path::parse(path).expect(path)).collect()
    }

    fn names(columns: &[&str], paths: &[&str]) -> Vec<String> {
        let paths = shape(paths);
        let paths: Vec<&Path> = paths.iter().collect();
        let placed = placed_at(columns, &EventFields::default(), &paths);
        placed
            .iter()
            .map(|column| format!("{}: {}", column.index, column.names.join("/")))
            .collect()
    }

    #[test]
    fn a_path_leads_to_a_column_of_its_text_or_into_one() {
        assert_eq!(
            names(
                &["ts", "ctx.user", "price", "ctx.exp"],
                &["ts", "ctx.user", "ctx.exp.name"]
            ),
            ["0: ts", "1: ctx/user", "3: ctx/exp"]
        );
        // A quoted name with a dot is one name.
        assert_eq!(names(&["a.b"], &["'a.b'"]), ["0: a.b"]);
        assert_eq!(names(&["a"], &["a.b.c"]), ["0: a"]);
        // Fields of an object may have columns of their own.
        assert_eq!(
            names(&["ab.ranker", "ab.x.y", "abc"], &["ab"]),
            ["0: ab/ranker", "1: ab/x.y"]
        );
        assert!(names(&["b", "a.c", "ab"], &["a.b"]).is_empty());
    }

    #[test]
    fn only_the_fields_that_paths_lead_to_are_read_within_a_column() {
        let paths = shape(&["ctx.user", "ctx.exp.name", "items"]);
        let paths: Vec<&Path> = paths.iter().collect();
        let placed = placed_at(&["ctx", "items"], &EventFields::default(), &paths);
        let within: Vec<&[Vec<String>]> = placed.iter().map(|column| &column.within[..]).collect();
        let expected: [&[&[&str]]; 2] = [&[&["user"], &["exp", "name"]], &[]];
        assert_eq!(within, expected);
    }

    #[test]
    fn rows_are_objects_without_their_absent_cells() {
        let names = [&["a"][..], &["b", "c"], &["b", "d"], &["e"]];
        let names = names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let layout = Layout::of(names.iter().map(Vec::as_slice)).expect("distinct places");
        let mut out = Vec::new();
        layout.write(&mut out, &mut |index, out| {
            out.extend_from_slice(index.to_string().as_bytes());
            index % 2 == 1
        });
        assert_eq!(String::from_utf8_lossy(&out), r#"{"b":{"c":1},"e":3}"#);
        let taken = [
            ["a".to_owned()].to_vec(),
            ["a".to_owned(), "b".to_owned()].to_vec(),
        ];
        assert!(Layout::of(taken.iter().map(Vec::as_slice)).is_err());
    }
}
