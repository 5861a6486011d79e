//! Drafts of a shape for a sample from the look of its fields, and their trials on the sample.

use std::collections::{BTreeMap, HashMap, HashSet};

use abgauge_core::decode::shape::{ArmsShape, Path, Paths, Shape};
use abgauge_core::decode::{DecidingField, Decoder, Explained};
use abgauge_core::engine::event::{Kind, Reason};
use serde_json::Value;

use super::SampleRecord;
use super::arms::{self, ArmsDraft, SampleArms};
use super::columns::{FieldChoice, Members, SampleColumns, id};
use super::fields;
use super::items::{self, ItemsDraft};
use super::kinds::KindSplit;
use super::rows::{self, Heads, RowDraft};
use super::shelves;
use super::times::{self, SampleTimes};
use crate::tools::check::records::refused;

/// The choice for each field, and the resulting shape.
pub(super) struct DraftedShape {
    pub shape: Shape,
    pub split: KindSplit,
    pub items: Option<ItemsDraft>,
    /// Choices for lists and for clicks. `users` is the same.
    pub requests: [Option<FieldChoice>; 2],
    pub users: [Option<FieldChoice>; 2],
    pub times: SampleTimes,
    /// Ways to read the arms, best first, until one is chosen.
    arm_ways: Vec<ArmsDraft>,
    /// Set if a way to read the arms was chosen.
    pub has_arms: bool,
    /// Field in which a click names the item that was shown, if clicks do not name their lists.
    pub shown_item: Option<Path>,
    pub item: Option<FieldChoice>,
    /// Clicks selected by the second field.
    pub clicks: Members,
    /// Path to the ids of clicked items in a list.
    pub clicked_items: Option<Path>,
    /// Paths of records that show a single item each.
    pub row: Option<RowDraft>,
    /// Second part of the request id, in lists and clicks.
    pub second_id: Option<Path>,
    /// Flag for lists in their experiment, and the number of lists for which it is not set.
    pub outside: Option<(String, usize)>,
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
    let mut second_id = None;
    if row.is_none()
        && requests.iter().all(Option::is_none)
        && let Some([first, second]) = shelves::pair(columns, lists, &clicks)
    {
        requests = [lists, &clicks].map(|members| Some(FieldChoice::only(&first.path, members.len())));
        shown = self::shown(columns, lists, &items, &requests[0]);
        second_id = Some(second.path.clone());
    }
    let shown_item = row
        .is_none()
        .then(|| shown_item(columns, lists, &clicks, &items, &requests));
    let shown_item = shown_item.flatten();
    if shown_item.is_some() {
        requests[1] = None;
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
        arm_ways: arms::candidates(columns, lists),
        has_arms: false,
        outside: None,
        second_id,
        shown_item,
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

/// Returns two paths if records without the chosen time have it in another field: a producer may have renamed it.
fn with_second(columns: &SampleColumns, choice: &Option<FieldChoice>, members: &Members) -> Option<Paths> {
    let choice = choice.as_ref()?;
    let first = columns.get(&choice.path)?;
    let rest: Members = members
        .iter()
        .filter(|number| !first.values.contains_key(number))
        .copied()
        .collect();
    let is_rest = |(path, _): &&(Path, usize)| {
        let column = columns.get(path);
        column.is_some_and(|column| column.count(&rest, times::is_time) == rest.len())
    };
    let (second, _) = choice.others.iter().find(is_rest).filter(|_| !rest.is_empty())?;
    Paths::any(vec![choice.path.clone(), second.clone()])
}

/// Returns the field chosen as the clicks' reference to a list if it holds ids of shown items instead.
fn shown_item(
    columns: &SampleColumns,
    lists: &Members,
    clicks: &Members,
    items: &Option<ItemsDraft>,
    [served, click]: &[Option<FieldChoice>; 2],
) -> Option<Path> {
    let items = items.as_ref()?;
    let column = columns.get(&click.as_ref()?.path)?;
    let array = columns.get(&items.path)?;
    let ids_of = |path: &Path| {
        columns
            .get(path)
            .into_iter()
            .flat_map(|column| column.within(lists))
    };
    let requests: HashSet<_> = served
        .iter()
        .flat_map(|served| ids_of(&served.path))
        .filter_map(id)
        .collect();
    let shown: HashSet<String> = array.within(lists).flat_map(|list| items.ids(list)).collect();
    let is_list = |value: &Value| id(value).is_some_and(|id| requests.contains(&id));
    let is_item = |value: &Value| id(value).is_some_and(|id| shown.contains(&*id));
    let names_items = column.count(clicks, is_list) == 0 && column.count(clicks, is_item) > 0;
    names_items.then(|| column.path.clone())
}

impl DraftedShape {
    /// Reads the sample with the draft, and completes it from the records that were read: the arms, and the span of a list's
    /// records.
    pub fn tried(mut self, sample: &ReadableSample) -> (DraftedShape, Trial) {
        let mut trial = self.try_arms(sample);
        if self.shape.served.gather_ms.is_some() {
            self.shape.served.gather_ms = Some(rows::span_ms(&trial.rows));
            trial = sample.read(&self.shape);
        }
        (self, trial)
    }

    /// Chooses the best way to read the arms that yields experiments.
    fn try_arms(&mut self, sample: &ReadableSample) -> Trial {
        let mut shape = self.shape.clone();
        for way in std::mem::take(&mut self.arm_ways) {
            shape.served.arms = way.shape.clone();
            let trial = sample.read(&shape);
            // If no list can be read, its arms are unknown, and the first way is the best guess.
            let is_guess = trial.n_lists == 0;
            let refined = arms::refined(&shape.served.arms, &trial.arms);
            let Some(arms) = refined.or_else(|| is_guess.then(|| shape.served.arms.clone())) else {
                continue;
            };
            let is_same = arms == shape.served.arms;
            self.shape.served.arms = arms;
            self.has_arms = true;
            self.outside = way.outside;
            if is_same {
                return trial;
            }
            let n_bad = |trial: &Trial| trial.arms.values().map(|arms| arms.n_bad).sum::<usize>();
            let again = sample.read(&self.shape);
            // If no invalid arm was an empty text, the setting for it is not needed.
            if n_bad(&again) > 0 && n_bad(&again) == n_bad(&trial) {
                self.shape.served.arms.not_in.retain(|word| !word.is_empty());
            }
            return again;
        }
        sample.read(&self.shape)
    }

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
        served.further_ids = self.second_id.iter().cloned().collect();
        put(&self.times.served, &mut served.ts);
        if let Some(both) = with_second(columns, &self.times.served, &split.lists) {
            served.ts = both;
        }
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
        // The field with our default name may not contain experiments here.
        if is_there(&served.arms.experiments) {
            served.arms = own;
        }
        put(&self.requests[1], &mut shape.click.request_id);
        shape.click.further_ids = self.second_id.iter().cloned().collect();
        put(&self.times.click, &mut shape.click.ts);
        if let Some(both) = with_second(columns, &self.times.click, &self.clicks) {
            shape.click.ts = both;
        }
        put_user(&self.users[1], &mut shape.click.user_id, &self.clicks);
        put(&self.item, &mut shape.click.item);
        if let Some((path, words)) = &split.action {
            shape.click.action = Some(path.clone().into());
            shape.click.actions.clone_from(words);
        }
        shape
    }
}

/// A sample, and the settings to read it with.
pub(super) struct ReadableSample<'a> {
    pub records: &'a [SampleRecord],
    /// With our own shape and the bounds of the configuration.
    pub decoder: &'a Decoder,
    /// Kind of all records. `None` for a sample of both kinds.
    pub topic_kind: Option<Kind>,
    /// Span within which a list of the same id is a copy, ms.
    pub same_list_ms: i64,
}

