//! Resident memory at full speed with a hot key, which has half of all clicks on one list: it must stay flat.
//!
//! The source sends as fast as it can or at a given rate, but never so far ahead that the broker would delete unread records.
//! The number of open lists follows the speed of the stream, and memory follows the largest number of open lists. So only at
//! a sustainable steady rate does the slope show a leak.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::feed::Feed;
use crate::figure::Figure;
use crate::load::{QUICK_JOIN, Topics};
use crate::process::resident_bytes;
use crate::reading::{stop, sum};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;

/// Bytes that the broker keeps of each partition, more than the source may be ahead.
const RETENTION_BYTES: u64 = 128 << 20;
/// Maximum number of records by which the source may be ahead of the daemon.
const AHEAD: u64 = 300_000;
/// Number of records between two checks of that.
const STEP: u64 = 1_000;
const SAMPLE: Duration = Duration::from_secs(1);
/// Maximum growth in percent over the whole run that counts as flat.
const FLAT: f64 = 2.0;

/// Resident memory at a time since the start, and its part for open lists and clicks.
#[derive(Debug, Clone, Copy)]
struct Sample {
    seconds: f64,
    bytes: f64,
    state_bytes: f64,
}

pub fn run(kafka: &Kafka, rate: Option<u64>, seconds: u64, warm_up_seconds: u64) -> Vec<Figure> {
    assert!(
        warm_up_seconds + 10 <= seconds,
        "--warm-up must be shorter than --seconds by ten"
    );
    let topics = Topics::short_lived(kafka, RETENTION_BYTES);
    let mut daemon = Daemon::run(&(topics.config(kafka) + QUICK_JOIN));
    daemon.wait_until_ready();
    let going = AtomicBool::new(true);
    let n_read = AtomicU64::new(0);
    let (samples, n_sent) = thread::scope(|scope| {
        let source = scope.spawn(|| send(kafka, &topics, rate, &going, &n_read));
        let samples = watch(&daemon, Duration::from_secs(seconds), &n_read);
        going.store(false, Ordering::Relaxed);
        (samples, source.join().expect("the source does not panic"))
    });
    let body = wait_until_read(&mut daemon, n_sent);
    assert_eq!(
        sum(&body, "abgauge_pair_restarts_total", ""),
        0,
        "retention took unread records"
    );
    stop(daemon);
    topics.delete(kafka);
    let warm = samples
        .iter()
        .filter(|sample| sample.seconds >= warm_up_seconds as f64);
    let mut figures = figures(&warm.copied().collect::<Vec<_>>());
    figures.push(Figure::beside(
        "soak: records per second",
        format!("{:.0}", n_sent as f64 / seconds as f64),
    ));
    figures
}

fn figures(samples: &[Sample]) -> Vec<Figure> {
    let Line {
        slope,
        standard_error,
        mean,
    } = Line::through(samples);
    let span = samples[samples.len() - 1].seconds - samples[0].seconds;
    let growth = slope * span / mean * 100.0;
    let [least, most] = [f64::min, f64::max].map(|of| {
        samples
            .iter()
            .map(|sample| sample.bytes)
            .reduce(of)
            .expect("there are samples")
    });
    vec![
        Figure::at_most(
            format!("soak: growth of resident memory in {span:.0} s after the warm-up, %"),
            growth,
            FLAT,
            format!("{growth:.2}"),
        ),
        Figure::beside(
            "soak: slope ± standard error, kB per minute",
            format!("{:.1} ± {:.1}", slope * 60.0 / 1e3, standard_error * 60.0 / 1e3),
        ),
        Figure::beside(
            "soak: resident MB, mean (least to most)",
            format!("{:.1} ({:.1} to {:.1})", mean / 1e6, least / 1e6, most / 1e6),
        ),
        Figure::beside(
            "soak: resident MB (state MB) in each fifth",
            fifths(samples).join(", "),
        ),
    ]
}

/// Formats means over fifths of the run, to show whether memory grew, or only the state with the speed.
fn fifths(samples: &[Sample]) -> Vec<String> {
    let mean_mb =
        |of: &[Sample], value: fn(&Sample) -> f64| of.iter().map(value).sum::<f64>() / of.len() as f64 / 1e6;
    let fifths = samples.chunks(samples.len().div_ceil(5));
    let reported = fifths.map(|of| {
        let (resident, state) = (mean_mb(of, |it| it.bytes), mean_mb(of, |it| it.state_bytes));
        format!("{resident:.0} ({state:.0})")
    });
    reported.collect()
}

/// Sends at `rate` records per second, or as fast as possible. Returns the number of records.
fn send(kafka: &Kafka, topics: &Topics, rate: Option<u64>, going: &AtomicBool, n_read: &AtomicU64) -> u64 {
    let mut feed = Feed::new(kafka, topics, true);
    let start = Instant::now();
    while going.load(Ordering::Relaxed) {
        let due = rate.map_or(u64::MAX, |rate| {
            (start.elapsed().as_secs_f64() * rate as f64) as u64
        });
        if feed.n_sent() > due.min(n_read.load(Ordering::Relaxed) + AHEAD) {
            sleep(Duration::from_millis(1));
        } else {
            feed.send(STEP);
        }
    }
    feed.flush();
    feed.n_sent()
}

/// Samples the memory each second, and updates the daemon's progress for the source more often.
fn watch(daemon: &Daemon, duration: Duration, n_read: &AtomicU64) -> Vec<Sample> {
    let start = Instant::now();
    let mut samples: Vec<Sample> = Vec::new();
    while start.elapsed() < duration {
        let body = daemon.get("/metrics").body;
        n_read.store(sum(&body, "abgauge_records_total", ""), Ordering::Relaxed);
        if start.elapsed() >= SAMPLE * samples.len() as u32 {
            samples.push(Sample {
                seconds: start.elapsed().as_secs_f64(),
                bytes: resident_bytes(daemon.pid()) as f64,
                state_bytes: sum(&body, "abgauge_state_bytes", "") as f64,
            });
        }
        sleep(Duration::from_millis(50));
    }
    samples
}

/// Returns the body of the scrape that counts all records.
fn wait_until_read(daemon: &mut Daemon, n_sent: u64) -> String {
    daemon.wait_until("the last record", |daemon| {
        let body = daemon.get("/metrics").body;
        (sum(&body, "abgauge_records_total", "") == n_sent).then_some(body)
    })
}

/// Least-squares line through the samples.
struct Line {
    /// Slope in bytes per second.
    slope: f64,
    /// Standard error under the assumption that samples are independent.
    standard_error: f64,
    mean: f64,
}

impl Line {
    fn through(samples: &[Sample]) -> Line {
        let n = samples.len() as f64;
        let mean_of = |value: fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / n;
        let (at, mean) = (mean_of(|sample| sample.seconds), mean_of(|sample| sample.bytes));
        let squares: f64 = samples.iter().map(|sample| (sample.seconds - at).powi(2)).sum();
        let products = samples
            .iter()
            .map(|sample| (sample.seconds - at) * (sample.bytes - mean));
        let slope = products.sum::<f64>() / squares;
        let rest = |sample: &Sample| sample.bytes - mean - slope * (sample.seconds - at);
        let variance = samples.iter().map(|sample| rest(sample).powi(2)).sum::<f64>() / (n - 2.0);
        Line {
            slope,
            standard_error: (variance / squares).sqrt(),
            mean,
        }
    }
}
