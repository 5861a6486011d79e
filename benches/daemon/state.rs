//! Cost of storing state: CPU per record, and bytes.

use std::time::Duration;

use crate::common::stream::Shape;
use crate::feed::Feed;
use crate::figure::Figure;
use crate::load::{self, N_PARTITIONS, QUICK_JOIN, Topics};
use crate::reading::{self, By, Reader, stop};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::throughput::SPAN_MS;

/// Settings of a state topic.
pub const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

/// Measures CPU per record of daemons that store their state each second or not at all. They take turns over the same topics.
pub fn run(kafka: &Kafka, n_lists: u64, n_rounds: usize) -> Vec<Figure> {
    let topics = Topics::holding_of(kafka, &load::stream(n_lists, SPAN_MS), &Shape::default());
    let state = kafka.unique("state");
    kafka.create_topic(&state, N_PARTITIONS, &SETTINGS);
    let daemon = |name: &str, config: &str| Reader {
        name: name.to_owned(),
        by: By::Daemon(&topics, config.to_owned()),
    };
    let on = format!("[state]\ntopic = \"{state}\"\ninterval = \"1s\"\n");
    let readers = [daemon("off", ""), daemon("on", &on), daemon("off again", "")];
    let rounds = reading::rounds(kafka, n_rounds, &readers);
    let ratio = rounds.ratio(1, 0);
    topics.delete(kafka);
    vec![
        Figure::beside("state off: CPU µs per record", format!("{:.3}", rounds.cpu_us(0))),
        Figure::beside("A/A: off ÷ itself", rounds.ratio(2, 0)),
        Figure::at_most("CPU per record, state on ÷ off", ratio.median, 1.05, ratio),
    ]
}

/// Bytes that a topic of events keeps of each partition.
const KEPT_BYTES: u64 = 256 << 20;
/// Seconds until slots settle and cells of the shortest window are completed at a steady rate.
const WARM_UP: u64 = 60;

/// Measures the bytes of keys and values that a daemon writes per pair at the default interval, if `n_arms` arms all have
/// lists.
pub fn bytes(kafka: &Kafka, n_arms: usize, rate: u64, seconds: u64) -> Vec<Figure> {
    let topics = Topics::short_lived(kafka, KEPT_BYTES);
    let state = kafka.unique("state");
    kafka.create_topic(&state, N_PARTITIONS, &SETTINGS);
    let bound = "max_bytes_per_second = \"64MiB\"\n";
    let mut daemon =
        Daemon::run(&(topics.config(kafka) + QUICK_JOIN + &format!("[state]\ntopic = \"{state}\"\n{bound}")));
    daemon.wait_until_ready();
    let mut feed = Feed::with_arms(kafka, &topics, Shape::with_arms(n_arms).arms);
    feed.run(rate, Duration::from_secs(WARM_UP + seconds));
    let end_ms = load::now_ms();
    stop(daemon);
    let from_ms = end_ms - seconds as i64 * 1000;
    let records = kafka.read_all(&state);
    let is_inside = |ms: Option<i64>| ms.is_some_and(|ms| (from_ms..end_ms).contains(&ms));
    let size = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let written = records.iter().filter(|record| is_inside(record.timestamp));
    let n_bytes: usize = written
        .map(|record| size(&record.key) + size(&record.payload))
        .sum();
    topics.delete(kafka);
    let of_pair = n_bytes as f64 / seconds as f64 / f64::from(N_PARTITIONS);
    // The design allows 900 bytes per arm and 4 kB in ten seconds.
    let goal = (900.0 * n_arms as f64 + 4_000.0) / 10.0;
    vec![Figure::at_most(
        format!("bytes stored a second of a pair with {n_arms} arms ÷ {goal:.0}"),
        of_pair / goal,
        1.2,
        format!("{:.2} ({of_pair:.0} B/s)", of_pair / goal),
    )]
}
