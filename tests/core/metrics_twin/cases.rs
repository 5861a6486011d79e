//! Edge cases from other packages' tests, under all ten profiles, worked by hand.
//!
//! DCG's discounts are 1, 1 ÷ log2 3, 1/2, 1 ÷ log2 5, 1 ÷ log2 6.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::{ClickResult, Outcome};
use abgauge_core::evaluate::{Evaluation, Evaluator, Options};
use abgauge_core::metrics::{METRICS, Measures, Profile};

/// 1 ÷ log2 3.
const SECOND: f64 = 0.630_929_753_571_457_4;
/// 1 ÷ log2 5 and 1 ÷ log2 6.
const FOURTH: f64 = 0.430_676_558_073_393_05;
const FIFTH: f64 = 0.386_852_807_234_541_6;
/// DCG of an ideal list of two, three and five items.
const IDEAL_2: f64 = 1.0 + SECOND;
const IDEAL_3: f64 = IDEAL_2 + 0.5;
const IDEAL_5: f64 = IDEAL_3 + FOURTH + FIFTH;

/// Mark for metrics that the source does not report.
const NO: f64 = f64::NAN;

const NAMES: [&str; 10] = [
    "default",
    "seed-0",
    "rs_metrics",
    "seed-2",
    "jurity",
    "seed-4",
    "replay",
    "rectools",
    "ranx",
    "trec_eval",
];

fn list(request: &str, items: &str) -> String {
    list_in("a", request, items)
}

/// Returns a list as JSON. `items` and `request` are JSON too, without brackets.
fn list_in(arm: &str, request: &str, items: &str) -> String {
    format!(
        r#"{{"type":"served","request_id":{request},"ts":1763596800000,"experiments":{{"e":"{arm}"}},"items":[{items}]}}"#
    )
}

