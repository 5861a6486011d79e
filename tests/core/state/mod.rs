//! Seeded schedules of a state partition.
//!
//! Appends land late, twice or never, records are compacted, processes stop, die and return, and a group moves the pair. The
//! invariants hold in every schedule. Each clause of the rules has a control: without the clause some schedules fail.
//!
//! A failure prints its seed and the events. `ABGAUGE_STATE_SEED=N cargo test --test core -- state::` repeats that schedule, and
//! `ABGAUGE_STATE_SCHEDULES=N` sets the number of schedules.

pub mod dice;
mod instance;
pub mod judge;
pub mod log;
pub mod pair;
mod world;

use std::thread;

use abgauge_core::journal::{Clause, JournalRules};

/// Number of schedules in a plain `cargo test`.
const N_SCHEDULES: u64 = 10_000;
/// Number of schedules that a thread takes at a time.
const PART: u64 = 100;
/// Number of schedules within which a control must fail.
const N_CONTROLS: u64 = 20_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Results of several schedules.
#[derive(Default)]
struct Tally {
    n_schedules: usize,
    n_states: usize,
    /// Seed and reason of the first failure.
    failure: Option<(u64, String)>,
}

/// Runs schedules until one fails.
fn run_all(seeds: impl Iterator<Item = u64>, rules: JournalRules) -> Tally {
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

/// Repeats a schedule and prints its events.
fn tell(seed: u64, rules: JournalRules) {
    if let Err(failure) = world::run(seed, rules, true) {
        failure.story.iter().for_each(|line| println!("{line}"));
        panic!("seed {seed}: {}", failure.violated);
    }
}

/// Calls `run` for each number below `n`, on all cores.
fn on_all_cores<T: Send>(n: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let run = &run;
    thread::scope(|scope| {
        let share = move |which: usize| {
            let numbers = (which..n).step_by(n_threads);
            numbers.map(|number| (number, run(number))).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..n_threads)
            .map(|which| scope.spawn(move || share(which)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("it ends"));
        let mut results: Vec<(usize, T)> = ended.flatten().collect();
        results.sort_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    })
}

#[test]
fn all_schedules_keep_the_numbers() {
    if let Some(seed) = number("ABGAUGE_STATE_SEED") {
        return tell(seed, JournalRules::default());
    }
    let n_schedules = number("ABGAUGE_STATE_SCHEDULES").unwrap_or(N_SCHEDULES);
    let n_parts = n_schedules.div_ceil(PART);
    let tallies = on_all_cores(n_parts as usize, |part| {
        let first = part as u64 * PART;
        run_all(first..n_schedules.min(first + PART), JournalRules::default())
    });
    if let Some((seed, _)) = tallies.iter().find_map(|tally| tally.failure.as_ref()) {
        tell(*seed, JournalRules::default());
    }
    let n_states: usize = tallies.iter().map(|tally| tally.n_states).sum();
    println!("{n_schedules} schedules, {n_states} states in force");
    assert!(n_states as u64 >= 3 * n_schedules, "little happens in them");
}

#[test]
fn each_clause_is_needed() {
    let failures = on_all_cores(Clause::ALL.len(), |which| {
        run_all(0..N_CONTROLS, JournalRules::without(Clause::ALL[which])).failure
    });
    let mut failures: Vec<(Clause, Option<(u64, String)>)> = Clause::ALL.into_iter().zip(failures).collect();
    for (clause, failure) in &failures {
        println!("{clause:?}: {failure:?}");
    }
    failures.retain(|(_, failure)| failure.is_none());
    assert!(failures.is_empty(), "nothing fails without {failures:?}");
}

#[test]
fn the_document_has_a_row_for_each_clause() {
    let text = include_str!("../../../docs/recovery-proof.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let named: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let clauses: Vec<String> = Clause::ALL.iter().map(|clause| format!("{clause:?}")).collect();
    assert_eq!(named, clauses);
}
