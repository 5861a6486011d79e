//! Tests of the JSON that the page reads.

use abgauge_core::statistics::days::{Needs, TestDesign};
use serde_json::{Value, json};

use super::super::fixture::{self, HIT, MISS, NOTHING, NOW_MS, arm, looks, snapshot, sums};
use super::super::{About, shown_arms};
use super::*;
use crate::settings::Config;
use crate::telemetry::{PartitionState, Telemetry};

fn document(snapshot: &Snapshot, timelines: Option<usize>) -> Value {
    document_of(snapshot, &fixture::ranking(), timelines, 0)
}

fn document_of(snapshot: &Snapshot, ranking: &Ranking, timelines: Option<usize>, lines_of: usize) -> Value {
    document_with(snapshot, ranking, timelines, lines_of, &PublishedLooks::default())
}

/// Document of a daemon that compares the arms of experiment `e`.
fn looked(snapshot: &Snapshot, shown: &PublishedLooks) -> Value {
    document_with(snapshot, &fixture::ranking(), None, 0, shown)
}

fn document_with(
    snapshot: &Snapshot,
    ranking: &Ranking,
    timelines: Option<usize>,
    lines_of: usize,
    looks: &PublishedLooks,
) -> Value {
    document_about(snapshot, ranking, timelines, lines_of, looks, &About::default())
}

fn document_about(
    snapshot: &Snapshot,
    ranking: &Ranking,
    timelines: Option<usize>,
    lines_of: usize,
    looks: &PublishedLooks,
    about: &About,
) -> Value {
    let asked = match looks.waits_for {
        Some(_) => [("e".to_owned(), Experiment::default())].into(),
        None => BTreeMap::new(),
    };
    let telemetry = Telemetry::new("served", "clicks", "0.1.0");
    telemetry.set_waiting_for(vec![]);
    telemetry.set_partition(
        "served",
        0,
        PartitionState {
            lag: Some(3),
            watermark_delay_seconds: None,
            ..PartitionState::default()
        },
    );
    let document = ApiDocument {
        snapshot,
        arms: shown_arms(snapshot, fixture::export().forget_after_ms),
        arms_left_out: 0,
        ranking,
        controls: &[("b".to_owned(), "y".to_owned())].into(),
        asked: &asked,
        descriptions: &about.descriptions(),
        is_demo: about.is_demo,
        looks,
        windows: &fixture::windows(),
        choice: ApiChoice {
            scope: Scope::Own,
            timelines,
            lines_of,
            has_parts: timelines.is_some(),
        },
        k: &fixture::ks(),
        settle_after_ms: 1_920_000,
        global: None,
        status: telemetry.status(),
    };
    serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap()
}

#[test]
fn an_arm_shows_both_views_of_each_window_with_lists() {
    let live = arm("ranker", "neural", [&[HIT, MISS]; 3], [&[], &[], &[HIT]]);
    let document = document(&snapshot(vec![live]), None);
    let place = |lists: i64, value: f64| {
        json!({
            "lists": lists, "clicks": 2, "items_shown": 5 * lists,
            "metrics": {
                "hit_rate@1": 0.0, "hit_rate@5": value, "hit_rate": value,
                "ctr@1": 0.0, "ctr@5": 0.4 * value, "ctr": 0.4 * value,
                "mrr@1": 0.0, "mrr@5": 0.5 * value, "mrr": 0.5 * value,
            },
        })
    };
    assert_eq!(
        document["experiments"],
        json!({"ranker": {"verdict": abgauge_core::verdict::uncompared(1), "arms": {"neural": {
            "last_list_ms": NOW_MS,
            "windows": {
                "5m": {"live": place(2, 0.5)},
                "1h": {"live": place(2, 0.5)},
                "total": {"live": place(2, 0.5), "settled": place(1, 1.0)},
            },
        }}}})
    );
    assert_eq!(document["version"], 1);
    assert_eq!(document["windows"], json!(["5m", "1h", "total"]));
    assert_eq!(document["k"], json!([1, 5]));
    let keys = [
        "hit_rate@1",
        "hit_rate@5",
        "hit_rate",
        "ctr@1",
        "ctr@5",
        "ctr",
        "mrr@1",
        "mrr@5",
        "mrr",
    ];
    let profile = &document["profiles"][0];
    assert_eq!(
        (&profile["name"], &profile["metrics"]),
        (&json!("default"), &json!(keys))
    );
    let named = profile["parts"].as_object().unwrap();
    assert_eq!(named.keys().len(), keys.len());
    assert_eq!(
        named["ctr@5"],
        json!({"numerator": "clicks in the top 5", "denominator": "items shown in the top 5"})
    );
}

