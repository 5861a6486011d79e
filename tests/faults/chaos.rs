//! Faults of every kind, one after another, under traffic and scrapes. Every record must have its expected outcome, and the
//! settled numbers must equal a recount.
//!
//! `cargo test` injects each fault once. To run it for longer, with a table at the end:
//!
//! ```sh
//! ABGAUGE_CHAOS_ROUNDS=24 tests/run --test faults -- chaos --nocapture
//! ```
//!
//! `ABGAUGE_CHAOS_SEED` repeats the order of the faults of an earlier run.

pub mod arms;
mod fault;
mod scraper;
pub mod stream;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::time::Instant;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64Mcg;

use self::arms::Arms;
use self::fault::Fault;
use self::scraper::Scraper;
use self::stream::{Expected, Load, Stream};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::{Kafka, Options};
use crate::support::wait;
use crate::traffic::{self, now_ms, scrape};

const N_PARTITIONS: i32 = 3;
const LOAD: Load = Load {
    n_partitions: N_PARTITIONS,
    lists_per_second: 400,
};
/// Number of faults between two comparisons of the numbers.
const FAULTS_A_ROUND: usize = 3;

/// Everything that faults act on.
pub struct Chaos {
    kafka: Kafka,
    daemon: Daemon,
    stream: Stream,
    scraper: Scraper,
    skips: Vec<String>,
    n_restarts: u32,
}

impl Chaos {
    fn start() -> Chaos {
        let kafka = Kafka::start_with(Options {
            proxied: true,
            properties: vec![("group.min.session.timeout.ms", "1000")],
            ..Options::default()
        });
        // This lets a producer send records with future timestamps.
        let unguarded = [("message.timestamp.after.max.ms", "9223372036854775807")];
        let topic = |stem: &str| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, N_PARTITIONS, &unguarded);
            name
        };
        let (served, clicks) = (topic("served"), topic("clicks"));
        let mut daemon = Daemon::run(&config(&kafka, &served, &clicks, &[]));
        daemon.wait_until_ready();
        Chaos {
            stream: Stream::start(&kafka, &served, &clicks, LOAD),
            scraper: Scraper::start(daemon.address()),
            kafka,
            daemon,
            skips: Vec::new(),
            n_restarts: 0,
        }
    }

    fn config(&self) -> String {
        config(
            &self.kafka,
            self.stream.served(),
            self.stream.clicks(),
            &self.skips,
        )
    }

    /// Pauses the traffic, waits until everything sent has settled, and returns the differences from a recount.
    fn differences(&mut self) -> Option<String> {
        self.stream.pause();
        let expected = self.stream.expected();
        let mut counted = None;
        let equal = wait::try_until(wait::LONG, || {
            counted = scrape(&self.daemon).map(|scrape| counts(&scrape));
            (counted.as_ref() == Some(&expected)).then_some(())
        });
        self.stream.go_on();
        match (equal, counted) {
            (Some(()), _) => None,
            (None, counted) => Some(format!("counted {counted:#?}, sent {expected:#?}")),
        }
    }
}

/// Returns a configuration that skips some records, with a short session timeout.
fn config(kafka: &Kafka, served: &str, clicks: &str, skips: &[String]) -> String {
    let more = format!(
        r#"
        kafka.start = "earliest"
        kafka.properties."session.timeout.ms" = 2000
        kafka.properties."heartbeat.interval.ms" = 500
        ingest.skip_records = {skips:?}
        "#
    );
    traffic::config(&kafka.proxied_brokers(), served, clicks, "chaos", &more)
}

/// Returns a daemon's counts: its settled view, and the outcome of every record.
fn counts(scrape: &Exposition) -> Expected {
    let mut arms = Arms::new();
    arms::add_settled(scrape, &mut arms);
    let by = |name: &str, labels: &[&str]| {
        let samples = scrape.select(name, &[]).filter(|sample| sample.value > 0.0);
        let of = |sample: &crate::support::exposition::Sample| {
            labels
                .iter()
                .map(|label| sample.labels[*label].clone())
                .collect::<Vec<_>>()
        };
        samples
            .map(|sample| (of(sample), sample.value))
            .collect::<Vec<_>>()
    };
    let outcomes = by("abgauge_records_total", &["topic", "outcome"]);
    let results = by("abgauge_click_results_total", &["result"]);
    Expected {
        arms,
        outcomes: outcomes
            .into_iter()
            .map(|(of, n)| ((of[0].clone(), of[1].clone()), n))
            .collect(),
        results: results.into_iter().map(|(of, n)| (of[0].clone(), n)).collect(),
    }
}

/// Reads an environment variable as a whole number.
pub fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")),
    )
}

/// Returns `n` faults in an order determined by the seed. Their frequencies differ by at most one.
fn faults(n: usize, seed: u64) -> Vec<Fault> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut faults = Vec::new();
    while faults.len() < n {
        let mut all = Fault::ALL;
        all.shuffle(&mut random);
        faults.extend(all);
    }
    faults.truncate(n);
    faults
}

#[test]
fn chaos_loses_no_record_changes_no_settled_number_and_refuses_no_scrape() {
    let rounds = number("ABGAUGE_CHAOS_ROUNDS").map(|n| n as usize * FAULTS_A_ROUND);
    let seed = number("ABGAUGE_CHAOS_SEED").unwrap_or_else(|| now_ms() as u64);
    println!("ABGAUGE_CHAOS_SEED={seed}");
    let faults = faults(rounds.unwrap_or(Fault::ALL.len()), seed);
    let begin = Instant::now();
    let mut chaos = Chaos::start();
    let mut injected = BTreeMap::<Fault, u32>::new();
    let mut numbers = 0..;
    for round in faults.chunks(FAULTS_A_ROUND) {
        for (fault, number) in round.iter().zip(&mut numbers) {
            println!("{:5.0} s  {fault:?}", begin.elapsed().as_secs_f64());
            fault.inject(&mut chaos, number);
            *injected.entry(*fault).or_default() += 1;
        }
        if let Some(differences) = chaos.differences() {
            panic!("after {round:?}: {differences}");
        }
    }
    let expected = chaos.stream.expected();
    let (n_answered, refused) = chaos.scraper.reported();
    let mut table = String::from("| what | figure |\n|---|---|\n");
    let mut row =
        |what: String, figure: String| writeln!(table, "| {what} | {figure} |").expect("to a string");
    for (fault, n) in &injected {
        row(format!("{fault:?}"), n.to_string());
    }
    row("seconds".into(), format!("{:.0}", begin.elapsed().as_secs_f64()));
    row("faults in all".into(), faults.len().to_string());
    row("records sent".into(), expected.n_records().to_string());
    row("restarts of the daemon".into(), chaos.n_restarts.to_string());
    row(
        "records without their outcome, settled numbers that differ".into(),
        "0".into(),
    );
    row("scrapes answered".into(), n_answered.to_string());
    row("scrapes refused".into(), refused.len().to_string());
    println!("{table}");
    assert_eq!(refused, Vec::<String>::new(), "scrapes were refused");
    assert!(n_answered > 0);
}
