//! Unreadable batches: their partition is held and reported, while the others continue.

use std::time::Duration;

use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::wait;
use crate::traffic::{
    Traffic, arm, assert_all_counted, lists_by_arm, log, now_ms, scrape, wait_for_live, warnings,
};

/// Lower limits of librdkafka for the size of answers.
const SMALL_ANSWERS: &str = r#"
    kafka.properties."receive.message.max.bytes" = 1100000
    kafka.properties."fetch.max.bytes" = 1000000
"#;

fn is_held(scrape: &Exposition, topic: &str, partition: i32) -> Option<bool> {
    let labels = [("topic", topic), ("partition", &*partition.to_string())];
    Some(scrape.value("abgauge_partition_held", &labels)? == 1.0)
}

/// Waits until `/readyz` reports ready, with a line about a held partition that contains all of `parts`. Returns the line.
#[track_caller]
fn wait_until_told(daemon: &mut Daemon, parts: &[&str]) -> String {
    daemon.wait_until("it to be ready and to say what is held", |daemon| {
        let answer = daemon.try_get("/readyz").ok()?;
        let line = answer
            .body
            .lines()
            .find(|line| parts.iter().all(|part| line.contains(part)))?;
        (answer.status == 200).then(|| line.to_owned())
    })
}

/// Sends groups of twenty clicked lists, ten per partition, and flushes each, so that each gets its own batches.
fn send_groups(traffic: &Traffic, n: u32) {
    for group in 0..n {
        traffic.send_clicked_lists(group * 20..(group + 1) * 20);
        traffic.flush();
    }
}

#[test]
fn a_damaged_batch_holds_only_its_partition_until_it_is_repaired() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    send_groups(&traffic, 3);
    let damaged = kafka.damage(&traffic.served, 0, 12);
    let offsets = format!("{}-{}", damaged.start(), damaged.end());

    let mut daemon = traffic.daemon(&kafka);
    let topic = &traffic.served;
    let skip = format!("ingest.skip_records = [\"{topic}/0/{offsets}\"]");
    let parts = [&*format!("offsets {offsets}"), "checksum is wrong", &skip];
    wait_until_told(&mut daemon, &parts);
    daemon.wait_until("the other partition", |daemon| {
        (lists_by_arm(&scrape(daemon)?, "live") == [(arm(1), 30.0)].into()).then_some(())
    });
    let scrape = daemon.metrics();
    assert_eq!(is_held(&scrape, topic, 0), Some(true));
    assert_eq!(is_held(&scrape, topic, 1), Some(false));
    assert_eq!(scrape.value("abgauge_pair_restarts_total", &[]), Some(0.0));
    assert_eq!(scrape.value("abgauge_partitions_owned", &[]), Some(2.0));
    // This is long enough for another attempt.
    let other = wait::try_until(Duration::from_secs(12), || {
        let ready = daemon.get("/readyz");
        (ready.status != 200).then_some(ready.body)
    });
    assert_eq!(other, None, "it stays ready");
    let mut reported = warnings(&daemon);
    reported.retain(|line| line.contains("is held"));
    assert!(
        reported.len() <= 2,
        "one line a minute, and one once the end is found: {reported:#?}"
    );
    assert!(
        reported
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part))),
        "{reported:#?}"
    );

    assert_eq!(kafka.damage(topic, 0, 12), damaged);
    wait_for_live(&mut daemon, 60);
    assert_all_counted(&daemon.metrics(), 60);
    assert_eq!(is_held(&daemon.metrics(), topic, 0), Some(false));
    assert_eq!(daemon.get("/readyz").body, "ready");
}

