//! Drafts of the array that holds a list's items.

use std::collections::HashSet;

use abgauge_core::decode::shape::Path;
use serde_json::Value;

use super::columns::{Members, SampleColumn, SampleColumns, id, ids, is_id, share};
use super::text::short;
use super::times::is_time;
use super::words::{CLICK, ITEM, ITEMS, POSITION, TIME, hint, hints, words};

/// End of the explanation for items that are text.
pub(super) const IS_TEXT: &str = "is text, not an array";

/// One array and one way to read it.
#[derive(Clone)]
pub(super) struct ItemsDraft {
    pub path: Path,
    pub item_id: Option<Path>,
    pub rows: bool,
    pub row_items: Option<Path>,
    pub position: Option<Path>,
    /// Path to an item's click flag.
    pub clicked: Option<Path>,
    /// Set if the array is sorted by position in every list.
    pub is_in_order: bool,
    /// Number of elements that are not items.
    pub n_others: usize,
    /// Number of lists with such an array, empty or with at least one item.
    pub n_read: usize,
    pub score: f64,
}

/// Returns true if most of these records have an array of possible items.
pub(super) fn has_list(columns: &SampleColumns, members: &Members) -> bool {
    let n_most = columns
        .iter()
        .flat_map(|column| drafts(column, members))
        .map(|draft| draft.n_read)
        .max();
    !members.is_empty() && n_most.is_some_and(|n| 2 * n > members.len())
}

/// Returns the ways to read the lists, best first. Clicked items count in favor of the way that finds them.
pub(super) fn candidates(
    columns: &SampleColumns,
    lists: &Members,
    clicked: &[HashSet<String>],
) -> Vec<ItemsDraft> {
    let mut all: Vec<ItemsDraft> = columns
        .iter()
        .flat_map(|column| {
            drafts(column, lists).into_iter().map(move |mut draft| {
                let shown: HashSet<String> = column.within(lists).flat_map(|list| draft.ids(list)).collect();
                let is_shown = |ids: &&HashSet<String>| !ids.is_disjoint(&shown);
                let n_found = clicked.iter().filter(is_shown).count();
                draft.score += 3.0 * share(n_found, clicked.len());
                draft
            })
        })
        .collect();
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all
}

/// Finds a field of lists with the IDs of their clicked items.
pub(super) fn clicked(columns: &SampleColumns, lists: &Members, items: &ItemsDraft) -> Option<Path> {
    let array = columns.get(&items.path)?;
    let mut fields = columns
        .iter()
        .filter(|column| column.path != items.path && hints(&column.called(), &CLICK));
    let is_of_list = |column: &&SampleColumn| {
        let are_shown = |number: &usize| {
            let clicked = ids(column.values.get(number)?);
            let shown = items.ids(array.values.get(number)?);
            let is_shown = |item: &std::borrow::Cow<str>| shown.iter().any(|shown| shown == item);
            (!clicked.is_empty()).then(|| clicked.iter().all(is_shown))
        };
        let found: Vec<bool> = lists.iter().filter_map(are_shown).collect();
        !found.is_empty() && 2 * found.iter().filter(|are| **are).count() > found.len()
    };
    fields.find(is_of_list).map(|column| column.path.clone())
}

/// Explains why the field named like items, or else an array, cannot be read as items.
pub(super) fn why_not(columns: &SampleColumns, members: &Members) -> Option<String> {
    let is_called = |column: &SampleColumn| hints(&column.called(), &ITEMS);
    let arrays = |column: &SampleColumn| {
        column.count(members, |value| {
            value.as_array().is_some_and(|list| !list.is_empty())
        })
    };
    let column = columns
        .iter()
        .filter(|column| {
            arrays(column) > 0 || (is_called(column) && column.count(members, Value::is_string) > 0)
        })
        // The name counts more than the number of arrays.
        .max_by_key(|column| (is_called(column), arrays(column)))?;
    let name = short(&column.path.to_string());
    let lists = || column.within(members).filter_map(Value::as_array);
    let strange = |element: &&Value| !is_id(element) && !element.is_object();
    let first = lists().find_map(|list| {
        let place = list.iter().position(|element| strange(&element))?;
        Some((place + 1, &list[place]))
    });
    Some(match first {
        Some((_, Value::Array(row))) if row.iter().any(Value::is_array) => {
            format!(
                "`{name}` is an array of arrays of arrays, but rows of items are read one level deep only"
            )
        }
        Some((place, value)) => format!(
            "element {place} of `{name}` is {}, which is neither text, nor an integer, nor an object",
            short(&value.to_string())
        ),
        None if lists().next().is_none() => format!("`{name}` {IS_TEXT}"),
        None => format!("most objects in `{name}` have no field with an id"),
    })
}

