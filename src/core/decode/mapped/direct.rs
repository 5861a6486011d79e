//! Fast path for records of any shape: reads each field where it is found, in one pass, straight into the batch.
//!
//! It returns `None` for anything unusual, and the record is then read by [`Mapped::read`](super::Mapped::read), which is
//! authoritative. Most shapes have this path; `Direct::new` lists the exceptions.

mod avro;
mod cells;
mod outline;
mod plan;
mod protobuf;

use std::mem;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

pub(in super::super) use self::avro::AvroPlan;
pub use self::cells::{Cell, CellDigits, CellForm, CellPart, CellReader};
use self::outline::FoundValue;
pub use self::outline::Outlines;
pub(in super::super) use self::plan::Plans;
pub(in super::super) use self::protobuf::ProtobufPlan;
use super::super::arms::MAX_REMEMBERED;
use super::super::hash::Hashes;
use super::super::no_user::NoUser;
use super::super::scan::Scanner;
use super::super::shape::Shape;
use super::super::short_hash::is_ascii;
use super::super::value::Value;
use super::super::{MAX_ID_BYTES, check_topic, range};
use super::tree::{Node, Tree};
use super::{Field, MappedFields, N_FIELDS};
use crate::engine::event::{Batch, Body, Click, Kind, Served};

/// Paths of a shape that has a fast path.
#[derive(Debug, Clone)]
pub(super) struct Direct {
    /// Hash of the shape.
    id: u64,
    has_milliseconds: bool,
    record: Vec<Place>,
    /// Within an item that is an object; empty if items are ids.
    item: Vec<Place>,
}

/// Name in an object, and where it leads.
#[derive(Debug, Clone)]
struct Place {
    name: String,
    hash: u64,
    leads: Leads,
}

#[derive(Debug, Clone)]
enum Leads {
    /// To an object that longer paths lead through.
    Below(Vec<Place>),
    /// To a part of lists, of clicks, or of both.
    To(EventPart, [bool; 2]),
}

/// Part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventPart {
    Kind,
    Action,
    Id,
    User,
    Time,
    Items,
    Item,
    Experiments,
    Experiment,
    Arm,
}

impl EventPart {
    /// Returns whether `null` counts as absent. Records of one type for both kinds have the fields of the other kind as null.
    #[inline(always)]
    fn may_be_null(self) -> bool {
        use EventPart::{Id, Item, Items, Time, User};
        matches!(self, Id | User | Time | Items | Item)
    }
}

