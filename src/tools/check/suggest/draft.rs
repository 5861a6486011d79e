//! Drafts of a shape for a sample from the look of its fields, and their trials on the sample.

use std::collections::{BTreeMap, HashMap, HashSet};

use abgauge_core::decode::shape::{ArmsShape, Path, Paths, Shape};
use abgauge_core::decode::{DecidingField, Decoder, Explained};
use abgauge_core::engine::event::{Kind, Reason};

use super::arms::{self, ArmsDraft};
use super::columns::FieldChoice;
use super::columns::{Members, SampleColumns, id};
use super::fields;
use super::items::{self, ItemsDraft};
use super::kinds::KindSplit;
use super::rows::{self, Heads, RowDraft};
use super::times::{self, SampleTimes};

/// The choice for each field, and the resulting shape.
pub(super) struct DraftedShape {
    pub shape: Shape,
    pub split: KindSplit,
    pub items: Option<ItemsDraft>,
    /// Choices for lists and for clicks. `users` is the same.
    pub requests: [Option<FieldChoice>; 2],
    pub users: [Option<FieldChoice>; 2],
    pub times: SampleTimes,
    pub arms: Option<ArmsDraft>,
    pub item: Option<FieldChoice>,
    /// Clicks selected by the second field.
    pub clicks: Members,
    /// Path to the ids of clicked items in a list.
    pub clicked_items: Option<Path>,
    /// Paths of records that show a single item each.
    pub row: Option<RowDraft>,
}

pub(super) fn draft(columns: &SampleColumns, split: KindSplit) -> DraftedShape {
    let clicks = split.meant_clicks(columns);
    let lists = &split.lists;
    let clicked = fields::ids_by_record(columns, &clicks);
    let items = items::candidates(columns, lists, &clicked).into_iter().next();
    // Records of one shown item have no array of items.
    let row = items.is_none().then(|| rows::row(columns, lists)).flatten();
    let mut requests = fields::requests(columns, lists, &clicks, split.kind.as_ref());
    let mut shown = shown(columns, lists, &items, &requests[0]);
    if let Some(row) = &row {
        let request = &row.request;
        requests = [
            Some(request.clone()),
            rows::tied(columns, lists, &clicks, &request.path).or_else(|| requests[1].take()),
        ];
        shown = rows::shown(columns, lists, row);
    }
    let item = fields::item(
        columns,
        &clicks,
        requests[1].as_ref(),
        split.kind.as_ref(),
        &shown,
    );
    let served_user = fields::user(columns, lists, None);
    let users = [fields::user(columns, &clicks, served_user.as_ref()), served_user];
    let [click_user, served_user] = users;
    let clicked_items = items
        .as_ref()
        .and_then(|items| items::clicked(columns, lists, items));
    let mut draft = DraftedShape {
        row,
        clicked_items,
        shape: Shape::default(),
        times: times::times(columns, lists, &clicks),
        arms: arms::arms(columns, lists),
        users: [served_user, click_user],
        split,
        items,
        requests,
        item,
        clicks,
    };
    draft.shape = draft.shape(columns);
    draft
}

/// Returns the items of each list by the ID that clicks use.
fn shown(
    columns: &SampleColumns,
    lists: &Members,
    items: &Option<ItemsDraft>,
    request: &Option<FieldChoice>,
) -> HashMap<String, HashSet<String>> {
    let column = |path: &Path| columns.get(path);
    let (Some(items), Some(request)) = (items, request) else {
        return HashMap::new();
    };
    let (array, ids) = (column(&items.path), column(&request.path));
    let list = |number: &usize| {
        let name = id(ids?.values.get(number)?)?.into_owned();
        Some((name, items.ids(array?.values.get(number)?).into_iter().collect()))
    };
    lists.iter().filter_map(list).collect()
}

impl DraftedShape {
    /// Returns true if some records look like lists or clicks, even if they cannot be read yet.
    pub fn sees_some(&self) -> bool {
        let has_items = self.items.is_some() || self.row.is_some();
        let sees_lists = !self.split.lists.is_empty() && has_items;
        // Without a kind field, records are only taken for clicks if they can be read as clicks.
        let is_said = self.split.kind.is_some() || self.split.without.is_none();
        let sees_clicks = is_said && !self.clicks.is_empty();
        sees_lists || sees_clicks
    }

