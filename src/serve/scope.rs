//! Scope of the numbers in an answer: this instance's partitions, or all of them.

use std::sync::Arc;

use serde::Serialize;

use super::Exporter;
use crate::board::snapshot::SnapshotSource;
use crate::store::publications::Publications;
use crate::telemetry::{StreamStatus, Warning};

/// Distance behind the furthest frontier from which a partition counts as lagging, ms. Longer than the time between two
/// moves and seals of a healthy partition.
const LAGGING_MS: i64 = 120_000;
/// Maximum number of lagging partitions that are listed. Those furthest behind come first.
const MAX_LAGGING: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Partitions held by this instance.
    Own,
    /// Partitions of all instances.
    Global,
}

impl Scope {
    /// Returns the value of the label `scope`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Own => "own",
            Scope::Global => "global",
        }
    }
}

/// Source of the numbers of all partitions.
pub struct GlobalScope {
    pub source: Arc<dyn SnapshotSource>,
    pub publications: Publications,
}

/// Status of the global view.
#[derive(Debug, Serialize)]
pub(super) struct GlobalStatus {
    /// Reason why it is not shown.
    withheld: Option<String>,
    /// Age of the view.
    behind_seconds: Option<f64>,
    n_lagging: usize,
    lagging: Vec<Lagging>,
}

/// Partition whose frontier is far behind the furthest.
#[derive(Debug, Serialize)]
struct Lagging {
    partition: i32,
    seconds: f64,
}

impl GlobalScope {
    pub(super) fn status(&self) -> GlobalStatus {
        let frontiers = self.publications.frontiers_ms();
        let furthest_ms = frontiers.iter().map(|(_, ms)| *ms).max().unwrap_or_default();
        let lag = frontiers
            .iter()
            .map(|(partition, ms)| (furthest_ms - ms, *partition));
        let mut lagging: Vec<(i64, i32)> = lag.filter(|(ms, _)| *ms > LAGGING_MS).collect();
        lagging.sort_unstable_by_key(|(ms, partition)| (-ms, *partition));
        let reported = lagging.iter().take(MAX_LAGGING);
        GlobalStatus {
            withheld: self.publications.unavailable().err(),
            behind_seconds: self.publications.behind_ms().map(|ms| ms as f64 / 1000.0),
            n_lagging: lagging.len(),
            lagging: reported
                .map(|(ms, partition)| Lagging {
                    partition: *partition,
                    seconds: *ms as f64 / 1000.0,
                })
                .collect(),
        }
    }

    fn warning(&self) -> Option<Warning> {
        let fault = self.publications.fault_in_words()?;
        Some(Warning::new(format!(
            "the global view is out of date, or will soon be withheld: {fault}"
        )))
    }
}

impl Exporter {
    /// Returns the scopes that can be requested, the default first: all partitions if this instance does not hold them all.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        match &self.global {
            None => vec![Scope::Own],
            Some(global) if self.telemetry.n_partitions_owned() < global.publications.n_partitions() => {
                vec![Scope::Global, Scope::Own]
            }
            Some(_) => vec![Scope::Own, Scope::Global],
        }
    }

    /// Returns the source of a scope, or none if the scope does not exist.
    pub(super) fn source(&self, scope: Scope) -> Option<&dyn SnapshotSource> {
        match scope {
            Scope::Own => Some(self.source.as_ref()),
            Scope::Global => self.global.as_ref().map(|global| global.source.as_ref()),
        }
    }

    /// Returns whether a scope may have numbers at this moment. The global view withholds its numbers itself.
    pub(super) fn has_numbers(&self, scope: Scope) -> bool {
        match scope {
            Scope::Own => self.telemetry.has_numbers(),
            Scope::Global => self.global.is_some(),
        }
    }

    /// Updates the telemetry of the global view.
    pub(super) fn report_global(&self) {
        if let Some(GlobalScope { publications, .. }) = &self.global {
            let is_shown = publications.unavailable().is_ok();
            // A withheld view has no frontiers: their series disappear instead of showing old values.
            let frontiers_ms = if is_shown {
                publications.frontiers_ms()
            } else {
                Vec::new()
            };
            let behind_seconds = publications.behind_ms().map(|ms| ms as f64 / 1000.0);
            self.telemetry.set_global(behind_seconds, &frontiers_ms);
        }
    }

    /// Returns the health of the stream and of the global view.
    pub(super) fn status(&self) -> StreamStatus {
        let mut status = self.telemetry.status();
        let warning = self.global.as_ref().and_then(GlobalScope::warning);
        status.warnings.extend(warning);
        status
    }
}
