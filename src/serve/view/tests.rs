//! Tests of the data for the page.

use std::sync::Arc;

use abgauge_core::looks::{Experiment, ExperimentLook};
use abgauge_core::metrics::ListOutcome;
use abgauge_core::verdict;
use serde_json::{Value, json};

use super::super::fixture::{self, HIT, MISS, NOW_MS, arm, looks, snapshot, sums};
use super::*;
use crate::board::snapshot::{ArmSnapshot, SnapshotSource, Timeline};
use crate::clock::Clock;
use crate::store::publications::Publications;

/// Source with a line of two cells for every arm but `b`.
struct Lines;

impl SnapshotSource for Lines {
    fn snapshot_into(&self, _: Option<usize>, _: &mut Snapshot) {}

    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        let timeline = || Timeline {
            start_ms: 0,
            cell_ms: fixture::windows()[window].cell_ms(),
            cells: vec![None, Some(sums(&[HIT, MISS, MISS]))],
        };
        let arms = arms.iter();
        arms.map(|arm| (&*arm.arm != "b").then(|| [timeline(), timeline()]))
            .collect()
    }
}

fn exporter() -> Exporter {
    Exporter {
        controls: [
            ("e2".to_owned(), "old".to_owned()),
            ("e3".to_owned(), "gone".to_owned()),
        ]
        .into(),
        ..fixture::exporter(Arc::new(Lines))
    }
}

/// Answer to a query such as `window=1h&sort=-name`.
fn ask(arms: Vec<ArmSnapshot>, query: &str) -> Value {
    answer(&exporter(), arms, query)
}

