//! Engine against a brute-force twin that recounts the same records, over small worlds full of collisions.

mod account;
mod borders;
mod cases;
mod checkpoint;
mod drive;
mod gathered;
mod pair;
mod read;
mod recount;
mod restored;
mod resume;
mod score;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge_core::ledger::Ledger;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::oracle::account::{ArmName, Step};
use crate::oracle::drive::{Driver, n_results};
use crate::oracle::recount::Twin;
use crate::oracle::world::{Reading, World, any_world, conflicting_world, idle_reading, reading, world};

const ROOM: u64 = u64::MAX;

/// Returns the steps that define the numbers: both logs one after the other, without a frontier.
fn by_definition(world: &World) -> Vec<Step<'_>> {
    let records = world.logs.iter().flatten().map(Step::Read);
    let steps = [Step::Catalogue(0)].into_iter().chain(records);
    steps.chain([Step::SettleAll]).collect()
}

/// Reads a world to its end and settles it. At every hand-over, the engine must show the result of a recount of its
/// history.
fn read_beside_the_twin<'a>(world: &'a World, twin: &Twin, reading: &Reading, room_bytes: u64) -> Driver<'a> {
    let mut driver = Driver::new(world, room_bytes);
    driver.read_all(reading, |driver, account| {
        let (mut recount, _) = twin.recount(&driver.history);
        if room_bytes < ROOM {
            // The twin cannot foresee which refused clicks find no room.
            recount.refused.clone_from(&account.refused);
        }
        account.assert_is(&recount, &driver.ranking, &driver.history);
    });
    driver.settle_all();
    driver
}

/// Asserts that the ledger's totals are the sums of settled slots, and survive encoding unchanged.
fn assert_ledger(driver: Driver, settled: &BTreeMap<i64, BTreeMap<ArmName, Vec<i64>>>) {
    let mut expected = BTreeMap::<ArmName, Vec<i128>>::new();
    for (arm, sums) in settled.values().flatten() {
        let total = expected.entry(arm.clone()).or_insert_with(|| vec![0; sums.len()]);
        total
            .iter_mut()
            .zip(sums)
            .for_each(|(total, sum)| *total += i128::from(*sum));
    }
    let (ranking, keep) = (driver.ranking.clone(), driver.keep());
    let mut ledger = driver.into_ledger();
    let bytes = ledger.encode();
    let mut again = Ledger::decode(&bytes, &ranking, &keep).expect("it was encoded");
    for ledger in [&mut ledger, &mut again] {
        let name = |id: &u32| {
            let arm = &ledger.arms()[*id as usize];
            (arm.experiment.to_string(), arm.arm.to_string())
        };
        let totals = ledger.total().sums.iter();
        let totals: BTreeMap<ArmName, Vec<i128>> =
            totals.map(|(id, sums)| (name(id), sums.to_vec())).collect();
        assert_eq!(totals, expected);
        assert_eq!(ledger.encode(), bytes);
    }
}

