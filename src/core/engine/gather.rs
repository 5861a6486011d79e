//! Lists that arrive as one record per shown item. Their rows wait here, in front of the join, until no further row can come.
//!
//! ```text
//! offset    1        2        3        4                        span: 10
//! row       A at 0   B at 2   A at 7   A at 11
//! list      ▶ A at 0 [1, 3]   ▶ B at 2 [2]   ▶ A at 11 [4]      each by its head, the row with the lowest offset
//! ```
//! Complete lists leave in the order of (time of the head, place of the head), which depends on the log alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

use super::event::{ArmName, Batch, Position, Served};
use super::outcome::Outcome;

/// Rows with one id and times no farther than this from their head are one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherRules {
    pub span_ms: i64,
    pub max_items: u32,
}

/// Place of a row in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPlace {
    pub offset: i64,
    /// Among the rows of its record, from 0.
    pub index: u32,
}

/// The head of a list that has a row in a later slot, or is followed there by another list of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EarlierHead {
    /// Start of the later slot, Unix ms.
    pub slot_ms: i64,
    pub id: u128,
    /// Time of the head, Unix ms.
    pub ts_ms: i64,
    pub place: RowPlace,
}

impl EarlierHead {
    /// Returns true if reading the log from lists at `from_ms` on brings back the later rows without the head.
    pub fn is_across(&self, from_ms: i64) -> bool {
        (self.ts_ms..self.slot_ms).contains(&(from_ms - 1))
    }
}

/// A silence that completed lists before the next row came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Offset of that row, or any between it and the row before.
    pub offset: i64,
    /// Lists whose time + span lies before this, Unix ms, are complete.
    pub until_ms: i64,
}

/// The part of a checkpoint about gathered lists.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct GatherCheckpoint {
    /// Ascending.
    pub heads: Vec<EarlierHead>,
    /// Offsets ascend.
    pub silences: Vec<Silence>,
}

/// Names of the arms of a list, which many lists share.
type Names = Arc<[Name]>;

#[derive(Debug)]
struct Name {
    hash: u128,
    experiment: Box<str>,
    arm: Box<str>,
}

/// Rows of a list that is not complete.
#[derive(Debug)]
struct IncompleteList {
    /// Position of the head.
    at: Position,
    user: Option<u64>,
    names: Names,
    partial_ids: Box<[u128]>,
    /// Item and position, by place.
    rows: Vec<(u64, i64)>,
    /// Number of rows, by [`is_part`](super::event::Event::is_part).
    n_events: [u64; 2],
}

#[derive(Debug)]
struct Gathered {
    place: RowPlace,
    /// `None` if the list is complete.
    waiting: Option<Box<IncompleteList>>,
}

/// A list on its way into the join.
#[derive(Debug)]
pub struct CompleteList {
    pub at: Position,
    pub list: Served,
    /// Number of rows, by [`is_part`](super::event::Event::is_part).
    pub n_events: [u64; 2],
}

/// The lists that are being gathered, of one pair.
#[derive(Debug)]
pub struct Gathering {
    rules: GatherRules,
    /// Lists by id and time of the head. Heads of one id are farther apart than the span.
    lists: BTreeMap<(u128, i64), Gathered>,
    /// Ids of lists that are not complete, by time and place of the head.
    waiting: BTreeMap<(i64, RowPlace), u128>,
    /// Lists that silence has completed, and whose rows are not late yet, by time of the head.
    complete: BTreeSet<(i64, u128)>,
    heads: BTreeSet<EarlierHead>,
    silences: Vec<Silence>,
    /// Number of silences that were applied, while the log is read again.
    n_applied: usize,
    /// A silence after which no row has come.
    silent_ms: Option<i64>,
    last: Option<RowPlace>,
    names: HashMap<Box<[u128]>, Names>,
    /// Names are swept once there are more.
    max_names: usize,
    bytes: u64,
    n_waiting: [u64; 2],
    n_lists: u64,
    n_without_arm: u64,
}

/// Sets of names that are kept before the first sweep.
const MIN_NAMES: usize = 1024;

impl Gathering {
    /// Bytes of a list, including the empty space in nodes of the trees.
    const LIST_COST: u64 = 400;
    /// Bytes of a row, with spare room.
    const ROW_COST: u64 = 32;
    const HEAD_COST: u64 = 112;

