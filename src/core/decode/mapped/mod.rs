//! Reads events from records of any [`Shape`]: checks the syntax of the whole, then reads each field at its path. The rules for
//! values of our own format apply here too, with the same reasons.

mod arms;
mod composite;
mod direct;
mod explain;
mod further;
mod items;
mod row;
mod tree;

use std::ops::Range;

use serde::de::IgnoredAny;

pub(super) use self::composite::CompositeId;
use self::composite::FurtherIds;
use self::direct::Direct;
pub(super) use self::direct::{AvroPlan, DirectReader, Plans, ProtobufPlan};
pub use self::direct::{Cell, CellDigits, CellForm, CellPart, CellReader, Outlines};
pub use self::explain::{DecidingField, Explained};
pub use self::further::FurtherFields;
use self::items::InItems;
use self::row::InRow;
use self::tree::{MAX_PATHS, PathResult, Tree};
use super::hash::Hashes;
use super::no_user::NoUser;
use super::scan::Scanner;
use super::schema::{RawRecord, Schema};
use super::shape::{Nested, Path, Paths, Shape};
use super::value::{Text, Value};
use super::{MAX_ID_BYTES, check_topic, json};
use crate::engine::event::{
    Batch, Body, Click, Kind, Reason, RefusedClick, Served, Unreadable, UnreadableList,
};

/// The fields of both kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Kind,
    Action,
    ServedRequest,
    ServedUser,
    ServedTs,
    Items,
    ClickedItems,
    ClickedTs,
    Experiments,
    /// Used, like `Arm`, only if the record itself names its experiment.
    Experiment,
    Arm,
    ClickRequest,
    ClickUser,
    ClickTs,
    Item,
    /// Further parts of a composite id, each kind's together: they are looked for only if there are any.
    ServedFurther,
    ClickFurther,
    /// Fields of records that are one shown item each: they are looked for only there.
    Position,
    Clicked,
    /// Not fields of an event: `nested` and `records` locate the events.
    Nested,
    Records,
}

const N_FIELDS: usize = 15;

/// A shape, made ready for reading.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    shape: Shape,
    no_user: NoUser,
    /// Locates the JSON text of a record.
    nested: Option<Tree<1>>,
    /// Locates the array of events in a record.
    records: Option<Tree<1>>,
    /// Within an event.
    event: Tree<N_FIELDS>,
    /// Within the record around it, if any path leads from there.
    outer: Option<Tree<N_FIELDS>>,
    in_items: InItems,
    /// Fast path, if the shape has one.
    direct: Option<Direct>,
    /// Position and click flag within a record that is one shown item.
    in_row: Option<InRow>,
    /// Further parts of ids, for lists and clicks.
    further_ids: [Option<FurtherIds>; 2],
    /// Within an element of the array of experiments: experiment and arm.
    in_element: Option<Tree<2>>,
    /// Within an arm that is an object: its name.
    in_arm: Option<Tree<1>>,
}

/// Reason why a record cannot be read, with the field that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    pub reason: Reason,
    pub field: Option<Field>,
}

/// The values of an event, not yet hashed.
#[derive(Debug)]
pub(super) enum EventValues<'a> {
    Served {
        id: Text<'a>,
        user: Option<Text<'a>>,
        ts_ms: i64,
        /// Range in the sink's batch.
        items: Range<u32>,
        arms: Range<u32>,
        /// Number of skipped elements of the list that are not items.
        n_skipped: u64,
        /// Time of the list's own clicks, whose items are in [`Sink::clicked`].
        clicked_ts_ms: i64,
    },
    Click {
        id: Text<'a>,
        user: Option<Text<'a>>,
        ts_ms: i64,
        item: ClickedItem<'a>,
    },
    /// The field has a value that marks a record as not ours.
    Ignored(Field),
}

