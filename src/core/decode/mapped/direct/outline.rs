//! Outlines of JSON records: the text around the values. Producers write few different ones, so the outline of a record is
//! remembered, and the records after it are compared with its text instead of being split into keys and values.
//!
//! ```text
//! {"rec":{"id":  ·  },"shown":[{"sku":  ·  ,"score":  ·  },…],"time":  ·  }
//! └── step 1 ──┘    └──────── step 2 and the item's steps ────────┘ …    └ end
//! ```
//! A record with another text, such as an absent field, is read key by key, and its outline is remembered too.

use super::super::super::scan::Scanner;
use super::{Direct, DirectReader, EventPart, Found, json_item};
use crate::decode::range;

/// Number of outlines that are remembered.
const MAX_OUTLINES: usize = 8;
/// Length of a record whose outline is remembered.
const MAX_BYTES: usize = 64 << 10;
/// Number of outlines learned whatever comes of them. Beyond it, one is learned for each `MATCHES_PER_OUTLINE` records that match, so
/// that producers with random keys cost little.
const MIN_LEARNED: u64 = 32;
const MATCHES_PER_OUTLINE: u64 = 16;

/// Outlines of the records of one shape, the last one that matched first.
#[derive(Debug, Clone, Default)]
pub struct Outlines {
    /// Hash of the shape.
    shape: u64,
    known: Vec<Outline>,
    n_learned: u64,
    n_matched: u64,
    /// Values of the record that is read key by key.
    pub(super) record: Vec<FoundValue>,
    /// Values of its first item.
    pub(super) item: Vec<FoundValue>,
}

/// Value in a record, by the number of bytes before it and after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundValue {
    pub start: usize,
    pub end: usize,
    /// Part of lists, of clicks, or of both; `None` if it is skipped.
    pub part: Option<(EventPart, [bool; 2])>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Outline {
    steps: Vec<Step>,
    /// Text behind the last value.
    end: Box<[u8]>,
}

#[derive(Debug, Clone)]
struct Step {
    /// Text between the value before and this one.
    before: Box<[u8]>,
    part: Option<(EventPart, [bool; 2])>,
    /// Outline of the items that are objects, if this is the list of items.
    item: Outline,
}

impl Outline {
    /// Makes the outline of the text from `start` to `end`.
    fn new(text: &[u8], start: usize, end: usize, values: &[FoundValue], item: &Outline) -> Outline {
        let mut outline = Outline::default();
        let mut at = start;
        for value in values {
            outline.steps.push(Step {
                before: text[at..value.start].into(),
                part: value.part,
                item: match value.part {
                    Some((EventPart::Items, _)) => item.clone(),
                    _ => Outline::default(),
                },
            });
            at = value.end;
        }
        outline.end = text[at..end].into();
        outline
    }

    /// Passes an item that is an object of this outline, and returns its id.
    #[inline(always)]
    fn item<'a>(&self, json: &mut Scanner<'a>) -> Option<&'a [u8]> {
        let mut own = *json;
        let mut id = None;
        for step in &self.steps {
            own.expect_few(&step.before)?;
            match step.part {
                Some(_) => id = Some(own.id()?),
                None => own.skip_scalar()?,
            }
        }
        own.expect_few(&self.end)?;
        *json = own;
        id
    }
}

impl Outlines {
    /// Forgets the values of the last record, and the outlines of another shape.
    #[inline(always)]
    pub(super) fn begin(&mut self, shape: u64) {
        if self.shape != shape {
            self.shape = shape;
            self.known.clear();
        }
        self.record.clear();
        self.item.clear();
    }

