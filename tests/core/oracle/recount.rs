//! The twin: recounts a world from its raw records, pair by pair, by the letter of docs/rules.md.
//!
//! Nothing is updated incrementally. Every click is compared with every list, and the numbers at a moment are computed from
//! everything read until then.

use std::collections::BTreeSet;

use abgauge_core::engine::OTHER;
use abgauge_core::engine::Rules;
use abgauge_core::engine::outcome::ClickResult;

use crate::oracle::account::{Account, ArmName, Shown, Step, Sums};
use crate::oracle::drive::half_of_user;
use crate::oracle::read::{Accepted, Read, gather_ms, read};
use crate::oracle::score::Scores;
use crate::oracle::world::{Click, List, Shelf, World};
use crate::twin::Outcome;

/// An accepted list with its clicks.
#[derive(Debug)]
pub struct Judged {
    /// Distinct arms.
    pub arms: Vec<ArmName>,
    pub ts_ms: i64,
    pub outcome: Outcome,
    /// Users of refused clicks on it.
    pub refused: Vec<Option<u8>>,
    /// The number of the catalogue that it counts by.
    pub catalogue: usize,
}

/// Counts one world.
pub struct Twin<'a> {
    world: &'a World,
    pub scores: Scores<'a>,
}

impl<'a> Twin<'a> {
    pub fn new(world: &'a World) -> Twin<'a> {
        Twin {
            world,
            scores: Scores::new(world),
        }
    }

    /// The state of the world after `history`, and its accepted lists.
    pub fn recount(&self, history: &[Step]) -> (Account<f64>, Vec<Judged>) {
        self.recount_with(history, |_| true)
    }

    /// The same, but only these clicks have a result or wait.
    pub fn recount_with(
        &self,
        history: &[Step],
        is_asked: impl Fn(&Accepted<&Click>) -> bool,
    ) -> (Account<f64>, Vec<Judged>) {
        let rules = &self.world.rules;
        let read = read(self.world, history);
        let mut account = Account {
            counts: read.counts.clone(),
            newest_ms: read.marks.newest_ms,
            frontier_ms: (read.frontier_ms > i64::MIN).then_some(read.frontier_ms),
            ..Account::default()
        };
        let mut results: Vec<Vec<ClickResult>> = vec![Vec::new(); read.clicks.len()];
        let mut n_lists = vec![0; read.refused.len()];
        let mut arms = Arms::default();
        let judged: Vec<Judged> = (read.lists.iter())
            .map(|list| {
                let refused = self.refused(list, &read, &mut n_lists);
                Judged {
                    refused,
                    ..self.judge(list, &read, history, &mut results, &mut arms)
                }
            })
            .collect();
        for list in &judged {
            self.add(list, read.frontier_ms, &mut account);
        }
        account.n_folded_arms = arms.folded.len().min(rules.max_arms as usize) as u64;
        self.count_results(&read, results, is_asked, &mut account);
        let lists = read.lists.iter().map(|list| list.event.ts_ms);
        let clicks = read.clicks.iter().map(|click| click.event.ts_ms);
        let times: Vec<i64> = lists.chain(clicks).collect();
        account.accepted_ms = times.iter().min().copied().zip(times.iter().max().copied());
        if matches!(history.last(), Some(Step::SettleAll)) {
            account.frontier_ms = None;
        }
        (account, judged)
    }

    /// Holds every click against a list; a click has the result of the first list that it falls to, and counts for the first
    /// few alone.
    fn judge(
        &self,
        list: &Accepted<List>,
        read: &Read,
        history: &[Step],
        results: &mut [Vec<ClickResult>],
        arms: &mut Arms,
    ) -> Judged {
        let rules = &self.world.rules;
        let mut outcome = Outcome {
            items: list.event.items.iter().map(u16::to_string).collect(),
            ..Outcome::default()
        };
        for (click, results) in read.clicks.iter().zip(results) {
            let both_read = list.step.max(click.step);
            let open = self.world.slot_of(list.event.ts_ms) >= read.frontier_at_ms[both_read];
            if !open || !belongs(click.event, &list.event, rules) {
                continue;
            }
            // One list too many is noted too, but changes nothing.
            let on_this_list = match results.len() < rules.max_lists_per_click as usize {
                true => hit(&mut outcome, click.event.item.to_string(), rules.max_off_list),
                false => results[0],
            };
            results.push(on_this_list);
        }
        let fold = |(experiment, arm): (&u8, &u8)| arms.fold(*experiment, *arm, rules.max_arms as usize);
        let arms: BTreeSet<ArmName> = list.event.arms.iter().map(fold).collect();
        Judged {
            arms: arms.into_iter().collect(),
            ts_ms: list.event.ts_ms,
            outcome,
            refused: Vec::new(),
            catalogue: self.catalogue_of(list, read, history),
        }
    }

    /// Matches every refused click with a list, and returns the users of those that count on it. `n_lists` is the number of
    /// lists before it that each counts on.
    fn refused(&self, list: &Accepted<List>, read: &Read, n_lists: &mut [u32]) -> Vec<Option<u8>> {
        let rules = &self.world.rules;
        let mut users = Vec::new();
        for (click, n_lists) in read.refused.iter().zip(n_lists) {
            let both_read = list.step.max(click.step);
            let open = self.world.slot_of(list.event.ts_ms) >= read.frontier_at_ms[both_read];
            let is_of_id = click.id == list.event.id
                && (click.shelf == Shelf::Any || click.shelf == list.event.shelf)
                && is_in_time(click.ts_ms, list.event.ts_ms, rules);
            if open && is_of_id && *n_lists < rules.max_lists_per_click {
                *n_lists += 1;
                users.push(list.event.user.or(click.user));
            }
        }
        users
    }

    /// A list counts by the catalogue that held when its slot got its first list.
    fn catalogue_of(&self, list: &Accepted<List>, read: &Read, history: &[Step]) -> usize {
        let slot = |list: &Accepted<List>| self.world.slot_of(list.event.ts_ms);
        let of_slot = read.lists.iter().filter(|other| slot(other) == slot(list));
        let opened = of_slot.map(|other| other.step).min().expect("it has this one");
        let before = history[..opened].iter().rev();
        let mut set = before.filter_map(|step| match step {
            Step::Catalogue(number) => Some(*number),
            _ => None,
        });
        set.next().expect("a history begins with a catalogue")
    }

    fn add(&self, list: &Judged, frontier_ms: i64, account: &mut Account<f64>) {
        let slot_ms = self.world.slot_of(list.ts_ms);
        let is_settled = slot_ms < frontier_ms;
        let row = self.scores.row(&list.outcome, list.catalogue);
        for name in &list.arms {
            add(&mut account.live, slot_ms, name, &row);
            self.show(&mut account.shown, slot_ms, name, list);
            if is_settled {
                add(&mut account.settled, slot_ms, name, &row);
                self.show(&mut account.settled_shown, slot_ms, name, list);
                for user in &list.refused {
                    let key = (slot_ms, name.clone(), user.map(half_of_user));
                    *account.refused.entry(key).or_default() += 1;
                }
            }
            let last = account.last_lists.entry(name.clone()).or_insert(list.ts_ms);
            *last = list.ts_ms.max(*last);
        }
        if is_settled {
            account.settled_slots.insert(slot_ms);
        } else {
            account.n_open_lists += 1;
        }
        let distinct: BTreeSet<_> = list.outcome.items.iter().collect();
        account.counts.repeated_items += (list.outcome.items.len() - distinct.len()) as u64;
    }

    /// Notes the items of a list, with `None` for items that its catalogue does not contain.
    fn show(&self, shown: &mut Shown, slot_ms: i64, arm: &ArmName, list: &Judged) {
        if self.scores.ranking.coverage().is_none() {
            return;
        }
        let catalogue = &self.world.catalogues[list.catalogue];
        let items = list.outcome.items.iter();
        let known = items.map(|item| catalogue.lists(item).then(|| item.clone()));
        let lists = shown.entry((slot_ms, arm.clone())).or_default();
        lists.push(known.collect());
        lists.sort();
    }

    fn count_results(
        &self,
        read: &Read,
        results: Vec<Vec<ClickResult>>,
        is_asked: impl Fn(&Accepted<&Click>) -> bool,
        account: &mut Account<f64>,
    ) {
        let rules = &self.world.rules;
        let served_mark = read.marks.newest_ms[0].map_or(i64::MIN, |newest| newest - rules.lateness_ms);
        let served_mark = served_mark.saturating_sub(gather_ms(rules));
        let no_list_before = served_mark.max(read.frontier_ms);
        let results = read.clicks.iter().zip(results);
        for (click, result) in results.filter(|(click, _)| is_asked(click)) {
            let ts_ms = click.event.ts_ms;
            let begin_ms = self.world.begin_ms;
            let may_precede_begin = begin_ms.is_some_and(|begin| ts_ms <= begin + rules.attribution_ms);
            account.counts.cut_clicks += u64::from(result.len() > rules.max_lists_per_click as usize);
            match result.first().copied() {
                Some(result) => account.counts.count_result(result),
                None if no_list_before <= ts_ms + rules.click_skew_ms => account.n_waiting += 1,
                None if may_precede_begin => account.counts.count_result(ClickResult::Undecided),
                None => account.counts.count_result(ClickResult::Unmatched),
            }
        }
    }
}

/// Applies a click to a list: only the first off-list items are remembered, in the order of offsets.
fn hit(list: &mut Outcome, item: String, max_off_list: u32) -> ClickResult {
    if list.items.contains(&item) {
        return match list.clicked.insert(item) {
            true => ClickResult::Matched,
            false => ClickResult::Repeat,
        };
    }
    if list.off_list.contains(&item) {
        return ClickResult::Repeat;
    }
    if list.off_list.len() < max_off_list as usize {
        list.off_list.insert(item);
    }
    ClickResult::OffList
}

/// −click_skew ≤ click.ts − served.ts ≤ A, and the parts of the id that the click names agree. One that does not name all of them
/// belongs to lists that show its item only.
fn belongs(click: &Click, list: &List, rules: &Rules) -> bool {
    let is_of_shelf = match click.shelf {
        Shelf::Any => list.items.contains(&click.item),
        shelf => shelf == list.shelf,
    };
    click.id == list.id && is_of_shelf && is_in_time(click.ts_ms, list.ts_ms, rules)
}

fn is_in_time(click_ms: i64, list_ms: i64, rules: &Rules) -> bool {
    let after_ms = click_ms - list_ms;
    -rules.click_skew_ms <= after_ms && after_ms <= rules.attribution_ms
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

fn add(sums: &mut Sums<f64>, slot_ms: i64, arm: &ArmName, row: &[f64]) {
    let of_slot = sums.entry(slot_ms).or_default();
    let sums = of_slot.entry(arm.clone()).or_insert_with(|| vec![0.0; row.len()]);
    for (sum, term) in sums.iter_mut().zip(row) {
        *sum += term;
    }
}