proptest! {
    #[test]
    fn every_hand_over_equals_the_recount_in_any_merge_and_batches(
        (world, reading) in (prop_oneof![4 => world().boxed(), 1 => conflicting_world().boxed()], reading())
    ) {
        let twin = Twin::new(&world);
        let mut driver = read_beside_the_twin(&world, &twin, &reading, ROOM);
        let (recount, _) = twin.recount(&by_definition(&world));
        let account = driver.hand_over();
        prop_assert_eq!(&account.live, &account.settled);
        account.assert_is(&recount, &driver.ranking, &driver.history);
        assert_ledger(driver, &account.settled);
    }

    #[test]
    fn idle_moves_and_new_catalogues_equal_the_recount(
        (world, reading) in (world(), idle_reading())
    ) {
        let twin = Twin::new(&world);
        let mut driver = read_beside_the_twin(&world, &twin, &reading, ROOM);
        let (recount, _) = twin.recount(&driver.history);
        let account = driver.hand_over();
        prop_assert_eq!(&account.live, &account.settled);
        account.assert_is(&recount, &driver.ranking, &driver.history);
        assert_ledger(driver, &account.settled);
    }

    /// Records come one at a time, so that the twin knows which ones found no room. These leave no trace but M.
    #[test]
    fn shed_records_leave_no_trace_and_state_stays_within_its_room(
        (world, reading) in (world(), idle_reading()),
        room_bytes in 0..20_000_u64
    ) {
        let mut world = world;
        // Without room an off-list item is not remembered, which the twin cannot foresee.
        world.rules.max_off_list = 0;
        // Nor which gathered lists find no room once they are complete.
        world.rules.gather = None;
        let reading = Reading { batches: vec![1], ..reading };
        let mut driver = read_beside_the_twin(&world, &Twin::new(&world), &reading, room_bytes);
        let account = driver.hand_over();
        prop_assert_eq!(&account.live, &account.settled);
    }

    /// Batches are longer, so only the sums can be checked.
    #[test]
    fn counts_add_up_while_records_are_shed(
        (world, reading) in (any_world(), idle_reading()),
        room_bytes in 0..20_000_u64
    ) {
        let mut driver = Driver::new(&world, room_bytes);
        driver.read_all(&reading, |_, account| {
            if !world.rules.one_topic {
                let accepted = Side::BOTH.map(|side| account.counts.outcome(side, Outcome::Accepted));
                assert_eq!(n_results(&account.counts) + account.n_waiting, accepted[1]);
                assert!(account.n_open_lists <= accepted[0]);
            }
        });
        driver.settle_all();
        let account = driver.hand_over();
        prop_assert_eq!(&account.live, &account.settled);
        prop_assert_eq!((account.n_waiting, account.n_open_lists, driver.engine.state_bytes()), (0, 0, 0));
    }

    #[test]
    fn metrics_equal_a_floating_point_computation_from_scratch((world, reading) in (world(), reading())) {
        let reading = Reading { hand_overs: vec![false], ..reading };
        let mut driver = Driver::new(&world, ROOM);
        driver.read_all(&reading, |_, _| ());
        driver.settle_all();
        let ranking = world.ranking();
        let mut totals: BTreeMap<ArmName, Vec<i128>> = BTreeMap::new();
        for (arm, tally) in driver.hand_over().settled.into_values().flatten() {
            let total = totals.entry(arm).or_insert_with(|| vec![0; ranking.width()]);
            total.iter_mut().zip(tally).for_each(|(sum, term)| *sum += i128::from(term));
        }
        let twin = Twin::new(&world);
        let (_, judged) = twin.recount(&by_definition(&world));
        let arms: BTreeSet<&ArmName> = judged.iter().flat_map(|list| &list.arms).collect();
        prop_assert!(totals.keys().eq(arms), "an arm is missing");
        for (arm, total) in &totals {
            for (index, column) in ranking.columns().iter().enumerate() {
                let (mut numerator, mut denominator) = (0.0, 0.0);
                for list in &judged {
                    let row = twin.scores.row(&list.outcome, list.catalogue);
                    if list.arms.contains(arm) {
                        numerator += row[3 + 2 * index];
                        denominator += row[4 + 2 * index];
                    }
                }
                match column.value(total) {
                    Some(value) => prop_assert!((value - numerator / denominator).abs() < 1e-9, "{}", column.key()),
                    None => prop_assert_eq!(denominator, 0.0),
                }
            }
        }
    }
}

/// Guards the other tests: the worlds must reach every case that they are meant to test.
#[test]
fn the_worlds_reach_every_outcome_and_result() {
    let mut runner = TestRunner::deterministic();
    let mut counts = Counts::default();
    let (mut folded, mut refused) = (0, 0);
    let strategy = (any_world(), idle_reading(), 0..20_000_u64);
    for _ in 0..512 {
        let tree = strategy.new_tree(&mut runner).expect("a world");
        let (world, reading, room_bytes) = tree.current();
        let mut driver = Driver::new(&world, room_bytes);
        driver.read_all(&reading, |_, _| ());
        driver.settle_all();
        let account = driver.hand_over();
        counts.add(&account.counts);
        folded += account.n_folded_arms;
        refused += account.refused.values().sum::<u64>();
    }
    // The operator skips records before the engine sees them.
    for outcome in Outcome::OF_EVENTS
        .into_iter()
        .filter(|outcome| *outcome != Outcome::Skipped)
    {
        let n = Side::BOTH.map(|side| counts.outcome(side, outcome));
        let is_of_lists = [Outcome::Duplicate, Outcome::LateRow].contains(&outcome);
        assert!(n[0] > 30, "{outcome:?}: {n:?}");
        assert!(n[1] > 30 || is_of_lists, "{outcome:?}: {n:?}");
    }
    for result in ClickResult::ALL {
        let n = counts.result(result);
        assert!(n > 30, "{result:?}: {n}");
    }
    assert!(counts.conflicting_lists > 30 && counts.repeated_items > 30 && folded > 30);
    assert!(counts.cut_clicks > 30, "{}", counts.cut_clicks);
    assert!(refused > 30, "{refused}");
}
