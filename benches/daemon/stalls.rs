//! Longest round of the ingest loop at a steady rate, while the state grows to its full size and slots expire.
//!
//! The loop of `src/run/mod.rs` runs in this process with one worker, so that each round can be timed. Another thread sends the
//! records. The CPU time of a round is that of its own thread.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use abgauge::board::Board;
use abgauge::clock::Clock;
use abgauge::run;
use abgauge::settings::{self, Config};
use abgauge::stream::Source;
use abgauge::stream::kafka::consumer::Consumer;
use abgauge::stream::schemas::Schemas;
use abgauge::stream::worker::Worker;
use abgauge::telemetry::Telemetry;
use abgauge_core::metrics::Ranking;

use crate::common::clock::thread_cpu_ns;
use crate::common::summary::quantile;
use crate::feed::Feed;
use crate::figure::Figure;
use crate::load::{QUICK_JOIN, Topics};
use crate::process;
use crate::support::kafka::Kafka;
use crate::support::tools;

/// Same value as in `src/run/mod.rs`.
const WAIT: Duration = Duration::from_millis(10);
const MANY: usize = 1000;
/// Bytes that the broker keeps of each partition: some seconds of traffic.
const RETENTION_BYTES: u64 = 64 << 20;
const GOAL_MS: f64 = 10.0;

/// Cost of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Time since the start.
    at: Duration,
    cpu_ms: f64,
    wall_ms: f64,
    /// Number of page faults in its thread.
    n_faults: i64,
    /// Ticks of 10 ms, over all processors, that the host used meanwhile.
    n_stolen: u64,
}

pub fn run(kafka: &Kafka, rate: u64, seconds: u64) -> Vec<Figure> {
    let topics = Topics::short_lived(kafka, RETENTION_BYTES);
    let dir = tools::temporary_dir("stalls");
    let file = dir.path().join("abgauge.toml");
    std::fs::write(&file, topics.config(kafka) + QUICK_JOIN).expect("write the configuration");
    let config = settings::load(Some(&file), std::iter::empty()).expect("the configuration is valid");
    // The daemon disables huge pages too.
    run::take_huge_pages(false);
    let mut ingest = Loop::new(&config);
    let (rounds, wall, n_sent) = thread::scope(|scope| {
        let source = scope.spawn(|| {
            let mut feed = Feed::new(kafka, &topics, false);
            feed.run(rate, Duration::from_secs(seconds));
            feed.n_sent()
        });
        let (rounds, wall) = ingest.run(|| source.is_finished());
        (rounds, wall, source.join().expect("the source does not panic"))
    });
    let n_read = ingest.n_records();
    assert_eq!(
        ingest.telemetry.status().pair_restarts,
        0,
        "retention took unread records"
    );
    topics.delete(kafka);
    run::take_huge_pages(true);
    figures(rounds, wall, n_sent, n_read)
}

fn figures(mut rounds: Vec<Round>, wall: Duration, n_sent: u64, n_read: u64) -> Vec<Figure> {
    let busy_ms: f64 = rounds.iter().map(|round| round.cpu_ms).sum();
    let longest_wall_ms = rounds.iter().map(|round| round.wall_ms).fold(0.0, f64::max);
    rounds.sort_unstable_by(|one, other| one.cpu_ms.total_cmp(&other.cpu_ms));
    let longest = rounds[rounds.len() - 1];
    let longer = || rounds.iter().filter(|round| round.cpu_ms > GOAL_MS);
    let n_stolen = longer().filter(|round| round.n_stolen > 0).count();
    let undisturbed = rounds.iter().rev().find(|round| round.n_stolen == 0);
    let undisturbed_ms = undisturbed.map_or(0.0, |round| round.cpu_ms);
    let ten = rounds.iter().rev().take(10).map(|round| {
        let at = round.at.as_secs_f64();
        format!(
            "{:.1} ({:.0}) at {at:.0}, {}",
            round.cpu_ms, round.wall_ms, round.n_faults
        )
    });
    let ten: Vec<String> = ten.collect();
    let cpu: Vec<f64> = rounds.iter().map(|round| round.cpu_ms).collect();
    let seconds = wall.as_secs_f64();
    let name = format!(
        "longest of {} batches in {seconds:.0} s, thread CPU ms",
        rounds.len()
    );
    vec![
        Figure::at_most(name, longest.cpu_ms, GOAL_MS, format!("{:.2}", longest.cpu_ms)),
        // Time used by the host is counted as the thread's own.
        Figure::at_most(
            "the longest of those during which the host took no processor away",
            undisturbed_ms,
            GOAL_MS,
            format!("{undisturbed_ms:.2}"),
        ),
        Figure::beside(
            "the ten longest, ms (wall) at second, page faults",
            ten.join("; "),
        ),
        Figure::beside(
            "batches above the goal; of these, while the host took a processor away",
            format!("{}; {n_stolen}", longer().count()),
        ),
        Figure::beside("longest batch by wall, ms", format!("{longest_wall_ms:.2}")),
        Figure::beside(
            "batches: p50, p99, p99.9 of thread CPU ms",
            [0.5, 0.99, 0.999]
                .map(|share| format!("{:.2}", quantile(&cpu, share)))
                .join(", "),
        ),
        Figure::beside(
            "batches: records per second, CPU of the loop's thread",
            format!("{:.0}, {:.0}%", n_read as f64 / seconds, busy_ms / seconds / 10.0),
        ),
        Figure::beside(
            "batches: records read of those sent",
            format!("{n_read} of {n_sent}"),
        ),
    ]
}

