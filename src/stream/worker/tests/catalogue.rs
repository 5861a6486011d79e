//! Catalogues in the worker, at the start and after a reload: the catalogue that each list counts by, and coverage.

use abgauge_core::decode::catalogue;
use abgauge_core::metrics::Column;

use super::*;
use crate::telemetry::Warning;

const METRICS: &str = "hit_rate,alpha_ndcg,coverage,popularity";

/// Returns a worker that uses a catalogue, at k = 1 and over the whole list, and owns nothing yet.
fn measuring(more: &[(&str, &str)]) -> Stage {
    let settings = [
        ("METRICS__K", "1"),
        ("METRICS__CATALOG", "unread"),
        ("METRICS__METRICS", METRICS),
    ];
    Stage::with(&[&settings, more].concat())
}

/// Reads items, each with its aspect and its users out of 4, and hands them to the worker.
fn take(stage: &mut Stage, items: &[(&str, &str, u32)], previous: Option<&Catalogue>) -> Arc<Catalogue> {
    let line = |(item, aspect, users): &(&str, &str, u32)| {
        format!("{{\"item\":\"{item}\",\"aspects\":[\"{aspect}\"],\"users\":{users},\"of_users\":4}}\n")
    };
    let text: String = items.iter().map(line).collect();
    let read = catalogue::read(
        text.as_bytes(),
        &abgauge_core::decode::Decoder::new(0, 1000, 100),
        previous,
    );
    let catalogue = Arc::new(read.expect("it can be read"));
    stage.worker.handle(Input::Catalogue(Arc::clone(&catalogue)));
    catalogue
}

/// Returns the value in `total`.
fn value(stage: &Stage, arm: &str, view: View, key: &str) -> Option<f64> {
    let snapshot = stage.snapshot();
    let shown = snapshot.arms.iter().find(|shown| &*shown.arm == arm)?;
    let is_it = |column: &&Column| column.key() == key;
    let column = stage
        .ranking
        .columns()
        .iter()
        .find(is_it)
        .expect("it is measured");
    column.value(shown.sums(view, 1))
}

fn live(stage: &Stage, key: &str) -> Option<f64> {
    value(stage, "a", View::Live, key)
}

