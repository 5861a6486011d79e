//! `abgauge profiles`: the printed conventions are the ones used for the metrics.

use abgauge_core::metrics::Profile;
use abgauge_core::metrics::profile::CHOICES;
use serde_json::Value;

use crate::support::program::{file, quietly, run, temporary_dir};

const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lists-a.events.jsonl");
const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lists-a.catalog.jsonl");

/// Expected conventions, taken by hand from their sources: population, off-list, precision, AP, RR, NDCG ideal.
const CONVENTIONS: [[&str; 7]; 17] = [
    [
        "default",
        "all",
        "ignore",
        "k",
        "min(k,|G|)",
        "first",
        "min(k,|G|)",
    ],
    ["summed", "all", "relevant", "k (micro)", "none", "sum", "–"],
    [
        "rs_metrics_0.6.0",
        "clicked",
        "relevant",
        "min(k,L)",
        "|G|",
        "first",
        "min(k,|G|)",
    ],
    [
        "rs_metrics_0.3.0",
        "clicked",
        "relevant",
        "min(k,L)",
        "min(k,L)",
        "first",
        "min(k,L,|G|)",
    ],
    [
        "uncut",
        "clicked",
        "relevant",
        "k",
        "|G|, whole",
        "first, whole",
        "|G|, whole",
    ],
    [
        "jurity",
        "clicked",
        "relevant",
        "min(k,L)",
        "min(k,|G|)",
        "–",
        "|G|",
    ],
    [
        "ap_over_k",
        "clicked",
        "relevant",
        "k",
        "k",
        "first",
        "min(k,|G|)",
    ],
    [
        "replay_tables",
        "clicked",
        "relevant",
        "k",
        "min(k,|G|)",
        "first",
        "min(k,|G|)",
    ],
    [
        "replay_dicts",
        "all",
        "relevant",
        "k",
        "min(k,|G|)",
        "first",
        "min(k,|G|)",
    ],
    ["rectools", "clicked", "relevant", "k", "|G|", "first", "k"],
    ["ranx", "clicked", "relevant", "k", "|G|", "first", "min(k,|G|)"],
    [
        "trec_eval",
        "clicked",
        "relevant",
        "k",
        "|G|",
        "first, whole",
        "min(k,|G|)",
    ],
    [
        "recommenders",
        "clicked",
        "relevant",
        "k",
        "|G|",
        "–",
        "min(k,|G|)",
    ],
    [
        "torchmetrics",
        "with_list",
        "ignore",
        "k",
        "hits",
        "first",
        "min(k,|G|)",
    ],
    [
        "lightgbm",
        "with_list",
        "ignore",
        "–",
        "min(k,|G|)",
        "–",
        "min(k,|G|)",
    ],
    [
        "xgboost",
        "with_list",
        "ignore",
        "min(k,L)",
        "min(k,|G|)",
        "–",
        "min(k,|G|)",
    ],
    [
        "lenskit",
        "clicked",
        "relevant",
        "min(k,L)",
        "min(k,L,|G|)",
        "first",
        "min(k,|G|)",
    ],
];

/// Expected remarks on what the rows leave out.
const ALSO: [(&str, &str, &str); 9] = [
    (
        "default",
        "abgauge",
        "recall over clicked lists; mar: AR min(k,L)",
    ),
    ("summed", "ranking-metrics notebook", "recall (micro)"),
    ("uncut", "ranking-evaluation notebook", "hits"),
    (
        "jurity",
        "Jurity 2.1.0",
        "precision, map over clicked_with_list lists; ctr",
    ),
    ("rectools", "RecTools 0.19.0", "map_by_k"),
    ("ranx", "ranx 0.3.21", "hits"),
    (
        "recommenders",
        "recommenders 1.2.1",
        "precision, recall, map over clicked_with_list",
    ),
    (
        "lightgbm",
        "lightgbm 4.7.0",
        "map and ndcg are 1 without a relevant item",
    ),
    (
        "lenskit",
        "lenskit 2026.4.0",
        "precision over with_list lists; map over",
    ),
];

/// Returns the cells of a row.
fn cells(line: &str) -> Vec<&str> {
    line.split("   ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn the_table_has_the_choices_of_every_convention() {
    let shown = quietly(&["profiles"]);
    let rows: Vec<Vec<&str>> = shown.lines().map(cells).collect();
    for row in CONVENTIONS {
        assert!(rows.iter().any(|cells| *cells == row), "{row:?}: {shown}");
    }
    for (name, source, also) in ALSO {
        let is_reported = |cells: &Vec<&str>| matches!(cells.as_slice(), [ours, of, rest] if *ours == name && *of == source && rest.starts_with(also));
        assert!(rows.iter().any(is_reported), "{name}: {shown}");
    }
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}");
}

