//! One pass of a daemon or a bare consumer over whole topics, and its cost per record.
//!
//! The bare consumer is measured between a tenth and nine tenths of the records, to exclude start and end. A daemon in
//! catch-up is measured from a tenth until it is ready, because only then everything it has read is visible.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bare::Mark;
use crate::common::stream::{Shape, Stream};
use crate::common::summary::Summary;
use crate::load::{N_PARTITIONS, Topics};
use crate::process::cpu_ns;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::process::Process;
use crate::support::{tools, wait};

/// Interval for asking a daemon for its progress. `/readyz` costs almost nothing, unlike `/metrics` with many arms.
const LOOK: Duration = Duration::from_millis(50);
/// Interval for detecting an idle daemon, which uses less than a fiftieth of it as CPU time.
const REST: Duration = Duration::from_millis(300);

/// Cost of one reader in one round.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub cpu_us_per_record: f64,
    pub records_per_second: f64,
}

/// A reader and its topics.
#[derive(Clone)]
pub struct Reader<'a> {
    pub name: String,
    pub by: By<'a>,
}

#[derive(Clone)]
pub enum By<'a> {
    /// Bare consumer with these properties of librdkafka, `NAME=VALUE`.
    Bare(&'a Topics, Vec<String>),
    /// Daemon in catch-up, with these configuration sections in addition to `[kafka]`.
    Daemon(&'a Topics, String),
    /// Another build of abgauge in catch-up.
    OtherDaemon(&'a Topics, String, &'a Path),
    /// Daemon that is ready before any record comes, so it shows records while it reads. It is stopped after a tenth of the
    /// stream, when it knows the arms, and resumed once the rest has been sent.
    ReadyDaemon(Stream, Shape),
}

impl Reader<'_> {
    pub fn read(&self, kafka: &Kafka) -> Cost {
        match &self.by {
            By::Bare(topics, properties) => run_bare(kafka, topics, properties),
            By::Daemon(topics, config) => {
                let daemon = |config: &str| Daemon::run(config);
                run_daemon(kafka, topics, config, daemon)
            }
            By::OtherDaemon(topics, config, program) => {
                let daemon = |config: &str| Daemon::run_program(program, config, &[]);
                run_daemon(kafka, topics, config, daemon)
            }
            By::ReadyDaemon(stream, shape) => run_ready_daemon(kafka, stream, shape),
        }
    }
}

/// Costs of each reader in each round.
pub struct Rounds(Vec<Vec<Cost>>);

/// Lets the readers take turns, and prints the cost of each turn. A reader is affected by the state its predecessor leaves
/// behind, so each round starts with the next reader.
pub fn rounds(kafka: &Kafka, n_rounds: usize, readers: &[Reader]) -> Rounds {
    // Warms the broker and the page cache.
    readers[0].read(kafka);
    let names: Vec<&str> = readers.iter().map(|reader| reader.name.as_str()).collect();
    println!("\nCPU µs per record\n| round | {} |", names.join(" | "));
    println!("|{}", "---|".repeat(names.len() + 1));
    let round = |round: usize| {
        let mut costs: Vec<Option<Cost>> = vec![None; readers.len()];
        for turn in 0..readers.len() {
            let reader = (turn + round) % readers.len();
            costs[reader] = Some(readers[reader].read(kafka));
        }
        let costs: Vec<Cost> = costs.into_iter().flatten().collect();
        let cells: Vec<String> = costs
            .iter()
            .map(|cost| format!("{:.3}", cost.cpu_us_per_record))
            .collect();
        println!("| {} | {} |", round + 1, cells.join(" | "));
        costs
    };
    Rounds((0..n_rounds).map(round).collect())
}

impl Rounds {
    /// Summarizes a value over all rounds.
    pub fn summary(&self, value: impl Fn(&[Cost]) -> f64) -> Summary {
        Summary::of(self.0.iter().map(|costs| value(costs)))
    }

    pub fn cpu_us(&self, reader: usize) -> Summary {
        self.summary(|costs| costs[reader].cpu_us_per_record)
    }

    pub fn records_per_second(&self, reader: usize) -> Summary {
        self.summary(|costs| costs[reader].records_per_second)
    }

    /// Returns the CPU of one reader ÷ that of another in the same round.
    pub fn ratio(&self, reader: usize, to: usize) -> Summary {
        self.summary(|costs| costs[reader].cpu_us_per_record / costs[to].cpu_us_per_record)
    }
}

fn run_bare(kafka: &Kafka, topics: &Topics, properties: &[String]) -> Cost {
    let dir = tools::temporary_dir("bare");
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .args(["bare", &kafka.brokers(), &topics.served, &topics.clicks])
        .args([N_PARTITIONS.to_string(), topics.n_records().to_string()])
        .args(properties);
    let mut process = Process::start("the bare consumer", command, &dir.path().join("log"));
    assert_eq!(process.wait_exit(wait::LONG), Some(0), "{}", process.log());
    let marks: Vec<Mark> = process
        .log()
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    cost(&marks, topics.n_records())
}

