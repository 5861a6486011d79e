//! Reference values of other packages, end to end: `evaluate` reads events whose sums by bucket are those of a block in
//! `tests/data/statistics.json`.
//!
//! | block | input |
//! |---|---|
//! | `bucket_case`, `list_ratio` | an event for each list and click, bucket by bucket; checks the sums and everything derived from them |
//! | the same with four times as many buckets | the 64 buckets are fewer than burn-in requires, so nothing is printed for them; each is fed as four equal ones, whose effect on V is known |
//! | `fold_case` | the same events from users in fewer buckets |
//! | `occupied_case` | like `bucket_case`, with empty buckets |
//! | `user_level_case` | each user of the block has a bucket of its own |
//! | `burn_in` | lists and hits in a number of buckets; checks whether results are printed |
//! | `srm_cases` | a list per user, up to each of the looks, because a single look has no running maximum |
//!
//! The other blocks cannot be fed. A file is one look in one epoch, so it has neither several epochs (`epoch_case`,
//! `epoch_overlap_case`, `srm_epochs`) nor several looks (`av_trajectory`, `strict_sequence`, `planned_end`, `harm`). The
//! rest (`boundary_grid`, `decision`, `log_e_grid`, `multiple_testing`, `quantiles`, `t_z_transform`) has no sums.

use std::collections::BTreeSet;

use abgauge_core::evaluate::ExperimentComparison;
use abgauge_core::statistics::per_user::{Count, UserCounts, per_user};
use abgauge_core::statistics::{ArmPair, ArmTotals, EpochWeights, Interval, RatioSums, compare, ratio};
use serde_json::Value;

use crate::document;
use crate::feed::{EXPERIMENT, Feed, N_ITEMS, Sums, Users, compared};

/// Relative tolerance for plain formulas.
const PLAIN: f64 = 1e-9;
/// Relative tolerance if Student's t is involved.
const TRANSFORMED: f64 = 1e-8;

#[track_caller]
fn block(name: &str) -> Value {
    let mut all: Value = serde_json::from_str(include_str!("../data/statistics.json")).expect("JSON");
    assert!(
        all[name].is_object() || all[name].is_array(),
        "there is no {name}"
    );
    all[name].take()
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    let difference = (value - expected).abs();
    assert!(
        difference <= tolerance * expected.abs(),
        "{value}, expected {expected}: {:e} off",
        difference / expected.abs()
    );
}

/// Compares both ends of an interval, relative to the larger one.
#[track_caller]
fn ends(found: [f64; 2], expected: [f64; 2]) {
    let scale = expected[0].abs().max(expected[1].abs());
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(
            (found - expected).abs() <= TRANSFORMED * scale,
            "{found}, expected {expected}"
        );
    }
}

fn both(interval: Option<Interval>) -> [f64; 2] {
    let interval = interval.expect("there is one");
    [interval.lower, interval.upper]
}

/// Returns the sums of an arm in `bucket_case`, by bucket.
fn sums(case: &Value, arm: &str) -> Vec<Sums> {
    let column = |name: &str| {
        rows(&case["arms"][arm][name])
            .iter()
            .map(number)
            .collect::<Vec<f64>>()
    };
    let [lists, items, hits, clicks, rr] = ["requests", "items", "hits", "clicks", "rr"].map(column);
    (0..lists.len())
        .map(|bucket| {
            assert_eq!(items[bucket], lists[bucket] * N_ITEMS as f64);
            Sums {
                lists: lists[bucket] as usize,
                hits: hits[bucket] as usize,
                clicks: clicks[bucket] as usize,
                reciprocal_ranks: rr[bucket],
            }
        })
        .collect()
}

const ARMS: [&str; 3] = ["control", "t1", "t2"];
/// Metric names in the blocks, and our ids.
const METRICS: [(&str, &str); 3] = [("hr", "hit_rate"), ("ctr", "ctr"), ("mrr", "mrr")];
const IDS: [&str; 3] = ["hit_rate", "ctr", "mrr"];

/// Returns the events of `bucket_case`. The sums of its bucket b are fed to each of the buckets `buckets(b)`.
fn bucket_case(users: &Users, arms: &[&str], buckets: impl Fn(usize) -> Vec<usize>) -> String {
    let case = block("bucket_case");
    let (mut users, mut feed) = (users.clone(), Feed::default());
    for arm in arms {
        for (bucket, sums) in sums(&case, arm).into_iter().enumerate() {
            for bucket in buckets(bucket) {
                feed.user(&users.take(bucket), arm, sums);
            }
        }
    }
    feed.lines
}

fn totals<'a>(comparison: &'a ExperimentComparison, arm: &str) -> &'a ArmTotals {
    &comparison.totals.epochs[0].arms[arm]
}

