//! Looks that instances take over the states in force of all pairs, beside those of one that was never interrupted.

use super::group::{Instance, N_PAIRS, N_SLOTS, World, asked, some_list, uninterrupted};
use super::window::SLOTS_A_CELL;
use super::*;

const N_INSTANCES: usize = 3;

#[derive(Debug, Clone)]
struct Step {
    n_slots: [i64; N_PAIRS],
    seals: [bool; N_PAIRS],
    /// By instance, then pair: whether it sees what is in force now.
    sees: [[bool; N_PAIRS]; N_INSTANCES],
    stores: [bool; N_INSTANCES],
    gives: Option<(usize, usize)>,
    kills: Option<usize>,
    loses: Option<usize>,
    /// Somebody begins who sees all that is in force.
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

fn step(world: &mut World, step: &Step) -> Vec<Looked> {
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

/// What somebody shows who begins now.
fn newcomer(world: &World) -> Vec<Looked> {
    let mut newcomer = Instance::new(&world.asked);
    for (pair, state) in world.in_force.iter().enumerate() {
        newcomer.see(pair, state);
    }
    newcomer.looked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However pairs are sealed, given to others and lost, whoever is killed, whatever anybody misses, and whoever begins at any time:
    /// also where cells were let go.
    #[test]
    fn every_look_of_every_instance_is_that_of_one_that_saw_everything(
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

/// So that the claims above are about something.
#[test]
fn who_misses_cells_that_were_let_go_begins_over_with_what_is_stored() {
    let mut world = World::new(&asked(), &lists(), 2);
    world.settle(SLOTS_A_CELL);
    // The second instance sees nothing of what follows.
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
fn looks_begin_once_every_pair_has_a_state_and_go_on_without_a_pair_that_never_had_a_record() {
    let mut world = World::new(&asked(), &lists(), 1);
    for pair in 0..2 {
        world.advance(pair, 2 * SLOTS_A_CELL);
        world.seal(pair);
        world.see(0, pair);
    }
    assert_eq!(world.instances[0].looked.len(), 0);
    world.see(0, 2);
    assert_eq!(world.instances[0].looked.len(), 0, "it may have records");
    world.in_force[2].holds = false;
    world.see(0, 2);
    assert_eq!(times(&world.instances[0].looked), [1, 2]);
}

fn stored(look: i64, end: i64, cells_from: i64) -> StoredPair {
    StoredPair {
        life: 7,
        users: Vec::new().into(),
        up_to: UpTo {
            look,
            end,
            cells_from,
        },
    }
}

#[test]
fn a_pair_takes_only_sums_of_its_own_life_and_slots_and_never_goes_back() {
    let until_ms = Some(9 * LOOK_MS);
    let before = stored(5, 6, 3).up_to;
    let fits = |stored: StoredPair| stored.fits(7, until_ms, LOOK_MS, Some(&before));
    assert!(fits(stored(5, 6, 3)) && fits(stored(8, 9, 6)));
    assert!(!fits(stored(9, 10, 7)), "it has not settled that");
    for earlier in [stored(4, 6, 3), stored(5, 5, 3), stored(5, 6, 2)] {
        assert!(!fits(earlier));
    }
    assert!(!stored(5, 6, 3).fits(8, until_ms, LOOK_MS, None), "another life");
    assert!(stored(0, i64::MIN, i64::MIN).fits(7, None, LOOK_MS, None));
}