/// Parts found so far. In an array, the list's part comes first, then the click's.
#[derive(Default)]
struct Found<'a> {
    kind: Option<Kind>,
    has_action: bool,
    ids: [Option<&'a [u8]>; 2],
    users: [Option<&'a [u8]>; 2],
    times: [Option<i64>; 2],
    items: Option<Range<u32>>,
    item: Option<u64>,
    experiments: Option<Value<'a>>,
    experiment: Option<Value<'a>>,
    arm: Option<Value<'a>>,
}

/// Way in which arms are remembered.
#[derive(Clone, Copy)]
enum ArmsBy {
    /// By an [`ArmsKey`].
    Key,
    /// By the text of their object, like the decoders of our own shape.
    Object,
}

/// Everything needed to read a record, except the record.
pub(in super::super) struct DirectReader<'r, 'b> {
    pub shape: &'r Shape,
    pub no_user: &'r NoUser,
    pub hash: Hashes,
    pub max_items: usize,
    /// Hash of the schema; 0 for JSON.
    pub schema: u64,
    /// Number of items in the batch before this record.
    pub items_start: usize,
    pub batch: &'b mut Batch,
}

impl DirectReader<'_, '_> {
    /// Checks that a list has no more items than the maximum. Only its own items come behind those of earlier lists.
    #[inline(always)]
    fn check_items(&self) -> Option<()> {
        (self.batch.items.len() - self.items_start <= self.max_items).then_some(())
    }
}

impl Direct {
    /// Returns `None` if the shape has no fast path.
    pub fn new(shape: &Shape, event: &Tree<N_FIELDS>, item: Option<&Tree<3>>) -> Option<Direct> {
        let served = &shape.served;
        let is_simple = shape.nested.is_none()
            && shape.records.is_none()
            && served.gather_ms.is_none()
            && served.further_ids.is_empty()
            && !served.rows
            && served.position.is_none()
            && served.clicked.is_none()
            && served.clicked_items.is_none()
            && served.arms.prefix.is_none();
        let has_one_path_each = |field| {
            let paths = shape.path(field);
            paths.is_none_or(|paths| !paths.has_alternatives() && !paths.first().is_outer())
        };
        if !is_simple || !Field::ALL.into_iter().all(has_one_path_each) {
            return None;
        }
        let item = match item {
            Some(tree) => places(tree.nodes()?, |here| {
                (here == 1).then_some((EventPart::Item, [true, false]))
            })?,
            None => Vec::new(),
        };
        Some(Direct {
            id: xxh3_64(format!("{shape:?}").as_bytes()),
            has_milliseconds: shape.has_milliseconds(),
            record: places(event.nodes()?, part_of)?,
            item,
        })
    }

    /// Reads a record of JSON.
    pub fn json(&self, payload: &[u8], topic_kind: Option<Kind>, reader: &mut DirectReader) -> Option<Body> {
        let mut found = Found::default();
        let mut outlines = mem::take(&mut reader.batch.outlines);
        outlines.begin(self.id);
        let is_read = self.json_by_outline(payload, &mut outlines, &mut found, reader)
            || self
                .json_by_keys(payload, &mut outlines, &mut found, reader)
                .is_some();
        reader.batch.outlines = outlines;
        match is_read {
            true => found.body(topic_kind, ArmsBy::Key, reader),
            false => None,
        }
    }

    /// Reads a record of any outline, which is remembered.
    #[inline(never)]
    fn json_by_keys<'a>(
        &self,
        payload: &'a [u8],
        outlines: &mut Outlines,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        let mut json = Scanner::new(payload);
        self.json_object(&self.record, &mut json, found, reader, outlines)?;
        json.is_at_end().then(|| outlines.learn(payload))
    }

    fn json_object<'a>(
        &self,
        places: &[Place],
        json: &mut Scanner<'a>,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
        outlines: &mut Outlines,
    ) -> Option<()> {
        let mut seen = 0_u64;
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let key = json.string()?;
            json.expect(b':')?;
            json.peek()?;
            let start = json.n_passed();
            let mut value = |json: &Scanner, part| {
                let end = json.n_passed();
                outlines.record.push(FoundValue { start, end, part });
            };
            match places.iter().position(|place| place.name.as_bytes() == key) {
                None => {
                    json.skip_value()?;
                    value(json, None);
                }
                Some(n) => {
                    // It is unknown which of two equal keys is meant.
                    if seen & 1 << n != 0 {
                        return None;
                    }
                    seen |= 1 << n;
                    match &places[n].leads {
                        Leads::Below(_) if json.null() => {}
                        Leads::Below(places) => self.json_object(places, json, found, reader, outlines)?,
                        Leads::To(EventPart::Items, of) => {
                            self.json_items(json, found, reader, &mut outlines.item)?;
                            value(json, Some((EventPart::Items, *of)));
                        }
                        Leads::To(part, of) => {
                            self.json_part(*part, *of, json, found, reader)?;
                            value(json, Some((*part, *of)));
                        }
                    }
                }
            }
            more = json.more(b'}')?;
        }
        Some(())
    }

    #[inline]
    fn json_part<'a>(
        &self,
        part: EventPart,
        of: [bool; 2],
        json: &mut Scanner<'a>,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        match part {
            part if part.may_be_null() && json.null() => {}
            EventPart::Id => set(&mut found.ids, of, json.id()?),
            EventPart::User => set(&mut found.users, of, json.id()?),
            EventPart::Time => {
                let digits = match reader.shape.has_milliseconds() {
                    true => json.epoch_ms(),
                    false => None,
                };
                let ms = match digits {
                    Some(ms) if !json.is_in_number() => ms,
                    Some(_) => return None,
                    None => found_time(Value::Json(json.value()?), reader)?,
                };
                set(&mut found.times, of, ms);
            }
            // Items are read elsewhere.
            EventPart::Items => return None,
            EventPart::Item => found.item = Some(reader.hash.item(json.id()?)),
            EventPart::Kind => found.kind = kind_of(json.string()?, reader.shape)?,
            EventPart::Action => found.has_action = is_action(json.string()?, reader.shape),
            EventPart::Experiments => found.experiments = Some(Value::Json(json.value()?)),
            EventPart::Experiment => found.experiment = Some(Value::Json(json.value()?)),
            EventPart::Arm => found.arm = Some(Value::Json(json.value()?)),
        }
        Some(())
    }

    /// Reads the items of a list, and notes the values of the first one.
    fn json_items<'a>(
        &self,
        json: &mut Scanner<'a>,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
        of_first: &mut Vec<FoundValue>,
    ) -> Option<()> {
        if json.null() {
            return Some(());
        }
        // The outline of an item is taken from the first one, by reading it once more.
        let mut first = *json;
        if first.enter(b'[', b']')? && first.peek()? == b'{' && !self.item.is_empty() {
            json_item(&self.item, &mut first, Some(of_first))?;
        }
        let start = reader.batch.items.len();
        *json = self.items_by_outline(None, *json, reader)?;
        found.items = Some(range(start, reader.batch.items.len()));
        Some(())
    }
}

