//! Cost of many arms between engine and scrape: hand-overs, settled slots, idle windows, renderings.
//!
//! `cargo bench --bench board`; `-- ARMS ROUNDS` for another size. In memory, without Kafka.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abgauge::board::Board;
use abgauge::board::snapshot::{SnapshotSource as _, Snapshots};
use abgauge::serve::{About, Exporter};
use abgauge::settings::{self, Config};
use abgauge::stream::worker;
use abgauge::telemetry::Telemetry;
use abgauge_core::engine::event::{ArmName, Batch, Body, Click, Event, Position, Served, Side};
use abgauge_core::ledger::{Keep, PairDelta, PairTracker};
use abgauge_core::looks::{ArmLook, ExperimentLook, Look, MetricLook};
use abgauge_core::metrics::catalogue::{Catalogue, NewItem};
use abgauge_core::metrics::{Column, METRICS, Parts, Ranking, usual_ids};
use abgauge_core::statistics::burn_in::BurnIn;
use abgauge_core::statistics::per_user;
use abgauge_core::statistics::{
    ArmReport, ArmState, Basis, ComparedParts, ComparisonReport, Decision, Interval, MetricReport,
    MetricRole, Settings, Size,
};
use common::clock::thread_cpu_ns;
use common::summary::Summary;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const T0: i64 = 1_763_596_800_000;
/// Number of pairs. Four would take 0.8 GB.
const N_PAIRS: i32 = 2;
const N_ITEMS: usize = 10;
/// Records between two hand-overs of all pairs. At a million per second there is one hand-over every 50 ms.
const N_RECORDS: usize = 50_000;
/// One record in this many is a click.
const CLICK_EVERY: usize = 6;
/// Lists of a pair that wait for a click. Clicks pick from them at random, so they fall into many slots.
const MAX_OPEN: usize = 8192;
const WEEK_MS: i64 = 7 * 24 * 3_600_000;

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let n_arms = sizes.next().unwrap_or(10_000);
    let n_rounds = sizes.next().unwrap_or(9);
    let all = METRICS.map(|metric| metric.id);
    println!("CPU of one thread; median (smallest to largest) of {n_rounds} rounds; {N_PAIRS} partitions\n");
    println!(
        "| metrics, arms, time | width | rows | ns per row | ns per record | ms per hand-over | ns per settled row |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, metrics) in [("usual", &usual_ids()[..]), ("all", &all)] {
        for n_arms in [1, n_arms] {
            // Records come in real time, and a hundred times faster as during catch-up.
            for (pace, step_ms) in [("live", 50), ("100 times", 5000)] {
                hand_overs(
                    &format!("{name}, {n_arms}, {pace}"),
                    &config(metrics),
                    n_arms,
                    n_rounds,
                    step_ms,
                );
            }
        }
    }
    println!(
        "\n| a scrape | arms | series | MB | snapshot ms | with rendering ms | a merge waits at most ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    scrapes("everything", &config(&usual_ids()), n_arms, n_rounds, None);
    let few = few_series(config(&usual_ids()));
    let without = scrapes("few series an arm", &few, n_arms, n_rounds, None);
    // The total number of series stays the same with fewer arms: 30 of each arm as before, and 86 of a look.
    let n_looked = (n_arms * 30).div_ceil(116);
    let with = scrapes(
        "with looks",
        &few,
        n_looked,
        n_rounds,
        Some(looked(&few, n_looked)),
    );
    println!(
        "\na series with looks ÷ without (goal: ≤ 1.15): {:.2}",
        with / without
    );
    println!("\n| an empty week | ms |\n|---|---|");
    empty_week(&config(&usual_ids()), n_arms);
    println!("\n| coverage of 10,000 items | arms | merge ms | snapshot ms |\n|---|---|---|---|");
    coverage(config(&["coverage"]), n_arms.min(1000), n_rounds);
    println!(
        "\n| half a million lists of one hour | rows | ns per record: join | hand over |\n|---|---|---|---|"
    );
    for n_arms in [1, 100, n_arms] {
        catch_up(n_arms);
    }
}

