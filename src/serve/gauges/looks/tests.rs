//! Tests of the gauges of the latest look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use abgauge_core::looks::PublishedLooks;

use super::super::tests::{Samples, parse, text};
use super::super::{Room, Scrape};
use super::*;
use crate::board::snapshot::Snapshot;
use crate::serve::fixture::{self, HIT, arm, export, looks, snapshot};

/// Board on which each arm of the look has one list.
fn board(experiment: &str) -> Snapshot {
    let arms = ["a", "b", "c"].map(|name| arm(experiment, name, [&[HIT]; 3], [&[]; 3]));
    snapshot(arms.to_vec())
}

fn scraped(snapshot: &Snapshot, shown: &PublishedLooks, config: &Export) -> Samples {
    parse(&text(&Scrape {
        snapshot,
        global: None,
        looks: shown,
        looks_of: Scope::Own,
        ranking: &fixture::ranking(),
        config,
        windows: &fixture::windows(),
        controls: &BTreeMap::new(),
    }))
}

fn scrape() -> Samples {
    scraped(&board("e"), &looks::shown(), &export())
}

/// Value of a series with the label `e` and these: `arm=b metric=ctr`.
fn value(samples: &Samples, name: &str, labels: &str) -> Option<f64> {
    let labels = labels.split_whitespace().chain(["experiment=e"]);
    let mut labels: Vec<(String, String)> = labels
        .map(|label| label.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    labels.sort();
    let value = samples.get(&(format!("abgauge_{name}"), labels))?;
    Some(value.parse().unwrap())
}

/// Values of one label among all series with this name.
fn labels<'a>(samples: &'a Samples, name: &str, label: &str) -> BTreeSet<&'a str> {
    let own = samples
        .keys()
        .filter(|(other, _)| *other == format!("abgauge_{name}"));
    let labels = own
        .flat_map(|(_, labels)| labels)
        .filter(|(name, _)| name == label);
    labels.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn an_arm_shows_its_own_intervals_and_users_as_values_of_total() {
    let samples = scrape();
    let total = "window=total view=settled scope=own";
    let of = |name: &str, arm: &str, more: &str| value(&samples, name, &format!("arm={arm} {total} {more}"));
    for (arm, hit_rate) in [("a", 0.25), ("b", 0.28), ("c", 0.5)] {
        let bound = |name| of(name, arm, "metric=hit_rate k=5");
        assert_eq!(bound("ci_lower"), Some(hit_rate - 0.05));
        assert_eq!(bound("ci_upper"), Some(hit_rate + 0.05));
        assert_eq!(of("ci_upper", arm, "metric=ctr"), Some(0.15));
        assert_eq!(of("users", arm, ""), Some(500.0));
        let top_user = value(&samples, "top_user_lists_ratio", &format!("arm={arm}"));
        assert_eq!(top_user, Some(100.0 / 4000.0));
    }
    assert_eq!(
        of("ci_lower", "b", "metric=mrr k=1"),
        None,
        "too little is known of it"
    );
}

/// An arm may have lists only in partitions that this instance does not hold.
#[test]
fn looks_at_all_partitions_have_the_global_scope_and_all_its_arms() {
    let all = board("e");
    let mut own = all.clone();
    own.arms.retain(|arm| &*arm.arm == "a");
    let scrape = |global| {
        parse(&text(&Scrape {
            snapshot: &own,
            global,
            looks: &looks::shown(),
            looks_of: Scope::Global,
            ranking: &fixture::ranking(),
            config: &export(),
            windows: &fixture::windows(),
            controls: &BTreeMap::new(),
        }))
    };
    let samples = scrape(Some(&all));
    for arm in ["a", "b", "c"] {
        let users = |scope: &str| {
            let labels = format!("arm={arm} window=total view=settled scope={scope}");
            value(&samples, "users", &labels)
        };
        assert_eq!((users("global"), users("own")), (Some(500.0), None));
    }
    assert_eq!(
        labels(&samples, "decision", "arm"),
        labels(&self::scrape(), "decision", "arm")
    );
    assert_eq!(
        labels(&scrape(None), "users", "arm"),
        BTreeSet::new(),
        "they are withheld"
    );
}

