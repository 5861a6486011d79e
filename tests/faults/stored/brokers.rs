//! Three brokers with three replicas each: leaders move, brokers are killed, and answers to claims, blobs and seals are
//! lost.

use std::time::Duration;

use rand::Rng as _;
use rand_pcg::Pcg64Mcg;

use super::fleet::runs::Run;
use super::fleet::{Fleet, Plan, Wanted};
use super::step::Step;
use crate::chaos::stream::Load;
use crate::support::gate::Kept;
use crate::support::kafka::Options;
use crate::support::wait;

const N_INSTANCES: usize = 2;
const LOAD: Load = Load {
    n_partitions: 6,
    lists_per_second: 200,
};

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Clean stop of a broker, so that others lead its partitions. It comes back and leads them again.
    LeaderMoved,
    /// `kill -9` of a broker.
    BrokerKilled,
    /// Loss of a broker's answer and its connection, after it has written the request.
    AnswerLost(Step),
}

const FAULTS: [Fault; 5] = [
    Fault::AnswerLost(Step::Seal),
    Fault::LeaderMoved,
    Fault::AnswerLost(Step::Claim),
    Fault::BrokerKilled,
    Fault::AnswerLost(Step::Blobs),
];

#[test]
fn moved_leaders_dead_brokers_and_lost_answers_change_no_number() {
    let wanted = Wanted::or(FAULTS.len());
    let mut run = Run::begin("leader moved, broker killed, answer lost", wanted.seed);
    let mut random = wanted.random();
    let mut fleet = Fleet::start(Plan {
        n_instances: N_INSTANCES,
        load: LOAD,
        // Longer than two broker faults in a row keep records back on a busy machine. Late records would not count.
        lateness: "40s",
        options: Options {
            proxied: true,
            replicated: true,
            ..Options::default()
        },
    });
    fleet.wait_until_shown_by(&[0, 1]);
    let seen = run.inject(&mut fleet, &wanted, 10, |fleet, n| {
        let fault = FAULTS[n % FAULTS.len()];
        println!("{n}: {fault:?}");
        inject(fleet, fault, &mut random);
    });
    run.held(&format!("equal; {seen}"));
}

fn inject(fleet: &mut Fleet, fault: Fault, random: &mut Pcg64Mcg) {
    let broker = random.random_range(0..fleet.kafka.n_nodes());
    match fault {
        Fault::LeaderMoved => fleet.kafka.restart_node_in_order(broker),
        Fault::BrokerKilled => fleet.kafka.restart_node(broker),
        Fault::AnswerLost(step) => {
            let victim = random.random_range(0..N_INSTANCES);
            fleet.catch(victim, step, Kept::Lost);
        }
    }
    // The next fault comes while this one still has effects, or after that.
    let pause = Duration::from_millis(random.random_range(100..4_000));
    wait::try_until(pause, || None::<()>);
}