/// Simulates catch-up over an hour of event time, in which the records between two hand-overs cover many slots.
fn catch_up(n_arms: usize) {
    const N_HAND_OVERS: usize = 20;
    const N_BATCHES: usize = 72;
    const N_LISTS: usize = 500_000;
    let mut config = config(&usual_ids());
    config.measures.ks = [1, 5, 10].into_iter().filter_map(NonZeroU32::new).collect();
    config.join.attribution_ms = 1_800_000;
    config.join.lateness_ms = 60_000;
    let mut world = World::empty(&config, n_arms, 1);
    let n_batch = N_LISTS * CLICK_EVERY / (CLICK_EVERY - 1) / N_HAND_OVERS / N_BATCHES;
    let (mut joined_ns, mut merged) = (0, Merged::default());
    for _ in 0..N_HAND_OVERS {
        for _ in 0..N_BATCHES {
            world.ts_ms += 3_600_000 / (N_HAND_OVERS * N_BATCHES) as i64;
            let batch = world.read(0, n_batch);
            let start = thread_cpu_ns();
            world.pairs[0].0.apply(&batch, u64::MAX);
            joined_ns += thread_cpu_ns() - start;
        }
        world.board.set_live_end(world.ts_ms);
        merged += world.merge(0);
    }
    let per_record = |ns: u64| ns as f64 / (n_batch * N_BATCHES * N_HAND_OVERS) as f64;
    println!(
        "| {n_arms} arms | {} | {:.0} | {:.0} |",
        merged.n_live + merged.n_settled,
        per_record(joined_ns),
        per_record(merged.ns),
    );
}

