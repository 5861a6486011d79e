//! Settings of an experiment for looks.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::ledger::Epochs;
use crate::statistics::Settings;

/// Settings of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experiment {
    /// Start of its `total`: lists before this time (Unix ms) do not count. None if all lists do.
    pub start_ms: Option<i64>,
    /// Comparison of its arms with its control. None without a control: then each arm only has its own intervals.
    pub settings: Option<Settings>,
    /// Later allocations, ascending. Each opens an epoch.
    pub epochs: Vec<EpochStart>,
    /// Number of lists of a user that count. None if all do.
    pub max_lists_per_user: Option<NonZeroU32>,
}

/// Start of a new allocation.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochStart {
    /// Unix ms. The epoch begins with the first cell of looks that begins at this time or later.
    pub start_ms: i64,
    /// Expected shares by arm.
    pub shares: BTreeMap<String, f64>,
}

impl Experiment {
    /// Returns the epochs in which its users are tracked, with `every_ms` between two looks.
    pub fn epochs(&self, every_ms: i64) -> Epochs {
        // Round up, so that no cell of a look has lists of two epochs.
        let next_look = |ms: i64| (ms + every_ms - 1).div_euclid(every_ms).saturating_mul(every_ms);
        Epochs {
            start_ms: self.start_ms,
            max_lists: self.max_lists_per_user,
            later_ms: self
                .epochs
                .iter()
                .map(|epoch| next_look(epoch.start_ms))
                .collect(),
        }
    }

    /// Returns the start of the epoch of the lists before this time (Unix ms). None in the first epoch.
    pub(super) fn shares_since_ms(&self, ms: i64, every_ms: i64) -> Option<i64> {
        let later_ms = self.epochs(every_ms).later_ms;
        later_ms.into_iter().rev().find(|start_ms| *start_ms < ms)
    }

    /// Returns the expected shares of all lists up to this time (Unix ms). Empty without shares, or if they changed before.
    pub fn shares_until(&self, ms: i64) -> BTreeMap<String, f64> {
        let is_changed = self.epochs.iter().any(|epoch| epoch.start_ms < ms);
        if is_changed {
            BTreeMap::new()
        } else {
            self.shares(0)
        }
    }

    pub(super) fn n_epochs(&self) -> usize {
        self.epochs.len() + 1
    }

    /// Returns the epoch of a cell that begins at this time (Unix ms).
    pub(super) fn epoch_of(&self, cell_start_ms: i64) -> usize {
        self.epochs
            .partition_point(|epoch| epoch.start_ms <= cell_start_ms)
    }

    /// Returns the expected shares in an epoch. Empty without shares.
    pub(super) fn shares(&self, epoch: usize) -> BTreeMap<String, f64> {
        let first = || self.settings.as_ref().map(|settings| &settings.shares);
        let shares = match epoch.checked_sub(1) {
            Some(later) => self.epochs.get(later).map(|epoch| &epoch.shares),
            None => first(),
        };
        shares.cloned().unwrap_or_default()
    }
}
