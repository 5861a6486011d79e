//! Instances of one group that are killed at random points: their settled numbers add up to a recount.
//!
//! `cargo test` kills ten times. To kill as often as you like, over twelve partitions and thousands of records a second,
//! and to append a line to a file:
//!
//! ```sh
//! ABGAUGE_FAULTS=200 ABGAUGE_FAULTS_RUNS=docs/recovery-runs.md tests/run --test faults -- killed --nocapture
//! ```

use std::time::Duration;

use rand::Rng as _;

use super::fleet::runs::Run;
use super::fleet::{Fleet, Plan, Wanted};
use crate::chaos::stream::Load;
use crate::support::kafka::Options;
use crate::support::wait;

const N_INSTANCES: usize = 3;

/// Number of kills between two recounts, and the longest pause between two kills, ms.
struct Pace {
    load: Load,
    kills_a_round: usize,
    longest_pause_ms: u64,
}

const SHORT: Pace = Pace {
    load: Load {
        n_partitions: 3,
        lists_per_second: 400,
    },
    kills_a_round: 5,
    longest_pause_ms: 4_000,
};

const LONG: Pace = Pace {
    load: Load {
        n_partitions: 12,
        lists_per_second: 2_600,
    },
    kills_a_round: 10,
    longest_pause_ms: 11_000,
};

#[test]
fn instances_killed_at_random_points_add_up_to_a_recount() {
    let wanted = Wanted::or(10);
    let pace = if wanted.is_long { LONG } else { SHORT };
    let mut run = Run::begin("killed", wanted.seed);
    let mut random = wanted.random();
    let mut fleet = Fleet::start(Plan {
        n_instances: N_INSTANCES,
        load: pace.load,
        lateness: "4s",
        options: Options::default(),
    });
    let seen = run.inject(&mut fleet, &wanted, pace.kills_a_round, |fleet, _| {
        let pause = Duration::from_millis(random.random_range(100..pace.longest_pause_ms));
        wait::try_until(pause, || None::<()>);
        let victim = random.random_range(0..N_INSTANCES);
        fleet.kill(victim);
        fleet.start_again(victim);
    });
    fleet.assert_as_one_run();
    run.held(&format!("equal; {seen}"));
}
