//! One record of each unreadable kind, among good ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bad_input::feed::{Feed, SECRET, log, now_ms};
use crate::support::kafka::Kafka;
use crate::support::prometheus;

/// An unreadable record, its kind and the reason.
struct Bad {
    is_list: bool,
    payload: Option<Vec<u8>>,
    reason: &'static str,
}

fn bad(is_list: bool, payload: impl Into<Vec<u8>>, reason: &'static str) -> Bad {
    Bad {
        is_list,
        payload: Some(payload.into()),
        reason,
    }
}

/// Returns a good list with one field replaced, or removed if `value` is null.
fn list_with(field: &str, value: Value, reason: &'static str) -> Bad {
    bad(true, with(good_list(SECRET, now_ms()), field, value), reason)
}

fn click_with(field: &str, value: Value, reason: &'static str) -> Bad {
    bad(false, with(good_click(SECRET, now_ms()), field, value), reason)
}

fn with(mut event: Value, field: &str, value: Value) -> String {
    let fields = event.as_object_mut().expect("an object");
    match value {
        Value::Null => fields.remove(field),
        value => fields.insert(field.to_owned(), value),
    };
    event.to_string()
}

/// Returns a good list with a part of its text replaced, for errors that a JSON value cannot express.
fn list_text(part: &str, by: &str, reason: &'static str) -> Bad {
    let text = good_list(SECRET, 1_763_596_800_123).to_string();
    assert!(text.contains(part), "{part} is not in {text}");
    bad(true, text.replacen(part, by, 1), reason)
}

fn good_list(id: &str, ts_ms: i64) -> Value {
    json!({"request_id": id, "user_id": "u", "ts": ts_ms, "experiments": {"ranker": "good"}, "items": ["i1", "i2"]})
}

fn good_click(id: &str, ts_ms: i64) -> Value {
    json!({"request_id": id, "ts": ts_ms, "item": "i1"})
}

