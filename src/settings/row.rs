//! Row of a setting: each fact about it except its comment, which is in `config/abgauge.toml`.

use std::ops::{Bound, RangeInclusive};

use abgauge_core::decode::shape::{Paths, Shape};
use abgauge_core::statistics::Settings;
use serde_json::Value as Json;
use toml::Value;

use super::{Config, paths};

/// Range of a number.
pub(super) type Bounds = (Bound<f64>, Bound<f64>);

/// Setting in a section of [`Raw`](super::raw::Raw).
pub(super) struct Setting {
    /// Section and name, such as `join.lateness`. The section of an experiment's setting is `experiments`.
    pub key: &'static str,
    /// Schema of its type.
    pub schema: fn() -> Json,
    pub rules: &'static [Rule],
}

/// Fact about a setting beyond its type and default. In a list it applies to each entry, unless it is about the list.
pub(super) enum Rule {
    /// Range of a whole number.
    Within(RangeInclusive<i64>),
    /// Range of a number, or of each number in a table.
    Between(Bounds),
    /// Allowed words.
    OneOf(fn() -> Vec<&'static str>),
    /// Regular expression of a text, for the schema.
    Like(&'static str),
    /// Minimum length of a text in characters.
    AtLeast(usize),
    /// Maximum length of a text in characters.
    AtMost(usize),
    /// A time span may be zero.
    MayBeZero,
    /// A list must not be empty.
    NotEmpty,
    /// Maximum number of entries in a list.
    MaxEntries(usize),
    /// Schema that replaces the type's.
    Schema(fn() -> Json),
    /// The value is never shown.
    Secret,
    /// Decides which events count where, so it is part of the fingerprint.
    Counted,
    /// Takes over the value of a new configuration while the daemon runs. Returns false if that needs a restart.
    Reload(fn(&mut Config, &Config) -> bool),
    /// Value that applies if none is written.
    Else(fn(&Config) -> Option<Value>),
    /// The same, from the shape of events.
    OfShape(fn(&Shape) -> Option<Value>),
    /// The same, from an experiment's settings.
    OfExperiment(fn(&Settings) -> Option<Value>),
    /// Reason for the value that applies if none is written.
    Because(&'static str),
}

impl Setting {
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or_default()
    }

    pub fn is_list(&self) -> bool {
        (self.schema)()["type"] == "array"
    }

    /// Returns whether it is a table with names that the operator chooses.
    pub fn has_free_names(&self) -> bool {
        (self.schema)()["type"] == "object"
    }

    pub fn is_secret(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule, Rule::Secret))
    }

    /// Takes over the new value. Returns false if that needs a restart.
    pub fn reload(&self, running: &mut Config, new: &Config) -> bool {
        let take = self.find(|rule| match rule {
            Rule::Reload(take) => Some(take),
            _ => None,
        });
        take.is_some_and(|take| take(running, new))
    }

    /// Returns the range of a whole number.
    pub fn range(&self) -> Option<RangeInclusive<i64>> {
        self.find(|rule| match rule {
            Rule::Within(range) => Some(range.clone()),
            _ => None,
        })
    }

    /// Returns the maximum length of a text in characters.
    pub fn at_most(&self) -> Option<usize> {
        self.find(|rule| match rule {
            Rule::AtMost(n) => Some(*n),
            _ => None,
        })
    }

    /// Returns the range of a number.
    pub fn bounds(&self) -> Option<Bounds> {
        self.find(|rule| match rule {
            Rule::Between(bounds) => Some(*bounds),
            _ => None,
        })
    }

    /// Returns the fact that `pick` accepts.
    pub fn find<T>(&self, pick: impl Fn(&'static Rule) -> Option<T>) -> Option<T> {
        self.rules.iter().find_map(pick)
    }
}

/// Takes over a file, such as a certificate. Returns false if a file was added or removed, which needs a restart.
pub(super) fn another_file<T: Clone>(running: &mut Option<T>, new: &Option<T>) -> bool {
    let are_both_set = running.is_some() && new.is_some();
    if are_both_set {
        running.clone_from(new);
    }
    are_both_set
}

/// Returns the words of a table.
pub(super) fn names<T>(known: &[(&'static str, T)]) -> Vec<&'static str> {
    known.iter().map(|(name, _)| *name).collect()
}

/// Returns the word that means `value` in the configuration.
pub(super) fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Value {
    let mut words = words.iter();
    words
        .find(|(_, of)| of == value)
        .map_or("", |(word, _)| word)
        .into()
}

pub(super) fn array<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    Value::Array(values.into_iter().map(Into::into).collect())
}

/// Returns a list of texts, or `None` if it is empty.
pub(super) fn texts(texts: &[String]) -> Option<Value> {
    (!texts.is_empty()).then(|| array(texts.iter().map(String::as_str)))
}

pub(super) fn text(text: &Option<String>) -> Option<Value> {
    text.clone().map(Value::from)
}

pub(super) fn path(path: &Option<Paths>) -> Option<Value> {
    path.as_ref().map(paths::written)
}
