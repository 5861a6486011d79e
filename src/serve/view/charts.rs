//! `/api/v1/view/charts`: data for one experiment's charts. The page names the arms, which are those in its table, so
//! charts cost the same, however many arms there are.

mod ranks;

use std::collections::BTreeMap;

use abgauge_core::engine::View;
use abgauge_core::looks::{Estimate, Experiment, ExperimentLook, History, Point};
use abgauge_core::metrics::Column;
use abgauge_core::statistics::Size;
use serde::{Deserialize, Serialize};

use self::ranks::{ByRank, Ranks};
use super::super::api::window_names;
use super::super::{Exporter, Scope};
use super::arms::Sparkline;
use super::totals::{counts, planned_shares, total_size};
use crate::board::snapshot::{ArmSnapshot, Timeline};
use crate::settings::WindowSpan;

/// Maximum number of arms: the control and ten others.
const MAX_ARMS: usize = 11;

/// Parameters as received.
#[derive(Debug, Deserialize)]
pub struct ChartParameters {
    pub experiment: String,
    /// Names, as a JSON array.
    pub arms: String,
    /// Key such as `ctr@10`.
    pub metric: String,
    pub profile: String,
    pub window: String,
    /// Scope, by default this instance.
    pub scope: Option<String>,
}

/// Chart request. Equal ones share a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartQuery {
    experiment: String,
    arms: Vec<String>,
    /// Index among the ranking's columns.
    column: usize,
    /// Index of a sliding window.
    window: usize,
    scope: Scope,
}

impl ChartQuery {
    /// Resolves the parameters.
    ///
    /// # Errors
    /// A sentence about a parameter that names something unknown.
    pub fn of(wanted: ChartParameters, exporter: &Exporter) -> Result<ChartQuery, String> {
        let arms: Vec<String> = serde_json::from_str(&wanted.arms)
            .map_err(|_| "`arms` is an array of names, in JSON".to_owned())?;
        if arms.len() > MAX_ARMS {
            return Err(format!("`arms` has more than {MAX_ARMS} names"));
        }
        let profiles = exporter.ranking.profiles();
        let is_wanted = |column: &Column| {
            profiles[column.profile].name == wanted.profile && column.key() == wanted.metric
        };
        let column = exporter.ranking.columns().iter().position(is_wanted);
        let window = window_names(&exporter.windows).position(|name| name == wanted.window);
        let scope = match wanted.scope.as_deref() {
            None => Some(Scope::Own),
            Some(name) => exporter.scopes().into_iter().find(|scope| scope.name() == name),
        };
        Ok(ChartQuery {
            experiment: wanted.experiment,
            arms,
            column: column.ok_or("no such metric is measured by that profile")?,
            // `total` has no cells, so the longest window replaces it.
            window: window
                .ok_or("there is no such window")?
                .min(exporter.windows.len() - 1),
            scope: scope.ok_or("no such scope is shown")?,
        })
    }
}

#[derive(Serialize)]
struct ChartsDocument<'a> {
    version: u32,
    experiment: &'a str,
    metric: String,
    /// Window with the cells of the lines.
    window: &'a str,
    arms: Vec<ChartedArm<'a>>,
    /// Present if the metric is a primary and there has been a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    looks: Option<ChartedLooks<'a>>,
    /// Window of the lifts `in_window`. Present if looks have a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    lift_window: Option<LiftWindow<'a>>,
    /// Present if users have been counted at a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    enrollment: Option<Enrollment<'a>>,
    /// Totals over the arms with a share, or over all arms if none has one. Absent before the first look.
    #[serde(skip_serializing_if = "Option::is_none")]
    split: Option<Size>,
    /// Present if CTR is measured at a cut-off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<Ranks>,
    marks: Vec<ChartMark>,
}

