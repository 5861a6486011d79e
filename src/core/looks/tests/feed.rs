//! Instances that take looks from the current states of all pairs, compared with an instance that was never interrupted.

use super::group::{Instance, N_PAIRS, N_SLOTS, World, asked, some_list, uninterrupted};
use super::window::{SLOTS_A_CELL, window};
use super::*;
use crate::looks::feed::AHEAD;

const N_INSTANCES: usize = 3;

#[derive(Debug, Clone)]
struct Step {
    n_slots: [i64; N_PAIRS],
    seals: [bool; N_PAIRS],
    /// True if the instance sees the pair's current state. By instance, then pair.
    sees: [[bool; N_PAIRS]; N_INSTANCES],
    stores: [bool; N_INSTANCES],
    gives: Option<(usize, usize)>,
    kills: Option<usize>,
    loses: Option<usize>,
    /// A new instance starts and sees every current state.
    begins: bool,
}

prop_compose! {
    fn some_step()(
        n_slots in prop::array::uniform3(0..9_i64),
        seals in any::<[bool; N_PAIRS]>(),
        sees in prop::array::uniform3(prop::array::uniform3(prop::bool::weighted(0.35))),
        stores in any::<[bool; N_INSTANCES]>(),
        gives in prop::option::weighted(0.1, (0..N_PAIRS, 0..N_INSTANCES)),
        kills in prop::option::weighted(0.1, 0..N_INSTANCES),
        loses in prop::option::weighted(0.03, 0..N_PAIRS),
        begins in prop::bool::weighted(0.2),
    ) -> Step {
        Step { n_slots, seals, sees, stores, gives, kills, loses, begins }
    }
}

fn step(world: &mut World, step: &Step) -> Vec<Look> {
    for pair in 0..N_PAIRS {
        world.advance(pair, step.n_slots[pair]);
        if step.seals[pair] {
            world.seal(pair);
        }
    }
    for instance in 0..N_INSTANCES {
        for pair in 0..N_PAIRS {
            if step.sees[instance][pair] {
                world.see(instance, pair);
            }
        }
        if step.stores[instance] {
            world.store(instance);
        }
    }
    if let Some((pair, instance)) = step.gives {
        world.give(pair, instance);
    }
    step.loses.iter().for_each(|pair| world.lose(*pair));
    let killed = step.kills.map(|instance| world.kill(instance));
    killed.unwrap_or_default()
}

/// Looks of an instance that starts now.
fn newcomer(world: &World) -> Vec<Look> {
    let mut newcomer = Instance::new(&world.asked);
    for (pair, state) in world.current.iter().enumerate() {
        newcomer.see(pair, state);
    }
    newcomer.looked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Pairs may be sealed, moved and lost, instances killed, states missed, and new instances started at any time, also after
    /// cells were dropped.
    #[test]
    fn every_look_equals_the_look_of_an_instance_with_all_states(
        lists in prop::collection::vec(some_list(), 1..1500),
        steps in prop::collection::vec(some_step(), 1..32),
    ) {
        let expected = uninterrupted(&asked(), &lists);
        let mut world = World::new(&asked(), &lists, N_INSTANCES);
        let mut looked = Vec::new();
        for some in &steps {
            looked.extend(step(&mut world, some));
            if some.begins {
                looked.extend(newcomer(&world));
            }
        }
        [(); 2].iter().for_each(|()| {
            world.settle(N_SLOTS);
            world.store_all();
            world.see_all();
        });
        let last = expected.keys().last().copied();
        for instance in &mut world.instances {
            prop_assert_eq!(instance.looked.last().map(|looked| looked.as_of_ms), last);
            looked.append(&mut instance.looked);
        }
        looked.extend(newcomer(&world));
        prop_assert_eq!(looked.last().map(|looked| looked.as_of_ms), last);
        for looked in looked {
            prop_assert_eq!(&looked.experiments, &expected[&looked.as_of_ms].experiments);
        }
    }
}

/// Lists of forty users in each cell.
fn lists() -> Vec<List> {
    let lists = (0..12 * 40_u32).map(|number| {
        let (user, cell) = (number % 40 + 1, i64::from(number / 40));
        list(
            cell * SLOTS_A_CELL + i64::from(user % 6),
            user,
            ["a", "b"][user as usize % 2],
        )
    });
    lists.collect()
}

