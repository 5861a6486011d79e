//! What comes from Kafka: bytes to events, and what the keys of records tell about their producers.

pub mod catalogue;
#[cfg(feature = "daemon")]
pub mod input;
#[cfg(feature = "daemon")]
pub mod keys;
#[cfg(feature = "daemon")]
pub mod skips;
#[cfg(feature = "daemon")]
pub mod source;
#[cfg(feature = "daemon")]
pub mod timestamps;
pub mod wire;

#[cfg(feature = "daemon")]
pub use input::{
    Answer, Damage, Fault, FaultKind, GroupState, Input, Inspection, LogEnd, LogStart, OffsetState, Order,
    Question, Record, TopicCounts, TopicPartition,
};
#[cfg(feature = "daemon")]
pub use source::{Source, queue_of};
