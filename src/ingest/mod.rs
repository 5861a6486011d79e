//! Input from Kafka: decoding of records, and findings about the keys that producers use.

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
