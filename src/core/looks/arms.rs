//! Results of each arm alone: its metrics and their pointwise intervals, since the start and in the window. The API and the page
//! write these types as they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::LookRules;
use super::pair::{ExperimentUsers, PairUsers};
use super::sums::{arm_totals, compared};
use crate::ledger::{BucketSums, FrequentUsers};
use crate::metrics::{Column, Parts};
use crate::statistics::{
    ArmTotals, ComparisonReport, ErrorLevel, EstimatedRatio, Interval, RatioShape, Settings, Sides, Size,
    SpanLift, Totals, ratio, span_lifts,
};

/// One arm alone, over all epochs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmLook {
    #[serde(flatten)]
    pub size: Size,
    /// Lists that have no user.
    #[serde(skip)]
    pub lists_without_user: f64,
    /// Lists of the user with the most, estimated. None if users are not counted.
    #[serde(skip)]
    pub top_user_lists: Option<f64>,
    /// Metrics by id.
    pub metrics: BTreeMap<String, MetricLook>,
    /// Results in the window that ends with the look, by the window's name. Absent if the arm has no list there.
    pub windows: BTreeMap<String, WindowLook>,
}

/// An arm in a window, over all epochs in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowLook {
    /// Served lists.
    #[serde(serialize_with = "crate::statistics::whole")]
    pub lists: f64,
    /// Metrics by id. Intervals hold with 95% whatever the experiment's settings, so that one alerting rule fits all.
    pub metrics: BTreeMap<String, MetricLook>,
    /// Lifts of primary metrics and guardrails over the control, by id. Their intervals hold with 95%, too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lifts: BTreeMap<String, SpanLift>,
}

/// A metric of an arm with its pointwise interval, which is None if too little is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricLook {
    pub value: f64,
    #[serde(flatten)]
    pub parts: Parts,
    #[serde(flatten)]
    pub interval: Option<Interval>,
}

/// Error probability of intervals in windows, and of those without settings.
const ALPHA: f64 = 0.05;

/// Computes the results of each arm alone, and its lifts in the window. Intervals since the start hold with probability 1 − α, by
/// default 95%. `sides` are the arms of `totals`, prepared epoch by epoch. `comparison` has the settings and the report of the look.
/// There are no lifts if shares changed within the window.
pub(super) fn arms(
    totals: &Totals,
    sides: &Sides,
    pairs: &[(&PairUsers, &ExperimentUsers)],
    rules: &LookRules,
    comparison: Option<&(Settings, ComparisonReport)>,
    is_one_epoch: bool,
) -> BTreeMap<String, ArmLook> {
    let mut by_arm: BTreeMap<&str, Vec<&ArmTotals>> = BTreeMap::new();
    for (name, arm) in totals.epochs.iter().flat_map(|epoch| &epoch.arms) {
        by_arm.entry(name).or_default().push(arm);
    }
    let windows = window_sums(pairs);
    let frequent = frequent_users(pairs);
    // Intervals of windows do not depend on the settings of an experiment.
    let alpha = comparison.map_or(ALPHA, |(settings, _)| settings.alpha);
    let [level, level_of_window] = [alpha, ALPHA].map(ErrorLevel::new);
    let control = comparison
        .filter(|_| is_one_epoch)
        .and_then(|(settings, report)| {
            let sums = windows.get(settings.control.as_str())?;
            Some((arm_totals(sums, None, &rules.ranking), settings, report))
        });
    let control_of = |name: &str| {
        let (totals, settings, report) = control.as_ref()?;
        let is_comparable = report.arms.get(name)?.incomparable.is_none();
        is_comparable.then_some((totals, *settings))
    };
    let look = |(name, epochs): (&str, Vec<&ArmTotals>)| {
        let window = rules.window.as_ref().zip(windows.get(name));
        let arm = ArmLook {
            size: Size {
                lists: n_lists(&epochs),
                users: epochs.iter().map(|arm| arm.users).sum(),
            },
            lists_without_user: epochs.iter().map(|arm| arm.lists_without_user).sum(),
            top_user_lists: rules
                .counts_users
                .then(|| frequent.get(name).map_or(0.0, FrequentUsers::most)),
            metrics: match epochs[..] {
                // A single epoch has its ratios prepared.
                [_] => metrics(&epochs, rules, &level, |keys| {
                    keys.iter().map(|key| sides.ratio(name, key)).collect()
                }),
                // Several epochs are added up before ratios are taken.
                _ => metrics(&epochs, rules, &level, |keys| ratios(&epochs, keys)),
            },
            windows: window
                .map(|(window, sums)| {
                    let look = window_look(sums, rules, &level_of_window, control_of(name));
                    (window.name.clone(), look)
                })
                .into_iter()
                .collect(),
        };
        (name.to_owned(), arm)
    };
    by_arm.into_iter().map(look).collect()
}

