//! Times of an event, a transaction, a silence or a start, none of which may blank what is shown.

use super::*;
use crate::telemetry::{Severity, Warning};

const TWO_DAYS_MS: i64 = 2 * 24 * 60 * 60 * 1000;

/// Live lists in the window of a minute, and in `total`.
fn lists(stage: &Stage) -> [i128; 2] {
    let snapshot = stage.snapshot();
    let of = |window: usize| {
        snapshot
            .arms
            .iter()
            .map(|arm| arm.sums(View::Live, window)[LISTS])
            .sum()
    };
    [of(0), of(1)]
}

fn n_records(stage: &Stage, topic: &str, outcome: &str) -> u64 {
    stage.telemetry.status().records[topic][outcome]
}

#[test]
fn one_event_two_days_ahead_empties_no_window() {
    let mut stage = Stage::new();
    stage.own(&[0, 1], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(1, 0, "r-1", T0);
    stage.pass(500);
    stage.list(0, 1, "ahead", T0 + TWO_DAYS_MS);
    stage.pass(1000);
    assert_eq!(lists(&stage), [2, 3], "in total it counts at once");
    let live_end_ms = stage.snapshot().live_end_ms.expect("events were read");
    assert_eq!(live_end_ms, stage.now_ms + 1000, "as far as max_future allows");
    // Nothing is lost yet, so numbers are right.
    let reported = stage.telemetry.warnings();
    assert_eq!(reported[0].severity, Severity::Warning, "{reported:?}");
    assert!(reported[0].message.contains("0 later events"), "{reported:?}");
    // Later records in its partition are late, as the rules demand; the other partition continues.
    stage.list(0, 2, "r-2", stage.now_ms);
    stage.list(1, 1, "r-3", stage.now_ms);
    stage.pass(1000);
    assert_eq!(lists(&stage), [3, 4]);
    assert_eq!(n_records(&stage, "served", "late"), 1);
    let since_ms = reported[0].since_ms;
    assert!(since_ms.is_some());
    let reported = stage.telemetry.warnings();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(
        (reported[0].severity, reported[0].runbook, reported[0].since_ms),
        (Severity::Critical, Some("AbgaugeEventAhead"), since_ms),
        "it is the same problem"
    );
    let expected = "topic `served`, partition 0: the event at offset 1 lies 47 hours ahead of the clock; 1 later event in \
                    that partition has been counted as late because of it.";
    assert!(
        reported[0].message.starts_with(expected),
        "{}",
        reported[0].message
    );
    assert!(
        reported[0]
            .message
            .contains(r#"ingest.skip_records = ["served/0/1"]"#)
    );
}

/// Only the newest event was named, so each one needed its own restart.
#[test]
fn one_setting_skips_all_events_ahead() {
    let play = |settings: &[(&str, &str)]| {
        let mut stage = Stage::with(settings);
        stage.own(&[0, 1], [0, 0]);
        stage.list(0, 119, "before", T0);
        for n in 0..6 {
            stage.list(0, 120 + n, &format!("ahead-{n}"), T0 + TWO_DAYS_MS + 1000 * n);
        }
        stage.list(0, 126, "between", T0);
        // Late for the others, and it would be the next to make others late.
        stage.list(0, 127, "a day ahead", T0 + TWO_DAYS_MS / 2);
        stage.list(1, 7, "ahead too", T0 + TWO_DAYS_MS / 4);
        stage.pass(1000);
        (stage.telemetry.warnings(), lists(&stage))
    };
    let (reported, _) = play(&[("INGEST__SKIP_RECORDS", "served/0/3,served/0/119")]);
    let setting = r#"ingest.skip_records = ["served/0/3", "served/0/119-125", "served/0/127", "served/1/7"]"#;
    let parts = [
        "7 events at offsets 120-125, 127 lie up to 2 days ahead",
        setting,
        "ignores 8 records",
    ];
    for part in parts {
        assert!(reported[0].message.contains(part), "{}", reported[0].message);
    }
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(!reported[1].message.contains("skip_records"));
    let skipped = "records were skipped because of ingest.skip_records: numbers are not exact";
    assert!(reported[2].message.starts_with(skipped), "{reported:?}");
    let all = play(&[("INGEST__SKIP_RECORDS", "served/0/120-125,served/0/127,served/1/7")]);
    assert_eq!(all, (reported[2..].to_vec(), [2, 2]));
}

/// The warning was cleared as soon as the clock had come near, with a day of numbers wrong.
#[test]
fn warns_of_losses_to_an_event_ahead_while_a_window_lacks_them() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(0, 1, "ahead", T0 + 30_000);
    stage.pass(1000);
    for n in 2..5 {
        stage.list(0, n, &format!("r-{n}"), stage.now_ms);
    }
    stage.pass(30_000);
    let gauge = |stage: &Stage| {
        let mut text = Vec::new();
        stage.telemetry.render(&mut text).unwrap();
        String::from_utf8_lossy(&text).contains("abgauge_event_ahead_seconds{")
    };
    assert!(!gauge(&stage), "it lies ahead no more");
    stage.list(0, 5, "in time", stage.now_ms);
    stage.pass(60_000);
    let reported = stage.telemetry.warnings();
    let expected = "the event at offset 1 lay 29 seconds ahead of the clock when read; no more events are late because of it, \
                    but 3 later events in that partition have been counted as late because of it";
    assert!(reported[0].message.contains(expected), "{reported:?}");
    assert!(reported[0].message.contains(r#"["served/0/1"]"#), "{reported:?}");
    stage.pass(30_000);
    assert_eq!(
        stage.telemetry.warnings(),
        [],
        "the window of a minute has left it behind"
    );
}

/// Its live end lay two days ahead, and an idle partition took it for the current time.
#[test]
fn an_event_far_ahead_settles_no_idle_partition() {
    let mut stage = Stage::new();
    stage.own(&[0, 1], [2, 0]);
    stage.list(1, 0, "r-0", T0);
    stage.list(1, 1, "r-1", T0);
    stage.list(0, 0, "r-2", T0);
    stage.list(0, 1, "ahead", T0 + TWO_DAYS_MS);
    stage.pass(30_000);
    for (partition, offset) in [(1, 2), (0, 2)] {
        stage.list(partition, offset, &format!("late-{partition}"), stage.now_ms);
        stage.round();
    }
    assert_eq!(n_records(&stage, "served", "after_settled"), 0);
    assert_eq!(n_records(&stage, "served", "late"), 1, "in its own partition");
    let settled_end_ms = stage.snapshot().settled_end_ms.expect("something has settled");
    assert!(settled_end_ms < stage.now_ms, "settled as far as time has passed");
}

#[test]
fn skipping_the_record_repairs_the_numbers() {
    let play = |settings: &[(&str, &str)], with_it: bool| {
        let mut stage = Stage::with(settings);
        stage.own(&[0], [0, 0]);
        stage.list(0, 0, "r-0", T0);
        if with_it {
            stage.list(0, 1, "ahead", T0 + TWO_DAYS_MS);
        }
        stage.list(0, 2, "r-2", T0 + 100);
        stage.pass(1000);
        let is_ahead = |warning: &Warning| warning.runbook == Some("AbgaugeEventAhead");
        let is_ahead = stage.telemetry.warnings().iter().any(is_ahead);
        (lists(&stage), is_ahead, stage.snapshot().live_end_ms)
    };
    let left_out = play(&[("INGEST__SKIP_RECORDS", "served/0/1")], true);
    assert_eq!(left_out, play(&[], false));
    assert_eq!((left_out.0, left_out.1), ([2, 2], false));
}

#[test]
fn future_lists_count_once_their_time_has_come() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(0, 1, "r-1", T0 + 3000);
    stage.round();
    assert_eq!(lists(&stage), [1, 2]);
    stage.pass(2000);
    assert_eq!(lists(&stage), [2, 2]);
    assert_eq!(
        stage.telemetry.warnings(),
        [],
        "within the lateness nothing is late for it"
    );
}

/// Records in between had moved the live end, and lists written to the quiet partition meanwhile were refused.
#[test]
fn an_idle_move_uses_the_live_end_at_the_time_of_the_question() {
    let mut stage = Stage::new();
    stage.own(&[0, 1], [1, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(1, 0, "r-1", T0);
    // Partition 1 has more to read, so the live end does not move.
    stage.ends.insert((Side::Served, 1), 2);
    stage.pass(60_000);
    stage.now_ms += 500;
    stage.hand.advance_to(stage.now_ms);
    stage.uptime += Duration::from_millis(500);
    stage.round();
    // Asked, and not yet answered: it is read, and a burst comes that partition 0 has its part of.
    stage.list(1, 1, "r-2", stage.now_ms);
    stage.round();
    stage.answer_ends();
    stage.list(0, 1, "r-3", T0 + 5000);
    stage.round();
    assert_eq!(n_records(&stage, "served", "after_settled"), 0);
    assert_eq!(n_records(&stage, "served", "accepted"), 4);
}

/// Twelve minutes after its last event the live window of a minute was full of it.
#[test]
fn a_start_on_a_dead_stream_shows_empty_live_windows() {
    let mut stage = Stage::new();
    stage.now_ms = T0 + 12 * 60_000;
    stage.hand.advance_to(stage.now_ms);
    stage.own(&[0], [1, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.pass(1000);
    assert_eq!(lists(&stage), [0, 1]);
    let live_end_ms = stage.snapshot().live_end_ms.expect("an event was read");
    assert!((stage.now_ms - 1000..=stage.now_ms).contains(&live_end_ms));
}

#[test]
fn a_freshly_written_stream_of_old_events_keeps_its_own_time() {
    let mut stage = Stage::new();
    stage.now_ms = T0 + 12 * 60_000;
    stage.hand.advance_to(stage.now_ms);
    stage.own(&[0], [1, 0]);
    let json = format!(r#"{{"request_id":"r","ts":{T0},"experiments":{{"e":"a"}},"items":["x"]}}"#);
    stage.record(SERVED, 0, stage.now_ms, &json);
    stage.pass(1000);
    assert_eq!(lists(&stage), [1, 1]);
}

/// A replay of yesterday's events, stamped with their own times, had begun when the daemon was ready: all its live windows
/// stayed empty.
#[test]
fn a_running_stream_of_old_timestamps_keeps_its_own_time() {
    let mut stage = Stage::new();
    stage.now_ms = T0 + 25 * 60 * 60_000;
    stage.hand.advance_to(stage.now_ms);
    stage.own(&[0, 1], [1, 0]);
    for partition in [0, 1] {
        stage.list(partition, 0, &format!("r-{partition}"), T0);
    }
    stage.list(1, 1, "since the start", T0 + 300);
    stage.pass(1000);
    assert_eq!(lists(&stage), [3, 3]);
    stage.list(1, 2, "later", T0 + 300_000);
    stage.pass(1000);
    assert_eq!(lists(&stage), [1, 4]);
}

#[test]
fn an_open_transaction_is_reported_and_stops_time_for_its_partition() {
    let mut stage = Stage::new();
    stage.own(&[0], [1, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.round();
    // 202 records of an open transaction.
    let end = |end, stable| LogEnd {
        end,
        stable,
        position: None,
    };
    let open = [(SERVED, end(203, Some(1))), (CLICKED, end(0, None))];
    let pass = |stage: &mut Stage, seconds: u32, ends: &[(TopicPartition, LogEnd)]| {
        for _ in 0..2 * seconds {
            stage.now_ms += 500;
            stage.hand.advance_to(stage.now_ms);
            stage.uptime += Duration::from_millis(500);
            stage.round();
            stage.answer_ends_with(Ok(ends.iter().copied().collect()));
        }
    };
    pass(&mut stage, 4, &open);
    assert_eq!(
        stage.telemetry.waiting_for(),
        Vec::<String>::new(),
        "one that ends soon is nothing"
    );
    pass(&mut stage, 60, &open);
    let waiting = stage.telemetry.waiting_for();
    let expected = "partition 0 of topic `served` is blocked: a transaction open since 2025-11-20T00:00:00Z or longer hides 202 records; its producer must commit or abort it";
    assert!(
        waiting.len() == 1 && waiting[0].starts_with(expected),
        "{waiting:?}"
    );
    let mut text = Vec::new();
    stage.telemetry.render(&mut text).unwrap();
    let gauge =
        "abgauge_open_transaction_since_timestamp_seconds{partition=\"0\",topic=\"served\"} 1763596800.5\n";
    assert!(String::from_utf8_lossy(&text).contains(gauge));
    // They are committed.
    for offset in 1..203 {
        stage.list(0, offset, &format!("r-{offset}"), T0 + 10_000);
    }
    pass(
        &mut stage,
        1,
        &[(SERVED, end(203, None)), (CLICKED, end(0, None))],
    );
    assert_eq!(n_records(&stage, "served", "accepted"), 203);
    assert_eq!(stage.telemetry.waiting_for(), Vec::<String>::new());
}

/// `CreateTime`, up to an hour ahead.
fn unguarded() -> Vec<(Side, Timestamps)> {
    let kind = Some("CreateTime".to_owned());
    let after_max_ms = Some(3_600_000);
    vec![
        (Side::Served, Timestamps { kind, after_max_ms }),
        (Side::Clicks, Timestamps::default()),
    ]
}

#[test]
fn warns_of_an_unguarded_topic_once_a_start_has_its_numbers() {
    let mut stage = Stage::new();
    stage.timestamps = unguarded();
    stage.own(&[0], [0, 0]);
    stage.pass(2000);
    let reported = stage.telemetry.warnings();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(
        (reported[0].severity, reported[0].runbook),
        (Severity::Warning, Some("AbgaugeEventAhead"))
    );
    for words in [
        "topic `served`",
        "up to 1h ahead",
        "--bootstrap-server localhost:9092",
    ] {
        assert!(reported[0].message.contains(words), "{}", reported[0].message);
    }
}

/// Topics were asked only once, so the warning lasted until a restart.
#[test]
fn the_warning_clears_once_a_topic_is_guarded() {
    let mut stage = Stage::new();
    stage.timestamps = unguarded();
    stage.own(&[0], [0, 0]);
    stage.pass(2000);
    assert_eq!(stage.telemetry.warnings().len(), 1);
    // An absent answer does not clear the warning.
    stage.timestamps = vec![(Side::Served, Timestamps::default())];
    stage.pass(200_000);
    assert_eq!(stage.telemetry.warnings().len(), 1);
    stage.timestamps[0].1.kind = Some("LogAppendTime".to_owned());
    stage.pass(200_000);
    assert_eq!(stage.telemetry.warnings(), []);
}

#[test]
fn a_slow_start_does_not_suppress_the_warning() {
    let mut stage = Stage::new();
    stage.timestamps = unguarded();
    stage.own(&[0], [1000, 0]);
    stage.pass(30_000);
    assert_eq!(stage.telemetry.warnings(), [], "it may be about to end");
    stage.pass(60_000);
    assert_eq!(stage.telemetry.warnings().len(), 1);
}

/// Rounds with records settled only their own pairs.
#[test]
fn hands_over_a_quiet_pair_while_others_are_busy() {
    let mut stage = Stage::new();
    stage.own(&[0, 1], [0, 0]);
    for n in 0..50 {
        stage.list(0, n, &format!("r-{n}"), T0 + n);
    }
    stage.round();
    let pair = stage.worker.shards.get_mut(0).expect("it is read");
    for side in Side::BOTH {
        pair.tracker.idle(side, Some(T0 + 3_600_000), i64::MAX);
    }
    assert!(pair.engine().has_settled());
    let before = pair.tracker.settled_until_ms();
    stage.worker.round(true, stage.uptime);
    let pair = stage.worker.shards.get_mut(0).expect("it is read");
    assert!(!pair.engine().has_settled());
    assert!(pair.tracker.settled_until_ms() > before);
}
