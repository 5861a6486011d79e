//! Daemons that are cut off from their brokers, or stopped, for much longer than a list stays open.

use std::sync::Arc;
use std::time::Duration;

use crate::steady::Steady;
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::wait;
use crate::traffic::{SHORT_SESSION, Traffic, assert_all_counted, proxied, scrape, totals, waits_for};

/// Daemons that read the same topics, each in its own group.
struct Daemons {
    undisturbed: Daemon,
    /// Daemons behind the proxy. The group waits for the return of the first, and revokes the partitions of the second.
    unreachable: [Daemon; 2],
    /// The same two cases for stopped daemons.
    stopped: [Daemon; 2],
}

impl Daemons {
    fn start(kafka: &Kafka, traffic: &Traffic) -> Daemons {
        let start =
            |brokers: &str, more: &str| Daemon::run(&traffic.config(brokers, &kafka.unique("group"), more));
        let (near, far) = (kafka.brokers(), kafka.proxied_brokers());
        Daemons {
            undisturbed: start(&near, ""),
            unreachable: [start(&far, ""), start(&far, SHORT_SESSION)],
            stopped: [start(&near, ""), start(&near, SHORT_SESSION)],
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Daemon> {
        std::iter::once(&mut self.undisturbed)
            .chain(&mut self.unreachable)
            .chain(&mut self.stopped)
    }
}

/// Ten times the sum of idle_after and attribution, which are both short.
const TEN_TIMES: Duration = Duration::from_secs(30);

#[test]
fn a_daemon_cut_off_for_long_settles_nothing_early_and_loses_nothing() {
    let mut kafka = proxied();
    let traffic = Arc::new(Traffic::new(&kafka, 3));
    let mut daemons = Daemons::start(&kafka, &traffic);
    for daemon in daemons.all() {
        daemon.wait_until_ready();
    }
    let steady = Steady::start(&traffic);
    for daemon in daemons.all() {
        daemon.wait_until("lists to settle", |daemon| {
            (totals(&scrape(daemon)?, "settled").0 > 0.0).then_some(())
        });
    }

    kafka.proxy().cut();
    daemons
        .stopped
        .iter()
        .for_each(|daemon| daemon.signal(libc::SIGSTOP));
    for daemon in &mut daemons.unreachable {
        daemon.wait_until("the silence to be told", |daemon| {
            waits_for(daemon).filter(|why| why.contains("brokers do not answer"))
        });
    }
    daemons.unreachable[1].wait_until("the partitions to be taken", |evicted| {
        (scrape(evicted)?.value("abgauge_partitions_owned", &[]) == Some(0.0)).then_some(())
    });
    let before = daemons.unreachable[0].metrics();
    let other = wait::try_until(TEN_TIMES, || waits_for(&daemons.undisturbed));
    assert_eq!(other, None, "the others go on");
    let [waiting, evicted] = daemons.unreachable.each_ref().map(Daemon::metrics);
    assert_eq!(frontier(&waiting), frontier(&before), "no idle move is made");
    assert!(
        waiting.value("abgauge_open_lists", &[]) > Some(0.0),
        "lists wait for their clicks"
    );
    assert_eq!(waiting.value("abgauge_partitions_owned", &[]), Some(3.0));
    assert_eq!(evicted.value("abgauge_partitions_owned", &[]), Some(0.0));

    daemons
        .stopped
        .iter()
        .for_each(|daemon| daemon.signal(libc::SIGCONT));
    kafka.proxy().restore();
    for daemon in daemons.unreachable.iter_mut().chain(&mut daemons.stopped) {
        daemon.wait_until("what was missed to be read", |daemon| {
            let read = totals(&scrape(daemon)?, "live").0;
            (read >= totals(&daemons.undisturbed.metrics(), "live").0 - 20.0).then_some(())
        });
    }
    let n = steady.finish();
    assert!(n > 300, "{n} lists are no steady traffic");
    let expected = (f64::from(n), f64::from(n));
    for daemon in daemons.all() {
        daemon.wait_until(&format!("all {n} lists to settle with their clicks"), |daemon| {
            (totals(&scrape(daemon)?, "settled") == expected).then_some(())
        });
        let scrape = daemon.metrics();
        assert_eq!(totals(&scrape, "live"), expected);
        assert_all_counted(&scrape, n);
    }
    for daemon in &daemons.stopped {
        assert!(
            daemon.log().contains("was stopped for a while"),
            "{}",
            daemon.log()
        );
    }
}

/// Sums the frontiers of all partitions. It moves if one of them does.
fn frontier(scrape: &Exposition) -> f64 {
    scrape.sum("abgauge_frontier_timestamp_seconds", &[])
}
