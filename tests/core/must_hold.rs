//! Small version of the checks of comparisons: few seeded runs of small worlds, through the production code. The whole table is
//! printed by `cargo bench --bench statistics`.
//!
//! Seeds are fixed, so each test sees the same numbers every time. Bounds allow for the chance in so few runs, but not for
//! variances by list.

use crate::checks::{Row, Scale, rows};

const HOUR_MS: i64 = 3_600_000;

/// A fifth of the users, and 14 looks in a week.
const SMALL: Scale = Scale {
    users: 0.2,
    lists: 1.0,
    look_ms: 12 * HOUR_MS,
};

/// Small scale with a quarter of the lists.
const FEW_LISTS: Scale = Scale { lists: 0.25, ..SMALL };

/// Full number of users with a quarter of the lists, for rows that have few users.
const ENOUGH_USERS: Scale = Scale {
    users: 1.0,
    ..FEW_LISTS
};

/// Computes each figure over the seeds from 1 to `n_runs`, with its name.
fn seen(row: &Row, n_runs: u64) -> Vec<(String, f64)> {
    let runs: Vec<Vec<f64>> = (1..=n_runs).map(|seed| row.run(seed)).collect();
    let seen = row.seen(&runs);
    seen.iter().for_each(|seen| println!("{seen}"));
    let named = seen.into_iter();
    named.map(|seen| (seen.figure.what, seen.value)).collect()
}

/// Asserts that all figures with this in their name lie between `least` and `most`.
#[track_caller]
fn check(seen: &[(String, f64)], name: &str, least: f64, most: f64) {
    let of_name = || seen.iter().filter(|(what, _)| what.contains(name));
    assert!(of_name().count() > 0, "no figure is called {name}");
    for (what, value) in of_name() {
        assert!(
            (least..=most).contains(value),
            "{what}: {value}, not {least} to {most}"
        );
    }
}

#[test]
fn equal_arms_rarely_differ_under_repeated_looks() {
    let seen = seen(&rows::no_effect(FEW_LISTS), 32);
    check(&seen, "sequence", 0.0, 0.07);
    check(&seen, "strict", 0.0, 0.0);
    check(&seen, "planned", 0.0, 0.13);
    check(&seen, "the fixed test", 0.09, 0.5);
    check(&seen, "harm", 0.0, 0.07);
}

#[test]
fn intervals_by_user_cover_the_truth_and_intervals_by_request_do_not() {
    let seen = seen(&rows::coverage(SMALL), 16);
    check(&seen, "A/A alarm", 0.0, 0.19);
    check(&seen, "interval of Δ", 0.81, 1.0);
    check(&seen, "interval of the lift", 0.81, 1.0);
    check(&seen, "naive", 0.2, 0.75);
}

#[test]
fn a_true_lift_stays_in_the_sequence() {
    check(&seen(&rows::misses(FEW_LISTS, 0.1), 32), "misses", 0.0, 0.1);
}

#[test]
fn effects_are_found_with_the_planned_power() {
    let [once, _, twice] = <[Row; 3]>::try_from(rows::power(FEW_LISTS))
        .ok()
        .expect("three samples");
    let once = seen(&once, 24);
    check(&once, "sequence", 0.25, 0.75);
    check(&once, "the fixed test", 0.6, 0.97);
    check(&once, "planned", 0.55, 0.95);
    check(&seen(&twice, 16), "sequence", 0.62, 1.0);
}

#[test]
fn harm_is_found_within_days() {
    let seen = seen(&rows::harm(SMALL, -0.4), 8);
    check(&seen, "within the week", 1.0, 1.0);
    check(&seen, "days", 0.5, 5.0);
}

#[test]
fn arms_with_more_lists_per_user_are_flagged_and_others_are_not() {
    check(&seen(&rows::list_ratio(FEW_LISTS), 12), "A/A", 0.0, 0.0);
    check(&seen(&rows::more_lists(FEW_LISTS, 0.4), 8), "alarm", 1.0, 1.0);
}

