//! CPU cost of a record without Kafka: nanoseconds to decode, join and hand over.
//!
//! `cargo bench --bench engine`; see docs/performance.md. `-- LISTS ROUNDS` for another size, such as a small one under
//! `valgrind --tool=callgrind`.

mod common;

use std::sync::Arc;

use abgauge::board::Board;
use abgauge::settings::{self, Config};
use abgauge::stream::worker;
use abgauge_core::decode::catalogue;
use abgauge_core::engine::event::{Batch, Kind, Position, Side};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::{METRICS, Ranking, usual_ids};
use common::clock::thread_cpu_ns;
use common::stream::{Stream, catalog};
use common::summary::Summary;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of records between two hand-overs, as in the consumer.
const BATCH: usize = 2000;

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let n_lists = sizes.next().unwrap_or(1_000_000);
    let n_rounds = sizes.next().unwrap_or(7);
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
    let config = settings::load(None, [brokers].into_iter()).expect("the defaults are valid");
    let log = Log::new(&Stream {
        n_lists,
        start_ms: 1_763_596_800_000,
        span_ms: 3_600_000,
        click_share: 0.2,
    });

    println!("CPU ns per record, one thread; median (smallest to largest) of {n_rounds} rounds");
    let measured: [(&str, &[&'static str], bool); 3] = [
        ("hit ratio, CTR and MRR", &["hit_rate", "ctr", "mrr"], false),
        ("the usual metrics", &usual_ids(), false),
        ("all metrics", &METRICS.map(|metric| metric.id), true),
    ];
    let configs = measured.map(|(name, metrics, catalogue)| {
        let mut config = config.clone();
        config.measures.metrics = metrics.to_vec();
        config.measures.catalogue = catalogue;
        (name, config)
    });
    let rounds: Vec<Vec<[Stages; 2]>> = (0..n_rounds)
        .map(|_| configs.iter().map(|(_, config)| round(config, &log)).collect())
        .collect();
    for (index, (name, _)) in configs.iter().enumerate() {
        let rounds: Vec<[Stages; 2]> = rounds.iter().map(|round| round[index]).collect();
        print(name, &log, &rounds);
    }
}

fn print(name: &str, log: &Log, rounds: &[[Stages; 2]]) {
    let [n_lists, n_clicks] = Side::BOTH.map(|side| log.n_of(side));
    println!("\n| {name} | lists ({n_lists}) | clicks ({n_clicks}) |\n|---|---|---|");
    type Stage = (&'static str, fn(&Stages) -> u64);
    let stages: [Stage; 4] = [
        ("decode", |stages| stages.decode_ns),
        ("join and tally", |stages| stages.apply_ns),
        ("hand over to the board", |stages| stages.merge_ns),
        ("together", |stages| {
            stages.decode_ns + stages.apply_ns + stages.merge_ns
        }),
    ];
    for (name, ns) in stages {
        let [lists, clicks] = Side::BOTH.map(|side| {
            let n = log.n_of(side) as f64;
            Summary::of(rounds.iter().map(|round| ns(&round[side as usize]) as f64 / n))
        });
        println!("| {name} | {lists:.0} | {clicks:.0} |");
    }
}

/// CPU time of each stage.
#[derive(Debug, Default, Clone, Copy)]
struct Stages {
    decode_ns: u64,
    apply_ns: u64,
    merge_ns: u64,
}

/// Makes one pass over the log with a new engine and board.
fn round(config: &Config, log: &Log) -> [Stages; 2] {
    let ranking = Ranking::new(&config.measures);
    let board = Board::new(config, &ranking);
    let mut tracker = PairTracker::new(worker::rules(config), ranking, None, &Keep::default());
    let decoder = config.join.decoder();
    if config.measures.catalogue {
        let items = catalogue::read(catalog().as_bytes(), &decoder, None).expect("it is well formed");
        let items = Arc::new(items);
        board.set_catalogue(Arc::clone(&items));
        tracker.set_catalogue(items);
    }
    board.show(0);
    let mut batch = Batch::default();
    let mut counts = Counts::default();
    let mut stages = [Stages::default(); 2];
    let mut offset = 0;
    for chunk in &log.chunks {
        let stages = &mut stages[chunk.side as usize];
        let kind = match chunk.side {
            Side::Served => Kind::Served,
            Side::Clicks => Kind::Click,
        };
        let start = thread_cpu_ns();
        for (ts_ms, payload) in chunk.records() {
            let at = Position {
                side: chunk.side,
                offset,
                record_ts_ms: ts_ms,
            };
            decoder.decode(Some(payload), Some(kind), at, &mut batch);
            offset += 1;
        }
        let decoded = thread_cpu_ns();
        tracker.apply(&batch, u64::MAX);
        batch.clear();
        let applied = thread_cpu_ns();
        let delta = tracker.take_delta();
        board.merge(0, &delta);
        let merged = thread_cpu_ns();
        counts.add(&delta.counts);
        stages.decode_ns += decoded - start;
        stages.apply_ns += applied - decoded;
        stages.merge_ns += merged - applied;
    }
    let accepted = Side::BOTH.map(|side| counts.outcome(side, Outcome::Accepted));
    assert_eq!(
        accepted,
        Side::BOTH.map(|side| log.n_of(side)),
        "every record counts"
    );
    assert_eq!(
        counts.result(ClickResult::Matched),
        log.n_of(Side::Clicks),
        "every click has its list"
    );
    stages
}

/// Payloads in memory: chunks of one side each, in the order of a consumer that reads both sides at the same pace.
struct Log {
    chunks: Vec<Chunk>,
}

struct Chunk {
    side: Side,
    text: String,
    /// Time and end in `text` of each record.
    records: Vec<(i64, usize)>,
}

impl Log {
    fn new(stream: &Stream) -> Log {
        let new = |side| Chunk {
            side,
            text: String::new(),
            records: Vec::new(),
        };
        let mut chunks = Vec::new();
        let mut open = Side::BOTH.map(new);
        stream.for_each(|record| {
            let chunk = &mut open[record.side as usize];
            chunk.text.push_str(record.payload);
            chunk.records.push((record.ts_ms, chunk.text.len()));
            if open.iter().map(|chunk| chunk.records.len()).sum::<usize>() == BATCH {
                chunks.extend(
                    open.iter_mut()
                        .map(|chunk| std::mem::replace(chunk, new(chunk.side))),
                );
            }
        });
        chunks.extend(open);
        Log { chunks }
    }

    fn n_of(&self, side: Side) -> u64 {
        let of_side = self.chunks.iter().filter(|chunk| chunk.side == side);
        of_side.map(|chunk| chunk.records.len() as u64).sum()
    }
}

impl Chunk {
    fn records(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let starts = std::iter::once(0).chain(self.records.iter().map(|(_, end)| *end));
        starts
            .zip(&self.records)
            .map(|(start, (ts_ms, end))| (*ts_ms, &self.text.as_bytes()[start..*end]))
    }
}
