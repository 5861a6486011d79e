//! Paths as written under `[events]`: one in quotes, alternatives in `{ any = […] }`, or the parts of a request id in
//! `{ all = […] }`.

use std::fmt;

use abgauge_core::decode::shape::{Path, Paths};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use toml::{Spanned, Table, Value};

/// Description of a path or several, for error messages.
pub(super) const PATHS: &str =
    "a path in quotes, or { any = [\"ts\", \"timestamp\"] } to read the first that exists";
/// Name of the only entry in a table of alternatives.
pub(super) const ANY: &str = "any";
/// Name of the only entry in the table of a composite id.
pub(super) const ALL: &str = "all";

/// One path, or alternatives.
pub(super) enum RawPaths {
    One(String),
    Any(Vec<Spanned<String>>),
}

/// Paths to a request id.
pub(super) enum RawId {
    Whole(RawPaths),
    /// Parts that form the id together.
    All(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for RawPaths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(PathsVisitor { of_id: false })? {
            RawId::Whole(paths) => Ok(paths),
            RawId::All(_) => Err(D::Error::custom(format!(
                "has `{ALL}` in its table, expected {PATHS}"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for RawId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PathsVisitor { of_id: true })
    }
}

struct PathsVisitor {
    /// True if the paths may be the parts of an id.
    of_id: bool,
}

impl<'de> Visitor<'de> for PathsVisitor {
    type Value = RawId;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(PATHS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawId, E> {
        Ok(RawId::Whole(RawPaths::One(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<RawId, A::Error> {
        let mut paths = None;
        while let Some(name) = table.next_key::<String>()? {
            // Of two entries it would be unclear which one counts, so the second is refused.
            let of_name = match name.as_str() {
                ANY if paths.is_none() => RawId::Whole(RawPaths::Any(table.next_value()?)),
                ALL if paths.is_none() && self.of_id => RawId::All(table.next_value()?),
                _ => {
                    return Err(A::Error::custom(format!(
                        "has `{name}` in its table, expected {PATHS}"
                    )));
                }
            };
            paths = Some(of_name);
        }
        paths.ok_or_else(|| A::Error::custom(format!("has no `{ANY}` in its table, expected {PATHS}")))
    }
}

impl Serialize for RawId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RawId::Whole(paths) => paths.serialize(serializer),
            RawId::All(paths) => serializer.collect_map([(ALL, paths)]),
        }
    }
}

impl Serialize for RawPaths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RawPaths::One(path) => serializer.serialize_str(path),
            RawPaths::Any(paths) => serializer.collect_map([(ANY, paths)]),
        }
    }
}

/// Returns the value of a setting that means these paths.
pub(super) fn written(paths: &Paths) -> Value {
    match paths.has_alternatives() {
        false => paths.first().to_string().into(),
        true => table(ANY, paths.iter()),
    }
}

/// Returns the value of a setting that means an id with these parts.
pub(super) fn written_id(first: &Paths, further: &[Path]) -> Value {
    match further.is_empty() {
        true => written(first),
        false => table(ALL, first.iter().chain(further)),
    }
}

fn table<'a>(name: &str, paths: impl Iterator<Item = &'a Path>) -> Value {
    let paths = paths.map(|path| Value::from(path.to_string()));
    Table::from_iter([(name.to_owned(), paths.collect::<Vec<_>>().into())]).into()
}
