//! Settled numbers that outlive a process: the keeper, which follows the state topic; the reader of the whole topic, for tools;
//! the encoding of states; and the numbers of all instances.

mod end_questions;
mod faults;
pub mod global;
pub mod keeper;
pub mod publications;
pub mod stored;
pub mod topic_reader;
