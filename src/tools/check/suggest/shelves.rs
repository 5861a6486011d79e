//! Detection of the field that separates several lists with one request id, such as the shelf of a page.

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::decode::shape::Path;

use super::columns::{Members, SampleColumn, SampleColumns, id, is_id, share};
use super::times::is_time;
use super::words::{SHELF, hint};

/// Maximum number of shelves.
const MAX_SHELVES: usize = 100;
/// Share of lists that a field must separate.
const MIN_SEPARATED: f64 = 0.95;

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
    let texts = |column: &SampleColumn, members: &Members| -> BTreeSet<String> {
        let ids = column.within(members).filter_map(id);
        ids.map(|id| id.into_owned()).collect()
    };
    let separated = |column: &SampleColumn| {
        let n_of = shared.iter().map(|members| texts(column, members).len());
        share(n_of.sum(), n_shared)
    };
    let is_possible = |column: &&SampleColumn| {
        let n = column.count(lists, |value| is_id(value) && !is_time(value));
        n == lists.len()
            && !taken.contains(&Some(&column.path))
            && texts(column, lists).len() <= MAX_SHELVES
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
