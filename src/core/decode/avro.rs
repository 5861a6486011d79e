//! Avro: locates the fields of a record by the schema that wrote it.
//!
//! This is our own walk over the bytes, because Avro must cost no more than JSON. It reads the values that paths lead to, skips
//! the others, and copies nothing.

mod fingerprint;
mod names;
mod read;
mod schema;

pub(super) use self::read::{AvroArray, AvroBytes, AvroElements, AvroObject, n_bytes};
pub(super) use self::schema::{AvroField, AvroType, TypeId};
pub use self::schema::{AvroSchema, SchemaFault};
