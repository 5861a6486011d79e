//! Keys that separate clicks from their lists are reported in telemetry and in the log.

use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::traffic::{now_ms, scrape, warnings};

/// Number of records, more than a verdict needs to distinguish the partitioners.
const N: usize = 400;

/// Partitioner of a topic's records.
#[derive(Clone, Copy)]
enum Keyed {
    Murmur2,
    Crc32,
    /// Records have no key.
    Null,
    /// Partitions follow an unknown partitioner.
    Foreign,
}

/// Writes lists to one topic and clicks to the other. Waits until telemetry has counted each of `findings` (topic and
/// finding). Each of `reported` must appear once in the log and in the API, and nothing else about keys.
#[track_caller]
fn check(served: Keyed, clicks: Keyed, findings: &[(&str, &str)], reported: &[&str]) {
    let kafka = Kafka::shared();
    let topics = [
        ("served", kafka.new_topic("served", 4)),
        ("clicks", kafka.new_topic("clicks", 4)),
    ];
    write(&kafka, &topics[0].1, served, |id, ts_ms| {
        format!(r#"{{"request_id":"{id}","ts":{ts_ms},"experiments":{{"e":"a"}},"items":["i"]}}"#)
    });
    write(&kafka, &topics[1].1, clicks, |id, ts_ms| {
        format!(r#"{{"request_id":"{id}","ts":{ts_ms},"item":"i"}}"#)
    });
    let mut daemon = Daemon::run(&format!(
        "kafka.brokers = \"{}\"\nkafka.served_topic = \"{}\"\nkafka.clicks_topic = \"{}\"\nkafka.group_id = \"{}\"",
        kafka.brokers(),
        topics[0].1,
        topics[1].1,
        kafka.unique("group"),
    ));
    daemon.wait_until_ready();
    for (stem, finding) in findings {
        let topic = &topics
            .iter()
            .find(|(side, _)| side == stem)
            .expect("one of both")
            .1;
        let labels = [("topic", topic.as_str()), ("finding", *finding)];
        daemon.wait_until(&format!("{labels:?} to be counted"), |daemon| {
            let count = scrape(daemon)?.value("abgauge_key_findings_total", &labels)?;
            (count >= 50.0).then_some(())
        });
    }
    let about_keys = |daemon: &Daemon| -> Vec<String> {
        let lines = warnings(daemon).into_iter();
        lines.filter(|line| line.contains("key")).collect()
    };
    let reported: Vec<String> = reported
        .iter()
        .map(|words| {
            words
                .replace("SERVED", &topics[0].1)
                .replace("CLICKS", &topics[1].1)
        })
        .collect();
    let lines = daemon.wait_until("the log to tell", |daemon| {
        let lines = about_keys(daemon);
        (lines.len() >= reported.len()).then_some(lines)
    });
    assert_eq!(lines.len(), reported.len(), "{lines:#?}");
    for words in &reported {
        assert!(
            lines.iter().any(|line| line.starts_with(words)),
            "{words:?} in {lines:#?}"
        );
    }
    let api: Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
    let shown = api["stream"]["warnings"].as_array().expect("warnings");
    // Warnings about topics without a timestamp guard are excluded.
    let is_of_keys = |warning: &&Value| warning["runbook"] != "AbgaugeEventAhead";
    let shown = shown
        .iter()
        .filter(is_of_keys)
        .map(|warning| warning["message"].clone());
    assert_eq!(
        shown.collect::<Vec<_>>(),
        lines.iter().cloned().map(Value::from).collect::<Vec<_>>()
    );
    // More records do not add log lines.
    write(&kafka, &topics[0].1, served, |id, ts_ms| {
        format!(r#"{{"request_id":"again-{id}","ts":{ts_ms},"experiments":{{"e":"a"}},"items":["i"]}}"#)
    });
    daemon.wait_until("all lists", |daemon| {
        let read = scrape(daemon)?.sum("abgauge_records_total", &[("topic", &topics[0].1)]);
        (read == 2.0 * N as f64).then_some(())
    });
    assert_eq!(about_keys(&daemon), lines, "each is told once");
}

fn write(kafka: &Kafka, topic: &str, keyed: Keyed, event: impl Fn(&str, i64) -> String) {
    let partitioner = match keyed {
        Keyed::Crc32 => "consistent_random",
        Keyed::Murmur2 | Keyed::Null | Keyed::Foreign => "murmur2_random",
    };
    let producer = kafka.producer_with(&[("partitioner", partitioner)]);
    for number in 0..N {
        let id = format!("r-{number}");
        let event = event(&id, now_ms());
        let (key, partition) = match keyed {
            Keyed::Murmur2 | Keyed::Crc32 => (Some(id.as_bytes()), None),
            Keyed::Null => (None, None),
            Keyed::Foreign => (Some(id.as_bytes()), Some((number % 4) as i32)),
        };
        producer.produce(topic, partition, key, Some(event.as_bytes()), None);
    }
    producer.flush();
}

#[test]
fn different_partitioners_are_named() {
    check(
        Keyed::Murmur2,
        Keyed::Crc32,
        &[("served", "murmur2"), ("clicks", "crc32")],
        &[
            "about 3 of 4 clicks find no list, because producers use different partitioners: topic `CLICKS` is keyed with CRC32 \
             (librdkafka's default), topic `SERVED` with murmur2 (Java's): set partitioner=murmur2_random in the producers of \
             `CLICKS`",
        ],
    );
}

#[test]
fn null_and_foreign_keys_are_named() {
    check(
        Keyed::Null,
        Keyed::Foreign,
        &[("served", "null"), ("clicks", "foreign")],
        &[
            "topic `SERVED` has records without a key or with an empty one",
            "topic `CLICKS` has keys in partitions that neither murmur2",
        ],
    );
}

#[test]
fn topics_keyed_alike_give_no_alarm() {
    check(
        Keyed::Crc32,
        Keyed::Crc32,
        &[("served", "crc32"), ("clicks", "crc32")],
        &[],
    );
}
