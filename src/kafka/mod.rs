//! The one home of rdkafka.

pub mod embedded;
pub mod producer;
pub mod topics;
