//! Choice of the fields for list IDs, users and clicked items.

use std::collections::{HashMap, HashSet};

use abgauge_core::decode::shape::Path;
use serde_json::Value;

use super::columns::{FieldChoice, Members, SampleColumn, SampleColumns, choice, id, ids, is_id, share};
use super::times::is_time;
use super::words::{ARM, EXPERIMENT, ITEM, REQUEST, USER, VAGUE, hint, hints};

/// Number of lists below which shared IDs prove nothing.
pub(super) const FEW: usize = 8;

/// Returns the IDs in any field, per record.
pub(super) fn ids_by_record(columns: &SampleColumns, members: &Members) -> Vec<HashSet<String>> {
    let ids = |number: &usize| {
        let values = columns.iter().filter_map(|column| column.values.get(number));
        values
            .filter_map(|value| id(value))
            .map(|id| id.into_owned())
            .collect()
    };
    members.iter().map(ids).collect()
}

/// Returns the fields with IDs in at least half of the records.
fn of_ids<'c, 'a>(columns: &'c SampleColumns<'a>, members: &Members) -> Vec<(&'c SampleColumn<'a>, usize)> {
    let n_ids = columns
        .iter()
        .map(|column| (column, column.count(members, is_id)));
    n_ids.filter(|(_, n)| *n > 0 && 2 * n >= members.len()).collect()
}

/// Returns true if the field may be the list ID. It may not be the kind of a record, an arm, a user or a time, unless its
/// name says request.
fn may_be_request(column: &SampleColumn, n_ids: usize, members: &Members, kind: Option<&Path>) -> bool {
    let is_time = || 2 * column.count(members, is_time) > n_ids;
    let is_arm = || hints(&column.called(), &ARM) || hints(&column.called(), &EXPERIMENT);
    !is_kind(column, kind)
        && !is_arm()
        && (is_called_request(column) || !(hints(&column.called(), &USER) || is_time()))
}

fn is_kind(column: &SampleColumn, kind: Option<&Path>) -> bool {
    kind == Some(&column.path)
}

/// Returns true if the name hints at a request. The word "id" alone is not a hint.
pub(super) fn is_called_request(column: &SampleColumn) -> bool {
    let words: Vec<&str> = REQUEST.into_iter().filter(|word| *word != "id").collect();
    hints(&column.called(), &words)
}

/// Finds the list IDs and the clicks' references to them: the pair that ties most clicks to a list. If no pair ties any, the
/// name of the clicks' field must hint at a request.
pub(super) fn requests(
    columns: &SampleColumns,
    lists: &Members,
    clicks: &Members,
    kind: Option<&Path>,
) -> [Option<FieldChoice>; 2] {
    let [served, mut click] = [lists, clicks].map(|members| {
        let fields = of_ids(columns, members).into_iter();
        fields
            .filter(|(column, n)| may_be_request(column, *n, members, kind))
            .collect::<Vec<_>>()
    });
    // If half of the lists share their IDs with others, the field identifies something else, unless it is named for a request: the
    // lists of one page may share one.
    let is_own = |column: &SampleColumn, n: usize| {
        n < FEW || 2 * distinct(column, lists).len() > n || is_called_request(column)
    };
    let served: Vec<_> = served
        .into_iter()
        .filter(|(column, n)| is_own(column, *n))
        .collect();
    let all_known: HashSet<String> = served
        .iter()
        .flat_map(|(column, _)| distinct(column, lists))
        .collect();
    let ties = |column: &SampleColumn| {
        let is_known = |value: &Value| id(value).is_some_and(|id| all_known.contains(&*id));
        column.count(clicks, is_known) > 0
    };
    if !lists.is_empty() && !click.iter().any(|(column, _)| ties(column)) {
        click.retain(|(column, _)| is_called_request(column));
    }
    let alone = |column: &SampleColumn, n: usize, members: &Members| {
        let looks_like_time = column.count(members, is_time) * 2 > n;
        share(n, members.len()) + hint(&column.called(), &REQUEST)
            - 2.0 * hint(&column.called(), &USER).min(1.0)
            - if looks_like_time { 2.0 } else { 0.0 }
    };
    let unique =
        |column: &SampleColumn, n: usize, members: &Members| share(distinct(column, members).len(), n);
    let mut of_served: HashMap<&Path, f64> = HashMap::new();
    let mut of_click: HashMap<&Path, f64> = HashMap::new();
    for (list, n) in &served {
        let own = alone(list, *n, lists) + unique(list, *n, lists);
        let known = distinct(list, lists);
        let mut best = own;
        for (named, n_named) in &click {
            let is_known = |value: &Value| id(value).is_some_and(|id| known.contains(&*id));
            let tied = share(named.count(clicks, is_known), clicks.len()) * unique(list, *n, lists);
            let same = if list.path == named.path { 0.25 } else { 0.0 };
            // The share of clicks that find their list outweighs all hints of names.
            let both = own + alone(named, *n_named, clicks) + 4.0 * tied + same;
            best = best.max(both);
            let best_named = of_click.entry(&named.path).or_insert(f64::MIN);
            *best_named = best_named.max(both);
        }
        of_served.insert(&list.path, best);
    }
    for (named, n) in &click {
        of_click
            .entry(&named.path)
            .or_insert_with(|| alone(named, *n, clicks));
    }
    let served = served
        .iter()
        .map(|(column, n)| (of_served[&column.path], *column, *n));
    let click = click
        .iter()
        .map(|(column, n)| (of_click[&column.path], *column, *n));
    [choice(served.collect()), choice(click.collect())]
}

