//! Detection of the field that distinguishes served lists from clicks.

use std::collections::{BTreeMap, HashSet};

use abgauge_core::decode::shape::Path;
use abgauge_core::engine::event::Kind;

use super::columns::{Members, SampleColumn, SampleColumns, share};
use super::fields;
use super::items;
use super::rows;
use super::words::{ARM, CLICK, EXPERIMENT, INTERACTION, KIND, SERVED, TIME, USER, hint, hints};

/// Maximum number of values of a kind field.
const MAX_VALUES: usize = 24;
/// Maximum number of fields to try.
const MAX_TRIED: usize = 8;

/// A way to split records into lists and clicks, and the result on the sample.
pub(super) struct KindSplit {
    /// Field with the kind. `None` if the topic determines it, or nothing does.
    pub kind: Option<Path>,
    pub served: Vec<String>,
    pub click: Vec<String>,
    /// Kind of records without that field.
    pub without: Option<Kind>,
    /// Second field of clicks, and its accepted values.
    pub action: Option<(Path, Vec<String>)>,
    pub lists: Members,
    pub clicks: Members,
    /// Number of records for each value of the field.
    pub counts: BTreeMap<String, usize>,
}

/// Returns the splits to try: by each field whose values distinguish lists from clicks, or without a field if none does.
/// `topic_kinds` contains the kind of events in each record's topic.
pub(super) fn splits(columns: &SampleColumns, topic_kinds: &[Option<Kind>]) -> Vec<KindSplit> {
    match of_topics(topic_kinds) {
        None => by_fields(columns, topic_kinds.len()),
        Some(of_topics) => {
            if let Some(of_changes) = of_changes(columns, &of_topics) {
                return vec![of_changes];
            }
            if of_topics.lists.is_empty() || of_topics.clicks.is_empty() {
                return vec![of_topics];
            }
            // A topic may also have other events, which only a field distinguishes.
            let mut by_field = by_fields(columns, topic_kinds.len());
            by_field.retain(|split| split.is_within(&of_topics));
            if by_field.is_empty() {
                vec![of_topics]
            } else {
                by_field
            }
        }
    }
}

/// Returns the split of table changes, as Debezium writes them: only created rows are events.
fn of_changes(columns: &SampleColumns, of_topics: &KindSplit) -> Option<KindSplit> {
    const OPERATIONS: [&str; 6] = ["c", "r", "u", "d", "t", "m"];
    const CREATED: [&str; 2] = ["c", "r"];
    // The envelope is the whole record, or is at `payload` next to its schema.
    let operation = columns.iter().find(|column| column.name() == "op")?;
    let (_, around) = operation.path.names().split_last()?;
    let is_of_row = |column: &SampleColumn| {
        let inner = column.path.names().strip_prefix(around);
        inner.is_some_and(|inner| inner.len() > 1 && inner[0] == "after")
    };
    let all: Members = of_topics.lists.iter().chain(&of_topics.clicks).copied().collect();
    let words = operation.words(&all, OPERATIONS.len())?;
    if !columns.iter().any(is_of_row) || !words.keys().all(|word| OPERATIONS.contains(word)) {
        return None;
    }
    let is_created = |number: &&usize| {
        let word = operation.values.get(number).and_then(|value| value.as_str());
        word.is_some_and(|word| CREATED.contains(&word))
    };
    let created = |members: &Members| members.iter().filter(is_created).copied().collect();
    let types = CREATED.map(str::to_owned).to_vec();
    Some(KindSplit {
        kind: Some(operation.path.clone()),
        served: types.clone(),
        click: types,
        counts: words.into_iter().map(|(word, n)| (word.to_owned(), n)).collect(),
        ..without_field(created(&of_topics.lists), created(&of_topics.clicks), None)
    })
}

/// Returns the split by topics; `None` if one topic has both kinds.
fn of_topics(topic_kinds: &[Option<Kind>]) -> Option<KindSplit> {
    let (mut lists, mut clicks) = (Members::new(), Members::new());
    for (number, kind) in topic_kinds.iter().enumerate() {
        match (*kind)? {
            Kind::Served => lists.push(number),
            Kind::Click => clicks.push(number),
        }
    }
    Some(without_field(lists, clicks, None))
}