#[test]
fn an_arm_shows_intervals_only_in_the_window_of_looks() {
    let samples = scrape();
    let of = |name: &str, labels: &str| {
        let labels = format!("arm=b window=1h view=settled scope=own {labels}");
        value(&samples, name, &labels)
    };
    let hit_rate = 0.28;
    assert_eq!(of("ci_lower", "metric=hit_rate k=5"), Some(hit_rate - 0.1));
    assert_eq!(of("ci_upper", "metric=hit_rate k=5"), Some(hit_rate + 0.125));
    assert_eq!(
        of("ci_lower", "metric=mrr k=1"),
        None,
        "too little is known of it"
    );
    assert_eq!(of("users", ""), None, "users are counted since the start");
    assert_eq!(labels(&samples, "ci_lower", "window"), ["1h", "total"].into());
}

#[test]
fn a_treatment_arm_shows_its_comparison_with_the_control() {
    let samples = scrape();
    let of_b = |name: &str| value(&samples, name, "arm=b metric=hit_rate k=5").unwrap();
    for (name, expected) in [
        ("lift", 0.12),
        ("lift_lower", -0.04),
        ("lift_upper", 0.28),
        ("p_value", 0.4),
        ("harm_p_value", 1.0),
        ("power_information", 0.375),
        ("top_bucket_share", 0.015625),
    ] {
        assert_eq!(of_b(name), expected, "{name}");
        assert!(value(&samples, name, "arm=b metric=lists_per_user").is_some());
        assert!(value(&samples, name, "arm=a metric=hit_rate k=5").is_none());
        assert!(
            value(&samples, name, "arm=c metric=hit_rate k=5").is_none(),
            "{name} is not known"
        );
    }
    assert_eq!(value(&samples, "list_ratio", "arm=b"), Some(1.05));
    assert_eq!(value(&samples, "list_ratio_p_value", "arm=b"), Some(1.0));
    assert_eq!(labels(&samples, "list_ratio", "arm"), ["b"].into());
    assert_eq!(value(&samples, "srm_p_value", ""), Some(0.75));
    assert_eq!(value(&samples, "multi_arm_users", ""), Some(5.0));
    let look = &samples[&("abgauge_look_timestamp_seconds".to_owned(), vec![])];
    assert_eq!(
        look.parse::<f64>().unwrap(),
        looks::AS_OF_MS as f64 / 1000.0,
        "without an experiment"
    );
}

#[test]
fn only_the_current_state_is_shown_with_its_verdict() {
    for (state, verdict) in [
        (ArmState::NoDecision, 0.0),
        (ArmState::InvalidSrm, 0.0),
        (ArmState::Win, 1.0),
        (ArmState::Harm, -1.0),
    ] {
        let mut look = looks::compared();
        let (_, report) = look.comparison.as_mut().unwrap();
        let arm = report.arms.get_mut("b").unwrap();
        arm.decision.as_mut().unwrap().state = state;
        let samples = scraped(&board("e"), &shown_of("e", look), &export());
        assert_eq!(
            labels(&samples, "decision", "state"),
            [state.name()].into(),
            "c is not tested"
        );
        assert_eq!(
            value(&samples, "decision", &format!("arm=b state={state}")),
            Some(1.0)
        );
        assert_eq!(value(&samples, "verdict", "arm=b"), Some(verdict));
        assert_eq!(labels(&samples, "verdict", "arm"), ["b"].into());
    }
}

fn shown_of(experiment: &str, look: abgauge_core::looks::ExperimentLook) -> PublishedLooks {
    PublishedLooks {
        experiments: [(experiment.to_owned(), Arc::new(look))].into(),
        ..looks::shown()
    }
}

#[test]
fn an_arm_without_a_control_shows_only_intervals() {
    let look = abgauge_core::looks::ExperimentLook {
        comparison: None,
        ..looks::compared()
    };
    let samples = scraped(&board("e"), &shown_of("e", look), &export());
    assert_eq!(labels(&samples, "ci_lower", "arm"), ["a", "b", "c"].into());
    for name in ["lift", "verdict", "decision", "srm_p_value", "multi_arm_users"] {
        assert_eq!(labels(&samples, name, "experiment"), BTreeSet::new(), "{name}");
    }
}