/// Takes a part from a value that is not JSON.
#[inline]
fn part_of_value<'a>(
    part: EventPart,
    of: [bool; 2],
    value: Value<'a>,
    found: &mut Found<'a>,
    reader: &DirectReader,
) -> Option<()> {
    match part {
        EventPart::Id => set(&mut found.ids, of, id_of(value)?),
        EventPart::User => set(&mut found.users, of, id_of(value)?),
        EventPart::Time => set(&mut found.times, of, found_time(value, reader)?),
        // Not an array.
        EventPart::Items => return None,
        EventPart::Item => found.item = Some(item_of(value, &reader.hash)?),
        EventPart::Kind => found.kind = kind_of(id_of(value)?, reader.shape)?,
        EventPart::Action => found.has_action = is_action(id_of(value)?, reader.shape),
        EventPart::Experiments => found.experiments = Some(value),
        EventPart::Experiment => found.experiment = Some(value),
        EventPart::Arm => found.arm = Some(value),
    }
    Some(())
}

/// Returns the id of an item that is an object, and notes its values.
fn json_item<'a>(
    places: &[Place],
    json: &mut Scanner<'a>,
    mut values: Option<&mut Vec<FoundValue>>,
) -> Option<&'a [u8]> {
    let mut id = None;
    let mut more = json.enter(b'{', b'}')?;
    while more {
        let key = json.string()?;
        json.expect(b':')?;
        json.peek()?;
        let start = json.n_passed();
        let part = match places.iter().find(|place| place.name.as_bytes() == key) {
            None => {
                json.skip_value()?;
                None
            }
            Some(Place {
                leads: Leads::To(part, of),
                ..
            }) if id.is_none() => {
                id = Some(json.id()?);
                Some((*part, *of))
            }
            Some(_) => return None,
        };
        if let Some(values) = &mut values {
            let end = json.n_passed();
            values.push(FoundValue { start, end, part });
        }
        more = json.more(b'}')?;
    }
    id
}

#[inline(always)]
fn set<T: Copy>(both: &mut [Option<T>; 2], of: [bool; 2], value: T) {
    for (part, is_it) in both.iter_mut().zip(of) {
        if is_it {
            *part = Some(value);
        }
    }
}

/// Returns the bytes of an id that is text.
#[inline(always)]
fn id_of(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(text) => checked_id(text),
        _ => None,
    }
}

/// Returns the text, if it may be an id.
#[inline(always)]
fn checked_id(text: &[u8]) -> Option<&[u8]> {
    let is_id = (1..=MAX_ID_BYTES).contains(&text.len());
    (is_id && (is_ascii(text) || std::str::from_utf8(text).is_ok())).then_some(text)
}

/// Takes a part from a text.
#[inline(always)]
fn part_of_text<'a>(
    part: EventPart,
    of: [bool; 2],
    text: &'a [u8],
    found: &mut Found<'a>,
    reader: &DirectReader,
) -> Option<()> {
    match part {
        EventPart::Id => set(&mut found.ids, of, checked_id(text)?),
        EventPart::User => set(&mut found.users, of, checked_id(text)?),
        part => part_of_value(part, of, Value::Text(text), found, reader)?,
    }
    Some(())
}

#[inline(always)]
fn item_of(value: Value, hash: &Hashes) -> Option<u64> {
    match value {
        Value::Text(_) => Some(hash.item(id_of(value)?)),
        value => Some(hash.item(value.id().ok()?.as_bytes())),
    }
}

fn found_time(value: Value, reader: &DirectReader) -> Option<i64> {
    value.time(reader.shape.ts_unit, reader.shape.ts_zone).ok()
}

/// Returns the kind that a word means: `Some(None)` if it may mean either, `None` if it means neither.
fn kind_of(word: &[u8], shape: &Shape) -> Option<Option<Kind>> {
    let is_among = |words: &[String]| words.iter().any(|known| known.as_bytes() == word);
    match (is_among(&shape.served.kinds), is_among(&shape.click.kinds)) {
        (true, false) => Some(Some(Kind::Served)),
        (false, true) => Some(Some(Kind::Click)),
        (true, true) => Some(None),
        (false, false) => None,
    }
}

fn is_action(word: &[u8], shape: &Shape) -> bool {
    shape.click.actions.iter().any(|known| known.as_bytes() == word)
}

