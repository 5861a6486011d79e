//! CPU time per record while the daemon catches up, beside a bare consumer of the same client in the same run.
//!
//! Both are measured between a tenth and nine tenths of the records, so that start and end do not count.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bare::{self, Mark};
use crate::common::summary::Summary;
use crate::load::{self, N_PARTITIONS, Topics};
use crate::process::cpu_ns;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::process::Process;
use crate::support::{tools, wait};

/// Event time of the stream: at the default attribution half of its lists settle during the run.
const SPAN_MS: i64 = 3_600_000;
/// How often the daemon's counters are scraped for a mark.
const LOOK: Duration = Duration::from_millis(100);

/// What one reader of the topics cost in one round.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_us_per_record: f64,
    records_per_second: f64,
}

pub fn run(n_lists: u64, n_rounds: usize, properties: &[String]) {
    let kafka = load::broker();
    let topics = Topics::holding(&kafka, &load::stream(n_lists, SPAN_MS));
    eprintln!("{} records are in the topics", topics.n_records);
    // Warms the broker and the page cache.
    run_bare(&kafka, &topics, properties);
    println!(
        "| round | bare consumer, CPU µs per record | daemon, CPU µs per record | ratio |\n|---|---|---|---|"
    );
    let rounds: Vec<(Cost, Cost)> = (1..=n_rounds)
        .map(|round| {
            let (bare, daemon) = (
                run_bare(&kafka, &topics, properties),
                run_daemon(&kafka, &topics, properties),
            );
            let costs = [bare, daemon].map(|cost| cost.cpu_us_per_record);
            println!(
                "| {round} | {:.3} | {:.3} | {:.2} |",
                costs[0],
                costs[1],
                costs[1] / costs[0]
            );
            (bare, daemon)
        })
        .collect();
    let of = |value: fn(&(Cost, Cost)) -> f64| Summary::of(rounds.iter().map(value));
    println!("\nmedian (smallest to largest) of {n_rounds} rounds:");
    println!(
        "- bare consumer: {:.3} CPU µs per record",
        of(|(bare, _)| bare.cpu_us_per_record)
    );
    println!(
        "- daemon: {:.3} CPU µs per record",
        of(|(_, daemon)| daemon.cpu_us_per_record)
    );
    println!(
        "- daemon: {:.0} records per CPU second",
        of(|(_, daemon)| 1e6 / daemon.cpu_us_per_record)
    );
    println!(
        "- ratio: {:.2}",
        of(|(bare, daemon)| daemon.cpu_us_per_record / bare.cpu_us_per_record)
    );
    println!(
        "- bare consumer: {:.0} records per second",
        of(|(bare, _)| bare.records_per_second)
    );
    println!(
        "- daemon: {:.0} records per second",
        of(|(_, daemon)| daemon.records_per_second)
    );
}

fn run_bare(kafka: &Kafka, topics: &Topics, properties: &[String]) -> Cost {
    let dir = tools::temporary_dir("bare");
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .args(["bare", &kafka.brokers(), &topics.served, &topics.clicks])
        .args([N_PARTITIONS.to_string(), topics.n_records.to_string()])
        .args(properties);
    let mut process = Process::start("the bare consumer", command, &dir.path().join("log"));
    assert_eq!(process.wait_exit(wait::LONG), Some(0), "{}", process.log());
    let marks: Vec<Mark> = process
        .log()
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    cost(&marks, topics.n_records)
}

fn run_daemon(kafka: &Kafka, topics: &Topics, properties: &[String]) -> Cost {
    let start = Instant::now();
    let mut daemon = Daemon::run(&(topics.config(kafka) + &toml(properties)));
    let mut marks = Vec::new();
    daemon.wait_until("the daemon to listen", |daemon| daemon.try_get("/healthz").ok());
    while marks
        .last()
        .is_none_or(|mark: &Mark| mark.n_records < topics.n_records)
    {
        sleep(LOOK);
        marks.push(Mark {
            n_records: daemon.metrics().sum("abgauge_records_total", &[]) as u64,
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
    let accepted = daemon
        .metrics()
        .sum("abgauge_records_total", &[("outcome", "accepted")]);
    assert_eq!(accepted as u64, topics.n_records, "every record counts");
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::LONG), Some(0), "{}", daemon.log());
    cost(&marks, topics.n_records)
}

/// The properties as a section of the daemon's configuration.
fn toml(properties: &[String]) -> String {
    let line = |property: &String| {
        let (name, value) = bare::name_and_value(property);
        format!("\"{name}\" = \"{value}\"\n")
    };
    "[kafka.properties]\n".to_owned() + &properties.iter().map(line).collect::<String>()
}

/// Between the first mark in the second tenth and the last one before the last.
fn cost(marks: &[Mark], n_records: u64) -> Cost {
    let inside = |mark: &&Mark| n_records / 10 <= mark.n_records && mark.n_records <= n_records * 9 / 10;
    let first = marks.iter().find(inside);
    let last = marks.iter().rfind(inside);
    let (Some(first), Some(last)) = (first, last) else {
        panic!("too few records for a steady state: {marks:?}");
    };
    let n = (last.n_records - first.n_records) as f64;
    Cost {
        cpu_us_per_record: (last.cpu_ns - first.cpu_ns) as f64 / n / 1e3,
        records_per_second: n / (last.wall_ns - first.wall_ns) as f64 * 1e9,
    }
}