fn click(request: &str, item: &str) -> String {
    format!(r#"{{"type":"click","request_id":{request},"ts":1763596801000,"item":{item}}}"#)
}

fn evaluate(lines: &[String], profile: &str, ks: &[u32], catalog: Option<&str>) -> Evaluation {
    let read = |text: &str| catalogue::read(text.as_bytes(), &Decoder::new(0, 1000, 100), None);
    let ks: Vec<NonZeroU32> = ks.iter().filter_map(|k| NonZeroU32::new(*k)).collect();
    let options = Options {
        measures: Measures {
            profiles: vec![Profile::named(profile).expect("it is there")],
            metrics: METRICS.iter().map(|metric| metric.id).collect(),
            ..Measures::usual(&ks)
        },
        catalogue: catalog.map(|text| Arc::new(read(text).expect("it can be read"))),
        ..Options::default()
    };
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", lines.join("\n").as_bytes())
        .expect("memory can be read");
    evaluator.finish()
}

/// Returns all defined values of an arm by key.
fn values(evaluation: &Evaluation, arm: &str) -> BTreeMap<String, f64> {
    let keys = evaluation.ranking.columns().iter().map(|column| column.key());
    keys.filter_map(|key| Some((key.clone(), evaluation.value("e", arm, &key)?)))
        .collect()
}

/// Checks a profile. `expected` has a row for each metric it reports: the values at each of `ks` and over the whole list.
#[track_caller]
fn check<const N: usize>(lines: &[String], profile: &str, ks: &[u32], expected: &[(&str, [f64; N])]) {
    let evaluation = evaluate(lines, profile, ks, None);
    let mut values = values(&evaluation, "a");
    for (metric, row) in expected {
        let keys = ks
            .iter()
            .map(|k| format!("{metric}@{k}"))
            .chain([metric.to_string()]);
        for (key, expected) in keys.zip(row) {
            match (values.remove(&key), expected.is_nan()) {
                (None, true) => {}
                (Some(value), false) if (value - expected).abs() < 1e-9 => {}
                (value, _) => panic!("{profile} {key} is {value:?}, by hand {expected}"),
            }
        }
    }
    assert!(values.is_empty(), "{profile} reports {values:?} too");
}

/// Three items with clicks on ranks 1 and 3, and an off-list click. There is one hit at k = 2, and there are two at k = 5 and
/// over the whole list. The precisions at the hits are 1 and 2/3. |G| is 3, or 2 if off-list clicks are ignored.
#[test]
fn a_list_of_three_with_clicks_at_1_and_3_and_off_list() {
    let lines = [
        list("1", r#""a","b","c""#),
        click("1", r#""c""#),
        click("1", r#""z""#),
        click("1", r#""a""#),
    ];
    let check = |profile, expected: &[(&str, [f64; 3])]| check(&lines, profile, &[2, 5], expected);
    check(
        "default",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("ctr", [1.0 / 2.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("mrr", [1.0, 1.0, 1.0]),
            ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_2, 1.5 / IDEAL_2]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 2.0, 1.0, 1.0]),
            // (1 + 2/3) ÷ min(k, 2).
            ("map", [1.0 / 2.0, 5.0 / 6.0, 5.0 / 6.0]),
            ("map_by_k", [1.0 / 2.0, 1.0 / 3.0, 5.0 / 9.0]),
            // (1/2 + 1) ÷ min(k, 3).
            ("mar", [1.0 / 4.0, 1.0 / 2.0, 1.0 / 2.0]),
            ("hits", [1.0, 2.0, 2.0]),
        ],
    );
    check(
        "seed-0",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("mrr", [1.0, 4.0 / 3.0, 4.0 / 3.0]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0, 5.0 / 3.0, 5.0 / 3.0]),
        ],
    );
    check(
        "rs_metrics",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("mrr", [1.0, 1.0, 1.0]),
            ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_3, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0 / 2.0, 5.0 / 9.0, 5.0 / 9.0]),
            // (1/3 + 2/3) ÷ min(k, 3).
            ("mar", [1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0]),
        ],
    );
    check(
        "seed-2",
        &[
            ("mrr", [NO, NO, 1.0]),
            ("ndcg", [NO, NO, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [NO, NO, 5.0 / 9.0]),
            ("hits", [1.0, 2.0, 2.0]),
        ],
    );
    check(
        "jurity",
        &[
            ("ctr", [1.0 / 2.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("ndcg", [1.0 / IDEAL_3, 1.5 / IDEAL_3, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0 / 2.0, 5.0 / 9.0, 5.0 / 9.0]),
        ],
    );
    check(
        "seed-4",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("mrr", [1.0, 1.0, 1.0]),
            ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_3, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0 / 2.0, 1.0 / 3.0, 5.0 / 9.0]),
        ],
    );
    check(
        "replay",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("mrr", [1.0, 1.0, 1.0]),
            ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_3, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0 / 2.0, 5.0 / 9.0, 5.0 / 9.0]),
        ],
    );
    check(
        "rectools",
        &[
            ("hit_rate", [1.0, 1.0, 1.0]),
            ("mrr", [1.0, 1.0, 1.0]),
            ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_5, 1.5 / IDEAL_3]),
            ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
            ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
            ("map", [1.0 / 3.0, 5.0 / 9.0, 5.0 / 9.0]),
            ("map_by_k", [1.0 / 2.0, 1.0 / 3.0, 5.0 / 9.0]),
        ],
    );
    let of_ranx = [
        ("hit_rate", [1.0, 1.0, 1.0]),
        ("mrr", [1.0, 1.0, 1.0]),
        ("ndcg", [1.0 / IDEAL_2, 1.5 / IDEAL_3, 1.5 / IDEAL_3]),
        ("precision", [1.0 / 2.0, 2.0 / 5.0, 2.0 / 3.0]),
        ("recall", [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]),
        ("map", [1.0 / 3.0, 5.0 / 9.0, 5.0 / 9.0]),
        ("hits", [1.0, 2.0, 2.0]),
    ];
    check("ranx", &of_ranx);
    let mut of_trec_eval = of_ranx;
    of_trec_eval[1] = ("mrr", [NO, NO, 1.0]);
    check("trec_eval", &of_trec_eval[..6]);
}

