//! Comparison of arms with their control, from sums by user bucket. All files together are one look.

mod times;
mod top_users;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

pub(super) use self::times::ArmTimes;
pub(super) use self::top_users::TopUsers;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::ledger::{BucketSums, Numbers};
use crate::looks::{arm_totals, refused_lists};
use crate::metrics::Ranking;
use crate::statistics::per_user::is_per_user;
use crate::statistics::top_user::top_user_note;
use crate::statistics::{ArmTotals, ComparisonReport, Epoch, LookSpan, Settings, Totals, one_look};

/// Arms to compare with a control, and the settings of each comparison.
#[derive(Debug, Clone, Default)]
pub struct Compare {
    /// Settings of every experiment that has the control and is not in `each`.
    pub all: Option<Settings>,
    /// Settings by experiment.
    pub each: BTreeMap<String, Settings>,
    /// Expected shares of users. They apply to the experiments that have the most of these arms and no shares of their own.
    pub shares: BTreeMap<String, f64>,
    /// Set to report the sums at half of the time, too.
    pub halfway: bool,
    /// Bound on the lists of a user that count; `None` for no bound.
    pub max_lists_per_user: Option<NonZeroU32>,
}

impl Compare {
    /// Returns the settings of each experiment that has its control. `arms` are all experiments with their arms.
    pub fn settings<'a>(&self, arms: &BTreeMap<&'a str, Vec<&str>>) -> BTreeMap<&'a str, Settings> {
        let with_control = arms.iter().filter_map(|(experiment, arms)| {
            // Common settings are only a default.
            let settings = self.each.get(*experiment).or(self.all.as_ref())?;
            let has_control = arms.contains(&settings.control.as_str());
            has_control.then(|| (*experiment, settings.clone()))
        });
        let mut all: BTreeMap<&str, Settings> = with_control.collect();
        if self.shares.is_empty() {
            return all;
        }
        // An arm that never came must show as a mismatch, so an experiment is a candidate even if some of the arms are
        // missing.
        let n_shared = |experiment: &str| {
            let arms = arms[experiment].iter();
            arms.filter(|arm| self.shares.contains_key(**arm)).count()
        };
        let mut without: Vec<(&&str, &mut Settings)> = all.iter_mut().collect();
        without.retain(|(_, settings)| settings.shares.is_empty());
        // Several experiments may have equally many of these arms. All of them get the shares.
        let most = without.iter().map(|(experiment, _)| n_shared(experiment)).max();
        for (experiment, settings) in without {
            if Some(n_shared(experiment)) == most {
                settings.shares.clone_from(&self.shares);
            } else {
                // These metrics are only known with shares, so they are dropped if the shares belong to another experiment.
                settings.primary.retain(|metric| !is_per_user(metric));
                settings.guardrails.retain(|metric, _| !is_per_user(metric));
            }
        }
        all
    }

    /// Returns the experiments in `arms` that have a control but are compared without `shares`.
    pub fn without_shares<'a>(&self, arms: &BTreeMap<&'a str, Vec<&str>>) -> Vec<&'a str> {
        if self.shares.is_empty() {
            return Vec::new();
        }
        let all = self.settings(arms).into_iter();
        all.filter(|(_, settings)| settings.shares.is_empty())
            .map(|(experiment, _)| experiment)
            .collect()
    }
}

/// Comparison of an experiment's arms with its control.
#[derive(Debug)]
pub struct ExperimentComparison {
    pub settings: Settings,
    /// Totals of all arms, in one epoch.
    pub totals: Totals,
    pub report: ComparisonReport,
    /// Time from the first list to the last one.
    pub time: LookSpan,
    /// Totals at half of the time of all lists, if requested.
    pub halfway: Option<HalfTotals>,
}

/// Totals of all arms at half of the time.
#[derive(Debug)]
pub struct HalfTotals {
    pub epoch: Epoch,
    /// Time up to which events count, Unix ms.
    pub as_of_ms: i64,
}

impl ExperimentComparison {
    /// Returns the number of users of an arm, each counted in the arm of the first list. `None` if no list has a user.
    pub fn users(&self, arm: &str) -> Option<f64> {
        let users = || self.arm(arm).and_then(|arm| arm.users);
        self.counts_users().then(|| users().unwrap_or(0.0))
    }

    /// Returns whether some list has a user.
    pub fn counts_users(&self) -> bool {
        self.totals.multi_arm_users.is_some()
    }

