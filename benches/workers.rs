//! Gain from a second worker: records per second from memory, without a broker.
//!
//! `cargo bench --bench workers`; `-- LISTS ROUNDS WORKERS` for another size. One worker and several take turns. If other
//! programs use the cores, wall time means little. CPU time then shows how the work was divided, and what idle cores would
//! achieve.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use abgauge::board::Board;
use abgauge::clock::Clock;
use abgauge::settings::{self, Config};
use abgauge::stream::schemas::Schemas;
use abgauge::stream::worker::Worker;
use abgauge::stream::{
    Answer, Input, LogStart, Order, Question, Record, Source, TopicCounts, TopicPartition, queue_of,
};
use abgauge::telemetry::Telemetry;
use abgauge_core::decode::framing::NoHeaders;
use abgauge_core::engine::event::Side;
use abgauge_core::metrics::Ranking;
use common::clock::{cpu_ns, thread_cpu_ns};
use common::stream::Stream;
use common::summary::Summary;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N_PARTITIONS: i32 = 8;
/// Number of consecutive records of one partition.
const RUN: usize = 1000;
/// Number of records handed on at a time. `BATCH` is the size of a batch; both are as in the consumer.
const SLICE: usize = 256;
const BATCH: usize = 4096;

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let n_lists = sizes.next().unwrap_or(1_000_000);
    let n_rounds = sizes.next().unwrap_or(7);
    let n_workers = sizes.next().unwrap_or(2) as usize;
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
    let config = settings::load(None, [brokers].into_iter()).expect("the defaults are valid");
    let log = Arc::new(Log::new(&Stream {
        n_lists,
        start_ms: 1_763_596_800_000,
        span_ms: 3_600_000,
        click_share: 0.2,
    }));
    println!(
        "{} records, {N_PARTITIONS} partitions of each topic, {n_rounds} rounds",
        log.n_records
    );
    let rounds: Vec<[Cost; 2]> = (0..n_rounds)
        .map(|_| [1, n_workers].map(|n| round(&config, &log, n)))
        .collect();
    let of = |value: &dyn Fn(&[Cost; 2]) -> f64| Summary::of(rounds.iter().map(value));
    for (index, n) in [1, n_workers].into_iter().enumerate() {
        println!(
            "- {n} worker(s): {:.0} records per second; {:.3} CPU µs per record; {:.2} cores in use",
            of(&|costs| costs[index].n_records / costs[index].wall_s),
            of(&|costs| costs[index].cpu_s / costs[index].n_records * 1e6),
            of(&|costs| costs[index].cpu_s / costs[index].wall_s),
        );
    }
    println!(
        "- records per second with {n_workers} ÷ with 1: {:.2}; goal for 2: 1.7",
        of(&|[one, several]| one.wall_s / several.wall_s)
    );
    println!(
        "- CPU time with 1 ÷ CPU time of the busiest thread of {n_workers} (what free cores would give): {:.2}",
        of(&|[one, several]| one.cpu_s / several.busiest_s)
    );
}

/// Cost of one pass over the log.
#[derive(Debug, Clone, Copy)]
struct Cost {
    n_records: f64,
    wall_s: f64,
    /// CPU seconds of all threads.
    cpu_s: f64,
    /// CPU seconds of the worker's own thread, or the mean of the others if that is more.
    busiest_s: f64,
}

fn round(config: &Config, log: &Arc<Log>, n_workers: usize) -> Cost {
    let mut worker = owning(config, log, n_workers);
    let start = Instant::now();
    let (cpu, own) = (cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID), thread_cpu_ns());
    let mut n_read = 0;
    while n_read < log.n_records {
        n_read += worker.read();
        worker.round(true, start.elapsed());
        worker.orders();
    }
    worker.finish();
    let (cpu, own) = (
        cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu,
        thread_cpu_ns() - own,
    );
    let others = (cpu - own) / (n_workers as u64 - 1).max(1);
    Cost {
        n_records: log.n_records as f64,
        wall_s: start.elapsed().as_secs_f64(),
        cpu_s: cpu as f64 / 1e9,
        busiest_s: own.max(others) as f64 / 1e9,
    }
}