#[test]
fn looks_export_no_series_before_the_first_one() {
    let samples = scraped(&board("e"), &PublishedLooks::default(), &export());
    let names: BTreeSet<&str> = samples.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(rows().filter(|row| names.contains(&*row.name)).count(), 0);
}

#[test]
fn export_selects_metrics_but_never_hides_deciding_ones() {
    let shown = |config: &Export, name: &str| -> String {
        let samples = scraped(&board("e"), &looks::shown(), config);
        let series = samples
            .keys()
            .filter(|(other, _)| *other == format!("abgauge_{name}"));
        let has = |labels: &[(String, String)], name: &str, value: &str| {
            labels.contains(&(name.to_owned(), value.to_owned()))
        };
        let of_b = series.filter(|(_, labels)| has(labels, "arm", "b") && !has(labels, "window", "1h"));
        let key = |(_, labels): &(String, Vec<(String, String)>)| {
            let label = |wanted: &str| labels.iter().find(|(name, _)| name == wanted);
            let k = label("k").map(|(_, k)| format!("@{k}"));
            label("metric").unwrap().1.clone() + &k.unwrap_or_default()
        };
        let mut keys: Vec<String> = of_b.map(key).collect();
        keys.sort();
        keys.join(" ")
    };
    let all = export();
    assert_eq!(shown(&all, "lift"), "ctr hit_rate@5 lists_per_user mrr@1");
    assert_eq!(shown(&all, "ci_lower"), "ctr hit_rate@5");
    let few = Export {
        metrics: vec!["mrr".to_owned()],
        ..export()
    };
    assert_eq!(shown(&few, "lift"), "ctr hit_rate@5 lists_per_user mrr@1");
    let fewer = Export {
        k: Some(vec![fixture::ks()[1]]),
        ..few
    };
    assert_eq!(shown(&fewer, "lift"), "ctr hit_rate@5 lists_per_user");
    assert_eq!(shown(&fewer, "ci_lower"), "ctr hit_rate@5");
    let deciding = Export {
        secondary: false,
        ..all
    };
    assert_eq!(shown(&deciding, "lift"), "ctr hit_rate@5");
}

