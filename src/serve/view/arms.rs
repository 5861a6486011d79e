//! Rows of the page: the arms that match a query, and their values.

use std::collections::BTreeMap;

use abgauge_core::engine::View;
use abgauge_core::looks::{self, ArmLook, Experiment, ExperimentLook};
use abgauge_core::metrics::{CLICKS, Column, ITEMS_SHOWN, LISTS, Parts};
use abgauge_core::statistics::per_user::is_per_user;
use abgauge_core::statistics::{MetricRole, Size, SpanLift};
use abgauge_core::verdict::{ArmVerdict, Headline};
use serde::Serialize;

use super::super::about::Descriptions;
use super::super::api::LooksEntry;
use super::super::control_of;
use super::super::headline::{self, Moment};
use super::super::verdict::of_look;
use super::order;
use super::query::ViewQuery;
use super::totals::{planned_shares, total_size};
use crate::board::snapshot::{ArmSnapshot, SnapshotSource, Timeline};
use crate::settings::AboutExperiment;

/// Experiment with the arms that match.
pub(super) struct SelectedExperiment<'a> {
    name: &'a str,
    about: Option<&'a AboutExperiment>,
    /// Name of the control, which may have no lists.
    control: Option<&'a str>,
    control_arm: Option<&'a ArmSnapshot>,
    is_configured: bool,
    /// Lists of all arms since the start.
    n_lists: i128,
    n_arms: usize,
    /// Names of all arms besides the control, sorted.
    names: Vec<&'a str>,
    /// The arms among them that match.
    others: Vec<&'a ArmSnapshot>,
    headline: Headline,
    looks: Option<LooksEntry<'a>>,
    compared_with: Option<&'a str>,
    /// Users of all arms at the latest look.
    users: Option<f64>,
    /// Latest look.
    look: Option<&'a ExperimentLook>,
}

/// Experiment shown only by its name and its number of lists.
#[derive(Serialize)]
pub(super) struct FoldedExperiment<'a> {
    name: &'a str,
    lists: i128,
}

/// A name with fewer lists is folded if the largest experiment has [`MANY_LISTS`].
const FEW_LISTS: i128 = 100;
const MANY_LISTS: i128 = 1_000;
/// A name is folded if its lists times this are fewer than those of the largest experiment.
const MIN_SHARE: i128 = 100;

/// Configured experiments, and the latest look at them.
#[derive(Clone, Copy)]
pub(super) struct LatestLook<'a> {
    pub asked: &'a BTreeMap<String, Experiment>,
    pub descriptions: &'a Descriptions,
    pub shown: &'a looks::PublishedLooks,
    pub moment: Moment,
}

/// Returns the matching experiments sorted by badge, then name. The filter passes arms with a matching name, and all arms
/// of an experiment with a matching name.
pub(super) fn find<'a>(
    arms: &[&'a ArmSnapshot],
    query: &ViewQuery,
    alone: Option<&str>,
    controls: &'a BTreeMap<String, String>,
    looked: LatestLook<'a>,
) -> Vec<SelectedExperiment<'a>> {
    let passes = |name: &str| query.filter.is_empty() || name.to_lowercase().contains(&query.filter);
    let mut found = Vec::new();
    for arms in arms.chunk_by(|a, b| a.experiment == b.experiment) {
        let name: &'a str = &arms[0].experiment;
        if alone.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let control = control_of(controls, arms);
        let is_control = |arm: &&&ArmSnapshot| Some(&*arm.arm) == control;
        let all = passes(name);
        let others = || arms.iter().filter(|arm| !is_control(arm)).copied();
        let names = others().map(|arm| &*arm.arm).collect();
        let others: Vec<_> = others().filter(|arm| all || passes(&arm.arm)).collect();
        // An experiment is also found by its control, which is not among the others.
        if !all && others.is_empty() && !control.is_some_and(passes) {
            continue;
        }
        let look = looked.shown.experiments.get(name).map(AsRef::as_ref);
        found.push(SelectedExperiment {
            name,
            about: looked.descriptions.get(name),
            control: control.or(controls.get(name).map(String::as_str)),
            control_arm: arms.iter().find(is_control).copied(),
            is_configured: looked.asked.contains_key(name),
            n_lists: arms.iter().map(|arm| total_lists(arm)).sum(),
            n_arms: arms.len(),
            names,
            others,
            headline: headline::of(name, looked.asked.get(name), looked.shown, arms, looked.moment),
            looks: LooksEntry::of(name, looked.asked, looked.shown),
            compared_with: compared_with(looked.asked.get(name), look),
            users: look.and_then(|look| {
                let planned = planned_shares(looked.asked.get(name), look);
                total_size(look, &planned).users
            }),
            look,
        });
    }
    // A misspelled name in one record must not come before the experiments that were configured.
    let key = |of: &SelectedExperiment| (!of.is_configured, of.headline.badge);
    found.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| order::natural(a.name, b.name)));
    found
}

