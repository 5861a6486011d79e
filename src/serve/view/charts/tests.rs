//! Tests of the data for charts.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge_core::looks::EpochStart;
use serde_json::{Value, json};

use super::super::super::fixture::{self, HIT, MISS, NOW_MS, looks, sums};
use super::*;
use crate::board::snapshot::{Snapshot, SnapshotSource};

const EVERY_MS: i64 = 600_000;

/// Source with a line of two cells for every arm but `b`.
struct Lines;

impl SnapshotSource for Lines {
    fn snapshot_into(&self, _: Option<usize>, _: &mut Snapshot) {}

    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        let timeline = |start_ms| Timeline {
            start_ms,
            cell_ms: fixture::windows()[window].cell_ms(),
            cells: vec![None, Some(sums(&[HIT, MISS, MISS, MISS]))],
        };
        let arms = arms.iter();
        arms.map(|arm| (&*arm.arm != "b").then(|| [timeline(60_000), timeline(0)]))
            .collect()
    }
}

/// Exporter after two looks at `e`. The second look is the fixture's.
fn exporter(asked: Experiment) -> Exporter {
    let last = looks::compared();
    let first = ExperimentLook {
        as_of_ms: last.as_of_ms - EVERY_MS,
        arms: BTreeMap::new(),
        ..last.clone()
    };
    let mut history = History::default();
    [&first, &last]
        .into_iter()
        .for_each(|look| history.add(look, EVERY_MS));
    let look = ExperimentLook {
        history: Arc::new(history),
        ..last
    };
    Exporter {
        experiments: [("e".to_owned(), asked)].into(),
        looks: looks::published("e", look),
        ..fixture::exporter(Arc::new(Lines))
    }
}

fn asked() -> Experiment {
    Experiment {
        start_ms: Some(looks::START_MS),
        settings: Some(looks::settings()),
        epochs: Vec::new(),
        max_lists_per_user: None,
    }
}

fn ask(exporter: &Exporter, query: &str) -> Result<Value, String> {
    let uri = format!("/?{query}").parse().unwrap();
    let axum::extract::Query(wanted) = axum::extract::Query::try_from_uri(&uri).unwrap();
    let mut out = Vec::new();
    render(exporter, &ChartQuery::of(wanted, exporter)?, &mut out).unwrap();
    Ok(serde_json::from_slice(&out).unwrap())
}

/// Parameter with the array `["a","b","c"]`, percent-encoded.
const ARMS: &str = "arms=%5B%22a%22,%22b%22,%22c%22%5D";

fn charts(exporter: &Exporter, metric: &str) -> Value {
    let query = format!("experiment=e&{ARMS}&metric={metric}&profile=default&window=total");
    ask(exporter, &query).unwrap()
}

#[test]
fn requested_arms_have_their_cells_in_the_order_of_the_request() {
    let answer = charts(&exporter(asked()), "hit_rate@5");
    assert_eq!(
        (&answer["window"], &answer["metric"]),
        (&json!("1h"), &json!("hit_rate@5"))
    );
    let arms = answer["arms"].as_array().unwrap();
    let names: Vec<&str> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let line = |start_ms: i64| json!({"start_ms": start_ms, "cell_ms": 60_000, "lists": [0, 4], "values": [[null, 0.25]]});
    assert_eq!((&arms[0]["live"], &arms[0]["settled"]), (&line(60_000), &line(0)));
    assert_eq!(arms[1].get("live"), None, "it has no lists");
}

#[test]
fn a_primary_metric_has_the_results_of_past_looks() {
    let answer = charts(&exporter(asked()), "hit_rate@5");
    let times = json!({"times": [looks::AS_OF_MS - EVERY_MS, looks::AS_OF_MS], "every_ms": EVERY_MS});
    assert_eq!(answer["looks"], times);
    let of_arm = |place: usize| answer["arms"][place]["looks"].clone();
    assert_eq!(of_arm(1)["value"]["middle"], json!([null, 0.28]));
    assert_eq!(of_arm(1)["lift"]["middle"], json!([null, 0.12]));
    assert_eq!(of_arm(1)["lift"]["lower"], json!([null, -0.04]));
    assert_eq!(of_arm(1)["lift"]["upper"], json!([null, 0.28]));
    assert_eq!(
        of_arm(0)["lift"]["middle"],
        json!([null, null]),
        "it is the control"
    );
    assert_eq!(charts(&exporter(asked()), "ctr").get("looks"), None);
}

