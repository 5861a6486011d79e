//! Differences of arms from a control, and their significance.

use serde_json::{Value, json};

use crate::support::program::{program, run_with_input};
use crate::{EVENTS, MIDNIGHT_MS, click, printed, two_arms};

#[test]
fn every_format_compares_arms_if_the_control_exists() {
    let arguments = "--compare a --unit request --metrics mrr --k 1"
        .split(' ')
        .collect::<Vec<_>>();
    let format = |format: &str| {
        let ran = run_with_input(
            &[&["evaluate", "-", "--format", format], &arguments[..]].concat(),
            &two_arms(),
        );
        let reported = "note: experiments without an arm a, not compared: f\n";
        assert_eq!((ran.code, &*ran.stderr), (Some(0), reported));
        ran.stdout
    };
    let expected = " f             x
─────────────────
 lists         1
 clicks        0
 mrr@1    0.0000
 mrr      0.0000

e: b vs a

 e             a        b   lift   95% interval   p adjusted
─────────────────────────────────────────────────────────────
 lists         2        2
 clicks        1        1
 mrr@1    0.0000   0.5000      –              –            –
 mrr      0.2500   0.5000      –              –            –

b: Undecided, traffic shares are unknown: add --shares a=0.5,b=0.5

note: valid only if the end date was chosen before looking at results
";
    assert_eq!(format("table"), expected);
    let markdown = format("markdown");
    assert!(
        markdown.contains(
            "\n| e | a | b | lift | 95% interval | p adjusted |\n|:---|---:|---:|---:|---:|---:|\n"
        ),
        "{markdown}"
    );
    assert!(
        markdown.contains("\n| mrr | 0.2500 | 0.5000 | – | – | – |\n"),
        "{markdown}"
    );
    let csv = format("csv");
    for row in [
        "profile,experiment,arm,metric,k,value,numerator,denominator,difference,difference_percent,lift_lower,lift_upper,p,p_adjusted,p_harm",
        "default,e,a,mrr,,0.25,0.5,2,,,,,,,",
        "default,e,b,mrr,1,0.5,1,2,0.5,,,,,,",
        "default,e,b,mrr,,0.5,1,2,0.25,100,,,,,",
        "default,f,x,mrr,,0,0,1,,,,,,,",
    ] {
        assert!(csv.lines().any(|line| line == row), "{row}: {csv}");
    }
    let json: Value = serde_json::from_str(&format("json")).expect("JSON");
    let e = &json["experiments"]["e"];
    assert_eq!(e["control"], "a");
    assert_eq!(
        e["arms"]["b"]["differences"],
        json!({"mrr@1": {"absolute": 0.5}, "mrr": {"absolute": 0.25, "percent": 100.0}})
    );
    assert_eq!(e["arms"]["a"].get("differences"), None);
    assert_eq!(json["experiments"]["f"].get("control"), None);
}

#[test]
fn an_unknown_control_is_refused_with_the_existing_arms() {
    let ran = run_with_input(&["evaluate", "-", "--compare", "arm"], &two_arms());
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    for reported in ["'arm'", "possible values: a, b, x]"] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    let near = run_with_input(&["evaluate", "-", "--compare", "contrl"], EVENTS);
    assert!(
        near.stderr.contains("similar value exists: 'control'"),
        "{}",
        near.stderr
    );
}

/// Returns events of 3,000 users who alternate between two arms and have one to eight lists each; lists of `b` are clicked
/// more often. Also returns clicks and lists of each user, by arm.
pub fn with_users() -> (String, [Vec<[f64; 2]>; 2]) {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut lines = Vec::new();
    let mut users = [Vec::new(), Vec::new()];
    for user in 0..3000 {
        let arm = user % 2;
        let n_lists = 1 + random(8);
        let mut n_clicked = 0;
        for n in 0..n_lists {
            let (id, ts_ms) = (format!("{user}-{n}"), MIDNIGHT_MS + 1000 * user as i64 + n as i64);
            let name = ["a", "b"][arm];
            lines.push(format!(
                r#"{{"type":"served","request_id":"{id}","user_id":"u{user}","ts":{ts_ms},"experiments":{{"e":"{name}"}},"items":["i","j"]}}"#
            ));
            if random(100) < [25, 30][arm] {
                n_clicked += 1;
                lines.push(click(&id, ts_ms + 1, "i"));
            }
        }
        users[arm].push([f64::from(n_clicked), n_lists as f64]);
    }
    (lines.join("\n"), users)
}

