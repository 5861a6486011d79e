//! `/api/v1/experiments`: the arms and the health of the stream as JSON, written straight from a snapshot.

mod looks;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use abgauge_core::engine::View;
use abgauge_core::looks::{Experiment, ExperimentLook, PublishedLooks};
use abgauge_core::metrics::by_name::{MetricKey, MetricsMap, metrics_map};
use abgauge_core::metrics::{CLICKS, Column, ITEMS_SHOWN, LISTS, Ranking};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

pub(super) use self::looks::LooksEntry;
use super::about::Descriptions;
use super::headline;
use super::scope::{GlobalStatus, Scope};
use super::verdict::of_look;
use super::{TOTAL, control_of};
use crate::board::snapshot::{ArmSnapshot, Snapshot, Timeline};
use crate::settings::{AboutExperiment, WindowSpan};
use crate::telemetry::StreamStatus;

/// Options of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ApiChoice {
    pub scope: Scope,
    /// Index of the window whose views have a timeline.
    pub timelines: Option<usize>,
    /// Index of the profile of the timelines.
    pub lines_of: usize,
    /// Set if views have the parts of their metrics.
    pub has_parts: bool,
}

/// Whole answer, ready to be written.
pub(super) struct ApiDocument<'a> {
    pub snapshot: &'a Snapshot,
    /// Arms to show, sorted by experiment and name.
    pub arms: Vec<&'a ArmSnapshot>,
    pub arms_left_out: usize,
    pub ranking: &'a Ranking,
    /// Configured controls by experiment.
    pub controls: &'a BTreeMap<String, String>,
    /// Configured experiments by name.
    pub asked: &'a BTreeMap<String, Experiment>,
    /// Descriptions of experiments by name.
    pub descriptions: &'a Descriptions,
    /// Set if the numbers are simulated.
    pub is_demo: bool,
    /// Latest look at the experiments.
    pub looks: &'a PublishedLooks,
    pub windows: &'a [WindowSpan],
    pub choice: ApiChoice,
    pub k: &'a [NonZeroU32],
    pub settle_after_ms: i64,
    /// Status of the global view, if scopes can be chosen.
    pub global: Option<GlobalStatus>,
    pub status: StreamStatus,
}

impl ApiDocument<'_> {
    fn window_names(&self) -> impl Iterator<Item = &str> {
        window_names(self.windows)
    }
}

/// Returns the names of the sliding windows, then `total`.
pub(super) fn window_names(windows: &[WindowSpan]) -> impl Iterator<Item = &str> {
    windows.iter().map(|window| window.name.as_str()).chain([TOTAL])
}

impl Serialize for ApiDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &1)?;
        if self.is_demo {
            map.serialize_entry("demo", &true)?;
        }
        map.serialize_entry("experiments", &Experiments(self))?;
        map.serialize_entry("windows", &self.window_names().collect::<Vec<_>>())?;
        map.serialize_entry("k", self.k)?;
        map.serialize_entry("profiles", &profiles(self.ranking))?;
        let stream = StreamSummary::of(
            self.snapshot,
            &self.status,
            self.settle_after_ms,
            self.arms_left_out,
        );
        map.serialize_entry("stream", &stream)?;
        if let Some(global) = &self.global {
            map.serialize_entry("scope", self.choice.scope.name())?;
            map.serialize_entry("global", global)?;
        }
        map.end()
    }
}

/// Profile with all its metrics, by the keys of the maps below.
#[derive(Serialize)]
pub(super) struct MeasuredProfile<'a> {
    name: &'a str,
    metrics: Vec<MetricKey<'a>>,
    parts: NamesOfParts<'a>,
}

/// Names of each metric's numerator and denominator, by key.
struct NamesOfParts<'a> {
    ranking: &'a Ranking,
    profile: usize,
}

impl Serialize for NamesOfParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = columns_of(self.ranking, self.profile);
        serializer.collect_map(columns.map(|column| (MetricKey(column), self.ranking.names_of_parts(column))))
    }
}

