//! Traffic scaled to the planned shares: variances at those shares, and how they fall.

use super::{ArmDays, MetricDays, Needs, NoEstimate, PlanningSums, growth};
use crate::statistics::burn_in::{BurnIn, BurnInArm};
use crate::statistics::per_user::{self, Count};
use crate::statistics::ratio::{self, RatioSums};
use crate::statistics::{ArmTotals, Settings};

/// Past traffic and the settings.
pub(super) struct PastTraffic<'a> {
    pub settings: &'a Settings,
    pub sums: PlanningSums<'a>,
    pub halfway: Option<PlanningSums<'a>>,
    pub n_treatments: usize,
}

/// An arm scaled to its planned share.
struct PlannedArm<'a> {
    totals: &'a ArmTotals,
    /// Share of all users so far over the planned share.
    scale: f64,
}

impl PastTraffic<'_> {
    /// Estimates the requirements of an arm.
    pub fn arm(&self, name: &str) -> Result<ArmDays, NoEstimate> {
        let control = self.side(&self.settings.control, &self.settings.control);
        let is_new = !self.has(name);
        // A new arm has no data yet, so it is assumed to vary like the control.
        let own = if is_new { &self.settings.control } else { name };
        let arm = self.side(own, name);
        let (arm, control) = arm.zip(control).ok_or(NoEstimate::NoControl)?;
        let burn_in = BurnIn::new([&arm, &control].map(|side| seen(side.totals)));
        if !burn_in.is_done() {
            return Err(NoEstimate::Collecting(burn_in));
        }
        let metrics = self.settings.primary.iter();
        let metrics = metrics.map(|id| (id.clone(), self.metric(id, [&arm, &control])));
        Ok(ArmDays {
            is_new,
            metrics: metrics.collect(),
        })
    }

    fn has(&self, arm: &str) -> bool {
        let arm = self.sums.epoch.arms.get(arm);
        arm.is_some_and(|arm| arm.lists.iter().any(|lists| *lists > 0.0))
    }

    /// Returns an arm that varies like `like` and gets the share of `name`.
    fn side(&self, like: &str, name: &str) -> Option<PlannedArm<'_>> {
        let arms = &self.sums.epoch.arms;
        let totals = arms.get(like)?;
        let all: f64 = arms.values().map(size).sum();
        let share = self.settings.shares.get(name).copied();
        Some(PlannedArm {
            totals,
            // Variance falls with the number of users, so fewer users than so far mean a larger variance.
            scale: share.map_or(1.0, |share| size(totals) / all / share),
        })
    }

    fn metric(&self, id: &str, sides: [&PlannedArm; 2]) -> Option<MetricDays> {
        let variance = |side: &PlannedArm| Some(side.scale * variance(id, side.totals)?);
        let variance = variance(sides[0])? + variance(sides[1])?;
        let [arm, control] = sides.map(|side| side.totals);
        let tau = self.settings.mde * pooled(id, [arm, control])?;
        let x = tau * tau / variance;
        let growth = self.growth(id);
        let needs = Needs::new(self.settings, self.n_treatments);
        let metric = MetricDays::new(x, self.sums.days, growth, &needs.looks())?;
        Some(MetricDays {
            control: pooled(id, [control]).filter(|_| !per_user::is_per_user(id)),
            ..metric
        })
    }

    /// Computes β over all arms that had enough data halfway. None if the control had not.
    fn growth(&self, id: &str) -> Option<f64> {
        let half = self.halfway?;
        let control = half.epoch.arms.get(&self.settings.control)?;
        let [mut before, mut after] = [0.0, 0.0];
        for (name, arm) in &half.epoch.arms {
            let is_known = BurnIn::new([arm, control].map(seen)).is_done();
            if let Some(now) = self.sums.epoch.arms.get(name).filter(|_| is_known) {
                before += variance(id, arm)?;
                after += variance(id, now)?;
            }
        }
        growth(before, after, self.sums.days / half.days)
    }
}

/// Computes V of a metric in one arm: of its ratio, or of the logarithm of its count per user.
fn variance(id: &str, arm: &ArmTotals) -> Option<f64> {
    let spread = if per_user::is_per_user(id) {
        let count = Count {
            lists: &arm.lists,
            counts: arm.counted(id)?,
            share: 1.0,
        };
        count.spread()
    } else {
        let terms = arm.metrics.get(id)?;
        let sums = RatioSums {
            lists: &arm.lists,
            numerators: &terms.numerators,
            denominators: &terms.denominators,
        };
        ratio::ratio(sums)?.spread
    };
    spread.map(|spread| spread.variance)
}

/// Computes the common ratio of arms, which τ is relative to. 1 for a logarithm.
fn pooled<const N: usize>(id: &str, arms: [&ArmTotals; N]) -> Option<f64> {
    if per_user::is_per_user(id) {
        return Some(1.0);
    }
    let [mut numerator, mut denominator] = [0.0, 0.0];
    for arm in arms {
        let terms = arm.metrics.get(id)?;
        numerator += terms.numerators.iter().sum::<f64>();
        denominator += terms.denominators.iter().sum::<f64>();
    }
    Some(numerator / denominator)
}

/// Returns the users, or the lists if users are not counted.
fn size(arm: &ArmTotals) -> f64 {
    arm.users.unwrap_or_else(|| arm.lists.iter().sum())
}

fn seen(arm: &ArmTotals) -> BurnInArm {
    BurnInArm {
        occupied: arm.lists.iter().filter(|lists| **lists > 0.0).count(),
        lists: arm.lists.iter().sum(),
        hits: arm.hits.iter().sum(),
    }
}