    /// Returns for each arm its number of lists, and the number from its most active user.
    pub fn top_user_lists(&self) -> impl Iterator<Item = (&str, [f64; 2])> {
        let arms = self.totals.epochs.iter().flat_map(|epoch| &epoch.arms);
        arms.filter_map(|(name, arm)| Some((name.as_str(), [arm.lists.iter().sum(), arm.top_user_lists?])))
    }

    /// Adds the notes on arms in which one user has more than `max_share` of the lists.
    fn note_top_users(&mut self, max_share: f64) {
        let noted: Vec<(String, String)> = self
            .top_user_lists()
            .filter_map(|(arm, [lists, of_user])| {
                Some((arm.to_owned(), top_user_note(arm, lists, of_user, max_share)?))
            })
            .collect();
        for (name, report) in &mut self.report.arms {
            // A crawler in the control affects all comparisons with it.
            let own = noted
                .iter()
                .filter(|(arm, _)| arm == name || *arm == self.settings.control);
            report.notes.extend(own.map(|(_, note)| note.clone()));
        }
    }

    fn arm(&self, arm: &str) -> Option<&ArmTotals> {
        self.totals.epochs.first()?.arms.get(arm)
    }
}

/// Inputs of the comparisons.
#[derive(Clone, Copy)]
pub(super) struct ComparisonInputs<'a> {
    pub arms: &'a [Arm],
    pub ranking: &'a Ranking,
    pub compare: &'a Compare,
    /// See [`Options::max_user_share`](super::Options::max_user_share).
    pub max_user_share: f64,
}

/// Counts kept list by list, outside of the ledger.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub times: ArmTimes,
    pub top_users: TopUsers,
}

impl Beside {
    pub fn see(&mut self, list: &SettledList) {
        self.times.see(list);
        self.top_users.see(list);
    }
}

/// Settings and totals by experiment.
type SumsByExperiment = BTreeMap<String, (Settings, Totals)>;

impl ComparisonInputs<'_> {
    /// Compares the arms of each experiment that has its control, by the metrics of the first profile.
    pub fn comparisons(
        self,
        numbers: Numbers,
        beside: &Beside,
        half: Option<HalfSums>,
    ) -> BTreeMap<String, ExperimentComparison> {
        let mut half = half.map(|half| (half.as_of_ms, half.sums));
        let mut top_users = beside.top_users.most();
        // Lists beyond the cap do not count, so the most active user has no more than the cap either.
        if let Some(max_lists) = self.compare.max_lists_per_user {
            for n_lists in top_users.values_mut() {
                *n_lists = max_lists.get().min(*n_lists);
            }
        }
        let sums = self.sums(numbers, &top_users).into_iter();
        let comparisons = sums.map(|(experiment, (settings, totals))| {
            let ids = (0..).zip(self.arms);
            let own = ids.filter(|(_, arm)| *arm.experiment == *experiment);
            let time = beside.times.of(own.map(|(id, _)| id));
            // Each experiment is compared once, so its sums can be moved.
            let halfway = half.as_mut().and_then(|(as_of_ms, sums)| {
                let (_, totals) = sums.remove(&experiment)?;
                Some(HalfTotals {
                    epoch: totals.epochs.into_iter().next()?,
                    as_of_ms: *as_of_ms,
                })
            });
            let mut comparison = ExperimentComparison {
                report: one_look(&settings, &totals, time),
                settings,
                totals,
                time,
                halfway,
            };
            comparison.note_top_users(self.max_user_share);
            (experiment, comparison)
        });
        comparisons.collect()
    }

    /// Returns the sums up to this time, Unix ms.
    pub fn half(self, numbers: Numbers, as_of_ms: i64) -> HalfSums {
        HalfSums {
            as_of_ms,
            sums: self.sums(numbers, &BTreeMap::new()),
        }
    }

    /// Returns the sums of each experiment. `top_users` are the lists of the most active user, by arm.
    fn sums(self, numbers: Numbers, top_users: &BTreeMap<ArmId, u32>) -> SumsByExperiment {
        let mut experiments: BTreeMap<&str, Vec<(ArmId, &str)>> = BTreeMap::new();
        for (id, arm) in (0..).zip(self.arms) {
            let arms = experiments.entry(&arm.experiment).or_default();
            arms.push((id, &arm.arm));
        }
        let names = experiments.iter().map(|(experiment, arms)| {
            let names = arms.iter().map(|(_, arm)| *arm);
            (*experiment, names.collect())
        });
        let settings = self.compare.settings(&names.collect());
        let sums = settings.into_iter().map(|(experiment, settings)| {
            let arms = &experiments[experiment];
            let totals = totals(numbers, arms, self.ranking, &settings, top_users);
            (experiment.to_owned(), (settings, totals))
        });
        sums.collect()
    }
}

