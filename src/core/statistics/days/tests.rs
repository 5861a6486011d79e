//! Days worked by hand.

use super::*;
use crate::statistics::per_user::LISTS_PER_USER;
use crate::statistics::{ArmTotals, RefusedLists, Terms};

/// Two buckets in three have 10 lists and 2 clicks, the third has 10 lists and 5 clicks.
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
        lists_without_user: 0.0,
        capped_lists: 0.0,
        top_user_lists: None,
        refused: RefusedLists::default(),
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

fn ten_days(epoch: &Epoch) -> PlanningSums<'_> {
    PlanningSums { epoch, days: 10.0 }
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
    let found = days(settings, ten_days(epoch), None).expect("enough is known");
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
    // (Φ.isf(α w/2) + Φ.isf(0.2))² with w = 6/π², and with 0.8.
    let asked = Needs::new(&settings(&[]), 1);
    let first = |design| asked.x(design, 1);
    assert!((first(TestDesign::Sequence) - 9.039_090_574).abs() < 1e-6);
    assert!((first(TestDesign::Planned) - 8.383_17).abs() < 1e-4);
    assert!((first(TestDesign::Strict) - 3.9 * 7.848_879_734_349_086).abs() < 1e-9);
    assert_eq!(found.needs.len(), 3);
    for (design, need) in &found.needs {
        assert_eq!(need.x, asked.x(*design, need.weeks));
        assert!((need.days - 10.0 * need.x / x).abs() < 1e-9);
        assert!(need.days <= 7.0 * f64::from(need.weeks));
    }
}

/// Later looks need more, and days grow faster than their need.
#[test]
fn the_first_decision_look_with_enough_data_is_named() {
    let needs = Needs {
        alpha: 0.05,
        n_hypotheses: 1,
        n_guardrails: 0,
        min_days: 7.0,
        may_plan: true,
    };
    let weeks = |x_per_day: f64, needs: &Needs| {
        let found = MetricDays::new(10.0 * x_per_day, 10.0, None, &needs.looks()).expect("it is known");
        let need = found.needs[&TestDesign::Sequence];
        let earlier = (1..need.weeks).filter(|week| 7.0 * f64::from(*week) >= needs.min_days);
        for (k, week) in (1..).zip(earlier) {
            assert!(needs.x(TestDesign::Sequence, k) > x_per_day * 7.0 * f64::from(week));
        }
        need.weeks
    };
    // 9.04 in the first week, 12.3 in the second, 14.2 in the third.
    assert_eq!([1.3, 1.0, 0.7].map(|x| weeks(x, &needs)), [1, 2, 3]);
    let later = Needs {
        min_days: 14.0,
        ..needs
    };
    assert_eq!(weeks(1.3, &later), 2);
    assert_eq!(
        weeks(0.65, &later),
        2,
        "the first of the looks, so it has the weight of the first"
    );
    let any = Needs {
        min_days: 1.0,
        ..needs
    };
    // 1.67 times 7.85.
    assert_eq!([13.2, 1.9, 1.8].map(|x| weeks_of_any(x, &any)), [1, 1, 2]);
}

fn weeks_of_any(x_per_day: f64, needs: &Needs) -> u32 {
    let found = MetricDays::new(10.0 * x_per_day, 10.0, None, &needs.looks()).expect("it is known");
    found.needs[&TestDesign::Sequence].weeks
}

#[test]
fn an_absent_arm_is_assumed_to_vary_like_the_control_at_its_share() {
    let there = metric(&settings(&[]), &epoch(&[("base", 500.0), ("new", 500.0)]));
    // Half of all users is half of the control's current users, for both arms.
    let alone = epoch(&[("base", 1000.0)]);
    let halves = settings(&[("base", 0.5), ("new", 0.5)]);
    assert!((metric(&halves, &alone).x * 2.0 - there.x).abs() < 1e-12);
    assert!(
        days(&halves, ten_days(&alone), None)
            .expect("enough is known")
            .arms["new"]
            .is_new
    );
    // V/0.8 + V/0.2 instead of V/0.5 + V/0.5.
    let unequal = settings(&[("base", 0.8), ("new", 0.2)]);
    let ratio = metric(&halves, &alone).x / metric(&unequal, &alone).x;
    assert!((ratio - (1.25 + 5.0) / 4.0).abs() < 1e-12, "{ratio}");
    // Both arms already have their planned shares.
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
    let needs = |metric: &MetricDays| metric.needs[&TestDesign::Sequence].x;
    let expected = Needs {
        n_hypotheses: 4,
        n_guardrails: 1,
        min_days: 7.0,
        alpha: 0.05,
        may_plan: true,
    };
    let more = metric(&more, &epoch).needs[&TestDesign::Sequence];
    assert_eq!(more.x, expected.x(TestDesign::Sequence, more.weeks));
    assert!(needs(&one) < more.x);
}

