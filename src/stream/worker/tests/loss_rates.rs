//! Warnings that are raised by the share of records that do not count.

use super::*;

fn exported(stage: &Stage) -> String {
    let mut text = Vec::new();
    stage.telemetry.render(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn is_raised(stage: &Stage, topic: &str) -> bool {
    let text = exported(stage);
    let raised = format!("abgauge_share_exceeded{{of=\"invalid\",topic=\"{topic}\"}} 1\n");
    let reported = stage.telemetry.warnings();
    let reported = reported
        .iter()
        .any(|warning| warning.message.contains(&format!("topic `{topic}`")));
    assert_eq!(text.contains(&raised), reported);
    reported
}

#[test]
fn warns_of_too_many_unreadable_records_until_they_have_passed() {
    let mut stage = Stage::with(&[("LIMITS__MAX_INVALID_SHARE", "0.1")]);
    stage.own(&[0], [0, 0]);
    for offset in 0..90 {
        stage.list(0, offset, &format!("r-{offset}"), T0);
    }
    for offset in 90..100 {
        stage.record(SERVED, offset, T0, "{");
    }
    stage.pass(1000);
    assert!(!is_raised(&stage, "served"), "a tenth is allowed");
    stage.record(SERVED, 100, T0, "{");
    stage.pass(1000);
    assert!(is_raised(&stage, "served") && !is_raised(&stage, "clicks"));
    stage.pass(5 * 60 * 1000);
    assert!(!is_raised(&stage, "served"));
}

/// A page with several shelves under one request id loses all but one of them. A retry loses nothing, so it must not raise the
/// same warning.
#[test]
fn copies_with_different_items_are_reported_as_a_shared_id() {
    for (items, reported) in [
        ("y", "repeated lists"),
        ("z", "do your pages show several shelves?"),
    ] {
        let mut stage = Stage::new();
        stage.own(&[0], [0, 0]);
        for page in 0..60 {
            let id = format!("r-{page}");
            stage.list_of(0, 2 * page, &id, T0, "a", &["x", "y"]);
            stage.list_of(0, 2 * page + 1, &id, T0 + 1, "a", &["x", items]);
        }
        stage.pass(1000);
        let warnings = stage.telemetry.warnings();
        let [warning] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert!(warning.message.contains(reported), "{}", warning.message);
        assert!(warning.message.contains("limits.max_duplicate_share (10%)"));
        assert_eq!(warning.runbook, Some("AbgaugeDuplicateRecords"));
    }
}

/// Kafka stamps the records now, so only their disorder distinguishes them from late ones.
#[test]
fn recognizes_an_old_log_that_was_loaded_out_of_order() {
    const HOUR_MS: i64 = 60 * 60 * 1000;
    for (step_ms, reported) in [
        (
            HOUR_MS,
            "an old log that was loaded out of order. Sort it by time first, or use `abgauge evaluate`",
        ),
        // A span of ten minutes in all means a slow producer.
        (10_000, "fix the clock or the buffer of their producers"),
    ] {
        let mut stage = Stage::new();
        stage.own(&[0], [0, 0]);
        for offset in 0..200 {
            let ts_ms = T0 - (offset * 61 % 200) * step_ms;
            let json = format!(
                r#"{{"request_id":"r-{offset}","ts":{ts_ms},"experiments":{{"ranker":"a"}},"items":["x"]}}"#
            );
            stage.record(SERVED, offset, T0, &json);
        }
        stage.pass(1000);
        let warnings = stage.telemetry.warnings();
        let of_served = |warning: &&Warning| warning.message.contains("topic `served`");
        let [warning] = warnings.iter().filter(of_served).collect::<Vec<_>>()[..] else {
            panic!("{warnings:?}")
        };
        assert!(
            warning.message.contains("too late to count"),
            "{}",
            warning.message
        );
        assert!(warning.message.contains(reported), "{}", warning.message);
    }
}

#[test]
fn warns_of_times_rounded_to_32_bit_floats_until_they_have_passed() {
    let mut stage = Stage::new();
    stage.own(&[0], [0, 0]);
    let reported = |stage: &Stage| -> Vec<String> {
        let warnings = stage
            .telemetry
            .warnings()
            .into_iter()
            .map(|warning| warning.message);
        warnings
            .filter(|message| message.contains("like 32-bit floats"))
            .collect()
    };
    let shows = |stage: &Stage, value: u8| {
        let line = format!("abgauge_float_times{{topic=\"served\"}} {value}\n");
        exported(stage).contains(&line)
    };
    for offset in 0..20 {
        stage.list(0, offset, &format!("r-{offset}"), T0 + 1 + offset);
    }
    stage.pass(1000);
    assert_eq!(reported(&stage), [""; 0]);
    assert!(shows(&stage, 0));
    let float_ms = T0 as f32 as i64;
    for offset in 20..50 {
        let json = format!(
            r#"{{"request_id":"r-{offset}","ts":{float_ms},"experiments":{{"ranker":"a"}},"items":["x"]}}"#
        );
        stage.record(SERVED, offset, float_ms, &json);
    }
    stage.pass(1000);
    assert_eq!(
        reported(&stage),
        [
            "topic `served`: times of 30 of 50 events are multiples of 131072 ms, like 32-bit floats: they may be off by a minute. Make `ts` \
          a 64-bit integer in its schema"
        ]
    );
    assert!(shows(&stage, 1));
    stage.pass(5 * 60 * 1000);
    assert_eq!(reported(&stage), [""; 0]);
    assert!(shows(&stage, 0));
}
