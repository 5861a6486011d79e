//! Weekly decisions: how often they are wrong if the effect changes or is 0, and whether they match the reported intervals.

use abgauge::tools::simulate::Activity;
use abgauge_core::nouns::number_of;
use abgauge_core::statistics::{ArmState, Settings};

use super::effects::{detectable, moderate};
use crate::checks::row::{Bound, Figure, LEFT_OUT, Row, indicator};
use crate::checks::scenario::{DAY_MS, Leg, Scale, Scenario};
use crate::checks::watch::{Watch, asked, report};

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
        let planned = Settings {
            planned_days: Some(7.0),
            ..asked(&scenario)
        };
        decided(&scenario, &[asked(&scenario), planned], seed)
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
        decided(&scenario, &[asked(&scenario)], seed)
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
            decided(scenario, &[settings, planned], seed)
        };
        let [one, two] = [of(&one), of(&two)];
        // The least of those that decided: `min` skips NaN.
        vec![one[0], two[0], two[2], one[1].min(two[1]).min(two[3])]
    })
}

fn figures(what: &str, most: f64) -> [Figure; 2] {
    [
        Figure::share(format!("{what}: win or loss"), Bound::AtMost(most)),
        Figure::share(
            format!("{what}: if decided, the interval is on that side of 0"),
            Bound::AtLeast(1.0),
        ),
    ]
}

/// Returns two numbers for each of the settings: whether any arm is won or lost at some look, and whether each such arm has a
/// primary whose decision interval lies on that side of 0, [`LEFT_OUT`] if no arm is. Decisions are taken at whole weeks, so one
/// look a day is enough to see them.
fn decided(scenario: &Scenario, settings: &[Settings], seed: u64) -> Vec<f64> {
    let watch = |settings: &Settings| (Watch::new(scenario, settings.clone(), DAY_MS), false, true);
    let mut watches: Vec<(Watch, bool, bool)> = settings.iter().map(watch).collect();
    scenario.replay(seed, DAY_MS, |reported| {
        for (watch, is_decided, is_consistent) in &mut watches {
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
                        .filter_map(|metric| metric.decision?.interval);
                    *is_decided = true;
                    *is_consistent &= intervals.any(|it| sign * it.lower > 0.0 && sign * it.upper > 0.0);
                }
            });
        }
    });
    let last = |watch: &Watch| watch.metric(scenario.metrics[0]).p.is_some();
    assert!(watches.iter().all(|(watch, ..)| last(watch)), "burn-in is done");
    let numbers = watches
        .iter()
        .map(|(_, is_decided, is_consistent)| match is_decided {
            true => [1.0, indicator(*is_consistent)],
            false => [0.0, LEFT_OUT],
        });
    numbers.flatten().collect()
}
