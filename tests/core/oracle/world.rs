//! Small worlds full of collisions: rules whose limits are hit exactly, two logs, and ways to read them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use abgauge_core::engine::event::{Position, Reason, Side};
use abgauge_core::engine::{GatherRules, Rules};
use abgauge_core::ledger::{Epochs, Keep, KeptAggregates, Span, Starts, Users};
use abgauge_core::metrics::{Measures, Ranking};
use proptest::bool;
use proptest::collection::vec;
use proptest::option::{self, weighted};
use proptest::prelude::*;
use proptest::sample::select;

use crate::twin::Items;
use crate::twin::items::items;
use crate::twin::measured::{measures, profile};

/// Origin of the times of a world, Unix ms.
pub const T0: i64 = 1_763_596_800_000;

#[derive(Debug, Clone)]
pub struct World {
    pub rules: Rules,
    /// Start of counting, at a slot boundary.
    pub begin_ms: Option<i64>,
    /// Records by `Side as usize`, in offset order. With one topic, all of them are on the first side.
    pub logs: [Vec<Record>; 2],
    pub measures: Measures,
    /// Catalogues of the operator, one after the other. The first one applies at the start.
    pub catalogues: Vec<Items>,
}

#[derive(Clone)]
pub struct Record {
    pub at: Position,
    pub says: Says,
}

/// Formats a record on one line, with times relative to [`T0`], so that a failing world is readable.
impl fmt::Debug for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position {
            side,
            offset,
            record_ts_ms,
        } = self.at;
        write!(out, "{side:?} {offset} ({:+}): ", record_ts_ms - T0)?;
        match &self.says {
            Says::List(List {
                id,
                shelf,
                ts_ms,
                user,
                items,
                position,
                arms,
            }) => {
                write!(
                    out,
                    "list r{id}{shelf} at {:+}, {items:?} ({position}) by {arms:?} to {user:?}",
                    ts_ms - T0
                )
            }
            Says::Click(Click {
                id,
                shelf,
                ts_ms,
                item,
            }) => {
                write!(out, "click r{id}{shelf} at {:+} on {item}", ts_ms - T0)
            }
            Says::Unreadable(UnreadableClick {
                id,
                shelf,
                ts_ms,
                user,
            }) => {
                let ts = ts_ms.map(|ts_ms| ts_ms - T0);
                write!(out, "unreadable click r{id}{shelf} at {ts:?} by {user:?}")
            }
            Says::Invalid(reason) => write!(out, "{reason:?}"),
            Says::Ignored => write!(out, "ignored"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    List(List),
    Click(Click),
    /// An invalid click whose id can be read.
    Unreadable(UnreadableClick),
    Invalid(Reason),
    Ignored,
}

impl Says {
    /// Makes a list the record of one shown item.
    fn leave_one_item(&mut self) {
        if let Says::List(list) = self {
            list.items.truncate(1);
        }
    }

    /// Makes the first part the whole id.
    fn leave_shelf_out(&mut self) {
        match self {
            Says::List(List { shelf, .. })
            | Says::Click(Click { shelf, .. })
            | Says::Unreadable(UnreadableClick { shelf, .. }) => *shelf = Shelf::Without,
            Says::Invalid(_) | Says::Ignored => {}
        }
    }
}

/// List whose names are small numbers. They become hashes and text when a batch is built.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    pub id: u8,
    pub shelf: Shelf,
    pub ts_ms: i64,
    pub user: Option<u8>,
    pub items: Vec<u16>,
    /// Position of the item, if lists are gathered.
    pub position: i64,
    /// Experiment → arm.
    pub arms: BTreeMap<u8, u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Click {
    pub id: u8,
    pub shelf: Shelf,
    pub ts_ms: i64,
    pub item: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UnreadableClick {
    pub id: u8,
    pub shelf: Shelf,
    pub ts_ms: Option<i64>,
    pub user: Option<u8>,
}

/// Second part of an id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shelf {
    /// Absent: ids have one part.
    Without,
    Named(u8),
    /// Unknown: the click does not name it.
    Any,
}

impl fmt::Display for Shelf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shelf::Without => Ok(()),
            Shelf::Named(shelf) => write!(out, "/s{shelf}"),
            Shelf::Any => out.write_str("/any"),
        }
    }
}

impl World {
    pub fn ranking(&self) -> Ranking {
        Ranking::new(&self.measures)
    }

