//! Results of records must depend neither on slot boundaries nor on how topics interleave, even with silence.

use std::collections::BTreeMap;

use abgauge_core::engine::Rules;
use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::Outcome;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::oracle::pair::Pair;
use crate::oracle::world::{Record, T0, World, any_world, reading};

/// Interval after which slots of all lengths begin together.
const COMMON_MS: i64 = 60;

/// Result of reading a world, apart from slots.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Outcomes by side and offset.
    outcomes: BTreeMap<(Side, i64), Outcome>,
    /// Number of records by outcome and side.
    n_of_outcome: Vec<[u64; 2]>,
    results: [u64; 5],
    conflicting_lists: u64,
    repeated_items: u64,
    cut_clicks: u64,
    n_lists: u64,
    /// Lists, items shown and clicks by arm.
    totals: BTreeMap<String, [i64; 3]>,
}

/// Reads parts of both logs one after the other. After each part, both topics may be silent, which settles slots up to a
/// common boundary.
fn see(rules: &Rules, parts: &[Vec<&Record>], is_silent: bool) -> Seen {
    let mut seen = Seen::default();
    let mut pair = Pair::with(rules.clone(), None);
    for part in parts {
        for record in part {
            let at = record.at;
            let outcome = pair.try_read(at.side, at.record_ts_ms - T0, record.says.clone());
            // The outcome of a row is that of its list, which has others.
            if let Some(outcome) = outcome.filter(|_| rules.gather.is_none()) {
                assert!(seen.outcomes.insert((at.side, at.offset), outcome).is_none());
            }
        }
        let newest = Side::BOTH.map(|side| pair.newest(side)).into_iter().max();
        if let Some(newest) = newest.flatten().filter(|_| is_silent) {
            let longest_ms = longest_ms(rules);
            let border = (newest - rules.lateness_ms - longest_ms + COMMON_MS - 1).div_euclid(COMMON_MS);
            let live_end = border * COMMON_MS + longest_ms + rules.lateness_ms;
            let sides = if rules.one_topic { 1 } else { 2 };
            for side in Side::BOTH.into_iter().take(sides) {
                pair.idle(side, Some(live_end));
            }
        }
    }
    pair.close_all();
    let counts = pair.counts();
    for ((_, arm), sums) in pair.settled() {
        let total = seen.totals.entry(arm).or_default();
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    Seen {
        n_of_outcome: Outcome::OF_EVENTS
            .map(|outcome| Side::BOTH.map(|side| counts.outcome(side, outcome)))
            .to_vec(),
        results: pair.results(),
        conflicting_lists: counts.conflicting_lists,
        repeated_items: counts.repeated_items,
        cut_clicks: counts.cut_clicks,
        n_lists: counts.outcome(Side::Served, Outcome::Accepted),
        ..seen
    }
}

/// Returns how far watermarks must be beyond a slot before it settles.
fn longest_ms(rules: &Rules) -> i64 {
    let Rules {
        attribution_ms,
        click_skew_ms,
        same_list_ms,
        ..
    } = rules;
    *attribution_ms.max(click_skew_ms).max(same_list_ms)
}

/// Cuts both logs into one part for each pair of lengths, and the rest. `runs` gives the order of records within a part.
fn parts<'a>(
    world: &'a World,
    lengths: &[[usize; 2]],
    runs: &crate::oracle::world::Reading,
) -> Vec<Vec<&'a Record>> {
    let mut from = [0, 0];
    let ends = lengths.iter().map(|length| [0, 1].map(|side| Some(length[side])));
    let parts = ends.chain([[None; 2]]).map(|length| {
        let part = [0, 1].map(|side| {
            let log = &world.logs[side];
            let start = from[side];
            let end = length[side].map_or(log.len(), |n| log.len().min(start + n));
            from[side] = end;
            log[start..end].to_vec()
        });
        let order: Vec<(Side, i64)> = runs
            .merge(&part)
            .into_iter()
            .map(|record| (record.at.side, record.at.offset))
            .collect();
        let find = |(side, offset): &(Side, i64)| {
            let mut log = world.logs[*side as usize].iter();
            log.find(|record| record.at.offset == *offset)
                .expect("it is of this log")
        };
        order.iter().map(find).collect()
    });
    parts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), ..ProptestConfig::default() })]

    #[test]
    fn no_result_depends_on_the_borders_of_slots_or_on_how_topics_interleave(
        world in any_world(),
        lengths in vec([0..12_usize, 0..12_usize], 0..6),
        (one, other) in (reading(), reading()),
        slots in [select(vec![1_i64, 2, 3, 5, 10, 60]), select(vec![1_i64, 4, 6, 12, 30, 60])],
        is_silent in any::<bool>(),
    ) {
        let mut rules = world.rules.clone();
        if is_silent {
            // Otherwise the side that is read first moves the frontier further, by the time that silence has lent to the
            // other one.
            let longest_ms = longest_ms(&rules);
            let gather_ms = rules.gather.map_or(0, |gather| gather.span_ms);
            (rules.attribution_ms, rules.same_list_ms) = (longest_ms + gather_ms, longest_ms);
        }
        let seen = |slot_ms, reading| {
            let rules = Rules { slot_ms, ..rules.clone() };
            see(&rules, &parts(&world, &lengths, reading), is_silent)
        };
        prop_assert_eq!(seen(slots[0], &one), seen(slots[1], &other));
    }
}