/// Makes sure that the property above meets this case.
#[test]
fn an_instance_that_missed_released_cells_restarts_from_stored_state() {
    let mut world = World::new(&asked(), &lists(), 2);
    world.settle(SLOTS_A_CELL);
    // The second instance misses all of the following states.
    for cell in 1..8 {
        for pair in 0..N_PAIRS {
            world.give(pair, 0);
            world.advance(pair, SLOTS_A_CELL);
            world.seal(pair);
            world.see(0, pair);
        }
        assert_eq!(world.instances[0].looked.len(), cell + 1);
        [(); 2].iter().for_each(|()| world.store(0));
        (0..N_PAIRS).for_each(|pair| world.seal(pair));
    }
    world.instances[1].looked.clear();
    (0..N_PAIRS).for_each(|pair| world.see(1, pair));
    let last = |world: &World, instance: usize| world.instances[instance].looked.last().cloned();
    assert_eq!(
        times(&world.instances[1].looked),
        [8],
        "those between were missed"
    );
    assert_eq!(
        last(&world, 1).map(|looked| looked.experiments),
        last(&world, 0).map(|looked| looked.experiments)
    );
}

#[test]
fn looks_start_once_every_pair_has_a_state_and_skip_pairs_without_records() {
    let mut world = World::new(&asked(), &lists(), 1);
    for pair in 0..2 {
        world.advance(pair, 2 * SLOTS_A_CELL);
        world.seal(pair);
        world.see(0, pair);
    }
    assert_eq!(world.instances[0].looked.len(), 0);
    world.see(0, 2);
    assert_eq!(world.instances[0].looked.len(), 0, "it may have records");
    world.current[2].holds = false;
    world.see(0, 2);
    assert_eq!(times(&world.instances[0].looked), [1, 2]);
}

fn stored(look: i64, end: i64, cells_from: i64) -> StoredLookPair {
    StoredLookPair {
        incarnation_id: 7,
        users: Vec::new().into(),
        up_to: UpTo {
            look,
            end,
            cells_from,
        },
    }
}

#[test]
fn a_pair_accepts_only_sums_of_its_own_life_and_never_goes_back() {
    let until_ms = Some(9 * LOOK_MS);
    let before = stored(5, 6, 3).up_to;
    let fits = |stored: StoredLookPair| stored.fits(7, until_ms, LOOK_MS, Some(&before));
    assert!(fits(stored(5, 6, 3)) && fits(stored(8, 9, 6)));
    assert!(!fits(stored(9, 10, 7)), "it has not settled that");
    for earlier in [stored(4, 6, 3), stored(5, 5, 3), stored(5, 6, 2)] {
        assert!(!fits(earlier));
    }
    assert!(!stored(5, 6, 3).fits(8, until_ms, LOOK_MS, None), "another life");
    assert!(stored(0, i64::MIN, i64::MIN).fits(7, None, LOOK_MS, None));
}

/// Number of waiting cells in each pair.
fn n_waiting(looks: &Looks) -> Vec<usize> {
    looks.pairs.values().map(|pair| pair.waiting.len()).collect()
}

/// The other pairs are no longer sealed while this one advances, so their cells come from earlier states.
#[test]
fn few_cells_wait_for_a_slow_pair_and_no_look_is_missed() {
    const BEHIND: usize = 2;
    let lists = lists();
    let mut world = World::new(&asked(), &lists, 1);
    world.settle(SLOTS_A_CELL);
    let n_cells = N_SLOTS / SLOTS_A_CELL;
    for _ in 1..n_cells {
        for pair in 0..BEHIND {
            world.advance(pair, SLOTS_A_CELL);
            world.seal(pair);
            world.see(0, pair);
        }
        let looks = &world.instances[0].looks;
        assert!(n_waiting(looks).into_iter().max() <= Some(AHEAD as usize));
        assert_eq!(looks.waits_for(), Some(BEHIND as PairId));
    }
    assert_eq!(n_waiting(&world.instances[0].looks), [3, 3, 0], "of eleven");
    for _ in 1..n_cells {
        world.advance(BEHIND, SLOTS_A_CELL);
        world.seal(BEHIND);
        world.see(0, BEHIND);
        assert!(n_waiting(&world.instances[0].looks).into_iter().max() <= Some(AHEAD as usize));
    }
    let expected = uninterrupted(&asked(), &lists);
    let looked = &world.instances[0].looked;
    assert_eq!(times(looked), (1..=n_cells).collect::<Vec<_>>());
    for looked in looked {
        assert_eq!(looked.experiments, expected[&looked.as_of_ms].experiments);
    }
}

/// A pair that no instance has started has no frontier. Looks wait for it, and not for the pair with the smallest frontier.
#[test]
fn no_cell_waits_in_memory_while_a_pair_has_settled_nothing() {
    let mut world = World::new(&asked(), &lists(), 1);
    world.see_all();
    for pair in 0..2 {
        world.advance(pair, N_SLOTS);
        world.seal(pair);
        world.see(0, pair);
    }
    assert_eq!(n_waiting(&world.instances[0].looks), [0; 3]);
    assert_eq!(world.instances[0].looks.waits_for(), Some(2));
    let mut late = Instance::new(&asked());
    (0..N_PAIRS).for_each(|pair| late.see(pair, &world.current[pair]));
    assert_eq!(
        (n_waiting(&late.looks), late.looks.waits_for()),
        (vec![0; 3], Some(2))
    );
}

