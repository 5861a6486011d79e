//! Avro: locates the fields of a record by the schema that wrote it.
//!
//! This is our own walk over the bytes, because Avro must cost no more than JSON. It reads the values that paths lead to, skips
//! the others, and copies nothing.

mod read;
mod schema;

pub(super) use self::read::{Array, Bytes, Elements, Object, n_bytes};
pub use self::schema::{AvroSchema, SchemaFault};
pub(super) use self::schema::{Field, Type, TypeId};