fn config(metrics: &[&'static str]) -> Config {
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
    let mut config = settings::load(None, [brokers].into_iter()).expect("the defaults are valid");
    config.measures.metrics = metrics.to_vec();
    config.measures.ks = [1, 3, 5, 10, 20]
        .into_iter()
        .filter_map(NonZeroU32::new)
        .collect();
    config.export.metrics = metrics.iter().map(|id| (*id).to_owned()).collect();
    config.export.numerators = config.export.metrics.clone();
    let windows = ["5m", "1h", "24h", "total"].map(str::to_owned).to_vec();
    (config.export.live, config.export.settled, config.export.secondary) = (windows.clone(), windows, true);
    // With these values slots settle within the benchmark.
    config.join.attribution_ms = 20_000;
    config.join.lateness_ms = 0;
    config
}

/// Exports thirty series per arm, so that ten thousand arms fill a scrape.
fn few_series(mut config: Config) -> Config {
    config.export.metrics = ["hit_rate", "ctr", "mrr"].map(str::to_owned).to_vec();
    config.export.numerators.clear();
    config.export.live = ["5m", "1h", "total"].map(str::to_owned).to_vec();
    config.export.settled.clear();
    config.export.k = Some(vec![NonZeroU32::MIN]);
    config
}

/// State of all pairs, and their lists that may still be clicked.
struct World {
    board: Arc<Board>,
    pairs: Vec<(PairTracker, Vec<u128>)>,
    n_arms: usize,
    n_read: u64,
    ts_ms: i64,
}

/// Cost of a hand-over of all pairs.
#[derive(Debug, Default, Clone, Copy)]
struct Merged {
    ns: u64,
    n_live: usize,
    n_settled: usize,
}

impl AddAssign for Merged {
    fn add_assign(&mut self, other: Merged) {
        self.ns += other.ns;
        self.n_live += other.n_live;
        self.n_settled += other.n_settled;
    }
}

impl World {
    fn new(config: &Config, n_arms: usize) -> World {
        let mut world = World::empty(config, n_arms, N_PAIRS);
        // Every arm has lists in several slots, some of them settled.
        for _ in 0..8 {
            world.hand_over(2 * n_arms.max(5000), 5000);
        }
        world
    }

    fn empty(config: &Config, n_arms: usize, n_pairs: i32) -> World {
        let ranking = Ranking::new(&config.measures);
        let board = Arc::new(Board::new(config, &ranking));
        let tracker = || PairTracker::new(worker::rules(config), ranking.clone(), None, &Keep::default());
        (0..n_pairs).for_each(|pair| board.show(pair));
        World {
            board,
            pairs: (0..n_pairs).map(|_| (tracker(), Vec::new())).collect(),
            n_arms,
            n_read: 0,
            ts_ms: T0,
        }
    }

    /// Lets every pair read its share of `n_records`, which end `step_ms` later, and hands the changes over.
    fn hand_over(&mut self, n_records: usize, step_ms: i64) -> Merged {
        self.ts_ms += step_ms;
        self.board.set_live_end(self.ts_ms);
        let mut merged = Merged::default();
        for pair in 0..self.pairs.len() {
            let batch = self.read(pair, n_records / N_PAIRS as usize);
            self.pairs[pair].0.apply(&batch, u64::MAX);
            merged += self.merge(pair);
        }
        merged
    }

    /// Hands over the changes of a pair.
    fn merge(&mut self, pair: usize) -> Merged {
        while self.pairs[pair].0.settle(usize::MAX) > 0 {}
        let start = thread_cpu_ns();
        let delta = self.pairs[pair].0.take_delta();
        self.board.merge(pair as i32, &delta);
        let ns = thread_cpu_ns() - start;
        Merged {
            ns,
            n_live: delta.live.iter().count(),
            n_settled: delta.settled.iter().map(|slot| slot.tallies.iter().count()).sum(),
        }
    }

    fn read(&mut self, pair: usize, n_records: usize) -> Batch {
        let mut batch = Batch::default();
        batch.items.extend(0..N_ITEMS as u64);
        let open = &mut self.pairs[pair].1;
        for n in 0..n_records {
            self.n_read += 1;
            let random = mixed(self.n_read);
            // One list in a few is clicked, some slots later.
            let place = (random >> 40) as usize % MAX_OPEN;
            let (side, body) = if n % CLICK_EVERY == 0 && place < open.len() {
                let id = open.swap_remove(place);
                (
                    Side::Clicks,
                    Body::Click(Click {
                        user: None,
                        id,
                        ts_ms: self.ts_ms,
                        item: random % N_ITEMS as u64,
                    }),
                )
            } else {
                let id = (u128::from(random) << 64) | u128::from(mixed(random));
                if open.len() < MAX_OPEN {
                    open.push(id);
                }
                (
                    Side::Served,
                    Body::Served(list(&mut batch, id, self.ts_ms, random as usize % self.n_arms)),
                )
            };
            let at = Position {
                side,
                offset: self.n_read as i64,
                record_ts_ms: i64::MAX,
            };
            batch.events.push(Event::new(at, body));
        }
        batch
    }
}

/// Returns a list of ten items in the n-th arm.
fn list(batch: &mut Batch, id: u128, ts_ms: i64, arm: usize) -> Served {
    let start = batch.text.len() as u32;
    batch.text.push_str("ranker");
    let middle = batch.text.len() as u32;
    write!(batch.text, "arm-{arm:05}").expect("a string takes all");
    let n = batch.arms.len() as u32;
    let hash = u128::from(mixed(arm as u64));
    batch.arms.push(ArmName {
        hash,
        experiment: start..middle,
        arm: middle..batch.text.len() as u32,
    });
    Served {
        id,
        user: None,
        ts_ms,
        items: 0..N_ITEMS as u32,
        arms: n..n + 1,
    }
}

/// Returns a pseudo-random number (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn hand_overs(name: &str, config: &Config, n_arms: usize, n_rounds: usize, step_ms: i64) {
    let mut world = World::new(config, n_arms);
    let width = Ranking::new(&config.measures).width();
    let rounds: Vec<Merged> = (0..n_rounds)
        .map(|_| world.hand_over(N_RECORDS, step_ms))
        .collect();
    // Event time jumps, so all slots settle and hardly anything else happens.
    let settled = world.hand_over(N_PAIRS as usize, 3_600_000);
    let of = |ns: fn(&Merged) -> f64| Summary::of(rounds.iter().map(ns));
    println!(
        "| {name} | {width} | {} | {:.0} | {:.0} | {:.2} | {:.0} |",
        rounds[n_rounds / 2].n_live + rounds[n_rounds / 2].n_settled,
        of(|merged| merged.ns as f64 / (merged.n_live + merged.n_settled).max(1) as f64),
        of(|merged| merged.ns as f64 / N_RECORDS as f64),
        of(|merged| merged.ns as f64 / 1e6),
        settled.ns as f64 / settled.n_settled as f64,
    );
}

