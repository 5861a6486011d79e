//! Explains how a record was read, or why it cannot be, for people.

use super::super::Decoder;
use super::super::schema::RawRecord;
use super::super::shape::{Nested, Path, Paths};
use super::super::value::Value;
use super::items::{FaultyElement, ItemPart};
use super::tree::{PathResult, Tree};
use super::{ClickedItem, EventValues, Field, LocatedRecord, Mapped, MappedFields, Problem, Sink, Texts};
use crate::engine::event::{Batch, Kind, Reason, Served};

/// Explanation of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    Served {
        request_id: String,
        /// Further parts of a composite id.
        further_ids: Vec<Option<String>>,
        user_id: Option<String>,
        /// Epoch milliseconds.
        ts_ms: i64,
        /// Experiment and arm, sorted by experiment.
        arms: Vec<(String, String)>,
        /// Experiments with an invalid arm.
        left_out: Vec<String>,
        /// Item ids in rank order.
        items: Vec<String>,
        /// Items that the list itself marks as clicked.
        clicked: Vec<String>,
        /// Number of skipped elements that are not items.
        n_skipped: u64,
        /// Fields with alternative paths, each with the path where it was found.
        alternatives: Vec<DecidingField>,
    },
    Click {
        request_id: String,
        /// Further parts of the id, as many as lists have; absent ones are `None`.
        further_ids: Vec<Option<String>>,
        user_id: Option<String>,
        /// Epoch milliseconds.
        ts_ms: i64,
        item: String,
        alternatives: Vec<DecidingField>,
    },
    /// Neither a list nor a click.
    Ignored(DecidingField),
    Refused {
        reason: Reason,
        place: Option<DecidingField>,
    },
}

/// A field that decided the fate of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidingField {
    /// Setting with the path of the field, such as `served.request_id`.
    pub setting: &'static str,
    /// Path where it was found, or all paths that were tried; empty if no setting has one.
    pub paths: Vec<String>,
    /// Enclosing element, if it is a part of another field: ``element 2 of `items` ``.
    pub within: Option<String>,
    /// The field's JSON, if it is present.
    pub value: Option<String>,
}

impl Decoder {
    /// Explains the result of [`Decoder::decode`] for each event of a record in words. It is slow.
    pub fn explain<'a>(&self, record: impl Into<RawRecord<'a>>, topic_kind: Option<Kind>) -> Vec<Explained> {
        let mut explained = Vec::new();
        let record = record.into();
        let merged = record.merged();
        self.mapped.each_event(
            LocatedRecord::of(record.with(merged.as_deref())),
            |fields| match fields {
                Ok(fields) => self.explain_event(&fields, topic_kind, &mut explained),
                Err(Problem { reason, field }) => explained.push(Explained::Refused {
                    reason,
                    place: field.and_then(|field| self.mapped.place_of_events(field)),
                }),
            },
        );
        explained
    }

    fn explain_event(&self, fields: &MappedFields, topic_kind: Option<Kind>, to: &mut Vec<Explained>) {
        let mapped = &*self.mapped;
        let (mut batch, mut texts) = (Batch::default(), Texts::default());
        let mut sink = Sink {
            hash: self.hash,
            max_items: self.max_items,
            max_experiments: self.max_experiments,
            schema: 0,
            composite_id: None,
            clicked: &mut Vec::new(),
            batch: &mut batch,
            texts: Some(&mut texts),
            unreadable: None,
        };
        let refused = |reason, field: Option<Field>| Explained::Refused {
            reason,
            place: field.map(|field| mapped.place_of_fault(field, reason, fields)),
        };
        match mapped.read(fields, topic_kind, &mut sink) {
            Ok(EventValues::Served {
                id,
                user,
                ts_ms,
                items,
                arms,
                n_skipped,
                ..
            }) => {
                // Only to look up the names of its arms.
                let list = Served {
                    id: 0,
                    user: None,
                    ts_ms,
                    items,
                    arms,
                };
                let names = batch.arms_of(&list).iter();
                to.push(Explained::Served {
                    further_ids: texts.further_ids,
                    request_id: id.into_owned(),
                    user_id: user.map(|user| user.into_owned()),
                    ts_ms,
                    arms: names
                        .map(|arm| [&arm.experiment, &arm.arm].map(|name| batch.text_of(name).to_owned()))
                        .map(|[experiment, arm]| (experiment, arm))
                        .collect(),
                    left_out: batch.bad_arms.keys().cloned().collect(),
                    items: texts.items,
                    clicked: texts.clicked,
                    n_skipped,
                    alternatives: mapped.alternatives(Kind::Served, fields),
                });
            }
            Ok(EventValues::Click {
                id,
                user,
                ts_ms,
                item,
            }) => {
                let click = |item: &str| Explained::Click {
                    request_id: id.clone().into_owned(),
                    further_ids: texts.further_ids.clone(),
                    user_id: user.clone().map(|user| user.into_owned()),
                    ts_ms,
                    item: item.to_owned(),
                    alternatives: mapped.alternatives(Kind::Click, fields),
                };
                match item {
                    ClickedItem::One(item) => to.push(click(&item)),
                    ClickedItem::Each(array) => to.extend(array.elements().into_iter().flatten().map(
                        |item| match item.id() {
                            Ok(item) => click(&item),
                            Err(reason) => refused(reason, Some(Field::Item)),
                        },
                    )),
                }
            }
            Ok(EventValues::Ignored(field)) => to.push(Explained::Ignored(mapped.place(field, fields))),
            Err(Problem { reason, field }) => to.push(refused(reason, field)),
        }
    }
}

