//! Fixed work for each stage of the engine, each in its own function whose instructions callgrind counts.
//!
//! `.ci/instructions` runs it and compares the counts with benches/instructions.md. It prints the number of events in each
//! stage. Each process runs one variant: `cargo bench --bench instructions -- base`.

mod common;

use std::sync::Arc;

use abgauge::board::Board;
use abgauge::settings::{self, Config};
use abgauge::stream::worker;
use abgauge_core::decode::Decoder;
use abgauge_core::decode::schema::{RawRecord, Schema};
use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::{Batch, Kind, Position, Side};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::Ranking;
use common::encodings;
use common::stream::{self, ARMS, EXPERIMENT, Numbered};

/// Number of records decoded and joined at a time.
const BATCH: usize = 2000;
/// Number of measured lists, all in one slot, and of clicks on them. A busy worker hands over this many at once.
const LISTS: u64 = 40_000;
const CLICKS: u64 = 8_000;
/// Event time of the first measured list, on the border of a slot. `FILLED_MS` is the time from the very first list to it.
const START_MS: i64 = 1_763_596_800_000;
const FILLED_MS: i64 = 1_200_000;

/// Parameters of a run.
struct Variant {
    name: &'static str,
    n_arms: usize,
    /// Lists that are open before the measurement.
    n_open: u64,
    windows: &'static str,
    /// Shape of the records, if they are those of another system.
    shape: Option<fn() -> Shape>,
    /// Writes one of our own records in the shape and encoding of the variant.
    write: fn(String) -> Vec<u8>,
    /// Schemas of lists and clicks, if they are not JSON.
    schemas: Option<fn() -> [Arc<Schema>; 2]>,
}

const BASE: Variant = Variant {
    name: "base",
    n_arms: 4,
    n_open: 10_000,
    windows: "5m,1h,24h",
    shape: None,
    write: String::into_bytes,
    schemas: None,
};
const VARIANTS: [Variant; 11] = [
    BASE,
    Variant {
        name: "1-arm",
        n_arms: 1,
        ..BASE
    },
    Variant {
        name: "10000-arms",
        n_arms: 10_000,
        ..BASE
    },
    Variant {
        name: "window-5m",
        windows: "5m",
        ..BASE
    },
    Variant {
        name: "window-7d",
        windows: "7d",
        ..BASE
    },
    Variant {
        name: "1000000-open",
        n_open: 1_000_000,
        ..BASE
    },
    Variant {
        name: "shape",
        shape: Some(Shape::default),
        ..BASE
    },
    Variant {
        name: "flat",
        shape: Some(encodings::flat_shape),
        write: encodings::flat,
        ..BASE
    },
    Variant {
        name: "nested",
        shape: Some(encodings::nested_shape),
        write: encodings::nested,
        ..BASE
    },
    Variant {
        name: "avro",
        shape: Some(Shape::default),
        write: encodings::avro,
        schemas: Some(encodings::avro_schemas),
        ..BASE
    },
    Variant {
        name: "protobuf",
        shape: Some(Shape::default),
        write: encodings::protobuf,
        schemas: Some(encodings::protobuf_schemas),
        ..BASE
    },
];

fn main() {
    let name = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let Some(variant) = VARIANTS
        .iter()
        .find(|variant| Some(variant.name) == name.as_deref())
    else {
        let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        println!("{}", names.join(" "));
        return;
    };
    let lists = payloads(LISTS, variant.write, |n, payload| {
        let list = Numbered::new(n, variant.n_arms);
        stream::list(
            payload,
            &list.id,
            list.user,
            ts_ms(n),
            &arm(variant, list.arm),
            list.items,
        );
    });
    let clicks = payloads(CLICKS, variant.write, |n, payload| {
        let list = Numbered::new(n * (LISTS / CLICKS), variant.n_arms);
        stream::click(payload, &list.id, ts_ms(LISTS) + 1, list.items.at(list.user % 10));
    });
    let mut pipeline = Pipeline::new(variant);
    pipeline.fill(variant);
    for lists in lists.chunks(BATCH) {
        stage_decode_list(&mut pipeline, lists);
        stage_join_list(&mut pipeline);
    }
    for clicks in clicks.chunks(BATCH) {
        stage_decode_click(&mut pipeline, clicks);
        stage_join_click(&mut pipeline);
    }
    stage_hand_over(&mut pipeline);
    let n_settled = pipeline.tracker.engine().n_open_lists();
    assert_eq!(n_settled, variant.n_open + LISTS, "every list is open");
    stage_settle(&mut pipeline);
    assert_eq!(
        pipeline.tracker.engine().n_open_lists(),
        0,
        "every list is settled"
    );
    let [n_lists, n_clicks] = pipeline.n_joined;
    assert_eq!([n_lists, n_clicks], [variant.n_open + LISTS, CLICKS]);
    println!("decode_list {LISTS}\ndecode_click {CLICKS}\njoin_list {LISTS}\njoin_click {CLICKS}");
    println!("hand_over {}\nsettle {n_settled}", LISTS + CLICKS);
}

