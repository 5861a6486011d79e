//! Time as producers tell it, in real Kafka: an event ahead of it, a transaction that is left open, a stream that has ended.

use std::collections::BTreeMap;

use rdkafka::producer::Producer as _;
use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::wait::{self, PATIENCE};
use crate::traffic::{
    SHORT_SESSION, Traffic, arm, lists_by_arm, log, now_ms, open_transaction, scrape, totals, wait_for_live,
    waits_for,
};

const TWO_DAYS_MS: i64 = 2 * 24 * 60 * 60 * 1000;
/// Default of brokers before 4.0.
const UNGUARDED: [(&str, &str); 1] = [("message.timestamp.after.max.ms", "9223372036854775807")];

/// Lists in the live window of ten minutes, all arms together.
fn in_window(scrape: &Exposition) -> f64 {
    scrape.sum("abgauge_lists", &[("window", "10m"), ("view", "live")])
}

fn outcome(scrape: &Exposition, topic: &str, outcome: &str) -> f64 {
    scrape.sum("abgauge_records_total", &[("topic", topic), ("outcome", outcome)])
}

/// Sends lists in the arm of a partition, two days ahead of the clock by both their event time and their record's timestamp.
fn send_ahead(kafka: &Kafka, traffic: &Traffic, partition: i32, n_lists: i64) {
    let producer = kafka.producer();
    let begin_ms = now_ms() + TWO_DAYS_MS - 60_000;
    for n in 0..n_lists {
        let ahead_ms = begin_ms + 1000 * n;
        let id = format!("ahead-{n}");
        let list = json!({
            "request_id": id, "ts": ahead_ms, "experiments": {"ranker": arm(partition)}, "items": ["i1"],
        });
        producer.produce(
            &traffic.served,
            Some(partition),
            Some(id.as_bytes()),
            Some(list.to_string().as_bytes()),
            Some(ahead_ms),
        );
    }
    producer.flush();
}

/// Of ten lists of ten users, sent together, the clock of one is a minute fast. A bound on timestamps refuses all of them; a
/// broker that stamps records takes all, and abgauge refuses the one.
#[test]
fn a_timestamp_bound_loses_other_events_but_a_stamping_broker_does_not() {
    let kafka = Kafka::shared();
    let bounded = [("message.timestamp.after.max.ms", "1000")];
    let stamped = [("message.timestamp.type", "LogAppendTime")];
    for (settings, n_refused, n_counted) in [(bounded, 10, 0.0), (stamped, 0, 9.0)] {
        let traffic = Traffic::with(&kafka, 1, &settings);
        let mut daemon = traffic.daemon(&kafka);
        daemon.wait_until_ready();
        // Long enough that all go in one batch.
        let producer = kafka.producer_with(&[("linger.ms", "1000")]);
        for number in 0..10 {
            let ts_ms = now_ms() + if number == 3 { 60_000 } else { 0 };
            let id = format!("batch-{number}");
            let list =
                json!({"request_id": id, "ts": ts_ms, "experiments": {"e": "a"}, "items": ["i"]}).to_string();
            producer.produce(
                &traffic.served,
                Some(0),
                Some(id.as_bytes()),
                Some(list.as_bytes()),
                Some(ts_ms),
            );
        }
        assert_eq!(producer.flush_refused(), n_refused, "{settings:?}");
        // Behind them, in the same partition.
        traffic.send_clicked_lists(0..1);
        traffic.flush();
        daemon.wait_until("what was sent last", |daemon| {
            (outcome(&scrape(daemon)?, &traffic.served, "accepted") == n_counted + 1.0).then_some(())
        });
        let n_future = outcome(&daemon.metrics(), &traffic.served, "future");
        assert_eq!(n_future, if n_refused == 0 { 1.0 } else { 0.0 });
        let words = "if one record is more than 1s ahead (message.timestamp.after.max.ms=1000), the broker refuses the whole batch";
        match n_refused {
            0 => assert!(!daemon.log().contains(words)),
            _ => daemon.wait_for_log(words, |log| log.contains(words)),
        }
    }
}

