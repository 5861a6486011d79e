//! The states that shares of records raise which do not count.

use super::*;

fn is_raised(stage: &Stage, topic: &str) -> bool {
    let mut text = Vec::new();
    stage.telemetry.render(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let raised = format!("abgauge_share_exceeded{{of=\"invalid\",topic=\"{topic}\"}} 1\n");
    let told = stage.telemetry.warnings();
    let told = told
        .iter()
        .any(|warning| warning.message.contains(&format!("topic `{topic}`")));
    assert_eq!(text.contains(&raised), told);
    told
}

#[test]
fn too_many_unreadable_records_of_a_topic_are_told_until_they_have_passed() {
    let mut stage = Stage::with(&[("LIMITS__MAX_INVALID_SHARE", "0.1")]);
    stage.own(&[0], [0, 0]);
    for offset in 0..90 {
        stage.list(0, offset, &format!("r-{offset}"), T0);
    }
    for offset in 90..100 {
        stage.record(SERVED, offset, T0, "{");
    }
    stage.pass(1000);
    assert!(!is_raised(&stage, "served"), "a tenth is allowed");
    stage.record(SERVED, 100, T0, "{");
    stage.pass(1000);
    assert!(is_raised(&stage, "served") && !is_raised(&stage, "clicks"));
    stage.pass(5 * 60 * 1000);
    assert!(!is_raised(&stage, "served"));
}

/// Pages with several shelves under one request id lose all but one: a retry loses nothing, so it is not called the same.
#[test]
fn copies_with_other_items_are_told_as_lists_that_share_one_id() {
    for (items, told) in [("y", "lists that came before"), ("z", "do your pages show several shelves?")] {
        let mut stage = Stage::new();
        stage.own(&[0], [0, 0]);
        for page in 0..60 {
            let id = format!("r-{page}");
            stage.list_of(0, 2 * page, &id, T0, "a", &["x", "y"]);
            stage.list_of(0, 2 * page + 1, &id, T0 + 1, "a", &["x", items]);
        }
        stage.pass(1000);
        let warnings = stage.telemetry.warnings();
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert!(warning.message.contains(told), "{}", warning.message);
        assert!(warning.message.contains("limits.max_duplicate_share (10%)"));
        assert_eq!(warning.runbook, Some("AbgaugeDuplicateRecords"));
    }
}
