//! `/api/v1/view`: data of the live page. Arms are filtered, sorted and paged here for one window, cut-off and profile, so
//! that ten thousand arms cost the page no more than fifty.

mod arms;
pub(super) mod charts;
mod order;
mod query;
mod totals;

use std::num::NonZeroU32;

use abgauge_core::metrics::{Column, Ranking};
use abgauge_core::statistics::MetricDefinition;
use serde::Serialize;

use self::arms::{FoldedExperiment, LatestLook, SelectedExperiment, ShownExperiment};
pub(super) use self::query::{ViewParameters, ViewQuery};
use super::api::{MeasuredProfile, StreamSummary, profiles, window_names};
use super::headline::Moment;
use super::scope::{GlobalScope, GlobalStatus, Scope};
use super::{Exporter, shown_arms};
use crate::board::snapshot::{ArmSnapshot, Snapshot};

/// Experiments per page.
const EXPERIMENTS: usize = 10;
/// Maximum number of folded names that are listed.
const FOLDED: usize = 10;
/// Arms shown of each experiment, not counting its control, if there are several experiments.
const ARMS_OF_MANY: usize = 10;
/// Arms per page for a single experiment, not counting its control.
const ARMS_OF_ONE: usize = 50;
/// Maximum number of partitions that are listed individually. Those furthest behind come first.
const PARTITIONS: usize = 64;

#[derive(Serialize)]
struct ViewDocument<'a> {
    version: u32,
    /// Set if the numbers are simulated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    demo: bool,
    chosen: Chosen<'a>,
    /// Notes about requested things that do not exist, in sentences.
    notes: &'a [String],
    windows: Vec<&'a str>,
    /// Window whose cells make up the sparklines.
    line_window: &'a str,
    k: &'a [NonZeroU32],
    profiles: Vec<MeasuredProfile<'a>>,
    /// Definitions of the measured metrics and of those per user, in the order of export.
    definitions: Vec<MetricDefinition>,
    experiments: Vec<ShownExperiment<'a>>,
    /// Names with very few lists, which are not among the experiments. At most [`FOLDED`] are listed.
    folded: Vec<FoldedExperiment<'a>>,
    n_folded: usize,
    /// Experiments with an arm that passes the filter, without folded ones.
    n_experiments: usize,
    /// Experiments before the filter, without folded ones.
    n_experiments_in_all: usize,
    n_arms_in_all: usize,
    /// Set if looks cover the partitions whose values are shown.
    has_looks_of_scope: bool,
    /// Event time of the newest list of any arm.
    newest_list_ms: Option<i64>,
    /// Page number from 1. Pages hold arms if a single experiment is shown, else experiments.
    page: usize,
    n_pages: usize,
    n_partitions: usize,
    /// Records between the read positions and the ends of the log, over all partitions.
    lag: i64,
    stream: StreamSummary<'a>,
    /// Status of the global view, if scopes can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    global: Option<GlobalStatus>,
}

/// Effective choice: what was requested, as far as it exists.
#[derive(Serialize)]
struct Chosen<'a> {
    window: &'a str,
    /// Cut-off, with `null` for the whole list.
    k: Option<NonZeroU32>,
    profile: &'a str,
    metrics: &'a [&'static str],
    sort: String,
    filter: &'a str,
    experiment: Option<&'a str>,
    /// Present if scopes can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

