//! Arms that differ: how often the difference is found, and how soon.

use std::sync::Arc;
use std::sync::OnceLock;

use abgauge::tools::simulate::Activity;
use abgauge_core::statistics::Settings;

use super::coverage::{Sums, at_end};
use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{ARM, DAY_MS, START_MS, Scale, Scenario};
use crate::checks::watch::{Watch, arm_harms, asked, planned, report};

const ALPHA: f64 = 0.05;
/// Effect that a fixed test finds with power 0.8, in standard errors: Φ⁻¹(0.975) + Φ⁻¹(0.8).
const FOUND: f64 = 2.80;
/// Metric of the power rows.
pub(super) const METRIC: &str = "ctr";
const N_PILOTS: u64 = 40;

/// Power at the sample on which a fixed test finds an effect with power 0.8, and at 1.5 times and twice as many users: weeks of
/// 5,000 moderate users per arm and more. τ, mde and the effect stay the same.
pub fn power(scale: Scale) -> Vec<Row> {
    let users = 10_000.0;
    let effect = Arc::new(OnceLock::new());
    let row = |times: f64, bound: f64| {
        let effect = Arc::clone(&effect);
        power_at(scale, users, times, bound, move || {
            *effect.get_or_init(|| detectable(scale, users))
        })
    };
    vec![row(1.0, 0.48), row(1.5, 0.72), row(2.0, 0.85)]
}

fn power_at(
    scale: Scale,
    users: f64,
    times: f64,
    bound: f64,
    effect: impl Fn() -> f64 + Send + Sync + 'static,
) -> Row {
    let share =
        |what: &str, bound| Figure::share(format!("Power at {times}× the fixed sample: {what}"), bound);
    let mut figures = vec![
        share("sequence", Bound::AtLeast(bound)),
        share("the fixed test", Bound::Shown),
    ];
    let is_planned = times == 1.0;
    if is_planned {
        figures.push(share("planned", Bound::AtLeast(0.74)));
    }
    Row::new("power", 300, figures, move |seed| {
        let effect = effect();
        let scenario = moderate(scale, users * times).with(|leg| leg.effect = effect);
        let mut settings = vec![asked(&scenario)];
        settings.extend(is_planned.then(|| planned(&scenario)));
        let watch = |settings| {
            Watch::new(
                &scenario,
                Settings {
                    mde: effect,
                    ..settings
                },
                scale.look_ms,
            )
        };
        let mut watches: Vec<Watch> = settings.into_iter().map(watch).collect();
        let mut sums = Sums::new(&scenario);
        scenario.replay(seed, scale.look_ms, |reported| {
            watches.iter_mut().for_each(|watch| watch.take(reported));
            sums.take(reported);
        });
        let fixed = sums.compare(METRIC).difference.expect("it spreads");
        let mut alarms = vec![watches[0].alarms(METRIC, ALPHA), fixed.p_at_one_look() <= ALPHA];
        alarms.extend(watches.get(1).map(|watch| watch.decides(METRIC, ALPHA)));
        alarms.into_iter().map(indicator).collect()
    })
}

pub(super) fn moderate(scale: Scale, users: f64) -> Scenario {
    Scenario::new(scale, Activity::Moderate, users, 5.0).of(&[METRIC])
}

/// Returns 2.80 √V of the lift at the end of the week, the mean over some pilots.
pub(super) fn detectable(scale: Scale, users: f64) -> f64 {
    let scenario = moderate(scale, users);
    let error = |pilot: u64| {
        let (_, sums) = at_end(&scenario, u64::MAX - pilot);
        let lift = sums.compare(METRIC).lift.expect("the base is known");
        lift.spread.error()
    };
    let errors: f64 = (0..N_PILOTS).map(error).sum();
    FOUND * errors / N_PILOTS as f64
}

/// Harm by fewer clicks (10% in the table), with 20,000 moderate users per arm, two lists each in the week, and mde 5%.
pub fn harm(scale: Scale, effect: f64) -> Row {
    let scenario = Scenario::new(scale, Activity::Moderate, 40_000.0, 2.0).with(|leg| {
        leg.appeal = 0.06;
        leg.effect = effect;
    });
    let figures = vec![
        Figure::share(
            format!("{:+.0}%: harm within the week", 100.0 * effect),
            Bound::AtLeast(0.95),
        ),
        Figure::median(
            format!("{:+.0}%: days to harm, median", 100.0 * effect),
            Bound::AtMost(4.5),
        ),
    ];
    Row::new("harm", 200, figures, move |seed| {
        let mut watch = Watch::new(&scenario, asked(&scenario), scale.look_ms);
        let mut found_ms = None;
        scenario.replay(seed, scale.look_ms, |reported| {
            watch.take_each(reported, |look| {
                let arm = report(look).arms.get(ARM);
                if found_ms.is_none() && arm.is_some_and(|arm| arm_harms(arm, ALPHA)) {
                    found_ms = Some(look.as_of_ms - START_MS);
                }
            });
        });
        let days = found_ms.map_or(f64::INFINITY, |ms| ms as f64 / DAY_MS as f64);
        vec![indicator(days.is_finite()), days]
    })
}
