//! How many days an experiment must run to find the effect that it is made for, from what some days of lists spread.
//!
//! ```text
//! x = τ²/(s_T V_T + s_C V_C)      days needed = x_plan × days so far ÷ x
//! ```
//! Variances fall as users come, so x grows by as much a day. s is what an arm had of all users over what it is to get; an arm that
//! is not there yet is taken to vary as the control does. Arms count as independent: what their users have in common within
//! buckets is chance.

use std::collections::BTreeMap;
use std::fmt;

use super::burn_in::{BurnIn, Seen};
use super::calendar::Time;
use super::per_user::{self, Count};
use super::power::Plan;
use super::ratio::{self, RatioSums};
use super::settings::{Settings, Validity};
use super::totals::{ArmTotals, Epoch};

/// A way to test, as `validity` and `planned_days` choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Design {
    /// At every look.
    Sequence,
    /// Mostly at one look that is planned.
    Planned,
    /// At every look, each arm judged on its own.
    Strict,
}

/// What an experiment needs.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentDays {
    /// Days of lists that it is told from.
    pub so_far: f64,
    /// By treatment arm.
    pub arms: BTreeMap<String, ArmDays>,
}

/// What an arm needs.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmDays {
    /// Whether it is not there yet, and is taken to vary as the control.
    pub is_new: bool,
    /// By primary; none where it is undefined, or nothing spreads.
    pub metrics: BTreeMap<String, Option<MetricDays>>,
}

/// What a metric of an arm needs.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricDays {
    /// R_C; none of a metric per user.
    pub control: Option<f64>,
    /// x so far.
    pub x: f64,
    pub needs: BTreeMap<Design, Need>,
}

/// What a test needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Need {
    /// x_plan.
    pub x: f64,
    pub days: f64,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unknown {
    /// All lists have one time.
    NoTime,
    /// The control has no list.
    NoControl,
    /// There is no arm but the control, and no share of any.
    NoTreatment,
    /// Too little to know a variance.
    Collecting(BurnIn),
}

const DAY_MS: f64 = 86_400_000.0;
/// Shares that differ by more than this factor: the skewness of the small arm is not cancelled, and a planned end does not hold.
const MAX_UNEQUAL: f64 = 4.0;

impl Design {
    pub const ALL: [Design; 3] = [Design::Sequence, Design::Planned, Design::Strict];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Design::Sequence => "sequence",
            Design::Planned => "planned",
            Design::Strict => "strict",
        }
    }

    fn plan(self, settings: &Settings, n_treatments: usize) -> Plan {
        Plan {
            validity: match self {
                Design::Sequence | Design::Planned => Validity::Sequence,
                Design::Strict => Validity::Strict,
            },
            has_planned_end: self == Design::Planned,
            alpha: settings.alpha,
            n_hypotheses: n_treatments * settings.primary.len(),
            n_guardrails: settings.guardrails.len(),
        }
    }
}

impl Need {
    /// Whole weeks, in which every weekday counts alike; at least one.
    pub fn weeks(&self) -> u64 {
        ((self.days / 7.0).ceil() as u64).max(1)
    }
}

impl ExperimentDays {
    /// The weeks in which every primary of every arm is known well enough; none where one of them never is.
    pub fn weeks(&self, design: Design) -> Option<u64> {
        let metrics = self.arms.values().flat_map(|arm| arm.metrics.values());
        let weeks = metrics.map(|metric| Some(metric.as_ref()?.needs.get(&design)?.weeks()));
        weeks.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}

/// What the primaries of an experiment need, from what its arms added up to within this time.
///
/// # Errors
/// Where too little is known.
pub fn days(settings: &Settings, epoch: &Epoch, time: Time) -> Result<ExperimentDays, Unknown> {
    let so_far = (time.as_of_ms - time.start_ms) as f64 / DAY_MS;
    if so_far <= 0.0 {
        return Err(Unknown::NoTime);
    }
    let names: Vec<&String> = if settings.shares.is_empty() {
        epoch.arms.keys().collect()
    } else {
        settings.shares.keys().collect()
    };
    let treatments = names.into_iter().filter(|arm| **arm != settings.control);
    let treatments: Vec<&String> = treatments.collect();
    if treatments.is_empty() {
        return Err(Unknown::NoTreatment);
    }
    let traffic = Traffic {
        settings,
        epoch,
        so_far,
        n_treatments: treatments.len(),
    };
    let arms = treatments
        .into_iter()
        .map(|arm| Ok((arm.clone(), traffic.arm(arm)?)));
    Ok(ExperimentDays {
        so_far,
        arms: arms.collect::<Result<_, Unknown>>()?,
    })
}

/// What there was, and what is asked.
struct Traffic<'a> {
    settings: &'a Settings,
    epoch: &'a Epoch,
    so_far: f64,
    n_treatments: usize,
}