fn many_experiments(n: usize) -> Value {
    let named = (0..n).map(|number| (format!("e-{number}"), json!("a")));
    Value::Object(named.collect())
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn all_kinds() -> Vec<Bad> {
    let now_ms = now_ms();
    let megabyte = "x".repeat(1_000_000);
    let whole = good_list(SECRET, now_ms).to_string();
    let mut kinds = vec![
        // Bytes:
        bad(true, SECRET, "not_json"),
        bad(true, "", "not_json"),
        bad(true, &whole.as_bytes()[..whole.len() - 9], "not_json"),
        bad(false, &b"{\"request_id\":\"\xff\xfe"[..], "not_json"),
        bad(true, whole.replace(SECRET, "\u{0}"), "not_json"),
        bad(
            true,
            [whole.replacen(SECRET, "", 1).as_bytes(), b"\xc3\x28"].concat(),
            "not_json",
        ),
        bad(true, format!("{whole}{whole}"), "not_json"),
        bad(true, nested(10_000), "not_json"),
        bad(false, "[".repeat(10_000), "not_json"),
        list_text(
            "\"items\":",
            &format!("\"more\":{},\"items\":", nested(10_000)),
            "not_json",
        ),
        list_text("1763596800123", "NaN", "not_json"),
        list_text("1763596800123", "Infinity", "not_json"),
        list_text("\"items\":", "\"ts\":1,\"items\":", "not_json"),
        // Types and fields:
        bad(true, "[]", "wrong_type"),
        bad(false, "null", "tombstone"),
        bad(false, format!("\"{SECRET}\""), "wrong_type"),
        list_with("items", json!(SECRET), "wrong_type"),
        list_with("items", json!([{"id": SECRET}]), "wrong_type"),
        list_with("experiments", json!([SECRET]), "wrong_type"),
        list_with("experiments", json!(5), "wrong_type"),
        list_with("ts", json!(true), "wrong_type"),
        click_with("request_id", json!([SECRET, SECRET]), "wrong_type"),
        click_with("item", json!({}), "wrong_type"),
        list_with("request_id", Value::Null, "missing_field"),
        list_with("ts", Value::Null, "missing_field"),
        list_with("items", Value::Null, "missing_field"),
        click_with("item", Value::Null, "missing_field"),
        bad(false, "{}", "missing_field"),
        // Numbers:
        list_text(&format!("\"{SECRET}\""), "123456789012345678901", "number"),
        list_text("\"i2\"", "1.5", "number"),
        list_text("1763596800123", "1763596800123.0", "number"),
        list_text("1763596800123", "123456789012345678901234567890", "number"),
        // Times:
        list_with("ts", json!(now_ms / 1000), "ts_seconds"),
        click_with("ts", json!(now_ms / 1000), "ts_seconds"),
        list_with("ts", json!(now_ms * 1000), "ts_micros"),
        click_with("ts", json!(now_ms * 1000), "ts_micros"),
        list_with("ts", json!(-now_ms), "ts_range"),
        click_with("ts", json!(-1), "ts_range"),
        click_with("ts", json!("yesterday"), "ts_range"),
        // Sizes:
        list_with("request_id", json!(""), "id_length"),
        list_with("items", json!(["i1", ""]), "id_length"),
        click_with("item", json!(""), "id_length"),
        list_with("request_id", json!(format!("{SECRET}{megabyte}")), "id_length"),
        list_with("user_id", json!(megabyte), "id_length"),
        list_with("items", json!([megabyte]), "id_length"),
        click_with("request_id", json!(megabyte), "id_length"),
        click_with("item", json!(megabyte), "id_length"),
        list_with(
            "items",
            json!((0..10_000).map(|i| format!("i{i}")).collect::<Vec<_>>()),
            "too_many_items",
        ),
        list_with("experiments", many_experiments(101), "too_many_experiments"),
        // Kinds that contradict the topic:
        list_with("type", json!("click"), "wrong_topic"),
        click_with("type", json!("served"), "wrong_topic"),
    ];
    for is_list in [true, false] {
        kinds.push(Bad {
            is_list,
            payload: None,
            reason: "tombstone",
        });
    }
    kinds
}

/// Valid labels that may confuse an exporter.
const HOSTILE: [&str; 8] = [
    "\"quoted\"",
    "back\\slash\\",
    "two\nlines\r\nand \\n",
    "{a=\"b\"} 1",
    "\u{1}\u{7f}\u{1b}[31m\t",
    "\u{1f9ea} \u{202e}tfel",
    "</script><script>",
    " ",
];

#[test]
fn each_kind_of_bad_record_is_counted_by_reason_and_harmless() {
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 2);
    let (served, clicks) = (feed.served.clone(), feed.clicks.clone());
    let mut daemon = feed.daemon(&kafka, "");
    daemon.wait_until_ready();

    // In three rounds, there is a good list with a click before and after each bad record.
    let mut good = 0;
    let mut reasons: BTreeMap<(String, &str), f64> = BTreeMap::new();
    let mut places: BTreeMap<(String, i64, i64), &str> = BTreeMap::new();
    for round in 0..3 {
        for Bad {
            is_list,
            payload,
            reason,
        } in all_kinds()
        {
            let partition = good % 2;
            let (id, ts_ms) = (format!("{SECRET}-{round}-{good}"), now_ms());
            feed.list(partition, &good_list(&id, ts_ms));
            let topic = if is_list { &served } else { &clicks };
            let offset = feed.send(topic, partition, payload.as_deref());
            places.insert((topic.clone(), i64::from(partition), offset), reason);
            *reasons.entry((topic.clone(), reason)).or_default() += 1.0;
            feed.click(partition, &good_click(&id, ts_ms + 1));
            good += 1;
        }
    }
    let good = f64::from(good);

    // These records are only wrong in relation to others.
    let ts_ms = now_ms();
    let ten_years_ms = 10 * 365 * 24 * 3_600_000;
    feed.list(0, &good_list("ahead", ts_ms + ten_years_ms));
    feed.click(1, &good_click("ahead", ts_ms + ten_years_ms));
    feed.list(0, &good_list("late", ts_ms - 3_600_000));
    feed.click(1, &good_click("late", ts_ms - 3_600_000));
    let slot_ms = ts_ms - ts_ms.rem_euclid(5000);
    feed.list(0, &good_list("twice", slot_ms));
    feed.list(0, &good_list("twice", slot_ms));
    feed.list(
        0,
        &json!({"request_id": "twice", "ts": slot_ms, "items": ["another"]}),
    );
    feed.list(1, &json!({"type": SECRET}));
    // Hostile labels are valid.
    for label in HOSTILE {
        let mut list = good_list(&format!("of {label}"), ts_ms);
        list["experiments"] = json!({label: label});
        feed.list(0, &list);
    }
    // In spite of the event ten years ahead, these are in time.
    feed.list(0, &good_list("last", now_ms()));
    feed.click(0, &good_click("last", now_ms()));
    feed.flush();
    let scrape = feed.wait_until_read(&mut daemon);

    for ((topic, reason), expected) in &reasons {
        let labels = [("topic", topic.as_str()), ("reason", *reason)];
        let counted = scrape.value("abgauge_invalid_records_total", &labels);
        assert_eq!(counted, Some(*expected), "{labels:?}");
    }
    let outcomes = |topic: &str| -> BTreeMap<String, f64> {
        scrape
            .select("abgauge_records_total", &[("topic", topic)])
            .filter(|sample| sample.value != 0.0)
            .map(|sample| (sample.labels["outcome"].clone(), sample.value))
            .collect()
    };
    let invalid = |topic: &str| -> f64 {
        let of_topic = reasons.iter().filter(|((name, _), _)| name == topic);
        of_topic.map(|(_, n)| n).sum()
    };
    let expected = |outcomes: &[(&str, f64)]| -> BTreeMap<String, f64> {
        outcomes
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    };
    let n_hostile = HOSTILE.len() as f64;
    assert_eq!(
        outcomes(&served),
        expected(&[
            ("accepted", good + n_hostile + 2.0),
            ("duplicate", 2.0),
            ("future", 1.0),
            ("ignored", 1.0),
            ("invalid", invalid(&served)),
            ("late", 1.0),
        ])
    );
    assert_eq!(
        outcomes(&clicks),
        expected(&[
            ("accepted", good + 1.0),
            ("future", 1.0),
            ("invalid", invalid(&clicks)),
            ("late", 1.0),
        ])
    );
    assert_eq!(scrape.value("abgauge_conflicting_lists_total", &[]), Some(1.0));
    assert_eq!(
        scrape.sum("abgauge_click_results_total", &[("result", "matched")]),
        good + 1.0
    );
    assert_eq!(scrape.sum("abgauge_click_results_total", &[]), good + 1.0);
    daemon.wait_until("the telemetry of the end", |daemon| {
        (daemon.metrics().value("abgauge_clicks_waiting", &[]) == Some(0.0)).then_some(())
    });
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));

    let of_good = [
        ("experiment", "ranker"),
        ("arm", "good"),
        ("window", "total"),
        ("view", "live"),
    ];
    assert_eq!(scrape.value("abgauge_lists", &of_good), Some(good + 2.0));
    assert_eq!(scrape.value("abgauge_clicks", &of_good), Some(good + 1.0));
    for label in HOSTILE {
        let of_label = [
            ("experiment", label),
            ("arm", label),
            ("window", "total"),
            ("view", "live"),
        ];
        assert_eq!(scrape.value("abgauge_lists", &of_label), Some(1.0), "{label:?}");
    }
    let arms: std::collections::BTreeSet<_> = scrape
        .select("abgauge_lists", &[])
        .map(|sample| &sample.labels["arm"])
        .collect();
    assert_eq!(arms.len(), 1 + HOSTILE.len(), "no other arm: {arms:?}");
    prometheus::check_metrics(&daemon.get("/metrics").body).expect("promtool agrees");
    let api: Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
    assert_eq!(
        api["experiments"][HOSTILE[3]]["arms"][HOSTILE[3]]["windows"]["total"]["live"]["lists"],
        1
    );

    check_log(&daemon, &reasons, &places);
}

