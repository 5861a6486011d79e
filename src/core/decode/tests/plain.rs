//! The fast decoder is used for plain records, and only for them.

use super::*;

fn is_plain(json: &str, topic_kind: Option<Kind>) -> bool {
    let mut batch = Batch::default();
    let plain = decoder().plain(json.as_bytes(), topic_kind, &mut batch);
    plain.is_some()
}

#[track_caller]
fn check_list(json: &str, expected: bool) {
    assert_eq!(is_plain(json, Some(Kind::Served)), expected, "{json:.200}");
    list(json); // Compares both ways.
}

fn with(name: &str, json: &str) -> String {
    let mut fields = vec![("request_id", "1"), ("ts", "1763596800123"), ("items", "[]")];
    fields.retain(|(field, _)| *field != name);
    fields.push((name, json));
    object(&fields)
}

#[test]
fn typical_records_are_plain() {
    let typed = |json: &str, kind: &str| format!(r#"{{"type":"{kind}",{}"#, &json[1..]);
    for (json, topic_kind) in [
        (LIST.to_owned(), Some(Kind::Served)),
        (CLICK.to_owned(), Some(Kind::Click)),
        (typed(LIST, "served"), None),
        (typed(CLICK, "click"), None),
        (typed(CLICK, "click"), Some(Kind::Click)),
        (typed(r#"{"sku":5}"#, "purchase"), None),
        (LIST.replace(':', ": ").replace(',', ", "), Some(Kind::Served)),
        (
            format!("\t{LIST} \r\n").replace(',', "\n  ,  "),
            Some(Kind::Served),
        ),
        (CLICK.replace("{", r#"{"user_id": "u-7", "#), Some(Kind::Click)),
    ] {
        assert!(is_plain(&json, topic_kind), "{json}");
        assert!(
            !matches!(decode_as(Some(json.as_bytes()), topic_kind), Read::Invalid(_)),
            "{json}"
        );
    }
}

#[test]
fn valid_values_without_escapes_are_plain() {
    let longest = "x".repeat(2048);
    let umlauts = "ü".repeat(256);
    for id in [
        "\"r\"",
        "\" \"",
        "0",
        "-0",
        "-7",
        "99999999999999999999",
        "-99999999999999999999",
        &format!("\"{longest}\""),
        &format!("\"{umlauts}\""),
    ] {
        check_list(&with("request_id", id), true);
        check_list(&with("user_id", id), true);
        check_list(&with("items", &format!("[{id}, {id}]")), true);
        let click = object(&[("request_id", "1"), ("ts", "1763596800123"), ("item", id)]);
        assert!(is_plain(&click, Some(Kind::Click)), "{id}");
    }
    let label = "x".repeat(128);
    for (name, json) in [
        ("user_id", "null"),
        ("ts", "1000000000000"),
        ("ts", "9999999999999"),
        ("ts", "\"2025-11-20T00:00:00.123+01:00\""),
        ("items", " [ ] "),
        ("items", "[1,2,\"3\",4,5]"),
        ("experiments", "null"),
        ("experiments", "{ }"),
        ("experiments", r#"{"b":"1","a":"2","é":"😀","c":"3"}"#),
        ("experiments", &format!(r#"{{"{label}":"{label}"}}"#)),
    ] {
        check_list(&with(name, json), true);
    }
}

#[test]
fn unknown_fields_are_skipped() {
    for (json, expected) in [
        ("null", true),
        ("true", true),
        ("false", true),
        ("-0.5e+17", true),
        ("1E9", true),
        ("\"grün\"", true),
        (r#"{"page":"home","at":[1,[],{},null]}"#, true),
        ("[[[[[[[[1]]]]]]]]", true),
        ("[[[[[[[[[1]]]]]]]]]", false),
        (r#""a\"b""#, false),
        ("nul", false),
        ("truth", false),
        ("01", false),
        ("-", false),
        (".5", false),
        ("1.", false),
        ("1.e5", false),
        ("1e", false),
        ("+1", false),
        ("NaN", false),
        ("[1,]", false),
        ("[1}", false),
        ("{\"a\":1]", false),
        ("{\"a\"}", false),
        ("{1:2}", false),
        ("é", false),
        ("", false),
    ] {
        check_list(&with("unknown", json), expected);
    }
}

#[test]
fn malformed_records_are_left_to_the_parser() {
    let long = "x".repeat(2049);
    let label = "x".repeat(129);
    for (name, json) in [
        ("request_id", "\"\""),
        ("request_id", "\"r\\n\""),
        ("request_id", "\"r\n\""),
        ("request_id", "01"),
        ("request_id", "1.0"),
        ("request_id", "1e3"),
        ("request_id", "null"),
        ("request_id", "100000000000000000000"),
        ("request_id", "-100000000000000000000"),
        ("request_id", &format!("\"{long}\"")),
        ("user_id", "false"),
        ("user_id", "nope5"),
        ("user_id", "nul"),
        ("ts", "null"),
        ("ts", "0176359680012"),
        ("ts", "176359680012"),
        ("ts", "17635968001234"),
        ("ts", "1763596800123.0"),
        ("ts", "-1763596800123"),
        ("ts", "1763596800:23"),
        ("ts", "1763/96800123"),
        ("ts", "\"2025-11-20\""),
        ("items", "[1,2,3,4,5,6]"),
        ("items", "[1 2]"),
        ("items", "[null]"),
        ("items", "null"),
        ("experiments", "[]"),
        ("experiments", "nope{}"),
        ("experiments", r#"{"e":1}"#),
        ("experiments", r#"{"e":"a","e":"a"}"#),
        ("experiments", r#"{"e":""}"#),
        ("experiments", r#"{"":"a"}"#),
        ("experiments", r#"{"__other__":"a"}"#),
        ("experiments", r#"{"e":"__other__"}"#),
        ("experiments", &format!(r#"{{"e":"{label}"}}"#)),
        ("type", "null"),
    ] {
        check_list(&with(name, json), false);
    }
    for json in ["", "{", "{}", "[]", "null", "{\"ts\":1763596800123,}", "{\"ts\""] {
        check_list(json, false);
    }
    check_list(&format!("{LIST},"), false);
    check_list(&format!("{LIST}{LIST}"), false);
    check_list(&LIST.replace("\"}", "\""), false);
    for name in [
        "type",
        "request_id",
        "user_id",
        "ts",
        "experiments",
        "items",
        "item",
    ] {
        let twice = format!(r#"{{"{name}":"x",{}"#, &with(name, "\"x\"")[1..]);
        check_list(&twice, false);
    }
}

/// A string may end in any place of any block of 64 bytes.
#[test]
fn strings_of_any_length_are_plain_and_every_byte_matters() {
    for n in 1..200 {
        let id = "x".repeat(n);
        let json = LIST.replace("r-1", &id);
        check_list(&json, true);
        for bad in ["\\", "\"", "\n", "\u{1f}"] {
            check_list(&json.replacen("x\"", &format!("{bad}\""), 1), false);
        }
    }
}

#[test]
fn truncated_records_are_not_plain() {
    let padded = LIST.replace("u-7", &"u".repeat(70));
    for json in [LIST, CLICK, &padded] {
        for end in 0..json.len() {
            check_list(&json[..end], false);
        }
    }
}

/// Reads records into a batch, and checks that both decoders agree.
fn decode_all(records: &[(&str, Kind)], batch: &mut Batch) {
    let decoder = decoder();
    let mut parsed = Batch::default();
    for (json, kind) in records {
        let at = Position {
            side: Side::Served,
            offset: 0,
            record_ts_ms: 0,
        };
        decoder.decode(Some(json.as_bytes()), Some(*kind), at, batch);
        decoder.decode_by_paths(Some(json.as_bytes()), Some(*kind), at, &mut parsed);
    }
    assert_same(batch, &parsed);
}

fn share_arms(one: &str, two: &str) -> bool {
    let [one, two] = [one, two].map(|json| with("experiments", json));
    let mut batch = Batch::default();
    decode_all(&[(&one, Kind::Served), (&two, Kind::Served)], &mut batch);
    let arms = |n: usize| match &batch.events[n].body {
        Body::Served(list) => list.arms.clone(),
        other => panic!("{other:?}"),
    };
    assert!(!arms(0).is_empty());
    arms(0) == arms(1)
}

#[test]
fn lists_with_identically_spelled_arms_share_them() {
    for (one, two, expected) in [
        (r#"{"e":"a"}"#, r#"{"e":"a"}"#, true),
        (r#"{"e":"a","f":"ü"}"#, r#"{"e":"a","f":"ü"}"#, true),
        (r#"{"e":"a"}"#, r#"{"e":"b"}"#, false),
        (r#"{"e":"a"}"#, r#"{ "e":"a"}"#, false),
        (r#"{"e":"a"}"#, r#"{"e":"\u0061"}"#, false),
        (r#"{"e":"a","f":"b"}"#, r#"{"f":"b","e":"a"}"#, false),
        // A brace inside a string does not end an object, so the text up to it is not remembered.
        (r#"{"e":"a}"}"#, r#"{"e":"a}"}"#, false),
        (r#"{"e":"a"}"#, r#"{"e":"a","f":"}"}"#, false),
    ] {
        assert_eq!(share_arms(one, two), expected, "{one} {two}");
    }
    for (n_bytes, expected) in [(120, true), (128, false)] {
        let long = format!(r#"{{"{}":"{}"}}"#, "e".repeat(n_bytes), "a".repeat(n_bytes));
        assert_eq!(share_arms(&long, &long), expected, "{n_bytes}");
    }
}

/// A record that leaves nothing in the batch also loses its arms, and other arms take their place.
#[test]
fn truncated_arms_are_not_cached() {
    let sound = with("experiments", r#"{"e":"a"}"#);
    let other = with("experiments", r#"{"g":"b"}"#);
    let click = CLICK.replacen('{', r#"{"experiments":{"e":"a"},"#, 1);
    let faulty = sound.replacen("\"ts\":1", "\"ts\":", 1);
    let mut batch = Batch::default();
    let [sound, other, faulty] = [&sound, &other, &faulty].map(|json| (json.as_str(), Kind::Served));
    let click = (click.as_str(), Kind::Click);
    decode_all(&[click, other, sound, faulty, other, click, sound], &mut batch);
    batch.clear();
    decode_all(&[other, sound], &mut batch);
}

#[test]
fn many_spellings_stay_cached_beyond_their_batch() {
    let lists: Vec<String> = (0..2000)
        .map(|n| with("experiments", &format!(r#"{{"e":"a{n}"}}"#)))
        .collect();
    let records: Vec<(&str, Kind)> = lists.iter().map(|json| (json.as_str(), Kind::Served)).collect();
    let mut batch = Batch::default();
    decode_all(&records, &mut batch);
    assert_eq!(batch.arms.len(), 2000);
    batch.clear();
    assert!(batch.is_empty());
    decode_all(&records, &mut batch);
    assert_eq!(batch.arms.len(), 2000);
}

#[test]
fn a_batch_with_too_many_arms_clears_its_cache() {
    let list = with("experiments", r#"{"e":"a"}"#);
    let mut batch = Batch::default();
    decode_all(&[(&list, Kind::Served)], &mut batch);
    let arm = batch.arms[0].clone();
    batch.arms.resize(40_000, arm);
    batch.clear();
    assert!(batch.arms.is_empty() && batch.text.is_empty());
    decode_all(&[(&list, Kind::Served)], &mut batch);
    assert_eq!(batch.arms.len(), 1);
}

#[test]
fn a_batch_with_too_many_spellings_of_no_arms_clears_its_cache() {
    let spaces = |n: usize| [b' ', b'\t', b'\n', b'\r'].map(char::from)[n % 4];
    let lists = (0..40_000).map(|n| {
        let space: String = (0..8).map(|digit| spaces(n >> (2 * digit))).collect();
        with("experiments", &format!("{{{space}}}"))
    });
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let decoder = decoder();
    let mut batch = Batch::default();
    for list in lists {
        decoder.decode(Some(list.as_bytes()), Some(Kind::Served), at, &mut batch);
    }
    assert_eq!(batch.arms_by_json.len(), 40_000);
    batch.clear();
    assert!(batch.arms_by_json.is_empty());
}
