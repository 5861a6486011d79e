//! Unreadable records reach the dead-letter topic, even if its broker restarts meanwhile.

use std::collections::BTreeSet;

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::traffic::{Traffic, scrape};

const N: u32 = 40;

#[test]
fn unreadable_records_become_dead_letters_at_least_once_despite_an_outage() {
    let mut kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    let letters = kafka.new_topic("letters", 1);
    let more = format!("kafka.dead_letter_topic = \"{letters}\"\nlimits.max_invalid_share = 0.2");
    let mut daemon = Daemon::run(&traffic.config(&kafka.brokers(), &kafka.unique("group"), &more));
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..100);
    for n in 0..N {
        traffic.broken_list(n.cast_signed() % 2, n);
    }
    traffic.flush();
    wait_for_unreadable(&mut daemon, N);
    // Some letters have been acknowledged by now, others may be in flight.
    kafka.stop();
    kafka.restart();
    daemon.wait_until("every letter to be acknowledged", |daemon| {
        let delivered = scrape(daemon)?.value("abgauge_dead_letters_total", &[("result", "delivered")])?;
        (delivered >= f64::from(N)).then_some(())
    });
    let letters = kafka.read_all(&letters);
    let header = |record: &[(String, String)], name: &str| {
        let found = record.iter().find(|(key, _)| key == name);
        found
            .unwrap_or_else(|| panic!("no header {name}: {record:?}"))
            .1
            .clone()
    };
    let places: BTreeSet<(String, String)> = letters
        .iter()
        .map(|letter| {
            assert_eq!(header(&letter.headers, "abgauge.topic"), traffic.served);
            assert_eq!(header(&letter.headers, "abgauge.reason"), "not_json");
            let payload = String::from_utf8_lossy(letter.payload.as_deref().unwrap_or_default());
            assert!(payload.starts_with("{broken"), "{payload}");
            let place = |name: &str| header(&letter.headers, name);
            (place("abgauge.partition"), place("abgauge.offset"))
        })
        .collect();
    assert_eq!(
        places.len(),
        N as usize,
        "one of each record at least: {places:?}"
    );

    let reported = scrape(&daemon).expect("it listens");
    let raised =
        |topic: &str| reported.value("abgauge_share_exceeded", &[("topic", topic), ("of", "invalid")]);
    assert_eq!(raised(&traffic.served), Some(1.0), "40 of 140");
    assert_eq!(raised(&traffic.clicks), Some(0.0));
}

fn wait_for_unreadable(daemon: &mut Daemon, n: u32) {
    daemon.wait_until(&format!("{n} records to be refused"), |daemon| {
        let counted = scrape(daemon)?.sum("abgauge_invalid_records_total", &[("reason", "not_json")]);
        (counted == f64::from(n)).then_some(())
    });
}
