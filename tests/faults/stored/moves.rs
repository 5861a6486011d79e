//! Instances that join and leave, and rolling restarts: each partition is handed over, and no two instances show it.

use super::fleet::runs::Run;
use super::fleet::{Fleet, Plan, Wanted};
use crate::chaos::stream::Load;
use crate::support::kafka::Options;

/// Number of instances. The last one joins and leaves.
const N_INSTANCES: usize = 4;
const JOINS: usize = N_INSTANCES - 1;
const LOAD: Load = Load {
    n_partitions: 12,
    lists_per_second: 400,
};

#[test]
fn joins_leaves_and_rolling_restarts_hand_partitions_over() {
    let wanted = Wanted::or(3);
    let mut run = Run::begin("joins, leaves, rolling restarts", wanted.seed);
    let mut fleet = Fleet::start(Plan {
        n_instances: N_INSTANCES,
        load: LOAD,
        lateness: "4s",
        options: Options::default(),
    });
    let stay: Vec<usize> = (0..JOINS).collect();
    let all: Vec<usize> = (0..N_INSTANCES).collect();
    fleet.wait_until_shown_by(&all);
    let seen = run.inject(&mut fleet, &wanted, 6, |fleet, n| match n % 3 {
        1 => {
            fleet.leave(JOINS);
            fleet.wait_until_shown_by(&stay);
        }
        2 => {
            for instance in 0..JOINS {
                fleet.leave(instance);
                fleet.start_again(instance);
                fleet.wait_until_shown_by(&stay);
            }
        }
        _ => {
            fleet.start_again(JOINS);
            fleet.wait_until_each_shows(&all);
        }
    });
    run.held(&format!("equal; {seen}"));
}
