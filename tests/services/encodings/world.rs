//! A random world in our own shape, and the same events by schemas that evolve in mid-stream.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protox::prost::Message as _;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

use crate::support::tools;

pub const N_PARTITIONS: i32 = 3;
pub const N_STAGES: usize = 4;

const N_LISTS: i64 = 240;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    List,
    Click,
}

/// Event in our own shape.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: Kind,
    pub partition: i32,
    pub json: Value,
    /// Number of the schema that its producer has at that time.
    pub stage: usize,
}

/// Returns lists and clicks in order of time.
pub fn world(seed: u64) -> Vec<Event> {
    let mut dice = Pcg64::seed_from_u64(seed);
    let start_ms = now_ms() - 600_000;
    let mut events = Vec::new();
    for n in 0..N_LISTS {
        let stage = (n * N_STAGES as i64 / N_LISTS) as usize;
        let ts_ms = start_ms + n * 1000;
        let id = format!("r{n}");
        let partition = dice.random_range(0..N_PARTITIONS);
        // The last schema has longer integers.
        let first: i64 = if stage == N_STAGES - 1 { 1 << 33 } else { 1 };
        let n_items = dice.random_range(0..12);
        let items = rand::seq::index::sample(&mut dice, 40, n_items);
        let items: Vec<i64> = items.iter().map(|item| first + item as i64).collect();
        let user = match dice.random_ratio(1, 10) {
            true => Value::Null,
            false => format!("u{}", dice.random_range(0..50)).into(),
        };
        let arm = *["control", "neural", "grün"].choose(&mut dice).expect("some arm");
        let list = json!({"request_id": id, "user_id": user, "ts": ts_ms, "experiments": {"ranker": arm}, "items": items});
        let mut add = |kind, ts_ms: i64, json| {
            events.push((
                ts_ms,
                Event {
                    kind,
                    partition,
                    json,
                    stage,
                },
            ))
        };
        add(Kind::List, ts_ms, list);
        for _ in 0..dice.random_range(0..3) {
            let ts_ms = ts_ms + dice.random_range(0..900);
            let item = match dice.random_ratio(1, 5) {
                true => first + 50,
                false => items.choose(&mut dice).copied().unwrap_or(first),
            };
            add(
                Kind::Click,
                ts_ms,
                json!({"request_id": id, "user_id": user, "ts": ts_ms, "item": item}),
            );
        }
    }
    // A click may have the time of its list. Then it still comes after it.
    events.sort_by_key(|(ts_ms, _)| *ts_ms);
    events.into_iter().map(|(_, event)| event).collect()
}

/// Format of a schema, and its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Avro,
    /// With a file for each message.
    Protobuf,
    /// With one file for both messages.
    ProtobufOfBoth,
    Json,
}

/// Returns the schemas of all formats and stages.
pub fn schemas() -> Vec<Value> {
    let mut schemas = Vec::new();
    for kind in [Kind::List, Kind::Click] {
        for stage in 0..N_STAGES {
            schemas.extend([
                avro_schema(kind, stage),
                protobuf_schema(kind, stage, false),
                protobuf_schema(kind, stage, true),
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": name_of(kind), "type": "object"}),
            ]);
        }
    }
    schemas
}

/// Returns the index of a schema among [`schemas`].
pub fn schema_of(kind: Kind, stage: usize, format: Format) -> usize {
    (kind as usize * N_STAGES + stage) * 4 + format as usize
}

/// Returns the Avro schema of a kind of event. Each stage differs from the one before:
///
/// 1. a field is added, and all are reordered,
/// 2. `request_id` is renamed, and two fields are made nullable,
/// 3. `int` is made `long`.
pub fn avro_schema(kind: Kind, stage: usize) -> Value {
    let nullable = |schema: Value| match stage {
        0 | 1 => schema,
        _ => json!(["null", schema]),
    };
    let item = if stage == 3 { "long" } else { "int" };
    let id = if stage >= 2 { "list_id" } else { "request_id" };
    let mut fields = vec![
        json!({"name": id, "type": "string"}),
        json!({"name": "user_id", "type": ["null", "string"], "default": null}),
        json!({"name": "ts", "type": nullable(json!({"type": "long", "logicalType": "timestamp-millis"}))}),
    ];
    match kind {
        Kind::List => fields.extend([
            json!({"name": "experiments", "type": {"type": "map", "values": "string"}}),
            json!({"name": "items", "type": nullable(json!({"type": "array", "items": item}))}),
        ]),
        Kind::Click => fields.push(json!({"name": "item", "type": item})),
    }
    if stage > 0 {
        fields.push(json!({"name": "source", "type": "string", "default": ""}));
        fields.reverse();
    }
    json!({"type": "record", "name": name_of(kind), "namespace": "shop.events", "fields": fields})
}

/// Returns the Protobuf schema of a kind of event. Stages change the file as those of Avro do; numbers of fields stay the same. The
/// file has both messages, or only this one.
pub fn protobuf_schema(kind: Kind, stage: usize, has_both: bool) -> Value {
    let (id, int) = (
        if stage >= 2 { "list_id" } else { "request_id" },
        if stage == 3 { "int64" } else { "int32" },
    );
    let optional = if stage >= 2 { "optional " } else { "" };
    let messages = [Kind::List, Kind::Click].map(|kind| {
        let mut fields = vec![
            format!("string {id} = 1;"),
            "optional string user_id = 2;".to_owned(),
            format!("{optional}int64 ts = 3;"),
        ];
        match kind {
            Kind::List => fields.extend([
                "map<string, string> experiments = 4;".to_owned(),
                format!("repeated {int} items = 5;"),
            ]),
            Kind::Click => fields.push(format!("{int} item = 4;")),
        }
        if stage > 0 {
            fields.push("string source = 6;".to_owned());
            fields.reverse();
        }
        format!("message {} {{\n  {}\n}}\n", name_of(kind), fields.join("\n  "))
    });
    let messages = if has_both {
        messages.concat()
    } else {
        messages[kind as usize].clone()
    };
    let text = format!("syntax = \"proto3\";\npackage shop.events;\n{messages}");
    protobuf_file(&text, &format!("shop.events.{}", name_of(kind)))
}

/// Returns a message of a Protobuf file, as clients need it.
pub fn protobuf_file(text: &str, message: &str) -> Value {
    let dir = tools::temporary_dir("proto");
    let path = dir.path().join("events.proto");
    fs::write(&path, text).expect("write the file");
    let set = protox::compile([&path], [dir.path()]).expect("it is Protobuf");
    let set = STANDARD.encode(set.encode_to_vec());
    json!({"proto": text, "set": set, "message": message})
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::List => "Impression",
        Kind::Click => "Click",
    }
}

/// Returns the value of an event by the schema of a stage.
pub fn by_stage(event: &Event, stage: usize, format: Format) -> Value {
    let mut value = event.json.clone();
    if format == Format::Json {
        return value;
    }
    let fields = value.as_object_mut().expect("an object");
    if format != Format::Avro {
        // Protobuf has no null.
        fields.retain(|_, field| !field.is_null());
    }
    if stage > 0 {
        fields.insert("source".to_owned(), "home".into());
    }
    if stage >= 2 {
        let id = fields.remove("request_id").expect("an id");
        fields.insert("list_id".to_owned(), id);
    }
    value
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_millis() as i64
}
