//! What is wrong with a configuration: all of it at once, each with its place and what to write instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use toml::Spanned;

/// Everything that is wrong with a configuration, in the order of the file.
///
/// Rendered by miette, [each](ConfigErrors::each) shows its line; the values of Kafka properties are masked there.
pub struct ConfigErrors {
    name: String,
    source: Arc<NamedSource<String>>,
    errors: Vec<ConfigError>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting, such as `join.lateness`; empty where the file as a whole is meant.
    pub key: String,
    pub place: Location,
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

/// Where a faulty value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: it is missing, or a default.
    Nowhere,
    /// Bytes of the file.
    File(Range<usize>),
    /// The environment variable of this name.
    Variable(String),
}

impl ConfigErrors {
    /// `masked` is the text of the file without its secrets, byte for byte as long.
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

    /// Each of them by itself, with the text that it points into.
    pub fn each(&self) -> impl Iterator<Item = SourcedError> {
        self.errors.iter().map(|error| SourcedError {
            error: error.clone(),
            source: Arc::clone(&self.source),
        })
    }

    /// Each of them in one line, for a log: what is wrong, where, and what to write instead.
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

/// An error, and the text that its place is in.
#[derive(Debug)]
pub struct SourcedError {
    error: ConfigError,
    /// Without secrets.
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

/// Where the value of a setting came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingOrigin {
    Default,
    /// Of the file, from 1 on.
    Line(usize),
    /// The environment variable of this name.
    Variable(String),
}

/// Where the lines of a text begin.
#[derive(Default)]
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> LineStarts {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        LineStarts(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// The number of the line that this byte is in, from 1 on.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte)
    }
}

/// Collects errors while a configuration is read.
#[derive(Default)]
pub(super) struct ErrorReport {
    /// The file's name as the operator wrote it; none where there is no file.
    file: Option<String>,
    lines: LineStarts,
    errors: Vec<ConfigError>,
    faulty: BTreeSet<String>,
    /// By setting, the environment variable that gave its value.
    variables: BTreeMap<String, String>,
    /// By setting, the line of the file that has its value.
    written: BTreeMap<String, usize>,
    /// Variables that look like settings, are none, and are close to none.
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

    /// `key` has its value from these bytes of the file, unless a variable goes above it.
    pub fn stands_at(&mut self, key: &str, span: Range<usize>) {
        if !span.is_empty() {
            self.written.insert(key.to_owned(), self.lines.at(span.start));
        }
    }

    pub fn origin(&self, key: &str) -> SettingOrigin {
        match (self.variables.get(key), self.written.get(key)) {
            (Some(name), _) => SettingOrigin::Variable(name.clone()),
            (None, Some(line)) => SettingOrigin::Line(*line),
            (None, None) => SettingOrigin::Default,
        }
    }

    /// Withdraws the error that `key` is missing, when settings are only shown.
    pub fn forgive_missing(&mut self, key: &str) {
        self.errors
            .retain(|error| error.key != key || error.place != Location::Nowhere);
    }

    /// Takes back what is wrong with other settings than those that begin so, and with variables that are none.
    pub fn forgive_others(&mut self, prefix: &str) {
        self.errors.retain(|error| error.key.starts_with(prefix));
    }

    /// From here on `key` has its value from the variable `name`.
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

    /// Refuses `value`, or a part of it, wherever it was written.
    pub fn refuse<T>(
        &mut self,
        key: &str,
        value: &Spanned<T>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let place = match self.variables.get(key) {
            Some(name) => Location::Variable(name.clone()),
            None if value.span().is_empty() => Location::Nowhere,
            None => Location::File(value.span()),
        };
        self.refuse_at(key, place, message, remedy);
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
        // Entries of a variable have no places of their own.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Whether `key` stands as the operator meant it, so that others can be held against it.
    pub fn is_sound(&self, key: &str) -> bool {
        !self.faulty.contains(key)
    }

    /// Whether the operator gave `value`, rather than the default.
    pub fn is_given<T>(&self, key: &str, value: &Spanned<T>) -> bool {
        self.variables.contains_key(key) || !value.span().is_empty()
    }

    /// All errors: those of the file by line, then the others as they were found.
    pub fn into_errors(mut self) -> Vec<ConfigError> {
        self.errors.sort_by_key(|error| match &error.place {
            Location::File(span) => span.start,
            _ => usize::MAX,
        });
        self.errors
    }
}

/// The name among `known` that was probably meant by `word`.
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
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_word_and_a_stranger_none() {
        let known = ["brokers", "served_topic", "clicks_topic"];
        assert_eq!(nearest("borkers", known), Some("brokers"));
        assert_eq!(nearest("click_topic", known), Some("clicks_topic"));
        assert_eq!(nearest("zookeeper", known), None);
    }
}
