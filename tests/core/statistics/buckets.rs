//! Ratios, differences and lifts from sums by bucket.

use abgauge_core::statistics::sequence::{self, boundary, boundary_t};
use abgauge_core::statistics::{
    ArmPair, Comparison, Effect, EpochWeights, ErrorLevel, Interval, RatioSums, compare, normal, ratio,
    student,
};
use serde_json::Value;

use super::vectors::{PLAIN, TRANSFORMED, block, close, ends, entries, near, number, numbers, rows};

/// An arm of `bucket_case` in one metric.
struct Columns {
    lists: Vec<f64>,
    numerators: Vec<f64>,
    denominators: Vec<f64>,
}

impl Columns {
    fn sums(&self) -> RatioSums<'_> {
        RatioSums {
            lists: &self.lists,
            numerators: &self.numerators,
            denominators: &self.denominators,
        }
    }
}

fn columns(case: &Value, arm: &str, metric: &str) -> Columns {
    let column = |name: &str| numbers(&case["arms"][arm][name]);
    let ratio = rows(&case["metrics"][metric]);
    let term = |at: usize| column(ratio[at].as_str().expect("a name"));
    Columns {
        lists: column("requests"),
        numerators: term(0),
        denominators: term(1),
    }
}

fn compared(arm: &Columns, control: &Columns) -> Comparison {
    let pair = ArmPair {
        arm: arm.sums(),
        control: control.sums(),
    };
    compare(&[pair], EpochWeights::Overlap).expect("it is defined")
}

#[test]
fn ratios_differences_and_lifts_equal_other_packages() {
    let case = block("bucket_case");
    for (metric, arms) in entries(&case["expected"]["arm"]) {
        for (arm, expected) in entries(arms) {
            check_arm(&columns(&case, arm, metric), expected);
        }
    }
    let mut n_pairs = 0;
    for (metric, arms) in entries(&case["expected"]["compare"]) {
        for (arm, expected) in entries(arms) {
            let comparison = compared(&columns(&case, arm, metric), &columns(&case, "control", metric));
            check_difference(&comparison, expected);
            check_independent(&comparison, expected);
            check_lift(&comparison, &expected["rel"]);
            check_sequence(&comparison, expected);
            n_pairs += 1;
        }
    }
    assert_eq!(n_pairs, 8);
}

fn check_arm(columns: &Columns, expected: &Value) {
    let found = ratio::ratio(columns.sums()).expect("it is defined");
    let spread = found.spread.expect("it is spread");
    near(found.value, &expected["R"], PLAIN);
    near(spread.variance, &expected["var_bucket_linearised"], PLAIN);
    near(spread.error(), &expected["se"], PLAIN);
    near(spread.degrees, &expected["df"], PLAIN);
    near(
        student::quantile_above(0.025, spread.degrees),
        &expected["t_crit"],
        TRANSFORMED,
    );
    let shape = ratio::RatioShape {
        hits: None,
        is_share: false,
    };
    ends(
        found.interval(shape, &ErrorLevel::new(0.05)),
        &expected["ci"],
        TRANSFORMED,
    );
}

/// Checks both arms together, with the users that they share.
fn check_difference(comparison: &Comparison, expected: &Value) {
    let expected = &expected["abs"];
    let effect = comparison.difference.expect("it is spread");
    near(effect.value, &expected["delta"], PLAIN);
    near(effect.spread.variance, &expected["var_paired"], PLAIN);
    near(effect.spread.error(), &expected["se_paired"], PLAIN);
    near(effect.spread.degrees, &expected["df"], PLAIN);
    near(effect.t(), &expected["t"], TRANSFORMED);
    near(effect.p_at_one_look(), &expected["p"], TRANSFORMED);
    ends(effect.interval_at_one_look(0.05), &expected["ci95"], TRANSFORMED);
    let [arm, control] = effect.arms.map(|spread| spread.variance);
    let covariance = 0.5 * (arm + control - effect.spread.variance);
    close(covariance, &expected["cov_TC"], PLAIN * effect.spread.variance);
}

