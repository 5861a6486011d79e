//! What comes from Kafka: bytes to events, and what the keys of records tell about their producers.

pub mod keys;
pub mod wire;
