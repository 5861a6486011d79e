//! Stored state: a daemon that is killed goes on with what it has sealed, whatever the log still holds of it.

mod killed;

use std::ops::Range;

use crate::looks::{N_PARTITIONS, Said, World};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::wait::PATIENCE;
use crate::traffic::{SHORT_SESSION, Traffic, lists_by_arm, scrape};

pub(crate) const STATE: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

/// Lists by arm since the start, settled.
fn settled(daemon: &Daemon) -> Option<Vec<(String, f64)>> {
    let scrape = scrape(daemon)?;
    let lists = lists_by_arm(&scrape, "settled");
    Some(lists.into_iter().map(|(arm, n)| (arm.to_owned(), n)).collect())
}

#[track_caller]
fn wait_for_settled(daemon: &mut Daemon, n_lists: f64) {
    daemon.wait_until(&format!("{n_lists} settled lists"), |daemon| {
        let n: f64 = settled(daemon)?.iter().map(|(_, n)| n).sum();
        (n == n_lists).then_some(())
    });
}

#[test]
fn a_killed_daemon_goes_on_with_totals_that_the_log_no_longer_holds() {
    let kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    let state = kafka.unique("state");
    kafka.create_topic(&state, 2, &STATE);
    let more = format!(
        "kafka.start = \"earliest\"\n{SHORT_SESSION}\nstate.topic = \"{state}\"\nstate.interval = \"1s\""
    );
    let mut daemon = Daemon::run(&traffic.config(&kafka.brokers(), &kafka.unique("group"), &more));
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..400);
    traffic.flush();
    wait_for_settled(&mut daemon, 400.0);
    daemon.kill();
    for topic in [&traffic.served, &traffic.clicks] {
        for partition in 0..2 {
            kafka.delete_records_before(topic, partition, 150);
        }
    }
    traffic.send_clicked_lists(400..500);
    traffic.flush();
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
    daemon.wait_until_ready();
    // A clean stop seals what there is.
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(PATIENCE), Some(0), "{}", daemon.log());
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
    daemon.kill();
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
}

/// A day and a quarter of lists, then an hour until the first look of the rest: the planned look is in the second part.
const BEGIN: Range<u64> = 0..4_500;
const REST: Range<u64> = 4_550..7_200;
/// Records of a partition that are left in the log: more than what is younger than attribution and lateness.
const LEFT: i64 = 60;

/// Running maxima, first exposures and the window are of lists that the log no longer holds.
#[test]
fn looks_of_a_killed_daemon_are_those_of_one_that_never_was() {
    let world = World::new();
    let state = world.kafka.unique("state");
    world
        .kafka
        .create_topic(&state, N_PARTITIONS.cast_signed(), &STATE);
    world.send(BEGIN, &[0, 1]);
    let mut whole = Daemon::run(&world.config("never-killed"));
    let stored = format!("[state]\ntopic = \"{state}\"\ninterval = \"1s\"\n");
    let mut killed = Daemon::run(&format!("{}{stored}", world.config("killed")));
    world.wait_for_look(&mut whole, &BEGIN);
    world.wait_for_look(&mut killed, &BEGIN);
    assert_eq!(Said::by(&killed), Said::by(&whole));

    killed.kill();
    for topic in [&world.served, &world.clicks] {
        for partition in 0..N_PARTITIONS.cast_signed() {
            let (_, end) = world.kafka.offsets(topic, partition);
            world.kafka.delete_records_before(topic, partition, end - LEFT);
        }
    }
    killed.start_again();
    world.wait_for_look(&mut killed, &BEGIN);
    assert_eq!(
        Said::by(&killed),
        Said::by(&whole),
        "the last look is shown again"
    );

    killed.kill();
    world.send(REST, &[0, 1]);
    world.wait_for_look(&mut whole, &REST);
    killed.start_again();
    world.wait_for_look(&mut killed, &REST);
    assert_eq!(Said::by(&killed), Said::by(&whole));
}
