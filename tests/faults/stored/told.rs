//! What a daemon tells of its stored state: gauges, and the API.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{STATE, wait_for_settled};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::tools;
use crate::traffic::{SHORT_SESSION, Traffic, scrape};

const N_PARTITIONS: i32 = 2;

/// A gauge of stored state of each partition; none where one of them has no series.
fn of_each(scrape: &Exposition, name: &str) -> Option<Vec<f64>> {
    let of = |partition: i32| {
        let labels = [("partition", &*partition.to_string())];
        scrape.value(&format!("abgauge_stored_{name}"), &labels)
    };
    (0..N_PARTITIONS).map(of).collect()
}

#[track_caller]
fn assert_each(scrape: &Exposition, name: &str, is_right: impl Fn(f64) -> bool) {
    let values = of_each(scrape, name);
    let are_right = values
        .as_ref()
        .is_some_and(|values| values.iter().copied().all(is_right));
    assert!(are_right, "{name}: {values:?}");
}

/// Waits until each partition has more states in force than this.
#[track_caller]
fn wait_for_states(daemon: &mut Daemon, more_than: &[f64]) -> Exposition {
    daemon.wait_until("states in force", |daemon| {
        let scrape = scrape(daemon)?;
        let states = of_each(&scrape, "states_total")?;
        let are_more = states.iter().zip(more_than).all(|(now, before)| now > before);
        are_more.then_some(scrape)
    })
}

/// Names of stored state that a text has at the begin of a line.
fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("abgauge_stored_"));
    let name = |line: &str| line.split(['{', '\t']).next().map(str::to_owned);
    lines.filter_map(name).collect()
}

#[test]
fn gauges_of_stored_state_move_with_what_is_stored_and_tell_of_a_restore() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, N_PARTITIONS);
    let state = kafka.unique("state");
    kafka.create_topic(&state, N_PARTITIONS, &STATE);
    let more = format!(
        "kafka.start = \"earliest\"\n{SHORT_SESSION}\nstate.topic = \"{state}\"\nstate.interval = \"1s\""
    );
    let mut daemon = Daemon::run(&traffic.config(&kafka.brokers(), &kafka.unique("group"), &more));
    daemon.wait_until_ready();
    traffic.send_clicked_lists(0..200);
    traffic.flush();
    wait_for_settled(&mut daemon, 200.0);
    let first = wait_for_states(&mut daemon, &[0.0, 0.0]);
    assert_each(&first, "age_seconds", |age| age < 60.0);
    assert_each(&first, "superseded_total", |n| n == 0.0);
    assert_each(&first, "bytes_written_total", |bytes| bytes > 0.0);
    assert_each(&first, "restoring", |is| is == 0.0);
    assert_each(&first, "caught_up", |is| is == 1.0);
    assert_each(&first, "exact", |is| is == 1.0);
    assert_eq!(of_each(&first, "restore_live_bytes"), None, "nothing was stored");

    traffic.send_clicked_lists(200..300);
    traffic.flush();
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
    let told = api["stream"]["stored"].as_array().expect("a list");
    assert_eq!(told.len(), N_PARTITIONS as usize, "{told:?}");
    for of_pair in told {
        assert_eq!(of_pair["standing"], "holding", "{of_pair}");
        assert_eq!(of_pair["restore"]["under_way"], false, "{of_pair}");
    }
}
