//! Exports of the board: Prometheus' text, the JSON API, the live page.

mod about;
pub mod api;
mod auth;
pub mod certificate;
mod encoding;
mod feed;
pub mod gauges;
mod headline;
mod hosts;
pub mod http;
mod rate_limit;
mod renderer;
mod scope;
pub mod secured;
pub mod server;
mod shared_body;
mod tls;
mod verdict;
mod view;
pub mod webhook;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::looks::{Experiment, Published};
use abgauge_core::metrics::Ranking;
use abgauge_core::verdict::Headline;

pub use self::about::About;
pub use self::scope::{GlobalScope, Scope};
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Snapshots};
use crate::settings;
use crate::telemetry::Telemetry;

/// Data from which all answers are rendered.
pub struct Exporter {
    pub telemetry: Arc<Telemetry>,
    pub source: Arc<dyn SnapshotSource>,
    /// Numbers of all partitions, if they are shown.
    pub global: Option<GlobalScope>,
    /// Latest look at the configured experiments.
    pub looks: Arc<Published>,
    pub ranking: Ranking,
    /// Sliding windows, without `total`.
    pub windows: Vec<settings::WindowSpan>,
    pub k: Vec<NonZeroU32>,
    /// Control arm by experiment.
    pub controls: BTreeMap<String, String>,
    /// Configured experiments by name.
    pub experiments: BTreeMap<String, Experiment>,
    pub about: About,
    pub export: settings::Export,
    /// Event time from a list until it settles: attribution + lateness.
    pub settle_after_ms: i64,
    /// Start of this process, Unix ms.
    pub started_ms: i64,
}

impl Exporter {
    /// Writes the body of `/metrics`: telemetry and, once there are numbers, the ranking gauges of each scope at one
    /// instant. Reuses the memory of earlier snapshots.
    pub fn metrics(&self, snapshots: &mut Snapshots, out: &mut Vec<u8>) -> anyhow::Result<()> {
        // The gauges of the global view are part of the telemetry, so they are set before it is rendered.
        self.report_global();
        self.telemetry.render(out)?;
        let Snapshots { own, global } = snapshots;
        self.take(Scope::Own, None, own);
        self.take(Scope::Global, None, global);
        // An instance that holds no partitions can still show the numbers of all.
        let has_global = !global.arms.is_empty();
        if self.telemetry.has_numbers() || has_global {
            let scrape = gauges::Scrape {
                snapshot: own,
                global: has_global.then_some(&*global),
                looks: &self.looks.shown(),
                // If all partitions can be shown, looks cover all of them.
                looks_of: match self.global {
                    Some(_) => Scope::Global,
                    None => Scope::Own,
                },
                ranking: &self.ranking,
                config: &self.export,
                windows: &self.windows,
                controls: &self.controls,
            };
            gauges::render(&scrape, out);
        }
        Ok(())
    }

    /// Returns the headline of each experiment with arms in a snapshot, sorted by badge, then name.
    pub fn headlines(&self, snapshot: &Snapshot) -> Vec<(String, Headline)> {
        let looks = self.looks.shown();
        let moment = headline::Moment::of(snapshot, self.settle_after_ms);
        let arms = shown_arms(snapshot, self.export.forget_after_ms);
        let experiments = arms.chunk_by(|a, b| a.experiment == b.experiment);
        let headlines = experiments.map(|arms| {
            let name = arms[0].experiment.to_string();
            let headline = headline::of(&name, self.experiments.get(&name), &looks, arms, moment);
            (name, headline)
        });
        let mut headlines: Vec<_> = headlines.collect();
        // The sort is stable, so experiments with the same badge keep the order of their names.
        headlines.sort_by_key(|(_, headline)| headline.badge);
        headlines
    }

    /// Takes a snapshot of a scope into an earlier one. The result is empty if the scope has no numbers.
    fn take(&self, scope: Scope, timelines: Option<usize>, snapshot: &mut Snapshot) {
        match self.source(scope).filter(|_| self.has_numbers(scope)) {
            Some(source) => source.snapshot_into(timelines, snapshot),
            None => *snapshot = Snapshot::default(),
        }
    }

