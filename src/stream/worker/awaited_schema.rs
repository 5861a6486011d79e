//! Pairs on hold because of a record whose schema is not known yet. Their records are read again once it is.

use std::time::Duration;

use abgauge_core::decode::framing::SchemaId;
use abgauge_core::engine::event::Side;
use tracing::info;

use super::Worker;
use super::held_pairs::{Held, HeldBy};
use super::pair::Pair;
use crate::stream::schemas::Schemas;

/// Time after which a wait is reported, and nothing more is fetched from the pair's partitions. Most schemas arrive sooner.
const REPORTED_AFTER: Duration = Duration::from_secs(1);
/// Minimum time between assignments that leave out held pairs or resume them. Each one interrupts the fetching of all partitions.
const ASSIGN_EVERY: Duration = Duration::from_millis(200);

/// Record whose schema is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwaitedSchema {
    pub id: SchemaId,
    pub offset: i64,
    /// Uptime since which it is awaited; `None` until the first round.
    pub since: Option<Duration>,
    pub is_reported: bool,
}

impl AwaitedSchema {
    /// Describes the problem in plain words, with the remedy.
    pub fn message(&self, schemas: &Schemas) -> String {
        let AwaitedSchema { id, offset, .. } = self;
        let problem = schemas.problem(*id);
        let problem = problem.as_deref().unwrap_or("the registry has not answered yet");
        format!(
            "the record at offset {offset} was written with schema {id}, which is not known yet: {problem}; register the schema, or check [registry]"
        )
    }
}

impl Pair {
    /// Returns the schema that it waits for.
    fn awaited_schema(&mut self) -> Option<&mut AwaitedSchema> {
        match &mut self.held.as_mut()?.by {
            HeldBy::Schema(awaited) => Some(awaited),
            HeldBy::Batch(_) => None,
        }
    }

    /// Holds it at the record at this offset until the schema is known.
    pub fn hold_for_schema(&mut self, side: Side, offset: i64, id: SchemaId) {
        let awaited = AwaitedSchema {
            id,
            offset,
            since: None,
            is_reported: false,
        };
        self.held = Some(Held {
            side,
            by: HeldBy::Schema(awaited),
        });
    }
}

impl Worker {
    /// Resumes the pairs whose schema has become known, and reports long waits.
    pub(super) fn await_schemas(&mut self) {
        let uptime = self.clocks.uptime();
        let is_paced = |last: Duration| uptime.saturating_sub(last) >= ASSIGN_EVERY;
        let may_assign = self.assigned_for_schemas.is_none_or(is_paced);
        let (mut n_waiting, mut is_late, mut reported) = (0, false, Vec::new());
        for (partition, pair) in self.shards.pairs_mut() {
            let Some(awaited) = pair.awaited_schema() else {
                continue;
            };
            n_waiting += 1;
            let since = *awaited.since.get_or_insert(uptime);
            if !awaited.is_reported && may_assign && uptime.saturating_sub(since) >= REPORTED_AFTER {
                awaited.is_reported = true;
                is_late = true;
            }
            if awaited.is_reported {
                reported.push(partition);
            }
        }
        if n_waiting == 0 {
            return;
        }
        if may_assign && (self.resume_known() > 0 || is_late) {
            self.assigned_for_schemas = Some(uptime);
            self.assign_pairs();
        }
        reported
            .into_iter()
            .for_each(|partition| self.log_held(partition));
    }

    /// Releases the pairs whose schema is known, and returns their number.
    fn resume_known(&mut self) -> usize {
        let mut resumed = Vec::new();
        for (partition, pair) in self.shards.pairs_mut() {
            if let Some(awaited) = pair.awaited_schema().copied()
                && self.schemas.is_known(awaited.id)
            {
                pair.held = None;
                resumed.push((partition, awaited));
            }
        }
        for (partition, awaited) in &resumed {
            self.report.continues(*partition);
            if awaited.is_reported {
                info!(partition, schema = %awaited.id, "the schema is known: the partition continues");
            }
        }
        resumed.len()
    }
}