/// Checks the arms as if they shared no users, as the strict sequence assumes.
fn check_independent(comparison: &Comparison, expected: &Value) {
    let absolute = &expected["abs_independent_arms"];
    let effect = comparison.difference.expect("it is spread");
    near(variance_of_arms(&effect), &absolute["var"], PLAIN);
    let degrees = welch(&effect);
    near(degrees, &absolute["df_welch"], TRANSFORMED);
    let alone = independent(&effect, degrees);
    near(alone.t(), &absolute["t"], TRANSFORMED);
    near(alone.p_at_one_look(), &absolute["p"], TRANSFORMED);
    ends(alone.interval_at_one_look(0.05), &absolute["ci95"], TRANSFORMED);
    ends(
        alone.interval_at_one_look(0.05),
        &absolute["gbstats_TwoSidedTTest_absolute"]["ci"],
        TRANSFORMED,
    );
    let lift = comparison.lift.expect("the control is far from 0");
    let relative = &expected["rel_independent_arms"];
    near(variance_of_arms(&lift), &relative["var"], PLAIN);
    let packages = &relative["gbstats_TwoSidedTTest_relative"];
    near(variance_of_arms(&lift).sqrt(), &packages["uplift_sd"], PLAIN);
    near(lift.value, &packages["expected"], TRANSFORMED);
}

fn check_lift(comparison: &Comparison, expected: &Value) {
    let lift = comparison.lift.expect("the control is far from 0");
    near(lift.value, &expected["lift"], PLAIN);
    near(lift.spread.variance, &expected["var_paired"], PLAIN);
    near(lift.spread.error(), &expected["se"], PLAIN);
    ends(lift.interval_at_one_look(0.05), &expected["ci95_t"], TRANSFORMED);
}

fn check_sequence(comparison: &Comparison, expected: &Value) {
    let absolute = &expected["always_valid_abs"];
    let effect = comparison.difference.expect("it is spread");
    let tau = number(&absolute["tau"]);
    let x = sequence::x(tau, &effect.spread);
    near(x, &absolute["x"], PLAIN);
    near(boundary(x, 0.05_f64.ln()), &absolute["c_z"], PLAIN);
    near(
        boundary_t(x, 0.05_f64.ln(), effect.spread.degrees),
        &absolute["c_t"],
        TRANSFORMED,
    );
    let width = sequence::half_width(&effect, tau, 0.05);
    ends(
        Interval::around(effect.value, width),
        &absolute["cs"],
        TRANSFORMED,
    );
    near(
        sequence::z_star(effect.t(), effect.spread.degrees),
        &absolute["z_star"],
        TRANSFORMED,
    );
    let ln_e = sequence::ln_e_now(&effect, tau).expect("it is finite");
    close(ln_e, &absolute["log_e"], 1e-8);
    near(sequence::p_of(ln_e), &absolute["p_now"], TRANSFORMED);
    let relative = &expected["always_valid_rel"];
    let lift = comparison.lift.expect("the control is far from 0");
    let tau = number(&relative["tau_rel"]);
    near(sequence::x(tau, &lift.spread), &relative["x"], PLAIN);
    let width = sequence::half_width(&lift, tau, 0.05);
    ends(Interval::around(lift.value, width), &relative["cs"], TRANSFORMED);
    if let Some(packages) = expected.get("gbstats_sequential_abs_independent") {
        let x = number(&packages["implied_x"]);
        let width = boundary(x, 0.05_f64.ln()) * variance_of_arms(&effect).sqrt();
        ends(
            Interval::around(effect.value, width),
            &packages["ci"],
            TRANSFORMED,
        );
    }
}

fn variance_of_arms(effect: &Effect) -> f64 {
    effect.arms.iter().map(|spread| spread.variance).sum()
}

fn welch(effect: &Effect) -> f64 {
    let parts = effect
        .arms
        .iter()
        .map(|spread| spread.variance.powi(2) / spread.degrees);
    variance_of_arms(effect).powi(2) / parts.sum::<f64>()
}

fn independent(effect: &Effect, degrees: f64) -> Effect {
    let mut alone = *effect;
    alone.spread.variance = variance_of_arms(effect);
    alone.spread.degrees = degrees;
    alone
}

