//! What a record says, or why it cannot be read, for people.

use super::super::Decoder;
use super::super::shape::Shape;
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
    },
    Click {
        request_id: String,
        user_id: Option<String>,
        /// Epoch milliseconds.
        ts_ms: i64,
        item: String,
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
    /// Where it stands; empty where nothing says so.
    pub path: String,
    /// Its JSON, if it is there.
    pub value: Option<String>,
}

impl Decoder {
    /// What [`Decoder::decode`] makes of a record, in words. It takes its time.
    pub fn explain(&self, payload: &[u8], topic_says: Option<Kind>) -> Explained {
        match &self.mapped {
            Some(mapped) => self.explain_as(mapped, payload, topic_says),
            None => self.explain_as(&Mapped::new(&Shape::default()), payload, topic_says),
        }
    }

    fn explain_as(&self, mapped: &Mapped, payload: &[u8], topic_says: Option<Kind>) -> Explained {
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
            },
            Ok(Said::Ignored(field)) => Explained::Ignored(mapped.place(field, payload)),
            Err(Problem { reason, field }) => Explained::Refused {
                reason,
                place: field.map(|field| mapped.place(field, payload)),
            },
        }
    }
}

impl Mapped {
    fn place(&self, field: Field, payload: &[u8]) -> Place {
        let fields = self.fields(payload);
        let value = fields.and_then(|fields| fields.optional(field));
        Place {
            setting: field.setting(),
            path: self
                .shape
                .path(field)
                .map(ToString::to_string)
                .unwrap_or_default(),
            value: value.ok().flatten().map(str::to_owned),
        }
    }
}

impl Field {
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
