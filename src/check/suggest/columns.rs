//! Records side by side: for each path, what stands there in which of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::words::VAGUE;
use crate::ingest::wire::MAX_ID_BYTES;
use crate::ingest::wire::shape::Path;

/// Paths that are looked at; records may have names without end.
const MAX_PATHS: usize = 1_000;

/// The values of many records by path.
pub(super) struct Columns<'a>(Vec<Column<'a>>);

pub(super) struct Column<'a> {
    pub path: Path,
    /// By the number of the record, from 0; `null` is no value.
    pub values: BTreeMap<usize, &'a Value>,
}

/// Which records are meant, by their numbers.
pub(super) type Members = Vec<usize>;

impl<'a> Columns<'a> {
    pub fn of(records: impl IntoIterator<Item = &'a Value>) -> Columns<'a> {
        let mut finder = Finder {
            places: HashMap::new(),
            columns: Vec::new(),
        };
        for (number, record) in records.into_iter().enumerate() {
            finder.enter(&mut Vec::new(), record, number);
        }
        Columns(finder.columns)
    }

    /// Adds the fields of the surrounding records, by record number.
    pub fn with_outer(mut self, around: &'a [Value]) -> Columns<'a> {
        let outer = Columns::of(around).0.into_iter();
        self.0.extend(outer.filter_map(|column| {
            // Not what holds the events.
            let is_plain = column
                .values
                .values()
                .all(|value| !value.is_object() && !value.is_array());
            let is_json = column.values.values().any(|value| is_json_text(value));
            (is_plain && !is_json).then(|| Column {
                path: column.path.around(),
                ..column
            })
        }));
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &Column<'a>> {
        self.0.iter()
    }

    pub fn get(&self, path: &Path) -> Option<&Column<'a>> {
        self.iter().find(|column| column.path == *path)
    }
}

struct Finder<'a> {
    places: HashMap<Vec<&'a str>, Option<usize>>,
    columns: Vec<Column<'a>>,
}

impl<'a> Finder<'a> {
    /// As paths lead: through objects, and through arrays of one.
    fn enter(&mut self, names: &mut Vec<&'a str>, value: &'a Value, record: usize) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    names.push(name);
                    self.put(names, value, record);
                    self.enter(names, value, record);
                    names.pop();
                }
            }
            Value::Array(elements) if !names.is_empty() => {
                if let [only] = &elements[..] {
                    self.enter(names, only, record);
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, names: &[&'a str], value: &'a Value, record: usize) {
        let place = match self.places.get(names) {
            Some(place) => *place,
            None => {
                let path = Path::of(names).filter(|_| self.columns.len() < MAX_PATHS);
                let place = path.map(|path| {
                    self.columns.push(Column {
                        path,
                        values: BTreeMap::new(),
                    });
                    self.columns.len() - 1
                });
                self.places.insert(names.to_vec(), place);
                place
            }
        };
        if let Some(place) = place {
            self.columns[place].values.insert(record, value);
        }
    }
}

impl<'a> Column<'a> {
    /// Its last name.
    pub fn name(&self) -> &str {
        self.path.names().last().map_or("", String::as_str)
    }

    /// What hints at its meaning: its last name, behind the one before where it says little alone, as in `user.id`.
    pub fn called(&self) -> String {
        match self.path.names() {
            [.., parent, last] if VAGUE.contains(&last.as_str()) => format!("{parent} {last}"),
            _ => self.name().to_owned(),
        }
    }

    pub fn within<'m>(&'m self, members: &'m Members) -> impl Iterator<Item = &'a Value> + 'm {
        members
            .iter()
            .filter_map(|number| self.values.get(number).copied())
    }

    /// How many of these records have a value here for which this holds.
    pub fn count(&self, members: &Members, holds: impl Fn(&Value) -> bool) -> usize {
        self.within(members).filter(|value| holds(value)).count()
    }

    /// The distinct texts of these records, with their numbers; none where a value is no text, or there are more than `most`.
    pub fn words(&self, members: &Members, most: usize) -> Option<BTreeMap<&'a str, usize>> {
        let mut words = BTreeMap::new();
        for value in self.within(members) {
            *words.entry(value.as_str()?).or_default() += 1;
            if words.len() > most {
                return None;
            }
        }
        (!words.is_empty()).then_some(words)
    }
}

/// Returns true for text that is a JSON object or array. Such text is never an id.
pub(super) fn is_json_text(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.starts_with(['{', '['])
}

/// The ids of an array of them, or the one that a value is.
pub(super) fn ids(value: &Value) -> Vec<Cow<'_, str>> {
    match value {
        Value::Array(elements) if elements.iter().all(is_id) => elements.iter().filter_map(id).collect(),
        value => id(value).into_iter().collect(),
    }
}

/// The text of what may be an id.
pub(super) fn id(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(_) if is_json_text(value) => None,
        Value::String(text) if (1..=MAX_ID_BYTES).contains(&text.len()) => Some(Cow::Borrowed(text)),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

pub(super) fn is_id(value: &Value) -> bool {
    id(value).is_some()
}

/// A part of a whole, 0 of nothing.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
