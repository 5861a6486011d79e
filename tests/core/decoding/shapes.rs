//! Reads records of other shapes, and has each explained, which must agree on every record. Fuzzing feeds it (`fuzz/`), the
//! corpus that fuzzing left for our own shape, and the samples of the presets.

use abgauge_core::decode::shape::{ArmsShape, Path, Paths, Shape, TsUnit, Zone};
use abgauge_core::decode::{Decoder, Explained, Hashes};
use abgauge_core::engine::event::{Batch, Body, Kind, Position, Side};

const SEED: u64 = 7;
const MAX_ITEMS: u32 = 20;
const MAX_EXPERIMENTS: u32 = 3;

/// Those of the presets, and some that go every other way.
fn shapes() -> Vec<Shape> {
    let path = |text| Paths::parse(text).expect("a path");
    let mut odd = Shape {
        kind: Some(path("meta.type")),
        without_kind: Some(Kind::Click),
        ts_unit: Some(TsUnit::Nanoseconds),
        ..Shape::default()
    };
    odd.served.item_id = Some(path("a.b"));
    odd.served.arms = ArmsShape {
        experiments: Some(path("experiments")),
        arm: Some(path("a.\"b.c\"")),
        ..ArmsShape::default()
    };
    odd.click.request_id = path("experiments.e");
    odd.click.item = path("items");
    let mut flat = Shape::default();
    flat.served.arms = ArmsShape {
        experiment: Some(path("type")),
        arm: Some(path("item")),
        experiment_name: Some("e".to_owned()),
        arm_name: Some("a".to_owned()),
        ..ArmsShape::default()
    };
    let mut rows = Shape {
        ts_zone: Zone::parse("-08:00"),
        ..Shape::default()
    };
    rows.served.item_id = Some(path("e"));
    rows.served.position = Some(path("x"));
    rows.served.skip_others = true;
    rows.served.rows = true;
    rows.served.row_items = Some(path("items"));
    let any = |paths: &[&str]| {
        let paths = paths.iter().map(|path| Path::parse(path).expect("a path"));
        Paths::any(paths.collect()).expect("some paths")
    };
    let mut several = Shape::default();
    several.served.user_id = Some(any(&["user_id", "experiments.e"]));
    several.served.items = any(&["x", "items"]);
    several.served.item_id = Some(any(&["e", "x"]));
    several.click.user_id = Some(any(&["a.b", "user_id", "item"]));
    several.click.ts = any(&["request_id", "ts"]);
    let further = |paths: &[&str]| -> Vec<Path> {
        let paths = paths.iter().map(|path| Path::parse(path).expect("a path"));
        paths.collect()
    };
    let mut composite = Shape::default();
    composite.served.further_ids = further(&["user_id", "experiments.e"]);
    composite.click.further_ids = further(&["item", "user_id"]);
    let presets = Shape::PRESETS.iter().map(|(_, preset)| preset());
    presets
        .chain([odd, flat, rows, several, composite, Shape::default()])
        .collect()
}

/// Reads the input as one record, and each of its lines as one.
///
/// # Panics
/// If the explanation of a record differs from its events, or if a record leaves anything else behind.
pub fn check(input: &[u8]) {
    for shape in shapes() {
        let decoder = Decoder::new(SEED, MAX_ITEMS, MAX_EXPERIMENTS).reading(Some(&shape));
        let mut batch = Batch::default();
        for record in [input].into_iter().chain(input.split(|byte| *byte == b'\n')) {
            for topic_kind in [Some(Kind::Served), Some(Kind::Click), None] {
                compare(&decoder, record, topic_kind, &mut batch);
            }
        }
    }
}

fn compare(decoder: &Decoder, record: &[u8], topic_kind: Option<Kind>, batch: &mut Batch) {
    let at = Position {
        side: Side::Served,
        offset: 0,
        record_ts_ms: 0,
    };
    batch.clear();
    let ends = |batch: &Batch| (batch.items.len(), batch.arms.len(), batch.text.len());
    let before = ends(batch);
    decoder.decode(Some(record), topic_kind, at, batch);
    let explained = decoder.explain(record, topic_kind);
    let hash = decoder.hashes();
    let text = String::from_utf8_lossy(record);
    let n_clicked = |explained: &Explained| match explained {
        Explained::Served { clicked, .. } => clicked.len(),
        _ => 0,
    };
    let n_explained: usize = explained.iter().map(|explained| 1 + n_clicked(explained)).sum();
    assert_eq!(batch.events.len(), n_explained.max(1), "{text}");
    let ([event], [explained]) = (&batch.events[..], &explained[..]) else {
        return;
    };
    let body = &event.body;
    match (body, explained) {
        (
            Body::Served(list),
            Explained::Served {
                request_id,
                further_ids,
                user_id,
                ts_ms,
                arms,
                items,
                n_skipped,
                ..
            },
        ) => {
            assert_eq!(batch.skipped_elements, *n_skipped, "{text}");
            assert_eq!(list.id, id_of(&hash, request_id, further_ids), "{text}");
            let n_partial = batch.partial_ids_of(list).len();
            assert_eq!(n_partial, (1 << further_ids.len()) - 1, "{text}");
            assert_eq!(
                list.user,
                user_id.as_ref().map(|user| hash.user(user.as_bytes())),
                "{text}"
            );
            assert_eq!(list.ts_ms, *ts_ms, "{text}");
            let said: Vec<u64> = items.iter().map(|item| hash.item(item.as_bytes())).collect();
            assert_eq!(batch.items_of(list), said, "{text}");
            let names = batch.arms_of(list).iter().map(|arm| {
                let [experiment, name] =
                    [&arm.experiment, &arm.arm].map(|range| batch.text_of(range).to_owned());
                assert_eq!(arm.hash, hash.arm(&experiment, &name), "{text}");
                (experiment, name)
            });
            assert_eq!(names.collect::<Vec<_>>(), *arms, "{text}");
            return;
        }
        (
            Body::Click(click) | Body::PartialClick(click),
            Explained::Click {
                request_id,
                further_ids,
                ts_ms,
                item,
                ..
            },
        ) => {
            let names_all = further_ids.iter().all(Option::is_some);
            assert_eq!(matches!(body, Body::Click(_)), names_all, "{text}");
            let said = (
                id_of(&hash, request_id, further_ids),
                *ts_ms,
                hash.item(item.as_bytes()),
            );
            assert_eq!((click.id, click.ts_ms, click.item), said, "{text}");
        }
        (Body::Ignored, Explained::Ignored(_)) => {}
        (Body::Invalid(reason, list), Explained::Refused { reason: said, .. }) => {
            assert_eq!(reason, said, "{text}");
            // The arms of an unreadable list stay.
            if list.is_some() {
                assert_eq!(ends(batch).0, before.0, "{text}");
                return;
            }
        }
        _ => panic!("{text}: {body:?} is explained as {explained:?}"),
    }
    assert_eq!(
        (ends(batch), batch.skipped_elements),
        (before, 0),
        "what is no list leaves nothing behind: {text}"
    );
}

/// The hash of an id of one part or several.
fn id_of(hash: &Hashes, first: &str, further: &[Option<String>]) -> u128 {
    match further {
        [] => hash.request(first.as_bytes()),
        _ => {
            let further = further.iter().map(|part| part.as_deref().map(str::as_bytes));
            hash.composite(std::iter::once(Some(first.as_bytes())).chain(further))
        }
    }
}
