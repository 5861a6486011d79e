//! Resuming from stored looks, and their bytes.

use super::group::{Instance, N_PAIRS, World, asked, some_list};
use super::window::SLOTS_A_CELL;
use super::*;
use crate::statistics::ArmState;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The same looks also have the same bytes.
    #[test]
    fn a_resumed_state_is_stored_with_the_same_bytes(lists in prop::collection::vec(some_list(), 1..1500)) {
        let mut world = World::new(&asked(), &lists, 1);
        world.settle(40);
        let before = world.instances[0].looks.stored();
        world.store_all();
        world.kill(0);
        world.see_all();
        prop_assert_eq!(world.instances[0].looks.stored(), before);
    }
}

/// Two thousand users, each with a list in every cell.
fn many_lists() -> Vec<List> {
    let lists = (0..2_000_u32 * 12).map(|number| {
        let (user, cell) = (number % 2_000 + 1, i64::from(number / 2_000));
        List {
            is_clicked: (user * 7 + number / 2_000) % 3 == 0,
            ..list(
                cell * SLOTS_A_CELL + i64::from(user % 6),
                user,
                ["a", "b"][user as usize % 2],
            )
        }
    });
    lists.collect()
}

/// A world that was sealed after eight looks.
fn sealed() -> World {
    let mut world = World::new(&asked(), &many_lists(), 1);
    world.settle(8 * SLOTS_A_CELL);
    world.store_all();
    world
}

fn stored(world: &World) -> [&[u8]; 2] {
    let looks = world.memories[0].looks.as_ref().expect("it was told");
    [&*looks.users, &*looks.sequences]
}

/// Makes sure that the properties above meet these cases.
#[test]
fn decisions_and_the_planned_look_are_resumed() {
    let mut world = sealed();
    let before = world.kill(0);
    world.see_all();
    let looked = &world.instances[0].looked;
    assert_eq!(times(looked), [8], "the last look is shown again");
    let last = |looked: &[Look]| looked.last().map(|looked| looked.experiments["e"].clone());
    assert_eq!(last(looked), last(&before));
    let look = last(&before).expect("there are looks");
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    assert_eq!(report.look, 8);
    let arm = &report.arms["b"];
    assert!(
        arm.decision.is_some() && arm.metrics["hit_rate@1"].p.is_some(),
        "{arm:#?}"
    );
}

/// A world as in [`sealed`], in which arm `b` is clicked far more often.
fn won() -> World {
    let is_clicked = |list: &List| (list.user / 2) % 5 < if list.arm == "b" { 3 } else { 1 };
    let lists = many_lists().into_iter();
    let lists: Vec<List> = lists
        .map(|list| List {
            is_clicked: is_clicked(&list),
            ..list
        })
        .collect();
    let mut world = World::new(&asked(), &lists, 1);
    world.settle(8 * SLOTS_A_CELL);
    world.store_all();
    world
}

/// Bytes that the program stored in the world of [`won`] when it did not store the time since which a decision holds.
const WITHOUT_SINCE: &[u8] = include_bytes!("sequences-3.bin");

#[test]
fn a_decision_stored_without_its_first_look_holds_since_its_own() {
    let mut world = won();
    let before = world.instances[0].looked.last().cloned();
    for memory in &mut world.memories {
        memory.looks.as_mut().expect("it was told").sequences = WITHOUT_SINCE.into();
    }
    (0..N_PAIRS).for_each(|pair| world.seal(pair));
    world.kill(0);
    world.see_all();
    let arm = |look: Option<&Look>| {
        let look = look
            .map(|look| look.experiments["e"].clone())
            .expect("there is one");
        let (_, mut report) = look.comparison.clone().expect("there is a control");
        report.arms.remove("b").expect("it is compared")
    };
    let resumed = arm(world.instances[0].looked.last());
    let decided = resumed.decided.as_ref().expect("it was decided");
    let at = decided.at.expect("it has a look");
    assert_eq!((decided.state, at.look), (ArmState::Win, 6));
    assert_eq!((at.since_ms, at.since_day), (at.as_of_ms, at.day));
    // The reason keeps the words of the program that decided. All numbers are as without a restart.
    assert_eq!(resumed.metrics, arm(before.as_ref()).metrics);
}

