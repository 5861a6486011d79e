//! Settled numbers that outlive a process: their keeper, their stored form, and the numbers of all instances.

pub mod global;
pub mod keeper;
pub mod stored;
