//! The join, its slots and its tallies: pure and synchronous, no clock, no I/O.

pub mod event;
pub mod outcome;
pub mod ranking;
