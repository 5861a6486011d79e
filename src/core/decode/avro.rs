//! Avro: locates the fields of a record by the schema that wrote it.
//!
//! Our own walk over the bytes, because it must cost no more than JSON: it reads the values that paths lead to, passes the
//! others, and copies nothing.

mod read;
mod schema;

pub(super) use self::read::{Array, Bytes, Elements, Object, n_bytes};
pub use self::schema::{AvroSchema, SchemaFault};
pub(super) use self::schema::{Field, Type, TypeId};