    fn shape(&self, columns: &SampleColumns) -> Shape {
        let mut shape = Shape::default();
        let split = &self.split;
        let own = shape.kind.take();
        // A field with our default name and another meaning must be ignored.
        shape.kind = match &split.kind {
            Some(path) => Some(path.clone().into()),
            None => own.filter(|path| columns.get(path.first()).is_none()),
        };
        shape.without_kind = split.without;
        (shape.ts_unit, shape.ts_zone) = (self.times.unit, self.times.zone);
        let put = |choice: &Option<FieldChoice>, path: &mut Paths| {
            if let Some(choice) = choice {
                *path = choice.path.clone().into();
            }
        };
        let put_user = |choice: &Option<FieldChoice>, path: &mut Option<Paths>, members: &Members| {
            let is_taken = |path: &Paths| {
                columns
                    .get(path.first())
                    .is_some_and(|column| column.within(members).count() > 0)
            };
            match choice {
                Some(choice) => *path = Some(choice.path.clone().into()),
                None if path.as_ref().is_some_and(is_taken) => *path = None,
                None => {}
            }
        };
        let served = &mut shape.served;
        if split.kind.is_some() {
            served.kinds.clone_from(&split.served);
            shape.click.kinds.clone_from(&split.click);
        }
        put(&self.requests[0], &mut served.request_id);
        put(&self.times.served, &mut served.ts);
        put_user(&self.users[0], &mut served.user_id, &split.lists);
        if let Some(row) = &self.row {
            row.put(served, !self.clicks.is_empty());
        }
        if let Some(items) = &self.items {
            served.items = items.path.clone().into();
            served.item_id = items.item_id.clone().map(Paths::from);
            // If the arrays are in this order already, the setting is not needed.
            let position = items.position.clone().filter(|_| !items.is_in_order);
            served.position = position.map(Paths::from);
            served.rows = items.rows;
            served.row_items = items.row_items.clone().map(Paths::from);
            served.skip_others = items.n_others > 0;
            served.clicked = items
                .clicked
                .clone()
                // If the sample has click events, flags in the lists repeat them.
                .filter(|_| self.clicks.is_empty())
                .map(Paths::from);
        }
        if self.clicks.is_empty() && served.clicked.is_none() {
            served.clicked_items = self.clicked_items.clone().map(Paths::from);
        }
        let own = ArmsShape::default();
        let is_there = |path: &Option<Paths>| {
            let path = path.as_ref().map(Paths::first);
            path.is_some_and(|path| columns.get(path).is_some())
        };
        match &self.arms {
            Some(arms) => served.arms = arms.shape.clone(),
            // The field with our default name does not contain experiments here.
            None if is_there(&served.arms.experiments) => served.arms = own,
            None => {}
        }
        put(&self.requests[1], &mut shape.click.request_id);
        put(&self.times.click, &mut shape.click.ts);
        put_user(&self.users[1], &mut shape.click.user_id, &self.clicks);
        put(&self.item, &mut shape.click.item);
        if let Some((path, words)) = &split.action {
            shape.click.action = Some(path.clone().into());
            shape.click.actions.clone_from(words);
        }
        shape
    }
}

/// Results of reading a sample with a shape.
#[derive(Default)]
pub(super) struct Trial {
    pub n_lists: usize,
    pub n_with_arm: usize,
    pub n_clicks: usize,
    /// Number of clicks on a list of the sample. `n_on_item` counts those on one of its items.
    pub n_of_list: usize,
    pub n_on_item: usize,
    /// Ids and times of records of one shown item.
    pub rows: Vec<(String, i64)>,
    pub n_skipped: u64,
    pub n_ignored: usize,
    pub n_refused: usize,
    /// Number of refusals and first line, by reason and setting.
    pub refusals: BTreeMap<(Reason, String), (usize, u64, Option<DecidingField>)>,
}

