//! JSON Schema of each type that a setting can have, and of values that their type does not describe.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use abgauge_core::decode::shape::{Paths, Shape};
use abgauge_core::engine::OTHER;
use abgauge_core::metrics::Metric;
use abgauge_core::statistics::per_user;
use serde_json::{Value, json};
use toml::Spanned;

use crate::settings::access::HashList;
use crate::settings::paths::{ALL, ANY, RawId, RawPaths};
use crate::settings::properties::PropertyValue;
use crate::settings::row::{Bounds, names};
use crate::settings::rules::{PART, metric_names, profiles};
use crate::settings::units::{ByteSize, SIZE_UNITS, TIME_UNITS, TimeSpan};

/// Type of a setting.
pub(in crate::settings) trait SettingType {
    fn schema() -> Value;
}

/// Implements [`SettingType`]: parameters, type, schema.
macro_rules! types {
    ($([$($parameters:tt)*] $of:ty => $schema:expr;)*) => {
        $(impl<$($parameters)*> SettingType for $of {
            fn schema() -> Value {
                $schema
            }
        })*
    };
}

types! {
    [T: SettingType] Option<T> => T::schema();
    [T: SettingType] Spanned<T> => T::schema();
    [T: SettingType] Vec<T> => list_of(T::schema());
    [K, V: SettingType] BTreeMap<K, V> => table_of(V::schema());
    [] bool => json!({"type": "boolean"});
    [] i64 => json!({"type": "integer"});
    [] f64 => json!({"type": "number"});
    [] String => json!({"type": "string"});
    // Value that means "not in this experiment".
    [] toml::Value => json!({"type": ["string", "boolean", "integer"]});
    [] PropertyValue => json!({"$ref": "#/$defs/property"});
    [] HashList => Vec::<String>::schema();
    [] TimeSpan => span("0*[1-9][0-9]*");
    [] ByteSize => number_with_unit("[0-9]+", &SIZE_UNITS);
    [] RawPaths => json!({"anyOf": [String::schema(), table_of_paths(ANY, 1..=Paths::MAX)]});
    [] RawId => json!({"anyOf": [
        String::schema(),
        table_of_paths(ANY, 1..=Paths::MAX),
        table_of_paths(ALL, 2..=Shape::MAX_ID_PARTS),
    ]});
}

fn list_of(entry: Value) -> Value {
    json!({"type": "array", "items": entry, "uniqueItems": true})
}

pub(super) fn table_of(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

/// Returns the schema of a table of files by the name of a property.
pub(in crate::settings) fn files() -> Value {
    table_of(json!({"$ref": "#/$defs/file"}))
}

/// Returns the schema of a time span with these digits.
pub(super) fn span(digits: &str) -> Value {
    number_with_unit(digits, &TIME_UNITS)
}

fn number_with_unit(digits: &str, units: &[(&'static str, u64)]) -> Value {
    json!({"type": "string", "pattern": format!("^{digits}({})$", names(units).join("|"))})
}

/// Returns the schema of a table with several paths under a single name.
fn table_of_paths(name: &str, n: RangeInclusive<usize>) -> Value {
    let paths = json!({
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "minItems": n.start(),
        "maxItems": n.end(),
        "uniqueItems": true,
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": [name],
        "properties": {name: paths},
    })
}

/// Returns the schema of a profile's name, or several.
pub(in crate::settings) fn one_or_more_profiles() -> Value {
    let name = json!({"type": "string", "minLength": 1, "examples": profiles()});
    let list = json!({"type": "array", "items": name, "minItems": 1, "uniqueItems": true});
    json!({"anyOf": [name, list]})
}

pub(in crate::settings) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// Returns the schema of a name of an experiment or arm. The program limits bytes, which a schema cannot.
pub(in crate::settings) fn label() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 128, "not": {"const": OTHER}})
}

pub(in crate::settings) fn shares() -> Value {
    json!({"type": "object", "propertyNames": label(), "additionalProperties": number(PART), "minProperties": 2})
}

pub(in crate::settings) fn epochs() -> Value {
    json!({"type": "array", "items": epoch()})
}

pub(in crate::settings) fn epoch() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"start": time(), "shares": shares()},
        "required": ["start", "shares"],
    })
}

pub(super) fn number((low, high): Bounds) -> Value {
    let mut schema = json!({"type": "number"});
    let mut bound = |inside: &str, outside: &str, bound: Bound<f64>| match bound {
        Bound::Included(most) => schema[inside] = most.into(),
        Bound::Excluded(most) => schema[outside] = most.into(),
        Bound::Unbounded => {}
    };
    bound("minimum", "exclusiveMinimum", low);
    bound("maximum", "exclusiveMaximum", high);
    schema
}

/// Returns the schema of numbers by metric.
pub(in crate::settings) fn by_metric() -> Value {
    json!({"type": "object", "propertyNames": metric(), "additionalProperties": f64::schema()})
}

/// Returns the schema of a list of metrics.
pub(in crate::settings) fn metrics() -> Value {
    list_of(metric())
}

/// Returns the schema of a metric id with or without a cut-off. A schema cannot know which of them are measured.
fn metric() -> Value {
    // Distinct counts are not sums over users, so arms cannot be compared by them.
    let is_additive = |name: &&str| Metric::named(name).is_some_and(|metric| metric.is_additive);
    let names: Vec<&str> = names(&metric_names()).into_iter().filter(is_additive).collect();
    let pattern = format!(
        "^(({})(@[1-9][0-9]*)?|{})$",
        names.join("|"),
        per_user::ids().join("|")
    );
    json!({"type": "string", "pattern": pattern})
}
