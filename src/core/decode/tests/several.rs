//! Records of several events, clicks within lists, nested JSON, and values that count as absent.

use super::*;
use crate::decode::shape::{Nested, Path, Paths};

fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

fn paths(text: &str) -> Paths {
    path(text).into()
}

/// Decodes a record; the topic gives no kind. Each event comes with its `is_part`.
fn events(shape: Option<&Shape>, json: &str) -> Vec<(Read, bool)> {
    let at = Position {
        side: Side::Served,
        offset: 42,
        record_ts_ms: 1_763_596_900_000,
    };
    let mut batch = Batch::default();
    decoder()
        .reading(shape)
        .decode(Some(json.as_bytes()), None, at, &mut batch);
    assert_eq!(batch.several, [u64::from(batch.events.len() > 1), 0]);
    let events = batch.events.iter();
    events.map(|event| (read(&batch, event), event.is_part)).collect()
}

#[track_caller]
fn check(shape: &Shape, json: &str, expected: &[Read]) {
    let is_part = expected.len() > 1;
    let expected: Vec<(Read, bool)> = expected.iter().map(|read| (read.clone(), is_part)).collect();
    assert_eq!(events(Some(shape), json), expected, "{json}");
}

fn a_list(id: &str, user: Option<&str>, items: &[&str], arms: &[(&str, &str)]) -> Read {
    Read::List {
        id: hash().request(id.as_bytes()),
        user: user.map(|user| hash().user(user.as_bytes())),
        ts_ms: 1_763_596_800_123,
        items: items.iter().map(|item| hash().item(item.as_bytes())).collect(),
        arms: arms
            .iter()
            .map(|(experiment, name)| arm(experiment, name))
            .collect(),
    }
}

fn a_click(id: &str, user: Option<&str>, item: &str) -> Read {
    Read::Click {
        id: hash().request(id.as_bytes()),
        user: user.map(|user| hash().user(user.as_bytes())),
        ts_ms: 1_763_596_800_123,
        item: hash().item(item.as_bytes()),
    }
}

const TS: &str = r#""ts":1763596800123"#;

