//! Schemas of records that are not JSON.

mod fields;

use std::borrow::Cow;

use super::avro;
pub use super::avro::{AvroSchema, SchemaFault};
use super::protobuf;
pub use super::protobuf::{ProtobufFile, ProtobufSchema};
use super::value::{Object, Value};
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
    /// One message type of a file.
    Protobuf(ProtobufSchema),
}

impl Schema {
    pub(super) fn value<'a>(&'a self, payload: &'a [u8]) -> Result<Value<'a>, Reason> {
        match self {
            Schema::Avro(schema) => {
                let record = avro::AvroObject::of_payload(schema, payload)?;
                Ok(Value::Object(Object::Avro(record)))
            }
            Schema::Protobuf(schema) => {
                let record = protobuf::ProtobufObject::of_payload(schema, payload)?;
                Ok(Value::Object(Object::Protobuf(record)))
            }
        }
    }

    /// Returns the length in bytes of the first record; `None` if it does not fit the schema. A message has no end of its own.
    pub fn passed(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Schema::Avro(schema) => avro::n_bytes(schema, bytes),
            Schema::Protobuf(_) => Some(bytes.len()),
        }
    }
}

impl<'a> RawRecord<'a> {
    /// Returns the hash of its schema; 0 for JSON.
    pub(super) fn schema_hash(self) -> u64 {
        match self.schema {
            None => 0,
            Some(Schema::Avro(schema)) => schema.hash(),
            Some(Schema::Protobuf(schema)) => schema.hash(),
        }
    }

    /// Returns the bytes of a record with messages in parts merged; `None` if there are none.
    pub(super) fn merged(self) -> Option<Vec<u8>> {
        match self.schema {
            Some(Schema::Protobuf(schema)) => protobuf::merged(schema, self.bytes),
            Some(Schema::Avro(_)) | None => None,
        }
    }

    /// Replaces the bytes, if there are others.
    pub(super) fn with<'b>(self, bytes: Option<&'b [u8]>) -> RawRecord<'b>
    where
        'a: 'b,
    {
        RawRecord {
            bytes: bytes.unwrap_or(self.bytes),
            schema: self.schema,
        }
    }

    /// Returns the record as JSON, for explanations and drafts.
    pub fn to_json(self) -> Cow<'a, [u8]> {
        match self.schema {
            None => Cow::Borrowed(self.bytes),
            Some(schema) => {
                let merged = self.merged();
                let json = schema
                    .value(merged.as_deref().unwrap_or(self.bytes))
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