/// Returns the IDs of a field.
pub(super) fn distinct(column: &SampleColumn, members: &Members) -> HashSet<String> {
    let ids = column.within(members).filter_map(id);
    ids.map(|id| id.into_owned()).collect()
}

/// Chooses the user by name alone. The field chosen for the other kind is preferred.
pub(super) fn user(
    columns: &SampleColumns,
    members: &Members,
    other: Option<&FieldChoice>,
) -> Option<FieldChoice> {
    let fields = columns.iter().filter_map(|column| {
        let n = column.count(members, is_id);
        let hint = hint(&column.called(), &USER);
        let is_same = other.is_some_and(|other| other.path == column.path);
        let score = share(n, members.len()) + hint + if is_same { 1.0 } else { 0.0 };
        (n > 0 && hint > 0.0).then_some((score, column, n))
    });
    choice(fields.collect())
}

/// Chooses the clicked item: the field whose IDs occur most often in the lists that the clicks refer to.
pub(super) fn item(
    columns: &SampleColumns,
    clicks: &Members,
    request: Option<&FieldChoice>,
    kind: Option<&Path>,
    items_of: &HashMap<String, HashSet<String>>,
) -> Option<FieldChoice> {
    let named = request.and_then(|request| columns.get(&request.path));
    // A click may name several items.
    let fields = columns.iter().filter_map(|column| {
        let n = column.count(clicks, |value| !ids(value).is_empty());
        if n == 0 || 2 * n < clicks.len() {
            return None;
        }
        if is_kind(column, kind) || request.is_some_and(|request| request.path == column.path) {
            return None;
        }
        let is_in_list = |number: &&usize| {
            let list = named.and_then(|named| id(named.values.get(number)?));
            let items = list.and_then(|list| items_of.get(&*list));
            let clicked = column.values.get(number).map(|value| ids(value));
            items
                .zip(clicked)
                .is_some_and(|(items, clicked)| clicked.iter().any(|item| items.contains(&**item)))
        };
        let n_found = clicks.iter().filter(is_in_list).count();
        let score =
            4.0 * share(n_found, clicks.len()) + share(n, clicks.len()) + hint(&column.called(), &ITEM)
                - hint(&column.called(), &USER);
        let says_item = || {
            let words: Vec<&str> = ITEM.into_iter().filter(|word| !VAGUE.contains(word)).collect();
            hints(&column.called(), &words)
        };
        let is_user = || hints(&column.called(), &USER) && !says_item();
        // A field whose IDs occur in the lists is accepted whatever its name.
        let is_other = n_found == 0 && (is_user() || 2 * column.count(clicks, is_time) > n);
        (!is_other).then_some((score, column, n))
    });
    choice(fields.collect())
}
