//! Fields of events that are not part of their shape: they select and group lists.

use super::super::shape::{Path, Paths};
use super::super::value::Value;
use super::MappedFields;
use super::tree::{PathResult, Tree};

/// Paths to fields, in the event or in the record around it.
#[derive(Debug, Clone)]
pub struct FurtherFields {
    fields: Vec<(bool, Tree<1>)>,
}

impl FurtherFields {
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a Path>) -> FurtherFields {
        let field = |path: &Path| (path.is_outer(), Tree::new([Some(&Paths::from(path.clone()))]));
        FurtherFields {
            fields: paths.into_iter().map(field).collect(),
        }
    }

    /// Returns the text of each field; `None` if it is absent, null, empty, an object or an array.
    pub(in super::super) fn texts(&self, event: &MappedFields) -> Vec<Option<String>> {
        let [inner, outer] = event.objects;
        let text = |(is_outer, tree): &(bool, Tree<1>)| {
            let [found] = tree.find(if *is_outer { outer } else { inner }).ok()?;
            match found {
                PathResult::Value(value) => text(value.only_text()),
                PathResult::Nothing | PathResult::Astray => None,
            }
        };
        self.fields.iter().map(text).collect()
    }
}

fn text(value: Value) -> Option<String> {
    let has_text = !value.is_null() && !value.is_array() && !value.is_object() && value != Value::Malformed;
    let text = has_text.then(|| match value.word() {
        Ok(word) => word.into_owned(),
        // Numbers with a fraction, and times.
        Err(_) => value.to_json(),
    });
    text.filter(|text| !text.is_empty())
}