#[test]
fn a_primary_metric_has_its_lifts_in_the_window_of_each_look() {
    let answer = charts(&exporter(asked()), "hit_rate@5");
    assert_eq!(answer["lift_window"], json!({"name": "1h", "span_ms": 3_600_000}));
    let of_arm = |place: usize| answer["arms"][place]["looks"].get("in_window").cloned();
    assert_eq!(of_arm(1).unwrap()["middle"], json!([null, 0.06]));
    assert_eq!(of_arm(0), None, "it is the control");
}

#[test]
fn users_since_the_start_are_there_for_any_metric() {
    let answer = charts(&exporter(asked()), "ctr");
    let times = [looks::AS_OF_MS - EVERY_MS, looks::AS_OF_MS];
    let all = json!({"times": times, "every_ms": EVERY_MS, "users": [0.0, 1000.0]});
    assert_eq!(answer["enrollment"], all, "two arms have a share");
    for arm in answer["arms"].as_array().unwrap() {
        assert_eq!(arm["enrolled"], json!([null, 500.0]), "{arm}");
    }
}

/// A hit has items 2 and 5 of five clicked. One of the lists has four items.
#[test]
fn ctr_by_rank_is_split_at_the_cutoffs() {
    let answer = charts(&exporter(asked()), "mrr");
    let ranks = json!([{"from": 1, "to": 1}, {"from": 2, "to": 5}, {"from": 6, "to": null}]);
    assert_eq!(answer["ranks"], ranks);
    assert_eq!(
        answer["arms"][0]["by_rank"],
        json!([0.0, 2.0 / 16.0, null]),
        "no list is longer than five"
    );
    assert_eq!(answer["arms"][1].get("by_rank"), None);
}

#[test]
fn the_split_is_shown_next_to_the_plan_unless_the_plan_changed() {
    let answer = charts(&exporter(asked()), "ctr");
    let of_arm = |answer: &Value, place: usize| {
        let arm = &answer["arms"][place];
        (arm["planned"].clone(), arm["users"].clone(), arm["lists"].clone())
    };
    assert_eq!(of_arm(&answer, 1), (json!(0.5), json!(500), json!(4000)));
    assert_eq!(
        of_arm(&answer, 2),
        (json!(null), json!(500), json!(4000)),
        "it has no share"
    );
    assert_eq!(answer["split"], json!({"lists": 8000, "users": 1000}));
    let changed = Experiment {
        epochs: vec![EpochStart {
            start_ms: looks::AS_OF_MS - EVERY_MS,
            shares: [("a".to_owned(), 1.0)].into(),
        }],
        ..asked()
    };
    let answer = charts(&exporter(changed), "ctr");
    assert_eq!(of_arm(&answer, 1).0, json!(null));
    assert_eq!(answer["split"]["users"], json!(1500));
    let marks = json!([
        {"at": looks::START_MS, "what": "start"},
        {"at": NOW_MS - 3_600_000, "what": "process"},
        {"at": looks::AS_OF_MS - EVERY_MS, "what": "shares"},
    ]);
    assert_eq!(answer["marks"], marks);
}

#[test]
fn an_unknown_chart_is_refused_with_a_message() {
    let exporter = exporter(asked());
    for (query, words) in [
        ("arms=a&metric=ctr&profile=default&window=1h", "an array of names"),
        (
            "arms=%5B%5D&metric=ctr@99&profile=default&window=1h",
            "no such metric",
        ),
        ("arms=%5B%5D&metric=ctr&profile=other&window=1h", "no such metric"),
        (
            "arms=%5B%5D&metric=ctr&profile=default&window=2h",
            "no such window",
        ),
        (
            "arms=%5B%5D&metric=ctr&profile=default&window=1h&scope=global",
            "no such scope",
        ),
    ] {
        let message = ask(&exporter, &format!("experiment=e&{query}")).unwrap_err();
        assert!(message.contains(words), "{query}: {message}");
    }
    let many = format!("%5B{}%22a%22%5D", "%22a%22,".repeat(MAX_ARMS));
    let query = format!("experiment=e&arms={many}&metric=ctr&profile=default&window=1h");
    assert_eq!(
        ask(&exporter, &query),
        Err("`arms` has more than 11 names".to_owned())
    );
}

#[test]
fn an_unknown_experiment_has_empty_charts() {
    let query = format!("experiment=other&{ARMS}&metric=ctr&profile=default&window=1h");
    let answer = ask(&exporter(asked()), &query).unwrap();
    assert_eq!((answer.get("looks"), answer.get("split")), (None, None));
    assert_eq!(answer["marks"].as_array().map(Vec::len), Some(1));
}
