//! What the benchmarks share: the traffic, and medians.

#![allow(dead_code, reason = "each benchmark uses its own part")]

pub mod stream;
pub mod summary;
