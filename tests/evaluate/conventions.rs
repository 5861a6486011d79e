//! Conventions: the values of other packages, independent of the order of lines, and the choice of metrics.

use std::collections::BTreeMap;

use crate::support::program::{file, run, run_with_input, temporary_dir};
use crate::{ALL, CATALOG, EVENTS, EXPECTED, click, document, printed, two_arms};

/// Every value computed by third-party packages, for all profiles in one run.
#[test]
fn all_conventions_together_give_the_numbers_of_their_sources() {
    let ran = document(
        &["--convention", ALL, "--k", "1,2,3,5,10,20", "--catalog", CATALOG],
        EVENTS,
    );
    let expected: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> =
        serde_json::from_str(EXPECTED).expect("JSON");
    let mut n_compared = 0;
    for (profile, arms) in &expected {
        for (arm, values) in arms {
            let ours = &ran["profiles"][profile]["experiments"]["ranker"]["arms"][arm]["metrics"];
            for (key, value) in values {
                let our = ours[key]
                    .as_f64()
                    .unwrap_or_else(|| panic!("{profile} {arm} has no {key}"));
                assert!(
                    (our - value).abs() < 1e-9,
                    "{profile} {arm} {key}: {our}, not {value}"
                );
                n_compared += 1;
            }
        }
    }
    assert_eq!(n_compared, 1137);
}

/// The values are those in docs/metrics.md.
#[test]
fn five_conventions_give_one_list_different_map_values() {
    let list = r#"{"type":"served","request_id":"r","ts":1763596800000,"experiments":{"e":"a"},"items":["a","b","c","d","e"]}"#;
    let clicks = ["b", "e", "z"].map(|item| click("r", 1_763_596_800_001, item));
    let events = format!("{list}\n{}", clicks.join("\n"));
    let by_new_names_too = format!("{ALL},summed,ap_over_k");
    let arguments = ["--convention", &by_new_names_too, "--metrics", "map", "--k", "10"];
    let profiles = &document(&arguments, &events)["profiles"];
    for (profile, map) in [
        ("seed-4", 0.09),
        ("ap_over_k", 0.09),
        ("rs_metrics", 0.18),
        ("ranx", 0.3),
        ("default", 0.45),
        ("seed-0", 0.9),
        ("summed", 0.9),
    ] {
        let ours = profiles[profile]["experiments"]["e"]["arms"]["a"]["metrics"]["map@10"].as_f64();
        assert!(
            ours.is_some_and(|ours| (ours - map).abs() < 1e-9),
            "{profile}: {ours:?}"
        );
    }
}

#[test]
fn the_order_of_lines_changes_no_byte() {
    // Every seventh line is repeated, lists and clicks.
    let mut lines: Vec<&str> = EVENTS.lines().collect();
    let repeated: Vec<&str> = lines.iter().copied().step_by(7).collect();
    lines.extend(repeated);
    let (clicks, lists): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.contains("\"click\""));
    assert!(!clicks.is_empty() && !lists.is_empty());
    // A step coprime to the length visits every line once.
    let stepped = |step: usize| -> Vec<&str> {
        assert_ne!(lines.len() % step, 0);
        (0..lines.len()).map(|i| lines[i * step % lines.len()]).collect()
    };
    let orders = [
        [clicks.clone(), lists.clone()].concat(),
        lines.iter().rev().copied().collect(),
        stepped(1009),
        stepped(2003),
    ];
    for format in ["json", "csv", "table"] {
        let arguments = [
            "--convention",
            "default,rs_metrics,seed-0,jurity",
            "--catalog",
            CATALOG,
            "--window",
            "5s",
            "--format",
            format,
        ];
        let in_order = printed(&arguments, &lines.join("\n"));
        assert!(in_order.contains("neural"), "{in_order}");
        for order in &orders {
            assert!(printed(&arguments, &order.join("\n")) == in_order, "{format}");
        }
    }
}

#[test]
fn events_are_read_from_several_files_and_standard_input() {
    let dir = temporary_dir();
    let lines: Vec<&str> = EVENTS.lines().collect();
    let (clicks, lists): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.contains("\"click\""));
    let [clicks, lists] = [clicks, lists].map(|lines| lines.join("\n"));
    let paths = [file(&dir, "clicks", &clicks), file(&dir, "lists", &lists)];
    let expected = printed(&["--format", "json"], EVENTS);
    let from_two = run(&["evaluate", &paths[0], &paths[1], "--format", "json"]);
    assert_eq!(from_two.stdout, expected);
    let mixed = run_with_input(&["evaluate", &paths[0], "-", "--format", "json"], &lists);
    assert_eq!(mixed.stdout, expected);
}

