//! Detection of request ids of two parts: a shelf that separates the lists of one page, or a number within a session.

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::decode::shape::Path;
use serde_json::Value;

use super::arms::is_of_arms;
use super::columns::{Members, SampleColumn, SampleColumns, id, is_id, share};
use super::fields::{FEW, distinct};
use super::times::is_time;
use super::words::{SHELF, hint};

/// Maximum number of shelves.
const MAX_SHELVES: usize = 100;
/// Share of lists that a field must separate.
const MIN_SEPARATED: f64 = 0.95;
/// Maximum number of fields to pair.
const MAX_PARTS: usize = 12;

/// Returns the best field to be the second part of the request id, or `None` if no field separates the lists of one id.
pub(super) fn part<'c, 'a>(
    columns: &'c SampleColumns<'a>,
    lists: &Members,
    request: &SampleColumn,
    taken: &[Option<&Path>],
) -> Option<&'c SampleColumn<'a>> {
    // Records by request id; only those with several are of interest.
    let mut of_id: BTreeMap<String, Members> = BTreeMap::new();
    for number in lists {
        if let Some(id) = request.values.get(number).and_then(|value| id(value)) {
            of_id.entry(id.into_owned()).or_default().push(*number);
        }
    }
    let shared: Vec<&Members> = of_id.values().filter(|members| members.len() > 1).collect();
    let n_shared: usize = shared.iter().map(|members| members.len()).sum();
    let separated = |column: &SampleColumn| {
        let n_of = shared.iter().map(|members| distinct(column, members).len());
        share(n_of.sum(), n_shared)
    };
    let is_possible = |column: &&SampleColumn| {
        let n = column.count(lists, |value| is_id(value) && !is_time(value));
        n == lists.len()
            && !taken.contains(&Some(&column.path))
            && distinct(column, lists).len() <= MAX_SHELVES
            && separated(column) >= MIN_SEPARATED
    };
    let possible = columns.iter().filter(is_possible);
    possible.max_by(|one, other| {
        let rank = |column: &SampleColumn| (hint(&column.called(), &SHELF), separated(column));
        let ((name, separated), (other_name, other_separated)) = (rank(one), rank(other));
        name.total_cmp(&other_name)
            .then(separated.total_cmp(&other_separated))
    })
}

/// Returns two fields that together are the id of a list, such as a session and a number within it, if no field alone is one.
/// Clicks must name both.
pub(super) fn pair<'c, 'a>(
    columns: &'c SampleColumns<'a>,
    lists: &Members,
    clicks: &Members,
) -> Option<[&'c SampleColumn<'a>; 2]> {
    let is_part = |value: &Value| is_id(value) && !is_time(value);
    let are_parts =
        |column: &SampleColumn, members: &Members| column.count(members, is_part) == members.len();
    let parts: Vec<&SampleColumn> = columns
        .iter()
        .filter(|column| are_parts(column, lists) && are_parts(column, clicks) && !is_of_arms(column))
        .take(MAX_PARTS)
        .collect();
    let ids = |pair: &[&SampleColumn], members: &Members| -> BTreeSet<Vec<String>> {
        let of = |number: &usize| {
            let parts = pair
                .iter()
                .map(|column| Some(id(column.values.get(number)?)?.into_owned()));
            parts.collect()
        };
        members.iter().filter_map(of).collect()
    };
    let n_values = |column: &SampleColumn| ids(&[column], lists).len();
    // In a small sample, any two fields may happen to be unique.
    if lists.len() < FEW || clicks.is_empty() {
        return None;
    }
    let mut pairs = parts
        .iter()
        .flat_map(|first| parts.iter().map(|second| [*first, *second]));
    pairs.find(|pair| {
        let [first, second] = pair.map(n_values);
        let known = ids(pair, lists);
        let are_few = 2 * first <= lists.len() && 2 * second <= lists.len();
        // Put the text field first: it is usually the session.
        let is_text = pair.map(|column| column.count(lists, Value::is_string) > 0);
        pair[0].path != pair[1].path
            && are_few
            && is_text[0] >= is_text[1]
            && known.len() == lists.len()
            && ids(pair, clicks).is_subset(&known)
    })
}