/// Removes and returns experiments that are not configured and have very few lists compared with the largest one. Most are
/// misspelled names.
pub(super) fn fold<'a>(found: &mut Vec<SelectedExperiment<'a>>) -> Vec<FoldedExperiment<'a>> {
    let most = found.iter().map(|of| of.n_lists).max().unwrap_or(0);
    let is_tiny = |of: &mut SelectedExperiment| {
        let is_few = of.n_lists < FEW_LISTS && most >= MANY_LISTS;
        !of.is_configured && (is_few || of.n_lists * MIN_SHARE < most)
    };
    let folded = found.extract_if(.., is_tiny);
    folded
        .map(|of| FoldedExperiment {
            name: of.name,
            lists: of.n_lists,
        })
        .collect()
}

impl<'a> SelectedExperiment<'a> {
    /// Returns the number of arms besides the control.
    pub fn n_others(&self) -> usize {
        self.others.len()
    }

    /// Returns the control, and `n` others from `first` on, in the order of the query.
    pub fn show(
        mut self,
        first: usize,
        n: usize,
        query: &ViewQuery,
        sort_by: Option<&Column>,
        columns: &[Option<&Column>],
    ) -> ShownExperiment<'a> {
        // The control is not sorted, because it is the first row of every page.
        order::sort(&mut self.others, query, sort_by, self.look);
        let n_found = self.others.len() + usize::from(self.control_arm.is_some());
        let others = self.others.into_iter().skip(first).take(n);
        let rows = self.control_arm.into_iter().chain(others);
        ShownExperiment {
            name: self.name,
            about: self.about,
            control: self.control,
            n_arms: self.n_arms,
            n_found,
            verdict: self.headline,
            looks: self.looks,
            compared_with: self.compared_with,
            users: self.users,
            arms: rows
                .map(|arm| ArmRow {
                    number: self.names.binary_search(&&*arm.arm).ok(),
                    comparison: self.look.and_then(|look| comparison(arm, look, columns)),
                    analysis: self.look.and_then(|look| AnalyzedArm::of(&arm.arm, look)),
                    own: self.look.and_then(|look| own(arm, look, columns)),
                    ..ArmRow::of(arm, query, columns)
                })
                .collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ShownExperiment<'a> {
    name: &'a str,
    #[serde(flatten)]
    about: Option<&'a AboutExperiment>,
    /// Arm that the others are compared with. If it has lists, it is the first arm on every page.
    control: Option<&'a str>,
    n_arms: usize,
    /// Arms that pass the filter, plus the control.
    n_found: usize,
    /// Headline.
    verdict: Headline,
    #[serde(skip_serializing_if = "Option::is_none")]
    looks: Option<LooksEntry<'a>>,
    /// Control of the looks. Null if arms are not compared.
    compared_with: Option<&'a str>,
    /// Users at the latest look: the sum over the arms with a share, or over all arms if none has one, whatever the filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<f64>,
    arms: Vec<ArmRow<'a>>,
}

#[derive(Serialize)]
struct ArmRow<'a> {
    name: &'a str,
    /// Position among the names of all arms besides the control, whatever the order and the filter. The control has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    last_list_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<ArmValues>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<ArmValues>,
    /// Sample of the arm at the latest look.
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis: Option<AnalyzedArm<'a>>,
    /// Comparison with the control at the latest look.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<ArmVerdict<'a>>,
    /// Results of the arm on its own, if looks have no control.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<ArmLook>,
    #[serde(skip)]
    of: &'a ArmSnapshot,
}

/// Sample of an arm at a look, with its planned share of users.
#[derive(Serialize)]
struct AnalyzedArm<'a> {
    #[serde(flatten)]
    size: Size,
    /// Settled lists without a user.
    lists_without_user: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    /// Lifts by metric in the window that ends with the look, by the window's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lifts: BTreeMap<&'a str, &'a BTreeMap<String, SpanLift>>,
}