impl ItemsDraft {
    /// Returns the item IDs of a list.
    pub fn ids(&self, list: &Value) -> Vec<String> {
        let ids = self.elements(list).into_iter();
        ids.filter_map(|element| self.id(element)).collect()
    }

    fn id(&self, element: &Value) -> Option<String> {
        let value = match element {
            Value::Object(_) => at(element, self.item_id.as_ref()?)?,
            other => other,
        };
        id(value).map(std::borrow::Cow::into_owned)
    }

    fn elements<'a>(&self, list: &'a Value) -> Vec<&'a Value> {
        self.rows(list).concat()
    }

    /// Returns the elements of each row. An element outside of a row is a row of its own.
    fn rows<'a>(&self, list: &'a Value) -> Vec<Vec<&'a Value>> {
        let all: Vec<&Value> = list.as_array().into_iter().flatten().collect();
        if !self.rows {
            return vec![all];
        }
        let of_row = |element: &'a Value| {
            let row = match (element, &self.row_items) {
                (Value::Array(row), _) => Some(row),
                (Value::Object(_), Some(path)) => at(element, path).and_then(Value::as_array),
                _ => None,
            };
            row.map_or_else(|| vec![element], |row| row.iter().collect())
        };
        all.into_iter().map(of_row).collect()
    }
}

/// Returns the value at a path as the decoder finds it: through objects, and through arrays with one element.
pub(super) fn at<'a>(value: &'a Value, path: &Path) -> Option<&'a Value> {
    path.names().iter().try_fold(value, |mut value, name| {
        while let Value::Array(elements) = value {
            let [only] = &elements[..] else { return None };
            value = only;
        }
        value.get(name).filter(|value| !value.is_null())
    })
}

/// Returns the ways to read the arrays of a column.
fn drafts(column: &SampleColumn, lists: &Members) -> Vec<ItemsDraft> {
    let arrays: Vec<&Value> = column.within(lists).filter(|value| value.is_array()).collect();
    // A time may be an array of its year, month, day and so on.
    if !arrays.is_empty() && arrays.iter().all(|array| is_time(array)) {
        return Vec::new();
    }
    let top: Vec<&Value> = arrays
        .iter()
        .filter_map(|list| list.as_array())
        .flatten()
        .collect();
    let bare = ItemsDraft {
        path: column.path.clone(),
        item_id: None,
        rows: false,
        row_items: None,
        position: None,
        clicked: None,
        is_in_order: true,
        n_others: 0,
        n_read: 0,
        score: 0.0,
    };
    let mut forms = Vec::new();
    // Elements that are arrays are rows. Otherwise objects may hold rows in a field named like items.
    if mostly(&top, Value::is_array) {
        forms.push(ItemsDraft { rows: true, ..bare });
    } else {
        let of_rows = |path: &Path| ItemsDraft {
            rows: true,
            row_items: Some(path.clone()),
            ..bare.clone()
        };
        let is_row = |column: &&SampleColumn| hints(&column.called(), &ITEMS);
        let inner = SampleColumns::of(top.iter().copied().filter(|element| element.is_object()));
        let rows = inner.iter().filter(is_row);
        let rows = rows.filter(|column| {
            let all: Members = column.values.keys().copied().collect();
            column.count(&all, Value::is_array) == all.len() && 2 * all.len() > top.len()
        });
        forms.extend(rows.map(|column| of_rows(&column.path)));
        forms.push(bare);
    }
    let with_ids = |form: ItemsDraft| {
        let elements: Vec<&Value> = arrays.iter().flat_map(|list| form.elements(list)).collect();
        let of_ids = mostly(&elements, is_id).then(|| form.clone());
        let objects = match mostly(&elements, Value::is_object) {
            true => of_objects(&form, &elements),
            false => Vec::new(),
        };
        of_ids.into_iter().chain(objects).collect::<Vec<_>>()
    };
    let read = forms.into_iter().flat_map(with_ids);
    read.map(|draft| judged(draft, &arrays, lists.len())).collect()
}

