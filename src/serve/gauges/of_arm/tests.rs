//! Tests of the number of series, as printed in docs/sizing.md.

use std::collections::BTreeMap;

use abgauge_core::looks::{ArmLook, ExperimentLook, MetricLook, WindowLook, compared};
use abgauge_core::metrics::{ListOutcome, Parts};
use abgauge_core::statistics::per_user;
use abgauge_core::statistics::{ArmReport, Interval, MetricReport, MetricRole, Size};

use super::super::Scrape;
use super::super::tests::{parse, text};
use super::*;
use crate::board::snapshot::ArmSnapshot;
use crate::serve::fixture::{self, snapshot};
use crate::settings;

const CONTROL: &str = "[experiments.ranker]\ncontrol = \"arm-1\"\n";
/// Configuration with all series, the default up to 0.1.
const EVERYTHING: &str = "[export]\nviews = [\"live\", \"settled\"]\nsecondary = true\n\
    numerators = [\"hit_rate\", \"ctr\", \"mrr\", \"ndcg\", \"precision\", \"recall\", \"map\"]\n";
const STATE: &str = "[state]\ntopic = \"abgauge-state\"\n";

fn configured(text: &str) -> Config {
    let text = format!("[kafka]\nbrokers = \"b:1\"\nkey = \"user\"\n{text}");
    let loaded = settings::load_text("abgauge.toml", &text, std::iter::empty());
    loaded.unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

/// Arms of `ranker` with all numbers known in all windows, at the second look.
struct Whole {
    config: Config,
    ranking: Ranking,
    arms: Vec<ArmSnapshot>,
    shown: PublishedLooks,
}

impl Whole {
    fn of(text: &str, n_arms: usize) -> Whole {
        let config = configured(text);
        let ranking = Ranking::new(&config.measures);
        let names: Vec<String> = (1..=n_arms).map(|n| format!("arm-{n}")).collect();
        let n_windows = config.windows.len() + 1;
        let arms = names.iter().enumerate().map(|(n, name)| {
            let sums: Box<[i128]> = sums(&ranking, n).into();
            ArmSnapshot {
                experiment: "ranker".into(),
                arm: name.as_str().into(),
                sums: [(); 2].map(|()| vec![sums.clone(); n_windows]),
                ..fixture::arm("e", "a", [&[]; 3], [&[]; 3])
            }
        });
        let shown = shown(&config, &ranking, &names);
        Whole {
            arms: arms.collect(),
            config,
            ranking,
            shown,
        }
    }

    fn scraped(&self) -> String {
        let all = snapshot(self.arms.clone());
        text(&Scrape {
            snapshot: &all,
            global: self.config.global.then_some(&all),
            looks: &self.shown,
            looks_of: if self.config.global {
                Scope::Global
            } else {
                Scope::Own
            },
            ranking: &self.ranking,
            config: &self.config.export,
            windows: &self.config.windows,
            controls: &self.config.experiment_controls(),
        })
    }
}

/// Sums of some thousands of lists of ten items, a tenth of them with a click or two.
fn sums(ranking: &Ranking, nth: usize) -> Vec<i128> {
    let mut tally = vec![0; ranking.width()];
    let list = |clicked: &'static [u32]| ListOutcome {
        n_items: 10,
        clicked,
        n_off_list: 0,
    };
    for (clicked, n) in [
        (&[][..], 10_007),
        (&[0b1][..], 313),
        (&[0b100_0010][..], 401),
        (&[0b10_0000_0000][..], 103),
    ] {
        let mut of_list = vec![0; ranking.width()];
        ranking.contribute(&list(clicked), &mut of_list);
        let n_lists = n + nth as i64;
        tally
            .iter_mut()
            .zip(&of_list)
            .for_each(|(sum, term)| *sum += term * n_lists);
    }
    tally.into_iter().map(i128::from).collect()
}

