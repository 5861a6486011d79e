//! From Kafka to pairs: the client, the worker, the schemas of records, and findings about their keys and times.

pub mod bounds;
pub mod input;
pub mod kafka;
pub mod keys;
pub mod schemas;
pub mod source;
pub mod timestamps;
pub mod worker;

pub use input::{
    Answer, BatchDamage, Fault, FaultKind, GroupState, Input, Inspection, LogEnd, LogStart, OffsetState,
    Order, Question, Record, TopicCounts,
};
pub use source::{Source, queue_of};

pub use crate::settings::TopicPartition;