/// Merges the sketches that find the user with the most lists, by arm, over all pairs and epochs.
fn frequent_users<'a>(pairs: &[(&'a PairUsers, &'a ExperimentUsers)]) -> BTreeMap<&'a str, FrequentUsers> {
    let mut arms: BTreeMap<&str, FrequentUsers> = BTreeMap::new();
    for (pair, users) in pairs {
        for (arm, epochs) in &users.arms {
            let of_arm = arms.entry(pair.name(*arm)).or_default();
            epochs.values().for_each(|epoch| of_arm.merge(&epoch.frequent));
        }
    }
    arms
}

/// Collects the window sums of each arm, pair by pair.
fn window_sums<'a>(pairs: &[(&'a PairUsers, &'a ExperimentUsers)]) -> BTreeMap<&'a str, Vec<&'a BucketSums>> {
    let mut arms: BTreeMap<&str, Vec<&BucketSums>> = BTreeMap::new();
    for (pair, users) in pairs {
        for (arm, sums) in users.window.sums() {
            arms.entry(pair.name(arm)).or_default().push(sums);
        }
    }
    arms
}

/// Computes the results of an arm in the window. `control` has the sums of the control there.
fn window_look(
    sums: &[&BucketSums],
    rules: &LookRules,
    level: &ErrorLevel,
    control: Option<(&ArmTotals, &Settings)>,
) -> WindowLook {
    let arm = arm_totals(sums, None, &rules.ranking);
    let totals = [&arm];
    WindowLook {
        lists: n_lists(&totals),
        metrics: metrics(&totals, rules, level, |keys| ratios(&totals, keys)),
        lifts: control
            .map(|(control, settings)| span_lifts(&arm, control, settings.watched(), ALPHA))
            .unwrap_or_default(),
    }
}

fn n_lists(parts: &[&ArmTotals]) -> f64 {
    parts.iter().flat_map(|arm| &arm.lists).sum()
}

/// Computes the metrics by id over several parts of time together. `ratios` returns the ratios of the given ids.
fn metrics(
    parts: &[&ArmTotals],
    rules: &LookRules,
    level: &ErrorLevel,
    ratios: impl FnOnce(&[String]) -> Vec<Option<EstimatedRatio>>,
) -> BTreeMap<String, MetricLook> {
    let n_hits: f64 = parts.iter().flat_map(|arm| &arm.hits).sum();
    let keys: Vec<String> = compared(&rules.ranking).map(Column::key).collect();
    let ratios = ratios(&keys);
    let columns = compared(&rules.ranking).zip(ratios);
    let metrics = keys
        .into_iter()
        .zip(columns)
        .filter_map(|(key, (column, ratio))| {
            let shape = RatioShape {
                hits: column.metric.counts_clicks.then_some(n_hits),
                is_share: rules.ranking.is_bounded(column),
            };
            let ratio = ratio?;
            let metric = MetricLook {
                value: ratio.value,
                parts: ratio.parts,
                interval: ratio.interval(shape, level),
            };
            Some((key, metric))
        });
    metrics.collect()
}

/// Computes the ratios over the sums of all parts.
fn ratios(parts: &[&ArmTotals], keys: &[String]) -> Vec<Option<EstimatedRatio>> {
    let lists = sum(parts.iter().map(|arm| &arm.lists));
    let terms = keys.iter().map(|key| {
        let parts = || parts.iter().map(|arm| &arm.metrics[key]);
        [
            sum(parts().map(|terms| &terms.numerators)),
            sum(parts().map(|terms| &terms.denominators)),
        ]
    });
    let terms: Vec<[Cow<[f64]>; 2]> = terms.collect();
    let terms: Vec<[&[f64]; 2]> = terms.iter().map(|[one, other]| [&**one, &**other]).collect();
    ratio::ratios(&lists, &terms)
}

/// Adds columns of several parts.
fn sum<'a>(mut columns: impl Iterator<Item = &'a Vec<f64>>) -> Cow<'a, [f64]> {
    let mut sum = columns.next().map_or(Cow::default(), Cow::from);
    for column in columns {
        let terms = sum.to_mut().iter_mut().zip(column);
        terms.for_each(|(sum, term)| *sum += term);
    }
    sum
}
