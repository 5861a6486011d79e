//! The way to an event for records of any [`Shape`]: the syntax of the whole is checked, then each field is read where its
//! path leads. What holds for values of our own shape holds here too, with the same reasons.

mod arms;
mod explain;
mod items;
mod tree;

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

pub use self::explain::{Explained, Place};
use self::items::InItems;
use self::tree::{Found, MAX_PATHS, Tree};
use super::hash::Hashes;
use super::scan::Scanner;
use super::shape::{Paths, Shape};
use super::{check_topic, json, time};
use crate::engine::event::{Batch, Body, Click, Kind, Reason, Served};

/// The fields of both kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Kind,
    Action,
    ServedRequest,
    ServedUser,
    ServedTs,
    Items,
    Experiments,
    /// These two only where the record itself names its experiment.
    Experiment,
    Arm,
    ClickRequest,
    ClickUser,
    ClickTs,
    Item,
}

const N_FIELDS: usize = 13;

/// A shape, made ready for reading.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    shape: Shape,
    record: Tree<N_FIELDS>,
    in_items: InItems,
    /// Within an element of the array of experiments: experiment and arm.
    in_element: Option<Tree<2>>,
    /// Within an arm that is an object: its name.
    in_arm: Option<Tree<1>>,
}

/// Why a record cannot be read, and by which field that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    pub reason: Reason,
    pub field: Option<Field>,
}

/// What a record says, in its own words.
#[derive(Debug)]
pub(super) enum Said<'a> {
    Served {
        id: Cow<'a, str>,
        user: Option<Cow<'a, str>>,
        ts_ms: i64,
        /// Of the sink's batch.
        items: Range<u32>,
        arms: Range<u32>,
        /// Elements of the list that are no items, and were passed over.
        n_skipped: u64,
    },
    Click {
        id: Cow<'a, str>,
        user: Option<Cow<'a, str>>,
        ts_ms: i64,
        item: Cow<'a, str>,
    },
    /// This field has a value that is none of ours.
    Ignored(Field),
}

/// Where the items and arms of a list go.
pub(super) struct Sink<'b> {
    pub hash: Hashes,
    pub max_items: usize,
    pub max_experiments: usize,
    pub batch: &'b mut Batch,
    /// The items as they are written, where somebody wants to see them.
    pub texts: Option<&'b mut Vec<String>>,
}

/// Where the fields of one record are.
struct Fields<'a>([Found<'a>; N_FIELDS]);

impl Mapped {
    /// # Panics
    /// If the shape has more than [`Shape::MAX_ALTERNATIVES`].
    pub fn new(shape: &Shape) -> Self {
        let served = &shape.served;
        let arms = &served.arms;
        let in_record = arms.experiments.is_none();
        let [experiment, arm] = [&arms.experiment, &arms.arm].map(Option::as_ref);
        Mapped {
            record: Tree::new(Field::ALL.map(|field| shape.path(field)))
                .skipping_empty(Field::ServedUser as usize)
                .skipping_empty(Field::ClickUser as usize),
            in_items: InItems::new(served),
            in_element: experiment
                .filter(|_| !in_record)
                .map(|experiment| Tree::new([Some(experiment), arm])),
            in_arm: arm.filter(|_| !in_record).map(|arm| Tree::new([Some(arm)])),
            shape: shape.clone(),
        }
    }

    /// What a record becomes; an invalid one may leave parts of itself in the arenas.
    pub fn body(&self, payload: Option<&[u8]>, topic_says: Option<Kind>, sink: &mut Sink) -> Body {
        let hash = sink.hash;
        let said = payload
            .ok_or(Problem::of_record(Reason::Tombstone))
            .and_then(|payload| self.read(payload, topic_says, sink));
        match said {
            Ok(Said::Served {
                id,
                user,
                ts_ms,
                items,
                arms,
                n_skipped,
            }) => {
                sink.batch.skipped_elements += n_skipped;
                Body::Served(Served {
                    id: hash.request(id.as_bytes()),
                    user: user.map(|user| hash.user(user.as_bytes())),
                    ts_ms,
                    items,
                    arms,
                })
            }
            Ok(Said::Click {
                id,
                user,
                ts_ms,
                item,
            }) => Body::Click(Click {
                id: hash.request(id.as_bytes()),
                user: user.map(|user| hash.user(user.as_bytes())),
                ts_ms,
                item: hash.item(item.as_bytes()),
            }),
            Ok(Said::Ignored(_)) => Body::Ignored,
            Err(problem) => Body::Invalid(problem.reason),
        }
    }