/// The daemon's ingest loop with its parts.
struct Loop {
    consumer: Consumer,
    worker: Worker,
    telemetry: Arc<Telemetry>,
    clock: Clock,
}

impl Loop {
    fn new(config: &Config) -> Loop {
        let kafka = &config.kafka;
        let telemetry = Arc::new(Telemetry::new(
            &kafka.served_topic,
            &kafka.clicks_topic,
            "benchmark",
        ));
        let ranking = Ranking::new(&config.measures);
        let board = Arc::new(Board::new(config, &ranking));
        let clock = Clock::system();
        let (consumer, readers) = Consumer::new(kafka, 1).expect("a consumer");
        let sources = readers
            .into_iter()
            .map(|reader| -> Box<dyn Source> { Box::new(reader) });
        let worker = Worker::new(
            config,
            ranking,
            board,
            Arc::clone(&telemetry),
            clock.clone(),
            Arc::new(Schemas::open(config).expect("no files")),
            sources.collect(),
        );
        Loop {
            consumer,
            worker,
            telemetry,
            clock,
        }
    }

    /// Runs rounds until `is_over` and no more records come. Returns them, and the time since the first record.
    fn run(&mut self, mut is_over: impl FnMut() -> bool) -> (Vec<Round>, Duration) {
        let mut rounds = Vec::new();
        let mut start = None;
        loop {
            let (n_stolen, n_faults) = (process::stolen_ticks(), n_faults());
            let (begin, cpu_ns) = (Instant::now(), thread_cpu_ns());
            let n_records = self.round();
            let cpu_ms = (thread_cpu_ns() - cpu_ns) as f64 / 1e6;
            let wall_ms = begin.elapsed().as_secs_f64() * 1e3;
            if n_records > 0 {
                let start = *start.get_or_insert(begin);
                rounds.push(Round {
                    at: start.elapsed(),
                    cpu_ms,
                    wall_ms,
                    n_faults: self::n_faults() - n_faults,
                    n_stolen: process::stolen_ticks().saturating_sub(n_stolen),
                });
            } else if is_over() {
                let start = start.expect("records came");
                return (rounds, start.elapsed());
            }
            if n_records < MANY {
                thread::sleep(WAIT);
            }
        }
    }

    /// Runs one round. Returns the number of records in it.
    fn round(&mut self) -> usize {
        self.consumer.poll(|input| self.worker.handle(input));
        self.carry_out();
        let n_records = self.worker.read();
        let begin = self.clock.uptime();
        self.worker.round(n_records > 0, begin);
        self.worker.took(self.clock.uptime().saturating_sub(begin));
        self.carry_out();
        assert_eq!(self.worker.fatal(), None);
        n_records
    }

    fn carry_out(&mut self) {
        for order in self.worker.orders() {
            self.consumer.execute(order).expect("Kafka takes the order");
        }
    }

    fn n_records(&self) -> u64 {
        self.telemetry
            .status()
            .records
            .values()
            .flat_map(|outcomes| outcomes.values())
            .sum()
    }
}

/// Returns the page faults of this thread so far.
fn n_faults() -> i64 {
    process::usage(libc::RUSAGE_THREAD).ru_minflt
}