fn ratio_sums<'a>(totals: &'a ArmTotals, id: &str) -> RatioSums<'a> {
    let terms = &totals.metrics[id];
    RatioSums {
        lists: &totals.lists,
        numerators: &terms.numerators,
        denominators: &terms.denominators,
    }
}

fn pair(comparison: &ExperimentComparison, arm: &str, id: &str) -> abgauge_core::statistics::Comparison {
    let [arm, control] = [arm, "control"].map(|arm| ratio_sums(totals(comparison, arm), id));
    compare(&[ArmPair { arm, control }], EpochWeights::Overlap).expect("it is defined")
}

#[test]
fn events_give_the_sums_of_the_bucket_case_and_the_results_of_packages() {
    let case = block("bucket_case");
    let found = compared(
        &bucket_case(&Users::find(), &ARMS, |bucket| vec![bucket]),
        "control",
        &IDS,
    );
    for arm in ARMS {
        let totals = totals(&found, arm);
        for (bucket, sums) in sums(&case, arm).into_iter().enumerate() {
            let counted = [&totals.lists, &totals.hits, &totals.clicks].map(|column| column[bucket]);
            assert_eq!(counted, [sums.lists, sums.hits, sums.clicks].map(|n| n as f64));
            assert!((totals.metrics["mrr"].numerators[bucket] - sums.reciprocal_ranks).abs() < 1e-7);
        }
        for (metric, id) in METRICS {
            let found = ratio::ratio(ratio_sums(totals, id)).expect("it is defined");
            let expected = &case["expected"]["arm"][metric][arm];
            near(found.value, number(&expected["R"]), PLAIN);
            let variance = found.spread.expect("it is spread").variance;
            near(variance, number(&expected["var_bucket_linearised"]), 2.0 * PLAIN);
        }
    }
    for (metric, id) in METRICS {
        for arm in ["t1", "t2"] {
            let expected = &case["expected"]["compare"][metric][arm];
            let found = pair(&found, arm, id);
            let [difference, lift] =
                [found.difference, found.lift].map(|effect| effect.expect("it is spread"));
            let absolute = |field: &str| number(&expected["abs"][field]);
            assert!((difference.value - absolute("delta")).abs() < PLAIN * found.control);
            near(difference.spread.variance, absolute("var_paired"), 2.0 * PLAIN);
            assert_eq!(difference.spread.degrees, absolute("df"));
            let relative = |field: &str| number(&expected["rel"][field]);
            assert!((lift.value - relative("lift")).abs() < PLAIN);
            near(lift.spread.variance, relative("var_paired"), 2.0 * PLAIN);
            let expected = rows(&expected["rel"]["ci95_t"])
                .iter()
                .map(number)
                .collect::<Vec<_>>();
            ends(both(lift.interval_at_one_look(0.05)), [expected[0], expected[1]]);
        }
    }
    check_per_user(&found);
}

/// Checks block `list_ratio`.
fn check_per_user(found: &ExperimentComparison) {
    for expected in rows(&block("list_ratio")["rows"]) {
        let arm = expected["arm"].as_str().expect("a name");
        let count = |name: &str| {
            let totals = totals(found, name);
            let counts = match expected["column"].as_str() {
                Some("requests") => &totals.lists,
                Some("clicks") => &totals.clicks,
                Some("hits") => &totals.hits,
                Some("rr") => &totals.metrics["mrr"].numerators,
                other => panic!("{other:?} is no column"),
            };
            Count {
                lists: &totals.lists,
                counts,
                share: number(&expected["theta"][name]),
            }
        };
        let counts = UserCounts {
            arm: count(arm),
            control: count("control"),
        };
        let found = per_user(&[counts], EpochWeights::Overlap).expect("it is defined");
        assert!((found.value - number(&expected["g"])).abs() < PLAIN);
        near(found.spread.variance, number(&expected["V"]), 2.0 * PLAIN);
        near(
            found.p_at_one_look(),
            number(&expected["p_one_look"]),
            TRANSFORMED,
        );
    }
}

