//! Records of Protobuf: they give the same events as the same records in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, Kind as Scalar, MapKey, MessageDescriptor, Value as Field,
};
use serde_json::{Value as Json, json};

use super::*;
use crate::decode::schema::ProtobufFile;
use crate::decode::shape::{ArmsShape, Path, Paths, TsUnit};

/// Schema text, and the library that writes records by it.
struct Written {
    file: ProtobufFile,
    pool: DescriptorPool,
}

impl Written {
    #[track_caller]
    fn new(text: &str) -> Written {
        let bytes = crate::decode::protobuf::compile(text, &[]).expect("a schema");
        Written {
            file: ProtobufFile::parse(text, &[]).expect("a schema"),
            pool: DescriptorPool::decode(&bytes[..]).expect("descriptors"),
        }
    }

    fn schema(&self, name: &str) -> &Schema {
        self.file.by_name(name).expect("a message type")
    }

    fn bytes(&self, name: &str, value: &Json) -> Vec<u8> {
        let of = self.pool.get_message_by_name(name).expect("a message type");
        message(of, value).encode_to_vec()
    }
}

/// Makes a message from JSON by the names in its schema. `null` leaves a field absent.
fn message(of: MessageDescriptor, value: &Json) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for (name, value) in value.as_object().expect("an object") {
        if value.is_null() {
            continue;
        }
        let field = of.get_field_by_name(name).expect(name);
        let written = match value {
            Json::Object(entries) if field.is_map() => {
                let Scalar::Message(entry) = field.kind() else {
                    unreachable!("an entry")
                };
                let of = entry.map_entry_value_field().kind();
                let entries = entries.iter().filter(|(_, value)| !value.is_null());
                Field::Map(
                    entries
                        .map(|(name, value)| (MapKey::String(name.clone()), scalar(&of, value)))
                        .collect(),
                )
            }
            Json::Array(values) if field.is_list() => {
                Field::List(values.iter().map(|value| scalar(&field.kind(), value)).collect())
            }
            value => scalar(&field.kind(), value),
        };
        message.set_field(&field, written);
    }
    message
}

fn scalar(of: &Scalar, value: &Json) -> Field {
    let text = || value.as_str().expect("text").to_owned();
    let integer = || value.as_i64().expect("an integer");
    match of {
        Scalar::String => Field::String(text()),
        Scalar::Bytes => Field::Bytes(text().into_bytes().into()),
        Scalar::Int64 | Scalar::Sint64 | Scalar::Sfixed64 => Field::I64(integer()),
        Scalar::Int32 | Scalar::Sint32 | Scalar::Sfixed32 => Field::I32(integer() as i32),
        Scalar::Uint32 | Scalar::Fixed32 => Field::U32(integer() as u32),
        Scalar::Uint64 | Scalar::Fixed64 => Field::U64(value.as_u64().expect("an integer")),
        Scalar::Bool => Field::Bool(value.as_bool().expect("a flag")),
        Scalar::Double => Field::F64(value.as_f64().expect("a number")),
        Scalar::Float => Field::F32(value.as_f64().expect("a number") as f32),
        Scalar::Enum(of) => Field::EnumNumber(of.get_value_by_name(&text()).expect("a value").number()),
        Scalar::Message(of) => Field::Message(message(of.clone(), value)),
    }
}

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Field with an integer.
fn number(field: u32, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(u64::from(field << 3), &mut bytes);
    varint(value, &mut bytes);
    bytes
}

/// Field with a length.
fn sized(field: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(u64::from(field << 3 | 2), &mut bytes);
    varint(value.as_ref().len() as u64, &mut bytes);
    bytes.extend(value.as_ref());
    bytes
}

const OWN: &str = r#"
    syntax = "proto3";
    package shop;
    message Event {
      string type = 1;
      optional string request_id = 2;
      optional string user_id = 20;
      optional int64 ts = 3;
      map<string, string> experiments = 4;
      repeated string items = 5;
      optional string item = 6;
      Note note = 7;
      message Note { repeated int32 marks = 1; optional string text = 2; }
    }
"#;

/// Checks that a record in Protobuf gives the event of the same record in JSON.
#[track_caller]
fn check_same(shape: Option<&Shape>, written: &Written, name: &str, value: &Json) -> Read {
    let decoder = decoder().reading(shape);
    let by_schema = read_by(&decoder, written.schema(name), &written.bytes(name, value), None);
    assert_eq!(by_schema, of_json(&decoder, value), "{value}");
    by_schema
}

fn of_json(decoder: &Decoder, value: &Json) -> Read {
    let mut value = value.clone();
    // As in Protobuf, what has no value is absent.
    value
        .as_object_mut()
        .expect("an object")
        .retain(|_, value| !value.is_null());
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    decoder.decode(Some(value.to_string().as_bytes()), None, at, &mut batch);
    read(&batch, &batch.events[0])
}

const MS: i64 = 1_763_596_800_123;