impl Mapped {
    /// The path at which events were looked for.
    fn place_of_events(&self, field: Field) -> Option<DecidingField> {
        let path = match (field, &self.shape.nested) {
            (Field::Nested, Some(Nested::At(path))) => Some(path),
            (Field::Records, _) => self.shape.records.as_ref(),
            _ => None,
        };
        Some(DecidingField {
            setting: field.setting(),
            paths: vec![path?.to_string()],
            within: None,
            value: None,
        })
    }

    /// Returns the field that makes an event invalid, or the part of it that does.
    fn place_of_fault(&self, field: Field, reason: Reason, fields: &MappedFields) -> DecidingField {
        let kind = match field {
            Field::ServedFurther => Some(Kind::Served),
            Field::ClickFurther => Some(Kind::Click),
            _ => None,
        };
        if let Some(place) = kind.and_then(|kind| self.place_of_further(kind, fields)) {
            return place;
        }
        if let Some((paths, value)) = self.value_in_row(field, fields) {
            return DecidingField {
                setting: field.setting(),
                paths: paths_to(value, Some(paths), fields.objects),
                within: None,
                value: value.map(Value::to_json),
            };
        }
        let place = self.place(field, fields);
        // If there is a value, only one path leads to it.
        let found = self.found(field, fields).zip(place.paths.first());
        let inner = found.and_then(|(value, path)| match field {
            Field::Items if self.in_row.is_none() => self.place_in_items(value, path, reason),
            _ => None,
        });
        inner.unwrap_or(place)
    }

    /// The fields of a record of this kind that have alternative paths.
    fn alternatives(&self, kind: Kind, fields: &MappedFields) -> Vec<DecidingField> {
        let with_alternatives = Field::ALL.into_iter().filter(|field| {
            let has_alternatives = self.shape.path(*field).is_some_and(Paths::has_alternatives);
            has_alternatives && field.kind().is_none_or(|of| of == kind)
        });
        with_alternatives.map(|field| self.place(field, fields)).collect()
    }

    /// The part of an element that makes the list of items invalid.
    fn place_in_items(&self, array: Value, items: &str, reason: Reason) -> Option<DecidingField> {
        let FaultyElement {
            places,
            element,
            part,
        } = self.faulty_element(array, reason)?;
        let served = &self.shape.served;
        let (setting, path) = match part {
            ItemPart::Element => ("served.items", None),
            ItemPart::Id => ("served.item_id", served.item_id.as_ref()),
            ItemPart::Position => ("served.position", served.position.as_ref()),
            ItemPart::Clicked => ("served.clicked", served.clicked.as_ref()),
            ItemPart::Row => ("served.row_items", served.row_items.as_ref()),
        };
        let within = match places[..] {
            [row, place] => format!("element {place} of row {row} of `{items}`"),
            _ => format!("element {} of `{items}`", places.first()?),
        };
        Some(within_element(setting, path, within, element))
    }

