//! `abgauge catalog build`: the catalogue of a stream, and an evaluation with it.

use crate::support::program::{file, run, run_with_input, temporary_dir};

/// Events of two users: u1 clicks a and b, and the click on b does not name the user; u2 sees a and c.
const EVENTS: &str = r#"{"type":"served","request_id":"1","user_id":"u1","ts":1763596800000,"experiments":{"e":"x"},"items":["a","b"]}
{"type":"click","request_id":"1","user_id":"u1","ts":1763596801000,"item":"a"}
{"type":"click","request_id":"1","ts":1763596802000,"item":"b"}
{"type":"served","request_id":"2","user_id":"u2","ts":1763596800000,"experiments":{"e":"x"},"items":["a","c"]}
"#;

#[test]
fn a_catalogue_has_every_item_with_its_users() {
    let ran = run_with_input(&["catalog", "build", "-"], EVENTS);
    let expected = r#"{"item":"a","users":1,"of_users":2}
{"item":"b","users":1,"of_users":2}
{"item":"c","users":0,"of_users":2}
"#;
    assert_eq!((ran.code, &*ran.stdout), (Some(0), expected), "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        "note: items: 3, users: 2, of lists: 2 and clicks: 2\n"
    );
    let shown = run_with_input(&["catalog", "build", "-", "--touched", "shown"], EVENTS);
    assert!(
        shown
            .stdout
            .starts_with("{\"item\":\"a\",\"users\":2,\"of_users\":2}\n"),
        "{}",
        shown.stdout
    );
}

/// By hand: both lists show a, and one each shows b and c. The shares are 1/2, 1/2 and 0. So a list of a and b has popularity
/// 1/2, and one of a and c 1/4.
#[test]
fn a_built_catalogue_is_usable_by_evaluate() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", EVENTS);
    let built = run(&["catalog", "build", &events]).stdout;
    let items = file(&dir, "items.jsonl", &built);
    let arguments = [
        "--catalog",
        &items,
        "--metrics",
        "coverage,popularity",
        "--k",
        "2",
        "--format",
        "json",
    ];
    let ran = run(&[&["evaluate", &events], &arguments[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let metrics = &report["experiments"]["e"]["arms"]["x"]["metrics"];
    let value = |metric: &str| {
        metrics[metric]
            .as_f64()
            .unwrap_or_else(|| panic!("{metric}: {report}"))
    };
    assert_eq!(value("coverage@2"), 1.0);
    assert!((value("popularity@2") - 0.375).abs() < 1e-9, "{report}");
}

#[test]
fn a_catalogue_is_built_from_any_shape_and_ignored_records_are_reported() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events/own");
    let (events, config) = (format!("{own}.jsonl"), format!("{own}.toml"));
    let ran = run(&["catalog", "build", &events, "--config", &config]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout
            .starts_with("{\"item\":\"i9\",\"users\":1,\"of_users\":1}\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("ignored records of another type: 1"),
        "{}",
        ran.stderr
    );
    let ran = run_with_input(
        &["catalog", "build", "-"],
        "{\n{\"type\":\"served\",\"request_id\":1,\"ts\":1763596800123,\"items\":[5]}\n",
    );
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "{\"item\":\"5\"}\n"));
    for reported in [
        "records skipped as not_json: 1",
        "no event has a user",
        "lists without a user: 1",
    ] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
}

/// Without aspects every list would have α-NDCG 0, which would be misleading.
#[test]
fn metrics_without_catalogue_data_are_not_shown() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", EVENTS);
    for (items, has_aspects) in [
        ("{\"item\":\"a\"}\n{\"item\":\"b\"}\n", false),
        ("{\"item\":\"a\",\"aspects\":[\"x\"]}\n{\"item\":\"b\"}\n", true),
    ] {
        let catalogue = file(&dir, "items.jsonl", items);
        let ran = run(&["evaluate", &events, "--catalog", &catalogue]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stdout.contains("alpha_ndcg"), has_aspects, "{}", ran.stdout);
        let reported = "no item has aspects in the catalogue: there is nothing for alpha_ndcg";
        assert_eq!(ran.stderr.contains(reported), !has_aspects, "{}", ran.stderr);
        let reported =
            "no item has shares of users in the catalogue: there is nothing for popularity and surprisal";
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

#[test]
fn an_empty_or_oversized_catalogue_is_refused() {
    let ran = run_with_input(&["catalog", "build", "-"], "{\"type\":\"view\"}");
    assert_eq!((ran.code, &*ran.stdout), (Some(65), ""));
    assert!(ran.stderr.contains("no item was found"), "{}", ran.stderr);
    let ran = run_with_input(
        &["catalog", "build", "-", "--max-state", "1KiB"],
        &EVENTS
            .replace("\"a\"", &format!("\"{}\"", "a".repeat(500)))
            .replace("\"b\"", &format!("\"{}\"", "b".repeat(500))),
    );
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("--max-state (1024 bytes)"), "{}", ran.stderr);
    let ran = run(&["catalog", "build"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("abgauge catalog build [OPTIONS] --from-kafka"),
        "{}",
        ran.stderr
    );
    assert_eq!(run(&["catalog", "build", "--from-kafka", "x"]).code, Some(2));
    assert_eq!(run(&["catalog", "build", "no/such.jsonl"]).code, Some(1));
    let ran = run(&["catalog", "build", "--from-kafka"]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
}
