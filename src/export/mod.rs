//! Views of the board: Prometheus' text, the JSON API, the live page.

pub mod api;
pub mod gauges;
pub mod http;
pub mod server;

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::config;
use crate::engine::ranking::Ranking;
use crate::snapshot::{ArmSnapshot, Snapshot, Source};
use crate::telemetry::Telemetry;

/// Everything that an answer is made of.
pub struct Exporter {
    pub telemetry: Arc<Telemetry>,
    pub source: Arc<dyn Source>,
    pub ranking: Ranking,
    /// The sliding windows, without `total`.
    pub windows: Vec<config::Window>,
    pub k: Vec<NonZeroU32>,
    pub export: config::Export,
    /// Event time from a list to the moment at which it is settled: attribution and lateness.
    pub settle_after_ms: i64,
}

impl Exporter {
    /// The body of `/metrics`: telemetry, and, once the daemon has been ready, the ranking gauges of one instant.
    pub fn metrics(&self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        self.telemetry.render(out)?;
        if self.telemetry.was_ready() {
            let snapshot = self.source.snapshot(None);
            gauges::render(&snapshot, &self.ranking, &self.export, &self.windows, out);
        }
        Ok(())
    }

    /// The body of `/api/v1/experiments`, with the cells of the window of this index.
    pub fn experiments(&self, timelines: Option<usize>, out: &mut Vec<u8>) -> anyhow::Result<()> {
        let snapshot = self.source.snapshot(timelines);
        let document = api::Document {
            snapshot: &snapshot,
            arms: if self.telemetry.was_ready() {
                shown_arms(&snapshot, self.export.forget_after_ms)
            } else {
                Vec::new()
            },
            ranking: &self.ranking,
            windows: &self.windows,
            timelines,
            k: &self.k,
            settle_after_ms: self.settle_after_ms,
            status: self.telemetry.status(),
        };
        Ok(serde_json::to_writer(out, &document)?)
    }
}

/// The name of the window that never slides.
const TOTAL: &str = "total";

/// Arms whose last list is not older than the live end less `forget_after_ms`.
fn shown_arms(snapshot: &Snapshot, forget_after_ms: i64) -> Vec<&ArmSnapshot> {
    let oldest = snapshot
        .live_end_ms
        .map_or(i64::MIN, |end| end.saturating_sub(forget_after_ms));
    let arms = snapshot.arms.iter();
    arms.filter(|arm| arm.last_list_ms >= oldest).collect()
}

#[cfg(test)]
mod fixture;
