//! Resident memory per open list: two daemons that differ in nothing but how many lists they hold open.

use std::thread::sleep;
use std::time::Duration;

use crate::common::summary::Summary;
use crate::load::{self, Topics};
use crate::process::resident_bytes;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;

/// Both streams have as many lists per second of event time as 3 million in the default attribution + lateness.
const LISTS_PER_SECOND: u64 = 1_500;
/// How long the allocator gets to give back what reading took.
const REST: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct Held {
    lists: f64,
    resident_bytes: f64,
    state_bytes: f64,
}

pub fn run(few: u64, many: u64, n_rounds: usize) {
    assert!(few < many, "--few must be below --many");
    let kafka = load::broker();
    let [few, many] = [few, many].map(|n_lists| {
        let span_ms = n_lists * 1000 / LISTS_PER_SECOND;
        Topics::holding(&kafka, &load::stream(n_lists, span_ms as i64))
    });
    println!("| round | open lists | resident MB | by abgauge_state_bytes, MB |\n|---|---|---|---|");
    let rounds: Vec<[Held; 2]> = (1..=n_rounds)
        .map(|round| {
            [&few, &many].map(|topics| {
                let held = hold(&kafka, topics);
                let [resident, state] = [held.resident_bytes, held.state_bytes].map(|bytes| bytes / 1e6);
                println!("| {round} | {} | {resident:.0} | {state:.0} |", held.lists);
                held
            })
        })
        .collect();
    let per_list = |bytes: fn(&Held) -> f64| {
        let slope = |[few, many]: &[Held; 2]| (bytes(many) - bytes(few)) / (many.lists - few.lists);
        Summary::of(rounds.iter().map(slope))
    };
    println!("\nbytes per further open list, median (smallest to largest) of {n_rounds} rounds:");
    println!("- resident: {:.0}", per_list(|held| held.resident_bytes));
    println!(
        "- by abgauge_state_bytes: {:.0}",
        per_list(|held| held.state_bytes)
    );
}

/// Reads all of the topics with a window of attribution that closes for none of their lists.
fn hold(kafka: &Kafka, topics: &Topics) -> Held {
    let config = topics.config(kafka) + "[join]\nattribution = \"24h\"\n";
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    sleep(REST);
    let metrics = daemon.metrics();
    let gauge = |name| metrics.value(name, &[]).expect("the daemon is ready");
    Held {
        lists: gauge("abgauge_open_lists"),
        resident_bytes: resident_bytes(daemon.pid()) as f64,
        state_bytes: gauge("abgauge_state_bytes"),
    }
}
