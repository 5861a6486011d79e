//! Tests of the verdict as a rollout controller requests it.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge_core::looks::{GivenUp, Look, Published};
use abgauge_core::statistics::ArmState;
use serde_json::{Value, json};

use super::*;
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use crate::serve::fixture::{self, looks};

struct Nothing;

impl SnapshotSource for Nothing {
    fn snapshot_into(&self, _: Option<usize>, _: &mut Snapshot) {}

    fn timelines(&self, _: usize, _: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        Vec::new()
    }
}

/// Exporter with this look at experiment `e`. Experiment `young` has a control and no list yet, `bare` has no control.
fn exporter(look: ExperimentLook) -> Exporter {
    let asked = [
        ("e", Some(looks::settings())),
        ("young", Some(Settings::new("base"))),
        ("bare", None),
    ];
    let asked = asked.map(|(name, settings)| {
        let experiment = Experiment {
            settings,
            ..Experiment::default()
        };
        (name.to_owned(), experiment)
    });
    Exporter {
        experiments: asked.into(),
        looks: looks::published("e", look),
        ..fixture::exporter(Arc::new(Nothing))
    }
}

/// Answer to a query such as `arm=b&gate=promote`.
fn ask(exporter: &Exporter, query: &str) -> Result<(u16, Value), (u16, String)> {
    let uri = format!("/?{query}").parse().unwrap();
    let axum::extract::Query(wanted) = axum::extract::Query::try_from_uri(&uri).unwrap();
    match verdict(exporter, &wanted) {
        Ok((status, json)) => Ok((status.as_u16(), serde_json::from_slice(&json).unwrap())),
        Err(VerdictRefusal { status, message }) => Err((status.as_u16(), message)),
    }
}

#[track_caller]
fn check_refused(exporter: &Exporter, query: &str, status: u16, words: &[&str]) {
    let (found, message) = ask(exporter, query).unwrap_err();
    assert_eq!(found, status, "{query}: {message}");
    for word in words {
        assert!(message.contains(word), "{query}: {word} is not in: {message}");
    }
}

fn in_state(state: ArmState) -> ExperimentLook {
    let mut look = looks::compared();
    let (_, report) = look.comparison.as_mut().unwrap();
    let arm = report.arms.get_mut("b").unwrap();
    arm.decision.as_mut().unwrap().state = state;
    look
}

#[test]
fn the_only_tested_arm_need_not_be_named() {
    let exporter = exporter(looks::compared());
    let (status, answer) = ask(&exporter, "experiment=e").unwrap();
    assert_eq!(status, 200);
    for (field, value) in [
        ("version", json!(1)),
        ("experiment", json!("e")),
        ("arm", json!("b")),
        ("control", json!("a")),
        ("result", json!("hold")),
        ("value", json!(0)),
        ("state", json!("no_decision")),
        (
            "reason",
            json!("no primary metric differs significantly on day 7"),
        ),
        ("as_of", json!(looks::AS_OF_MS)),
        ("look", json!(looks::LOOK)),
    ] {
        assert_eq!(answer[field], value, "{field}");
    }
    assert_eq!(answer["metrics"]["hit_rate@5"]["lift"], 0.12);
    assert_eq!(answer["checks"]["multi_arm"], json!({"share": 0.005}));
    assert_eq!(ask(&exporter, "experiment=e&arm=b").unwrap(), (200, answer));
    // An arm without a share is shown without a verdict.
    let (status, untested) = ask(&exporter, "experiment=e&arm=c").unwrap();
    assert_eq!((status, untested.get("result")), (200, None));
}

#[test]
fn a_gate_opens_only_for_its_own_result() {
    for (state, promote, rollback) in [
        (ArmState::Win, 200, 409),
        (ArmState::Loss, 409, 200),
        (ArmState::Harm, 409, 200),
        (ArmState::InvalidSrm, 409, 409),
        (ArmState::Collecting, 409, 409),
        (ArmState::NoEffect, 409, 409),
    ] {
        let exporter = exporter(in_state(state));
        let (_, plain) = ask(&exporter, "experiment=e").unwrap();
        for (gate, expected) in [("promote", promote), ("rollback", rollback)] {
            let (status, answer) = ask(&exporter, &format!("experiment=e&gate={gate}")).unwrap();
            assert_eq!(status, expected, "{state} {gate}");
            assert_eq!(answer, plain, "the same body");
        }
    }
    let exporter = exporter(looks::compared());
    for gate in ["promote", "rollback"] {
        let (status, _) = ask(&exporter, &format!("experiment=e&arm=c&gate={gate}")).unwrap();
        assert_eq!(status, 409, "c is not tested");
    }
}

