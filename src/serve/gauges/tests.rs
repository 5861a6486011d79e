//! Tests of the text that Prometheus reads.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use super::super::fixture::{self, HIT, MISS, NOTHING, arm, export, snapshot};
use super::*;

/// Series by name and sorted labels.
pub(super) type Samples = BTreeMap<(String, Vec<(String, String)>), String>;

fn scrape(snapshot: &Snapshot, config: &Export) -> Samples {
    scrape_of(snapshot, &fixture::ranking(), config)
}

fn scrape_of(snapshot: &Snapshot, ranking: &Ranking, config: &Export) -> Samples {
    rendered(snapshot, ranking, config, &BTreeMap::new())
}

fn rendered(
    snapshot: &Snapshot,
    ranking: &Ranking,
    config: &Export,
    controls: &BTreeMap<String, String>,
) -> Samples {
    let text = text(&Scrape {
        snapshot,
        global: None,
        looks: &PublishedLooks::default(),
        looks_of: Scope::Own,
        ranking,
        config,
        windows: &fixture::windows(),
        controls,
    });
    parse(&text)
}

pub(super) fn text(scrape: &Scrape) -> String {
    let mut out = Vec::new();
    render(scrape, &mut out);
    String::from_utf8(out).unwrap()
}

/// Parses the text format as strictly as its specification allows: a heading before each family, each family in one piece,
/// no duplicate series, no needless spaces.
pub(super) fn parse(text: &str) -> Samples {
    let mut series = Samples::new();
    let mut families = HashSet::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let help = line
            .strip_prefix("# HELP ")
            .expect("a family begins with its help");
        let (name, help) = help.split_once(' ').unwrap();
        assert!(!help.trim().is_empty() && !help.contains('\\'), "{help}");
        assert!(families.insert(name), "{name} is in two pieces");
        assert_eq!(lines.next(), Some(format!("# TYPE {name} gauge\n").as_str()));
        let mut n_samples = 0;
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = sample
                .strip_prefix(name)
                .expect("a sample stands under its own family");
            let (labels, value) = parse_labels(rest);
            let value = value.strip_suffix('\n').expect("a line ends");
            value.parse::<f64>().unwrap();
            let twin = series.insert((name.to_owned(), labels), value.to_owned());
            assert_eq!(twin, None, "{sample} stands twice");
            n_samples += 1;
        }
        assert!(n_samples > 0, "{name} has no samples");
    }
    series
}

/// Splits `{a="b",c="d"} 1` into labels by name and the text after the space.
fn parse_labels(text: &str) -> (Vec<(String, String)>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else {
        return (Vec::new(), text.strip_prefix(' ').unwrap());
    };
    let mut labels = Vec::new();
    loop {
        let (name, value) = rest.split_once("=\"").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name:?}");
        let (value, after) = parse_value(value);
        labels.push((name.to_owned(), value));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                labels.sort();
                let names: BTreeSet<_> = labels.iter().map(|(name, _)| name).collect();
                assert_eq!(names.len(), labels.len(), "a label stands twice");
                return (labels, after.strip_prefix("} ").unwrap());
            }
        }
    }
}

/// Returns the unescaped text up to the closing quote, and the rest.
fn parse_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\n' => panic!("a bare line break within a label"),
            '\\' => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                other @ ('\\' | '"') => other,
                other => panic!("there is no escape \\{other}"),
            }),
            other => value.push(other),
        }
    }
    panic!("a label without end: {text:?}")
}

/// Value of `name` with these labels, for arm `a` of experiment `e`.
fn value(scrape: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let own = [("experiment", "e"), ("arm", "a")];
    let labels = own
        .iter()
        .chain(labels)
        .map(|(name, value)| (name.to_string(), value.to_string()));
    let mut labels: Vec<_> = labels.collect();
    labels.sort();
    scrape
        .get(&(name.to_owned(), labels))
        .map(|value| value.parse().unwrap())
}

const TOTAL_LIVE: [(&str, &str); 3] = [("window", "total"), ("view", "live"), ("scope", "own")];

fn total_live(scrape: &Samples, name: &str, more: &[(&str, &str)]) -> Option<f64> {
    value(scrape, name, &[&TOTAL_LIVE, more].concat())
}

