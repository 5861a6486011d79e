//! CPU time per record while the daemon catches up, beside a bare consumer of the same client in the same run.
//!
//! Both are measured between a tenth and nine tenths of the records, so that start and end do not count.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use abgauge::engine::ranking::METRICS;

use crate::bare::{self, Mark};
use crate::common::stream::catalog;
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

/// What a daemon measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Metrics {
    /// Hit ratio, CTR and MRR
    Three,
    /// The default
    Usual,
    /// All of them, with a catalogue of 10,000 items
    All,
}

impl Metrics {
    fn toml(self, dir: &Path) -> String {
        let named = |metrics: String| format!("[metrics]\nmetrics = [{metrics}]\n");
        let quoted = |ids: &[&str]| ids.iter().map(|id| format!("\"{id}\",")).collect::<String>();
        match self {
            Metrics::Three => named(quoted(&["hit_rate", "ctr", "mrr"])),
            Metrics::Usual => String::new(),
            Metrics::All => {
                let path = dir.join("catalog.jsonl");
                std::fs::write(&path, catalog()).expect("write the catalogue");
                let ids = METRICS.map(|metric| metric.id);
                named(quoted(&ids)) + &format!("catalog = \"{}\"\n", path.display())
            }
        }
    }
}

/// What one reader of the topics cost in one round.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_us_per_record: f64,
    records_per_second: f64,
}

/// Reads a stream by turns with a bare consumer and with a daemon for each of `metrics`.
pub fn run(n_lists: u64, n_rounds: usize, metrics: &[Metrics], properties: &[String]) {
    let kafka = load::broker();
    let topics = Topics::holding(&kafka, &load::stream(n_lists, SPAN_MS));
    eprintln!("{} records are in the topics", topics.n_records);
    let dir = tools::temporary_dir("catalog");
    let configs: Vec<String> = metrics
        .iter()
        .map(|metrics| metrics.toml(dir.path()) + &toml(properties))
        .collect();
    // Warms the broker and the page cache.
    run_bare(&kafka, &topics, properties);
    let names = metrics.iter().map(|metrics| format!("daemon, {metrics:?}"));
    let names: Vec<String> = ["bare consumer".to_owned()].into_iter().chain(names).collect();
    println!("CPU µs per record\n| round | {} |", names.join(" | "));
    println!("|{}", "---|".repeat(names.len() + 1));
    let rounds: Vec<Vec<Cost>> = (1..=n_rounds)
        .map(|round| {
            let mut costs = vec![run_bare(&kafka, &topics, properties)];
            costs.resize(names.len(), costs[0]);
            // Whoever follows the bare consumer pays for what it left behind, so each does so in turn.
            for turn in 0..configs.len() {
                let daemon = (turn + round) % configs.len();
                costs[daemon + 1] = run_daemon(&kafka, &topics, &configs[daemon]);
            }
            let cells: Vec<String> = costs
                .iter()
                .map(|cost| format!("{:.3}", cost.cpu_us_per_record))
                .collect();
            println!("| {round} | {} |", cells.join(" | "));
            costs
        })
        .collect();
    println!("\nmedian (smallest to largest) of {n_rounds} rounds:");
    for (reader, name) in names.iter().enumerate() {
        let of = |value: &dyn Fn(&[Cost]) -> f64| Summary::of(rounds.iter().map(|costs| value(costs)));
        println!(
            "- {name}: {:.3} CPU µs per record; {:.2} of the bare consumer; {:.2} of the first daemon; {:.0} records per second",
            of(&|costs| costs[reader].cpu_us_per_record),
            of(&|costs| costs[reader].cpu_us_per_record / costs[0].cpu_us_per_record),
            of(&|costs| costs[reader].cpu_us_per_record / costs[1].cpu_us_per_record),
            of(&|costs| costs[reader].records_per_second),
        );
    }
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

fn run_daemon(kafka: &Kafka, topics: &Topics, config: &str) -> Cost {
    let start = Instant::now();
    let mut daemon = Daemon::run(&(topics.config(kafka) + config));
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