/// Returns the splits by fields, and one without a field that assigns all records to the kind that they look like.
fn by_fields(columns: &SampleColumns, n_records: usize) -> Vec<KindSplit> {
    let all: Members = (0..n_records).collect();
    let mut fields: Vec<(f64, &SampleColumn)> = columns
        .iter()
        .filter(|column| {
            let name = column.called();
            // Users of a small sample look like types.
            let is_user = hints(&name, &USER) && hint(&name, &KIND) == 0.0;
            !hints(&name, &TIME) && !is_user
        })
        .filter(|column| {
            // A field with a different value in each record is an ID.
            let is_kind =
                |n_words: usize| 2 * n_words <= column.values.len() || hint(&column.called(), &KIND) > 0.0;
            column
                .words(&all, MAX_VALUES)
                .is_some_and(|words| is_kind(words.len()))
        })
        .map(|column| {
            let present = share(column.values.len(), n_records);
            (hint(&column.called(), &KIND) + present, column)
        })
        .collect();
    fields.sort_by(|one, other| other.0.total_cmp(&one.0));
    let by_field = fields.iter().map(|(_, column)| by_field(columns, column, &all));
    let splits: Vec<KindSplit> = by_field.flatten().take(MAX_TRIED).collect();
    if splits
        .iter()
        .any(|split| !split.lists.is_empty() && !split.clicks.is_empty())
    {
        return splits;
    }
    // Without a field for the kind, all records may be of the kind they look like.
    // A row of a shown item with a click flag belongs to a list, too.
    let is_flagged = || rows::row(columns, &all).is_some_and(|row| row.clicked.is_some());
    let alike = match items::has_list(columns, &all) || is_flagged() {
        true => Kind::Served,
        false => Kind::Click,
    };
    let (lists, clicks) = match alike {
        Kind::Served => (all, Members::new()),
        Kind::Click => (Members::new(), all),
    };
    splits
        .into_iter()
        .chain([without_field(lists, clicks, Some(alike))])
        .collect()
}

fn without_field(lists: Members, clicks: Members, without: Option<Kind>) -> KindSplit {
    KindSplit {
        kind: None,
        served: Vec::new(),
        click: Vec::new(),
        without,
        action: None,
        lists,
        clicks,
        counts: BTreeMap::new(),
    }
}

/// Records with the same value of a field, or without the field.
struct ValueGroup {
    value: Option<String>,
    members: Members,
    has_list: bool,
}

impl ValueGroup {
    fn has_word(&self, words: &[&str]) -> bool {
        self.value.as_ref().is_some_and(|value| hints(value, words))
    }

    fn is_list(&self) -> bool {
        self.has_list && !self.has_word(&CLICK)
    }
}

/// Splits the records by a field. Returns `None` if it does not distinguish lists from clicks.
fn by_field(columns: &SampleColumns, field: &SampleColumn, all: &Members) -> Option<KindSplit> {
    let mut by_value: BTreeMap<Option<String>, Members> = BTreeMap::new();
    for number in all {
        let value = field.values.get(number).and_then(|value| value.as_str());
        by_value
            .entry(value.map(str::to_owned))
            .or_default()
            .push(*number);
    }
    let counts = by_value
        .iter()
        .filter_map(|(value, members)| Some((value.clone()?, members.len())));
    let counts = counts.collect();
    let groups: Vec<ValueGroup> = by_value
        .into_iter()
        .map(|(value, members)| ValueGroup {
            has_list: items::has_list(columns, &members),
            value,
            members,
        })
        .collect();
    // A field of experiments or arms is rejected unless a value means a click.
    let has_word = |words: &[&str]| groups.iter().any(|group| group.has_word(words));
    let name = field.called();
    let mut names = field.path.names().iter();
    let is_of_arms = names.any(|name| hints(name, &EXPERIMENT) || hints(name, &ARM));
    if !has_word(&CLICK) && is_of_arms {
        return None;
    }
    let says_served = |group: &&ValueGroup| group.is_list() && group.has_word(&SERVED);
    let mut lists: Vec<&ValueGroup> = groups.iter().filter(says_served).collect();
    if lists.is_empty() {
        lists = groups.iter().filter(|group| group.is_list()).collect();
    }
    if lists.is_empty() {
        // These lists cannot be read, but the draft will explain why.
        let is_called = |group: &&ValueGroup| group.has_word(&SERVED) && !group.has_word(&CLICK);
        lists = groups.iter().filter(is_called).collect();
    }
    let of_words = |words: &'static [&'static str]| {
        let clicks = groups.iter().filter(move |group| group.has_word(words));
        clicks.collect::<Vec<_>>()
    };
    // Words that mean any user action count only if no value means a click.
    let mut clicks = of_words(&CLICK);
    if clicks.is_empty() {
        clicks = of_words(&INTERACTION);
    }
    let is_list = |group: &ValueGroup| lists.iter().any(|list| list.value == group.value);
    clicks.retain(|group| !is_list(group));
    if clicks.is_empty() {
        clicks = clicked_on(columns, &members(&lists), &groups);
    }
    // Neither its name nor its values suggest a kind.
    let is_silent = hint(&name, &KIND) == 0.0 && !has_word(&SERVED) && !has_word(&INTERACTION);
    if clicks.is_empty() && is_silent {
        return None;
    }
    let action = clicks
        .iter()
        .all(|group| !group.has_word(&CLICK))
        // A value such as "interaction" may come with a second field that separates clicks from other actions.
        .then(|| action(columns, field, &members(&clicks)))
        .flatten();
    if lists.is_empty() && clicks.is_empty() {
        return None;
    }
    let without =
        |groups: &[&ValueGroup], kind| groups.iter().any(|group| group.value.is_none()).then_some(kind);
    let values = |groups: &[&ValueGroup]| groups.iter().filter_map(|group| group.value.clone()).collect();
    Some(KindSplit {
        kind: Some(field.path.clone()),
        without: without(&lists, Kind::Served).or(without(&clicks, Kind::Click)),
        served: values(&lists),
        click: values(&clicks),
        action,
        lists: members(&lists),
        clicks: members(&clicks),
        counts,
    })
}

