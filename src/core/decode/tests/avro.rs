//! Records of Avro: they give the same events as the same records in JSON.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::decode::schema::{AvroSchema, RawRecord, Schema};
use crate::decode::shape::{ArmsShape, Paths, TsUnit, Zone};

/// Writes a value by its schema. A union takes the first branch that fits.
fn write(schema: &Json, value: &Json, to: &mut Vec<u8>) {
    let word = schema.as_str().or_else(|| schema["type"].as_str());
    match (schema, word) {
        (Json::Array(branches), _) => {
            let fits = |branch: &Json| match branch.as_str().or_else(|| branch["type"].as_str()) {
                Some("null") => value.is_null(),
                Some("string") => value.is_string(),
                Some("long" | "int") => value.is_i64(),
                Some("array") => value.is_array(),
                _ => value.is_object(),
            };
            let branch = branches.iter().position(fits).expect("a branch that fits");
            long(branch as i64, to);
            write(&branches[branch], value, to);
        }
        (_, Some("null")) => {}
        (_, Some("boolean")) => to.push(value.as_bool().expect("a flag").into()),
        (_, Some("int" | "long")) => long(value.as_i64().expect("an integer"), to),
        (_, Some("double")) => to.extend(value.as_f64().expect("a number").to_le_bytes()),
        (_, Some("string" | "bytes")) => text(value.as_str().expect("text"), to),
        (_, Some("array")) => {
            let elements = value.as_array().expect("an array");
            // In blocks of two elements. Every second block starts with its size.
            for (n, block) in elements.chunks(2).enumerate() {
                let mut bytes = Vec::new();
                block
                    .iter()
                    .for_each(|element| write(&schema["items"], element, &mut bytes));
                block_of(n, block.len(), &bytes, to);
            }
            long(0, to);
        }
        (_, Some("map")) => {
            let entries: Vec<_> = value.as_object().expect("an object").iter().collect();
            for (n, (name, value)) in entries.into_iter().enumerate() {
                let mut bytes = Vec::new();
                text(name, &mut bytes);
                write(&schema["values"], value, &mut bytes);
                block_of(n, 1, &bytes, to);
            }
            long(0, to);
        }
        (_, Some("record")) => {
            for field in schema["fields"].as_array().expect("fields") {
                write(
                    &field["type"],
                    &value[field["name"].as_str().expect("a name")],
                    to,
                );
            }
        }
        (schema, _) => panic!("{schema}"),
    }
}

fn block_of(n: usize, len: usize, bytes: &[u8], to: &mut Vec<u8>) {
    let len = len as i64;
    match n % 2 {
        0 => long(len, to),
        _ => {
            long(-len, to);
            long(bytes.len() as i64, to);
        }
    }
    to.extend(bytes);
}

fn text(text: &str, to: &mut Vec<u8>) {
    long(text.len() as i64, to);
    to.extend(text.as_bytes());
}

