//! Schema as a registry or a file has it: an Avro type, or a Protobuf file with its messages.

use std::sync::Arc;
use std::time::Instant;

use abgauge_core::decode::framing::{Format, Framed};
use abgauge_core::decode::schema::{AvroSchema, ProtobufFile, Schema, SchemaFault};

use super::RecordFault;
use crate::settings::TopicFormat;

/// Names in a message about a file with many of them.
const MAX_NAMES: usize = 10;

pub enum SchemaFile {
    Avro {
        schema: Arc<Schema>,
        /// Fingerprints under which clients write it.
        fingerprints: Vec<u64>,
    },
    Protobuf(ProtobufFile),
}

/// Type of a record within its schema.
#[derive(Debug, Clone)]
pub enum RecordType {
    Wanted(Arc<Schema>),
    /// Message that is not the wanted one.
    Other(Arc<Schema>),
    Faulty(RecordFault),
    /// Record with a schema that the registry denies. The reader asks again after this time.
    Denied {
        until: Instant,
    },
    /// Record with a schema that cannot be parsed. The client of the registry reports it.
    Unparsable,
}

impl RecordType {
    /// Returns whether the type may have changed.
    #[inline]
    pub fn is_outdated(&self) -> bool {
        matches!(self, RecordType::Denied { until } if *until <= Instant::now())
    }
}

impl SchemaFile {
    /// Reads a file of `[schemas]`: text, or for Protobuf also a descriptor set.
    ///
    /// # Errors
    /// It is not a schema of this format.
    pub fn of_file(format: Format, bytes: &[u8]) -> Result<SchemaFile, SchemaFault> {
        match (format, std::str::from_utf8(bytes)) {
            (_, Ok(text)) if text.trim_ascii().is_empty() => Err(SchemaFault("is empty".to_owned())),
            // A descriptor set begins with the byte 10, and may be UTF-8 by chance.
            (Format::Protobuf, Ok(text)) if bytes.first() != Some(&b'\n') || text.contains("syntax") => {
                SchemaFile::parse(format, text, &[])
            }
            (Format::Protobuf, _) => ProtobufFile::of_descriptors(bytes).map(SchemaFile::Protobuf),
            (_, Ok(text)) => SchemaFile::parse(format, text, &[]),
            (_, Err(_)) => Err(SchemaFault("is not text in UTF-8".to_owned())),
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
                let texts: Vec<String> = references.iter().map(|(_, text)| text.clone()).collect();
                let schema = AvroSchema::parse_with(text, &texts)?;
                Ok(SchemaFile::Avro {
                    fingerprints: schema.fingerprints().to_vec(),
                    schema: Arc::new(Schema::Avro(schema)),
                })
            }
            Format::Protobuf => ProtobufFile::parse(text, references).map(SchemaFile::Protobuf),
            Format::Json => Err(SchemaFault(
                "is a JSON Schema: set the format of its topic to \"json\", events.served.format or events.click.format".to_owned(),
            )),
        }
    }

    /// Returns the type of a framed record.
    pub fn record_type(&self, framed: &Framed, topic: &TopicFormat) -> RecordType {
        match self {
            SchemaFile::Avro { schema, .. } if topic.format == Format::Avro => {
                RecordType::Wanted(Arc::clone(schema))
            }
            SchemaFile::Protobuf(file) if topic.format == Format::Protobuf => message(file, framed, topic),
            SchemaFile::Avro { .. } | SchemaFile::Protobuf(_) => RecordType::Faulty(RecordFault::OtherFormat),
        }
    }

    /// Returns the names of the first messages of a Protobuf file.
    pub fn message_names(&self) -> String {
        match self {
            SchemaFile::Avro { .. } => String::new(),
            SchemaFile::Protobuf(file) => file.names().take(MAX_NAMES).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns the schema of records without framing: the Avro type, or this message, or the only one.
    pub fn schema(&self, message: Option<&str>) -> Option<&Schema> {
        match self {
            SchemaFile::Avro { schema, .. } => Some(schema),
            SchemaFile::Protobuf(file) => message
                .map_or_else(|| file.only(), |name| file.by_name(name))
                .map(|it| &**it),
        }
    }

    /// Returns why records without framing cannot be read: the setting, the problem and the remedy.
    pub fn fault(&self, message: Option<&str>) -> Option<(String, String)> {
        let SchemaFile::Protobuf(file) = self else {
            return None;
        };
        let names = self.message_names();
        match message {
            Some(message) if file.by_name(message).is_none() => Some((
                format!("the file has no message `{message}`"),
                format!("write the name of one of its messages: {names}"),
            )),
            None if file.only().is_none() => Some((
                "is not set, and the file has several messages".to_owned(),
                format!("set it to the message of the records: {names}"),
            )),
            _ => None,
        }
    }
}

/// Returns the message type that a record names, or else the configured or only one.
fn message(file: &ProtobufFile, framed: &Framed, topic: &TopicFormat) -> RecordType {
    let wanted = topic.message.as_deref().map(|name| file.by_name(name));
    let written = match (framed.message, wanted) {
        ([], Some(wanted)) => wanted,
        // The first message would be a guess, and might read the bytes of another one without an error.
        ([], None) => match file.only() {
            None => return RecordType::Faulty(RecordFault::NamesNoMessage),
            only => only,
        },
        (_, _) => match framed.message_name() {
            // Names within the file have no package.
            Some(name) => file
                .names()
                .find(|full| full.rsplit('.').next() == Some(name))
                .and_then(|full| file.by_name(full)),
            None => file.by_indexes(&framed.message_indexes()),
        },
    };
    match (written, wanted) {
        (None, _) => RecordType::Faulty(RecordFault::AbsentMessage),
        (Some(written), Some(wanted)) if !wanted.is_some_and(|wanted| Arc::ptr_eq(wanted, written)) => {
            RecordType::Other(Arc::clone(written))
        }
        (Some(written), _) => RecordType::Wanted(Arc::clone(written)),
    }
}
