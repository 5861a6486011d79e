//! Duration of an experiment: days until it finds its effect, estimated from the variance in some days of lists.
//!
//! ```text
//! x = τ²/(s_T V_T + s_C V_C)      days needed = days so far × (x_k/x)^(1/β)
//! the answer: the first decision look k that has them           x_k: x that look k needs for power 0.8
//! β = ln(ΣV halfway/ΣV) ÷ ln(days/days halfway), at most 1
//! ```
//! Variances fall as users come. If all users are new, x grows in proportion to days (β = 1). If the same users return, x grows
//! less and less, so estimates far ahead are too early even so. s is an arm's share of all users so far over its planned share.
//! An arm without lists is assumed to vary like the control. Arms count as independent: anything that their users have in
//! common within buckets is chance.
//!
//! A daemon has x = τ²/V of both arms together at its last look and at a look some days before, which gives β: see [`of_looks`].

mod running;
mod traffic;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

pub use self::running::RunningPower;
use self::traffic::PastTraffic;
use super::burn_in::BurnIn;
use super::decision::MAX_WITHOUT_USER;
use super::notes::USERS_REMEDY;
use super::power::PlannedTest;
use super::progress::InformationGrowth;
use super::settings::{Settings, Unit, Validity};
use super::spending::DecisionLook;
use super::totals::{ArmTotals, Epoch};
use crate::rounding::percentage;

/// Test design, as chosen by `validity` and `planned_days`. Sorted by name, like the keys in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TestDesign {
    /// Decided mostly at one planned look.
    Planned,
    /// Decided every week, or at every look if `min_days` is below a week.
    Sequence,
    /// Decided like [`TestDesign::Sequence`], by separate intervals of each arm.
    Strict,
}

/// Sums of an experiment's arms.
#[derive(Debug, Clone, Copy)]
pub struct PlanningSums<'a> {
    pub epoch: &'a Epoch,
    /// Days since the first list.
    pub days: f64,
}

/// Requirements of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentDays {
    /// Days of lists behind the estimate.
    pub so_far: f64,
    /// Requirements by treatment arm.
    pub arms: BTreeMap<String, ArmDays>,
}

/// Requirements of an arm. `plan` writes it as JSON as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmDays {
    /// True if it has no lists yet, and is assumed to vary like the control.
    #[serde(rename = "new")]
    pub is_new: bool,
    /// Requirements by primary. None if the primary is undefined, or buckets do not differ.
    #[serde(serialize_with = "defined")]
    pub metrics: BTreeMap<String, Option<MetricDays>>,
}

/// Requirements of a metric in an arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricDays {
    /// R_C. None for a metric per user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<f64>,
    /// x so far.
    #[serde(skip)]
    pub x: f64,
    /// β, the exponent of days with which x grows. None if it is unknown, and taken as 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// Needs by design, for designs that finish within two years.
    #[serde(flatten)]
    pub needs: BTreeMap<TestDesign, Need>,
}

/// Need of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// x_k of the first decision look that has enough information.
    #[serde(skip)]
    pub x: f64,
    /// Days until that much information.
    pub days: f64,
    /// Decision look, in whole weeks from the start, so that every weekday counts alike.
    pub weeks: u32,
    /// Ratio of x so far to this x.
    pub information: f64,
    /// Average increase of `information` per day.
    pub information_per_day: f64,
}

/// Writes the primaries with an estimate.
fn defined<S: Serializer>(
    metrics: &BTreeMap<String, Option<MetricDays>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let metrics = metrics.iter();
    serializer.collect_map(metrics.filter_map(|(id, metric)| Some((id, metric.as_ref()?))))
}

/// Requirements that all designs share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    pub alpha: f64,
    /// Treatment arms × primaries.
    pub n_hypotheses: usize,
    pub n_guardrails: usize,
    pub min_days: f64,
    /// True if shares are close enough for a planned look.
    pub may_plan: bool,
}