#[test]
fn a_list_and_a_click_are_those_of_json() {
    let written = Written::new(OWN);
    let list = json!({
        "type": "served", "request_id": "r-1", "user_id": "u-7", "ts": MS, "note": {"marks": [1, 300], "text": "x"},
        "experiments": {"layout": "grid", "ranker": "neural"}, "items": ["i5", "i9", "ü"], "item": null,
    });
    let Read::List { items, arms, .. } = check_same(None, &written, "shop.Event", &list) else {
        panic!("a list");
    };
    assert_eq!((items.len(), arms.len()), (3, 2));
    let click = json!({"type": "click", "request_id": "r-1", "ts": MS, "item": "i5"});
    let read = check_same(None, &written, "shop.Event", &click);
    assert!(matches!(read, Read::Click { .. }));
}

/// A shape with paths into messages, and items that are messages.
fn mapped_shape() -> Shape {
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
    shape
}

const MAPPED: &str = r#"
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    message List {
      message Item { double score = 1; string sku = 2; }
      message Data { repeated Item shown = 3; string rec = 17; }
      message Ctx { Variant variant = 1; google.protobuf.Timestamp time = 2; }
      enum Variant { LINEAR = 0; NEURAL = 5; }
      string type = 1;
      Data data = 2;
      Ctx ctx = 3;
    }
"#;

#[test]
fn paths_lead_through_messages_and_items_may_be_messages() {
    let written = Written::new(MAPPED);
    let shape = mapped_shape();
    let decoder = decoder().reading(Some(&shape));
    let list = |variant: &str| {
        json!({
            "type": "served", "ctx": {"variant": variant, "time": {"seconds": MS / 1000, "nanos": 123_999_999}},
            "data": {"rec": "r", "shown": [{"score": 0.5, "sku": "i1"}, {"sku": "i2"}, {"score": 0.0, "sku": "ü"}]},
        })
    };
    let in_json = |variant: &str| {
        let mut list = list(variant);
        list["ctx"]["time"] = json!(MS);
        of_json(&decoder, &list)
    };
    for variant in ["NEURAL", "LINEAR"] {
        let bytes = written.bytes("List", &list(variant));
        let read = read_by(&decoder, written.schema("List"), &bytes, None);
        let Read::List { arms, ts_ms, .. } = &read else {
            panic!("{read:?}")
        };
        assert_eq!((&arms[..], *ts_ms), (&[arm("ranker", variant)][..], MS));
        assert_eq!(read, in_json(variant));
    }
    let absent = json!({"type": "served", "ctx": {"time": {"seconds": 1_763_596_800}}});
    let bytes = written.bytes("List", &absent);
    assert_eq!(
        read_by(&decoder, written.schema("List"), &bytes, None),
        Read::Invalid(Reason::MissingField)
    );
}

/// Reads a list with one field of this declaration, and these bytes.
#[track_caller]
fn list_with_field(declared: &str, bytes: &[u8], shape: &Shape) -> Read {
    let name = declared
        .split([' ', '='])
        .filter(|word| !word.is_empty())
        .rev()
        .nth(1)
        .expect("a name");
    let others = [
        ("request_id", "string request_id = 101;", sized(101, "r")),
        ("ts", "string ts = 102;", sized(102, "2025-11-20T00:00:00Z")),
        ("items", "repeated string items = 103;", Vec::new()),
    ];
    let others = others.iter().filter(|(other, ..)| *other != name);
    let mut all = bytes.to_vec();
    let mut fields = declared.to_owned();
    for (_, declared, bytes) in others {
        fields.push_str(declared);
        all.extend(bytes);
    }
    let written = Written::new(&format!(
        r#"
        syntax = "proto3";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        import "google/protobuf/struct.proto";
        import "confluent/types/decimal.proto";
        enum Color {{ RED = 0; BLUE = 7; }}
        message Time {{ int32 nanos = 9; int64 seconds = 4; }}
        message Event {{ {fields} }}
    "#
    ));
    let decoder = decoder().reading(Some(shape));
    read_by(&decoder, written.schema("Event"), &all, Some(Kind::Served))
}