    /// Returns what a ledger keeps: totals, and cells of a few slots.
    pub fn keep(&self) -> Keep {
        let span = |n_slots: i64, n_cells| Span {
            cell_ms: n_slots * self.rules.slot_ms,
            n_cells,
            kept: KeptAggregates::All,
        };
        Keep {
            total: Some(KeptAggregates::All),
            starts: Starts::default(),
            users: Users::Everybody(Epochs::default()),
            spans: vec![span(1, Some(4)), span(3, None)],
            catalogue: None,
        }
    }

    pub fn slot_of(&self, ts_ms: i64) -> i64 {
        ts_ms.div_euclid(self.rules.slot_ms) * self.rules.slot_ms
    }

    /// Gives every copy the content of its original, as a producer that only retries does. `differs` then changes the n-th
    /// copy.
    fn with_repetitions(mut self, differs: impl Fn(&mut List, usize)) -> World {
        if self.rules.gather.is_some() {
            // Rows of one list already agree.
            return self;
        }
        let mut firsts: Vec<List> = Vec::new();
        let same_list_ms = self.rules.same_list_ms as u64;
        let mut n = 0;
        for record in self.logs.iter_mut().flatten() {
            let Says::List(list) = &mut record.says else {
                continue;
            };
            let is_near = |first: &&List| {
                let is_same = (first.id, first.shelf) == (list.id, list.shelf);
                is_same && first.ts_ms.abs_diff(list.ts_ms) <= same_list_ms
            };
            match firsts.iter().find(is_near).cloned() {
                None => firsts.push(list.clone()),
                Some(first) => {
                    // Some producers give a repeated list a new time, and others do not.
                    let ts_ms = if n % 2 == 0 { list.ts_ms } else { first.ts_ms };
                    *list = List { ts_ms, ..first };
                    differs(list, n);
                    n += 1;
                }
            }
        }
        self
    }
}

/// Returns the usual metrics of the profile `default`.
pub fn usual() -> Measures {
    let ks = [1, 2, 5, 31, 32, 33].into_iter();
    Measures::usual(&ks.filter_map(NonZeroU32::new).collect::<Vec<_>>())
}

/// Generates all metrics of one or two profiles.
fn measured() -> impl Strategy<Value = Measures> {
    let any = measures(vec(profile(), 1..=2), &[1, 2, 3, 5, 31, 32, 33, 100], 2);
    prop_oneof![1 => Just(usual()), 3 => any]
}

/// Generates catalogues with some of the items that lists show and clicks name.
fn catalogue() -> impl Strategy<Value = Items> {
    let names = (0..5).chain([100, 101, 130, 163]);
    items(names.map(|name: u16| name.to_string()).collect())
}

/// Way to read two logs: runs of the one and the other in turn, batches, hand-overs and idle moves. Each pattern is
/// repeated to the end of the logs.
#[derive(Debug, Clone)]
pub struct Reading {
    pub runs: Vec<usize>,
    pub batches: Vec<usize>,
    /// Set for the batches after which the changes are taken.
    pub hand_overs: Vec<bool>,
    /// Idle moves after batches.
    pub idles: Vec<Option<IdleMove>>,
    /// Numbers of the catalogues that are set after batches, modulo their count.
    pub reloads: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy)]
pub struct IdleMove {
    pub side: Side,
    /// Lead of the live end over both topics, if both are idle.
    pub ahead_ms: Option<i64>,
}

impl Reading {
    /// Returns the records of both logs in the order of this reading.
    pub fn merge<'a>(&self, logs: &'a [Vec<Record>; 2]) -> Vec<&'a Record> {
        let mut left = [logs[0].iter(), logs[1].iter()];
        let mut merged = Vec::new();
        for (turn, &run) in self.runs.iter().cycle().enumerate() {
            merged.extend(left[turn % 2].by_ref().take(run));
            if left[0].len() == 0 || left[1].len() == 0 {
                break;
            }
        }
        let [served, clicks] = left;
        merged.extend(served.chain(clicks));
        merged
    }
}

pub fn reading() -> impl Strategy<Value = Reading> {
    let run = prop_oneof![3 => 1..3_usize, 1 => 3..40_usize];
    let batch = prop_oneof![2 => Just(1_usize), 1 => 1..12_usize];
    (vec(run, 1..12), vec(batch, 1..8), vec(bool::ANY, 0..4)).prop_map(|(runs, batches, mut hand_overs)| {
        hand_overs.push(true);
        Reading {
            runs,
            batches,
            hand_overs,
            idles: vec![None],
            reloads: vec![None],
        }
    })
}