#[test]
fn the_table_explains_every_word() {
    // Long meanings are wrapped.
    let shown = quietly(&["profiles"])
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for choice in CHOICES {
        assert!(
            shown.contains(&format!("{} {}", choice.setting, choice.about)),
            "{}",
            choice.setting
        );
        for (word, meaning) in (choice.words)() {
            assert!(
                shown.contains(&format!("{word} {meaning}")),
                "{word}: {meaning}: {shown}"
            );
        }
    }
}

/// Returns the configuration at the end of `abgauge profiles NAME`.
fn own(name: &str) -> String {
    let shown = quietly(&["profiles", name]);
    let at = shown.find("[profile.mine]").unwrap_or_else(|| panic!("{shown}"));
    shown[at..].to_owned()
}

#[test]
fn a_copied_profile_gives_the_same_numbers() {
    let dir = temporary_dir();
    for profile in Profile::all() {
        let config = file(&dir, "abgauge.toml", &own(&profile.name));
        let conventions = format!("mine,{}", profile.name);
        let ran = run(&[
            "evaluate",
            EVENTS,
            "--config",
            &config,
            "--convention",
            &conventions,
            "--catalog",
            CATALOG,
            "--format",
            "json",
        ]);
        assert_eq!(ran.code, Some(0), "{}: {}", profile.name, ran.stderr);
        let numbers: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let [mine, its] = ["mine", &*profile.name].map(|name| &numbers["profiles"][name]);
        assert!(mine["experiments"]["ranker"]["arms"]["blend"]["metrics"]["map"].is_number());
        assert_eq!(mine, its, "{}", profile.name);
    }
}

#[test]
fn a_single_profile_is_shown_with_choices_metrics_and_note() {
    let shown = quietly(&["profiles", "jurity"]);
    for reported in [
        "jurity: Jurity 2.1.0\n",
        "metrics: ctr, precision, recall, map, ndcg\n",
        "note: NDCG's ideal list is not cut at k",
        "map_population          clicked_with_list   non-empty lists with a relevant item",
        "ndcg_ideal              |G|                 all relevant items",
        "\nndcg_ideal = \"|G|\"\n",
    ] {
        assert!(shown.contains(reported), "{reported}: {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
}

#[test]
fn configured_profiles_are_listed_with_the_others() {
    let dir = temporary_dir();
    let text = "[profile.mine]\nbase = \"ranx\"\nap_denominator = \"k\"\nmetrics = [\"map\", \"mrr\"]\n";
    let config = file(&dir, "abgauge.toml", text);
    let table = quietly(&["profiles", "--config", &config]);
    let row = ["mine", "clicked", "relevant", "–", "k", "first", "–"];
    assert!(table.lines().map(cells).any(|cells| cells == row), "{table}");
    assert!(table.contains("your own, based on ranx"), "{table}");
    let one = quietly(&["profiles", "mine", "--config", &config]);
    assert!(one.contains("metrics = [\"map\", \"mrr\"]"), "{one}");
    let copy = &one[one.find("[profile.mine]").expect("a configuration")..];
    let copy = file(
        &dir,
        "copy.toml",
        &copy.replace("[profile.mine]", "[profile.copy]"),
    );
    let [mine, of_copy] = [("mine", &config), ("copy", &copy)].map(|(name, config)| {
        let text = quietly(&["profiles", name, "--config", config, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        document["profiles"][name]["choices"].clone()
    });
    assert_eq!(mine["ap_denominator"], "k");
    assert_eq!(mine, of_copy);
}

#[test]
fn json_has_every_choice_of_every_profile_and_the_meaning_of_words() {
    let document: Value = serde_json::from_str(&quietly(&["profiles", "--format", "json"])).expect("JSON");
    for profile in Profile::all() {
        let ours = &document["profiles"][&profile.name];
        assert_eq!(
            (&ours["source"], &ours["note"]),
            (&Value::from(&*profile.source), &Value::from(profile.note))
        );
        assert_eq!(ours["metrics"], Value::from(profile.metrics.clone()));
        for choice in CHOICES {
            let word = (choice.word)(&profile);
            assert_eq!(ours["choices"][choice.setting], word);
            let words = (choice.words)();
            let meaning = words
                .iter()
                .find(|(known, _)| *known == word)
                .map(|(_, meaning)| *meaning);
            assert_eq!(
                document["choices"][choice.setting]["words"][word].as_str(),
                meaning
            );
        }
    }
    let text = quietly(&["profiles", "ranx", "--format", "json"]);
    let one: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(one["profiles"]["ranx"], document["profiles"]["ranx"]);
    assert_eq!(
        one["profiles"].as_object().map(|profiles| profiles.len()),
        Some(1)
    );
    let first = text.find("\"population\"").expect("a choice");
    assert!(
        first < text.find("\"ap_denominator\"").expect("a choice"),
        "in the order of the table: {text}"
    );
}

#[test]
fn an_unknown_profile_is_refused_with_a_suggestion() {
    let ran = run(&["profiles", "Ranks"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    for reported in [
        "'Ranks'",
        "trec_eval",
        "similar value exists: 'ranx'",
        "abgauge profiles",
    ] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
}
