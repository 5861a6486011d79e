//! The metrics once more, straight from the formulas in plain floating point: what the suites hold the engine against.
//!
//! Nothing here calls the engine's own formulas. Items are text, sets are sets, and a profile's choices are read as the
//! words that an operator writes.

#![allow(dead_code, reason = "each test binary uses its own part of the twin")]

pub mod formulas;
pub mod items;
pub mod measured;

pub use formulas::{Convention, Outcome, parts};
pub use items::Items;