/// News of a further state of pair 0, after all pairs have settled four cells.
fn news_of(state: impl FnOnce(&mut World) -> PairState) -> Vec<PairNews> {
    let mut world = World::new(&asked(), &lists(), 1);
    world.settle(4 * SLOTS_A_CELL);
    let state = state(&mut world);
    world.instances[0].feed.take(0, state).expect("it can be read")
}

fn starts_over(state: impl FnOnce(&mut World) -> PairState) -> bool {
    matches!(&news_of(state)[..], [PairNews::Resumed(pairs)] if pairs.len() == N_PAIRS)
}

/// State of pair 0 in a separate world that has settled `n_cells` cells.
fn of_another(asked: &Experiment, lists: &[List], n_cells: i64) -> PairState {
    let mut other = World::new(asked, lists, 1);
    other.advance(0, n_cells * SLOTS_A_CELL);
    other.seal(0);
    other.current.swap_remove(0)
}

#[test]
fn a_continued_state_yields_only_its_new_cells() {
    let news = news_of(|_| of_another(&asked(), &lists(), 6));
    let [
        PairNews::Reached {
            pair: 0,
            arms,
            cells,
            until_ms,
        },
        PairNews::Owned(owned),
    ] = &news[..]
    else {
        panic!("{news:?}")
    };
    let numbers: Vec<i64> = cells.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, arms.len()), (vec![4, 5], 0));
    assert_eq!((*until_ms, owned.len()), (Some(6 * LOOK_MS), N_PAIRS));
    assert_eq!(
        news_of(|_| of_another(&asked(), &lists(), 4)).len(),
        0,
        "no further cell"
    );
}

#[test]
fn all_pairs_restart_if_one_has_a_new_life() {
    let of_incarnation = |incarnation_id, n_cells| PairState {
        incarnation_id,
        ..of_another(&asked(), &lists(), n_cells)
    };
    assert!(starts_over(|_| of_incarnation(8, 6)));
    assert!(
        starts_over(|_| of_incarnation(8, 4)),
        "also where it has come as far"
    );
}

#[test]
fn all_pairs_restart_if_a_frontier_falls() {
    assert!(starts_over(|_| of_another(&asked(), &lists(), 3)));
    assert!(starts_over(|_| PairState {
        until_ms: None,
        ..of_another(&asked(), &lists(), 0)
    }));
}

#[test]
fn all_pairs_restart_if_arms_are_reordered() {
    let swapped = lists().into_iter().map(|list| List {
        arm: if list.arm == "a" { "b" } else { "a" },
        ..list
    });
    assert!(starts_over(|_| of_another(
        &asked(),
        &swapped.collect::<Vec<_>>(),
        6
    )));
}

#[test]
fn a_new_arm_is_reported_once() {
    let mut lists = lists();
    lists.push(list(5 * SLOTS_A_CELL, 3, "c"));
    let mut world = World::new(&asked(), &lists, 1);
    world.settle(4 * SLOTS_A_CELL);
    let feed = &mut world.instances[0].feed;
    let n_arms = [6, 7].map(|n_cells| {
        let news = feed
            .take(0, of_another(&asked(), &lists, n_cells))
            .expect("it can be read");
        match &news[..] {
            [PairNews::Reached { arms, .. }, PairNews::Owned(_)] => arms.len(),
            _ => panic!("{news:?}"),
        }
    });
    assert_eq!(n_arms, [1, 0]);
}

#[test]
fn pairs_continue_without_a_forgotten_experiment() {
    let mut world = World::new(&asked(), &lists(), 1);
    world.settle(4 * SLOTS_A_CELL);
    let feed = &mut world.instances[0].feed;
    feed.forget("e");
    let news = feed
        .take(0, of_another(&asked(), &lists(), 6))
        .expect("it can be read");
    assert!(
        matches!(news[..], [PairNews::Reached { .. }, PairNews::Owned(_)]),
        "{news:?}"
    );
}

#[test]
fn all_pairs_restart_if_users_count_from_another_time() {
    let mut later = asked();
    later.start_ms = Some(2 * LOOK_MS);
    assert!(starts_over(|_| of_another(&later, &lists(), 6)));
}