/// The item, or items, of a click.
#[derive(Debug)]
pub(super) enum ClickedItem<'a> {
    One(Text<'a>),
    /// An array of ids, each a click of its own.
    Each(Value<'a>),
}

/// Destination of the items and arms of a list.
pub(super) struct Sink<'b> {
    pub hash: Hashes,
    pub max_items: usize,
    pub max_experiments: usize,
    /// Hash of the record's schema; 0 for JSON.
    pub schema: u64,
    pub batch: &'b mut Batch,
    /// The id of the event, if ids have several parts: its hash is then not that of the first part alone.
    pub composite_id: Option<CompositeId>,
    /// Items of the list's own clicks.
    pub clicked: &'b mut Vec<u64>,
    /// Items as text, for explanations.
    pub texts: Option<&'b mut Texts>,
    /// Readable parts of an event that is invalid.
    pub unreadable: Option<Unreadable>,
}

/// The items of a list as text.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub items: Vec<String>,
    pub clicked: Vec<String>,
    /// Further parts of the id.
    pub further_ids: Vec<Option<String>>,
}

/// Locations of one event's fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedFields<'a> {
    found: [PathResult<'a>; N_FIELDS],
    /// The event, and the record around it.
    objects: [Value<'a>; 2],
}

impl Mapped {
    /// # Panics
    /// If the shape has more than [`Shape::MAX_ALTERNATIVES`].
    pub fn new(shape: &Shape, no_user: NoUser) -> Self {
        let served = &shape.served;
        let arms = &served.arms;
        let in_record = arms.experiments.is_none();
        let [experiment, arm] = [&arms.experiment, &arms.arm].map(Option::as_ref);
        let paths = |is_outer| Field::ALL.map(|field| shape.path(field)?.that_are(is_outer));
        let tree = |paths: &[Option<Paths>; N_FIELDS]| {
            Tree::new(paths.each_ref().map(Option::as_ref))
                .skipping(Field::ServedUser as usize, &no_user)
                .skipping(Field::ClickUser as usize, &no_user)
        };
        let (inner, outer) = (paths(false), paths(true));
        let (event, in_items) = (tree(&inner), InItems::new(served));
        let at = |path: &Path| Tree::new([Some(&Paths::from(path.clone()))]);
        Mapped {
            nested: match &shape.nested {
                Some(Nested::At(path)) => Some(at(path)),
                Some(Nested::Whole) | None => None,
            },
            records: shape.records.as_ref().map(at),
            direct: Direct::new(shape, &event, in_items.item()),
            event,
            outer: outer.iter().any(Option::is_some).then(|| tree(&outer)),
            in_items,
            in_row: InRow::new(served),
            further_ids: [&served.further_ids, &shape.click.further_ids].map(|paths| FurtherIds::new(paths)),
            in_element: experiment
                .filter(|_| !in_record)
                .map(|experiment| Tree::new([Some(experiment), arm])),
            in_arm: arm.filter(|_| !in_record).map(|arm| Tree::new([Some(arm)])),
            shape: shape.clone(),
            no_user,
        }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn no_user(&self) -> &NoUser {
        &self.no_user
    }

    /// Calls `take` with the fields of each event of a record, or with the problem of the record.
    pub fn each_event(
        &self,
        record: Result<LocatedRecord, Reason>,
        mut take: impl FnMut(Result<MappedFields, Problem>),
    ) {
        match record {
            Err(reason) => take(Err(Problem::of_record(reason))),
            Ok(record) => match self.text_of(record) {
                Ok(EventText::Itself) => self.each_event_of(record, None, &mut take),
                Ok(EventText::Inner(value)) => {
                    self.each_event_of(LocatedRecord { value }, Some(record), &mut take)
                }
                Ok(EventText::Within(text)) => match LocatedRecord::of_json(text.as_bytes()) {
                    Ok(inner) => self.each_event_of(inner, Some(record), &mut take),
                    Err(reason) => take(Err(Problem::of(Field::Nested)(reason))),
                },
                Err(problem) => take(Err(problem)),
            },
        }
    }

    /// The JSON text of a record, if the shape has one. JSON that is not text is taken as it is.
    fn text_of<'a>(&self, record: LocatedRecord<'a>) -> Result<EventText<'a>, Problem> {
        let Some(nested) = &self.shape.nested else {
            return Ok(EventText::Itself);
        };
        let problem = Problem::of(Field::Nested);
        let value = match &self.nested {
            Some(tree) => {
                let [found] = record.find(tree).map_err(Problem::of_record)?;
                found.required().map_err(&problem)?
            }
            None => record.checked().map_err(Problem::of_record)?,
        };
        match (nested, value) {
            (_, value) if value.is_text() => value.text().map(EventText::Within).map_err(problem),
            (Nested::Whole, _) => Ok(EventText::Itself),
            (Nested::At(_), value) => Ok(EventText::Inner(value)),
        }
    }

    fn each_event_of(
        &self,
        record: LocatedRecord,
        around: Option<LocatedRecord>,
        take: &mut impl FnMut(Result<MappedFields, Problem>),
    ) {
        let Some(tree) = &self.records else {
            let around = around.unwrap_or(record);
            let fields = record.find(&self.event).map_err(Problem::of_record);
            let fields = fields.and_then(|found| self.with_outer(found, [record.value, around.value]));
            return take(fields);
        };
        let events = record.find(tree).map_err(Problem::of_record);
        let events = events.and_then(|[found]| {
            let array = found.required();
            array
                .and_then(Value::elements)
                .map_err(Problem::of(Field::Records))
        });
        match events {
            Err(problem) => take(Err(problem)),
            Ok(events) => {
                for event in events {
                    let fields = self.event.find(event).map_err(Problem::of_record);
                    take(fields.and_then(|found| self.with_outer(found, [event, record.value])));
                }
            }
        }
    }

    /// Fills absent fields from the surrounding record.
    fn with_outer<'a>(
        &self,
        mut found: [PathResult<'a>; N_FIELDS],
        objects: [Value<'a>; 2],
    ) -> Result<MappedFields<'a>, Problem> {
        if let Some(tree) = &self.outer {
            let outer = tree.find(objects[1]).map_err(Problem::of_record)?;
            let users = [Field::ServedUser, Field::ClickUser].map(|field| field as usize);
            for (field, (found, outer)) in found.iter_mut().zip(outer).enumerate() {
                let no_user = users.contains(&field).then_some(&self.no_user);
                // `null` or a placeholder in the event gives way only to a real value around it.
                let gives_way = *found == PathResult::Nothing || outer.is_there(no_user);
                if !found.is_there(no_user) && gives_way {
                    *found = outer;
                }
            }
        }
        Ok(MappedFields { found, objects })
    }

    /// Pushes the body of an event and, for a list, its own clicks.
    pub fn body(
        &self,
        said: Result<EventValues, Problem>,
        sink: &mut Sink,
        mut push: impl FnMut(&mut Batch, Body),
    ) {
        let hash = sink.hash;
        match said {
            Ok(EventValues::Served {
                id,
                user,
                ts_ms,
                items,
                arms,
                n_skipped,
                clicked_ts_ms,
            }) => {
                sink.batch.skipped_elements += n_skipped;
                let id = match sink.composite_id.take() {
                    None => hash.request(id.as_bytes()),
                    Some(composite) => composite.hash,
                };
                let user = user.map(|user| hash.user(user.as_bytes()));
                let list = Served {
                    id,
                    user,
                    ts_ms,
                    items,
                    arms,
                };
                push(sink.batch, Body::Served(list));
                for item in sink.clicked.drain(..) {
                    let click = Click {
                        id,
                        user,
                        ts_ms: clicked_ts_ms,
                        item,
                    };
                    push(sink.batch, Body::Click(click));
                }
            }
            Ok(EventValues::Click {
                id,
                user,
                ts_ms,
                item,
            }) => {
                let (id, names_all) = sink.id_of_click(&id);
                let user = user.map(|user| hash.user(user.as_bytes()));
                let click = |item: &str| {
                    let click = Click {
                        id,
                        user,
                        ts_ms,
                        item: hash.item(item.as_bytes()),
                    };
                    match names_all {
                        true => Body::Click(click),
                        false => Body::PartialClick(click),
                    }
                };
                match item {
                    ClickedItem::One(item) => push(sink.batch, click(&item)),
                    ClickedItem::Each(array) => {
                        // `clicked_item` has made sure that this is an array.
                        for item in array.elements().into_iter().flatten() {
                            let body = item.id().map(|item| click(&item));
                            let body = body.unwrap_or_else(|reason| {
                                let refused = RefusedClick {
                                    id,
                                    is_partial: !names_all,
                                    user,
                                    ts_ms: Some(ts_ms),
                                };
                                let unreadable = sink.batch.push_unreadable(Unreadable::Click(refused));
                                Body::Invalid(reason, Some(unreadable))
                            });
                            push(sink.batch, body);
                        }
                    }
                }
            }
            Ok(EventValues::Ignored(_)) => push(sink.batch, Body::Ignored),
            Err(problem) => {
                let unreadable = sink.unreadable.take();
                let unreadable = unreadable.map(|event| sink.batch.push_unreadable(event));
                push(sink.batch, Body::Invalid(problem.reason, unreadable));
            }
        }
    }

    /// Reads a plain record with one event by the fast path. `None` if it must be read by [`Mapped::read`]; the batch may then
    /// contain parts of it.
    #[inline]
    pub fn read_directly(
        &self,
        record: RawRecord,
        topic_kind: Option<Kind>,
        reader: &mut DirectReader,
    ) -> Option<Body> {
        let direct = self.direct.as_ref()?;
        match record.schema {
            None => direct.json(record.bytes, topic_kind, reader),
            Some(Schema::Avro(schema)) => direct.avro(schema, record.bytes, topic_kind, reader),
            Some(Schema::Protobuf(schema)) => direct.protobuf(schema, record.bytes, topic_kind, reader),
        }
    }

    pub fn read<'a>(
        &self,
        fields: &MappedFields<'a>,
        topic_kind: Option<Kind>,
        sink: &mut Sink,
    ) -> Result<EventValues<'a>, Problem> {
        let kind = match self.kind(fields, topic_kind)? {
            Ok(kind) => kind,
            Err(other) => return Ok(EventValues::Ignored(other)),
        };
        check_topic(kind, topic_kind).map_err(Problem::of(Field::Kind))?;
        match kind {
            Kind::Served => self.served(fields, sink),
            Kind::Click => self.click(fields, sink),
        }
    }

    /// Returns the kind of a record, or the field that marks it as not ours.
    fn kind(&self, fields: &MappedFields, topic_kind: Option<Kind>) -> Result<Result<Kind, Field>, Problem> {
        let problem = Problem::of(Field::Kind);
        let kind = match fields.optional(Field::Kind).map_err(&problem)? {
            None => topic_kind.or(self.shape.without_kind),
            Some(value) => {
                let word = value.only_text().text().map_err(&problem)?;
                let is_among = |words: &[String]| words.iter().any(|known| **known == *word);
                match (
                    is_among(&self.shape.served.kinds),
                    is_among(&self.shape.click.kinds),
                ) {
                    (true, false) => Some(Kind::Served),
                    (false, true) => Some(Kind::Click),
                    // For example, the type of an inserted row, with a table for each kind.
                    (true, true) => topic_kind.or(self.shape.without_kind),
                    (false, false) => return Ok(Err(Field::Kind)),
                }
            }
        };
        let kind = kind.ok_or(problem(Reason::MissingField))?;
        if kind == Kind::Click && self.shape.click.action.is_some() {
            let action = fields.required(Field::Action).and_then(Value::text);
            let action = action.map_err(Problem::of(Field::Action))?;
            if !self.shape.click.actions.iter().any(|known| **known == *action) {
                return Ok(Err(Field::Action));
            }
        }
        Ok(Ok(kind))
    }

    fn served<'a>(&self, fields: &MappedFields<'a>, sink: &mut Sink) -> Result<EventValues<'a>, Problem> {
        let field = Field::ServedRequest;
        let id = fields
            .required(field)
            .and_then(Value::id)
            .map_err(Problem::of(field));
        let composite = self.composite_id(fields, Kind::Served, sink);
        let ts_ms = self.time(fields, Field::ServedTs);
        // An event that turned out to be invalid may have left clicks.
        sink.clicked.clear();
        let field = Field::Items;
        let items = match (&self.in_row, self.shape.served.absent_is_empty) {
            (Some(row), _) => self.row(row, fields, sink).map(|item| (item, 0)),
            (None, absent_is_empty) => {
                let items = match absent_is_empty {
                    true => fields.unless_null(field),
                    false => fields.required_whole(field).map(Some),
                };
                let items = items.and_then(|items| self.items(items.unwrap_or(Value::Json("[]")), sink));
                items.map_err(Problem::of(field))
            }
        };
        let arms = self.arms(fields, sink);
        let arms = arms.map_err(Problem::of(self.shape.field_of_arms()));
        let user = fields.user(Field::ServedUser, &self.no_user);
        let clicks = self.clicks_of_list(fields, sink);
        let problems = [
            id.as_ref().err(),
            ts_ms.as_ref().err(),
            items.as_ref().err(),
            arms.as_ref().err(),
            user.as_ref().err(),
            clicks.as_ref().err(),
            composite.as_ref().err(),
        ];
        // Refused lists are counted by arm, so keep the arms of a list that is otherwise unreadable.
        if let (Ok(arms), true) = (&arms, problems.iter().any(Option::is_some)) {
            let user = user.as_ref().ok().and_then(Option::as_ref);
            sink.unreadable = Some(Unreadable::List(UnreadableList {
                user: user.map(|user| sink.hash.user(user.as_bytes())),
                ts_ms: ts_ms.as_ref().ok().copied(),
                arms: arms.clone(),
            }));
        }
        unreadable_first(problems)?;
        // Report the first faulty field, in the order of the checks.
        let id = id?;
        composite?;
        let ts_ms = ts_ms?;
        let (items, n_skipped) = items?;
        Ok(EventValues::Served {
            id,
            ts_ms,
            items,
            n_skipped,
            arms: arms?,
            user: user?,
            clicked_ts_ms: clicks?.unwrap_or(ts_ms),
        })
    }

    /// Takes the clicked items outside the list's items. Returns the time of all clicks in the list, if they have one of their
    /// own.
    fn clicks_of_list(&self, fields: &MappedFields, sink: &mut Sink) -> Result<Option<i64>, Problem> {
        if let Some(items) = fields
            .unless_null(Field::ClickedItems)
            .map_err(Problem::of(Field::ClickedItems))?
        {
            let mut n_clicked = 0;
            let mut take = |item: Value| {
                n_clicked += 1;
                match n_clicked > sink.max_items {
                    true => Err(Reason::TooManyItems),
                    false => item.id().map(|item| sink.click(&item)),
                }
            };
            let taken = match items.is_array() {
                true => items.elements().and_then(|mut items| items.try_for_each(take)),
                false => take(items),
            };
            taken.map_err(Problem::of(Field::ClickedItems))?;
        }
        let field = Field::ClickedTs;
        let has_time = fields.unless_null(field).map_err(Problem::of(field))?.is_some();
        has_time.then(|| self.time(fields, field)).transpose()
    }

    fn click<'a>(&self, fields: &MappedFields<'a>, sink: &mut Sink) -> Result<EventValues<'a>, Problem> {
        let id_in = |field| {
            fields
                .required(field)
                .and_then(Value::id)
                .map_err(Problem::of(field))
        };
        let id = id_in(Field::ClickRequest);
        let composite = self.composite_id(fields, Kind::Click, sink);
        let ts_ms = self.time(fields, Field::ClickTs);
        let item = fields.required_whole(Field::Item);
        let item = item.and_then(|item| clicked_item(item, sink.max_items));
        let item = item.map_err(Problem::of(Field::Item));
        let user = fields.user(Field::ClickUser, &self.no_user);
        let problems = [
            id.as_ref().err(),
            ts_ms.as_ref().err(),
            item.as_ref().err(),
            user.as_ref().err(),
            composite.as_ref().err(),
        ];
        // Refused clicks are counted by the arms of their list, so keep the id of a click that is otherwise unreadable.
        if let (Ok(id), Ok(()), true) = (&id, &composite, problems.iter().any(Option::is_some)) {
            let (id, names_all) = sink.id_of_click(id);
            let user = user.as_ref().ok().and_then(Option::as_ref);
            sink.unreadable = Some(Unreadable::Click(RefusedClick {
                id,
                is_partial: !names_all,
                user: user.map(|user| sink.hash.user(user.as_bytes())),
                ts_ms: ts_ms.as_ref().ok().copied(),
            }));
        }
        unreadable_first(problems)?;
        let id = id?;
        composite?;
        let (ts_ms, item, user) = (ts_ms?, item?, user?);
        Ok(EventValues::Click {
            id,
            ts_ms,
            item,
            user,
        })
    }

    fn time(&self, fields: &MappedFields, field: Field) -> Result<i64, Problem> {
        let read = |value: Value| value.time(self.shape.ts_unit, self.shape.ts_zone);
        fields.required(field).and_then(read).map_err(Problem::of(field))
    }
}