#[test]
fn a_held_partition_keeps_its_numbers_until_its_batch_is_skipped() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    let config = |more: &str| traffic.config(&kafka.brokers(), &kafka.unique("group"), more);
    let mut daemon = Daemon::run(&config(""));
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..20);
    traffic.flush();
    wait_for_live(&mut daemon, 20);
    daemon.signal(libc::SIGSTOP);
    // A fetch in flight is answered with the first group.
    for group in [20..22, 22..42, 42..62] {
        traffic.send_clicked_lists(group);
        traffic.flush();
    }
    let damaged = kafka.damage(&traffic.clicks, 0, 15);
    daemon.signal(libc::SIGCONT);

    let first = damaged.start().to_string();
    let offsets = format!("{first}-{}", damaged.end());
    wait_until_told(&mut daemon, &[&format!("offsets {offsets}"), &traffic.clicks]);
    daemon.wait_until("the other partition", |daemon| {
        (lists_by_arm(&scrape(daemon)?, "live").get(&arm(1)) == Some(&31.0)).then_some(())
    });
    let shown = daemon.metrics();
    assert!(lists_by_arm(&shown, "live")[&arm(0)] >= 10.0, "its numbers stay");
    assert_eq!(is_held(&shown, &traffic.clicks, 0), Some(true));
    assert_eq!(is_held(&shown, &traffic.served, 0), Some(false));
    assert_eq!(shown.value("abgauge_exact", &[]), Some(1.0));

    // Skipping a part of the batch is not enough: the message names all of it.
    let skip = format!("ingest.skip_records = [\"{}/0/{offsets}\"]", traffic.clicks);
    let last = damaged.end() - 1;
    assert!(*damaged.start() < last, "some records");
    for part in [format!("{first}-{last}"), damaged.end().to_string()] {
        let part = format!("ingest.skip_records = [\"{}/0/{part}\"]", traffic.clicks);
        let mut daemon = Daemon::run(&config(&part));
        let parts = [&*skip, "must cover the whole batch", "missing from all numbers"];
        wait_until_told(&mut daemon, &parts);
    }

    // The skip that the message suggests works.
    let mut daemon = Daemon::run(&config(&skip));
    daemon.wait_until_ready();
    let shown = daemon.metrics();
    let lists: f64 = lists_by_arm(&shown, "live").values().sum();
    assert_eq!(lists, 62.0);
    let n_left_out = (damaged.end() - damaged.start() + 1) as f64;
    let skipped = [("topic", &*traffic.clicks), ("outcome", "skipped")];
    assert_eq!(shown.value("abgauge_records_total", &skipped), Some(n_left_out));
    assert_eq!(
        shown.sum("abgauge_click_results_total", &[("result", "matched")]),
        62.0 - n_left_out
    );
    assert_eq!(shown.value("abgauge_exact", &[]), Some(0.0));
    assert_eq!(is_held(&shown, &traffic.clicks, 0), Some(false));
    let reported = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains(&format!("offsets {offsets} are skipped")) && message.contains("no longer exact")
    };
    daemon.wait_until("the log to tell it", |daemon| {
        log(daemon).iter().any(reported).then_some(())
    });
}

#[test]
fn a_batch_that_decompresses_beyond_the_bound_holds_only_its_partition() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    send_groups(&traffic, 1);
    // These few hundred bytes decompress to megabytes.
    let producer = kafka.producer_with(&[
        ("compression.codec", "zstd"),
        ("batch.size", "9000000"),
        ("linger.ms", "1000"),
    ]);
    for _ in 0..8 {
        producer.produce(&traffic.served, Some(0), None, Some(&[b' '; 900_000]), None);
    }
    producer.flush();
    traffic.send_clicked_lists(20..40);
    traffic.flush();

    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), SMALL_ANSWERS);
    let mut daemon = Daemon::run(&config);
    let skip = format!("ingest.skip_records = [\"{}/0/10-17\"]", traffic.served);
    let parts = [
        "offsets 10-17",
        "decompressed",
        "receive.message.max.bytes",
        &skip,
    ];
    wait_until_told(&mut daemon, &parts);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    assert_eq!(
        daemon
            .metrics()
            .sum("abgauge_records_total", &[("outcome", "invalid")]),
        8.0
    );
}

#[test]
fn a_batch_larger_than_an_answer_holds_only_its_partition() {
    let kafka = Kafka::shared();
    let traffic = Traffic::of(
        &kafka,
        |stem| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, 2, &[("max.message.bytes", "9000000")]);
            name
        },
        2,
    );
    send_groups(&traffic, 1);
    let producer = kafka.producer();
    producer.produce(
        &traffic.served,
        Some(0),
        None,
        Some(&[b' '; 3_000_000]),
        Some(now_ms()),
    );
    producer.flush();
    traffic.send_clicked_lists(20..40);
    traffic.flush();

    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), SMALL_ANSWERS);
    let mut daemon = Daemon::run(&config);
    let skip = format!("ingest.skip_records = [\"{}/0/10\"]", traffic.served);
    let parts = [
        "offsets 10 ",
        "a response larger (3000",
        "receive.message.max.bytes",
        &skip,
    ];
    wait_until_told(&mut daemon, &parts);
    daemon.wait_until("the other partition", |daemon| {
        (lists_by_arm(&scrape(daemon)?, "live") == [(arm(1), 20.0)].into()).then_some(())
    });
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    assert_eq!(
        daemon
            .metrics()
            .sum("abgauge_records_total", &[("outcome", "invalid")]),
        1.0
    );
}
