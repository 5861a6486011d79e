//! Paths with alternatives.

use proptest::prelude::*;

use super::*;
use crate::decode::shape::{Path, Paths};

fn any(paths: &[&str]) -> Paths {
    let paths = paths.iter().map(|path| Path::parse(path).expect(path));
    Paths::any(paths.collect()).expect("some paths")
}

/// Our own shape, with a second id of users.
fn with_cookie() -> Shape {
    let mut shape = Shape::default();
    shape.served.user_id = Some(any(&["user_id", "ctx.cookie"]));
    shape.click.user_id = Some(any(&["user_id", "ctx.cookie"]));
    shape
}

fn explain(shape: &Shape, json: &str) -> Explained {
    decoder()
        .reading(Some(shape))
        .explain(json.as_bytes(), None)
        .swap_remove(0)
}

/// Decodes one record.
fn decode(shape: &Shape, json: &str) -> Read {
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    let decoder = decoder().reading(Some(shape));
    decoder.decode(Some(json.as_bytes()), None, at, &mut batch);
    read(&batch, &batch.events[0])
}

/// The user of a list and of a click with these fields, or why each is refused.
fn users(fields: &str) -> [Result<Option<u64>, Reason>; 2] {
    let common = format!("\"request_id\":1,\"ts\":1763596800123{fields}");
    [
        format!("{{\"type\":\"served\",\"items\":[1],{common}}}"),
        format!("{{\"type\":\"click\",\"item\":1,{common}}}"),
    ]
    .map(|json| match decode(&with_cookie(), &json) {
        Read::List { user, .. } | Read::Click { user, .. } => Ok(user),
        Read::Invalid(reason) => Err(reason),
        other => panic!("{json}: {other:?}"),
    })
}