impl<'a> AnalyzedArm<'a> {
    fn of(arm: &str, look: &'a ExperimentLook) -> Option<AnalyzedArm<'a>> {
        let own = look.arms.get(arm)?;
        let settings = look.comparison.as_ref().map(|(settings, _)| settings);
        let share = settings.and_then(|settings| settings.shares.get(arm).copied());
        let windows = own.windows.iter().filter(|(_, window)| !window.lifts.is_empty());
        Some(AnalyzedArm {
            size: own.size,
            lists_without_user: own.lists_without_user,
            share,
            lifts: windows
                .map(|(name, window)| (name.as_str(), &window.lifts))
                .collect(),
        })
    }
}

/// Values of one view of the window, absent without lists.
#[derive(Serialize)]
struct ArmValues {
    lists: i128,
    clicks: i128,
    items_shown: i128,
    /// Values by metric, null if undefined.
    values: Vec<Option<f64>>,
    /// Numerator and denominator of each value.
    parts: Vec<Option<Parts>>,
    line: Option<Sparkline>,
}

/// Cells of the window, oldest first.
#[derive(Serialize)]
pub(super) struct Sparkline {
    start_ms: i64,
    cell_ms: i64,
    lists: Vec<i128>,
    /// Values by metric, rounded to five digits, null if undefined.
    values: Vec<Vec<Option<f64>>>,
}

impl<'a> ArmRow<'a> {
    fn of(arm: &'a ArmSnapshot, query: &ViewQuery, columns: &[Option<&Column>]) -> ArmRow<'a> {
        let place = |view| {
            let sums = arm.sums(view, query.window);
            let parts = columns
                .iter()
                .map(|column| column.and_then(|column| column.parts(sums)));
            (sums[LISTS] != 0).then(|| ArmValues {
                lists: sums[LISTS],
                clicks: sums[CLICKS],
                items_shown: sums[ITEMS_SHOWN],
                values: parts.clone().map(|parts| parts.map(Parts::value)).collect(),
                parts: parts.collect(),
                line: None,
            })
        };
        ArmRow {
            name: &arm.arm,
            number: None,
            last_list_ms: arm.last_list_ms,
            live: place(View::Live),
            settled: place(View::Settled),
            analysis: None,
            comparison: None,
            own: None,
            of: arm,
        }
    }
}

fn total_lists(arm: &ArmSnapshot) -> i128 {
    let total = arm.sums[View::Live as usize].last();
    total.and_then(|sums| sums.get(LISTS)).copied().unwrap_or(0)
}

/// Returns the control of the latest look, or the configured one before the first look.
fn compared_with<'a>(asked: Option<&'a Experiment>, look: Option<&'a ExperimentLook>) -> Option<&'a str> {
    let settings = match look {
        Some(look) => look.comparison.as_ref().map(|(settings, _)| settings),
        None => asked?.settings.as_ref(),
    };
    settings.map(|settings| settings.control.as_str())
}

/// Returns a verdict with the metrics that decide, those per user, and the selected ones at the selected cut-off.
fn comparison<'a>(
    arm: &'a ArmSnapshot,
    look: &'a ExperimentLook,
    columns: &[Option<&Column>],
) -> Option<ArmVerdict<'a>> {
    let mut verdict = of_look(&arm.experiment, &arm.arm, look)?;
    let chosen = chosen(columns);
    verdict.retain_metrics(|key, role| {
        role != MetricRole::Secondary || is_per_user(key) || chosen.iter().any(|it| it == key)
    });
    Some(verdict)
}

/// Returns the selected metrics at the selected cut-off for an arm without a comparison.
fn own(arm: &ArmSnapshot, look: &ExperimentLook, columns: &[Option<&Column>]) -> Option<ArmLook> {
    if look.comparison.is_some() {
        return None;
    }
    let own = look.arms.get(&*arm.arm)?;
    let metrics = chosen(columns).into_iter();
    Some(ArmLook {
        metrics: metrics
            .filter_map(|key| own.metrics.get(&key).map(|metric| (key, *metric)))
            .collect(),
        windows: BTreeMap::new(),
        ..*own
    })
}

/// Returns the keys of the selected metrics.
fn chosen(columns: &[Option<&Column>]) -> Vec<String> {
    columns.iter().flatten().map(|column| column.key()).collect()
}

/// Adds the sparklines of all rows, which are fetched together.
pub(super) fn with_lines<'a>(
    mut experiments: Vec<ShownExperiment<'a>>,
    source: &dyn SnapshotSource,
    window: usize,
    columns: &[Option<&Column>],
) -> Vec<ShownExperiment<'a>> {
    let rows = experiments.iter().flat_map(|experiment| &experiment.arms);
    let arms: Vec<&ArmSnapshot> = rows.map(|row| row.of).collect();
    let timelines = source.timelines(window, &arms);
    let rows = experiments.iter_mut().flat_map(|experiment| &mut experiment.arms);
    for (row, timelines) in rows.zip(timelines) {
        // The arm may have left the board since the snapshot.
        let Some([live, settled]) = timelines else {
            continue;
        };
        for (place, timeline) in [(&mut row.live, live), (&mut row.settled, settled)] {
            if let Some(place) = place {
                place.line = Some(Sparkline::of(&timeline, columns));
            }
        }
    }
    experiments
}

impl Sparkline {
    pub fn of(timeline: &Timeline, columns: &[Option<&Column>]) -> Sparkline {
        let cells = &timeline.cells;
        let value = |column: &Option<&Column>, cell: &Option<Box<[i128]>>| {
            Some(five_digits((*column)?.value(cell.as_ref()?)?))
        };
        let line = |column| cells.iter().map(|cell| value(column, cell)).collect();
        Sparkline {
            start_ms: timeline.start_ms,
            cell_ms: timeline.cell_ms,
            lists: cells
                .iter()
                .map(|cell| cell.as_ref().map_or(0, |sums| sums[LISTS]))
                .collect(),
            values: columns.iter().map(line).collect(),
        }
    }
}

/// Rounds to five digits: enough for a line some pixels high, and it halves the answer for fifty arms.
fn five_digits(value: f64) -> f64 {
    // The logarithm of 0 is not finite.
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
