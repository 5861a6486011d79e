//! Records of other shapes than ours.

use super::*;
use crate::decode::shape::{ArmsShape, Paths, ServedShape, TsUnit, Zone};

fn path(text: &str) -> Paths {
    Paths::parse(text).expect(text)
}

fn maybe(text: &str) -> Option<Paths> {
    Some(text).filter(|text| !text.is_empty()).map(path)
}

/// Our own shape, except for the arms of a list.
fn with_arms(experiments: &str, experiment: &str, arm: &str) -> Shape {
    let mut shape = Shape::default();
    shape.served.arms = ArmsShape {
        experiments: maybe(experiments),
        experiment: maybe(experiment),
        arm: maybe(arm),
        ..ArmsShape::default()
    };
    shape
}

/// Decodes a record, and checks that it is explained as it is decoded.
fn read_as(shape: &Shape, json: &str, topic_kind: Option<Kind>) -> Read {
    let decoder = decoder().reading(Some(shape));
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    decoder.decode(Some(json.as_bytes()), topic_kind, at, &mut batch);
    // The second time, the arms are known, and the record may be read in another way.
    let (n_events, n_skipped) = (batch.events.len(), batch.skipped_elements);
    decoder.decode(Some(json.as_bytes()), topic_kind, at, &mut batch);
    let read = read(&batch, &batch.events[0]);
    assert_eq!(read, super::read(&batch, &batch.events[n_events]));
    batch.events.truncate(n_events);
    batch.skipped_elements = n_skipped;
    match (&read, decoder.explain(json.as_bytes(), topic_kind).swap_remove(0)) {
        (
            Read::List { id, ts_ms, items, .. },
            Explained::Served {
                request_id,
                ts_ms: given_ts,
                items: said,
                n_skipped,
                ..
            },
        ) => {
            assert_eq!(batch.skipped_elements, n_skipped);
            assert_eq!((*id, *ts_ms), (hash().request(request_id.as_bytes()), given_ts));
            let said: Vec<u64> = said.iter().map(|item| hash().item(item.as_bytes())).collect();
            assert_eq!(*items, said);
        }
        (Read::Click { item, .. }, Explained::Click { item: said, .. }) => {
            assert_eq!(*item, hash().item(said.as_bytes()));
        }
        (Read::Invalid(reason), Explained::Refused { reason: said, .. }) => assert_eq!(*reason, said),
        (Read::Ignored, Explained::Ignored(_)) => {}
        (read, explained) => panic!("{read:?} is explained as {explained:?}"),
    }
    read
}

/// Arms of a list of this shape with these additional fields.
fn arms_of(shape: &Shape, fields: &str) -> Result<Vec<(String, String)>, Reason> {
    let json = format!("{{\"request_id\":1,\"ts\":1763596800123,\"items\":[]{fields}}}");
    match read_as(shape, &json, Some(Kind::Served)) {
        Read::List { arms, .. } => Ok(arms
            .into_iter()
            .map(|(experiment, arm, _)| (experiment, arm))
            .collect()),
        Read::Invalid(reason) => Err(reason),
        other => panic!("{json}: {other:?}"),
    }
}

#[track_caller]
fn check_arms(shape: &Shape, fields: &str, expected: &[(&str, &str)]) {
    let expected = expected
        .iter()
        .map(|(experiment, arm)| ((*experiment).to_owned(), (*arm).to_owned()));
    assert_eq!(arms_of(shape, fields), Ok(expected.collect()), "{fields}");
}

#[track_caller]
fn check_faulty_arms(shape: &Shape, fields: &str, reason: Reason) {
    assert_eq!(arms_of(shape, fields), Err(reason), "{fields}");
}

