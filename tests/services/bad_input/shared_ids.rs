//! Producers that reuse one request id for many lists.

use serde_json::json;

use crate::bad_input::feed::{Feed, now_ms};
use crate::support::kafka::Kafka;

const SLOT_MS: i64 = 5_000;

/// A template with an unset variable has this effect: every list of a producer is "undefined".
#[test]
fn reports_a_request_id_shared_by_most_lists_and_bounds_its_clicks() {
    const N_SLOTS: i64 = 100;
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 1);
    let start_ms = now_ms() - N_SLOTS * SLOT_MS;
    for slot in 0..N_SLOTS {
        for number in 0..10 {
            // Two in ten have an id of their own.
            let id = match number {
                0 | 1 => format!("r-{slot}-{number}"),
                _ => "undefined".to_owned(),
            };
            let ts_ms = start_ms + slot * SLOT_MS;
            feed.list(
                0,
                &json!({"request_id": id, "ts": ts_ms, "experiments": {"ranker": "a"}, "items": ["i"]}),
            );
            feed.click(0, &json!({"request_id": id, "ts": ts_ms, "item": "i"}));
        }
    }
    feed.flush();
    let mut daemon = feed.daemon(
        &kafka,
        "limits.max_invalid_share = 0.5\njoin.max_lists_per_click = 7\njoin.same_list = \"4s\"",
    );
    let scrape = feed.wait_until_read(&mut daemon);
    let n_slots = N_SLOTS as f64;
    let outcome = |outcome| {
        scrape.value(
            "abgauge_records_total",
            &[("topic", &feed.served), ("outcome", outcome)],
        )
    };
    assert_eq!(
        outcome("accepted"),
        Some(3.0 * n_slots),
        "one of an id in each five seconds"
    );
    assert_eq!(outcome("duplicate"), Some(7.0 * n_slots));
    // The eight clicks of a slot would match the lists of all slots before it.
    let cut = scrape
        .value("abgauge_clicks_cut_total", &[])
        .expect("always shown");
    assert_eq!(cut, 8.0 * (n_slots - 7.0));
    let shared = scrape
        .value("abgauge_shared_id_lists_total", &[])
        .expect("always shown");
    assert!(
        (0.7 * 10.0 * n_slots..=0.8 * 10.0 * n_slots).contains(&shared),
        "{shared}"
    );
    let warnings = daemon.wait_until("a warning", |daemon| {
        let api: serde_json::Value =
            serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
        let warnings = api["stream"]["warnings"].to_string();
        warnings.contains("request id").then_some(warnings)
    });
    for part in [
        feed.served.as_str(),
        "share one request id",
        "its own id",
        "join.max_lists_per_click",
        "AbgaugeSharedRequestId",
    ] {
        assert!(warnings.contains(part), "{part} is not in {warnings}");
    }
    daemon.wait_for_log("it too", |log| log.contains("share one request id"));
    // The same clicks are cut in every reading.
    let mut again = feed.daemon(&kafka, "join.max_lists_per_click = 7\njoin.same_list = \"4s\"");
    let second = feed.wait_until_read(&mut again);
    assert_eq!(second.value("abgauge_clicks_cut_total", &[]), Some(cut));
    let clicks = [("window", "total"), ("view", "live")];
    assert_eq!(
        second.sum("abgauge_clicks", &clicks),
        scrape.sum("abgauge_clicks", &clicks)
    );
}
