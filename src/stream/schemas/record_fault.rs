//! Faults of records that settings cause, each reported once per topic, with the fix.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abgauge_core::engine::event::{Reason, Side};
use tracing::warn;

use super::SchemaFile;

/// Fault that makes a record invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// The record lacks the required framing.
    Unframed,
    /// The record names no schema, and there is no file.
    NamesNoSchema,
    /// The record names a schema of AWS Glue, and there is no file.
    OfGlue,
    /// The record names a schema of Azure Schema Registry, and there is no file.
    OfAzure,
    /// No file has the fingerprint that the record names.
    Fingerprint,
    /// The schema of the record is of another format.
    OtherFormat,
    /// The record names no message, and its schema has several.
    NamesNoMessage,
    /// The schema does not have the message that the record names.
    AbsentMessage,
    /// The record of a JSON topic has a framing, but no JSON behind it.
    FramedBinary,
    /// The record of a JSON topic is binary, and names no schema.
    Binary,
    /// The record of a topic with schemas is JSON.
    IsJson,
}

/// Faults of a topic's records that were reported.
#[derive(Debug)]
pub struct ReportedFaults {
    topic: String,
    /// Names of the settings.
    keys: Keys,
    /// A bit for each fault.
    reported: AtomicU32,
    messages: Mutex<Vec<String>>,
}

/// Settings of a topic.
#[derive(Debug, Clone, Copy)]
struct Keys {
    section: &'static str,
    schema: &'static str,
}

impl RecordFault {
    pub fn reason(self) -> Reason {
        match self {
            RecordFault::Unframed | RecordFault::IsJson => Reason::Malformed,
            RecordFault::FramedBinary | RecordFault::Binary => Reason::NotJson,
            _ => Reason::UnknownSchema,
        }
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Describes the fault and its fix. `file` is the schema that such a record names.
    fn message(self, keys: Keys, file: Option<&SchemaFile>) -> String {
        let Keys { section, schema } = keys;
        let messages = file.map(SchemaFile::message_names).unwrap_or_default();
        let (which, fix) = match self {
            RecordFault::Unframed => (
                format!("lack the framing that {section}.framing requires"),
                "set it to the framing of the records, or to \"detect\"".to_owned(),
            ),
            RecordFault::NamesNoSchema => (
                "name no schema".to_owned(),
                format!("set {schema} to the file with their schema"),
            ),
            RecordFault::OfGlue => (
                "name a schema of AWS Glue".to_owned(),
                format!("set {schema} to the file with their schema, because Glue is not queried"),
            ),
            RecordFault::OfAzure => (
                "name a schema of Azure Schema Registry".to_owned(),
                format!("set {schema} to the file with their schema, because Azure is not queried"),
            ),
            RecordFault::Fingerprint => (
                format!("have a fingerprint that does not match {schema}"),
                format!("set {schema} to the file with their schema"),
            ),
            RecordFault::OtherFormat => (
                format!("have a schema that is not in the format of {section}.format"),
                "set it to the format of the records".to_owned(),
            ),
            RecordFault::NamesNoMessage => (
                "name none of the messages of their schema".to_owned(),
                format!("set {section}.message to one of {messages}"),
            ),
            RecordFault::AbsentMessage => (
                format!("name a message other than those of their schema, {messages},"),
                format!("register the schema that they were written with, or correct {section}.message"),
            ),
            RecordFault::FramedBinary => (
                "name schemas of a registry and are not JSON".to_owned(),
                format!("set {section}.format = \"avro\" (or \"protobuf\") and registry.url"),
            ),
            RecordFault::Binary => (
                "are binary, not JSON,".to_owned(),
                format!(
                    "if they are Avro or Protobuf, set {section}.format = \"avro\" (or \"protobuf\"), and registry.url or {schema}"
                ),
            ),
            RecordFault::IsJson => (
                "are JSON, although their topic has another format,".to_owned(),
                format!("set {section}.format = \"json\""),
            ),
        };
        format!(
            "records that {which} are invalid ({}): {fix}",
            self.reason().name()
        )
    }
}

impl ReportedFaults {
    pub fn new(side: Side, topic: &str) -> ReportedFaults {
        ReportedFaults {
            topic: topic.to_owned(),
            keys: match side {
                Side::Served => Keys {
                    section: "events.served",
                    schema: "schemas.served",
                },
                Side::Clicks => Keys {
                    section: "events.click",
                    schema: "schemas.click",
                },
            },
            reported: AtomicU32::new(0),
            messages: Mutex::default(),
        }
    }

    /// Logs a fault the first time it is found.
    #[inline]
    pub fn report(&self, fault: RecordFault, file: Option<&SchemaFile>) {
        if self.reported.load(Ordering::Relaxed) & fault.bit() == 0 {
            self.log(fault, file);
        }
    }

    #[cold]
    fn log(&self, fault: RecordFault, file: Option<&SchemaFile>) {
        // Another shard may find the same fault at the same time.
        let before = self.reported.fetch_or(fault.bit(), Ordering::Relaxed);
        if before & fault.bit() == 0 {
            let message = fault.message(self.keys, file);
            warn!(topic = self.topic, "{message}");
            self.locked().push(message);
        }
    }

    /// Returns the messages about the faults so far.
    pub fn messages(&self) -> Vec<String> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<String>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
