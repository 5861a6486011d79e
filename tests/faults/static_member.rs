//! Static members, to which the group reassigns their previous partitions, even after their topics have changed.

use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::traffic::{Traffic, scrape, wait_for_live, warnings};

fn is_member(instance: &str) -> String {
    format!("kafka.properties.\"group.instance.id\" = \"{instance}\"")
}

#[track_caller]
fn stop(mut daemon: Daemon) {
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(Duration::from_secs(10)), Some(0));
}

/// Returns true if the daemon is ready and owns nothing.
fn is_idle(scrape: &Exposition) -> bool {
    let value = |name| scrape.value(name, &[]);
    value("abgauge_ready") == Some(1.0) && value("abgauge_partitions_owned") == Some(0.0)
}

/// Waits until the daemon owns both partitions. It must not be ready before.
#[track_caller]
fn wait_for_partitions(daemon: &mut Daemon) {
    daemon.wait_until("its partitions", |daemon| {
        let scrape = scrape(daemon)?;
        assert!(!is_idle(&scrape), "ready without a partition");
        (scrape.value("abgauge_partitions_owned", &[]) == Some(2.0)).then_some(())
    });
}

#[test]
fn a_static_member_moved_to_other_topics_reads_them() {
    let kafka = Kafka::shared();
    let (before, after) = (Traffic::new(&kafka, 2), Traffic::new(&kafka, 2));
    let group = kafka.unique("group");
    let first = |traffic: &Traffic| traffic.config(&kafka.brokers(), &group, &is_member("first"));
    let mut daemon = Daemon::run(&first(&before));
    daemon.wait_until_ready();
    stop(daemon);

    after.send_clicked_lists(0..20);
    after.flush();
    let mut daemon = Daemon::run(&first(&after));
    wait_for_partitions(&mut daemon);
    wait_for_live(&mut daemon, 20);
    daemon.wait_until_ready();
    let reported: Vec<_> = warnings(&daemon)
        .into_iter()
        .filter(|line| line.contains("other topics"))
        .collect();
    assert_eq!(reported.len(), 1, "{reported:#?}");
    assert!(
        reported[0].contains(&before.served)
            && reported[0].contains(&after.served)
            && reported[0].contains("joins again"),
        "{reported:#?}"
    );
}

#[test]
fn an_idle_static_member_moved_to_other_topics_reads_them() {
    let kafka = Kafka::shared();
    let (before, after) = (Traffic::new(&kafka, 1), Traffic::new(&kafka, 2));
    let group = kafka.unique("group");
    let config = |traffic: &Traffic, name: &str| traffic.config(&kafka.brokers(), &group, &is_member(name));
    let mut one = Daemon::run(&config(&before, "one"));
    let other = Daemon::run(&config(&before, "other"));
    // With more members than partitions, one of them has none and must still become ready.
    let one_is_idle = one.wait_until("both to be ready, one without a partition", |one| {
        let ready = |scrape: &Exposition| scrape.value("abgauge_ready", &[]) == Some(1.0);
        let (first, second) = (scrape(one)?, scrape(&other)?);
        let idle = [is_idle(&first), is_idle(&second)];
        (ready(&first) && ready(&second) && idle[0] != idle[1]).then_some(idle[0])
    });
    let (name, idle, mut busy) = if one_is_idle {
        ("one", one, other)
    } else {
        ("other", other, one)
    };
    stop(idle);

    after.send_clicked_lists(0..20);
    after.flush();
    let mut daemon = Daemon::run(&config(&after, name));
    wait_for_partitions(&mut daemon);
    wait_for_live(&mut daemon, 20);
    daemon.wait_until_ready();
    busy.wait_until("the other member to read what it did", |busy| {
        (scrape(busy)?.value("abgauge_partitions_owned", &[]) == Some(1.0)).then_some(())
    });
}