#[test]
fn a_user_without_an_id_gets_the_id_of_the_next_path() {
    let user = |id: &str| Ok(Some(hash().user(id.as_bytes())));
    for (fields, expected) in [
        (r#","user_id":"u","ctx":{"cookie":"c"}"#, user("u")),
        (r#","ctx":{"cookie":"c"},"user_id":7"#, user("7")),
        (r#","ctx":{"cookie":"c"}"#, user("c")),
        (r#","user_id":null,"ctx":{"cookie":"c"}"#, user("c")),
        (r#","user_id":"","ctx":[{"cookie":"c"}]"#, user("c")),
        (r#","user_id":"u","ctx":"none""#, user("u")),
        (r#","user_id":"u\u0021","ctx":{"cookie":""}"#, user("u!")),
        // None is there: as with the first path that has anything.
        ("", Ok(None)),
        (r#","user_id":null"#, Ok(None)),
        (r#","user_id":null,"ctx":{"cookie":""}"#, Ok(None)),
        (r#","user_id":"","ctx":null"#, Ok(None)),
        (r#","ctx":{"cookie":""}"#, Ok(None)),
        (r#","user_id":0,"ctx":{"cookie":"c"}"#, user("c")),
        (r#","user_id":"Anonymous","ctx":{"cookie":"c"}"#, user("c")),
        (r#","ctx":"none""#, Err(Reason::WrongType)),
        // A value that is present is read even if it is faulty, and no path may repeat a key.
        (r#","user_id":1.5,"ctx":{"cookie":"c"}"#, Err(Reason::Number)),
        (
            r#","user_id":"u","ctx":{"cookie":1,"cookie":1}"#,
            Err(Reason::NotJson),
        ),
    ] {
        assert_eq!(users(fields), [expected; 2], "{fields}");
    }
}

#[test]
fn all_fields_accept_alternatives_including_fields_of_elements() {
    let mut shape = Shape {
        kind: Some(any(&["kind", "type"])),
        ..Shape::default()
    };
    let served = &mut shape.served;
    served.request_id = any(&["id", "request_id"]);
    served.ts = any(&["time", "ts"]);
    served.items = any(&["list.items", "items"]);
    served.item_id = Some(any(&["sku", "id"]));
    served.arms.experiments = Some(any(&["tests", "experiments"]));
    served.arms.experiment = Some(any(&["test", "name"]));
    served.arms.arm = Some(any(&["arm", "variant"]));
    let old = r#"{"kind":"served","id":"r","time":1763596800123,"list":{"items":[{"sku":"a"},{"id":"b"}]},"tests":[{"test":"e","arm":"x"}]}"#;
    let new = r#"{"type":"served","request_id":"r","ts":1763596800123,"items":[{"sku":"a","id":1},{"sku":null,"id":"b"}],"experiments":[{"name":"e","variant":"x"}]}"#;
    let expected = Read::List {
        id: hash().request(b"r"),
        user: None,
        ts_ms: 1_763_596_800_123,
        items: vec![hash().item(b"a"), hash().item(b"b")],
        arms: vec![arm("e", "x")],
    };
    for json in [old, new] {
        assert_eq!(decode(&shape, json), expected, "{json}");
    }
    // An empty id of a request is there, so that its list is refused.
    let empty = new.replace("\"request_id\":\"r\"", "\"id\":\"\",\"request_id\":\"r\"");
    assert_eq!(decode(&shape, &empty), Read::Invalid(Reason::IdLength));
}

#[test]
fn explanations_name_the_path_read_or_all_paths_tried() {
    let shape = with_cookie();
    let of = |fields: &str| {
        let json = format!("{{\"type\":\"click\",\"request_id\":1,\"ts\":1763596800123,\"item\":1{fields}}}");
        match explain(&shape, &json) {
            Explained::Click { alternatives, .. } => alternatives
                .into_iter()
                .map(|place| (place.setting, place.paths, place.value))
                .collect::<Vec<_>>(),
            Explained::Refused {
                place: Some(place), ..
            } => vec![(place.setting, place.paths, place.value)],
            other => panic!("{json}: {other:?}"),
        }
    };
    let place = |paths: &[&str], value: Option<&str>| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        vec![("click.user_id", paths, value.map(str::to_owned))]
    };
    // Equal values are distinguished by their places.
    let both = r#","user_id":"","ctx":{"cookie":"u"},"x":"u""#;
    assert_eq!(of(both), place(&["ctx.cookie"], Some("\"u\"")));
    assert_eq!(
        of(r#","user_id":"u","ctx":{"cookie":"u"}"#),
        place(&["user_id"], Some("\"u\""))
    );
    assert_eq!(of(""), place(&["user_id", "ctx.cookie"], None));
    assert_eq!(of(r#","ctx":{"cookie":[]}"#), place(&["ctx.cookie"], Some("[]")));
    assert_eq!(of(r#","ctx":5"#), place(&["user_id", "ctx.cookie"], None));
}

/// Values at a path; "" if nothing is there.
fn value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "null", "\"\"", "\"u\"", "7", "1.5", "{}", "\"\\ud83d\""])
}

proptest! {
    #[test]
    fn one_alternative_reads_as_its_path(values in prop::collection::vec(value(), 3)) {
        let mut plain = Shape::default();
        plain.click.user_id = Some(Path::parse("a").expect("a path").into());
        plain.click.item = Path::parse("b").expect("a path").into();
        let mut alone = Shape::default();
        alone.click.user_id = Some(any(&["a"]));
        alone.click.item = any(&["b"]);
        let json = click(&values);
        prop_assert_eq!(decode(&plain, &json), decode(&alone, &json));
        prop_assert_eq!(explain(&plain, &json), explain(&alone, &json));
    }

    /// The record with the chosen value alone, under the name of the first path.
    #[test]
    fn alternatives_equal_the_first_path_with_the_chosen_value(values in prop::collection::vec(value(), 3)) {
        for is_user in [true, false] {
            let [mut first, mut all] = [(); 2].map(|()| Shape::default());
            if is_user {
                first.click.user_id = Some(any(&["a"]));
                all.click.user_id = Some(any(&["a", "b", "c"]));
            } else {
                first.click.item = any(&["a"]);
                all.click.item = any(&["a", "b", "c"]);
            }
            let is_absent = |value: &str| ["", "null"].contains(&value) || is_user && value == "\"\"";
            let something = || values.iter().find(|value| !value.is_empty());
            let chosen = values.iter().find(|value| !is_absent(value)).or_else(something).unwrap_or(&"");
            let expected = decode(&first, &click(&[chosen]));
            prop_assert_eq!(decode(&all, &click(&values)), expected);
        }
    }
}

/// A click with these values under `a`, `b` and `c`.
fn click(values: &[&str]) -> String {
    let named = values
        .iter()
        .zip(["a", "b", "c"])
        .filter(|(value, _)| !value.is_empty());
    let fields: String = named
        .map(|(value, name)| format!(",\"{name}\":{value}"))
        .collect();
    format!("{{\"type\":\"click\",\"request_id\":1,\"ts\":1763596800123,\"item\":5{fields}}}")
}
