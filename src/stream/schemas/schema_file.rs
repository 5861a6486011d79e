//! Schema as a registry or a file has it: an Avro type, or a Protobuf file with its messages.

use std::path::Path;
use std::sync::Arc;

use abgauge_core::decode::framing::{Format, Framed};
use abgauge_core::decode::schema::{AvroSchema, Schema, SchemaFault};

use crate::settings::TopicFormat;

/// Type of a record within its schema.
#[derive(Debug, Clone)]
pub enum RecordType {
    Wanted(Arc<Schema>),
    /// Message that is not the wanted one.
    Other,
    /// The schema has no such message, or is of another format.
    Unusable,
}

#[derive(Debug)]
pub enum SchemaFile {
    Avro {
        schema: Arc<Schema>,
        /// Fingerprints under which clients write it.
        fingerprints: Vec<u64>,
    },
}

impl SchemaFile {
    /// Reads a file of `[schemas]`.
    ///
    /// # Errors
    /// It is not a schema of this format.
    pub fn of_file(format: Format, _path: &Path, bytes: &[u8]) -> Result<SchemaFile, SchemaFault> {
        let text = || std::str::from_utf8(bytes).map_err(|_| SchemaFault("is not text in UTF-8".to_owned()));
        match format {
            Format::Avro => SchemaFile::parse(format, text()?, &[]),
            _ => SchemaFile::parse(format, text()?, &[]),
        }
    }

    /// Parses the text of a schema, with the names and texts of the schemas that it refers to, dependencies first.
    ///
    /// # Errors
    /// It is not a schema of this format.
    pub fn parse(
        format: Format,
        text: &str,
        references: &[(String, String)],
    ) -> Result<SchemaFile, SchemaFault> {
        match format {
            Format::Avro => {
                let _texts: Vec<String> = references.iter().map(|(_, text)| text.clone()).collect();
                let schema = AvroSchema::parse(text)?;
                Ok(SchemaFile::Avro {
                    fingerprints: Vec::new(),
                    schema: Arc::new(Schema::Avro(schema)),
                })
            }
            Format::Protobuf => Err(SchemaFault("is of Protobuf, which is not read yet".to_owned())),
            Format::Json => Err(SchemaFault("is not needed for JSON".to_owned())),
        }
    }

    /// Returns the type of a framed record.
    pub fn record_type(&self, _: &Framed, topic: &TopicFormat) -> RecordType {
        match self {
            SchemaFile::Avro { schema, .. } if topic.format == Format::Avro => {
                RecordType::Wanted(Arc::clone(schema))
            }
            SchemaFile::Avro { .. } => RecordType::Unusable,
        }
    }

    pub fn format(&self) -> Format {
        match self {
            SchemaFile::Avro { .. } => Format::Avro,
        }
    }
}
