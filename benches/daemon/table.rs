//! Every figure with its goal, in one run: the goals of docs/performance.md.

use crate::figure::Figure;
use crate::support::kafka::Kafka;
use crate::{
    catch_up, flatness, latency, load, memory, open_lists, scrape, simulate, soak, stalls, throughput,
};

/// How long and how large; some 70 minutes by default, 1.5 GB of memory and 3 GB of disk.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    #[command(flatten)]
    throughput: throughput::Task,
    #[arg(long, default_value_t = 2_000_000)]
    lists: u64,
    /// Ten million open lists too, beside which nothing else of size should run
    #[arg(long)]
    ten_million: bool,
    /// Lists and clicks per second for the longest batch: half of what the daemon can
    #[arg(long, default_value_t = 200_000)]
    half_load: u64,
    #[arg(long, default_value_t = 600)]
    stalls_seconds: u64,
    #[arg(long, default_value_t = 1_800)]
    soak_seconds: u64,
    #[arg(long, default_value_t = 120)]
    soak_warm_up: u64,
    #[arg(long, default_value_t = 30)]
    latency_seconds: u32,
}

pub fn run(sizes: &Sizes) -> Vec<Figure> {
    let mut figures = in_memory(sizes);
    let kafka = load::broker();
    figures.extend(on_common_topics(&kafka, sizes));
    let n_rounds = sizes.throughput.rounds;
    figures.extend(flatness::shown_arms(
        &kafka,
        sizes.lists,
        flatness::AT_FULL_LOAD_MS,
        n_rounds,
    ));
    figures.extend(flatness::arms(&kafka, sizes.lists, throughput::SPAN_MS, n_rounds));
    figures.extend(flatness::open_lists(&kafka, n_rounds, sizes.ten_million));
    let n_open = if sizes.ten_million { 10_000_000 } else { 1_000_000 };
    figures.extend(memory::run(&kafka, n_open, 0.2));
    figures.extend(scrape::run(&kafka, n_rounds));
    figures.extend(latency::run(&kafka, 20_000, sizes.latency_seconds, n_rounds));
    figures.extend(simulate::run(&kafka, 20, n_rounds));
    figures.extend(catch_up::run(&kafka, sizes.lists));
    figures.extend(stalls::run(&kafka, sizes.half_load, sizes.stalls_seconds));
    figures.extend(soak::run(&kafka, None, sizes.soak_seconds, sizes.soak_warm_up));
    figures
}

/// Measures open lists in memory, before the broker takes its memory.
fn in_memory(sizes: &Sizes) -> Vec<Figure> {
    let n_open = [10_000, 1_000_000, 10_000_000];
    let n = if sizes.ten_million { 3 } else { 2 };
    open_lists::run(&n_open[..n], 2 * sizes.throughput.rounds)
}

/// Measures everything that uses the same topics.
fn on_common_topics(kafka: &Kafka, sizes: &Sizes) -> Vec<Figure> {
    let topics = throughput::topics(kafka, sizes.lists);
    let mut figures = throughput::run(kafka, &topics, &sizes.throughput);
    figures.extend(flatness::windows(kafka, &topics, sizes.throughput.rounds));
    topics.delete(kafka);
    figures
}