#[test]
fn each_convention_shows_its_own_metrics_by_default() {
    let names = |arguments: &[&str], profile: &str| -> Vec<String> {
        let ran = document(arguments, EVENTS);
        let of = match ran.get("profiles") {
            Some(profiles) => &profiles[profile],
            None => &ran,
        };
        let metrics = of["experiments"]["ranker"]["arms"]["control"]["metrics"].as_object();
        let whole = metrics.into_iter().flat_map(|metrics| metrics.keys());
        whole.filter(|key| !key.contains('@')).cloned().collect()
    };
    let usual = ["ctr", "hit_rate", "map", "mrr", "ndcg", "precision", "recall"];
    let of_ranx = ["hit_rate", "hits", "map", "mrr", "ndcg", "precision", "recall"];
    assert_eq!(names(&[], "default"), usual);
    assert_eq!(names(&["--convention", "ranx"], "ranx"), of_ranx);
    let both = ["--convention", "ranx,default"];
    assert_eq!(
        (names(&both, "default"), names(&both, "ranx")),
        (
            usual.map(str::to_owned).to_vec(),
            of_ranx.map(str::to_owned).to_vec(),
        )
    );
    assert_eq!(names(&["--catalog", CATALOG], "default").len(), 11);
    assert_eq!(
        names(&["--metrics", "mrr,hit_ratio"], "default"),
        ["hit_rate", "mrr"]
    );
    assert_eq!(names(&["--metrics", "mar,mrr"], "default"), ["mar", "mrr"]);
}

/// `rs_metrics` used to mean its release 0.3.0 and `replay` its dicts without a word.
#[test]
fn a_former_name_is_explained_with_its_other_profile() {
    let dir = temporary_dir();
    for (name, current, other) in [
        (
            "rs_metrics",
            "rs_metrics_0.3.0 (rs_metrics 0.3.0)",
            "rs_metrics_0.6.0 (rs_metrics 0.6.0)",
        ),
        (
            "replay",
            "replay_dicts (RePlay 0.22.0)",
            "replay_tables (RePlay 0.22.0)",
        ),
    ] {
        let explained =
            format!("{name} is the former name of the profile {current}; {other} gives other numbers\n");
        let text = format!("kafka.brokers = \"localhost:9092\"\nmetrics.profile = \"{name}\"\n");
        let config = file(&dir, "abgauge.toml", &text);
        for arguments in [
            ["evaluate", "-", "--convention", name],
            ["evaluate", "-", "--config", &config],
        ] {
            let ran = run_with_input(&arguments, &two_arms());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let note = format!("note: {explained}");
            assert!(ran.stderr.contains(&note), "{arguments:?}: {}", ran.stderr);
        }
        let shown = run(&["profiles", name]).stdout;
        assert!(shown.contains(&format!("note: {explained}")), "{shown}");
        let checked = run(&["check", "--config", &config]).stdout;
        assert!(
            checked.contains(&format!("metrics.profile: {explained}")),
            "{checked}"
        );
    }
    let ran = run_with_input(&["evaluate", "-", "--convention", "replay_dicts"], &two_arms());
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
}

#[test]
fn the_catalogue_can_be_standard_input() {
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lists-a.events.jsonl");
    let items = std::fs::read_to_string(CATALOG).expect("the catalogue");
    let ran = run_with_input(&["evaluate", events, "--catalog", "-", "--format", "csv"], &items);
    assert_eq!(
        (ran.code, ran.stderr.contains("catalogue")),
        (Some(0), false),
        "{}",
        ran.stderr
    );
    let named = run_with_input(&["evaluate", events, "--catalog", CATALOG, "--format", "csv"], "");
    assert_eq!(ran.stdout, named.stdout);
}

#[test]
fn catalogue_metrics_are_omitted_with_a_note_or_refused_if_named() {
    let reported =
        |arguments: &[&str]| run_with_input(&[&["evaluate", "-"], arguments].concat(), &two_arms()).stderr;
    let note = reported(&["--convention", "rs_metrics_0.3.0,ranx"]);
    for word in [
        "note: ",
        "alpha_ndcg, coverage, popularity, surprisal",
        "--catalog FILE",
    ] {
        assert!(note.contains(word), "{note}");
    }
    assert_eq!(note.lines().count(), 1, "{note}");
    assert_eq!(reported(&["--convention", "ranx"]), "");
    // No flag names them.
    for arguments in [&[][..], &["--convention", "default"]] {
        assert_eq!(reported(arguments), "", "{arguments:?}");
    }
    assert_eq!(reported(&["--metrics", "ctr"]), "");

    let refused = run_with_input(&["evaluate", "-", "--metrics", "ctr,coverage"], &two_arms());
    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    for word in ["'coverage'", "--catalog FILE"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
}