    /// Writes the body of `/api/v1/experiments`. Reuses the memory of earlier snapshots.
    fn experiments(
        &self,
        choice: api::ApiChoice,
        snapshots: &mut Snapshots,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let snapshot = snapshots.of(choice.scope == Scope::Global);
        if let Some(source) = self.source(choice.scope) {
            source.snapshot_into(choice.timelines, snapshot);
        }
        let mut arms = match self.has_numbers(choice.scope) {
            true => shown_arms(snapshot, self.export.forget_after_ms),
            false => Vec::new(),
        };
        let looks = self.looks.shown();
        let descriptions = self.about.descriptions();
        let n_left_out = leave_out_all_but(MAX_API_ARMS, &mut arms);
        let document = api::ApiDocument {
            snapshot,
            arms,
            arms_left_out: n_left_out,
            ranking: &self.ranking,
            controls: &self.controls,
            asked: &self.experiments,
            descriptions: &descriptions,
            is_demo: self.about.is_demo,
            looks: &looks,
            windows: &self.windows,
            choice,
            k: &self.k,
            settle_after_ms: self.settle_after_ms,
            global: self.global.as_ref().map(GlobalScope::status),
            status: self.status(),
        };
        Ok(serde_json::to_writer(out, &document)?)
    }
}

/// Returns the control among the arms of an experiment: the configured one, or the arm named `control`. None if there is no
/// such arm.
fn control_of<'a>(controls: &BTreeMap<String, String>, arms: &[&'a ArmSnapshot]) -> Option<&'a str> {
    let experiment = &arms.first()?.experiment;
    let name = controls.get(&**experiment).map_or("control", String::as_str);
    let arms = arms.iter().map(|arm| &*arm.arm);
    arms.into_iter().find(|arm| *arm == name)
}

/// Maximum number of arms in one answer of the JSON API, which is then some megabytes. Scrapes are bounded by
/// `export.max_series`.
const MAX_API_ARMS: usize = 1000;

/// Keeps the `n` arms with the most lists, in their order. Returns the number of arms left out.
fn leave_out_all_but(n: usize, arms: &mut Vec<&ArmSnapshot>) -> usize {
    let n_left_out = arms.len().saturating_sub(n);
    if n_left_out > 0 {
        arms.sort_by_cached_key(|arm| Reverse(arm.n_lists()));
        arms.truncate(n);
        // The document groups neighbors into experiments, so the order by name must be restored.
        arms.sort_unstable_by_key(|arm| (&arm.experiment, &arm.arm));
    }
    n_left_out
}

/// Name of the window that never slides.
const TOTAL: &str = "total";

/// Returns the arms whose last list is at most `forget_after_ms` older than the live end.
fn shown_arms(snapshot: &Snapshot, forget_after_ms: i64) -> Vec<&ArmSnapshot> {
    let oldest = snapshot
        .live_end_ms
        .map_or(i64::MIN, |end| end.saturating_sub(forget_after_ms));
    let arms = snapshot.arms.iter();
    arms.filter(|arm| arm.last_list_ms >= oldest).collect()
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests {
    use abgauge_core::metrics::LISTS;

    use super::*;

    #[test]
    fn an_answer_keeps_the_largest_arms_in_their_order() {
        let arm = |name: &str, lists: i128| {
            let mut sums = vec![0; LISTS + 1];
            sums[LISTS] = lists;
            let of_view = vec![sums.into_boxed_slice()];
            ArmSnapshot {
                experiment: "e".into(),
                arm: name.into(),
                last_list_ms: 0,
                sums: [of_view.clone(), of_view],
                timelines: None,
            }
        };
        let all = [arm("a", 1), arm("b", 5), arm("c", 3)];
        let kept = |n| {
            let mut arms: Vec<&ArmSnapshot> = all.iter().collect();
            let n_left_out = leave_out_all_but(n, &mut arms);
            (
                n_left_out,
                arms.iter().map(|arm| arm.arm.to_string()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(kept(2), (1, vec!["b".to_owned(), "c".to_owned()]));
        assert_eq!(kept(3).0, 0);
    }
}