fn mostly(elements: &[&Value], is_one: impl Fn(&Value) -> bool) -> bool {
    2 * elements.iter().filter(|element| is_one(element)).count() > elements.len()
}

/// Returns whether a column of `n` items or rows has the name of a click, and only booleans, 0 and 1, quoted or not. It may
/// also be a time that most lack. Other numbers may count the clicks of an item on all lists.
pub(super) fn is_click_flag(column: &SampleColumn, n: usize) -> bool {
    let is_flag = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        value.is_boolean()
            || matches!(value.as_u64(), Some(0 | 1))
            || (value.is_string() && ["", "0", "1", "true", "false", "True", "False"].contains(&text))
    };
    let values = || column.values.values();
    let is_called = hints(&column.called(), &CLICK) || hints(&column.called(), &["label"]);
    // Not the time of the last click on any list, or of an end.
    let words = words(column.name());
    let is_time_of_click = words.iter().any(|word| CLICK.contains(&word.as_str()))
        && words
            .iter()
            .all(|word| [&CLICK[..], &TIME].iter().any(|all| all.contains(&word.as_str())));
    let n_times = values().filter(|value| is_time(value)).count();
    let are_times = || values().all(|value| is_time(value) || value.as_str() == Some("")) && 2 * n_times < n;
    (is_called && values().all(|value| is_flag(value))) || (is_time_of_click && are_times())
}

/// Returns a draft for each field of objects that may be their ID.
fn of_objects(form: &ItemsDraft, elements: &[&Value]) -> Vec<ItemsDraft> {
    let objects = SampleColumns::of(elements.iter().copied().filter(|element| element.is_object()));
    let ids = objects.iter().filter(|column| {
        let n_ids = column.values.values().filter(|value| is_id(value)).count();
        2 * n_ids > elements.len()
    });
    let position = objects
        .iter()
        .filter(|column| hints(&column.called(), &POSITION))
        .find(|column| column.values.values().all(|value| value.is_i64()));
    let clicked = objects
        .iter()
        .find(|column| is_click_flag(column, elements.len()));
    // A position is only usable if each item has one.
    let of_all = |ids: &SampleColumn| {
        position.filter(|position| ids.values.keys().all(|n| position.values.contains_key(n)))
    };
    // A position is an integer and could be taken for an id.
    ids.filter(|column| position.is_none_or(|position| position.path != column.path))
        .map(|column| ItemsDraft {
            item_id: Some(column.path.clone()),
            position: of_all(column).map(|position| position.path.clone()),
            clicked: clicked.map(|clicked| clicked.path.clone()),
            ..form.clone()
        })
        .collect()
}

/// Scores how well a draft reads the arrays.
fn judged(mut draft: ItemsDraft, arrays: &[&Value], n_lists: usize) -> ItemsDraft {
    let (mut n_items, mut n_repeating) = (0, 0);
    for list in arrays {
        let elements = draft.elements(list);
        let ids = draft.ids(list);
        draft.n_others += elements.len() - ids.len();
        n_items += ids.len();
        // Every draft can read an empty list.
        draft.n_read += usize::from(!ids.is_empty() || elements.is_empty());
        let distinct: HashSet<&String> = ids.iter().collect();
        n_repeating += usize::from(distinct.len() < ids.len());
        let position = |element: &&Value| {
            draft
                .position
                .as_ref()
                .and_then(|path| at(element, path)?.as_i64())
        };
        let mut rows = draft.rows(list).into_iter();
        let is_in_order = rows.all(|row| row.iter().filter_map(position).is_sorted());
        draft.is_in_order &= is_in_order;
    }
    let names = draft.path.names().last().map_or("", String::as_str);
    let id_hint = draft.item_id.as_ref().and_then(|path| path.names().last());
    let has_ranks = n_items > arrays.len();
    draft.score = 2.0 * share(draft.n_read, n_lists) + hint(names, &ITEMS).min(1.0)
        - share(n_repeating, arrays.len())
        + share(n_items, n_items + draft.n_others)
        + if has_ranks { 0.5 } else { 0.0 }
        + match id_hint {
            Some(name) => 0.5 * hint(name, &ITEM).min(1.0),
            None => 0.5,
        };
    draft
}
