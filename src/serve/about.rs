//! Facts about the numbers that do not come from events: descriptions of experiments, and whether the traffic is simulated.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::settings::{AboutExperiment, Config};

/// Descriptions of experiments by name.
pub(super) type Descriptions = BTreeMap<String, AboutExperiment>;

/// Facts about the numbers. Descriptions can be replaced while the daemon runs.
#[derive(Debug, Default)]
pub struct About {
    /// Set if the numbers are simulated, as in the demo.
    pub is_demo: bool,
    descriptions: RwLock<Arc<Descriptions>>,
}

impl About {
    pub fn new(config: &Config) -> About {
        About {
            is_demo: config.is_demo,
            descriptions: RwLock::new(Arc::new(config.about_experiments.clone())),
        }
    }

    /// Replaces the descriptions with those in a configuration.
    pub fn replace(&self, config: &Config) {
        let mut descriptions = self.descriptions.write().unwrap_or_else(PoisonError::into_inner);
        *descriptions = Arc::new(config.about_experiments.clone());
    }

    pub(super) fn descriptions(&self) -> Arc<Descriptions> {
        Arc::clone(&self.descriptions.read().unwrap_or_else(PoisonError::into_inner))
    }
}
