//! Comparisons of simulated arms with known true lifts.

use std::num::NonZeroU32;

use abgauge::tools::simulate::{Design, Traffic, TrafficSettings, World};
use serde_json::Value;

use crate::support::program::{run, temporary_dir};

const EVEN: &str = "control=0.5,neural=0.5";
const METRICS: [&str; 3] = ["ctr@5", "hit_rate@5", "mrr@5"];

/// Compares neural with the control in a day of 70,000 lists, given the expected shares.
#[track_caller]
fn verdict(simulated: &[&str], expected_shares: &str) -> Value {
    let dir = temporary_dir();
    let events = dir.path().join("events.jsonl").display().to_string();
    let pace = "--duration 1d --rate 0.8 --diurnal".split(' ');
    let simulate: Vec<&str> = ["simulate", "--output", &events]
        .into_iter()
        .chain(pace)
        .collect();
    let compare =
        "--compare control --metrics ctr,hit_rate,mrr --k 5 --primary ctr@5 --format json".split(' ');
    let evaluate: Vec<&str> = ["evaluate", &events, "--shares", expected_shares]
        .into_iter()
        .chain(compare)
        .collect();
    let ran = run(&[&simulate, simulated].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&evaluate);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    json["comparisons"]["ranker"]["neural"].clone()
}

/// Returns the true lifts of neural over the control.
fn lifts(design: Design) -> [f64; 3] {
    let settings = TrafficSettings {
        world: World {
            design,
            ..World::default()
        },
        ..TrafficSettings::new(1, 1.0, 0)
    };
    let truths = Traffic::new(settings).truth(&[NonZeroU32::new(5).expect("5 is not zero")]);
    METRICS.map(|key| {
        let value = |arm: &str| {
            let truth = truths.iter().find(|truth| truth.arm == arm && truth.key == key);
            truth.expect("a truth").value
        };
        value("neural") / value("control") - 1.0
    })
}

/// Checks that each metric's interval contains the true lift.
#[track_caller]
fn check_covered(verdict: &Value, lifts: [f64; 3]) {
    for (key, lift) in METRICS.iter().zip(lifts) {
        let metric = &verdict["metrics"][key];
        let [lower, upper] = ["lower", "upper"].map(|end| metric[end].as_f64().expect("a number"));
        assert!(
            (lower..upper).contains(&lift),
            "{key}: {lift} in {lower} to {upper}"
        );
    }
}

#[test]
fn an_effect_is_inside_its_intervals_and_wins() {
    let given = Design::default().with_effects(&[("neural".to_owned(), 0.1)]);
    let lifts = lifts(given.expect("an effect"));
    assert!((lifts[0] - 0.1).abs() < 1e-9, "{lifts:?}");
    for (seed, users) in [("1", "20000"), ("3", "1000000")] {
        let simulated = [
            "--seed",
            seed,
            "--users",
            users,
            "--shares",
            EVEN,
            "--effect",
            "neural=+0.10",
        ];
        let verdict = verdict(&simulated, EVEN);
        check_covered(&verdict, lifts);
        assert_eq!(verdict["state"], "win", "{verdict}");
        assert_eq!(verdict["checks"]["srm"]["p"], 1.0, "{verdict}");
        // Users are identified by half of a hash, so two users may collide.
        let in_two = verdict["checks"]["multi_arm"]["share"].as_f64().expect("a share");
        assert!(in_two < 0.000_1, "{verdict}");
    }
}

#[test]
fn equal_arms_do_not_win() {
    for seed in ["1", "2", "3", "4"] {
        let verdict = verdict(
            &["--seed", seed, "--shares", "control=0.7,neural=0.3", "--aa"],
            "control=0.7,neural=0.3",
        );
        check_covered(&verdict, [0.0; 3]);
        assert_ne!(verdict["state"], "win", "{verdict}");
        assert_eq!(verdict["checks"]["srm"]["p"], 1.0, "{verdict}");
    }
}

#[test]
fn wrong_shares_are_a_mismatch() {
    let verdict = verdict(&["--shares", "control=0.55,neural=0.45"], EVEN);
    assert_eq!(verdict["state"], "invalid(srm)", "{verdict}");
    assert!(verdict["checks"]["srm"]["p"].as_f64() < Some(0.001), "{verdict}");
}
