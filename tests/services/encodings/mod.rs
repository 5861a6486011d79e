//! Avro and framed JSON, written by clients of three languages through a real registry and real Kafka; and faults of the registry.

mod faults;
mod ledgers;
mod references;
mod world;