#[test]
fn fewer_buckets_are_sums_of_more() {
    let case = block("bucket_case");
    let whole = columns(&case, "t1", "hr");
    for (n_buckets, expected) in entries(&block("fold_case")["expected"]) {
        let n_buckets: usize = n_buckets.parse().expect("a number");
        let fold = |column: &[f64]| -> Vec<f64> {
            let of = |bucket: usize| column.iter().skip(bucket).step_by(n_buckets).sum();
            (0..n_buckets).map(of).collect()
        };
        let folded = Columns {
            lists: fold(&whole.lists),
            numerators: fold(&whole.numerators),
            denominators: fold(&whole.denominators),
        };
        let found = ratio::ratio(folded.sums()).expect("it is defined");
        near(found.value, &expected["R"], PLAIN);
        near(
            found.spread.expect("it is spread").variance,
            &expected["V"],
            PLAIN,
        );
    }
}

#[test]
fn one_bucket_per_user_gives_the_variance_clustered_by_user() {
    let case = block("user_level_case");
    for (metric, expected) in entries(&case["expected"]) {
        let term = if metric == "hr" { 1 } else { 2 };
        if expected.is_string() {
            continue;
        }
        let [control, arm] = ["control", "t1"].map(|arm| users(&case["arms"][arm], term));
        for (name, columns) in [("control", &control), ("t1", &arm)] {
            let found = ratio::ratio(columns.sums()).expect("it is defined");
            let expected = &expected["arms"][name];
            near(found.value, &expected["R"], PLAIN);
            near(found.occupied, &expected["n_users"], PLAIN);
            let variance = found.spread.expect("it is spread").variance;
            near(variance, &expected["var_delta_users"], PLAIN);
            let without_correction = variance * (found.occupied - 1.0) / found.occupied;
            near(
                without_correction,
                &expected["statsmodels_cluster_nocorrection_var"],
                PLAIN,
            );
        }
        check_packages_by_user(&arm, &control, expected);
    }
}

/// Checks arms with different users, so that they are independent.
fn check_packages_by_user(arm: &Columns, control: &Columns, expected: &Value) {
    let [one, other] = [arm, control].map(|columns| ratio::ratio(columns.sums()).expect("it is defined"));
    let spreads = [one, other].map(|ratio| ratio.spread.expect("it is spread"));
    let absolute = Effect {
        value: one.value - other.value,
        spread: spreads[0],
        arms: spreads,
    };
    let packages = &expected["gbstats_abs"];
    let alone = independent(&absolute, welch(&absolute));
    near(alone.value, &packages["expected"], PLAIN);
    near(alone.spread.error(), &packages["sd"], PLAIN);
    near(alone.p_at_one_look(), &packages["p"], TRANSFORMED);
    ends(alone.interval_at_one_look(0.05), &packages["ci"], TRANSFORMED);
    // GrowthBook's x, for a tuning parameter of 500.
    let n_users = one.occupied + other.occupied;
    let needed = -2.0 * 0.05_f64.ln();
    let x = (needed + needed.ln_1p()) / 500.0 * n_users;
    let width = boundary(x, 0.05_f64.ln()) * alone.spread.error();
    ends(
        Interval::around(alone.value, width),
        &expected["gbstats_seq_abs_tuning500"]["ci"],
        TRANSFORMED,
    );
    let relative = &expected["gbstats_rel"];
    near(one.value / other.value - 1.0, &relative["expected"], PLAIN);
    let [arm, control] = spreads.map(|spread| spread.variance);
    let variance = arm / other.value.powi(2) + control * one.value.powi(2) / other.value.powi(4);
    near(variance.sqrt(), &relative["sd"], PLAIN);
}

fn users(rows_of_arm: &Value, term: usize) -> Columns {
    let rows: Vec<Vec<f64>> = rows(rows_of_arm).iter().map(numbers).collect();
    let column = |at: usize| rows.iter().map(|row| row[at]).collect();
    Columns {
        lists: column(0),
        numerators: column(term),
        denominators: column(0),
    }
}

#[test]
fn quantiles_equal_scipy() {
    let expected = block("quantiles");
    for (degrees, expected) in entries(&expected["t_975"]) {
        let degrees: f64 = degrees.parse().expect("a number");
        near(student::quantile_above(0.025, degrees), expected, PLAIN);
    }
    near(normal::quantile_above(0.025), &expected["norm_975"], PLAIN);
}