/// Generates readings with idle moves and new catalogues between their batches.
pub fn idle_reading() -> impl Strategy<Value = Reading> {
    let side = select(Side::BOTH.to_vec());
    let idle = (side, option::of(0..12_i64)).prop_map(|(side, ahead_ms)| IdleMove { side, ahead_ms });
    let reload = weighted(0.1, 0..3_usize);
    (reading(), vec(weighted(0.3, idle), 1..16), vec(reload, 1..16)).prop_map(|(reading, idles, reloads)| {
        Reading {
            idles,
            reloads,
            ..reading
        }
    })
}

/// Generates worlds whose copies all have the content of their list.
pub fn world() -> impl Strategy<Value = World> {
    any_world().prop_map(|world| world.with_repetitions(|_, _| ()))
}

/// Generates worlds in which a repeated list may differ in one thing.
pub fn conflicting_world() -> impl Strategy<Value = World> {
    any_world().prop_map(|world| {
        world.with_repetitions(|list, n| match n % 8 {
            0 => list.ts_ms += 1,
            1 => list.user = list.user.map(|user| user + 1),
            2 => list.user = list.user.xor(Some(0)),
            3 => list.items.reverse(),
            4 => _ = list.arms.pop_first(),
            // If both names fold into one arm, the list still counts as the same.
            5 => list.arms.values_mut().for_each(|arm| *arm += 1),
            6 => _ = list.arms.insert(7, 0),
            _ => {}
        })
    })
}

/// Generates worlds in which any event may share its id with any other.
pub fn any_world() -> impl Strategy<Value = World> {
    let logs = (
        vec(entry(served()), 0..32),
        vec(entry(click()), 0..32),
        vec(1..4_usize, 1..8),
    );
    let measured = (measured(), vec(catalogue(), 1..4));
    let has_shelves = bool::weighted(0.3);
    let parts = (rules(), weighted(0.3, 0..6_i64), logs, measured, has_shelves);
    parts.prop_map(
        |(rules, begin, (mut served, mut clicks, runs), (measures, catalogues), has_shelves)| {
            if rules.gather.is_some() {
                served.iter_mut().for_each(|entry| entry.says.leave_one_item());
            }
            if !has_shelves {
                let says = served.iter_mut().chain(&mut clicks);
                says.for_each(|entry| entry.says.leave_shelf_out());
            }
            let begin_ms = begin.map(|slots| (T0 / rules.slot_ms + slots) * rules.slot_ms);
            let mut logs = [
                lay_out(served, &rules, Side::Served),
                lay_out(clicks, &rules, Side::Clicks),
            ];
            if rules.one_topic {
                logs = [into_one_topic(&logs, runs), Vec::new()];
            }
            World {
                rules,
                begin_ms,
                logs,
                measures,
                catalogues,
            }
        },
    )
}

fn rules() -> impl Strategy<Value = Rules> {
    let attribution_ms = prop_oneof![0..9_i64, 9..40_i64];
    let same_list_ms = prop_oneof![2 => Just(0_i64), 1 => 1..9_i64, 1 => 9..40_i64];
    let spans = (
        attribution_ms,
        0..4_i64,
        same_list_ms,
        0..9_i64,
        0..5_i64,
        1..8_i64,
    );
    let max_arms = prop_oneof![2 => Just(100_u32), 1 => 0..5_u32];
    let bounds = (0..3_u32, prop_oneof![1..4_u32, Just(100)], max_arms);
    let gather = weighted(0.5, (0..12_i64, prop_oneof![1..4_u32, Just(100)]));
    (spans, bounds, bool::weighted(0.3), gather).prop_map(|(spans, bounds, one_topic, gather)| {
        let (max_off_list, max_lists_per_click, max_arms) = bounds;
        let (attribution_ms, click_skew_ms, same_list_ms, lateness_ms, max_future_ms, slot_ms) = spans;
        // A row within the span is never a copy of its own list.
        let gather = gather.map(|(span_ms, max_items)| GatherRules { span_ms, max_items });
        let same_list_ms = same_list_ms.max(gather.map_or(0, |gather| gather.span_ms));
        Rules {
            attribution_ms,
            click_skew_ms,
            same_list_ms,
            lateness_ms,
            max_future_ms,
            slot_ms,
            max_off_list,
            max_lists_per_click,
            max_arms,
            one_topic,
            gather,
        }
    })
}

/// Record relative to those before it.
#[derive(Debug, Clone)]
struct Entry {
    /// Time that passes before this record.
    step_ms: i64,
    /// Age of the event at its position in the log.
    back_ms: i64,
    /// Time by which the event is ahead of its record's timestamp beyond `max_future`. `None` for an event far behind its
    /// record.
    beyond_future_ms: Option<i64>,
    says: Says,
}

