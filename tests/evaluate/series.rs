//! Series by day and by other spans.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::program::{run, run_with_input};
use crate::{document, printed, two_arms};

/// Returns six minutes of traffic around midnight.
fn traffic() -> String {
    let ran = run(&[
        "simulate",
        "--output",
        "-",
        "--duration",
        "6s",
        "--speed",
        "60",
        "--start",
        "2026-01-31T23:57:00Z",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

#[test]
fn a_series_adds_up_to_the_whole() {
    let traffic = traffic();
    for (span, n_at_least) in [("1d", 2), ("1m", 6), ("5s", 60)] {
        let arguments = [
            "--window",
            span,
            "--convention",
            "default,ranx",
            "--format",
            "csv",
        ];
        let shown = printed(&arguments, &traffic);
        // Maps profile, experiment, arm, metric and k to the value of the whole file, and the sum over the spans.
        let mut sums: BTreeMap<Vec<String>, [[f64; 2]; 2]> = BTreeMap::new();
        let mut starts: Vec<String> = Vec::new();
        for line in shown.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |index: usize| cells[index].parse::<f64>().unwrap_or(0.0);
            // Counts of lists and clicks are in the value column.
            let parts = match cells[7] {
                "" => [number(6), 0.0],
                _ => [number(7), number(8)],
            };
            let key = [&cells[..1], &cells[2..6]]
                .concat()
                .iter()
                .map(|cell| (*cell).to_owned())
                .collect();
            let sums = &mut sums.entry(key).or_default()[usize::from(!cells[1].is_empty())];
            sums[0] += parts[0];
            sums[1] += parts[1];
            starts.push(cells[1].to_owned());
        }
        assert!(sums.len() > 100, "{}", sums.len());
        for (key, [whole, spans]) in &sums {
            assert_eq!(whole, spans, "{span} {key:?}: fixed point loses nothing");
        }
        assert!(starts.is_sorted());
        starts.dedup();
        assert!(starts.len() > n_at_least, "{span}: {starts:?}");
    }
}

#[test]
fn a_series_has_days_and_spans_in_utc() {
    let series = document(&["--by-day", "--metrics", "ctr"], &two_arms());
    let arms = |index: usize| series["series"][index]["experiments"]["e"]["arms"].clone();
    assert_eq!(series["series"][0]["start"], "2025-11-19T00:00:00Z");
    assert_eq!(series["series"][1]["start"], "2025-11-20T00:00:00Z");
    assert_eq!(arms(0)["b"]["lists"], 1);
    assert_eq!(arms(0).get("a"), None);
    assert_eq!(
        (&arms(1)["a"]["lists"], &arms(1)["b"]["lists"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(series["experiments"]["e"]["arms"]["b"]["lists"], 2);

    let starts = |window: &str| {
        let series = document(&["--window", window], &two_arms());
        let spans = series["series"].as_array().cloned().unwrap_or_default();
        let starts = spans
            .iter()
            .map(|span| span["start"].as_str().unwrap_or("").to_owned());
        starts.collect::<Vec<_>>()
    };
    assert_eq!(starts("15s"), ["2025-11-19T23:59:45Z", "2025-11-20T00:00:00Z"]);
    // Seven-day spans are counted from the start of 1970, a Thursday.
    assert_eq!(starts("7d"), ["2025-11-13T00:00:00Z", "2025-11-20T00:00:00Z"]);
    let ran = run_with_input(&["evaluate", "-", "--by-day", "--format", "json"], "");
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &json["series"]), (Some(65), &json!([])));
}

#[test]
fn a_series_table_has_one_row_per_span() {
    let arguments = "--by-day --metrics mrr --k 1 --compare b --unit request";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let shown = printed(&arguments, &two_arms());
    let mrr = "
 e / mrr           b        a         Δ     Δ %
────────────────────────────────────────────────
 2025-11-19   0.0000        –         –       –
 2025-11-20   1.0000   0.2500   -0.7500   -75.0
";
    assert!(shown.contains(mrr), "{shown}");
    let lists = "
 e / lists    a   b
────────────────────
 2025-11-19   –   1
 2025-11-20   2   1
";
    assert!(shown.contains(lists), "{shown}");
    let several = printed(
        &[
            "--window",
            "1h",
            "--convention",
            "ranx,default",
            "--metrics",
            "mrr",
        ],
        &two_arms(),
    );
    for corner in [" e / mrr@1 / ranx ", " e / mrr / default "] {
        assert!(several.contains(corner), "{several}");
    }
    assert!(several.contains(" 2025-11-19T23:00:00Z "), "{several}");
}
