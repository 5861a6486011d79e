//! Request ids of several parts.

use super::*;
use crate::decode::shape::Path;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a path")
}

/// Our own shape, with the shelf and the page as further parts of ids.
fn shape(of_click: &[&str]) -> Shape {
    let mut shape = Shape::default();
    shape.served.further_ids = vec![path("ctx.shelf"), path("page")];
    shape.click.further_ids = of_click.iter().map(|text| path(text)).collect();
    shape
}

fn decode(shape: &Shape, json: &str) -> (Batch, Body) {
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    let mut batch = Batch::default();
    let decoder = decoder().reading(Some(shape));
    decoder.decode(Some(json.as_bytes()), None, at, &mut batch);
    let body = batch.events[0].body.clone();
    (batch, body)
}

fn id(parts: [Option<&str>; 3]) -> u128 {
    hash().composite(parts.iter().map(|part| part.map(str::as_bytes)))
}

fn list(more: &str) -> String {
    format!(r#"{{"type":"served","request_id":"r",{more}"ts":1763596800123,"items":["i"]}}"#)
}

fn click(more: &str) -> String {
    format!(r#"{{"type":"click","request_id":"r",{more}"ts":1763596800123,"item":"i"}}"#)
}

#[test]
fn a_list_has_all_parts_and_the_ids_of_partial_clicks() {
    let (batch, body) = decode(
        &shape(&["ctx.shelf", "page"]),
        &list(r#""page":2,"ctx":{"shelf":"top"},"#),
    );
    let Body::Served(list) = body else {
        panic!("{body:?}");
    };
    assert_eq!(list.id, id([Some("r"), Some("top"), Some("2")]));
    let partial = [
        [Some("r"), None, Some("2")],
        [Some("r"), Some("top"), None],
        [Some("r"), None, None],
    ];
    assert_eq!(batch.partial_ids_of(&list), partial.map(id));
}

#[test]
fn a_list_without_a_part_is_refused() {
    for (more, reason) in [
        (r#""page":2,"#, Reason::MissingField),
        (r#""page":null,"ctx":{"shelf":"top"},"#, Reason::MissingField),
        (r#""page":2,"ctx":{"shelf":{}},"#, Reason::WrongType),
        (r#""page":1.5,"ctx":{"shelf":"top"},"#, Reason::Number),
        (r#""page":2,"ctx":"top","#, Reason::WrongType),
        (r#""page":2,"page":2,"ctx":{"shelf":"top"},"#, Reason::NotJson),
        (r#""page":"","ctx":{"shelf":"top"},"#, Reason::IdLength),
    ] {
        let (batch, body) = decode(&shape(&[]), &list(more));
        assert!(
            matches!(body, Body::Invalid(found, _) if found == reason),
            "{more}"
        );
        assert!(batch.partial_ids.is_empty());
    }
}

#[test]
fn a_click_may_leave_out_all_parts_but_the_first() {
    let all = shape(&["ctx.shelf", "page"]);
    for (shape, more, parts) in [
        (
            &all,
            r#""page":2,"ctx":{"shelf":"top"},"#,
            [Some("r"), Some("top"), Some("2")],
        ),
        (&all, r#""page":2,"ctx":null,"#, [Some("r"), None, Some("2")]),
        (
            &all,
            r#""page":null,"ctx":{"shelf":"top"},"#,
            [Some("r"), Some("top"), None],
        ),
        (&all, "", [Some("r"), None, None]),
        (
            &shape(&["page"]),
            r#""page":"top","ctx":{"shelf":"x"},"#,
            [Some("r"), Some("top"), None],
        ),
        (&shape(&[]), r#""page":2,"#, [Some("r"), None, None]),
    ] {
        let (_, body) = decode(shape, &click(more));
        let names_all = parts.iter().all(Option::is_some);
        let found = match body {
            Body::Click(click) if names_all => click,
            Body::PartialClick(click) if !names_all => click,
            body => panic!("{more}: {body:?}"),
        };
        assert_eq!(found.id, id(parts), "{more}");
    }
    let (_, body) = decode(&all, &click(r#""page":[1,2],"#));
    assert_eq!(body, Body::Invalid(Reason::WrongType, None));
    let (batch, body) = decode(&all, &click(r#""page":2,"#).replace(r#""i""#, "{}"));
    assert_eq!(body, Body::Invalid(Reason::WrongType, Some(0)));
    let refused = Unreadable::Click(RefusedClick {
        id: id([Some("r"), None, Some("2")]),
        is_partial: true,
        user: None,
        ts_ms: Some(1_763_596_800_123),
    });
    assert_eq!(batch.unreadable, [refused]);
    let without = r#"{"type":"click","page":2,"ts":1763596800123,"item":"i"}"#;
    assert_eq!(decode(&all, without).1, Body::Invalid(Reason::MissingField, None));
}

#[test]
fn parts_may_surround_the_event_and_clicks_inside_a_list_have_all_its_parts() {
    let mut shape = shape(&[]);
    shape.records = Some(path("events"));
    shape.served.further_ids = vec![path("shelf"), path("^.page")];
    shape.served.clicked_items = Some(path("chosen").into());
    let event = list(r#""shelf":"top","chosen":["i"],"#);
    let (batch, _) = decode(&shape, &format!(r#"{{"page":"p","events":[{event}]}}"#));
    let whole = id([Some("r"), Some("top"), Some("p")]);
    match &batch.events[..] {
        [list, click] => {
            assert!(matches!(&list.body, Body::Served(list) if list.id == whole));
            assert!(matches!(&click.body, Body::Click(click) if click.id == whole));
        }
        events => panic!("{events:?}"),
    }
}

#[test]
fn explanations_name_the_faulty_part() {
    let decoder = decoder().reading(Some(&shape(&["ctx.shelf", "page"])));
    let explain = |json: String| decoder.explain(json.as_bytes(), None).swap_remove(0);
    let Explained::Refused { reason, place } = explain(list(r#""page":2,"#)) else {
        panic!("it lacks a part");
    };
    let place = place.expect("a field");
    assert_eq!(
        (reason, place.setting),
        (Reason::MissingField, "served.request_id")
    );
    assert_eq!((place.paths, place.value), (vec!["ctx.shelf".to_owned()], None));
    let Explained::Click {
        request_id,
        further_ids,
        ..
    } = explain(click(r#""page":2,"#))
    else {
        panic!("it is a click");
    };
    assert_eq!(
        (request_id.as_str(), further_ids),
        ("r", vec![None, Some("2".to_owned())])
    );
}