impl Sink<'_> {
    /// Pushes items that are ids without escapes, up to the maximum. `None` if there is anything else.
    fn plain_items(&mut self, array: Value) -> Option<()> {
        let Value::Json(array) = array else {
            return None;
        };
        let (hash, items) = (self.hash, &mut self.batch.items);
        let most = items.len() + self.max_items;
        Scanner::new(array.as_bytes()).ids(|id| {
            items.push(hash.checked_item(id)?);
            (items.len() <= most).then_some(())
        })
    }

    /// Returns the id of a click, and whether it names all parts.
    fn id_of_click(&mut self, id: &str) -> (u128, bool) {
        match self.composite_id.take() {
            None => (self.hash.request(id.as_bytes()), true),
            Some(composite) => (composite.hash, composite.names_all),
        }
    }

    fn item(&mut self, item: &str) {
        self.batch.items.push(self.hash.item(item.as_bytes()));
        if let Some(texts) = &mut self.texts {
            texts.items.push(item.to_owned());
        }
    }

    /// Notes a clicked item of a list.
    fn click(&mut self, item: &str) {
        self.clicked.push(self.hash.item(item.as_bytes()));
        if let Some(texts) = &mut self.texts {
            texts.clicked.push(item.to_owned());
        }
    }
}

/// # Errors
/// Fails if there is no item, or too many. An element that is not an id makes only its own click invalid.
fn clicked_item(value: Value, max_items: usize) -> Result<ClickedItem, Reason> {
    if !value.is_array() {
        return value.id().map(ClickedItem::One);
    }
    match value.elements()?.count() {
        0 => Err(Reason::MissingField),
        n if n > max_items => Err(Reason::TooManyItems),
        _ => Ok(ClickedItem::Each(value)),
    }
}