#[derive(Serialize)]
struct ChartedArm<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Sparkline>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled: Option<Sparkline>,
    /// CTR of the settled lists in these cells, by group of ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_rank: Option<Vec<Option<f64>>>,
    /// Values at the times of the looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    looks: Option<ArmHistory>,
    /// Users since the start at the times of the looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    enrolled: Option<Vec<Option<f32>>>,
    /// Size at the latest look.
    #[serde(flatten)]
    size: Option<Size>,
    /// Configured share of users.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<f64>,
}

#[derive(Serialize)]
struct ChartedLooks<'a> {
    /// Unix ms, ascending.
    times: &'a [i64],
    /// Interval between two times, ms.
    every_ms: i64,
}

/// Window whose lifts are kept.
#[derive(Serialize)]
struct LiftWindow<'a> {
    name: &'a str,
    span_ms: i64,
}

/// Users since the start: the sum over the arms with a share, or over all arms if none has one.
#[derive(Serialize)]
struct Enrollment<'a> {
    #[serde(flatten)]
    looks: ChartedLooks<'a>,
    users: Vec<f32>,
}

/// History of a value, null if undefined.
#[derive(Serialize)]
struct ArmHistory {
    value: ChartSeries,
    lift: ChartSeries,
    /// Lift in the window alone that ends at the look.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_window: Option<ChartSeries>,
}

#[derive(Serialize)]
struct ChartSeries {
    middle: Vec<Option<f32>>,
    lower: Vec<Option<f32>>,
    upper: Vec<Option<f32>>,
}

/// Event that affects the numbers themselves.
#[derive(Debug, Serialize)]
struct ChartMark {
    /// Unix ms.
    at: i64,
    what: &'static str,
}

/// Appends the current answer to `query`.
pub fn render(exporter: &Exporter, query: &ChartQuery, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let column = &exporter.ranking.columns()[query.column];
    let shown = exporter.looks.shown();
    let look = shown.experiments.get(&query.experiment).map(AsRef::as_ref);
    let asked = exporter.experiments.get(&query.experiment);
    // Looks use the first profile only.
    let metric = column.key();
    let looked = look.map(|look| &*look.history);
    let history = looked.filter(|history| column.profile == 0 && history.has(&metric));
    let planned = look.map_or_else(BTreeMap::new, |look| planned_shares(asked, look));
    let lines = lines(exporter, query);
    let by_rank = ByRank::of(&exporter.ranking, column.profile);
    let lift_window = look.and_then(|look| lift_window(look, &exporter.windows));
    let arms = query.arms.iter().zip(lines).map(|(name, lines)| {
        let [live, settled] = lines.map_or([None, None], |lines| lines.map(Some));
        let drawn = |line: &Option<Timeline>| Some(Sparkline::of(line.as_ref()?, &[Some(column)]));
        let own = look.and_then(|look| look.arms.get(name));
        ChartedArm {
            name,
            live: drawn(&live),
            settled: drawn(&settled),
            by_rank: by_rank
                .as_ref()
                .zip(settled.as_ref())
                .map(|(by_rank, line)| by_rank.values(line)),
            looks: history.map(|history| ArmHistory::of(history, name, &metric, lift_window.as_ref())),
            enrolled: looked.and_then(|history| history.users(name)),
            size: own.map(|own| own.size),
            planned: planned.get(name).copied(),
        }
    });
    let windows = &exporter.windows;
    let counts = |arm: &str| counts(&planned, arm);
    let answer = ChartsDocument {
        version: 1,
        experiment: &query.experiment,
        window: &windows[query.window].name,
        arms: arms.collect(),
        looks: history.map(ChartedLooks::of),
        lift_window,
        enrollment: look.and_then(|look| enrollment(look, counts)),
        split: look.map(|look| total_size(look, &planned)),
        ranks: by_rank.as_ref().map(ByRank::ranks).unwrap_or_default(),
        marks: marks(exporter.started_ms, asked, look),
        metric,
    };
    Ok(serde_json::to_writer(out, &answer)?)
}

