//! Recipes of the cookbook that run jq, on their samples: `abgauge` then reads the events without a setting.

use std::process::Stdio;

use crate::support::brought;
use crate::support::program::run_with_input;

/// Runs a script of docs/events on its sample. `flags` are those of the cookbook.
fn converted(script: &str, flags: &str) -> String {
    let path = |ending: &str| format!("{}/docs/events/{script}.{ending}", env!("CARGO_MANIFEST_DIR"));
    let sample = std::fs::File::open(path("jsonl")).expect("the sample exists");
    let output = brought::command("jq")
        .args([flags, "--from-file", &path("jq")])
        .stdin(Stdio::from(sample))
        .output()
        .expect("jq starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Compares the lists and clicks that are read.
#[track_caller]
fn check(script: &str, flags: &str, expected: &[&str]) {
    let ran = run_with_input(&["check", "--sample", "-"], &converted(script, flags));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for line in expected {
        assert!(ran.stdout.contains(line), "{line}:\n{}", ran.stdout);
    }
}

#[test]
fn rows_and_exports_become_lists() {
    check("rows", "-cs", &["served list r-1 of user u-7", "items: p3, p7"]);
    check("ga4_export", "-c", &["experiments: ranker = neural"]);
}

#[test]
fn a_list_gets_the_arm_that_its_user_was_assigned_before() {
    let expected = [
        "served list r-1 of user u-7 at 2025-11-20T00:00:00Z\n         experiments: ranker = neural",
        "served list r-2 of user u-8 at 2025-11-20T00:00:00.5Z\n         experiments: ranker = base",
    ];
    check("assignments", "-cs", &expected);
}

#[test]
fn a_click_gets_the_latest_list_of_its_user_that_shows_the_item() {
    check(
        "latest_list",
        "-cs",
        &[
            "click on p7 of list list-2 of user u-7",
            "click on p1 of list none",
        ],
    );
}

#[test]
fn events_of_other_shapes_get_the_own_one() {
    let expected = [
        "served list r-1 of user u-7 at 2025-11-20T00:00:09Z\n         experiments: ranker = neural\n         items: p3, p7",
        "click on p7 of list r-1 at 2025-11-20T00:00:12Z",
        "items: p1, p2",
        "click on p1 of list r-2",
    ];
    check("reshape", "-c", &expected);
}

#[test]
fn a_click_on_a_shown_item_gets_its_list() {
    check("shown_item", "-cs", &["click on p7 of list a-1 of user u-7"]);
}
