//! Several daemons in one group: only its owner shows a partition's numbers.

use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::traffic::{Traffic, lists_by_arm, now_ms, scrape, totals, wait_for_live};

const N_PARTITIONS: i32 = 4;

#[test]
fn a_revoked_partition_takes_its_numbers_with_it() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, N_PARTITIONS);
    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), "");
    let mut first = Daemon::run(&config);
    first.wait_until_ready();
    traffic.send_clicked_lists(0..40);
    traffic.flush();
    wait_for_live(&mut first, 40);

    let mut second = Daemon::run(&config);
    first.wait_until("both to share the work", |first| {
        // The order matters: whatever the second one owns, the first one has already given up.
        let second = scrape(&second)?;
        let first = scrape(first)?;
        assert_no_owner_twice(&first, &second);
        (owned(&first) == 2.0 && owned(&second) == 2.0 && both_ready(&first, &second)).then_some(())
    });
    assert_sums(&first, &second, 40.0);
    for daemon in [&first, &second] {
        let scrape = daemon.metrics();
        assert_eq!(
            lists_by_arm(&scrape, "live").len(),
            2,
            "an arm for each partition"
        );
        assert_eq!(
            scrape.select("abgauge_consumer_lag_records", &[]).count(),
            4,
            "two of each topic"
        );
        assert_eq!(
            scrape.select("abgauge_frontier_timestamp_seconds", &[]).count(),
            2
        );
    }

    traffic.send_clicked_lists(40..80);
    traffic.flush();
    first.wait_until("both to count on", |first| {
        let [first, second] = [scrape(first)?, scrape(&second)?].map(|scrape| totals(&scrape, "live"));
        ((first.0 + second.0, first.1 + second.1) == (80.0, 80.0)).then_some(())
    });
    assert_sums(&first, &second, 80.0);

    second.signal(libc::SIGTERM);
    assert_eq!(second.wait_exit(Duration::from_secs(10)), Some(0));
    wait_for_live(&mut first, 80);
    first.wait_until_ready();
    first.wait_until("all partitions", |first| {
        (owned(&scrape(first)?) == f64::from(N_PARTITIONS)).then_some(())
    });
    assert_eq!(
        lists_by_arm(&first.metrics(), "live").len(),
        N_PARTITIONS as usize
    );
}

/// During catch-up, one topic of a pair is often paused until the other has caught up.
#[test]
fn partitions_returned_during_catch_up_are_read_to_their_ends() {
    const N: u32 = 100_000;
    const STEP_MS: i64 = 200;
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, N_PARTITIONS);
    let begin_ms = now_ms() - i64::from(N) * STEP_MS;
    for number in 0..N {
        let (partition, id) = (number.cast_signed() % N_PARTITIONS, format!("r-{number}"));
        let ts_ms = begin_ms + i64::from(number) * STEP_MS;
        traffic.list(partition, &id, ts_ms);
        traffic.click(partition, &id, ts_ms + 1);
    }
    traffic.flush();
    let heartbeat = "kafka.properties.\"heartbeat.interval.ms\" = 200";
    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), heartbeat);
    let mut first = Daemon::run(&config);
    first.wait_until("the reading to begin", |first| {
        (scrape(first)?.sum("abgauge_records_total", &[]) > 0.0).then_some(())
    });
    let mut second = Daemon::run(&config);
    for daemon in [&mut first, &mut second] {
        daemon.wait_until("a share of the work", |daemon| {
            let scrape = scrape(daemon)?;
            (owned(&scrape) == 2.0 && scrape.value("abgauge_ready", &[]) == Some(1.0)).then_some(())
        });
    }
    let log = first.log();
    let (given_back, ready) = (log.find("released all partitions"), log.find("\"ready\""));
    assert!(
        given_back < ready,
        "it had caught up before: the test needs more records"
    );
    assert_sums(&first, &second, f64::from(N));
}

fn owned(scrape: &Exposition) -> f64 {
    scrape
        .value("abgauge_partitions_owned", &[])
        .expect("always shown")
}

fn both_ready(first: &Exposition, second: &Exposition) -> bool {
    [first, second]
        .iter()
        .all(|scrape| scrape.value("abgauge_ready", &[]) == Some(1.0))
}

#[track_caller]
fn assert_no_owner_twice(first: &Exposition, second: &Exposition) {
    let (first, second) = (lists_by_arm(first, "live"), lists_by_arm(second, "live"));
    assert!(
        first.keys().all(|arm| !second.contains_key(arm)),
        "an arm of one partition is shown by both: {first:?} {second:?}"
    );
}

/// Asserts that numerators, denominators, lists and clicks of both daemons add up.
#[track_caller]
fn assert_sums(first: &Daemon, second: &Daemon, n: f64) {
    let (first, second) = (first.metrics(), second.metrics());
    assert_no_owner_twice(&first, &second);
    let labels = [("window", "total"), ("view", "live")];
    let sum = |name, labels: &[(&str, &str)]| -> f64 {
        [&first, &second]
            .iter()
            .map(|scrape| scrape.sum(name, labels))
            .sum()
    };
    assert_eq!(sum("abgauge_lists", &labels), n);
    assert_eq!(sum("abgauge_clicks", &labels), n);
    let of_hits = [&labels[..], &[("metric", "hit_rate"), ("k", "1")]].concat();
    assert_eq!(sum("abgauge_metric_numerator", &of_hits), n);
    assert_eq!(sum("abgauge_metric_denominator", &of_hits), n);
}
