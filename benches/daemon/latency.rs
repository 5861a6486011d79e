//! Time from producing a record to a scrape that shows it, at a steady rate.
//!
//! All lists of one partition have the same arm. So its gauges `abgauge_lists` and `abgauge_clicks` (window `total`, view
//! `live`) count the visible records of that partition: the n-th is visible in the first scrape that counts n. Every record
//! is a sample. Its time starts when it is passed to the producer, and ends when the body of that scrape has been read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rand::SeedableRng as _;
use rand_pcg::Pcg64;
use ureq::Agent;

use crate::common::stream::{self, Items};
use crate::common::summary::{Summary, quantile};
use crate::figure::Figure;
use crate::load::{self, N_PARTITIONS, Topics};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::wait;

/// One event in this many is a click on a list that is a second old.
const CLICK_EVERY: u64 = 6;
const CLICK_AFTER: Duration = Duration::from_secs(1);
/// Time whose records are excluded because the broker's code is cold.
const WARM_UP: Duration = Duration::from_secs(5);

const N: usize = N_PARTITIONS as usize;

/// Values per partition, for lists and for clicks.
#[derive(Debug, Clone, Default)]
struct PerKind<T> {
    lists: [T; N],
    clicks: [T; N],
}

/// Time of a scrape, and its counts.
struct Scrape {
    read: Instant,
    counts: PerKind<u64>,
}

/// A list that will be clicked.
struct Clickable {
    sent: Instant,
    partition: usize,
    id: String,
    item: u32,
}

pub fn run(kafka: &Kafka, rate: u32, seconds: u32, n_rounds: usize) -> Vec<Figure> {
    println!("\n| round | records per second | scrapes per second | p50 ms | p99 ms | longest ms |");
    println!("|---|---|---|---|---|---|");
    let rounds: Vec<[f64; 4]> = (1..=n_rounds)
        .map(|number| {
            let (latencies, scrapes_per_second) = round(kafka, rate, Duration::from_secs(seconds.into()));
            let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&latencies, share));
            let sent_per_second = latencies.len() as f64 / (f64::from(seconds) - WARM_UP.as_secs_f64());
            println!(
                "| {number} | {sent_per_second:.0} | {scrapes_per_second:.0} | {p50:.1} | {p99:.1} | {longest:.1} |"
            );
            [p50, p99, longest, scrapes_per_second]
        })
        .collect();
    let [p50, p99, longest, scrapes] =
        [0, 1, 2, 3].map(|value| Summary::of(rounds.iter().map(|round| round[value])));
    let name = |what: &str| format!("produced to visible at {rate} events/s: {what}");
    vec![
        Figure::beside(name("p50, ms"), format!("{p50:.1}")),
        Figure::at_most(name("p99, ms"), p99.median, 250.0, format!("{p99:.1}")),
        Figure::beside(name("longest, ms"), format!("{longest:.1}")),
        Figure::beside(name("scrapes per second"), format!("{scrapes:.0}")),
    ]
}

/// Returns sorted latencies in ms, and the rate of scrapes.
fn round(kafka: &Kafka, rate: u32, duration: Duration) -> (Vec<f64>, f64) {
    let topics = Topics::empty(kafka);
    let mut daemon = Daemon::run(&topics.config(kafka));
    daemon.wait_until_ready();
    let url = format!("http://{}/metrics", daemon.address());
    let start = Instant::now();
    let producing = AtomicBool::new(true);
    let (sent, scrapes) = thread::scope(|scope| {
        let scraper = scope.spawn(|| scrape(&url, &producing));
        let sent = produce(kafka, &topics, rate, duration);
        // The last records must become visible too.
        daemon.wait_until("the last record", |daemon| {
            let metrics = daemon.metrics();
            let labels = [("window", "total"), ("view", "live")];
            let seen = |name, sent: &[Vec<Instant>; N]| {
                metrics.sum(name, &labels) as usize == sent.iter().map(Vec::len).sum::<usize>()
            };
            (seen("abgauge_lists", &sent.lists) && seen("abgauge_clicks", &sent.clicks)).then_some(())
        });
        producing.store(false, Ordering::Relaxed);
        (sent, scraper.join().expect("the scraper does not panic"))
    });
    let scrapes_per_second = scrapes.len() as f64 / start.elapsed().as_secs_f64();
    let mut latencies = Vec::new();
    for partition in 0..N {
        let lists = &sent.lists[partition];
        visible(lists, &scrapes, |counts| counts.lists[partition], &mut latencies);
        let clicks = &sent.clicks[partition];
        visible(
            clicks,
            &scrapes,
            |counts| counts.clicks[partition],
            &mut latencies,
        );
    }
    let warm = start + WARM_UP;
    let mut latencies: Vec<f64> = latencies
        .into_iter()
        .filter(|(sent, _)| *sent >= warm)
        .map(|(_, latency)| latency.as_secs_f64() * 1e3)
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    (latencies, scrapes_per_second)
}

