//! A broker that fails and returns.

use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::wait;
use crate::traffic::{Traffic, assert_all_counted, totals, wait_for_live, waits_for, warnings};

#[test]
fn a_broker_outage_loses_nothing() {
    let mut kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    // The producer may reconnect many seconds after the daemon (`reconnect.backoff.max.ms`: 10 s). This must not count as
    // idle.
    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), "");
    let mut daemon = Daemon::run_with(&config, &[("ABGAUGE_JOIN__IDLE_AFTER", "60s")]);
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..50);
    traffic.flush();
    wait_for_live(&mut daemon, 50);

    kafka.stop();
    traffic.send_clicked_lists(50..80);
    daemon.wait_until("the silence to be told", |daemon| {
        waits_for(daemon).filter(|why| why.contains("brokers do not answer"))
    });
    let meanwhile = daemon.metrics();
    assert_eq!(meanwhile.value("abgauge_ready", &[]), Some(0.0));
    assert_eq!(totals(&meanwhile, "live"), (50.0, 50.0), "gauges stay");
    let quiet = wait::try_until(Duration::from_secs(8), || {
        waits_for(&daemon).is_none().then_some(())
    });
    assert_eq!(quiet, None, "ready without a broker");

    kafka.restart();
    traffic.send_clicked_lists(80..100);
    traffic.flush();
    daemon.wait_until_ready();
    wait_for_live(&mut daemon, 100);
    assert_all_counted(&daemon.metrics(), 100);
    let about: Vec<_> = warnings(&daemon)
        .into_iter()
        .filter(|line| line.contains("brokers do not answer"))
        .collect();
    assert_eq!(about.len(), 1, "one line a minute: {about:#?}");
}
