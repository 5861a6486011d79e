//! The values that each arm must have: the reference's, and those of `abgauge evaluate` and the API for their bits.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::events;
use crate::support::daemon::Daemon;
use crate::support::tools;

/// By arm of `ranker` and metric: `("neural", "hit_rate@5")`, and `lists` and `clicks`, the bases.
pub type Values = BTreeMap<(String, String), f64>;

/// hit_rate, ctr and mrr of three arms, at six cut-offs and over the whole list.
const N_EXPECTED: usize = 3 * 3 * 7;

/// Profile `default` of the reference, as far as the daemon has its metrics.
pub fn expected() -> Values {
    let file = tools::repository("tests/data/lists-a.expected.json");
    let text = fs::read_to_string(file).expect("read the expected values");
    let profiles: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> =
        serde_json::from_str(&text).expect("profile, arm, metric");
    let mut values = Values::new();
    for (arm, metrics) in &profiles["default"] {
        for (metric, value) in metrics {
            if ["hit_rate", "ctr", "mrr"].contains(&id(metric)) {
                values.insert((arm.clone(), metric.clone()), *value);
            }
        }
    }
    assert_eq!(values.len(), N_EXPECTED);
    values
}

/// `hit_rate` of `hit_rate@5`.
fn id(metric: &str) -> &str {
    metric.split_once('@').map_or(metric, |(id, _)| id)
}

/// What `abgauge evaluate` prints for the file.
pub fn evaluated() -> Values {
    let output = Command::new(env!("CARGO_BIN_EXE_abgauge"))
        .args(["evaluate", "--format", "json", "--k", "1,2,3,5,10,20"])
        .arg(tools::repository(events::FILE))
        .output()
        .expect("run abgauge evaluate");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let document: Document<Sums> = serde_json::from_slice(&output.stdout).expect("the shape of the answer");
    document.values(|sums| sums)
}

/// What `/api/v1/experiments` says of window `total`, view `live`.
pub fn of_api(daemon: &Daemon) -> Values {
    let answer = daemon.get("/api/v1/experiments");
    let document: Document<Windows> = serde_json::from_str(&answer.body).expect("the shape of the answer");
    document.values(|arm| &arm.windows["total"]["live"])
}

#[derive(Deserialize)]
struct Document<A> {
    experiments: BTreeMap<String, Arms<A>>,
}

#[derive(Deserialize)]
struct Arms<A> {
    arms: BTreeMap<String, A>,
}

#[derive(Deserialize)]
struct Windows {
    windows: BTreeMap<String, BTreeMap<String, Sums>>,
}

/// Numbers stay text: serde_json may read a number into the neighbour of the nearest float, the standard library
/// does not.
#[derive(Deserialize)]
struct Sums {
    lists: Box<RawValue>,
    clicks: Box<RawValue>,
    metrics: BTreeMap<String, Box<RawValue>>,
}

impl<A> Document<A> {
    fn values(&self, sums: fn(&A) -> &Sums) -> Values {
        let number = |raw: &RawValue| raw.get().parse().expect("a number");
        let mut values = Values::new();
        for (arm, found) in &self.experiments["ranker"].arms {
            let sums = sums(found);
            let bases = [("lists", &sums.lists), ("clicks", &sums.clicks)];
            let metrics = sums.metrics.iter().map(|(metric, value)| (&**metric, value));
            for (name, value) in metrics.chain(bases) {
                values.insert((arm.clone(), name.to_owned()), number(value));
            }
        }
        values
    }
}

/// To 1e-9; neither may have a value that the other has not, the bases aside.
#[track_caller]
pub fn assert_near(seen: &Values, expected: &Values) {
    let is_base = |name: &str| name == "lists" || name == "clicks";
    let metrics: Vec<_> = seen.keys().filter(|(_, name)| !is_base(name)).collect();
    assert_eq!(metrics, expected.keys().collect::<Vec<_>>());
    let far: Vec<_> = expected
        .iter()
        .map(|(key, value)| (key, seen[key], value))
        .filter(|(_, seen, expected)| (seen - *expected).abs() > 1e-9)
        .collect();
    assert!(far.is_empty(), "arm and metric, seen, expected: {far:#?}");
}

#[track_caller]
pub fn assert_same_bits(seen: &Values, expected: &Values) {
    let bits = |values: &Values| -> BTreeMap<_, _> {
        let entries = values.iter();
        entries
            .map(|(key, value)| (key.clone(), (value.to_bits(), *value)))
            .collect()
    };
    let (seen, expected) = (bits(seen), bits(expected));
    assert_eq!(
        seen.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    let other: Vec<_> = expected
        .iter()
        .map(|(key, value)| (key, seen[key], value))
        .filter(|(_, seen, expected)| seen.0 != expected.0)
        .collect();
    assert!(other.is_empty(), "arm and metric, seen, expected: {other:#?}");
}
