//! Avro and Protobuf records read directly and by paths. `fuzz/fuzz_targets/encoded.rs` runs the same check on other inputs.

use std::sync::{Arc, LazyLock};

use abgauge_core::decode::Decoder;
use abgauge_core::decode::schema::{AvroSchema, ProtobufFile, RawRecord, Schema};
use abgauge_core::decode::shape::{Paths, Shape};
use abgauge_core::engine::event::{Batch, Body, Kind, Position, Side};

const AVRO: &str = r#"{"type": "record", "name": "Event", "fields": [
    {"name": "type", "type": {"type": "enum", "name": "Type", "symbols": ["served", "click", "view"]}},
    {"name": "request_id", "type": ["null", "string", "long", {"type": "fixed", "name": "Id", "size": 2}]},
    {"name": "note", "type": ["null", {"type": "array", "items": {"type": "map", "values": "double"}}, "Event"]},
    {"name": "user_id", "type": ["null", "string", "bytes"]},
    {"name": "ts", "type": ["long", {"type": "long", "logicalType": "timestamp-micros"}, "double", "string"]},
    {"name": "experiments", "type": ["null", {"type": "map", "values": ["null", "string"]}]},
    {"name": "items", "type": ["null", {"type": "array", "items": ["string", "long",
        {"type": "record", "name": "Item", "fields": [{"name": "rank", "type": "int"}, {"name": "sku", "type": "string"}]}]}]},
    {"name": "item", "type": ["null", "string", "long"]}
]}"#;

const PROTOBUF: &str = r#"
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    import "google/protobuf/struct.proto";
    enum Type { served = 0; click = 1; view = 2; }
    message Flat {
      Type type = 1;
      string request_id = 2;
      optional string user_id = 3;
      int64 ts = 4;
      map<string, string> experiments = 5;
      repeated string items = 6;
      string item = 20;
      Flat note = 7;
    }
    message Rich {
      message Item { int32 rank = 1; string sku = 2; }
      Type type = 1;
      oneof id { google.protobuf.StringValue request_id = 2; int64 number = 9; Item other = 10; }
      google.protobuf.Value user_id = 3;
      google.protobuf.Timestamp ts = 4;
      google.protobuf.Struct experiments = 5;
      repeated Item items = 6;
      optional uint64 item = 20;
    }
    message Packed {
      string request_id = 2;
      fixed64 ts = 4;
      repeated sint32 items = 6;
      bytes item = 20;
    }
"#;

static SCHEMAS: LazyLock<Vec<Arc<Schema>>> = LazyLock::new(|| {
    let avro = AvroSchema::parse(AVRO).expect("a schema");
    let protobuf = ProtobufFile::parse(PROTOBUF, &[]).expect("a schema");
    let messages =
        ["Flat", "Rich", "Packed"].map(|name| protobuf.by_name(name).expect("a message type").clone());
    std::iter::once(Arc::new(Schema::Avro(avro)))
        .chain(messages)
        .collect()
});

static DECODERS: LazyLock<[Decoder; 2]> = LazyLock::new(|| {
    let mut shape = Shape::default();
    let own = Decoder::new(7, 20, 3).reading(Some(&shape));
    shape.served.item_id = Paths::parse("sku").ok();
    shape.click.request_id = Paths::parse("note.request_id").expect("a path");
    [own, Decoder::new(7, 20, 3).reading(Some(&shape))]
});

/// Everything about the events of a batch, without ranges.
fn content(batch: &Batch) -> Vec<String> {
    let events = batch.events.iter().map(|event| match &event.body {
        Body::Served(list) => {
            let arms = batch
                .arms_of(list)
                .iter()
                .map(|arm| (batch.text_of(&arm.experiment), batch.text_of(&arm.arm)));
            let arms: Vec<(&str, &str)> = arms.collect();
            format!(
                "{} {:?} {} {:?} {arms:?}",
                list.id,
                list.user,
                list.ts_ms,
                batch.items_of(list)
            )
        }
        Body::Invalid(reason, _) => format!("{reason:?}"),
        body => format!("{body:?}"),
    });
    events.collect()
}

/// Reads the input as a record. Its first byte selects the schema, the shape and the kind of the topic.
///
/// # Panics
/// If the direct way differs from reading by paths.
pub fn check(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else {
        return;
    };
    let first = usize::from(*first);
    let schema = &*SCHEMAS[first % SCHEMAS.len()];
    let decoder = &DECODERS[first / 4 % 2];
    let topic_kind = [None, Some(Kind::Served), Some(Kind::Click)][first / 8 % 3];
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let record = RawRecord {
        bytes,
        schema: Some(schema),
    };
    let mut by_paths = Batch::default();
    decoder.decode_raw_by_paths(record, topic_kind, at, &mut by_paths);
    let mut batch = Batch::default();
    // The second time, arms are remembered.
    for _ in 0..2 {
        batch.events.clear();
        decoder.decode_raw(record, topic_kind, at, &mut batch);
        assert_eq!(content(&batch), content(&by_paths));
    }
    decoder.explain(record, topic_kind);
    record.to_json();
}
