//! Everything that input can make grow has a bound, and a setting for it.

use serde_json::json;

use crate::bad_input::feed::{Feed, log, now_ms};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::Kafka;
use crate::support::prometheus;

fn lists_of(scrape: &Exposition, experiment: &str, arm: &str) -> Option<f64> {
    let labels = [
        ("experiment", experiment),
        ("arm", arm),
        ("window", "total"),
        ("view", "live"),
    ];
    scrape.value("abgauge_lists", &labels)
}

#[test]
fn a_hundred_thousand_arms_are_folded_and_a_scrape_stays_small() {
    const N_ARMS: u32 = 100_000;
    const MAX_ARMS: u32 = 500;
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 2);
    let ts_ms = now_ms();
    // These lists come first, so that each partition has admitted their arm.
    for partition in [0, 1] {
        for number in 0..10 {
            let id = format!("good-{number}");
            feed.list(
                partition,
                &json!({
                    "request_id": id, "ts": ts_ms, "experiments": {"ranker": "good"}, "items": ["i"],
                }),
            );
        }
    }
    for number in 0..N_ARMS {
        // Half of the arms share one experiment, the others have one each.
        let experiment = if number % 4 < 2 {
            "crowd".to_owned()
        } else {
            format!("e-{number}")
        };
        let list = json!({
            "request_id": format!("r-{number}"), "ts": ts_ms, "experiments": {experiment: format!("a-{number}")},
            "items": ["i"],
        });
        feed.list(number.cast_signed() % 2, &list);
    }
    feed.flush();
    let max_arms = format!("limits.max_arms = {MAX_ARMS}");
    let mut whole = feed.daemon(&kafka, &format!("{max_arms}\nexport.max_series = 1000000"));
    let mut small = feed.daemon(&kafka, &format!("{max_arms}\nexport.max_series = 1000"));

    let scrape = feed.wait_until_read(&mut whole);
    let accepted = f64::from(N_ARMS) + 20.0;
    assert_eq!(
        scrape.sum("abgauge_records_total", &[("outcome", "accepted")]),
        accepted
    );
    let in_total = [("window", "total"), ("view", "live")];
    assert_eq!(
        scrape.sum("abgauge_lists", &in_total),
        accepted,
        "folded, not lost"
    );
    assert_eq!(lists_of(&scrape, "ranker", "good"), Some(20.0));
    assert_eq!(lists_of(&scrape, "crowd", "a-0"), Some(1.0));
    // Each partition admits `MAX_ARMS` arms, including the good one. Every second of the others is in the crowd.
    let admitted_in_crowd = f64::from(MAX_ARMS - 1);
    let in_crowd = f64::from(N_ARMS / 2);
    let crowd = lists_of(&scrape, "crowd", "__other__").expect("folded");
    assert!((crowd - (in_crowd - admitted_in_crowd)).abs() <= 2.0, "{crowd}");
    let others = lists_of(&scrape, "__other__", "__other__").expect("folded");
    assert!((others - (in_crowd - admitted_in_crowd)).abs() <= 2.0, "{others}");
    let n_arms = scrape.select("abgauge_lists", &in_total).count();
    assert_eq!(
        n_arms,
        2 * (MAX_ARMS as usize - 1) + 1 + 2,
        "admitted, good and folded"
    );
    assert_eq!(
        scrape.value("abgauge_arms_folded", &[]),
        Some(f64::from(2 * MAX_ARMS)),
        "as far as told apart"
    );
    assert_eq!(scrape.value("abgauge_series_dropped", &[]), Some(0.0));
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));

    let scrape = feed.wait_until_read(&mut small);
    let n_series = scrape
        .samples
        .iter()
        .filter(|sample| sample.labels.contains_key("scope"))
        .count();
    assert!((500..=1000).contains(&n_series), "{n_series} ranking series");
    assert!(scrape.value("abgauge_series_dropped", &[]) > Some(10_000.0));
    assert_eq!(
        lists_of(&scrape, "crowd", "__other__"),
        Some(crowd),
        "those with most lists stay"
    );
    assert_eq!(lists_of(&scrape, "ranker", "good"), Some(20.0));
    prometheus::check_metrics(&small.get("/metrics").body).expect("promtool agrees");
    for daemon in [&whole, &small] {
        let resident = daemon.metrics().value("process_resident_memory_bytes", &[]);
        assert!(resident < Some(300e6), "{resident:?} bytes");
    }
}

