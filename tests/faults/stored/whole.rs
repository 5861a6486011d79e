//! Global view: every instance shows all partitions, whichever instance owns them.

use super::{Stage, settled};
use crate::support::daemon::Daemon;
use crate::traffic::scrape;

/// Time longer than a session of [`Stage`], seconds.
const BEHIND: f64 = 6.0;

/// Returns the settled lists of all partitions; `None` while they are withheld.
fn of_all(daemon: &Daemon) -> Option<f64> {
    let scrape = scrape(daemon)?;
    let labels = [("window", "total"), ("view", "settled"), ("scope", "global")];
    let is_shown = scrape.select("abgauge_lists", &labels).next().is_some();
    is_shown.then(|| scrape.sum("abgauge_lists", &labels))
}

fn partitions_owned(daemon: &Daemon) -> Option<f64> {
    scrape(daemon)?.value("abgauge_partitions_owned", &[])
}

#[track_caller]
fn wait_for_all(daemon: &mut Daemon, n_lists: f64) {
    daemon.wait_until(&format!("{n_lists} settled lists of all"), |daemon| {
        (of_all(daemon)? == n_lists).then_some(())
    });
}

/// Both instances show the sum of their lists, and each shows a part as its own.
#[test]
fn each_instance_shows_all_partitions_even_after_one_is_killed() {
    let stage = Stage::new();
    let [mut first, mut second] = [stage.daemon(), stage.daemon()];
    for daemon in [&mut first, &mut second] {
        daemon.wait_until("a partition each", |daemon| {
            (partitions_owned(daemon)? == 1.0).then_some(())
        });
        daemon.wait_until_ready();
    }
    stage.send(0..400);
    for daemon in [&mut first, &mut second] {
        wait_for_all(daemon, 400.0);
    }
    let own = [&first, &second].map(|daemon| {
        let settled = settled(daemon).expect("it answers");
        settled.iter().map(|(_, n)| n).sum::<f64>()
    });
    assert_eq!(own.iter().sum::<f64>(), 400.0);
    assert!(own.iter().all(|n| *n > 0.0), "{own:?}");

    second.kill();
    first.wait_until("both partitions", |daemon| {
        let n = of_all(daemon);
        assert!(n.is_none_or(|n| n == 400.0), "a dip to {n:?}");
        (partitions_owned(daemon)? == 2.0).then_some(())
    });
    stage.send(400..500);
    wait_for_all(&mut first, 500.0);
}

#[test]
fn all_partitions_are_withheld_while_no_broker_answers() {
    let mut stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..400);
    wait_for_all(&mut daemon, 400.0);
    stage.broker().stop();
    let behind =
        |scrape: &crate::support::exposition::Exposition| scrape.value("abgauge_global_behind_seconds", &[]);
    daemon.wait_until("all to be withheld", |daemon| {
        let scrape = scrape(daemon)?;
        let global = [("scope", "global")];
        let is_shown = scrape.select("abgauge_lists", &global).next().is_some();
        let behind = behind(&scrape).expect("it was read once");
        // A scrape reads the first of these before the second.
        assert!(!is_shown || behind < BEHIND + 1.0, "{behind} s old");
        (!is_shown).then_some(())
    });
    let scrape = scrape(&daemon).expect("it answers");
    assert!(behind(&scrape) > Some(BEHIND));
    let of_all = [("scope", "global")];
    assert_eq!(
        scrape
            .select("abgauge_frontier_timestamp_seconds", &of_all)
            .count(),
        0
    );
    let asked = daemon.get("/api/v1/experiments?scope=global");
    let answer: serde_json::Value = serde_json::from_str(&asked.body).expect("JSON");
    assert_eq!(answer["experiments"], serde_json::json!({}));
    let why = answer["global"]["withheld"].as_str().expect("it says why");
    assert!(why.starts_with("the state was last read to its end"), "{why}");
    stage.broker().restart();
    wait_for_all(&mut daemon, 400.0);
}
