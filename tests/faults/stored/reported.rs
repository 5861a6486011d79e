//! Reports of a daemon on its stored state: gauges, and the API.

use std::collections::BTreeSet;
use std::sync::Arc;

use abgauge_core::journal::{RecordKey, Session};
use rdkafka::producer::Producer as _;
use serde_json::{Value, json};

use super::{STATE, Stage, wait_for_settled};
use crate::looks::N_PARTITIONS;
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::gate::{Gate, Kept, PRODUCE};
use crate::support::tools;
use crate::support::wait::{LONG, PATIENCE};
use crate::traffic::{open_transaction, proxied, scrape, waits_for};

/// Returns a gauge of stored state for each partition; `None` if a partition has no series.
fn of_each(scrape: &Exposition, name: &str) -> Option<Vec<f64>> {
    let of = |partition: i32| {
        let labels = [("partition", &*partition.to_string())];
        scrape.value(&format!("abgauge_stored_{name}"), &labels)
    };
    (0..N_PARTITIONS.cast_signed()).map(of).collect()
}

#[track_caller]
fn assert_each(scrape: &Exposition, name: &str, is_right: impl Fn(f64) -> bool) {
    let values = of_each(scrape, name);
    let are_right = values
        .as_ref()
        .is_some_and(|values| values.iter().copied().all(is_right));
    assert!(are_right, "{name}: {values:?}");
}

/// Waits until each partition has had more current states than this.
#[track_caller]
fn wait_for_states(daemon: &mut Daemon, more_than: &[f64]) -> Exposition {
    daemon.wait_until("states in force", |daemon| {
        let scrape = scrape(daemon)?;
        let states = of_each(&scrape, "states_total")?;
        let are_more = states.iter().zip(more_than).all(|(now, before)| now > before);
        are_more.then_some(scrape)
    })
}

/// Returns the key of a claim far above all claims that a topic at rest has.
fn high_claim(stage: &Stage) -> String {
    let keys = stage
        .kafka
        .read_all(&stage.state)
        .into_iter()
        .filter_map(|record| RecordKey::parse(&record.key?));
    let claims = keys.filter_map(|(namespace, key)| match key {
        RecordKey::Claim(session) => Some((namespace, session.epoch)),
        _ => None,
    });
    let highest = claims.max_by_key(|(_, epoch)| *epoch);
    let (namespace, epoch) = highest.expect("somebody has claimed");
    let session = Session {
        epoch: epoch + 100,
        unique: 7,
    };
    RecordKey::Claim(session).text(namespace)
}

/// Returns the names of stored state at the beginning of a text's lines.
fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("abgauge_stored_"));
    let name = |line: &str| line.split(['{', '\t']).next().map(str::to_owned);
    lines.filter_map(name).collect()
}

#[test]
fn stored_state_gauges_follow_writes_and_report_a_restore() {
    let stage = Stage::shared(&STATE);
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..200);
    wait_for_settled(&mut daemon, 200.0);
    let first = wait_for_states(&mut daemon, &[0.0, 0.0]);
    assert_each(&first, "age_seconds", |age| age < 60.0);
    assert_each(&first, "superseded_total", |n| n == 0.0);
    assert_each(&first, "bytes_written_total", |bytes| bytes > 0.0);
    assert_each(&first, "restoring", |is| is == 0.0);
    assert_each(&first, "caught_up", |is| is == 1.0);
    assert_each(&first, "exact", |is| is == 1.0);
    assert_eq!(of_each(&first, "restore_live_bytes"), None, "nothing was stored");

    stage.send(200..300);
    wait_for_settled(&mut daemon, 300.0);
    let states = of_each(&first, "states_total").expect("they are there");
    let second = wait_for_states(&mut daemon, &states);
    let written = |scrape| of_each(scrape, "bytes_written_total").expect("it is there");
    for (now, before) in written(&second).iter().zip(written(&first)) {
        assert!(*now > before, "{now} after {before}");
    }

    daemon.kill();
    daemon.start_again();
    daemon.wait_until_ready();
    let third = wait_for_states(&mut daemon, &[0.0, 0.0]);
    assert_each(&third, "restore_live_bytes", |bytes| bytes > 0.0);
    assert_each(&third, "restore_seconds", |seconds| seconds < 60.0);
    let restored = ["restore_read_bytes", "restore_live_bytes", "bytes_read_total"];
    let [read, live, all] = restored.map(|name| of_each(&third, name).expect("it is there"));
    for ((read, live), all) in read.into_iter().zip(live).zip(all) {
        assert!(live <= read && read <= all, "{live} of {read} of {all}");
    }
    let listed = std::fs::read_to_string(tools::repository("tests/data/exported-names.tsv"));
    assert_eq!(
        names(&daemon.get("/metrics").body),
        names(&listed.expect("it can be read"))
    );

    let api: Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
    let reported = api["stream"]["stored"].as_array().expect("a list");
    assert_eq!(reported.len(), N_PARTITIONS as usize, "{reported:?}");
    for of_pair in reported {
        assert_eq!(of_pair["standing"], "holding", "{of_pair}");
        assert_eq!(of_pair["restore"]["under_way"], false, "{of_pair}");
    }
}