/// Creates a worker that owns all partitions and reads from the start of the log.
fn owning(config: &Config, log: &Arc<Log>, n_workers: usize) -> Worker {
    let ranking = Ranking::new(&config.measures);
    let board = Arc::new(Board::new(config, &ranking));
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "bench"));
    let sources =
        (0..n_workers).map(|queue| -> Box<dyn Source> { Box::new(Queue::new(log, queue, n_workers)) });
    let mut worker = Worker::new(
        config,
        ranking,
        board,
        telemetry,
        Clock::system(),
        Arc::new(Schemas::open(config).expect("no files")),
        sources.collect(),
    );
    let counts = TopicCounts {
        served: N_PARTITIONS,
        clicks: N_PARTITIONS,
    };
    worker.handle(Input::Answer(Answer::Topics(Ok(counts))));
    let both = |partition| Side::BOTH.map(|side| (side, partition));
    let all: Vec<TopicPartition> = (0..N_PARTITIONS).flat_map(both).collect();
    worker.handle(Input::Assigned(all));
    let asked = worker.orders().into_iter().find_map(|order| match order {
        Order::Ask(Question::Starts {
            epoch, partitions, ..
        }) => Some((epoch, partitions)),
        _ => None,
    });
    let (epoch, partitions) = asked.expect("it asks where to start");
    let start = LogStart {
        low: 0,
        high: 0,
        by_time: Some(0),
        first_record_ms: None,
    };
    let starts: BTreeMap<_, _> = partitions.into_iter().map(|key| (key, start)).collect();
    worker.handle(Input::Answer(Answer::Starts {
        epoch,
        starts: Ok(starts),
    }));
    worker
}

/// Runs of records from one partition, in the order in which they fill up.
struct Log {
    runs: Vec<Run>,
    n_records: usize,
}

struct Run {
    side: Side,
    partition: i32,
    first_offset: i64,
    text: String,
    /// Time and end in `text` of each record.
    records: Vec<(i64, usize)>,
}

impl Log {
    fn new(stream: &Stream) -> Log {
        let mut log = Log {
            runs: Vec::new(),
            n_records: 0,
        };
        let mut open: BTreeMap<TopicPartition, Run> = BTreeMap::new();
        stream.for_each(|record| {
            let hash = record
                .key
                .bytes()
                .fold(0_u32, |hash, byte| hash.wrapping_mul(31) + u32::from(byte));
            let key = (record.side, (hash % N_PARTITIONS as u32) as i32);
            let run = open.entry(key).or_insert_with(|| Run::new(key, 0));
            run.text.push_str(record.payload);
            run.records.push((record.ts_ms, run.text.len()));
            log.n_records += 1;
            if run.records.len() == RUN {
                let next = Run::new(key, run.first_offset + RUN as i64);
                log.runs.push(std::mem::replace(run, next));
            }
        });
        log.runs.extend(open.into_values());
        log
    }
}

impl Run {
    fn new((side, partition): TopicPartition, first_offset: i64) -> Run {
        Run {
            side,
            partition,
            first_offset,
            text: String::new(),
            records: Vec::new(),
        }
    }

    fn records(&self, places: std::ops::Range<usize>) -> impl Iterator<Item = Record<'_>> {
        places.map(|place| {
            let start = place.checked_sub(1).map_or(0, |before| self.records[before].1);
            let (timestamp_ms, end) = self.records[place];
            Record {
                side: self.side,
                partition: self.partition,
                offset: self.first_offset + place as i64,
                timestamp_ms,
                key: None,
                payload: Some(&self.text.as_bytes()[start..end]),
                headers: &NoHeaders,
            }
        })
    }
}

/// A source of the runs of some partitions.
struct Queue {
    log: Arc<Log>,
    /// Positions in the log, with the next one last.
    runs: Vec<usize>,
    /// Number of records of the next run that have been read.
    n_read: usize,
    n_waiting: usize,
}

impl Queue {
    fn new(log: &Arc<Log>, queue: usize, n_queues: usize) -> Queue {
        let is_here = |index: &usize| queue_of(log.runs[*index].partition, n_queues) == queue;
        let runs: Vec<usize> = (0..log.runs.len()).rev().filter(is_here).collect();
        Queue {
            n_waiting: runs.iter().map(|index| log.runs[*index].records.len()).sum(),
            log: Arc::clone(log),
            runs,
            n_read: 0,
        }
    }
}

impl Source for Queue {
    fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    fn read(&mut self, take: &mut dyn FnMut(&[Record<'_>]), _: &mut Vec<Input>) -> usize {
        let mut n = 0;
        let mut slice = Vec::with_capacity(SLICE);
        while let Some(run) = self.runs.last().map(|index| &self.log.runs[*index])
            && n < BATCH
        {
            let end = run.records.len().min(self.n_read + SLICE);
            slice.clear();
            slice.extend(run.records(self.n_read..end));
            take(&slice);
            n += slice.len();
            self.n_read = end;
            if end == run.records.len() {
                self.runs.pop();
                self.n_read = 0;
            }
        }
        self.n_waiting -= n;
        n
    }
}
