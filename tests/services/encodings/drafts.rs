//! `check --connect --suggest`: drafts settings for topics in each format, which then read all records.

use abgauge::settings;
use abgauge::tools::check;
use serde_json::{Value, json};

use super::world::{self, Format};
use crate::support::clients::{Client, Written};
use crate::support::kafka::Kafka;
use crate::support::registry::Registry;
use crate::support::{program, tools};

const N_LISTS: i64 = 300;
const ARMS: [&str; 2] = ["control", "neural"];

/// Avro schemas of lists and clicks with names of their own.
fn avro() -> [Value; 2] {
    let time = json!({"type": "long", "logicalType": "timestamp-millis"});
    let of = |name: &str, fields: Value| json!({"type": "record", "name": name, "namespace": "shop", "fields": fields});
    let test = of(
        "Test",
        json!([{"name": "test", "type": "string"}, {"name": "variant", "type": "string"}]),
    );
    let slot = of(
        "Slot",
        json!([{"name": "sku", "type": "string"}, {"name": "price", "type": "double"}]),
    );
    [
        of(
            "Shelf",
            json!([
                {"name": "trace", "type": "string"},
                {"name": "member", "type": ["null", "string"]},
                {"name": "shown_at", "type": time},
                {"name": "tests", "type": {"type": "array", "items": test}},
                {"name": "slots", "type": {"type": "array", "items": slot}},
            ]),
        ),
        of(
            "Tap",
            json!([
                {"name": "trace", "type": "string"},
                {"name": "tapped_at", "type": time},
                {"name": "sku", "type": "string"},
            ]),
        ),
    ]
}

/// The same messages in one Protobuf file.
fn protobuf() -> [Value; 2] {
    let text = r#"syntax = "proto3";
package shop;
message Shelf {
  string trace = 1; optional string member = 2; int64 shown_at = 3; repeated Test tests = 4; repeated Slot slots = 5;
}
message Test { string test = 1; string variant = 2; }
message Slot { string sku = 1; double price = 2; }
message Tap { string trace = 1; int64 tapped_at = 2; string sku = 3; }
"#;
    ["shop.Shelf", "shop.Tap"].map(|message| world::protobuf_file(text, message))
}

fn json_schemas() -> [Value; 2] {
    ["Shelf", "Tap"].map(|title| json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": title, "type": "object"}))
}

/// Returns lists, and a click on each third.
fn events() -> [Vec<Value>; 2] {
    let start_ms = world::now_ms() - 600_000;
    let mut events = [Vec::new(), Vec::new()];
    for n in 0..N_LISTS {
        let slots: Vec<Value> = (0..5)
            .map(|slot| json!({"sku": format!("sku-{}", (7 * n + slot) % 90), "price": 1.5}))
            .collect();
        let (trace, shown_at) = (format!("trace-{n}"), start_ms + 1000 * n);
        if n % 3 == 0 {
            events[1].push(json!({"trace": trace, "tapped_at": shown_at + 700, "sku": slots[2]["sku"]}));
        }
        events[0].push(json!({
            "trace": trace,
            "member": format!("member-{}", n % 40),
            "shown_at": shown_at,
            "tests": [{"test": "ranker", "variant": ARMS[n as usize % 2]}],
            "slots": slots,
        }));
    }
    events
}

#[test]
fn settings_are_drafted_from_topics_in_each_format() {
    let kafka = Kafka::shared();
    let registry = Registry::shared();
    let [lists, clicks] = events();
    let formats = [
        (Format::Avro, "confluent", avro()),
        (Format::ProtobufOfBoth, "confluent", protobuf()),
        (Format::Json, "json", json_schemas()),
    ];
    let mut schemas = Vec::new();
    let mut records = Vec::new();
    let mut topics = Vec::new();
    for (format, framing, of_format) in formats {
        let pair = ["served", "clicks"].map(|stem| kafka.new_topic(stem, world::N_PARTITIONS));
        for ((topic, schema), events) in pair.iter().zip(of_format).zip([&lists, &clicks]) {
            records.extend((0..).zip(events).map(|(n, value)| Written {
                topic: topic.clone(),
                partition: n % world::N_PARTITIONS,
                framing,
                schema: schemas.len(),
                value: value.clone(),
            }));
            schemas.push(schema);
        }
        topics.push((format, pair));
    }
    Client::Python.write(&kafka, [&registry.url(), &registry.root()], &schemas, &records);
    let dir = tools::temporary_dir("drafts");
    for (format, [served, clicks]) in topics {
        let own = format!(
            "registry.url = \"{}\"\nkafka.brokers = \"{}\"\nkafka.served_topic = \"{served}\"\nkafka.clicks_topic = \"{clicks}\"\n",
            registry.url(),
            kafka.brokers(),
        );
        let path = program::file(&dir, "abgauge.toml", &own);
        // The format is not set, but detected.
        let ran = program::run(&["check", "--connect", "--suggest", "--config", &path]);
        let draft = &ran.stdout;
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(0), ""),
            "{format:?}: {draft}"
        );
        let counted = "records: 400; with it, served lists: 300, clicks: 100, ignored: 0, refused: 0";
        assert!(draft.contains(counted), "{format:?}: {draft}");
        assert!(draft.contains("control 150, neural 150"), "{format:?}: {draft}");
        if format == Format::Avro {
            let blind = own.replace("registry.url", "#registry.url");
            let path = program::file(&dir, "blind.toml", &blind);
            let ran = program::run(&["check", "--connect", "--suggest", "--config", &path]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(65), ""), "{}", ran.stderr);
            let remedy = "300 records cannot be read: they name schemas of a registry: set registry.url";
            assert!(ran.stderr.contains(remedy), "{}", ran.stderr);
        }
        let config = settings::load_text("abgauge.toml", &format!("{own}\n{draft}"), std::iter::empty());
        let config = config.unwrap_or_else(|errors| panic!("{errors}: {draft}"));
        let findings = check::connect(&config);
        for (topic, n) in [(&served, 300), (&clicks, 100)] {
            let readable = format!("topic `{topic}`: the last {n} records can be read");
            let mut texts = findings.iter().map(|finding| &finding.text);
            assert!(texts.any(|text| *text == readable), "{format:?}: {findings:#?}");
        }
    }
}