/// Measures scrapes. Returns the CPU ns per series.
fn scrapes(name: &str, config: &Config, n_arms: usize, n_rounds: usize, looked: Option<Look>) -> f64 {
    let world = World::new(config, n_arms);
    let exporter = exporter(config, Arc::clone(&world.board));
    if let Some(looked) = looked {
        exporter.looks.show(looked, None);
    }
    let (mut snapshots, mut out) = (Snapshots::default(), Vec::new());
    let mut rounds = Vec::new();
    for _ in 0..n_rounds {
        let start = thread_cpu_ns();
        exporter.source.snapshot_into(None, &mut snapshots.own);
        let copied = thread_cpu_ns();
        out.clear();
        exporter
            .metrics(&mut snapshots, &mut out)
            .expect("it can be rendered");
        rounds.push((copied - start, thread_cpu_ns() - copied));
    }
    let lines = out.split(|byte| *byte == b'\n');
    let n_series = lines.filter(|line| line.starts_with(b"abgauge_")).count();
    let rendered_ms = Summary::of(rounds.iter().map(|(_, all)| *all as f64 / 1e6));
    println!(
        "| {name} | {n_arms} | {n_series} | {:.1} | {:.1} | {rendered_ms:.1} | {:.1} |",
        out.len() as f64 / 1e6,
        Summary::of(rounds.iter().map(|(copy, _)| *copy as f64 / 1e6)),
        Summary::of((0..n_rounds).map(|_| waiting_ms(&world, &exporter))),
    );
    rendered_ms.median * 1e6 / n_series as f64
}

fn exporter(config: &Config, board: Arc<Board>) -> Exporter {
    let telemetry = Telemetry::new("served", "clicks", "0");
    telemetry.set_waiting_for(Vec::new());
    Exporter {
        telemetry: Arc::new(telemetry),
        source: board,
        looks: Arc::default(),
        ranking: Ranking::new(&config.measures),
        windows: config.windows.clone(),
        k: config.measures.ks.clone(),
        controls: config.experiment_controls(),
        experiments: config.experiments.clone(),
        about: About::default(),
        export: config.export.clone(),
        global: None,
        settle_after_ms: 0,
        started_ms: T0,
    }
}

/// Returns a look in which all arms are compared.
fn looked(config: &Config, n_arms: usize) -> Look {
    let ranking = Ranking::new(&config.measures);
    let keys: Vec<String> = ranking.columns().iter().map(Column::key).collect();
    let interval = Some(Interval {
        lower: 0.246_913_578_024_691,
        upper: 0.271_828_182_845_904,
    });
    let parts = Parts {
        numerator: 259_259_259_259.259,
        denominator: 1e12,
    };
    let metric = MetricLook {
        value: 0.259_259_259_259_259,
        parts,
        interval,
    };
    let own = ArmLook {
        size: Size {
            lists: 1e5,
            users: Some(1e4),
        },
        lists_without_user: 0.0,
        top_user_lists: None,
        metrics: keys.iter().map(|key| (key.clone(), metric)).collect(),
        // The settled view is not exported here.
        windows: BTreeMap::new(),
    };
    let number = Some(0.012_345_678_901_234_5);
    let metric = MetricReport {
        parts: Some(ComparedParts {
            control: parts,
            arm: parts,
        }),
        lift: number,
        interval,
        standard_error: number,
        p: number,
        p_adjusted: number,
        p_harm: number,
        information: number,
        top_bucket_share: number,
        ..MetricReport::untested(MetricRole::Secondary, number, number)
    };
    let per_user = per_user::ids().map(str::to_owned);
    let against = ArmReport {
        decision: Some(Decision {
            state: ArmState::NoDecision,
            reason: String::new(),
            basis: Basis::Earlier,
        }),
        burn_in: BurnIn {
            occupied: 256,
            expected_hits: 1e4,
        },
        metrics: keys
            .into_iter()
            .chain(per_user)
            .map(|key| (key, metric))
            .collect(),
        ..ArmReport::default()
    };
    let names: Vec<String> = (0..n_arms).map(|arm| format!("arm-{arm:05}")).collect();
    let report = ComparisonReport {
        as_of_ms: T0,
        look: 1,
        next_decision_ms: None,
        planned_end_ms: None,
        srm_p: number,
        multi_arm: None,
        grown: Default::default(),
        arms: names.iter().map(|arm| (arm.clone(), against.clone())).collect(),
        notes: Vec::new(),
    };
    let look = ExperimentLook {
        start_ms: T0,
        shares_since_ms: T0,
        as_of_ms: T0,
        arms: names.into_iter().map(|arm| (arm, own.clone())).collect(),
        comparison: Some((Settings::new("arm-00000"), report)),
        no_users: None,
        history: Arc::default(),
    };
    Look {
        as_of_ms: T0,
        experiments: [("ranker".to_owned(), Arc::new(look))].into(),
        given_up: None,
    }
}