    pub fn new(rules: GatherRules) -> Gathering {
        Gathering {
            rules,
            lists: BTreeMap::new(),
            waiting: BTreeMap::new(),
            complete: BTreeSet::new(),
            heads: BTreeSet::new(),
            silences: Vec::new(),
            n_applied: 0,
            silent_ms: None,
            last: None,
            names: HashMap::default(),
            max_names: MIN_NAMES,
            bytes: 0,
            n_waiting: [0; 2],
            n_lists: 0,
            n_without_arm: 0,
        }
    }

    /// A stage whose log is read again from lists at `from_ms` on.
    pub fn resume(rules: GatherRules, from: &GatherCheckpoint, from_ms: i64) -> Gathering {
        let mut gathering = Gathering::new(rules);
        for head in from.heads.iter().filter(|head| head.is_across(from_ms)) {
            let complete = Gathered {
                place: head.place,
                waiting: None,
            };
            // One head may have rows in several slots.
            if gathering.lists.insert((head.id, head.ts_ms), complete).is_none() {
                gathering.complete.insert((head.ts_ms, head.id));
                gathering.bytes += Gathering::LIST_COST;
            }
        }
        gathering.heads = from.heads.iter().copied().collect();
        gathering.bytes += Gathering::HEAD_COST * gathering.heads.len() as u64;
        gathering.silences.clone_from(&from.silences);
        gathering
    }

