//! Settings from a daemon's configuration, from the environment and from flags.

use serde_json::{Value, json};

use crate::support::program::{Ran, file, program, temporary_dir};
use crate::{CATALOG, EVENTS, MIDNIGHT_MS, click, document, list, two_arms};

/// Configuration of a daemon with a catalogue and a custom profile, but without brokers.
const CONFIG: &str = r#"
[join]
attribution = "7s"
slot = "7s"

[metrics]
k = [2]
profile = ["mine", "default"]
metrics = ["map", "mrr", "coverage"]
catalog = "CATALOG"

[profile.mine]
base = "ranx"
ap_denominator = "k"
reciprocal_rank = "sum"
"#;

fn with_config(text: &str, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", &two_arms());
    let config = file(&dir, "abgauge.toml", text);
    let mut command = program(&[&["evaluate", &events, "--config", &config], arguments].concat());
    command.envs(env.iter().copied());
    command.output().expect("abgauge starts").into()
}

#[test]
fn evaluate_uses_the_configuration_of_a_daemon_and_flags_override_it() {
    let text = CONFIG.replace("CATALOG", CATALOG);
    let documents = |arguments: &[&str], env: &[(&str, &str)]| -> Value {
        let ran = with_config(&text, &[arguments, &["--format", "json"]].concat(), env);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    };
    let a = |document: &Value, profile: &str| {
        document["profiles"][profile]["experiments"]["e"]["arms"]["a"].clone()
    };
    // The click comes 8 s after the list, which is too late.
    let ours = documents(&[], &[]);
    assert_eq!(
        a(&ours, "default"),
        json!({"lists": 2, "clicks": 0, "metrics": {
            "mrr@2": 0.0, "mrr": 0.0, "map@2": 0.0, "map": 0.0, "coverage@2": 0.0, "coverage": 0.0,
        }})
    );
    assert_eq!(
        a(&ours, "mine")["metrics"],
        json!({}),
        "no list of it was clicked"
    );

    let longer = documents(&["--attribution", "8s"], &[]);
    assert_eq!(
        a(&longer, "mine")["metrics"],
        json!({"mrr@2": 0.5, "mrr": 0.5, "map@2": 0.25, "map": 0.25})
    );
    let by_env = documents(
        &["--k", "1"],
        &[
            ("ABGAUGE_JOIN__ATTRIBUTION", "8s"),
            ("ABGAUGE_EVALUATE_METRICS", "map"),
        ],
    );
    assert_eq!(a(&by_env, "mine")["metrics"], json!({"map@1": 0.0, "map": 0.25}));

    let other = documents(&["--convention", "trec_eval"], &[]);
    let b = &other["experiments"]["e"]["arms"]["b"]["metrics"];
    assert_eq!(
        *b,
        json!({"mrr": 1.0, "map@2": 1.0, "map": 1.0}),
        "coverage and mrr@2 are none of its"
    );
    let refused = with_config(&text, &["--window", "5s"], &[]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("multiple of the slot, 7s"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_configured_catalogue_is_read_only_if_a_metric_needs_it() {
    let text = CONFIG.replace("CATALOG", "no/such/file");
    assert_eq!(with_config(&text, &["--metrics", "map"], &[]).code, Some(0));
    let ran = with_config(&text, &[], &[]);
    assert_eq!(ran.code, Some(78));
    assert!(ran.stderr.contains("open no/such/file"), "{}", ran.stderr);
}

#[test]
fn a_configured_profile_can_be_named_and_a_bad_configuration_is_reported() {
    let text = "[profile.mine]\nbase = \"default\"\n";
    let ran = with_config(
        text,
        &["--convention", "mine", "--format", "csv", "--k", "1"],
        &[],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("mine,e,a,mrr,,0.25,"), "{}", ran.stdout);
    assert!(
        !ran.stdout.contains("hits"),
        "one that defines every metric shows the usual ones"
    );
    let unknown = with_config(text, &["--convention", "mein"], &[]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("lenskit, mine]"), "{}", unknown.stderr);
    let bad = with_config("[join]\nslot = 5\n", &[], &[]);
    assert_eq!((bad.code, &*bad.stdout), (Some(78), ""));
    assert!(bad.stderr.contains("join.slot"), "{}", bad.stderr);
}

#[test]
fn environment_variables_replace_flags() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", &two_arms());
    let ran = |env: &[(&str, &str)], arguments: &[&str]| -> String {
        let mut command = program(&[&["evaluate", &events], arguments].concat());
        let output = command.envs(env.iter().copied()).output();
        Ran::from(output.expect("abgauge starts")).stdout
    };
    let env = [
        ("ABGAUGE_EVALUATE_CONVENTION", "ranx,default"),
        ("ABGAUGE_EVALUATE_METRICS", "mrr"),
        ("ABGAUGE_EVALUATE_K", "1,2"),
        ("ABGAUGE_EVALUATE_ATTRIBUTION", "1h"),
        ("ABGAUGE_EVALUATE_CLICK_SKEW", "1s"),
        ("ABGAUGE_EVALUATE_CATALOG", CATALOG),
        ("ABGAUGE_EVALUATE_ALPHA", "0.4"),
        ("ABGAUGE_EVALUATE_FORMAT", "csv"),
    ];
    let flags = [
        "--convention",
        "ranx,default",
        "--metrics",
        "mrr",
        "--k",
        "2,1",
        "--format",
        "csv",
    ];
    let by_env = ran(&env, &[]);
    assert!(by_env.contains("\nranx,e,a,mrr,2,0.5,"), "{by_env}");
    assert_eq!(by_env, ran(&[], &flags));
    assert!(ran(&env, &["--format", "json"]).starts_with('{'), "flags win");
}

#[test]
fn configured_metrics_missing_from_all_named_conventions_are_an_error() {
    let text = "[metrics]\nmetrics = [\"ctr\"]\n";
    let ran = with_config(text, &["--convention", "ranx,replay"], &[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    assert!(
        ran.stderr.contains("ranx, replay defines none of the metrics"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("(ctr)"), "{}", ran.stderr);
    let ran = with_config(text, &["--convention", "ranx,replay", "--metrics", "map"], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// The arm `b` has two lists. One of them comes again 10 s later, or an hour later.
#[test]
fn copies_are_distinguished_from_lists_by_the_time_between_them() {
    let again = |after_s: i64| two_arms() + "\n" + &list("3", MIDNIGHT_MS + 1000 * after_s, r#"{"e":"b"}"#);
    let lists_of_b = |events: &str, config: &str, flags: &[&str]| {
        let dir = temporary_dir();
        let config = file(&dir, "abgauge.toml", config);
        let arguments = [&["--config", &config], flags].concat();
        document(&arguments, events)["experiments"]["e"]["arms"]["b"]["lists"].clone()
    };
    for (after_s, config, flags, expected) in [
        (10, "", &[][..], 2),
        (3600, "", &[], 3),
        (10, "", &["--same-list", "9s"], 3),
        (3600, "", &["--same-list", "2h"], 2),
        (3600, "", &["--attribution", "2h"], 2),
        (3600, "", &["--attribution", "2h", "--same-list", "0s"], 3),
        (10, "[join]\nsame_list = \"9s\"\n", &[], 3),
        (10, "[join]\nsame_list = \"9s\"\n", &["--same-list", "1m"], 2),
    ] {
        let case = format!("{after_s} {config} {flags:?}");
        assert_eq!(lists_of_b(&again(after_s), config, flags), expected, "{case}");
    }
}

/// The click of `b` is moved to 2 ms before its list.
#[test]
fn skew_comes_from_flags_and_alpha_from_the_configuration() {
    let early = two_arms().replace(&click("3", MIDNIGHT_MS + 5, "i"), &click("3", MIDNIGHT_MS, "i"));
    let clicks_of_b =
        |arguments: &[&str]| document(arguments, &early)["experiments"]["e"]["arms"]["b"]["clicks"].clone();
    assert_eq!(clicks_of_b(&[]), 0);
    assert_eq!(clicks_of_b(&["--click-skew", "1ms"]), 0);
    assert_eq!(clicks_of_b(&["--click-skew", "2ms"]), 1);

    let dir = temporary_dir();
    let config = file(&dir, "abgauge.toml", "[metrics]\nalpha = 0.25\n");
    let alpha_ndcg = |arguments: &[&str]| -> f64 {
        let fixed = ["--catalog", CATALOG, "--metrics", "alpha_ndcg"];
        let document = document(&[&fixed, arguments].concat(), EVENTS);
        let metrics = &document["experiments"]["ranker"]["arms"]["blend"]["metrics"];
        metrics["alpha_ndcg"].as_f64().expect("it is defined")
    };
    let by_file = alpha_ndcg(&["--config", &config]);
    assert_eq!(by_file, alpha_ndcg(&["--alpha", "0.25"]));
    assert_eq!(
        alpha_ndcg(&["--config", &config, "--alpha", "0.5"]),
        alpha_ndcg(&[])
    );
    assert_ne!(by_file, alpha_ndcg(&[]));
}
