//! A claim above which no instance claims, until it is deleted as in the runbook.

use std::process::Command;

use abgauge_core::journal::Session;

use super::{STATE, Stage, settled, wait_for_settled};
use crate::support::daemon::Daemon;
use crate::support::{brought, tools};
use crate::traffic::{arm, waits_for};

const N_LISTS: u32 = 60;

/// Waits until `/readyz` is 503 with this key. Until then, it may be 200 only while settled numbers of partition 1 are shown.
#[track_caller]
fn wait_until_it_is_told(daemon: &mut Daemon, key: &str) {
    daemon.wait_until("`/readyz` to name the key", |daemon| {
        let arms = settled(daemon)?;
        let reported = waits_for(daemon);
        let is_shown = arms.iter().any(|(shown, _)| *shown == arm(1));
        assert!(is_shown || reported.is_some(), "ready, and shows only {arms:?}");
        reported?.contains(&format!("`{key}`")).then_some(())
    });
}

/// Runs the command of the runbook with these words in the place of its placeholders.
fn run_as_the_runbook_says(words: &[(&str, &str)]) {
    let runbooks = std::fs::read_to_string(tools::repository("docs/runbooks.md")).expect("the runbooks");
    let lines: Vec<&str> = runbooks
        .lines()
        .filter(|line| line.contains("| kcat -P"))
        .collect();
    let [line] = lines[..] else {
        panic!("one command: {lines:?}");
    };
    let mut command = line.to_owned();
    for (placeholder, word) in words {
        assert!(command.contains(placeholder), "{placeholder}: {command}");
        command = command.replace(placeholder, word);
    }
    let bin = brought::cached("bin/kcat");
    let bin = bin.parent().expect("it lies in a directory").display();
    let path = format!("{bin}:{}", std::env::var("PATH").expect("a PATH"));
    let ran = Command::new("bash")
        .args(["-c", &command])
        .env("PATH", path)
        .output();
    let ran = ran.expect("bash starts");
    assert!(
        ran.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Settled numbers vanished for good while `/readyz` was 200, and a restart waited without a reason.
#[test]
fn reports_a_claim_of_the_highest_epoch_until_it_is_deleted() {
    check_claim_of(u64::MAX);
}

/// The owner claimed the highest epoch itself, and after a restart its own claim and seals were in the way.
#[test]
fn reports_a_claim_of_the_second_highest_epoch_until_it_is_deleted() {
    check_claim_of(u64::MAX - 1);
}

#[test]
fn reports_a_claim_of_the_lowest_epoch_of_other_programs_until_it_is_deleted() {
    check_claim_of(Session::UNSURPASSABLE_EPOCH);
}

#[track_caller]
fn check_claim_of(epoch: u64) {
    let stage = Stage::shared(&STATE);
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..N_LISTS);
    wait_for_settled(&mut daemon, N_LISTS.into());
    let before = settled(&daemon);
    let key = stage.claim_of(epoch);
    stage.junk(1, &key);
    wait_until_it_is_told(&mut daemon, &key);
    daemon.kill();
    daemon.start_again();
    wait_until_it_is_told(&mut daemon, &key);
    let verified = stage.state(&["verify"]);
    assert_eq!(verified.code, Some(1), "{}", verified.stdout);
    for part in [
        &*format!("`{key}`"),
        "delete that key with a record without a value",
    ] {
        assert!(verified.stdout.contains(part), "{part}: {}", verified.stdout);
    }

    run_as_the_runbook_says(&[
        ("KEY", &key),
        ("BROKERS", &stage.kafka.brokers()),
        ("STATE-TOPIC", &stage.state),
        ("PARTITION", "1"),
    ]);
    daemon.wait_until_ready();
    stage.assert_no_instance_claims_above(&key);
    daemon.kill();
    daemon.start_again();
    daemon.wait_until("the earlier totals", |daemon| {
        (settled(daemon) == before).then_some(())
    });
    assert_eq!(stage.state(&["verify"]).code, Some(0));

    // The other way: the claim is deleted with all stored state of the pair, which is counted again.
    stage.junk(1, &key);
    wait_until_it_is_told(&mut daemon, &key);
    daemon.kill();
    let ran = stage.state(&["forget", "--partition", "1", "--yes", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    daemon.start_again();
    daemon.wait_until("the earlier totals", |daemon| {
        (settled(daemon) == before).then_some(())
    });
    daemon.wait_until_ready();
    stage.assert_no_instance_claims_above(&key);
}