/// Exports the metric that would be the default primary, because nothing is decided there: CTR at the largest cut-off.
#[test]
fn an_experiment_without_a_control_shows_one_metric_by_default() {
    let mut look = abgauge_core::looks::ExperimentLook {
        comparison: None,
        ..looks::compared()
    };
    for arm in look.arms.values_mut() {
        let of_ctr = arm.metrics["ctr"];
        arm.metrics.insert("ctr@5".to_owned(), of_ctr);
    }
    let shown = shown_of("e", look);
    for (secondary, expected) in [(false, &["ctr 5"][..]), (true, &["ctr", "ctr 5", "hit_rate 5"])] {
        let config = Export {
            secondary,
            ..export()
        };
        let samples = scraped(&board("e"), &shown, &config);
        let of_a = samples.keys().filter(|(name, labels)| {
            name == "abgauge_ci_lower"
                && labels[0].1 == "a"
                && labels.iter().any(|(_, value)| value == "total")
        });
        let metrics = of_a.map(|(_, labels)| {
            let of = |wanted: &str| labels.iter().find(|(name, _)| name == wanted);
            let k = of("k").map_or(String::new(), |(_, k)| format!(" {k}"));
            of("metric").unwrap().1.clone() + &k
        });
        let expected: BTreeSet<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(metrics.collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn comparisons_are_exported_even_if_windows_with_intervals_are_not() {
    let of = |windows: &[&str]| Export {
        settled: windows.iter().map(|name| (*name).to_owned()).collect(),
        ..export()
    };
    let none: &[&str] = &[];
    for (config, expected) in [
        (of(&["5m", "1h"]), &["1h"][..]),
        (of(&["5m", "total"]), &["total"]),
        (of(&["5m"]), none),
        (of(&[]), none),
    ] {
        let samples = scraped(&board("e"), &looks::shown(), &config);
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        for name in ["ci_lower", "ci_upper"] {
            assert_eq!(labels(&samples, name, "window"), expected);
        }
        let has_total = expected.contains("total");
        assert_eq!(!labels(&samples, "users", "arm").is_empty(), has_total);
        assert_eq!(labels(&samples, "lift", "arm"), ["b"].into());
    }
}

#[test]
fn series_of_looks_count_towards_max_series() {
    let shown = |max_series| {
        let config = Export {
            max_series,
            ..export()
        };
        let samples = scraped(&board("e"), &looks::shown(), &config);
        let arms: Vec<&str> = labels(&samples, "lists", "arm").into_iter().collect();
        let n_other = 3;
        let dropped = &samples[&("abgauge_series_dropped".to_owned(), vec![])];
        (
            arms.concat(),
            samples.len() - n_other,
            dropped.parse::<usize>().unwrap(),
        )
    };
    let (arms, n_all, dropped) = shown(100_000);
    assert_eq!((&*arms, dropped), ("abc", 0));
    assert_eq!(shown(n_all), ("abc".to_owned(), n_all, 0));
    let (arms, n_shown, dropped) = shown(n_all - 1);
    assert_eq!((&*arms, n_shown + dropped), ("ab", n_all));
    let (arms, n_shown, dropped) = shown(n_shown - 1);
    assert_eq!((&*arms, n_shown + dropped), ("a", n_all));
    // Series of the whole experiment are admitted first.
    assert_eq!(shown(5), (String::new(), 5, n_all - 5));
    assert_eq!(shown(4), (String::new(), 0, n_all));
}

#[test]
fn nothing_is_admitted_after_an_arm_that_does_not_fit() {
    let mut room = Room::new(10);
    assert_eq!(room.admit([4, 7, 1].into_iter()), 1);
    assert_eq!(room.n_dropped(), 8);
    assert_eq!(room.admit([6, 1].into_iter()), 1);
    assert_eq!(room.n_dropped(), 9);
}

#[test]
fn an_arm_takes_its_look_series_along_when_it_leaves() {
    let mut board = board("e");
    let too_old = fixture::NOW_MS - export().forget_after_ms - 1;
    board.arms[1].last_list_ms = too_old;
    let samples = scraped(&board, &looks::shown(), &export());
    assert_eq!(labels(&samples, "ci_lower", "arm"), ["a", "c"].into());
    assert_eq!(labels(&samples, "verdict", "arm"), BTreeSet::new());
    assert_eq!(value(&samples, "srm_p_value", ""), Some(0.75));
    board.arms.iter_mut().for_each(|arm| arm.last_list_ms = too_old);
    let samples = scraped(&board, &looks::shown(), &export());
    assert_eq!(value(&samples, "srm_p_value", ""), None);
}

#[test]
fn lower_is_better_has_the_labels_of_the_intervals() {
    let samples = scrape();
    let is_lower = |labels| value(&samples, "lower_is_better", labels) == Some(1.0);
    assert!(is_lower("metric=mrr k=1") && is_lower("metric=lists_per_user"));
    let reported = samples
        .keys()
        .filter(|(name, _)| name == "abgauge_lower_is_better");
    assert_eq!(reported.count(), 2);
}

#[test]
fn the_start_of_the_shares_is_exported_in_seconds_if_there_are_shares() {
    let mut look = looks::compared();
    look.shares_since_ms = 1_500;
    let since = |look| {
        let samples = scraped(&board("e"), &shown_of("e", look), &export());
        value(&samples, "shares_since_timestamp_seconds", "")
    };
    assert_eq!(since(look.clone()), Some(1.5));
    let (settings, _) = look.comparison.as_mut().expect("a control");
    settings.shares.clear();
    assert_eq!(since(look), None);
}

#[test]
fn a_hostile_experiment_name_survives_escaping() {
    let hostile = "\"} 1\nabgauge_verdict{x=\"\\";
    let samples = scraped(&board(hostile), &shown_of(hostile, looks::compared()), &export());
    for name in [
        "srm_p_value",
        "multi_arm_users",
        "lower_is_better",
        "verdict",
        "decision",
        "users",
    ] {
        assert_eq!(labels(&samples, name, "experiment"), [hostile].into());
    }
}

#[test]
fn every_row_has_its_labels() {
    let samples = scrape();
    for row in rows() {
        let shown = samples.keys().filter(|(name, _)| *name == row.name);
        let shown: BTreeSet<&str> = shown
            .flat_map(|(_, labels)| labels)
            .map(|(label, _)| label.as_str())
            .collect();
        assert_eq!(shown, row.labels.iter().copied().collect(), "{}", row.name);
    }
}
