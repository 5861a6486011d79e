//! The numbers of files and windows against an independent recount of the same events, and laws that they must satisfy.
//!
//! | module | claim |
//! |---|---|
//! | [`values`] | each value equals a recount, independent of the order of lines and of other metrics; parts add up |
//! | [`bounds`], [`perfect`], [`monotone`] | a metric cannot leave 0..1, miss a perfect list, or reward a repeated item |
//! | [`exact`] | the error of the fixed point is within the documented bound |
//! | [`windows`] | a window of the board equals a recount of the slots inside it |
//! | [`cases`] | edge cases worked by hand under all ten profiles |
//!
//! `PROPTEST_CASES=5120 cargo test --test core -- metrics_twin` runs twenty times as many cases.

mod bounds;
mod cases;
mod exact;
mod monotone;
mod perfect;
mod recount;
mod stream;
mod values;
mod windows;

use proptest::test_runner::Config;

/// Returns a configuration with `n` cases, scaled by the number that the environment sets.
fn cases_of(n: u32) -> Config {
    let asked = Config::default();
    Config {
        cases: (asked.cases * n).div_ceil(256),
        ..asked
    }
}
