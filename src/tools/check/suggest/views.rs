//! Views of a sample: events as its records, as elements of an array in each record, or as JSON text.

use std::rc::Rc;

use abgauge_core::decode::shape::{Nested, Path, Shape};
use abgauge_core::engine::event::Kind;
use serde_json::Value;

use super::SampleRecord;
use super::columns::SampleColumns;

/// Maximum number of events to analyze in a view, since a record may have any number of events.
const MAX_EVENTS: usize = 10_000;

/// Events as a shape would read them, and the settings for that.
#[derive(Default)]
pub(super) struct SampleView {
    pub nested: Option<Nested>,
    pub records: Option<Path>,
    pub events: Vec<Value>,
    /// Surrounding record of each event, or empty without one.
    pub around: Vec<Rc<Value>>,
    /// Kind of events in each event's topic. `None` for both.
    pub topic_kinds: Vec<Option<Kind>>,
}

/// Returns all views of a sample, the plain one first.
pub(super) fn views(records: &[SampleRecord]) -> Vec<SampleView> {
    let values = records.iter().filter_map(|record| {
        let value: Value = serde_json::from_slice(&record.json).ok()?;
        Some((value, record.topic_kind))
    });
    // A record that is text may contain a whole event as JSON.
    let (objects, texts): (Vec<_>, Vec<_>) = values.partition(|(value, _)| value.is_object());
    let (objects, kinds): (Vec<Value>, Vec<Option<Kind>>) = objects.into_iter().unzip();
    let texts = texts.iter();
    let (events, topic_kinds) = texts
        .filter_map(|(text, kind)| Some((object_in(text)?, *kind)))
        .unzip();
    let whole = SampleView {
        nested: Some(Nested::Whole),
        events,
        topic_kinds,
        ..SampleView::default()
    };
    let mut views = Vec::new();
    for path in fields(&objects, |value| object_in(value).is_some()) {
        let pairs = objects.iter().zip(&kinds).filter_map(|(record, kind)| {
            let event = object_in(at(record, &path)?)?;
            Some((event, (Rc::new(record.clone()), *kind)))
        });
        let (events, (around, topic_kinds)) = pairs.unzip();
        views.push(SampleView {
            nested: Some(Nested::At(path)),
            records: None,
            events,
            around,
            topic_kinds,
        });
    }
    for path in fields(&objects, has_several) {
        let pairs = objects.iter().zip(&kinds).flat_map(|(record, kind)| {
            let events = at(record, &path).and_then(Value::as_array).into_iter().flatten();
            // All events of a record share it.
            let around = Rc::new(record.clone());
            events.map(move |event| (event.clone(), (Rc::clone(&around), *kind)))
        });
        let (events, (around, topic_kinds)) = pairs.take(MAX_EVENTS).unzip();
        views.push(SampleView {
            nested: None,
            records: Some(path),
            events,
            around,
            topic_kinds,
        });
    }
    let plain = SampleView {
        events: objects,
        topic_kinds: kinds,
        ..SampleView::default()
    };
    let all = [plain, whole].into_iter().chain(views);
    all.filter(|view| !view.events.is_empty()).collect()
}

/// Returns the view in which a shape reads a sample.
pub(super) fn of(records: &[SampleRecord], shape: &Shape) -> SampleView {
    let is_it = |view: &SampleView| (&view.nested, &view.records) == (&shape.nested, &shape.records);
    views(records).into_iter().find(is_it).unwrap_or_default()
}

impl SampleView {
    /// Returns the columns of the events and of the surrounding records.
    pub fn columns(&self) -> SampleColumns<'_> {
        SampleColumns::of(&self.events).with_outer(&self.around)
    }

    pub fn put(&self, shape: &mut Shape) {
        (shape.nested, shape.records) = (self.nested.clone(), self.records.clone());
    }
}

/// Parses text that is a JSON object.
fn object_in(value: &Value) -> Option<Value> {
    let text = value.as_str().filter(|text| text.trim_start().starts_with('{'))?;
    let inner: Value = serde_json::from_str(text).ok()?;
    inner.is_object().then_some(inner)
}

/// Returns true for an array of objects that each name their kind.
fn has_several(value: &Value) -> bool {
    let kinds = |element: &Value| {
        let fields = element.as_object();
        fields.is_some_and(|fields| fields.len() > 2 && fields.values().any(|value| value.is_string()))
    };
    let says_kind = |element: &Value| {
        element.as_object().is_some_and(|fields| {
            let mut names = fields.keys();
            names.any(|name| super::words::hint(name, &super::words::KIND) > 0.0)
        })
    };
    let elements = value.as_array();
    elements.is_some_and(|elements| {
        !elements.is_empty()
            && elements
                .iter()
                .all(|element| kinds(element) && says_kind(element))
    })
}

/// Returns fields that satisfy `is_one` in every record that has them, and that more than half of the records have. Searches
/// the top level and one level below.
fn fields(records: &[Value], is_one: impl Fn(&Value) -> bool) -> Vec<Path> {
    let columns = SampleColumns::of(records);
    let found = columns.iter().filter(|column| {
        column.path.names().len() <= 2
            && 2 * column.values.len() > records.len()
            && column.values.values().all(|value| is_one(value))
    });
    found.map(|column| column.path.clone()).collect()
}

fn at<'a>(record: &'a Value, path: &Path) -> Option<&'a Value> {
    super::items::at(record, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_record_share_it_and_their_number_is_bounded() {
        let event = r#"{"type":"click","request_id":"r","item":"i"}"#;
        let json = format!("{{\"events\":[{}]}}", vec![event; MAX_EVENTS + 1].join(","));
        let record = SampleRecord {
            place: "line 1".to_owned(),
            json: json.into_bytes(),
            topic_kind: None,
        };
        let views = views(&[record]);
        let view = views
            .iter()
            .find(|view| view.records.is_some())
            .expect("a view of events");
        assert_eq!((view.events.len(), view.around.len()), (MAX_EVENTS, MAX_EVENTS));
        assert!(
            view.around
                .iter()
                .all(|around| Rc::ptr_eq(around, &view.around[0]))
        );
    }
}