#[test]
fn a_foreign_claim_is_counted_and_settled_numbers_are_still_stored() {
    let stage = Stage::shared(&STATE);
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(PATIENCE), Some(0), "{}", daemon.log());
    let key = high_claim(&stage);
    daemon.start_again();
    daemon.wait_until_ready();
    stage.meddle(1, key.as_bytes(), Some(b"by hand"));
    daemon.wait_until("the claim to be counted", |daemon| {
        let superseded = of_each(&scrape(daemon)?, "superseded_total")?;
        (superseded == [0.0, 1.0]).then_some(())
    });
    stage.send(100..150);
    wait_for_settled(&mut daemon, 150.0);
}

/// A blob is really gone, and the gate holds the records that would replace it.
#[test]
fn a_lost_blob_is_reported_until_it_is_written_again() {
    let stage = Stage::on(Arc::new(proxied()), &STATE, "");
    let brokers = stage.kafka.brokers();
    let mut daemon = Daemon::run(&stage.text.replace(&brokers, &stage.kafka.proxied_brokers()));
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    daemon.wait_until("all to be stored", |_| {
        (stage.state(&["verify"]).code == Some(0)).then_some(())
    });
    assert_each(&daemon.metrics(), "whole", |is| is == 1.0);
    assert_each(&daemon.metrics(), "lost_total", |n| n == 0.0);

    let gate = Gate::new(Kept::Request, |request| request.api == PRODUCE);
    stage.kafka.set_gate(&gate);
    stage.bury(1, |key| matches!(key, RecordKey::Blob(_)));
    let lost = daemon.wait_until("the loss to be reported", |daemon| {
        let reported = waits_for(daemon)?;
        reported.contains("partition 1: ").then_some(())?;
        assert!(reported.contains("lost"), "{reported}");
        let scrape = scrape(daemon)?;
        (of_each(&scrape, "whole")? == [1.0, 0.0]).then_some(scrape)
    });
    assert_eq!(of_each(&lost, "lost_total"), Some(vec![0.0, 1.0]));
    assert_eq!(lost.value("abgauge_ready", &[]), Some(0.0));
    assert_eq!(stage.state(&["verify"]).code, Some(1));

    gate.release();
    daemon.wait_until_ready();
    let mended = daemon.metrics();
    assert_eq!(of_each(&mended, "whole"), Some(vec![1.0, 1.0]));
    assert_eq!(
        of_each(&mended, "lost_total"),
        Some(vec![0.0, 1.0]),
        "counted once"
    );
    let ran = stage.state(&["verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    daemon.kill();
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
}

/// An open transaction blocks a partition, so only the bytes that its owner kept can be stored.
#[test]
fn a_lost_blob_is_written_again_while_logs_are_reread() {
    let stage = Stage::shared(&STATE);
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    daemon.kill();
    let transaction = open_transaction(&stage.kafka, &stage.traffic.served, &json!("never committed"));
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
    stage.bury(0, |key| matches!(key, RecordKey::Blob(_)));
    daemon.wait_until("the loss to be repaired", |daemon| {
        let scrape = scrape(daemon)?;
        let is_counted = of_each(&scrape, "lost_total")? == [1.0, 0.0];
        let is_whole = of_each(&scrape, "whole")? == [1.0, 1.0];
        (is_counted && is_whole).then_some(())
    });
    let ran = stage.state(&["verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(waits_for(&daemon).is_some(), "the logs are still reread");
    transaction.abort_transaction(PATIENCE).expect("it ends");
    daemon.wait_until_ready();
    wait_for_settled(&mut daemon, 100.0);
}

/// The gate holds the claim on its way to the broker.
#[test]
fn reports_waiting_for_a_claim_until_it_lands() {
    let stage = Stage::on(Arc::new(proxied()), &STATE, "");
    let gate = Gate::new(Kept::Request, |request| request.api == PRODUCE);
    stage.kafka.set_gate(&gate);
    let brokers = stage.kafka.brokers();
    let mut daemon = Daemon::run(&stage.text.replace(&brokers, &stage.kafka.proxied_brokers()));
    gate.wait_until_caught("a claim", LONG);
    // One partition may be a moment ahead of the other.
    daemon.wait_until("what it waits for", |daemon| {
        let reported = waits_for(daemon)?;
        reported
            .contains("claiming the stored state of 2 partitions: 0.0 MB read")
            .then_some(())
    });
    let waiting = daemon.metrics();
    assert_each(&waiting, "restoring", |is| is == 1.0);
    assert_eq!(of_each(&waiting, "restore_read_bytes"), None, "not known yet");

    gate.release();
    daemon.wait_until_ready();
    let restored = daemon.metrics();
    assert_each(&restored, "restoring", |is| is == 0.0);
    assert_each(&restored, "restore_seconds", |seconds| seconds > 0.0);
}