    /// Remembers the outline of a record that was read key by key.
    #[inline(never)]
    pub(super) fn learn(&mut self, text: &[u8]) {
        let most = MIN_LEARNED + self.n_matched / MATCHES_PER_OUTLINE;
        if self.n_learned >= most || text.len() > MAX_BYTES {
            return;
        }
        self.n_learned += 1;
        let item = match &self.item[..] {
            [] => Outline::default(),
            [first, .., last] | [first @ last] => {
                // The brackets of the item are the first and the last text.
                let start = text[..first.start].iter().rposition(|byte| *byte == b'{');
                let end = text[last.end..].iter().position(|byte| *byte == b'}');
                match (start, end) {
                    (Some(start), Some(end)) => {
                        Outline::new(text, start, last.end + end + 1, &self.item, &Outline::default())
                    }
                    _ => Outline::default(),
                }
            }
        };
        let outline = Outline::new(text, 0, text.len(), &self.record, &item);
        self.known.truncate(MAX_OUTLINES - 1);
        self.known.insert(0, outline);
    }
}

impl Direct {
    /// Reads a record by the outlines that are known. Returns false if it matches none of them.
    #[inline(always)]
    pub(super) fn json_by_outline<'a>(
        &self,
        payload: &'a [u8],
        outlines: &mut Outlines,
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> bool {
        for n in 0..outlines.known.len() {
            if self.follow(&outlines.known[n], payload, found, reader).is_some() {
                outlines.n_matched += 1;
                if n > 0 {
                    outlines.known[..=n].rotate_right(1);
                }
                return true;
            }
            reader.batch.items.truncate(reader.items_start);
            *found = Found::default();
        }
        false
    }