/// List a is the list of three above, b one of three without a click, c is empty, and d is empty with an off-list click. The
/// population of all lists has 4. The population with a relevant item has a and d, or only a if off-list clicks are ignored.
/// Among these only a shows an item. At k = 2, a has one hit, at rank 1.
#[test]
fn each_population_has_its_documented_lists() {
    let lines = [
        list("1", r#""a","b","c""#),
        list("2", r#""a","b","c""#),
        list("3", ""),
        list("4", ""),
        click("1", r#""c""#),
        click("1", r#""z""#),
        click("1", r#""a""#),
        click("4", r#""z""#),
    ];
    // For a: precision is 1/2 with any denominator, recall 1/3 for |G| = 3 and 1/2 for |G| = 2, and AP 1 ÷ 2 or ÷ |G|.
    let expected = [
        ("default", [1.0 / 4.0, 1.0 / 8.0, 1.0 / 2.0, 1.0 / 8.0]),
        // Recall is micro: 1 hit ÷ (3 + 1).
        ("seed-0", [1.0 / 4.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 4.0]),
        ("rs_metrics", [1.0 / 2.0, 1.0 / 4.0, 1.0 / 6.0, 1.0 / 4.0]),
        ("seed-2", [NO, 1.0 / 4.0, 1.0 / 6.0, NO]),
        // Precision and MAP use only a.
        ("jurity", [NO, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 2.0]),
        ("seed-4", [1.0 / 2.0, 1.0 / 4.0, 1.0 / 6.0, 1.0 / 4.0]),
        ("replay", [1.0 / 4.0, 1.0 / 8.0, 1.0 / 12.0, 1.0 / 8.0]),
        ("rectools", [1.0 / 2.0, 1.0 / 4.0, 1.0 / 6.0, 1.0 / 6.0]),
        ("ranx", [1.0 / 2.0, 1.0 / 4.0, 1.0 / 6.0, 1.0 / 6.0]),
        ("trec_eval", [1.0 / 2.0, 1.0 / 4.0, 1.0 / 6.0, 1.0 / 6.0]),
    ];
    assert_eq!(expected.map(|(profile, _)| profile), NAMES);
    for (profile, row) in expected {
        let values = values(&evaluate(&lines, profile, &[2], None), "a");
        for (metric, expected) in ["hit_rate@2", "precision@2", "recall@2", "map@2"]
            .into_iter()
            .zip(row)
        {
            match (values.get(metric), expected.is_nan()) {
                (None, true) => {}
                (Some(value), false) if (value - expected).abs() < 1e-9 => {}
                (value, _) => panic!("{profile} {metric} is {value:?}, by hand {expected}"),
            }
        }
        // CTR counts items, not lists: 1 ÷ (2 + 2) in the top 2.
        assert!([None, Some(&0.25)].contains(&values.get("ctr@2")), "{profile}");
    }
}

/// A mean over all lists is 0. A mean over clicked lists is undefined, never NaN.
#[test]
fn lists_without_a_click_score_0_or_are_excluded() {
    let lines = [list("1", r#""a","b""#), list("2", "")];
    for name in NAMES {
        let all = ["default", "seed-0", "replay"].contains(&name);
        let values = values(&evaluate(&lines, name, &[1, 5], None), "a");
        let is_ratio_of_clicks = |key: &str| match name {
            // Recall is a mean over clicked lists, or a share of zero relevant items.
            "default" | "seed-0" => key.starts_with("recall"),
            _ => false,
        };
        let profile = Profile::named(name).expect("it is there");
        for id in &profile.metrics {
            let metric = METRICS
                .iter()
                .find(|metric| metric.id == *id)
                .expect("it is there");
            if metric.needs_catalogue() {
                continue;
            }
            let expected = ((all && !is_ratio_of_clicks(id)) || *id == "ctr").then_some(0.0);
            assert_eq!(values.get(*id).copied(), expected, "{name} {id}");
        }
    }
}

/// Items a, b, a with a click on a. The copy at rank 3 is shown but not relevant. |G| is 1.
#[test]
fn a_repeated_item_counts_at_its_first_rank() {
    let lines = [
        list("1", r#""a","b","a""#),
        click("1", r#""a""#),
        click("1", r#""a""#),
    ];
    for name in NAMES {
        let values = values(&evaluate(&lines, name, &[3], None), "a");
        // One of three shown items is a hit. The copy is not a second one.
        for (key, expected) in [
            ("precision@3", 1.0 / 3.0),
            ("ctr@3", 1.0 / 3.0),
            ("recall@3", 1.0),
            ("mrr@3", 1.0),
            ("hits@3", 1.0),
            ("mar@3", 1.0 / 3.0),
            // The sum is 1: ÷ |G| = 1, or ÷ 3 shown or k.
            (
                "map@3",
                if ["rs_metrics", "seed-4"].contains(&name) {
                    1.0 / 3.0
                } else {
                    1.0
                },
            ),
            ("map_by_k@3", 1.0 / 3.0),
            ("ndcg@3", if name == "rectools" { 1.0 / IDEAL_3 } else { 1.0 }),
        ] {
            if let Some(value) = values.get(key) {
                assert!(
                    (value - expected).abs() < 1e-9,
                    "{name} {key} is {value}, by hand {expected}"
                );
            }
        }
    }
}

/// Items b, a, a, b with a click on a. The first a is at rank 2, and four positions are shown.
#[test]
fn a_repeated_item_does_not_replace_its_first_rank() {
    let lines = [list("1", r#""b","a","a","b""#), click("1", r#""a""#)];
    let evaluation = evaluate(&lines, "default", &[1, 2, 3], None);
    let at = |key| evaluation.value("e", "a", key);
    assert_eq!([at("hit_rate@1"), at("hit_rate@2")], [Some(0.0), Some(1.0)]);
    assert_eq!(
        [at("mrr"), at("ctr"), at("ctr@3")],
        [Some(0.5), Some(0.25), at("precision@3")]
    );
    assert_eq!(evaluation.counts.repeated_items, 2);
}

/// A list of two, both clicked. Ranks beyond its end do not count as misses if a source divides by the number of shown items.
#[test]
fn a_k_beyond_the_list_divides_by_k_or_by_the_shown_items() {
    let lines = [
        list("1", r#""a","b""#),
        click("1", r#""a""#),
        click("1", r#""b""#),
    ];
    // Precision: 2 of 100, or of 2. AP: (1 + 1) ÷ 100, ÷ 2, or ÷ nothing.
    for (name, precision, map) in [
        ("default", 0.02, 1.0),
        ("seed-0", 0.02, 2.0),
        ("rs_metrics", 1.0, 1.0),
        ("seed-2", 0.02, NO),
        ("jurity", 1.0, 1.0),
        ("seed-4", 0.02, 0.02),
        ("replay", 0.02, 1.0),
        ("rectools", 0.02, 1.0),
        ("ranx", 0.02, 1.0),
        ("trec_eval", 0.02, 1.0),
    ] {
        let values = values(&evaluate(&lines, name, &[100], None), "a");
        assert!((values["precision@100"] - precision).abs() < 1e-9, "{name}");
        assert_eq!(values.contains_key("map@100"), !map.is_nan(), "{name}");
        assert!(
            values
                .get("map@100")
                .is_none_or(|value| (value - map).abs() < 1e-9),
            "{name}"
        );
        assert!((values["recall@100"] - 1.0).abs() < 1e-9, "{name}");
        // The whole list has 2 items, so precision is 1 for every profile.
        assert!((values["precision"] - 1.0).abs() < 1e-9, "{name}");
    }
}

/// 5 and "5" are the same item, 7 and "7" the same request, and so are -0 and 0. 5.0 is not an id.
#[test]
fn integer_ids_are_their_decimal_text() {
    let lines = [
        list("7", r#"5,"6",0"#),
        list("\"7\"", r#""5",6,-0"#),
        click("\"7\"", "5"),
        click("7", "\"5\""),
        click("7", "-0"),
        click("7", "5.0"),
    ];
    let evaluation = evaluate(&lines, "default", &[1], None);
    assert_eq!(evaluation.counts.outcome(Side::Served, Outcome::Duplicate), 1);
    assert_eq!(evaluation.counts.conflicting_lists, 0);
    assert_eq!(evaluation.counts.result(ClickResult::Matched), 2);
    assert_eq!(evaluation.counts.result(ClickResult::Repeat), 1);
    assert_eq!(evaluation.counts.outcome(Side::Served, Outcome::Invalid), 1);
    assert_eq!(evaluation.value("e", "a", "ctr"), Some(2.0 / 3.0));
}

/// An arm exists once it has a list, even an empty one. Clicks alone do not create one.
#[test]
fn one_arm_alone_and_clicks_without_a_list() {
    let lines = [list_in("b", "1", ""), click("2", r#""a""#), click("1", r#""a""#)];
    for name in NAMES {
        let evaluation = evaluate(&lines, name, &[1], None);
        let arms: Vec<&str> = evaluation.total.keys().map(|arm| &*arm.arm).collect();
        assert_eq!(arms, ["b"], "{name}");
        let values = values(&evaluation, "b");
        assert!(values.values().all(|value| *value == 0.0), "{name}: {values:?}");
        // Nothing was shown, so there is no share of it.
        assert!(!values.contains_key("ctr"), "{name}");
    }
}

const CATALOG: &str = r#"{"item":"a","aspects":["x"],"users":50,"of_users":200}
{"item":"b","aspects":["x","y"],"users":0,"of_users":200}
{"item":"c","users":100,"of_users":200}
{"item":7,"aspects":["z"],"users":25,"of_users":200}"#;

/// Shares are 1/4, 0, unknown and 1/4, since a copy is shown twice. Surprisals are 2, log2 200, log2 200 and 2.
#[test]
fn unknown_unseen_and_repeated_items_in_the_metrics_of_the_catalogue() {
    let lines = [list("1", r#""a","b","stranger","a""#), list("2", "")];
    for name in ["default", "rs_metrics"] {
        let values = values(&evaluate(&lines, name, &[1, 2, 10], Some(CATALOG)), "a");
        for (key, expected) in [
            ("popularity@1", 1.0 / 4.0),
            ("popularity@2", 1.0 / 8.0),
            ("popularity@10", 1.0 / 8.0),
            ("popularity", 1.0 / 8.0),
            ("surprisal@1", 2.0),
            ("surprisal@10", 1.0 + 200_f64.log2() / 2.0),
            // Of four items, these cover a, and then a and b.
            ("coverage@1", 1.0 / 4.0),
            ("coverage@2", 1.0 / 2.0),
            ("coverage", 1.0 / 2.0),
        ] {
            assert!(
                (values[key] - expected).abs() < 1e-9,
                "{name} {key} is {}, by hand {expected}",
                values[key]
            );
        }
        // Two lists without a click: 0 over all lists, nothing over the clicked ones.
        assert_eq!(
            values.get("alpha_ndcg"),
            (name == "default").then_some(&0.0),
            "{name}"
        );
    }
}

/// Without shown items an arm has coverage 0, and no mean over shown items.
#[test]
fn an_arm_of_empty_lists_has_a_coverage_of_0_and_no_popularity() {
    let lines = [list("1", ""), click("1", r#""b""#)];
    let values = values(&evaluate(&lines, "rs_metrics", &[2], Some(CATALOG)), "a");
    assert_eq!([values["coverage"], values["coverage@2"]], [0.0, 0.0]);
    assert_eq!([values["alpha_ndcg"], values["alpha_ndcg@2"]], [0.0, 0.0]);
    assert!(!values.contains_key("popularity") && !values.contains_key("surprisal"));
}

/// Clicks on a at rank 1, c (no aspect) at rank 2, and off-list on b and 7, with α = 1/2. The gain is 1 at every k. The ideal
/// takes b (x, y). Then "a" gains 1/2 and 7 gains 1, so it takes 7, then a. At k = 1 the ideal is 2, at k = 2 it is 2 + 1 ÷
/// log2 3, and at k = 3 the gain of a at rank 3, 1/2 · 1/2, is added. Over the whole list of two it equals that at k = 2.
/// Under `default`, only a and c are relevant.
#[test]
fn alpha_ndcg_with_off_list_relevant_items_and_an_integer_id() {
    let lines = [
        list("1", r#""a","c""#),
        click("1", r#""a""#),
        click("1", r#""c""#),
        click("1", r#""b""#),
        click("1", r#""7""#),
    ];
    let ideal = 2.0 + SECOND;
    for (name, expected) in [
        (
            "rs_metrics",
            [1.0 / 2.0, 1.0 / ideal, 1.0 / (ideal + 0.25), 1.0 / ideal],
        ),
        ("default", [1.0; 4]),
    ] {
        let values = values(&evaluate(&lines, name, &[1, 2, 3], Some(CATALOG)), "a");
        let keys = ["alpha_ndcg@1", "alpha_ndcg@2", "alpha_ndcg@3", "alpha_ndcg"];
        for (key, expected) in keys.into_iter().zip(expected) {
            assert!(
                (values[key] - expected).abs() < 1e-9,
                "{name} {key} is {}, by hand {expected}",
                values[key]
            );
        }
    }
}
