//! Each rule with its cases.

use super::*;

#[test]
fn reads_a_list() {
    let expected = Read::List {
        id: hash().request(b"r-1"),
        user: Some(hash().user(b"u-7")),
        ts_ms: 1_763_596_800_123,
        items: vec![hash().item(b"i5"), hash().item(b"i9")],
        arms: vec![arm("ranker", "neural")],
    };
    assert_eq!(list(LIST), expected);
}

#[test]
fn reads_a_click() {
    let expected = Read::Click {
        id: hash().request(b"r-1"),
        user: None,
        ts_ms: 1_763_596_805_123,
        item: hash().item(b"i9"),
    };
    assert_eq!(click(CLICK), expected);
}

#[test]
fn items_keep_their_order_and_copies() {
    let Read::List { items, .. } = list_with("items", Some(r#"["b", 1 ,"a","b"]"#)) else {
        panic!()
    };
    assert_eq!(
        items,
        ["b", "1", "a", "b"].map(|item| hash().item(item.as_bytes()))
    );
}

#[test]
fn a_type_sets_the_kind_and_must_not_contradict_the_topic() {
    let typed = |json: &str, kind: &str| format!(r#"{{"type":"{kind}",{}"#, &json[1..]);
    assert_eq!(list(&typed(LIST, "served")), list(LIST));
    assert_eq!(click(&typed(CLICK, "click")), click(CLICK));
    let wrong_topic = Read::Invalid(Reason::WrongTopic);
    assert_eq!(click(&typed(LIST, "served")), wrong_topic);
    assert_eq!(list(&typed(CLICK, "click")), wrong_topic);
    // The type is checked before all other fields, wherever it is, but after the JSON syntax.
    assert_eq!(list(r#"{"ts":-5,"items":{},"type":"click"}"#), wrong_topic);
    assert_eq!(
        list(r#"{"ts":-5,"ts":1,"type":"click"}"#),
        Read::Invalid(Reason::NotJson)
    );
    assert_eq!(
        decode_as(Some(typed(LIST, "served").as_bytes()), None),
        list(LIST)
    );
    assert_eq!(
        decode_as(Some(typed(CLICK, r"\u0063lick").as_bytes()), None),
        click(CLICK)
    );
}

#[test]
fn the_number_of_experiments_of_a_list_is_bounded() {
    let too_many = Read::Invalid(Reason::TooManyExperiments);
    let Read::List { arms, .. } = list_with("experiments", Some(r#"{"a":"x","b":"x","c":"x","d":"x"}"#))
    else {
        panic!("four are allowed")
    };
    assert_eq!(arms.len(), 4);
    for (json, expected) in [
        (r#"{"a":"x","b":"x","c":"x","d":"x","e":"x"}"#, &too_many),
        (r#"{"a":"x","b":"x","c":"x","d":"x","a":"y"}"#, &too_many),
        (r#"{"a":1,"b":"","c":"__other__","d":{},"e":[]}"#, &too_many),
        (
            r#"{"a":"x","b":"x","c":"x","a":"x"}"#,
            &Read::Invalid(Reason::NotJson),
        ),
    ] {
        assert_eq!(list_with("experiments", Some(json)), *expected, "{json}");
    }
    // The fields before are checked first.
    let both = r#"{"request_id":"","ts":1763596800123,"items":[],"experiments":{"a":"x","b":"x","c":"x","d":"x","e":"x"}}"#;
    assert_eq!(list(both), Read::Invalid(Reason::IdLength));
}

#[test]
fn type_is_required_without_a_topic() {
    assert_eq!(
        decode_as(Some(LIST.as_bytes()), None),
        Read::Invalid(Reason::MissingField)
    );
}

#[test]
fn other_types_are_ignored_regardless_of_their_fields() {
    assert_eq!(list(r#"{"type":"purchase"}"#), Read::Ignored);
    assert_eq!(
        list(r#"{"type":"","ts":-5,"items":[{}],"experiments":{"a":1,"a":2}}"#),
        Read::Ignored
    );
    assert_eq!(list(r#"{"type":"purchase",}"#), Read::Invalid(Reason::NotJson));
    assert_eq!(
        list(r#"{"type":"purchase","ts":1,"ts":1}"#),
        Read::Invalid(Reason::NotJson)
    );
}

#[test]
fn a_type_is_a_string() {
    check_invalid(
        "type",
        &["null", "1", "1.5", "{}", "[]", "true"].map(|json| (json, Reason::WrongType)),
    );
}

#[test]
fn a_missing_value_is_a_tombstone() {
    for value in [None, Some(&b"null"[..]), Some(b" null\n")] {
        assert_eq!(
            decode_as(value, Some(Kind::Served)),
            Read::Invalid(Reason::Tombstone)
        );
    }
}

#[test]
fn anything_but_one_json_value_is_refused() {
    for json in [
        "",
        " ",
        "{",
        "}",
        "nope",
        "NaN",
        &LIST[..LIST.len() - 1],
        &format!("{LIST}{LIST}"),
        &format!("{LIST} x"),
        &format!("\u{feff}{LIST}"),
        r#"{"request_id":"r",}"#,
        r#"{request_id:"r"}"#,
        r#"{'request_id':'r'}"#,
        r#"{"x":NaN}"#,
        r#"{"x":-Infinity}"#,
        r#"{"x":01}"#,
        r#"{"x":1.}"#,
        r#"{"x":+1}"#,
        r#"{"x":[1,]}"#,
        r#"{"x":"\x"}"#,
        r#"{"x":"\u12g4"}"#,
        "{\"x\":\"\n\"}",
        "{\"x\":1}\0",
    ] {
        assert_eq!(list(json), Read::Invalid(Reason::NotJson), "{json}");
    }
}

#[test]
fn invalid_utf_8_is_refused_at_any_position() {
    for part in ["r-1", "u-7", "neural", "i5", "request_id"] {
        let position = LIST.find(part).unwrap();
        let mut bytes = LIST.as_bytes().to_vec();
        bytes[position] = 0xff;
        assert_eq!(
            decode_as(Some(&bytes), Some(Kind::Served)),
            Read::Invalid(Reason::NotJson),
            "{part}"
        );
    }
}

#[test]
fn half_of_a_surrogate_pair_is_refused() {
    for (name, json) in [
        ("request_id", r#""\ud83d""#),
        ("user_id", r#""\ud83d""#),
        ("ts", r#""\ud83d""#),
        ("type", r#""\ud83d""#),
        ("items", r#"[5.5,"\ud83d"]"#),
        ("experiments", r#"{"\ud83d":"a"}"#),
        ("experiments", r#"{"e":"\ude00"}"#),
    ] {
        check_invalid(name, &[(json, Reason::NotJson)]);
    }
    assert!(matches!(
        list_with("unknown", Some(r#""\ud83d""#)),
        Read::List { .. }
    ));
}

#[test]
fn a_value_other_than_an_object_has_the_wrong_type() {
    for json in ["true", "1", "1e999", "\"r\"", "[]", " [1, {\"request_id\":1}] "] {
        assert_eq!(list(json), Read::Invalid(Reason::WrongType), "{json}");
    }
}

#[test]
fn a_known_key_must_not_repeat() {
    for name in [
        "type",
        "request_id",
        "user_id",
        "ts",
        "experiments",
        "items",
        "item",
    ] {
        let doubled = format!(r#"{{"{name}":null,"{name}":null,{}"#, &LIST[1..]);
        assert_eq!(list(&doubled), Read::Invalid(Reason::NotJson), "{name}");
    }
    let escaped = format!(r#"{{"t\u0073":1763596800123,{}"#, &LIST[1..]);
    assert_eq!(list(&escaped), Read::Invalid(Reason::NotJson));
}

#[test]
fn unknown_fields_are_ignored() {
    for json in [
        "null",
        "1e999",
        "[[{}]]",
        r#"{"request_id":1,"request_id":2}"#,
        r#""{[\"\\""#,
    ] {
        let longer = format!(r#"{{"x":{json},"x":{json},{}"#, &LIST[1..]);
        assert_eq!(list(&longer), list(LIST), "{json}");
    }
    assert_eq!(
        click(&format!(r#"{{"items":5,"experiments":{{"e":5}},{}"#, &CLICK[1..])),
        click(CLICK)
    );
    assert_eq!(list(&format!(r#"{{"item":5.5,{}"#, &LIST[1..])), list(LIST));
}

/// A fault of the past: a parser that recurses without a bound overflows its stack.
#[test]
fn nesting_is_limited_to_127_levels_everywhere() {
    let nested = |open: &str, close: &str, n: usize| format!("{}{}", open.repeat(n), close.repeat(n));
    let arrays = |n| nested("[", "]", n);
    for n in [127, 1_000, 10_000, 1_000_000] {
        for json in [
            arrays(n),
            format!("{}1{}", "{\"x\":".repeat(n), "}".repeat(n)),
            nested("[{\"\":[", "]}]", n / 3 + 1),
        ] {
            for name in [
                "unknown",
                "type",
                "request_id",
                "ts",
                "items",
                "experiments",
                "user_id",
                "item",
            ] {
                check_invalid(name, &[(&json, Reason::NotJson)]);
            }
        }
        check_invalid("items", &[(&format!("[{}]", arrays(n - 1)), Reason::NotJson)]);
        assert_eq!(list(&arrays(n + 1)), Read::Invalid(Reason::NotJson));
        assert_eq!(list(&"[".repeat(n)), Read::Invalid(Reason::NotJson));
    }
    assert!(matches!(
        list_with("unknown", Some(&arrays(126))),
        Read::List { .. }
    ));
    check_invalid("request_id", &[(&arrays(126), Reason::WrongType)]);
    assert_eq!(list(&arrays(127)), Read::Invalid(Reason::WrongType));
}

#[test]
fn adjacent_brackets_and_brackets_in_strings_do_not_nest() {
    for json in [
        format!("[{}1]", "[],".repeat(1_000)),
        format!(r#""\"{}\\""#, "[{".repeat(1_000)),
    ] {
        assert!(
            matches!(list_with("unknown", Some(&json)), Read::List { .. }),
            "{json:.20}"
        );
    }
}

#[test]
fn fields_are_required() {
    for name in ["request_id", "ts", "items"] {
        assert_eq!(
            list_with(name, None),
            Read::Invalid(Reason::MissingField),
            "{name}"
        );
    }
    assert_eq!(
        click(r#"{"request_id":1,"ts":1763596800123}"#),
        Read::Invalid(Reason::MissingField)
    );
}

#[test]
fn ids_are_nonempty_bounded_strings_or_integers() {
    let quoted = |n: usize| format!("\"{}\"", "x".repeat(n));
    let umlauts = |n: usize| format!("\"{}\"", "\\u00fc".repeat(n));
    let cases = [
        ("\"\"", Reason::IdLength),
        (&quoted(2049), Reason::IdLength),
        (&quoted(1_000_000), Reason::IdLength),
        (&umlauts(1025), Reason::IdLength),
        ("5.0", Reason::Number),
        ("5e0", Reason::Number),
        ("5E999", Reason::Number),
        ("-0.0", Reason::Number),
        ("100000000000000000000", Reason::Number),
        ("-100000000000000000000", Reason::Number),
        ("null", Reason::WrongType),
        ("true", Reason::WrongType),
        ("[\"r\",\"s\"]", Reason::WrongType),
        ("[1]", Reason::WrongType),
        ("{}", Reason::WrongType),
    ];
    check_invalid("request_id", &cases);
    check_invalid(
        "user_id",
        &cases
            .iter()
            .filter(|(json, _)| !["null", "\"\""].contains(json))
            .copied()
            .collect::<Vec<_>>(),
    );
    for (json, reason) in cases {
        check_invalid("items", &[(&format!("[1,{json},2]"), reason)]);
        // An array is as many clicks.
        if !json.starts_with('[') {
            let record = object(&[("request_id", "1"), ("ts", "1763596800123"), ("item", json)]);
            assert_eq!(click(&record), Read::Invalid(reason), "{json:.100}");
        }
    }
    for json in [
        "\" \"",
        &quoted(2048),
        &umlauts(256),
        "\"\\u0000\"",
        "99999999999999999999",
        "-99999999999999999999",
    ] {
        assert!(
            matches!(list_with("request_id", Some(json)), Read::List { .. }),
            "{json:.100}"
        );
    }
}

#[test]
fn an_integer_is_the_same_id_as_its_text() {
    let numbers = [
        "0",
        "5",
        "-7",
        "18446744073709551615",
        "99999999999999999999",
        "-9223372036854775809",
    ];
    for number in numbers {
        for (name, json, text) in [
            ("request_id", number.to_owned(), format!("\"{number}\"")),
            ("user_id", number.to_owned(), format!("\"{number}\"")),
            ("items", format!("[{number}]"), format!("[\"{number}\"]")),
        ] {
            assert_eq!(
                list_with(name, Some(&json)),
                list_with(name, Some(&text)),
                "{name}: {number}"
            );
            assert!(
                matches!(list_with(name, Some(&json)), Read::List { .. }),
                "{name}: {number}"
            );
        }
    }
    assert_eq!(
        list_with("request_id", Some("-0")),
        list_with("request_id", Some("\"0\""))
    );
    assert_ne!(
        list_with("request_id", Some("5")),
        list_with("request_id", Some("\"05\""))
    );
}

#[test]
fn escapes_are_resolved_before_hashing() {
    assert_eq!(
        list_with("request_id", Some(r#""\u0072-\"1""#)),
        list_with("request_id", Some(r#""r-\u00221""#))
    );
    let Read::List { id, items, .. } = list(&LIST.replace("r-1", r"\ud83d\ude00\/").replace("i5", r"\n"))
    else {
        panic!()
    };
    assert_eq!(
        (id, items[0]),
        (hash().request("😀/".as_bytes()), hash().item(b"\n"))
    );
}

#[test]
fn a_user_is_optional() {
    for json in [None, Some("null")] {
        assert!(
            matches!(list_with("user_id", json), Read::List { user: None, .. }),
            "{json:?}"
        );
    }
    let with_user = |json: &str| click(&format!(r#"{{"user_id":{json},{}"#, &CLICK[1..]));
    let user_of = |json| match with_user(json) {
        Read::Click { user, .. } => user,
        other => panic!("{other:?}"),
    };
    assert_eq!(user_of("\"u-7\""), Some(hash().user(b"u-7")));
    assert_eq!(user_of("7"), Some(hash().user(b"7")));
    assert_eq!(with_user("null"), click(CLICK));
    assert_eq!(with_user("[]"), Read::Invalid(Reason::WrongType));
}

#[test]
fn items_are_an_array_of_bounded_length() {
    check_invalid(
        "items",
        &[
            ("null", Reason::WrongType),
            ("\"i5\"", Reason::WrongType),
            ("5", Reason::WrongType),
            ("1e999", Reason::WrongType),
            (r#"{"0":"i5"}"#, Reason::WrongType),
            ("[1,2,3,4,5,6]", Reason::TooManyItems),
            ("[1.5,2,3,4,5,{}]", Reason::TooManyItems),
            (&format!("[{}0]", "0,".repeat(9_999)), Reason::TooManyItems),
            ("[\"\",1.5]", Reason::Number),
            ("[1.5,\"\"]", Reason::Number),
        ],
    );
    for (json, n) in [("[]", 0), (" [ ] ", 0), ("[1,2,3,4,5]", 5)] {
        let Read::List { items, .. } = list_with("items", Some(json)) else {
            panic!("{json}")
        };
        assert_eq!(items.len(), n);
    }
}

#[test]
fn experiments_are_optional() {
    for json in [None, Some("null"), Some("{}"), Some("{ }")] {
        let Read::List { arms, .. } = list_with("experiments", json) else {
            panic!("{json:?}")
        };
        assert_eq!(arms, []);
    }
}

#[test]
fn arms_are_sorted_by_experiment() {
    let json = r#"{"b":"1","a":"\"2\n","é":"😀","B":"4"}"#;
    let Read::List { arms, .. } = list_with("experiments", Some(json)) else {
        panic!()
    };
    assert_eq!(
        arms,
        [arm("B", "4"), arm("a", "\"2\n"), arm("b", "1"), arm("é", "😀")]
    );
}

#[test]
fn experiments_and_arms_are_short_text() {
    let long = "x".repeat(129);
    let umlauts = "ü".repeat(65);
    check_invalid(
        "experiments",
        &[
            ("[1]", Reason::WrongType),
            ("\"ranker\"", Reason::WrongType),
            ("false", Reason::WrongType),
            (r#"{"e":"a","e":"a"}"#, Reason::NotJson),
            (r#"{"e":1,"f":"b","\u0065":"a"}"#, Reason::NotJson),
            (
                &format!(r#"{{"{long}":"a","f":"a","{long}":"b"}}"#),
                Reason::NotJson,
            ),
        ],
    );
    // A faulty arm leaves its experiment out and no other.
    for faulty in [
        r#""e":1"#,
        r#""e":1.5"#,
        r#""e":["a"]"#,
        r#""e":false"#,
        r#""e":"""#,
        r#""":"a""#,
        &format!(r#""{long}":"a""#),
        &format!(r#""e":"{long}""#),
        &format!(r#""e":"{umlauts}""#),
        r#""__other__":"a""#,
        r#""e":"__other__""#,
        r#""e":"\u005f_other__""#,
        r#""e":null"#,
    ] {
        for json in [
            format!(r#"{{"f":"b",{faulty}}}"#),
            format!(r#"{{{faulty},"f":"b"}}"#),
        ] {
            let Read::List { arms, .. } = list_with("experiments", Some(&json)) else {
                panic!("{json}")
            };
            assert_eq!(arms, [arm("f", "b")], "{json}");
        }
    }
    let longest = "x".repeat(128);
    let json = format!(r#"{{"{longest}":"{longest}"}}"#);
    let Read::List { arms, .. } = list_with("experiments", Some(&json)) else {
        panic!()
    };
    assert_eq!(arms, [arm(&longest, &longest)]);
}

#[test]
fn the_first_failing_check_gives_the_reason() {
    let faults = [
        ("type", "1", Reason::WrongType),
        ("request_id", "1.5", Reason::Number),
        ("ts", "1763596800", Reason::TsSeconds),
        ("items", "[1,2,3,4,5,6]", Reason::TooManyItems),
        ("experiments", "5", Reason::WrongType),
        ("user_id", "1.5", Reason::Number),
    ];
    for first in 0..faults.len() {
        let mut fields = vec![("request_id", "1"), ("ts", "1763596800123"), ("items", "[]")];
        fields.retain(|(name, _)| !faults[first..].iter().any(|(faulty, ..)| faulty == name));
        fields.extend(faults[first..].iter().map(|&(name, json, _)| (name, json)));
        assert_eq!(list(&object(&fields)), Read::Invalid(faults[first].2));
    }
    let doubled = r#"{"request_id":1.5,"ts":5,"items":5,"experiments":{"e":"a","e":"b"},"user_id":""}"#;
    assert_eq!(
        list(doubled),
        Read::Invalid(Reason::NotJson),
        "the JSON itself goes before all fields"
    );
}

#[test]
fn an_invalid_click_keeps_its_request_id_for_counting_by_arm() {
    let click = |more: &str| format!(r#"{{"type":"click","request_id":"r-1",{more}}}"#);
    let refused = |user: Option<&str>, ts_ms| {
        let id = hash().request(b"r-1");
        let user = user.map(|user| hash().user(user.as_bytes()));
        Unreadable::Click(RefusedClick {
            id,
            is_partial: false,
            user,
            ts_ms,
        })
    };
    let ts = Some(1_763_596_805_123);
    for (json, expected) in [
        (
            click(r#""ts":"2025-11-20T00:00:05","item":"i9","user_id":"u-7""#),
            Some(refused(Some("u-7"), None)),
        ),
        (
            click(r#""ts":1763596805123,"item":{"id":"i9"}"#),
            Some(refused(None, ts)),
        ),
        (click(r#""ts":1763596805123"#), Some(refused(None, ts))),
        (
            click(r#""ts":1763596805123,"item":"i9","user_id":{}"#),
            Some(refused(None, ts)),
        ),
        (
            r#"{"type":"click","ts":1763596805123,"item":"i9"}"#.to_owned(),
            None,
        ),
        (
            r#"{"type":"click","request_id":"r-1","ts":17635968"#.to_owned(),
            None,
        ),
    ] {
        let at = Position {
            side: Side::Clicks,
            offset: 0,
            record_ts_ms: 0,
        };
        let mut batch = Batch::default();
        decoder().decode(Some(json.as_bytes()), None, at, &mut batch);
        let place = expected.as_ref().map(|_| 0);
        assert!(
            matches!(batch.events[0].body, Body::Invalid(_, found) if found == place),
            "{json}: {:?}",
            batch.events
        );
        assert_eq!(batch.unreadable, Vec::from_iter(expected), "{json}");
    }
}
