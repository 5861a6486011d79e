//! Errors of a configuration, reported all at once, each with its place and what to write instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use toml::Spanned;

/// Errors of a configuration, in the order of the file.
///
/// Rendered by miette, [each](ConfigErrors::each) shows its line, with the values of Kafka properties masked.
pub struct ConfigErrors {
    name: String,
    source: Arc<NamedSource<String>>,
    errors: Vec<ConfigError>,
}

/// Single error of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Setting, such as `join.lateness`. Empty if the error concerns the whole file.
    pub key: String,
    pub place: Location,
    pub message: String,
    /// Text to write instead.
    pub remedy: String,
}

/// Place of a faulty value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// No place: the value is missing, or is a default.
    Nowhere,
    /// Byte range of the file.
    File(Range<usize>),
    /// Name of an environment variable.
    Variable(String),
}

impl ConfigErrors {
    /// `masked` is the text of the file with secrets masked, of the same length in bytes.
    pub(super) fn new(name: &str, masked: String, errors: Vec<ConfigError>) -> ConfigErrors {
        ConfigErrors {
            name: name.to_owned(),
            source: Arc::new(NamedSource::new(name, masked)),
            errors,
        }
    }

    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// Returns each error with the text that its place refers to.
    pub fn each(&self) -> impl Iterator<Item = SourcedError> {
        self.errors.iter().map(|error| SourcedError {
            error: error.clone(),
            source: Arc::clone(&self.source),
        })
    }

    /// Returns each error as one line for a log: what is wrong, where, and what to write instead.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.errors.iter().map(|error| {
            let place = match &error.place {
                Location::File(span) => {
                    let line = LineStarts::of(self.source.inner()).at(span.start);
                    format!(" ({} line {line})", self.name)
                }
                Location::Nowhere | Location::Variable(_) => String::new(),
            };
            let remedy = match &*error.remedy {
                "" => String::new(),
                remedy => format!(": {remedy}"),
            };
            format!("{error}{place}{remedy}")
        })
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.errors.len() {
            1 => write!(f, "the configuration ({}) has an error", self.name),
            n => write!(f, "the configuration ({}) has {n} errors", self.name),
        }
    }
}

impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConfigErrors").field(&self.errors).finish()
    }
}

impl std::error::Error for ConfigErrors {}

/// Error with the text that its place refers to.
#[derive(Debug)]
pub struct SourcedError {
    error: ConfigError,
    /// Text of the file without secrets.
    source: Arc<NamedSource<String>>,
}

impl fmt::Display for SourcedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SourcedError {}