#[test]
fn additional_profiles_are_listed_next_to_the_first() {
    let mut arm = fixture::arm_of_two_profiles();
    let timeline = Timeline {
        start_ms: 0,
        cell_ms: 5000,
        cells: vec![Some(fixture::arm_of_two_profiles().sums(View::Live, 0).into())],
    };
    arm.timelines = Some([timeline.clone(), timeline]);
    let ranking = fixture::two_profiles();
    let snapshot = snapshot(vec![arm]);
    let of = |lines_of| document_of(&snapshot, &ranking, Some(0), lines_of);
    let document = of(0);
    let values = |hit_rate: f64| {
        json!({
            "hit_rate@1": 0.0, "hit_rate@5": hit_rate, "hit_rate": hit_rate,
            "coverage@1": 0.25, "coverage@5": 0.75, "coverage": 0.75,
        })
    };
    let live = |document: &Value| document["experiments"]["e"]["arms"]["a"]["windows"]["5m"]["live"].clone();
    assert_eq!(live(&document)["metrics"], values(0.5));
    assert_eq!(live(&document)["profiles"], json!({"rs_metrics": values(1.0)}));
    let names: Vec<_> = document["profiles"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&json!("default"), &json!("rs_metrics"))
    );
    for (lines_of, expected) in [(0, 0.5), (1, 1.0)] {
        let lines = live(&of(lines_of))["timeline"]["metrics"].clone();
        assert_eq!(lines["hit_rate"], json!([expected]));
    }
}