impl Trial {
    /// Reads numbered lines with `shape`. `decoder` has our own shape.
    pub fn of(decoder: &Decoder, shape: &Shape, topic_kind: Option<Kind>, lines: &[(u64, Vec<u8>)]) -> Trial {
        let decoder = decoder.clone().reading(Some(shape));
        let mut trial = Trial::default();
        let mut items_of: HashMap<String, HashSet<String>> = HashMap::new();
        let mut clicks = Vec::new();
        let mut heads = Heads::default();
        for (line, record) in lines {
            for explained in decoder.explain(record, topic_kind) {
                match explained {
                    Explained::Served {
                        request_id,
                        ts_ms,
                        arms,
                        items,
                        clicked,
                        n_skipped,
                        ..
                    } => {
                        // If records are gathered, only the first of each list counts as a list.
                        let is_list = shape.served.gather_ms.is_none_or(|span_ms| {
                            trial.rows.push((request_id.clone(), ts_ms));
                            heads.take(&request_id, ts_ms, span_ms)
                        });
                        trial.n_lists += usize::from(is_list);
                        trial.n_with_arm += usize::from(is_list && !arms.is_empty());
                        trial.n_skipped += n_skipped;
                        clicks.extend(clicked.into_iter().map(|item| (request_id.clone(), item)));
                        items_of.entry(request_id).or_default().extend(items);
                    }
                    Explained::Click { request_id, item, .. } => clicks.push((request_id, item)),
                    Explained::Ignored(_) => trial.n_ignored += 1,
                    Explained::Refused { reason, place } => {
                        trial.n_refused += 1;
                        let setting = place.as_ref().map_or("", |place| place.setting).to_owned();
                        let refusal = trial.refusals.entry((reason, setting));
                        refusal.or_insert((0, *line, place)).0 += 1;
                    }
                }
            }
        }
        // Clicks are matched at the end, since a sample may contain a click before its list.
        trial.n_clicks = clicks.len();
        for (request, item) in clicks {
            let items = items_of.get(&request);
            trial.n_of_list += usize::from(items.is_some());
            trial.n_on_item += usize::from(items.is_some_and(|items| items.contains(&item)));
        }
        trial
    }

    /// Returns true if the shape yields numbers: every record is read, lists name arms, and clicks are on items of their
    /// lists. If the topic has one kind of event, only the conditions for that kind apply.
    pub fn is_sound(&self, topic_kind: Option<Kind>) -> bool {
        let has_lists = self.n_lists > 0 && self.n_with_arm > 0;
        self.n_refused == 0
            && match topic_kind {
                Some(Kind::Served) => has_lists,
                Some(Kind::Click) => self.n_clicks > 0,
                None => has_lists && self.n_on_item > 0,
            }
    }

    /// Returns true if a minority of the lists lacks the array of items.
    pub fn lacks_items(&self) -> bool {
        let absent = self.refusals.iter().filter(|((reason, setting), (.., place))| {
            let is_absent = place
                .as_ref()
                .is_some_and(|place| place.value.as_deref().is_none_or(|value| value == "null"));
            setting == "served.items"
                && is_absent
                && matches!(reason, Reason::MissingField | Reason::WrongType)
        });
        let n: usize = absent.map(|(_, (n, ..))| n).sum();
        n > 0 && n <= self.n_lists
    }

    /// Returns a score, higher is better. Records with an unreadable ID or time do not count against the draft, as their kind
    /// may still be right. Neither do lists whose items were not found.
    pub fn score(&self, has_items: bool) -> i64 {
        let n = |n: usize| n as i64;
        let refusals = self.refusals.iter().map(|((_, setting), (n_refused, ..))| {
            let may_be = match setting.split_once('.') {
                Some((_, "request_id" | "ts")) => true,
                Some((_, "items")) => !has_items,
                _ => false,
            };
            // A refusal outweighs three records that are read, because it hints at a wrong kind.
            n(*n_refused) * if may_be { 1 } else { -12 }
        });
        4 * n(self.n_lists)
            + 4 * n(self.n_clicks)
            + n(self.n_with_arm)
            + 4 * n(self.n_on_item)
            + refusals.sum::<i64>()
            + i64::from(self.n_clicks > 0 && self.n_lists > 0)
    }
}