/// Adds the send time of each record, and the time until a scrape counted it.
fn visible(
    sent: &[Instant],
    scrapes: &[Scrape],
    count: impl Fn(&PerKind<u64>) -> u64,
    latencies: &mut Vec<(Instant, Duration)>,
) {
    let mut scrapes = scrapes.iter();
    let mut scrape = scrapes.next();
    for (n, sent) in sent.iter().enumerate() {
        while scrape.is_some_and(|scrape| count(&scrape.counts) <= n as u64) {
            scrape = scrapes.next();
        }
        if let Some(scrape) = scrape {
            latencies.push((*sent, scrape.read.duration_since(*sent)));
        }
    }
}

/// Sends lists to all partitions in turn, and clicks when they are due. Returns the send times.
fn produce(kafka: &Kafka, topics: &Topics, rate: u32, duration: Duration) -> PerKind<Vec<Instant>> {
    // Like Java's producers, allow at most five requests in flight. With librdkafka's default each record becomes a separate
    // request, and the benchmark would measure the queue of a broker with 20,000 requests per second.
    let producer = kafka.producer_with(&[("linger.ms", "0"), ("enable.idempotence", "true")]);
    let mut random = Pcg64::seed_from_u64(2);
    let mut sent = PerKind::<Vec<Instant>>::default();
    let mut clickable: VecDeque<Clickable> = VecDeque::new();
    let mut payload = String::new();
    let start = Instant::now();
    for n in 0_u64.. {
        let due = start + Duration::from_secs(1) * n as u32 / rate;
        if due.duration_since(start) >= duration {
            break;
        }
        sleep(due.saturating_duration_since(Instant::now()));
        let ts_ms = load::now_ms();
        let is_old = |list: &Clickable| list.sent.elapsed() >= CLICK_AFTER;
        let is_click = n.is_multiple_of(CLICK_EVERY) && clickable.front().is_some_and(is_old);
        let clicked = if is_click { clickable.pop_front() } else { None };
        if let Some(Clickable {
            id, partition, item, ..
        }) = clicked
        {
            stream::click(&mut payload, &id, ts_ms, item);
            sent.clicks[partition].push(Instant::now());
            let (key, payload) = (Some(id.as_bytes()), Some(payload.as_bytes()));
            producer.produce(&topics.clicks, Some(partition as i32), key, payload, None);
        } else {
            let partition = n as usize % N;
            let id = format!("r{n:032}");
            let items = Items::random(&mut random);
            stream::list(&mut payload, &id, n as u32, ts_ms, &arm(partition), items);
            let now = Instant::now();
            sent.lists[partition].push(now);
            let (key, payload) = (Some(id.as_bytes()), Some(payload.as_bytes()));
            producer.produce(&topics.served, Some(partition as i32), key, payload, None);
            clickable.push_back(Clickable {
                sent: now,
                partition,
                id,
                item: items.at(0),
            });
        }
    }
    producer.flush();
    sent
}

/// Returns the arm of all lists in a partition.
fn arm(partition: usize) -> String {
    format!("part-{partition}")
}

/// Scrapes continuously over one connection.
fn scrape(url: &str, going: &AtomicBool) -> Vec<Scrape> {
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(wait::PATIENCE))
        .proxy(None)
        .build()
        .into();
    let mut scrapes = Vec::new();
    while going.load(Ordering::Relaxed) {
        let mut answer = agent.get(url).call().expect("the daemon answers");
        let body = answer.body_mut().read_to_string().expect("a whole body");
        let read = Instant::now();
        scrapes.push(Scrape {
            read,
            counts: counts(&body),
        });
    }
    scrapes
}

fn counts(body: &str) -> PerKind<u64> {
    let mut counts = PerKind::default();
    for line in body.lines() {
        let into = if line.starts_with("abgauge_lists{") {
            &mut counts.lists
        } else if line.starts_with("abgauge_clicks{") {
            &mut counts.clicks
        } else {
            continue;
        };
        if !line.contains(r#"window="total""#) || !line.contains(r#"view="live""#) {
            continue;
        }
        let partition = (0..N).find(|partition| line.contains(&format!(r#"arm="{}""#, arm(*partition))));
        let value = line.rsplit_once(' ').and_then(|(_, value)| value.parse().ok());
        if let (Some(partition), Some(value)) = (partition, value) {
            into[partition] = value;
        }
    }
    counts
}