/// Decision looks within two years. The x of each is computed when it is first needed, and shared by all metrics.
#[derive(Debug)]
pub struct DecisionLooks<'a> {
    needs: &'a Needs,
    /// Week of the first decision look.
    first: u32,
    /// x of each look, by design.
    x: Vec<(TestDesign, Vec<OnceCell<f64>>)>,
}

impl DecisionLooks<'_> {
    /// Returns x and week of the first look of a design that has enough information. `days` converts an x to the days until it
    /// is reached.
    fn first_with_enough(
        &self,
        (design, x): &(TestDesign, Vec<OnceCell<f64>>),
        days: impl Fn(f64) -> f64,
    ) -> Option<(f64, u32)> {
        let mut looks = (1..).zip(x).map(|(k, x)| {
            // Later weekly looks test at a smaller share of α, so each needs a different x.
            let x = *x.get_or_init(|| self.needs.x(*design, k));
            (x, self.first + k - 1)
        });
        looks.find(|(x, weeks)| days(*x) <= WEEK * f64::from(*weeks))
    }
}

/// Reason why nothing can be estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoEstimate {
    /// Time span of 0: lists have the same time.
    NoTime,
    /// The control has no list.
    NoControl,
    /// No arm besides the control has lists or a share.
    NoTreatment,
    /// This share of the lists of an arm has no user, so the variance would be too small.
    WithoutUser(f64),
    /// Too little data for a variance.
    Collecting(BurnIn),
}

/// Least ratio of all days to half of them. Below it, the difference is too small to estimate how variances fall.
const MIN_STRETCH: f64 = 1.2;
/// Longest estimate in weeks: two years.
const MAX_WEEKS: u32 = 104;
const WEEK: f64 = 7.0;
/// Largest ratio of shares for a planned look. Beyond it, the skewness of the small arm does not cancel, and a planned end is
/// invalid.
const MAX_UNEQUAL: f64 = 4.0;
const DAY_MS: f64 = 86_400_000.0;

impl TestDesign {
    pub const ALL: [TestDesign; 3] = [TestDesign::Sequence, TestDesign::Planned, TestDesign::Strict];

    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TestDesign::Sequence => "sequence",
            TestDesign::Planned => "planned",
            TestDesign::Strict => "strict",
        }
    }

    /// Returns the design with this name.
    pub fn named(name: &str) -> Option<TestDesign> {
        TestDesign::ALL.into_iter().find(|design| design.name() == name)
    }

    /// Returns the design that these settings choose.
    pub fn of(settings: &Settings) -> TestDesign {
        match settings.validity {
            _ if settings.has_planned_end() => TestDesign::Planned,
            Validity::Strict => TestDesign::Strict,
            Validity::Sequence | Validity::OneLook => TestDesign::Sequence,
        }
    }
}

impl Serialize for TestDesign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Needs {
    pub fn new(settings: &Settings, n_treatments: usize) -> Needs {
        let shares = || settings.shares.values().copied();
        let [least, most] = [shares().fold(1.0, f64::min), shares().fold(0.0, f64::max)];
        Needs {
            alpha: settings.alpha,
            n_hypotheses: n_treatments * settings.primary.len(),
            n_guardrails: settings.guardrails.len(),
            min_days: settings.min_days,
            may_plan: most <= MAX_UNEQUAL * least,
        }
    }

    /// Iterates over the valid designs. A planned look is left out if shares are too far apart.
    pub fn designs(&self) -> impl Iterator<Item = TestDesign> {
        let may_plan = self.may_plan;
        TestDesign::ALL
            .into_iter()
            .filter(move |design| may_plan || *design != TestDesign::Planned)
    }

    /// Returns the x that the k-th decision look needs, from 1. A planned look has no number.
    pub fn x(&self, design: TestDesign, k: u32) -> f64 {
        let look = match design {
            TestDesign::Planned => DecisionLook::PLANNED,
            _ if self.every_look_decides() => DecisionLook::any(false),
            TestDesign::Strict => DecisionLook::strict(k),
            TestDesign::Sequence => DecisionLook::weekly(k, false),
        };
        let plan = PlannedTest {
            validity: match design {
                TestDesign::Sequence | TestDesign::Planned => Validity::Sequence,
                TestDesign::Strict => Validity::Strict,
            },
            look,
            alpha: self.alpha,
            n_hypotheses: self.n_hypotheses,
            n_guardrails: self.n_guardrails,
        };
        plan.x()
    }