#[test]
fn that_users_are_not_counted_is_noted() {
    let look = ExperimentLook {
        no_users: Some("no users"),
        ..looks::compared()
    };
    let (_, answer) = ask(&exporter(look), "experiment=e").unwrap();
    assert_eq!(answer["notes"], json!(["a note", "no users"]));
}

#[test]
fn the_arm_must_be_named_if_several_are_tested() {
    let mut look = looks::compared();
    let (settings, _) = look.comparison.as_mut().unwrap();
    settings.shares.insert("c".to_owned(), 0.25);
    check_refused(&exporter(look), "experiment=e", 400, &["arm=NAME", "`b`, `c`"]);
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let exporter = exporter(looks::compared());
    check_refused(&exporter, "", 400, &["experiment=NAME", "`e`, `young`"]);
    check_refused(
        &exporter,
        "experiment=x",
        404,
        &["`e`, `young`", "[experiments.x]"],
    );
    check_refused(
        &exporter,
        "experiment=bare",
        404,
        &["set `control` under [experiments.bare]"],
    );
    check_refused(&exporter, "experiment=e&arm=x", 404, &["`x`", "`b`, `c`"]);
    check_refused(&exporter, "experiment=e&arm=", 404, &["`b`, `c`"]);
    check_refused(
        &exporter,
        "experiment=e&arm=a",
        404,
        &["`a` is the control", "`b`, `c`"],
    );
    check_refused(
        &exporter,
        "experiment=e&gate=pass",
        400,
        &["`promote` or `rollback`"],
    );
    check_refused(
        &exporter,
        "experiment=e&gates=promote",
        400,
        &["`gates`", "`gate`"],
    );
    check_refused(&exporter, "experiment=%1b[31m", 404, &[r"`\u{1b}[31m`"]);
}

#[test]
fn a_verdict_needs_a_look() {
    let exporter = exporter(looks::compared());
    check_refused(&exporter, "experiment=young", 503, &["there is no analysis"]);
    let alone = ExperimentLook {
        comparison: Some((Settings::new("a"), none_beside_the_control())),
        ..looks::compared()
    };
    check_refused(
        &self::exporter(alone),
        "experiment=e",
        404,
        &["no arm except the control"],
    );
    exporter.telemetry.set_waiting_for(vec!["partition 3".to_owned()]);
    check_refused(
        &exporter,
        "experiment=e&gate=promote",
        503,
        &["not ready: partition 3"],
    );
    check_refused(&exporter, "experiment=x", 404, &["`e`"]);
}

fn none_beside_the_control() -> ComparisonReport {
    let (_, report) = looks::compared().comparison.unwrap();
    ComparisonReport {
        grown: Default::default(),
        arms: BTreeMap::new(),
        ..report
    }
}

#[test]
fn an_abandoned_experiment_names_the_limit_to_raise() {
    let given_up = Look {
        as_of_ms: looks::AS_OF_MS,
        experiments: BTreeMap::new(),
        given_up: Some(GivenUp::Experiment("e".to_owned())),
    };
    let published = Published::default();
    published.show(given_up, None);
    let exporter = Exporter {
        looks: Arc::new(published),
        ..exporter(looks::compared())
    };
    check_refused(&exporter, "experiment=e", 503, &["limits.max_statistics"]);
}

#[test]
fn a_long_list_of_names_is_truncated() {
    let names: Vec<String> = (0..25).map(|n| format!("e-{n}")).collect();
    let headlines = listed(names.iter().map(String::as_str));
    assert!(headlines.ends_with("`e-19` and 5 more"), "{headlines}");
    assert_eq!(listed(["a"].into_iter()), "`a`");
    assert_eq!(listed([].into_iter()), "none");
}
