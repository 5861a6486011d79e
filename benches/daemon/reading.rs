//! One reading of whole topics, by a daemon or by the bare consumer, and what it cost per record.
//!
//! Both are measured between a tenth and nine tenths of the records, so that start and end do not count.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bare::Mark;
use crate::common::summary::Summary;
use crate::load::{N_PARTITIONS, Topics};
use crate::process::cpu_ns;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::process::Process;
use crate::support::{tools, wait};

/// How often the daemon's counters are scraped for a mark.
const LOOK: Duration = Duration::from_millis(100);

/// What one reader of the topics cost in one round.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub cpu_us_per_record: f64,
    pub records_per_second: f64,
}

/// Who reads which topics.
#[derive(Clone)]
pub struct Reader<'a> {
    pub name: String,
    pub topics: &'a Topics,
    pub by: By,
}

#[derive(Clone)]
pub enum By {
    /// With these properties of librdkafka, `NAME=VALUE`.
    Bare(Vec<String>),
    /// With these sections of a configuration beside `[kafka]`.
    Daemon(String),
}

impl Reader<'_> {
    pub fn read(&self, kafka: &Kafka) -> Cost {
        match &self.by {
            By::Bare(properties) => run_bare(kafka, self.topics, properties),
            By::Daemon(config) => run_daemon(kafka, self.topics, config),
        }
    }
}

/// What each reader cost in each round.
pub struct Rounds(Vec<Vec<Cost>>);

/// Lets the readers take turns, and prints what each turn cost. Whoever follows another pays for what that one left
/// behind, so each round begins with the next of them.
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
    /// A value of every round.
    pub fn summary(&self, value: impl Fn(&[Cost]) -> f64) -> Summary {
        Summary::of(self.0.iter().map(|costs| value(costs)))
    }

    pub fn cpu_us(&self, reader: usize) -> Summary {
        self.summary(|costs| costs[reader].cpu_us_per_record)
    }

    pub fn records_per_second(&self, reader: usize) -> Summary {
        self.summary(|costs| costs[reader].records_per_second)
    }

    /// CPU of one reader ÷ that of another in the same round.
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

fn run_daemon(kafka: &Kafka, topics: &Topics, config: &str) -> Cost {
    let start = Instant::now();
    let mut daemon = Daemon::run(&(topics.config(kafka) + config));
    let mut marks = Vec::new();
    daemon.wait_until("the daemon to listen", |daemon| daemon.try_get("/healthz").ok());
    while marks
        .last()
        .is_none_or(|mark: &Mark| mark.n_records < topics.n_records())
    {
        sleep(LOOK);
        marks.push(Mark {
            n_records: counted(&daemon, "abgauge_records_total", ""),
            cpu_ns: cpu_ns(daemon.pid()),
            wall_ns: start.elapsed().as_nanos() as u64,
        });
        assert!(
            start.elapsed() < wait::LONG,
            "the daemon reads {marks:?}\n{}",
            daemon.log()
        );
    }
    daemon.wait_until_ready();
    let accepted = counted(&daemon, "abgauge_records_total", "outcome=\"accepted\"");
    assert_eq!(accepted, topics.n_records(), "every record counts");
    stop(daemon);
    cost(&marks, topics.n_records())
}

/// Ends a daemon as an operator does.
pub fn stop(mut daemon: Daemon) {
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::LONG), Some(0), "{}", daemon.log());
}

/// The sum of a counter over the series that carry a label, as `name="value"`. Bodies of 35 MB are read too, so nothing
/// else of them is looked at.
pub fn counted(daemon: &Daemon, name: &str, label: &str) -> u64 {
    sum(&daemon.get("/metrics").body, name, label)
}

/// The same of a body that was read before.
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

/// Between the first mark in the second tenth and the last one before the last.
fn cost(marks: &[Mark], n_records: u64) -> Cost {
    let inside = |mark: &&Mark| n_records / 10 <= mark.n_records && mark.n_records <= n_records * 9 / 10;
    let first = marks.iter().find(inside);
    let last = marks.iter().rfind(inside);
    let (Some(first), Some(last)) = (first, last) else {
        panic!("too few records for a steady state: {marks:?}");
    };
    assert!(
        first.n_records < last.n_records,
        "too few records for a steady state: {marks:?}"
    );
    let n = (last.n_records - first.n_records) as f64;
    Cost {
        cpu_us_per_record: (last.cpu_ns - first.cpu_ns) as f64 / n / 1e3,
        records_per_second: n / (last.wall_ns - first.wall_ns) as f64 * 1e9,
    }
}
