//! What is asked of experiments, as those need it who know no statistics.

use std::collections::BTreeMap;

use super::Config;

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
