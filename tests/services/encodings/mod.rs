//! Avro, Protobuf and framed JSON, written by clients of three languages through a real registry and real Kafka; schemas that refer to
//! others; and faults of the registry.

mod faults;
mod ledgers;
mod references;
mod world;
