//! Settings of experiments, for code that does not depend on statistics.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::Serialize;

use super::Config;

/// Description, owner and planned users of an experiment, for readers of the page and of the JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AboutExperiment {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Users of all arms together that the experiment was planned for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_users: Option<NonZeroU64>,
}

impl Config {
    /// Returns the start of each experiment that has one, Unix ms. Its `total` leaves out earlier lists.
    pub fn experiment_starts(&self) -> BTreeMap<String, i64> {
        let experiments = self.experiments.iter();
        let starts = experiments.filter_map(|(name, of)| Some((name.clone(), of.start_ms?)));
        starts.collect()
    }

    /// Returns the control arm of each experiment that has one.
    pub fn experiment_controls(&self) -> BTreeMap<String, String> {
        let experiments = self.experiments.iter();
        let controls = experiments.filter_map(|(name, of)| {
            let settings = of.settings.as_ref()?;
            Some((name.clone(), settings.control.clone()))
        });
        controls.collect()
    }
}
