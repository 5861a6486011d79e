//! Time until a killed daemon shows settled numbers again and is ready, with 30 minutes of attribution and windows of up to a
//! day.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::stream::Shape;
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::load::{self, N_PARTITIONS, Topics};
use crate::reading::{self, By, Reader, stop};
use crate::state;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;

const JOIN: &str = "[join]\nattribution = \"30m\"\nlateness = \"2m\"\n";
/// Event time of attribution and lateness. The records in it are not settled at the end of the stream, and are read again.
const OPEN_MS: i64 = 32 * 60_000;
/// Additional event time, which settles.
const SETTLED_MS: i64 = 10 * 60_000;
/// Shortest session timeout that brokers allow, after which the group gives up a killed member.
const SESSION: &str = "[kafka.properties]\n\"session.timeout.ms\" = \"6000\"\n";
/// Interval for asking the daemon.
const LOOK: Duration = Duration::from_millis(20);

/// Measures restarts for a stream that has ended, of `rate` lists and clicks per second of event time, with a click for every
/// five lists.
pub fn run(kafka: &Kafka, rate: u64, n_rounds: usize) -> Vec<Figure> {
    let span_ms = OPEN_MS + SETTLED_MS;
    let n_lists = rate * span_ms.unsigned_abs() / 1000 * 5 / 6;
    let topics = Topics::holding_of(kafka, &load::stream(n_lists, span_ms), &Shape::default());
    let stored = kafka.unique("state");
    kafka.create_topic(&stored, N_PARTITIONS, &state::SETTINGS);
    let config = topics.config(kafka) + SESSION + JOIN + &format!("[state]\ntopic = \"{stored}\"\n");
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    wait_for_settled(&mut daemon);
    let bare = Reader {
        name: "bare".to_owned(),
        by: By::Bare(&topics, Vec::new()),
    };
    let n_open = topics.n_records() as f64 * OPEN_MS as f64 / span_ms as f64;
    let rounds: Vec<Round> = (0..n_rounds)
        .map(|_| {
            let round = Round {
                bare: n_open / bare.read(kafka).records_per_second,
                ..restart(&mut daemon)
            };
            println!("{round:?}");
            round
        })
        .collect();
    stop(daemon);
    topics.delete(kafka);
    let of = |seconds: fn(&Round) -> f64| Summary::of(rounds.iter().map(seconds));
    let (settled, ratio) = (of(|round| round.settled), of(|round| round.ready / round.bare));
    let name = |what: &str| format!("restart at {rate} events/s: {what}");
    vec![
        Figure::at_most(
            name("seconds from assignment to settled"),
            settled.median,
            3.0,
            settled,
        ),
        Figure::at_most(
            name("the same to ready ÷ a bare reading of what is open"),
            ratio.median,
            1.5,
            ratio,
        ),
        Figure::beside(name("seconds to ready"), of(|round| round.ready)),
    ]
}

/// Durations in seconds.
#[derive(Debug)]
struct Round {
    /// Time from the assignment to the first scrape with settled numbers.
    settled: f64,
    /// Time from the assignment until the daemon is ready.
    ready: f64,
    /// Time of a bare consumer for the records of attribution and lateness.
    bare: f64,
}

fn restart(daemon: &mut Daemon) -> Round {
    daemon.kill();
    let n_assigned = |daemon: &Daemon| daemon.log().matches("\"assigned\"").count();
    let before = n_assigned(daemon);
    daemon.start_again();
    daemon.wait_until("partitions to be assigned", |daemon| {
        look(n_assigned(daemon) > before)
    });
    let assigned = Instant::now();
    wait_for_settled(daemon);
    let settled = assigned.elapsed().as_secs_f64();
    daemon.wait_until("the daemon to be ready", |daemon| {
        look(daemon.get("/readyz").status == 200)
    });
    Round {
        settled,
        ready: assigned.elapsed().as_secs_f64(),
        bare: f64::NAN,
    }
}

fn wait_for_settled(daemon: &mut Daemon) {
    daemon.wait_until("settled numbers to be shown", |daemon| {
        let body = daemon.get("/metrics").body;
        look(
            reading::sum(
                &body,
                "abgauge_lists",
                "window=\"total\",view=\"settled\",scope=\"own\"",
            ) > 0,
        )
    });
}

/// Returns `Some` if the condition holds. Otherwise pauses first, so that the daemon is not asked too often.
fn look(is_so: bool) -> Option<()> {
    if !is_so {
        sleep(LOOK);
    }
    is_so.then_some(())
}
