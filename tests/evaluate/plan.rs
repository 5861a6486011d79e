//! `abgauge plan` as typed by an analyst: days from the variance in files, and its messages if too little is known.

use abgauge_core::statistics::{RatioSums, ratio};
use serde_json::Value;

use crate::compare::{with_users, without_users};
use crate::feed::compared;
use crate::support::program::{Ran, file, run_with_input, temporary_dir};
use crate::{MIDNIGHT_MS, list, two_arms};

/// Information needed at the first weekly look: (Φ.isf(0.025 w) + Φ.isf(0.2))² with w = 6/π².
const WEEKLY: f64 = 9.039090574141925;
/// Information needed by a test with a single look: the same with w = 1.
const FIXED: f64 = 7.848_879_734_349_086;
/// Information needed at the planned look: the same with w = 0.8.
const PLANNED: f64 = 8.383168271952156;

fn plan(arguments: &[&str], events: &str) -> Ran {
    run_with_input(
        &[&["plan", "-", "--metrics", "hit_rate"], arguments].concat(),
        events,
    )
}

#[track_caller]
fn document(arguments: &[&str], events: &str) -> Value {
    let ran = plan(&[arguments, &["--format", "json"]].concat(), events);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!(
        (value / expected - 1.0).abs() < 1e-9,
        "{value}, expected {expected}"
    );
}

/// Returns for `hit_rate@1` in an arm: the ratio, V, and the two sums.
fn spread(events: &str, arm: &str) -> (f64, f64, [f64; 2]) {
    let found = compared(events, "a", &["hit_rate"]);
    let totals = &found.totals.epochs[0].arms[arm];
    let terms = &totals.metrics["hit_rate@1"];
    let sums = RatioSums {
        lists: &totals.lists,
        numerators: &terms.numerators,
        denominators: &terms.denominators,
    };
    let ratio = ratio::ratio(sums).expect("it is defined");
    let variance = ratio.spread.expect("it is spread").variance;
    let sum = |column: &[f64]| column.iter().sum();
    (
        ratio.value,
        variance,
        [sum(&terms.numerators), sum(&terms.denominators)],
    )
}

const ASKED: [&str; 4] = ["--compare", "a", "--primary", "hit_rate@1"];

#[test]
fn days_follow_from_the_variance_of_both_arms() {
    let (events, users) = with_users();
    let json = document(&ASKED, &events);
    let plan = &json["plans"]["e"];
    let days = (1000.0 * 2999.0 + users[1].last().map_or(0.0, |user| user[1] - 1.0)) / 86_400_000.0;
    near(number(&plan["days"]), days);
    let [(value, of_control, control), (_, of_arm, arm)] = ["a", "b"].map(|arm| spread(&events, arm));
    let pooled = (arm[0] + control[0]) / (arm[1] + control[1]);
    let x = (0.05 * pooled).powi(2) / (of_arm + of_control);
    let metric = &plan["arms"]["b"]["metrics"]["hit_rate@1"];
    near(number(&metric["control"]), value);
    for (design, needed) in [
        ("sequence", WEEKLY),
        ("planned", PLANNED),
        ("strict", 3.9 * FIXED),
    ] {
        let found = |field: &str| number(&metric[design][field]);
        near(found("information"), x / needed);
        near(found("information_per_day"), x / needed / days);
        near(found("days"), days * needed / x);
        assert_eq!(found("weeks"), (found("days") / 7.0).ceil());
        assert_eq!(plan["weeks"][design], metric[design]["weeks"]);
    }
    // Half the effect takes four times as long, and a stricter α takes longer.
    let days = |arguments: &[&str]| {
        let json = document(&[&ASKED, arguments].concat(), &events);
        number(&json["plans"]["e"]["arms"]["b"]["metrics"]["hit_rate@1"]["sequence"]["days"])
    };
    near(days(&["--mde", "0.025"]), 4.0 * days(&[]));
    // This is (Φ.isf(0.005 w) + Φ.isf(0.2))².
    near(days(&["--alpha", "0.01"]) / days(&[]), 12.85291372101836 / WEEKLY);
}