/// By `CreateTime` its producer sets both of its times, so that it passes the guard.
#[test]
fn events_two_days_ahead_empty_nothing_and_can_be_skipped() {
    let kafka = Kafka::shared();
    let traffic = Traffic::with(&kafka, 2, &UNGUARDED);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    let guard = format!("topic `{}` uses the timestamps of its producers", traffic.served);
    daemon.wait_until("the missing guard to be told", |daemon| {
        daemon
            .get("/api/v1/experiments")
            .body
            .contains(&guard)
            .then_some(())
    });
    traffic.send_clicked_lists(0..20);
    traffic.flush();
    wait_for_live(&mut daemon, 20);
    send_ahead(&kafka, &traffic, 0, 6);
    traffic.send_clicked_lists(20..40);
    traffic.flush();
    daemon.wait_until("what follows to be counted", |daemon| {
        (outcome(&scrape(daemon)?, &traffic.served, "late") == 10.0).then_some(())
    });
    daemon.wait_until("the other partition to go on", |daemon| {
        (in_window(&scrape(daemon)?) == 30.0).then_some(())
    });
    let of_first = [("topic", &*traffic.served), ("partition", "0")];
    let (reported, seconds) = daemon.wait_until("its gauge", |daemon| {
        let reported = scrape(daemon)?;
        let seconds = reported.value("abgauge_event_ahead_seconds", &of_first)?;
        Some((reported, seconds))
    });
    assert!((171_000.0..172_746.0).contains(&seconds), "{seconds}");
    assert_eq!(reported.value("abgauge_exact", &[]), Some(1.0));
    let api = daemon.get("/api/v1/experiments").body;
    let sentence = format!(
        "topic `{}`, partition 0: 6 events at offsets 10-15 lie up to 47 hours ahead of the clock; 10 later events in that \
         partition have been counted as late because of them",
        traffic.served
    );
    assert!(api.contains(&sentence), "{api}");
    let skip = format!("{}/0/10-15", traffic.served);
    assert!(api.contains(&skip), "{api}");
    let has_secret_word =
        |line: &&serde_json::Value| line["message"].to_string().contains("ingest.skip_records");
    let log = log(&daemon);
    let lines: Vec<_> = log.iter().filter(has_secret_word).collect();
    // At one event, at two, and at four, if they come one by one.
    assert!((1..=3).contains(&lines.len()), "{lines:?}");
    assert_eq!(lines[0]["partition"], json!(0));
    drop(daemon);

    let more = format!("ingest.skip_records = [\"{skip}\"]");
    let config = traffic.config(&kafka.brokers(), &kafka.unique("group"), &more);
    let mut mended = Daemon::run(&config);
    mended.wait_until_ready();
    wait_for_live(&mut mended, 40);
    let mended = mended.metrics();
    assert_eq!(in_window(&mended), 40.0);
    assert_eq!(outcome(&mended, &traffic.served, "skipped"), 6.0);
    assert_eq!(outcome(&mended, &traffic.served, "late"), 0.0);
    assert_eq!(mended.value("abgauge_exact", &[]), Some(0.0));
    assert_eq!(mended.value("abgauge_event_ahead_seconds", &of_first), None);
}

/// Such an arm had no series, so the totals of all arms did not add up to the accepted lists.
#[test]
fn totals_include_an_arm_whose_lists_are_all_ahead_of_the_clock() {
    let kafka = Kafka::shared();
    let traffic = Traffic::with(&kafka, 2, &UNGUARDED);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    (0..20).for_each(|number| traffic.send_clicked_list(0, number));
    traffic.flush();
    send_ahead(&kafka, &traffic, 1, 6);
    let reported = daemon.wait_until("all to be accepted", |daemon| {
        let reported = scrape(daemon)?;
        (outcome(&reported, &traffic.served, "accepted") == 26.0).then_some(reported)
    });
    let in_total = [(arm(0), 20.0), (arm(1), 6.0)];
    daemon.wait_until("totals that add up to the accepted lists", |daemon| {
        let shown = scrape(daemon)?;
        let lists = lists_by_arm(&shown, "live").into_iter();
        let lists: Vec<_> = lists.map(|(arm, n)| (arm.to_owned(), n)).collect();
        (lists == in_total && in_window(&shown) == 20.0).then_some(())
    });
    assert_eq!(outcome(&reported, &traffic.served, "future"), 0.0);
}

