//! `abgauge plan --from` against a server with handwritten answers.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::MIDNIGHT_MS;
use crate::answering::server;
use crate::support::program::{Ran, file, program, run, temporary_dir};

const DAY_MS: i64 = 86_400_000;

/// Runs `plan` against a server with this answer.
fn asked(status: &str, body: &str, arguments: &[&str]) -> Ran {
    let (url, _heads) = server(status, body);
    run(&[&["plan", "--from", &url], arguments].concat())
}

/// Returns the answer of a daemon with these `experiments` by name.
fn reported(experiments: &Value) -> String {
    json!({"version": 1, "experiments": experiments, "windows": ["1h", "total"], "stream": {"ready": true, "waiting_for": []}})
        .to_string()
}

/// Returns four days of an experiment with two arms, and its state after two days. Since then the information about `ctr` has
/// doubled. That about `mrr`, from the same users, has grown by √2.
fn ranker() -> Value {
    let arms = |ctr: f64, mrr: f64| {
        json!({
            "blend": {"ctr": 2.0 * ctr, "mrr": mrr},
            "neural": {"ctr": ctr, "mrr": mrr},
        })
    };
    let comparison = json!({
        "version": 1, "state": "no_decision", "reason": "4 of 7 days", "metrics": {
            "ctr": {"role": "primary", "control": 0.125, "information": 0.5},
            "mrr": {"role": "primary", "control": 0.25},
            "hit_rate": {"role": "secondary", "control": 0.5},
        },
    });
    json!({
        "control": "base",
        "looks": {
            "as_of": MIDNIGHT_MS + 4 * DAY_MS, "start": MIDNIGHT_MS, "waits_for": 0, "given_up": false, "no_users": null,
            "power": {
                "since": MIDNIGHT_MS, "mde": 0.05, "alpha": 0.1, "design": "planned",
                "needs": {"sequence": 12.0, "planned": 6.0, "strict": 24.0},
                "hypotheses": 4, "guardrails": 0, "min_days": 7.0,
                "arms": arms(6.0, 6.0),
                "earlier": {"as_of": MIDNIGHT_MS + 2 * DAY_MS, "arms": arms(3.0, 6.0 / 2.0_f64.sqrt())},
            },
        },
        "arms": {
            "base": {"last_list_ms": 1, "windows": {}},
            "blend": {"comparison": comparison},
            "neural": {"comparison": comparison},
        },
    })
}

