//! Input of a look: all sums of an experiment since its start, by epoch, arm and user bucket.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::MultiArm;
use super::per_user::UserMetric;
use super::refused::RefusedLists;
use super::settings::Settings;
use super::srm::{self, ExposedArm};

/// Settled sums as of a look. All columns have one length, the number of user buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Epochs in order of time.
    pub epochs: Vec<Epoch>,
    /// Users seen in two arms within one epoch, over all epochs. None if users are not counted.
    pub multi_arm_users: Option<f64>,
}

/// A time span without a change of allocation or configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Epoch {
    /// Expected shares of users by arm. Empty without shares.
    pub shares: BTreeMap<String, f64>,
    pub arms: BTreeMap<String, ArmTotals>,
}

/// Sums of one arm in an epoch, by user bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArmTotals {
    /// Served lists.
    pub lists: Vec<f64>,
    /// Lists with a click.
    pub hits: Vec<f64>,
    /// Clicks on distinct items of a list.
    pub clicks: Vec<f64>,
    /// First exposures, all buckets together. None if users are not counted.
    pub users: Option<f64>,
    /// Lists among `lists` that have no user.
    pub lists_without_user: f64,
    /// Lists left out because their user already had `max_lists_per_user`.
    pub capped_lists: f64,
    /// Lists of the user with the most. None if not counted.
    pub top_user_lists: Option<f64>,
    /// Refused lists, which are not among `lists`.
    pub refused: RefusedLists,
    /// Terms by metric id.
    pub metrics: BTreeMap<String, Terms>,
}

/// The two sums of a metric, by user bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    pub numerators: Vec<f64>,
    pub denominators: Vec<f64>,
}

/// Note for epochs that are not comparable because of sticky assignment.
pub const STICKY_NOTE: &str =
    "shares changed under sticky assignment: restart the experiment with a new salt";

impl Totals {
    /// Returns the epochs that are compared. Under sticky assignment they end with the first change of shares.
    pub fn compared(&self, sticky: bool) -> &[Epoch] {
        let first = self.epochs.first().map(|epoch| &epoch.shares);
        let is_first = |epoch: &&Epoch| !sticky || Some(&epoch.shares) == first;
        &self.epochs[..self.epochs.iter().take_while(is_first).count()]
    }

    /// Returns every arm with a list or a share.
    pub(super) fn arms(&self, settings: &Settings) -> BTreeSet<String> {
        let seen = self.epochs.iter().flat_map(|epoch| epoch.arms.keys());
        seen.chain(settings.shares.keys()).cloned().collect()
    }

    /// Returns ln of the Bayes factor over all epochs. None if an epoch has no shares or users are not counted.
    pub fn ln_bayes_factor(&self) -> Option<f64> {
        let epochs = self.epochs.iter().map(Epoch::ln_bayes_factor);
        epochs.sum::<Option<f64>>().filter(|_| !self.epochs.is_empty())
    }

    /// Returns the users seen in two arms. None if users are not counted.
    pub fn multi_arm(&self) -> Option<MultiArm> {
        let users = self
            .epochs
            .iter()
            .flat_map(|epoch| epoch.arms.values())
            .map(|arm| arm.users);
        Some(MultiArm {
            in_two: self.multi_arm_users?,
            users: users.sum::<Option<f64>>()?,
        })
    }
}

impl Epoch {
    fn ln_bayes_factor(&self) -> Option<f64> {
        let exposed = |(arm, share): (&String, &f64)| {
            // An arm without a list has 0 users: its absence is a mismatch too.
            let users = self.arms.get(arm).map_or(Some(0.0), |arm| arm.users)?;
            Some(ExposedArm { users, share: *share })
        };
        let arms = self.shares.iter().map(exposed).collect::<Option<Vec<_>>>()?;
        srm::ln_bayes_factor(&arms)
    }
}

impl ArmTotals {
    /// Returns the share of its lists that have no user.
    pub(super) fn share_without_user(&self) -> f64 {
        let lists: f64 = self.lists.iter().sum();
        if lists > 0.0 {
            self.lists_without_user / lists
        } else {
            0.0
        }
    }

    pub(super) fn counted(&self, metric: &str) -> Option<&[f64]> {
        match UserMetric::named(metric) {
            Some(per_user) => Some((per_user.counts)(self)),
            None => self.metrics.get(metric).map(|terms| terms.numerators.as_slice()),
        }
    }
}
