//! Tests of the daemon's own series.

use super::*;

fn telemetry() -> Telemetry {
    Telemetry::new("served", "clicks", "1.2.3")
}

fn text(telemetry: &Telemetry) -> String {
    let mut out = Vec::new();
    telemetry.render(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Value of a series, found by its text up to the space.
fn value(telemetry: &Telemetry, series: &str) -> Option<f64> {
    let text = text(telemetry);
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let value = values.next().map(|value| value.parse().unwrap());
    assert_eq!(values.next(), None, "{series} stands twice");
    value
}

#[test]
fn every_known_label_starts_at_zero() {
    let telemetry = telemetry();
    for topic in ["served", "clicks"] {
        for outcome in Outcome::OF_EVENTS {
            let series = format!(
                r#"abgauge_records_total{{outcome="{}",topic="{topic}"}}"#,
                outcome.name()
            );
            assert_eq!(value(&telemetry, &series), Some(0.0), "{series}");
        }
        for reason in Reason::ALL {
            let series = format!(
                r#"abgauge_invalid_records_total{{reason="{}",topic="{topic}"}}"#,
                reason.name()
            );
            assert_eq!(value(&telemetry, &series), Some(0.0), "{series}");
        }
    }
    for result in ClickResult::ALL {
        let series = format!(r#"abgauge_click_results_total{{result="{}"}}"#, result.name());
        assert_eq!(value(&telemetry, &series), Some(0.0), "{series}");
    }
    for result in DeadLetter::ALL {
        let series = format!(r#"abgauge_dead_letters_total{{result="{}"}}"#, result.name());
        assert_eq!(value(&telemetry, &series), Some(0.0), "{series}");
    }
    for reason in HttpRefusal::ALL {
        let series = format!(r#"abgauge_http_refused_total{{reason="{}"}}"#, reason.name());
        assert_eq!(value(&telemetry, &series), Some(0.0), "{series}");
    }
    for zero in [
        "conflicting_lists_total",
        "repeated_items_total",
        "skipped_elements_total",
        "rebalances_total",
        "pair_restarts_total",
    ] {
        assert_eq!(value(&telemetry, &format!("abgauge_{zero}")), Some(0.0), "{zero}");
    }
    assert_eq!(
        value(&telemetry, r#"abgauge_build_info{version="1.2.3"}"#),
        Some(1.0)
    );
    assert_eq!(value(&telemetry, "abgauge_exact"), Some(1.0));
    assert_eq!(value(&telemetry, "abgauge_ready"), Some(0.0));
}

#[test]
fn a_global_frontier_is_removed_once_it_is_not_shown() {
    let telemetry = telemetry();
    let behind = "abgauge_global_behind_seconds";
    let frontier = |partition: i32, scope: &str| {
        let series =
            format!(r#"abgauge_frontier_timestamp_seconds{{partition="{partition}",scope="{scope}"}}"#);
        value(&telemetry, &series)
    };
    assert_eq!(value(&telemetry, behind), None);
    telemetry.set_frontier(1, Some(5_000));
    telemetry.set_global(Some(0.5), &[(1, 4_000), (2, 3_000)]);
    assert_eq!(value(&telemetry, behind), Some(0.5));
    assert_eq!(
        (frontier(1, "global"), frontier(2, "global")),
        (Some(4.0), Some(3.0))
    );
    telemetry.set_global(Some(20.0), &[(2, 3_500)]);
    assert_eq!((frontier(1, "global"), frontier(2, "global")), (None, Some(3.5)));
    assert_eq!(frontier(1, "own"), Some(5.0));
}

#[test]
fn unknown_values_are_absent_even_after_being_known() {
    let telemetry = telemetry();
    for name in [
        "abgauge_http_certificate_expiry_timestamp_seconds",
        "abgauge_page_info",
        "abgauge_settle_delay_seconds",
        "abgauge_since_timestamp_seconds",
        "abgauge_frontier_timestamp_seconds",
        "abgauge_consumer_lag_records",
        "abgauge_watermark_delay_seconds",
        "abgauge_catalog_",
    ] {
        assert!(!text(&telemetry).contains(name), "{name}");
    }
    telemetry.set_settle_delay(Some(0.5));
    telemetry.set_since(Some(1_763_596_800_250));
    telemetry.set_frontier(3, Some(1_763_596_800_000));
    assert_eq!(value(&telemetry, "abgauge_settle_delay_seconds"), Some(0.5));
    assert_eq!(
        value(&telemetry, "abgauge_since_timestamp_seconds"),
        Some(1_763_596_800.25)
    );
    let frontier = r#"abgauge_frontier_timestamp_seconds{partition="3",scope="own"}"#;
    assert_eq!(value(&telemetry, frontier), Some(1_763_596_800.0));
    telemetry.set_settle_delay(None);
    telemetry.set_since(None);
    telemetry.set_frontier(3, None);
    assert!(!text(&telemetry).contains("abgauge_settle_delay_seconds"));
    assert!(!text(&telemetry).contains("abgauge_since_timestamp_seconds"));
    assert_eq!(value(&telemetry, frontier), None);
}

#[test]
fn counts_add_up_by_topic() {
    let telemetry = telemetry();
    telemetry.add_counts(&counts());
    telemetry.add_counts(&counts());
    let records = |outcome, topic| {
        value(
            &telemetry,
            &format!(r#"abgauge_records_total{{outcome="{outcome}",topic="{topic}"}}"#),
        )
    };
    assert_eq!(records("accepted", "served"), Some(2.0));
    assert_eq!(records("accepted", "clicks"), Some(4.0));
    assert_eq!(records("invalid", "clicks"), Some(2.0));
    assert_eq!(
        value(
            &telemetry,
            r#"abgauge_invalid_records_total{reason="not_json",topic="clicks"}"#
        ),
        Some(2.0)
    );
    assert_eq!(
        value(&telemetry, r#"abgauge_click_results_total{result="repeat"}"#),
        Some(2.0)
    );
    assert_eq!(value(&telemetry, "abgauge_conflicting_lists_total"), Some(6.0));
    assert_eq!(value(&telemetry, "abgauge_repeated_items_total"), Some(8.0));
    assert_eq!(value(&telemetry, "abgauge_skipped_elements_total"), Some(10.0));
}

/// Counts of one list, two clicks (one a repeat), and one broken click.
fn counts() -> Counts {
    let mut counts = Counts::default();
    counts.conflicting_lists = 3;
    counts.repeated_items = 4;
    counts.skipped_elements = 5;
    counts.count(Side::Served, Outcome::Accepted);
    counts.count(Side::Clicks, Outcome::Accepted);
    counts.count(Side::Clicks, Outcome::Accepted);
    counts.count(Side::Clicks, Outcome::Invalid);
    counts.count_reason(Side::Clicks, Reason::NotJson);
    counts.count_result(ClickResult::Repeat);
    counts
}

#[test]
fn a_shared_topic_is_one_series() {
    let telemetry = Telemetry::new("events", "events", "1.2.3");
    telemetry.add_counts(&counts());
    let accepted = r#"abgauge_records_total{outcome="accepted",topic="events"}"#;
    assert_eq!(value(&telemetry, accepted), Some(3.0));
    assert_eq!(telemetry.status().records["events"]["accepted"], 3);
}

#[test]
fn a_revoked_partition_loses_its_series() {
    let telemetry = telemetry();
    let state = PartitionState {
        lag: Some(7),
        watermark_delay_seconds: Some(1.25),
        held: true,
        ..PartitionState::default()
    };
    for partition in [0, 1] {
        telemetry.set_partition("served", partition, state);
        telemetry.set_partition("clicks", partition, state);
        telemetry.set_frontier(partition, Some(0));
    }
    telemetry.forget_partition(1);
    assert!(!text(&telemetry).contains(r#"partition="1""#));
    let lag = r#"abgauge_consumer_lag_records{partition="0",topic="clicks"}"#;
    assert_eq!(value(&telemetry, lag), Some(7.0));
    let left: Vec<_> = telemetry
        .status()
        .partitions
        .into_iter()
        .map(|it| (it.topic, it.partition))
        .collect();
    assert_eq!(left, [("clicks".to_owned(), 0), ("served".to_owned(), 0)]);
}

#[test]
fn an_unknown_lag_is_removed() {
    let telemetry = telemetry();
    let lag = r#"abgauge_consumer_lag_records{partition="0",topic="served"}"#;
    let known = PartitionState {
        lag: Some(7),
        ..PartitionState::default()
    };
    telemetry.set_partition("served", 0, known);
    assert_eq!(value(&telemetry, lag), Some(7.0));
    telemetry.set_partition("served", 0, PartitionState::default());
    assert_eq!(value(&telemetry, lag), None);
}

#[test]
fn readiness_can_be_lost_but_first_readiness_is_permanent() {
    let telemetry = telemetry();
    assert!(!telemetry.is_ready() && !telemetry.was_ready());
    assert_eq!(telemetry.waiting_for().len(), 1);
    telemetry.set_waiting_for(vec![]);
    assert!(telemetry.is_ready() && telemetry.was_ready());
    assert_eq!(value(&telemetry, "abgauge_ready"), Some(1.0));
    telemetry.set_waiting_for(vec!["the broker".to_owned()]);
    assert!(!telemetry.is_ready() && telemetry.was_ready());
    assert_eq!(value(&telemetry, "abgauge_ready"), Some(0.0));
}

#[test]
fn a_failed_reload_is_shown_until_one_succeeds() {
    let telemetry = telemetry();
    telemetry.set_reload_fault(None);
    telemetry.set_catalogue(200, 1_763_596_800_250);
    let failed = |telemetry: &Telemetry| value(telemetry, "abgauge_catalog_reload_failed");
    assert_eq!(value(&telemetry, "abgauge_catalog_items"), Some(200.0));
    let taken = value(&telemetry, "abgauge_catalog_loaded_timestamp_seconds");
    assert_eq!(taken, Some(1_763_596_800.25));
    assert_eq!(failed(&telemetry), Some(0.0));
    telemetry.set_reload_fault(Some("line 3".to_owned()));
    assert_eq!(failed(&telemetry), Some(1.0));
    assert_eq!(
        value(&telemetry, "abgauge_catalog_items"),
        Some(200.0),
        "the one before"
    );
    let catalog = telemetry.status().catalog.unwrap();
    assert_eq!(catalog.reload_fault.as_deref(), Some("line 3"));
    telemetry.set_reload_fault(None);
    assert_eq!(failed(&telemetry), Some(0.0));
}

#[test]
fn memory_is_shown_with_its_bound_once_known() {
    let telemetry = telemetry();
    assert_eq!(value(&telemetry, "abgauge_state_max_bytes"), None);
    telemetry.set_state_bound(4 << 30);
    telemetry.set_engine(2, 1, 300);
    assert_eq!(
        value(&telemetry, "abgauge_state_max_bytes"),
        Some(4_294_967_296.0)
    );
    assert_eq!(value(&telemetry, "abgauge_state_bytes"), Some(300.0));
}

#[test]
fn a_shed_record_is_never_forgotten() {
    let telemetry = telemetry();
    telemetry.mark_inexact();
    assert_eq!(value(&telemetry, "abgauge_exact"), Some(0.0));
    assert!(!telemetry.status().exact);
}

#[test]
fn stored_state_covers_existing_pairs_and_its_counters_never_decrease() {
    let telemetry = telemetry();
    assert!(!text(&telemetry).contains("abgauge_stored"));
    let state = StoredState {
        standing: "holding",
        age_seconds: 1.5,
        states: 7,
        position: 40,
        end: Some(45),
        restore: Restore {
            read_bytes: Some(900),
            ..Restore::default()
        },
        ..StoredState::default()
    };
    telemetry.set_stored(BTreeMap::from([(0, state.clone()), (3, state.clone())]));
    let of_3 = |name: &str| value(&telemetry, &format!(r#"abgauge_stored_{name}{{partition="3"}}"#));
    assert_eq!(of_3("age_seconds"), Some(1.5));
    assert_eq!(of_3("states_total"), Some(7.0));
    assert_eq!(of_3("superseded_total"), Some(0.0));
    assert_eq!(of_3("lag_records"), Some(5.0));
    assert_eq!(of_3("restore_read_bytes"), Some(900.0));
    assert_eq!(of_3("restore_live_bytes"), None, "nothing was found");

    let later = StoredState {
        states: 9,
        end: None,
        ..state
    };
    telemetry.set_stored(BTreeMap::from([(3, later)]));
    assert_eq!(of_3("states_total"), Some(9.0));
    assert_eq!(of_3("lag_records"), None);
    assert!(
        !text(&telemetry).contains(r#"partition="0""#),
        "it went elsewhere"
    );
    let reported: Vec<i32> = telemetry.status().stored.iter().map(|of| of.partition).collect();
    assert_eq!(reported, [3]);
}
