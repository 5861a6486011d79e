//! Every convention against the values of its package, for 400 random lists and for edge cases.
//!
//! tests/data/sources holds the lists, the values of each package, and the script that computed them. The values never come
//! from abgauge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::evaluate::{Evaluation, Evaluator, Options, read_catalogue};
use abgauge_core::metrics::{Measures, Profile};
use serde::Deserialize;
use serde_json::Value;

/// Items in rank order, relevant items, and the items' scores if some are equal.
type List = Vec<Vec<u32>>;

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/sources/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[derive(Deserialize)]
struct Expected {
    /// Requirements as `NAME==VERSION`, with the source first.
    packages: Vec<String>,
    /// Values by case and `metric@k`. A value is null for NaN, and a string if the package raises an error.
    values: BTreeMap<String, BTreeMap<String, Value>>,
}

/// Returns the profiles whose source is a package. The others come from abgauge or from notebooks.
fn from_packages() -> Vec<Profile> {
    let not_from_packages = ["default", "summed", "uncut", "ap_over_k"];
    let mut profiles = Profile::all();
    profiles.retain(|profile| !not_from_packages.contains(&&*profile.name));
    profiles
}

/// Returns a catalogue of all items that lists may have. A user has touched the items that are relevant to the user.
fn catalogue(lists: &[List]) -> String {
    let relevant: Vec<&Vec<u32>> = lists.iter().map(|list| &list[1]).collect();
    let n_users = relevant.iter().filter(|items| !items.is_empty()).count();
    let mut lines = String::new();
    for item in 1..100 {
        let n_touched = relevant.iter().filter(|items| items.contains(&item)).count();
        writeln!(
            lines,
            r#"{{"item":{item},"users":{n_touched},"of_users":{n_users}}}"#
        )
        .expect("text grows");
    }
    lines
}

fn evaluate(lists: &[List], profile: Profile) -> Evaluation {
    let mut events = String::new();
    for (user, list) in lists.iter().enumerate() {
        let [items, relevant, ..] = list.as_slice() else {
            panic!("a list without its relevant items: {list:?}");
        };
        writeln!(
            events,
            r#"{{"type":"served","request_id":{user},"ts":1763596800000,"experiments":{{"e":"a"}},"items":{items:?}}}"#
        )
        .expect("text grows");
        for item in relevant {
            writeln!(
                events,
                r#"{{"type":"click","request_id":{user},"ts":1763596801000,"item":{item}}}"#
            )
            .expect("text grows");
        }
    }
    let decoding = Options::default();
    let catalogue = read_catalogue(catalogue(lists).as_bytes(), &decoding).expect("a catalogue");
    let ks = [1, 3, 10, 30].map(|k| NonZeroU32::new(k).expect("not 0"));
    let mut evaluator = Evaluator::new(&Options {
        measures: Measures {
            metrics: profile.metrics.clone(),
            profiles: vec![profile],
            ..Measures::usual(&ks)
        },
        catalogue: Some(Arc::new(catalogue)),
        ..decoding
    });
    evaluator
        .read("events", events.as_bytes())
        .expect("memory can be read");
    evaluator.finish()
}

/// Metrics for which a package has other values in a case, or none. docs/metrics.md explains why.
#[rustfmt::skip]
const DIFFERENT: [(&str, &str, &str); 29] = [
    ("jurity", "copies", "ctr map ndcg precision recall"),
    ("jurity", "copies_in_truth", "ctr map ndcg precision recall"),
    ("jurity", "ties", "ctr map ndcg precision recall"),
    ("lenskit", "copies", "map ndcg precision recall"),
    ("lenskit", "copies_in_truth", "map ndcg recall"),
    ("lenskit", "no_truth", "map"),
    ("lightgbm", "copies", "map ndcg"),
    ("ranx", "copies", "hit_rate hits map mrr ndcg precision recall"),
    ("ranx", "ties", "hit_rate hits map mrr ndcg precision recall"),
    ("recommenders", "copies", "map ndcg precision recall"),
    ("recommenders", "copies_in_truth", "map ndcg precision recall"),
    ("rectools", "copies", "map map_by_k ndcg precision recall"),
    ("rectools", "copies_in_truth", "map map_by_k ndcg precision recall"),
    ("replay_dicts", "copies", "map ndcg"),
    ("replay_dicts", "copies_in_truth", "map ndcg"),
    ("replay_tables", "copies", "map ndcg"),
    ("replay_tables", "copies_in_truth", "map ndcg"),
    ("replay_tables", "ties", "hit_rate map mrr ndcg precision recall"),
    ("rs_metrics_0.3.0", "copies", "map mar ndcg precision"),
    ("rs_metrics_0.3.0", "copies_in_truth", "mar ndcg recall"),
    ("rs_metrics_0.3.0", "no_list", "map mar ndcg precision"),
    ("rs_metrics_0.6.0", "copies", "map ndcg precision"),
    ("rs_metrics_0.6.0", "copies_in_truth", "map recall"),
    ("rs_metrics_0.6.0", "no_list", "precision"),
    ("torchmetrics", "copies", "map ndcg precision recall"),
    ("torchmetrics", "ties", "hit_rate map mrr ndcg precision recall"),
    ("trec_eval", "copies", "hit_rate map mrr ndcg precision recall"),
    ("trec_eval", "ties", "hit_rate map mrr ndcg precision recall"),
    ("xgboost", "copies", "map ndcg precision"),
];

#[test]
fn every_convention_reproduces_the_values_of_its_package() {
    let cases: BTreeMap<String, Vec<List>> = serde_json::from_str(&data("lists.json")).expect("JSON");
    assert_eq!(cases["random"].len(), 400);
    let mut different: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for profile in from_packages() {
        let expected: Expected =
            serde_json::from_str(&data(&format!("{}.json", profile.name))).expect("JSON");
        let mut n = 0;
        for (case, expected) in &expected.values {
            let evaluation = evaluate(&cases[case], profile.clone());
            for (key, expected) in expected {
                let ours = evaluation.value("e", "a", key);
                let ours = ours.unwrap_or_else(|| panic!("{} {case} {key} is undefined", profile.name));
                if expected
                    .as_f64()
                    .is_some_and(|expected| (ours - expected).abs() < 1e-9)
                {
                    n += 1;
                } else {
                    println!("{} {case} {key}: {ours}, expected {expected}", profile.name);
                    let metric = key.split('@').next().expect("a name");
                    let of_case = different.entry((profile.name.clone(), case.clone())).or_default();
                    of_case.insert(metric.to_owned());
                }
            }
        }
        println!("{}: {n} values", profile.name);
    }
    let documented = DIFFERENT.map(|(profile, case, metrics)| {
        let metrics = metrics.split(' ').map(str::to_owned).collect();
        ((profile.to_owned(), case.to_owned()), metrics)
    });
    assert_eq!(different, documented.into());
}

#[test]
fn sources_name_the_release_that_produced_their_values() {
    for profile in from_packages() {
        let expected: Expected =
            serde_json::from_str(&data(&format!("{}.json", profile.name))).expect("JSON");
        let (package, version) = expected.packages[0].split_once("==").expect("it is pinned");
        let (source, release) = profile.source.rsplit_once(' ').expect("a name and a release");
        assert_eq!(release, version, "{source} is {package}");
    }
}
