//! Arms prepared epoch by epoch, and an arm next to its control over the epochs that are compared.

use std::collections::{BTreeMap, BTreeSet};

use super::burn_in::BurnInArm;
use super::per_user::{self, CountPart};
use super::ratio::{EstimatedRatio, RatioPart};
use super::sums;
use super::totals::{ArmTotals, Epoch};

/// An arm in one epoch, without its control.
struct EpochArm<'a> {
    totals: &'a ArmTotals,
    n_lists: f64,
    n_hits: f64,
    /// Ratios by id, where defined.
    ratios: BTreeMap<&'a str, RatioPart<'a>>,
    /// Counts per user by id, where defined: for a metric, of its numerators.
    counts: BTreeMap<&'a str, CountPart>,
}

/// Every arm with a list, prepared epoch by epoch: computed once, however many arms its control is compared with.
pub struct Sides<'a>(Vec<BTreeMap<&'a str, EpochArm<'a>>>);

impl<'a> Sides<'a> {
    pub fn new(epochs: &'a [Epoch]) -> Sides<'a> {
        let sides = |epoch: &'a Epoch| {
            let arms = epoch.arms.iter();
            let sides =
                arms.map(|(name, arm)| (name.as_str(), EpochArm::new(arm, epoch.shares.get(name).copied())));
            sides.filter(|(_, side)| side.n_lists > 0.0).collect()
        };
        Sides(epochs.iter().map(sides).collect())
    }

    /// Returns the ratio of an arm in a metric, if the arm has lists in only one epoch and the ratio is defined.
    pub fn ratio(&self, arm: &str, metric: &str) -> Option<EstimatedRatio> {
        let mut sides = self.0.iter().filter_map(|epoch| epoch.get(arm));
        // Ratios are prepared by epoch. Over several epochs, sums must be added before the ratio is taken.
        let only = sides.next().filter(|_| sides.next().is_none())?;
        Some(only.ratios.get(metric)?.ratio())
    }
}

impl<'a> EpochArm<'a> {
    fn new(totals: &'a ArmTotals, share: Option<f64>) -> EpochArm<'a> {
        let sums = sums::sums(&[&totals.lists, &totals.hits]);
        let ids = || totals.metrics.keys().map(String::as_str);
        let terms = totals.metrics.values();
        let terms: Vec<[&[f64]; 2]> = terms
            .map(|terms| [&terms.numerators[..], &terms.denominators[..]])
            .collect();
        let ratios = ids().zip(RatioPart::all(&totals.lists, &terms));
        let counted = ids()
            .chain(per_user::ids())
            .filter_map(|id| Some((id, totals.counted(id)?)));
        let (counted, columns): (Vec<&str>, Vec<&[f64]>) = counted.unzip();
        // Counts per user are only comparable through the shares of users.
        let counts = share
            .filter(|share| *share > 0.0)
            .map(|share| CountPart::all(&totals.lists, &columns, share));
        let counts = counted.into_iter().zip(counts.into_iter().flatten());
        EpochArm {
            totals,
            n_lists: sums[0],
            n_hits: sums[1],
            ratios: ratios.filter_map(|(id, part)| Some((id, part?))).collect(),
            counts: counts.filter_map(|(id, part)| Some((id, part?))).collect(),
        }
    }
}

/// An arm and its control over the epochs that are compared.
pub(super) struct Versus<'a> {
    /// Epochs in which both have a list.
    epochs: Vec<[&'a EpochArm<'a>; 2]>,
}

impl<'a> Versus<'a> {
    /// Pairs the arm with its control over the first `n_epochs` epochs.
    pub fn new(sides: &'a Sides<'a>, n_epochs: usize, arm: &str, control: &str) -> Versus<'a> {
        let both = |epoch: &'a BTreeMap<&str, EpochArm<'a>>| Some([epoch.get(arm)?, epoch.get(control)?]);
        Versus {
            epochs: sides.0.iter().take(n_epochs).filter_map(both).collect(),
        }
    }

    /// Returns the figures of both that burn-in needs.
    pub fn seen(&self) -> [BurnInArm; 2] {
        [0, 1].map(|side| {
            let sides = || self.epochs.iter().map(move |both| both[side]);
            BurnInArm {
                occupied: n_occupied(sides().map(|side| side.totals.lists.as_slice())),
                lists: sides().map(|side| side.n_lists).sum(),
                hits: sides().map(|side| side.n_hits).sum(),
            }
        })
    }

    /// Returns the ids of all metrics of either, and of the metrics per user.
    pub fn metrics(&self) -> BTreeSet<&'a str> {
        let sides = self.epochs.iter().flatten();
        let own = sides
            .flat_map(|side| side.totals.metrics.keys())
            .map(String::as_str);
        own.chain(per_user::ids()).collect()
    }

    /// Returns a metric epoch by epoch.
    pub fn ratios(&self, metric: &str) -> Vec<[&'a RatioPart<'a>; 2]> {
        self.parts(|side| side.ratios.get(metric))
    }

    /// Returns the counts per assigned user for a metric, epoch by epoch: its numerator, or the metric per user itself.
    pub fn counts(&self, metric: &str) -> Vec<[&'a CountPart; 2]> {
        self.parts(|side| side.counts.get(metric))
    }

    /// Returns the epochs in which both have it.
    fn parts<T>(&self, of: impl Fn(&'a EpochArm<'a>) -> Option<&'a T>) -> Vec<[&'a T; 2]> {
        let both = |[arm, control]: &[&'a EpochArm<'a>; 2]| Some([of(arm)?, of(control)?]);
        self.epochs.iter().filter_map(both).collect()
    }
}

/// Counts buckets with a list in any epoch.
fn n_occupied<'a>(epochs: impl Iterator<Item = &'a [f64]> + Clone) -> usize {
    let n_buckets = epochs.clone().map(<[f64]>::len).max().unwrap_or(0);
    let has_list = |bucket: &usize| {
        epochs
            .clone()
            .any(|lists| lists.get(*bucket).is_some_and(|n| *n > 0.0))
    };
    (0..n_buckets).filter(has_list).count()
}
