//! The twin: counts a world anew from its raw records, pair by pair, by the letter of docs/rules.md.
//!
//! Nothing is kept up to date here. Every click is held against every list, and what an engine would show at a moment
//! is worked out from all that was read until then.

use std::collections::BTreeSet;

use abgauge::engine::OTHER;
use abgauge::engine::Rules;
use abgauge::engine::event::Side;
use abgauge::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge::engine::ranking::{Column, Ranking};

use crate::account::{Account, ArmName, Step, Sums, known};
use crate::world::{Click, List, Record, Says, World};

/// A list with what was clicked on it.
#[derive(Debug)]
pub struct Judged {
    pub arms: Vec<ArmName>,
    pub n_items: u32,
    /// Clicked ranks, from 1.
    pub ranks: BTreeSet<u32>,
}

/// The state of the world after `history`, and its accepted lists.
pub fn recount(world: &World, ranking: &Ranking, history: &[Step]) -> (Account, Vec<Judged>) {
    let rules = &world.rules;
    let read = read(world, history);
    let mut account = Account {
        counts: read.counts,
        newest_ms: read.marks.newest_ms,
        frontier_ms: (read.frontier_ms > i64::MIN).then_some(read.frontier_ms),
        ..Account::default()
    };

    let mut results: Vec<Option<ClickResult>> = vec![None; read.clicks.len()];
    let mut arms = Arms::default();
    let mut judged = Vec::new();
    for list in &read.lists {
        let names: Vec<ArmName> = (list.event.arms.iter())
            .map(|(experiment, arm)| arms.fold(*experiment, *arm, rules.max_arms as usize))
            .collect();
        let mut clicked = BTreeSet::new();
        let mut off_list = BTreeSet::new();
        for (click, result) in read.clicks.iter().zip(&mut results) {
            let both_read = list.step.max(click.step);
            let open = world.slot_of(list.event.ts_ms) >= read.frontier_at_ms[both_read];
            if !open || !belongs(click.event, list.event, rules) {
                continue;
            }
            let item = click.event.item;
            let on_this_list = match list.event.items.iter().position(|shown| *shown == item) {
                Some(place) if clicked.insert(place as u32 + 1) => ClickResult::Matched,
                Some(_) => ClickResult::Repeat,
                None if off_list.contains(&item) => ClickResult::Repeat,
                None => {
                    if off_list.len() < rules.max_off_list as usize {
                        off_list.insert(item);
                    }
                    ClickResult::OffList
                }
            };
            result.get_or_insert(on_this_list);
        }

        let slot_ms = world.slot_of(list.event.ts_ms);
        let settled = slot_ms < read.frontier_ms;
        let n_items = list.event.items.len() as u32;
        let sums = contribution(ranking, n_items, &clicked);
        for name in &names {
            add(&mut account.live, slot_ms, name, &sums);
            if settled {
                add(&mut account.settled, slot_ms, name, &sums);
            }
            let last = account.last_lists.entry(name.clone()).or_insert(list.event.ts_ms);
            *last = list.event.ts_ms.max(*last);
        }
        if settled {
            account.settled_slots.insert(slot_ms);
        } else {
            account.n_open_lists += 1;
        }
        let distinct: BTreeSet<_> = list.event.items.iter().collect();
        account.counts.repeated_items += u64::from(n_items) - distinct.len() as u64;
        judged.push(Judged {
            arms: names,
            n_items,
            ranks: clicked,
        });
    }
    account.n_folded_arms = arms.folded.len().min(rules.max_arms as usize) as u64;

    let served_mark = read.marks.newest_ms[0].map_or(i64::MIN, |newest| newest - rules.lateness_ms);
    let no_list_before = served_mark.max(read.frontier_ms);
    for (click, result) in read.clicks.iter().zip(results) {
        let ts_ms = click.event.ts_ms;
        let may_precede_begin = world
            .begin_ms
            .is_some_and(|begin| ts_ms <= begin + rules.attribution_ms);
        match result {
            Some(result) => account.counts.count_result(result),
            None if no_list_before <= ts_ms + rules.click_skew_ms => account.n_waiting += 1,
            None if may_precede_begin => account.counts.count_result(ClickResult::Undecided),
            None => account.counts.count_result(ClickResult::Unmatched),
        }
    }
    let times = read.lists.iter().map(|list| list.event.ts_ms);
    let times: Vec<i64> = times
        .chain(read.clicks.iter().map(|click| click.event.ts_ms))
        .collect();
    account.accepted_ms = times.iter().min().copied().zip(times.iter().max().copied());
    if matches!(history.last(), Some(Step::SettleAll)) {
        account.frontier_ms = None;
    }
    (account, judged)
}