/// Asserts that each topic and reason has one log line, for any number of records. It names one such record, and does not
/// reveal its content.
#[track_caller]
fn check_log(
    daemon: &crate::support::daemon::Daemon,
    reasons: &BTreeMap<(String, &str), f64>,
    places: &BTreeMap<(String, i64, i64), &str>,
) {
    assert!(
        !daemon.log().contains(SECRET),
        "a payload in the log: {}",
        daemon.log()
    );
    let lines: Vec<_> = log(daemon)
        .into_iter()
        .filter(|line| line["message"] == "skipped an unreadable record")
        .collect();
    let mut reported: Vec<(String, String)> = Vec::new();
    for line in &lines {
        let (topic, reason) = (
            line["topic"].as_str().expect("a topic"),
            line["reason"].as_str().expect("a reason"),
        );
        let place = (
            topic.to_owned(),
            line["partition"].as_i64().expect("a partition"),
            line["offset"].as_i64().expect("an offset"),
        );
        assert_eq!(places.get(&place), Some(&reason), "{line}");
        reported.push((topic.to_owned(), reason.to_owned()));
    }
    reported.sort();
    let expected: Vec<_> = reasons
        .keys()
        .map(|(topic, reason)| (topic.clone(), (*reason).to_owned()))
        .collect();
    assert_eq!(reported, expected, "one line a minute for each");
}
