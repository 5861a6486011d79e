//! Size of a whole experiment at a look, over the arms that its plan counts.

use std::collections::BTreeMap;

use abgauge_core::looks::{Experiment, ExperimentLook};
use abgauge_core::statistics::Size;

/// Returns the configured shares of users up to a look. Empty without shares, or if they changed before it.
pub(super) fn planned_shares(asked: Option<&Experiment>, look: &ExperimentLook) -> BTreeMap<String, f64> {
    asked.map_or_else(BTreeMap::new, |asked| asked.shares_until(look.as_of_ms))
}

/// Returns whether an arm counts: it has a share, or no arm has one.
pub(super) fn counts(planned: &BTreeMap<String, f64>, arm: &str) -> bool {
    planned.is_empty() || planned.contains_key(arm)
}

/// Returns the total size of the arms that count.
pub(super) fn total_size(look: &ExperimentLook, planned: &BTreeMap<String, f64>) -> Size {
    let arms = || look.arms.iter().filter(|(name, _)| counts(planned, name));
    Size {
        lists: arms().map(|(_, arm)| arm.size.lists).sum(),
        // None if one arm has no count of users, because a partial sum would be wrong.
        users: arms().map(|(_, arm)| arm.size.users).sum(),
    }
}