/// Returns the longest time that an empty merge takes during a scrape.
fn waiting_ms(world: &World, exporter: &Exporter) -> f64 {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            exporter
                .metrics(&mut Snapshots::default(), &mut Vec::new())
                .expect("it can be rendered");
            done.store(true, Ordering::Relaxed);
        });
        let mut longest = Duration::ZERO;
        while !done.load(Ordering::Relaxed) {
            let start = Instant::now();
            world.board.merge(0, &PairDelta::default());
            longest = longest.max(start.elapsed());
        }
        longest.as_secs_f64() * 1e3
    })
}

/// Moves the live end by a week, which empties every window of every arm.
fn empty_week(config: &Config, n_arms: usize) {
    let world = World::new(config, n_arms);
    for (name, after_ms) in [
        ("as it was", 0),
        ("a week later", WEEK_MS),
        ("two weeks later", 2 * WEEK_MS),
    ] {
        world.board.set_live_end(world.ts_ms + after_ms);
        let start = thread_cpu_ns();
        let snapshot = world.board.snapshot(None);
        println!(
            "| {name}, {} arms | {:.1} |",
            snapshot.arms.len(),
            (thread_cpu_ns() - start) as f64 / 1e6
        );
    }
}

fn coverage(mut config: Config, n_arms: usize, n_rounds: usize) {
    config.measures.catalogue = true;
    config.limits.max_coverage_bytes = u64::MAX;
    let items = (0..10_000_u64).map(|n| NewItem {
        id: n.to_string(),
        hash: mixed(n),
        aspects: Vec::new(),
        users: 1,
    });
    let catalogue = Arc::new(Catalogue::new(items.collect(), 100, None));
    let ranking = Ranking::new(&config.measures);
    let board = Board::new(&config, &ranking);
    board.set_catalogue(Arc::clone(&catalogue));
    board.show(0);
    let mut tracker = PairTracker::new(worker::rules(&config), ranking, None, &Keep::default());
    tracker.set_catalogue(catalogue);
    let mut n_lists = 0;
    let mut hand_over = |n: usize| {
        let mut batch = Batch::default();
        for _ in 0..n {
            n_lists += 1;
            let random = mixed(n_lists);
            let first = batch.items.len() as u32;
            batch
                .items
                .extend((0..N_ITEMS as u64).map(|rank| mixed(mixed(random + rank) % 10_000)));
            let ts_ms = T0 + n_lists as i64 / 100;
            let body = Served {
                items: first..first + N_ITEMS as u32,
                ..list(&mut batch, u128::from(random), ts_ms, random as usize % n_arms)
            };
            let at = Position {
                side: Side::Served,
                offset: n_lists as i64,
                record_ts_ms: i64::MAX,
            };
            batch.events.push(Event::new(at, Body::Served(body)));
        }
        board.set_live_end(T0 + n_lists as i64 / 100);
        tracker.apply(&batch, u64::MAX);
        let start = thread_cpu_ns();
        board.merge(0, &tracker.take_delta());
        let merged = thread_cpu_ns() - start;
        let start = thread_cpu_ns();
        drop(board.snapshot(None));
        (merged, thread_cpu_ns() - start)
    };
    hand_over(100 * n_arms);
    for (name, n) in [
        ("every arm had lists since", 20 * n_arms),
        ("one arm in a hundred had", n_arms / 100),
        ("none had", 0),
    ] {
        let rounds: Vec<(u64, u64)> = (0..n_rounds).map(|_| hand_over(n)).collect();
        println!(
            "| {name} | {n_arms} | {:.2} | {:.1} |",
            Summary::of(rounds.iter().map(|(merge, _)| *merge as f64 / 1e6)),
            Summary::of(rounds.iter().map(|(_, scrape)| *scrape as f64 / 1e6))
        );
    }
}
