//! What a record says, or why it cannot be read, for people.

use super::super::shape::{Path, Paths};
use super::super::{Decoder, check_label, json};
use super::arms::word;
use super::items::{FaultyElement, ItemPart};
use super::tree::{Found, Tree};
use super::{Field, Mapped, Problem, Said, Sink};
use crate::engine::event::{Batch, Kind, Reason, Served};

/// How a record is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    Served {
        request_id: String,
        user_id: Option<String>,
        /// Epoch milliseconds.
        ts_ms: i64,
        /// Experiment and arm, sorted by experiment.
        arms: Vec<(String, String)>,
        /// In rank order.
        items: Vec<String>,
        /// Elements of the list that are no items, and were passed over.
        n_skipped: u64,
        /// Fields of the record that have alternative paths, and where each was found.
        alternatives: Vec<Place>,
    },
    Click {
        request_id: String,
        user_id: Option<String>,
        /// Epoch milliseconds.
        ts_ms: i64,
        item: String,
        alternatives: Vec<Place>,
    },
    /// Neither a list nor a click.
    Ignored(Place),
    Refused {
        reason: Reason,
        place: Option<Place>,
    },
}

/// A field that decided what became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The setting that says where the field stands, such as `served.request_id`.
    pub setting: &'static str,
    /// Where it stands, or each place where it was looked for; empty where nothing says so.
    pub paths: Vec<String>,
    /// What it stands in, where that is a part of another field: ``element 2 of `items` ``.
    pub within: Option<String>,
    /// Its JSON, if it is there.
    pub value: Option<String>,
}

impl Decoder {
    /// What [`Decoder::decode`] makes of a record, in words. It takes its time.
    pub fn explain(&self, payload: &[u8], topic_says: Option<Kind>) -> Explained {
        let mapped = &*self.mapped;
        let (mut batch, mut texts) = (Batch::default(), Vec::new());
        let mut sink = Sink {
            hash: self.hash,
            max_items: self.max_items,
            max_experiments: self.max_experiments,
            batch: &mut batch,
            texts: Some(&mut texts),
        };
        match mapped.read(payload, topic_says, &mut sink) {
            Ok(Said::Served {
                id,
                user,
                ts_ms,
                items,
                arms,
                n_skipped,
            }) => {
                let list = Served {
                    id: 0,
                    user: None,
                    ts_ms,
                    items,
                    arms,
                };
                let names = batch.arms_of(&list).iter();
                Explained::Served {
                    request_id: id.into_owned(),
                    user_id: user.map(|user| user.into_owned()),
                    ts_ms,
                    arms: names
                        .map(|arm| [&arm.experiment, &arm.arm].map(|name| batch.text_of(name).to_owned()))
                        .map(|[experiment, arm]| (experiment, arm))
                        .collect(),
                    items: texts,
                    n_skipped,
                    alternatives: mapped.alternatives(Kind::Served, payload),
                }
            }
            Ok(Said::Click {
                id,
                user,
                ts_ms,
                item,
            }) => Explained::Click {
                request_id: id.into_owned(),
                user_id: user.map(|user| user.into_owned()),
                ts_ms,
                item: item.into_owned(),
                alternatives: mapped.alternatives(Kind::Click, payload),
            },
            Ok(Said::Ignored(field)) => Explained::Ignored(mapped.place(field, payload)),
            Err(Problem { reason, field }) => Explained::Refused {
                reason,
                place: field.map(|field| mapped.place_of_fault(field, reason, payload)),
            },
        }
    }
}

impl Mapped {
    /// The field that makes a record invalid; a part of one where it is that.
    fn place_of_fault(&self, field: Field, reason: Reason, payload: &[u8]) -> Place {
        let place = self.place(field, payload);
        // Where there is a value, the path to it is the only one.
        let found = place.value.as_deref().zip(place.paths.first());
        let inner = found.and_then(|(value, path)| match field {
            Field::Items => self.place_in_items(value, path, reason),
            Field::Experiments => self.place_in_experiments(value, path, reason),
            _ => None,
        });
        inner.unwrap_or(place)
    }

    /// The fields of a record of this kind that have alternative paths.
    fn alternatives(&self, kind: Kind, payload: &[u8]) -> Vec<Place> {
        let fields = Field::ALL.into_iter().filter(|field| {
            let has_alternatives = self.shape.path(*field).is_some_and(Paths::has_alternatives);
            has_alternatives && field.kind().is_none_or(|of| of == kind)
        });
        fields.map(|field| self.place(field, payload)).collect()
    }

