//! Cost of the daemon, and delay until it shows new records: the `abgauge` binary against real Apache Kafka.
//!
//! `cargo bench --features real-services --bench daemon -- table` prints every figure with its goal; run `tests/run
//! --setup-only` once before. Each row can be run alone. docs/performance.md has the method and the results, and LOG.md lists
//! all attempts.

mod bare;
mod catch_up;
#[path = "../common/mod.rs"]
mod common;
mod feed;
mod figure;
mod flatness;
mod latency;
mod load;
mod memory;
mod open_lists;
mod process;
mod reading;
mod restart;
mod scrape;
mod simulate;
mod soak;
mod stalls;
mod state;
mod statistics;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;
mod throughput;

use clap::{CommandFactory as _, Parser};

/// Allocator of the bare consumer, the same as in the daemon.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(
    name = "cargo bench --features real-services --bench daemon --",
    about = "Benchmarks of the whole daemon against real Apache Kafka"
)]
enum Benchmark {
    /// Every row below, one after the other, as one table
    Table(table::Sizes),
    /// CPU time per record while the daemon catches up, beside a bare consumer
    Throughput {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
        #[command(flatten)]
        task: throughput::Task,
    },
    /// CPU time per record at 1, 100 and 10,000 arms
    Arms {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
        /// Event time of the lists; an hour is caught up with in a second or two
        #[arg(long, default_value_t = 3600)]
        span_seconds: u32,
        /// By daemons that are ready before the records come, and so show them as they read
        #[arg(long)]
        shown: bool,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// CPU time per record with windows from 5 minutes to 7 days
    Windows {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// CPU time per record at 10 thousand and a million open lists
    OpenLists {
        /// And at ten million, which take 1.3 GB of memory and 2 GB of disk
        #[arg(long)]
        ten_million: bool,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// The same in memory, without Kafka, at any number of them
    OpenListsInMemory {
        /// 10000000 of them take 1.3 GB
        #[arg(long, value_delimiter = ',', default_value = "10000,1000000")]
        sizes: Vec<u64>,
        #[arg(long, default_value_t = 15)]
        rounds: usize,
    },
    /// CPU time per record where state is stored, beside where it is not
    State {
        #[arg(long, default_value_t = 8_000_000)]
        lists: u64,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// Bytes that are stored a second at the default interval
    StateBytes {
        #[arg(long, value_delimiter = ',', default_value = "4,100,10000")]
        arms: Vec<usize>,
        /// Lists and clicks per second: each arm is to have lists in all seconds
        #[arg(long, default_value_t = 40_000)]
        rate: u64,
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// Time until a daemon that was killed shows what was settled, and is ready
    Restart {
        /// Lists and clicks per second of event time; at 20000 they take 7 GB of disk and 3.5 GB of memory
        #[arg(long, value_delimiter = ',', default_value = "1000")]
        rates: Vec<u64>,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// CPU time per record where three experiments are looked at, beside none
    Statistics {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// CPU time of a look over 100 experiments of ten arms and ten metrics, without Kafka
    Look {
        #[arg(long, default_value_t = 15)]
        rounds: usize,
    },
    /// Resident memory per open list
    Memory {
        /// 10000000 of them take 1.3 GB of memory and as much disk
        #[arg(long, default_value_t = 1_000_000)]
        lists: u64,
        #[arg(long, default_value_t = 0.2)]
        click_share: f64,
    },
    /// Memory per list of streams that are sparse and long, in `evaluate` and in a daemon; 2 GB
    SparseMemory,
    /// The longest batch of the ingest loop at a steady rate
    Stalls {
        /// Lists and clicks per second: half of what the daemon can
        #[arg(long, default_value_t = 200_000)]
        rate: u64,
        #[arg(long, default_value_t = 600)]
        seconds: u64,
    },
    /// What a scrape of 300,000 series costs
    Scrape {
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Time from producing a record to a scrape that shows it
    Latency {
        /// Lists and clicks per second
        #[arg(long, default_value_t = 20_000)]
        rate: u32,
        /// Seconds of each round
        #[arg(long, default_value_t = 30)]
        seconds: u32,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Records that `abgauge simulate` makes per second of a core
    Simulate {
        /// Seconds of each round
        #[arg(long, default_value_t = 20)]
        seconds: u32,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Clicks matched from the begin of the log, where their topic is far smaller than that of lists
    CatchUp {
        #[arg(long, default_value_t = 2_000_000)]
        lists: u64,
    },
    /// Resident memory at full speed under a hot key
    Soak {
        /// Lists and clicks per second, rather than as many as can be sent
        #[arg(long)]
        rate: Option<u64>,
        #[arg(long, default_value_t = 1_800)]
        seconds: u64,
        /// Seconds before the slope is taken
        #[arg(long, default_value_t = 120)]
        warm_up: u64,
    },
    /// Reads and discards; started by `throughput`
    #[command(hide = true)]
    Bare(bare::Task),
}

fn main() {
    // Cargo adds `--bench` to the arguments.
    let args: Vec<_> = std::env::args_os().filter(|arg| arg != "--bench").collect();
    if args.len() < 2 {
        return Benchmark::command()
            .print_help()
            .expect("print to standard output");
    }
    let kafka = load::broker;
    let figures = match Benchmark::parse_from(args) {
        Benchmark::Table(sizes) => table::run(&sizes),
        Benchmark::Throughput { lists, task } => {
            let kafka = kafka();
            throughput::run(&kafka, &throughput::topics(&kafka, lists), &task)
        }
        Benchmark::Arms {
            lists,
            span_seconds,
            shown,
            rounds,
        } => {
            let arms = if shown {
                flatness::shown_arms
            } else {
                flatness::arms
            };
            arms(&kafka(), lists, i64::from(span_seconds) * 1000, rounds)
        }
        Benchmark::Windows { lists, rounds } => {
            let kafka = kafka();
            flatness::windows(&kafka, &throughput::topics(&kafka, lists), rounds)
        }
        Benchmark::OpenLists { ten_million, rounds } => flatness::open_lists(&kafka(), rounds, ten_million),
        Benchmark::OpenListsInMemory { sizes, rounds } => open_lists::run(&sizes, rounds),
        Benchmark::State { lists, rounds } => state::run(&kafka(), lists, rounds),
        Benchmark::StateBytes { arms, rate, seconds } => {
            let kafka = kafka();
            let of = |n_arms| state::bytes(&kafka, n_arms, rate, seconds);
            arms.into_iter().flat_map(of).collect()
        }
        Benchmark::Restart { rates, rounds } => {
            let kafka = kafka();
            let of = |rate| restart::run(&kafka, rate, rounds);
            rates.into_iter().flat_map(of).collect()
        }
        Benchmark::Statistics { lists, rounds } => statistics::run(&kafka(), lists, rounds),
        Benchmark::Look { rounds } => statistics::look(rounds),
        Benchmark::Memory { lists, click_share } => memory::run(&kafka(), lists, click_share),
        Benchmark::SparseMemory => memory::run_sparse(&kafka()),
        Benchmark::Stalls { rate, seconds } => stalls::run(&kafka(), rate, seconds),
        Benchmark::Scrape { rounds } => scrape::run(&kafka(), rounds),
        Benchmark::Latency {
            rate,
            seconds,
            rounds,
        } => latency::run(&kafka(), rate, seconds, rounds),
        Benchmark::Simulate { seconds, rounds } => simulate::run(&kafka(), seconds, rounds),
        Benchmark::CatchUp { lists } => catch_up::run(&kafka(), lists),
        Benchmark::Soak {
            rate,
            seconds,
            warm_up,
        } => soak::run(&kafka(), rate, seconds, warm_up),
        Benchmark::Bare(task) => return bare::run(&task),
    };
    figure::print(&figures);
}
