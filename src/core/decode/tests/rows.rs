//! Records of one shown item each.

use super::*;
use crate::decode::shape::Paths;

fn shape() -> Shape {
    let path = |text| Paths::parse(text).expect("a path");
    let mut shape = Shape::default();
    shape.served.gather_ms = Some(10_000);
    shape.served.items = path("shown.id");
    shape.served.position = Some(path("shown.at"));
    shape.served.clicked = Some(path("clicked"));
    shape
}

fn decode(shape: &Shape, more: &str) -> Batch {
    let json =
        format!(r#"{{"type":"served","request_id":"r","ts":1763596800123,"experiments":{{"e":"a"}}{more}}}"#);
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    // A list before it has no position.
    let mut batch = Batch {
        items: vec![1, 2],
        ..Batch::default()
    };
    let decoder = decoder().reading(Some(shape));
    decoder.decode(Some(json.as_bytes()), None, at, &mut batch);
    batch
}

/// The item and its position.
#[track_caller]
fn row(shape: &Shape, more: &str) -> (Option<u64>, i64) {
    let batch = decode(shape, more);
    match &batch.events[0].body {
        Body::Served(list) => batch.row_item(list),
        other => panic!("{other:?}"),
    }
}

fn reason(shape: &Shape, more: &str) -> Option<Reason> {
    decode(shape, more).first_reason(0)
}

#[test]
fn a_row_has_one_item_and_a_position_from_any_base() {
    let item = Some(hash().item(b"i5"));
    assert_eq!(row(&shape(), r#","shown":{"id":"i5","at":-3}"#), (item, -3));
    assert_eq!(row(&shape(), r#","shown":[{"id":["i5"],"at":"7"}]"#), (item, 7));
    let mut without = shape();
    without.served.position = None;
    assert_eq!(row(&without, r#","shown":{"id":"i5"}"#), (item, 0));
}

#[test]
fn a_clicked_record_is_also_a_click() {
    let clicked = |more: &str| decode(&shape(), more).events.len() - 1;
    assert_eq!(clicked(r#","shown":{"id":"i5","at":0},"clicked":true"#), 1);
    assert_eq!(clicked(r#","shown":{"id":"i5","at":0},"clicked":0"#), 0);
    assert_eq!(clicked(r#","shown":{"id":"i5","at":0}"#), 0);
}

#[test]
fn a_record_without_its_item_or_its_position_is_invalid() {
    assert_eq!(reason(&shape(), ""), Some(Reason::MissingField));
    assert_eq!(
        reason(&shape(), r#","shown":{"id":"i5"}"#),
        Some(Reason::MissingField)
    );
    assert_eq!(
        reason(&shape(), r#","shown":{"id":["i5","i9"],"at":0}"#),
        Some(Reason::WrongType)
    );
    assert_eq!(
        reason(&shape(), r#","shown":{"id":"i5","at":1.5}"#),
        Some(Reason::Number)
    );
    let mut may_be_empty = shape();
    may_be_empty.served.absent_is_empty = true;
    assert_eq!(row(&may_be_empty, ""), (None, 0), "a list of no item");
}

#[test]
fn explanations_name_the_setting_of_the_faulty_field() {
    let json = r#"{"type":"served","request_id":"r","ts":1763596800123,"experiments":{},"shown":{"id":"i5","at":"top"}}"#;
    let explained = decoder().reading(Some(&shape())).explain(json.as_bytes(), None);
    let [
        Explained::Refused {
            place: Some(place), ..
        },
    ] = &explained[..]
    else {
        panic!("{explained:?}");
    };
    assert_eq!(
        (place.setting, &place.paths[..]),
        ("served.position", &["shown.at".to_owned()][..])
    );
    assert_eq!(place.value.as_deref(), Some(r#""top""#));
}
