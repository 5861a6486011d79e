//! Files of one record per shown item: `gather`.

use serde_json::{Value, json};

use crate::support::program::{run, run_with_input};
use crate::{MIDNIGHT_MS, document};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events/rows.toml");

fn row(request: &str, ts: i64, arm: &str, (position, item): (i64, &str)) -> Value {
    json!({"type": "impression", "request_id": request, "ts": MIDNIGHT_MS + ts, "experiment": "ranker", "arm": arm,
        "position": position, "item": item})
}

fn click(request: &str, ts: i64, item: &str) -> Value {
    json!({"type": "click", "request_id": request, "ts": MIDNIGHT_MS + ts, "item": item})
}

fn lines(events: &[Value]) -> String {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Records of a page view that is shown while a user scrolls, and one that is shown twice.
fn events() -> Vec<Value> {
    vec![
        row("r-1", 0, "a", (10, "i1")),
        row("r-1", 9_000, "a", (30, "i3")),
        row("r-1", 4_000, "a", (20, "i2")),
        // Sent again.
        row("r-1", 4_500, "a", (20, "i2")),
        row("r-2", 0, "b", (0, "i1")),
        row("r-2", 100, "b", (1, "i2")),
        // An hour later it is another list of the same id.
        row("r-2", 3_600_000, "b", (0, "i9")),
        click("r-1", 20_000, "i3"),
        click("r-2", 1_000, "i1"),
    ]
}

#[test]
fn records_with_one_id_within_the_span_are_one_list() {
    let metrics = ["--metrics", "mrr,ctr", "--k", "3", "--config", CONFIG];
    let json = document(&metrics, &lines(&events()));
    let of = |arm: &str| json["experiments"]["ranker"]["arms"][arm].clone();
    assert_eq!(
        (of("a")["lists"].as_u64(), of("b")["lists"].as_u64()),
        (Some(1), Some(2))
    );
    let third = |value: &Value| {
        value
            .as_f64()
            .is_some_and(|value| (value - 1.0 / 3.0).abs() < 1e-9)
    };
    assert!(third(&of("a")["metrics"]["mrr@3"]), "by position");
    assert!(third(&of("a")["metrics"]["ctr@3"]));
    assert_eq!(of("b")["metrics"]["mrr@3"].as_f64(), Some(0.5));
    let records = &json["records"];
    assert_eq!(
        (records["accepted"].as_u64(), records["duplicate"].as_u64()),
        (Some(8), Some(1))
    );
    assert_eq!(json["lists_without_experiment"].as_u64(), Some(0));
}

#[test]
fn an_empty_list_is_one_record_without_an_item() {
    let mut none = row("r-3", 0, "b", (0, "i1"));
    none["item"] = Value::Null;
    let events = [events(), vec![none]].concat();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("empty.toml");
    let text = std::fs::read_to_string(CONFIG).expect("it is there") + "no_items = \"empty\"\n";
    std::fs::write(&path, text).expect("it can be written");
    let path = path.to_str().expect("UTF-8");
    let json = document(
        &["--metrics", "mrr", "--k", "3", "--config", path],
        &lines(&events),
    );
    let of_b = &json["experiments"]["ranker"]["arms"]["b"];
    assert_eq!(of_b["lists"].as_u64(), Some(3));
    let mrr = of_b["metrics"]["mrr@3"].as_f64().expect("a number");
    assert!((mrr - 1.0 / 3.0).abs() < 1e-9, "{mrr}");
}

#[test]
fn a_flag_in_a_record_is_its_click() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("flags.toml");
    let served = std::fs::read_to_string(CONFIG).expect("it is there");
    let text = |skew: &str| format!("join.click_skew = \"{skew}\"\n{served}clicked = \"clicked\"\n");
    let mut flagged = [row("r-1", 5_000, "a", (1, "i1")), row("r-1", 0, "a", (2, "i2"))];
    flagged[1]["clicked"] = true.into();
    let ran = |skew: &str| {
        std::fs::write(&path, text(skew)).expect("it can be written");
        let path = path.to_str().expect("UTF-8");
        let arguments = [
            "evaluate",
            "--format",
            "json",
            "--metrics",
            "mrr",
            "--k",
            "3",
            "--config",
            path,
            "-",
        ];
        run_with_input(&arguments, &lines(&flagged))
    };
    let refused = ran("9s");
    assert_eq!(refused.code, Some(78), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("set join.click_skew to 10s"),
        "{}",
        refused.stderr
    );
    let json: Value = serde_json::from_str(&ran("10s").stdout).expect("JSON");
    let of_a = &json["experiments"]["ranker"]["arms"]["a"];
    assert_eq!(of_a["metrics"]["mrr@3"].as_f64(), Some(0.5));
}

#[test]
fn the_sample_of_the_documents_is_read() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events/rows.jsonl");
    let ran = run(&["check", "--sample", sample, "--config", CONFIG]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}