#[test]
fn times_carry_their_unit() {
    let own = Shape::default();
    let seconds = Shape {
        ts_unit: Some(TsUnit::Seconds),
        ..Shape::default()
    };
    let s = MS as u64 / 1000;
    let stamp = |seconds: u32, nanos: u32, n: u64| sized(1, [number(seconds, s), number(nanos, n)].concat());
    let fixed = |number: u64| [&[1 << 3 | 1][..], &number.to_le_bytes()].concat();
    for (declared, bytes, shape, expected) in [
        (
            "google.protobuf.Timestamp ts = 1;",
            stamp(1, 2, 123_999_999),
            &own,
            Ok(MS),
        ),
        (
            "google.protobuf.Timestamp ts = 1;",
            stamp(1, 2, 123_999_999),
            &seconds,
            Ok(MS),
        ),
        (
            "google.protobuf.Timestamp ts = 1;",
            sized(1, number(1, s)),
            &own,
            Ok(MS / 1000 * 1000),
        ),
        (
            "google.protobuf.Timestamp ts = 1;",
            sized(1, []),
            &own,
            Err(Reason::TsRange),
        ),
        (
            "google.protobuf.Timestamp ts = 1;",
            vec![],
            &own,
            Err(Reason::MissingField),
        ),
        (
            "google.protobuf.Timestamp ts = 1;",
            sized(1, [8]),
            &own,
            Err(Reason::Malformed),
        ),
        ("Time ts = 1;", stamp(4, 9, 123_000_000), &own, Ok(MS)),
        ("int64 ts = 1;", number(1, MS as u64), &own, Ok(MS)),
        ("int64 ts = 1;", vec![], &own, Err(Reason::MissingField)),
        ("int64 ts = 1;", number(1, 0), &own, Err(Reason::MissingField)),
        ("optional int64 ts = 1;", number(1, 0), &own, Err(Reason::TsRange)),
        ("optional int64 ts = 1;", vec![], &own, Err(Reason::MissingField)),
        ("uint64 ts = 1;", number(1, u64::MAX), &own, Err(Reason::TsRange)),
        ("sint64 ts = 1;", number(1, 2 * MS as u64), &own, Ok(MS)),
        ("fixed64 ts = 1;", fixed(MS as u64), &own, Ok(MS)),
        ("int64 ts = 1;", number(1, s), &own, Err(Reason::TsSeconds)),
        ("int64 ts = 1;", number(1, s), &seconds, Ok(MS / 1000 * 1000)),
        (
            "double ts = 1;",
            fixed(1_763_596_800.123_f64.to_bits()),
            &seconds,
            Ok(MS),
        ),
        (
            "double ts = 1;",
            fixed(f64::NAN.to_bits()),
            &seconds,
            Err(Reason::Number),
        ),
        (
            "google.protobuf.Int64Value ts = 1;",
            sized(1, number(1, MS as u64)),
            &own,
            Ok(MS),
        ),
        ("bool ts = 1;", number(1, 1), &own, Err(Reason::WrongType)),
        // Written with another wire type: an unknown field.
        ("int64 ts = 1;", fixed(MS as u64), &own, Err(Reason::MissingField)),
    ] {
        let found = match list_with_field(declared, &bytes, shape) {
            Read::List { ts_ms, .. } => Ok(ts_ms),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{declared} {bytes:?}");
    }
}

#[test]
fn ids_are_their_usual_text() {
    let value = |field: Vec<u8>| sized(1, field);
    for (declared, bytes, expected) in [
        ("string request_id = 1;", sized(1, "ü"), Ok("ü")),
        ("string request_id = 1;", sized(1, [0xff]), Err(Reason::Malformed)),
        ("string request_id = 1;", sized(1, ""), Err(Reason::MissingField)),
        ("string request_id = 1;", vec![], Err(Reason::MissingField)),
        (
            "optional string request_id = 1;",
            sized(1, ""),
            Err(Reason::IdLength),
        ),
        (
            "string request_id = 1;",
            [sized(1, "a"), sized(1, "b")].concat(),
            Ok("b"),
        ),
        ("int64 request_id = 1;", vec![], Ok("0")),
        ("int64 request_id = 1;", number(1, u64::MAX), Ok("-1")),
        ("int32 request_id = 1;", number(1, 1 << 32 | 5), Ok("5")),
        (
            "uint64 request_id = 1;",
            number(1, u64::MAX),
            Ok("18446744073709551615"),
        ),
        ("sint32 request_id = 1;", number(1, 3), Ok("-2")),
        (
            "sfixed32 request_id = 1;",
            vec![1 << 3 | 5, 0xfe, 0xff, 0xff, 0xff],
            Ok("-2"),
        ),
        (
            "fixed32 request_id = 1;",
            vec![1 << 3 | 5, 0xfe, 0xff, 0xff, 0xff],
            Ok("4294967294"),
        ),
        ("bytes request_id = 1;", sized(1, [0, 0xab]), Ok("00ab")),
        ("Color request_id = 1;", number(1, 7), Ok("BLUE")),
        ("Color request_id = 1;", vec![], Ok("RED")),
        ("Color request_id = 1;", number(1, 8), Ok("8")),
        (
            "optional Color request_id = 1;",
            vec![],
            Err(Reason::MissingField),
        ),
        (
            "double request_id = 1;",
            [&[9][..], &7_f64.to_le_bytes()].concat(),
            Err(Reason::Number),
        ),
        (
            "google.protobuf.StringValue request_id = 1;",
            value(sized(1, "w")),
            Ok("w"),
        ),
        (
            "google.protobuf.StringValue request_id = 1;",
            value(vec![]),
            Err(Reason::IdLength),
        ),
        (
            "google.protobuf.StringValue request_id = 1;",
            vec![],
            Err(Reason::MissingField),
        ),
        (
            "google.protobuf.UInt64Value request_id = 1;",
            value(vec![]),
            Ok("0"),
        ),
        (
            "google.protobuf.Value request_id = 1;",
            value(sized(3, "v")),
            Ok("v"),
        ),
        (
            "google.protobuf.Value request_id = 1;",
            value([&[2 << 3 | 1][..], &12_f64.to_le_bytes()].concat()),
            Ok("12"),
        ),
        (
            "google.protobuf.Value request_id = 1;",
            value(number(1, 0)),
            Err(Reason::WrongType),
        ),
        (
            "confluent.type.Decimal request_id = 1;",
            value([sized(1, [1, 0xf4]), number(3, 2)].concat()),
            Ok("5"),
        ),
        ("repeated string request_id = 1;", sized(1, "only"), Ok("only")),
        ("repeated string request_id = 1;", vec![], Err(Reason::WrongType)),
        ("string request_id = 1;", number(1, 1), Err(Reason::MissingField)),
    ] {
        let found = match list_with_field(declared, &bytes, &Shape::default()) {
            Read::List { id, .. } => Ok(id),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            found,
            expected.map(|id| hash().request(id.as_bytes())),
            "{declared} {bytes:?}"
        );
    }
}

#[test]
fn items_are_packed_or_not_and_an_absent_list_is_empty() {
    let shape = Shape::default();
    let long = &"x".repeat(200)[..];
    let group = [
        vec![9 << 3 | 3],
        sized(1, "x"),
        vec![2 << 3 | 3, 2 << 3 | 4],
        vec![9 << 3 | 4],
    ]
    .concat();
    for (declared, bytes, expected) in [
        ("repeated string items = 1;", vec![], &[][..]),
        (
            "repeated string items = 1;",
            [sized(1, "a"), number(8, 1), sized(1, "b")].concat(),
            &["a", "b"],
        ),
        (
            "repeated string items = 1;",
            [sized(1, "a"), group, sized(1, "b")].concat(),
            &["a", "b"],
        ),
        (
            "repeated string items = 1;",
            ["a", "grün", long, "b"].map(|item| sized(1, item)).concat(),
            &["a", "grün", long, "b"],
        ),
        // Its tag has two bytes.
        (
            "repeated string items = 16;",
            ["a", "grün", long, "b"].map(|item| sized(16, item)).concat(),
            &["a", "grün", long, "b"],
        ),
        ("repeated int64 items = 1;", sized(1, [7, 0xac, 2]), &["7", "300"]),
        (
            "repeated int64 items = 1;",
            [number(1, 7), sized(1, []), number(1, 300)].concat(),
            &["7", "300"],
        ),
        (
            "repeated int64 items = 1;",
            [sized(1, [7]), number(1, 0)].concat(),
            &["7", "0"],
        ),
        (
            "repeated fixed32 items = 1;",
            sized(1, [7, 0, 0, 0, 8, 0, 0, 0]),
            &["7", "8"],
        ),
        ("repeated Color items = 1;", sized(1, [7, 0]), &["BLUE", "RED"]),
        (
            "repeated google.protobuf.StringValue items = 1;",
            [sized(1, sized(1, "a")), sized(1, sized(1, "b"))].concat(),
            &["a", "b"],
        ),
        (
            "google.protobuf.ListValue items = 1;",
            sized(1, [sized(1, sized(3, "a")), sized(1, sized(3, "b"))].concat()),
            &["a", "b"],
        ),
    ] {
        let Read::List { items, .. } = list_with_field(declared, &bytes, &shape) else {
            panic!("a list: {declared}");
        };
        let expected: Vec<u64> = expected.iter().map(|item| hash().item(item.as_bytes())).collect();
        assert_eq!(items, expected, "{declared}");
    }
    for (declared, bytes, reason) in [
        ("repeated string items = 1;", sized(1, ""), Reason::IdLength),
        (
            "repeated string items = 1;",
            [sized(1, "item-1"), sized(1, b"item-\xff"), sized(1, "item-3")].concat(),
            Reason::Malformed,
        ),
        (
            "repeated string items = 16;",
            [sized(16, "item-1"), sized(16, b"item-\xff")].concat(),
            Reason::Malformed,
        ),
        (
            "repeated int64 items = 1;",
            sized(1, [7, 0x80]),
            Reason::Malformed,
        ),
        (
            "repeated string items = 1;",
            vec![1 << 3 | 2, 5, b'a'],
            Reason::Malformed,
        ),
        ("repeated string items = 1;", vec![9 << 3 | 4], Reason::Malformed),
        ("repeated string items = 1;", vec![9 << 3 | 6], Reason::Malformed),
        ("repeated string items = 1;", vec![0, 0], Reason::Malformed),
        (
            "repeated int64 items = 1;",
            [&[8][..], &[0xff; 9], &[2]].concat(),
            Reason::Malformed,
        ),
        (
            "repeated int64 items = 1;",
            [&[8][..], &[0x80; 10], &[0]].concat(),
            Reason::Malformed,
        ),
        (
            "google.protobuf.ListValue items = 1;",
            vec![],
            Reason::MissingField,
        ),
    ] {
        assert_eq!(
            list_with_field(declared, &bytes, &shape),
            Read::Invalid(reason),
            "{declared} {bytes:?}"
        );
    }
}

#[test]
fn arms_are_in_maps_messages_and_structs() {
    let shape = Shape::default();
    let entry = |key: Vec<u8>, value: Vec<u8>| sized(1, [key, value].concat());
    let text = |name: &str, arm: &str| entry(sized(1, name), sized(2, arm));
    let neural = [arm("ranker", "neural")];
    for (declared, bytes, expected) in [
        ("map<string, string> experiments = 1;", vec![], &[][..]),
        (
            "map<string, string> experiments = 1;",
            text("ranker", "neural"),
            &neural,
        ),
        // Of equal keys, the last one counts.
        (
            "map<string, string> experiments = 1;",
            [text("ranker", "linear"), number(9, 1), text("ranker", "neural")].concat(),
            &neural,
        ),
        // An entry may write its value before its key.
        (
            "map<string, string> experiments = 1;",
            entry(sized(2, "neural"), sized(1, "ranker")),
            &neural,
        ),
        (
            "map<int32, string> experiments = 1;",
            entry(number(1, 7), sized(2, "a")),
            &[arm("7", "a")],
        ),
        (
            "map<bool, string> experiments = 1;",
            entry(number(1, 1), sized(2, "a")),
            &[arm("true", "a")],
        ),
        // As in JSON, a number is a bad arm of an object.
        (
            "map<string, int32> experiments = 1;",
            entry(sized(1, "e"), vec![]),
            &[],
        ),
        (
            "map<string, string> experiments = 1;",
            entry(sized(1, "e"), vec![]),
            &[],
        ),
        (
            "map<string, Color> experiments = 1;",
            entry(sized(1, "e"), vec![]),
            &[arm("e", "RED")],
        ),
        (
            "map<string, google.protobuf.StringValue> experiments = 1;",
            entry(sized(1, "ranker"), sized(2, sized(1, "neural"))),
            &neural,
        ),
        (
            "google.protobuf.Struct experiments = 1;",
            sized(1, entry(sized(1, "ranker"), sized(2, sized(3, "neural")))),
            &neural,
        ),
    ] {
        let read = list_with_field(declared, &bytes, &shape);
        let Read::List { arms, .. } = read else {
            panic!("{declared}: {read:?}")
        };
        assert_eq!(arms, expected, "{declared}");
    }
    let written = Written::new(
        r#"
        syntax = "proto3";
        message Arms { string ranker = 1; optional string layout = 2; string price_test = 3; }
        message Event { string request_id = 1; int64 ts = 2; Arms experiments = 3; repeated string items = 4; }
    "#,
    );
    let list = json!({"request_id": "r", "ts": MS, "experiments": {"ranker": "neural"}});
    let bytes = written.bytes("Event", &list);
    let read = read_by(&decoder(), written.schema("Event"), &bytes, Some(Kind::Served));
    let Read::List { arms, .. } = read else {
        panic!("{read:?}")
    };
    assert_eq!(arms, neural);
}

#[test]
fn an_occurrence_of_a_message_adds_to_those_before_it() {
    let written = Written::new(MAPPED);
    let decoder = decoder().reading(Some(&mapped_shape()));
    let read = |bytes: &[u8]| read_by(&decoder, written.schema("List"), bytes, Some(Kind::Served));
    let time = |seconds: u64| sized(3, sized(2, number(1, seconds)));
    let item = |sku: &str| sized(2, sized(3, sized(2, sku)));
    let rec = |id: &str| sized(2, sized(17, id));
    let whole = [
        sized(
            2,
            [sized(17, "r"), sized(3, sized(2, "a")), sized(3, sized(2, "b"))].concat(),
        ),
        time(1_763_596_800),
    ]
    .concat();
    let expected = read(&whole);
    let Read::List { items, .. } = &expected else {
        panic!("{expected:?}")
    };
    assert_eq!(items.len(), 2);
    let parts = [
        rec("q"),
        item("a"),
        time(7),
        rec("r"),
        time(1_763_596_800),
        item("b"),
    ]
    .concat();
    assert_eq!(read(&parts), expected);
    // Even inside the timestamp.
    let nanos = sized(3, sized(2, number(2, 5_000_000)));
    let Read::List { ts_ms, .. } = read(&[whole.clone(), nanos].concat()) else {
        panic!("a list")
    };
    assert_eq!(ts_ms, 1_763_596_800_005);
    // A part that is cut off must not be completed by the next one.
    let cut = sized(2, [17 << 3 | 2, 1, 1]);
    assert_eq!(read(&[cut, whole].concat()), Read::Invalid(Reason::Malformed));
}

#[test]
fn the_last_value_of_a_oneof_counts() {
    let written = Written::new(
        r#"
        syntax = "proto3";
        message Id { string text = 1; string more = 2; }
        message Event {
          oneof id { string request_id = 1; Id other = 2; int64 third = 3; }
          int64 ts = 4;
          repeated string items = 5;
        }
    "#,
    );
    let mut shape = Shape::default();
    let paths = ["request_id", "other.text", "third"].map(|path| Path::parse(path).expect("a path"));
    let by_alternatives = Paths::any(paths.to_vec()).expect("paths");
    for (request_id, bytes, expected) in [
        (
            Paths::parse("request_id").expect("a path"),
            [sized(1, "a"), number(3, 7)].concat(),
            None,
        ),
        (
            Paths::parse("request_id").expect("a path"),
            [number(3, 7), sized(1, "a")].concat(),
            Some("a"),
        ),
        (
            Paths::parse("third").expect("a path"),
            [number(3, 7), sized(1, "a")].concat(),
            None,
        ),
        (Paths::parse("third").expect("a path"), vec![], None),
        (
            Paths::parse("other.text").expect("a path"),
            [sized(2, sized(1, "m")), number(3, 7)].concat(),
            None,
        ),
        (
            Paths::parse("other.text").expect("a path"),
            [sized(2, sized(1, "m")), number(3, 7), sized(2, sized(2, "n"))].concat(),
            None,
        ),
        (
            Paths::parse("other.text").expect("a path"),
            [number(3, 7), sized(2, sized(2, "n")), sized(2, sized(1, "m"))].concat(),
            Some("m"),
        ),
        (
            by_alternatives.clone(),
            [sized(1, "a"), number(3, 7)].concat(),
            Some("7"),
        ),
        (
            by_alternatives,
            [number(3, 7), sized(2, sized(1, "m"))].concat(),
            Some("m"),
        ),
    ] {
        shape.served.request_id = request_id;
        let all = [bytes, number(4, MS as u64)].concat();
        let decoder = decoder().reading(Some(&shape));
        let found = match read_by(&decoder, written.schema("Event"), &all, Some(Kind::Served)) {
            Read::List { id, .. } => Some(id),
            Read::Invalid(Reason::MissingField) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected.map(|id| hash().request(id.as_bytes())), "{all:?}");
    }
}

#[test]
fn paths_may_use_names_of_json() {
    let written = Written::new(
        r#"
        syntax = "proto3";
        message Event {
          string rec_id = 1 [json_name = "recId2"];
          int64 shown_at = 2;
          repeated string shown_items = 3;
          string showAt = 4;
        }
    "#,
    );
    let bytes = [sized(1, "r"), number(2, MS as u64), sized(3, "i"), sized(4, "x")].concat();
    for names in [
        ["rec_id", "shown_at", "shown_items"],
        ["recId2", "shownAt", "shownItems"],
    ] {
        let [id, ts, items] = names.map(|name| Paths::parse(name).expect("a path"));
        let mut shape = Shape::default();
        (shape.served.request_id, shape.served.ts, shape.served.items) = (id, ts, items);
        let decoder = decoder().reading(Some(&shape));
        let read = read_by(&decoder, written.schema("Event"), &bytes, Some(Kind::Served));
        assert!(matches!(read, Read::List { .. }), "{names:?}: {read:?}");
    }
}

#[test]
fn proto2_and_editions_have_presence_and_defaults() {
    let written = Written::new(
        r#"
        syntax = "proto2";
        message Event {
          required string request_id = 1;
          optional int64 ts = 2 [default = 1763596800123];
          repeated int32 items = 3 [packed = true];
          optional string user_id = 4 [default = "u"];
          optional group Extra = 5 { optional string variant = 1; }
        }
    "#,
    );
    let mut shape = Shape::default();
    shape.served.arms = ArmsShape {
        experiment_name: Some("ranker".to_owned()),
        arm: Paths::parse("extra.variant").ok(),
        ..ArmsShape::default()
    };
    let decoder = decoder().reading(Some(&shape));
    let group = [vec![5 << 3 | 3], sized(1, "neural"), vec![5 << 3 | 4]].concat();
    let bytes = [sized(1, "r"), group].concat();
    let read = read_by(&decoder, written.schema("Event"), &bytes, Some(Kind::Served));
    let expected = Read::List {
        id: hash().request(b"r"),
        user: Some(hash().user(b"u")),
        ts_ms: MS,
        items: vec![],
        arms: vec![arm("ranker", "neural")],
    };
    assert_eq!(read, expected);
    let missing = read_by(&decoder, written.schema("Event"), &[], Some(Kind::Served));
    assert_eq!(missing, Read::Invalid(Reason::MissingField));
}

#[test]
fn message_types_have_names_and_indexes() {
    let written = Written::new(
        r#"
        syntax = "proto3";
        package shop;
        message A { message B { message C {} map<string, string> m = 1; } message D {} }
        message E {}
    "#,
    );
    let name = |indexes: &[i32]| match &**written.file.by_indexes(indexes)? {
        Schema::Protobuf(schema) => Some(schema.name()),
        Schema::Avro(_) => None,
    };
    for (indexes, expected) in [
        (&[0][..], Some("shop.A")),
        (&[1], Some("shop.E")),
        (&[0, 1], Some("shop.A.D")),
        (&[0, 0, 0], Some("shop.A.B.C")),
        (&[2], None),
        (&[1, 0], None),
        (&[-1], None),
        (&[], None),
    ] {
        assert_eq!(name(indexes), expected, "{indexes:?}");
    }
    assert_eq!(written.file.names().collect::<Vec<_>>(), ["shop.A", "shop.E"]);
    assert!(written.file.only().is_none());
    assert!(written.file.by_name("shop.A.D").is_some());
    assert!(written.file.by_name("A").is_none());
    assert!(written.file.by_name("shop.A.B.MEntry").is_none());
    let one = Written::new("syntax = \"proto3\"; message One {}");
    assert!(one.file.only().is_some());
}

#[test]
fn imports_are_given_or_well_known() {
    let text = r#"
        syntax = "proto3";
        import "confluent/meta.proto";
        import "shop/item.proto";
        import "google/protobuf/timestamp.proto";
        message List { option (confluent.message_meta).doc = "x"; shop.Item item = 1; google.protobuf.Timestamp ts = 2; }
    "#;
    let item = "syntax = \"proto3\"; package shop; message Item { string sku = 1; }";
    let given = [("shop/item.proto".to_owned(), item.to_owned())];
    let file = ProtobufFile::parse(text, &given).expect("a schema");
    assert_eq!(file.names().collect::<Vec<_>>(), ["List"]);
    let error = ProtobufFile::parse(text, &[]).expect_err("no item").to_string();
    assert!(error.contains("shop/item.proto"), "{error}");
    let error = ProtobufFile::parse("message {", &[])
        .expect_err("no schema")
        .to_string();
    assert!(error.starts_with("the schema cannot be compiled"), "{error}");
    let error = ProtobufFile::of_descriptors(&[])
        .expect_err("nothing")
        .to_string();
    assert!(error.contains("without a file"), "{error}");
    assert!(ProtobufFile::of_descriptors(&[0xff]).is_err());
}

/// Clients for Python and JavaScript register these, and Apicurio returns them as they are.
#[test]
fn files_and_imports_may_be_descriptors_in_base64() {
    let dir = tempfile::tempdir().expect("a directory");
    let item = "syntax = \"proto3\"; package shop; message Item { string sku = 1; }";
    let list = "syntax = \"proto3\"; package shop; import \"item.proto\"; message List { Item item = 1; }";
    for (name, text) in [("item.proto", item), ("list.proto", list)] {
        std::fs::write(dir.path().join(name), text).expect("it is written");
    }
    let set = protox::compile(["list.proto"], [dir.path()]).expect("it is Protobuf");
    let in_base64 = |name: &str| {
        let file = set
            .file
            .iter()
            .find(|file| file.name() == name)
            .expect("in the set");
        STANDARD.encode(file.encode_to_vec())
    };
    for import in [in_base64("item.proto"), item.to_owned()] {
        let imports = [("item.proto".to_owned(), import)];
        let file = ProtobufFile::parse(&in_base64("list.proto"), &imports).expect("a schema");
        let schema = file.by_name("shop.List").expect("a message");
        let record = RawRecord {
            bytes: b"\x0a\x04\x0a\x02i7",
            schema: Some(schema),
        };
        assert_eq!(
            String::from_utf8_lossy(&record.to_json()),
            r#"{"item":{"sku":"i7"}}"#
        );
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[a-z0-9]{1,12}", 1 => "[a-zü😀]{1,4}", 1 => Just(String::new())]
}

/// Record of [`OWN`], valid in most cases.
fn event() -> impl Strategy<Value = Json> {
    let kinds = prop::sample::select(vec!["served", "served", "click", "view"]);
    let times = prop_oneof![4 => 1_000_000_000_000..10_000_000_000_000_i64, 1 => any::<i64>()];
    let arms = prop::collection::btree_map("[a-d]|__other__|", "[ab]|", 0..4);
    let text = || prop::option::weighted(0.9, texts());
    let items = prop::collection::vec(texts(), 0..8);
    (kinds, text(), text(), prop::option::weighted(0.9, times), arms, items, text()).prop_map(
        |(kind, request, user, ts, arms, items, item)| {
            json!({
                "type": kind, "request_id": request, "user_id": user, "ts": ts, "note": {"marks": [1, 2], "text": user},
                "experiments": arms, "items": items, "item": item,
            })
        },
    )
}

/// The fields of a message, each with its number.
fn fields_of(bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut wire = crate::decode::protobuf::Wire::of(bytes);
    let mut fields = Vec::new();
    while !wire.is_at_end() {
        let all = wire.rest;
        let tag = wire.tag().expect("a tag");
        wire.raw(tag).expect("a value");
        fields.push((tag >> 3, all[..all.len() - wire.rest.len()].to_vec()));
    }
    fields
}

#[test]
fn random_records_are_those_of_json() {
    let written = Written::new(OWN);
    proptest!(ProptestConfig::with_cases(1_000), |(event in event())| {
        // Once by our own shape, and once by the same shape, given as any other.
        check_same(None, &written, "shop.Event", &event);
        check_same(Some(&Shape::default()), &written, "shop.Event", &event);
    });
}

/// Fields in any order, with unknown ones between them, and with values before the last ones that are overridden.
#[test]
fn the_order_of_fields_does_not_matter() {
    let written = Written::new(OWN);
    proptest!(ProptestConfig::with_cases(1_000), |(
        event in event(),
        order in prop::collection::vec(any::<u32>(), 40),
        unknown in prop::collection::vec((30..40_u32, any::<u64>()), 0..3),
        earlier in prop::collection::vec((prop::sample::select(vec![2_u32, 20, 6]), "[a-z]{0,3}"), 0..2),
    )| {
        let mut fields = fields_of(&written.bytes("shop.Event", &event));
        fields.extend(unknown.iter().map(|(field, value)| (*field, number(*field, *value))));
        let is_there = |field: u32| fields.iter().any(|(known, _)| *known == field);
        let earlier = earlier.iter().filter(|(field, _)| is_there(*field));
        let earlier: Vec<_> = earlier.map(|(field, text)| (*field, sized(*field, text))).collect();
        let mut all: Vec<(u32, Vec<u8>)> = earlier.into_iter().chain(fields).collect();
        // Values of one field keep their order.
        let key_of = |field: u32| order[field as usize % order.len()];
        all.sort_by_key(|(field, _)| key_of(*field));
        let bytes: Vec<u8> = all.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let read = read_by(&decoder(), written.schema("shop.Event"), &bytes, None);
        assert_eq!(read, of_json(&decoder(), &event));
    });
}

#[test]
fn damaged_records_are_refused_alike() {
    let written = Written::new(OWN);
    proptest!(ProptestConfig::with_cases(1_000), |(
        event in event(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(),
        again in any::<prop::sample::Index>(),
    )| {
        let mut bytes = written.bytes("shop.Event", &event);
        // A part of the record comes again.
        let again = bytes[again.index(bytes.len())..].to_vec();
        bytes.extend(again);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(length.index(bytes.len() + 1).max(bytes.len() / 2));
        for topic_kind in [None, Some(Kind::Served), Some(Kind::Click)] {
            read_by(&decoder(), written.schema("shop.Event"), &bytes, topic_kind);
        }
    });
}

#[test]
fn schemas_list_their_fields_and_those_that_a_shape_lacks() {
    let file = ProtobufFile::parse(MAPPED, &[]).expect("a schema");
    let schema = file.by_name("List").expect("a message type");
    assert_eq!(
        schema.field_paths(),
        [
            "type",
            "data",
            "ctx",
            "data.shown",
            "data.rec",
            "ctx.variant",
            "ctx.time"
        ]
    );
    let mut shape = mapped_shape();
    assert_eq!(schema.lacks(&shape, Kind::Served), [""; 0]);
    assert_eq!(
        schema.lacks(&shape, Kind::Click),
        [
            "events.click.request_id = \"request_id\"",
            "events.click.ts = \"ts\"",
            "events.click.item = \"item\""
        ]
    );
    let paths = ["at", "ctx.at"].map(|path| Path::parse(path).expect("a path"));
    shape.served.ts = Paths::any(paths.to_vec()).expect("paths");
    shape.served.item_id = Paths::parse("id").ok();
    assert_eq!(
        schema.lacks(&shape, Kind::Served),
        [
            "events.served.ts = { any = [\"at\", \"ctx.at\"] }",
            "events.served.item_id = \"id\""
        ]
    );
    shape.served.ts =
        Paths::any(vec![paths[0].clone(), Path::parse("ctx.time").expect("a path")]).expect("paths");
    shape.served.absent_is_empty = true;
    assert_eq!(schema.lacks(&shape, Kind::Served), [""; 0]);
}

/// Records that Google's library for Python wrote, and the descriptors that its compiler wrote, without imports. See
/// tests/data/protobuf/make.py.
#[test]
fn records_of_another_client_are_those_of_json() {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data");
    let content = |name: &str| std::fs::read(format!("{FOLDER}/{name}")).expect(name);
    let file = ProtobufFile::of_descriptors(&content("protobuf/events.binpb")).expect("descriptors");
    let path = |text: &str| Paths::parse(text).expect("a path");
    let shape = |id, item_id: Option<&str>| {
        let mut shape = mapped_shape();
        shape.kind = None;
        shape.served.request_id = path(id);
        shape.served.user_id = Some(path("user"));
        shape.served.ts = path("time");
        shape.served.items = path("shown");
        shape.served.item_id = item_id.map(path);
        shape.served.arms.arm = Some(path("variant"));
        shape.click.request_id = path(id);
        shape.click.user_id = Some(path("user"));
        shape.click.ts = path("time");
        shape.click.item = path("sku");
        Decoder::new(SEED, 100, MAX_EXPERIMENTS).reading(Some(&shape))
    };
    let (of_protobuf, in_json) = (shape("recId", Some("sku")), shape("rec", None));
    let text = String::from_utf8(content("avro/events.jsonl")).expect("text");
    let events: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (name, message, kind) in [("lists", "List", Kind::Served), ("clicks", "Click", Kind::Click)] {
        let bytes = content(&format!("protobuf/{name}.bin"));
        let schema = file.by_name(&format!("shop.events.{message}")).expect(message);
        let mut rest = &bytes[..];
        let events = events
            .iter()
            .filter(|event| event["sku"].is_string() == (kind == Kind::Click));
        let mut n = 0;
        for event in events {
            let (length, behind) = rest.split_first_chunk::<4>().expect("a length");
            let (record, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            rest = behind;
            let mut event = event.clone();
            let fields = event.as_object_mut().expect("an object");
            fields.retain(|_, value| !value.is_null());
            fields.entry("variant").or_insert(json!("LINEAR"));
            if kind == Kind::Click {
                // These clicks have no user.
                fields.remove("user");
            }
            let at = Position {
                side: Side::Served,
                offset: 0,
                record_ts_ms: 0,
            };
            let mut batch = Batch::default();
            in_json.decode(Some(event.to_string().as_bytes()), Some(kind), at, &mut batch);
            let found = read_by(&of_protobuf, schema, record, Some(kind));
            assert!(
                matches!(found, Read::List { .. } | Read::Click { .. }),
                "{found:?}"
            );
            assert_eq!(found, read(&batch, &batch.events[0]), "{event}");
            n += 1;
        }
        assert!(n > 10 && rest.is_empty(), "{n} {name}");
    }
}
