//! Resident memory per open list: a daemon that holds many lists open, beside one that holds none.

use std::thread::sleep;
use std::time::Duration;

use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::process::{peak_bytes, resident_bytes};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;

/// Of event time: as many as make 3 million in the default attribution + lateness.
const LISTS_PER_SECOND: u64 = 1_500;
/// How long the allocator gets to give back what reading took.
const REST: Duration = Duration::from_secs(3);
/// Bytes of a list, all included.
const GOAL: f64 = 110.0;

#[derive(Debug, Clone, Copy)]
struct Held {
    lists: f64,
    resident_bytes: f64,
    peak_bytes: f64,
    state_bytes: f64,
}

/// With and without clicks, which are kept beside their lists to tell repeats.
pub fn run(kafka: &Kafka, n_lists: u64, click_share: f64) -> Vec<Figure> {
    let empty = Topics::empty(kafka);
    let none = hold(kafka, &empty);
    empty.delete(kafka);
    let span_ms = (n_lists * 1000 / LISTS_PER_SECOND) as i64;
    let mut stream = load::stream(n_lists, span_ms);
    stream.click_share = click_share;
    let topics = Topics::holding(kafka, &stream);
    let many = hold(kafka, &topics);
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
        peak_bytes: peak_bytes(daemon.pid()) as f64,
        state_bytes: gauge("abgauge_state_bytes"),
    }
}
