//! Blocks of reference values, and the tolerances for them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Relative tolerance of sums, variances and plain formulas.
pub const PLAIN: f64 = 1e-9;
/// Relative tolerance of values from Student's t or the normal distribution.
pub const TRANSFORMED: f64 = 1e-8;
/// Absolute tolerance of logarithms of Bayes factors and e-values.
pub const LOGARITHM: f64 = 1e-8;

/// Blocks of values. Each has its own test.
const BLOCKS: [&str; 20] = [
    "av_trajectory",
    "boundary_grid",
    "bucket_case",
    "burn_in",
    "decision",
    "epoch_case",
    "epoch_overlap_case",
    "fold_case",
    "harm",
    "list_ratio",
    "log_e_grid",
    "multiple_testing",
    "occupied_case",
    "planned_end",
    "quantiles",
    "srm_cases",
    "srm_epochs",
    "strict_sequence",
    "t_z_transform",
    "user_level_case",
];

/// Blocks about the origin of the others.
const ABOUT: [&str; 2] = ["meta", "meta_added"];

fn all() -> Value {
    read("tests/data/statistics.json")
}

/// Reads a block of the values for the decision rules, made by `tests/data/decisions.py` with other packages.
#[track_caller]
pub fn decision_block(name: &str) -> Value {
    let block = read("tests/data/decisions.json")[name].take();
    assert!(!block.is_null(), "{name} is missing");
    block
}

fn read(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
pub fn block(name: &str) -> Value {
    assert!(BLOCKS.contains(&name), "{name} is missing in the list of blocks");
    all()[name].take()
}

#[test]
fn every_block_of_the_file_has_a_test() {
    let file = all();
    let blocks = file.as_object().expect("an object").keys();
    let mut known: Vec<&str> = BLOCKS.into_iter().chain(ABOUT).collect();
    known.sort_unstable();
    let mut found: Vec<&str> = blocks.map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, known);
    for block in BLOCKS {
        let asks = format!("block(\"{block}\")");
        let tests = [
            include_str!("buckets.rs"),
            include_str!("checks.rs"),
            include_str!("decisions.rs"),
            include_str!("sequences.rs"),
        ];
        assert!(
            tests.iter().any(|test| test.contains(&asks)),
            "no test asks for {block}"
        );
    }
}

#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[track_caller]
pub fn numbers(value: &Value) -> Vec<f64> {
    rows(value).iter().map(number).collect()
}

#[track_caller]
pub fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

#[track_caller]
pub fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no object"))
        .iter()
}

/// Asserts a relative tolerance.
#[track_caller]
pub fn near(value: f64, expected: &Value, tolerance: f64) {
    let expected = number(expected);
    let difference = (value - expected).abs();
    assert!(
        difference <= tolerance * expected.abs(),
        "{value}, expected {expected}: {:e} off",
        difference / expected.abs()
    );
}

/// Asserts an absolute tolerance.
#[track_caller]
pub fn close(value: f64, expected: &Value, tolerance: f64) {
    let expected = number(expected);
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected}: {:e} off",
        (value - expected).abs()
    );
}

/// Asserts both ends of an interval, relative to the larger one, because an end near 0 is a difference of two other numbers.
#[track_caller]
pub fn ends(interval: Option<abgauge_core::statistics::Interval>, expected: &Value, tolerance: f64) {
    let interval = interval.expect("there is an interval");
    let expected = numbers(expected);
    let scale = expected[0].abs().max(expected[1].abs());
    for (end, expected) in [interval.lower, interval.upper].into_iter().zip(expected) {
        let difference = (end - expected).abs();
        assert!(
            difference <= tolerance * scale,
            "{end}, expected {expected}: {:e} off",
            difference / scale
        );
    }
}