#[test]
fn events_of_an_array_inherit_fields_from_around_it() {
    let mut shape = Shape {
        records: Some(path("batch.events")),
        ..Shape::default()
    };
    shape.served.user_id = Some(Paths::any(vec![path("user_id"), path("^.who")]).expect("two"));
    shape.click.user_id = Some(paths("^.who"));
    let served = format!(r#"{{"type":"served","request_id":"r",{TS},"items":["a","b"],"user_id":"u"}}"#);
    let click = format!(r#"{{"type":"click","request_id":"r",{TS},"item":"b"}}"#);
    check(
        &shape,
        &format!(r#"{{"who":"w","batch":{{"events":[{served},{click},{{"type":"view"}},5]}}}}"#),
        &[
            a_list("r", Some("u"), &["a", "b"], &[]),
            a_click("r", Some("w"), "b"),
            Read::Ignored,
            Read::Invalid(Reason::WrongType),
        ],
    );
    check(
        &shape,
        &format!(r#"{{"batch":{{"events":[{click}]}}}}"#),
        &[a_click("r", None, "b")],
    );
    // An absent value gives way to the record around the event, as to any later path.
    for absent in ["null", r#""""#, r#""anonymous""#] {
        let named = served.replace(r#""u""#, absent);
        check(
            &shape,
            &format!(r#"{{"who":"w","batch":{{"events":[{named}]}}}}"#),
            &[a_list("r", Some("w"), &["a", "b"], &[])],
        );
        check(
            &shape,
            &format!(r#"{{"batch":{{"events":[{named}]}}}}"#),
            &[a_list("r", None, &["a", "b"], &[])],
        );
    }
    check(&shape, r#"{"batch":{"events":[]}}"#, &[Read::Ignored]);
    for (json, reason) in [
        (r#"{"batch":{}}"#, Reason::MissingField),
        (r#"{"batch":{"events":{}}}"#, Reason::WrongType),
        (r#"{"batch":{"events":[{]}}"#, Reason::NotJson),
    ] {
        check(&shape, json, &[Read::Invalid(reason)]);
    }
}

#[test]
fn a_click_on_several_items_is_a_click_on_each() {
    let of = |item: &str| format!(r#"{{"type":"click","request_id":"r",{TS},"item":{item}}}"#);
    let own = Shape::default();
    check(&own, &of(r#"["a"]"#), &[a_click("r", None, "a")]);
    check(
        &own,
        &of(r#"["a",7,"","a"]"#),
        &[
            a_click("r", None, "a"),
            a_click("r", None, "7"),
            Read::Invalid(Reason::IdLength),
            a_click("r", None, "a"),
        ],
    );
    for (item, reason) in [
        ("[]", Reason::MissingField),
        ("[1,2,3,4,5,6]", Reason::TooManyItems),
        ("{}", Reason::WrongType),
    ] {
        check(&own, &of(item), &[Read::Invalid(reason)]);
    }
}

#[test]
fn an_array_of_one_text_reads_as_the_text() {
    let json = r#"{"type":["served"],"request_id":["r"],"user_id":["u"],"ts":["2025-11-20T00:00:00.123Z"],"items":["a"]}"#;
    check(&Shape::default(), json, &[a_list("r", Some("u"), &["a"], &[])]);
}

#[test]
fn a_list_may_contain_its_clicks() {
    let mut shape = Shape {
        kind: None,
        without_kind: Some(Kind::Served),
        ..Shape::default()
    };
    shape.served.item_id = Some(paths("id"));
    shape.served.clicked = Some(paths("clicked"));
    shape.served.clicked_items = Some(paths("chosen"));
    let of = |items: &str, more: &str| {
        format!(r#"{{"request_id":"r","user_id":"u",{TS},"items":[{items}]{more}}}"#)
    };
    let list = |items: &[&str]| a_list("r", Some("u"), items, &[]);
    check(
        &shape,
        &of(
            r#"{"id":"a","clicked":false},{"id":"b","clicked":true},{"id":"c","clicked":1},{"id":"d"},"e""#,
            r#","chosen":null"#,
        ),
        &[
            list(&["a", "b", "c", "d", "e"]),
            a_click("r", Some("u"), "b"),
            a_click("r", Some("u"), "c"),
        ],
    );
    check(
        &shape,
        &of(r#""a","b""#, r#","chosen":["b","x"]"#),
        &[
            list(&["a", "b"]),
            a_click("r", Some("u"), "b"),
            a_click("r", Some("u"), "x"),
        ],
    );
    check(&shape, &of(r#""a""#, ""), &[list(&["a"])]);
    for (flag, is_clicked) in [
        (r#""true""#, true),
        (r#""True""#, true),
        ("2", true),
        (r#""1""#, true),
        ("1763596805123", true),
        (r#""2025-11-20T00:00:00Z""#, true),
        (r#""2025-11-20 00:00:00""#, true),
        (r#""""#, false),
        (r#""False""#, false),
        (r#""0""#, false),
        ("null", false),
    ] {
        let items = format!(r#"{{"id":"a","clicked":{flag}}}"#);
        let click = is_clicked.then(|| a_click("r", Some("u"), "a"));
        let events: Vec<_> = [list(&["a"])].into_iter().chain(click).collect();
        check(&shape, &of(&items, ""), &events);
    }
    for clicked in ["{}", "1.5", r#""yes""#] {
        let items = format!(r#"{{"id":"a","clicked":{clicked}}}"#);
        let is_refused = matches!(
            events(Some(&shape), &of(&items, ""))[..],
            [(Read::Invalid(_), false)]
        );
        assert!(is_refused, "{clicked}");
    }
    shape.served.clicked_ts = Some(paths("clicked_at"));
    let later = events(
        Some(&shape),
        &of(r#"{"id":"a","clicked":true}"#, r#","clicked_at":1763596805123"#),
    );
    let is_later = |read: &Read| {
        matches!(
            read,
            Read::Click {
                ts_ms: 1_763_596_805_123,
                ..
            }
        )
    };
    assert!(later.len() == 2 && is_later(&later[1].0), "{later:?}");
}

#[test]
fn nested_json_text_is_read_if_configured() {
    let inner = format!(r#"{{"type":"click","request_id":"r",{TS},"item":"a"}}"#);
    let quoted = serde_json::to_string(&inner).expect("text");
    let whole = Shape {
        nested: Some(Nested::Whole),
        ..Shape::default()
    };
    let mut field = Shape {
        nested: Some(Nested::At(path("payload"))),
        ..Shape::default()
    };
    let click = |user| [a_click("r", user, "a")];
    check(&whole, &quoted, &click(None));
    check(&whole, &inner, &click(None));
    check(
        &field,
        &format!(r#"{{"payload":{quoted},"who":"u"}}"#),
        &click(None),
    );
    check(&field, &format!(r#"{{"payload":{inner}}}"#), &click(None));
    field.click.user_id = Some(paths("^.who"));
    check(
        &field,
        &format!(r#"{{"payload":{quoted},"who":"u"}}"#),
        &click(Some("u")),
    );
    for (json, reason) in [
        ("{}", Reason::MissingField),
        (r#"{"payload":"{"}"#, Reason::NotJson),
        (r#"{"payload":5}"#, Reason::WrongType),
    ] {
        check(&field, json, &[Read::Invalid(reason)]);
    }
    assert_eq!(
        events(None, &quoted),
        [(Read::Invalid(Reason::WrongType), false)],
        "not without a word"
    );
}

#[test]
fn a_list_without_items_is_empty_if_configured() {
    let mut shape = Shape::default();
    let of = |items: &str| format!(r#"{{"type":"served","request_id":"r",{TS}{items}}}"#);
    for absent in ["", r#","items":null"#] {
        let reason = if absent.is_empty() {
            Reason::MissingField
        } else {
            Reason::WrongType
        };
        check(&shape, &of(absent), &[Read::Invalid(reason)]);
        shape.served.absent_is_empty = true;
        check(&shape, &of(absent), &[a_list("r", None, &[], &[])]);
        shape.served.absent_is_empty = false;
    }
}

#[test]
fn arms_may_be_text_pairs_or_fields_with_a_prefix() {
    let mut shape = Shape::default();
    shape.served.arms.arm_separator = Some(":".to_owned());
    let of = |experiments: &str| {
        format!(
            r#"{{"type":"served","request_id":"r",{TS},"items":[],"experiments":{experiments},"$f/a":"x","$f/b":false}}"#
        )
    };
    let two = [a_list(
        "r",
        None,
        &[],
        &[("layout", "grid"), ("ranker", "neural")],
    )];
    check(&shape, &of(r#"["ranker:neural","layout:grid"]"#), &two);
    check(&shape, &of(r#"["ranker:neural","layout:grid","y",7]"#), &two);
    // A repeated experiment is left out.
    check(
        &shape,
        &of(r#"["ranker:neural","x:1","layout:grid","x:2"]"#),
        &two,
    );
    check(
        &shape,
        &of(r#""{\"ranker\":\"neural\",\"layout\":\"grid\"}""#),
        &two,
    );
    check(&shape, &of(r#""[\"ranker:neural\",\"layout:grid\"]""#), &two);
    shape.served.arms.pair_separator = Some(";".to_owned());
    check(&shape, &of(r#""ranker:neural; layout:grid;""#), &two);
    shape.served.arms = crate::decode::shape::ArmsShape {
        prefix: Some("$f/".to_owned()),
        not_in: vec!["false".to_owned()],
        ..Default::default()
    };
    check(&shape, &of("null"), &[a_list("r", None, &[], &[("a", "x")])]);
}

#[test]
fn bad_arms_are_counted_by_experiment() {
    let json = format!(
        r#"{{"type":"served","request_id":"r",{TS},"items":[],"experiments":{{"a":"","b":"x","c":7,"":"y","n":null}}}}"#
    );
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    decoder().decode(Some(json.as_bytes()), None, at, &mut batch);
    assert_eq!(
        read(&batch, &batch.events[0]),
        a_list("r", None, &[], &[("b", "x")])
    );
    let bad: Vec<(&str, u64)> = batch
        .bad_arms
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    assert_eq!(bad, [("__other__", 1), ("a", 1), ("c", 1)]);
}

#[test]
fn placeholder_ids_are_not_users() {
    let own = Shape::default();
    let of =
        |user: &str| format!(r#"{{"type":"served","request_id":"r","user_id":{user},{TS},"items":["a"]}}"#);
    for user in [
        "\"\"",
        "\"0\"",
        "0",
        "\"NULL\"",
        "\"anonymous\"",
        "\"Undefined\"",
        "[\"none\"]",
    ] {
        check(&own, &of(user), &[a_list("r", None, &["a"], &[])]);
    }
    check(&own, &of("\"00\""), &[a_list("r", Some("00"), &["a"], &[])]);
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let decoder = decoder().without_users(NoUser::new(vec!["guest".to_owned()]));
    for (user, expected) in [("\"0\"", Some("0")), ("\"Guest\"", None)] {
        let mut batch = Batch::default();
        decoder.decode(Some(of(user).as_bytes()), None, at, &mut batch);
        assert_eq!(read(&batch, &batch.events[0]), a_list("r", expected, &["a"], &[]));
    }
}