#[test]
fn wrong_shares_are_flagged_and_a_change_of_shares_is_not() {
    check(&seen(&rows::sample_ratio(SMALL, true), 8), "at 0.01", 0.0, 0.0);
    check(
        &seen(&rows::wrong_shares(SMALL), 8),
        "users to the alarm",
        3_000.0,
        20_000.0,
    );
}

#[test]
fn several_arms_and_metrics_do_not_add_false_alarms() {
    let seen = seen(&rows::holm(FEW_LISTS), 12);
    check(&seen, "peeked: planned", 0.0, 0.09);
    check(&seen, "peeked: sequence", 0.0, 0.25);
}

#[test]
fn a_ramp_with_a_shifting_base_rate_shows_no_effect() {
    let seen = seen(&rows::ramp(SMALL), 8);
    check(&seen, "`overlap`", 0.0, 0.26);
}

#[test]
fn one_look_at_the_demo_shows_no_wrong_decision() {
    let seen = seen(&rows::first_view(), 12);
    check(&seen, "wrong arm", 0.0, 0.0);
    check(&seen, "wrong sign", 0.0, 0.0);
    check(&seen, ": called too early", 0.0, 0.6);
}

/// Asserts that whatever is decided agrees with its decision interval. Without an effect, most runs decide nothing.
#[track_caller]
fn check_sides(seen: &[(String, f64)]) {
    let sides = seen.iter().filter(|(what, _)| what.contains("on that side of 0"));
    let shares: Vec<f64> = sides.map(|(_, share)| *share).collect();
    assert!(!shares.is_empty(), "no figure on sides: {seen:?}");
    assert!(
        shares.iter().all(|share| share.is_nan() || *share == 1.0),
        "{seen:?}"
    );
}

/// With and without a planned day, in each row.
#[test]
fn an_effect_that_changes_sign_causes_no_wrong_decision() {
    for change in [rows::Change::BetterFirst, rows::Change::WorseFirst] {
        for (n_weeks, n_runs, most) in [(1, 24, 0.13), (8, 6, 0.17)] {
            let seen = seen(&rows::changing(SMALL, change, n_weeks), n_runs);
            check(&seen, "win or loss", 0.0, most);
            check_sides(&seen);
        }
    }
}

/// With and without a planned day, in each row.
#[test]
fn decisions_do_not_contradict_the_average_of_a_changing_effect() {
    for course in rows::Course::ALL {
        let seen = seen(&rows::course(SMALL, course), 16);
        check_sides(&seen);
        let wrong = match course {
            rows::Course::Balanced => ": win or loss",
            rows::Course::Worse => ": win",
            rows::Course::Novelty => ": loss",
        };
        let of_wrong = seen.into_iter().filter(|(what, _)| what.ends_with(wrong));
        check(&of_wrong.collect::<Vec<_>>(), wrong, 0.0, 0.13);
    }
}

#[test]
fn eight_weekly_decisions_are_rarely_wrong_together() {
    let scale = Scale {
        users: 0.5,
        ..FEW_LISTS
    };
    let seen = seen(&rows::eight_weeks(scale), 16);
    check(&seen, "win or loss", 0.0, 0.13);
    check_sides(&seen);
}

#[test]
fn a_constant_effect_is_decided_in_the_first_weeks() {
    let seen = seen(&rows::constant(FEW_LISTS), 24);
    check(&seen, "week 1", 0.5, 0.92);
    check(&seen, "week 2", 0.79, 1.0);
    check(&seen, "on that side of 0", 1.0, 1.0);
}

#[test]
fn users_without_an_id_are_noted_and_a_second_id_fixes_them() {
    for share in [0.2, 0.5] {
        let seen = seen(&rows::without_id(ENOUGH_USERS, share), 24);
        check(&seen, "a note", 1.0, 1.0);
        check(&seen, "with a second id", 0.0, 0.17);
    }
}

#[test]
fn a_crawler_is_noted_and_a_cap_fixes_it() {
    for share in [0.2, 0.35, 0.6] {
        let seen = seen(&rows::crawler(ENOUGH_USERS, share), 24);
        check(&seen, "a note", 1.0, 1.0);
        check(&seen, "at most 200", 0.0, 0.17);
    }
}
