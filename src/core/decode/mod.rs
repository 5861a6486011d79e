//! Decoding: one record in, one [`Event`] or more out, whatever the bytes are.

mod arms;
mod avro;
mod block;
pub mod catalogue;
pub(crate) mod decimal;
mod digits;
pub mod framing;
mod hash;
mod json;
mod keys;
mod mapped;
mod marks;
mod name;
mod no_user;
mod plain;
mod protobuf;
mod scan;
pub mod schema;
pub mod shape;
mod short_hash;
#[cfg(test)]
mod tests;
mod time;
mod user_key;
mod usual;
mod value;
mod varint;

use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

pub use self::hash::Hashes;
pub use self::mapped::{
    Cell, CellDigits, CellForm, CellPart, CellReader, DecidingField, Explained, FurtherFields, Outlines,
};
use self::mapped::{DirectReader, LocatedRecord, Mapped, MappedFields, Sink};
pub use self::no_user::NoUser;
use self::schema::RawRecord;
use self::shape::Shape;
pub use self::time::is_time;
pub use self::user_key::UserKey;
use self::usual::{Compact, Spaced};
pub use self::value::is_time_array;
use crate::engine::OTHER;
use crate::engine::event::{Batch, Body, Event, Kind, Position, Reason};

/// Bound on an id or item, in bytes of UTF-8 without escapes.
pub const MAX_ID_BYTES: usize = 2048;
/// Bound on the digits of an integer that is an id or a time. The sign is not a digit.
pub const MAX_ID_DIGITS: usize = 20;
/// Bound on the name of an experiment or arm, in bytes of UTF-8 without escapes.
pub const MAX_LABEL_BYTES: usize = 128;

/// Decoder of records. Its results are in the [`Batch`]: a record without escapes allocates nothing of its own.
///
/// If a record has several problems, the decoder reports the one whose field is checked first (see [`Reason`]), and within
/// a field the one that [`Reason`] lists first. So the order of keys does not matter. Only the fields of the record's own
/// kind are read: `type`, `request_id`, `ts` and `user_id` of both, `items` and `experiments` of lists, `item` of clicks.
/// The rest is ignored, but must be JSON, and no known key may come twice.
///
/// Users are hashed with a separate key: see [`Self::knowing_users_by`].
#[derive(Debug, Clone)]
pub struct Decoder {
    hash: Hashes,
    max_items: usize,
    max_experiments: usize,
    mapped: Arc<Mapped>,
    /// Set if records have our own shape, for which there are faster decoders.
    is_own_shape: bool,
}

impl Decoder {
    /// Makes a decoder that rejects lists with more items or in more experiments.
    pub fn new(hash_seed: u64, max_items: u32, max_experiments: u32) -> Self {
        Decoder {
            hash: Hashes::new(hash_seed, UserKey::of("", hash_seed)),
            max_items: max_items as usize,
            max_experiments: max_experiments as usize,
            mapped: Arc::new(Mapped::new(&Shape::default(), NoUser::default())),
            is_own_shape: true,
        }
    }

    /// Hashes users with this key. Without it, the key depends only on the seed.
    pub fn knowing_users_by(self, key: UserKey) -> Self {
        Decoder {
            hash: self.hash.with_users(Some(key)),
            ..self
        }
    }

    /// Does not distinguish users: all of them have the same hash, which takes less time.
    pub fn without_user_hashes(self) -> Self {
        Decoder {
            hash: self.hash.with_users(None),
            ..self
        }
    }

    /// Replaces the user ids that count as no user.
    pub fn without_users(self, no_user: NoUser) -> Self {
        Decoder {
            mapped: Arc::new(Mapped::new(self.mapped.shape(), no_user)),
            ..self
        }
    }

    /// Reads records of another shape; `None` is our own, which has faster paths than any [`Shape`].
    ///
    /// # Panics
    /// If the shape has more than [`Shape::MAX_ALTERNATIVES`].
    pub fn reading(self, shape: Option<&Shape>) -> Self {
        Decoder {
            mapped: Arc::new(Mapped::new(
                shape.unwrap_or(&Shape::default()),
                self.mapped.no_user().clone(),
            )),
            is_own_shape: shape.is_none(),
            ..self
        }
    }

    /// Returns the hash functions. Public so that tests and fuzzing can compare.
    pub fn hashes(&self) -> Hashes {
        self.hash
    }