/// Finds clicks if no value means a click: the largest group whose records refer to items of the lists, and have no items
/// themselves.
fn clicked_on<'g>(columns: &SampleColumns, lists: &Members, groups: &'g [ValueGroup]) -> Vec<&'g ValueGroup> {
    let Some(items) = items::candidates(columns, lists, &[]).into_iter().next() else {
        return Vec::new();
    };
    let Some(array) = columns.get(&items.path) else {
        return Vec::new();
    };
    let shown: HashSet<String> = array.within(lists).flat_map(|list| items.ids(list)).collect();
    let names_items = |group: &&ValueGroup| {
        let ids = fields::ids_by_record(columns, &group.members);
        let n = ids.iter().filter(|ids| !ids.is_disjoint(&shown)).count();
        !group.has_list && 2 * n > group.members.len()
    };
    let largest = groups
        .iter()
        .filter(names_items)
        .max_by_key(|group| group.members.len());
    largest.into_iter().collect()
}

fn members(groups: &[&ValueGroup]) -> Members {
    let mut members: Members = groups.iter().flat_map(|group| &group.members).copied().collect();
    members.sort_unstable();
    members
}

/// Finds a second field that describes the action more precisely, and its values that mean a click.
fn action(columns: &SampleColumns, kind: &SampleColumn, clicks: &Members) -> Option<(Path, Vec<String>)> {
    let field = columns
        .iter()
        .filter(|column| column.path != kind.path && column.within(clicks).count() == clicks.len())
        .find_map(|column| {
            let words = column.words(clicks, MAX_VALUES)?;
            let clicked: Vec<String> = words
                .keys()
                .filter(|word| hints(word, &CLICK))
                .map(|word| (*word).to_owned())
                .collect();
            (!clicked.is_empty()).then(|| (column.path.clone(), clicked))
        });
    field.filter(|_| !clicks.is_empty())
}

impl KindSplit {
    /// Returns whether a split by a field is a narrower form of the split by topics, and one of its words means a click.
    fn is_within(&self, of_topics: &KindSplit) -> bool {
        let within = |some: &Members, all: &Members| {
            !some.is_empty() && some.iter().all(|number| all.binary_search(number).is_ok())
        };
        let is_narrower =
            self.lists.len() < of_topics.lists.len() || self.clicks.len() < of_topics.clicks.len();
        let is_named = self.action.is_some() || self.click.iter().any(|word| hints(word, &CLICK));
        is_narrower
            && is_named
            && within(&self.lists, &of_topics.lists)
            && within(&self.clicks, &of_topics.clicks)
    }

    /// Returns the clicks selected by the second field.
    pub fn meant_clicks(&self, columns: &SampleColumns) -> Members {
        let Some((path, words)) = &self.action else {
            return self.clicks.clone();
        };
        let column = columns.get(path);
        let is_meant = |number: &&usize| {
            let value = column.and_then(|column| column.values.get(number)?.as_str());
            value.is_some_and(|value| words.iter().any(|word| word == value))
        };
        self.clicks.iter().filter(is_meant).copied().collect()
    }
}
