//! Paths as they are written under `[events]`: one in quotes, or several in `{ any = […] }`.

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use toml::{Spanned, Table, Value};

use crate::ingest::wire::shape::Paths;

/// How a path, or several, are written.
pub(super) const PATHS: &str =
    "a path in quotes, or { any = [\"ts\", \"timestamp\"] } to read the first that is there";
/// The one name in such a table.
pub(super) const ANY: &str = "any";

/// One path, or alternatives.
pub(super) enum RawPaths {
    One(String),
    Any(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for RawPaths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PathsVisitor)
    }
}

struct PathsVisitor;

impl<'de> Visitor<'de> for PathsVisitor {
    type Value = RawPaths;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(PATHS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawPaths, E> {
        Ok(RawPaths::One(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<RawPaths, A::Error> {
        let mut any = None;
        while let Some(name) = table.next_key::<String>()? {
            if name != ANY {
                return Err(A::Error::custom(format!(
                    "has `{name}` in its table, expected {PATHS}"
                )));
            }
            any = Some(table.next_value()?);
        }
        any.map(RawPaths::Any)
            .ok_or_else(|| A::Error::custom(format!("has no `any` in its table, expected {PATHS}")))
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

/// The value of a setting that means these paths.
pub(super) fn written(paths: &Paths) -> Value {
    match paths.has_alternatives() {
        false => paths.first().to_string().into(),
        true => {
            let all = paths.iter().map(|path| Value::from(path.to_string()));
            Table::from_iter([(ANY.to_owned(), all.collect::<Vec<_>>().into())]).into()
        }
    }
}
