//! Groups of lists by the value of a field, each with an engine of its own. So a group has the same numbers as a file with only its
//! lists and all clicks, even if lists of several groups share a request id.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::evaluation::{self, GroupNumbers, GroupedNumbers};
use super::{BATCH, GroupBy, Options, TimeOrder, new_engine, settle};
use crate::engine::Engine;
use crate::engine::event::{Batch, Body, Event, Position, Served};
use crate::engine::outcome::Outcome;
use crate::ledger::{Keep, KeptAggregates, Ledger, Numbers, Starts, Users};
use crate::metrics::Ranking;
use crate::metrics::catalogue::Catalogue;

/// Group of lists without the field.
pub const ABSENT: &str = "__absent__";
/// Group of lists whose values came after the maximum number of groups.
pub const OTHER_GROUPS: &str = "__other__";

/// Lists and clicks by group.
pub(super) struct Groups {
    by: GroupBy,
    options: Options,
    ranking: Ranking,
    groups: Vec<Group>,
    by_value: HashMap<String, usize>,
    /// Group of the first list with a request id, by the hash of the id.
    group_of: HashMap<u128, u32>,
    /// Further groups with a list of the same id.
    further_of: HashMap<u128, Vec<u32>>,
    /// Clicks are counted at the end, when the groups of their lists are known.
    clicks: Vec<Event>,
    n_other_lists: u64,
}

struct Group {
    name: String,
    engine: Engine,
    batch: Batch,
}

impl Groups {
    pub(super) fn new(by: &GroupBy, options: &Options, ranking: &Ranking) -> Groups {
        Groups {
            by: by.clone(),
            options: options.clone(),
            ranking: ranking.clone(),
            groups: Vec::new(),
            by_value: HashMap::new(),
            group_of: HashMap::new(),
            further_of: HashMap::new(),
            clicks: Vec::new(),
            n_other_lists: 0,
        }
    }

    /// Adds a list of `batch` to the group of this value.
    pub(super) fn take_list(&mut self, value: Option<&str>, at: Position, list: &Served, batch: &Batch) {
        let group = self.group(value);
        let number = group as u32;
        let first = *self.group_of.entry(list.id).or_insert(number);
        if first != number {
            let further = self.further_of.entry(list.id).or_default();
            if !further.contains(&number) {
                further.push(number);
            }
        }
        self.groups[group].batch.copy_list(batch, at, list);
        self.count_if_full(group);
    }

    /// Adds a click to the groups of its lists.
    pub(super) fn take_click(&mut self, click: &Event) {
        self.clicks.push(click.clone());
    }

    fn group(&mut self, value: Option<&str>) -> usize {
        let value = value.unwrap_or(ABSENT);
        if let Some(group) = self.by_value.get(value) {
            return *group;
        }
        let n_values = self.by_value.keys().filter(|name| !is_reserved(name)).count();
        if !is_reserved(value) && n_values == self.by.max_groups {
            self.n_other_lists += 1;
            return self.group(Some(OTHER_GROUPS));
        }
        self.groups.push(Group {
            name: value.to_owned(),
            engine: new_engine(&self.options, &self.ranking, TimeOrder::None),
            batch: Batch::default(),
        });
        self.by_value.insert(value.to_owned(), self.groups.len() - 1);
        self.groups.len() - 1
    }

    fn count_if_full(&mut self, group: usize) {
        if self.groups[group].batch.events.len() >= BATCH {
            self.count(group);
        }
    }

    fn count(&mut self, group: usize) {
        let n_bytes = self.state_bytes();
        let Group { engine, batch, .. } = &mut self.groups[group];
        // The bound is on the sum of all groups.
        let of_others = n_bytes - engine.state_bytes();
        engine.apply(batch, self.options.max_state_bytes.saturating_sub(of_others));
        batch.clear();
    }

    fn state_bytes(&self) -> u64 {
        self.groups.iter().map(|group| group.engine.state_bytes()).sum()
    }

    fn hand_out_clicks(&mut self) {
        for click in std::mem::take(&mut self.clicks) {
            let groups = match &click.body {
                Body::Click(of_list) => {
                    let first = self.group_of.get(&of_list.id).copied();
                    let further = self.further_of.get(&of_list.id).into_iter().flatten().copied();
                    first.into_iter().chain(further).collect()
                }
                // Several lists may match its id.
                _ => (0..self.groups.len() as u32).collect::<Vec<u32>>(),
            };
            for group in groups {
                let group = group as usize;
                self.groups[group].batch.events.push(click.clone());
                self.count_if_full(group);
            }
        }
    }

    /// Settles everything.
    pub(super) fn finish(mut self, catalogue: Option<&Arc<Catalogue>>) -> GroupedNumbers {
        self.hand_out_clicks();
        for group in 0..self.groups.len() {
            self.count(group);
        }
        let span_ms = self.options.span_ms;
        let keep = Keep {
            total: Some(KeptAggregates::All),
            starts: Starts::default(),
            users: Users::Nobody,
            spans: super::spans(span_ms),
            catalogue: None,
        };
        let has_field = self.by_value.keys().any(|name| name != ABSENT);
        let mut n_shed = 0;
        let mut is_exact = true;
        let mut groups = Vec::new();
        for Group { name, mut engine, .. } in self.groups {
            engine.close_gathered();
            let mut ledger = Ledger::new(&self.ranking, &keep);
            ledger.admit(engine.arms());
            engine.take_refused().iter().for_each(|list| ledger.refuse(list));
            let arms = engine.arms().to_vec();
            let totals = |numbers: Numbers<'_>| {
                evaluation::totals(
                    numbers,
                    &arms,
                    &self.ranking,
                    catalogue.map(|catalogue| &**catalogue),
                )
            };
            let spans = settle(&mut engine, &mut ledger, span_ms, &totals, |_, _| {});
            let changes = engine.take_changes();
            n_shed += changes.counts.n_of(Outcome::Shed);
            is_exact &= !changes.overflowed && !ledger.overflowed();
            let total = totals(ledger.total());
            groups.push(GroupNumbers { name, total, spans });
        }
        groups.sort_by(|one, other| {
            let place = |group: &GroupNumbers| (is_reserved(&group.name), group.name.clone());
            place(one).cmp(&place(other))
        });
        GroupedNumbers {
            field: self.by.field.to_string(),
            groups,
            max_groups: self.by.max_groups,
            has_field,
            n_other_lists: self.n_other_lists,
            n_shed,
            is_exact,
        }
    }
}

fn is_reserved(name: &str) -> bool {
    [ABSENT, OTHER_GROUPS].contains(&name)
}