    fn read<'a>(
        &self,
        payload: &'a [u8],
        topic_says: Option<Kind>,
        sink: &mut Sink,
    ) -> Result<Said<'a>, Problem> {
        let fields = self.fields(payload).map_err(Problem::of_record)?;
        let kind = match self.kind(&fields, topic_says)? {
            Ok(kind) => kind,
            Err(other) => return Ok(Said::Ignored(other)),
        };
        check_topic(kind, topic_says).map_err(Problem::of(Field::Kind))?;
        match kind {
            Kind::Served => self.served(&fields, sink),
            Kind::Click => self.click(&fields),
        }
    }

    /// Checks the syntax of the whole payload; the fields are read later.
    fn fields<'a>(&self, payload: &'a [u8]) -> Result<Fields<'a>, Reason> {
        let json = std::str::from_utf8(payload).map_err(|_| Reason::NotJson)?;
        if let Some(found) = self.record.find_plain(json) {
            return found.map(Fields);
        }
        serde_json::from_str::<IgnoredAny>(json).map_err(|_| Reason::NotJson)?;
        if json::is_too_deep(json) {
            return Err(Reason::NotJson);
        }
        let object = json.trim_matches([' ', '\t', '\n', '\r']);
        self.record.find(object).map(Fields)
    }

    /// What a record is, or the field whose value is none of ours.
    fn kind(&self, fields: &Fields, topic_says: Option<Kind>) -> Result<Result<Kind, Field>, Problem> {
        let problem = Problem::of(Field::Kind);
        let kind = match fields.optional(Field::Kind).map_err(&problem)? {
            None => topic_says.or(self.shape.without_kind),
            Some(raw) => {
                let word = json::text(raw).map_err(&problem)?;
                let is_among = |words: &[String]| words.iter().any(|known| *known == word);
                match (
                    is_among(&self.shape.served.kinds),
                    is_among(&self.shape.click.kinds),
                ) {
                    (true, _) => Some(Kind::Served),
                    (false, true) => Some(Kind::Click),
                    (false, false) => return Ok(Err(Field::Kind)),
                }
            }
        };
        let kind = kind.ok_or(problem(Reason::MissingField))?;
        if kind == Kind::Click && self.shape.click.action.is_some() {
            let action = fields.required(Field::Action).and_then(json::text);
            let action = action.map_err(Problem::of(Field::Action))?;
            if !self.shape.click.actions.iter().any(|known| *known == action) {
                return Ok(Err(Field::Action));
            }
        }
        Ok(Ok(kind))
    }

    fn served<'a>(&self, fields: &Fields<'a>, sink: &mut Sink) -> Result<Said<'a>, Problem> {
        let field = Field::ServedRequest;
        let id = fields
            .required(field)
            .and_then(json::id)
            .map_err(Problem::of(field));
        let ts_ms = self.time(fields, Field::ServedTs);
        let field = Field::Items;
        let items = fields.required(field).and_then(|items| self.items(items, sink));
        let items = items.map_err(Problem::of(field));
        let arms = self.arms(fields, sink);
        let arms = arms.map_err(Problem::of(self.shape.field_of_arms()));
        let user = fields.user(Field::ServedUser);
        not_json_first([
            id.as_ref().err(),
            ts_ms.as_ref().err(),
            items.as_ref().err(),
            arms.as_ref().err(),
            user.as_ref().err(),
        ])?;
        // The first that is at fault is told.
        let (id, ts_ms) = (id?, ts_ms?);
        let (items, n_skipped) = items?;
        Ok(Said::Served {
            id,
            ts_ms,
            items,
            n_skipped,
            arms: arms?,
            user: user?,
        })
    }

    fn click<'a>(&self, fields: &Fields<'a>) -> Result<Said<'a>, Problem> {
        let id_in = |field| {
            fields
                .required(field)
                .and_then(json::id)
                .map_err(Problem::of(field))
        };
        let id = id_in(Field::ClickRequest);
        let ts_ms = self.time(fields, Field::ClickTs);
        let item = id_in(Field::Item);
        let user = fields.user(Field::ClickUser);
        not_json_first([
            id.as_ref().err(),
            ts_ms.as_ref().err(),
            item.as_ref().err(),
            user.as_ref().err(),
        ])?;
        Ok(Said::Click {
            id: id?,
            ts_ms: ts_ms?,
            item: item?,
            user: user?,
        })
    }

    fn time(&self, fields: &Fields, field: Field) -> Result<i64, Problem> {
        let read = |raw| match self.shape.ts_unit {
            None => time::epoch_ms_of(raw, self.shape.ts_zone),
            Some(unit) => time::in_unit(raw, unit, self.shape.ts_zone),
        };
        fields.required(field).and_then(read).map_err(Problem::of(field))
    }
}

