//! Records per second of one core that `abgauge simulate` produces and sends to the broker.

use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::process;
use crate::support::kafka::Kafka;
use crate::support::program;

/// Number of lists per second.
const RATE: &str = "250000";
/// Ratio of event time to wall time, so large that hardly any click is pending at the end.
const SPEED: &str = "300";

pub fn run(kafka: &Kafka, seconds: u32, n_rounds: usize) -> Vec<Figure> {
    let duration = format!("{seconds}s");
    let pace = ["--rate", RATE, "--speed", SPEED, "--duration", &duration];
    let per_core = |to: &[&str]| {
        let rounds = (0..n_rounds).map(|_| records_per_cpu_second(&[to, &pace].concat()));
        Summary::of(rounds.collect::<Vec<_>>())
    };
    let [served, clicks] = ["served", "clicks"].map(|stem| kafka.unique(stem));
    let to_kafka = per_core(&[
        "--brokers",
        &kafka.brokers(),
        "--create-topics",
        "--served-topic",
        &served,
        "--clicks-topic",
        &clicks,
    ]);
    kafka.delete_topic(&served);
    kafka.delete_topic(&clicks);
    let to_nowhere = per_core(&["--output", "/dev/null"]);
    vec![
        Figure::at_least(
            "simulate: records per second of a core, into Kafka",
            to_kafka.median,
            200_000.0,
            format!("{to_kafka:.0}"),
        ),
        Figure::beside("the same, made only", format!("{to_nowhere:.0}")),
    ]
}

/// Runs it once and divides by the CPU time of all threads, including the client's.
fn records_per_cpu_second(arguments: &[&str]) -> f64 {
    let before = children_cpu_seconds();
    let ran = program::run(&[&["simulate"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let reported = ran.stderr.lines().last().unwrap_or_default();
    let words = reported.split_whitespace();
    let numbers = words.filter_map(|word| word.parse::<u64>().ok());
    numbers.sum::<u64>() as f64 / (children_cpu_seconds() - before)
}

/// Returns user and system time of all processes that were waited for.
fn children_cpu_seconds() -> f64 {
    let usage = process::usage(libc::RUSAGE_CHILDREN);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
