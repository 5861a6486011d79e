//! Kafka clients. Only this module uses rdkafka.

mod answering;
mod batches;
mod callbacks;
mod client;
pub mod consumer;
pub mod dead_letters;
mod descriptions;
pub mod embedded;
mod group;
pub mod inspect;
mod names;
mod probe;
pub mod producer;
pub mod properties;
mod queue;
pub mod state_log;
pub mod topics;

/// Returns the version of librdkafka.
pub fn client_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}
