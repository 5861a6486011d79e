//! Weekly decisions: how often they are wrong if the effect changes or is 0, and whether they match the reported intervals.

use abgauge::tools::simulate::Activity;
use abgauge_core::nouns::number_of;
use abgauge_core::statistics::{ArmState, Settings};

use super::effects::{detectable, moderate};
use crate::checks::row::{Bound, Figure, LEFT_OUT, Row, indicator};
use crate::checks::scenario::{DAY_MS, Leg, Scale, Scenario};
use crate::checks::watch::{Watch, asked, planned, report};

/// Change of an effect within each week. Its average over a week is 0.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// +12% on two days, then −4.8% on five.
    BetterFirst,
    /// −6% on five days, then +15% on two.
    WorseFirst,
}

impl Change {
    fn legs(self, n_weeks: usize) -> Vec<Leg> {
        let leg = |days, effect| Leg {
            days,
            effect,
            ..Leg::default()
        };
        let week = match self {
            Change::BetterFirst => [leg(2, 0.12), leg(5, -0.048)],
            Change::WorseFirst => [leg(5, -0.06), leg(2, 0.15)],
        };
        std::iter::repeat_n(week, n_weeks).flatten().collect()
    }

    fn name(self) -> &'static str {
        match self {
            Change::BetterFirst => "+12% for 2 days, −4.8% for 5",
            Change::WorseFirst => "−6% for 5 days, +15% for 2",
        }
    }
}

/// An effect that changes its sign over some weeks, with 4,000 moderate users per arm.
pub fn changing(scale: Scale, change: Change, n_weeks: usize) -> Row {
    let scenario = Scenario {
        legs: change.legs(n_weeks),
        ..moderate(scale, 8_000.0)
    };
    let what = format!("{}, {}", change.name(), number_of(n_weeks, "week"));
    let figures = ["", "; planned for week 1"]
        .into_iter()
        .flat_map(|how| figures(&format!("{what}{how}"), 0.05))
        .collect();
    Row::new("changing", 400, figures, move |seed| {
        numbers(&scenario, &[asked(&scenario), planned(&scenario)], seed)
    })
}

/// Equal arms: three arms of 2,500 heavy users each who return, two primaries, eight weekly decisions.
pub fn eight_weeks(scale: Scale) -> Row {
    let scenario = Scenario {
        n_arms: 3,
        legs: vec![Leg {
            days: 56,
            ..Leg::default()
        }],
        ..Scenario::new(scale, Activity::Heavy, 7_500.0, 8.0).of(&["hit_rate", "mrr"])
    };
    let figures = figures("A/A, 3 arms × 2 primaries, 8 weekly decisions", 0.05).into();
    Row::new("eight_weeks", 1000, figures, move |seed| {
        numbers(&scenario, &[asked(&scenario)], seed)
    })
}

/// An effect as large as mde: decided by week 1 at the sample of a fixed test, by week 2 at twice that sample.
pub fn constant(scale: Scale) -> Row {
    let users = 10_000.0;
    let share = |what: &str, bound| Figure::share(format!("Constant effect of mde: {what}"), bound);
    let figures = vec![
        share("decided at 1× the fixed sample, week 1", Bound::AtLeast(0.7)),
        share("decided at 2× by week 2, weekly", Bound::AtLeast(0.9)),
        share("decided at 2×, planned for week 2", Bound::AtLeast(0.95)),
        share(
            "if decided, the interval is on that side of 0",
            Bound::AtLeast(1.0),
        ),
    ];
    let effect = std::sync::OnceLock::new();
    Row::new("constant", 300, figures, move |seed| {
        let effect = *effect.get_or_init(|| detectable(scale, users));
        let one = moderate(scale, users).with(|leg| leg.effect = effect);
        // Twice as many users who come half as often, so that a week adds the same information.
        let two = Scenario {
            lists_per_user: one.lists_per_user / 2.0,
            ..moderate(scale, 2.0 * users)
        };
        let two = two.with(|leg| {
            leg.effect = effect;
            leg.days = 14;
        });
        let of = |scenario: &Scenario| {
            let settings = Settings {
                mde: effect,
                ..asked(scenario)
            };
            let planned = Settings {
                planned_days: Some(14.0),
                ..settings.clone()
            };
            numbers(scenario, &[settings, planned], seed)
        };
        let [one, two] = [of(&one), of(&two)];
        // The least of those that decided: `min` skips NaN.
        vec![one[0], two[0], two[2], one[1].min(two[1]).min(two[3])]
    })
}

/// Effect that changes during a week, by its name and its average.
#[derive(Debug, Clone, Copy)]
pub enum Course {
    /// +15% on two days, then −6% on five: 0.
    Balanced,
    /// +12% on two days, then −6% on five: −0.9%.
    Worse,
    /// +15%·e^(−days): +2.1%.
    Novelty,
}

impl Course {
    pub const ALL: [Course; 3] = [Course::Balanced, Course::Worse, Course::Novelty];

