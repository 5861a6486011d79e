//! From Kafka to pairs: the client, the worker, and findings about keys and times of records.

pub mod bounds;
pub mod input;
pub mod kafka;
pub mod keys;
pub mod source;
pub mod timestamps;
pub mod worker;

pub use input::{
    Answer, BatchDamage, Fault, FaultKind, GroupState, Input, Inspection, LogEnd, LogStart, OffsetState,
    Order, Question, Record, TopicCounts,
};
pub use source::{Source, queue_of};

pub use crate::settings::TopicPartition;
