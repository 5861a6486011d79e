//! Several experiments in one file, each with its own control and settings.

use serde_json::{Value, json};

use crate::support::program::run_with_input;
use crate::{MIDNIGHT_MS, click, document};

/// Returns events of 1,200 users, each in `ranker` (`base`, `neural`) and in `layout` (`grid`, `rows`), with two lists.
/// `third` has one arm.
fn events() -> String {
    let mut lines = Vec::new();
    for user in 0..1200_usize {
        let arms = format!(
            r#"{{"ranker":"{}","layout":"{}"{}}}"#,
            ["base", "neural"][user % 2],
            ["grid", "rows"][user / 2 % 2],
            if user == 0 { r#","third":"x""# } else { "" }
        );
        for n in 0..2 {
            let (id, ts_ms) = (format!("{user}-{n}"), MIDNIGHT_MS + user as i64);
            lines.push(format!(
                r#"{{"type":"served","request_id":"{id}","user_id":"u{user}","ts":{ts_ms},"experiments":{arms},"items":["i","j"]}}"#
            ));
            if user * 7 % 10 < 3 + n {
                lines.push(click(&id, ts_ms + 1, "j"));
            }
        }
    }
    lines.join("\n")
}

#[test]
fn each_experiment_has_its_own_control_shares_metrics_and_effect() {
    let events = events();
    let of_both = ["--compare", "ranker=base", "--compare", "layout=grid"];
    let own = [
        "--shares",
        "ranker:base=.5,neural=.5",
        "--shares",
        "layout:grid=.25,rows=.75",
        "--primary",
        "ranker:mrr",
        "--primary",
        "ctr",
        "--guardrail",
        "layout:mrr=.03",
        "--mde",
        "layout:.02",
    ];
    let json = document(&[&of_both[..], &own].concat(), &events);
    let [ranker, layout] = [("ranker", "neural"), ("layout", "rows")]
        .map(|(experiment, arm)| json["comparisons"][experiment][arm].clone());
    assert_eq!(
        [&ranker["control"], &layout["control"]],
        [&json!("base"), &json!("grid")]
    );
    assert_eq!(json["experiments"]["layout"]["control"], "grid");
    assert_eq!(json["comparisons"].as_object().map(serde_json::Map::len), Some(2));
    let roles = |verdict: &Value| ["mrr", "ctr"].map(|id| verdict["metrics"][id]["role"].clone());
    assert_eq!(roles(&ranker), ["primary", "secondary"]);
    assert_eq!(roles(&layout), ["guardrail", "primary"]);
    // Half of the users are in an arm that expected three quarters.
    assert_eq!(layout["state"], "invalid(srm)");
    assert_ne!(ranker["state"], "invalid(srm)");
    let information = |json: &Value| {
        let metric = &json["comparisons"]["layout"]["rows"]["metrics"]["ctr"];
        metric["information"].as_f64().expect("a number")
    };
    let other = document(&[&of_both[..], &own[..10], &["--mde", ".04"]].concat(), &events);
    // The information is x = τ²/V, so it is four times as large for twice the effect.
    let ratio = information(&other) / information(&json);
    assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn a_general_control_combines_with_one_for_a_single_experiment() {
    let ctr = ["evaluate", "-", "--metrics", "ctr", "--compare"];
    let ran = run_with_input(
        &[&ctr[..], &["base", "--compare", "layout=rows"]].concat(),
        &events(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        "note: experiments without an arm base, not compared: third\n"
    );
    for reported in ["layout: grid vs rows", "ranker: neural vs base"] {
        assert!(ran.stdout.contains(reported), "{reported}: {}", ran.stdout);
    }
    let own = [&ctr[..], &["layout=rows"]].concat();
    let ran = run_with_input(&own, &events());
    assert_eq!(
        ran.stderr,
        "note: experiments without a control, not compared: ranker, third\n"
    );
    assert!(!ran.stdout.contains("neural vs"), "{}", ran.stdout);
    let csv = run_with_input(&[&own[..], &["--format", "csv"]].concat(), &events()).stdout;
    let row = |start: &str| csv.lines().find(|line| line.starts_with(start)).expect("a row");
    assert!(row("default,ranker,neural,ctr,,").ends_with(",,,,,,,"), "{csv}");
    assert!(!row("default,layout,grid,ctr,,").ends_with(','), "{csv}");
}

/// Returns events of two experiments whose controls have the same name.
fn with_one_control() -> String {
    events().replace(r#""layout":"grid""#, r#""layout":"base""#)
}

#[test]
fn general_shares_apply_to_experiments_with_those_arms() {
    let shares = ["--compare", "base", "--shares", "base=.5,neural=.5"];
    let events = with_one_control();
    let ran = run_with_input(
        &[&["evaluate", "-", "--format", "json"], &shares[..]].concat(),
        &events,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let reported = "note: layout is compared without shares: it has no arm neural; for its own arms (base, rows) give --shares \
                layout:ARM=SHARE,…\n";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let comparisons = &json["comparisons"];
    assert_eq!(comparisons["ranker"]["neural"]["checks"]["srm"]["p"], 1.0);
    let layout = &comparisons["layout"]["rows"];
    assert_eq!(layout["control"], "base");
    assert_eq!(layout["checks"].get("srm"), None, "{layout}");
    assert!(layout["metrics"]["ctr"]["lift"].is_f64(), "{layout}");

    // The note's advice works. Other settings of the experiment do not affect the shares.
    let own = ["--shares", "layout:base=.25,rows=.75"];
    let ran = run_with_input(&[&["evaluate", "-"], &shares[..], &own].concat(), &events);
    assert_eq!(ran.code, Some(0));
    assert!(!ran.stderr.contains("shares"), "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("\nrows: Invalid, users are not split as planned, "),
        "{}",
        ran.stdout
    );
    let effect = ["--mde", "layout:.1"];
    let ran = run_with_input(&[&["evaluate", "-"], &shares[..], &effect].concat(), &events);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}

#[test]
fn a_missing_arm_with_a_share_is_a_mismatch() {
    for shares in ["base=.5,neurl=.5", "ranker:base=.5,neurl=.5"] {
        let asked = ["--compare", "ranker=base", "--shares", shares];
        let ran = run_with_input(&[&["evaluate", "-"], &asked[..]].concat(), &events());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let reported = [
            "ranker: arms with a share but no list: neurl\n",
            "ranker: arms with lists but no share: neural; if the shares misspell an arm, correct its name there\n",
        ];
        for reported in reported {
            assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
        }
        assert!(ran.stdout.contains("ranker: 2 arms vs base, "), "{}", ran.stdout);
        for reported in [
            "\nneural: not tested, it has no share\n",
            "\nneurl: Invalid, users are not split as planned, ",
            "\nnote: arms with a share but no list: neurl\n",
        ] {
            assert!(ran.stdout.contains(reported), "{reported}: {}", ran.stdout);
        }
        let json = document(&asked, &events());
        let ranker = &json["comparisons"]["ranker"];
        assert_eq!(ranker["neurl"]["state"], "invalid(srm)", "{json}");
        assert_eq!(
            ranker["neurl"]["checks"]["srm"]["p"].as_f64().map(|p| p < 1e-9),
            Some(true)
        );
        // The arm is shown but not tested, because it has no share.
        assert_eq!(ranker["neural"].get("state"), None);
        assert_eq!(ranker["neural"]["notes"].as_array().map(Vec::len), Some(2));
    }
}

/// A planned third arm without users is a mismatch for the other arms too.
#[test]
fn a_missing_arm_invalidates_the_other_arms() {
    let asked = ["--compare", "base", "--shares", "base=.4,neural=.4,new=.2"];
    let json = document(&asked, &with_one_control());
    let comparisons = &json["comparisons"];
    for arm in ["neural", "new"] {
        assert_eq!(comparisons["ranker"][arm]["state"], "invalid(srm)", "{json}");
    }
    // This experiment has fewer of the planned arms, so the shares do not apply to it.
    assert_eq!(comparisons["layout"]["rows"]["state"], "no_decision", "{json}");
}

#[test]
fn names_can_contain_separators() {
    let list = |user: usize| {
        let arm = [r"a=b", r"x:y,z\\"][user % 2];
        format!(
            r#"{{"type":"served","request_id":"{user}","user_id":"{user}","ts":{MIDNIGHT_MS},"experiments":{{"e:=f":"{arm}"}},"items":["i"]}}"#
        )
    };
    let events: Vec<String> = (0..600).map(list).collect();
    let arguments = [
        "--compare",
        r"e:\=f=a\=b",
        "--shares",
        r"e\:=f:a=b=.5,x\:y\,z\\=.5",
        "--mde",
        r"e\:=f:0.1",
    ];
    let json = document(&arguments, &events.join("\n"));
    let verdict = &json["comparisons"]["e:=f"]["x:y,z\\"];
    assert_eq!(verdict["control"], "a=b", "{json}");
    assert_eq!(verdict["checks"]["srm"]["p"], 1.0);
}

#[test]
fn unknown_names_are_refused_with_the_names_in_the_file() {
    for (arguments, reported) in [
        (
            &["--compare", "rankr=base"][..],
            &[
                "'rankr' for '--compare <EXPERIMENT=CONTROL>'",
                "layout, ranker, third]",
                "exists: 'ranker'",
            ][..],
        ),
        (
            &["--compare", "ranker=grid"],
            &["'grid' for '--compare <ranker=CONTROL>'", "values: base, neural]"],
        ),
        (
            &["--compare", "other", "--compare", "layout=grid"],
            &[
                "'other' for '--compare <CONTROL>'",
                "values: base, grid, neural, rows, x]",
            ],
        ),
        (
            &["--compare", "base", "--mde", "lay:0.1"],
            &[
                "'lay' for '--mde <EXPERIMENT:SHARE>'",
                "values: layout, ranker, third]",
            ],
        ),
        (
            &[
                "--compare",
                "base",
                "--compare",
                "layout=grid",
                "--shares",
                "base=.5,neural=.5",
            ],
            &["no share of the control for layout, grid"],
        ),
        (
            &["--compare", "layout=grid", "--mde", "ranker:0.1"],
            &["ranker has no control: give --compare ranker=ARM"],
        ),
        (
            &["--compare", "base", "--compare", "grid"],
            &["--compare is given twice"],
        ),
        (
            &[
                "--compare",
                "ranker=base",
                "--mde",
                "ranker:.1",
                "--mde",
                "ranker:.2",
            ],
            &["--mde is given twice for ranker"],
        ),
        (
            &["--compare", "a=b=c"],
            &[
                "for '--compare <CONTROL>'",
                r"\= for each = that is part of a name",
            ],
        ),
        (
            &[
                "--compare",
                "base",
                "--primary",
                "mrr",
                "--guardrail",
                "ranker:mrr=.1",
            ],
            &["mrr is in both --primary and --guardrail"],
        ),
    ] {
        let ran = run_with_input(&[&["evaluate", "-"], arguments].concat(), &events());
        assert_eq!(
            (ran.code, &*ran.stdout),
            (Some(2), ""),
            "{arguments:?}: {}",
            ran.stderr
        );
        for reported in reported {
            assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
        }
    }
}

#[test]
fn metrics_per_assigned_user_can_decide_if_shares_are_given() {
    let asked = [
        "--compare",
        "base",
        "--primary",
        "lists_per_user",
        "--guardrail",
        "clicks_per_user=.1",
    ];
    let json = document(
        &[&asked[..], &["--shares", "base=.5,neural=.5"]].concat(),
        &events(),
    );
    let metrics = &json["comparisons"]["ranker"]["neural"]["metrics"];
    assert_eq!(metrics["lists_per_user"]["role"], "primary");
    assert_eq!(metrics["clicks_per_user"]["role"], "guardrail");
    assert!(metrics["clicks_per_user"]["lift"].is_f64(), "{metrics}");
    let ran = run_with_input(&[&["evaluate", "-"], &asked[..]].concat(), &events());
    assert_eq!(ran.code, Some(2));
    let reported = "lists_per_user needs shares of users: give --shares";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
}
