//! Obstacles to a start are reported with a remedy. The daemon keeps trying if waiting can help.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::kafka::{Kafka, Options, READER, STRANGER};
use crate::support::wait;
use crate::traffic::{Traffic, assert_all_counted, scrape, wait_for_live, waits_for, warnings};

#[test]
fn a_daemon_without_brokers_keeps_trying_and_loses_nothing() {
    let mut kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    traffic.send_clicked_lists(0..20);
    traffic.flush();
    kafka.stop();

    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until("the brokers' silence to be told", |daemon| {
        waits_for(daemon).filter(|why| why.contains("brokers do not answer") && why.contains("kafka.brokers"))
    });
    // This is long enough for a dozen attempts.
    let ready = wait::try_until(Duration::from_secs(6), || {
        waits_for(&daemon).is_none().then_some(())
    });
    assert_eq!(ready, None, "ready without a broker");
    assert_eq!(daemon.get("/healthz").status, 200);
    let quiet = daemon.metrics();
    assert_eq!(quiet.value("abgauge_ready", &[]), Some(0.0));
    assert_eq!(quiet.select("abgauge_lists", &[]).count(), 0);
    let warned = warnings(&daemon);
    assert_eq!(warned.len(), 1, "one line a minute: {warned:#?}");

    kafka.restart();
    daemon.wait_until_ready();
    wait_for_live(&mut daemon, 20);
    assert_all_counted(&daemon.metrics(), 20);
}

#[test]
fn a_missing_topic_is_named_until_it_is_created() {
    let kafka = Kafka::shared();
    let (served, clicks) = (kafka.unique("served"), kafka.unique("clicks"));
    let config = format!(
        "kafka.brokers = \"{}\"\nkafka.served_topic = \"{served}\"\nkafka.clicks_topic = \"{clicks}\"\nkafka.group_id = \"{}\"",
        kafka.brokers(),
        kafka.unique("group"),
    );
    let mut daemon = Daemon::run(&config);
    for topic in [&served, &clicks] {
        let named = |why: &String| why.contains(&format!("`{topic}`"));
        let first = daemon.wait_until(&format!("{topic} to be asked for"), |daemon| {
            waits_for(daemon).filter(named)
        });
        assert!(
            first.contains("do not have topic") && first.contains("trying again"),
            "{first}"
        );
        daemon.wait_until(&format!("{topic} to be missed"), |daemon| {
            waits_for(daemon).filter(|why| {
                named(why) && why.contains("a topic does not exist") && why.contains("create it")
            })
        });
        kafka.create_topic(topic, 2, &[]);
    }
    daemon.wait_until_ready();
    let warned = warnings(&daemon);
    assert_eq!(warned.len(), 1, "one line a minute: {warned:#?}");
}

/// After the restart the client may need fifteen seconds to find the partitions again.
#[test]
fn does_not_report_missing_topics_while_their_broker_restarts() {
    let mut kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    traffic.send_clicked_lists(0..20);
    traffic.flush();
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    wait_for_live(&mut daemon, 20);

    for restart in [Kafka::restart_in_order, Kafka::restart] {
        let is_back = AtomicBool::new(false);
        let reported = thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut reported = Vec::new();
                wait::until("the daemon to be ready again", wait::LONG, || {
                    let was_back = is_back.load(Ordering::Acquire);
                    let why = waits_for(&daemon);
                    let is_ready = why.is_none();
                    if reported.last() != Some(&why) {
                        reported.push(why);
                    }
                    (was_back && is_ready).then_some(())
                });
                reported
            });
            restart(&mut kafka);
            is_back.store(true, Ordering::Release);
            watch.join().expect("it watches to the end")
        });
        let missed: Vec<_> = reported
            .iter()
            .flatten()
            .filter(|why| why.contains("does not exist"))
            .collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }
}

#[test]
fn reports_a_deleted_topic() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    kafka.delete_topic(&traffic.clicks);
    let named = format!("`{}`", traffic.clicks);
    daemon.wait_until("the topic to be missed", |daemon| {
        waits_for(daemon).filter(|why| why.contains("a topic does not exist") && why.contains(&named))
    });
}

#[test]
fn unequal_partition_counts_are_refused() {
    let kafka = Kafka::shared();
    let (served, clicks) = (kafka.new_topic("served", 4), kafka.new_topic("clicks", 3));
    let config = format!(
        "kafka.brokers = \"{}\"\nkafka.served_topic = \"{served}\"\nkafka.clicks_topic = \"{clicks}\"",
        kafka.brokers(),
    );
    let mut daemon = Daemon::run(&config);
    assert_eq!(daemon.wait_exit(wait::PATIENCE), Some(1));
    let log = daemon.log();
    for part in [
        format!("`{served}` has 4 partitions"),
        format!("`{clicks}` has 3"),
        "the same number".to_owned(),
    ] {
        assert!(log.contains(&part), "{part:?} is not in: {log}");
    }
}

#[test]
fn reports_a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let config = format!("kafka.brokers = \"127.0.0.1:1\"\nhttp.listen = \"{address}\"");
    let mut daemon = Daemon::run(&config);
    assert_eq!(daemon.wait_exit(Duration::from_secs(5)), Some(1));
    let log = daemon.log();
    assert!(
        log.contains(&format!("{address} is in use")) && log.contains("choose another port"),
        "{log}"
    );
}

#[test]
fn reports_refused_users_with_the_fix() {
    let kafka = Kafka::start_with(Options {
        secured: true,
        ..Options::default()
    });
    let traffic = Traffic::new(&kafka, 2);
    let login = |(user, password): (&str, &str)| {
        let properties = format!(
            r#"
            kafka.properties."security.protocol" = "SASL_PLAINTEXT"
            kafka.properties."sasl.mechanism" = "PLAIN"
            kafka.properties."sasl.username" = "{user}"
            kafka.properties."sasl.password" = "{password}"
            "#
        );
        Daemon::run(&traffic.config(&kafka.sasl_brokers(), &kafka.unique("group"), &properties))
    };
    let mut welcome = login(READER);
    let refused = [
        (
            login(STRANGER),
            ["no permission to read a topic", "grant the user READ"],
        ),
        (
            login((READER.0, "not-the-password")),
            [
                "refuse the credentials",
                "check kafka.properties.\"sasl.mechanism\", \"sasl.username\" and \"sasl.password\"",
            ],
        ),
    ];
    for (mut daemon, said) in refused {
        let says = |why: &String| said.iter().all(|part| why.contains(part));
        daemon.wait_until(said[0], |daemon| waits_for(daemon).filter(says));
        // The daemon keeps trying, and its message does not become less helpful.
        let other = wait::try_until(Duration::from_secs(5), || {
            waits_for(&daemon).filter(|why| !says(why))
        });
        assert_eq!(other, None);
        let log = daemon.log();
        assert!(log.contains(said[0]), "{log}");
        assert!(!log.contains("not-the-password"), "a secret in the log");
        assert!(warnings(&daemon).len() <= 2, "one line a minute: {log}");
    }
    welcome.wait_until_ready();
    assert_eq!(
        scrape(&welcome).and_then(|scrape| scrape.value("abgauge_ready", &[])),
        Some(1.0)
    );
}
