//! The numbers of files and of windows against a recount of the same events by other code, and the laws that they keep.
//!
//! | module | claim |
//! |---|---|
//! | [`values`] | each value is that of a recount; neither order nor company matters; parts add up |
//! | [`bounds`], [`perfect`], [`monotone`] | what a metric cannot do: leave 0..1, miss a perfect list, reward a repeated item |
//! | [`exact`] | the fixed point is off by no more than it says |
//! | [`windows`] | a window of the board is a recount of the slots inside it |
//! | [`cases`] | odd lists, worked by hand under all ten profiles |
//!
//! `PROPTEST_CASES=5120 cargo test --test metrics_twin` tries twenty times as many.

mod bounds;
mod cases;
mod exact;
mod monotone;
mod perfect;
mod recount;
mod stream;
#[path = "../twin/mod.rs"]
mod twin;
mod values;
#[cfg(feature = "daemon")]
mod windows;

use proptest::test_runner::Config;

/// As many random cases, or as many times more or less as the environment asks for.
fn cases_of(n: u32) -> Config {
    let asked = Config::default();
    Config {
        cases: (asked.cases * n).div_ceil(256),
        ..asked
    }
}