    #[inline(never)]
    fn follow<'a>(
        &self,
        outline: &Outline,
        payload: &'a [u8],
        found: &mut Found<'a>,
        reader: &mut DirectReader,
    ) -> Option<()> {
        let mut json = Scanner::new(payload);
        for step in &outline.steps {
            json.expect_few(&step.before)?;
            match step.part {
                None => json.skip_scalar()?,
                Some((EventPart::Items, _)) if !json.null() => {
                    let start = reader.batch.items.len();
                    json = self.items_by_outline(Some(&step.item), json, reader)?;
                    found.items = Some(range(start, reader.batch.items.len()));
                }
                Some((EventPart::Items, _)) => {}
                Some((part, of)) => self.json_part(part, of, &mut json, found, reader)?,
            }
        }
        json.is_last(&outline.end)
    }

    /// Reads a list of items, and returns the text behind it. Items that do not have the outline are read key by key.
    ///
    /// Not inlined, so that the loop can use all registers.
    #[inline(never)]
    pub(super) fn items_by_outline<'a>(
        &self,
        outline: Option<&Outline>,
        mut json: Scanner<'a>,
        reader: &mut DirectReader,
    ) -> Option<Scanner<'a>> {
        let hash = reader.hash;
        let items = &mut reader.batch.items;
        let most = items.len() + reader.max_items;
        let mut push = |id: &'a [u8]| {
            items.push(hash.checked_item(id)?);
            (items.len() <= most).then_some(())
        };
        let mut more = json.enter(b'[', b']')?;
        while more {
            match json.peek()? {
                b'"' => {
                    json.pass(1);
                    json.ids_in_quotes(&mut push)?;
                }
                b'{' if !self.item.is_empty() => {
                    let mut is_passed = false;
                    if let Some(outline) = outline {
                        // The outline of a record whose list was empty: the one of this record is needed.
                        if outline.steps.is_empty() {
                            return None;
                        }
                        while let Some(id) = outline.item(&mut json) {
                            push(id)?;
                            // Usually another object follows, whose comma can be passed at once.
                            is_passed = !json.rest().starts_with(b",{");
                            if is_passed {
                                break;
                            }
                            json.pass(1);
                        }
                    }
                    if !is_passed {
                        push(json_item(&self.item, &mut json, None)?)?;
                    }
                }
                _ => push(json.id()?)?,
            }
            more = json.more(b']')?;
        }
        Some(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::decode::shape::{Path, Shape};
    use crate::engine::event::{Batch, Body, Position, Reason, Side};

    fn decoder() -> Decoder {
        let mut shape = Shape::default();
        let path = |text| Path::parse(text).expect("a path").into();
        shape.served.item_id = Some(path("sku"));
        shape.served.user_id = Some(path("ctx.user"));
        Decoder::new(7, 5, 3).reading(Some(&shape))
    }

    fn decode(records: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for (offset, record) in (0..).zip(records) {
            let at = Position {
                side: Side::Served,
                offset,
                record_ts_ms: 0,
            };
            decoder().decode(Some(record.as_bytes()), None, at, &mut batch);
        }
        batch
    }

    fn list(n: usize, items: &str) -> String {
        format!(
            r#"{{"request_id":"r{n}","ctx":{{"user":"u{n}","os":"ios"}},"ts":176359680000{n},"score":{n},"items":[{items}],"type":"served"}}"#
        )
    }

    const ITEMS: &str = r#"{"at":1,"sku":"i1","score":-0.5e1},{"at":2,"sku":"i2","score":0.25}"#;

    #[test]
    fn records_of_one_outline_are_split_into_keys_once() {
        let click = r#"{"request_id":"r1","ts":1763596800005,"item":"i2","type":"click"}"#;
        // The first list is read by its paths, which remember its arms.
        let lists = [0, 1, 2, 3].map(|n| list(n, ITEMS));
        let batch = decode(&[&lists[0], &lists[1], click, &lists[2], click, &lists[3]]);
        assert!(
            batch
                .events
                .iter()
                .all(|event| !matches!(event.body, Body::Invalid(..)))
        );
        assert_eq!((batch.outlines.n_learned, batch.outlines.n_matched), (2, 4));
        let hash = decoder().hashes();
        assert_eq!(batch.items, [b"i1", b"i2"].map(|item| hash.item(item)).repeat(4));
    }

    #[test]
    fn text_that_only_begins_like_an_outline_is_read_anew() {
        let usual = list(1, ITEMS);
        for (items, expected) in [
            (r#"{"at":1,"sku":"i1","score":1,"new":[]}, {"sku":"i2"}"#, None),
            (r#"{"at":1,"sku":7,"score":null},"i5""#, None),
            (
                r#"{"at":1,"sku":"i1","score":1}{"at":1,"sku":"i2","score":1}"#,
                Some(Reason::NotJson),
            ),
            (r#"{"at":1,"sku":"i1","score":01}"#, Some(Reason::NotJson)),
            (r#"{"at":1,"sku":"i1","score":1.}"#, Some(Reason::NotJson)),
            (r#"{"at":1,"score":1}"#, Some(Reason::MissingField)),
        ] {
            let other = list(2, items);
            let batch = decode(&[&usual, &usual, &other, &usual]);
            assert_eq!(batch.first_reason(0), expected, "{items}");
            let alone = decode(&[&other]);
            let n_items = |batch: &Batch| batch.items.len();
            assert_eq!(n_items(&batch), 6 + n_items(&alone), "{items}");
        }
    }

    #[test]
    fn a_list_without_items_does_not_hide_the_outline_of_items() {
        let [empty, usual] = [list(1, ""), list(2, ITEMS)];
        let batch = decode(&[&empty, &empty, &usual, &usual]);
        assert_eq!((batch.outlines.n_learned, batch.outlines.n_matched), (2, 2));
    }

    #[test]
    fn records_with_random_keys_are_not_remembered_for_ever() {
        let records: Vec<String> = (0..200)
            .map(|n| {
                format!(r#"{{"request_id":"r","key{n}":1,"ts":1763596800000,"item":"i","type":"click"}}"#)
            })
            .collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let batch = decode(&records);
        assert_eq!(batch.outlines.n_learned, MIN_LEARNED);
        assert_eq!(batch.outlines.known.len(), MAX_OUTLINES);
        assert!(
            batch
                .events
                .iter()
                .all(|event| matches!(event.body, Body::Click(_)))
        );
    }
}
