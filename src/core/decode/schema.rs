//! Schemas of records that are not JSON.

use std::borrow::Cow;

use super::avro;
pub use super::avro::{AvroSchema, SchemaFault};
use super::value::Value;
use crate::engine::event::Reason;

/// Bytes of a record, and the schema with which they were written.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'a> {
    pub bytes: &'a [u8],
    /// `None` for JSON.
    pub schema: Option<&'a Schema>,
}

/// Schema with which a record was written.
#[derive(Debug)]
pub enum Schema {
    Avro(AvroSchema),
}

impl Schema {
    pub(super) fn value<'a>(&'a self, payload: &'a [u8]) -> Result<Value<'a>, Reason> {
        match self {
            Schema::Avro(schema) => avro::AvroObject::of_payload(schema, payload).map(Value::Object),
        }
    }

    /// Returns the length in bytes of the first record; `None` if it does not fit the schema.
    pub fn passed(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Schema::Avro(schema) => avro::n_bytes(schema, bytes),
        }
    }
}

impl<'a> RawRecord<'a> {
    /// Returns the hash of its schema; 0 for JSON.
    pub(super) fn schema_hash(self) -> u64 {
        match self.schema {
            None => 0,
            Some(Schema::Avro(schema)) => schema.hash(),
        }
    }

    /// Returns the record as JSON, for explanations and drafts.
    pub fn to_json(self) -> Cow<'a, [u8]> {
        match self.schema {
            None => Cow::Borrowed(self.bytes),
            Some(schema) => {
                let json = schema
                    .value(self.bytes)
                    .map(|record| record.to_json().into_bytes());
                Cow::Owned(json.unwrap_or_default())
            }
        }
    }
}

impl<'a> From<&'a [u8]> for RawRecord<'a> {
    fn from(bytes: &'a [u8]) -> RawRecord<'a> {
        RawRecord { bytes, schema: None }
    }
}