pub(super) const NO_ARM: &str = "no list names an arm";

/// Results of reading a sample with a shape.
#[derive(Default)]
pub(super) struct Trial {
    pub n_lists: usize,
    pub n_with_arm: usize,
    /// Arms by experiment.
    pub arms: BTreeMap<String, SampleArms>,
    /// Number of lists with the id of an earlier one, but other items.
    pub n_conflicts: usize,
    pub n_clicks: usize,
    /// Number of clicks on a list of the sample. `n_on_item` counts those on one of its items.
    pub n_of_list: usize,
    pub n_on_item: usize,
    /// Times from the list to a click on one of its items, ms.
    pub delays_ms: Vec<i64>,
    /// Ids and times of records of one shown item.
    pub rows: Vec<(String, i64)>,
    pub n_skipped: u64,
    pub n_ignored: usize,
    pub n_refused: usize,
    /// Number of refusals and place of the first one, by reason and setting.
    pub refusals: BTreeMap<(Reason, String), (usize, String, Option<DecidingField>)>,
}

/// A list of a sample: time, items and further parts of its id.
type SampleList = (i64, Vec<String>, Vec<Option<String>>);

impl ReadableSample<'_> {
    /// Reads all records with a shape.
    pub fn read(&self, shape: &Shape) -> Trial {
        let decoder = self.decoder.clone().reading(Some(shape));
        let mut trial = Trial::default();
        let mut lists_of: HashMap<String, Vec<SampleList>> = HashMap::new();
        let mut clicks = Vec::new();
        let mut heads = Heads::default();
        for record in self.records {
            for explained in decoder.explain(record.json.as_slice(), record.topic_kind) {
                match explained {
                    Explained::Served {
                        request_id,
                        further_ids,
                        user_id,
                        ts_ms,
                        arms,
                        left_out,
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
                        let is_default = |(experiment, arm): &(String, String)| {
                            let default = &shape.served.arms;
                            default.experiment_name.as_ref() == Some(experiment)
                                && default.arm_name.as_ref() == Some(arm)
                        };
                        trial.n_with_arm += usize::from(is_list && !arms.iter().all(is_default));
                        trial.n_skipped += n_skipped;
                        if is_list {
                            trial.take_arms(arms, left_out, user_id.as_deref());
                        }
                        let ids = || (request_id.clone(), further_ids.clone());
                        clicks.extend(clicked.into_iter().map(|item| (ids(), item, ts_ms)));
                        let lists = lists_of.entry(request_id).or_default();
                        let is_conflict = |(other_ms, others, ids): &SampleList| {
                            let is_copy =
                                *ids == further_ids && other_ms.abs_diff(ts_ms) <= self.same_list_ms as u64;
                            is_copy && *others != items && shape.served.gather_ms.is_none()
                        };
                        trial.n_conflicts += usize::from(lists.iter().any(is_conflict));
                        lists.push((ts_ms, items, further_ids));
                    }
                    Explained::Click {
                        request_id,
                        further_ids,
                        item,
                        ts_ms,
                        ..
                    } => clicks.push(((request_id, further_ids), item, ts_ms)),
                    Explained::Ignored(_) => trial.n_ignored += 1,
                    // A tombstone says nothing about the shape.
                    Explained::Refused {
                        reason: Reason::Tombstone,
                        ..
                    } => trial.n_ignored += 1,
                    Explained::Refused { reason, place } => {
                        trial.n_refused += 1;
                        let setting = place.as_ref().map_or("", |place| place.setting).to_owned();
                        let refusal = trial.refusals.entry((reason, setting));
                        refusal.or_insert_with(|| (0, record.place.clone(), place)).0 += 1;
                    }
                }
            }
        }
        // Clicks are matched at the end, since a sample may contain a click before its list.
        trial.n_clicks = clicks.len();
        for ((request, further_ids), item, ts_ms) in clicks {
            // A click may lack further parts of the id.
            let is_of = |(_, _, ids): &&SampleList| {
                let mut parts = further_ids.iter().zip(ids);
                parts.all(|(part, of_list)| part.is_none() || part == of_list)
            };
            let lists: Vec<&SampleList> = lists_of
                .get(&request)
                .into_iter()
                .flatten()
                .filter(is_of)
                .collect();
            trial.n_of_list += usize::from(!lists.is_empty());
            let shown = lists.iter().filter(|(_, items, _)| items.contains(&item));
            let delays = shown.map(|(list_ms, ..)| ts_ms - list_ms);
            if let Some(delay_ms) = delays.min_by_key(|delay_ms| delay_ms.unsigned_abs()) {
                trial.n_on_item += 1;
                trial.delays_ms.push(delay_ms);
            }
        }
        trial
    }
}

