//! The short way to an event, in one pass: most records are plain, and for those it gives what the parser gives.
//!
//! A record is plain if nothing is wrong with it and no string in it has an escape.

use super::scan::Scanner;
use super::{Decoder, arms, check_label, range, time};
use crate::engine::event::{Batch, Body, Click, Kind, Served};

/// The known fields that have come. Items and arms are in the batch.
#[derive(Debug, Default)]
struct Fields {
    /// `Some(None)` is a type that is not ours.
    kind: Option<Option<Kind>>,
    request_id: Option<u128>,
    user_id: Option<Option<u64>>,
    ts_ms: Option<i64>,
    items: Option<()>,
    experiments: Option<()>,
    item: Option<u64>,
}

impl Decoder {
    /// `None`: the record is not plain, and the arenas may hold parts of it.
    #[inline(always)]
    pub(super) fn plain(&self, payload: &[u8], topic_says: Option<Kind>, batch: &mut Batch) -> Option<Body> {
        let (items_start, arms_start) = (batch.items.len(), batch.arms.len());
        let fields = self.plain_fields(Scanner::new(payload), batch)?;
        match fields.kind.unwrap_or(topic_says) {
            Some(Kind::Served) => {
                fields.items?;
                Some(Body::Served(Served {
                    id: fields.request_id?,
                    ts_ms: fields.ts_ms?,
                    items: range(items_start, batch.items.len()),
                    arms: range(arms_start, batch.arms.len()),
                    user: fields.user_id.flatten(),
                }))
            }
            Some(Kind::Click) => Some(Body::Click(Click {
                id: fields.request_id?,
                ts_ms: fields.ts_ms?,
                item: fields.item?,
            })),
            None => fields.kind.is_some().then_some(Body::Ignored),
        }
    }

    /// All that is known must be sound, also what the record's own kind does not need.
    #[inline(always)]
    fn plain_fields(&self, mut json: Scanner, batch: &mut Batch) -> Option<Fields> {
        let mut fields = Fields::default();
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let key = json.string()?;
            json.expect(b':')?;
            // Compared one by one: a `match` of slices would compare byte by byte.
            if key == b"request_id" {
                once(&mut fields.request_id, self.hash.request(json.id()?))?;
            } else if key == b"ts" {
                once(&mut fields.ts_ms, epoch_ms(&mut json)?)?;
            } else if key == b"items" {
                once(&mut fields.items, self.plain_items(&mut json, batch)?)?;
            } else if key == b"item" {
                once(&mut fields.item, self.hash.item(json.id()?))?;
            } else if key == b"user_id" {
                let user = match json.null() {
                    true => None,
                    false => Some(self.hash.user(json.id()?)),
                };
                once(&mut fields.user_id, user)?;
            } else if key == b"experiments" {
                once(&mut fields.experiments, self.plain_arms(&mut json, batch)?)?;
            } else if key == b"type" {
                once(&mut fields.kind, kind(json.string()?))?;
            } else {
                json.skip()?;
            }
            more = json.more(b'}')?;
        }
        json.is_at_end().then_some(fields)
    }

    #[inline(always)]
    fn plain_items(&self, json: &mut Scanner, batch: &mut Batch) -> Option<()> {
        let end = batch.items.len() + self.max_items;
        let mut more = json.enter(b'[', b']')?;
        while more {
            let item = self.hash.item(json.id()?);
            if batch.items.len() == end {
                return None;
            }
            batch.items.push(item);
            more = json.more(b']')?;
        }
        Some(())
    }

    #[inline(always)]
    fn plain_arms(&self, json: &mut Scanner, batch: &mut Batch) -> Option<()> {
        if json.null() {
            return Some(());
        }
        let start = batch.arms.len();
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let experiment = label(json.string()?)?;
            json.expect(b':')?;
            let arm = label(json.string()?)?;
            arms::push(&self.hash, experiment, arm, batch);
            more = json.more(b'}')?;
        }
        arms::sort(start, batch).ok()
    }
}

#[inline(always)]
fn epoch_ms(json: &mut Scanner) -> Option<i64> {
    match json.peek()? {
        b'"' => time::text_ms(std::str::from_utf8(json.string()?).ok()?).ok(),
        _ => json.thirteen_digits(),
    }
}

fn label(text: &[u8]) -> Option<&str> {
    let label = std::str::from_utf8(text).ok()?;
    check_label(label).is_ok().then_some(label)
}

fn kind(name: &[u8]) -> Option<Kind> {
    match name {
        b"served" => Some(Kind::Served),
        b"click" => Some(Kind::Click),
        _ => None,
    }
}

/// A known key may come once.
#[inline(always)]
fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}