/// Appends the answer to `query`, from a snapshot of the query's scope. Sparklines are not in the snapshot and show the
/// present.
pub(super) fn render(
    exporter: &Exporter,
    query: &ViewQuery,
    snapshot: &Snapshot,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    let scope = query.scope;
    let arms = match exporter.has_numbers(scope) {
        true => shown_arms(snapshot, exporter.export.forget_after_ms),
        false => Vec::new(),
    };
    let n_experiments_in_all = arms.chunk_by(|a, b| a.experiment == b.experiment).count();
    let mut notes = query.notes.clone();
    let alone = alone(query, &arms, &mut notes);
    let looks = exporter.looks.shown();
    let descriptions = exporter.about.descriptions();
    let looked = LatestLook {
        asked: &exporter.experiments,
        descriptions: &descriptions,
        shown: &looks,
        moment: Moment::of(snapshot, exporter.settle_after_ms),
    };
    let mut found = arms::find(&arms, query, alone, &exporter.controls, looked);
    // A requested name is shown, however few lists it has.
    let folded = match alone.is_none() && query.filter.is_empty() {
        true => arms::fold(&mut found),
        false => Vec::new(),
    };
    let n_experiments_in_all = n_experiments_in_all - folded.len();
    let n_experiments = found.len();
    let is_alone = alone.is_some() || n_experiments_in_all == 1;
    let n_per_page = if is_alone { ARMS_OF_ONE } else { EXPERIMENTS };
    let n_paged = match is_alone {
        true => found.first().map_or(0, SelectedExperiment::n_others),
        false => found.len(),
    };
    let n_pages = n_paged.div_ceil(n_per_page).max(1);
    let page = query.page.min(n_pages - 1);
    // Without any arm, the numbers are just not known yet, and the page may exist later.
    if page < query.page && !arms.is_empty() {
        notes.push(query::no_page(query.page + 1, n_pages));
    }
    let columns = columns(exporter, query);
    let sort_by = order::column_of(exporter, query);
    let (skipped, first, n_arms) = match is_alone {
        true => (0, page * ARMS_OF_ONE, ARMS_OF_ONE),
        false => (page * EXPERIMENTS, 0, ARMS_OF_MANY),
    };
    let found = found.into_iter().skip(skipped).take(EXPERIMENTS);
    let experiments = found.map(|found| found.show(first, n_arms, query, sort_by, &columns));
    let experiments: Vec<ShownExperiment> = experiments.collect();
    // `total` has no cells, so the longest window replaces it.
    let line_window = query.window.min(exporter.windows.len() - 1);
    let experiments = arms::with_lines(
        experiments,
        exporter.source(scope).unwrap_or(exporter.source.as_ref()),
        line_window,
        &columns,
    );

    let mut status = exporter.status();
    // Counted and summed before the list is shortened.
    let n_partitions = status.partitions.len();
    let lag = status
        .partitions
        .iter()
        .filter_map(|partition| partition.state.lag)
        .sum();
    let lag_of = |place: &crate::telemetry::PartitionStatus| std::cmp::Reverse(place.state.lag);
    if n_partitions > PARTITIONS {
        // The largest lag comes first, so the partitions furthest behind are kept.
        status.partitions.sort_by_key(lag_of);
        status.partitions.truncate(PARTITIONS);
    }
    let windows: Vec<&str> = window_names(&exporter.windows).collect();
    let answer = ViewDocument {
        version: 1,
        demo: exporter.about.is_demo,
        chosen: Chosen {
            window: windows[query.window],
            k: query.k,
            profile: &exporter.ranking.profiles()[query.profile].name,
            metrics: &query.metrics,
            sort: query.sort.to_string(),
            filter: &query.filter,
            experiment: alone,
            scope: exporter.global.as_ref().map(|_| scope.name()),
        },
        notes: &notes,
        line_window: windows[line_window],
        windows,
        k: &exporter.k,
        profiles: profiles(&exporter.ranking),
        definitions: definitions(&exporter.ranking),
        experiments,
        n_folded: folded.len(),
        folded: folded.into_iter().take(FOLDED).collect(),
        n_experiments,
        n_experiments_in_all,
        n_arms_in_all: arms.len(),
        // Own numbers are the default only if this instance has all partitions, and then looks cover the same ones.
        has_looks_of_scope: scope == Scope::Global || exporter.scopes().first() == Some(&scope),
        newest_list_ms: arms.iter().map(|arm| arm.last_list_ms).max(),
        page: page + 1,
        n_pages,
        n_partitions,
        lag,
        stream: StreamSummary::of(snapshot, &status, exporter.settle_after_ms, 0),
        global: exporter.global.as_ref().map(GlobalScope::status),
    };
    Ok(serde_json::to_writer(out, &answer)?)
}

/// Returns the definitions of the metrics that any profile measures, and of those per user.
fn definitions(ranking: &Ranking) -> Vec<MetricDefinition> {
    let is_measured = |id| ranking.columns().iter().any(|column| column.metric.id == id);
    let all = MetricDefinition::all();
    all.filter(|definition| definition.per_user || is_measured(definition.id))
        .collect()
}

/// Returns the single experiment to show, if requested and present.
fn alone<'a>(query: &'a ViewQuery, arms: &[&ArmSnapshot], notes: &mut Vec<String>) -> Option<&'a str> {
    let wanted = query.experiment.as_deref()?;
    let is_there = arms.iter().any(|arm| *arm.experiment == *wanted);
    // Without any arm, the numbers are just not known yet, and the name may be right.
    if !is_there && !arms.is_empty() {
        notes.push(query::no_experiment(wanted));
    }
    is_there.then_some(wanted)
}

/// Returns the column of each requested metric, or none if the profile does not define it at that cut-off.
fn columns<'a>(exporter: &'a Exporter, query: &ViewQuery) -> Vec<Option<&'a Column>> {
    let column = |id: &&'static str| {
        let mut columns = exporter.ranking.columns().iter();
        columns.find(|it| it.metric.id == *id && it.profile == query.profile && it.k == query.k)
    };
    query.metrics.iter().map(column).collect()
}

#[cfg(test)]
mod tests;
