//! The kind of a record: from its `type`, from its topic, and if they contradict each other.

use serde_json::{Value, json};

use crate::bad_input::feed::{Feed, now_ms};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;

fn list(id: &str, ts_ms: i64) -> Value {
    json!({"request_id": id, "ts": ts_ms, "experiments": {"ranker": "good"}, "items": ["i1", "i2"]})
}

fn click(id: &str, ts_ms: i64) -> Value {
    json!({"request_id": id, "ts": ts_ms, "item": "i1"})
}

fn typed(mut event: Value, kind: &str) -> Value {
    event["type"] = kind.into();
    event
}

fn invalid(scrape: &Exposition, topic: &str, reason: &str) -> f64 {
    let labels = [("topic", topic), ("reason", reason)];
    scrape
        .value("abgauge_invalid_records_total", &labels)
        .unwrap_or(0.0)
}

fn matched(scrape: &Exposition) -> f64 {
    scrape.sum("abgauge_click_results_total", &[("result", "matched")])
}

/// Sends `n` lists with a type, clicks on them without one, and lists without one to a single topic.
fn one_topic(kafka: &Kafka, n: u32, more: &str) -> (Feed, Daemon, Exposition) {
    let mut feed = Feed::in_one_topic(kafka, 1);
    for number in 0..n {
        let (id, ts_ms) = (format!("r-{number}"), now_ms());
        feed.list(0, &typed(list(&id, ts_ms), "served"));
        feed.click(0, &click(&id, ts_ms + 1));
    }
    feed.list(0, &list("untyped", now_ms()));
    feed.flush();
    let mut daemon = feed.daemon(kafka, more);
    let scrape = feed.wait_until_read(&mut daemon);
    (feed, daemon, scrape)
}

/// The topic used to decide "served" for every record without a type.
#[test]
fn a_shared_topic_does_not_imply_the_type_of_a_record() {
    let kafka = Kafka::shared();
    let (feed, _, scrape) = one_topic(&kafka, 5, "");
    assert_eq!(invalid(&scrape, &feed.served, "missing_field"), 6.0);
    assert_eq!(matched(&scrape), 0.0);
    let accepted = [("topic", feed.served.as_str()), ("outcome", "accepted")];
    assert_eq!(scrape.value("abgauge_records_total", &accepted), Some(5.0));
}

#[test]
fn without_type_sets_the_missing_type_in_a_shared_topic() {
    let kafka = Kafka::shared();
    let (feed, _, scrape) = one_topic(&kafka, 5, "events.without_type = \"click\"");
    assert_eq!(matched(&scrape), 5.0, "each click found its list");
    let missing = invalid(&scrape, &feed.served, "missing_field");
    assert_eq!(missing, 1.0, "the list without a type, read as a click");
}

/// A click in the topic of lists used to be joined or not, depending on which topic was read first.
#[test]
fn a_type_that_contradicts_its_topic_is_invalid_in_both_shapes() {
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 1);
    let (served, clicks) = (feed.served.clone(), feed.clicks.clone());
    let ts_ms = now_ms();
    let send = |feed: &mut Feed, topic: &str, event: Value| {
        feed.send(topic, 0, Some(event.to_string().as_bytes()));
    };
    for event in [list("r", ts_ms), typed(list("s", ts_ms), "served")] {
        send(&mut feed, &served, event);
    }
    send(&mut feed, &served, typed(click("r", ts_ms), "click"));
    send(&mut feed, &served, typed(json!({}), "scroll"));
    for event in [click("r", ts_ms), typed(click("s", ts_ms), "click")] {
        send(&mut feed, &clicks, event);
    }
    send(&mut feed, &clicks, typed(list("t", ts_ms), "served"));
    feed.flush();
    for more in ["", "events.ts_unit = \"ms\""] {
        let mut daemon = feed.daemon(&kafka, more);
        let scrape = feed.wait_until_read(&mut daemon);
        for topic in [&served, &clicks] {
            assert_eq!(invalid(&scrape, topic, "wrong_topic"), 1.0, "{topic}");
            let accepted = [("topic", topic.as_str()), ("outcome", "accepted")];
            assert_eq!(scrape.value("abgauge_records_total", &accepted), Some(2.0));
        }
        let ignored = [("topic", served.as_str()), ("outcome", "ignored")];
        assert_eq!(scrape.value("abgauge_records_total", &ignored), Some(1.0));
        assert_eq!(matched(&scrape), 2.0);
    }
}