    /// The part of an element that makes the list of items invalid.
    fn place_in_items(&self, array: &str, items: &str, reason: Reason) -> Option<Place> {
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
            ItemPart::Row => ("served.row_items", served.row_items.as_ref()),
        };
        let within = match places[..] {
            [row, place] => format!("element {place} of row {row} of `{items}`"),
            _ => format!("element {} of `{items}`", places.first()?),
        };
        Some(within_element(setting, path, within, element))
    }

    /// The part of an element of the array of experiments, or of an object that is an arm, that makes the list invalid.
    fn place_in_experiments(&self, value: &str, all: &str, reason: Reason) -> Option<Place> {
        let arms = &self.shape.served.arms;
        let parts = [
            ("served.experiment", arms.experiment.as_ref()),
            ("served.arm", arms.arm.as_ref()),
        ];
        let faulty = |element: &str, within: String| {
            let fault = |path: &Paths| {
                let [found] = Tree::new([Some(path)]).find(element).ok()?;
                let name = found.required().and_then(word);
                name.and_then(|name| check_label(&name)).err()
            };
            let is_faulty = |path: &&Paths| fault(path) == Some(reason);
            let faulty = parts
                .iter()
                .find_map(|(setting, path)| Some((setting, path.filter(is_faulty)?)));
            faulty.map(|(setting, path)| within_element(setting, Some(path), within, element))
        };
        let counts = |name: &str| arms.only.is_empty() || arms.only.iter().any(|only| only == name);
        if value.starts_with('[') {
            let experiment = arms.experiment.as_ref()?;
            let is_passed_over = |element: &str| match Tree::new([Some(experiment)]).find(element) {
                Ok([Found::Value(name)]) => word(name).is_ok_and(|name| !counts(&name)),
                _ => false,
            };
            let elements = json::elements(value).ok()?.zip(1..);
            let mut objects =
                elements.filter(|(element, _)| element.starts_with('{') && !is_passed_over(element));
            return objects.find_map(|(element, n)| faulty(element, format!("element {n} of `{all}`")));
        }
        let mut entries = json::entries(value).ok()?;
        entries.find_map(|(name, arm)| {
            let name = json::text(name).ok()?;
            match arm.starts_with('{') && counts(&name) && arms.arm.is_some() {
                true => faulty(arm, format!("`{name}` of `{all}`")),
                false => None,
            }
        })
    }

    fn place(&self, field: Field, payload: &[u8]) -> Place {
        let fields = self.fields(payload);
        let value = fields.and_then(|fields| fields.optional(field));
        let value = value.ok().flatten();
        let record = std::str::from_utf8(payload).unwrap_or_default();
        let record = record.trim_matches([' ', '\t', '\n', '\r']);
        Place {
            setting: field.setting(),
            paths: paths_to(value, self.shape.path(field), record),
            within: None,
            value: value.map(str::to_owned),
        }
    }
}

/// A field of an element, or the element itself where there is no path.
fn within_element(setting: &'static str, paths: Option<&Paths>, within: String, element: &str) -> Place {
    let value = match paths {
        None => Some(element),
        Some(paths) => match Tree::new([Some(paths)]).find(element) {
            Ok([Found::Value(value)]) => Some(value),
            _ => None,
        },
    };
    Place {
        setting,
        paths: paths_to(value, paths, element),
        within: Some(within),
        value: value.map(str::to_owned),
    }
}

/// The path that led to a value of the object; without a value, all of them.
fn paths_to(value: Option<&str>, paths: Option<&Paths>, object: &str) -> Vec<String> {
    let Some(paths) = paths else {
        return Vec::new();
    };
    // Two values may be alike: the one that was read is known by its place in the text.
    let leads_to = |path: &Path, value: &str| {
        let tree = Tree::new([Some(&Paths::from(path.clone()))]);
        matches!(tree.find(object), Ok([Found::Value(found)]) if std::ptr::eq(found, value))
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
            Field::Kind => None,
            Field::ServedRequest
            | Field::ServedUser
            | Field::ServedTs
            | Field::Items
            | Field::Experiments
            | Field::Experiment
            | Field::Arm => Some(Kind::Served),
            Field::Action | Field::ClickRequest | Field::ClickUser | Field::ClickTs | Field::Item => {
                Some(Kind::Click)
            }
        }
    }

    fn setting(self) -> &'static str {
        match self {
            Field::Kind => "type",
            Field::Action => "click.action",
            Field::ServedRequest => "served.request_id",
            Field::ServedUser => "served.user_id",
            Field::ServedTs => "served.ts",
            Field::Items => "served.items",
            Field::Experiments => "served.experiments",
            Field::Experiment => "served.experiment",
            Field::Arm => "served.arm",
            Field::ClickRequest => "click.request_id",
            Field::ClickUser => "click.user_id",
            Field::ClickTs => "click.ts",
            Field::Item => "click.item",
        }
    }
}