impl Sink<'_> {
    /// Items that are ids without escapes, no more than allowed; `None` where there is anything else.
    fn plain_items(&mut self, array: &str) -> Option<()> {
        let (hash, items) = (self.hash, &mut self.batch.items);
        let most = items.len() + self.max_items;
        Scanner::new(array.as_bytes()).ids(|id| {
            items.push(hash.checked_item(id)?);
            (items.len() <= most).then_some(())
        })
    }

    fn item(&mut self, item: &str) {
        self.batch.items.push(self.hash.item(item.as_bytes()));
        if let Some(texts) = &mut self.texts {
            texts.push(item.to_owned());
        }
    }
}

impl Field {
    const ALL: [Field; N_FIELDS] = [
        Field::Kind,
        Field::Action,
        Field::ServedRequest,
        Field::ServedUser,
        Field::ServedTs,
        Field::Items,
        Field::Experiments,
        Field::Experiment,
        Field::Arm,
        Field::ClickRequest,
        Field::ClickUser,
        Field::ClickTs,
        Field::Item,
    ];
}

impl Shape {
    /// Where a field stands in the record.
    fn path(&self, field: Field) -> Option<&Paths> {
        let (served, click) = (&self.served, &self.click);
        let in_record = served.arms.experiments.is_none();
        match field {
            Field::Kind => self.kind.as_ref(),
            Field::Action => click.action.as_ref(),
            Field::ServedRequest => Some(&served.request_id),
            Field::ServedUser => served.user_id.as_ref(),
            Field::ServedTs => Some(&served.ts),
            Field::Items => Some(&served.items),
            Field::Experiments => served.arms.experiments.as_ref(),
            Field::Experiment => served.arms.experiment.as_ref().filter(|_| in_record),
            Field::Arm => served.arms.arm.as_ref().filter(|_| in_record),
            Field::ClickRequest => Some(&click.request_id),
            Field::ClickUser => click.user_id.as_ref(),
            Field::ClickTs => Some(&click.ts),
            Field::Item => Some(&click.item),
        }
    }

    /// Most paths behind the first ones of their fields, over all fields of a record.
    pub const MAX_ALTERNATIVES: usize = MAX_PATHS - N_FIELDS;

    /// Paths behind the first ones of their fields, over all fields of a record.
    pub fn n_alternatives(&self) -> usize {
        let paths = Field::ALL.into_iter().filter_map(|field| self.path(field));
        paths.map(|paths| paths.others().len()).sum()
    }

    /// The field to name where arms cannot be read.
    fn field_of_arms(&self) -> Field {
        match self.served.arms.experiments {
            Some(_) => Field::Experiments,
            None => Field::Arm,
        }
    }
}

impl<'a> Fields<'a> {
    fn of(&self, field: Field) -> Found<'a> {
        self.0[field as usize]
    }

    fn required(&self, field: Field) -> Result<&'a str, Reason> {
        self.of(field).required()
    }

    /// `null` is a value.
    fn optional(&self, field: Field) -> Result<Option<&'a str>, Reason> {
        match self.of(field) {
            Found::Nothing => Ok(None),
            found => found.required().map(Some),
        }
    }

    /// `null` is as good as nothing.
    fn unless_null(&self, field: Field) -> Result<Option<&'a str>, Reason> {
        Ok(self.optional(field)?.filter(|raw| *raw != "null"))
    }

    fn user(&self, field: Field) -> Result<Option<Cow<'a, str>>, Problem> {
        let user = self.unless_null(field);
        let user = user.and_then(|user| user.map(json::id).transpose());
        user.map_err(Problem::of(field))
    }
}

impl<'a> Found<'a> {
    fn required(self) -> Result<&'a str, Reason> {
        match self {
            Found::Value(raw) => Ok(raw),
            Found::Nothing => Err(Reason::MissingField),
            Found::Astray => Err(Reason::WrongType),
        }
    }
}

impl Problem {
    fn of_record(reason: Reason) -> Problem {
        Problem { reason, field: None }
    }

    fn of(field: Field) -> impl Fn(Reason) -> Problem {
        move |reason| Problem {
            reason,
            field: Some(field),
        }
    }
}

/// What is not JSON goes before all fields: text that no UTF-8 can hold, a doubled experiment.
fn not_json_first<const N: usize>(problems: [Option<&Problem>; N]) -> Result<(), Problem> {
    let mut problems = problems.into_iter().flatten();
    problems
        .find(|problem| problem.reason == Reason::NotJson)
        .map_or(Ok(()), |problem| Err(*problem))
}