    fn legs(self) -> Vec<Leg> {
        let leg = |days, effect| Leg {
            days,
            effect,
            ..Leg::default()
        };
        match self {
            Course::Balanced => vec![leg(2, 0.15), leg(5, -0.06)],
            Course::Worse => vec![leg(2, 0.12), leg(5, -0.06)],
            // Each day has its average.
            Course::Novelty => (0..7)
                .map(|day| leg(1, 0.15 * ((-f64::from(day)).exp() - (-f64::from(day + 1)).exp())))
                .collect(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Course::Balanced => "+15% for 2 days, −6% for 5: 0",
            Course::Worse => "+12% for 2 days, −6% for 5: −0.9%",
            Course::Novelty => "+15%·e^(−days): +2.1%",
        }
    }

    fn n_users(self) -> f64 {
        match self {
            Course::Balanced => 20_000.0,
            Course::Worse | Course::Novelty => 8_000.0,
        }
    }

    /// Returns the bounds on wins, on losses, and on both together.
    fn bounds(self) -> [Bound; 3] {
        let [mut win, mut loss, mut either] = [Bound::Shown; 3];
        match self {
            Course::Balanced => either = Bound::AtMost(0.05),
            Course::Worse => win = Bound::AtMost(0.025),
            Course::Novelty => loss = Bound::AtMost(0.025),
        }
        [win, loss, either]
    }
}

/// A week of moderate users in which the effect changes: wins and losses, apart and together.
pub fn course(scale: Scale, course: Course) -> Row {
    let scenario = Scenario {
        legs: course.legs(),
        ..moderate(scale, course.n_users())
    };
    let settings = [asked(&scenario), planned(&scenario)];
    let figures = ["", "; planned for week 1"].into_iter().flat_map(|how| {
        let what = format!("{}{how}", course.name());
        let [win, loss, either] = course.bounds();
        [
            Figure::share(format!("{what}: win"), win),
            Figure::share(format!("{what}: loss"), loss),
            Figure::share(format!("{what}: win or loss"), either),
            on_its_side(&what),
        ]
    });
    let figures = figures.collect();
    Row::new("course", 400, figures, move |seed| {
        let decided = decided(&scenario, &settings, seed);
        let numbers = decided.iter().flat_map(|of| {
            let [win, loss, either] = [of.has_win, of.has_loss, of.has_decided()].map(indicator);
            [win, loss, either, of.consistent()]
        });
        numbers.collect()
    })
}

fn figures(what: &str, most: f64) -> [Figure; 2] {
    [
        Figure::share(format!("{what}: win or loss"), Bound::AtMost(most)),
        on_its_side(what),
    ]
}

fn on_its_side(what: &str) -> Figure {
    Figure::share(
        format!("{what}: if decided, the interval is on that side of 0"),
        Bound::AtLeast(1.0),
    )
}

/// Decisions of a run under one setting, at any look and in any arm.
#[derive(Debug, Clone, Copy)]
struct Decided {
    has_win: bool,
    has_loss: bool,
    /// Set while each arm that is won or lost has a primary whose decision interval lies on that side of 0.
    is_consistent: bool,
}

impl Decided {
    fn has_decided(self) -> bool {
        self.has_win || self.has_loss
    }

    /// Returns 1 or 0, [`LEFT_OUT`] without a decision.
    fn consistent(self) -> f64 {
        match self.has_decided() {
            true => indicator(self.is_consistent),
            false => LEFT_OUT,
        }
    }

    /// Returns the numbers of [`figures`].
    fn numbers(self) -> [f64; 2] {
        [indicator(self.has_decided()), self.consistent()]
    }
}

/// Returns the numbers of [`figures`] for each of the settings.
fn numbers(scenario: &Scenario, settings: &[Settings], seed: u64) -> Vec<f64> {
    let decided = decided(scenario, settings, seed).into_iter();
    decided.flat_map(Decided::numbers).collect()
}

/// Runs a scenario under each of the settings. Decisions are taken at whole weeks, so one look a day is enough to see them.
fn decided(scenario: &Scenario, settings: &[Settings], seed: u64) -> Vec<Decided> {
    let none = Decided {
        has_win: false,
        has_loss: false,
        is_consistent: true,
    };
    let watch = |settings: &Settings| (Watch::new(scenario, settings.clone(), DAY_MS), none);
    let mut watches: Vec<(Watch, Decided)> = settings.iter().map(watch).collect();
    scenario.replay(seed, DAY_MS, |reported| {
        for (watch, decided) in &mut watches {
            watch.take_each(reported, |look| {
                for arm in report(look).arms.values() {
                    let sign = match arm.decision.as_ref().map(|decision| decision.state) {
                        Some(ArmState::Win) => 1.0,
                        Some(ArmState::Loss) => -1.0,
                        _ => continue,
                    };
                    let mut intervals = arm
                        .metrics
                        .values()
                        .filter_map(|metric| metric.decision?.metric.interval);
                    decided.has_win |= sign > 0.0;
                    decided.has_loss |= sign < 0.0;
                    decided.is_consistent &=
                        intervals.any(|it| sign * it.lower > 0.0 && sign * it.upper > 0.0);
                }
            });
        }
    });
    let last = |watch: &Watch| watch.metric(scenario.metrics[0]).p.is_some();
    assert!(watches.iter().all(|(watch, _)| last(watch)), "burn-in is done");
    watches.into_iter().map(|(_, decided)| decided).collect()
}