#[test]
fn slowly_falling_variances_need_more_days() {
    let whole = epoch(&[("base", 500.0), ("new", 500.0)]);
    // If a third of the buckets has 6.5 clicks instead of 5, errors are 3 and −1.5 instead of 2 and −1.
    let mut half = whole.clone();
    for arm in half.arms.values_mut() {
        let terms = arm.metrics.get_mut("hit_rate").expect("it is there");
        let more = terms.numerators.iter_mut().filter(|hits| **hits == 5.0);
        more.for_each(|hits| *hits = 6.5);
    }
    let asked = settings(&[]);
    let at = |half_days: f64| {
        let half = PlanningSums {
            epoch: &half,
            days: half_days,
        };
        let found = days(&asked, ten_days(&whole), Some(half)).expect("enough is known");
        found.arms["new"].metrics["hit_rate"]
            .clone()
            .expect("it is defined")
    };
    let found = at(2.0);
    let growth = (3.0_f64 * 3.0 + 2.0 * 1.5 * 1.5).ln() - 6.0_f64.ln();
    let growth = growth / 5.0_f64.ln();
    assert!(
        (found.growth.expect("it is known") - growth).abs() < 1e-12,
        "{found:?} {growth}"
    );
    assert!(!found.needs.is_empty());
    for need in found.needs.values() {
        let days = 10.0 * (need.x / found.x).powf(1.0 / growth);
        assert!((need.days - days).abs() < 1e-9 * days);
    }
    // The largest slope, and no slope if both cover about the same days.
    assert_eq!(at(9.0).growth, None);
    assert_eq!(at(8.0).growth, Some(1.0));
}

#[test]
fn a_variance_that_never_falls_has_no_sufficient_duration() {
    let whole = epoch(&[("base", 500.0), ("new", 500.0)]);
    let half = PlanningSums {
        days: 5.0,
        ..ten_days(&whole)
    };
    let asked = Settings {
        mde: 0.001,
        ..settings(&[])
    };
    let found = days(&asked, ten_days(&whole), Some(half)).expect("enough is known");
    let metric = found.arms["new"].metrics["hit_rate"]
        .clone()
        .expect("it is defined");
    assert_eq!((metric.growth, metric.needs.len()), (Some(0.0), 0));
    assert_eq!(found.weeks(TestDesign::Sequence), None);
}

#[test]
fn the_duration_is_in_whole_weeks_of_the_slowest_comparison() {
    let need = |days: f64| Need {
        x: 1.0,
        days,
        weeks: (days / 7.0).ceil() as u32,
        information: 1.0,
        information_per_day: 1.0,
    };
    let of = |days: Option<f64>| {
        let metric = days.map(|days| MetricDays {
            control: None,
            x: 1.0,
            growth: None,
            needs: [(TestDesign::Strict, need(days))].into(),
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
    assert_eq!(whole(&[Some(3.0), Some(15.0)]).weeks(TestDesign::Strict), Some(3));
    assert_eq!(whole(&[Some(3.0), None]).weeks(TestDesign::Strict), None);
    assert_eq!(whole(&[Some(3.0)]).weeks(TestDesign::Planned), None);
}

#[test]
fn distant_shares_rule_out_a_planned_end() {
    let epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
    let designs = |control, arm| {
        let asked = Settings {
            mde: 0.2,
            ..settings(&[("base", control), ("new", arm)])
        };
        let found = metric(&asked, &epoch);
        found.needs.into_keys().collect::<Vec<_>>()
    };
    let but_planned = [TestDesign::Sequence, TestDesign::Strict];
    assert_eq!(
        designs(0.8, 0.2),
        [&[TestDesign::Planned], &but_planned[..]].concat()
    );
    assert_eq!(designs(0.81, 0.19), but_planned);
}

#[test]
fn a_metric_per_user_needs_shares_and_lists_that_spread() {
    let mut epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
    let mut settings = settings(&[("base", 0.5), ("new", 0.5)]);
    settings.primary = vec![LISTS_PER_USER.to_owned()];
    let found = |epoch: &Epoch| {
        let found = days(&settings, ten_days(epoch), None).expect("enough is known");
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
fn insufficient_data_is_refused_with_the_missing_amount() {
    let few = |n_buckets: usize| {
        let mut epoch = epoch(&[("base", 500.0), ("new", 500.0)]);
        for arm in epoch.arms.values_mut() {
            arm.lists[n_buckets..].fill(0.0);
        }
        epoch
    };
    let says = |settings: &Settings, sums: PlanningSums| {
        let error = days(settings, sums, None).expect_err("too little is known");
        error.to_string()
    };
    let asked = settings(&[]);
    assert_eq!(
        says(&asked, ten_days(&few(219))),
        "there is too little data yet, users in 219 of 220 buckets"
    );
    assert!(days(&asked, ten_days(&few(220)), None).is_ok());
    let one = epoch(&[("base", 500.0)]);
    assert_eq!(says(&asked, ten_days(&one)), "it has no arm except the control");
    let other = epoch(&[("new", 500.0)]);
    assert_eq!(says(&asked, ten_days(&other)), "its control has no list");
    let at_once = PlanningSums {
        days: 0.0,
        ..ten_days(&one)
    };
    assert_eq!(says(&asked, at_once), "all lists have one time");
}
