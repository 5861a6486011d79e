//! Seeded schedules of a state partition: appends that land late, twice, or never; compaction; processes that stop, die and come back;
//! a group that moves the pair. The numbers hold in all of them, and each clause of the rules has a control: without it some do not.
//!
//! `ABGAUGE_STATE_SEED=N cargo test --test state` runs one schedule and tells its story; `ABGAUGE_STATE_SCHEDULES=N` runs so many.

mod dice;
mod instance;
mod judge;
mod log;
mod pair;
mod world;

use std::thread;

use abgauge::state::{Clause, Rules};

/// Schedules in a plain `cargo test`.
const N_SCHEDULES: u64 = 10_000;
/// A control fails within so many.
const N_CONTROLS: u64 = 10_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What became of some schedules.
#[derive(Default)]
struct Tally {
    n_schedules: usize,
    n_states: usize,
    /// The first that failed, and why.
    failure: Option<(u64, String)>,
}

/// Runs schedules until one fails.
fn run_all(seeds: impl Iterator<Item = u64>, rules: Rules) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        tally.n_schedules += 1;
        match world::run(seed, rules, false) {
            Ok(n_states) => tally.n_states += n_states,
            Err(failure) => {
                tally.failure = Some((seed, failure.violated));
                break;
            }
        }
    }
    tally
}

/// Runs one again, and says what happens in it.
fn tell(seed: u64, rules: Rules) {
    if let Err(failure) = world::run(seed, rules, true) {
        failure.story.iter().for_each(|line| println!("{line}"));
        panic!("seed {seed}: {}", failure.violated);
    }
}

#[test]
fn all_schedules_keep_the_numbers() {
    if let Some(seed) = number("ABGAUGE_STATE_SEED") {
        return tell(seed, Rules::default());
    }
    let n_schedules = number("ABGAUGE_STATE_SCHEDULES").unwrap_or(N_SCHEDULES);
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let share = |which: usize| (which as u64..n_schedules).step_by(n_threads);
        let run = |which| scope.spawn(move || run_all(share(which), Rules::default()));
        let threads: Vec<_> = (0..n_threads).map(run).collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("it ends"));
        ended.collect()
    });
    if let Some((seed, _)) = tallies.iter().filter_map(|tally| tally.failure.as_ref()).min() {
        tell(*seed, Rules::default());
    }
    let n_schedules: usize = tallies.iter().map(|tally| tally.n_schedules).sum();
    let n_states: usize = tallies.iter().map(|tally| tally.n_states).sum();
    println!("{n_schedules} schedules, {n_states} states in force");
    assert!(n_states >= 3 * n_schedules, "little happens in them");
}

#[test]
fn each_clause_is_needed() {
    let mut needless = Vec::new();
    for clause in Clause::ALL {
        let tally = run_all(0..N_CONTROLS, Rules::without(clause));
        match tally.failure {
            Some((_, violated)) => println!("{clause:?} | {} | {violated}", tally.n_schedules),
            None => needless.push(clause),
        }
    }
    assert_eq!(needless, []);
}
