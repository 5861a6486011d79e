//! Instances of one group take the same looks, over all partitions.

use super::{BEGIN, REST, state_topic_of};
use crate::looks::{Said, World};
use crate::support::daemon::Daemon;
use crate::traffic::scrape;

/// Starts two daemons of one group.
fn group(world: &World) -> [Daemon; 2] {
    let (config, stored) = (world.config("one"), state_topic_of(world));
    let session = "properties.\"session.timeout.ms\" = 6000";
    ["one", "other"].map(|name| {
        let id = format!("properties.\"group.instance.id\" = \"{name}\"\n{session}");
        let config = config.replace("properties.\"group.instance.id\" = \"one\"", &id);
        Daemon::run(&format!("{config}{stored}"))
    })
}

/// Returns the number of partitions whose settled numbers a daemon shows.
fn n_partitions(daemon: &Daemon) -> Option<usize> {
    let scrape = scrape(daemon)?;
    let own = [("scope", "own")];
    Some(scrape.select("abgauge_frontier_timestamp_seconds", &own).count())
}

#[test]
fn all_instances_take_the_same_looks_even_after_one_is_killed() {
    let world = World::new();
    world.send(BEGIN, &[0, 1]);
    let mut whole = Daemon::run(&world.config("alone"));
    let mut group = group(&world);
    world.wait_for_look(&mut whole, &BEGIN);
    for daemon in &mut group {
        daemon.wait_until("one partition of two", |daemon| {
            (n_partitions(daemon)? == 1).then_some(())
        });
        world.wait_for_look(daemon, &BEGIN);
        assert_eq!(Said::by(daemon), Said::by(&whole));
    }

    group[0].kill();
    world.send(REST, &[0, 1]);
    world.wait_for_look(&mut whole, &REST);
    world.wait_for_look(&mut group[1], &REST);
    assert_eq!(Said::by(&group[1]), Said::by(&whole));

    group[0].start_again();
    world.wait_for_look(&mut group[0], &REST);
    assert_eq!(Said::by(&group[0]), Said::by(&whole));
}
