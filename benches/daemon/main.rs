//! What the daemon costs, and how soon it shows what was produced: the `abgauge` binary against real Apache Kafka.
//!
//! `cargo bench --bench daemon -- throughput` (or `latency`, `memory`), after `tests/run --setup-only` once;
//! docs/performance.md tells the method and the results.

mod bare;
#[path = "../common/mod.rs"]
mod common;
mod latency;
mod load;
mod memory;
mod process;
#[path = "../../tests/support/mod.rs"]
mod support;
mod throughput;

use clap::{CommandFactory as _, Parser};

/// The bare consumer allocates as the daemon does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(
    name = "cargo bench --bench daemon --",
    about = "Benchmarks of the whole daemon against real Apache Kafka"
)]
enum Benchmark {
    /// CPU time per record while the daemon catches up, beside a bare consumer
    Throughput {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
        /// What the daemons measure, one for each
        #[arg(long, value_enum, value_delimiter = ',', default_value = "usual")]
        metrics: Vec<throughput::Metrics>,
        /// A librdkafka property of both, beyond the daemon's own
        #[arg(long = "property", value_name = "NAME=VALUE")]
        properties: Vec<String>,
    },
    /// Time from producing a record to a scrape that shows it
    Latency {
        /// Lists and clicks per second
        #[arg(long, default_value_t = 5_000)]
        rate: u32,
        /// Seconds of each round
        #[arg(long, default_value_t = 30)]
        seconds: u32,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Resident memory per open list
    Memory {
        #[arg(long, default_value_t = 1_000_000)]
        few: u64,
        #[arg(long, default_value_t = 3_000_000)]
        many: u64,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// Reads and discards; started by `throughput`
    #[command(hide = true)]
    Bare(bare::Task),
}

fn main() {
    // Cargo adds `--bench` to whatever it starts.
    let args: Vec<_> = std::env::args_os().filter(|arg| arg != "--bench").collect();
    if args.len() < 2 {
        return Benchmark::command()
            .print_help()
            .expect("print to standard output");
    }
    match Benchmark::parse_from(args) {
        Benchmark::Throughput {
            lists,
            rounds,
            metrics,
            properties,
        } => throughput::run(lists, rounds, &metrics, &properties),
        Benchmark::Latency {
            rate,
            seconds,
            rounds,
        } => latency::run(rate, seconds, rounds),
        Benchmark::Memory { few, many, rounds } => memory::run(few, many, rounds),
        Benchmark::Bare(task) => bare::run(&task),
    }
}