impl DraftedShape {
    /// Makes the id of a list composite if another field separates the lists of one id. Returns false if none does.
    pub fn separate_lists(&mut self, columns: &SampleColumns) -> bool {
        let lists = &self.split.lists;
        let taken = [
            self.requests[0].as_ref().map(|choice| &choice.path),
            self.users[0].as_ref().map(|choice| &choice.path),
            self.times.served.as_ref().map(|choice| &choice.path),
        ];
        let Some(request) = taken[0].and_then(|path| columns.get(path)) else {
            return false;
        };
        let Some(part) = shelves::part(columns, lists, request, &taken) else {
            return false;
        };
        self.shape.served.further_ids = vec![part.path.clone()];
        // A click without it belongs to those lists of its id that show its item.
        if part.within(&self.clicks).next().is_some() {
            self.shape.click.further_ids = vec![part.path.clone()];
        }
        true
    }
}

impl Trial {
    fn take_arms(&mut self, arms: Vec<(String, String)>, left_out: Vec<String>, user: Option<&str>) {
        for (experiment, arm) in arms {
            self.arms.entry(experiment).or_default().take(arm, user);
        }
        for experiment in left_out {
            self.arms.entry(experiment).or_default().n_bad += 1;
        }
    }

    /// Returns true if the shape yields numbers.
    pub fn is_sound(&self, topic_kind: Option<Kind>) -> bool {
        self.fault(topic_kind).is_none()
    }

    /// Returns why the shape does not yield numbers: every record must be read, lists must name arms, and clicks must be on
    /// items of their lists. If the topic has one kind of event, only the conditions for that kind apply.
    pub fn fault(&self, topic_kind: Option<Kind>) -> Option<String> {
        let has_lists = topic_kind != Some(Kind::Click);
        let has_clicks = topic_kind != Some(Kind::Served);
        let fault = match () {
            () if self.n_refused > 0 => return Some(self.refused()),
            () if has_lists && self.n_lists == 0 => "it reads no served list",
            () if has_lists && self.n_with_arm == 0 => NO_ARM,
            () if has_clicks && self.n_clicks == 0 => "it reads no click",
            () if has_lists && has_clicks && self.n_on_item == 0 => "no click is on an item of its list",
            () => return None,
        };
        Some(fault.to_owned())
    }

    /// Describes the refused records by their most frequent reason.
    fn refused(&self) -> String {
        let most = self.refusals.iter().max_by_key(|(_, (n, ..))| *n);
        let why = most.map(|((reason, _), (.., place))| match place {
            Some(place) => refused(*reason, place),
            None => reason.name().to_owned(),
        });
        format!(
            "events that it cannot read: {}: {}",
            self.n_refused,
            why.unwrap_or_default()
        )
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
