//! Records of unusual spelling and size that are valid, and others that only seem so.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bad_input::feed::{Feed, now_ms};
use crate::support::kafka::Kafka;

/// Largest batch that a topic accepts, for the largest records.
const LARGEST_BATCH: usize = 1_000_000;
/// Kafka's overhead for a batch with one record and no key: 61 bytes for the batch, and for the record two lengths of 3 bytes
/// and five fields of 1 byte.
const AROUND_VALUE: usize = 61 + 2 * 3 + 5;

/// Returns the JSON of a list with this id, these items and the fields `more`.
fn list(id: &str, items: &str, more: &str) -> String {
    let ts_ms = now_ms();
    format!(r#"{{"request_id":{id},{more}"ts":{ts_ms},"experiments":{{"ranker":"odd"}},"items":{items}}}"#)
}

fn click(id: &str, item: &str, more: &str) -> String {
    format!(r#"{{"request_id":{id},{more}"ts":{},"item":{item}}}"#, now_ms())
}

fn nested(n_levels: usize) -> String {
    format!("\"x\":{}{},", "[".repeat(n_levels), "]".repeat(n_levels))
}

/// Returns lists, each with a click that spells id and item differently.
fn sound() -> Vec<(String, String)> {
    let space = " \t\r\n".repeat(250_000);
    vec![
        (
            list(r#""\ud83d\ude00""#, r#"["i"]"#, ""),
            click("\"😀\"", r#""\u0069""#, ""),
        ),
        (
            list("\"grün \u{10ffff}\"", "[\"\u{fffd}\"]", ""),
            click(r#""gr\u00FCn \udbff\udfff""#, r#""\ufffd""#, ""),
        ),
        (
            list("\"a/b\\\\\"", r#"["\"\b\f\n\r\t\u0000"]"#, ""),
            click(r#""\u0061\/b\u005c""#, r#""\u0022\b\f\n\r\t\u0000""#, ""),
        ),
        (list("5", r#"[1,"2",-3]"#, ""), click("\"5\"", "\"-3\"", "")),
        (list("\"6\"", r#"["2",1,"-3"]"#, ""), click("6", "1", "")),
        (list("-0", r#"["i",-0]"#, ""), click("\"0\"", "0", "")),
        (
            list("99999999999999999999", "[1]", ""),
            click("\"99999999999999999999\"", "1", ""),
        ),
        (
            list("\"keys\"", "[1]", r#""x":{"y":1,"y":2},"x":5,"x":1e3,"#).replace("items", r"it\u0065ms"),
            click("\"keys\"", "1", r#""items":[],"#).replace("request_id", r"request\u005fid"),
        ),
        (
            list("\"space\"", "[1]", "").replacen(':', &format!("{space}:{space}"), 1),
            format!("{space}{}{space}", click("\"space\"", "1", "")),
        ),
        (
            list("\"deep\"", "[1]", &nested(126)),
            click("\"deep\"", "1", &nested(126)),
        ),
    ]
}

/// Returns reasons, each with lists and clicks refused for it.
fn refused() -> Vec<(&'static str, Vec<String>, Vec<String>)> {
    let space = " \t\r\n".repeat(250_000);
    let not_json = (
        vec![
            list(r#""\ud83d""#, "[1]", ""),
            list("\"r\"", r#"["\ude00\ud83d"]"#, ""),
            list("\"r\"", "[1]", r#""items":[1],"#),
            list("\"r\"", "[1]", r#""t\u0073":1763596800123,"#),
            list("\"r\"", "[1]", "").replace(r#""odd""#, r#""odd","r\u0061nker":"odd""#),
            list("\"r\"", "[1]", &nested(127)),
            list("\"r\"", &format!("[{space}"), ""),
            list("-01", "[1]", ""),
            space.clone(),
        ],
        vec![
            click("\"r\"", r#""\ud83dx\ude00""#, ""),
            click("\"r\"", "1", r#""item":1,"#),
            click("\"r\"", "1", &nested(127)),
            click("\"r\"", "1e", ""),
            format!("{}{space}{{}}", click("\"r\"", "1", "")),
        ],
    );
    let number = (
        vec![
            list("1e3", "[1]", ""),
            list("-0.0", "[1]", ""),
            list("\"r\"", r#"[1,"1",1e0]"#, ""),
            list("\"r\"", "[-0e1]", ""),
        ],
        vec![click("\"r\"", "1E3", ""), click("-0e0", "1", "")],
    );
    vec![
        ("not_json", not_json.0, not_json.1),
        ("number", number.0, number.1),
    ]
}

/// Returns a list of `n_bytes` bytes.
fn list_of_size(id: &str, n_bytes: usize) -> String {
    let padded = |n: usize| {
        list(
            &format!("\"{id}\""),
            "[1]",
            &format!("\"x\":\"{}\",", "x".repeat(n)),
        )
    };
    padded(n_bytes - padded(0).len())
}

/// Every record is sent with a key and without.
#[test]
fn odd_spellings_are_understood_or_refused_with_their_reason() {
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 2);
    let (served, clicks) = (feed.served.clone(), feed.clicks.clone());
    let (mut n_sound, mut refusals) = (0.0, BTreeMap::new());
    for (partition, key) in [(0, Some(&b"key"[..])), (1, None)] {
        for (list, click) in sound() {
            feed.send_keyed(&served, partition, key, Some(list.as_bytes()));
            feed.send_keyed(&clicks, partition, key, Some(click.as_bytes()));
            n_sound += 1.0;
        }
        for (reason, lists, its_clicks) in refused() {
            for (topic, records) in [(&served, lists), (&clicks, its_clicks)] {
                *refusals.entry((topic.clone(), reason)).or_default() += records.len() as f64;
                for record in records {
                    feed.send_keyed(topic, partition, key, Some(record.as_bytes()));
                }
            }
        }
    }
    feed.flush();
    let mut daemon = feed.daemon(&kafka, "");
    let scrape = feed.wait_until_read(&mut daemon);
    for ((topic, reason), expected) in &refusals {
        let labels = [("topic", topic.as_str()), ("reason", *reason)];
        let counted = scrape.value("abgauge_invalid_records_total", &labels);
        assert_eq!(counted, Some(*expected), "{labels:?}");
    }
    for topic in [&served, &clicks] {
        let accepted = scrape.value(
            "abgauge_records_total",
            &[("topic", topic), ("outcome", "accepted")],
        );
        assert_eq!(accepted, Some(n_sound), "{topic}");
    }
    let matched = scrape.sum("abgauge_click_results_total", &[("result", "matched")]);
    assert_eq!(matched, n_sound, "each click found its list and item");
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));
}

#[test]
fn a_record_of_exactly_the_largest_size_is_read() {
    let kafka = Kafka::shared();
    let limit = LARGEST_BATCH.to_string();
    let mut feed = Feed::with_limit(&kafka, 1, &limit);
    let served = feed.served.clone();
    let producer = kafka.producer();
    let too_large = list_of_size("too-large", LARGEST_BATCH - AROUND_VALUE + 1);
    producer.produce(&served, Some(0), None, Some(too_large.as_bytes()), None);
    let refused = catch_unwind(AssertUnwindSafe(|| producer.flush()));
    assert!(refused.is_err(), "one byte more than the broker takes");
    for id in ["one", "two", "three"] {
        let largest = list_of_size(id, LARGEST_BATCH - AROUND_VALUE);
        feed.send_keyed(&served, 0, None, Some(largest.as_bytes()));
        feed.flush();
        feed.click(
            0,
            &serde_json::json!({"request_id": id, "ts": now_ms(), "item": 1}),
        );
    }
    feed.flush();
    let mut daemon = feed.daemon(&kafka, "");
    let scrape = feed.wait_until_read(&mut daemon);
    let matched = scrape.sum("abgauge_click_results_total", &[("result", "matched")]);
    assert_eq!(matched, 3.0);
}
