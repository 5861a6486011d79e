//! Tests and intervals that hold at every look.

use std::f64::consts::LN_2;

use abgauge_core::statistics::sequence::{self, boundary, boundary_t};
use abgauge_core::statistics::spending::{DecisionLook, OTHER_WEIGHT, PLANNED_WEIGHT};
use abgauge_core::statistics::{Effect, Interval, Spread, harm, multiple, normal, student};
use serde_json::Value;

use super::vectors::{
    LOGARITHM, PLAIN, TRANSFORMED, block, close, ends, entries, near, number, numbers, rows,
};

#[test]
fn the_boundary_equals_confseq() {
    for row in rows(&block("boundary_grid")["rows"]) {
        near(
            boundary(number(&row["x"]), number(&row["alpha"]).ln()),
            &row["c"],
            1e-12,
        );
    }
}

#[test]
fn the_evidence_equals_confseq() {
    for row in rows(&block("log_e_grid")["rows"]) {
        close(
            sequence::ln_e(number(&row["x"]), number(&row["z"])),
            &row["log_e"],
            LOGARITHM,
        );
    }
}

#[test]
fn tails_of_t_and_normal_map_to_each_other() {
    for row in rows(&block("t_z_transform")["rows"]) {
        let [degrees, c_z, t] = ["df", "c_z", "t"].map(|column| number(&row[column]));
        near(
            student::isf(normal::ln_sf(c_z), degrees),
            &row["c_t"],
            TRANSFORMED,
        );
        near(sequence::z_star(t, degrees), &row["z_of_t"], TRANSFORMED);
        near(student::ln_sf(t, degrees).exp(), &row["t_sf"], TRANSFORMED);
    }
}

#[test]
fn the_running_p_keeps_the_smallest_of_all_looks() {
    let case = block("av_trajectory");
    let [tau, alpha] = ["tau", "alpha"].map(|column| number(&case[column]));
    let mut largest = 0.0_f64;
    let [mut lower, mut upper] = [f64::NEG_INFINITY, f64::INFINITY];
    for row in rows(&case["rows"]) {
        let effect = effect(row, "delta", number(&row["se"]).powi(2), number(&case["df"]));
        let ln_e = sequence::ln_e_now(&effect, tau).expect("it is finite");
        close(ln_e, &row["log_e"], LOGARITHM);
        largest = largest.max(ln_e);
        near(sequence::p_of(largest), &row["p_running"], TRANSFORMED);
        let interval = Interval::around(effect.value, sequence::half_width(&effect, tau, alpha));
        ends(interval, &row["cs"], TRANSFORMED);
        let interval = interval.expect("it is finite");
        [lower, upper] = [interval.lower.max(lower), interval.upper.min(upper)];
        ends(
            Some(Interval { lower, upper }),
            &row["cs_running_intersection"],
            TRANSFORMED,
        );
    }
}

fn effect(row: &Value, value: &str, variance: f64, degrees: f64) -> Effect {
    let spread = Spread { variance, degrees };
    Effect {
        value: number(&row[value]),
        spread,
        arms: [spread; 2],
    }
}

#[test]
fn the_strict_interval_adds_the_intervals_of_both_arms_and_its_p_is_their_root() {
    let case = block("strict_sequence");
    let mut n_roots = 0;
    for row in rows(&case["rows"]) {
        let [alpha, tau] = ["alpha", "tau"].map(|column| number(&row[column]));
        let spread = |variance: &str, degrees: &str| Spread {
            variance: number(&row[variance]),
            degrees: number(&row[degrees]),
        };
        let arms = [spread("V_T", "df_T"), spread("V_C", "df_C")];
        for (spread, [x, c_z, c_t]) in arms
            .iter()
            .zip([["x_T", "c_z_T", "c_t_T"], ["x_C", "c_z_C", "c_t_C"]])
        {
            let found = sequence::x(tau, spread);
            near(found, &row[x], PLAIN);
            near(boundary(found, alpha.ln() - LN_2), &row[c_z], PLAIN);
            near(
                boundary_t(found, alpha.ln() - LN_2, spread.degrees),
                &row[c_t],
                TRANSFORMED,
            );
        }
        let effect = Effect {
            arms,
            ..effect(row, "delta", 1.0, 1.0)
        };
        let width = sequence::strict_half_width(&effect, tau, alpha);
        near(width, &row["half_width"], TRANSFORMED);
        ends(Interval::around(effect.value, width), &row["cs"], TRANSFORMED);
        let surprise = sequence::strict_surprise(&effect, tau, 0.0).expect("it is finite");
        near(sequence::p_of(surprise), &row["p"], 1e-7);
        n_roots += usize::from(surprise > 0.0);
        row.get("lift")
            .into_iter()
            .for_each(|lift| check_strict_lift(lift, &effect, alpha));
    }
    assert!(n_roots >= 5);
}

fn check_strict_lift(expected: &Value, absolute: &Effect, alpha: f64) {
    let arms = [("V_T", 0), ("V_C", 1)].map(|(variance, arm)| Spread {
        variance: number(&expected[variance]),
        ..absolute.arms[arm]
    });
    let lift = Effect {
        arms,
        ..effect(expected, "lift", 1.0, 1.0)
    };
    let width = sequence::strict_half_width(&lift, number(&expected["mde"]), alpha);
    ends(Interval::around(lift.value, width), &expected["cs"], TRANSFORMED);
}

