//! What is asked of an experiment.

use std::collections::BTreeMap;

use super::Config;
use crate::statistics::Settings;

/// Everything that `[experiments.NAME]` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experiment {
    /// Lists before this time (epoch ms) do not count in its `total`.
    pub start_ms: Option<i64>,
    /// How its arms are compared with its control; none where no control is set.
    pub settings: Option<Settings>,
    /// Later allocations, ascending; each opens an epoch.
    pub epochs: Vec<EpochStart>,
}

/// From this time on users are expected in other shares.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochStart {
    /// Epoch ms.
    pub start_ms: i64,
    /// By arm; they add up to 1.
    pub shares: BTreeMap<String, f64>,
}

impl Config {
    /// By experiment: lists before this time (epoch ms) do not count in its `total`.
    pub fn experiment_starts(&self) -> BTreeMap<String, i64> {
        let experiments = self.experiments.iter();
        let starts = experiments.filter_map(|(name, of)| Some((name.clone(), of.start_ms?)));
        starts.collect()
    }

    /// By experiment: the arm that the others are compared with, where one is set.
    pub fn experiment_controls(&self) -> BTreeMap<String, String> {
        let experiments = self.experiments.iter();
        let controls = experiments.filter_map(|(name, of)| {
            let settings = of.settings.as_ref()?;
            Some((name.clone(), settings.control.clone()))
        });
        controls.collect()
    }
}