impl Found<'_> {
    #[inline(always)]
    fn body(&self, topic_kind: Option<Kind>, arms_by: ArmsBy, reader: &DirectReader) -> Option<Body> {
        let shape = reader.shape;
        let kind = self.kind.or(topic_kind).or(shape.without_kind)?;
        check_topic(kind, topic_kind).ok()?;
        let [id, user, ts_ms] = [kind as usize; 3];
        let (id, user, ts_ms) = (self.ids[id]?, self.users[user], self.times[ts_ms]?);
        let user = user.filter(|user| !reader.no_user.contains(user));
        match kind {
            Kind::Served => {
                let items = self.items.clone()?;
                let known = &reader.batch.arms_by_json;
                let arms = match (arms_by, self.experiments) {
                    (ArmsBy::Object, None) => 0..0,
                    (ArmsBy::Object, Some(Value::Json(object))) => known.get(object.as_bytes())?.clone(),
                    _ => {
                        // Filled in its place, because a copy would cost more than the search.
                        let mut key = ArmsKey::new();
                        key.fill(reader.schema, [&self.experiments, &self.experiment, &self.arm])?;
                        known.get(key.bytes())?.clone()
                    }
                };
                Some(Body::Served(Served {
                    id: reader.hash.request(id),
                    ts_ms,
                    items,
                    arms,
                    user: user.map(|user| reader.hash.user(user)),
                }))
            }
            Kind::Click => {
                if shape.click.action.is_some() && !self.has_action {
                    return None;
                }
                Some(Body::Click(Click {
                    id: reader.hash.request(id),
                    user: user.map(|user| reader.hash.user(user)),
                    ts_ms,
                    item: self.item?,
                }))
            }
        }
    }
}

/// Key under which the arms of a list are remembered: all values that determine them.
pub(super) struct ArmsKey {
    bytes: [u8; MAX_REMEMBERED],
    len: usize,
}

impl ArmsKey {
    fn new() -> ArmsKey {
        ArmsKey {
            bytes: [0; MAX_REMEMBERED],
            len: 0,
        }
    }

    /// Returns the key of a list's fields.
    pub fn of_fields(schema: u64, fields: &MappedFields) -> Option<ArmsKey> {
        let [experiments, experiment, arm] =
            [Field::Experiments, Field::Experiment, Field::Arm].map(|field| fields.optional(field));
        let mut key = ArmsKey::new();
        key.fill(schema, [&experiments.ok()?, &experiment.ok()?, &arm.ok()?])?;
        Some(key)
    }

    /// `None` if the values are too long, or of a kind that is not remembered.
    #[inline(always)]
    fn fill(&mut self, schema: u64, values: [&Option<Value>; 3]) -> Option<()> {
        self.push(&schema.to_le_bytes())?;
        for (place, value) in (0_u64..).zip(values) {
            let Some(value) = value else { continue };
            let (kind, type_id, bytes) = value.identity()?;
            let len = u64::from(u16::try_from(bytes.len()).ok()?);
            let head = u64::from(type_id) << 32 | len << 16 | u64::from(kind) << 8 | place;
            self.push(&head.to_le_bytes())?;
            self.push(bytes)?;
        }
        Some(())
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the places of a tree; `None` if one has two meanings.
fn places(nodes: &[Node], part: impl Fn(u64) -> Option<(EventPart, [bool; 2])> + Copy) -> Option<Vec<Place>> {
    let place = |node: &Node| {
        let leads = match node.below {
            0 => {
                let (part, of) = part(node.here)?;
                Leads::To(part, of)
            }
            _ if node.here == 0 => Leads::Below(places(&node.nodes, part)?),
            _ => return None,
        };
        Some(Place {
            name: node.name.clone(),
            hash: node.hash,
            leads,
        })
    };
    nodes.iter().map(place).collect()
}

/// Returns the part that these fields are, of lists and of clicks; `None` if they are several parts, or have no fast path.
fn part_of(fields: u64) -> Option<(EventPart, [bool; 2])> {
    let bit = |field: Field| 1_u64 << field as u64;
    let both = |served, click| [bit(served), bit(click)];
    let one = |field| [bit(field); 2];
    let parts = [
        (EventPart::Id, both(Field::ServedRequest, Field::ClickRequest)),
        (EventPart::User, both(Field::ServedUser, Field::ClickUser)),
        (EventPart::Time, both(Field::ServedTs, Field::ClickTs)),
        (EventPart::Kind, one(Field::Kind)),
        (EventPart::Action, one(Field::Action)),
        (EventPart::Items, one(Field::Items)),
        (EventPart::Item, one(Field::Item)),
        (EventPart::Experiments, one(Field::Experiments)),
        (EventPart::Experiment, one(Field::Experiment)),
        (EventPart::Arm, one(Field::Arm)),
    ];
    let all = |bits: [u64; 2]| bits[0] | bits[1];
    let (part, bits) = parts.into_iter().find(|(_, bits)| fields & all(*bits) != 0)?;
    let is_only = fields & !all(bits) == 0;
    is_only.then(|| (part, bits.map(|bit| fields & bit != 0)))
}
