//! Sample ratio, list ratio and burn-in.

use abgauge_core::statistics::burn_in::{BurnIn, BurnInArm};
use abgauge_core::statistics::per_user::{Count, UserCounts, per_user};
use abgauge_core::statistics::srm::{ExposedArm, ln_bayes_factor};
use abgauge_core::statistics::{EpochWeights, list_ratio, sequence};
use serde_json::Value;

use super::vectors::{LOGARITHM, PLAIN, TRANSFORMED, block, close, ends, near, number, numbers, rows};

#[test]
fn first_exposures_are_tested_like_ssrm() {
    for case in rows(&block("srm_cases")) {
        let theta = numbers(&case["theta"]);
        let expected = &case["expected"]["concentration_1000"];
        let mut users = vec![0.0; theta.len()];
        let mut largest = 0.0_f64;
        for (look, increments) in rows(&case["increments"]).iter().enumerate() {
            let ln_bf = grow(&mut users, &theta, increments);
            close(ln_bf, &expected["log_bayes_factor"][look], LOGARITHM);
            largest = largest.max(ln_bf);
            near(sequence::p_of(largest), &expected["p_sequential"][look], 1e-7);
        }
    }
}

fn grow(users: &mut [f64], theta: &[f64], increments: &Value) -> f64 {
    for (users, more) in users.iter_mut().zip(numbers(increments)) {
        *users += more;
    }
    let arms = users.iter().zip(theta);
    let arms: Vec<ExposedArm> = arms
        .map(|(users, share)| ExposedArm {
            users: *users,
            share: *share,
        })
        .collect();
    ln_bayes_factor(&arms).expect("shares are above 0")
}

#[test]
fn an_epoch_with_other_shares_restarts_and_adds() {
    let [mut before, mut largest] = [0.0_f64; 2];
    for epoch in rows(&block("srm_epochs")["epochs"]) {
        let theta = numbers(&epoch["theta"]);
        let mut users = vec![0.0; theta.len()];
        let mut of_epoch = 0.0;
        for (look, increments) in rows(&epoch["first_exposures"]).iter().enumerate() {
            of_epoch = grow(&mut users, &theta, increments);
            close(of_epoch, &epoch["ln_bf_epoch"][look], 1e-6);
            close(before + of_epoch, &epoch["ln_bf_total"][look], 1e-6);
            largest = largest.max(before + of_epoch);
            near(sequence::p_of(largest), &epoch["p"][look], 1e-6);
        }
        before += of_epoch;
    }
}

#[test]
fn lists_and_clicks_per_assigned_user_need_no_user_counts() {
    let buckets = block("bucket_case");
    for row in rows(&block("list_ratio")["rows"]) {
        let [column, arm] = ["column", "arm"].map(|name| row[name].as_str().expect("a name"));
        let lists = |arm: &str| numbers(&buckets["arms"][arm]["requests"]);
        let counts = |arm: &str| numbers(&buckets["arms"][arm][column]);
        let [lists_of_arm, lists_of_control] = [lists(arm), lists("control")];
        let [counts_of_arm, counts_of_control] = [counts(arm), counts("control")];
        let count = |lists, counts, arm: &str| Count {
            lists,
            counts,
            share: number(&row["theta"][arm]),
        };
        let pair = UserCounts {
            arm: count(&lists_of_arm, &counts_of_arm, arm),
            control: count(&lists_of_control, &counts_of_control, "control"),
        };
        let effect = per_user(&[pair], EpochWeights::Overlap).expect("it is defined");
        near(effect.value, &row["g"], TRANSFORMED);
        near(effect.value.exp_m1(), &row["ratio_minus_1"], TRANSFORMED);
        near(effect.spread.variance, &row["V"], PLAIN);
        near(effect.spread.degrees, &row["df"], PLAIN);
        near(effect.t(), &row["t"], TRANSFORMED);
        near(effect.p_at_one_look(), &row["p_one_look"], TRANSFORMED);
        let interval = effect
            .interval_at_one_look(0.05)
            .and_then(|interval| interval.exp_m1());
        ends(interval, &row["ci95_lift"], TRANSFORMED);
        near(effect.spread.variance, &row["statsmodels_V"], 1e-6);
        check_sequence(row, &effect);
    }
}

fn check_sequence(row: &Value, effect: &abgauge_core::statistics::Effect) {
    let tau = number(&row["tau"]);
    assert!(row["column"] != "requests" || tau == list_ratio::TAU);
    near(sequence::x(tau, &effect.spread), &row["x"], PLAIN);
    near(
        sequence::z_star(effect.t(), effect.spread.degrees),
        &row["z_star"],
        TRANSFORMED,
    );
    let ln_e = sequence::ln_e_now(effect, tau).expect("it is finite");
    close(ln_e, &row["ln_e"], LOGARITHM);
    near(sequence::p_of(ln_e), &row["p_now"], TRANSFORMED);
}

#[test]
fn burn_in_waits_for_buckets_and_for_clicks_to_be_expected() {
    for row in rows(&block("burn_in")["rows"]) {
        let [occupied, lists, hits] = ["occupied", "lists", "hit_lists"].map(|column| numbers(&row[column]));
        let seen = [0, 1].map(|arm| BurnInArm {
            occupied: occupied[arm] as usize,
            lists: lists[arm],
            hits: hits[arm],
        });
        let burn_in = BurnIn::new(seen);
        let least = numbers(&row["expected_events"])
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        near(burn_in.expected_hits, &serde_json::json!(least), PLAIN);
        assert_eq!(Some(burn_in.is_done()), row["done"].as_bool(), "{row}");
    }
}
