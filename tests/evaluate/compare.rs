//! The difference of each arm to a control.

use serde_json::{Value, json};

use crate::program::run_with_input;
use crate::{EVENTS, two_arms};

#[test]
fn every_format_compares_arms_with_the_control_where_it_is() {
    let arguments = ["--compare", "a", "--metrics", "mrr", "--k", "1"];
    let format = |format: &str| {
        let ran = run_with_input(
            &[&["evaluate", "-", "--format", format], &arguments[..]].concat(),
            &two_arms(),
        );
        let told = "note: experiments without an arm a, not compared: f\n";
        assert_eq!((ran.code, &*ran.stderr), (Some(0), told));
        ran.stdout
    };
    assert_eq!(
        format("table"),
        " e             a        b         Δ      Δ %
─────────────────────────────────────────────
 lists         2        2
 clicks        1        1
 mrr@1    0.0000   0.5000   +0.5000        –
 mrr      0.2500   0.5000   +0.2500   +100.0

 f             x
─────────────────
 lists         1
 clicks        0
 mrr@1    0.0000
 mrr      0.0000
"
    );
    let markdown = format("markdown");
    assert!(
        markdown.starts_with("| e | a | b | Δ | Δ % |\n|:---|---:|---:|---:|---:|\n"),
        "{markdown}"
    );
    assert!(
        markdown.contains("\n| mrr | 0.2500 | 0.5000 | +0.2500 | +100.0 |\n"),
        "{markdown}"
    );
    let csv = format("csv");
    for row in [
        "profile,experiment,arm,metric,k,value,numerator,denominator,difference,difference_percent",
        "default,e,a,mrr,,0.25,0.5,2,,",
        "default,e,b,mrr,1,0.5,1,2,0.5,",
        "default,e,b,mrr,,0.5,1,2,0.25,100",
        "default,f,x,mrr,,0,0,1,,",
    ] {
        assert!(csv.lines().any(|line| line == row), "{row}: {csv}");
    }
    let json: Value = serde_json::from_str(&format("json")).expect("JSON");
    let e = &json["experiments"]["e"];
    assert_eq!(e["control"], "a");
    assert_eq!(
        e["arms"]["b"]["differences"],
        json!({"mrr@1": {"absolute": 0.5}, "mrr": {"absolute": 0.25, "percent": 100.0}})
    );
    assert_eq!(e["arms"]["a"].get("differences"), None);
    assert_eq!(json["experiments"]["f"].get("control"), None);
}

#[test]
fn a_control_that_no_experiment_has_is_refused_with_the_arms_that_there_are() {
    let ran = run_with_input(&["evaluate", "-", "--compare", "arm"], &two_arms());
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    for told in ["'arm'", "possible values: a, b, x]"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let near = run_with_input(&["evaluate", "-", "--compare", "contrl"], EVENTS);
    assert!(
        near.stderr.contains("similar value exists: 'control'"),
        "{}",
        near.stderr
    );
}
