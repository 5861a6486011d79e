//! Input of the engine: batches of decoded records of one pair of partitions, in offset order.

use std::collections::BTreeMap;
use std::ops::Range;

use foldhash::HashMap;

use super::OTHER;
use crate::decode::Outlines;

/// Kind of a record, as its type states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Served,
    Click,
}

/// Topic of the pair from which a record was read. If both kinds share one topic, all of it is `Served`, and the side does not
/// determine the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Served,
    Clicks,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Served, Side::Clicks];

    pub fn twin(self) -> Side {
        match self {
            Side::Served => Side::Clicks,
            Side::Clicks => Side::Served,
        }
    }
}

/// Reason why a record could not be read. If several apply, the first in this order of checks is used: the JSON itself, `type`
/// and whether its topic agrees, `request_id`, `ts`, `items` or `item`, `experiments`, `user_id`. So it does not depend on the
/// order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Not one JSON value in UTF-8: syntax, nesting beyond 127 levels, a known key twice.
    NotJson,
    /// Bytes that do not fit their schema, or have no framing where one is required.
    Malformed,
    /// The schema of the record is denied by the registry, or cannot be used.
    UnknownSchema,
    /// The record has no value, or the JSON value null.
    Tombstone,
    MissingField,
    WrongType,
    /// The record's type belongs to the other topic.
    WrongTopic,
    /// An id or time that is a number, but not an integer of at most 20 digits.
    Number,
    /// `ts` is of the size of epoch seconds.
    TsSeconds,
    /// `ts` is of the size of epoch microseconds or nanoseconds.
    TsMicros,
    /// `ts` is not a time between 2001 and 2286, or is text that is not RFC 3339.
    TsRange,
    /// An id or item does not have 1 to 2048 bytes.
    IdLength,
    TooManyItems,
    TooManyExperiments,
}

impl Reason {
    pub const ALL: [Reason; 14] = [
        Reason::NotJson,
        Reason::Malformed,
        Reason::UnknownSchema,
        Reason::Tombstone,
        Reason::MissingField,
        Reason::WrongType,
        Reason::WrongTopic,
        Reason::Number,
        Reason::TsSeconds,
        Reason::TsMicros,
        Reason::TsRange,
        Reason::IdLength,
        Reason::TooManyItems,
        Reason::TooManyExperiments,
    ];

    /// The value of the label `reason`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::NotJson => "not_json",
            Reason::Malformed => "malformed",
            Reason::UnknownSchema => "unknown_schema",
            Reason::Tombstone => "tombstone",
            Reason::MissingField => "missing_field",
            Reason::WrongType => "wrong_type",
            Reason::WrongTopic => "wrong_topic",
            Reason::Number => "number",
            Reason::TsSeconds => "ts_seconds",
            Reason::TsMicros => "ts_micros",
            Reason::TsRange => "ts_range",
            Reason::IdLength => "id_length",
            Reason::TooManyItems => "too_many_items",
            Reason::TooManyExperiments => "too_many_experiments",
        }
    }
}

/// Position of a record in Kafka, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub side: Side,
    pub offset: i64,
    /// The record's own timestamp (Unix ms), which bounds how far ahead an event may be.
    pub record_ts_ms: i64,
}

/// A record, or a part of one. Ranges point into the arenas of its [`Batch`].
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub at: Position,
    pub body: Body,
    /// True if the record has further events.
    pub is_part: bool,
}

impl Event {
    /// The only event of a record.
    pub fn new(at: Position, body: Body) -> Event {
        Event {
            at,
            body,
            is_part: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Served(Served),
    Click(Click),
    /// A click that names fewer parts of a composite id than its list has.
    PartialClick(Click),
    /// An unreadable event. If it can still be counted by arm, it has an index into [`Batch::unreadable`].
    Invalid(Reason, Option<u32>),
    /// A record of a type that is not ours.
    Ignored,
    /// A record that the operator leaves out.
    Skipped,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// Seeded 128-bit hash of the request id.
    pub id: u128,
    /// Keyed hash of the user id, where there is one.
    pub user: Option<u64>,
    pub ts_ms: i64,
    /// Into [`Batch::items`]: rank order, copies included.
    pub items: Range<u32>,
    /// Into [`Batch::arms`]: sorted by experiment, one arm each.
    pub arms: Range<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Click {
    pub id: u128,
    /// Keyed hash of the user id, where there is one.
    pub user: Option<u64>,
    pub ts_ms: i64,
    /// Seeded hash of the item.
    pub item: u64,
}

/// An experiment and the arm that a list was served by, as text in [`Batch::text`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArmName {
    /// Hash of both names and their border.
    pub hash: u128,
    pub experiment: Range<u32>,
    pub arm: Range<u32>,
}

/// An invalid event that can still be counted by arm.
#[derive(Debug, Clone, PartialEq)]
pub enum Unreadable {
    List(UnreadableList),
    Click(RefusedClick),
}

/// A refused click whose request id is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefusedClick {
    pub id: u128,
    /// True if it names fewer parts of a composite id than its list has.
    pub is_partial: bool,
    /// Keyed hash of the user id, if it can be read.
    pub user: Option<u64>,
    pub ts_ms: Option<i64>,
}

/// An invalid list whose arms can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadableList {
    /// Keyed hash of the user id, where it can be read.
    pub user: Option<u64>,
    pub ts_ms: Option<i64>,
    /// Into [`Batch::arms`].
    pub arms: Range<u32>,
}

