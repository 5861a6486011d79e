//! Checks of comparisons through the production code: simulated traffic, the join, the ledger and looks.
//!
//! ```text
//! Scenario ─▶ Traffic ─▶ Batch ─▶ PairTracker ─▶ cells ─┬▶ Watch: one setting, all looks ─▶ result of a run
//!                                                       └▶ …  (the same cells for each)
//! ```
//! A [`Row`] of the table runs its scenario under many seeds. Each of its figures is a share or a median over the runs.

#![allow(dead_code, reason = "the benchmark and the tests each use their own part")]

pub mod feed;
pub mod row;
pub mod rows;
pub mod scenario;
pub mod watch;

pub use row::Row;
pub use scenario::Scale;
