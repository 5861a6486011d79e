//! Records and the events that they become.

mod alternatives;
mod avro;
mod both_ways;
mod cases;
mod composite;
mod plain;
mod protobuf;
mod random;
mod rows;
mod several;
mod shapes;
mod spellings;
mod usual;

use super::schema::{RawRecord, Schema};
use super::*;
use crate::engine::event::{ArmName, RefusedClick, Side, Unreadable};

const SEED: u64 = 7;
const MAX_ITEMS: u32 = 5;
const MAX_EXPERIMENTS: u32 = 4;
const LIST: &str = r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural"},"items":["i5","i9"]}"#;
const CLICK: &str = r#"{"request_id":"r-1","ts":1763596805123,"item":"i9"}"#;

/// Event of a record, with text and hashes in place of ranges.
#[derive(Debug, Clone, PartialEq)]
enum Read {
    List {
        id: u128,
        user: Option<u64>,
        ts_ms: i64,
        items: Vec<u64>,
        arms: Vec<(String, String, u128)>,
    },
    Click {
        id: u128,
        user: Option<u64>,
        ts_ms: i64,
        item: u64,
    },
    Invalid(Reason),
    Ignored,
}

/// Decodes one record after another, and checks for each that the event equals decoding by paths and that the arenas hold its
/// contents.
fn decode_as(payload: Option<&[u8]>, topic_kind: Option<Kind>) -> Read {
    let at = Position {
        side: Side::Clicks,
        offset: 42,
        record_ts_ms: 1_763_596_900_000,
    };
    let decoder = decoder();
    let mut batch = Batch::default();
    decoder.decode(Some(LIST.as_bytes()), Some(Kind::Served), at, &mut batch);
    let before = batch.clone();
    decoder.decode(payload, topic_kind, at, &mut batch);
    let mut parsed = before.clone();
    decoder.decode_by_paths(payload, topic_kind, at, &mut parsed);
    assert_same(&batch, &parsed);
    assert_eq!(batch.events.len(), 2);
    assert_eq!(batch.events[0], before.events[0]);
    assert_eq!(batch.events[1].at, at);
    let (n_items, n_arms) = (before.items.len(), before.arms.len());
    assert_eq!(batch.items[..n_items], before.items);
    assert_eq!(batch.arms[..n_arms], before.arms);
    let (items, arms, text) = (batch.items.len(), batch.arms.len(), &batch.text);
    match &batch.events[1].body {
        Body::Served(list) => {
            assert_eq!(list.items, n_items as u32..items as u32);
            let n_new = arms - n_arms;
            assert!(
                n_new == 0 || list.arms == (n_arms as u32..arms as u32),
                "what is new is the list's"
            );
        }
        // Arms of a list that cannot be read stay.
        _ if !batch.unreadable.is_empty() => assert_eq!(items, n_items),
        _ => assert_eq!(
            (items, arms, text),
            (n_items, n_arms, &before.text),
            "arenas as before"
        ),
    }
    read(&batch, &batch.events[1])
}

/// Reads a record twice, the second time with its arms remembered, and by its paths alone, and checks that all agree.
#[track_caller]
fn read_by(decoder: &Decoder, schema: &Schema, bytes: &[u8], topic_kind: Option<Kind>) -> Read {
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let written = RawRecord {
        bytes,
        schema: Some(schema),
    };
    let mut batch = Batch::default();
    decoder.decode_raw(written, topic_kind, at, &mut batch);
    decoder.decode_raw(written, topic_kind, at, &mut batch);
    let mut by_paths = Batch::default();
    decoder.decode_raw_by_paths(written, topic_kind, at, &mut by_paths);
    let of = |batch: &Batch, n: usize| read(batch, &batch.events[n]);
    assert_eq!(of(&batch, 0), of(&by_paths, 0));
    assert_eq!(of(&batch, 1), of(&by_paths, 0));
    assert_eq!(batch.events.len(), 2);
    of(&batch, 0)
}

fn read(batch: &Batch, event: &Event) -> Read {
    match &event.body {
        Body::Served(list) => {
            let of = |arm: &ArmName| {
                (
                    batch.text_of(&arm.experiment).to_owned(),
                    batch.text_of(&arm.arm).to_owned(),
                    arm.hash,
                )
            };
            Read::List {
                id: list.id,
                user: list.user,
                ts_ms: list.ts_ms,
                items: batch.items_of(list).to_vec(),
                arms: batch.arms_of(list).iter().map(of).collect(),
            }
        }
        Body::Click(click) => Read::Click {
            id: click.id,
            user: click.user,
            ts_ms: click.ts_ms,
            item: click.item,
        },
        Body::Invalid(reason, _) => Read::Invalid(*reason),
        Body::PartialClick(_) => unreachable!("ids have one part"),
        Body::Ignored => Read::Ignored,
        Body::Skipped => unreachable!("no decoder skips a record"),
    }
}

/// Compares events by content, because lists may share arms in the arenas.
#[track_caller]
fn assert_same(one: &Batch, other: &Batch) {
    let all = |batch: &Batch| -> Vec<(Position, Read)> {
        let events = batch.events.iter();
        events.map(|event| (event.at, read(batch, event))).collect()
    };
    assert_eq!(all(one), all(other));
}

fn list(json: &str) -> Read {
    decode_as(Some(json.as_bytes()), Some(Kind::Served))
}

fn click(json: &str) -> Read {
    decode_as(Some(json.as_bytes()), Some(Kind::Click))
}

/// A list whose field `name` has the value `json`, or is absent.
fn list_with(name: &str, json: Option<&str>) -> Read {
    let mut fields = vec![("request_id", "1"), ("ts", "1763596800123"), ("items", "[]")];
    fields.retain(|(field, _)| *field != name);
    fields.extend(json.map(|json| (name, json)));
    list(&object(&fields))
}

fn object(fields: &[(&str, &str)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, json)| format!("\"{name}\":{json}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn check_invalid(name: &str, cases: &[(&str, Reason)]) {
    for (json, reason) in cases {
        assert_eq!(
            list_with(name, Some(json)),
            Read::Invalid(*reason),
            "{name}: {json:.100}"
        );
    }
}

fn hash() -> Hashes {
    decoder().hashes()
}

fn decoder() -> Decoder {
    Decoder::new(SEED, MAX_ITEMS, MAX_EXPERIMENTS)
}

fn arm(experiment: &str, arm: &str) -> (String, String, u128) {
    (experiment.to_owned(), arm.to_owned(), hash().arm(experiment, arm))
}