    /// Returns the decision looks of all valid designs.
    pub fn looks(&self) -> DecisionLooks<'_> {
        self.looks_of(self.designs().collect())
    }

    fn looks_of(&self, designs: Vec<TestDesign>) -> DecisionLooks<'_> {
        let first = match self.every_look_decides() {
            true => 1,
            false => whole_weeks(self.min_days),
        };
        let looks = || (first..=MAX_WEEKS).map(|_| OnceCell::new()).collect();
        DecisionLooks {
            needs: self,
            first,
            x: designs.into_iter().map(|design| (design, looks())).collect(),
        }
    }

    fn every_look_decides(&self) -> bool {
        self.min_days < WEEK
    }
}

fn whole_weeks(days: f64) -> u32 {
    ((days / WEEK).ceil() as u32).max(1)
}

impl MetricDays {
    /// Returns None if there is no information.
    fn new(x: f64, so_far: f64, growth: Option<f64>, looks: &DecisionLooks) -> Option<MetricDays> {
        // x grows with days^β. β counts as 1 while it is unknown.
        let days = |needed: f64| so_far * (needed / x).powf(1.0 / growth.unwrap_or(1.0));
        let by_design = looks.x.iter().filter_map(|of_design| {
            let (needed, weeks) = looks.first_with_enough(of_design, days)?;
            let information = x / needed;
            let need = Need {
                x: needed,
                days: days(needed),
                weeks,
                information,
                information_per_day: information / so_far,
            };
            Some((of_design.0, need))
        });
        (x > 0.0 && x.is_finite()).then(|| MetricDays {
            control: None,
            x,
            growth,
            needs: by_design.collect(),
        })
    }
}

/// Computes β from variances that fell while days multiplied by `stretch`. None if it is not finite.
fn growth(before: f64, after: f64, stretch: f64) -> Option<f64> {
    let growth = (before / after).ln() / stretch.ln();
    // Above 1 is chance, or growing traffic.
    growth.is_finite().then(|| growth.clamp(0.0, 1.0))
}

impl ExperimentDays {
    /// Returns the weeks after which every primary of every arm has enough information. None if one of them never has.
    pub fn weeks(&self, design: TestDesign) -> Option<u32> {
        let metrics = self.arms.values().flat_map(|arm| arm.metrics.values());
        let weeks = metrics.map(|metric| Some(metric.as_ref()?.needs.get(&design)?.weeks));
        weeks.collect::<Option<Vec<u32>>>()?.into_iter().max()
    }
}

/// Estimates the requirements of an experiment's primaries from the sums of its arms, now and `halfway`.
///
/// # Errors
/// [`NoEstimate`] if there is too little data.
pub fn days(
    settings: &Settings,
    sums: PlanningSums,
    halfway: Option<PlanningSums>,
) -> Result<ExperimentDays, NoEstimate> {
    let PlanningSums { epoch, days: so_far } = sums;
    if so_far <= 0.0 {
        return Err(NoEstimate::NoTime);
    }
    let without_user = epoch.arms.values().map(ArmTotals::share_without_user);
    let without_user = without_user.fold(0.0, f64::max);
    if settings.unit == Unit::User && without_user > MAX_WITHOUT_USER {
        return Err(NoEstimate::WithoutUser(without_user));
    }
    // With shares, an arm is planned for even before its first list.
    let names: Vec<&String> = if settings.shares.is_empty() {
        epoch.arms.keys().collect()
    } else {
        settings.shares.keys().collect()
    };
    let treatments = names.into_iter().filter(|arm| **arm != settings.control);
    let treatments: Vec<&String> = treatments.collect();
    if treatments.is_empty() {
        return Err(NoEstimate::NoTreatment);
    }
    let traffic = PastTraffic {
        settings,
        sums,
        halfway: halfway.filter(|half| half.days > 0.0 && so_far > MIN_STRETCH * half.days),
        n_treatments: treatments.len(),
    };
    let arms = treatments
        .into_iter()
        .map(|arm| Ok((arm.clone(), traffic.arm(arm)?)));
    Ok(ExperimentDays {
        so_far,
        arms: arms.collect::<Result<_, NoEstimate>>()?,
    })
}

