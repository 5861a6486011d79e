//! Whose numbers an answer has: of the partitions that this instance holds, or of all.

use std::sync::Arc;

use serde::Serialize;

use super::Exporter;
use crate::global::Handle;
use crate::snapshot::SnapshotSource;
use crate::telemetry::{StreamStatus, Warning};

/// A frontier this far behind the furthest lags, ms: as much as nobody seals and moves within while all is well.
const LAGGING_MS: i64 = 120_000;
/// Lagging partitions that are listed: those furthest behind.
const MAX_LAGGING: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The partitions that this instance holds.
    Own,
    /// All partitions, whoever holds them.
    Global,
}

impl Scope {
    /// The value of the label `scope`.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Own => "own",
            Scope::Global => "global",
        }
    }
}

/// Where the numbers of all partitions come from.
pub struct GlobalScope {
    pub source: Arc<dyn SnapshotSource>,
    pub handle: Handle,
}

/// How the global view stands.
#[derive(Debug, Serialize)]
pub(super) struct GlobalStatus {
    /// Why it is not shown.
    withheld: Option<String>,
    /// How old it is.
    behind_seconds: Option<f64>,
    n_lagging: usize,
    lagging: Vec<Lagging>,
}

/// A partition whose frontier is far behind the furthest.
#[derive(Debug, Serialize)]
struct Lagging {
    partition: i32,
    seconds: f64,
}

impl GlobalScope {
    pub(super) fn status(&self) -> GlobalStatus {
        let frontiers = self.handle.frontiers_ms();
        let furthest_ms = frontiers.iter().map(|(_, ms)| *ms).max().unwrap_or_default();
        let lag = frontiers
            .iter()
            .map(|(partition, ms)| (furthest_ms - ms, *partition));
        let mut lagging: Vec<(i64, i32)> = lag.filter(|(ms, _)| *ms > LAGGING_MS).collect();
        lagging.sort_unstable_by_key(|(ms, partition)| (-ms, *partition));
        let told = lagging.iter().take(MAX_LAGGING);
        GlobalStatus {
            withheld: self.handle.withheld().err(),
            behind_seconds: self.handle.behind_ms().map(|ms| ms as f64 / 1000.0),
            n_lagging: lagging.len(),
            lagging: told
                .map(|(ms, partition)| Lagging {
                    partition: *partition,
                    seconds: *ms as f64 / 1000.0,
                })
                .collect(),
        }
    }

    fn warning(&self) -> Option<Warning> {
        let fault = self.handle.fault()?;
        Some(Warning::new(format!(
            "the global view is not what is stored, or will soon be withheld: {fault}"
        )))
    }
}

impl Exporter {
    /// The scopes that can be asked for, first the one that is shown to who asks for none: all partitions, where this instance does not
    /// hold all of them.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        match &self.global {
            None => vec![Scope::Own],
            Some(global) if self.telemetry.n_partitions_owned() < global.handle.n_partitions() => {
                vec![Scope::Global, Scope::Own]
            }
            Some(_) => vec![Scope::Own, Scope::Global],
        }
    }

    /// None of a scope that there is not.
    pub(super) fn source(&self, scope: Scope) -> Option<&dyn SnapshotSource> {
        match scope {
            Scope::Own => Some(self.source.as_ref()),
            Scope::Global => self.global.as_ref().map(|global| global.source.as_ref()),
        }
    }

    /// Whether a scope may have numbers at this moment. The global one withholds them by itself.
    pub(super) fn has_numbers(&self, scope: Scope) -> bool {
        match scope {
            Scope::Own => self.telemetry.has_numbers(),
            Scope::Global => self.global.is_some(),
        }
    }

    /// Has the telemetry say how the global view stands at this moment.
    pub(super) fn tell_global(&self) {
        if let Some(GlobalScope { handle, .. }) = &self.global {
            let is_shown = handle.withheld().is_ok();
            let frontiers_ms = if is_shown {
                handle.frontiers_ms()
            } else {
                Vec::new()
            };
            let behind_seconds = handle.behind_ms().map(|ms| ms as f64 / 1000.0);
            self.telemetry.set_global(behind_seconds, &frontiers_ms);
        }
    }

    /// The health of the stream, and of the global view.
    pub(super) fn status(&self) -> StreamStatus {
        let mut status = self.telemetry.status();
        let warning = self.global.as_ref().and_then(GlobalScope::warning);
        status.warnings.extend(warning);
        status
    }
}
