//! What comes from Kafka: bytes to events, and what the keys of records tell about their producers.

pub mod input;
pub mod keys;
pub mod wire;

pub use input::{
    Answer, Fault, FaultKind, Input, LogEnd, LogStart, Order, Question, Record, TopicCounts, TopicPartition,
};
