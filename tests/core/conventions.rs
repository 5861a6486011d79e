//! Every value of the test vectors, computed by third-party packages per profile, arm, metric and k.
//!
//! tests/data holds copies. The expected values are never edited.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::evaluate::{Evaluation, Evaluator, Options};
use abgauge_core::metrics::{METRICS, Measures, Profile};

type Values = BTreeMap<String, f64>;

fn vector(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn evaluate(events: &str, catalog: Option<&str>, profile: &str, ks: &[u32]) -> Evaluation {
    let catalogue = catalog.map(|text| {
        let decoder = Decoder::new(0, 1000, 100);
        Arc::new(catalogue::read(text.as_bytes(), &decoder, None).expect("the catalogue can be read"))
    });
    let ks: Vec<NonZeroU32> = ks.iter().filter_map(|k| NonZeroU32::new(*k)).collect();
    let options = Options {
        measures: Measures {
            profiles: vec![Profile::named(profile).expect("it is there")],
            metrics: METRICS.iter().map(|metric| metric.id).collect(),
            ..Measures::usual(&ks)
        },
        catalogue,
        ..Options::default()
    };
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", events.as_bytes())
        .expect("memory can be read");
    evaluator.finish()
}

/// Compares the values. Returns the largest difference and the number of values.
#[track_caller]
fn compare(
    evaluation: &Evaluation,
    experiment: &str,
    arm: &str,
    expected: &Values,
    tolerance: f64,
) -> (usize, f64) {
    let mut worst = 0.0_f64;
    for (key, expected) in expected {
        let value = evaluation.value(experiment, arm, key);
        let value = value.unwrap_or_else(|| panic!("{experiment} {arm} {key} is undefined"));
        let difference = (value - expected).abs();
        assert!(
            difference <= tolerance,
            "{experiment} {arm} {key}: {value}, expected {expected}"
        );
        worst = worst.max(difference);
    }
    (expected.len(), worst)
}

#[test]
fn every_profile_reproduces_the_numbers_of_its_source() {
    let events = vector("lists-a.events.jsonl");
    let catalog = vector("lists-a.catalog.jsonl");
    let expected: BTreeMap<String, BTreeMap<String, Values>> =
        serde_json::from_str(&vector("lists-a.expected.json")).expect("JSON");
    assert_eq!(expected.len(), 10);
    let (mut n_all, mut worst_of_all) = (0, 0.0_f64);
    for (profile, arms) in &expected {
        let evaluation = evaluate(&events, Some(&catalog), profile, &[1, 2, 3, 5, 10, 20]);
        let (mut n, mut worst) = (0, 0.0_f64);
        for (arm, expected) in arms {
            let (n_of_arm, worst_of_arm) = compare(&evaluation, "ranker", arm, expected, 1e-9);
            (n, worst) = (n + n_of_arm, worst.max(worst_of_arm));
        }
        println!("{profile}: {n} values, worst difference {worst:.1e}");
        (n_all, worst_of_all) = (n_all + n, worst_of_all.max(worst));
    }
    println!("all: {n_all} values, worst difference {worst_of_all:.1e}");
    assert_eq!(n_all, 1137);
}

#[derive(serde::Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    case: String,
    profile: String,
    experiment: String,
    arm: String,
    tolerance: f64,
    values: Values,
}

fn trec(name: &str) -> usize {
    let events = vector(&format!("{name}.events.jsonl"));
    let cases: Cases = serde_json::from_str(&vector(&format!("{name}.expected.json"))).expect("JSON");
    let mut n_all = 0;
    for case in &cases.cases {
        let k_of = |key: &String| key.split_once('@').and_then(|(_, k)| k.parse().ok());
        let mut ks: Vec<u32> = case.values.keys().filter_map(k_of).collect();
        ks.sort_unstable();
        ks.dedup();
        let evaluation = evaluate(&events, None, &case.profile, &ks);
        let (n, worst) = compare(
            &evaluation,
            &case.experiment,
            &case.arm,
            &case.values,
            case.tolerance,
        );
        println!(
            "{} {}: {n} values, worst {worst:.1e} of {:.1e}",
            case.case, case.arm, case.tolerance
        );
        n_all += n;
    }
    n_all
}

#[test]
fn the_cases_of_trec_eval_hold_within_its_printed_digits() {
    assert_eq!(trec("trec-cases"), 264);
}

#[test]
fn the_trec_eval_run_over_lists_of_500_items_holds() {
    assert_eq!(trec("trec-long"), 64);
}

#[test]
fn popularity_and_surprisal_need_numbers_of_users() {
    let catalog = "{\"item\":\"i1\"}\n{\"item\":\"i2\"}";
    let evaluation = evaluate(&vector("lists-a.events.jsonl"), Some(catalog), "rs_metrics", &[5]);
    let value = |key| evaluation.value("ranker", "control", key);
    assert_eq!([value("popularity@5"), value("surprisal@5")], [None, None]);
    assert_eq!(value("coverage@5"), Some(1.0));
}