#[test]
fn a_lift_has_an_interval_by_user_and_a_decision() {
    let (events, users) = with_users();
    let arguments = [
        "--compare",
        "a",
        "--metrics",
        "hit_rate",
        "--k",
        "1",
        "--shares",
        "a=0.5,b=0.5",
        "--primary",
        "hit_rate@1",
        "--format",
        "json",
    ];
    let json: Value = serde_json::from_str(&printed(&arguments, &events)).expect("JSON");
    let verdict = &json["comparisons"]["e"]["b"];
    assert_eq!(
        (&verdict["state"], &verdict["result"]),
        (&json!("win"), &json!("pass")),
        "{verdict}"
    );
    let reported = [
        "version",
        "experiment",
        "arm",
        "control",
        "look",
        "as_of",
        "notes",
    ]
    .map(|field| &verdict[field]);
    let last_ms = MIDNIGHT_MS + 1000 * 2999 + users[1].last().map_or(0, |user| user[1] as i64 - 1);
    assert_eq!(
        reported.map(Value::to_string),
        ["1", "\"e\"", "\"b\"", "\"a\"", "1", &last_ms.to_string(), "[]"]
    );
    assert_eq!(verdict.get("next_decision"), None);
    assert_eq!(verdict["checks"]["srm"]["p"], 1.0);
    assert_eq!(verdict["checks"]["multi_arm"]["share"], 0.0);
    let metric = &verdict["metrics"]["hit_rate@1"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let [control, arm] = users.each_ref().map(|users| {
        let sum = |column: usize| users.iter().map(|user| user[column]).sum::<f64>();
        let ratio = sum(0) / sum(1);
        let residual = |user: &[f64; 2]| (user[0] - ratio * user[1]) / sum(1);
        (
            ratio,
            users.iter().map(|user| residual(user).powi(2)).sum::<f64>(),
        )
    });
    assert!((number(&metric["control"]) - control.0).abs() < 1e-12);
    assert!((number(&metric["arm"]) - arm.0).abs() < 1e-12);
    assert!((number(&metric["lift"]) - (arm.0 / control.0 - 1.0)).abs() < 1e-12);
    let variance = arm.1 / control.0.powi(2) + control.1 * arm.0.powi(2) / control.0.powi(4);
    let width = number(&metric["upper"]) - number(&metric["lower"]);
    let of_users = 2.0 * 1.96 * variance.sqrt();
    let csv = printed(&[&arguments[..arguments.len() - 1], &["csv"]].concat(), &events);
    let row = csv
        .lines()
        .find(|line| line.starts_with("default,e,b,hit_rate,1,"))
        .expect("a row");
    let fields: Vec<f64> = row
        .split(',')
        .skip(10)
        .map(|field| field.parse().expect("a number"))
        .collect();
    let keys = ["lower", "upper", "p", "p_adjusted", "p_harm"];
    assert_eq!(fields, keys.map(|key| number(&metric[key])), "{row}");
    // A standard error from 256 buckets has an error of about 4% itself.
    assert!((width / of_users - 1.0).abs() < 0.2, "{width} {of_users}");
}

/// Two arms are compared with the control in a single table: users first, then the metrics that decide, each with a row per arm.
#[test]
fn an_experiment_has_one_table_whatever_the_number_of_its_arms() {
    let (events, _) = with_users();
    let third = |line: &str| {
        let user = line.split(r#""user_id":"u"#).nth(1)?.split('"').next()?;
        (user.parse::<usize>().ok()? % 4 == 3).then(|| line.replace(r#""e":"b""#, r#""e":"c""#))
    };
    let lines = events
        .lines()
        .map(|line| third(line).unwrap_or_else(|| line.to_owned()));
    let events = lines.collect::<Vec<_>>().join("\n");
    let arguments = "--compare a --shares a=0.5,b=0.25,c=0.25 --metrics hit_rate,mrr --k 1 --primary hit_rate@1 --guardrail mrr=0.5";
    let shown = printed(&arguments.split(' ').collect::<Vec<_>>(), &events);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "e: 2 arms vs a, 3,000 users, traffic split OK (p = 1)");
    assert_eq!(
        shown.lines().filter(|line| line.starts_with('─')).count(),
        1,
        "{shown}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(lines[2])[..4],
        ["e", "arm", "a", "value"].map(str::to_owned)
    );
    assert_eq!(words(lines[4]), ["users", "b", "1500", "750"]);
    assert_eq!(words(lines[5]), ["c", "1500", "750"]);
    let row = |start: &str| {
        let at = lines
            .iter()
            .position(|line| line.trim_start().starts_with(start))
            .expect("a row");
        [words(lines[at]), words(lines[at + 1])]
    };
    let [b, c] = row("hit_rate@1 (primary)");
    assert_eq!((&*b[2], &*c[0]), ("b", "c"), "{shown}");
    assert_eq!([b.last(), c.last()].map(Option::unwrap), ["Better"; 2], "{shown}");
    let [b, _] = row("mrr (guardrail)");
    assert_eq!(b.last().unwrap(), "holds", "{shown}");
    assert!(shown.contains("\nb, c: Better, "), "{shown}");
}

/// Returns events with the same lists and clicks, but without a user in the selected lines.
pub fn without_users(events: &str, is_selected: impl Fn(usize) -> bool) -> String {
    let lines = events.lines().enumerate().map(|(n, line)| {
        let user = line.find(r#","user_id":"#).filter(|_| is_selected(n));
        let user = user.and_then(|start| Some((start, start + 1 + line[start + 1..].find(',')?)));
        user.map_or_else(
            || line.to_owned(),
            |(start, end)| line[..start].to_owned() + &line[end..],
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_file_without_users_is_invalid_unless_requests_were_assigned() {
    let (events, _) = with_users();
    let verdict = |events: &str, unit: &str| {
        let flags = "--compare a --shares a=.5,b=.5 --metrics hit_rate --k 1 --primary hit_rate@1 --format json --unit";
        let arguments: Vec<&str> = flags.split(' ').chain([unit]).collect();
        let json: Value = serde_json::from_str(&printed(&arguments, events)).expect("JSON");
        json["comparisons"]["e"]["b"].clone()
    };
    for (selected, reason) in [(1, "100%"), (3, "34%")] {
        let events = without_users(&events, |n| n % selected == 0);
        let invalid = verdict(&events, "user");
        assert_eq!(invalid["state"], "invalid(users)", "{invalid}");
        let text = invalid["reason"].as_str().expect("a reason");
        assert!(text.starts_with(reason), "{text}");
        assert_eq!(invalid["metrics"]["hit_rate@1"].get("lift"), None, "{invalid}");
        let notes = invalid["notes"].to_string();
        assert!(
            notes.contains(r#"set unit = \"request\" if requests are assigned"#),
            "{notes}"
        );
        let by_request = verdict(&events, "e:request");
        assert_eq!(by_request["state"], "win", "{by_request}");
        assert_eq!(by_request["notes"], json!([]));
        assert_eq!(by_request["checks"].get("srm"), None, "{by_request}");
    }
    assert_eq!(
        verdict(&without_users(&events, |n| n % 10 == 0), "user")["state"],
        "win"
    );
}

#[test]
fn users_in_two_arms_invalidate_a_comparison() {
    let (mut events, _) = with_users();
    for user in 0..100 {
        let ts_ms = MIDNIGHT_MS + 10_000_000;
        events += &format!(
            "\n{{\"type\":\"served\",\"request_id\":\"x{user}\",\"user_id\":\"u{user}\",\"ts\":{ts_ms},\"experiments\":{{\"e\":\"{}\"}},\"items\":[]}}",
            ["b", "a"][user % 2]
        );
    }
    let arguments = [
        "--compare",
        "a",
        "--shares",
        "a=0.5,b=0.5",
        "--metrics",
        "hit_rate",
        "--format",
        "json",
    ];
    let json: Value = serde_json::from_str(&printed(&arguments, &events)).expect("JSON");
    let verdict = &json["comparisons"]["e"]["b"];
    assert_eq!(verdict["state"], "invalid(multi_arm)", "{verdict}");
    assert_eq!(verdict["checks"]["multi_arm"]["share"], 100.0 / 3000.0);
    let by_request = [&arguments[..], &["--unit", "request"]].concat();
    let json: Value = serde_json::from_str(&printed(&by_request, &two_arms())).expect("JSON");
    let verdict = &json["comparisons"]["e"]["b"];
    assert_eq!(verdict["state"], "collecting", "{verdict}");
    assert_eq!(verdict["checks"], json!({}));
}

#[test]
fn wrong_comparison_settings_are_refused_with_a_fix() {
    for (arguments, reported) in [
        (&["--shares", "a=0.5,b=0.4"][..], "add up to"),
        (&["--shares", "b=0.5,x=0.5"], "no share of the control"),
        (&["--shares", "a=1.5"], "write a number above 0 and below 1"),
        (&["--primary", "hit_rate@7"], "hit_rate@10"),
        (
            &["--primary", "ctr", "--guardrail", "ctr=0.02"],
            "choose one of them",
        ),
        (&["--mde", "0"], "write a number above 0 and below 1"),
        (&["--unit", "list"], "write user or request"),
        (
            &["--unit", "request", "--primary", "lists_per_user"],
            "with --unit request no user is assigned: leave one of them out",
        ),
    ] {
        let ran = run_with_input(
            &[&["evaluate", "-", "--compare", "a"], arguments].concat(),
            &two_arms(),
        );
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    let ran = run_with_input(&["evaluate", "-", "--mde", "0.1"], &two_arms());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--compare"), "{}", ran.stderr);
}

#[test]
fn an_arm_without_a_share_is_shown_and_not_tested() {
    let (events, _) = with_users();
    let lines = events.lines().map(|line| {
        let user = line
            .split_once(r#""user_id":"u"#)
            .map(|(_, rest)| rest.split('"').next());
        let user = user.flatten().and_then(|user| user.parse().ok());
        match user.is_some_and(|user: usize| user % 4 == 1) {
            true => line.replace(r#""e":"b""#, r#""e":"c""#),
            false => line.to_owned(),
        }
    });
    let events = lines.collect::<Vec<_>>().join("\n");
    let arguments = ["--compare", "a", "--metrics", "hit_rate", "--shares", "a=.7,b=.3"];
    let table = printed(&arguments, &events);
    assert!(table.contains("\nc: not tested, it has no share\n"), "{table}");
    let json: Value = serde_json::from_str(&printed(
        &[&arguments[..], &["--format", "json"]].concat(),
        &events,
    ))
    .expect("JSON");
    let verdict = &json["comparisons"]["e"]["c"];
    for absent in ["result", "value", "state", "reason"] {
        assert_eq!(verdict.get(absent), None, "{verdict}");
    }
    let metric = &verdict["metrics"]["hit_rate"];
    assert!(metric["lift"].is_f64() && metric.get("p").is_none(), "{verdict}");
}

/// One user has half of the lists in arm b. With a cap, this user counts like any other.
#[test]
fn a_dominant_user_prevents_a_decision_unless_lists_are_capped() {
    let mut events = String::new();
    for number in 0..3000 {
        let arm = ["a", "b"][number % 2];
        // Every second list of b belongs to one user. Users of a have two lists each, so the arms have equally many.
        let user = match number % 4 {
            1 => 1,
            0 | 2 => 10 + number - number % 4,
            _ => 10 + number,
        };
        let ts = MIDNIGHT_MS + 1000 * number as i64;
        events += &json!({
            "type": "served", "request_id": format!("r{number}"), "user_id": format!("u{user}"), "ts": ts, "experiments": {"e": arm}, "items": ["x", "y"],
        })
        .to_string();
        events.push('\n');
        if number % 3 == 0 {
            events +=
                &json!({"type": "click", "request_id": format!("r{number}"), "ts": ts + 500, "item": "x"})
                    .to_string();
            events.push('\n');
        }
    }
    let verdict = |more: &[&str]| -> Value {
        let arguments = [
            &[
                "evaluate",
                "-",
                "--compare",
                "a",
                "--metrics",
                "hit_rate",
                "--k",
                "1",
                "--shares",
                "a=.5,b=.5",
                "--primary",
                "hit_rate@1",
                "--format",
                "json",
            ],
            more,
        ]
        .concat();
        let ran = run_with_input(&arguments, &events);
        let document: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        document["comparisons"]["e"]["b"].clone()
    };
    let open = verdict(&[]);
    assert_eq!(open["state"], "invalid(users)", "{open}");
    assert_eq!(open["reason"], "one user has 50% of the lists of an arm");
    let capped = verdict(&["--max-lists-per-user", "3"]);
    assert_ne!(capped["state"], "invalid(users)", "{capped}");
    let notes = capped["notes"].to_string();
    assert!(
        notes.contains("max_lists_per_user leaves out 49.8% of the lists of b and 0.0% of a"),
        "{notes}"
    );
}

/// Compares `a` and `b` with lists of 600 users in alternating arms.
fn with_lost_lists(loses: impl Fn(usize, usize) -> bool) -> Value {
    verdict_with_lost_lists(600, loses)
}

fn verdict_with_lost_lists(n_users: usize, loses: impl Fn(usize, usize) -> bool) -> Value {
    verdict_of(&evaluated_with_lost_lists("json", n_users, loses))
}

/// The same, with this many refused clicks on a list instead of a good one.
fn with_refused_clicks(n_refused: impl Fn(usize, usize) -> usize) -> Value {
    verdict_of(&evaluated("json", 600, |_, _| false, n_refused))
}

fn verdict_of(printed: &str) -> Value {
    let document: Value = serde_json::from_str(printed).expect("JSON");
    let mut verdict = document["comparisons"]["e"]["b"].clone();
    verdict["differences"] = document["experiments"]["e"]["arms"]["b"]["differences"].clone();
    verdict
}

fn evaluated_with_lost_lists(format: &str, n_users: usize, loses: impl Fn(usize, usize) -> bool) -> String {
    evaluated(format, n_users, loses, |_, _| 0)
}

/// Prints a comparison with 6,000 lists of this many users. Lists selected by `loses_list` have no items, so they are refused. If
/// a list has refused clicks, these replace its good one; the reasons alternate.
fn evaluated(
    format: &str,
    n_users: usize,
    loses_list: impl Fn(usize, usize) -> bool,
    n_refused: impl Fn(usize, usize) -> usize,
) -> String {
    let mut events = String::new();
    for number in 0..6000 {
        let (user, ts) = (number % n_users, MIDNIGHT_MS + 1000 * number as i64);
        let arm = ["a", "b"][user % 2];
        let mut list = json!({
            "type": "served", "request_id": format!("r{number}"), "user_id": format!("u{user}"), "ts": ts,
            "experiments": {"e": arm}, "items": ["x", "y"],
        });
        if loses_list(number, user) {
            list["items"] = Value::Null;
        }
        let list = format!("{list}\n");
        let list_bytes = list.len();
        events += &list;
        if number % 5 == 0 || user % 7 == 0 {
            let mut click =
                json!({"type": "click", "request_id": format!("r{number}"), "ts": ts + 500, "item": "x"});
            let n_refused = n_refused(number, user);
            if n_refused > 0 {
                match number % 3 {
                    0 => click["ts"] = json!("2025-11-20T00:00:00"),
                    1 => click["item"] = json!({ "sku": "x" }),
                    _ => click["item"] = Value::Null,
                }
            }
            // Half of the clicks come before their lists.
            let at = if number % 2 == 0 {
                events.len() - list_bytes
            } else {
                events.len()
            };
            events.insert_str(at, &format!("{click}\n").repeat(n_refused.max(1)));
        }
    }
    let arguments = format!("evaluate - --compare a --metrics hit_rate --k 1 --format {format}");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    run_with_input(&arguments, &events).stdout
}

#[test]
fn an_arm_that_loses_lists_is_invalid_unless_few_clients_are_affected() {
    let lost = with_lost_lists(|number, user| user % 2 == 1 && number % 9 == 0);
    assert_eq!(lost["state"], "invalid(refused)", "{lost}");
    let reason = "11.1% of the arm's lists were refused or lost a click, but 0.0% of its control's lists";
    assert_eq!(lost["reason"], reason);
    assert_eq!(lost["checks"]["refused"]["control"], 0.0);
    let notes = lost["notes"].to_string();
    assert!(
        notes.contains("11.1% of the lists of b were refused or lost a click"),
        "{notes}"
    );

    // All lists of three clients are refused, 1% of the arm's.
    let few = with_lost_lists(|_, user| [1, 201, 401].contains(&user));
    assert_eq!(few["state"], "no_decision", "{few}");
    let both = with_lost_lists(|number, _| number % 9 == 0);
    assert_eq!(both["state"], "no_decision", "{both}");
    assert_eq!(with_lost_lists(|_, _| false)["checks"].get("refused"), None);
}

/// Users 0, 2, 4, … have arm `a`, and users 1, 3, 5, … have `b`. A third of the lists have a click.
#[test]
fn an_arm_that_loses_clicks_is_invalid_unless_the_control_loses_as_many() {
    let lost = with_refused_clicks(|number, user| usize::from(user % 2 == 1 && number % 4 == 1));
    assert_eq!(lost["state"], "invalid(refused)", "{lost}");
    assert_eq!(lost["checks"]["refused"]["control"], 0.0);
    let metric = lost["metrics"]["hit_rate@1"].as_object().expect("it is counted");
    assert!(
        !metric.contains_key("lift") && !metric.contains_key("p"),
        "{lost}"
    );
    assert_eq!(lost["differences"], Value::Null);

    let both = with_refused_clicks(|number, _| usize::from(number % 4 < 2));
    assert_eq!(both["state"], "no_decision", "{both}");
    let shares = ["arm", "control"].map(|side| both["checks"]["refused"][side].as_f64());
    assert!(shares[0] > Some(0.1) && shares[1] > Some(0.1), "{both}");
    assert!(both["differences"]["hit_rate@1"]["percent"].is_number(), "{both}");
}

/// A tenth of the clicks of both arms are refused, about 200. One client of `b` repeats a refused click on each of its lists.
#[test]
fn a_broken_client_with_a_third_of_all_refused_clicks_leaves_a_comparison_valid() {
    for seed in 0..10 {
        // Such users click on each of their ten lists.
        let broken = 7 * (2 * seed + 1);
        let verdict = with_refused_clicks(|number, user| match user == broken {
            true => 10,
            false => usize::from((number * 31 + seed * 7) % 100 < 10),
        });
        assert_eq!(verdict["state"], "no_decision", "{seed}: {verdict}");
        let shares = ["arm", "control"].map(|side| verdict["checks"]["refused"][side].as_f64());
        let [arm, control] = shares.map(|share| share.expect("some are refused"));
        assert!(arm - control > 0.015, "{seed}: {arm} {control}");
    }
}

#[test]
fn an_arm_that_loses_lists_has_no_lift_in_any_format() {
    let loses = |number: usize, user: usize| user % 2 == 1 && number.is_multiple_of(9);
    let lost = verdict_with_lost_lists(3000, loses);
    let metric = lost["metrics"]["hit_rate@1"].as_object().expect("it is counted");
    let keys: Vec<&str> = metric.keys().map(String::as_str).collect();
    assert_eq!(keys, ["arm", "control", "information", "parts", "role"], "{lost}");
    assert_eq!(lost["differences"], Value::Null);
    let sound = verdict_with_lost_lists(3000, |_, _| false);
    assert!(sound["metrics"]["hit_rate@1"]["p"].is_number(), "{sound}");
    assert!(
        sound["differences"]["hit_rate@1"]["percent"].is_number(),
        "{sound}"
    );

    let csv = evaluated_with_lost_lists("csv", 3000, loses);
    let row = csv.lines().find(|line| line.contains(",b,hit_rate,1,"));
    let row = row.expect("a row of the metric");
    assert!(row.ends_with(",,,,,,,"), "{row}");
    let table = evaluated_with_lost_lists("table", 3000, loses);
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with(" hit_rate"))
        .collect();
    assert!(
        rows.len() == 2 && rows.iter().all(|row| !row.contains('%')),
        "{table}"
    );
    assert!(
        table.contains("\nb: Invalid, 11.1% of the arm's lists"),
        "{table}"
    );
}

/// One user has a tenth of b's lists, which is twice the limit for a warning but far from a third.
#[test]
fn a_dominant_user_causes_a_warning_without_the_id() {
    let events: Vec<String> = (0..1000)
        .map(|number| {
            let user = if number % 20 == 1 { 1 } else { 10 + number };
            let arm = ["a", "b"][number as usize % 2];
            json!({
                "type": "served", "request_id": format!("r{number}"), "user_id": format!("bot-{user}"),
                "ts": MIDNIGHT_MS + number, "experiments": {"e": arm}, "items": ["x"],
            })
            .to_string()
        })
        .collect();
    let events = events.join("\n");
    let warned = |more: &[&str], limit: &str| {
        let mut command = program(&[&["evaluate", "-", "--compare", "a"], more].concat());
        command.env("ABGAUGE_LIMITS__MAX_USER_SHARE", limit);
        let ran = assert_cmd::Command::from_std(command)
            .write_stdin(&*events)
            .output();
        String::from_utf8(ran.expect("abgauge starts").stderr).expect("UTF-8")
    };
    let reported = "warning: experiment `e`: one user has about 10.0% of the lists of the arm b, more than limits.max_user_share (5%): ";
    let text = warned(&[], "0.05");
    assert!(text.contains(reported), "{text}");
    assert!(!text.contains("bot-") && !text.contains("arm a,"), "{text}");
    for (more, limit) in [(&[][..], "0.1"), (&["--max-lists-per-user", "20"][..], "0.05")] {
        let text = warned(more, limit);
        assert!(!text.contains("one user"), "{limit}: {text}");
    }
}