fn entry(says: impl Strategy<Value = Says>) -> impl Strategy<Value = Entry> {
    let step_ms = prop_oneof![12 => 0..3_i64, 6 => 3..6_i64, 1 => 6..30_i64];
    let back_ms = prop_oneof![3 => Just(0_i64), 2 => 0..9_i64];
    (step_ms, back_ms, weighted(0.15, -1..3_i64), says).prop_map(
        |(step_ms, back_ms, beyond_future_ms, says)| Entry {
            step_ms,
            back_ms,
            beyond_future_ms,
            says,
        },
    )
}

fn served() -> impl Strategy<Value = Says> {
    prop_oneof![12 => list(), 1 => refused()]
}

fn click() -> impl Strategy<Value = Says> {
    let shelf = || prop_oneof![1 => (0..2_u8).prop_map(Shelf::Named), 1 => Just(Shelf::Any)];
    let unreadable = (0..3_u8, shelf(), weighted(0.5, Just(0)), weighted(0.5, 0..2_u8));
    let unreadable = unreadable.prop_map(|(id, shelf, ts_ms, user)| {
        Says::Unreadable(UnreadableClick {
            id,
            shelf,
            ts_ms,
            user,
        })
    });
    let click = (0..3_u8, shelf(), 0..5_u16).prop_map(|(id, shelf, item)| {
        let ts_ms = 0;
        Says::Click(Click {
            id,
            shelf,
            ts_ms,
            item,
        })
    });
    prop_oneof![12 => click, 3 => unreadable, 1 => refused()]
}

fn refused() -> impl Strategy<Value = Says> {
    prop_oneof![
        select(Reason::ALL.to_vec()).prop_map(Says::Invalid),
        Just(Says::Ignored)
    ]
}

fn list() -> impl Strategy<Value = Says> {
    // Items without clicks move the others to the boundaries of the mask's words.
    let unclicked = prop_oneof![8 => Just(0_u16), 1 => select(vec![30_u16, 31, 32, 63, 64])];
    let items = (unclicked, vec(0..4_u16, 0..6))
        .prop_map(|(unclicked, items)| (100..100 + unclicked).chain(items).collect::<Vec<_>>());
    let arms = (
        option::of(0..3_u8),
        option::of(0..2_u8),
        weighted(0.2, Just(0_u8)),
    );
    let id = (0..3_u8, 0..2_u8);
    (id, weighted(0.5, 0..2_u8), items, 0..3_i64, arms).prop_map(
        |(id, user, items, position, (first, second, third))| {
            let (id, shelf) = (id.0, Shelf::Named(id.1));
            let arms = [first, second, third].into_iter().enumerate();
            let arms = arms
                .filter_map(|(experiment, arm)| Some((experiment as u8, arm?)))
                .collect();
            let ts_ms = 0;
            Says::List(List {
                id,
                shelf,
                ts_ms,
                user,
                items,
                position,
                arms,
            })
        },
    )
}

/// Gives the records of one log their times and offsets. Offsets have gaps, as transactions leave them.
fn lay_out(entries: Vec<Entry>, rules: &Rules, side: Side) -> Vec<Record> {
    let mut now_ms = T0;
    let laid = entries.into_iter().zip(0_i64..).map(|(entry, n)| {
        now_ms += entry.step_ms;
        let event_ms = now_ms - entry.back_ms;
        let mut says = entry.says;
        match &mut says {
            Says::List(list) => list.ts_ms = event_ms,
            Says::Click(click) => click.ts_ms = event_ms,
            Says::Unreadable(click) => click.ts_ms = click.ts_ms.map(|_| event_ms),
            Says::Invalid(_) | Says::Ignored => {}
        }
        let record_ts_ms = match entry.beyond_future_ms {
            Some(beyond_ms) => event_ms - rules.max_future_ms - beyond_ms,
            None => event_ms + 50,
        };
        let offset = 3 * n + 7;
        Record {
            at: Position {
                side,
                offset,
                record_ts_ms,
            },
            says,
        }
    });
    laid.collect()
}

fn into_one_topic(logs: &[Vec<Record>; 2], runs: Vec<usize>) -> Vec<Record> {
    let order = Reading {
        runs,
        batches: vec![1],
        hand_overs: vec![true],
        idles: vec![None],
        reloads: vec![None],
    };
    let records = order.merge(logs).into_iter().cloned().zip(0_i64..);
    let records = records.map(|(mut record, offset)| {
        record.at = Position {
            side: Side::Served,
            offset,
            ..record.at
        };
        record
    });
    records.collect()
}