impl Diagnostic for SourcedError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let remedy = &self.error.remedy;
        (!remedy.is_empty()).then(|| Box::new(remedy) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Location::File(span) = &self.error.place else {
            return None;
        };
        let label = LabeledSpan::new_with_span(Some("here".to_owned()), span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Location::Variable(name) if self.key.is_empty() => write!(f, "{name}: {}", self.message),
            Location::Variable(name) => write!(f, "{} (from {name}): {}", self.key, self.message),
            _ if self.key.is_empty() => f.write_str(&self.message),
            _ => write!(f, "{}: {}", self.key, self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Origin of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingOrigin {
    Default,
    /// Line of the file, starting at 1.
    Line(usize),
    /// Name of an environment variable.
    Variable(String),
}

/// Byte offsets at which the lines of a text start.
#[derive(Default)]
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> LineStarts {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        LineStarts(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// Returns the number of the line with this byte, starting at 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte)
    }
}

/// Errors collected while a configuration is read.
#[derive(Default)]
pub(super) struct ErrorReport {
    /// File name as given by the operator, if there is a file.
    file: Option<String>,
    lines: LineStarts,
    errors: Vec<ConfigError>,
    faulty: BTreeSet<String>,
    /// Environment variable that gave a setting its value, by setting.
    variables: BTreeMap<String, String>,
    /// Byte range of each setting's value in the file.
    written: BTreeMap<String, Range<usize>>,
    /// Variables that look like settings, but are neither a setting nor close to one.
    strange_variables: Vec<String>,
}

impl ErrorReport {
    pub fn of_file(name: &str, text: &str) -> ErrorReport {
        ErrorReport {
            file: Some(name.to_owned()),
            lines: LineStarts::of(text),
            ..ErrorReport::default()
        }
    }

    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Notes that the value of `key` is in these bytes of the file. A variable may still override it.
    pub fn located_at(&mut self, key: &str, span: Range<usize>) {
        // Defaults and values of variables have no place in the file.
        if !span.is_empty() {
            self.written.insert(key.to_owned(), span);
        }
    }

    /// Returns the place of a setting in the file.
    pub fn place(&self, key: &str) -> Option<Spanned<()>> {
        let span = self.written.get(key)?;
        Some(Spanned::new(span.clone(), ()))
    }

    pub fn origin(&self, key: &str) -> SettingOrigin {
        match (self.variables.get(key), self.written.get(key)) {
            (Some(name), _) => SettingOrigin::Variable(name.clone()),
            (None, Some(span)) => SettingOrigin::Line(self.lines.at(span.start)),
            (None, None) => SettingOrigin::Default,
        }
    }

    /// Drops the error that `key` is missing, for settings that are only shown.
    pub fn forgive_missing(&mut self, key: &str) {
        self.errors
            .retain(|error| error.key != key || error.place != Location::Nowhere);
    }

    /// Drops the errors of settings without this prefix, and of unknown variables.
    pub fn forgive_others(&mut self, prefix: &str) {
        self.errors.retain(|error| error.key.starts_with(prefix));
    }

    /// Notes that the variable `name` sets `key`.
    pub fn came_from(&mut self, key: &str, name: &str) {
        self.variables.insert(key.to_owned(), name.to_owned());
    }

    /// Notes a variable that has no effect.
    pub fn is_strange(&mut self, variable: String) {
        self.strange_variables.push(variable);
    }

    pub fn strange_variables(&self) -> &[String] {
        &self.strange_variables
    }

    /// Returns whether a value was set, rather than being the default.
    pub fn is_written<T>(&self, key: &str, value: &Spanned<T>) -> bool {
        // Defaults have an empty span.
        self.variables.contains_key(key) || !value.span().is_empty()
    }

    /// Reports an error in `value`, or in a part of it, wherever it was written.
    pub fn refuse<T>(
        &mut self,
        key: &str,
        value: &Spanned<T>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let place = match self.variables.get(key) {
            Some(name) => Location::Variable(name.clone()),
            // Defaults have an empty span.
            None if value.span().is_empty() => Location::Nowhere,
            None => Location::File(value.span()),
        };
        self.refuse_at(key, place, message, remedy);
    }

    /// Reports an entry of a list that repeats another one.
    pub fn refuse_twice<T>(&mut self, key: &str, entry: &Spanned<T>, shown: impl fmt::Display) {
        let message = format!("{shown} is there twice");
        self.refuse(key, entry, message, "leave one of them out");
    }

    pub fn refuse_at(
        &mut self,
        key: &str,
        place: Location,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.faulty.insert(key.to_owned());
        let error = ConfigError {
            key: key.to_owned(),
            place,
            message: message.into(),
            remedy: remedy.into(),
        };
        // Entries of a variable have no places of their own, so several of them may have the same error.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Returns whether `key` has no error, so that others can be compared with it.
    pub fn is_sound(&self, key: &str) -> bool {
        !self.faulty.contains(key)
    }

    /// Returns all errors: errors in the file by line, then the others in the order in which they were found.
    pub fn into_errors(mut self) -> Vec<ConfigError> {
        // The sort is stable, so errors without a place keep their order.
        self.errors.sort_by_key(|error| match &error.place {
            Location::File(span) => span.start,
            _ => usize::MAX,
        });
        self.errors
    }
}

/// Returns the name in `known` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|name| {
            (
                strsim::normalized_damerau_levenshtein(&word, &name.to_lowercase()),
                name,
            )
        })
        // Names that are less similar are rarely what was meant.
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_setting_and_an_unrelated_word_does_not() {
        let known = ["brokers", "served_topic", "clicks_topic"];
        assert_eq!(nearest("borkers", known), Some("brokers"));
        assert_eq!(nearest("click_topic", known), Some("clicks_topic"));
        assert_eq!(nearest("zookeeper", known), None);
    }
}
