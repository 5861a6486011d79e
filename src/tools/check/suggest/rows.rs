//! Records of one shown item each: the fields shared by a list, and the time between its records.

use std::collections::{HashMap, HashSet};

use abgauge_core::decode::shape::{Path, ServedShape};

use super::columns::FieldChoice;
use super::columns::{Members, SampleColumn, SampleColumns, id, is_id};
use super::fields::is_called_request;
use super::items;
use super::times::is_time;
use super::words::{ARM, EXPERIMENT, ITEM, POSITION, TIME, USER, hints};

/// Spans that are drafted, the shortest first.
const SPANS_MS: [i64; 5] = [10_000, 30_000, 60_000, 300_000, 1_800_000];

/// Paths of a record that shows one item.
#[derive(Clone)]
pub(super) struct RowDraft {
    /// Id of the list.
    pub request: FieldChoice,
    pub item: Path,
    pub position: Option<Path>,
    /// Path to a flag of clicked items.
    pub clicked: Option<Path>,
}

/// Returns the paths if many records share an id, each with a different item or position.
pub(super) fn row(columns: &SampleColumns, members: &Members) -> Option<RowDraft> {
    let item = columns.iter().find(|column| {
        let words: Vec<&str> = ITEM
            .into_iter()
            .filter(|word| !["id", "key"].contains(word))
            .collect();
        hints(&column.called(), &words) && 2 * column.count(members, is_id) > members.len()
    })?;
    let request = request(columns, members, item)?;
    // Most items of a list have different positions.
    let is_position = |column: &&SampleColumn| {
        hints(&column.called(), &POSITION)
            && column.count(members, |value| value.is_i64()) == item.count(members, is_id)
            && 10 * distinct(&[request, column], members) >= 9 * distinct(&[request, item], members)
    };
    let position = columns.iter().find(is_position);
    let clicked = columns.iter().find(|column| {
        items::is_click_flag(column, members.len()) && column.within(members).next().is_some()
    });
    Some(RowDraft {
        request: FieldChoice::only(&request.path, request.count(members, is_id)),
        item: item.path.clone(),
        position: position.map(|position| position.path.clone()),
        clicked: clicked.map(|clicked| clicked.path.clone()),
    })
}

/// Finds the id of the list: records share it, each with a different item. A name that hints at a request wins, then the field that
/// separates most lists.
fn request<'c, 'a>(
    columns: &'c SampleColumns<'a>,
    members: &Members,
    item: &SampleColumn,
) -> Option<&'c SampleColumn<'a>> {
    let is_other = |column: &SampleColumn| {
        let name = column.called();
        [&USER[..], &TIME, &ARM, &EXPERIMENT, &POSITION]
            .iter()
            .any(|words| hints(&name, words))
    };
    let possible = columns.iter().filter_map(|column| {
        let n = column.count(members, is_id);
        let n_lists = distinct(&[column], members);
        let n_items = distinct(&[column, item], members);
        let is_shared = 2 * n > members.len() && 2 * n_lists <= members.len();
        // Without a name, each record of a list must show another item, and no value may be a time.
        let is_list = is_called_request(column)
            || !is_other(column) && 10 * n_items >= 9 * members.len() && column.count(members, is_time) == 0;
        let is_it = column.path != item.path && is_shared && is_list;
        is_it.then(|| (is_called_request(column), n_lists, column))
    });
    let best = possible.max_by_key(|(is_called, n_lists, _)| (*is_called, *n_lists));
    best.map(|(.., column)| column)
}

/// Counts the distinct tuples of values in these columns.
fn distinct(columns: &[&SampleColumn], members: &Members) -> usize {
    let tuple = |number: &usize| {
        let values = columns.iter().map(|column| column.values.get(number));
        values.map(|value| value.map(ToString::to_string)).collect()
    };
    let tuples: HashSet<Vec<Option<String>>> = members.iter().map(tuple).collect();
    tuples.len()
}