#[test]
fn harm_equals_the_one_sided_mixture_of_confseq() {
    let case = block("harm");
    let alpha = number(&case["alpha"]);
    for row in rows(&case["grid"]) {
        close(
            harm::ln_e(number(&row["x"]), number(&row["z_harm"])),
            &row["ln_e"],
            LOGARITHM,
        );
    }
    for family in rows(&case["family"]) {
        check_family_of_harm(family);
    }
    let mut largest = [0.0_f64; 3];
    for row in rows(&case["trajectory"]) {
        let x = number(&row["x"]);
        for (at, z_star) in numbers(&row["z_star"]).into_iter().enumerate() {
            let ln_e = harm::ln_e(x, -z_star);
            close(ln_e, &row["ln_e"][at], LOGARITHM);
            largest[at] = largest[at].max(ln_e);
        }
        let p = largest.map(sequence::p_of);
        for (p, expected) in p.iter().zip(rows(&row["p_harm_per_metric"])) {
            near(*p, expected, TRANSFORMED);
        }
        near(
            multiple::bonferroni(&p).into_iter().fold(1.0, f64::min),
            &row["p_harm_family"],
            TRANSFORMED,
        );
        let is_harm = p.iter().any(|p| harm::is_harm(*p, p_len(&largest), alpha));
        assert_eq!(Some(is_harm), row["harm"].as_bool());
    }
}

fn p_len(metrics: &[f64]) -> usize {
    metrics.len()
}

fn check_family_of_harm(family: &Value) {
    let mut p = Vec::new();
    for (_, metric) in entries(&family["metrics"]) {
        let [x, z_star] = ["x", "z_star"].map(|column| number(&metric[column]));
        close(
            harm::ln_e(x, -z_star),
            &metric["ln_e_harm_if_up_is_good"],
            LOGARITHM,
        );
        close(
            harm::ln_e(x, z_star),
            &metric["ln_e_harm_if_down_is_good"],
            LOGARITHM,
        );
        p.push(sequence::p_of(harm::ln_e(x, -z_star)));
    }
    let adjusted = multiple::bonferroni(&p).into_iter().fold(1.0, f64::min);
    near(adjusted, &family["p_harm_family_now"], TRANSFORMED);
}

/// The block has the earlier rule: p = min(p_sequence/0.2, p_end/0.8), which let an early look decide with the sign of a later
/// one. Its values for the planned look still hold. The sequence no longer decides next to a planned look, so p is larger now
/// in the three rows in which the sequence decided.
#[test]
fn the_planned_look_is_tested_at_four_fifths_of_alpha() {
    let case = block("planned_end");
    let alpha = number(&case["alpha"]);
    let mut n_changed = 0;
    for row in rows(&case["rows"]) {
        near(
            sequence::p_of(number(&row["max_ln_e"])),
            &row["p_sequence"],
            PLAIN,
        );
        let end = effect(row, "t_at_planned_look", 1.0, number(&row["df"]));
        near(end.p_at_one_look(), &row["p_end"], TRANSFORMED);
        let p = DecisionLook::PLANNED.p(end.p_at_one_look());
        let before = number(&row["p_after"]);
        if number(&row["p_before"]) > before {
            near(p, &row["p_after"], TRANSFORMED);
        } else {
            assert!(p > 1.5 * before, "{p}, and {before} before");
            n_changed += 1;
        }
    }
    assert_eq!(n_changed, 3);
    for row in rows(&case["intervals"]) {
        let effect = effect(row, "delta", number(&row["V"]), number(&row["df"]));
        let width = sequence::half_width(&effect, number(&row["tau"]), OTHER_WEIGHT * alpha);
        ends(
            Interval::around(effect.value, width),
            &row["sequence_at_0.2_alpha"],
            TRANSFORMED,
        );
        let end = effect.interval_at_one_look(PLANNED_WEIGHT * alpha);
        ends(end, &row["interval_at_0.8_alpha"], TRANSFORMED);
    }
    check_planned_ends_of_the_bucket_case(&case["bucket_case_p_end"]);
}

fn check_planned_ends_of_the_bucket_case(expected: &Value) {
    let of_one_look = block("bucket_case");
    for (metric, arms) in entries(expected) {
        for (arm, p_end) in entries(arms) {
            let row = &of_one_look["expected"]["compare"][metric][arm]["abs"];
            let effect = effect(row, "delta", number(&row["var_paired"]), number(&row["df"]));
            near(effect.p_at_one_look(), p_end, TRANSFORMED);
        }
    }
}

#[test]
fn several_hypotheses_are_corrected_like_statsmodels() {
    let case = block("multiple_testing");
    let p = numbers(&case["p"]);
    let ln_e: Vec<f64> = p.iter().map(|p| -p.ln()).collect();
    check_adjusted(&multiple::bonferroni(&p), &case["bonferroni"]);
    check_adjusted(&multiple::holm(&p), &case["holm"]);
    // With 1/p for e it is Benjamini and Hochberg's method.
    check_adjusted(&multiple::e_bh(&ln_e), &case["fdr_bh"]);
    let e: Vec<f64> = numbers(&case["ebh"]["e"]).iter().map(|e| e.ln()).collect();
    let rejected: Vec<bool> = multiple::e_bh(&e).iter().map(|p| *p <= 0.05).collect();
    for expected in ["reject", "check_bh_on_1/e"] {
        let expected = &case["ebh"][expected];
        let expected = expected.get("reject").unwrap_or(expected);
        assert_eq!(serde_json::json!(rejected), *expected);
    }
    assert_eq!(
        Some(rejected.iter().filter(|is| **is).count() as u64),
        case["ebh"]["k_star"].as_u64()
    );
}

fn check_adjusted(adjusted: &[f64], expected: &Value) {
    for (at, adjusted) in adjusted.iter().enumerate() {
        near(*adjusted, &expected["p_adj"][at], PLAIN);
        assert_eq!(Some(*adjusted <= 0.05), expected["reject"][at].as_bool());
    }
}