    /// Appends the events of a record, at least one. `topic_kind` is the kind in its topic, if there is only one: a record
    /// that names the other kind is invalid. Without it, the record needs a `type`, or [`Shape::without_kind`] decides. An
    /// invalid or ignored record leaves nothing in the arenas.
    pub fn decode(&self, payload: Option<&[u8]>, topic_kind: Option<Kind>, at: Position, batch: &mut Batch) {
        if !self.is_own_shape {
            return self.decode_other(payload, topic_kind, at, batch);
        }
        match payload.and_then(|payload| self.usual::<Compact>(payload, topic_kind, batch)) {
            Some(body) => batch.events.push(Event::new(at, body)),
            None => self.decode_plain(payload, topic_kind, at, batch),
        }
    }

    /// Decodes JSON of another shape.
    // Not inlined, so that our own shape does not pay for it.
    #[inline(never)]
    fn decode_other(
        &self,
        payload: Option<&[u8]>,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        match payload {
            Some(bytes) => self.decode_directly(bytes.into(), topic_kind, at, batch),
            None => self.decode_by_paths(None, topic_kind, at, batch),
        }
    }

    #[inline(never)]
    fn decode_plain(
        &self,
        payload: Option<&[u8]>,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        if let Some(body) = payload.and_then(|payload| self.usual::<Spaced>(payload, topic_kind, batch)) {
            batch.events.push(Event::new(at, body));
            return;
        }
        let before = ArenaEnds::of(batch);
        match payload.and_then(|payload| self.plain(payload, topic_kind, batch)) {
            Some(body) => before.append(body, at, batch),
            None => {
                // The plain decoder may have left items and arms behind.
                before.cut(batch);
                self.decode_by_paths(payload, topic_kind, at, batch);
            }
        }
    }

    /// Decodes like [`Decoder::decode`], but only by the paths of the shape. This is the reference for all records; the
    /// other decoders are only faster. Public so that tests and fuzzing can compare them.
    #[inline(never)]
    pub fn decode_by_paths(
        &self,
        payload: Option<&[u8]>,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        let record = LocatedRecord::of_payload(payload);
        self.decode_record(record, 0, topic_kind, at, batch, &mut pass_over);
    }

    /// Decodes a record in any encoding, like [`Decoder::decode`].
    pub fn decode_raw(&self, record: RawRecord, topic_kind: Option<Kind>, at: Position, batch: &mut Batch) {
        match record.schema.is_none() && self.is_own_shape {
            true => self.decode(Some(record.bytes), topic_kind, at, batch),
            false => self.decode_directly(record, topic_kind, at, batch),
        }
    }

    /// Decodes a record like [`Decoder::decode_raw`], but only by its paths. Returns the range in the batch of each event with its
    /// clicks, and the text of further fields.
    pub fn decode_with(
        &self,
        further: &FurtherFields,
        record: RawRecord,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) -> Vec<(Range<usize>, Vec<Option<String>>)> {
        let mut texts = Vec::new();
        let mut decoded = |range, event: Option<&MappedFields>| {
            texts.extend(event.map(|event| (range, further.texts(event))));
        };
        self.decode_merged(record, topic_kind, at, batch, &mut decoded);
        texts
    }

    /// Decodes a record by the fast path of its shape, or else by its paths.
    #[inline(never)]
    fn decode_directly(&self, record: RawRecord, topic_kind: Option<Kind>, at: Position, batch: &mut Batch) {
        let before = ArenaEnds::of(batch);
        let mut reader = self.direct_reader(record.schema_hash(), batch);
        match self.mapped.read_directly(record, topic_kind, &mut reader) {
            Some(body) => before.append(body, at, batch),
            None => {
                before.cut(batch);
                self.decode_raw_by_paths(record, topic_kind, at, batch);
            }
        }
    }

    fn direct_reader<'r, 'b>(&'r self, schema: u64, batch: &'b mut Batch) -> DirectReader<'r, 'b> {
        DirectReader {
            shape: self.mapped.shape(),
            no_user: self.mapped.no_user(),
            hash: self.hash,
            max_items: self.max_items,
            schema,
            items_start: batch.items.len(),
            batch,
        }
    }

    /// Decodes like [`Decoder::decode_raw`], but only by the paths of the shape. Public so that tests and fuzzing can compare.
    pub fn decode_raw_by_paths(
        &self,
        record: RawRecord,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        self.decode_merged(record, topic_kind, at, batch, &mut pass_over);
    }

