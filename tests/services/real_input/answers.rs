//! Expected values of each arm: the reference values, and for exact bits the values of the API and of the same engine over
//! the file.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::evaluate::{Evaluator, Options};
use abgauge_core::metrics::profile::OLD_NAMES;
use abgauge_core::metrics::{CLICKS, LISTS, METRICS, Measures, Metric, Profile};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::real_input::events;
use crate::support::daemon::Daemon;
use crate::support::tools;

/// Values by profile, arm of `ranker` and metric, such as `("ranx", "neural", "hit_rate@5")`. `lists` and `clicks` are under
/// the first profile, like all values without a label `profile`.
pub type Values = BTreeMap<(String, String, String), f64>;

/// Path of the catalogue for the events.
pub const CATALOGUE: &str = "tests/data/lists-a.catalog.jsonl";
/// Cut-offs of the reference values.
pub const KS: [u32; 6] = [1, 2, 3, 5, 10, 20];
/// Number of values: ten profiles, three arms, each metric that a profile's source reports, at each cut-off.
const N_EXPECTED: usize = 1137;

/// Returns the names of all profiles, with `default` first.
pub fn profiles() -> Vec<String> {
    all().into_iter().map(|profile| profile.name).collect()
}

/// Returns all profiles under the names used in the reference values.
fn all() -> Vec<Profile> {
    let is_new = |name: &str| OLD_NAMES.iter().any(|(_, new)| *new == name);
    let others = Profile::all()
        .into_iter()
        .filter(|profile| !is_new(&profile.name));
    others.chain(Profile::all_by_old_names()).collect()
}

/// Returns the ids of all metrics.
pub fn metrics() -> Vec<&'static str> {
    METRICS.iter().map(|metric| metric.id).collect()
}

/// Returns the reference values of all profiles.
pub fn expected() -> Values {
    let file = tools::repository("tests/data/lists-a.expected.json");
    let text = fs::read_to_string(file).expect("read the expected values");
    let profiles: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> =
        serde_json::from_str(&text).expect("profile, arm, metric");
    let mut values = Values::new();
    for (profile, arms) in profiles {
        for (arm, metrics) in arms {
            let of_arm = |(metric, value)| ((profile.clone(), arm.clone(), metric), value);
            values.extend(metrics.into_iter().map(of_arm));
        }
    }
    assert_eq!(values.len(), N_EXPECTED);
    values
}

/// Returns the values that add up over instances.
pub fn additive(mut values: Values) -> Values {
    values.retain(|(_, _, metric), _| {
        let id = metric.split('@').next().and_then(Metric::named);
        id.is_none_or(|metric| metric.is_additive)
    });
    values
}

/// Evaluates the file of events with this catalogue (JSON lines).
pub fn evaluated(catalog: &str) -> Values {
    let catalogue = catalogue::read(catalog.as_bytes(), &Decoder::new(0, 1000, 100), None);
    let ks: Vec<NonZeroU32> = KS.into_iter().filter_map(NonZeroU32::new).collect();
    let mut evaluator = Evaluator::new(&Options {
        measures: Measures {
            profiles: all(),
            metrics: metrics(),
            ..Measures::usual(&ks)
        },
        catalogue: Some(Arc::new(catalogue.expect("it can be read"))),
        ..Options::default()
    });
    let events = fs::read(tools::repository(events::FILE)).expect("read the events");
    evaluator
        .read("events", events.as_slice())
        .expect("memory can be read");
    let evaluation = evaluator.finish();
    let names = profiles();
    let mut values = Values::new();
    for (arm, sums) in &evaluation.total {
        let mut add = |profile: usize, name: &str, value: f64| {
            values.insert(
                (names[profile].clone(), arm.arm.to_string(), name.to_owned()),
                value,
            );
        };
        add(0, "lists", sums[LISTS] as f64);
        add(0, "clicks", sums[CLICKS] as f64);
        for column in evaluation.ranking.columns() {
            if let Some(value) = column.value(sums) {
                add(column.profile, &column.key(), value);
            }
        }
    }
    values
}

/// Returns the values of `/api/v1/experiments` for window `total` and view `live`.
pub fn of_api(daemon: &Daemon) -> Values {
    let answer = daemon.get("/api/v1/experiments");
    let document: Document = serde_json::from_str(&answer.body).expect("the shape of the answer");
    let mut values = Values::new();
    for (arm, found) in &document.experiments["ranker"].arms {
        let view = &found.windows["total"]["live"];
        let mut add = |profile: &str, name: &str, value: &RawValue| {
            let key = (profile.to_owned(), arm.clone(), name.to_owned());
            values.insert(key, value.get().parse().expect("a number"));
        };
        add("default", "lists", &view.lists);
        add("default", "clicks", &view.clicks);
        let further = view
            .profiles
            .iter()
            .map(|(name, metrics)| (name.as_str(), metrics));
        for (profile, metrics) in further.chain([("default", &view.metrics)]) {
            metrics.iter().for_each(|(name, value)| add(profile, name, value));
        }
    }
    values
}

#[derive(Deserialize)]
struct Document {
    experiments: BTreeMap<String, Arms>,
}

#[derive(Deserialize)]
struct Arms {
    arms: BTreeMap<String, Arm>,
}

#[derive(Deserialize)]
struct Arm {
    windows: BTreeMap<String, BTreeMap<String, View>>,
}

/// One view in the API's answer. Numbers stay text, because serde_json may parse a number as a neighbor of the nearest float,
/// unlike the standard library.
#[derive(Deserialize)]
struct View {
    lists: Box<RawValue>,
    clicks: Box<RawValue>,
    metrics: BTreeMap<String, Box<RawValue>>,
    profiles: BTreeMap<String, BTreeMap<String, Box<RawValue>>>,
}

/// Asserts that each expected value is there to within 1e-9.
#[track_caller]
pub fn assert_near(seen: &Values, expected: &Values) {
    let difference = |key, value: &f64| seen.get(key).map(|seen| (seen - value).abs());
    let far: Vec<_> = expected
        .iter()
        .filter(|(key, value)| difference(key, value).is_none_or(|difference| difference > 1e-9))
        .map(|(key, value)| (key, seen.get(key), value))
        .collect();
    assert!(
        far.is_empty(),
        "profile, arm and metric, seen, expected: {far:#?}"
    );
    let worst = expected.iter().filter_map(|(key, value)| difference(key, value));
    println!(
        "{} values, worst difference {:.1e}",
        expected.len(),
        worst.fold(0.0, f64::max)
    );
}

#[track_caller]
pub fn assert_same_bits(seen: &Values, expected: &Values) {
    assert_eq!(
        seen.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    let other: Vec<_> = expected
        .iter()
        .map(|(key, value)| (key, seen[key], value))
        .filter(|(_, seen, expected)| seen.to_bits() != expected.to_bits())
        .collect();
    assert!(
        other.is_empty(),
        "profile, arm and metric, seen, expected: {other:#?}"
    );
}
