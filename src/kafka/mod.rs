//! The one home of rdkafka.

pub mod producer;
pub mod topics;
