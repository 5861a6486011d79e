//! Avro, Protobuf and framed JSON, written by clients of four languages through a real registry and real Kafka; schemas that refer to
//! others; and faults of the registry.

mod drafts;
mod faults;
mod ledgers;
mod references;
mod world;