/// A record: an object, or JSON text that is not checked yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedRecord<'a> {
    value: Value<'a>,
}

/// The JSON text that holds a record's events.
enum EventText<'a> {
    Itself,
    /// No text, but the value itself.
    Inner(Value<'a>),
    Within(Text<'a>),
}

impl<'a> LocatedRecord<'a> {
    /// Takes the value of a record that is JSON.
    pub fn of_payload(payload: Option<&'a [u8]>) -> Result<LocatedRecord<'a>, Reason> {
        // Some converters write JSON's null for a record without a value.
        let payload = payload.filter(|payload| payload.trim_ascii() != b"null");
        LocatedRecord::of_json(payload.ok_or(Reason::Tombstone)?)
    }

    fn of_json(payload: &'a [u8]) -> Result<LocatedRecord<'a>, Reason> {
        let text = std::str::from_utf8(payload).map_err(|_| Reason::NotJson)?;
        Ok(LocatedRecord {
            // White space of JSON, and no other.
            value: Value::Json(text.trim_matches([' ', '\t', '\n', '\r'])),
        })
    }

    pub fn of(record: RawRecord<'a>) -> Result<LocatedRecord<'a>, Reason> {
        match record.schema {
            None => LocatedRecord::of_payload(Some(record.bytes)),
            Some(schema) => schema.value(record.bytes).map(|value| LocatedRecord { value }),
        }
    }

    fn checked(self) -> Result<Value<'a>, Reason> {
        let Value::Json(text) = self.value else {
            return Ok(self.value);
        };
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        match is_json && !json::is_too_deep(text) {
            true => Ok(self.value),
            false => Err(Reason::NotJson),
        }
    }

    /// The fields of the record, whose syntax is checked as a whole.
    fn find<const N: usize>(self, tree: &Tree<N>) -> Result<[PathResult<'a>; N], Reason> {
        // Text without escapes needs a single pass for its syntax and its fields.
        if let Value::Json(text) = self.value
            && let Some(found) = tree.find_plain(text)
        {
            return found;
        }
        tree.find(self.checked()?)
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
        Field::ClickedItems,
        Field::ClickedTs,
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
    /// Returns the path of a field in the record.
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
            Field::ClickedItems => served.clicked_items.as_ref(),
            Field::ClickedTs => served.clicked_ts.as_ref(),
            Field::Experiments => served.arms.experiments.as_ref(),
            Field::Experiment => served.arms.experiment.as_ref().filter(|_| in_record),
            Field::Arm => served.arms.arm.as_ref().filter(|_| in_record),
            Field::ClickRequest => Some(&click.request_id),
            Field::ClickUser => click.user_id.as_ref(),
            Field::ClickTs => Some(&click.ts),
            Field::Item => Some(&click.item),
            Field::ServedFurther
            | Field::ClickFurther
            | Field::Position
            | Field::Clicked
            | Field::Nested
            | Field::Records => None,
        }
    }

    /// Most paths behind the first ones of their fields, over all fields of a record.
    pub const MAX_ALTERNATIVES: usize = MAX_PATHS - N_FIELDS;

    /// Paths behind the first ones of their fields, over all fields of a record.
    pub fn n_alternatives(&self) -> usize {
        let paths = Field::ALL.into_iter().filter_map(|field| self.path(field));
        paths.map(|paths| paths.others().len()).sum()
    }

    /// Returns the field to name if arms cannot be read.
    fn field_of_arms(&self) -> Field {
        match self.served.arms.experiments {
            Some(_) => Field::Experiments,
            None => Field::Arm,
        }
    }
}

impl<'a> MappedFields<'a> {
    fn of(&self, field: Field) -> PathResult<'a> {
        self.found[field as usize]
    }

    /// The value of a field that may be an array.
    fn required_whole(&self, field: Field) -> Result<Value<'a>, Reason> {
        self.of(field).required()
    }

    fn required(&self, field: Field) -> Result<Value<'a>, Reason> {
        self.required_whole(field).map(Value::only_text)
    }

    /// `null` is a value.
    fn optional(&self, field: Field) -> Result<Option<Value<'a>>, Reason> {
        match self.of(field) {
            PathResult::Nothing => Ok(None),
            found => found.required().map(Some),
        }
    }

    /// Returns the value, with `null` counted as absent.
    fn unless_null(&self, field: Field) -> Result<Option<Value<'a>>, Reason> {
        Ok(self.optional(field)?.filter(|value| !value.is_null()))
    }

    fn user(&self, field: Field, no_user: &NoUser) -> Result<Option<Text<'a>>, Problem> {
        let read = |value: Value<'a>| {
            let id = value.only_text().text_or_integer()?;
            match id.len() {
                // Before the length is checked, because the empty text may be a placeholder.
                _ if no_user.contains(id.as_bytes()) => Ok(None),
                1..=MAX_ID_BYTES => Ok(Some(id)),
                _ => Err(Reason::IdLength),
            }
        };
        let user = self.unless_null(field);
        let user = user.and_then(|user| user.map_or(Ok(None), read));
        user.map_err(Problem::of(field))
    }
}

impl<'a> PathResult<'a> {
    fn required(self) -> Result<Value<'a>, Reason> {
        match self {
            PathResult::Value(Value::Malformed) => Err(Reason::Malformed),
            PathResult::Value(value) => Ok(value),
            PathResult::Nothing => Err(Reason::MissingField),
            PathResult::Astray => Err(Reason::WrongType),
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

/// Reports an unreadable record before all other problems: text that UTF-8 cannot hold, an experiment that occurs twice.
fn unreadable_first<const N: usize>(problems: [Option<&Problem>; N]) -> Result<(), Problem> {
    let mut problems = problems.into_iter().flatten();
    problems
        .find(|problem| matches!(problem.reason, Reason::NotJson | Reason::Malformed))
        .map_or(Ok(()), |problem| Err(*problem))
}
