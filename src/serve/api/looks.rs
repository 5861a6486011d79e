//! Progress of the looks at an experiment, as JSON.

use std::collections::BTreeMap;

use abgauge_core::ledger::PairId;
use abgauge_core::looks::{Experiment, PublishedLooks};
use abgauge_core::statistics::days::RunningPower;
use serde::Serialize;

/// Progress of the looks at an experiment. Times are Unix ms.
#[derive(Serialize)]
pub(in super::super) struct LooksEntry<'a> {
    /// End of the counted lists. Null before the first look, like `start`.
    as_of: Option<i64>,
    /// Start of the counted lists.
    start: Option<i64>,
    /// Partition that is furthest behind, which delays the next look.
    waits_for: Option<PairId>,
    /// Set if looks ended because statistics took too much memory.
    given_up: bool,
    /// Reason why users are not counted, if they are not.
    no_users: Option<&'a str>,
    /// Basis for estimating the duration. Null before the first look, and without a control.
    power: Option<RunningPower<'a>>,
}

impl<'a> LooksEntry<'a> {
    /// Returns the progress, or none if the experiment is not configured.
    pub fn of(
        experiment: &str,
        asked: &BTreeMap<String, Experiment>,
        shown: &'a PublishedLooks,
    ) -> Option<LooksEntry<'a>> {
        asked.get(experiment)?;
        let look = shown.experiments.get(experiment);
        Some(LooksEntry {
            as_of: look.map(|look| look.as_of_ms),
            start: look.map(|look| look.start_ms),
            waits_for: shown.waits_for,
            given_up: shown.given_up.iter().any(|name| name == experiment),
            no_users: look.and_then(|look| look.no_users),
            power: look.and_then(|look| {
                let (settings, report) = look.comparison.as_ref()?;
                Some(RunningPower::new(settings, report))
            }),
        })
    }
}
