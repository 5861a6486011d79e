//! The join, its slots and its tallies: pure and synchronous, no clock, no I/O.

mod arms;
pub mod catalogue;
mod checkpoint;
mod chunks;
mod clicks;
pub mod contributions;
mod copies;
pub mod coverage;
pub mod event;
mod first_clicks;
mod index;
mod join;
mod lists;
mod open_events;
mod open_list;
pub mod outcome;
mod partial_ids;
mod prefetch;
pub mod ranking;
mod repeats;
mod replay;
pub mod settling;
mod shared_id;
mod shown;
mod store;
pub mod tally;
pub mod watermark;
pub mod window;

pub use arms::{Arm, ArmId, OTHER};
pub use checkpoint::{Accepted, Checkpoint, LogCheckpoint, ResumeError};
pub use copies::{Copied, CopiesCheckpoint, CopiesReach, Refusal};
pub use join::{Changes, Engine, Rules};
pub use lists::ArmInSlot;
pub use open_events::{Digest, ResumePoint};
pub use replay::Replayed;
pub use shown::ShownLists;
