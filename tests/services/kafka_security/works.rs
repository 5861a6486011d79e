//! Every way in carries records.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::kafka_security::{Properties, config, kafka, mutual, sasl};
use crate::support::daemon::Daemon;
use crate::support::kafka::{Kafka, READER};

/// Lists of an arm of the test's own reach the gauges by this way, and `check --connect` finds nothing in the way.
#[track_caller]
fn check_carries(kafka: &Kafka, brokers: &str, arm: &str, properties: &Properties) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let producer = kafka.producer();
    for n in 0..3 {
        let id = format!("{arm}-{n}");
        let list = json!({
            "request_id": id, "ts": since.as_millis() as u64, "experiments": {"way": arm}, "items": ["i1"],
        });
        let key = Some(id.as_bytes());
        producer.produce("served", None, key, Some(list.to_string().as_bytes()), None);
    }
    producer.flush();
    let config = config(brokers, &kafka.unique("group"), properties);
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    let of_arm = [("arm", arm), ("window", "total"), ("view", "live")];
    daemon.wait_until("the lists", |daemon| {
        (daemon.metrics().value("abgauge_lists", &of_arm) == Some(3.0)).then_some(())
    });
    let findings = crate::kafka_security::refused::checked(&config);
    assert_eq!(findings.code, Some(0), "{}", findings.stdout);
    assert!(
        findings.stdout.contains("the brokers answer"),
        "{}",
        findings.stdout
    );
}

#[test]
fn plain_and_scram_work_over_tls() {
    let kafka = kafka();
    let brokers = &kafka.encrypted().sasl;
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        check_carries(&kafka, brokers, mechanism, &sasl(&kafka, mechanism, READER));
    }
}

#[test]
fn mutual_tls_works() {
    let kafka = kafka();
    check_carries(&kafka, &kafka.encrypted().mutual, "mutual", &mutual(&kafka));
}