/// Arm `a` of experiment `e`: a hit and a miss in all windows, and the hit settled in `total`.
fn one_arm() -> Snapshot {
    snapshot(vec![arm("e", "a", [&[HIT, MISS]; 3], [&[], &[], &[HIT]])])
}

#[test]
fn gauges_of_a_hit_and_a_miss_match_values_worked_by_hand() {
    let scrape = scrape(&one_arm(), &export());
    let gauge = |name, more: &[(&str, &str)]| total_live(&scrape, name, more).unwrap();
    assert_eq!(gauge("abgauge_lists", &[]), 2.0);
    assert_eq!(gauge("abgauge_items_shown", &[]), 10.0);
    assert_eq!(gauge("abgauge_clicks", &[]), 2.0);
    // The first of two lists of five was clicked at ranks 2 and 5.
    for (k, hit_ratio, ctr, mrr) in [
        (Some("1"), 0.0, 0.0, 0.0),
        (Some("5"), 0.5, 0.2, 0.25),
        (None, 0.5, 0.2, 0.25),
    ] {
        let k: Vec<_> = k.into_iter().map(|k| ("k", k)).collect();
        assert_eq!(gauge("abgauge_hit_ratio", &k), hit_ratio);
        assert_eq!(gauge("abgauge_ctr", &k), ctr);
        assert_eq!(gauge("abgauge_mrr", &k), mrr);
    }
    let parts = |metric, k| {
        let labels = [("metric", metric), ("k", k)];
        (
            gauge("abgauge_metric_numerator", &labels),
            gauge("abgauge_metric_denominator", &labels),
        )
    };
    assert_eq!(parts("hit_rate", "5"), (1.0, 2.0));
    assert_eq!(parts("ctr", "1"), (0.0, 2.0));
    assert_eq!(parts("mrr", "5"), (0.5, 2.0));
    assert_eq!(gauge("abgauge_metric_numerator", &[("metric", "mrr")]), 0.5);
}

#[test]
fn an_empty_window_shows_nothing() {
    let scrape = scrape(&one_arm(), &export());
    let lists = |window, view| {
        value(
            &scrape,
            "abgauge_lists",
            &[("window", window), ("view", view), ("scope", "own")],
        )
    };
    assert_eq!(lists("5m", "live"), Some(2.0));
    assert_eq!(lists("5m", "settled"), None);
    assert_eq!(lists("total", "settled"), Some(1.0));
    let settled_5m = [("window", "5m"), ("view", "settled")].map(|(name, value)| (name.into(), value.into()));
    assert!(
        !scrape
            .keys()
            .any(|(_, labels)| settled_5m.iter().all(|label| labels.contains(label)))
    );
}

#[test]
fn a_ratio_without_shown_items_is_absent_with_its_parts() {
    let scrape = scrape(
        &snapshot(vec![arm("e", "a", [&[NOTHING]; 3], [&[]; 3])]),
        &export(),
    );
    assert_eq!(total_live(&scrape, "abgauge_lists", &[]), Some(1.0));
    assert_eq!(total_live(&scrape, "abgauge_items_shown", &[]), Some(0.0));
    assert_eq!(total_live(&scrape, "abgauge_hit_ratio", &[]), Some(0.0));
    assert_eq!(total_live(&scrape, "abgauge_ctr", &[]), None);
    assert_eq!(
        total_live(&scrape, "abgauge_metric_denominator", &[("metric", "ctr")]),
        None
    );
    assert_eq!(
        total_live(&scrape, "abgauge_metric_denominator", &[("metric", "mrr")]),
        Some(1.0)
    );
}

