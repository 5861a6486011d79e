//! Settled numbers that outlive a process: who stores them, what is stored, and the numbers of all instances.

pub mod global;
pub mod keeper;
pub mod stored;