pub(super) fn profiles(ranking: &Ranking) -> Vec<MeasuredProfile<'_>> {
    let profiles = ranking.profiles().iter().enumerate();
    let measured = profiles.map(|(index, profile)| MeasuredProfile {
        name: &profile.name,
        metrics: columns_of(ranking, index).map(MetricKey).collect(),
        parts: NamesOfParts {
            ranking,
            profile: index,
        },
    });
    measured.collect()
}

fn columns_of(ranking: &Ranking, profile: usize) -> impl Iterator<Item = &Column> {
    let columns = ranking.columns().iter();
    columns.filter(move |column| column.profile == profile)
}

struct Experiments<'a>(&'a ApiDocument<'a>);

impl Serialize for Experiments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let experiments = self.0.arms.chunk_by(|a, b| a.experiment == b.experiment);
        serializer
            .collect_map(experiments.map(|arms| (&*arms[0].experiment, ExperimentEntry { of: self.0, arms })))
    }
}

struct ExperimentEntry<'a> {
    of: &'a ApiDocument<'a>,
    arms: &'a [&'a ArmSnapshot],
}

impl ExperimentEntry<'_> {
    fn name(&self) -> &str {
        &self.arms[0].experiment
    }

    fn look(&self) -> Option<&ExperimentLook> {
        self.of.looks.experiments.get(self.name()).map(AsRef::as_ref)
    }
}

impl Serialize for ExperimentEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(about) = self.of.descriptions.get(self.name()) {
            let AboutExperiment {
                description,
                owner,
                planned_users,
            } = about;
            for (key, text) in [("description", description), ("owner", owner)] {
                if let Some(text) = text {
                    map.serialize_entry(key, text)?;
                }
            }
            if let Some(users) = planned_users {
                map.serialize_entry("planned_users", users)?;
            }
        }
        if let Some(control) = control_of(self.of.controls, self.arms) {
            map.serialize_entry("control", control)?;
        }
        if let Some(looks) = LooksEntry::of(self.name(), self.of.asked, self.of.looks) {
            map.serialize_entry("looks", &looks)?;
        }
        let asked = self.of.asked.get(self.name());
        let moment = headline::Moment::of(self.of.snapshot, self.of.settle_after_ms);
        let headlines = headline::of(self.name(), asked, self.of.looks, self.arms, moment);
        map.serialize_entry("verdict", &headlines)?;
        map.serialize_entry("arms", &ArmEntries(self))?;
        map.end()
    }
}

struct ArmEntries<'a>(&'a ExperimentEntry<'a>);

impl Serialize for ArmEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (of, look) = (self.0.of, self.0.look());
        let arms = self.0.arms.iter();
        serializer.collect_map(arms.map(|arm| (&*arm.arm, ArmEntry { of, arm, look })))
    }
}

struct ArmEntry<'a> {
    of: &'a ApiDocument<'a>,
    arm: &'a ArmSnapshot,
    /// Latest look at its experiment.
    look: Option<&'a ExperimentLook>,
}

impl Serialize for ArmEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("last_list_ms", &self.arm.last_list_ms)?;
        map.serialize_entry("windows", &Windows(self))?;
        if let Some(look) = self.look {
            if let Some(own) = look.arms.get(&*self.arm.arm) {
                map.serialize_entry("look", own)?;
            }
            if let Some(verdict) = of_look(&self.arm.experiment, &self.arm.arm, look) {
                map.serialize_entry("comparison", &verdict)?;
            }
        }
        map.end()
    }
}

struct Windows<'a>(&'a ArmEntry<'a>);

impl Serialize for Windows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.of.window_names().enumerate();
        serializer.collect_map(names.map(|(window, name)| (name, Views { arm: self.0, window })))
    }
}

/// Numbers of a window in both views, if they hold lists.
struct Views<'a> {
    arm: &'a ArmEntry<'a>,
    window: usize,
}

impl Serialize for Views<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ArmEntry { of, arm, .. } = *self.arm;
        let views = View::BOTH.into_iter().filter_map(|view| {
            let sums = arm.sums(view, self.window);
            let timelines = arm
                .timelines
                .as_ref()
                .filter(|_| of.choice.timelines == Some(self.window));
            let place = WindowMetrics {
                lists: sums[LISTS],
                clicks: sums[CLICKS],
                items_shown: sums[ITEMS_SHOWN],
                metrics: metrics_map(of.ranking, 0, sums),
                parts: of.choice.has_parts.then_some(MetricParts {
                    ranking: of.ranking,
                    sums,
                }),
                profiles: OtherProfiles {
                    ranking: of.ranking,
                    sums,
                },
                timeline: timelines
                    .map(|both| CellsDocument::of(of.ranking, of.choice.lines_of, &both[view as usize])),
            };
            (place.lists != 0).then_some((view.name(), place))
        });
        serializer.collect_map(views)
    }
}