#[test]
fn an_open_slot_keeps_its_catalogue_and_new_slots_take_the_new_one() {
    let mut stage = measuring(&[]);
    let first = take(&mut stage, &[("x", "one", 1), ("y", "one", 1)], None);
    stage.own(&[0], [0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    assert_eq!(live(&stage, "popularity"), Some(0.25));
    take(&mut stage, &[("x", "one", 3), ("y", "two", 3)], Some(&first));
    stage.list(0, 1, "r-2", T0 + 999);
    stage.round();
    assert_eq!(live(&stage, "popularity"), Some(0.25), "r-1 opened its slot");
    stage.list(0, 2, "r-3", T0 + 1000);
    stage.round();
    let mean = (0.25 + 0.25 + 0.75) / 3.0;
    assert_eq!(live(&stage, "popularity"), Some(mean));

    // Both items are clicked. With the same aspect, the second one adds half; with two aspects, it adds one. Either is the
    // ideal.
    for (offset, id, item) in [(0, "r-1", "x"), (1, "r-1", "y"), (2, "r-3", "x"), (3, "r-3", "y")] {
        let json = format!(r#"{{"request_id":"{id}","ts":{},"item":"{item}"}}"#, T0 + 1500);
        stage.record(CLICKED, offset, T0 + 1500, &json);
    }
    stage.round();
    let clicked_of_all = live(&stage, "alpha_ndcg").expect("it is defined");
    assert!((clicked_of_all - 2.0 / 3.0).abs() < 1e-9, "{clicked_of_all}");

    stage.ends.insert(SERVED, 3);
    stage.ends.insert(CLICKED, 4);
    stage.pass(30_000);
    for key in ["popularity", "alpha_ndcg", "coverage", "coverage@1"] {
        let settled = value(&stage, "a", View::Settled, key);
        assert_eq!(settled, live(&stage, key), "{key}");
    }
}

#[test]
fn a_retired_item_leaves_coverage_and_a_new_one_counts_from_its_first_list() {
    let mut stage = measuring(&[]);
    let first = take(&mut stage, &[("x", "", 1), ("y", "", 1)], None);
    stage.own(&[0], [0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    assert_eq!(
        (live(&stage, "coverage@1"), live(&stage, "coverage")),
        (Some(0.5), Some(1.0))
    );
    let timelines = stage.board.snapshot(Some(0)).arms[0].timelines.clone();
    let cell = timelines.expect("it was asked for")[0]
        .cells
        .last()
        .cloned()
        .flatten();
    let cell = cell.expect("the newest cell holds the list");
    let coverage = |column: &&Column| column.metric.id == "coverage";
    for column in stage.ranking.columns().iter().filter(coverage) {
        assert_eq!(
            column.value(&cell),
            None,
            "a cell tells nothing of distinct counts"
        );
    }
    let second = take(
        &mut stage,
        &[("y", "", 1), ("z", "", 1), ("w", "", 1), ("v", "", 1)],
        Some(&first),
    );
    assert_eq!(
        (live(&stage, "coverage@1"), live(&stage, "coverage")),
        (Some(0.0), Some(0.25)),
        "y of y, z, w, v"
    );
    stage.list_of(0, 1, "r-2", T0 + 1000, "a", &["z", "x"]);
    stage.round();
    assert_eq!(
        (live(&stage, "coverage@1"), live(&stage, "coverage")),
        (Some(0.25), Some(0.5)),
        "z too, and x is none of them"
    );
    take(&mut stage, &[("x", "", 1), ("y", "", 1)], Some(&second));
    assert_eq!(
        live(&stage, "coverage"),
        Some(1.0),
        "x was shown when it was listed"
    );
}

#[test]
fn a_removed_pair_takes_its_own_coverage_with_it() {
    let mut stage = measuring(&[]);
    let items = [("x", "", 1), ("y", "", 1), ("z", "", 1), ("w", "", 1)];
    let first = take(&mut stage, &items, None);
    stage.own(&[0, 1], [0, 0]);
    stage.list_of(0, 0, "r-1", T0, "a", &["x", "y"]);
    stage.list_of(1, 0, "r-2", T0, "a", &["y", "z"]);
    stage.round();
    assert_eq!(live(&stage, "coverage"), Some(0.75));
    stage.worker.handle(Input::Revoked);
    assert_eq!(live(&stage, "coverage"), None);
    // A parked pair gets the new catalogue, too.
    take(&mut stage, &[("x", "", 1), ("z", "", 4)], Some(&first));
    stage.assign(&[1], [1, 0]);
    stage.round();
    assert_eq!(live(&stage, "coverage"), Some(0.5), "z of x, z");
    stage.list_of(1, 1, "r-3", T0 + 1000, "a", &["z"]);
    stage.round();
    assert_eq!(live(&stage, "popularity"), Some((0.25 + 1.0) / 2.0));
    assert_eq!(live(&stage, "coverage"), Some(0.5));
}

#[test]
fn a_new_pair_uses_the_current_catalogue() {
    let mut stage = measuring(&[]);
    stage.own(&[0], [0, 0]);
    let first = take(&mut stage, &[("x", "", 1)], None);
    take(&mut stage, &[("x", "", 1), ("y", "", 3)], Some(&first));
    stage.worker.handle(Input::Revoked);
    stage.assign(&[0, 1], [0, 0]);
    stage.list(1, 0, "r-1", T0);
    stage.round();
    assert_eq!(live(&stage, "popularity"), Some(0.5));
    assert_eq!(live(&stage, "coverage"), Some(1.0));
}

#[test]
fn an_arm_beyond_the_bound_on_memory_has_no_coverage_and_is_counted() {
    // 2 views × 2 items × 2 cut-offs × 4 bytes: room for one arm of one pair.
    let mut stage = measuring(&[("LIMITS__MAX_COVERAGE", "50B")]);
    take(&mut stage, &[("x", "", 1), ("y", "", 1)], None);
    stage.own(&[0], [0, 0]);
    stage.list_of(0, 0, "r-1", T0, "a", &["x"]);
    stage.round();
    stage.list_of(0, 1, "r-2", T0, "b", &["x"]);
    stage.round();
    assert_eq!(live(&stage, "coverage"), Some(0.5));
    assert_eq!(value(&stage, "b", View::Live, "coverage"), None);
    assert_eq!(
        value(&stage, "b", View::Live, "popularity"),
        Some(0.25),
        "only coverage"
    );
    assert_eq!(stage.snapshot().arms_without_coverage, 1);
    stage.uptime += Duration::from_secs(1);
    stage.round();
    let reported = "limits.max_coverage is reached: arms without coverage: 1";
    let known = Warning {
        since_ms: Some(stage.now_ms),
        ..Warning::new(reported).see("AbgaugeCoverageLeftOut")
    };
    assert_eq!(stage.telemetry.warnings(), [known]);
}

#[test]
fn telemetry_shows_the_catalogue_in_use() {
    let mut stage = measuring(&[]);
    assert_eq!(stage.telemetry.status().catalog, None);
    let first = take(&mut stage, &[("x", "", 1)], None);
    stage.now_ms += 5000;
    stage.hand.advance_to(stage.now_ms);
    take(&mut stage, &[("x", "", 1), ("y", "", 1)], Some(&first));
    let status = stage.telemetry.status().catalog.expect("there is one");
    assert_eq!((status.items, status.taken_ms), (2, T0 + 5000));
}
