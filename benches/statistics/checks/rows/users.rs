//! Numbers of users and lists per arm: sample ratio and list ratio.

use abgauge::tools::simulate::Activity;
use abgauge_core::statistics::ListRatio;

use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{ARM, Leg, Scale, Scenario};
use crate::checks::watch::{Watch, asked, report};

/// Metric that no row uses. A scenario must have at least one.
const METRIC: &[&str] = &["ctr"];

/// Two arms of 5,000 heavy-tailed users each.
pub fn list_ratio(scale: Scale) -> Row {
    let scenario = Scenario::new(scale, Activity::Heavy, 10_000.0, 20.0).of(METRIC);
    let figure = Figure::share("List ratio, peeked: A/A alarm", Bound::AtMost(0.005));
    lists("list_ratio", 300, scenario, scale, figure)
}

/// Users of one arm get more lists (10% in the table). 30,000 moderate users per arm, five lists each.
pub fn more_lists(scale: Scale, visits: f64) -> Row {
    let scenario = Scenario::new(scale, Activity::Moderate, 60_000.0, 5.0)
        .of(METRIC)
        .with(|leg| leg.visits = visits);
    let figure = Figure::share(
        format!("List ratio, peeked: alarm at {:+.0}% lists", 100.0 * visits),
        Bound::AtLeast(0.95),
    );
    lists("list_ratio", 100, scenario, scale, figure)
}

fn lists(name: &'static str, n_runs: usize, scenario: Scenario, scale: Scale, figure: Figure) -> Row {
    Row::new(name, n_runs, vec![figure], move |seed| {
        let settings = asked(&scenario);
        let margin = settings.list_ratio_margin;
        let alarms = |ratio: ListRatio| ratio.p <= 0.001 && ratio.g.abs() >= margin;
        let mut watch = Watch::new(&scenario, settings, scale.look_ms);
        let mut alarmed = false;
        scenario.replay(seed, scale.look_ms, |reported| {
            watch.take_each(reported, |look| {
                let arm = report(look).arms.get(ARM);
                alarmed |= arm.and_then(|arm| arm.list_ratio).is_some_and(alarms);
            });
        });
        assert!(watch.report().arms[ARM].list_ratio.is_some(), "burn-in is done");
        vec![indicator(alarmed)]
    })
}

/// Expected shares, up to 100,000 users. In one of the two scenarios they change in the middle.
pub fn sample_ratio(scale: Scale, is_ramped: bool) -> Row {
    let leg = |days, share: f64| Leg {
        days,
        shares: vec![1.0 - share, share],
        ..Leg::default()
    };
    let (legs, what) = match is_ramped {
        false => (vec![leg(7, 0.5)], "50/50"),
        true => (vec![leg(3, 0.1), leg(4, 0.5)], "90/10 → 50/50"),
    };
    let scenario = Scenario {
        legs,
        ..Scenario::new(scale, Activity::Moderate, 160_000.0, 1.0).of(METRIC)
    };
    let figure = Figure::share(
        format!("SRM A/A, {what}, peeked to 100,000 users at 0.01"),
        Bound::AtMost(0.01),
    );
    let users = Figure::median(format!("SRM A/A, {what}: users, median"), Bound::Shown);
    Row::new("srm", 300, vec![figure, users], move |seed| {
        let mut watch = Watch::new(&scenario, asked(&scenario), scale.look_ms);
        let mut n_users = 0.0;
        scenario.replay(seed, scale.look_ms, |reported| {
            watch.take_each(reported, |look| n_users = users_of(look));
        });
        let p = watch.report().srm_p.expect("users are counted");
        vec![indicator(p <= 0.01), n_users]
    })
}

/// A split of 52/48 instead of the expected 50/50: users until the alarm.
pub fn wrong_shares(scale: Scale) -> Row {
    let scenario = Scenario::new(scale, Activity::Moderate, 160_000.0, 1.0).of(METRIC);
    let settings = asked(&scenario);
    let scenario = scenario.with(|leg| leg.shares = vec![0.52, 0.48]);
    let figure = Figure::median(
        "SRM, 52/48 at 0.001: users to the alarm, median",
        Bound::AtMost(15_000.0),
    );
    Row::new("srm", 300, vec![figure], move |seed| {
        let mut watch = Watch::new(&scenario, settings.clone(), scale.look_ms);
        let mut alarmed_at = f64::INFINITY;
        scenario.replay(seed, scale.look_ms, |reported| {
            watch.take_each(reported, |look| {
                let is_alarm = report(look).srm_p.is_some_and(|p| p <= 0.001);
                if is_alarm && alarmed_at.is_infinite() {
                    alarmed_at = users_of(look);
                }
            });
        });
        vec![alarmed_at]
    })
}

fn users_of(look: &abgauge_core::looks::ExperimentLook) -> f64 {
    look.arms.values().filter_map(|arm| arm.size.users).sum()
}
