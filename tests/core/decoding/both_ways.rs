//! Reads records by both ways of the decoder, which must agree on every event. Fuzzing feeds it (`fuzz/`), and the
//! corpus that fuzzing left (`tests/data/decoding/`).

use abgauge_core::decode::Decoder;
use abgauge_core::engine::event::{Batch, Body, Kind, Position, Reason, Side};

const MAX_ITEMS: u32 = 20;
const MAX_EXPERIMENTS: u32 = 3;
/// Read first, so that there is something to leave as it is, and to be remembered wrongly.
const USUAL: &str =
    r#"{"request_id":"r","user_id":"u","ts":1763596800123,"experiments":{"e":"a"},"items":["i","j"]}"#;

/// Contents of an event, with values in place of ranges.
#[derive(Debug, PartialEq)]
pub enum Read {
    List {
        id: u128,
        user: Option<u64>,
        ts_ms: i64,
        items: Vec<u64>,
        /// Hash, experiment and arm.
        arms: Vec<(u128, String, String)>,
    },
    Click {
        id: u128,
        ts_ms: i64,
        item: u64,
    },
    Invalid(Reason),
    Ignored,
}

/// Reads the input as one record, and each of its lines as one, among typical records and for every kind of topic.
///
/// # Panics
/// If [`Decoder::decode`] differs from decoding by paths.
pub fn check(input: &[u8]) {
    let lines = input.split(|byte| *byte == b'\n');
    let records: Vec<&[u8]> = [USUAL.as_bytes(), input]
        .into_iter()
        .chain(lines)
        .chain([USUAL.as_bytes()])
        .collect();
    let decoder = Decoder::new(7, MAX_ITEMS, MAX_EXPERIMENTS);
    let [mut decoded, mut parsed] = [(); 2].map(|()| Batch::default());
    for topic_kind in [Some(Kind::Served), Some(Kind::Click), None] {
        for (offset, record) in (0..).zip(&records) {
            let at = Position {
                side: Side::Clicks,
                offset,
                record_ts_ms: 1_763_596_900_000,
            };
            decoder.decode(Some(record), topic_kind, at, &mut decoded);
            decoder.decode_by_paths(Some(record), topic_kind, at, &mut parsed);
        }
        assert_eq!(decoded.events.len(), parsed.events.len());
        for n in 0..decoded.events.len() {
            let record = records[decoded.events[n].at.offset as usize];
            let text = String::from_utf8_lossy(record);
            assert_eq!(decoded.events[n].at, parsed.events[n].at);
            assert_eq!(decoded.events[n].is_part, parsed.events[n].is_part);
            assert_eq!(read(&decoded, n), read(&parsed, n), "{topic_kind:?}: {text}");
        }
        // Refilled, as the daemon does.
        decoded.clear();
        parsed.clear();
    }
}

pub fn read(batch: &Batch, n: usize) -> Read {
    match &batch.events[n].body {
        Body::Served(list) => Read::List {
            id: list.id,
            user: list.user,
            ts_ms: list.ts_ms,
            items: batch.items_of(list).to_vec(),
            arms: batch
                .arms_of(list)
                .iter()
                .map(|arm| {
                    let [experiment, arm_name] =
                        [&arm.experiment, &arm.arm].map(|range| batch.text_of(range).to_owned());
                    (arm.hash, experiment, arm_name)
                })
                .collect(),
        },
        Body::Click(click) => Read::Click {
            id: click.id,
            ts_ms: click.ts_ms,
            item: click.item,
        },
        Body::Invalid(reason, _) => Read::Invalid(*reason),
        Body::PartialClick(_) => unreachable!("ids have one part"),
        Body::Ignored => Read::Ignored,
        Body::Skipped => unreachable!("no decoder skips a record"),
    }
}
