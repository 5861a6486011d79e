//! The keeper between a worker and a state topic that duplicates, delays and loses records: seeded schedules, and a script
//! that also runs on Kafka.

mod alone;
mod readers;
mod script;
mod topic;
mod world;

use abgauge::clock::Clock;

use crate::keeper::topic::{Faults, Topic};

/// Number of schedules in a plain `cargo test`.
const N_SCHEDULES: u64 = 2_000;

#[test]
fn random_schedules_keep_the_numbers_and_settle() {
    let seed = std::env::var("ABGAUGE_STATE_SEED").ok();
    let seeds = match seed.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..N_SCHEDULES,
    };
    let n_schedules = seeds.end - seeds.start;
    let is_reported = n_schedules == 1;
    let mut n_states = 0;
    for seed in seeds {
        n_states +=
            world::run(seed, is_reported).unwrap_or_else(|violated| panic!("seed {seed}: {violated}"));
    }
    println!("{n_schedules} schedules, {n_states} states in force");
    assert!(
        is_reported || n_states as u64 >= 3 * n_schedules,
        "little happens in them"
    );
}

/// Owners take over views that were read before, and onlookers share the views of owners.
#[test]
fn states_are_published_in_every_process_and_never_go_back() {
    let n_schedules = N_SCHEDULES / 4;
    let mut n_states = 0;
    for seed in 0..n_schedules {
        n_states += world::run_published(seed).unwrap_or_else(|violated| panic!("seed {seed}: {violated}"));
    }
    assert!(n_states as u64 >= 3 * n_schedules, "little happens in them");
}

#[test]
fn the_script_has_the_expected_outcome() {
    let topic = Topic::new(script::namespace(), 2, 1, Faults::NONE);
    let reported = script::run(
        || topic.connect(Clock::system()),
        |partition| topic.keys(partition),
    );
    assert_eq!(reported, script::OUTCOME);
}

#[test]
fn an_owner_rewrites_state_lost_by_the_topic() {
    let topic = Topic::new(script::namespace(), 2, 1, Faults::NONE);
    let reported =
        script::run_while_the_topic_is_lost(|| topic.connect(Clock::system()), || topic.lose_all());
    assert_eq!(reported, script::OUTCOME_OF_LOSS);
}

#[test]
fn a_state_of_many_parts_is_sealed_and_restored() {
    let topic = Topic::new(script::namespace(), 2, 1, Faults::NONE);
    let reported = script::run_with_much(|| topic.connect(Clock::system()));
    assert_eq!(reported, script::OUTCOME_OF_MUCH);
}
