//! Instances that are suspended at a step of a session for longer than the group waits. Their late requests change nothing,
//! and they show nothing that others have by then.

use std::time::Instant;

use rand::Rng as _;

use super::fleet::runs::Run;
use super::fleet::{Fleet, LEASE, Plan, Wanted};
use super::step::Step;
use crate::chaos::stream::Load;
use crate::support::gate::Kept;
use crate::support::kafka::Options;
use crate::support::wait;

const N_INSTANCES: usize = 3;
const LOAD: Load = Load {
    n_partitions: 6,
    lists_per_second: 400,
};

#[test]
fn an_instance_suspended_at_any_step_hides_pairs_that_others_took_over() {
    let wanted = Wanted::or(Step::ALL.len());
    let mut run = Run::begin("suspended", wanted.seed);
    let mut random = wanted.random();
    let options = Options {
        proxied: true,
        ..Options::default()
    };
    let mut fleet = Fleet::start(Plan {
        n_instances: N_INSTANCES,
        load: LOAD,
        lateness: "4s",
        options,
    });
    fleet.wait_until_shown_by(&[0, 1, 2]);
    let seen = run.inject(&mut fleet, &wanted, 10, |fleet, n| {
        let step = Step::ALL[n % Step::ALL.len()];
        let kept = match random.random() {
            true => Kept::Request,
            false => Kept::Answer,
        };
        let victim = random.random_range(0..N_INSTANCES);
        println!("{n}: instance {victim} at {step:?}, {kept:?} kept");
        suspend(fleet, victim, step, kept, random.random());
    });
    run.held(&format!("equal; {seen}"));
}

/// Stops an instance at this step until the others show everything. The kept request or answer is released before the
/// instance resumes, or right after that.
fn suspend(fleet: &mut Fleet, victim: usize, step: Step, kept: Kept, lands_before: bool) {
    let gate = fleet.catch(victim, step, kept);
    fleet.daemons[victim].signal(libc::SIGSTOP);
    let others: Vec<usize> = (0..fleet.daemons.len()).filter(|n| *n != victim).collect();
    let stopped = Instant::now();
    fleet.wait_until_shown_by(&others);
    // The others may show them sooner than the lease ends: the victim's last heartbeat is older than its last question.
    wait::try_until(LEASE.saturating_sub(stopped.elapsed()), || None::<()>);
    if lands_before {
        gate.release();
    }
    fleet.daemons[victim].signal(libc::SIGCONT);
    let shown = fleet.shown_by(victim).expect("it answers");
    gate.release();
    assert!(
        shown.is_empty(),
        "instance {victim} shows {shown:?} after {step:?}, which others have"
    );
}
