//! Catch-up from the start of the log with far fewer clicks than lists, so that the topic of clicks is read to its end long
//! before the other. Every click must still find its list.

use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::process::peak_bytes;
use crate::reading::{counted, stop};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::throughput::SPAN_MS;

/// Share of lists with a click.
const CLICK_SHARE: f64 = 0.01;

pub fn run(kafka: &Kafka, n_lists: u64) -> Vec<Figure> {
    let mut stream = load::stream(n_lists, SPAN_MS);
    stream.click_share = CLICK_SHARE;
    let topics = Topics::holding(kafka, &stream);
    let mut daemon = Daemon::run(&topics.config(kafka));
    daemon.wait_until_ready();
    let matched = counted(&daemon, "abgauge_click_results_total", "result=\"matched\"");
    let peak_mb = peak_bytes(daemon.pid()) as f64 / 1e6;
    stop(daemon);
    // Every click of the stream is on an item of its list, within the attribution, and is the list's only click.
    let matchable = topics.n_clicks;
    topics.delete(kafka);
    vec![
        Figure::at_least(
            format!("catch-up with {n_lists} lists and {matchable} clicks: clicks matched ÷ matchable"),
            matched as f64 / matchable as f64,
            1.0,
            format!("{matched} of {matchable}"),
        ),
        Figure::beside("the same: largest resident memory, MB", format!("{peak_mb:.0}")),
    ]
}