/// −click_skew ≤ click.ts − served.ts ≤ A.
fn belongs(click: &Click, list: &List, rules: &Rules) -> bool {
    let after_ms = click.ts_ms - list.ts_ms;
    click.id == list.id && -rules.click_skew_ms <= after_ms && after_ms <= rules.attribution_ms
}

/// An accepted event and the step that read it.
struct Accepted<'a, T> {
    event: &'a T,
    step: usize,
}

/// Outcomes of all records, and the frontier at every step.
struct Read<'a> {
    counts: Counts,
    marks: Marks,
    lists: Vec<Accepted<'a, List>>,
    clicks: Vec<Accepted<'a, Click>>,
    /// start(F) when a step began; `i64::MIN` where there is none.
    frontier_at_ms: Vec<i64>,
    frontier_ms: i64,
}

fn read<'a>(world: &World, history: &[Step<'a>]) -> Read<'a> {
    let mut read = Read {
        counts: Counts::default(),
        marks: Marks::default(),
        lists: Vec::new(),
        clicks: Vec::new(),
        frontier_at_ms: Vec::new(),
        frontier_ms: world.begin_ms.unwrap_or(i64::MIN),
    };
    for (step, done) in history.iter().enumerate() {
        read.frontier_at_ms.push(read.frontier_ms);
        match *done {
            Step::Read(record) => read.record(world, record, step, false),
            Step::Shed(record) => read.record(world, record, step, true),
            Step::BatchEnd => read.settle(&world.rules),
            Step::Idle(side, live_end_ms) => {
                read.marks.idle(side, live_end_ms, &world.rules);
                read.settle(&world.rules);
            }
            Step::SettleAll => read.frontier_ms = i64::MAX,
        }
    }
    read
}

impl<'a> Read<'a> {
    fn record(&mut self, world: &World, record: &'a Record, step: usize, shed: bool) {
        let side = record.at.side;
        self.marks.busy(side, &world.rules);
        let begin_ms = world.begin_ms.unwrap_or(i64::MIN);
        // D1 and the order of checks under "Outcomes". `reach_ms` is the last time that a list of this event may have.
        let (ts_ms, reach_ms) = match &record.says {
            Says::Invalid(reason) => return self.counts.count_invalid(side, *reason),
            Says::Ignored => return self.counts.count(side, Outcome::Ignored),
            Says::List(list) => (list.ts_ms, list.ts_ms),
            Says::Click(click) => (click.ts_ms, click.ts_ms + world.rules.click_skew_ms),
        };
        let outcome = if let Err(refused) = self.marks.check(record, ts_ms, &world.rules) {
            refused
        } else if reach_ms < begin_ms {
            Outcome::Replayed
        } else if reach_ms < self.frontier_ms {
            Outcome::AfterSettled
        } else {
            match &record.says {
                Says::List(list) => {
                    let slot = world.slot_of(list.ts_ms);
                    let same = |other: &&Accepted<List>| {
                        other.event.id == list.id && world.slot_of(other.event.ts_ms) == slot
                    };
                    if let Some(stands) = self.lists.iter().find(same) {
                        self.counts.conflicting_lists += u64::from(stands.event != list);
                        Outcome::Duplicate
                    } else if shed {
                        Outcome::Shed
                    } else {
                        self.lists.push(Accepted { event: list, step });
                        Outcome::Accepted
                    }
                }
                Says::Click(_) if shed => Outcome::Shed,
                Says::Click(click) => {
                    self.clicks.push(Accepted { event: click, step });
                    Outcome::Accepted
                }
                Says::Invalid(_) | Says::Ignored => unreachable!("has returned"),
            }
        };
        self.counts.count(side, outcome);
    }

    /// D4: slot s settles when the served watermark ≥ end(s) + click_skew and the clicks watermark ≥ end(s) + A.
    fn settle(&mut self, rules: &Rules) {
        let [Some(served), Some(clicks)] = self.marks.for_settling(rules) else {
            return;
        };
        let ends_until = (served - rules.click_skew_ms).min(clicks - rules.attribution_ms);
        let start = ends_until.div_euclid(rules.slot_ms) * rules.slot_ms;
        self.frontier_ms = self.frontier_ms.max(start);
    }
}

