//! Records as columns: the values of each path by record.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use abgauge_core::decode::MAX_ID_BYTES;
use abgauge_core::decode::shape::Path;
use serde_json::Value;

use super::words::VAGUE;

/// Maximum number of paths, since records may have any number of names.
const MAX_PATHS: usize = 1_000;

/// Maximum number of alternatives shown with the chosen field.
const MAX_OTHERS: usize = 3;

/// Values of many records by path.
pub(super) struct SampleColumns<'a>(Vec<SampleColumn<'a>>);

pub(super) struct SampleColumn<'a> {
    pub path: Path,
    /// Values by record number, from 0, without `null`.
    pub values: BTreeMap<usize, &'a Value>,
}

/// Numbers of selected records.
pub(super) type Members = Vec<usize>;

/// A field, and the number of records in which it can be read.
#[derive(Clone)]
pub(super) struct FieldChoice {
    pub path: Path,
    pub n: usize,
    pub others: Vec<(Path, usize)>,
}

impl FieldChoice {
    /// Makes a choice without other candidates.
    pub fn only(path: &Path, n: usize) -> FieldChoice {
        FieldChoice {
            path: path.clone(),
            n,
            others: Vec::new(),
        }
    }
}

/// Returns the best of the scored fields, or `None` if there are none.
pub(super) fn choice(mut judged: Vec<(f64, &SampleColumn, usize)>) -> Option<FieldChoice> {
    // The sort is stable, so the first of equal fields wins.
    judged.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut fields = judged.into_iter().map(|(_, column, n)| (column.path.clone(), n));
    let (path, n) = fields.next()?;
    Some(FieldChoice {
        path,
        n,
        others: fields.take(MAX_OTHERS).collect(),
    })
}

impl<'a> SampleColumns<'a> {
    pub fn of(records: impl IntoIterator<Item = &'a Value>) -> SampleColumns<'a> {
        let mut finder = Finder {
            places: HashMap::new(),
            columns: Vec::new(),
        };
        for (number, record) in records.into_iter().enumerate() {
            finder.enter(&mut Vec::new(), record, number);
        }
        SampleColumns(finder.columns)
    }

    /// Adds the fields of the surrounding records, by record number.
    pub fn with_outer(mut self, around: &'a [Rc<Value>]) -> SampleColumns<'a> {
        let outer = SampleColumns::of(around.iter().map(|record| &**record))
            .0
            .into_iter();
        self.0.extend(outer.filter_map(|column| {
            // The field that holds the events is skipped.
            let is_plain = column
                .values
                .values()
                .all(|value| !value.is_object() && !value.is_array());
            let is_json = column.values.values().any(|value| is_json_text(value));
            (is_plain && !is_json).then(|| SampleColumn {
                path: column.path.around(),
                ..column
            })
        }));
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &SampleColumn<'a>> {
        self.0.iter()
    }

    pub fn get(&self, path: &Path) -> Option<&SampleColumn<'a>> {
        self.iter().find(|column| column.path == *path)
    }
}

struct Finder<'a> {
    places: HashMap<Vec<&'a str>, Option<usize>>,
    columns: Vec<SampleColumn<'a>>,
}

impl<'a> Finder<'a> {
    /// Adds a value's fields as configured paths would reach them: through objects, and through arrays with one element.
    fn enter(&mut self, names: &mut Vec<&'a str>, value: &'a Value, record: usize) {
        match value {
            Value::Object(fields) => {
                // The decoder treats null as an absent field.
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
                // A path over the limit is remembered as `None`, so it is not tried again.
                let path = Path::of(names).filter(|_| self.columns.len() < MAX_PATHS);
                let place = path.map(|path| {
                    self.columns.push(SampleColumn {
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

impl<'a> SampleColumn<'a> {
    /// Returns the last name of the path.
    pub fn name(&self) -> &str {
        self.path.names().last().map_or("", String::as_str)
    }

    /// Returns the words that hint at its meaning: the last name, preceded by its parent if it is vague, as in `user.id`.
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

    /// Counts these records' values that satisfy `holds`.
    pub fn count(&self, members: &Members, holds: impl Fn(&Value) -> bool) -> usize {
        self.within(members).filter(|value| holds(value)).count()
    }

    /// Counts the distinct texts of these records. Returns `None` if a value is not text, or there are more than `most`.
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

/// Returns the IDs in an array of IDs, or the single ID of a value.
pub(super) fn ids(value: &Value) -> Vec<Cow<'_, str>> {
    match value {
        Value::Array(elements) if elements.iter().all(is_id) => elements.iter().filter_map(id).collect(),
        value => id(value).into_iter().collect(),
    }
}

/// Returns the value as text if it may be an ID.
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

/// Divides a part by the whole. Returns 0 if both are 0.
pub(super) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