/// Sums at half of the time.
pub(super) struct HalfSums {
    as_of_ms: i64,
    sums: SumsByExperiment,
}

fn totals(
    numbers: Numbers,
    arms: &[(ArmId, &str)],
    ranking: &Ranking,
    settings: &Settings,
    top_users: &BTreeMap<ArmId, u32>,
) -> Totals {
    let exposed = |id: &ArmId| numbers.exposures.get(id);
    // If no list has a user, the number of users is unknown, not zero.
    let counts_users = arms.iter().any(|(id, _)| exposed(id).is_some());
    let in_two = arms
        .iter()
        .filter_map(|(id, _)| exposed(id))
        .map(|arm| arm.in_two);
    let multi_arm_users = counts_users.then(|| in_two.sum::<u64>() as f64);
    let users_of = |id| {
        let first = exposed(id).map_or(0, |arm| arm.first);
        counts_users.then_some(first as f64)
    };
    let units = |id: &ArmId| numbers.units.get(id).copied().unwrap_or_default();
    let none = BucketSums::new();
    let arms = arms.iter().map(|(id, arm)| {
        let sums = numbers.buckets.get(id).unwrap_or(&none);
        let totals = ArmTotals {
            lists_without_user: units(id).without_user as f64,
            capped_lists: units(id).capped as f64,
            refused: numbers.refused.get(id).map(refused_lists).unwrap_or_default(),
            top_user_lists: top_users.get(id).copied().map(f64::from),
            ..arm_totals(&[sums], users_of(id), ranking)
        };
        ((*arm).to_owned(), totals)
    });
    let epoch = Epoch {
        shares: settings.shares.clone(),
        arms: arms.collect(),
    };
    Totals {
        epochs: vec![epoch],
        multi_arm_users,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_an_experiment_override_common_settings() {
        let compare = Compare {
            all: Some(Settings::new("base")),
            each: [("layout".to_owned(), Settings::new("grid"))].into(),
            ..Compare::default()
        };
        let control = |experiment: &str, arms: &[&str]| {
            let mut settings = compare.settings(&BTreeMap::from([(experiment, arms.to_vec())]));
            Some(settings.remove(experiment)?.control)
        };
        assert_eq!(control("ranker", &["base", "grid"]).as_deref(), Some("base"));
        assert_eq!(control("layout", &["base", "grid"]).as_deref(), Some("grid"));
        assert_eq!(control("layout", &["base"]), None);
        assert_eq!(control("ranker", &["grid"]), None);
    }

    #[test]
    fn common_shares_apply_to_experiments_with_most_of_their_arms() {
        let shares = |arms: &[&str]| arms.iter().map(|arm| ((*arm).to_owned(), 0.5)).collect();
        let own = Settings {
            shares: shares(&["base", "grid"]),
            ..Settings::new("base")
        };
        let compare = Compare {
            all: Some(Settings {
                primary: vec!["ctr".to_owned(), "lists_per_user".to_owned()],
                ..Settings::new("base")
            }),
            each: [("layout".to_owned(), own.clone())].into(),
            shares: shares(&["base", "neural"]),
            ..Compare::default()
        };
        let mut arms = BTreeMap::from([
            ("ranker", vec!["base", "neural", "other"]),
            ("color", vec!["base", "red"]),
            ("layout", vec!["base"]),
            ("without", vec!["red"]),
        ]);
        let settings = compare.settings(&arms);
        let ranker = &settings["ranker"];
        assert_eq!((&ranker.shares, ranker.primary.len()), (&compare.shares, 2));
        let color = &settings["color"];
        assert!(color.shares.is_empty());
        assert_eq!(color.primary, ["ctr"]);
        assert_eq!(settings["layout"].shares, own.shares);
        assert_eq!(settings.len(), 3);
        assert_eq!(compare.without_shares(&arms), ["color"]);
        // `neural` never came, so the control is the only one of the two arms that both experiments have.
        arms.insert("ranker", vec!["base", "other"]);
        let settings = compare.settings(&arms);
        assert_eq!(
            [&settings["ranker"].shares, &settings["color"].shares],
            [&compare.shares; 2]
        );
        assert!(compare.without_shares(&arms).is_empty());
    }
}