#[test]
fn buckets_without_a_list_of_an_arm_do_not_count_for_it() {
    let case = block("occupied_case");
    let expected = &case["expected"];
    let [control, arm] = ["control", "t1"].map(|arm| plain(&case["arms"][arm]));
    for (name, columns) in [("control", &control), ("t1", &arm)] {
        let found = ratio::ratio(columns.sums()).expect("it is defined");
        near(found.occupied, &expected["occupied"][name], PLAIN);
        near(
            found.spread.expect("it is spread").variance,
            &expected["V_arm"][name],
            PLAIN,
        );
    }
    let effect = compared(&arm, &control).difference.expect("it is spread");
    near(effect.value, &expected["delta"], PLAIN);
    check_effect(&effect, expected);
    ends(effect.interval_at_one_look(0.05), &expected["ci95"], TRANSFORMED);
}

fn check_effect(effect: &Effect, expected: &Value) {
    let variance = if expected.get("V").is_some() {
        &expected["V"]
    } else {
        &expected["var"]
    };
    near(effect.spread.variance, variance, PLAIN);
    near(effect.spread.degrees, &expected["df"], PLAIN);
    near(effect.t(), &expected["t"], TRANSFORMED);
}

/// Columns of a metric whose denominator counts every list.
fn plain(arm: &Value) -> Columns {
    let [lists, numerators] = ["den", "num"].map(|column| numbers(&arm[column]));
    Columns {
        denominators: lists.clone(),
        lists,
        numerators,
    }
}

struct Epochs(Vec<[Columns; 2]>);

impl Epochs {
    fn new(case: &Value) -> Epochs {
        let epochs = rows(&case["epochs"]).iter();
        Epochs(
            epochs
                .map(|epoch| ["t1", "control"].map(|arm| plain(&epoch[arm])))
                .collect(),
        )
    }

    fn compare(&self, weights: EpochWeights) -> Comparison {
        let pairs = self.0.iter().map(|[arm, control]| ArmPair {
            arm: arm.sums(),
            control: control.sums(),
        });
        compare(&pairs.collect::<Vec<_>>(), weights).expect("it is defined")
    }

    fn check_weights(&self, weights: EpochWeights, expected: &Value) {
        let lists = |columns: &Columns| columns.lists.iter().sum();
        let of_epochs: Vec<[f64; 2]> = self
            .0
            .iter()
            .map(|[arm, control]| [lists(arm), lists(control)])
            .collect();
        for (weight, expected) in weights.of(&of_epochs).into_iter().zip(rows(&expected["weights"])) {
            near(weight, expected, PLAIN);
        }
        for ([arm, control], expected) in self.0.iter().zip(rows(&expected["per_epoch_delta"])) {
            if !expected.is_null() {
                near(
                    compared(arm, control).difference.expect("it is spread").value,
                    expected,
                    PLAIN,
                );
            }
        }
    }
}

#[test]
fn epochs_can_be_weighted_by_lists() {
    let case = block("epoch_case");
    let expected = &case["expected"];
    let epochs = Epochs::new(&case);
    epochs.check_weights(EpochWeights::Lists, expected);
    let effect = epochs
        .compare(EpochWeights::Lists)
        .difference
        .expect("it is spread");
    near(effect.value, &expected["delta_stratified"], PLAIN);
    check_effect(&effect, expected);
    near(effect.p_at_one_look(), &expected["p"], TRANSFORMED);
}

#[test]
fn epochs_are_weighted_by_the_overlap_of_their_arms() {
    let case = block("epoch_overlap_case");
    let expected = &case["expected"];
    let epochs = Epochs::new(&case);
    epochs.check_weights(EpochWeights::Overlap, expected);
    let effect = epochs
        .compare(EpochWeights::Overlap)
        .difference
        .expect("it is spread");
    near(effect.value, &expected["delta"], PLAIN);
    check_effect(&effect, expected);
    near(effect.p_at_one_look(), &expected["p"], TRANSFORMED);
    let by_lists = epochs
        .compare(EpochWeights::Lists)
        .difference
        .expect("it is spread");
    near(
        by_lists.spread.variance,
        &expected["var_with_weights_lists"],
        PLAIN,
    );
}