#[test]
fn arms_are_grouped_by_experiment() {
    let small = |experiment, name| arm(experiment, name, [&[MISS]; 3], [&[]; 3]);
    let document = document(
        &snapshot(vec![small("a", "x"), small("a", "y"), small("b", "x")]),
        None,
    );
    let arms = |experiment: &str| {
        let arms = document["experiments"][experiment]["arms"].as_object().unwrap();
        arms.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(arms("a"), ["x", "y"]);
    assert_eq!(arms("b"), ["x"]);
}

#[test]
fn an_experiment_names_its_control_if_it_has_one() {
    let small = |experiment, name| arm(experiment, name, [&[MISS]; 3], [&[]; 3]);
    let arms = [
        ("a", "control"),
        ("a", "x"),
        ("b", "control"),
        ("b", "y"),
        ("c", "x"),
    ];
    let arms = arms.map(|(experiment, name)| small(experiment, name));
    let document = document(&snapshot(arms.to_vec()), None);
    let control = |experiment: &str| document["experiments"][experiment]["control"].clone();
    assert_eq!(control("a"), "control", "by its name");
    assert_eq!(control("b"), "y", "as it is set");
    assert_eq!(control("c"), Value::Null);
}

/// Snapshot in which each arm of the look has a list.
fn looked_arms() -> Snapshot {
    let arms = ["a", "b", "c"].map(|name| arm("e", name, [&[HIT]; 3], [&[]; 3]));
    snapshot(arms.to_vec())
}

#[test]
fn arms_show_the_result_of_the_last_look() {
    let document = looked(&looked_arms(), &looks::shown());
    let experiment = &document["experiments"]["e"];
    assert_eq!(
        experiment["looks"],
        json!({
            "as_of": looks::AS_OF_MS, "start": looks::START_MS, "waits_for": 3, "given_up": false,
            "no_users": null,
            "power": {
                "since": looks::START_MS, "mde": 0.05, "alpha": 0.05, "design": "sequence",
                "needs": {
                    "planned": Needs::new(&looks::settings(), 1).x(TestDesign::Planned, 1),
                    "sequence": Needs::new(&looks::settings(), 1).x(TestDesign::Sequence, 1),
                    "strict": Needs::new(&looks::settings(), 1).x(TestDesign::Strict, 1),
                },
                "hypotheses": 1, "guardrails": looks::settings().guardrails.len(), "min_days": 7.0,
                "arms": {"b": {"hit_rate@5": 6.5}},
                "earlier": {"as_of": looks::START_MS + 86_400_000, "arms": {"b": {"hit_rate@5": 2.5}}},
            },
        })
    );
    let arm = |name: &str| &experiment["arms"][name];
    assert_eq!(
        arm("a")["look"],
        json!({
            "lists": 4000, "users": 500, "metrics": {
                "ctr": {"value": 0.125, "numerator": 1250, "denominator": 10_000, "lower": 0.1, "upper": 0.15},
                "hit_rate@5": {"value": 0.25, "numerator": 2500, "denominator": 10_000, "lower": 0.2, "upper": 0.3},
                "mrr@1": {"value": 0.0625, "numerator": 625, "denominator": 10_000},
            },
            "windows": {"1h": {
                "lists": 400, "metrics": {
                    "hit_rate@5": {"value": 0.26, "numerator": 2600, "denominator": 10_000, "lower": 0.15, "upper": 0.375},
                    "mrr@1": {"value": 0.0625, "numerator": 625, "denominator": 10_000},
                },
            }},
        })
    );
    assert_eq!(
        arm("b")["look"]["windows"]["1h"]["lifts"],
        json!({"hit_rate@5": {"lift": 0.06, "lower": -0.1, "upper": 0.22}})
    );
    assert_eq!(arm("a").get("comparison"), None, "it is the control");
    let look = looks::compared();
    for name in ["b", "c"] {
        let verdict = serde_json::to_value(of_look("e", name, &look)).unwrap();
        assert_eq!(arm(name)["comparison"], verdict, "as the verdict says it");
    }
    assert_eq!(
        arm("b")["comparison"]["metrics"]["hit_rate@5"]["parts"],
        json!({"control": {"numerator": 2500, "denominator": 10_000}, "arm": {"numerator": 2800, "denominator": 10_000}})
    );
    assert_eq!(arm("b")["comparison"]["state"], "no_decision");
    assert_eq!(arm("b")["windows"]["5m"]["live"]["lists"], 1, "as before");
}

#[test]
fn arms_without_a_control_show_only_intervals() {
    let look = ExperimentLook {
        comparison: None,
        no_users: Some("no users"),
        ..looks::compared()
    };
    let shown = PublishedLooks {
        experiments: [("e".to_owned(), look.into())].into(),
        ..looks::shown()
    };
    let document = looked(&looked_arms(), &shown);
    let experiment = &document["experiments"]["e"];
    assert_eq!(experiment["looks"]["no_users"], "no users");
    assert_eq!(experiment["looks"]["power"], Value::Null);
    let arm = &experiment["arms"]["b"];
    assert_eq!(arm["look"]["metrics"]["ctr"]["lower"], 0.1);
    assert_eq!(arm.get("comparison"), None);
}

#[test]
fn an_experiment_shows_why_its_first_look_is_pending() {
    let waiting = PublishedLooks {
        as_of_ms: None,
        experiments: BTreeMap::new(),
        given_up: vec!["e".to_owned()],
        ..looks::shown()
    };
    let document = looked(&looked_arms(), &waiting);
    let experiment = &document["experiments"]["e"];
    assert_eq!(
        experiment["looks"],
        json!({"as_of": null, "start": null, "waits_for": 3, "given_up": true, "no_users": null, "power": null})
    );
    assert_eq!(experiment["arms"]["b"].get("look"), None);
    // Other experiments are not configured.
    let other = snapshot(vec![arm("other", "a", [&[HIT]; 3], [&[]; 3])]);
    let document = looked(&other, &waiting);
    assert_eq!(document["experiments"]["other"].get("looks"), None);
}

#[test]
fn the_stream_reports_its_health() {
    let document = document(&snapshot(vec![]), None);
    let stream = &document["stream"];
    let records = json!({
        "accepted": 0, "duplicate": 0, "late": 0, "future": 0, "invalid": 0, "after_settled": 0, "late_row": 0, "ignored": 0,
        "replayed": 0, "shed": 0, "skipped": 0,
    });
    assert_eq!(
        *stream,
        json!({
            "ready": true, "waiting_for": [], "warnings": [], "exact": true,
            "since_ms": NOW_MS - 7_200_000, "live_end_ms": NOW_MS, "settled_end_ms": NOW_MS - 1_800_000,
            "settle_after_ms": 1_920_000, "pair_restarts": 0, "settle_delay_seconds": null,
            "records": {"served": records, "clicks": records},
            "click_results": {"matched": 0, "repeat": 0, "off_list": 0, "unmatched": 0, "undecided": 0},
            "clicks_waiting": 0, "open_lists": 0, "state_bytes": 0, "state_max_bytes": null,
            "partitions": [{"topic": "served", "partition": 0, "lag": 3, "watermark_delay_seconds": null, "held": false}],
            "catalog": null, "arms_folded": 0, "arms_without_coverage": 0, "arms_left_out": 0, "version": "0.1.0",
        })
    );
}

#[test]
fn timelines_are_shown_only_in_the_requested_window() {
    let mut busy = arm("e", "a", [&[HIT, MISS]; 3], [&[]; 3]);
    let timeline = Timeline {
        start_ms: 0,
        cell_ms: 5000,
        cells: vec![None, Some(sums(&[HIT, MISS])), Some(sums(&[NOTHING]))],
    };
    busy.timelines = Some([timeline.clone(), timeline]);
    let snapshot = snapshot(vec![busy]);
    let document = document(&snapshot, Some(0));
    let windows = &document["experiments"]["e"]["arms"]["a"]["windows"];
    let timeline = &windows["5m"]["live"]["timeline"];
    assert_eq!(
        (&timeline["start_ms"], &timeline["cell_ms"]),
        (&json!(0), &json!(5000))
    );
    assert_eq!(timeline["lists"], json!([0, 2, 1]));
    assert_eq!(timeline["metrics"]["hit_rate@5"], json!([null, 0.5, 0.0]));
    assert_eq!(timeline["metrics"]["ctr"], json!([null, 0.2, null]));
    assert_eq!(timeline["metrics"].as_object().unwrap().len(), 9);
    assert!(windows["1h"]["live"]["timeline"].is_null());
    // The parts are requested, too.
    let parts = &windows["1h"]["live"]["parts"];
    assert_eq!(parts["ctr"], json!({"numerator": 2, "denominator": 10}));
    assert_eq!(parts["mrr@5"], json!({"numerator": 0.5, "denominator": 2}));
    assert_eq!(parts.as_object().unwrap().len(), 9);
    assert!(windows["total"]["live"]["timeline"].is_null());
}

#[test]
fn undefined_metrics_are_absent() {
    let ranking = fixture::ranking();
    let metrics = serde_json::to_value(metrics_map(&ranking, 0, &sums(&[NOTHING]))).unwrap();
    let keys: Vec<_> = metrics.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["hit_rate", "hit_rate@1", "hit_rate@5", "mrr", "mrr@1", "mrr@5"]
    );
}