#[test]
fn a_future_experiment_is_planned_from_the_existing_arm() {
    let (events, _) = with_users();
    let lines: Vec<&str> = events
        .lines()
        .filter(|line| !line.contains(r#""e":"b""#))
        .collect();
    let events = lines.join("\n");
    let shares = ["--shares", "a=.5,new=.3,other=.2"];
    let json = document(&[&ASKED[..], &shares].concat(), &events);
    let (value, variance, _) = spread(&events, "a");
    for (arm, share) in [("new", 0.3), ("other", 0.2)] {
        let plan = &json["plans"]["e"]["arms"][arm];
        assert_eq!(plan["new"], true);
        let x = (0.05 * value).powi(2) / (variance / 0.5 + variance / share);
        let metric = &plan["metrics"]["hit_rate@1"];
        // There are two hypotheses: (Φ.isf(0.0125) + Φ.isf(0.2))².
        near(
            number(&metric["strict"]["information"]),
            x / (3.9 * 9.505_036_745_196_819),
        );
    }
    let without = plan(&ASKED, &events);
    assert_eq!((without.code, &*without.stdout), (Some(65), ""));
    assert!(
        without
            .stderr
            .contains("error: e: it has no arm except the control"),
        "{}",
        without.stderr
    );
}

#[test]
fn a_start_in_the_configuration_gives_dates() {
    let (events, _) = with_users();
    let dir = temporary_dir();
    let path = file(
        &dir,
        "dated.toml",
        "[experiments.e]\nstart = \"2025-11-20T12:00:00Z\"\nplanned_days = 14\nmde = 2\n",
    );
    let arguments = [&ASKED[..], &["--mde", "0.9", "--config", &path]].concat();
    let ran = plan(&arguments, &events);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let reported = "\nin whole weeks: stop any time 1 week (Thu 27 Nov 2025), fixed end 1 week (Thu 27 Nov 2025), strict 1 week (Thu 27 Nov 2025)\n\
                planned end: Thu 4 Dec 2025\nstop any time: ";
    assert!(ran.stdout.contains(reported), "{}", ran.stdout);
    let recommended = "recommended for e: planned_days = 7 (Thu 27 Nov 2025)\ndays to find 90% ";
    assert!(ran.stdout.starts_with(recommended), "{}", ran.stdout);
    assert!(!ran.stderr.contains("planned end"), "{}", ran.stderr);
    let plan_of_e = &document(&arguments, &events)["plans"]["e"];
    assert_eq!(plan_of_e["ends"]["planned"], 1_764_244_800_000_i64);
    assert_eq!(plan_of_e["planned_end"], 1_764_849_600_000_i64);
    assert_eq!(plan_of_e["since"], Value::Null);
}

#[test]
fn a_planned_end_that_is_too_early_is_noted() {
    let (events, _) = with_users();
    let dir = temporary_dir();
    let text = "[experiments.e]\nstart = 2025-11-20T12:00:00Z\nplanned_days = 0.01\n";
    let path = file(&dir, "early.toml", text);
    let ran = plan(&[&ASKED[..], &["--config", &path]].concat(), &events);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "note: e: the planned end is too early to find 5% with power 80%: it takes more planned_days, "
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_table_has_days_per_metric_and_whole_weeks() {
    let (events, _) = with_users();
    let arguments = ["--shares", "a=.9,b=.1", "--guardrail", "hit_rate@5=0.02"];
    let ran = plan(&[&ASKED[..], &arguments].concat(), &events);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("note: e: 0.0 days are less than a week, but weekdays differ\n"),
        "{}",
        ran.stderr
    );
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "days to find 5% with power 80%, from 0.0 days of lists");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(lines[2]),
        ["e", "a", "stop", "any", "time", "fixed", "end", "strict"]
    );
    let row = words(lines[4]);
    assert_eq!(
        (&*row[0], &*row[1], &*row[4]),
        ("b:", "hit_rate@1", "–"),
        "{row:?}"
    );
    // Shares more uneven than one to four have no planned end, and none is recommended above.
    assert!(
        lines[6].starts_with("in whole weeks: stop any time ") && lines[6].contains(", fixed end –, strict "),
        "{lines:?}"
    );
}

