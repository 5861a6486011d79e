//! `/api/v1/view`: what the live page shows. Some arms of some experiments, by one window, cut-off and profile, sorted
//! and cut into pages here, so that what ten thousand arms cost the page is what fifty cost.

mod arms;
pub(super) mod charts;
mod order;
mod query;

use std::num::NonZeroU32;

use serde::Serialize;

use self::arms::{Looked, SelectedExperiment, Shown};
pub(super) use self::query::{Query, Wanted};
use super::api::{MeasuredProfile, StreamSummary, profiles, window_names};
use super::said::Moment;
use super::scope::{GlobalScope, GlobalStatus, Scope};
use super::{Exporter, shown_arms};
use crate::engine::ranking::Column;
use crate::snapshot::{ArmSnapshot, Snapshot};

/// Experiments on a page, where several are shown.
const EXPERIMENTS: usize = 10;
/// Arms of each of them, its control aside.
const ARMS_OF_MANY: usize = 10;
/// Arms on a page that shows a single experiment, not counting its control.
const ARMS_OF_ONE: usize = 50;
/// Partitions that are listed individually: those furthest behind.
const PARTITIONS: usize = 64;

#[derive(Serialize)]
struct ViewDocument<'a> {
    version: u32,
    chosen: Chosen<'a>,
    /// What was asked for and is not there, in sentences.
    notes: &'a [String],
    windows: Vec<&'a str>,
    /// The window whose cells the lines are.
    line_window: &'a str,
    k: &'a [NonZeroU32],
    profiles: Vec<MeasuredProfile<'a>>,
    experiments: Vec<Shown<'a>>,
    /// Those with an arm that the filter lets through.
    n_experiments: usize,
    /// Those that there are.
    n_experiments_in_all: usize,
    n_arms_in_all: usize,
    /// Whether looks are at the partitions whose values are shown.
    has_looks_of_scope: bool,
    /// Event time of the newest list of any arm.
    newest_list_ms: Option<i64>,
    /// From 1; of arms where one experiment is shown alone, else of experiments.
    page: usize,
    n_pages: usize,
    n_partitions: usize,
    /// Records between the read positions and the ends of the log, all partitions together.
    lag: i64,
    stream: StreamSummary<'a>,
    /// How the view of all partitions stands, where it can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    global: Option<GlobalStatus>,
}

/// What is shown: what was asked for, as far as it is there.
#[derive(Serialize)]
struct Chosen<'a> {
    window: &'a str,
    /// `null`: the whole list.
    k: Option<NonZeroU32>,
    profile: &'a str,
    metrics: &'a [&'static str],
    sort: String,
    filter: &'a str,
    experiment: Option<&'a str>,
    /// Where it can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

/// Appends the answer to `query` of the instant that `snapshot` is, which is one of the scope that it is of. Time lines are of now.
pub(super) fn render(
    exporter: &Exporter,
    query: &Query,
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
    let looked = Looked {
        asked: &exporter.experiments,
        shown: &looks,
        moment: Moment::of(snapshot, exporter.settle_after_ms),
    };
    let found = arms::find(&arms, query, alone, &exporter.controls, looked);
    let n_experiments = found.len();
    let is_alone = alone.is_some() || n_experiments_in_all == 1;
    let n_per_page = if is_alone { ARMS_OF_ONE } else { EXPERIMENTS };
    let n_paged = match is_alone {
        true => found.first().map_or(0, SelectedExperiment::n_others),
        false => found.len(),
    };
    let n_pages = n_paged.div_ceil(n_per_page).max(1);
    let page = query.page.min(n_pages - 1);
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
    let experiments: Vec<Shown> = experiments.collect();
    // `total` has no cells: the longest window stands in.
    let line_window = query.window.min(exporter.windows.len() - 1);
    let experiments = arms::with_lines(
        experiments,
        exporter.source(scope).unwrap_or(exporter.source.as_ref()),
        line_window,
        &columns,
    );

    let mut status = exporter.status();
    let n_partitions = status.partitions.len();
    let lag = status
        .partitions
        .iter()
        .filter_map(|partition| partition.state.lag)
        .sum();
    let lag_of = |place: &crate::telemetry::PartitionStatus| std::cmp::Reverse(place.state.lag);
    if n_partitions > PARTITIONS {
        status.partitions.sort_by_key(lag_of);
        status.partitions.truncate(PARTITIONS);
    }
    let windows: Vec<&str> = window_names(&exporter.windows).collect();
    let answer = ViewDocument {
        version: 1,
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
        experiments,
        n_experiments,
        n_experiments_in_all,
        n_arms_in_all: arms.len(),
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

/// The single experiment to show, if it exists.
fn alone<'a>(query: &'a Query, arms: &[&ArmSnapshot], notes: &mut Vec<String>) -> Option<&'a str> {
    let wanted = query.experiment.as_deref()?;
    let is_there = arms.iter().any(|arm| *arm.experiment == *wanted);
    if !is_there && !arms.is_empty() {
        notes.push(query::no_experiment(wanted));
    }
    is_there.then_some(wanted)
}

/// The column of each metric asked for; none where the profile does not define it at that cut-off.
fn columns<'a>(exporter: &'a Exporter, query: &Query) -> Vec<Option<&'a Column>> {
    let column = |id: &&'static str| {
        let mut columns = exporter.ranking.columns().iter();
        columns.find(|it| it.metric.id == *id && it.profile == query.profile && it.k == query.k)
    };
    query.metrics.iter().map(column).collect()
}

#[cfg(test)]
mod tests;