/// Finds the field with which clicks refer to lists.
pub(super) fn tied(
    columns: &SampleColumns,
    lists: &Members,
    clicks: &Members,
    request: &Path,
) -> Option<FieldChoice> {
    let known: HashSet<_> = columns.get(request)?.within(lists).filter_map(id).collect();
    let n_tied =
        |column: &SampleColumn| column.count(clicks, |value| id(value).is_some_and(|id| known.contains(&id)));
    let ties = columns.iter().map(|column| (n_tied(column), column));
    let (n, column) = ties
        .filter(|(n, _)| *n > 0)
        // Of equal fields, the one with the same name as in lists is the most likely.
        .max_by_key(|(n, column)| (*n, column.path == *request))?;
    Some(FieldChoice::only(&column.path, n))
}

/// Returns the items of each list.
pub(super) fn shown(
    columns: &SampleColumns,
    lists: &Members,
    row: &RowDraft,
) -> HashMap<String, HashSet<String>> {
    let mut shown: HashMap<String, HashSet<String>> = HashMap::new();
    let (Some(requests), Some(items)) = (columns.get(&row.request.path), columns.get(&row.item)) else {
        return shown;
    };
    for number in lists {
        let of_record = |column: &SampleColumn| Some(id(column.values.get(number)?)?.into_owned());
        if let (Some(request), Some(item)) = (of_record(requests), of_record(items)) {
            shown.entry(request).or_default().insert(item);
        }
    }
    shown
}

impl RowDraft {
    /// Sets the paths of lists. Flags are left out if the sample has clicks of their own.
    pub fn put(&self, served: &mut ServedShape, has_clicks: bool) {
        served.items = self.item.clone().into();
        served.position = self.position.clone().map(Into::into);
        served.clicked = self.clicked.clone().filter(|_| !has_clicks).map(Into::into);
        served.gather_ms = Some(SPANS_MS[0]);
    }
}

/// First records of a sample's lists, by id: the rule of the engine, in the order of the records.
#[derive(Default)]
pub(super) struct Heads(HashMap<String, Vec<i64>>);

impl Heads {
    /// Returns true for the first record of a list.
    pub fn take(&mut self, id: &str, ts_ms: i64, span_ms: i64) -> bool {
        let heads = self.0.entry(id.to_owned()).or_default();
        let is_head = !heads
            .iter()
            .any(|head_ms| head_ms.abs_diff(ts_ms) <= span_ms as u64);
        if is_head {
            heads.push(ts_ms);
        }
        is_head
    }
}

/// Returns the shortest span that gives as few lists as the longest one, from the ids and times of records.
pub(super) fn span_ms(records: &[(String, i64)]) -> i64 {
    let n_lists = |span_ms: i64| {
        let mut heads = Heads::default();
        let is_head = |(id, ts_ms): &&(String, i64)| heads.take(id, *ts_ms, span_ms);
        records.iter().filter(is_head).count()
    };
    let [first, .., last] = SPANS_MS;
    let fewest = n_lists(last);
    let mut spans = SPANS_MS.into_iter();
    spans.find(|span_ms| n_lists(*span_ms) == fewest).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_all_records_of_a_list_and_no_more() {
        let records = |times: &[(&str, i64)]| -> Vec<(String, i64)> {
            let owned = |(id, ts_ms): &(&str, i64)| ((*id).to_owned(), *ts_ms);
            times.iter().map(owned).collect()
        };
        assert_eq!(span_ms(&records(&[("a", 0), ("a", 9_000), ("b", 500)])), 10_000);
        assert_eq!(span_ms(&records(&[("a", 0), ("a", 45_000), ("b", 500)])), 60_000);
        // The same id an hour later is another list.
        assert_eq!(
            span_ms(&records(&[("a", 0), ("a", 2_000), ("a", 3_600_000)])),
            10_000
        );
    }
}
