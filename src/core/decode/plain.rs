//! Fast decoder for plain records, which most are. In one pass it returns the same event as the parser.
//!
//! A record is plain if it is valid and no string in it has an escape.

use std::ops::Range;

use super::arms;
use super::keys::FieldKey;
use super::scan::Scanner;
use super::{Decoder, check_topic, is_label, range, time};
use crate::engine::event::{Batch, Body, Click, Kind, Served};

/// Known fields found so far. Items and arms are in the batch.
#[derive(Default)]
struct PlainFields<'a> {
    /// Bits of the keys found. The values of other fields have no meaning.
    seen: u8,
    /// `None` for a type that is not ours.
    kind: Option<Kind>,
    request_id: u128,
    /// User id before hashing: ignored records need no hash.
    user_id: Option<&'a [u8]>,
    ts_ms: i64,
    arms: Range<u32>,
    /// Object that the arms came from, if it is to be remembered.
    new_object: Option<&'a [u8]>,
    item: u64,
}

impl PlainFields<'_> {
    #[inline(always)]
    fn has(&self, keys: &[FieldKey]) -> bool {
        let bits = keys.iter().fold(0, |bits, key| bits | key.bit());
        self.seen & bits == bits
    }

    /// Passes this key if it is next, and returns whether it was. `None` if the key was there before.
    #[inline(always)]
    fn come(&mut self, key: FieldKey, json: &mut Scanner) -> Option<bool> {
        if !json.key(key) {
            return Some(false);
        }
        let is_new = self.seen & key.bit() == 0;
        self.seen |= key.bit();
        is_new.then_some(true)
    }
}

impl Decoder {
    /// Decodes a plain record. `None` if it is not plain; then the arenas may contain parts of it.
    #[inline(always)]
    pub(super) fn plain(&self, payload: &[u8], topic_kind: Option<Kind>, batch: &mut Batch) -> Option<Body> {
        let items_start = batch.items.len();
        let fields = self.plain_fields(payload, batch)?;
        let kind = match fields.has(&[FieldKey::Type]) {
            true => fields.kind,
            false => Some(topic_kind?),
        };
        if let Some(kind) = kind {
            check_topic(kind, topic_kind).ok()?;
        }
        match kind {
            Some(Kind::Served) => {
                if !fields.has(&[FieldKey::RequestId, FieldKey::Ts, FieldKey::Items]) {
                    return None;
                }
                // Only now is it certain that the arms stay in the batch.
                if let Some(object) = fields.new_object {
                    arms::remember(object, fields.arms.clone(), batch);
                }
                Some(Body::Served(Served {
                    id: fields.request_id,
                    ts_ms: fields.ts_ms,
                    items: range(items_start, batch.items.len()),
                    arms: fields.arms,
                    user: self.known_user(fields.user_id),
                }))
            }
            Some(Kind::Click) => {
                let click = Click {
                    id: fields.request_id,
                    user: self.known_user(fields.user_id),
                    ts_ms: fields.ts_ms,
                    item: fields.item,
                };
                let has_all = fields.has(&[FieldKey::RequestId, FieldKey::Ts, FieldKey::Item]);
                has_all.then_some(Body::Click(click))
            }
            None => Some(Body::Ignored),
        }
    }

    /// Reads all fields. Every known one must be valid, even if the record's kind does not need it.
    ///
    /// Each round tries every key once, in the order of most events. Those take one round without detours.
    #[inline(always)]
    fn plain_fields<'a>(&self, payload: &'a [u8], batch: &mut Batch) -> Option<PlainFields<'a>> {
        let mut json = Scanner::new(payload);
        let mut fields = PlainFields::default();
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let before = json.n_passed();
            if more && fields.come(FieldKey::RequestId, &mut json)? {
                fields.request_id = self.hash.request(json.id()?);
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::UserId, &mut json)? {
                if !json.null() {
                    fields.user_id = Some(json.id()?);
                }
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::Ts, &mut json)? {
                fields.ts_ms = epoch_ms(&mut json)?;
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::Item, &mut json)? {
                fields.item = self.hash.item(json.id()?);
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::Experiments, &mut json)? {
                (fields.arms, fields.new_object) = self.plain_arms(&mut json, batch)?;
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::Items, &mut json)? {
                let behind = self.plain_items(payload, json.n_passed(), &mut batch.items)?;
                json.pass_to(behind);
                more = json.more(b'}')?;
            }
            if more && fields.come(FieldKey::Type, &mut json)? {
                fields.kind = kind(json.string()?);
                more = json.more(b'}')?;
            }
            // No key matched in this round, so the next one is unknown or written in another way.
            if json.n_passed() == before {
                json.skip_unknown()?;
                more = json.more(b'}')?;
            }
        }
        json.is_at_end().then_some(fields)
    }

    /// Hashes the array of items that begins at `start`, and returns the text after it.
    ///
    /// Not inlined, so that the loop can use all registers.
    #[inline(never)]
    fn plain_items<'a>(&self, payload: &'a [u8], start: usize, items: &mut Vec<u64>) -> Option<&'a [u8]> {
        let end = items.len() + self.max_items;
        let mut json = Scanner::behind(payload, start);
        json.ids(|id| {
            // Too many items: the parser returns the reason.
            if items.len() == end {
                return None;
            }
            items.push(self.hash.checked_item(id)?);
            Some(())
        })?;
        Some(json.rest())
    }

    /// Returns the range of the arms, and the object that they came from if it is to be remembered.
    #[inline(always)]
    fn plain_arms<'a>(
        &self,
        json: &mut Scanner<'a>,
        batch: &mut Batch,
    ) -> Option<(Range<u32>, Option<&'a [u8]>)> {
        if json.null() {
            return Some((0..0, None));
        }
        let object = arms::object(json.rest());
        if let Some(object) = object
            && let Some(known) = batch.arms_by_json.get(object)
        {
            json.pass(object.len());
            return Some((known.clone(), None));
        }
        let (arms, behind) = self.new_arms(*json, batch)?;
        let n_bytes = behind.n_passed() - json.n_passed();
        *json = behind;
        // A `}` inside a string cuts `object` short. Only the whole object may be remembered.
        Some((arms, object.filter(|object| object.len() == n_bytes)))
    }

    /// Reads the arms of a new object. The scanner is passed and returned by value, so that the caller keeps its position
    /// in registers.
    #[inline(never)]
    fn new_arms<'a>(&self, mut json: Scanner<'a>, batch: &mut Batch) -> Option<(Range<u32>, Scanner<'a>)> {
        let start = batch.arms.len();
        let mut more = json.enter(b'{', b'}')?;
        while more {
            if batch.arms.len() - start == self.max_experiments {
                return None;
            }
            let experiment = label(json.string()?)?;
            json.expect(b':')?;
            let arm = label(json.string()?)?;
            arms::push(&self.hash, experiment, arm, batch);
            more = json.more(b'}')?;
        }
        arms::sort(start, batch).ok()?;
        Some((range(start, batch.arms.len()), json))
    }
}

#[inline(always)]
fn epoch_ms(json: &mut Scanner) -> Option<i64> {
    match json.peek()? {
        b'"' => time::text_ms(std::str::from_utf8(json.string()?).ok()?).ok(),
        _ => json.epoch_ms(),
    }
}

fn label(text: &[u8]) -> Option<&str> {
    let label = std::str::from_utf8(text).ok()?;
    is_label(label).then_some(label)
}

fn kind(name: &[u8]) -> Option<Kind> {
    match name {
        b"served" => Some(Kind::Served),
        b"click" => Some(Kind::Click),
        _ => None,
    }
}
