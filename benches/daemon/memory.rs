//! Resident memory per open list: a daemon with many open lists compared with one that has none, and the memory per list if
//! lists are rare and stay open for weeks.

use std::io::{BufWriter, Write as _};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use abgauge_core::engine::event::Side;

use crate::common::stream::{Shape, Stream};
use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::process::{peak_bytes, peak_bytes_of_ended, resident_bytes};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::program::program;

/// Rate in event time that makes 3 million lists within the default attribution + lateness.
const LISTS_PER_SECOND: u64 = 1_500;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Time for the allocator to return the memory used while reading.
const REST: Duration = Duration::from_secs(3);
/// Maximum bytes per list, everything included.
const GOAL: f64 = 110.0;

#[derive(Debug, Clone, Copy)]
struct Held {
    lists: f64,
    resident_bytes: f64,
    peak_bytes: f64,
    state_bytes: f64,
}

/// Measures memory with and without clicks, which are stored with their lists to detect repeats.
pub fn run(kafka: &Kafka, n_lists: u64, click_share: f64) -> Vec<Figure> {
    let none = hold_none(kafka);
    let span_ms = (n_lists * 1000 / LISTS_PER_SECOND) as i64;
    let mut stream = load::stream(n_lists, span_ms);
    stream.click_share = click_share;
    let topics = Topics::holding(kafka, &stream);
    let many = hold(kafka, &topics, "attribution = \"24h\"");
    topics.delete(kafka);
    assert_eq!(many.lists, n_lists as f64, "every list is open");
    let per_list = |bytes: f64| bytes / many.lists;
    let name = |what: &str| format!("{what}, at {n_lists} lists and {click_share} clicks a list");
    vec![
        Figure::at_most(
            name("resident bytes ÷ open lists"),
            per_list(many.resident_bytes),
            GOAL,
            format!("{:.1}", per_list(many.resident_bytes)),
        ),
        Figure::beside(
            name("the same less what a daemon without lists takes"),
            format!("{:.1}", per_list(many.resident_bytes - none.resident_bytes)),
        ),
        Figure::beside(
            name("abgauge_state_bytes ÷ open lists"),
            format!("{:.1}", per_list(many.state_bytes)),
        ),
        Figure::beside(
            name("largest resident memory, MB"),
            format!("{:.0}", many.peak_bytes / 1e6),
        ),
    ]
}

/// Measures streams of days and months with clicks on a fifth of the lists: bytes per list, minus those of the program
/// without lists. The first stream of each is dense. The others may take at most twice as much.
pub fn run_sparse(kafka: &Kafka) -> Vec<Figure> {
    let mut figures = Vec::new();
    let none_bytes = evaluate_peak_bytes(&Stream {
        n_lists: 1,
        ..load::stream(1, 1000)
    });
    let mut dense = None;
    for (n_lists, span_ms, name) in [
        (10_000_000, DAY_MS, "10 million lists in a day"),
        (400_000, 400_000 * 6000, "27 days of a list every 6 s"),
        (60 * 4_320, 60 * DAY_MS, "60 days of a list every 20 s"),
        (365 * 1_440, 365 * DAY_MS, "a year of a list a minute"),
    ] {
        let bytes = evaluate_peak_bytes(&load::stream(n_lists, span_ms)).saturating_sub(none_bytes);
        let name = format!("evaluate, {name}: bytes a list at its peak");
        figures.push(beside_dense(name, &mut dense, bytes as f64 / n_lists as f64));
    }
    let none = hold_none(kafka);
    let mut dense = None;
    for (n_lists, span_ms, slot, name) in [
        (1_000_000, DAY_MS / 24, "5s", "a million lists in an hour"),
        (400_000, 400_000 * 6000, "5s", "27 days of a list every 6 s"),
        (
            400_000,
            400_000 * 6000,
            "4m",
            "27 days of a list every 6 s, `join.slot` 4m",
        ),
    ] {
        let topics = Topics::holding_for_good(kafka, &load::stream(n_lists, span_ms), &Shape::default());
        let held = hold(
            kafka,
            &topics,
            &format!("attribution = \"30d\"\nslot = \"{slot}\"\n[metrics]\nwindows = [\"24h\"]"),
        );
        topics.delete(kafka);
        assert_eq!(held.lists, n_lists as f64, "every list is open");
        let per_list = (held.resident_bytes - none.resident_bytes) / held.lists;
        let name = format!("daemon, attribution 30d, {name}: resident bytes a list");
        figures.push(beside_dense(name, &mut dense, per_list));
    }
    figures
}

fn beside_dense(name: String, dense: &mut Option<f64>, per_list: f64) -> Figure {
    let shown = format!("{per_list:.0}");
    let Some(dense) = *dense else {
        *dense = Some(per_list);
        return Figure::beside(name, shown);
    };
    Figure::at_most(name, per_list, (2.0 * dense).round(), shown)
}

/// Returns the peak resident memory of `evaluate` for this stream.
#[expect(clippy::zombie_processes, reason = "`peak_bytes_of_ended` waits for it")]
fn evaluate_peak_bytes(stream: &Stream) -> u64 {
    let mut command = program(&["evaluate", "-", "--strict", "--format", "json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("abgauge starts");
    let mut input = BufWriter::new(child.stdin.take().expect("a pipe"));
    stream.for_each(|record| {
        let kind = match record.side {
            Side::Served => "served",
            Side::Clicks => "click",
        };
        let fields = &record.payload[1..];
        writeln!(input, r#"{{"type":"{kind}",{fields}"#).expect("it reads on");
    });
    drop(input.into_inner().expect("it reads to the end"));
    peak_bytes_of_ended(&child)
}

fn hold_none(kafka: &Kafka) -> Held {
    let empty = Topics::empty(kafka);
    let none = hold(kafka, &empty, "attribution = \"24h\"");
    empty.delete(kafka);
    none
}

/// Reads the topics with `[join]` settings under which all lists stay open.
fn hold(kafka: &Kafka, topics: &Topics, join: &str) -> Held {
    let config = topics.config(kafka) + &format!("[join]\n{join}\n");
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    sleep(REST);
    let metrics = daemon.metrics();
    let gauge = |name| metrics.value(name, &[]).expect("the daemon is ready");
    Held {
        lists: gauge("abgauge_open_lists"),
        resident_bytes: resident_bytes(daemon.pid()) as f64,
        peak_bytes: peak_bytes(daemon.pid()) as f64,
        state_bytes: gauge("abgauge_state_bytes"),
    }
}
