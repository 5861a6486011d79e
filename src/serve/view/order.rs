//! Order of arms: by a number, then by name in natural order, `arm-9` before `arm-10`.

use std::cmp::Ordering;

use abgauge_core::engine::View;
use abgauge_core::looks::ExperimentLook;
use abgauge_core::metrics::{CLICKS, Column, LISTS};
use abgauge_core::verdict::lower_ends;

use super::super::Exporter;
use super::query::{By, ViewQuery};
use crate::board::snapshot::ArmSnapshot;

/// Sorts arms as requested. Arms without the number come last in both directions. `look` is the latest look at their
/// experiment.
pub(super) fn sort(
    arms: &mut [&ArmSnapshot],
    query: &ViewQuery,
    column: Option<&Column>,
    look: Option<&ExperimentLook>,
) {
    let compared = look.and_then(|look| look.comparison.as_ref());
    let compared = compared.filter(|_| query.sort.by == By::Lift);
    let lifts = compared
        .map(|(settings, report)| lower_ends(settings, report))
        .unwrap_or_default();
    let number = |arm: &ArmSnapshot| match query.sort.by {
        By::Lift => lifts.get(&*arm.arm).copied(),
        _ => number(arm, query, column),
    };
    // Numbers are computed once per arm, not once per comparison.
    let mut keyed: Vec<(Option<f64>, &ArmSnapshot)> = arms.iter().map(|arm| (number(arm), *arm)).collect();
    let is_by_name = query.sort.by == By::Name;
    keyed.sort_by(|(a, arm), (b, other)| {
        let by_number = match (a, b) {
            (Some(a), Some(b)) if query.sort.descending => b.total_cmp(a),
            (Some(a), Some(b)) => a.total_cmp(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        let by_name = natural(&arm.arm, &other.arm);
        match is_by_name && query.sort.descending {
            true => by_name.reverse(),
            false => by_number.then(by_name),
        }
    });
    for (place, (_, arm)) in arms.iter_mut().zip(keyed) {
        *place = arm;
    }
}

/// Returns the column that a query sorts by, if it sorts by a metric.
pub(super) fn column_of<'a>(exporter: &'a Exporter, query: &ViewQuery) -> Option<&'a Column> {
    let By::Metric(_, id) = query.sort.by else {
        return None;
    };
    let mut columns = exporter.ranking.columns().iter();
    columns.find(|it| it.metric.id == id && it.profile == query.profile && it.k == query.k)
}

fn number(arm: &ArmSnapshot, query: &ViewQuery, column: Option<&Column>) -> Option<f64> {
    let sums = |view: View| Some(arm.sums(view, query.window)).filter(|sums| sums[LISTS] != 0);
    match query.sort.by {
        By::Name | By::Lift => None,
        By::Last => Some(arm.last_list_ms as f64),
        By::Lists(view) => sums(view).map(|sums| sums[LISTS] as f64),
        By::Clicks(view) => sums(view).map(|sums| sums[CLICKS] as f64),
        By::Metric(view, _) => column?.value(sums(view)?),
    }
}

/// Compares runs of digits as numbers, and everything else by lower-case characters. Ties are broken by bytes, so that
/// different names are never equal.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) {
        let order = match x.is_ascii_digit() && y.is_ascii_digit() {
            true => {
                let (n, m) = (digits(&mut left), digits(&mut right));
                // Without leading zeros the longer number is the larger one. No run of digits is too long for this.
                n.len().cmp(&m.len()).then_with(|| n.cmp(m))
            }
            false => {
                left = &left[x.len_utf8()..];
                right = &right[y.len_utf8()..];
                x.to_lowercase().cmp(y.to_lowercase())
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Removes the digits at the start of a text, and returns them without leading zeros.
fn digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    digits.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_in_natural_order() {
        let sorted = ["", "Arm-2", "arm-9", "arm-10", "arm-10b", "arm-010b", "beta", "β"];
        for (place, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                let (expected, order) = (place.cmp(&other), natural(a, b));
                // The order of names that differ only in leading zeros does not matter.
                if !(a.ends_with("10b") && b.ends_with("10b") && a != b) {
                    assert_eq!(order, expected, "{a:?} and {b:?}");
                }
                assert_eq!(order.is_eq(), a == b, "{a:?} and {b:?}");
                assert_eq!(order, natural(b, a).reverse());
            }
        }
    }
}
