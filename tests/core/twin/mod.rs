//! A second implementation of the metrics, straight from the formulas in floating point, which tests compare with the engine.
//!
//! None of it calls the engine's own formulas. Items are strings, sets are sets, and a profile's choices are the words that
//! an operator writes.

#![allow(dead_code, reason = "each test binary uses its own part of the twin")]

pub mod formulas;
pub mod items;
pub mod measured;

pub use formulas::{Convention, Outcome, parts};
pub use items::Items;