/// An arm as it is to be.
struct Side<'a> {
    totals: &'a ArmTotals,
    /// Its share of users; 1 where shares are as they were.
    share: f64,
    /// What it had of all users over its share.
    scale: f64,
}

impl Traffic<'_> {
    fn arm(&self, name: &str) -> Result<ArmDays, Unknown> {
        let control = self.side(&self.settings.control, &self.settings.control);
        let is_new = !self.has(name);
        let own = if is_new { &self.settings.control } else { name };
        let arm = self.side(own, name);
        let (arm, control) = arm.zip(control).ok_or(Unknown::NoControl)?;
        let burn_in = BurnIn::new([&arm, &control].map(|side| seen(side.totals)));
        if !burn_in.is_done() {
            return Err(Unknown::Collecting(burn_in));
        }
        let metrics = self.settings.primary.iter();
        let metrics = metrics.map(|id| (id.clone(), self.metric(id, [&arm, &control])));
        Ok(ArmDays {
            is_new,
            metrics: metrics.collect(),
        })
    }

    fn has(&self, arm: &str) -> bool {
        let arm = self.epoch.arms.get(arm);
        arm.is_some_and(|arm| arm.lists.iter().any(|lists| *lists > 0.0))
    }

    /// An arm that varies as `like` does and gets the share of `name`.
    fn side(&self, like: &str, name: &str) -> Option<Side<'_>> {
        let totals = self.epoch.arms.get(like)?;
        let all: f64 = self.epoch.arms.values().map(size).sum();
        let share = self.settings.shares.get(name).copied();
        Some(Side {
            totals,
            share: share.unwrap_or(1.0),
            scale: share.map_or(1.0, |share| size(totals) / all / share),
        })
    }

    fn metric(&self, id: &str, sides: [&Side; 2]) -> Option<MetricDays> {
        let Known { control, x } = if per_user::is_per_user(id) {
            self.per_user(id, sides)?
        } else {
            self.ratio(id, sides)?
        };
        let needs = Design::ALL.into_iter().filter(|design| self.can(*design));
        let need = |design: Design| {
            let needed = design.plan(self.settings, self.n_treatments).x();
            let days = needed * self.so_far / x;
            (design, Need { x: needed, days })
        };
        (x > 0.0 && x.is_finite()).then(|| MetricDays {
            control,
            x,
            needs: needs.map(need).collect(),
        })
    }

    fn ratio(&self, id: &str, sides: [&Side; 2]) -> Option<Known> {
        let sums = |side: &Side| {
            let terms = side.totals.metrics.get(id)?;
            let sum = |column: &[f64]| column.iter().sum::<f64>();
            let sums = RatioSums {
                lists: &side.totals.lists,
                numerators: &terms.numerators,
                denominators: &terms.denominators,
            };
            let ratio = ratio::ratio(sums)?;
            let variance = side.scale * ratio.spread?.variance;
            Some((
                ratio.value,
                variance,
                [sum(&terms.numerators), sum(&terms.denominators)],
            ))
        };
        let [(_, of_arm, arm), (value, of_control, control)] = [sums(sides[0])?, sums(sides[1])?];
        let pooled = (arm[0] + control[0]) / (arm[1] + control[1]);
        Some(Known {
            control: Some(value),
            x: (self.settings.mde * pooled).powi(2) / (of_arm + of_control),
        })
    }

    fn per_user(&self, id: &str, sides: [&Side; 2]) -> Option<Known> {
        let variance = |side: &Side| {
            let count = Count {
                lists: &side.totals.lists,
                counts: side.totals.counted(id)?,
                share: side.share,
            };
            Some(side.scale * count.spread()?.variance)
        };
        let variance = variance(sides[0])? + variance(sides[1])?;
        Some(Known {
            control: None,
            x: self.settings.mde.powi(2) / variance,
        })
    }

    /// A planned end does not hold where shares are far apart.
    fn can(&self, design: Design) -> bool {
        let shares = || self.settings.shares.values().copied();
        let [least, most] = [shares().fold(1.0, f64::min), shares().fold(0.0, f64::max)];
        design != Design::Planned || most <= MAX_UNEQUAL * least
    }
}

/// A metric of two arms.
struct Known {
    control: Option<f64>,
    x: f64,
}

/// Users, or lists where these are not counted.
fn size(arm: &ArmTotals) -> f64 {
    arm.users.unwrap_or_else(|| arm.lists.iter().sum())
}