    /// Decodes a record by its paths, after what occurs in parts was merged.
    fn decode_merged(
        &self,
        record: RawRecord,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
        decoded: &mut impl FnMut(Range<usize>, Option<&MappedFields>),
    ) {
        let merged = record.merged();
        let record = record.with(merged.as_deref());
        let located = LocatedRecord::of(record);
        self.decode_record(located, record.schema_hash(), topic_kind, at, batch, decoded);
    }

    fn decode_record(
        &self,
        record: Result<LocatedRecord, Reason>,
        schema: u64,
        topic_kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
        decoded: &mut impl FnMut(Range<usize>, Option<&MappedFields>),
    ) {
        let start = batch.events.len();
        let mut sink = Sink {
            hash: self.hash,
            max_items: self.max_items,
            max_experiments: self.max_experiments,
            schema,
            composite_id: None,
            clicked: &mut Vec::new(),
            batch,
            texts: None,
            unreadable: None,
        };
        self.mapped.each_event(record, |fields| {
            let first = sink.batch.events.len();
            let mut before = ArenaEnds::of(sink.batch);
            let event_values = match &fields {
                Ok(fields) => self.mapped.read(fields, topic_kind, &mut sink),
                Err(problem) => Err(*problem),
            };
            // The arms of an unreadable list stay, because its refusal is counted by arm.
            if sink.unreadable.is_some() {
                before = before.with_arms(sink.batch);
            }
            // The clicks inside a list follow it, and must not cut off its items and arms.
            let mut is_first = true;
            self.mapped.body(event_values, &mut sink, |batch, body| {
                match std::mem::take(&mut is_first) {
                    true => before.append(body, at, batch),
                    false => batch.events.push(Event::new(at, body)),
                }
            });
            decoded(first..sink.batch.events.len(), fields.as_ref().ok());
        });
        match batch.events.len() - start {
            // A record without events still needs an outcome.
            0 => batch.events.push(Event::new(at, Body::Ignored)),
            1 => {}
            _ => batch.mark_several(start),
        }
    }

    #[inline(always)]
    fn known_user(&self, id: Option<&[u8]>) -> Option<u64> {
        let id = id.filter(|id| !self.mapped.no_user().contains(id))?;
        Some(self.hash.user(id))
    }

    /// Returns the text and the hash of an item, as a list or a click may write it; `None` if it is not an item.
    pub fn item(&self, raw: &RawValue) -> Option<(String, u64)> {
        let id = json::id(raw.get()).ok()?;
        let hash = self.hash.item(id.as_bytes());
        Some((id.into_owned(), hash))
    }
}

/// Does nothing with an event that was decoded.
fn pass_over(_: Range<usize>, _: Option<&MappedFields>) {}

/// Ends of a batch's arenas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ArenaEnds {
    items: usize,
    arms: usize,
    text: usize,
}

impl ArenaEnds {
    fn of(batch: &Batch) -> ArenaEnds {
        ArenaEnds {
            items: batch.items.len(),
            arms: batch.arms.len(),
            text: batch.text.len(),
        }
    }

    /// Keeps the arms that were added since.
    fn with_arms(self, batch: &Batch) -> ArenaEnds {
        ArenaEnds {
            items: self.items,
            ..ArenaEnds::of(batch)
        }
    }

    /// Appends an event that began here, and drops what it does not contain.
    #[inline(always)]
    fn append(self, body: Body, at: Position, batch: &mut Batch) {
        if !matches!(body, Body::Served(_)) && ArenaEnds::of(batch) != self {
            self.cut(batch);
        }
        batch.events.push(Event::new(at, body));
    }

    /// Drops everything added since.
    #[cold]
    #[inline(never)]
    fn cut(self, batch: &mut Batch) {
        batch.items.truncate(self.items);
        batch.arms.truncate(self.arms);
        batch.text.truncate(self.text);
    }
}

/// Checks that a record is not of another kind than its topic.
fn check_topic(kind: Kind, topic_kind: Option<Kind>) -> Result<(), Reason> {
    match topic_kind {
        Some(other) if other != kind => Err(Reason::WrongTopic),
        _ => Ok(()),
    }
}

/// Returns true for a valid name of an experiment or arm.
fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL_BYTES).contains(&label.len()) && label != OTHER
}

/// Keeps the problem that [`Reason`] lists first.
fn note(problem: &mut Option<Reason>, reason: Reason) {
    *problem = Some(problem.map_or(reason, |known| known.min(reason)));
}

/// Returns a range in an arena. Kafka bounds a batch far below 4 GiB.
fn range(start: usize, end: usize) -> Range<u32> {
    start as u32..end as u32
}
