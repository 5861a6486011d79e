//! Comparison with GrowthBook's engine: 50 random experiments, evaluated from events here and by gbstats.
//!
//! `tests/data/growthbook.py` generates the events, sums them by user bucket without our code, and runs gbstats. The same
//! events are generated here. With the same formula everything must agree: lifts, the variance of each arm, and an interval
//! of both arms as if they shared no bucket. The printed values differ in three respects, for which the script corrects one
//! by one: see `shown` there.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use abgauge_core::evaluate::{Compare, Evaluation, Evaluator, Options};
use abgauge_core::metrics::Measures;
use abgauge_core::statistics::{ArmPair, Effect, EpochWeights, RatioSums, Settings, compare};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{MIDNIGHT_MS, click};

/// Tolerance of a lift, of a p-value, and of an interval's end relative to its width.
const TOLERANCE: f64 = 1e-9;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Generates the events as `events` in the script does.
fn events(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut lines = String::new();
    let n_arms = if random.below(3) == 0 { 3 } else { 2 };
    let base = 100 + random.below(200);
    let mut user = 0;
    for arm in &["control", "t1", "t2"][..n_arms] {
        let n_users = 600 + random.below(600);
        let rate = base * (90 + random.below(31)) / 100;
        for _ in 0..n_users {
            of_user(&mut random, &mut lines, arm, user, rate);
            user += 1;
        }
    }
    lines
}

fn of_user(random: &mut Random, lines: &mut String, arm: &str, user: usize, rate: u64) {
    let own_rate = rate / 2 + random.below(rate);
    let mut n_lists = 1 + random.below(3);
    if random.below(10) == 0 {
        n_lists += random.below(20);
    }
    let mut add = |line: &str| writeln!(lines, "{line}").expect("text takes all");
    for n in 0..n_lists {
        let request = format!("{user}-{n}");
        let ts_ms = MIDNIGHT_MS + 1000 * random.below(604_800) as i64;
        let n_items = 1 + random.below(10);
        let items: Vec<String> = (1..=n_items).map(|item| format!("\"{item}\"")).collect();
        let items = items.join(",");
        add(&format!(
            r#"{{"type":"served","request_id":"{request}","user_id":"u{user}","ts":{ts_ms},"experiments":{{"e":"{arm}"}},"items":[{items}]}}"#
        ));
        if random.below(1000) < own_rate {
            let mut rank = 1 + random.below(n_items);
            while rank <= n_items {
                // Clicks come up to 40 minutes later, and count within 30.
                let line = click(
                    &request,
                    ts_ms + 1000 * random.below(2400) as i64,
                    &rank.to_string(),
                );
                let n_times = if random.below(10) == 0 { 2 } else { 1 };
                (0..n_times).for_each(|_| add(&line));
                if random.below(4) > 0 {
                    break;
                }
                rank += 1;
            }
        }
        if random.below(20) == 0 {
            add(&click(&request, ts_ms, "x"));
        }
    }
}

fn evaluated(events: &str) -> Evaluation {
    let options = Options {
        measures: Measures {
            metrics: vec!["hit_rate", "ctr", "mrr"],
            ..Measures::usual(&[NonZeroU32::new(5).expect("not 0")])
        },
        compare: Some(Compare {
            all: Some(Settings::new("control")),
            ..Compare::default()
        }),
        ..Options::default()
    };
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", events.as_bytes())
        .expect("it can be read");
    evaluator.finish()
}

/// Returns the difference and the lift, with both arms treated as if they shared no bucket and with Welch's degrees of
/// freedom: GrowthBook's t test.
fn independent(evaluation: &Evaluation, arm: &str, metric: &str) -> [Effect; 2] {
    let comparison = evaluation.comparison("e").expect("it is compared");
    let sums = |name: &str| {
        let arm = &comparison.totals.epochs[0].arms[name];
        RatioSums {
            lists: &arm.lists,
            numerators: &arm.metrics[metric].numerators,
            denominators: &arm.metrics[metric].denominators,
        }
    };
    let pair = ArmPair {
        arm: sums(arm),
        control: sums("control"),
    };
    let found = compare(&[pair], EpochWeights::Overlap).expect("it is defined");
    let difference = found.difference.expect("it is spread");
    let variance = |effect: &Effect| effect.arms.iter().map(|arm| arm.variance).sum::<f64>();
    let parts = difference.arms.map(|arm| arm.variance.powi(2) / arm.degrees);
    let degrees = variance(&difference).powi(2) / parts.iter().sum::<f64>();
    [difference, found.lift.expect("it is spread")].map(|effect| {
        let mut alone = effect;
        alone.spread.variance = variance(&effect);
        alone.spread.degrees = degrees;
        alone
    })
}