fn long(number: i64, to: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn parsed(schema: &Json) -> Schema {
    Schema::Avro(AvroSchema::parse(&schema.to_string()).expect("a schema"))
}

fn record(fields: &Json) -> Json {
    json!({"type": "record", "name": "Event", "fields": fields})
}

/// Checks that a record in Avro gives the event of the same record in JSON.
#[track_caller]
fn check_same(shape: Option<&Shape>, schema: &Json, value: &Json) -> Read {
    let decoder = decoder().reading(shape);
    let mut bytes = Vec::new();
    write(schema, value, &mut bytes);
    let by_schema = read_by(&decoder, &parsed(schema), &bytes, None);
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    decoder.decode(Some(value.to_string().as_bytes()), None, at, &mut batch);
    assert_eq!(by_schema, read(&batch, &batch.events[0]), "{value}");
    by_schema
}

fn own_schema() -> Json {
    record(&json!([
        {"name": "type", "type": "string"},
        {"name": "request_id", "type": ["null", "string", "long"]},
        {"name": "user_id", "type": ["null", "string"]},
        {"name": "ts", "type": "long"},
        {"name": "note", "type": ["null", {"type": "array", "items": {"type": "map", "values": "long"}}]},
        {"name": "experiments", "type": ["null", {"type": "map", "values": ["null", "string"]}]},
        {"name": "items", "type": ["null", {"type": "array", "items": ["string", "long"]}]},
        {"name": "item", "type": ["null", "string", "long"]},
    ]))
}

#[test]
fn a_list_and_a_click_are_those_of_json() {
    let list = json!({
        "type": "served", "request_id": "r-1", "user_id": "u-7", "ts": 1_763_596_800_123_i64, "note": [{"a": 1}, {}],
        "experiments": {"layout": null, "ranker": "neural"}, "items": ["i5", 9, "i9"], "item": null,
    });
    let Read::List { items, arms, .. } = check_same(None, &own_schema(), &list) else {
        panic!("a list");
    };
    assert_eq!((items.len(), arms), (3, vec![arm("ranker", "neural")]));
    let click = json!({
        "type": "click", "request_id": 7, "user_id": null, "ts": 1_763_596_800_123_i64, "note": null,
        "experiments": null, "items": null, "item": "i5",
    });
    assert!(matches!(
        check_same(None, &own_schema(), &click),
        Read::Click { .. }
    ));
}

#[test]
fn paths_lead_through_records_and_items_may_be_records() {
    let path = |text| Paths::parse(text).expect(text);
    let mut shape = Shape::default();
    shape.served.request_id = path("data.rec");
    shape.served.ts = path("ctx.time");
    shape.served.items = path("data.shown");
    shape.served.item_id = Some(path("sku"));
    shape.served.arms = ArmsShape {
        experiment_name: Some("ranker".to_owned()),
        arm: Some(path("ctx.variant")),
        ..ArmsShape::default()
    };
    let inner = |name: &str, fields: Json| json!({"type": "record", "name": name, "fields": fields});
    let item = inner(
        "Item",
        json!([{"name": "score", "type": "double"}, {"name": "sku", "type": "string"}]),
    );
    let ctx = inner(
        "Ctx",
        json!([{"name": "variant", "type": "string"}, {"name": "time", "type": "long"}]),
    );
    let data = inner(
        "Data",
        json!([{"name": "shown", "type": {"type": "array", "items": item}}, {"name": "rec", "type": "string"}]),
    );
    let schema = record(&json!([
        {"name": "data", "type": ["null", data]}, {"name": "ctx", "type": ctx}, {"name": "type", "type": "string"},
    ]));
    let list = json!({
        "type": "served", "ctx": {"variant": "a", "time": 1_763_596_800_123_i64},
        "data": {"rec": "r", "shown": [{"score": 0.5, "sku": "i1"}, {"score": 1.5, "sku": "i2"}, {"score": 0.0, "sku": "ü"}]},
    });
    let Read::List { items, .. } = check_same(Some(&shape), &schema, &list) else {
        panic!("a list");
    };
    assert_eq!(items.len(), 3);
    let absent = json!({"type": "served", "ctx": {"variant": "a", "time": 1}, "data": null});
    assert_eq!(
        check_same(Some(&shape), &schema, &absent),
        Read::Invalid(Reason::MissingField)
    );
}

/// Reads a list with one field of this type, and these bytes.
fn list_with_field(name: &str, of: &Json, bytes: &[u8], shape: &Shape) -> Read {
    let others = [
        ("request_id", json!("string"), "r"),
        ("ts", json!("string"), "2025-11-20T00:00:00Z"),
        ("items", json!("string"), ""),
    ];
    let mut fields = vec![json!({"name": name, "type": of})];
    let mut all = bytes.to_vec();
    for (other, of, value) in others.into_iter().filter(|(other, ..)| *other != name) {
        match other {
            "items" => {
                fields.push(json!({"name": other, "type": {"type": "array", "items": "null"}}));
                long(0, &mut all);
            }
            _ => {
                fields.push(json!({"name": other, "type": of}));
                text(value, &mut all);
            }
        }
    }
    let decoder = decoder().reading(Some(shape));
    read_by(
        &decoder,
        &parsed(&record(&json!(fields))),
        &all,
        Some(Kind::Served),
    )
}

#[test]
fn times_carry_their_unit() {
    const MS: i64 = 1_763_596_800_123;
    let longs = |number| {
        let mut bytes = Vec::new();
        long(number, &mut bytes);
        bytes
    };
    let logical = |name: &str| json!({"type": "long", "logicalType": name});
    let own = Shape::default();
    let seconds = Shape {
        ts_unit: Some(TsUnit::Seconds),
        ..Shape::default()
    };
    let in_zone = Shape {
        ts_zone: Zone::parse("+01:00"),
        ..Shape::default()
    };
    let decimal = json!({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3});
    let mut of_decimal = Vec::new();
    long(8, &mut of_decimal);
    of_decimal.extend(MS.to_be_bytes());
    let double = |number: f64| number.to_le_bytes().to_vec();
    for (of, bytes, shape, expected) in [
        (logical("timestamp-millis"), longs(MS), &seconds, Ok(MS)),
        (logical("timestamp-micros"), longs(MS * 1_000 + 999), &own, Ok(MS)),
        (logical("timestamp-nanos"), longs(MS * 1_000_000), &own, Ok(MS)),
        (
            logical("local-timestamp-millis"),
            longs(MS),
            &own,
            Err(Reason::TsRange),
        ),
        (
            logical("local-timestamp-micros"),
            longs(MS * 1_000),
            &in_zone,
            Ok(MS - 3_600_000),
        ),
        (logical("no-such-type"), longs(MS), &own, Ok(MS)),
        (json!("long"), longs(MS / 1_000), &seconds, Ok(MS / 1_000 * 1_000)),
        (json!("long"), longs(MS / 1_000), &own, Err(Reason::TsSeconds)),
        (json!("long"), longs(0), &own, Err(Reason::TsRange)),
        (json!("double"), double(1_763_596_800.123), &seconds, Ok(MS)),
        (
            json!("double"),
            double(1_763_596_800.123),
            &own,
            Err(Reason::Number),
        ),
        (json!("double"), double(f64::NAN), &seconds, Err(Reason::Number)),
        (
            json!("double"),
            double(f64::INFINITY),
            &seconds,
            Err(Reason::Number),
        ),
        (
            json!("float"),
            1.763_596_8e9_f32.to_le_bytes().to_vec(),
            &seconds,
            Ok(1_763_596_800_000),
        ),
        (decimal, of_decimal, &seconds, Ok(MS)),
        (json!("boolean"), vec![1], &own, Err(Reason::WrongType)),
        (json!("boolean"), vec![2], &own, Err(Reason::Malformed)),
    ] {
        let found = match list_with_field("ts", &of, &bytes, shape) {
            Read::List { ts_ms, .. } => Ok(ts_ms),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{of}");
    }
}

#[test]
fn ids_are_their_usual_text() {
    let fixed = |size: u32, logical: &str| json!({"type": "fixed", "name": "F", "size": size, "logicalType": logical});
    let uuid = [
        0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0,
    ];
    let bytes_of = |bytes: &[u8]| {
        let mut all = Vec::new();
        long(bytes.len() as i64, &mut all);
        all.extend(bytes);
        all
    };
    let decimal =
        |scale: u32| json!({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale});
    let symbols = json!({"type": "enum", "name": "E", "symbols": ["A", "B"]});
    for (of, bytes, expected) in [
        (
            json!({"type": "string", "logicalType": "uuid"}),
            bytes_of(b"123e"),
            Ok("123e"),
        ),
        (
            fixed(16, "uuid"),
            uuid.to_vec(),
            Ok("123e4567-e89b-12d3-a456-426614174000"),
        ),
        (fixed(3, ""), vec![0, 0xab, 9], Ok("00ab09")),
        (fixed(2, "decimal"), vec![0xff, 0x85], Ok("-123")),
        (decimal(2), bytes_of(&[0x30, 0x39]), Err(Reason::Number)),
        (decimal(2), bytes_of(&[0x01, 0xf4]), Ok("5")),
        (decimal(0), bytes_of(&[0; 17]), Ok("0")),
        (decimal(0), bytes_of(&[1; 17]), Err(Reason::Number)),
        (json!("bytes"), bytes_of("ü".as_bytes()), Ok("ü")),
        (json!("bytes"), bytes_of(&[0xff]), Err(Reason::Malformed)),
        (json!("string"), bytes_of(&[0xff]), Err(Reason::Malformed)),
        (json!("string"), bytes_of(b""), Err(Reason::IdLength)),
        (symbols.clone(), vec![2], Ok("B")),
        (symbols, vec![4], Err(Reason::Malformed)),
        (json!("double"), 7_f64.to_le_bytes().to_vec(), Err(Reason::Number)),
        (json!("null"), vec![], Err(Reason::WrongType)),
        (
            json!({"type": "array", "items": "string"}),
            [bytes_of_block(&["r"])].concat(),
            Ok("r"),
        ),
    ] {
        let found = match list_with_field("request_id", &of, &bytes, &Shape::default()) {
            Read::List { id, .. } => Ok(id),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected.map(|id| hash().request(id.as_bytes())), "{of}");
    }
}

#[test]
fn items_are_text_of_any_length_in_utf_8() {
    let of = json!({"type": "array", "items": "string"});
    let read = |bytes: &[u8]| list_with_field("items", &of, bytes, &Shape::default());
    for middle in ["item-2", "grün", &"x".repeat(70), &"x".repeat(1_000)] {
        let texts = ["item-1", middle, "item-3"];
        let mut bytes = bytes_of_block(&texts);
        let Read::List { items, .. } = read(&bytes) else {
            panic!("a list: {middle}");
        };
        assert_eq!(items, texts.map(|item| hash().item(item.as_bytes())));
        for text in texts {
            let start = bytes
                .windows(text.len())
                .position(|bytes| bytes == text.as_bytes());
            let end = start.expect("it is there") + text.len();
            let byte = std::mem::replace(&mut bytes[end - 1], 0xff);
            assert_eq!(read(&bytes), Read::Invalid(Reason::Malformed), "{text}");
            bytes[end - 1] = byte;
        }
    }
}

fn bytes_of_block(texts: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    long(texts.len() as i64, &mut all);
    texts.iter().for_each(|one| text(one, &mut all));
    long(0, &mut all);
    all
}

#[test]
fn names_have_namespaces() {
    let item = json!({"type": "record", "name": "Item", "namespace": "shop.items", "fields": [
        {"name": "sku", "type": "string"}, {"name": "next", "type": ["null", "Item"]},
    ]});
    let list = json!({"type": "record", "name": "shop.List", "fields": [
        {"name": "items", "type": {"type": "array", "items": "shop.items.Item"}}, {"name": "parent", "type": ["null", "List"]},
    ]});
    assert!(AvroSchema::parse(&json!([item, list]).to_string()).is_ok());
    let missing = AvroSchema::parse(&list.to_string()).expect_err("no Item");
    assert_eq!(
        missing.to_string(),
        "the schema uses the type `shop.items.Item`, which it does not define"
    );
}

#[test]
fn faulty_schemas_are_refused_with_a_reason() {
    for (schema, fault) in [
        ("{", "is not JSON"),
        ("7", "has 7 instead of a type"),
        ("{}", "without `type`"),
        (r#"{"type": "record", "name": "A"}"#, "without `fields`"),
        (r#"{"type": "record", "fields": []}"#, "without `name`"),
        (r#"{"type": "array"}"#, "has a type `array` without `items`"),
        (r#"{"type": "fixed", "name": "A"}"#, "without `size`"),
        (
            r#"[{"type": "enum", "name": "A"}, {"type": "enum", "name": "A"}]"#,
            "defines `A` twice",
        ),
        ("\"A\"", "uses the type `A`"),
        (
            r#"{"type": "enum", "name": "A", "symbols": [1]}"#,
            "a symbol that is not text",
        ),
        (
            r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}"#,
            "has two fields `a` in one record",
        ),
    ] {
        let error = AvroSchema::parse(schema).expect_err(schema).to_string();
        assert!(error.contains(fault), "{schema}: {error}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[a-z0-9]{1,12}", 1 => "[a-zü😀]{1,4}", 1 => Just(String::new())]
}

fn id() -> impl Strategy<Value = Json> {
    prop_oneof![6 => texts().prop_map(Json::from), 2 => any::<i64>().prop_map(Json::from), 1 => Just(Json::Null)]
}

/// Record of [`own_schema`], valid in most cases.
fn event() -> impl Strategy<Value = Json> {
    let kinds = prop::sample::select(vec!["served", "served", "click", "view"]);
    let times = prop_oneof![4 => 1_000_000_000_000..10_000_000_000_000_i64, 1 => any::<i64>()];
    let arms = prop::collection::btree_map("[a-d]|__other__|", prop::option::weighted(0.9, "[ab]|"), 0..4);
    let item = || prop_oneof![4 => texts().prop_map(Json::from), 1 => any::<i64>().prop_map(Json::from)];
    let items = prop::collection::vec(item(), 0..8);
    (kinds, id(), prop::option::of(texts()), times, prop::option::of(arms), prop::option::weighted(0.9, items), id()).prop_map(
        |(kind, request, user, ts, arms, items, item)| {
            json!({
                "type": kind, "request_id": request, "user_id": user, "ts": ts, "note": null, "experiments": arms,
                "items": items, "item": item,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn random_records_are_those_of_json(event in event()) {
        // Once by our own shape, and once by the same shape, given as any other.
        check_same(None, &own_schema(), &event);
        check_same(Some(&Shape::default()), &own_schema(), &event);
    }

    #[test]
    fn damaged_records_are_refused_alike(
        event in event(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        write(&own_schema(), &event, &mut bytes);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(length.index(bytes.len() + 1).max(bytes.len() / 2));
        let schema = parsed(&own_schema());
        for topic_kind in [None, Some(Kind::Served), Some(Kind::Click)] {
            read_by(&decoder(), &schema, &bytes, topic_kind);
        }
    }
}

#[test]
fn claims_of_many_elements_are_refused_soon() {
    let schema = parsed(&record(
        &json!([{"name": "items", "type": {"type": "array", "items": "null"}}]),
    ));
    let mut bytes = Vec::new();
    long(i64::MAX, &mut bytes);
    long(0, &mut bytes);
    let found = read_by(&decoder(), &schema, &bytes, Some(Kind::Served));
    assert_eq!(found, Read::Invalid(Reason::Malformed));
}

#[test]
fn bytes_behind_a_record_are_refused() {
    let schema = parsed(&record(&json!([{"name": "request_id", "type": "string"}])));
    let mut bytes = Vec::new();
    text("r", &mut bytes);
    assert_eq!(
        read_by(&decoder(), &schema, &bytes, Some(Kind::Click)),
        Read::Invalid(Reason::MissingField)
    );
    bytes.push(0);
    assert_eq!(
        read_by(&decoder(), &schema, &bytes, Some(Kind::Click)),
        Read::Invalid(Reason::Malformed)
    );
}

#[test]
fn nested_names_without_bytes_are_passed_at_once() {
    let mut types = vec![json!({"type": "record", "name": "R0", "fields": []})];
    for n in 1..60 {
        let inner = format!("R{}", n - 1);
        types.push(json!({"type": "record", "name": format!("R{n}"), "fields": [
            {"name": "a", "type": inner}, {"name": "b", "type": inner},
        ]}));
    }
    let fields = json!([{"name": "deep", "type": types}, {"name": "request_id", "type": "string"}]);
    let schema = parsed(&record(&fields));
    let mut bytes = Vec::new();
    long(59, &mut bytes);
    text("r", &mut bytes);
    assert_eq!(
        read_by(&decoder(), &schema, &bytes, Some(Kind::Click)),
        Read::Invalid(Reason::MissingField)
    );
}

#[test]
fn flags_are_true_as_in_json() {
    let mut shape = Shape::default();
    shape.served.item_id = Paths::parse("id").ok();
    shape.served.clicked = Paths::parse("clicked").ok();
    let longs = |number| {
        let mut bytes = Vec::new();
        long(number, &mut bytes);
        bytes
    };
    let time = || json!({"type": "long", "logicalType": "timestamp-millis"});
    let decimal = || json!({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 3, "scale": 1});
    for (of, bytes, n_clicks) in [
        (time(), longs(0), 0),
        (time(), longs(1_763_596_800_123), 1),
        (decimal(), vec![0, 0], 0),
        (decimal(), vec![0, 10], 1),
        (json!("boolean"), vec![1], 1),
        (json!("boolean"), vec![0], 0),
    ] {
        let item = json!({"type": "record", "name": "Item", "fields": [
            {"name": "id", "type": "string"}, {"name": "clicked", "type": of},
        ]});
        let fields = json!([
            {"name": "request_id", "type": "string"}, {"name": "ts", "type": "long"},
            {"name": "items", "type": {"type": "array", "items": item}},
        ]);
        let mut all = Vec::new();
        text("r", &mut all);
        long(1_763_596_800_123, &mut all);
        long(1, &mut all);
        text("i1", &mut all);
        all.extend(bytes);
        long(0, &mut all);
        let schema = parsed(&record(&fields));
        let written = RawRecord {
            bytes: &all,
            schema: Some(&schema),
        };
        let at = Position {
            side: Side::Served,
            offset: 0,
            record_ts_ms: 0,
        };
        let mut batch = Batch::default();
        decoder()
            .reading(Some(&shape))
            .decode_raw(written, Some(Kind::Served), at, &mut batch);
        assert_eq!(batch.events.len(), 1 + n_clicks, "{fields}");
    }
}

#[test]
fn references_come_before_their_schema() {
    let item = r#"{"type": "record", "name": "shop.Item", "fields": [{"name": "sku", "type": "string"}]}"#
        .to_owned();
    let list = r#"{"type": "record", "name": "shop.List", "fields": [
        {"name": "shown", "type": {"type": "array", "items": "Item"}}, {"name": "ctx", "type": ["null", "Item"]}]}"#;
    let schema = AvroSchema::parse_with(list, &[item.clone(), item]).expect("a schema");
    let schema = Schema::Avro(schema);
    assert_eq!(schema.field_paths(), ["shown", "ctx", "ctx.sku"]);
    let mut shape = Shape::default();
    shape.served.items = Paths::parse("shown").expect("a path");
    shape.served.item_id = Paths::parse("sku").ok();
    shape.served.request_id = Paths::parse("ctx.sku").expect("a path");
    assert_eq!(schema.lacks(&shape, Kind::Served), ["events.served.ts = \"ts\""]);
    assert!(AvroSchema::parse_with(list, &[]).is_err());
}
