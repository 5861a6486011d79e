//! Progress of the looks at an experiment, as JSON.

use std::collections::BTreeMap;

use abgauge_core::ledger::PairId;
use abgauge_core::looks::{Experiment, PublishedLooks};
use abgauge_core::statistics::days::{Needs, TestDesign};
use abgauge_core::statistics::{ComparisonReport, Known, Settings};
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
    power: Option<PowerDocument<'a>>,
}

/// Information about the primaries so far, and the information that each design needs.
#[derive(Serialize)]
struct PowerDocument<'a> {
    /// Start of the sums. Later than `start` if lists after that were not read.
    since: i64,
    mde: f64,
    alpha: f64,
    /// Configured design.
    design: &'static str,
    /// Information x needed at the first decision look, by design.
    needs: BTreeMap<&'static str, f64>,
    /// Treatment arms × primaries.
    hypotheses: usize,
    guardrails: usize,
    min_days: f64,
    /// Information x by arm and primary.
    arms: &'a BTreeMap<String, BTreeMap<String, f64>>,
    /// Information a quarter to a half of the days earlier. Null before two days have passed.
    earlier: Option<EarlierDocument<'a>>,
}

#[derive(Serialize)]
struct EarlierDocument<'a> {
    as_of: i64,
    arms: &'a BTreeMap<String, BTreeMap<String, f64>>,
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
                Some(PowerDocument::of(settings, report))
            }),
        })
    }
}

impl<'a> PowerDocument<'a> {
    fn of(settings: &Settings, report: &'a ComparisonReport) -> PowerDocument<'a> {
        let n_treatments = report.arms.keys().filter(|arm| settings.tests(arm)).count();
        let needs = Needs::new(settings, n_treatments);
        let grown = &report.grown;
        let earlier = |Known { as_of_ms, arms }: &'a Known| EarlierDocument {
            as_of: *as_of_ms,
            arms,
        };
        PowerDocument {
            since: grown.since_ms,
            mde: settings.mde,
            alpha: settings.alpha,
            design: TestDesign::of(settings).name(),
            needs: needs
                .designs()
                .map(|design| (design.name(), needs.x(design, 1)))
                .collect(),
            hypotheses: needs.n_hypotheses,
            guardrails: needs.n_guardrails,
            min_days: needs.min_days,
            arms: &grown.now.arms,
            earlier: grown.earlier.as_ref().map(earlier),
        }
    }
}