#[test]
fn only_series_of_additional_profiles_have_a_profile_label() {
    let config = Export {
        metrics: vec!["hit_rate".to_owned(), "coverage".to_owned()],
        numerators: vec!["hit_rate".to_owned()],
        ..export()
    };
    let ranking = fixture::two_profiles();
    let scrape = scrape_of(&snapshot(vec![fixture::arm_of_two_profiles()]), &ranking, &config);
    let (k, second) = (("k", "5"), ("profile", "rs_metrics"));
    let of_both = |name: &str, labels: &[(&str, &str)]| {
        let further = [labels, &[second]].concat();
        [labels, &further].map(|labels| total_live(&scrape, name, labels))
    };
    assert_eq!(of_both("abgauge_hit_ratio", &[k]), [Some(0.5), Some(1.0)]);
    assert_eq!(of_both("abgauge_hit_ratio", &[]), [Some(0.5), Some(1.0)]);
    assert_eq!(of_both("abgauge_coverage", &[k]), [Some(0.75), Some(0.75)]);
    let parts = ["numerator", "denominator"].map(|part| {
        let name = format!("abgauge_metric_{part}");
        of_both(&name, &[("metric", "hit_rate"), k])
    });
    assert_eq!(parts, [[Some(1.0), Some(1.0)], [Some(2.0), Some(1.0)]]);
    assert_eq!(
        of_both("abgauge_lists", &[]),
        [Some(2.0), None],
        "bases have no profile"
    );
}

#[test]
fn distinct_counts_have_no_parts_and_count_the_arms_left_out() {
    let mut snapshot = snapshot(vec![fixture::arm_of_two_profiles()]);
    snapshot.arms_without_coverage = 3;
    let config = Export {
        metrics: vec!["hit_rate".to_owned(), "coverage".to_owned()],
        numerators: vec!["hit_rate".to_owned(), "ctr".to_owned(), "mrr".to_owned()],
        ..export()
    };
    let scrape = scrape_of(&snapshot, &fixture::two_profiles(), &config);
    let of_coverage = ("metric".to_owned(), "coverage".to_owned());
    assert!(!scrape.keys().any(|(_, labels)| labels.contains(&of_coverage)));
    let left_out = &scrape[&("abgauge_coverage_arms_left_out".to_owned(), vec![])];
    assert_eq!(left_out, "3");
}

/// Means of `rs_metrics` are over lists with a click. Instances can be added up from the mean and the number of these
/// lists.
#[test]
fn a_mean_over_some_lists_is_exported_with_its_denominator() {
    let config = Export {
        metrics: ["hit_rate", "ctr", "mrr", "coverage"].map(str::to_owned).to_vec(),
        numerators: Vec::new(),
        ..export()
    };
    let with_denominator = |scrape: &Samples| -> BTreeSet<String> {
        assert!(!scrape.keys().any(|(name, _)| name == "abgauge_metric_numerator"));
        let series = scrape.keys().filter(|(name, labels)| {
            name == "abgauge_metric_denominator" && labels.contains(&("window".to_owned(), "1h".to_owned()))
        });
        let of_metric = |label: &&(String, String)| ["k", "metric", "profile"].contains(&&*label.0);
        let names = series.map(|(_, labels)| {
            let labels: Vec<&str> = labels
                .iter()
                .filter(of_metric)
                .map(|(_, value)| &**value)
                .collect();
            labels.join(" ")
        });
        names.collect()
    };
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let one = scrape(&one_arm(), &config);
    assert_eq!(with_denominator(&one), set(&["1 ctr", "5 ctr", "ctr"]));
    let both = scrape_of(
        &snapshot(vec![fixture::arm_of_two_profiles()]),
        &fixture::two_profiles(),
        &config,
    );
    let further = [
        "1 hit_rate rs_metrics",
        "5 hit_rate rs_metrics",
        "hit_rate rs_metrics",
    ];
    assert_eq!(with_denominator(&both), set(&further));
    let named = Export {
        metrics: vec!["hit_rate".to_owned()],
        ..config
    };
    assert_eq!(
        with_denominator(&scrape(&one_arm(), &named)),
        set(&[]),
        "what is not shown needs none"
    );
}

#[test]
fn each_family_has_a_row_with_its_labels() {
    for (name, labels) in both_scopes(100_000).keys() {
        let row = series().find(|row| row.name == *name).expect(name);
        for (label, _) in labels {
            assert!(row.labels.contains(&&**label), "{name} has no label {label}");
        }
    }
}

#[test]
fn an_empty_board_exports_only_counts_of_omissions() {
    let scrape = scrape(&Snapshot::default(), &export());
    let names: Vec<_> = scrape.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["abgauge_arms_folded", "abgauge_series_dropped"]);
}