fn shown(config: &Config, ranking: &Ranking, names: &[String]) -> PublishedLooks {
    let Some(experiment) = config.experiments.get("ranker") else {
        return PublishedLooks::default();
    };
    let interval = Some(Interval {
        lower: 0.012_345_678_901_234,
        upper: 0.023_456_789_012_345,
    });
    let look = MetricLook {
        value: 0.017,
        parts: Parts {
            numerator: 17.0,
            denominator: 1000.0,
        },
        interval,
    };
    let keys: Vec<String> = compared(ranking).map(|column| column.key()).collect();
    let metrics: BTreeMap<String, MetricLook> = keys.iter().map(|key| (key.clone(), look)).collect();
    let window = config.look_window().map(|window| {
        let metrics = metrics.clone();
        let look = WindowLook {
            lists: 1.0,
            metrics,
            lifts: BTreeMap::new(),
        };
        (window.name, look)
    });
    let of_arm = ArmLook {
        size: Size {
            lists: 1.0,
            users: Some(123_456.0),
        },
        lists_without_user: 0.0,
        top_user_lists: Some(0.123_456_789),
        metrics,
        windows: window.into_iter().collect(),
    };
    let mut example = fixture::looks::compared();
    let (_, mut report) = example.comparison.take().expect("it is compared");
    let tested = report.arms.remove("b").expect("it is tested");
    let known = tested.metrics["hit_rate@5"];
    let comparison = experiment.settings.clone().map(|settings| {
        let of_key = |key: &str| {
            let role = settings.role(key);
            let decision = known.decision.filter(|_| role != MetricRole::Secondary);
            (
                key.to_owned(),
                MetricReport {
                    role,
                    decision,
                    ..known
                },
            )
        };
        let keys = keys.iter().map(String::as_str).chain(per_user::ids());
        let arm = ArmReport {
            metrics: keys.map(of_key).collect(),
            ..tested
        };
        let treatments = names.iter().filter(|name| **name != settings.control);
        report.arms = treatments.map(|name| (name.clone(), arm.clone())).collect();
        (settings, report)
    });
    let look = ExperimentLook {
        arms: names.iter().map(|name| (name.clone(), of_arm.clone())).collect(),
        comparison,
        ..example
    };
    PublishedLooks {
        experiments: [("ranker".to_owned(), look.into())].into(),
        ..fixture::looks::shown()
    }
}

/// Number of series that carry each arm's name.
fn of_arms(whole: &Whole) -> BTreeMap<String, usize> {
    let mut n_series = BTreeMap::new();
    for (_, labels) in parse(&whole.scraped()).keys() {
        if let Some((_, arm)) = labels.iter().find(|(name, _)| name == "arm") {
            *n_series.entry(arm.clone()).or_default() += 1;
        }
    }
    n_series
}

#[test]
fn the_series_bound_of_an_arm_is_tight() {
    let guardrails = format!(
        "{CONTROL}primary = [\"ctr@10\", \"mrr\"]\nguardrails = {{ lists_per_user = 0.02 }}\n\
        shares = {{ arm-1 = 0.5, arm-2 = 0.25, arm-3 = 0.25 }}\n"
    );
    for text in [
        "",
        EVERYTHING,
        "[export]\nmetrics = [\"mrr\"]\nk = [5]\nviews = [\"live\"]\n",
        "[experiments.ranker]\n",
        CONTROL,
        &guardrails,
        &format!("{EVERYTHING}{CONTROL}"),
        &format!("{STATE}{guardrails}"),
        "[metrics]\nprofile = [\"default\", \"rs_metrics\"]\n",
    ] {
        let reported = SeriesOfArm::of(&configured(text));
        let n_series = of_arms(&Whole::of(text, 3));
        // A treatment is compared and is not a control, so it lacks that one series.
        let most = n_series.values().max().expect("an arm");
        assert_eq!(*most, reported.sum() - 1, "{text}: {reported:?} {n_series:?}");
    }
}

#[test]
fn an_arm_has_at_most_250_series_with_up_to_three_deciding_metrics() {
    let of = |text: &str| SeriesOfArm::of(&configured(text));
    assert!(of("").sum() <= 250, "{:?}", of(""));
    let three = "primary = [\"ctr@10\", \"hit_rate@10\"]\nguardrails = { mrr = 0.02 }\n";
    let compared = of(&format!("{CONTROL}{three}"));
    assert!(compared.sum() <= 250, "{compared:?}");
    let stored = of(&format!("{STATE}{CONTROL}"));
    assert!(stored.sum() <= 250 && stored.global > 0, "{stored:?}");
}

/// Rows of the table by arms in docs/sizing.md: scrape sizes with these settings.
#[test]
fn scrape_sizes_match_the_documented_table() {
    let settings = [
        ("default", String::new()),
        ("default, compared", CONTROL.to_owned()),
        ("everything", EVERYTHING.to_owned()),
        ("everything, compared", format!("{EVERYTHING}{CONTROL}")),
    ];
    let rows = settings.map(|(name, text)| {
        let of = |n_arms| {
            let scraped = Whole::of(&text, n_arms).scraped();
            (parse(&scraped).len(), scraped.len() as f64 / 1e6)
        };
        let ((few, few_mb), (many, many_mb)) = (of(4), of(310));
        let an_arm = SeriesOfArm::of(&configured(&text)).sum();
        let row = format!("| {name} | {an_arm} | {few} | {few_mb:.2} MB | {many} | {many_mb:.1} MB |");
        println!("{row}");
        row
    });
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sizing.md");
    // The document groups digits.
    let document = std::fs::read_to_string(path)
        .expect("it can be read")
        .replace(',', "");
    for row in rows {
        assert!(
            document.contains(&row.replace(',', "")),
            "docs/sizing.md lacks: {row}"
        );
    }
}
