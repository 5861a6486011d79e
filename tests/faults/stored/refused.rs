//! Stored state that a daemon refuses to resume: each time it reports why and what to do, and leaves the state as it is.

use abgauge_core::journal::{RecordKey, SealId};

use super::{STATE, Stage, settled, wait_for_settled};
use crate::support::daemon::Daemon;
use crate::support::wait::LONG;
use crate::traffic::Traffic;

/// Asserts that the daemon ends on its own, and that its last log lines contain all of these.
#[track_caller]
fn assert_refused(daemon: &mut Daemon, parts: &[&str]) {
    assert_eq!(daemon.wait_exit(LONG), Some(1), "{}", daemon.log());
    let log = daemon.log();
    let last = log.lines().rev().take(3).collect::<Vec<_>>().join("\n");
    for part in parts {
        assert!(last.contains(part), "{part}: {log}");
    }
}

/// The second topic's log has other records, beyond the position of the first one.
#[test]
fn refuses_a_recreated_event_topic_until_all_state_is_forgotten() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    // The daemon must not see the time in which its positions fit into no log.
    daemon.signal(libc::SIGSTOP);
    let Traffic { served, .. } = &stage.traffic;
    stage.kafka.delete_topic(served);
    stage.kafka.create_topic(served, 2, &[]);
    stage.send(1_000..1_200);
    daemon.signal(libc::SIGCONT);
    let anew = format!("topic `{served}` was recreated since: its id is ");
    let forget = "run `abgauge state forget`: all totals are lost";
    assert_refused(&mut daemon, &[&anew, forget]);

    daemon.start_again();
    let of_seal = format!("is of another log: {anew}");
    assert_refused(&mut daemon, &[&of_seal, forget]);
    assert_eq!(stage.pairs().len(), 2, "what is stored stays");

    let ran = stage.state(&["forget", "--yes", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    daemon.start_again();
    wait_for_settled(&mut daemon, 200.0);
}

#[test]
fn refuses_added_partitions_while_running_and_at_startup() {
    let stage = Stage::with("kafka.properties.\"topic.metadata.refresh.interval.ms\" = 1000");
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    let Stage {
        kafka,
        traffic,
        state,
        ..
    } = &stage;
    for topic in [&traffic.served, &traffic.clicks] {
        kafka.add_partitions(topic, 3);
    }
    let now = " now has 3 partitions, but the stored state has 2";
    assert_refused(&mut daemon, &[now, "set state.topic to another name"]);
    daemon.start_again();
    let fewer = format!("the state topic `{state}` has 2 partitions, the topics of events have 3");
    assert_refused(&mut daemon, &[&fewer, "`abgauge check --create-topics`"]);
    kafka.add_partitions(state, 3);
    daemon.start_again();
    let then = "the event topics had 2 partitions then, and have 3 now";
    assert_refused(&mut daemon, &[then, "`abgauge state forget`"]);
    let ran = stage.state(&["forget", "--yes", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
    let missing = "the pair has no stored state, although the group has read the topics before";
    daemon.wait_for_log("why", |log| log.contains(missing));
}

#[test]
fn refuses_a_newer_seal_and_a_missing_blob() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    daemon.kill();
    // Finds the highest seal of partition 0, and a blob of its session. Neither may have been deleted.
    let mut newest = None;
    let mut left = std::collections::BTreeMap::new();
    for record in stage.kafka.read_all(&stage.state) {
        let (namespace, key) = RecordKey::parse(&record.key.expect("all have keys")).expect("all are ours");
        if record.partition == 0 {
            match record.payload {
                Some(_) => _ = left.insert(key, namespace),
                None => _ = left.remove(&key),
            }
            if let (RecordKey::Seal(id), Some(value)) = (key, record.payload) {
                newest = newest.max(Some((id, namespace, value)));
            }
        }
    }
    let (id, namespace, mut value) = newest.expect("it has sealed");
    let newer = RecordKey::Seal(SealId {
        number: id.number + 1,
        ..id
    });
    value[0] = 2;
    let newer = newer.text(namespace);
    stage.meddle(0, newer.as_bytes(), Some(&value));
    daemon.start_again();
    let version = "is of version 2, which this program does not read";
    assert_refused(&mut daemon, &[version, "Run the newer version of abgauge"]);

    stage.meddle(0, newer.as_bytes(), None);
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
    daemon.kill();

    let blobs = left.keys().filter(|key| matches!(key, RecordKey::Blob(_)));
    for blob in blobs {
        stage.meddle(0, blob.text(namespace).as_bytes(), None);
    }
    daemon.start_again();
    let forget =
        "run `abgauge state forget --partition 0`: its totals are lost, the totals of other pairs are kept";
    assert_refused(&mut daemon, &["is absent or damaged", forget]);
    let ran = stage.state(&["forget", "--partition", "0", "--yes", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
}

#[test]
fn refuses_wrong_cleanup_policies_and_prints_the_fix() {
    let stage = Stage::shared(&[("cleanup.policy", "compact,delete")]);
    let state = &stage.state;
    let found = format!("the state topic `{state}` has cleanup.policy=compact,delete");
    let command = format!("--entity-name {state} --add-config cleanup.policy=compact");
    assert_refused(&mut stage.daemon(), &[&found, "kafka-configs.sh", &command]);

    let stage = Stage::shared(&STATE);
    let clicks = &stage.traffic.clicks;
    stage.kafka.set_topic(clicks, &[("cleanup.policy", "compact")]);
    let found = format!("topic `{clicks}` is compacted (cleanup.policy=compact)");
    assert_refused(&mut stage.daemon(), &[&found, "set cleanup.policy=delete on it"]);
}

/// Daemons count only by their own rules, so a pair that moves between them has gaps.
#[test]
fn warns_of_two_sets_of_rules_in_one_group_and_of_missing_own_state() {
    let stage = Stage::new();
    let mut first = stage.daemon();
    first.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut first, 100.0);
    let text = stage
        .text
        .replace("join.attribution = \"2s\"", "join.attribution = \"3s\"");
    let mut second = Daemon::run(&text);
    second.wait_until("to hear of the first", |daemon| {
        let log = daemon.log();
        let parts = [
            "in the same group",
            "(attribution_ms 2000, same_list_ms 2000; here attribution_ms 3000, same_list_ms 3000)",
            "Give all instances of a group the same settings",
            "the pair has no stored state, although other instances have stored state in its partition",
        ];
        parts.iter().all(|part| log.contains(part)).then_some(())
    });
    assert_eq!(
        settled(&first).map(|arms| arms.len()),
        Some(1),
        "it keeps one pair"
    );
}