    /// The entries that are needed to read the log again from `offset`, and lists from either border on (Unix ms). No next row
    /// has come before `position`. `None` means that all lists are read again.
    pub fn checkpoint(&self, from_ms: Option<[i64; 2]>, offset: i64, position: i64) -> GatherCheckpoint {
        let is_across = |head: &&EarlierHead| {
            let mut borders = from_ms.iter().flatten();
            borders.any(|from_ms| head.is_across(*from_ms))
        };
        let next = self.silent_ms.map(|until_ms| Silence {
            offset: position,
            until_ms,
        });
        let silences = self.silences.iter().copied().chain(next);
        GatherCheckpoint {
            heads: self.heads.iter().filter(is_across).copied().collect(),
            silences: silences.filter(|silence| silence.offset > offset).collect(),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Rows that wait, by [`is_part`](super::event::Event::is_part).
    pub fn n_waiting(&self) -> [u64; 2] {
        self.n_waiting
    }

    /// Lists so far, and those among them without an arm.
    pub fn n_lists(&self) -> (u64, u64) {
        (self.n_lists, self.n_without_arm)
    }

    /// The place of the next row, given its offset.
    pub fn place(&mut self, offset: i64) -> RowPlace {
        let index = match self.last {
            Some(last) if last.offset == offset => last.index + 1,
            _ => 0,
        };
        let place = RowPlace { offset, index };
        self.last = Some(place);
        place
    }

    /// Notes the silence before the row at this offset, if there was one. Those before `keep_from` are no longer needed.
    pub fn end_silence(&mut self, offset: i64, keep_from: impl FnOnce() -> Option<i64>) {
        if let Some(until_ms) = self.silent_ms.take() {
            if let Some(keep_from) = keep_from() {
                self.silences.retain(|silence| silence.offset > keep_from);
            }
            self.silences.push(Silence { offset, until_ms });
        }
    }

    /// The next silence before the row at this offset, while the log is read again.
    pub fn next_silence(&mut self, offset: i64) -> Option<i64> {
        let next = self.silences.get(self.n_applied)?;
        (next.offset <= offset).then(|| {
            self.n_applied += 1;
            next.until_ms
        })
    }

    /// The time of the list that a row belongs to.
    pub fn list_of(&self, row: &Served, place: RowPlace) -> Option<i64> {
        let GatherRules { span_ms, .. } = self.rules;
        let near = (row.id, row.ts_ms - span_ms)..=(row.id, row.ts_ms + span_ms);
        let lists = self.lists.range(near);
        // While the log is read again, heads from the checkpoint may come after this row.
        let lists = lists.filter(|(_, list)| list.place <= place);
        let first = lists.min_by_key(|(_, list)| list.place);
        first.map(|((_, ts_ms), _)| *ts_ms)
    }

    /// Returns the heads that a replay from a slot of these lists may lack: the head of the list itself or, for a new list, the
    /// heads of its id that may be nearer to a row.
    pub fn earlier_heads(&self, row: &Served, head_ms: Option<i64>, slot_ms: i64) -> Vec<EarlierHead> {
        let near = match head_ms {
            Some(ts_ms) => (row.id, ts_ms)..=(row.id, ts_ms),
            // A row of this list may lie one span before its head, and another head one span before that row.
            None => (row.id, row.ts_ms - 2 * self.rules.span_ms)..=(row.id, row.ts_ms),
        };
        let heads = self.lists.range(near).map(|((id, ts_ms), list)| EarlierHead {
            slot_ms,
            id: *id,
            ts_ms: *ts_ms,
            place: list.place,
        });
        heads
            .filter(|head| head.ts_ms < slot_ms && !self.heads.contains(head))
            .collect()
    }

    /// Bytes of entries for such heads.
    pub fn cost_of_heads(heads: &[EarlierHead]) -> u64 {
        Gathering::HEAD_COST * heads.len() as u64
    }

    pub fn note_heads(&mut self, heads: &[EarlierHead]) {
        self.heads.extend(heads);
        self.bytes += Gathering::cost_of_heads(heads);
    }

    /// Decides on a row of the list at `head_ms`; `None` if it is accepted.
    pub fn refusal(&self, row: &Served, head_ms: i64, (item, position): RowItem) -> Option<Outcome> {
        let Some(waiting) = &self.lists.get(&(row.id, head_ms))?.waiting else {
            return Some(Outcome::LateRow);
        };
        match item {
            // A list that has any row is not made empty.
            None => Some(Outcome::Duplicate),
            Some(item) if waiting.rows.contains(&(item, position)) => Some(Outcome::Duplicate),
            Some(_) if waiting.rows.len() >= self.rules.max_items as usize => Some(Outcome::Invalid),
            Some(_) => None,
        }
    }

    /// Bytes of a row, and of its list if it is the first one.
    pub fn cost(&self, row: &Served, is_head: bool, batch: &Batch) -> u64 {
        match is_head {
            false => Gathering::ROW_COST,
            true => {
                let of_ids = 16 * batch.partial_ids_of(row).len() as u64;
                Gathering::LIST_COST + Gathering::ROW_COST + of_ids + cost_of_names(batch.arms_of(row))
            }
        }
    }

    /// Opens a list by its head.
    pub fn insert(&mut self, at: Position, row: &Served, place: RowPlace, batch: &Batch) {
        let arms = batch.arms_of(row);
        self.bytes += self.cost(row, true, batch) - Gathering::ROW_COST;
        self.n_lists += 1;
        self.n_without_arm += u64::from(arms.is_empty());
        let waiting = IncompleteList {
            at,
            user: row.user,
            names: self.names_of(arms, batch),
            partial_ids: batch.partial_ids_of(row).into(),
            rows: Vec::new(),
            n_events: [0; 2],
        };
        let list = Gathered {
            place,
            waiting: Some(Box::new(waiting)),
        };
        self.lists.insert((row.id, row.ts_ms), list);
        self.waiting.insert((row.ts_ms, place), row.id);
    }

    /// Adds a row to the list at `head_ms`.
    pub fn push(&mut self, row: &Served, head_ms: i64, (item, position): RowItem, is_part: bool) {
        let list = self.lists.get_mut(&(row.id, head_ms));
        // `refusal` has ruled out complete lists.
        let Some(waiting) = list.and_then(|list| list.waiting.as_mut()) else {
            return;
        };
        waiting.rows.extend(item.map(|item| (item, position)));
        waiting.n_events[usize::from(is_part)] += 1;
        self.n_waiting[usize::from(is_part)] += 1;
        self.bytes += Gathering::ROW_COST;
    }

    fn names_of(&mut self, arms: &[ArmName], batch: &Batch) -> Names {
        let key: Vec<u128> = arms.iter().map(|arm| arm.hash).collect();
        if let Some(names) = self.names.get(&key[..]) {
            return Arc::clone(names);
        }
        if self.names.len() >= self.max_names {
            // Names with a count of 1 are referenced by the map alone.
            self.names.retain(|_, names| Arc::strong_count(names) > 1);
            // Doubling keeps sweeps rare: before the next one, at least as many names come as have stayed.
            self.max_names = MIN_NAMES.max(2 * self.names.len());
        }
        let name = |arm: &ArmName| Name {
            hash: arm.hash,
            experiment: batch.text_of(&arm.experiment).into(),
            arm: batch.text_of(&arm.arm).into(),
        };
        let names: Names = arms.iter().map(name).collect();
        self.names.insert(key.into(), Arc::clone(&names));
        names
    }

    /// Takes the next list whose time + span lies before `until_ms`, and puts its content into an empty batch. Rows of a list
    /// whose time + span the topic's own watermark has not passed may still come: it is remembered, and the silence that
    /// completed it.
    pub fn take_complete(
        &mut self,
        until_ms: i64,
        watermark_ms: i64,
        batch: &mut Batch,
    ) -> Option<CompleteList> {
        let (&(ts_ms, place), &id) = self.waiting.first_key_value()?;
        let end_ms = ts_ms + self.rules.span_ms;
        if end_ms >= until_ms {
            return None;
        }
        self.waiting.remove(&(ts_ms, place));
        let waiting = self.lists.get_mut(&(id, ts_ms))?.waiting.take()?;
        let n_rows: u64 = waiting.n_events.iter().sum();
        let cost_of_names: u64 = waiting.names.iter().map(Name::cost).sum();
        self.bytes -= n_rows * Gathering::ROW_COST + 16 * waiting.partial_ids.len() as u64 + cost_of_names;
        let of_kind = self.n_waiting.iter_mut().zip(waiting.n_events);
        of_kind.for_each(|(n_waiting, n)| *n_waiting -= n);
        // Only silence completes a list this early. Its key stays, so that further rows are refused as `late_row`.
        if end_ms >= watermark_ms {
            self.complete.insert((ts_ms, id));
        } else {
            self.lists.remove(&(id, ts_ms));
            self.bytes -= Gathering::LIST_COST;
        }
        Some(waiting.into_list(id, ts_ms, batch))
    }

    /// Notes that the topic is silent, and that lists were complete up to this time.
    pub fn silent(&mut self, until_ms: i64) {
        self.silent_ms = self.silent_ms.max(Some(until_ms));
    }

    /// Forgets complete lists whose further rows are late.
    pub fn forget(&mut self, watermark_ms: i64) {
        while let Some((ts_ms, id)) = self.complete.first().copied()
            && ts_ms + self.rules.span_ms < watermark_ms
        {
            self.complete.pop_first();
            self.lists.remove(&(id, ts_ms));
            self.bytes -= Gathering::LIST_COST;
        }
    }

    /// Forgets heads that no longer matter once lists are replayed from this border on, Unix ms, or from a later one.
    pub fn forget_heads(&mut self, from_ms: i64) {
        while self.heads.first().is_some_and(|head| head.slot_ms < from_ms) {
            self.heads.pop_first();
            self.bytes -= Gathering::HEAD_COST;
        }
    }
}

/// The item of a row, unless the row marks an empty list, and its position.
pub type RowItem = (Option<u64>, i64);

impl Batch {
    /// The item of a row, and its position.
    pub fn row_item(&self, row: &Served) -> RowItem {
        let item = self.items_of(row).first().copied();
        let position = self.positions.get(row.items.start as usize);
        (item, position.copied().unwrap_or_default())
    }
}

impl IncompleteList {
    /// Ranks the items by their positions, equal ones by their places.
    fn into_list(mut self, id: u128, ts_ms: i64, batch: &mut Batch) -> CompleteList {
        // The sort is stable, so rows with the same position stay in the order of the log.
        self.rows.sort_by_key(|(_, position)| *position);
        batch.items.extend(self.rows.iter().map(|(item, _)| item));
        for Name {
            hash,
            experiment,
            arm,
        } in &*self.names
        {
            let mut text = |name: &str| {
                let start = batch.text.len() as u32;
                batch.text.push_str(name);
                start..batch.text.len() as u32
            };
            batch.arms.push(ArmName {
                hash: *hash,
                experiment: text(experiment),
                arm: text(arm),
            });
        }
        if !self.partial_ids.is_empty() {
            batch.partial_ids.insert(id, self.partial_ids.into_vec());
        }
        CompleteList {
            at: self.at,
            list: Served {
                id,
                user: self.user,
                ts_ms,
                items: 0..batch.items.len() as u32,
                arms: 0..batch.arms.len() as u32,
            },
            n_events: self.n_events,
        }
    }
}

impl Name {
    /// Bytes of both texts and their places.
    fn cost(&self) -> u64 {
        64 + (self.experiment.len() + self.arm.len()) as u64
    }
}

/// Bytes of the names of arms, as if no other list shared them.
fn cost_of_names(arms: &[ArmName]) -> u64 {
    let cost = |arm: &ArmName| 64 + (arm.experiment.len() + arm.arm.len()) as u64;
    arms.iter().map(cost).sum()
}
