//! Arms against their control, from the sums by user bucket: the file is one look.

use std::collections::BTreeMap;

use crate::engine::ranking::Ranking;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::ledger::{BucketSums, FirstSeen, Numbers};
use crate::looks::arm_totals;
use crate::statistics::{ArmTotals, Epoch, Report, Settings, Time, Totals, Unit, one_look};

/// Which arms are compared with a control, and how.
#[derive(Debug, Clone, Default)]
pub struct Compare {
    /// Of every experiment that has the control and is not named in `each`.
    pub all: Option<Settings>,
    /// By experiment.
    pub each: BTreeMap<String, Settings>,
}

impl Compare {
    /// Those of an experiment with these arms; none where it has no control.
    pub fn settings<'a>(
        &self,
        experiment: &str,
        mut arms: impl Iterator<Item = &'a str>,
    ) -> Option<&Settings> {
        let settings = self.each.get(experiment).or(self.all.as_ref())?;
        arms.any(|arm| arm == settings.control).then_some(settings)
    }
}

/// The arms of an experiment against its control.
#[derive(Debug)]
pub struct Comparison {
    pub settings: Settings,
    /// What all arms add up to, in one epoch.
    pub totals: Totals,
    pub report: Report,
    /// From its first list to its last one.
    pub time: Time,
}

impl Comparison {
    /// Lists of an arm.
    pub fn lists(&self, arm: &str) -> f64 {
        let lists = self.arm(arm).map(|arm| arm.lists.iter().sum());
        lists.unwrap_or(0.0)
    }

    /// Users of an arm, each in that of the first list; none where no list has a user.
    pub fn users(&self, arm: &str) -> Option<f64> {
        let users = || self.arm(arm).and_then(|arm| arm.users);
        self.counts_users().then(|| users().unwrap_or(0.0))
    }

    /// Whether some list has a user.
    pub fn counts_users(&self) -> bool {
        self.totals.multi_arm_users.is_some()
    }

    fn arm(&self, arm: &str) -> Option<&ArmTotals> {
        self.totals.epochs.first()?.arms.get(arm)
    }
}

/// When arms were served: from their first list to their last one.
#[derive(Debug, Default)]
pub(super) struct Times(BTreeMap<ArmId, Time>);

impl Times {
    pub fn see(&mut self, list: &SettledList) {
        let here = Time {
            start_ms: list.ts_ms,
            as_of_ms: list.ts_ms,
        };
        for arm in list.arms {
            let time = self.0.entry(*arm).or_insert(here);
            *time = both(*time, here);
        }
    }

    fn of(&self, arms: impl Iterator<Item = ArmId>) -> Time {
        let times = arms.filter_map(|arm| self.0.get(&arm).copied());
        times.reduce(both).unwrap_or(Time {
            start_ms: 0,
            as_of_ms: 0,
        })
    }
}

fn both(one: Time, other: Time) -> Time {
    Time {
        start_ms: one.start_ms.min(other.start_ms),
        as_of_ms: one.as_of_ms.max(other.as_of_ms),
    }
}

/// What is compared.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    pub numbers: Numbers<'a>,
    pub times: &'a Times,
    pub ranking: &'a Ranking,
}

/// Compares the arms of each experiment that has its control, by the metrics of the first profile.
pub(super) fn comparisons(
    compared: Compared,
    arms: &[Arm],
    compare: &Compare,
) -> BTreeMap<String, Comparison> {
    let mut experiments: BTreeMap<&str, Vec<(ArmId, &str)>> = BTreeMap::new();
    for (id, arm) in (0..).zip(arms) {
        experiments
            .entry(&arm.experiment)
            .or_default()
            .push((id, &arm.arm));
    }
    let comparisons = experiments.into_iter().filter_map(|(experiment, arms)| {
        let settings = compare.settings(experiment, arms.iter().map(|(_, arm)| *arm))?;
        Some((experiment.to_owned(), comparison(compared, &arms, settings)))
    });
    comparisons.collect()
}

