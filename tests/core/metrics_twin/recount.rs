//! An independent recount: every click is compared with every list, and every metric is computed from sets of strings.

use std::collections::BTreeSet;

use abgauge_core::engine::Arm;
use abgauge_core::metrics::{Column, Measures};

use crate::metrics_twin::stream::{ArmName, Case, Event, List, Rules, text};
use crate::twin::{Convention, Items, Outcome, parts};

/// A list with its clicks.
#[derive(Debug, Clone)]
pub struct Joined {
    pub arms: Vec<ArmName>,
    pub at_ms: i64,
    pub outcome: Outcome,
}

/// Returns the lists of a case without copies, ordered by id and time.
pub fn join(case: &Case) -> Vec<Joined> {
    let mut lists: Vec<&List> = Vec::new();
    for event in &case.events {
        if let Event::List(list) = event
            && !lists.iter().any(|accepted| case.rules.is_copy(list, accepted))
        {
            lists.push(list);
        }
    }
    lists.sort_by_key(|list| (list.id, list.at_ms));
    let joined = |list| joined(list, &case.events, &case.rules);
    lists.into_iter().map(joined).collect()
}

/// Joins a list with its clicks among the events.
pub fn joined(list: &List, events: &[Event], rules: &Rules) -> Joined {
    let items: Vec<String> = list.items.iter().map(|item| text(*item)).collect();
    let clicks = events.iter().filter_map(|event| match event {
        Event::Click(click) if click.id == list.id => Some((click.at_ms - list.at_ms, text(click.item))),
        _ => None,
    });
    let span = -rules.click_skew_ms..=rules.attribution_ms;
    let clicked: BTreeSet<String> = clicks
        .filter(|(after_ms, _)| span.contains(after_ms))
        .map(|(_, item)| item)
        .collect();
    let (clicked, off_list) = clicked.into_iter().partition(|item| items.contains(item));
    Joined {
        arms: list.arms.clone(),
        at_ms: list.at_ms,
        outcome: Outcome {
            items,
            clicked,
            off_list,
        },
    }
}

/// Returns the lists of one arm, with the catalogue for their counts.
pub fn of_arm<'a>(lists: &'a [Joined], arm: &Arm, items: &'a Items) -> Vec<Counted<'a>> {
    let is_in = |list: &&Joined| {
        let mut arms = list.arms.iter();
        arms.any(|(experiment, name)| **experiment == *arm.experiment && **name == *arm.arm)
    };
    let counted = |list: &'a Joined| Counted {
        list: &list.outcome,
        items,
    };
    lists.iter().filter(is_in).map(counted).collect()
}

/// A list with the catalogue for its counts.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    pub list: &'a Outcome,
    pub items: &'a Items,
}

/// Computes the value of a column over these lists. `items` is the current catalogue.
pub fn value(lists: &[Counted], column: &Column, measures: &Measures, items: &Items) -> Option<f64> {
    let k = column.k.map(|k| k.get());
    if column.metric.id == "coverage" {
        return Some(seen(lists, k, items) as f64 / items.known.len() as f64);
    }
    let convention = Convention::of(&measures.profiles[column.profile]);
    let (mut numerator, mut denominator) = (0.0, 0.0);
    for Counted { list, items } in lists {
        let (above, below) = parts(
            column.metric.id,
            k,
            &convention,
            list,
            Some(items),
            measures.alpha,
        );
        numerator += above;
        denominator += below;
    }
    (denominator != 0.0).then(|| numerator / denominator)
}

/// Counts the distinct items in the top k of any list that were in the catalogue when served, and still are.
pub fn seen(lists: &[Counted], k: Option<u32>, items: &Items) -> usize {
    let mut seen = BTreeSet::new();
    for counted in lists {
        let shown = &counted.list.items;
        let top = k.map_or(shown.len(), |k| shown.len().min(k as usize));
        let known = shown[..top]
            .iter()
            .filter(|item| counted.items.lists(item) && items.lists(item));
        seen.extend(known);
    }
    seen.len()
}

/// Tolerance for a value: half a unit of the fixed point, plus the rounding of floating-point sums.
pub const TOLERANCE: f64 = 1.0 / (1_u64 << 33) as f64 + 1e-12;

/// Panics unless both are the same number, or both are absent.
#[track_caller]
pub fn assert_close(value: Option<f64>, expected: Option<f64>, what: impl Fn() -> String) {
    let is_close = match (value, expected) {
        (Some(value), Some(expected)) => (value - expected).abs() <= TOLERANCE,
        (value, expected) => value.is_none() && expected.is_none(),
    };
    assert!(is_close, "{} is {value:?}, recounted {expected:?}", what());
}