/// Every bucket of the case is fed as four. All ratios are unchanged, Σψ² is a quarter, and n is 256 instead of 64.
#[test]
fn splitting_each_bucket_in_four_keeps_lifts_and_quarters_variance() {
    let case = block("bucket_case");
    let events = bucket_case(&Users::find(), &ARMS, |bucket| {
        (0..4).map(|n| bucket + 64 * n).collect()
    });
    let third = (1.0_f64 / 3.0).to_string();
    let shares = ARMS.map(|arm| format!("{arm}={third}")).join(",");
    let arguments = [
        "--compare",
        "control",
        "--metrics",
        "hit_rate,ctr,mrr",
        "--shares",
        &shares,
    ];
    let json = document(&arguments, &events);
    let degrees = 255.0;
    let t = number(&block("quantiles")["t_975"]["255"]);
    let quarter = |variance: f64| variance * (256.0 / degrees) / (64.0 / 63.0) / 4.0;
    for (metric, id) in METRICS {
        for arm in ARMS {
            let expected = number(&case["expected"]["arm"][metric][arm]["R"]);
            near(
                number(&json["experiments"][EXPERIMENT]["arms"][arm]["metrics"][id]),
                expected,
                PLAIN,
            );
        }
        for arm in ["t1", "t2"] {
            let found = &json["comparisons"][EXPERIMENT][arm]["metrics"][id];
            let expected = &case["expected"]["compare"][metric][arm]["rel"];
            let [lift, variance] = ["lift", "var_paired"].map(|field| number(&expected[field]));
            assert!((number(&found["lift"]) - lift).abs() < PLAIN);
            let half = t * quarter(variance).sqrt();
            let interval = ["lower", "upper"].map(|end| number(&found[end]));
            ends(interval, [lift - half, lift + half]);
        }
    }
    let ratios = block("list_ratio");
    let of_lists = rows(&ratios["rows"])
        .iter()
        .filter(|row| row["column"] == "requests");
    for expected in of_lists {
        let arm = expected["arm"].as_str().expect("a name");
        let found = &json["comparisons"][EXPERIMENT][arm]["checks"]["list_ratio"];
        let [g, variance] = ["g", "V"].map(|field| number(&expected[field]));
        near(number(&found["value"]), g.exp(), PLAIN);
        let half = t * quarter(variance).sqrt();
        let interval = ["lower", "upper"].map(|end| number(&found[end]));
        ends(interval, [(g - half).exp(), (g + half).exp()]);
    }
}

#[test]
fn fewer_occupied_buckets_give_the_sums_of_the_fold_case() {
    let users = Users::find();
    for (n_buckets, expected) in block("fold_case")["expected"].as_object().expect("an object") {
        let n_buckets: usize = n_buckets.parse().expect("a number");
        let events = bucket_case(&users, &["control", "t1"], |bucket| vec![bucket % n_buckets]);
        let found = compared(&events, "control", &IDS);
        let found = ratio::ratio(ratio_sums(totals(&found, "t1"), "hit_rate")).expect("it is defined");
        assert_eq!(found.occupied, n_buckets as f64);
        near(found.value, number(&expected["R"]), PLAIN);
        near(
            found.spread.expect("it is spread").variance,
            number(&expected["V"]),
            PLAIN,
        );
    }
}

#[test]
fn buckets_without_a_list_do_not_count() {
    let case = block("occupied_case");
    let (mut users, mut feed) = (Users::find(), Feed::default());
    for arm in ["control", "t1"] {
        let [hits, lists] = ["num", "den"].map(|name| rows(&case["arms"][arm][name]));
        for (bucket, (hits, lists)) in hits.iter().zip(lists).enumerate() {
            let [hits, lists] = [hits, lists].map(|n| number(n) as usize);
            feed.user(&users.take(bucket), arm, of_first_ranks(lists, hits));
        }
    }
    let found = compared(&feed.lines, "control", &IDS);
    let expected = &case["expected"];
    for arm in ["control", "t1"] {
        let found = ratio::ratio(ratio_sums(totals(&found, arm), "hit_rate")).expect("it is defined");
        assert_eq!(found.occupied, number(&expected["occupied"][arm]));
        near(
            found.spread.expect("it is spread").variance,
            number(&expected["V_arm"][arm]),
            PLAIN,
        );
    }
    let difference = pair(&found, "t1", "hit_rate").difference.expect("it is spread");
    near(difference.value, number(&expected["delta"]), PLAIN);
    near(difference.spread.variance, number(&expected["V"]), PLAIN);
    assert_eq!(difference.spread.degrees, number(&expected["df"]));
    near(difference.t(), number(&expected["t"]), TRANSFORMED);
    let interval = rows(&expected["ci95"]).iter().map(number).collect::<Vec<_>>();
    ends(
        both(difference.interval_at_one_look(0.05)),
        [interval[0], interval[1]],
    );
}

/// Returns sums in which each hit has one click, at rank 1.
fn of_first_ranks(lists: usize, hits: usize) -> Sums {
    Sums {
        lists,
        hits,
        clicks: hits,
        reciprocal_ranks: hits as f64,
    }
}