#[test]
fn all_pairs_restart_if_cells_were_released_before_they_were_read() {
    let let_go = |cells_from: u8| {
        starts_over(|world| {
            let mut state = of_another(&asked(), &lists(), 8);
            world.store_all();
            let looks = world.memories[0].looks.clone().expect("it was told");
            let mut users = looks.users.to_vec();
            // Version, look and end take one byte each. Signed numbers are zigzag encoded.
            users[3] = 2 * cells_from;
            state.looks = Some(PairLooks {
                users: users.into(),
                ..looks
            });
            state
        })
    };
    assert!(!let_go(4), "it has all that was not told");
    assert!(let_go(5));
}

#[test]
fn a_pair_that_no_longer_holds_looks_is_reported_without_new_cells() {
    let news = news_of(|_| PairState {
        holds: false,
        ..of_another(&asked(), &lists(), 4)
    });
    let [PairNews::Reached { .. }, PairNews::Owned(owned)] = &news[..] else {
        panic!("{news:?}")
    };
    assert_eq!(*owned, [(0, false), (1, true), (2, true)].into());
}

/// A pair without a record gets one that is older than the cells fed for the others.
#[test]
fn no_cell_is_reported_twice_when_looks_start_to_wait_for_a_slow_pair() {
    let mut world = World::new(&asked(), &lists(), 1);
    (0..2).for_each(|pair| world.advance(pair, 4 * SLOTS_A_CELL));
    (0..2).for_each(|pair| world.seal(pair));
    world.current[2].holds = false;
    world.see_all();
    assert_eq!(world.instances[0].looked.len(), 4);
    world.current[2].holds = true;
    world.see(0, 2);
    let feed = &mut world.instances[0].feed;
    let further = |holds| PairState {
        holds,
        ..of_another(&asked(), &lists(), 6)
    };
    feed.take(0, further(false)).expect("it can be read");
    let news = feed.take(0, further(true)).expect("it can be read");
    let [PairNews::Reached { cells, until_ms, .. }, ..] = &news[..] else {
        panic!("{news:?}")
    };
    assert_eq!((cells.len(), *until_ms), (0, Some(4 * LOOK_MS)));
    world.advance(2, SLOTS_A_CELL);
    world.seal(2);
    let news = world.instances[0].feed.take(2, world.current[2].clone());
    let reported = news
        .expect("it can be read")
        .into_iter()
        .filter_map(|news| match news {
            PairNews::Reached { pair, cells, .. } => Some((pair, cells.len())),
            _ => None,
        });
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [(2, 1)],
        "the others have more than enough"
    );
}

/// A new instance sees an old state of one pair, and new states of the others with cells far beyond it in their users.
#[test]
fn cells_in_stored_users_are_not_added_again() {
    let mut world = World::new(&asked(), &lists(), 1);
    let rules = || LookRules {
        window: window(10),
        ..rules(asked())
    };
    world.instances[0] = Instance::of(&asked(), rules());
    world.settle(3 * SLOTS_A_CELL);
    let old = world.current[2].clone();
    world.settle(N_SLOTS);
    world.store_all();
    let mut late = Instance::of(&asked(), rules());
    (0..2).for_each(|pair| late.see(pair, &world.current[pair]));
    late.see(2, &old);
    assert_eq!(late.looked.len(), 0);
    late.see(2, &world.current[2]);
    let last = |instance: &Instance| instance.looked.last().map(|looked| looked.experiments.clone());
    assert_eq!(last(&late), last(&world.instances[0]));
}

/// News of the same call may have been lost.
#[test]
fn an_unreadable_state_yields_no_news_and_the_next_one_restarts_all_pairs() {
    let mut world = World::new(&asked(), &lists(), 1);
    world.settle(4 * SLOTS_A_CELL);
    let mut damaged = of_another(&asked(), &lists(), 6);
    damaged.ledger.clear();
    let feed = &mut world.instances[0].feed;
    let refused = feed.take(0, damaged).map(drop).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|error| error.starts_with("cannot read its ledger: ")));
    let other = feed.take(1, world.current[1].clone()).expect("it can be read");
    let [PairNews::Resumed(pairs)] = &other[..] else {
        panic!("{other:?}")
    };
    assert_eq!(pairs[0].until_ms, Some(4 * LOOK_MS), "with the one before");

    let mut feed = Instance::new(&asked()).feed;
    let mut damaged = world.current[2].clone();
    damaged.ledger.clear();
    for pair in 0..2 {
        let news = feed.take(pair, world.current[pair as usize].clone());
        assert!(news.is_ok_and(|news| news.is_empty()));
    }
    assert!(feed.take(2, damaged).is_err());
    let news = feed.take(0, world.current[0].clone());
    assert!(news.is_ok_and(|news| news.is_empty()), "pair 2 has none yet");
}