#[test]
fn json_keys_match_their_columns() {
    let ranking = fixture::ranking();
    let text = serde_json::to_string(&metrics_map(&ranking, 0, &sums(&[HIT]))).unwrap();
    for column in ranking.columns() {
        assert!(
            text.contains(&format!("\"{}\":", column.key())),
            "{} in {text}",
            column.key()
        );
    }
}

#[test]
fn an_experiment_has_its_description_and_simulated_numbers_are_marked() {
    let document = |about: &About| {
        let snapshot = snapshot(vec![arm("e", "a", [&[HIT]; 3], [&[]; 3])]);
        document_about(
            &snapshot,
            &fixture::ranking(),
            None,
            0,
            &PublishedLooks::default(),
            about,
        )
    };
    let plain = document(&About::default());
    for absent in [
        &plain["demo"],
        &plain["experiments"]["e"]["description"],
        &plain["experiments"]["e"]["owner"],
        &plain["experiments"]["e"]["planned_users"],
    ] {
        assert_eq!(*absent, Value::Null, "{plain}");
    }
    let text = "kafka.brokers = \"b:1\"\n[experiments.e]\ndescription = \"<b>New\\u202e\"\nowner = \"ann\"\n\
                planned_users = 40000";
    let mut config = crate::settings::load_text("abgauge.toml", text, std::iter::empty()).expect("valid");
    config.is_demo = true;
    let about = About::new(&config);
    let shown = document(&about);
    assert_eq!(shown["demo"], true);
    let e = &shown["experiments"]["e"];
    assert_eq!([&e["description"], &e["owner"]], ["<b>New\u{202e}", "ann"]);
    assert_eq!(e["planned_users"], 40_000);
    about.replace(&Config {
        about_experiments: BTreeMap::new(),
        ..config
    });
    assert_eq!(document(&about)["experiments"]["e"]["owner"], Value::Null);
}