#[derive(Serialize)]
struct WindowMetrics<'a> {
    lists: i128,
    clicks: i128,
    items_shown: i128,
    metrics: MetricsMap<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<MetricParts<'a>>,
    #[serde(skip_serializing_if = "OtherProfiles::is_empty")]
    profiles: OtherProfiles<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<CellsDocument<'a>>,
}

/// Parts of the defined metrics of the first profile, by key.
struct MetricParts<'a> {
    ranking: &'a Ranking,
    sums: &'a [i128],
}

impl Serialize for MetricParts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = columns_of(self.ranking, 0);
        let defined = columns.filter_map(|column| Some((MetricKey(column), column.parts(self.sums)?)));
        serializer.collect_map(defined)
    }
}

/// Metrics of every profile but the first, by profile name.
struct OtherProfiles<'a> {
    ranking: &'a Ranking,
    sums: &'a [i128],
}

impl OtherProfiles<'_> {
    fn is_empty(&self) -> bool {
        self.ranking.profiles().len() < 2
    }
}

impl Serialize for OtherProfiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let further = self.ranking.profiles().iter().enumerate().skip(1);
        serializer.collect_map(
            further.map(|(index, profile)| (&profile.name, metrics_map(self.ranking, index, self.sums))),
        )
    }
}

#[derive(Serialize)]
struct CellsDocument<'a> {
    start_ms: i64,
    cell_ms: i64,
    lists: Vec<i128>,
    metrics: CellValues<'a>,
}

impl<'a> CellsDocument<'a> {
    fn of(ranking: &'a Ranking, profile: usize, timeline: &'a Timeline) -> CellsDocument<'a> {
        let cells = timeline.cells.iter();
        CellsDocument {
            start_ms: timeline.start_ms,
            cell_ms: timeline.cell_ms,
            lists: cells
                .map(|cell| cell.as_ref().map_or(0, |sums| sums[LISTS]))
                .collect(),
            metrics: CellValues {
                ranking,
                profile,
                timeline,
            },
        }
    }
}

/// Values of each metric by cell, null if undefined. Distinct counts have no values in cells.
struct CellValues<'a> {
    ranking: &'a Ranking,
    profile: usize,
    timeline: &'a Timeline,
}

impl Serialize for CellValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = |column: &Column| -> Vec<Option<f64>> {
            let cells = self.timeline.cells.iter();
            cells.map(|cell| column.value(cell.as_ref()?)).collect()
        };
        let columns = columns_of(self.ranking, self.profile);
        serializer.collect_map(columns.map(|column| (MetricKey(column), line(column))))
    }
}

/// Summary of the stream from the board and the telemetry.
#[derive(Serialize)]
pub(super) struct StreamSummary<'a> {
    #[serde(flatten)]
    status: &'a StreamStatus,
    since_ms: Option<i64>,
    live_end_ms: Option<i64>,
    settled_end_ms: Option<i64>,
    settle_after_ms: i64,
    arms_folded: u64,
    arms_without_coverage: u64,
    /// Number of arms left out, which have fewer lists than those shown.
    arms_left_out: usize,
}

impl<'a> StreamSummary<'a> {
    pub fn of(
        snapshot: &Snapshot,
        status: &'a StreamStatus,
        settle_after_ms: i64,
        arms_left_out: usize,
    ) -> StreamSummary<'a> {
        StreamSummary {
            status,
            since_ms: snapshot.since_ms,
            live_end_ms: snapshot.live_end_ms,
            settled_end_ms: snapshot.settled_end_ms,
            settle_after_ms,
            arms_folded: snapshot.folded_arms,
            arms_without_coverage: snapshot.arms_without_coverage,
            arms_left_out,
        }
    }
}

#[cfg(test)]
mod tests;