fn seen(arm: &ArmTotals) -> Seen {
    Seen {
        occupied: arm.lists.iter().filter(|lists| **lists > 0.0).count(),
        lists: arm.lists.iter().sum(),
        hits: arm.hits.iter().sum(),
    }
}

/// Goes on after "nothing can be said: ".
impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::NoTime => f.write_str("all lists have one time"),
            Unknown::NoControl => f.write_str("its control has no list"),
            Unknown::NoTreatment => f.write_str("it has no arm but the control"),
            Unknown::Collecting(burn_in) => write!(f, "too little is known yet, {burn_in}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Terms;
    use crate::statistics::per_user::LISTS_PER_USER;

    const TEN_DAYS: Time = Time {
        start_ms: 0,
        as_of_ms: 864_000_000,
    };

    /// Two buckets in three have 10 lists and 2 clicks, the third 10 and 5.
    fn arm(users: f64) -> ArmTotals {
        let lists = vec![10.0; 255];
        let hits: Vec<f64> = (0..255)
            .map(|bucket| if bucket % 3 == 0 { 5.0 } else { 2.0 })
            .collect();
        let terms = Terms {
            numerators: hits.clone(),
            denominators: lists.clone(),
        };
        ArmTotals {
            clicks: hits.clone(),
            metrics: [("hit_rate".to_owned(), terms)].into(),
            users: Some(users),
            lists,
            hits,
        }
    }

    fn epoch(arms: &[(&str, f64)]) -> Epoch {
        let arms = arms.iter().map(|(name, users)| ((*name).to_owned(), arm(*users)));
        Epoch {
            arms: arms.collect(),
            ..Epoch::default()
        }
    }

    fn settings(shares: &[(&str, f64)]) -> Settings {
        let shares = shares.iter().map(|(arm, share)| ((*arm).to_owned(), *share));
        Settings {
            shares: shares.collect(),
            primary: vec!["hit_rate".to_owned()],
            ..Settings::new("base")
        }
    }

    fn metric(settings: &Settings, epoch: &Epoch) -> MetricDays {
        let found = days(settings, epoch, TEN_DAYS).expect("enough is known");
        let metric = found.arms["new"].metrics.values().next().cloned().flatten();
        metric.expect("it is defined")
    }

    /// R = 765/2550; Σe² = 85 · (2² + 2 · 1²)/2550² in each arm, and n/(n − 1) = 255/254.
    #[test]
    fn days_by_hand() {
        let found = metric(&settings(&[]), &epoch(&[("base", 500.0), ("new", 500.0)]));
        let variance = 255.0 / 254.0 * 85.0 * 6.0 / 2550.0_f64.powi(2);
        let x = (0.05_f64 * 0.3).powi(2) / (2.0 * variance);
        assert_eq!(found.control, Some(0.3));
        assert!((found.x / x - 1.0).abs() < 1e-12, "{} {x}", found.x);
        // (Φ.isf(0.025) + Φ.isf(0.2))², and what each way to test costs.
        for (design, cost) in [
            (Design::Sequence, 1.67),
            (Design::Planned, 1.07),
            (Design::Strict, 3.9),
        ] {
            let need = found.needs[&design];
            assert!((need.x - cost * 7.848_879_734_349_086).abs() < 1e-9);
            assert!((need.days - 10.0 * need.x / x).abs() < 1e-9);
        }
    }

    #[test]
    fn an_arm_that_is_not_there_varies_as_the_control_at_its_share() {
        let there = metric(&settings(&[]), &epoch(&[("base", 500.0), ("new", 500.0)]));
        // Half of all users is half of what the control has now, for both.
        let alone = epoch(&[("base", 1000.0)]);
        let halves = settings(&[("base", 0.5), ("new", 0.5)]);
        assert!((metric(&halves, &alone).x * 2.0 - there.x).abs() < 1e-12);
        assert!(days(&halves, &alone, TEN_DAYS).expect("enough is known").arms["new"].is_new);
        // V/0.8 + V/0.2 instead of V/0.5 + V/0.5.
        let unequal = settings(&[("base", 0.8), ("new", 0.2)]);
        let ratio = metric(&halves, &alone).x / metric(&unequal, &alone).x;
        assert!((ratio - (1.25 + 5.0) / 4.0).abs() < 1e-12, "{ratio}");
        // What both have is as it is to be.
        let both = epoch(&[("base", 500.0), ("new", 500.0)]);
        assert!((metric(&halves, &both).x - there.x).abs() < 1e-12);
        let unequal = metric(&unequal, &both).x / there.x;
        assert!(
            (unequal - 2.0 / (0.5 / 0.8 + 0.5 / 0.2)).abs() < 1e-12,
            "{unequal}"
        );
    }

    #[test]
    fn more_hypotheses_and_guardrails_need_more_days() {
        let epoch = epoch(&[("base", 500.0), ("new", 500.0), ("other", 500.0)]);
        let one = metric(&settings(&[("base", 0.5), ("new", 0.5)]), &epoch);
        let mut more = settings(&[("base", 0.4), ("new", 0.3), ("other", 0.3)]);
        more.primary.push(LISTS_PER_USER.to_owned());
        more.guardrails.insert("ctr".to_owned(), 0.02);
        let needs = |metric: &MetricDays| metric.needs[&Design::Sequence].x;
        let expected = Plan {
            n_hypotheses: 4,
            n_guardrails: 1,
            ..Design::Sequence.plan(&more, 2)
        };
        assert_eq!(needs(&metric(&more, &epoch)), expected.x());
        assert!(needs(&one) < expected.x());
    }

    #[test]
    fn weeks_are_whole_and_those_of_the_slowest() {
        let need = |days| Need { x: 1.0, days };
        assert_eq!([0.1, 7.0, 7.1, 20.9].map(|days| need(days).weeks()), [1, 1, 2, 3]);
        let of = |days: Option<f64>| {
            let metric = days.map(|days| MetricDays {
                control: None,
                x: 1.0,
                needs: [(Design::Strict, need(days))].into(),
            });
            ArmDays {
                is_new: false,
                metrics: [("mrr".to_owned(), metric)].into(),
            }
        };
        let whole = |arms: &[Option<f64>]| ExperimentDays {
            so_far: 1.0,
            arms: arms
                .iter()
                .enumerate()
                .map(|(n, days)| (n.to_string(), of(*days)))
                .collect(),
        };
        assert_eq!(whole(&[Some(3.0), Some(15.0)]).weeks(Design::Strict), Some(3));
        assert_eq!(whole(&[Some(3.0), None]).weeks(Design::Strict), None);
        assert_eq!(whole(&[Some(3.0)]).weeks(Design::Planned), None);
    }

    #[test]
    fn a_planned_end_is_none_of_shares_that_are_far_apart() {
        let epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
        let designs = |control, arm| {
            let found = metric(&settings(&[("base", control), ("new", arm)]), &epoch);
            found.needs.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(designs(0.8, 0.2), Design::ALL);
        assert_eq!(designs(0.81, 0.19), [Design::Sequence, Design::Strict]);
    }

    #[test]
    fn a_metric_per_user_needs_shares_and_lists_that_spread() {
        let mut epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
        let mut settings = settings(&[("base", 0.5), ("new", 0.5)]);
        settings.primary = vec![LISTS_PER_USER.to_owned()];
        let found = |epoch: &Epoch| {
            let found = days(&settings, epoch, TEN_DAYS).expect("enough is known");
            found.arms["new"].metrics[LISTS_PER_USER].clone()
        };
        assert_eq!(found(&epoch), None);
        for arm in epoch.arms.values_mut() {
            arm.lists[0] = 20.0;
        }
        let found = found(&epoch).expect("it is defined");
        // Σ(c/C − 1/n)²: (20/2560 − 1/255)² + 254 (10/2560 − 1/255)².
        let [heavy, others] = [20.0, 10.0].map(|lists: f64| (lists / 2560.0 - 1.0 / 255.0).powi(2));
        let variance = 255.0 / 254.0 * (heavy + 254.0 * others);
        assert!(
            (found.x * 2.0 * variance / 0.0025 - 1.0).abs() < 1e-9,
            "{}",
            found.x
        );
        assert_eq!(found.control, None);
    }

    #[test]
    fn too_little_is_told_as_what_it_lacks() {
        let few = |n_buckets: usize| {
            let mut epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
            for arm in epoch.arms.values_mut() {
                arm.lists[n_buckets..].fill(0.0);
            }
            epoch
        };
        let says = |settings: &Settings, epoch: &Epoch, time: Time| {
            let error = days(settings, epoch, time).expect_err("too little is known");
            error.to_string()
        };
        let asked = settings(&[]);
        assert_eq!(
            says(&asked, &few(219), TEN_DAYS),
            "too little is known yet, buckets 219/220"
        );
        assert!(days(&asked, &few(220), TEN_DAYS).is_ok());
        let one = epoch(&[("base", 500.0)]);
        assert_eq!(says(&asked, &one, TEN_DAYS), "it has no arm but the control");
        let other = epoch(&[("new", 500.0)]);
        assert_eq!(says(&asked, &other, TEN_DAYS), "its control has no list");
        let at_once = Time {
            start_ms: 5,
            as_of_ms: 5,
        };
        assert_eq!(says(&asked, &few(255), at_once), "all lists have one time");
    }
}
