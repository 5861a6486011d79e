//! One value in several spellings, and spellings that only look like one.

use super::*;

fn id_of(read: Read) -> u128 {
    match read {
        Read::List { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

/// Text of a JSON string as an id, or the reason why it is not one.
#[track_caller]
fn check_id(json: &str, expected: Result<&str, Reason>) {
    let hash = hash();
    match expected {
        Ok(text) => {
            let bytes = text.as_bytes();
            assert_eq!(
                id_of(list_with("request_id", Some(json))),
                hash.request(bytes),
                "{json}"
            );
            let Read::List { user, items, .. } = list(&object(&[
                ("request_id", "1"),
                ("user_id", json),
                ("ts", "1763596800123"),
                ("items", &format!("[{json},{json}]")),
            ])) else {
                panic!("{json}")
            };
            // 0 means that the user is not known.
            assert_eq!(user, (text != "0").then(|| hash.user(bytes)), "{json}");
            assert_eq!(items, [hash.item(bytes); 2], "{json}");
            let read = click(&object(&[
                ("request_id", json),
                ("ts", "1763596800123"),
                ("item", json),
            ]));
            assert!(
                matches!(read, Read::Click { id, item, .. } if id == hash.request(bytes) && item == hash.item(bytes)),
                "{json}: {read:?}"
            );
        }
        Err(reason) => {
            check_invalid("request_id", &[(json, reason)]);
            check_invalid("user_id", &[(json, reason)]);
            check_invalid("items", &[(&format!("[\"a\",{json}]"), reason)]);
            let wrong_item = object(&[("request_id", "1"), ("ts", "1763596800123"), ("item", json)]);
            assert_eq!(click(&wrong_item), Read::Invalid(reason), "{json}");
        }
    }
}

#[test]
fn every_escape_is_decoded_to_its_character() {
    for (json, text) in [
        (r#""\"""#, "\""),
        (r#""\\""#, "\\"),
        (r#""\/""#, "/"),
        (r#""\b\f\n\r\t""#, "\u{8}\u{c}\n\r\t"),
        (r#""\u0000""#, "\0"),
        (r#""\u0041\u00e9\u20AC""#, "Aé€"),
        (r#""\\u0041""#, "\\u0041"),
        (r#""a\\\"b""#, "a\\\"b"),
        ("\"A\u{7f}é€😀\"", "A\u{7f}é€😀"),
    ] {
        check_id(json, Ok(text));
    }
    for json in [
        r#""\a""#,
        r#""\u""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\U0041""#,
        "\"\\",
    ] {
        check_id(json, Err(Reason::NotJson));
    }
}

#[test]
fn surrogates_are_valid_only_in_pairs() {
    for (json, text) in [
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\uD83D\uDE00x""#, "😀x"),
        (r#""\ud800\udc00\udbff\udfff""#, "\u{10000}\u{10ffff}"),
        (r#""\ud7ff\ue000\uffff""#, "\u{d7ff}\u{e000}\u{ffff}"),
    ] {
        check_id(json, Ok(text));
    }
    for json in [
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ude00\ud83d""#,
        r#""\ud83d\ud83d\ude00""#,
        r#""\ud83dx\ude00""#,
        r#""\ud83d\u0041""#,
        r#""\ud83d\n""#,
    ] {
        check_id(json, Err(Reason::NotJson));
    }
    // The same halves as UTF-8 would write them, if it could.
    for half in [&b"\xed\xa0\xbd"[..], b"\xed\xb8\x80", b"\xed\xa0\xbd\xed\xb8\x80"] {
        let [before, after] = LIST.split_once("r-1").map(|(one, two)| [one, two]).unwrap();
        let bytes = [before.as_bytes(), half, after.as_bytes()].concat();
        assert_eq!(
            decode_as(Some(&bytes), Some(Kind::Served)),
            Read::Invalid(Reason::NotJson)
        );
    }
}

#[test]
fn keys_are_recognized_in_any_spelling() {
    let escaped = |name: &str| -> String {
        let units = name.bytes().map(|byte| format!("\\u{byte:04x}"));
        units.collect()
    };
    for (json, kind) in [(LIST, Kind::Served), (CLICK, Kind::Click)] {
        for name in ["request_id", "user_id", "ts", "experiments", "items", "item"] {
            let key = |name: &str| format!("\"{name}\":");
            let spelt = json.replace(&key(name), &key(&escaped(name)));
            let read = |json: &str| decode_as(Some(json.as_bytes()), Some(kind));
            assert_eq!(read(&spelt), read(json), "{spelt}");
            if spelt != json {
                let twice = spelt.replacen('{', &format!("{{\"{name}\":1,"), 1);
                assert_eq!(read(&twice), Read::Invalid(Reason::NotJson), "{twice}");
            }
        }
    }
}

#[test]
fn keys_of_nested_objects_may_repeat_except_experiments() {
    for unknown in [r#"{"a":1,"a":2}"#, r#"[{"ts":1,"ts":2,"\u0074s":3}]"#] {
        assert_eq!(
            list(&LIST.replacen('{', &format!("{{\"x\":{unknown},"), 1)),
            list(LIST)
        );
    }
    for twice in [
        r#"{"e":"a","e":"a"}"#,
        r#"{"e":"a","\u0065":"b"}"#,
        r#"{"e":"a","f":"b","g":"c","e":"d"}"#,
        "{\"é\":\"a\",\"\\u00e9\":\"a\"}",
    ] {
        check_invalid("experiments", &[(twice, Reason::NotJson)]);
    }
}

#[test]
fn numbers_with_fraction_or_exponent_are_not_ids_and_minus_zero_is_zero() {
    for json in [
        "1e3", "1E3", "1e+3", "1e-0", "10e0", "0e0", "1.0", "-0.0", "-0e5", "1e999", "-1e-999",
    ] {
        check_id(json, Err(Reason::Number));
    }
    for json in [
        "1e", "1e+", ".5", "5.", "-", "--0", "+0", "00", "-00", "-01", "0x1F", "1_000",
    ] {
        check_id(json, Err(Reason::NotJson));
    }
    for (json, text) in [
        ("-0", "0"),
        ("0", "0"),
        ("\"-0\"", "-0"),
        ("\"1e3\"", "1e3"),
        ("1000", "1000"),
    ] {
        check_id(json, Ok(text));
    }
}

#[test]
fn integers_and_strings_mix_in_one_list() {
    let Read::List { items, .. } = list_with("items", Some("[5,\"5\",-0,\"0\",\"-0\"]")) else {
        panic!()
    };
    let expected = ["5", "5", "0", "0", "-0"].map(|item| hash().item(item.as_bytes()));
    assert_eq!(items, expected);
    check_invalid(
        "items",
        &[
            ("[5,\"5\",5.0]", Reason::Number),
            ("[\"5\",5,1e3,null]", Reason::WrongType),
            ("[5,\"5\",[5]]", Reason::WrongType),
        ],
    );
}

#[test]
fn a_megabyte_of_white_space_changes_nothing() {
    let space = " \t\r\n".repeat(250_000);
    for mark in ["{", "}", "[", "]", ":", ","] {
        let spaced = LIST.replacen(mark, &format!("{space}{mark}{space}"), 1);
        assert_eq!(list(&spaced), list(LIST), "around {mark}");
    }
    // Other kinds of space are not white space in JSON.
    for other in ["\u{b}", "\u{c}", "\u{a0}", "\u{2028}", "\u{feff}"] {
        let spaced = LIST.replacen(':', &format!("{other}:"), 1);
        assert_eq!(list(&spaced), Read::Invalid(Reason::NotJson), "{other:?}");
    }
    assert_eq!(list(&space), Read::Invalid(Reason::NotJson));
    let id = format!("\"{}\"", " ".repeat(1_000_000));
    check_invalid("request_id", &[(&id, Reason::IdLength)]);
}

/// Text of so many bytes, of characters that JSON needs six bytes each for.
fn longest_spelling(n_bytes: usize) -> (String, String) {
    ("\u{1}".repeat(n_bytes), "\\u0001".repeat(n_bytes))
}

#[test]
fn a_record_may_be_of_the_largest_size_in_every_field() {
    let (id, id_json) = longest_spelling(MAX_ID_BYTES);
    let (label, label_json) = longest_spelling(MAX_LABEL_BYTES);
    let record = |id: &str, label: &str, n_items: u32| {
        let items = vec![format!("\"{id}\""); n_items as usize].join(",");
        object(&[
            ("request_id", &format!("\"{id}\"")),
            ("user_id", &format!("\"{id}\"")),
            ("ts", "\"2025-11-20T00:00:00.123000000000000000000000+00:00\""),
            ("experiments", &format!("{{\"{label}\":\"{label}\"}}")),
            ("items", &format!("[{items}]")),
        ])
    };
    let expected = Read::List {
        id: hash().request(id.as_bytes()),
        user: Some(hash().user(id.as_bytes())),
        ts_ms: 1_763_596_800_123,
        items: vec![hash().item(id.as_bytes()); MAX_ITEMS as usize],
        arms: vec![arm(&label, &label)],
    };
    assert_eq!(list(&record(&id_json, &label_json, MAX_ITEMS)), expected);
    let (longer_id, longer_label) = (format!("{id_json}x"), format!("{label_json}x"));
    for (record, reason) in [
        (record(&longer_id, &label_json, MAX_ITEMS), Reason::IdLength),
        (record(&id_json, &label_json, MAX_ITEMS + 1), Reason::TooManyItems),
    ] {
        assert_eq!(list(&record), Read::Invalid(reason));
    }
    let Read::List { arms, .. } = list(&record(&id_json, &longer_label, MAX_ITEMS)) else {
        panic!()
    };
    assert_eq!(arms, []);
}
