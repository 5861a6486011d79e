//! What is asked of an experiment.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::ledger::Epochs;
use crate::statistics::Settings;

/// What is asked of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experiment {
    /// Lists before this time (epoch ms) do not count in its `total`; none: all lists do.
    pub start_ms: Option<i64>,
    /// How its arms are compared with its control; none where no control is set: each arm has its own intervals alone.
    pub settings: Option<Settings>,
    /// Later allocations, ascending; each opens an epoch.
    pub epochs: Vec<EpochStart>,
    /// How many lists of a user count; none: all of them.
    pub max_lists_per_user: Option<NonZeroU32>,
}

/// From when on users are expected in other shares.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochStart {
    /// Epoch ms; the epoch begins with the first cell of looks that begins then or later.
    pub start_ms: i64,
    /// By arm.
    pub shares: BTreeMap<String, f64>,
}

impl Experiment {
    /// When its users are told apart, for looks with this time between them, ms.
    pub fn epochs(&self, every_ms: i64) -> Epochs {
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

    /// The shares that are expected of all lists up to this time (epoch ms); empty without, and where they were changed before it.
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

    /// Which epoch a cell belongs to that begins at this time (epoch ms).
    pub(super) fn epoch_of(&self, cell_start_ms: i64) -> usize {
        self.epochs
            .partition_point(|epoch| epoch.start_ms <= cell_start_ms)
    }

    /// The shares that are expected in an epoch; empty without.
    pub(super) fn shares(&self, epoch: usize) -> BTreeMap<String, f64> {
        let first = || self.settings.as_ref().map(|settings| &settings.shares);
        let shares = match epoch.checked_sub(1) {
            Some(later) => self.epochs.get(later).map(|epoch| &epoch.shares),
            None => first(),
        };
        shares.cloned().unwrap_or_default()
    }
}