#[test]
fn the_configuration_chooses_metrics_ks_windows_views_and_numerators() {
    let config = Export {
        metrics: vec!["ctr".to_owned()],
        k: Some(vec![fixture::ks()[1]]),
        live: vec!["1h".to_owned()],
        settled: Vec::new(),
        numerators: vec!["mrr".to_owned()],
        ..export()
    };
    let scrape = scrape(&one_arm(), &config);
    let place = r#"window="1h" view="live" scope="own""#;
    let seen: Vec<String> = scrape
        .keys()
        .map(|(name, labels)| format!("{name} {labels:?}"))
        .collect();
    let expected: &[(&str, &[&str])] = &[
        ("abgauge_arm_last_list_timestamp_seconds", &[]),
        ("abgauge_arms_folded", &[]),
        ("abgauge_clicks", &[place]),
        ("abgauge_ctr", &[place, r#"k="5""#]),
        ("abgauge_ctr", &[place]),
        ("abgauge_items_shown", &[place]),
        ("abgauge_lists", &[place]),
        ("abgauge_metric_denominator", &[place, r#"metric="ctr" k="5""#]),
        ("abgauge_metric_denominator", &[place, r#"metric="ctr""#]),
        ("abgauge_metric_denominator", &[place, r#"metric="mrr" k="5""#]),
        ("abgauge_metric_denominator", &[place, r#"metric="mrr""#]),
        ("abgauge_metric_numerator", &[place, r#"metric="mrr" k="5""#]),
        ("abgauge_metric_numerator", &[place, r#"metric="mrr""#]),
        ("abgauge_series_dropped", &[]),
    ];
    let expected: BTreeSet<String> = expected
        .iter()
        .map(|(name, blocks)| {
            let own = if name.ends_with("dropped") || name.ends_with("folded") {
                ""
            } else {
                r#"experiment="e" arm="a""#
            };
            let mut labels: Vec<(String, String)> = blocks
                .iter()
                .flat_map(|block| block.split(' '))
                .chain(own.split_whitespace())
                .map(|label| label.split_once('=').unwrap())
                .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
                .collect();
            labels.sort();
            format!("{name} {labels:?}")
        })
        .collect();
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn each_arm_exports_the_time_of_its_last_list() {
    let scrape = scrape(&one_arm(), &export());
    let seconds = value(&scrape, "abgauge_arm_last_list_timestamp_seconds", &[]);
    assert_eq!(seconds, Some(1_763_596_800.25));
}

#[test]
fn the_control_is_the_configured_arm_or_else_the_arm_named_control() {
    let arms = [
        ("a", "control"),
        ("a", "x"),
        ("b", "control"),
        ("b", "x"),
        ("c", "x"),
        ("d", "x"),
    ];
    let arms = arms.map(|(experiment, name)| arm(experiment, name, [&[MISS]; 3], [&[]; 3]));
    let set = [("b", "x"), ("d", "gone")].map(|(experiment, name)| (experiment.into(), name.into()));
    let shown = |max_series| {
        let config = Export {
            max_series,
            ..export()
        };
        let board = snapshot(arms.to_vec());
        let scrape = rendered(&board, &fixture::ranking(), &config, &set.clone().into());
        let controls = scrape
            .iter()
            .filter(|((name, _), _)| name == "abgauge_control_arm");
        let controls = controls.map(|((_, labels), value)| {
            let [(_, arm), (_, experiment)] = &labels[..] else {
                panic!("{labels:?}");
            };
            format!("{experiment}/{arm} {value}")
        });
        let dropped = &scrape[&("abgauge_series_dropped".to_owned(), vec![])];
        (controls.collect::<Vec<_>>(), dropped.parse::<usize>().unwrap())
    };
    assert_eq!(
        shown(100_000),
        (vec!["a/control 1".to_owned(), "b/x 1".to_owned()], 0)
    );
    // Adds one more series to its arm.
    let per_arm = 3 * (3 + 9 * 3) + 1;
    assert_eq!(shown(per_arm), (vec![], 6 * per_arm + 2));
    assert_eq!(
        shown(per_arm + 1),
        (vec!["a/control 1".to_owned()], 5 * per_arm + 1)
    );
}

#[test]
fn an_arm_leaves_once_its_last_list_is_too_old() {
    let mut snapshot = one_arm();
    let forget_after = export().forget_after_ms;
    snapshot.arms[0].last_list_ms = fixture::NOW_MS - forget_after;
    assert!(total_live(&scrape(&snapshot, &export()), "abgauge_lists", &[]).is_some());
    snapshot.arms[0].last_list_ms -= 1;
    let scrape = scrape(&snapshot, &export());
    assert_eq!(total_live(&scrape, "abgauge_lists", &[]), None);
    assert_eq!(scrape[&("abgauge_series_dropped".to_owned(), vec![])], "0");
}

#[test]
fn arms_over_max_series_are_dropped_whole_smallest_first() {
    let arms = vec![
        arm("e", "a", [&[], &[], &[MISS]], [&[]; 3]),
        arm("e", "b", [&[], &[], &[MISS, MISS]], [&[]; 3]),
        arm("e", "c", [&[], &[], &[MISS]], [&[]; 3]),
    ];
    // Three base series; three metrics, each at two cut-offs and over the whole list, with numerator and denominator; the
    // last list.
    let per_arm = 3 + 9 * 3 + 1;
    let shown = |max_series| {
        let scrape = scrape(
            &snapshot(arms.clone()),
            &Export {
                max_series,
                ..export()
            },
        );
        let arms: Vec<String> = scrape
            .keys()
            .filter(|(name, _)| name == "abgauge_lists")
            .map(|(_, labels)| labels[0].1.clone())
            .collect();
        let dropped = &scrape[&("abgauge_series_dropped".to_owned(), vec![])];
        (arms.concat(), dropped.parse::<usize>().unwrap())
    };
    assert_eq!(shown(3 * per_arm), ("abc".to_owned(), 0));
    assert_eq!(shown(3 * per_arm - 1), ("ab".to_owned(), per_arm));
    assert_eq!(shown(2 * per_arm - 1), ("b".to_owned(), 2 * per_arm));
    assert_eq!(shown(0), (String::new(), 3 * per_arm));
}

/// Samples of one partition here and of all partitions, with this bound on series.
fn both_scopes(max_series: usize) -> Samples {
    let own = snapshot(vec![arm("e", "a", [&[HIT]; 3], [&[HIT]; 3])]);
    let all = ["a", "b"].map(|name| arm("e", name, [&[]; 3], [&[HIT, MISS]; 3]));
    parse(&text(&Scrape {
        snapshot: &own,
        global: Some(&snapshot(all.to_vec())),
        looks: &PublishedLooks::default(),
        looks_of: Scope::Own,
        ranking: &fixture::ranking(),
        config: &Export {
            max_series,
            ..export()
        },
        windows: &fixture::windows(),
        controls: &[("e".to_owned(), "b".to_owned())].into(),
    }))
}

#[test]
fn settled_lists_of_all_partitions_are_exported_next_to_own_lists() {
    let samples = both_scopes(1000);
    let lists = |arm: &str, view: &str, scope: &str| {
        let labels = [
            ("arm", arm),
            ("experiment", "e"),
            ("scope", scope),
            ("view", view),
            ("window", "1h"),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        samples
            .get(&("abgauge_lists".to_owned(), labels.to_vec()))
            .map(String::as_str)
    };
    assert_eq!(lists("a", "settled", "own"), Some("1"));
    assert_eq!(lists("a", "live", "own"), Some("1"));
    assert_eq!(lists("a", "settled", "global"), Some("2"));
    assert_eq!(lists("b", "settled", "global"), Some("2"));
    assert_eq!(
        (lists("a", "live", "global"), lists("b", "settled", "own")),
        (None, None)
    );
    // Series without a scope appear once per arm.
    let arms_of = |name: &str| {
        let all = samples.keys().filter(|(known, _)| known == name);
        all.map(|(_, labels)| labels[0].1.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(arms_of("abgauge_arm_last_list_timestamp_seconds"), ["a", "b"]);
    assert_eq!(arms_of("abgauge_control_arm"), ["b"]);
}

#[test]
fn the_bound_on_series_covers_both_scopes() {
    let n_series = |samples: &Samples| samples.keys().filter(|(_, labels)| !labels.is_empty()).count();
    let dropped = |samples: &Samples| {
        let name = ("abgauge_series_dropped".to_owned(), vec![]);
        samples[&name].parse::<usize>().unwrap()
    };
    let whole = both_scopes(1000);
    assert_eq!(dropped(&whole), 0);
    let cut = both_scopes(n_series(&whole) - 1);
    assert!(n_series(&cut) < n_series(&whole));
    assert_eq!(n_series(&cut) + dropped(&cut), n_series(&whole));
}

#[test]
fn arms_keep_the_order_of_the_snapshot_regardless_of_size() {
    let arms = vec![
        arm("e", "small", [&[MISS]; 3], [&[]; 3]),
        arm("e", "the big", [&[MISS, HIT]; 3], [&[]; 3]),
    ];
    let text = text(&Scrape {
        snapshot: &snapshot(arms),
        global: None,
        looks: &PublishedLooks::default(),
        looks_of: Scope::Own,
        ranking: &fixture::ranking(),
        config: &export(),
        windows: &fixture::windows(),
        controls: &BTreeMap::new(),
    });
    let lists = text.lines().filter(|line| line.starts_with("abgauge_lists{"));
    let order: Vec<bool> = lists.map(|line| line.contains(r#"arm="small""#)).collect();
    assert_eq!(order, [true, true, true, false, false, false]);
}

#[test]
fn folded_arms_are_exported_as_a_count() {
    let scrape = scrape(
        &Snapshot {
            folded_arms: 7,
            ..one_arm()
        },
        &export(),
    );
    assert_eq!(scrape[&("abgauge_arms_folded".to_owned(), vec![])], "7");
}

#[test]
fn hostile_labels_survive_escaping() {
    for hostile in [
        "\"} 1\nabgauge_lists{x=\"",
        "\\",
        "\\n",
        "a\rb\0\u{7f}\u{85}\u{2028}",
        "🧪{},=",
        " ",
    ] {
        let scrape = scrape(
            &snapshot(vec![arm(hostile, hostile, [&[HIT]; 3], [&[]; 3])]),
            &export(),
        );
        let (_, labels) = scrape.keys().find(|(name, _)| name == "abgauge_lists").unwrap();
        assert_eq!((&*labels[0].1, &*labels[1].1), (hostile, hostile));
    }
}

/// Column of one metric at one cut-off, with arbitrary content.
fn column(id: &str) -> Column {
    let ranking = fixture::ranking();
    *ranking
        .columns()
        .iter()
        .find(|column| column.metric.id == id && column.k.is_none())
        .unwrap()
}

proptest! {
    #[test]
    fn values_read_back_as_the_same_number(
        lists in 1..i64::MAX,
        shown in 1..i64::MAX,
        parts in prop::array::uniform3(any::<i64>()),
    ) {
        let mut arm = arm("e", "a", [&[]; 3], [&[]; 3]);
        let sums = &mut arm.sums[View::Live as usize][fixture::TOTAL];
        let ids = ["hit_rate", "ctr", "mrr"];
        sums[LISTS] = i128::from(lists) << 40;
        for (id, part) in ids.into_iter().zip(parts) {
            sums[column(id).numerator] = part.into();
            sums[column(id).denominator] = shown.into();
        }
        let sums = sums.clone();
        let scrape = scrape(&snapshot(vec![arm]), &export());

        let mut labels = vec![("experiment", "e"), ("arm", "a")];
        labels.extend(TOTAL_LIVE);
        labels.sort();
        let labels: Vec<_> = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let text = &scrape[&("abgauge_lists".to_owned(), labels)];
        prop_assert_eq!(text.parse::<i128>().unwrap(), sums[LISTS]);
        for id in ids {
            let column = column(id);
            let gauge = format!("abgauge_{}", column.metric.gauge);
            let read = total_live(&scrape, &gauge, &[]).unwrap();
            prop_assert_eq!(read.to_bits(), column.value(&sums).unwrap().to_bits());
            let numerator = total_live(&scrape, "abgauge_metric_numerator", &[("metric", id)]).unwrap();
            prop_assert_eq!(numerator.to_bits(), column.numerator(&sums).to_bits());
        }
    }

    #[test]
    fn any_name_survives_escaping(experiment in ".{1,40}", arm_name in any::<String>()) {
        let scrape = scrape(&snapshot(vec![arm(&experiment, &arm_name, [&[HIT]; 3], [&[]; 3])]), &export());
        let (_, labels) = scrape.keys().find(|(name, _)| name == "abgauge_lists").unwrap();
        prop_assert_eq!((&labels[0].1, &labels[1].1), (&arm_name, &experiment));
    }
}
