//! Avro and framed JSON, written by clients of four languages through a real registry and real Kafka; and faults of the registry.

mod drafts;
mod faults;
mod ledgers;
mod world;