/// Maximum number of experiments whose bad arms are counted separately.
pub const MAX_BAD_ARMS: usize = 100;
/// Maximum number of arms or their objects, and bytes of names, that a batch keeps when it is cleared.
const MAX_KEPT_ARMS: usize = 32_768;
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Records of one pair of partitions, each topic's in offset order. Cleared and refilled, so that its arenas are
/// allocated once.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    pub events: Vec<Event>,
    /// Seeded hashes of items.
    pub items: Vec<u64>,
    /// Positions of gathered items, each at the place of its item; empty otherwise.
    pub positions: Vec<i64>,
    /// Lists may share a part of it, with lists of earlier batches too.
    pub arms: Vec<ArmName>,
    pub text: String,
    /// Arms by the JSON object in `arms`, so that the decoder reads each object once.
    pub arms_by_json: HashMap<Box<[u8]>, Range<u32>>,
    /// Outlines of JSON records of other shapes, so that the decoder splits each into keys once.
    pub outlines: Outlines,
    /// Number of skipped elements of lists that are not items.
    pub skipped_elements: u64,
    /// Records of several events, by `Side as usize`.
    pub several: [u64; 2],
    /// Ids of clicks that name fewer parts of a list's composite id, by the list's id.
    pub partial_ids: HashMap<u128, Vec<u128>>,
    /// Arms that cannot be one, by experiment.
    pub bad_arms: BTreeMap<String, u64>,
    /// Lists and clicks among the invalid events.
    pub unreadable: Vec<Unreadable>,
}

impl Batch {
    /// Counts an invalid arm, by experiment. Beyond a bound, further experiments are counted as [`OTHER`].
    #[cold]
    pub fn count_bad_arm(&mut self, experiment: &str) {
        let has_room = self.bad_arms.len() < MAX_BAD_ARMS || self.bad_arms.contains_key(experiment);
        let experiment = if has_room { experiment } else { OTHER };
        *self.bad_arms.entry(experiment.to_owned()).or_default() += 1;
    }

    /// Adds an invalid event.
    #[cold]
    pub fn push_unreadable(&mut self, event: Unreadable) -> u32 {
        self.unreadable.push(event);
        self.unreadable.len() as u32 - 1
    }

    /// The first reason for which an event from `start` on is invalid.
    #[inline]
    pub fn first_reason(&self, start: usize) -> Option<Reason> {
        self.events[start..].iter().find_map(|event| match event.body {
            Body::Invalid(reason, _) => Some(reason),
            _ => None,
        })
    }

    /// Marks the events from `start` on as parts of one record.
    pub fn mark_several(&mut self, start: usize) {
        let events = &mut self.events[start..];
        events.iter_mut().for_each(|event| event.is_part = true);
        if let Some(event) = events.first() {
            self.several[event.at.side as usize] += 1;
        }
    }

    /// Drops all events. Arms stay for later lists to share, up to a bound.
    pub fn clear(&mut self) {
        self.events.clear();
        self.items.clear();
        self.positions.clear();
        self.skipped_elements = 0;
        self.several = [0; 2];
        self.partial_ids.clear();
        self.bad_arms.clear();
        self.unreadable.clear();
        // Remembered arms point into `arms` and `text`, so all three are dropped together.
        let n_kept = self.arms.len().max(self.arms_by_json.len());
        if n_kept > MAX_KEPT_ARMS || self.text.len() > MAX_KEPT_BYTES {
            self.arms.clear();
            self.text.clear();
            self.arms_by_json.clear();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Appends a list of another batch, with its items, arms and ids.
    pub fn copy_list(&mut self, from: &Batch, at: Position, list: &Served) {
        let start = self.items.len();
        self.items.extend(from.items_of(list));
        // Positions have the indices of their items, as far as there are any.
        let positions = list
            .items
            .clone()
            .filter_map(|index| from.positions.get(index as usize));
        if !from.positions.is_empty() {
            self.positions.resize(start, 0);
            self.positions.extend(positions);
        }
        let items = start as u32..self.items.len() as u32;
        let first_arm = self.arms.len() as u32;
        for arm in from.arms_of(list) {
            let [experiment, arm_name] = [&arm.experiment, &arm.arm].map(|range| {
                let start = self.text.len() as u32;
                self.text.push_str(from.text_of(range));
                start..self.text.len() as u32
            });
            self.arms.push(ArmName {
                hash: arm.hash,
                experiment,
                arm: arm_name,
            });
        }
        let arms = first_arm..self.arms.len() as u32;
        if let Some(ids) = from.partial_ids.get(&list.id) {
            self.partial_ids.insert(list.id, ids.clone());
        }
        let list = Served {
            items,
            arms,
            ..list.clone()
        };
        self.events.push(Event::new(at, Body::Served(list)));
    }

    pub fn items_of(&self, list: &Served) -> &[u64] {
        &self.items[list.items.start as usize..list.items.end as usize]
    }

    /// Ids of clicks that name fewer parts of the list's id than it has; none if the id is not composite.
    pub fn partial_ids_of(&self, list: &Served) -> &[u128] {
        // The common case.
        if self.partial_ids.is_empty() {
            return &[];
        }
        self.partial_ids.get(&list.id).map_or(&[], Vec::as_slice)
    }

    pub fn arms_of(&self, list: &Served) -> &[ArmName] {
        &self.arms[list.arms.start as usize..list.arms.end as usize]
    }

    pub fn text_of(&self, range: &Range<u32>) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }
}