fn answer(exporter: &Exporter, arms: Vec<ArmSnapshot>, query: &str) -> Value {
    let mut snapshot = snapshot(arms);
    let by_name = |a: &ArmSnapshot, b: &ArmSnapshot| (&a.experiment, &a.arm).cmp(&(&b.experiment, &b.arm));
    snapshot.arms.sort_by(by_name);
    let uri = format!("/?{query}").parse().unwrap();
    let axum::extract::Query(wanted) = axum::extract::Query::try_from_uri(&uri).unwrap();
    let mut out = Vec::new();
    render(exporter, &ViewQuery::of(wanted, exporter), &snapshot, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Exporter of an instance that holds `n_owned` of three partitions. The last partition is three minutes behind.
fn beside_others(n_owned: usize) -> Exporter {
    let (clock, _hand) = Clock::simulated(NOW_MS);
    let frontiers_ms = [NOW_MS, NOW_MS - 1_000, NOW_MS - 180_000].map(Some);
    let exporter = Exporter {
        global: Some(GlobalScope {
            source: Arc::new(Lines),
            publications: Publications::read_now(&frontiers_ms, 15_000, clock),
        }),
        ..exporter()
    };
    exporter.telemetry.set_partitions_owned(n_owned);
    exporter
}

#[test]
fn all_partitions_are_the_default_if_an_instance_owns_only_some() {
    let scope = |n_owned, query: &str| {
        let answer = answer(&beside_others(n_owned), vec![small("e", "a")], query);
        (answer["chosen"]["scope"].clone(), answer["notes"].clone())
    };
    assert_eq!(scope(2, ""), (json!("global"), json!([])));
    assert_eq!(scope(2, "scope=own"), (json!("own"), json!([])));
    assert_eq!(scope(3, ""), (json!("own"), json!([])));
    assert_eq!(scope(3, "scope=global"), (json!("global"), json!([])));
    let note = "There is no scope “all” here: own is shown. It can be own, global.";
    assert_eq!(scope(3, "scope=all"), (json!("own"), json!([note])));
    let alone = ask(vec![small("e", "a")], "");
    assert_eq!(
        (&alone["chosen"]["scope"], &alone["global"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn the_global_view_shows_its_age_and_the_lagging_partitions() {
    let answer = answer(&beside_others(2), vec![small("e", "a")], "");
    let global = json!({
        "withheld": null, "behind_seconds": 0.0, "n_lagging": 1,
        "lagging": [{"partition": 2, "seconds": 180.0}],
    });
    assert_eq!(answer["global"], global);
}

fn small(experiment: &str, name: &str) -> ArmSnapshot {
    arm(experiment, name, [&[MISS]; 3], [&[]; 3])
}

/// Arms of an experiment in the order shown.
fn names(answer: &Value, experiment: usize) -> Vec<&str> {
    let arms = answer["experiments"][experiment]["arms"].as_array().unwrap();
    arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect()
}

fn experiments(answer: &Value) -> Vec<&str> {
    let experiments = answer["experiments"].as_array().unwrap();
    experiments
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_row_has_both_views_of_the_chosen_window_cutoff_and_metrics() {
    let arm = arm("e", "a", [&[HIT, MISS], &[HIT], &[HIT]], [&[], &[HIT], &[HIT]]);
    let answer = ask(vec![arm.clone()], "window=1h&k=5&metrics=mrr,ctr");
    let line = json!({
        "start_ms": 0, "cell_ms": 60_000, "lists": [0, 3],
        "values": [[null, 0.13333], [null, 0.16667]],
    });
    let place = json!({
        "lists": 1, "clicks": 2, "items_shown": 5, "values": [0.4, 0.5],
        "parts": [{"numerator": 2, "denominator": 5}, {"numerator": 0.5, "denominator": 1}], "line": line,
    });
    let alone = serde_json::to_value(verdict::uncompared(1)).unwrap();
    assert_eq!(
        answer["experiments"],
        json!([{"name": "e", "control": null, "n_arms": 1, "n_found": 1, "verdict": alone, "compared_with": null, "arms": [
            {"name": "a", "number": 0, "last_list_ms": NOW_MS, "live": place, "settled": place},
        ]}])
    );
    let chosen = json!({
        "window": "1h", "k": 5, "profile": "default", "metrics": ["ctr", "mrr"], "sort": "-lift", "filter": "",
        "experiment": null,
    });
    assert_eq!(answer["chosen"], chosen);
    assert_eq!(
        (&answer["line_window"], &answer["notes"]),
        (&json!("1h"), &json!([]))
    );
    assert_eq!(answer["stream"]["live_end_ms"], NOW_MS);

    let whole = ask(vec![arm], "window=total");
    assert_eq!(whole["line_window"], "1h", "total has no cells");
    assert_eq!(ask(vec![small("e", "a")], "k=whole")["chosen"]["k"], Value::Null);
}

/// Exporter that compares `e` with its control `a` on the hit ratio at 5, among other metrics, and has another experiment
/// `other`.
fn compared() -> Exporter {
    let experiment = Experiment {
        settings: Some(looks::settings()),
        ..Experiment::default()
    };
    Exporter {
        controls: [("e".to_owned(), "a".to_owned())].into(),
        experiments: [("e".to_owned(), experiment)].into(),
        looks: looks::published("e", looks::compared()),
        ..exporter()
    }
}

#[test]
fn an_empty_query_shows_the_primary_metric_over_total() {
    let chosen = |exporter: &Exporter, query: &str| {
        let chosen = answer(exporter, vec![small("e", "a")], query)["chosen"].clone();
        ["window", "k", "metrics", "sort"].map(|name| chosen[name].clone())
    };
    let of_ctr = [
        json!("total"),
        json!(5),
        json!(["ctr", "hit_rate", "mrr"]),
        json!("-lift"),
    ];
    assert_eq!(chosen(&exporter(), ""), of_ctr, "CTR at the largest k");
    let of_hits = [
        json!("total"),
        json!(5),
        json!(["hit_rate", "ctr", "mrr"]),
        json!("-lift"),
    ];
    assert_eq!(chosen(&compared(), ""), of_hits);
    // For a single experiment, its own primary comes first, if it has one.
    let mut several = compared();
    let settings = abgauge_core::statistics::Settings {
        primary: vec!["mrr@1".to_owned()],
        ..looks::settings()
    };
    let another = Experiment {
        settings: Some(settings),
        ..Experiment::default()
    };
    several.experiments.insert("f".to_owned(), another);
    let [_, k, metrics, _] = chosen(&several, "experiment=f");
    assert_eq!((k, metrics), (json!(1), json!(["mrr", "hit_rate", "ctr"])));
    assert_eq!(chosen(&several, "experiment=gone"), of_hits);
}

#[test]
fn the_best_arm_is_listed_right_after_the_control() {
    let arms = ["a", "b", "c", "d"].map(|name| small("e", name)).to_vec();
    // Arms `c` and `d` are not tested, so they come last, by name.
    let mut look = looks::compared();
    let (settings, report) = look.comparison.as_mut().unwrap();
    settings.shares.insert("d".to_owned(), 0.5);
    let mut better = report.arms["b"].clone();
    let metric = better.metrics.get_mut("hit_rate@5").unwrap();
    metric.lift = Some(0.3);
    metric.interval = Some(abgauge_core::statistics::Interval {
        lower: 0.2,
        upper: 0.4,
    });
    report.arms.insert("d".to_owned(), better);
    let exporter = Exporter {
        looks: looks::published("e", look),
        ..compared()
    };
    let order = |query: &str| names(&answer(&exporter, arms.clone(), query), 0).join("");
    assert_eq!(order(""), "adbc");
    assert_eq!(order("sort=lift"), "abdc");
    assert_eq!(order("sort=name"), "abcd");
}

#[test]
fn experiments_are_sorted_by_verdict_then_by_name() {
    let arms =
        [("b", "x"), ("c", "x"), ("e", "a"), ("e", "b")].map(|(experiment, arm)| small(experiment, arm));
    let answer = answer(&compared(), arms.to_vec(), "");
    let shown = answer["experiments"].as_array().unwrap().iter();
    let shown: Vec<_> = shown.map(|it| [&it["name"], &it["verdict"]["badge"]]).collect();
    let expected = [["e", "early"], ["b", "waiting"], ["c", "waiting"]];
    assert_eq!(json!(shown), json!(expected));
}

#[test]
fn configured_experiments_come_before_misspelled_names() {
    let unlooked = Exporter {
        looks: Arc::default(),
        ..compared()
    };
    let arms = [("a", "x"), ("e", "a"), ("e", "b")].map(|(experiment, arm)| small(experiment, arm));
    let answer = answer(&unlooked, arms.to_vec(), "");
    assert_eq!(
        [0, 1].map(|n| answer["experiments"][n]["name"].clone()),
        ["e", "a"]
    );
}

#[test]
fn names_with_very_few_lists_are_folded_unless_they_are_asked_for() {
    let (many, few) = (vec![MISS; 1_000], vec![MISS; 99]);
    let of = |experiment: &str, lists: &[_]| arm(experiment, "x", [lists; 3], [lists; 3]);
    let arms = || vec![of("few", &few), of("many", &many), of("e", &few[..1])];
    let shown = |query: &str, arms| {
        let answer = answer(&compared(), arms, query);
        let names = answer["experiments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].clone());
        (names.collect::<Vec<_>>(), answer["folded"].clone())
    };
    let folded = json!([{"name": "few", "lists": 99}]);
    assert_eq!(
        shown("", arms()),
        (vec![json!("e"), json!("many")], folded),
        "`e` is configured"
    );
    assert_eq!(shown("experiment=few", arms()), (vec![json!("few")], json!([])));
    assert_eq!(shown("filter=few", arms()), (vec![json!("few")], json!([])));
    // Without a large experiment, few lists are all there is.
    let small = vec![of("few", &few), of("other", &few[..50])];
    assert_eq!(shown("", small).1, json!([]));
}

#[test]
fn an_experiment_has_its_verdict_as_a_sentence() {
    let arms = ["a", "b", "c"].map(|name| small("e", name)).to_vec();
    let verdict = answer(&compared(), arms.clone(), "")["experiments"][0]["verdict"].clone();
    let sentence = "not decided yet: no primary metric differs significantly on day 7, next decision Tue 25 Nov; so far b against a: hit ratio@5 +12.0% (−4.0% to +28.0%), \
                    28.00% against 25.00%, 500 users each, traffic split OK (p = 0.750)";
    assert_eq!(
        (&verdict["badge"], &verdict["sentence"]),
        (&json!("early"), &json!(sentence))
    );
    assert_eq!(
        (&verdict["arm"], &verdict["parts"][1]),
        (&json!("b"), &json!({"name": "b"}))
    );
    let unlooked = Exporter {
        looks: Arc::default(),
        ..compared()
    };
    let verdict = |arms| answer(&unlooked, arms, "")["experiments"][0]["verdict"]["sentence"].clone();
    let waits = verdict(arms);
    assert_eq!(
        waits,
        "too early: no list is final yet; each becomes final 32 min after it was served"
    );
    let settled = verdict(vec![arm("e", "a", [&[MISS]; 3], [&[MISS]; 3])]);
    assert!(
        settled
            .as_str()
            .unwrap()
            .starts_with("too early: the first lists are final, and the first analysis comes")
    );
}

#[test]
fn looks_belong_to_the_default_scope_and_the_global_one() {
    let belong = |n_owned, query: &str| {
        answer(&beside_others(n_owned), vec![small("e", "a")], query)["has_looks_of_scope"].clone()
    };
    assert_eq!(
        [belong(2, ""), belong(3, ""), belong(3, "scope=global")],
        [true; 3].map(Value::from)
    );
    assert_eq!(belong(2, "scope=own"), false);
}

#[test]
fn an_experiment_shows_the_last_look_at_its_arms() {
    let exporter = compared();
    let arms = ["a", "b", "c"].map(|name| small("e", name)).to_vec();
    let of = |query: &str| answer(&exporter, arms.clone(), query)["experiments"][0].clone();
    let experiment = of("metrics=hit_rate");
    let mut looks = experiment["looks"].clone();
    assert_eq!(looks["power"].take()["since"], looks::START_MS);
    assert_eq!(
        looks,
        json!({
            "as_of": looks::AS_OF_MS, "start": looks::START_MS, "waits_for": 3, "given_up": false,
            "no_users": null, "power": null,
        })
    );
    let analysis = |n: usize| experiment["arms"][n]["analysis"].clone();
    let lifts = json!({"1h": {"hit_rate@5": {"lift": 0.06, "lower": -0.1, "upper": 0.22}}});
    let control = json!({"lists": 4000, "users": 500, "lists_without_user": 0.0, "share": 0.5});
    assert_eq!(analysis(0), control);
    let mut arm = control;
    arm["lifts"] = lifts;
    assert_eq!(analysis(1), arm);
    // Arm `c` has no share, and a filter does not change the number.
    for query in ["", "filter=b", "filter=c"] {
        assert_eq!(of(query)["users"], 1000.0, "{query:?}");
    }
    let comparison = |n: usize| experiment["arms"][n].get("comparison");
    assert_eq!(comparison(0), None, "it is the control");
    let reported = comparison(1).unwrap();
    assert_eq!(
        (&reported["arm"], &reported["reason"]),
        (
            &json!("b"),
            &json!("no primary metric differs significantly on day 7")
        )
    );
    assert_eq!(reported["checks"]["srm"], json!({"p": 0.75}));
    assert_eq!(comparison(2).unwrap().get("state"), None, "it has no share");
    // Metrics that decide, metrics per user, and the selected ones.
    let metrics = |query: &str| {
        let metrics = of(query)["arms"][1]["comparison"]["metrics"].clone();
        let keys = metrics.as_object().unwrap().keys();
        keys.cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(metrics("metrics=hit_rate&k=1"), "ctr hit_rate@5 lists_per_user");
    assert_eq!(metrics("metrics=mrr&k=1"), "ctr hit_rate@5 lists_per_user mrr@1");
    assert_eq!(metrics("metrics=mrr&k=5"), "ctr hit_rate@5 lists_per_user");
    assert_eq!(experiment["compared_with"], "a");
    assert_eq!(experiment["arms"][1].get("own"), None, "it is compared");
    let none = ask(vec![small("e", "a")], "");
    assert_eq!(
        none["experiments"][0].get("looks"),
        None,
        "nothing is asked of it"
    );
}

#[test]
fn arms_without_a_comparison_show_intervals_of_the_chosen_metrics() {
    let look = ExperimentLook {
        comparison: None,
        ..looks::compared()
    };
    let exporter = Exporter {
        experiments: [("e".to_owned(), Experiment::default())].into(),
        looks: looks::published("e", look),
        ..exporter()
    };
    let answer = answer(&exporter, vec![small("e", "b")], "metrics=ctr,mrr&k=whole");
    let experiment = &answer["experiments"][0];
    assert_eq!(experiment["compared_with"], Value::Null);
    let row = &experiment["arms"][0];
    assert_eq!(
        row["own"],
        json!({
            "lists": 4000, "users": 500, "windows": {},
            "metrics": {"ctr": {"value": 0.125, "numerator": 1250, "denominator": 10_000, "lower": 0.1, "upper": 0.15}},
        })
    );
    assert_eq!(row.get("comparison"), None);
}

#[test]
fn an_empty_view_is_omitted_and_an_absent_line_is_null() {
    let answer = ask(vec![small("e", "b")], "");
    let row = &answer["experiments"][0]["arms"][0];
    assert_eq!(row.get("settled"), None);
    assert_eq!(row["live"]["line"], Value::Null);
}

#[test]
fn the_control_is_first_on_every_page_under_any_filter() {
    let arms = ["old", "control", "new"].map(|name| small("e2", name)).to_vec();
    let answer = ask(arms.clone(), "sort=-name");
    assert_eq!(answer["experiments"][0]["control"], "old", "as it is set");
    assert_eq!(names(&answer, 0), ["old", "new", "control"]);
    assert_eq!(names(&ask(arms, "filter=NEW"), 0), ["old", "new"]);

    let named = ask(vec![small("e", "a"), small("e", "control")], "");
    assert_eq!(names(&named, 0), ["control", "a"], "by its name");
    let gone = ask(vec![small("e3", "control")], "");
    assert_eq!(
        gone["experiments"][0]["control"], "gone",
        "set, and without lists"
    );

    let many = (0..120).map(|n| small("e", &format!("arm-{n}")));
    let many: Vec<_> = many.chain([small("e", "control")]).collect();
    let last = ask(many, "page=3");
    assert_eq!((&last["page"], &last["n_pages"]), (&json!(3), &json!(3)));
    let shown = names(&last, 0);
    assert_eq!(
        (shown.len(), shown[0], shown[1], shown[20]),
        (21, "control", "arm-100", "arm-119")
    );
    assert_eq!(last["experiments"][0]["n_found"], 121);
}

#[test]
fn arms_are_sorted_by_the_requested_value_with_missing_ones_last() {
    let lists: [&[ListOutcome]; 3] = [&[HIT], &[HIT, MISS], &[HIT, MISS, MISS]];
    let arm_of = |name, live: &'static [ListOutcome], last: i64| ArmSnapshot {
        last_list_ms: NOW_MS - last,
        ..arm("e", name, [live; 3], [&[]; 3])
    };
    let arms = vec![
        arm_of("x-10", &[HIT], 5),
        arm_of("x-9", &[HIT, MISS], 1),
        arm_of("x-8", &[HIT, MISS, MISS], 3),
        arm_of("x-1", &[], 2),
    ];
    assert_eq!(lists.map(<[ListOutcome]>::len), [1, 2, 3]);
    let newest = arms.iter().map(|arm| arm.last_list_ms).max();
    assert_eq!(ask(arms.clone(), "filter=zzz")["newest_list_ms"], json!(newest));
    for (sort, order) in [
        ("name", ["x-1", "x-8", "x-9", "x-10"]),
        ("-name", ["x-10", "x-9", "x-8", "x-1"]),
        ("last", ["x-10", "x-8", "x-1", "x-9"]),
        ("-live.lists", ["x-8", "x-9", "x-10", "x-1"]),
        ("live.lists", ["x-10", "x-9", "x-8", "x-1"]),
        ("-live.hit_ratio", ["x-10", "x-9", "x-8", "x-1"]),
        ("live.hit_rate", ["x-8", "x-9", "x-10", "x-1"]),
        ("-live.clicks", ["x-8", "x-9", "x-10", "x-1"]),
        // Nothing has settled, so the order is by name.
        ("-settled.ctr", ["x-1", "x-8", "x-9", "x-10"]),
    ] {
        let answer = ask(arms.clone(), &format!("sort={sort}"));
        assert_eq!(names(&answer, 0), order, "{sort}");
        assert_eq!(answer["notes"], json!([]), "{sort}");
    }
}

#[test]
fn a_filter_matches_parts_of_arm_and_experiment_names() {
    let all = [
        ("ranker", "Neural-2"),
        ("ranker", "blend"),
        ("layout", "grid"),
        ("Blender", "x"),
    ];
    let arms: Vec<_> = all.map(|(experiment, name)| small(experiment, name)).to_vec();
    let answer = ask(arms.clone(), "filter=BLEND");
    assert_eq!(experiments(&answer), ["Blender", "ranker"]);
    assert_eq!((names(&answer, 0), names(&answer, 1)), (vec!["x"], vec!["blend"]));
    let extents = |answer: &Value| {
        let it = &answer["experiments"][1];
        (it["n_arms"].clone(), it["n_found"].clone())
    };
    assert_eq!(extents(&answer), (json!(2), json!(1)));
    assert_eq!(
        (&answer["n_experiments"], &answer["n_experiments_in_all"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(answer["n_arms_in_all"], 4);
    let nothing = ask(arms, "filter=zzz");
    assert_eq!((experiments(&nothing).len(), &nothing["n_pages"]), (0, &json!(1)));
}

#[test]
fn many_experiments_show_a_few_arms_each_and_a_single_one_is_paged() {
    let arms = (0..25).flat_map(|e| (0..12).map(move |a| small(&format!("e-{e}"), &format!("a-{a}"))));
    let arms: Vec<_> = arms.collect();
    let second = ask(arms.clone(), "page=2");
    assert_eq!(
        (experiments(&second).len(), experiments(&second)[0]),
        (10, "e-10")
    );
    assert_eq!((names(&second, 0).len(), &second["n_pages"]), (10, &json!(3)));
    assert_eq!(second["notes"], json!([]));
    let beyond = ask(arms.clone(), "page=9");
    assert_eq!((experiments(&beyond).len(), &beyond["page"]), (5, &json!(3)));
    let note = "There is no page 9 here: page 3 is shown, the last.";
    assert_eq!(beyond["notes"], json!([note]));

    let alone = ask(arms.clone(), "experiment=e-24");
    assert_eq!((experiments(&alone), names(&alone, 0).len()), (vec!["e-24"], 12));
    assert_eq!(alone["notes"], json!([]));
    let gone = ask(arms, "experiment=e-99&page=2");
    assert_eq!(
        (experiments(&gone)[0], &gone["chosen"]["experiment"]),
        ("e-10", &Value::Null),
        "all, in their pages"
    );
    let note = "There is no experiment “e-99”: all are shown.";
    assert_eq!(gone["notes"], json!([note]));
    let nothing = ask(vec![], "experiment=e-99&page=2");
    assert_eq!(nothing["notes"], json!([]), "there is nothing at all yet");
}

#[test]
fn an_unknown_choice_is_noted_and_replaced_by_the_default() {
    let query = "window=7m&k=3&profile=ranx&view=sideways&difference=none&sort=best&metrics=ctr,nothing&page=-1&windw=1h";
    let answer = ask(vec![small("e", "a")], query);
    let chosen = &answer["chosen"];
    assert_eq!((&chosen["window"], &chosen["k"]), (&json!("total"), &json!(5)));
    assert_eq!(
        (&chosen["profile"], &chosen["sort"]),
        (&json!("default"), &json!("-lift"))
    );
    assert_eq!(
        (&chosen["metrics"], &answer["page"]),
        (&json!(["ctr"]), &json!(1))
    );
    let notes = [
        "There is no window “7m” here: since start is shown. It can be 5m, 1h, total (since start).",
        "There is no k “3” here: 5 is shown. It can be 1, 5, whole.",
        "There is no profile “ranx” here: default is shown. It can be default.",
        "There is no view “sideways” here: final is shown. It can be settled (final), both, live.",
        "There is no difference “none” here: relative is shown. It can be relative, absolute.",
        "Arms cannot be sorted by “best” here: the best come first.",
        "There is no metric “nothing” in this profile: ctr is shown. It can be ctr, hit_rate, mrr.",
        "There is no page “-1” here: the first is shown.",
        "“windw” is not a parameter of this page: it is ignored.",
    ];
    assert_eq!(answer["notes"], json!(notes));
    let unmeasured = ask(
        vec![small("e", "a")],
        "sort=-live.surprisal&view=live&difference=absolute",
    );
    let note = "Arms cannot be sorted by “-live.surprisal” here: the best come first.";
    assert_eq!(unmeasured["notes"], json!([note]));
}

#[test]
fn each_profile_has_its_own_values() {
    let exporter = Exporter {
        ranking: fixture::two_profiles(),
        ..exporter()
    };
    let snapshot = snapshot(vec![fixture::arm_of_two_profiles()]);
    let of = |profile: &str| -> Value {
        let wanted = ViewParameters {
            profile: Some(profile.to_owned()),
            ..ViewParameters::default()
        };
        let mut out = Vec::new();
        let query = ViewQuery::of(wanted, &exporter);
        // The lines of this source are of another ranking.
        let quiet = Exporter {
            source: Arc::new(NoLines),
            ranking: exporter.ranking.clone(),
            ..self::exporter()
        };
        render(&quiet, &query, &snapshot, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    };
    let values = |profile: &str| of(profile)["experiments"][0]["arms"][0]["live"]["values"].clone();
    assert_eq!(values("default"), json!([0.5, 0.75]));
    assert_eq!(values("rs_metrics"), json!([1.0, 0.75]));
    // Over lists with a click only, while both profiles share the distinct count.
    let parts = |profile: &str| of(profile)["experiments"][0]["arms"][0]["live"]["parts"].clone();
    let seen = json!({"numerator": 3, "denominator": 4});
    assert_eq!(
        parts("default"),
        json!([{"numerator": 1, "denominator": 2}, seen])
    );
    assert_eq!(
        parts("rs_metrics"),
        json!([{"numerator": 1, "denominator": 1}, seen])
    );
}

#[test]
fn an_answer_defines_the_measured_metrics_and_those_per_user() {
    let exporter = Exporter {
        source: Arc::new(NoLines),
        ranking: fixture::two_profiles(),
        ..exporter()
    };
    let answer = answer(&exporter, vec![fixture::arm_of_two_profiles()], "");
    let definitions = answer["definitions"].as_array().unwrap();
    let ids: Vec<&str> = definitions.iter().map(|it| it["id"].as_str().unwrap()).collect();
    let per_user = ["lists_per_user", "hits_per_user", "clicks_per_user"];
    assert_eq!(ids, [&["hit_rate", "coverage"], &per_user[..]].concat());
    let expected = json!({
        "id": "hit_rate", "name": "hit ratio", "unit": "share", "digits": 2,
        "meaning": "Share of lists with at least one clicked item in the top k.", "per_user": false,
    });
    assert_eq!(definitions[0], expected);
    let expected = json!({
        "id": "clicks_per_user", "name": "clicks per assigned user", "unit": "score", "digits": 4,
        "meaning": "Clicked items per assigned user, seen or not: users are the planned share. Only the lift is known: it compares clicked items ÷ planned share.",
        "per_user": true,
    });
    assert_eq!(definitions[4], expected);
}

struct NoLines;

impl SnapshotSource for NoLines {
    fn snapshot_into(&self, _: Option<usize>, _: &mut Snapshot) {}

    fn timelines(&self, _: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        arms.iter().map(|_| None).collect()
    }
}

#[test]
fn the_most_lagging_partitions_are_listed_and_all_are_counted() {
    let exporter = exporter();
    for partition in 0..100 {
        let state = crate::telemetry::PartitionState {
            lag: Some(i64::from(partition)),
            ..Default::default()
        };
        exporter.telemetry.set_partition("served", partition, state);
    }
    exporter.telemetry.set_settle_delay(Some(1.5));
    let mut out = Vec::new();
    let query = ViewQuery::of(ViewParameters::default(), &exporter);
    render(&exporter, &query, &snapshot(vec![]), &mut out).unwrap();
    let answer: Value = serde_json::from_slice(&out).unwrap();
    let partitions = answer["stream"]["partitions"].as_array().unwrap();
    assert_eq!(
        (partitions.len(), &partitions[0]["partition"]),
        (PARTITIONS, &json!(99))
    );
    assert_eq!(
        (&answer["n_partitions"], &answer["lag"]),
        (&json!(100), &json!(4950))
    );
    assert_eq!(answer["stream"]["settle_delay_seconds"], 1.5);
}
