//! Settled numbers that outlive a process: their keeper, which follows the state topic; their stored form; and the numbers of all
//! instances.

pub mod global;
pub mod keeper;
pub mod publications;
pub mod stored;
