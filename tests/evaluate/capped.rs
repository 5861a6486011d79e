//! `--max-lists-per-user`: the lists that count, and other counts next to them.

use std::fmt::Write as _;
use std::num::NonZeroU32;

use abgauge_core::evaluate::{Compare, Evaluator, ExperimentComparison, Options};
use abgauge_core::statistics::{ArmTotals, Settings};

/// A list of one item: its time in seconds, user, and arm.
type List = (i64, Option<&'static str>, &'static str);

fn events(lists: &[List]) -> String {
    let mut lines = String::new();
    for (n, (seconds, user, arm)) in lists.iter().enumerate() {
        let user = user.map_or(String::new(), |user| format!(r#""user_id":"{user}","#));
        let ts = 1_770_000_000_000 + seconds * 1000;
        writeln!(
            lines,
            r#"{{"type":"served","request_id":"{n}",{user}"ts":{ts},"experiments":{{"e":"{arm}"}},"items":["i"]}}"#
        )
        .expect("text takes all");
    }
    lines
}

fn compared(lists: &[List], max: u32) -> ExperimentComparison {
    let options = Options {
        compare: Some(Compare {
            all: Some(Settings::new("a")),
            max_lists_per_user: NonZeroU32::new(max),
            ..Compare::default()
        }),
        ..Options::default()
    };
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", events(lists).as_bytes())
        .expect("it can be read");
    let comparisons = evaluator.finish().comparisons.into_iter().flatten();
    comparisons.last().expect("an experiment is compared").1
}

/// Returns the lists that count, the lists without a user, and the lists over the cap.
fn counts(comparison: &ExperimentComparison, arm: &str) -> [f64; 3] {
    let ArmTotals {
        lists,
        lists_without_user,
        capped_lists,
        ..
    } = &comparison.totals.epochs[0].arms[arm];
    [lists.iter().sum(), *lists_without_user, *capped_lists]
}

#[test]
fn the_first_lists_of_a_user_are_chosen_by_slot_then_by_line() {
    let lists = [
        // The slot of five seconds that starts at 5 comes first in the file, and last in time.
        (7, Some("u"), "b"),
        (6, Some("u"), "b"),
        (4, Some("u"), "a"),
        (0, Some("u"), "b"),
        (3, Some("u"), "a"),
        (3, None, "a"),
        (8, None, "a"),
        (9, Some("v"), "b"),
    ];
    let all = compared(&lists, 0);
    assert_eq!(counts(&all, "a"), [4.0, 2.0, 0.0]);
    assert_eq!(counts(&all, "b"), [4.0, 0.0, 0.0]);
    // The lists of seconds 4 and 0 count, because lists of a slot are in the order of lines.
    let two = compared(&lists, 2);
    assert_eq!(counts(&two, "a"), [3.0, 2.0, 1.0]);
    assert_eq!(counts(&two, "b"), [2.0, 0.0, 2.0]);
    // Then the list of second 3 counts, and the one of second 7.
    let four = compared(&lists, 4);
    assert_eq!(counts(&four, "a"), [4.0, 2.0, 0.0]);
    assert_eq!(counts(&four, "b"), [3.0, 0.0, 1.0]);
}
