//! CPU time per record during catch-up, compared with a bare consumer of the same client in the same run.

use std::path::{Path, PathBuf};

use abgauge_core::metrics::METRICS;

use crate::bare;
use crate::common::stream::catalog;
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::reading::{self, By, Reader};
use crate::support::kafka::Kafka;
use crate::support::tools;

/// Event time of the stream. With the default attribution half of its lists settle during the run.
pub const SPAN_MS: i64 = 3_600_000;
/// CPU µs per record of the best peer, Kafka Streams with a custom processor.
const BEST_PEER_US: f64 = 5.9;

/// What a daemon measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Metrics {
    /// Hit ratio, CTR and MRR
    Three,
    /// The default
    Usual,
    /// All of them, five cut-offs, and a catalogue of 10,000 items
    All,
}

impl Metrics {
    fn toml(self, dir: &Path) -> String {
        let named = |metrics: String| format!("[metrics]\nmetrics = [{metrics}]\n");
        let quoted = |ids: &[&str]| ids.iter().map(|id| format!("\"{id}\",")).collect::<String>();
        match self {
            Metrics::Three => named(quoted(&["hit_rate", "ctr", "mrr"])),
            Metrics::Usual => String::new(),
            Metrics::All => {
                let path = dir.join("catalog.jsonl");
                std::fs::write(&path, catalog()).expect("write the catalogue");
                let ids = METRICS.map(|metric| metric.id);
                let more = format!("k = [1, 3, 5, 10, 20]\ncatalog = \"{}\"\n", path.display());
                named(quoted(&ids)) + &more
            }
        }
    }

    /// Returns the maximum ratio of a daemon's CPU to the bare consumer's.
    fn goal(self) -> f64 {
        match self {
            Metrics::Three | Metrics::Usual => 1.5,
            Metrics::All => 2.0,
        }
    }
}

/// What is measured, how often, and with which properties of librdkafka for all.
#[derive(Debug, Clone, clap::Args)]
pub struct Task {
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// What the daemons measure, one for each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "three,usual,all")]
    pub metrics: Vec<Metrics>,
    /// Another build of abgauge, which takes turns with this one
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
    /// A librdkafka property of both, beyond the daemon's own
    #[arg(long = "property", value_name = "NAME=VALUE")]
    pub properties: Vec<String>,
}

/// Creates topics with lists of the default traffic, four arms, over an hour.
pub fn topics(kafka: &Kafka, n_lists: u64) -> Topics {
    let topics = Topics::holding(kafka, &load::stream(n_lists, SPAN_MS));
    eprintln!(
        "{} lists and {} clicks are in the topics",
        topics.n_lists, topics.n_clicks
    );
    topics
}

/// Reads a stream with the bare consumer and with daemons by turns. The first of each reads twice, which shows the difference
/// between two readings of the same kind.
pub fn run(kafka: &Kafka, topics: &Topics, task: &Task) -> Vec<Figure> {
    let dir = tools::temporary_dir("catalog");
    let config = |metrics: &Metrics| metrics.toml(dir.path()) + &toml(&task.properties);
    let daemon = |metrics: &Metrics, name: String| Reader {
        name,
        by: By::Daemon(topics, config(metrics)),
    };
    let bare = |name: &str| Reader {
        name: name.to_owned(),
        by: By::Bare(topics, task.properties.clone()),
    };
    let first = &task.metrics[0];
    let mut readers = vec![
        bare("bare"),
        daemon(first, format!("{first:?} again")),
        bare("bare again"),
    ];
    readers.extend(
        task.metrics
            .iter()
            .map(|metrics| daemon(metrics, format!("{metrics:?}"))),
    );
    if let Some(program) = &task.against {
        readers.extend(task.metrics.iter().map(|metrics| Reader {
            name: format!("{metrics:?}, other"),
            by: By::OtherDaemon(topics, config(metrics), program),
        }));
    }
    let rounds = reading::rounds(kafka, task.rounds, &readers);
    // The mean of both readings by the bare consumer is a steadier reference than either.
    let to_bare = |reader: usize| {
        rounds.summary(|costs| {
            let cpu = |reader: usize| costs[reader].cpu_us_per_record;
            2.0 * cpu(reader) / (cpu(0) + cpu(2))
        })
    };
    let mut figures = vec![
        Figure::beside(
            "bare consumer, CPU µs per record",
            format!("{:.3}", rounds.cpu_us(0)),
        ),
        Figure::beside(
            "bare consumer, records per second",
            format!("{:.0}", rounds.records_per_second(0)),
        ),
        Figure::beside("A/A: bare consumer ÷ itself", rounds.ratio(2, 0)),
        Figure::beside(format!("A/A: daemon, {first:?} ÷ itself"), rounds.ratio(3, 1)),
    ];
    for (index, metrics) in task.metrics.iter().enumerate() {
        let reader = 3 + index;
        figures.extend(daemon_figures(*metrics, &rounds, reader, to_bare(reader)));
        if task.against.is_some() {
            let other = reader + task.metrics.len();
            figures.push(Figure::beside(
                format!("daemon, {metrics:?}: CPU per record ÷ the other build's").to_lowercase(),
                rounds.ratio(reader, other),
            ));
        }
    }
    figures
}

fn daemon_figures(
    metrics: Metrics,
    rounds: &reading::Rounds,
    reader: usize,
    to_bare: Summary,
) -> [Figure; 4] {
    let name = format!("daemon, {metrics:?}").to_lowercase();
    let cpu_us = rounds.cpu_us(reader);
    [
        Figure::at_most(
            format!("{name}: CPU per record ÷ bare consumer"),
            to_bare.median,
            metrics.goal(),
            to_bare,
        ),
        match metrics {
            Metrics::All => Figure::beside(format!("{name}: CPU µs per record"), format!("{cpu_us:.3}")),
            _ => Figure::at_most(
                format!("{name}: CPU µs per record"),
                cpu_us.median,
                0.57,
                format!("{cpu_us:.3}"),
            ),
        },
        Figure::beside(
            format!("{name}: times better than the best peer's {BEST_PEER_US}"),
            format!("{:.1}", BEST_PEER_US / cpu_us.median),
        ),
        Figure::beside(
            format!("{name}: records per second"),
            format!("{:.0}", rounds.records_per_second(reader)),
        ),
    ]
}

/// Formats the properties as a configuration section.
fn toml(properties: &[String]) -> String {
    let line = |property: &String| {
        let (name, value) = bare::name_and_value(property);
        format!("\"{name}\" = \"{value}\"\n")
    };
    "[kafka.properties]\n".to_owned() + &properties.iter().map(line).collect::<String>()
}