/// Such a span used to be reported as −20,774 days of lists, and a plan was computed from it.
#[test]
fn a_span_caused_by_a_wrong_timestamp_is_refused() {
    for (as_of, reported) in [
        (
            MIDNIGHT_MS - 20_774 * DAY_MS,
            "its lists would span -20774 days, and 0 to 3650 are believed: a time in it is wrong",
        ),
        (MIDNIGHT_MS + 9_000 * DAY_MS, "its lists would span 9000 days"),
        (
            MIDNIGHT_MS + DAY_MS,
            "its earlier analysis does not lie between its start and its latest analysis",
        ),
    ] {
        let mut experiment = ranker();
        experiment["looks"]["as_of"] = as_of.into();
        let ran = asked("200 OK", &self::reported(&json!({"ranker": experiment})), &[]);
        assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{as_of}");
        assert!(
            ran.stderr.contains(&format!("error: ranker: {reported}")),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_daemon_with_a_planned_end_is_shown_with_its_date() {
    let mut experiment = ranker();
    experiment["arms"]["neural"]["comparison"]["planned_end"] = (MIDNIGHT_MS + 7 * DAY_MS).into();
    let body = reported(&json!({"ranker": experiment}));
    let ran = asked("200 OK", &body, &[]);
    assert!(
        ran.stdout
            .contains("(* as it is tested)\nplanned end: Thu 27 Nov 2025\nstop any time: "),
        "{}",
        ran.stdout
    );
    // The planned look of `mrr` needs 11.2 days.
    assert!(
        ran.stderr
            .contains("note: ranker: the planned end is too early to find 5% with power 80%"),
        "{}",
        ran.stderr
    );
    let json = asked("200 OK", &body, &["--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let plan = &json["plans"]["ranker"];
    assert_eq!(
        [&plan["planned_end"], &plan["since"]],
        [MIDNIGHT_MS + 7 * DAY_MS, MIDNIGHT_MS]
    );
}

#[test]
fn days_are_forecast_from_the_information_of_two_looks() {
    let body = reported(&json!({"ranker": ranker()}));
    let ran = asked("200 OK", &body, &[]);
    let expected = "\
recommended for the next experiment like ranker: planned_days = 14
days to find 5% with power 80%, from 4.0 days of lists since 2025-11-20T00:00:00Z

 ranker         base   stop any time   fixed end *   strict
 blend: ctr   0.1250        3.6         3.3     12.4
 blend: mrr   0.2500       40.4        11.2    152.7
 neural: ctr  0.1250        9.3         6.7     24.7
 neural: mrr  0.2500       40.4        11.2    152.7

in whole weeks: stop any time 6 weeks (Thu 1 Jan 2026), fixed end 2 weeks (Thu 4 Dec 2025), strict 22 weeks (Thu 23 Apr 2026) (* as it is tested)
stop any time: can decide every week; fixed end: mostly on one planned day; strict: every week, each arm by its own interval
";
    let plain = |text: &str| {
        text.replace('─', "")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(plain(&ran.stdout), plain(expected), "{}", ran.stderr);
    assert_eq!(ran.code, Some(0));
    for note in [
        "note: ranker: 4.0 days are less than a week, but weekdays differ\n",
        "note: ranker: mrr: doubling the duration adds only 1.4 times the information",
    ] {
        assert!(ran.stderr.contains(note), "{note}: {}", ran.stderr);
    }

    let ran = asked("200 OK", &body, &["--format", "json"]);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let plan = &found["plans"]["ranker"];
    for (field, value) in [
        ("control", json!("base")),
        ("mde", json!(0.05)),
        ("alpha", json!(0.1)),
        ("days", json!(4.0)),
        ("since", json!(MIDNIGHT_MS)),
        ("design", json!("planned")),
        ("weeks", json!({"planned": 2, "sequence": 6, "strict": 22})),
        (
            "ends",
            json!({"planned": 1_764_806_400_000_i64, "sequence": 1_767_225_600_000_i64, "strict": 1_776_902_400_000_i64}),
        ),
    ] {
        assert_eq!(plan[field], value, "{field}");
    }
    let ctr = &plan["arms"]["neural"]["metrics"]["ctr"];
    // This is (Φ.isf(0.1 w_2/8) + Φ.isf(0.2))² at the second look. By day 7 the information for the first look is not
    // reached.
    let needed = 13.957419035769217;
    let sequence = &ctr["sequence"];
    assert_eq!(sequence["weeks"], 2);
    for (field, expected) in [
        ("days", 4.0 * needed / 6.0),
        ("information", 6.0 / needed),
        ("information_per_day", 1.5 / needed),
    ] {
        let found = sequence[field].as_f64().expect("a number");
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{field}: {found}, expected {expected}"
        );
    }
    assert_eq!((&ctr["control"], &ctr["growth"]), (&json!(0.125), &json!(1.0)));
}

#[test]
fn forecasts_within_the_first_two_days_are_proportional() {
    let mut experiment = ranker();
    experiment["looks"]["as_of"] = json!(MIDNIGHT_MS + DAY_MS);
    experiment["looks"]["power"]["earlier"] = Value::Null;
    let ran = asked(
        "200 OK",
        &reported(&json!({"ranker": experiment})),
        &["--format=json"],
    );
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let mrr = &found["plans"]["ranker"]["arms"]["neural"]["metrics"]["mrr"];
    // x is 6 after a day, and the first look needs (Φ.isf(0.1 w_1/8) + Φ.isf(0.2))².
    let days = mrr["sequence"]["days"].as_f64().expect("a number");
    assert!((days / (10.687950809073005 / 6.0) - 1.0).abs() < 1e-9, "{days}");
    assert_eq!(mrr.get("growth"), None);
    assert!(
        ran.stderr.contains("days are extrapolated in proportion"),
        "{}",
        ran.stderr
    );
}

#[test]
fn experiments_without_a_forecast_give_the_reason() {
    let without = |change: &dyn Fn(&mut Value)| {
        let mut experiment = ranker();
        change(&mut experiment);
        experiment
    };
    let collecting = without(&|it| {
        it["looks"]["power"]["arms"] = json!({"blend": {}, "neural": {}});
        it["looks"]["power"]["earlier"] = Value::Null;
        for arm in ["blend", "neural"] {
            it["arms"][arm]["comparison"]["state"] = json!("collecting");
            it["arms"][arm]["comparison"]["reason"] = json!("users in 131 of 220 buckets");
        }
    });
    let without_control = without(&|it| {
        it["looks"]["power"] = Value::Null;
        it["arms"] = json!({"base": {}, "neural": {}});
    });
    let others = [
        (
            "early",
            without(&|it| it["looks"] = json!({"as_of": null, "given_up": false})),
            "there is no analysis yet",
        ),
        (
            "free",
            without_control,
            "it has no control: set `control` and `primary` under [experiments.free]",
        ),
        (
            "given",
            without(&|it| it["looks"]["given_up"] = json!(true)),
            "raise limits.max_statistics",
        ),
        (
            "old",
            without(&|it| it["looks"]["power"] = Value::Null),
            "it is another version",
        ),
        (
            "poor",
            collecting,
            "there is too little data yet, users in 131 of 220 buckets",
        ),
        (
            "unasked",
            json!({"arms": {"a": {}}}),
            "it has no control: set `control` and `primary` under [experiments.unasked]",
        ),
    ];
    let all = |kind: &str, ran: &Ran| {
        for (name, _, why) in &others {
            let line = ran
                .stderr
                .lines()
                .find(|line| line.starts_with(&format!("{kind}: {name}: ")));
            assert!(
                line.is_some_and(|line| line.contains(why)),
                "{name}: {}",
                ran.stderr
            );
        }
    };
    let mut experiments: serde_json::Map<String, Value> = others
        .iter()
        .map(|(name, experiment, _)| ((*name).to_owned(), experiment.clone()))
        .collect();
    let ran = asked("200 OK", &reported(&json!(experiments)), &[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(65), ""));
    all("error", &ran);

    // One arm is invalid, and nothing is known of the other.
    let mut ranker = ranker();
    ranker["looks"]["power"]["arms"]["neural"] = json!({});
    ranker["arms"]["blend"]["comparison"]["state"] = json!("invalid(srm)");
    ranker["arms"]["blend"]["comparison"]["reason"] = json!("users are not split as planned, p < 0.001");
    experiments.insert("ranker".to_owned(), ranker);
    let ran = asked("200 OK", &reported(&json!(experiments)), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    all("note", &ran);
    let doubt = "warning: ranker: blend: invalid(srm), users are not split as planned, p < 0.001\n";
    assert!(ran.stderr.contains(doubt), "{}", ran.stderr);
    let words = |name: &str| {
        let row = ran
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        row.map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(words("neural: ctr").expect("a row")[2..], ["–", "–", "–", "–"]);
    assert_eq!(
        words("blend: ctr").expect("a row")[2..],
        ["0.1250", "3.6", "3.3", "12.4"]
    );
}

#[test]
fn a_daemon_without_an_answer_is_named_with_a_fix() {
    let empty = reported(&json!({}));
    let waiting = empty.replace(
        "\"waiting_for\":[]",
        "\"waiting_for\":[\"partition 3 of topic served\"]",
    );
    let other = empty.replace("\"version\":1", "\"version\":2");
    for (status, body, why) in [
        (
            "401 Unauthorized",
            "",
            "requires credentials: give --token-file FILE",
        ),
        (
            "404 Not Found",
            "",
            "has no /api/v1/experiments: --from is the address of abgauge's page",
        ),
        (
            "503 Service Unavailable",
            "try later\nor never",
            "answers 503 Service Unavailable: try later\n",
        ),
        ("302 Found", "", "redirects are not followed"),
        ("200 OK", "<html>", "does not answer with abgauge's numbers"),
        (
            "200 OK",
            &other,
            "in version 2 of their format, but this program reads version 1",
        ),
        ("200 OK", &empty, "has no list of any experiment yet"),
        ("200 OK", &waiting, "is not ready: partition 3 of topic served"),
    ] {
        let ran = asked(status, body, &[]);
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{status}");
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = format!("http://{}", listener.local_addr().expect("it listens"));
    let ran = run(&["plan", "--from", &silent, "--timeout", "50ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("no answer within 50ms (--timeout)"),
        "{}",
        ran.stderr
    );
    drop(listener);
    let ran = run(&["plan", "--from", &silent]);
    assert_eq!(ran.code, Some(1));
    for word in ["does not answer", "onnection refused", "http.listen"] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
}

#[test]
fn a_token_is_sent_and_never_shown() {
    let dir = temporary_dir();
    let token = file(&dir, "token", "c0ffee00c0ffee00\n");
    let (url, heads) = server("401 Unauthorized", "");
    let ran = run(&["plan", "--from", &format!("{url}/tools/"), "--token-file", &token]);
    let head = heads.recv().expect("it was asked");
    assert!(
        head.starts_with("GET /tools/api/v1/experiments HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("authorization: Bearer c0ffee00c0ffee00\r\n"),
        "{head}"
    );
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("rejects the token of --token-file"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("c0ffee"), "{}", ran.stderr);
    let empty = file(&dir, "empty", "\n");
    for (token, why) in [(&*empty, "is empty"), ("/absent", "cannot read the file /absent")] {
        let ran = run(&["plan", "--from", &url, "--token-file", token]);
        assert_eq!(ran.code, Some(1));
        assert!(
            ran.stderr.contains("--token-file: ") && ran.stderr.contains(why),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn flags_of_files_and_of_a_daemon_exclude_each_other() {
    const URL: &str = "http://127.0.0.1:1";
    for (arguments, why) in [
        (
            &["--from", URL, "events.jsonl"][..],
            "the argument '[FILE]...' cannot be used with '--from <URL>'",
        ),
        (
            &["--from", URL, "--compare", "a"],
            "the argument '--compare <CONTROL>' cannot be used with",
        ),
        (
            &["--from", URL, "--k", "5"],
            "the argument '--k <K,…>' cannot be used with",
        ),
        (
            &["--from", URL, "--alpha", "0.1"],
            "the argument '--alpha <PROBABILITY>' cannot be used with",
        ),
        (
            &["--from", "localhost:9464"],
            "write the address of the daemon's page, such as http://localhost:9464",
        ),
        (
            &["--from", "http://user:hunter2@a"],
            "give a token by --token-file FILE",
        ),
        (
            &["--from", URL, "--ca-file", "a.pem"],
            "--ca-file has no effect on plain HTTP",
        ),
        (
            &[
                "events.jsonl",
                "--compare",
                "a",
                "--primary",
                "ctr",
                "--token-file",
                "t",
            ],
            "--from <URL>",
        ),
        (&[], "--primary <METRIC,…>"),
    ] {
        let ran = run(&[&["plan"], arguments].concat());
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    // These variables are for other commands and must be ignored.
    let (url, _heads) = server("200 OK", &reported(&json!({"ranker": ranker()})));
    let mut command = program(&["plan", "--from", &url]);
    command
        .env("ABGAUGE_CONFIG", "/absent.toml")
        .env("ABGAUGE_EVALUATE_K", "5");
    let ran: Ran = command.output().expect("abgauge starts").into();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
