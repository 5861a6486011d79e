//! Speed of drawing simulated lists without Kafka, files or an engine. It limits benchmarks of the statistics, which draw
//! thousands of weeks.
//!
//! `cargo bench --bench traffic`; add `-- ROUNDS` for more rounds.

mod common;

use abgauge::tools::simulate::{Lengths, Noise, RecordKind, Traffic, TrafficSettings};
use common::clock::thread_cpu_ns;
use common::summary::Summary;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const START_MS: i64 = 1_763_596_800_000;
const WEEK_MS: i64 = 7 * 24 * 3_600_000;
const LISTS: f64 = 1_000_000.0;

fn main() {
    let mut sizes = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let n_rounds = sizes.next().unwrap_or(9);
    let by_default = TrafficSettings {
        duration_ms: Some(WEEK_MS),
        ..TrafficSettings::new(1, LISTS * 1000.0 / WEEK_MS as f64, START_MS)
    };
    let mut few_items = TrafficSettings {
        noise: Noise::NONE,
        diurnal: true,
        ..by_default.clone()
    };
    few_items.world.lengths = Lengths::new(0.0, 1, 3).expect("lengths that lists may have");
    println!("A week of {LISTS} lists, {n_rounds} rounds, lists per CPU second:");
    for (what, settings) in [
        ("as `abgauge simulate` makes it", &by_default),
        ("of one to three items, diurnal, no noise", &few_items),
    ] {
        let drafts = Summary::of((0..n_rounds).map(|_| per_second(settings, n_drafts)));
        let text = Summary::of((0..n_rounds).map(|_| per_second(settings, n_with_text)));
        println!("- {what}: {drafts:.0} drawn; {text:.0} as JSON");
    }
}

fn per_second(settings: &TrafficSettings, n_lists: impl Fn(Traffic) -> u64) -> f64 {
    let traffic = Traffic::new(settings.clone());
    let before_ns = thread_cpu_ns();
    let n_lists = n_lists(traffic);
    n_lists as f64 / ((thread_cpu_ns() - before_ns) as f64 / 1e9)
}

fn n_drafts(mut traffic: Traffic) -> u64 {
    let mut n_lists = 0;
    while let Some(draft) = traffic.next_draft_until(i64::MAX) {
        n_lists += u64::from(draft.kind == RecordKind::List);
    }
    n_lists
}

fn n_with_text(mut traffic: Traffic) -> u64 {
    let mut n_lists = 0;
    while let Some(record) = traffic.next_until(i64::MAX) {
        n_lists += u64::from(record.kind == RecordKind::List && !record.payload.is_empty());
    }
    n_lists
}
