//! Our own records, written in the shapes and encodings of other producers.

use std::sync::Arc;

use abgauge_core::decode::schema::{AvroSchema, ProtobufFile, Schema};
use abgauge_core::decode::shape::{Path, Paths, Shape};
use serde_json::{Value, json};

fn path(text: &str) -> Paths {
    Paths::from(Path::parse(text).expect("a path"))
}

/// A shape whose fields are side by side.
pub fn flat_shape() -> Shape {
    let mut shape = Shape {
        kind: None,
        ..Shape::default()
    };
    shape.served.request_id = path("rec_id");
    shape.served.user_id = Some(path("uid"));
    shape.served.ts = path("time");
    shape.served.items = path("shown");
    shape.served.arms.experiments = None;
    shape.served.arms.experiment_name = Some("ranker".to_owned());
    shape.served.arms.arm = Some(path("variant"));
    shape.click.request_id = path("rec_id");
    shape.click.user_id = Some(path("uid"));
    shape.click.ts = path("time");
    shape.click.item = path("sku");
    shape
}

pub fn flat(own: String) -> Vec<u8> {
    let own = parsed(&own);
    let record = match own.get("items") {
        Some(items) => json!({
            "rec_id": own["request_id"],
            "uid": own["user_id"],
            "time": own["ts"],
            "variant": own["experiments"]["ranker"],
            "shown": items,
        }),
        None => json!({"rec_id": own["request_id"], "time": own["ts"], "sku": own["item"]}),
    };
    record.to_string().into_bytes()
}

/// A shape with objects in objects, and items that are objects.
pub fn nested_shape() -> Shape {
    let mut shape = flat_shape();
    shape.served.request_id = path("data.recommendation.id");
    shape.served.user_id = Some(path("context.user.id"));
    shape.served.ts = path("context.time");
    shape.served.items = path("data.recommendation.items");
    shape.served.item_id = Some(path("sku"));
    shape.served.arms.arm = Some(path("context.variant"));
    shape.click.request_id = path("data.recommendation.id");
    shape.click.user_id = Some(path("context.user.id"));
    shape.click.ts = path("context.time");
    shape.click.item = path("data.sku");
    shape
}

pub fn nested(own: String) -> Vec<u8> {
    let own = parsed(&own);
    let context = json!({
        "time": own["ts"],
        "user": {"id": own["user_id"]},
        "variant": own["experiments"]["ranker"],
    });
    let data = match own["items"].as_array() {
        Some(items) => {
            let items: Vec<Value> = (1..)
                .zip(items)
                .map(|(place, item)| json!({"sku": item, "place": place, "score": 0.5}))
                .collect();
            json!({"recommendation": {"id": own["request_id"], "items": items}})
        }
        None => json!({"recommendation": {"id": own["request_id"]}, "sku": own["item"]}),
    };
    json!({"context": context, "data": data}).to_string().into_bytes()
}

/// Schemas of lists and clicks of our own shape.
pub fn avro_schemas() -> [Arc<Schema>; 2] {
    let list = json!({"type": "record", "name": "List", "namespace": "shop", "fields": [
        {"name": "request_id", "type": "string"},
        {"name": "user_id", "type": ["null", "string"]},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "experiments", "type": {"type": "map", "values": "string"}},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ]});
    let click = json!({"type": "record", "name": "Click", "namespace": "shop", "fields": [
        {"name": "request_id", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "item", "type": "string"},
    ]});
    [list, click].map(|schema| {
        let schema = AvroSchema::parse(&schema.to_string()).expect("a schema");
        Arc::new(Schema::Avro(schema))
    })
}

pub fn avro(own: String) -> Vec<u8> {
    let own = parsed(&own);
    let mut record = Vec::new();
    text(&own["request_id"], &mut record);
    match own["items"].as_array() {
        Some(items) => {
            long(1, &mut record);
            text(&own["user_id"], &mut record);
            long(own["ts"].as_i64().expect("a number"), &mut record);
            long(1, &mut record);
            text(&Value::from("ranker"), &mut record);
            text(&own["experiments"]["ranker"], &mut record);
            long(0, &mut record);
            long(items.len() as i64, &mut record);
            items.iter().for_each(|item| text(item, &mut record));
            long(0, &mut record);
        }
        None => {
            long(own["ts"].as_i64().expect("a number"), &mut record);
            text(&own["item"], &mut record);
        }
    }
    record
}

/// Message types of lists and clicks of our own shape.
pub fn protobuf_schemas() -> [Arc<Schema>; 2] {
    let text = r#"
        syntax = "proto3";
        package shop;
        message List {
          string request_id = 1;
          optional string user_id = 2;
          int64 ts = 3;
          map<string, string> experiments = 4;
          repeated string items = 5;
        }
        message Click { string request_id = 1; int64 ts = 2; string item = 3; }
    "#;
    let file = ProtobufFile::parse(text, &[]).expect("a schema");
    [0, 1].map(|index| Arc::clone(file.by_indexes(&[index]).expect("a message type")))
}

pub fn protobuf(own: String) -> Vec<u8> {
    let own = parsed(&own);
    let mut record = Vec::new();
    field(1, &own["request_id"], &mut record);
    match own["items"].as_array() {
        Some(items) => {
            field(2, &own["user_id"], &mut record);
            record.push(3 << 3);
            varint(own["ts"].as_i64().expect("a number") as u64, &mut record);
            let mut entry = Vec::new();
            field(1, &Value::from("ranker"), &mut entry);
            field(2, &own["experiments"]["ranker"], &mut entry);
            record.push(4 << 3 | 2);
            varint(entry.len() as u64, &mut record);
            record.extend(entry);
            items.iter().for_each(|item| field(5, item, &mut record));
        }
        None => {
            record.push(2 << 3);
            varint(own["ts"].as_i64().expect("a number") as u64, &mut record);
            field(3, &own["item"], &mut record);
        }
    }
    record
}

/// Field of text.
fn field(number: u8, value: &Value, to: &mut Vec<u8>) {
    let text = value.as_str().expect("text");
    to.push(number << 3 | 2);
    varint(text.len() as u64, to);
    to.extend(text.as_bytes());
}

fn text(value: &Value, to: &mut Vec<u8>) {
    let text = value.as_str().expect("text");
    long(text.len() as i64, to);
    to.extend(text.as_bytes());
}

/// Zigzag integer.
fn long(number: i64, to: &mut Vec<u8>) {
    varint((number << 1 ^ number >> 63) as u64, to);
}

fn varint(mut rest: u64, to: &mut Vec<u8>) {
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn parsed(own: &str) -> Value {
    serde_json::from_str(own).expect("JSON")
}