#[test]
fn an_experiment_with_too_little_data_is_named_and_others_are_planned() {
    let (mut events, _) = with_users();
    events += &format!(
        "\n{}\n{}",
        list("x", MIDNIGHT_MS, r#"{"f":"a"}"#),
        list("y", MIDNIGHT_MS + 5, r#"{"f":"b"}"#)
    );
    let asked = [&ASKED[..], &["--unit", "request"]].concat();
    let ran = plan(&asked, &events);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let reported =
        "note: f: there is too little data yet, users in 1 of 220 buckets, 0 of 100 expected hits\n";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    let alone = plan(&asked, &two_arms());
    assert_eq!((alone.code, &*alone.stdout), (Some(65), ""));
    assert!(
        alone
            .stderr
            .contains("error: e: there is too little data yet, users in "),
        "{}",
        alone.stderr
    );
    let empty = plan(&ASKED, "");
    assert_eq!((empty.code, &*empty.stdout), (Some(65), ""));
}

#[test]
fn refuses_to_plan_from_lists_without_a_user_unless_requests_are_assigned() {
    let (events, _) = with_users();
    let events = without_users(&events, |_| true);
    let refused = plan(&ASKED, &events);
    assert_eq!((refused.code, &*refused.stdout), (Some(65), ""));
    let reported = "error: e: 100% of the lists of an arm have no user, so the estimated duration would be too short: send a user id";
    assert!(refused.stderr.contains(reported), "{}", refused.stderr);
    let json = document(&[&ASKED[..], &["--unit", "request"]].concat(), &events);
    number(&json["plans"]["e"]["arms"]["b"]["metrics"]["hit_rate@1"]["planned"]["days"]);
}

#[test]
fn wrong_plan_flags_are_refused_with_a_fix() {
    let (events, _) = with_users();
    for (arguments, reported) in [
        (&["--primary", "hit_rate@1"][..], "--compare <CONTROL>"),
        (&["--compare", "a"], "--primary <METRIC,…>"),
        (
            &["--compare", "c", "--primary", "hit_rate"],
            "possible values: a, b]",
        ),
        (
            &["--compare", "x=a", "--primary", "hit_rate"],
            "possible values: e]",
        ),
        (
            &["--compare", "a", "--primary", "x:hit_rate"],
            "no metric decides: give --primary METRIC,…",
        ),
        (
            &["--compare", "a", "--primary", "lists_per_user"],
            "lists_per_user needs shares of users: give --shares",
        ),
        (
            &["--compare", "a", "--primary", "ctr"],
            "possible values: hit_rate@1",
        ),
    ] {
        let ran = plan(arguments, &events);
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
}

#[test]
fn lists_per_user_can_be_a_primary() {
    let (events, _) = with_users();
    let asked = [
        "--compare",
        "a",
        "--primary",
        "lists_per_user",
        "--shares",
        "a=.5,b=.5",
    ];
    let json = document(&asked, &events);
    let metric = &json["plans"]["e"]["arms"]["b"]["metrics"]["lists_per_user"];
    assert!(
        number(&metric["sequence"]["days"]) > 0.0 && metric.get("control").is_none(),
        "{metric}"
    );
}

/// Repeats the events of [`with_users`] 20 hours later. Users selected by `is_new` return as other users.
fn again(events: &str, is_new: impl Fn(usize) -> bool) -> String {
    let parsed = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let lines = parsed.map(|mut event| {
        let id = event["request_id"].as_str().expect("an id");
        event["request_id"] = format!("later-{id}").into();
        event["ts"] = (event["ts"].as_i64().expect("a time") + 20 * 3_600_000).into();
        let user = event["user_id"].as_str().map(str::to_owned);
        if let Some(user) = user.filter(|user| is_new(user[1..].parse().expect("a number"))) {
            event["user_id"] = format!("new-{user}").into();
        }
        event.to_string()
    });
    let lines: Vec<String> = lines.collect();
    format!("{events}\n{}", lines.join("\n"))
}

/// The forecast extrapolates the information gained between half of the file and all of it.
#[test]
fn returning_users_make_an_experiment_longer() {
    let (events, _) = with_users();
    let growth = |whole: &str| {
        let json = document(&ASKED, whole);
        let plan = &json["plans"]["e"];
        let metric = &plan["arms"]["b"]["metrics"]["hit_rate@1"];
        let variance = |events: &str| spread(events, "a").1 + spread(events, "b").1;
        // There is nothing between the two copies, so the first copy is the state halfway.
        let expected = (variance(&events) / variance(whole)).ln() / 2.0_f64.ln();
        let found = number(&metric["growth"]);
        assert!((found - expected.min(1.0)).abs() < 1e-3, "{found} {expected}");
        let sequence = &metric["sequence"];
        let [days, information] = [&plan["days"], &sequence["information"]].map(number);
        near(number(&sequence["days"]), days * information.powf(-1.0 / found));
        found
    };
    let half_come_back = again(&events, |user| user % 4 < 2);
    assert!(growth(&half_come_back) < 0.8);
    assert!(growth(&again(&events, |_| true)) > 0.8);
    let reported = "hit_rate@1: doubling the duration adds only 1.";
    let ran = plan(&ASKED, &half_come_back);
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}

#[test]
fn an_unreachable_effect_is_reported() {
    let (events, _) = with_users();
    let ran = plan(&ASKED, &again(&events, |_| false));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for reported in [
        "hit_rate@1: doubling the duration adds only 1.0 times the information",
        "hit_rate@1: more days are not enough: use more users, or a larger --mde",
    ] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    let reported = "in whole weeks: stop any time –, fixed end –, strict –";
    assert!(ran.stdout.contains(reported), "{}", ran.stdout);
}
