//! The twin: counts a world anew from its raw records, pair by pair, by the letter of docs/rules.md.
//!
//! Nothing is kept up to date here. Every click is held against every list, and what an engine would show at a moment
//! is worked out from all that was read until then.

use std::collections::BTreeSet;

use abgauge::engine::OTHER;
use abgauge::engine::Rules;
use abgauge::engine::outcome::ClickResult;
use abgauge::engine::ranking::{Column, Ranking};

use crate::account::{Account, ArmName, Step, Sums, known};
use crate::read::read;
use crate::world::{Click, List, World};

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
