//! CPU time per record with few and many arms, short and long windows, few and many open lists: it should not differ.

use crate::common::stream::Shape;
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::reading::{self, By, Reader, Rounds};
use crate::support::kafka::Kafka;
use crate::throughput::SPAN_MS;

/// Maximum ratio of the largest to the smallest cost.
const GOAL: f64 = 1.1;

/// Event time that passes while about two million lists are read by a daemon that keeps up at full load.
pub const AT_FULL_LOAD_MS: i64 = 2_000;
/// Span of all lists, in mean times from a list to its click.
const DELAYS: i64 = 60;

/// Numbers of arms.
const ARMS: [usize; 3] = [1, 100, 10_000];

/// Measures catch-up with 1, 100 and 10,000 arms, whose lists are spread over `span_ms` of event time. The longer the span,
/// the fewer lists an arm has in a slot.
pub fn arms(kafka: &Kafka, n_lists: u64, span_ms: i64, n_rounds: usize) -> Vec<Figure> {
    let topics = ARMS.map(|n_arms| {
        let topics = Topics::holding_of(kafka, &load::stream(n_lists, span_ms), &shape(n_arms, span_ms));
        (format!("{n_arms} arms"), topics)
    });
    let daemons = topics.iter().map(|(name, topics)| daemon(name, topics, ""));
    let of = format!("arms, lists of {} s caught up with", span_ms / 1000);
    let figures = compare(kafka, n_rounds, &of, daemons.collect());
    topics.into_iter().for_each(|(_, topics)| topics.delete(kafka));
    figures
}

/// Like `arms`, with daemons that already show what they read.
pub fn shown_arms(kafka: &Kafka, n_lists: u64, span_ms: i64, n_rounds: usize) -> Vec<Figure> {
    let daemons = ARMS.map(|n_arms| Reader {
        name: format!("{n_arms} arms"),
        by: By::ReadyDaemon(load::stream(n_lists, span_ms), shape(n_arms, span_ms)),
    });
    let of = format!("arms, lists of {} s shown as they are read", span_ms / 1000);
    compare(kafka, n_rounds, &of, daemons.into())
}

fn shape(n_arms: usize, span_ms: i64) -> Shape {
    Shape {
        mean_delay_ms: (span_ms / DELAYS) as f64,
        ..Shape::with_arms(n_arms)
    }
}

/// Measures windows of 5 minutes, an hour, a day and a week over the same topics.
pub fn windows(kafka: &Kafka, topics: &Topics, n_rounds: usize) -> Vec<Figure> {
    let daemons = ["5m", "1h", "24h", "7d"].map(|window| {
        let config = format!("[metrics]\nwindows = [\"{window}\"]\n");
        daemon(&format!("window {window}"), topics, &config)
    });
    compare(kafka, n_rounds, "windows", daemons.into())
}

/// Case of a number of open lists, and the join settings that keep them open.
struct Open {
    name: &'static str,
    n_lists: u64,
    mean_delay_ms: f64,
    join: &'static str,
}

/// Sizes: 10 thousand and a million lists have the same rate in event time and stay open for 18 s and 30 min. Ten million
/// have a higher rate and stay open for 50 min. Clicks are delayed in proportion.
const OPEN: [Open; 3] = [
    Open {
        name: "10 thousand open lists",
        n_lists: 2_000_000,
        mean_delay_ms: 500.0,
        join: "attribution = \"16s\"\nlateness = \"2s\"\nmax_future = \"1s\"\n",
    },
    Open {
        name: "a million open lists",
        n_lists: 2_000_000,
        mean_delay_ms: 52_500.0,
        join: "attribution = \"28m\"\nlateness = \"2m\"\n",
    },
    Open {
        name: "10 million open lists",
        n_lists: 12_000_000,
        mean_delay_ms: 90_000.0,
        join: "attribution = \"48m\"\nlateness = \"2m\"\n",
    },
];

/// Measures few and many open lists, ten million only on request.
pub fn open_lists(kafka: &Kafka, n_rounds: usize, ten_million: bool) -> Vec<Figure> {
    let sizes = &OPEN[..if ten_million { 3 } else { 2 }];
    let topics: Vec<Topics> = sizes
        .iter()
        .map(|open| {
            let shape = Shape {
                mean_delay_ms: open.mean_delay_ms,
                ..Shape::default()
            };
            Topics::holding_of(kafka, &load::stream(open.n_lists, SPAN_MS), &shape)
        })
        .collect();
    let daemons = sizes
        .iter()
        .zip(&topics)
        .map(|(open, topics)| daemon(open.name, topics, &format!("[join]\n{}", open.join)));
    let figures = compare(kafka, n_rounds, "open lists", daemons.collect());
    topics.into_iter().for_each(|topics| topics.delete(kafka));
    figures
}

fn daemon<'a>(name: &str, topics: &'a Topics, config: &str) -> Reader<'a> {
    Reader {
        name: name.to_owned(),
        by: By::Daemon(topics, config.to_owned()),
    }
}

/// Lets the daemons take turns. The first one has two.
fn compare(kafka: &Kafka, n_rounds: usize, of: &str, mut daemons: Vec<Reader>) -> Vec<Figure> {
    let n = daemons.len();
    daemons.push(Reader {
        name: daemons[0].name.clone() + " again",
        ..daemons[0].clone()
    });
    let rounds = reading::rounds(kafka, n_rounds, &daemons);
    let costs: Vec<Summary> = (0..n).map(|reader| to_round(&rounds, reader)).collect();
    let names = daemons[..n].iter().map(|daemon| daemon.name.clone()).collect();
    let mut figures = figures(of, names, &costs, rounds.ratio(n, 0));
    let cpu: Vec<String> = (0..n)
        .map(|reader| format!("{:.3}", rounds.cpu_us(reader).median))
        .collect();
    figures.push(Figure::beside(format!("{of}: CPU µs per record"), cpu.join(", ")));
    figures
}

/// Returns a reader's CPU ÷ the mean of all in the same round, which removes differences between rounds.
fn to_round(rounds: &Rounds, reader: usize) -> Summary {
    rounds.summary(|costs| {
        let sum: f64 = costs.iter().map(|cost| cost.cpu_us_per_record).sum();
        costs[reader].cpu_us_per_record * costs.len() as f64 / sum
    })
}

/// Returns each variant ÷ the cheapest. If two readings of the same variant differ by more than the goal, their difference is
/// tolerated.
pub fn figures(of: &str, names: Vec<String>, costs: &[Summary], again: Summary) -> Vec<Figure> {
    let cheapest = costs.iter().map(|cost| cost.median).fold(f64::INFINITY, f64::min);
    let spread = again.max.max(1.0 / again.min);
    let ratio = |cost: &Summary| Summary {
        min: cost.min / cheapest,
        median: cost.median / cheapest,
        max: cost.max / cheapest,
    };
    let mut figures: Vec<Figure> = names
        .into_iter()
        .zip(costs)
        .map(|(name, cost)| {
            let ratio = ratio(cost);
            let mut figure = Figure::at_most(
                format!("{of}: CPU per record at {name} ÷ the cheapest"),
                ratio.median,
                GOAL.max(spread),
                ratio,
            );
            figure.goal = format!("≤ {GOAL}, or A/A");
            figure
        })
        .collect();
    figures.push(Figure::beside(format!("{of}: A/A, the first ÷ itself"), again));
    figures
}