#[test]
fn experiments_may_be_an_array_of_objects() {
    let shape = with_arms("ctx.exp", "meta.name", "arm");
    check_arms(
        &shape,
        r#","ctx":{"exp":[{"meta":{"name":"ranker"},"arm":"neural"},{"arm":3,"meta":{"name":"layout"}},{"arm":true,"meta":{"name":"flag"}}]}"#,
        &[("flag", "true"), ("layout", "3"), ("ranker", "neural")],
    );
    check_arms(&shape, r#","ctx":{"exp":[]}"#, &[]);
    check_arms(&shape, r#","ctx":{"exp":null}"#, &[]);
    check_arms(&shape, r#","ctx":{}"#, &[]);
    check_arms(&shape, "", &[]);
    for faulty in [
        r#"{"meta":{"name":"e"}}"#,
        r#"{"arm":"a"}"#,
        r#""e""#,
        "7",
        r#"{"meta":"e","arm":"a"}"#,
        r#"{"meta":{"name":"e"},"arm":[]}"#,
        r#"{"meta":{"name":"e"},"arm":1.5}"#,
        r#"{"meta":{"name":"e"},"arm":""}"#,
        r#"{"meta":{"name":"e"},"arm":null}"#,
        r#"{"meta":{"name":"__other__"},"arm":"a"}"#,
        r#"{"meta":{"name":"e"},"arm":"a"},{"meta":{"name":"e"},"arm":"b"}"#,
    ] {
        let fields = format!(r#","ctx":{{"exp":[{faulty},{{"meta":{{"name":"f"}},"arm":"b"}}]}}"#);
        check_arms(&shape, &fields, &[("f", "b")]);
    }
    for (fields, reason) in [
        (r#","ctx":{"exp":"e"}"#, Reason::WrongType),
        (r#","ctx":{"exp":5}"#, Reason::WrongType),
        (r#","ctx":5"#, Reason::WrongType),
    ] {
        check_faulty_arms(&shape, fields, reason);
    }
}

#[test]
fn the_arms_of_an_object_may_be_objects_or_plain() {
    let shape = with_arms("experiments", "", "variant.id");
    check_arms(
        &shape,
        r#","experiments":{"ranker":{"variant":{"id":"neural"},"bucket":17},"layout":"wide","n":2}"#,
        &[("layout", "wide"), ("n", "2"), ("ranker", "neural")],
    );
    check_arms(&shape, r#","experiments":{"ranker":{"bucket":17}}"#, &[]);
    check_faulty_arms(
        &shape,
        r#","experiments":[{"ranker":"neural"}]"#,
        Reason::WrongType,
    );
    // Without a path to the arm it is text, as in our own shape.
    check_arms(
        &with_arms("experiments", "", ""),
        r#","experiments":{"n":2}"#,
        &[],
    );
}

#[test]
fn the_record_itself_may_name_one_experiment() {
    let shape = with_arms("", "test", "variant");
    check_arms(
        &shape,
        r#","test":"ranker","variant":"neural""#,
        &[("ranker", "neural")],
    );
    check_arms(&shape, r#","test":"ranker","variant":null"#, &[]);
    check_arms(&shape, r#","test":"ranker""#, &[]);
    check_arms(&shape, r#","variant":"neural""#, &[]);
    check_arms(&shape, r#","test":"ranker","variant":{}"#, &[]);

    let mut fixed = with_arms("", "", "variant");
    fixed.served.arms.experiment_name = Some("ranker".to_owned());
    check_arms(&fixed, r#","variant":"neural""#, &[("ranker", "neural")]);
    check_arms(&fixed, "", &[]);
    fixed.served.arms.arm_name = Some("none".to_owned());
    check_arms(&fixed, "", &[("ranker", "none")]);
    check_arms(&fixed, r#","variant":"neural""#, &[("ranker", "neural")]);
}

#[test]
fn unselected_experiments_are_skipped_regardless_of_their_values() {
    let mut shape = with_arms("fields", "name", "value");
    shape.served.arms.only = vec!["ranker".to_owned()];
    check_arms(
        &shape,
        r#","fields":[{"name":"query","value":["a"]},{"name":"ranker","value":"neural"},{"name":"query"}]"#,
        &[("ranker", "neural")],
    );
    check_arms(&shape, r#","fields":[{"name":"query","value":"socks"}]"#, &[]);
    check_arms(&shape, r#","fields":[{"name":"ranker","value":["a"]}]"#, &[]);
    shape.served.arms.experiment_name = Some("all".to_owned());
    shape.served.arms.arm_name = Some("rest".to_owned());
    check_arms(
        &shape,
        r#","fields":[{"name":"query","value":"socks"}]"#,
        &[("all", "rest")],
    );
    check_arms(&shape, r#","fields":[{"name":"ranker","value":["a"]}]"#, &[]);
}

#[test]
fn items_may_be_objects_with_an_id() {
    let mut shape = Shape::default();
    shape.served.item_id = Some(path("product.sku"));
    let items = |json: &str| {
        let json = format!("{{\"request_id\":1,\"ts\":1763596800123,\"items\":{json}}}");
        match read_as(&shape, &json, Some(Kind::Served)) {
            Read::List { items, .. } => Ok(items),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{json}: {other:?}"),
        }
    };
    let hashes = |ids: &[&str]| Ok(ids.iter().map(|id| hash().item(id.as_bytes())).collect());
    assert_eq!(
        items(r#"[{"product":{"sku":"a"},"score":1},"b",7,{"product":{"sku":8}}]"#),
        hashes(&["a", "b", "7", "8"])
    );
    assert_eq!(items("[]"), hashes(&[]));
    for (json, reason) in [
        (r#"[{"score":1}]"#, Reason::MissingField),
        (r#"[{"product":{"sku":null}}]"#, Reason::WrongType),
        (r#"[{"product":{"sku":1.5}}]"#, Reason::Number),
        (r#"[{"product":{"sku":""}}]"#, Reason::IdLength),
        (r#"[{"product":{"sku":1,"sku":2}}]"#, Reason::NotJson),
        ("[1,2,3,4,5,{}]", Reason::TooManyItems),
        (r#"{"product":{"sku":"a"}}"#, Reason::WrongType),
    ] {
        assert_eq!(items(json), Err(reason), "{json}");
    }
}

/// Reads lists by the shape of served lists, to their items and the number of elements that were passed over.
fn items_of(change: fn(&mut ServedShape), json: &str) -> Result<String, Reason> {
    let mut shape = Shape::default();
    change(&mut shape.served);
    let json = format!("{{\"request_id\":1,\"ts\":1763596800123,\"items\":{json}}}");
    match read_as(&shape, &json, Some(Kind::Served)) {
        Read::List { items, .. } => {
            let name = |item: &u64| ('a'..='i').find(|c| hash().item(c.to_string().as_bytes()) == *item);
            Ok(items.iter().map(|item| name(item).expect("a letter")).collect())
        }
        Read::Invalid(reason) => Err(reason),
        other => panic!("{json}: {other:?}"),
    }
}

#[track_caller]
fn check_items(change: fn(&mut ServedShape), cases: &[(&str, Result<&str, Reason>)]) {
    for (json, expected) in cases {
        assert_eq!(items_of(change, json), expected.map(str::to_owned), "{json}");
    }
}

#[test]
fn items_rank_by_position_if_configured() {
    let change = |served: &mut ServedShape| {
        served.item_id = Some(path("id"));
        served.position = Some(path("shown.at"));
    };
    let of = |items: &[(&str, &str)]| -> String {
        let items = items
            .iter()
            .map(|(id, at)| format!("{{\"id\":\"{id}\",\"shown\":{{\"at\":{at}}}}}"));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    };
    let ranks = |items: &[(&str, &str)], expected| check_items(change, &[(&*of(items), expected)]);
    ranks(&[("a", "3"), ("b", "1"), ("c", "2")], Ok("bca"));
    ranks(&[("a", "10"), ("b", "9"), ("c", "-1"), ("d", "100")], Ok("cbad"));
    // Those of one position stay in the order of the array.
    ranks(&[("a", "2"), ("b", "1"), ("c", "1")], Ok("bca"));
    ranks(&[("a", "1"), ("b", "2")], Ok("ab"));
    ranks(&[("a", "1.5")], Err(Reason::Number));
    ranks(&[("a", "99999999999999999999")], Err(Reason::Number));
    ranks(&[("a", "\"1\"")], Err(Reason::WrongType));
    ranks(&[("a", "null")], Err(Reason::WrongType));
    check_items(
        change,
        &[
            ("[]", Ok("")),
            ("[{\"id\":\"a\"}]", Err(Reason::MissingField)),
            ("[\"a\"]", Err(Reason::MissingField)),
            ("[{\"shown\":{\"at\":1}}]", Err(Reason::MissingField)),
        ],
    );
}

#[test]
fn elements_without_an_item_are_skipped_if_configured() {
    let change = |served: &mut ServedShape| {
        served.item_id = Some(path("id"));
        served.skip_others = true;
    };
    check_items(
        change,
        &[
            (
                "[\"a\",null,{\"ad\":7},[\"b\"],true,{\"id\":{}},{\"id\":\"c\"}]",
                Ok("ac"),
            ),
            ("[null]", Ok("")),
            // The bound is on items.
            ("[null,\"a\",null,\"b\",\"c\",\"d\",\"e\",null]", Ok("abcde")),
            (
                "[null,\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]",
                Err(Reason::TooManyItems),
            ),
            // An item that is written wrongly is one nevertheless.
            ("[\"a\",{\"id\":\"\"}]", Err(Reason::IdLength)),
            ("[\"a\",1.5]", Err(Reason::Number)),
            ("[{\"id\":1,\"id\":2}]", Err(Reason::NotJson)),
            ("null", Err(Reason::WrongType)),
        ],
    );
    let with_positions = |served: &mut ServedShape| {
        served.item_id = Some(path("id"));
        served.position = Some(path("at"));
        served.skip_others = true;
    };
    check_items(
        with_positions,
        &[
            (
                "[{\"id\":\"a\",\"at\":3},{\"ad\":7,\"at\":2},{\"id\":\"b\",\"at\":1}]",
                Ok("ba"),
            ),
            ("[{\"id\":\"a\"}]", Err(Reason::MissingField)),
        ],
    );
}

#[test]
fn nested_rows_are_concatenated_if_configured() {
    let change = |served: &mut ServedShape| served.rows = true;
    check_items(
        change,
        &[
            ("[[\"a\",\"b\"],[\"c\"],[],[\"d\"]]", Ok("abcd")),
            ("[\"a\",[\"b\"],\"c\"]", Ok("abc")),
            ("[\"a\",\"b\"]", Ok("ab")),
            (
                "[[\"a\",\"b\",\"c\"],[\"d\",\"e\",\"f\"]]",
                Err(Reason::TooManyItems),
            ),
            ("[[[\"a\"]]]", Err(Reason::WrongType)),
            ("[{\"tiles\":[\"a\"]}]", Err(Reason::WrongType)),
        ],
    );
    check_items(|_| {}, &[("[[\"a\"]]", Err(Reason::WrongType))]);
    let objects = |served: &mut ServedShape| {
        served.rows = true;
        served.row_items = Some(path("shelf.tiles"));
        served.item_id = Some(path("id"));
        served.position = Some(path("at"));
    };
    check_items(
        objects,
        &[
            // A position is that in its row.
            (
                "[{\"shelf\":{\"tiles\":[{\"id\":\"a\",\"at\":2},{\"id\":\"b\",\"at\":1}]}},[{\"id\":\"c\",\"at\":1}]]",
                Ok("bac"),
            ),
            ("[{\"id\":\"a\",\"at\":2},{\"id\":\"b\",\"at\":1}]", Ok("ba")),
            ("[{\"shelf\":{\"tiles\":7}}]", Err(Reason::WrongType)),
            ("[{\"shelf\":{\"tiles\":1,\"tiles\":2}}]", Err(Reason::NotJson)),
        ],
    );
}

#[test]
fn times_without_a_zone_use_the_configured_one() {
    let shape = Shape {
        ts_zone: Zone::parse("+01:00"),
        ..Shape::default()
    };
    let json = |ts: &str| format!("{{\"request_id\":1,\"ts\":{ts},\"item\":2}}");
    for ts in [
        "\"2025-11-20T01:00:00.123\"",
        "\"2025-11-20 00:00:00.123Z\"",
        "1763596800123",
    ] {
        let Read::Click { ts_ms, .. } = read_as(&shape, &json(ts), Some(Kind::Click)) else {
            panic!("{ts} is no time");
        };
        assert_eq!(ts_ms, 1_763_596_800_123, "{ts}");
    }
}

#[test]
fn the_kind_comes_from_the_record_the_topic_or_the_shape() {
    let mut shape = Shape {
        kind: Some(path("meta.event")),
        ..Shape::default()
    };
    shape.served.kinds = vec!["impression".to_owned(), "view_list".to_owned()];
    shape.click.kinds = vec!["tap".to_owned()];
    let fields = r#""request_id":1,"ts":1763596800123,"items":[],"item":2"#;
    let kind = |shape: &Shape, meta: &str, topic_kind| match read_as(
        shape,
        &format!("{{{fields}{meta}}}"),
        topic_kind,
    ) {
        Read::List { .. } => "list",
        Read::Click { .. } => "click",
        Read::Ignored => "ignored",
        Read::Invalid(reason) => reason.name(),
    };
    assert_eq!(kind(&shape, r#","meta":{"event":"view_list"}"#, None), "list");
    assert_eq!(kind(&shape, r#","meta":{"event":"tap"}"#, None), "click");
    assert_eq!(
        kind(&shape, r#","meta":{"event":"tap"}"#, Some(Kind::Served)),
        "wrong_topic"
    );
    assert_eq!(
        kind(&shape, r#","meta":{"event":"view_list"}"#, Some(Kind::Click)),
        "wrong_topic"
    );
    assert_eq!(
        kind(&shape, r#","meta":{"event":"served"}"#, Some(Kind::Served)),
        "ignored"
    );
    assert_eq!(
        kind(&shape, r#","meta":{"event":1}"#, Some(Kind::Served)),
        "wrong_type"
    );
    assert_eq!(kind(&shape, r#","meta":"tap""#, Some(Kind::Served)), "wrong_type");
    for none in ["", r#","meta":{}"#, r#","meta":null"#] {
        assert_eq!(kind(&shape, none, Some(Kind::Click)), "click");
        assert_eq!(kind(&shape, none, None), "missing_field");
    }
    shape.without_kind = Some(Kind::Served);
    assert_eq!(kind(&shape, "", None), "list");
    assert_eq!(kind(&shape, "", Some(Kind::Click)), "click");
    shape.kind = None;
    assert_eq!(kind(&shape, r#","meta":{"event":"tap"}"#, None), "list");

    shape.click.action = Some(path("action"));
    shape.click.actions = vec!["open".to_owned()];
    let action = |meta: &str| kind(&shape, meta, Some(Kind::Click));
    assert_eq!(action(r#","action":"open""#), "click");
    assert_eq!(action(r#","action":"close""#), "ignored");
    assert_eq!(action(""), "missing_field");
    assert_eq!(action(r#","action":7"#), "wrong_type");
    assert_eq!(
        kind(&shape, "", Some(Kind::Served)),
        "list",
        "a list has no action"
    );
}

/// Changes of two tables, as Debezium writes them: insertions of both have the same type, and other changes are ignored.
#[test]
fn the_topic_decides_a_type_of_both_kinds() {
    let mut shape = Shape {
        kind: maybe("op"),
        ..Shape::default()
    };
    let of_insertions = vec!["c".to_owned(), "r".to_owned()];
    (shape.served.request_id, shape.served.ts, shape.served.items) =
        (path("after.id"), path("after.ts"), path("after.items"));
    shape.served.kinds.clone_from(&of_insertions);
    (shape.click.request_id, shape.click.ts, shape.click.item) =
        (path("after.id"), path("after.ts"), path("after.item"));
    shape.click.kinds = of_insertions;
    let change = |op: &str, fields: &str| {
        format!(r#"{{"before":null,"after":{{"id":"r-1","ts":1763596800123,{fields}}},"op":"{op}"}}"#)
    };
    for op in ["c", "r"] {
        let list = read_as(&shape, &change(op, r#""items":["a"]"#), Some(Kind::Served));
        assert!(matches!(list, Read::List { .. }), "{list:?}");
        let click = read_as(&shape, &change(op, r#""item":"a""#), Some(Kind::Click));
        assert!(matches!(click, Read::Click { .. }), "{click:?}");
    }
    for kind in [Kind::Served, Kind::Click] {
        let update = change("u", r#""items":["a"],"item":"a""#);
        assert_eq!(read_as(&shape, &update, Some(kind)), Read::Ignored);
        let deletion = r#"{"before":{"id":"r-1"},"after":null,"op":"d"}"#;
        assert_eq!(read_as(&shape, deletion, Some(kind)), Read::Ignored);
    }
    // Without --as, a file has no kind.
    let list = change("c", r#""items":["a"]"#);
    assert_eq!(read_as(&shape, &list, None), Read::Invalid(Reason::MissingField));
}

#[test]
fn times_use_the_configured_unit() {
    let time = |unit, json: &str| {
        let shape = Shape {
            ts_unit: unit,
            ..Shape::default()
        };
        let json = format!("{{\"request_id\":1,\"ts\":{json},\"item\":2}}");
        match read_as(&shape, &json, Some(Kind::Click)) {
            Read::Click { ts_ms, .. } => Ok(ts_ms),
            Read::Invalid(reason) => Err(reason),
            other => panic!("{json}: {other:?}"),
        }
    };
    assert_eq!(
        time(Some(TsUnit::Seconds), "1763596800.123"),
        Ok(1_763_596_800_123)
    );
    assert_eq!(
        time(Some(TsUnit::Milliseconds), "\"1763596800123\""),
        Ok(1_763_596_800_123)
    );
    assert_eq!(time(None, "\"1763596800123\""), Ok(1_763_596_800_123));
    assert_eq!(time(None, "\"1763596800123.4\""), Err(Reason::TsRange));
    assert_eq!(time(None, "1763596800"), Err(Reason::TsSeconds));
}

#[test]
fn fields_may_share_a_path_or_nest() {
    let mut shape = Shape::default();
    shape.served.request_id = path("ctx.id");
    shape.served.user_id = Some(path("ctx.id"));
    shape.served.arms.experiments = Some(path("ctx"));
    shape.served.arms.only = vec!["ranker".to_owned()];
    let json = r#"{"ctx":{"id":"x","ranker":"neural"},"ts":1763596800123,"items":[1]}"#;
    let expected = Read::List {
        id: hash().request(b"x"),
        user: Some(hash().user(b"x")),
        ts_ms: 1_763_596_800_123,
        items: vec![hash().item(b"1")],
        arms: vec![arm("ranker", "neural")],
    };
    assert_eq!(read_as(&shape, json, Some(Kind::Served)), expected);
}

#[test]
fn refusals_name_the_field_and_its_value() {
    let mut shape = Shape::default();
    shape.click.item = path("ctx.'the.item'");
    let decoder = Decoder::new(SEED, MAX_ITEMS, MAX_EXPERIMENTS).reading(Some(&shape));
    let place = |json: &str| match decoder.explain(json.as_bytes(), Some(Kind::Click)).swap_remove(0) {
        Explained::Refused { reason, place } => (
            reason,
            place.map(|place| (place.setting, place.paths.join(" or "), place.value)),
        ),
        other => panic!("{json}: {other:?}"),
    };
    let item = |value: Option<&str>| {
        Some((
            "click.item",
            "ctx.\"the.item\"".to_owned(),
            value.map(str::to_owned),
        ))
    };
    let fields = r#""request_id":1,"ts":1763596800123"#;
    assert_eq!(
        place(&format!("{{{fields},\"ctx\":{{\"the.item\":1.5}}}}")),
        (Reason::Number, item(Some("1.5")))
    );
    assert_eq!(
        place(&format!("{{{fields}}}")),
        (Reason::MissingField, item(None))
    );
    assert_eq!(place("[]"), (Reason::WrongType, None));
    assert_eq!(place("{"), (Reason::NotJson, None));
    let ts = Some(("click.ts", "ts".to_owned(), Some("5".to_owned())));
    assert_eq!(place(r#"{"request_id":1,"ts":5}"#), (Reason::TsRange, ts));
}

/// Checks the setting, path, enclosing element and value for which a list is refused.
#[track_caller]
fn check_part(shape: &Shape, fields: &str, expected: (&str, &str, Option<&str>, Option<&str>)) {
    let decoder = decoder().reading(Some(shape));
    let json = format!("{{\"request_id\":1,\"ts\":1763596800123,{fields}}}");
    let Explained::Refused {
        place: Some(place), ..
    } = decoder
        .explain(json.as_bytes(), Some(Kind::Served))
        .swap_remove(0)
    else {
        panic!("{json} is not refused for a field");
    };
    let paths = place.paths.join(" or ");
    let found = (
        place.setting,
        &*paths,
        place.within.as_deref(),
        place.value.as_deref(),
    );
    assert_eq!(found, expected, "{json}");
}

#[test]
fn refusals_name_the_faulty_part_of_a_list() {
    let mut shape = with_arms("experiments", "", "arm.id");
    shape.served.item_id = Some(path("sku"));
    shape.served.rows = true;
    let id = "served.item_id";
    check_part(
        &shape,
        r#""items":[{"sku":1},{"id":2}]"#,
        (id, "sku", Some("element 2 of `items`"), None),
    );
    check_part(
        &shape,
        r#""items":["a",[{"sku":1},{"sku":1.5}]]"#,
        (id, "sku", Some("element 2 of row 2 of `items`"), Some("1.5")),
    );
    check_part(
        &shape,
        r#""items":[1,1.5]"#,
        ("served.items", "", Some("element 2 of `items`"), Some("1.5")),
    );
    check_part(
        &shape,
        r#""items":[1,2,3,4,5,6]"#,
        ("served.items", "items", None, Some("[1,2,3,4,5,6]")),
    );
    let shape = with_arms("tests", "", "arm");
    check_part(
        &shape,
        r#""items":[],"tests":["ranker"]"#,
        ("served.experiments", "tests", None, Some("[\"ranker\"]")),
    );
}

/// The second list is read with its arms remembered.
#[test]
fn lists_with_the_same_arms_are_read_alike() {
    let decoder_of = |shape: &Shape| decoder().reading(Some(shape));
    let check = |shape: &Shape, list: &str| {
        let at = Position {
            side: Side::Served,
            offset: 0,
            record_ts_ms: 0,
        };
        let mut batch = Batch::default();
        for _ in 0..3 {
            decoder_of(shape).decode(Some(list.as_bytes()), Some(Kind::Served), at, &mut batch);
        }
        let all: Vec<Read> = batch.events.iter().map(|event| read(&batch, event)).collect();
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
        batch
    };
    // A row has an id, too.
    let mut rows = Shape::default();
    rows.served.item_id = maybe("id");
    rows.served.rows = true;
    rows.served.row_items = maybe("tiles");
    let list =
        r#"{"request_id":"r","ts":1763596800123,"items":[{"id":"shelf","tiles":[{"id":"i5"},{"id":"i9"}]}]}"#;
    check(&rows, list);
    // An experiment that is there twice is counted for each list.
    let doubles = with_arms("x", "n", "a");
    let list = r#"{"request_id":"r","ts":1763596800123,"items":[],"x":[{"n":"e","a":"a"},{"n":"e","a":"b"},{"n":"f","a":"z"}]}"#;
    let batch = check(&doubles, list);
    assert_eq!(batch.bad_arms.get("e"), Some(&3));
}

#[test]
fn digits_with_a_leading_zero_are_no_time() {
    for time in [
        "00000000000001763596800123",
        "0000000000000\"2025-11-20T00:00:00Z\"",
        "0123456789012 1763596800123",
    ] {
        let list = format!(r#"{{"request_id":"r","ts":{time},"items":[]}}"#);
        let read = read_as(&Shape::default(), &list, Some(Kind::Served));
        assert_eq!(read, Read::Invalid(Reason::NotJson), "{list}");
    }
}