/// The variance must be the one clustered by user if each user of an arm has its own bucket.
#[test]
fn one_user_per_bucket_gives_the_variance_clustered_by_user() {
    let case = block("user_level_case");
    let (mut users, mut feed) = (Users::find(), Feed::default());
    for arm in ["control", "t1"] {
        for (bucket, user) in rows(&case["arms"][arm]).iter().enumerate() {
            let [lists, hits, reciprocal_ranks] = [0, 1, 2].map(|column| number(&user[column]));
            let sums = Sums {
                lists: lists as usize,
                hits: hits as usize,
                clicks: hits as usize,
                reciprocal_ranks,
            };
            feed.user(&users.take(bucket), arm, sums);
        }
    }
    let found = compared(&feed.lines, "control", &IDS);
    for (metric, id) in [("hr", "hit_rate"), ("mrr", "mrr")] {
        for arm in ["control", "t1"] {
            let found = ratio::ratio(ratio_sums(totals(&found, arm), id)).expect("it is defined");
            let expected = &case["expected"][metric]["arms"][arm];
            assert_eq!(found.occupied, number(&expected["n_users"]));
            near(found.value, number(&expected["R"]), PLAIN);
            let variance = found.spread.expect("it is spread").variance;
            near(variance, number(&expected["var_delta_users"]), 2.0 * PLAIN);
        }
    }
}

#[test]
fn nothing_is_printed_before_burn_in() {
    let (case, users) = (block("burn_in"), Users::find());
    for row in rows(&case["rows"]) {
        let (mut users, mut feed) = (users.clone(), Feed::default());
        for (n, arm) in ["control", "t1"].into_iter().enumerate() {
            let [occupied, lists, hits] =
                ["occupied", "lists", "hit_lists"].map(|field| number(&row[field][n]) as usize);
            for bucket in 0..occupied {
                // The remainder of the division goes to the first buckets.
                let [lists, hits] = [lists, hits].map(|n| n / occupied + usize::from(bucket < n % occupied));
                feed.user(&users.take(bucket), arm, of_first_ranks(lists, hits));
            }
        }
        let arguments = [
            "--compare",
            "control",
            "--metrics",
            "hit_rate",
            "--shares",
            "control=.5,t1=.5",
        ];
        let json = document(&arguments, &feed.lines);
        let verdict = &json["comparisons"][EXPERIMENT]["t1"];
        let is_done = row["done"].as_bool().expect("true or false");
        let metric = &verdict["metrics"]["hit_rate"];
        assert_eq!(metric.get("p").is_some(), is_done, "{row}: {verdict}");
        // Sample ratio and lists per user need no burn-in, and precede it in the rules.
        let is_collecting = verdict["state"] == "collecting";
        assert!(!(is_done && is_collecting), "{row}: {verdict}");
    }
}

#[test]
fn the_sample_ratio_test_agrees_with_ssrm() {
    for case in rows(&block("srm_cases")) {
        let theta: Vec<f64> = rows(&case["theta"]).iter().map(number).collect();
        let arms: Vec<String> = (0..theta.len()).map(|n| format!("arm{n}")).collect();
        let shares: Vec<String> = arms
            .iter()
            .zip(&theta)
            .map(|(arm, share)| format!("{arm}={share}"))
            .collect();
        let increments = rows(&case["increments"]);
        let expected = rows(&case["expected"]["concentration_1000"]["log_bayes_factor"]);
        let mut feed = Feed::default();
        let mut n_users = 0;
        for (n, (increment, expected)) in increments.iter().zip(expected).enumerate() {
            for (arm, more) in arms.iter().zip(rows(increment)) {
                for _ in 0..number(more) as usize {
                    feed.user(&format!("u{n_users}"), arm, of_first_ranks(1, 0));
                    n_users += 1;
                }
            }
            if n % 4 != 3 {
                continue;
            }
            let arguments = [
                "--compare",
                "arm0",
                "--metrics",
                "hit_rate",
                "--shares",
                &shares.join(","),
            ];
            let json = document(&arguments, &feed.lines);
            let p = number(&json["comparisons"][EXPERIMENT]["arm1"]["checks"]["srm"]["p"]);
            // According to the block, closed forms differ from it by up to 1e-6.
            near(p, (-number(expected)).exp().min(1.0), 1e-6);
        }
    }
}

/// A new block must not be forgotten here.
#[test]
fn every_block_is_tested_or_listed_as_untestable() {
    let all: Value = serde_json::from_str(include_str!("../data/statistics.json")).expect("JSON");
    let head: String = include_str!("vectors.rs")
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .collect();
    let named = |block: &&String| head.contains(&format!("`{block}`")) || block.starts_with("meta");
    let forgotten: BTreeSet<&String> = all
        .as_object()
        .expect("an object")
        .keys()
        .filter(|block| !named(block))
        .collect();
    assert_eq!(forgotten, BTreeSet::new());
}
