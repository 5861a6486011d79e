//! What looks say comes with time, and other gauges while something is wrong: queries of these are asked of made-up samples
//! (promtool), and those of looks of a demo as well.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::{
    DOCUMENTS, METRIC, Prometheus, Query, brought, busy, comes_with_time, file, of_dashboards, of_document,
    selectors, tools, wait,
};
use crate::support::daemon::Daemon;

/// Of each label that a series has; as the dashboards' choices are, where they choose it.
const LABELS: [(&str, &str); 10] = [
    ("experiment", "ranker"),
    ("view", "settled"),
    ("scope", "own"),
    ("metric", "ndcg"),
    ("k", "5"),
    ("state", "harm"),
    ("topic", "served"),
    ("partition", "0"),
    ("alertname", "AbgaugeDown"),
    ("alertstate", "firing"),
];

/// Of the series in which Prometheus tells of its alerts those that queries ask for.
const OF_ALERTS: &str = "alertname,alertstate";

/// Those of which there are several.
const ARMS: [&str; 2] = ["tuned", busy::CONTROL];
const WINDOWS: [&str; 2] = ["1h", "total"];

/// The series of a family, with samples of arms that do harm, and of a state topic that loses records.
fn series(name: &str) -> Vec<Value> {
    let listed = file("tests/data/exported-names.tsv");
    let line = listed.lines().find(|line| line.split('\t').next() == Some(name));
    let of_family = match line {
        Some(line) => line.split('\t').nth(2).expect("labels"),
        None => OF_ALERTS,
    };
    let of_family: Vec<&str> = of_family.split(',').collect();
    let labels = LABELS.iter().filter(|(label, _)| of_family.contains(label));
    let mut all: Vec<String> = vec![
        labels
            .map(|(label, value)| format!(r#",{label}="{value}""#))
            .collect(),
    ];
    for (label, values) in [("arm", ARMS), ("window", WINDOWS)] {
        if of_family.contains(&label) {
            let with = |labels: &String| values.map(|value| format!(r#"{labels},{label}="{value}""#));
            all = all.iter().flat_map(with).collect();
        }
    }
    let value = match name {
        "abgauge_lift" | "abgauge_lift_lower" | "abgauge_lift_upper" => "-0.1",
        "abgauge_p_value" | "abgauge_harm_p_value" => "0.01",
        "abgauge_stored_whole" => "0",
        "abgauge_stored_lost_total" | "abgauge_verdict" => "0+1",
        _ => "1",
    };
    let series = all.into_iter().map(|labels| {
        json!({
            "series": format!(r#"{name}{{job="abgauge",instance="a"{labels}}}"#),
            "values": format!("{value}x5"),
        })
    });
    series.collect()
}

#[test]
fn queries_of_series_that_come_with_time_return_data() {
    let documents = DOCUMENTS.into_iter().flat_map(of_document);
    let queries = of_dashboards(METRIC).into_iter().chain(documents);
    let queries: Vec<Query> = queries
        .filter(|query| comes_with_time(&query.expression))
        .collect();
    assert!(queries.len() > 30, "only {} queries were found", queries.len());
    let uses = queries.iter().flat_map(|query| selectors(&query.expression));
    let names: BTreeSet<String> = uses.map(|selector| selector.name).collect();
    let expected = queries.iter().map(|query| {
        json!({
            "expr": format!("count({}) > bool 0", query.expression),
            "eval_time": "5m",
            "exp_samples": [{ "labels": "{}", "value": 1 }],
        })
    });
    let case = json!({
        "interval": "1m",
        "input_series": names.iter().flat_map(|name| series(name)).collect::<Vec<_>>(),
        "promql_expr_test": expected.collect::<Vec<_>>(),
    });
    let dir = tools::temporary_dir("looks");
    // Each JSON is YAML.
    let path = dir.path().join("looks.test.yml");
    fs::write(&path, json!({ "tests": [case] }).to_string()).expect("write it");
    println!("queries of what comes with time: {0} of {0}", queries.len());
    let output = brought::command("promtool")
        .args(["test", "rules"])
        .arg(&path)
        .output()
        .expect("promtool starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// What a look at an experiment gives: it comes with time, if at all. A test beside its code holds docs/gauges.md to it.
pub const OF_LOOKS: [&str; 24] = [
    "abgauge_ci_lower",
    "abgauge_ci_upper",
    "abgauge_lift",
    "abgauge_lift_lower",
    "abgauge_lift_upper",
    "abgauge_p_value",
    "abgauge_decision_lift",
    "abgauge_decision_lift_lower",
    "abgauge_decision_lift_upper",
    "abgauge_decision_p_value",
    "abgauge_lists_without_user_ratio",
    "abgauge_top_user_lists_ratio",
    "abgauge_harm_p_value",
    "abgauge_power_information",
    "abgauge_top_bucket_share",
    "abgauge_list_ratio",
    "abgauge_list_ratio_p_value",
    "abgauge_verdict",
    "abgauge_srm_p_value",
    "abgauge_multi_arm_users",
    "abgauge_shares_since_timestamp_seconds",
    "abgauge_lower_is_better",
    "abgauge_decision",
    "abgauge_look_timestamp_seconds",
];

#[test]
fn dashboards_show_the_looks_of_a_demo() {
    let mut demo = Daemon::demo(&["--duration", "10m", "--rate", "300"]);
    demo.wait_until_ready();
    let prometheus = Prometheus::start(&[demo.address()]);
    let is_of_looks = |query: &Query| {
        let names: Vec<String> = selectors(&query.expression)
            .into_iter()
            .map(|it| it.name)
            .collect();
        names.iter().any(|name| OF_LOOKS.contains(&name.as_str()))
    };
    // By default looks show the metric that decides.
    let queries: Vec<Query> = of_dashboards("ctr").into_iter().filter(is_of_looks).collect();
    assert!(queries.len() > 15, "only {} queries were found", queries.len());
    for Query { place, expression } in queries {
        // And the demo decides by the first ten ranks.
        let expression = expression.replace("k=~\"5\"", "k=~\"10\"");
        let found = wait::try_until(wait::LONG, || {
            Some(prometheus.query(&expression)).filter(|samples| !samples.is_empty())
        });
        assert!(found.is_some(), "{place}: nothing for {expression}");
    }
}