/// The end that readers of committed records see stood before it: nothing seemed to be left, and time passed.
#[test]
fn an_open_transaction_is_reported_and_loses_nothing_once_it_ends() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 1);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..10);
    traffic.flush();
    wait_for_live(&mut daemon, 10);

    let list =
        json!({"request_id": "open", "ts": now_ms(), "experiments": {"ranker": "of-0"}, "items": ["i1"]});
    let topic = &*traffic.served;
    let transaction = open_transaction(&kafka, topic, &list);
    // Of everybody else, and not to be read before it ends.
    traffic.send_clicked_lists(10..30);
    traffic.flush();

    let expected = format!("partition 0 of topic `{topic}` is blocked: a transaction open since");
    daemon.wait_until("the transaction to be told", |daemon| {
        waits_for(daemon).filter(|why| why.contains(&expected))
    });
    let labels = [("topic", topic), ("partition", "0")];
    let held_up = daemon.wait_until("its gauge", |daemon| {
        let reported = scrape(daemon)?;
        reported.value("abgauge_open_transaction_since_timestamp_seconds", &labels)?;
        Some(reported)
    });
    assert_eq!(held_up.value("abgauge_consumer_lag_records", &labels), Some(21.0));
    assert_eq!(held_up.value("abgauge_ready", &[]), Some(0.0));

    transaction.commit_transaction(PATIENCE).expect("it ends");
    daemon.wait_until("all to be counted", |daemon| {
        (totals(&scrape(daemon)?, "live") == (31.0, 30.0)).then_some(())
    });
    daemon.wait_until_ready();
    let after = daemon.metrics();
    assert_eq!(outcome(&after, topic, "after_settled"), 0.0);
    assert_eq!(outcome(&after, &traffic.clicks, "after_settled"), 0.0);
    assert_eq!(
        after.value("abgauge_open_transaction_since_timestamp_seconds", &labels),
        None
    );
}

/// It showed the last windows of a stream that had ended as if they were alive: 472 of 944 series were others.
#[test]
fn a_restart_on_a_dead_stream_equals_a_twin_that_was_never_killed() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 3);
    let config = |group: &str| {
        let short = "metrics.windows = [\"1m\", \"10m\"]\nexport.views = [\"live\", \"settled\"]";
        let config = traffic.config(&kafka.brokers(), &kafka.unique(group), SHORT_SESSION);
        config.replace("metrics.windows = [\"10m\"]", short)
    };
    let mut twin = Daemon::run(&config("twin"));
    let mut killed = Daemon::run(&config("killed"));
    twin.wait_until_ready();
    killed.wait_until_ready();
    traffic.send_clicked_lists(0..60);
    traffic.flush();
    wait_for_live(&mut twin, 60);
    wait_for_live(&mut killed, 60);
    let last_ms = now_ms();
    killed.kill();
    killed.start_again();
    killed.wait_until_ready();
    // A window of a minute has left it behind by then, and the one of ten has not.
    wait::until("a minute to pass", wait::LONG, || {
        (now_ms() - last_ms > 62_000).then_some(())
    });
    let mut series = [twin, killed].map(|daemon| (daemon, BTreeMap::new()));
    wait::until("the twins to be equal", wait::LONG, || {
        for (daemon, series) in &mut series {
            *series = ranking(&scrape(daemon)?);
        }
        (series[0].1 == series[1].1).then_some(())
    });
    let [(_, of_twin), (_, of_killed)] = &series;
    assert_eq!(of_twin, of_killed);
    assert!(of_twin.len() > 100, "{}", of_twin.len());
    let windows: Vec<_> = of_killed
        .keys()
        .filter(|name| name.contains("view=live"))
        .collect();
    assert!(
        !windows.iter().any(|name| name.contains("window=1m,")),
        "the last minute is empty"
    );
    assert!(windows.iter().any(|name| name.contains("window=10m,")));
}

/// Ranking series by name and labels; `total` begins anew with a start, and is the same here.
fn ranking(scrape: &Exposition) -> BTreeMap<String, String> {
    let samples = scrape.samples.iter();
    let ranked =
        samples.filter(|sample| sample.labels.contains_key("arm") && sample.labels.contains_key("window"));
    ranked
        .map(|sample| {
            let labels = sample
                .labels
                .iter()
                .map(|(name, value)| format!("{name}={value},"));
            (
                format!("{}{{{}}}", sample.name, labels.collect::<String>()),
                sample.value.to_string(),
            )
        })
        .collect()
}