fn run_daemon(kafka: &Kafka, topics: &Topics, config: &str, daemon: impl FnOnce(&str) -> Daemon) -> Cost {
    let start = Instant::now();
    let mut daemon = daemon(&(topics.config(kafka) + config));
    let n_records = topics.n_records();
    let mut marks = Vec::new();
    daemon.wait_until("the daemon to be ready", |daemon| {
        let answer = daemon.try_get("/readyz").ok()?;
        if let Some(n_left) = n_left(&answer.body) {
            marks.push(mark(daemon, start, n_records.saturating_sub(n_left)));
        }
        let is_ready = answer.status == 200;
        if is_ready {
            marks.push(mark(daemon, start, n_records));
        } else {
            sleep(LOOK);
        }
        is_ready.then_some(())
    });
    all_accepted(&daemon, n_records);
    stop(daemon);
    let first = marks.iter().find(|mark| mark.n_records >= n_records / 10);
    between(first, marks.last())
}

/// Measures a ready daemon's CPU from its resumption until it is idle.
fn run_ready_daemon(kafka: &Kafka, stream: &Stream, shape: &Shape) -> Cost {
    let mut topics = Topics::empty(kafka);
    let mut daemon = Daemon::run(&topics.config(kafka));
    daemon.wait_until_ready();
    let mut n_before = 0;
    topics.append_in_two(kafka, stream, shape, stream.n_lists / 10, |topics| {
        n_before = topics.n_records();
        wait::until("the first tenth to be read", wait::LONG, || {
            (counted(&daemon, "abgauge_records_total", "outcome=\"accepted\"") == n_before).then_some(())
        });
        daemon.signal(libc::SIGSTOP);
    });
    let start = Instant::now();
    let before = mark(&daemon, start, n_before);
    daemon.signal(libc::SIGCONT);
    let mut after = before;
    // One idle interval is not enough, because a busy machine may hold up the daemon.
    let mut n_rests = 0;
    while n_rests < 4 {
        sleep(REST);
        let now = mark(&daemon, start, topics.n_records());
        let took = Duration::from_nanos(now.cpu_ns - after.cpu_ns);
        let has_started = after.cpu_ns - before.cpu_ns > (topics.n_records() - n_before) * 100;
        n_rests = if has_started && took < REST / 50 {
            n_rests + 1
        } else {
            0
        };
        after = now;
        assert!(start.elapsed() < wait::LONG, "{}", daemon.log());
    }
    all_accepted(&daemon, topics.n_records());
    stop(daemon);
    topics.delete(kafka);
    between(Some(&before), Some(&after))
}

fn mark(daemon: &Daemon, start: Instant, n_records: u64) -> Mark {
    Mark {
        n_records,
        cpu_ns: cpu_ns(daemon.pid()),
        wall_ns: start.elapsed().as_nanos() as u64,
    }
}

/// Returns the number of unread records, if `/readyz` lists partitions with some.
fn n_left(waiting_for: &str) -> Option<u64> {
    let left = |line: &str| {
        let (_, n) = line.strip_prefix("catching up in partition ")?.split_once(": ")?;
        n.split(' ').next()?.parse::<u64>().ok()
    };
    waiting_for.lines().filter_map(left).reduce(|sum, n| sum + n)
}

fn all_accepted(daemon: &Daemon, n_records: u64) {
    let accepted = counted(daemon, "abgauge_records_total", "outcome=\"accepted\"");
    assert_eq!(accepted, n_records, "every record counts");
}

/// Stops a daemon as an operator does.
pub fn stop(mut daemon: Daemon) {
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::LONG), Some(0), "{}", daemon.log());
}

/// Sums a counter over the series with a label given as `name="value"`. Bodies may have 35 MB, so nothing else is parsed.
pub fn counted(daemon: &Daemon, name: &str, label: &str) -> u64 {
    sum(&daemon.get("/metrics").body, name, label)
}

/// Like `counted`, for a body that has already been read.
pub fn sum(body: &str, name: &str, label: &str) -> u64 {
    let of_name = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let lines = body.lines().filter(of_name).filter(|line| line.contains(label));
    lines
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum::<f64>() as u64
}

/// Returns the cost between the first mark in the second tenth and the last one before the last tenth.
fn cost(marks: &[Mark], n_records: u64) -> Cost {
    let inside = |mark: &&Mark| n_records / 10 <= mark.n_records && mark.n_records <= n_records * 9 / 10;
    between(marks.iter().find(inside), marks.iter().rfind(inside))
}

fn between(first: Option<&Mark>, last: Option<&Mark>) -> Cost {
    let (first, last) = first.zip(last).expect("marks, of enough records");
    assert!(
        first.n_records < last.n_records,
        "too few records for a steady state: {first:?} to {last:?}"
    );
    let n = (last.n_records - first.n_records) as f64;
    Cost {
        cpu_us_per_record: (last.cpu_ns - first.cpu_ns) as f64 / n / 1e3,
        records_per_second: n / (last.wall_ns - first.wall_ns) as f64 * 1e9,
    }
}
