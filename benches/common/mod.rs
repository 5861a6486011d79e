//! Shared parts of the benchmarks: traffic, CPU time and medians.

#![allow(dead_code, reason = "each benchmark uses its own part")]

pub mod clock;
pub mod encodings;
pub mod stream;
pub mod summary;