    /// The first further part of an id that makes an event invalid.
    fn place_of_further(&self, kind: Kind, fields: &MappedFields) -> Option<DecidingField> {
        let path = self.faulty_further_id(kind, fields)?.clone();
        let object = fields.objects[usize::from(path.is_outer())];
        let paths = Paths::from(path);
        let value = match Tree::new([Some(&paths)]).find(object) {
            Ok([PathResult::Value(value)]) => Some(value.to_json()),
            _ => None,
        };
        let setting = match kind {
            Kind::Served => Field::ServedFurther.setting(),
            Kind::Click => Field::ClickFurther.setting(),
        };
        Some(DecidingField {
            setting,
            paths: vec![paths.first().to_string()],
            within: None,
            value,
        })
    }

    fn found<'a>(&self, field: Field, fields: &MappedFields<'a>) -> Option<Value<'a>> {
        self.shape.path(field)?;
        fields.optional(field).ok().flatten()
    }

    fn place(&self, field: Field, fields: &MappedFields) -> DecidingField {
        let value = self.found(field, fields);
        DecidingField {
            setting: field.setting(),
            paths: paths_to(value, self.shape.path(field), fields.objects),
            within: None,
            value: value.map(Value::to_json),
        }
    }
}

/// Returns a field of an element, or the element itself if there is no path.
fn within_element(
    setting: &'static str,
    paths: Option<&Paths>,
    within: String,
    element: Value,
) -> DecidingField {
    let value = match paths {
        None => Some(element),
        Some(paths) => match Tree::new([Some(paths)]).find(element) {
            Ok([PathResult::Value(value)]) => Some(value),
            _ => None,
        },
    };
    DecidingField {
        setting,
        paths: paths_to(value, paths, [element; 2]),
        within: Some(within),
        value: value.map(Value::to_json),
    }
}

/// The path that led to a value of the object or of the one around it; without a value, all of them.
fn paths_to(value: Option<Value>, paths: Option<&Paths>, objects: [Value; 2]) -> Vec<String> {
    let Some(paths) = paths else {
        return Vec::new();
    };
    // Two values may be equal, so compare places in the text.
    let leads_to = |path: &Path, value: Value| {
        let tree = Tree::new([Some(&Paths::from(path.clone()))]);
        let object = objects[usize::from(path.is_outer())];
        matches!(tree.find(object), Ok([PathResult::Value(found)]) if found.is_same_place(value))
    };
    let read = value.and_then(|value| paths.iter().find(|path| leads_to(path, value)));
    match read {
        Some(path) => vec![path.to_string()],
        None => paths.iter().map(ToString::to_string).collect(),
    }
}

impl Field {
    /// The kind of records that have it; `None` for both.
    fn kind(self) -> Option<Kind> {
        match self {
            Field::Kind | Field::Nested | Field::Records => None,
            Field::ServedRequest
            | Field::ServedFurther
            | Field::ServedUser
            | Field::ServedTs
            | Field::Items
            | Field::Position
            | Field::Clicked
            | Field::ClickedItems
            | Field::ClickedTs
            | Field::Experiments
            | Field::Experiment
            | Field::Arm => Some(Kind::Served),
            Field::Action
            | Field::ClickRequest
            | Field::ClickFurther
            | Field::ClickUser
            | Field::ClickTs
            | Field::Item => Some(Kind::Click),
        }
    }

    fn setting(self) -> &'static str {
        match self {
            Field::Kind => "type",
            Field::Action => "click.action",
            Field::ServedRequest | Field::ServedFurther => "served.request_id",
            Field::ServedUser => "served.user_id",
            Field::ServedTs => "served.ts",
            Field::Items => "served.items",
            Field::Position => "served.position",
            Field::Clicked => "served.clicked",
            Field::ClickedItems => "served.clicked_items",
            Field::ClickedTs => "served.clicked_ts",
            Field::Experiments => "served.experiments",
            Field::Experiment => "served.experiment",
            Field::Arm => "served.arm",
            Field::ClickRequest | Field::ClickFurther => "click.request_id",
            Field::ClickUser => "click.user_id",
            Field::ClickTs => "click.ts",
            Field::Item => "click.item",
            Field::Nested => "nested",
            Field::Records => "records",
        }
    }
}
