//! Fastest decoder, for records written as in the documentation: without white space, or with a space after each comma and
//! colon.
//!
//! ```text
//! { ─┬─────────────────┬─ "request_id":"…" ─┬───────────────┬─ ,"ts":1763596800123 ─┬─ ,"item":"…" ───────────────────────────┬─ }
//!    └ "type":"served",┘                    └ ,"user_id":"…"┘                       ├─────────────────────┬─ ,"items":["…",…] ┘
//!                                                                                   └ ,"experiments":{…} ─┘
//! ```
//!
//! The text between two values takes one comparison of a word or two. With keys in any order, it takes one for the comma,
//! one for the key, one for the quote, and one for each key that could have come instead.

use std::ops::Range;

use super::arms;
use super::scan::Scanner;
use super::{Decoder, check_topic, range};
use crate::engine::event::{Batch, Body, Click, Kind, Served};

/// Text before each of the values.
pub(super) trait Layout {
    /// The same as `REQUEST_ID`, with the type of a list or a click before it.
    const OF_TYPE: [(Kind, &'static [u8]); 2];
    const REQUEST_ID: &'static [u8];
    const USER_ID: &'static [u8];
    const TS: &'static [u8];
    const EXPERIMENTS: &'static [u8];
    const ITEMS: &'static [u8];
    const ITEM: &'static [u8];
}

/// Layout of JavaScript and of most other writers.
pub(super) struct Compact;

impl Layout for Compact {
    const OF_TYPE: [(Kind, &'static [u8]); 2] = [
        (Kind::Served, br#"{"type":"served","request_id":""#),
        (Kind::Click, br#"{"type":"click","request_id":""#),
    ];
    const REQUEST_ID: &'static [u8] = br#"{"request_id":""#;
    const USER_ID: &'static [u8] = br#","user_id":""#;
    const TS: &'static [u8] = br#","ts":"#;
    const EXPERIMENTS: &'static [u8] = br#","experiments":"#;
    const ITEMS: &'static [u8] = br#","items":[""#;
    const ITEM: &'static [u8] = br#","item":""#;
}

/// Layout of Python.
pub(super) struct Spaced;

impl Layout for Spaced {
    const OF_TYPE: [(Kind, &'static [u8]); 2] = [
        (Kind::Served, br#"{"type": "served", "request_id": ""#),
        (Kind::Click, br#"{"type": "click", "request_id": ""#),
    ];
    const REQUEST_ID: &'static [u8] = br#"{"request_id": ""#;
    const USER_ID: &'static [u8] = br#", "user_id": ""#;
    const TS: &'static [u8] = br#", "ts": "#;
    const EXPERIMENTS: &'static [u8] = br#", "experiments": "#;
    const ITEMS: &'static [u8] = br#", "items": [""#;
    const ITEM: &'static [u8] = br#", "item": ""#;
}

/// Reads the type of a record, up to the request id, and returns the kind that it names.
#[inline(always)]
fn kind_of_type<L: Layout>(json: &mut Scanner, topic_kind: Option<Kind>) -> Option<Kind> {
    let (kind, _) = L::OF_TYPE.into_iter().find(|(_, start)| json.comes(start))?;
    check_topic(kind, topic_kind).ok()?;
    Some(kind)
}

impl Decoder {
    /// Decodes a record of this layout. `None` if it is written differently; then the batch is unchanged.
    #[inline(always)]
    pub(super) fn usual<L: Layout>(
        &self,
        payload: &[u8],
        topic_kind: Option<Kind>,
        batch: &mut Batch,
    ) -> Option<Body> {
        let mut json = Scanner::new(payload);
        let kind = match json.comes(L::REQUEST_ID) {
            true => topic_kind?,
            false => kind_of_type::<L>(&mut json, topic_kind)?,
        };
        let id = json.id_inside()?;
        let user = match json.comes(L::USER_ID) {
            true => Some(json.id_inside()?),
            false => None,
        };
        json.expect_all(L::TS)?;
        let ts_ms = json.epoch_ms()?;
        match kind {
            Kind::Served => {
                let arms = match json.comes(L::EXPERIMENTS) {
                    true => {
                        let object = arms::object(json.rest())?;
                        json.pass(object.len());
                        // New arms are left to the next decoder, which remembers them.
                        batch.arms_by_json.get(object)?.clone()
                    }
                    false => 0..0,
                };
                json.expect_all(L::ITEMS)?;
                let items = self.usual_items(payload, json.n_passed(), &mut batch.items)?;
                Some(Body::Served(Served {
                    id: self.hash.request(id),
                    ts_ms,
                    items,
                    arms,
                    user: self.known_user(user),
                }))
            }
            Kind::Click => {
                json.expect_all(L::ITEM)?;
                let item = self.hash.checked_item(json.string_inside()?)?;
                json.is_last(b"}")?;
                Some(Body::Click(Click {
                    id: self.hash.request(id),
                    user: self.known_user(user),
                    ts_ms,
                    item,
                }))
            }
        }
    }

    /// Hashes the items of a list, after its other fields and the first quote have been read. Appends nothing if it finds
    /// anything else.
    ///
    /// Not inlined, so that the loop can use all registers.
    #[inline(never)]
    fn usual_items(&self, payload: &[u8], start: usize, items: &mut Vec<u64>) -> Option<Range<u32>> {
        let before = items.len();
        let end = before + self.max_items;
        let mut json = Scanner::behind(payload, start);
        let passed = json.ids_in_quotes(&mut |id| {
            if items.len() == end {
                return None;
            }
            items.push(self.hash.checked_item(id)?);
            Some(())
        });
        if passed.and_then(|()| json.is_last(b"]}")).is_none() {
            items.truncate(before);
            return None;
        }
        Some(range(before, items.len()))
    }
}