/// Returns the cells of each arm, by view.
fn lines(exporter: &Exporter, query: &ChartQuery) -> Vec<Option<[Timeline; 2]>> {
    let source = exporter
        .source(query.scope)
        .filter(|_| exporter.has_numbers(query.scope));
    let Some(source) = source else {
        return query.arms.iter().map(|_| None).collect();
    };
    let arm = |name: &String| ArmSnapshot {
        experiment: query.experiment.as_str().into(),
        arm: name.as_str().into(),
        last_list_ms: i64::MIN,
        sums: View::BOTH.map(|_| Vec::new()),
        timelines: None,
    };
    let arms: Vec<ArmSnapshot> = query.arms.iter().map(arm).collect();
    source.timelines(query.window, &arms.iter().collect::<Vec<_>>())
}

impl ChartedLooks<'_> {
    fn of(history: &History) -> ChartedLooks<'_> {
        ChartedLooks {
            times: history.times_ms(),
            every_ms: history.every_ms(),
        }
    }
}

impl ArmHistory {
    fn of(history: &History, arm: &str, metric: &str, window: Option<&LiftWindow>) -> ArmHistory {
        let points = history.points(arm, metric).unwrap_or_default();
        let in_window = window.and_then(|window| history.in_window(arm, metric, window.name));
        ArmHistory {
            value: ChartSeries::of(points, |point| point.value),
            lift: ChartSeries::of(points, |point| point.lift),
            in_window: in_window.map(|points| ChartSeries::of(points, |point| point.lift)),
        }
    }
}

impl ChartSeries {
    fn of(points: &[Point], estimate: fn(&Point) -> Option<Estimate>) -> ChartSeries {
        let bound = |which: usize| {
            let bounds = points.iter().map(|point| Some(estimate(point)?.bounds?[which]));
            bounds.collect()
        };
        ChartSeries {
            middle: points.iter().map(|point| Some(estimate(point)?.middle)).collect(),
            lower: bound(0),
            upper: bound(1),
        }
    }
}

/// Returns the window of a look, which is the same for all arms.
fn lift_window<'a>(look: &ExperimentLook, windows: &'a [WindowSpan]) -> Option<LiftWindow<'a>> {
    let name = look.arms.values().find_map(|arm| arm.windows.keys().next())?;
    let window = windows.iter().find(|window| window.name == *name)?;
    Some(LiftWindow {
        name: &window.name,
        span_ms: window.span_ms,
    })
}

/// Returns the sum of the users of the arms that count. None if users have not been counted.
fn enrollment(look: &ExperimentLook, counts: impl Fn(&str) -> bool) -> Option<Enrollment<'_>> {
    let history = &*look.history;
    let arms = look.arms.keys().filter(|arm| counts(arm));
    let series: Vec<_> = arms.filter_map(|arm| history.users(arm)).collect();
    let looks = ChartedLooks::of(history);
    // A later arm has no users at earlier looks.
    let at = |place: usize| series.iter().filter_map(|users| users[place]).sum();
    let users = (0..looks.times.len()).map(at).collect();
    (!series.is_empty()).then_some(Enrollment { looks, users })
}

/// Returns the starts of the process and of the experiment, and the changes to its shares and settings, sorted by time.
fn marks(started_ms: i64, asked: Option<&Experiment>, look: Option<&ExperimentLook>) -> Vec<ChartMark> {
    let mark = |what| move |at| ChartMark { at, what };
    let begins = asked.and_then(|asked| asked.start_ms).into_iter();
    let epochs = asked.into_iter().flat_map(|asked| &asked.epochs);
    let changes = look.into_iter().flat_map(|look| look.history.changes_ms());
    let mut marks: Vec<ChartMark> = std::iter::once(started_ms)
        .map(mark("process"))
        .chain(begins.map(mark("start")))
        .chain(epochs.map(|epoch| epoch.start_ms).map(mark("shares")))
        .chain(changes.copied().map(mark("asked")))
        .collect();
    marks.sort_by_key(|mark| mark.at);
    marks
}

#[cfg(test)]
mod tests;