/// Largest deviations of values.
#[derive(Debug, Default, Clone, Copy)]
struct Off {
    lift: f64,
    interval: f64,
    p: f64,
    shown_interval: f64,
    shown_p: f64,
}

impl Off {
    fn max(self, other: Off) -> Off {
        Off {
            lift: self.lift.max(other.lift),
            interval: self.interval.max(other.interval),
            p: self.p.max(other.p),
            shown_interval: self.shown_interval.max(other.shown_interval),
            shown_p: self.shown_p.max(other.shown_p),
        }
    }
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the larger deviation of an interval's ends, relative to its width.
fn ends_off(found: [f64; 2], expected: &Value) -> f64 {
    let expected = [number(&expected[0]), number(&expected[1])];
    let off = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (found - expected).abs());
    off.fold(0.0, f64::max) / (expected[1] - expected[0])
}

fn check(expected: &Value) -> Off {
    let events = events(expected["seed"].as_u64().expect("a seed"));
    let hash = format!("{:016x}", xxh3_64(events.as_bytes()));
    assert_eq!(expected["events"], hash.as_str(), "these are other events");
    let evaluation = evaluated(&events);
    assert_eq!(expected["lists"], evaluation.n_lists);
    let mut json = Vec::new();
    evaluation.report().json(&mut json).expect("it is written");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    let verdicts = json["comparisons"]["e"].as_object().expect("arms");
    let mut off = Off::default();
    for (arm, metrics) in expected["arms"].as_object().expect("arms") {
        for (metric, expected) in metrics.as_object().expect("metrics") {
            let [difference, lift] = independent(&evaluation, arm, metric);
            let shown = &verdicts[arm]["metrics"][metric];
            let absolute = &expected["absolute"];
            let interval = |effect: Effect| {
                let interval = effect.interval_at_one_look(0.05).expect("it is finite");
                [interval.lower, interval.upper]
            };
            off = off.max(Off {
                lift: (number(&shown["lift"]) - number(&expected["lift"])).abs(),
                interval: ends_off(interval(lift), &expected["ci"])
                    .max(ends_off(interval(difference), &absolute["ci"])),
                p: (difference.p_at_one_look() - number(&absolute["p"])).abs(),
                shown_interval: ends_off(
                    ["lower", "upper"].map(|end| number(&shown[end])),
                    &expected["shown"]["ci"],
                ),
                shown_p: (number(&shown["p"]) - number(&expected["shown"]["p"])).abs(),
            });
        }
    }
    assert_eq!(
        verdicts.len(),
        expected["arms"].as_object().map_or(0, serde_json::Map::len)
    );
    off
}

#[test]
fn fifty_experiments_have_growthbooks_lifts_and_intervals() {
    let file: Value = serde_json::from_str(include_str!("../data/growthbook.json")).expect("JSON");
    let experiments = file["experiments"].as_array().expect("experiments");
    assert_eq!(experiments.len(), 50);
    let off = std::thread::scope(|scope| {
        let check_all = |experiments: &[Value]| experiments.iter().map(check).fold(Off::default(), Off::max);
        let halves = experiments
            .chunks(25)
            .map(|half| scope.spawn(move || check_all(half)));
        let halves: Vec<_> = halves.collect();
        let each = halves
            .into_iter()
            .map(|half| half.join().expect("no check fails"));
        each.fold(Off::default(), Off::max)
    });
    println!("{off:?}");
    for (what, off) in [
        ("lifts", off.lift),
        ("intervals", off.interval),
        ("p", off.p),
        ("intervals as shown", off.shown_interval),
        ("p as shown", off.shown_p),
    ] {
        assert!(off <= TOLERANCE, "{what}: {off:e}");
    }
}