#[test]
fn damaged_bytes_are_refused_with_a_message() {
    let world = sealed();
    let [users, sequences] = stored(&world);
    let decode = |users: &[u8], sequences: &[u8]| {
        let decoded = AsOf::decode(users, sequences, &ranking(), 2);
        decoded.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(decode(users, sequences), Ok(()));
    for cut in 0..sequences.len() {
        assert!(decode(users, &sequences[..cut]).is_err(), "{cut}");
    }
    for cut in (0..users.len()).step_by(7) {
        assert!(decode(&users[..cut], sequences).is_err(), "{cut}");
    }
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    let too_long = Err("it is truncated, or longer than declared".to_owned());
    assert_eq!(decode(&longer(users), sequences), too_long);
    assert_eq!(decode(users, &longer(sequences)), too_long);
    let newer = |bytes: &[u8]| [&[bytes[0] + 1], &bytes[1..]].concat();
    let other_version = Err("it has a version that this program cannot read".to_owned());
    assert_eq!(decode(&newer(users), sequences), other_version);
    assert_eq!(decode(users, &newer(sequences)), other_version);
    let mut later = sequences.to_vec();
    later[1] += 2;
    let of_two_looks = Err("its user sums and its sequences belong to different analyses".to_owned());
    assert_eq!(decode(users, &later), of_two_looks);
    let unknown_arm = AsOf::decode(users, sequences, &ranking(), 1).map(drop);
    assert_eq!(
        unknown_arm.map_err(|error| error.to_string()),
        Err("a number in it is malformed".to_owned())
    );
}

/// Resumes under other rules. Returns the findings and the first look.
#[track_caller]
fn under(rules: LookRules) -> (Vec<ResumeFinding>, Option<Look>) {
    let world = sealed();
    let mut instance = Instance::of(&asked(), rules);
    (0..N_PAIRS).for_each(|pair| instance.see(pair, &world.current[pair]));
    let found = instance.looks.take_found();
    (found, instance.looked.into_iter().next())
}

#[test]
fn tests_restart_over_existing_sums_when_settings_change() {
    let mut other = asked();
    other.settings = other.settings.map(|settings| Settings {
        alpha: 0.01,
        ..settings
    });
    let (found, looked) = under(rules(other));
    assert_eq!(found, [ResumeFinding::AsksAnew("e".to_owned())]);
    let look = &looked.expect("it is due").experiments["e"];
    assert_eq!((look.as_of_ms, look.start_ms), (8 * LOOK_MS, 0));
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    assert_eq!(report.look, 1);
    assert_eq!(look.arms["a"].size.lists + look.arms["b"].size.lists, 16_000.0);
}

#[test]
fn a_new_metric_restarts_an_experiment_and_a_removed_one_does_not() {
    let of = |ks: &[u32]| {
        let ks: Vec<NonZeroU32> = ks.iter().copied().filter_map(NonZeroU32::new).collect();
        LookRules {
            ranking: Ranking::new(&Measures::usual(&ks)),
            ..rules(asked())
        }
    };
    let (found, looked) = under(of(&[1, 2]));
    assert_eq!(found, [ResumeFinding::BeginsAnew("e".to_owned())]);
    assert_eq!(
        looked.expect("it is due").experiments.len(),
        0,
        "it has no list yet"
    );
    let mut fewer = asked();
    let settings = fewer.settings.as_mut().expect("there is a control");
    settings.primary = vec!["mrr".to_owned()];
    let (found, looked) = under(LookRules {
        experiments: [("e".to_owned(), fewer)].into(),
        ..of(&[])
    });
    assert_eq!(found, [ResumeFinding::AsksAnew("e".to_owned())]);
    assert_eq!(
        looked.expect("it is due").experiments["e"].arms["a"].size.lists,
        8_000.0
    );
}

#[test]
fn given_up_experiments_stay_so_unless_the_limit_grows() {
    let mut world = sealed();
    world.instances[0].looks.give_up_experiment("e");
    world.instances[0].looks.rules.max_bytes = 1_000;
    world.store_all();
    let under = |max_bytes| {
        let rules = LookRules {
            max_bytes,
            ..rules(asked())
        };
        let mut instance = Instance::of(&asked(), rules);
        (0..N_PAIRS).for_each(|pair| instance.see(pair, &world.current[pair]));
        instance.looks.take_found()
    };
    let given_up = ResumeFinding::GivenUp(GivenUp::Experiment("e".to_owned()));
    assert_eq!(under(1_000), [given_up]);
    assert_eq!(under(1_001), []);
}
