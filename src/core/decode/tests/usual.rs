//! The fastest decoder is used for documented records, and leaves nothing behind if it gives up.

use super::*;

const SHORT_LIST: &str = r#"{"request_id":"r-1","ts":1763596800123,"items":["i5"]}"#;

/// Adds a space after each comma and colon.
fn spaced(json: &str) -> String {
    json.replace("\":", "\": ").replace(",\"", ", \"")
}

/// Returns whether the fastest decoder reads a record after lists of the same arms. Compares all decoders.
#[track_caller]
fn is_usual(json: &str, topic_kind: Option<Kind>) -> bool {
    decode_as(Some(json.as_bytes()), topic_kind);
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    let decoder = decoder();
    for list in [LIST, &spaced(LIST)] {
        decoder.decode(Some(list.as_bytes()), Some(Kind::Served), at, &mut batch);
    }
    let before = (batch.items.clone(), batch.arms.clone(), batch.text.clone());
    let is_compact = decoder
        .usual::<Compact>(json.as_bytes(), topic_kind, &mut batch)
        .is_some();
    let is_spaced = decoder
        .usual::<Spaced>(json.as_bytes(), topic_kind, &mut batch)
        .is_some();
    assert!(!(is_compact && is_spaced), "{json}");
    let after = (batch.items, batch.arms, batch.text);
    assert!(is_compact || is_spaced || after == before, "{json}");
    is_compact || is_spaced
}

#[test]
fn a_typical_list_appends_its_items() {
    let long = LIST.replace("i9", &"x".repeat(70));
    let mut batch = Batch::default();
    for (json, expected) in [
        (SHORT_LIST, true),
        (&spaced(SHORT_LIST), false),
        (&long.replace(r#""experiments":{"ranker":"neural"},"#, ""), true),
        (&SHORT_LIST.replace("]}", ",5]}"), false),
    ] {
        let n_items = batch.items.len();
        let usual = decoder().usual::<Compact>(json.as_bytes(), Some(Kind::Served), &mut batch);
        let items = match usual {
            Some(Body::Served(list)) => list.items,
            _ => 0..0,
        };
        assert_eq!(!items.is_empty(), expected, "{json}");
        assert_eq!(batch.items.len(), n_items + items.len(), "{json}");
        for (place, id) in items.zip([&b"i5"[..], "x".repeat(70).as_bytes()]) {
            assert_eq!(batch.items[place as usize], hash().item(id), "{json}");
        }
    }
}

#[test]
fn documented_records_take_the_fast_path() {
    let with_user = CLICK.replace(r#","ts""#, r#","user_id":"u-7","ts""#);
    for (json, kind) in [
        (LIST, Kind::Served),
        (SHORT_LIST, Kind::Served),
        (CLICK, Kind::Click),
        (&with_user, Kind::Click),
        (&LIST.replace("i5", "grün"), Kind::Served),
        (&LIST.replace("r-1", &"x".repeat(2048)), Kind::Served),
        (&LIST.replace("i5", &"x".repeat(2048)), Kind::Served),
        (&LIST.replace("\",\"i9", "\", \"i9"), Kind::Served),
    ] {
        assert!(is_usual(json, Some(kind)), "{json}");
        assert!(is_usual(&spaced(json), Some(kind)), "{json}");
        assert!(!is_usual(json, None), "{json}");
        for end in 0..json.len() {
            if json.is_char_boundary(end) {
                assert!(!is_usual(&json[..end], Some(kind)), "{}", &json[..end]);
            }
        }
    }
    assert!(!is_usual(LIST, Some(Kind::Click)));
    assert!(!is_usual(CLICK, Some(Kind::Served)));
}

#[test]
fn records_that_begin_with_their_type_take_the_fast_path_in_topics_of_that_type() {
    for (json, start, kind, other) in [
        (LIST, r#"{"type":"served","#, Kind::Served, Kind::Click),
        (CLICK, r#"{"type":"click","#, Kind::Click, Kind::Served),
    ] {
        let json = json.replacen('{', start, 1);
        for json in [spaced(&json), json] {
            assert!(is_usual(&json, None), "{json}");
            assert!(is_usual(&json, Some(kind)), "{json}");
            assert!(!is_usual(&json, Some(other)), "{json}");
        }
    }
}

#[test]
fn other_records_do_not_take_the_fast_path() {
    for (from, to) in [
        ("{", " {"),
        ("{", r#"{"type":"click","#),
        ("{", r#"{"type":"page","#),
        ("]}", r#"],"type":"served"}"#),
        ("\"r-1\"", "7"),
        ("\"r-1\"", "\"\""),
        ("\"r-1\"", "\"r\\n\""),
        ("\"u-7\"", "null"),
        ("\"u-7\"", "\"\""),
        ("1763596800123", "176359680012"),
        ("1763596800123", "0763596800123"),
        ("1763596800123", "\"2025-11-20T00:00:00Z\""),
        ("neural", "linear"),
        ("\"i5\"", "5"),
        ("\"i9\"", "9"),
        ("\"i9\"", "\"\""),
        ("\"i9\"", "\"i\\u0039\""),
        ("\"i5\",\"i9\"", ""),
        ("\"i9\"", "\"i9\" "),
        ("\"i9\"", "\"i9\",\"1\",\"2\",\"3\",\"4\""),
        ("]}", "]} "),
        ("]}", "] }"),
        ("]}", "],\"page\":1}"),
        (",\"ts\"", ",  \"ts\""),
    ] {
        let json = LIST.replace(from, to);
        assert_ne!(json, LIST);
        assert!(!is_usual(&json, Some(Kind::Served)), "{json}");
        let json = spaced(LIST).replace(&spaced(from), &spaced(to));
        assert!(!is_usual(&json, Some(Kind::Served)), "{json}");
    }
    let longest = "x".repeat(2049);
    for name in ["r-1", "u-7", "i5", "i9"] {
        assert!(!is_usual(&LIST.replace(name, &longest), Some(Kind::Served)));
    }
    for to in [r#""i9" }"#, r#""i9","page":1}"#, "9}", "\"\"}"] {
        let json = CLICK.replace("\"i9\"}", to);
        assert_ne!(json, CLICK);
        assert!(!is_usual(&json, Some(Kind::Click)), "{json}");
    }
}