fn comparison(compared: Compared, arms: &[(ArmId, &str)], settings: &Settings) -> Comparison {
    let Compared {
        numbers,
        times,
        ranking,
    } = compared;
    let seen: Vec<(&str, &FirstSeen)> = arms
        .iter()
        .filter_map(|(id, arm)| Some((*arm, numbers.exposures.get(id)?)))
        .collect();
    let exposed = (!seen.is_empty()).then(|| Exposed::of(&seen));
    let users_of = |arm: &str| {
        let exposed = exposed.as_ref()?;
        Some(exposed.first.get(arm).copied().unwrap_or(0.0))
    };
    let none = BucketSums::new();
    let totals = arms.iter().map(|(id, arm)| {
        let sums = numbers.buckets.get(id).unwrap_or(&none);
        ((*arm).to_owned(), arm_totals(sums, users_of(arm), ranking))
    });
    let epoch = Epoch {
        shares: settings.shares.clone(),
        arms: totals.collect(),
    };
    let settings = Settings {
        unit: if exposed.is_some() {
            Unit::User
        } else {
            Unit::Request
        },
        ..settings.clone()
    };
    let totals = Totals {
        epochs: vec![epoch],
        multi_arm_users: exposed.map(|exposed| exposed.in_two),
    };
    let time = times.of(arms.iter().map(|(id, _)| *id));
    Comparison {
        report: one_look(&settings, &totals, time),
        settings,
        totals,
        time,
    }
}

/// Users of an experiment.
struct Exposed<'a> {
    /// By the arm of their first list; of two lists of one time, that of the first name counts.
    first: BTreeMap<&'a str, f64>,
    /// Seen in two arms.
    in_two: f64,
}

impl<'a> Exposed<'a> {
    fn of(seen: &[(&'a str, &FirstSeen)]) -> Exposed<'a> {
        let mut users: BTreeMap<u32, ((i64, &str), u32)> = BTreeMap::new();
        for (arm, seen) in seen {
            for (user, ts_ms) in *seen {
                let here = (*ts_ms, *arm);
                let (first, n_arms) = users.entry(*user).or_insert((here, 0));
                *first = (*first).min(here);
                *n_arms += 1;
            }
        }
        let mut first: BTreeMap<&str, f64> = BTreeMap::new();
        for ((_, arm), _) in users.values() {
            *first.entry(arm).or_default() += 1.0;
        }
        Exposed {
            first,
            in_two: users.values().filter(|(_, n_arms)| *n_arms > 1).count() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ranking::ListOutcome;

    #[test]
    fn what_is_for_one_experiment_takes_the_place_of_what_is_for_all() {
        let compare = Compare {
            all: Some(Settings::new("base")),
            each: [("layout".to_owned(), Settings::new("grid"))].into(),
        };
        let control = |experiment: &str, arms: &[&'static str]| {
            let settings = compare.settings(experiment, arms.iter().copied());
            settings.map(|settings| settings.control.clone())
        };
        assert_eq!(control("ranker", &["base", "grid"]).as_deref(), Some("base"));
        assert_eq!(control("layout", &["base", "grid"]).as_deref(), Some("grid"));
        assert_eq!(control("layout", &["base"]), None);
        assert_eq!(control("ranker", &["grid"]), None);
    }

    #[test]
    fn arms_together_were_served_from_the_first_list_of_any_to_the_last_one() {
        let mut times = Times::default();
        for (ts_ms, arms) in [(50, [0, 1]), (20, [1, 2]), (90, [3, 3])] {
            times.see(&SettledList {
                start_ms: 0,
                ts_ms,
                user: None,
                arms: &arms,
                tags: &[],
                off_list: &[],
                outcome: ListOutcome {
                    n_items: 0,
                    clicked: &[],
                    n_off_list: 0,
                },
                items: None,
            });
        }
        let of = |arms: &[ArmId]| {
            let Time { start_ms, as_of_ms } = times.of(arms.iter().copied());
            (start_ms, as_of_ms)
        };
        assert_eq!(of(&[0]), (50, 50));
        assert_eq!(of(&[0, 2]), (20, 50));
        assert_eq!(of(&[0, 1, 2, 3]), (20, 90));
    }

    #[test]
    fn a_user_of_two_arms_counts_in_the_first_one() {
        let a = FirstSeen::from([(1, 10), (2, 30), (3, 5)]);
        let b = FirstSeen::from([(2, 20), (3, 5), (4, 1)]);
        let exposed = Exposed::of(&[("a", &a), ("b", &b)]);
        assert_eq!(exposed.first, BTreeMap::from([("a", 2.0), ("b", 2.0)]));
        assert_eq!(exposed.in_two, 2.0);
    }
}