/// M of each topic partition, and what idleness adds to it. Both sides are equal where there is one topic.
#[derive(Default)]
struct Marks {
    newest_ms: [Option<i64>; 2],
    /// A watermark that an idle move lent to a side, until a record comes.
    lent_ms: [Option<i64>; 2],
}

impl Marks {
    fn sides(side: Side, rules: &Rules) -> Vec<usize> {
        if rules.one_topic {
            vec![0, 1]
        } else {
            vec![side as usize]
        }
    }

    fn check(&mut self, record: &Record, ts_ms: i64, rules: &Rules) -> Result<(), Outcome> {
        if ts_ms > record.at.record_ts_ms + rules.max_future_ms {
            return Err(Outcome::Future);
        }
        for side in Marks::sides(record.at.side, rules) {
            let newest = self.newest_ms[side].get_or_insert(ts_ms);
            if ts_ms < *newest - rules.lateness_ms {
                return Err(Outcome::Late);
            }
            *newest = ts_ms.max(*newest);
        }
        Ok(())
    }

    fn busy(&mut self, side: Side, rules: &Rules) {
        for side in Marks::sides(side, rules) {
            self.lent_ms[side] = None;
        }
    }

    /// D7.
    fn idle(&mut self, side: Side, live_end_ms: Option<i64>, rules: &Rules) {
        let Some(newest) = self.newest_ms[0].max(self.newest_ms[1]) else {
            return; // a pair that never had a record takes no part
        };
        let end = live_end_ms.map_or(newest, |live_end| live_end.max(newest));
        for side in Marks::sides(side, rules) {
            self.lent_ms[side] = Some(end - rules.lateness_ms).max(self.lent_ms[side]);
        }
    }

    fn for_settling(&self, rules: &Rules) -> [Option<i64>; 2] {
        [0, 1].map(|side| {
            self.newest_ms[side]
                .map(|newest| newest - rules.lateness_ms)
                .max(self.lent_ms[side])
        })
    }
}

/// Arms by order of admission.
#[derive(Default)]
struct Arms {
    admitted: Vec<(u8, u8)>,
    folded: BTreeSet<(u8, u8)>,
}

impl Arms {
    fn fold(&mut self, experiment: u8, arm: u8, max: usize) -> ArmName {
        let pair = (experiment, arm);
        if !self.admitted.contains(&pair) && self.admitted.len() < max {
            self.admitted.push(pair);
        }
        if self.admitted.contains(&pair) {
            return (experiment_name(experiment), arm_name(arm));
        }
        self.folded.insert(pair);
        if self.admitted.iter().any(|(admitted, _)| *admitted == experiment) {
            (experiment_name(experiment), OTHER.to_owned())
        } else {
            (OTHER.to_owned(), OTHER.to_owned())
        }
    }
}

pub fn experiment_name(experiment: u8) -> String {
    format!("experiment-{experiment}")
}

pub fn arm_name(arm: u8) -> String {
    format!("arm-{arm}")
}

fn add(sums: &mut Sums, slot_ms: i64, arm: &ArmName, terms: &[i64]) {
    let row = sums
        .entry(slot_ms)
        .or_default()
        .entry(arm.clone())
        .or_insert_with(|| vec![0; terms.len()]);
    for (sum, term) in row.iter_mut().zip(terms) {
        *sum += term;
    }
}

/// What one list adds to each of [`known_sums`].
fn contribution(ranking: &Ranking, n_items: u32, ranks: &BTreeSet<u32>) -> Vec<i64> {
    let mut sums = vec![1, i64::from(n_items), ranks.len() as i64];
    for column in known(ranking) {
        let (numerator, denominator) = score(column, n_items, ranks);
        let one = if column.metric.id == "mrr" {
            2_f64.powi(32)
        } else {
            1.0
        };
        sums.extend([(numerator * one).round() as i64, denominator as i64]);
    }
    sums
}

/// Numerator and denominator of one list, in plain floating point.
pub fn score(column: &Column, n_items: u32, ranks: &BTreeSet<u32>) -> (f64, f64) {
    let k = column.k.map_or(u32::MAX, |k| k.get());
    let in_top: Vec<u32> = ranks.iter().copied().filter(|rank| *rank <= k).collect();
    match column.metric.id {
        "hit_rate" => (if in_top.is_empty() { 0.0 } else { 1.0 }, 1.0),
        "ctr" => (in_top.len() as f64, f64::from(n_items.min(k))),
        "mrr" => (in_top.first().map_or(0.0, |rank| 1.0 / f64::from(*rank)), 1.0),
        other => unreachable!("{other} is not among the known ones"),
    }
}