/// Estimates the requirements of primaries from the x of looks at a running experiment. Arms without an x have no metric.
pub fn of_looks(grown: &InformationGrowth, needs: &Needs) -> ExperimentDays {
    of_designs(grown, &needs.looks())
}

/// Estimates the days from the start until decision looks of the configured design have enough information, by arm and primary.
pub(super) fn until_decisions(
    settings: &Settings,
    grown: &InformationGrowth,
    n_treatments: usize,
) -> BTreeMap<String, BTreeMap<String, f64>> {
    let (needs, design) = (Needs::new(settings, n_treatments), TestDesign::of(settings));
    let designs = needs.designs().filter(|valid| *valid == design).collect();
    let estimated = of_designs(grown, &needs.looks_of(designs));
    let days = |metric: MetricDays| {
        let need = metric.needs.get(&design)?;
        Some(match needs.every_look_decides() {
            true => need.days,
            false => WEEK * f64::from(need.weeks),
        })
    };
    let of_arm = |arm: ArmDays| {
        let metrics = arm.metrics.into_iter();
        metrics
            .filter_map(|(id, metric)| Some((id, days(metric?)?)))
            .collect()
    };
    // Growth is unknown at a file's only look, and at a first look without a start.
    let arms = estimated.arms.into_iter().filter(|_| estimated.so_far > 0.0);
    arms.map(|(name, arm)| (name, of_arm(arm))).collect()
}

fn of_designs(grown: &InformationGrowth, looks: &DecisionLooks) -> ExperimentDays {
    let days = |as_of_ms: i64| (as_of_ms - grown.since_ms) as f64 / DAY_MS;
    let so_far = days(grown.now.as_of_ms);
    let metric = |id: &String, x: f64| {
        let growth = grown.earlier.as_ref().and_then(|earlier| {
            let [mut before, mut after] = [0.0, 0.0];
            for (arm, metrics) in &earlier.arms {
                if let (Some(then), Some(now)) = (metrics.get(id), grown.now.arms.get(arm)?.get(id)) {
                    // V is τ²/x. τ is frozen and nearly equal in all arms, so a ratio of Σ1/x is close to the ratio of ΣV.
                    before += 1.0 / then;
                    after += 1.0 / now;
                }
            }
            growth(before, after, so_far / days(earlier.as_of_ms))
        });
        MetricDays::new(x, so_far, growth, looks)
    };
    let arms = grown.now.arms.iter().map(|(name, metrics)| {
        let metrics = metrics.iter().map(|(id, x)| (id.clone(), metric(id, *x)));
        let arm = ArmDays {
            is_new: false,
            metrics: metrics.collect(),
        };
        (name.clone(), arm)
    });
    ExperimentDays {
        so_far,
        arms: arms.collect(),
    }
}

/// Continues "nothing can be said: ".
impl fmt::Display for NoEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoEstimate::NoTime => f.write_str("all lists have one time"),
            NoEstimate::NoControl => f.write_str("its control has no list"),
            NoEstimate::NoTreatment => f.write_str("it has no arm except the control"),
            NoEstimate::WithoutUser(share) => write!(
                f,
                "{} of the lists of an arm have no user, so the estimated duration would be too short: {USERS_REMEDY}",
                percentage(*share, 0)
            ),
            NoEstimate::Collecting(burn_in) => write!(f, "there is too little data yet, {burn_in}"),
        }
    }
}

#[cfg(test)]
mod tests;