#[inline(never)]
fn stage_decode_list(pipeline: &mut Pipeline, payloads: &[Vec<u8>]) {
    pipeline.decode(Side::Served, Kind::Served, payloads);
}

#[inline(never)]
fn stage_decode_click(pipeline: &mut Pipeline, payloads: &[Vec<u8>]) {
    pipeline.decode(Side::Clicks, Kind::Click, payloads);
}

#[inline(never)]
fn stage_join_list(pipeline: &mut Pipeline) {
    pipeline.join(Side::Served);
}

#[inline(never)]
fn stage_join_click(pipeline: &mut Pipeline) {
    pipeline.join(Side::Clicks);
}

#[inline(never)]
fn stage_hand_over(pipeline: &mut Pipeline) {
    pipeline.hand_over();
}

#[inline(never)]
fn stage_settle(pipeline: &mut Pipeline) {
    pipeline.tracker.close_all();
    pipeline.hand_over();
}

/// Stages from the bytes of a record to the board.
struct Pipeline {
    decoder: Decoder,
    schemas: Option<[Arc<Schema>; 2]>,
    write: fn(String) -> Vec<u8>,
    batch: Batch,
    tracker: PairTracker,
    board: Board,
    offset: i64,
    n_joined: [u64; 2],
}

impl Pipeline {
    fn new(variant: &Variant) -> Pipeline {
        let config = config(variant);
        let ranking = Ranking::new(&config.measures);
        let board = Board::new(&config, &ranking);
        let shape = variant.shape.map(|shape| shape());
        board.show(0);
        Pipeline {
            decoder: config.join.decoder().reading(shape.as_ref()),
            schemas: variant.schemas.map(|schemas| schemas()),
            write: variant.write,
            batch: Batch::default(),
            tracker: PairTracker::new(worker::rules(&config), ranking, None, &Keep::default()),
            board,
            offset: 0,
            n_joined: [0; 2],
        }
    }

    /// Opens lists of one item in all arms by turns. A million longer lists would take too long under callgrind.
    fn fill(&mut self, variant: &Variant) {
        let n_open = variant.n_open;
        for n in 0..n_open {
            let arm = arm(variant, n as usize % variant.n_arms);
            let ts_ms = START_MS - FILLED_MS + n as i64 * (FILLED_MS - 5_000) / n_open as i64;
            let payload = format!(
                r#"{{"request_id":"r{n:032x}","user_id":"u","ts":{ts_ms},"experiments":{{"{EXPERIMENT}":"{arm}"}},"items":["i"]}}"#
            );
            let payload = (self.write)(payload);
            self.decode(Side::Served, Kind::Served, &[payload]);
            if self.batch.events.len() == BATCH || n + 1 == n_open {
                self.join(Side::Served);
            }
        }
        self.hand_over();
    }

    fn decode(&mut self, side: Side, kind: Kind, payloads: &[Vec<u8>]) {
        for payload in payloads {
            let at = Position {
                side,
                offset: self.offset,
                record_ts_ms: i64::MAX,
            };
            let batch = &mut self.batch;
            match &self.schemas {
                None => self.decoder.decode(Some(payload), Some(kind), at, batch),
                Some(schemas) => {
                    let record = RawRecord {
                        bytes: payload,
                        schema: Some(&schemas[side as usize]),
                    };
                    self.decoder.decode_raw(record, Some(kind), at, batch);
                }
            }
            self.offset += 1;
        }
    }

    fn join(&mut self, side: Side) {
        self.n_joined[side as usize] += self.batch.events.len() as u64;
        self.tracker.apply(&self.batch, u64::MAX);
        self.batch.clear();
    }

    fn hand_over(&mut self) {
        if let Some((_, last_ms)) = self.tracker.engine().accepted_ms() {
            self.board.set_live_end(last_ms);
        }
        self.board.merge(0, &self.tracker.take_delta());
    }
}

fn config(variant: &Variant) -> Config {
    let set = [
        ("ABGAUGE_KAFKA__BROKERS", "localhost:9092"),
        ("ABGAUGE_METRICS__WINDOWS", variant.windows),
    ];
    let env = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    settings::load(None, env.into_iter()).expect("the settings are valid")
}

fn payloads(n: u64, encode: fn(String) -> Vec<u8>, write: impl Fn(u64, &mut String)) -> Vec<Vec<u8>> {
    let payload = |n| {
        let mut payload = String::new();
        write(n, &mut payload);
        encode(payload)
    };
    (0..n).map(payload).collect()
}

/// Returns the time of the n-th list. All of them are in one slot.
fn ts_ms(n: u64) -> i64 {
    START_MS + (n * 4_000 / LISTS) as i64
}

fn arm(variant: &Variant, arm: usize) -> String {
    match variant.n_arms {
        4 => ARMS[arm].to_owned(),
        _ => format!("a{arm:05}"),
    }
}