#[test]
fn a_full_state_sheds_records_and_reports_it() {
    const N: u32 = 30_000;
    const MAX_STATE: f64 = 1_048_576.0;
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 2);
    let mut daemon = feed.daemon(&kafka, "limits.max_state = \"1MiB\"");
    daemon.wait_until_ready();
    assert_eq!(daemon.metrics().value("abgauge_exact", &[]), Some(1.0));
    let ts_ms = now_ms();
    for number in 0..N {
        let (partition, id) = (number.cast_signed() % 2, format!("r-{number}"));
        let items: Vec<_> = (0..10).map(|item| format!("i{item}")).collect();
        feed.list(
            partition,
            &json!({
                "request_id": id, "ts": ts_ms, "experiments": {"ranker": "a"}, "items": items,
            }),
        );
        feed.click(
            partition,
            &json!({"request_id": id, "ts": ts_ms + 1, "item": "i1"}),
        );
        if number % 5000 == 0 {
            feed.flush();
            let used = daemon
                .metrics()
                .value("abgauge_state_bytes", &[])
                .expect("always shown");
            assert!(used <= MAX_STATE, "{used} bytes");
        }
    }
    feed.flush();
    let scrape = feed.wait_until_read(&mut daemon);
    let outcome =
        |topic: &str, outcome| scrape.sum("abgauge_records_total", &[("topic", topic), ("outcome", outcome)]);
    for topic in [&feed.served, &feed.clicks] {
        assert_eq!(
            outcome(topic, "accepted") + outcome(topic, "shed"),
            feed.n_sent(topic)
        );
        assert!(outcome(topic, "shed") > 0.0, "{topic}");
    }
    assert!(outcome(&feed.served, "accepted") > 1000.0, "what fits is counted");
    let used = daemon.wait_until("the telemetry of the end", |daemon| {
        daemon
            .metrics()
            .value("abgauge_state_bytes", &[])
            .filter(|used| *used > MAX_STATE / 2.0)
    });
    assert!(used <= MAX_STATE, "{used} bytes");
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(0.0));
    assert_eq!(
        lists_of(&scrape, "ranker", "a"),
        Some(outcome(&feed.served, "accepted"))
    );
    check_told_once(&mut daemon, "limits.max_state");
    let api: serde_json::Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
    assert_eq!(api["stream"]["exact"], false);
    assert!(api["stream"]["warnings"].to_string().contains("limits.max_state"));
}

/// Returns the page's warnings as one text.
fn warnings(daemon: &Daemon) -> String {
    let api: serde_json::Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
    api["stream"]["warnings"].to_string()
}

/// A single list used to take all places, so that every later list counted as `__other__`.
#[test]
fn a_list_of_ten_thousand_experiments_is_refused_and_takes_no_arm() {
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 1);
    let ts_ms = now_ms();
    let experiments = (0..10_000).map(|number| (format!("e-{number}"), json!("a")));
    let experiments = serde_json::Value::Object(experiments.collect());
    feed.list(
        0,
        &json!({"request_id": "vast", "ts": ts_ms, "experiments": experiments, "items": ["i"]}),
    );
    for number in 0..10 {
        feed.list(
            0,
            &json!({
                "request_id": format!("r-{number}"), "ts": ts_ms, "experiments": {"ranker": "good"}, "items": ["i"],
            }),
        );
    }
    feed.flush();
    let mut daemon = feed.daemon(&kafka, "");
    let scrape = feed.wait_until_read(&mut daemon);
    let reason = [
        ("topic", feed.served.as_str()),
        ("reason", "too_many_experiments"),
    ];
    assert_eq!(scrape.value("abgauge_invalid_records_total", &reason), Some(1.0));
    assert_eq!(lists_of(&scrape, "ranker", "good"), Some(10.0));
    assert_eq!(scrape.value("abgauge_arms_folded", &[]), Some(0.0));
    assert_eq!(warnings(&daemon), "[]");
}

#[test]
fn arms_beyond_the_bound_raise_a_warning_with_the_fix() {
    let kafka = Kafka::shared();
    let mut feed = Feed::new(&kafka, 1);
    for number in 0..10 {
        feed.list(
            0,
            &json!({
                "request_id": format!("r-{number}"), "ts": now_ms(), "experiments": {"ranker": format!("a-{number}")},
                "items": ["i"],
            }),
        );
    }
    feed.flush();
    let mut daemon = feed.daemon(&kafka, "limits.max_arms = 4");
    let scrape = feed.wait_until_read(&mut daemon);
    assert_eq!(
        scrape.value("abgauge_arms_folded", &[]),
        Some(4.0),
        "as far as told apart"
    );
    let warning = daemon.wait_until("a warning", |daemon| {
        let warnings = warnings(daemon);
        warnings.contains("limits.max_arms").then_some(warnings)
    });
    for part in ["__other__", "4 arms or more", "AbgaugeArmsFolded", "\"warning\""] {
        assert!(warning.contains(part), "{part} is not in {warning}");
    }
    check_told_once(&mut daemon, "limits.max_arms");
}

/// Asserts that exactly one log line names the setting.
#[track_caller]
fn check_told_once(daemon: &mut Daemon, setting: &str) {
    let n_reported = daemon.wait_until("the log to tell it", |daemon| {
        let reported = log(daemon).into_iter().filter(|line| {
            let message = line["message"].as_str();
            message.is_some_and(|text| text.contains(setting))
        });
        Some(reported.count()).filter(|n| *n > 0)
    });
    assert_eq!(n_reported, 1, "{}", daemon.log());
}
