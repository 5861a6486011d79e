//! Reader of framed records, one for each shard and topic.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use abgauge_core::decode::framing::{Format, Framed, Framing, Headers, SchemaId};
use abgauge_core::decode::schema::{RawRecord, Schema};
use abgauge_core::engine::event::{Reason, Side};
use flate2::read::ZlibDecoder;

use super::other_messages::REPORTED_AT;
use super::schema_file::RecordType;
use super::{Known, SchemaFile, Schemas};
use crate::settings::TopicFormat;

/// Bound on the record types that a reader remembers.
const MAX_REMEMBERED: usize = 4096;
/// Bound on a payload after decompression: many times the largest record that Kafka accepts by default.
const MAX_INFLATED: u64 = 64 << 20;

/// Reader of the records of one topic.
pub struct SchemaReader {
    schemas: Arc<Schemas>,
    side: Side,
    topic: TopicFormat,
    file: Option<Arc<SchemaFile>>,
    seen: HashMap<TypeKey, RecordType>,
    /// The most recent record type, which most records have too.
    last: Option<(TypeKey, RecordType)>,
    /// Number of records of messages that are not wanted.
    n_other: u64,
    /// Decompressed payload.
    inflated: Vec<u8>,
}

/// Schema, none for the one of the file, and the path of the message in it.
type TypeKey = (Option<SchemaId>, Box<[u8]>);

/// Record with the schema to read it by.
#[derive(Debug)]
pub enum Located<'a> {
    Record(RawRecord<'a>),
    Invalid(Reason),
    /// Record of a message that is not wanted.
    Ignored,
    /// Nothing can be read before this schema is known.
    Awaits(SchemaId),
}

impl SchemaReader {
    pub(super) fn new(schemas: Arc<Schemas>, side: Side) -> SchemaReader {
        SchemaReader {
            topic: schemas.formats.topics[side as usize].clone(),
            file: schemas.files[side as usize].clone(),
            schemas,
            side,
            seen: HashMap::new(),
            last: None,
            n_other: 0,
            inflated: Vec::new(),
        }
    }

    /// Finds the payload of a record, and its schema.
    #[inline]
    pub fn locate<'a>(&'a mut self, record: &'a [u8], headers: &'a dyn Headers) -> Located<'a> {
        match (self.topic.format, self.topic.framing, record.first()) {
            // No JSON begins with these bytes.
            (Format::Json, Framing::Detect, Some(0 | 3)) => self.framed_json(record, headers),
            (Format::Json, Framing::Detect | Framing::None, _) => Located::Record(record.into()),
            (Format::Json, ..) => self.framed_json(record, headers),
            (Format::Avro | Format::Protobuf, ..) => self.with_schema(record, headers),
        }
    }

    /// Returns the schema that a record names, if the registry knows it.
    pub fn named_schema(&self, record: &[u8], headers: &dyn Headers) -> Option<SchemaId> {
        let TopicFormat { format, framing, .. } = self.topic;
        let is_read = format != Format::Json && self.schemas.formats.registry.is_some();
        let framed = framing.of(format, record, headers).filter(|_| is_read)?;
        framed.id.is_of_registry().then_some(framed.id)
    }

    /// Skips the framing of JSON. Its schema is not needed.
    fn framed_json<'a>(&'a mut self, record: &'a [u8], headers: &'a dyn Headers) -> Located<'a> {
        let framing = self.topic.framing;
        match framing.of(Format::Json, record, headers) {
            Some(framed) => read(framed, None, &mut self.inflated),
            None if framing == Framing::Detect => Located::Record(record.into()),
            None => Located::Invalid(Reason::Malformed),
        }
    }

    fn with_schema<'a>(&'a mut self, record: &'a [u8], headers: &'a dyn Headers) -> Located<'a> {
        let TopicFormat { format, framing, .. } = self.topic;
        let has_registry = self.schemas.formats.registry.is_some();
        let framed = framing.of(format, record, headers).filter(|framed| {
            let is_of_registry = framed.id.is_of_registry() && has_registry;
            is_of_registry || framing != Framing::Detect || !self.is_unframed(record)
        });
        let id = match framed {
            Some(framed) if framed.id.is_of_registry() && has_registry => Some(framed.id),
            Some(framed) if !self.may_be_of_file(framed.id) => {
                return Located::Invalid(Reason::UnknownSchema);
            }
            None if !matches!(framing, Framing::Detect | Framing::None) => {
                return Located::Invalid(Reason::Malformed);
            }
            _ => None,
        };
        let framed = framed.unwrap_or_else(|| Framed::bare(record));
        let is_last = |(schema, message): &TypeKey| *schema == id && **message == *framed.message;
        if !self.last.as_ref().is_some_and(|(last, _)| is_last(last)) {
            match self.record_type((id, framed.message.into()), &framed) {
                // What the registry denies may be registered later.
                Ok((_, RecordType::Unusable)) => return Located::Invalid(Reason::UnknownSchema),
                Ok(last) => self.last = Some(last),
                Err(unknown) => return Located::Awaits(unknown),
            }
        }
        let SchemaReader { last, inflated, .. } = self;
        match last {
            Some((_, RecordType::Wanted(schema))) => read(framed, Some(schema), inflated),
            Some((_, RecordType::Other(_))) => {
                self.n_other += 1;
                if self.n_other == REPORTED_AT {
                    self.schemas.other_messages[self.side as usize].report();
                }
                Located::Ignored
            }
            Some((_, RecordType::Unusable)) | None => Located::Invalid(Reason::UnknownSchema),
        }
    }

    /// Returns whether a record that looks framed is a whole record of the file without any framing. Only Avro is ambiguous: no
    /// message of Protobuf begins with these bytes.
    fn is_unframed(&self, record: &[u8]) -> bool {
        match self.file.as_deref() {
            Some(SchemaFile::Avro { schema, .. }) => schema.passed(record) == Some(record.len()),
            _ => false,
        }
    }

    fn may_be_of_file(&self, id: SchemaId) -> bool {
        match (id, self.file.as_deref()) {
            (SchemaId::Fingerprint(id), Some(SchemaFile::Avro { fingerprints, .. })) => {
                fingerprints.contains(&id)
            }
            // Its framing does not tell whether it is another schema.
            (_, file) => file.is_some(),
        }
    }

    /// Finds the type of a record. The error is the id of a schema that is not known yet.
    #[cold]
    fn record_type(&mut self, key: TypeKey, framed: &Framed) -> Result<(TypeKey, RecordType), SchemaId> {
        if let Some(seen) = self.seen.get(&key) {
            return Ok((key, seen.clone()));
        }
        let file = match key.0 {
            None => self.file.clone(),
            Some(id) => match self.schemas.ask(id, self.topic.format) {
                None => return Err(id),
                Some(Known::Usable(file)) => Some(file),
                Some(Known::Unusable { .. }) => None,
            },
        };
        let record_type = match file {
            Some(file) => file.record_type(framed, &self.topic),
            None => RecordType::Unusable,
        };
        self.schemas.other_messages[self.side as usize].see(&record_type);
        if let RecordType::Wanted(schema) = &record_type {
            self.schemas.report_lacks(self.side, key.0, schema);
        }
        if self.seen.len() == MAX_REMEMBERED {
            self.seen.clear();
        }
        if !matches!(record_type, RecordType::Unusable) {
            self.seen.insert(key.clone(), record_type.clone());
        }
        Ok((key, record_type))
    }
}

/// Returns the record behind its framing, decompressed if needed.
#[inline]
fn read<'a>(framed: Framed<'a>, schema: Option<&'a Arc<Schema>>, inflated: &'a mut Vec<u8>) -> Located<'a> {
    let mut bytes = framed.payload;
    if framed.is_compressed {
        inflated.clear();
        let mut all = ZlibDecoder::new(bytes).take(MAX_INFLATED);
        if all.read_to_end(inflated).is_err() {
            return Located::Invalid(Reason::Malformed);
        }
        bytes = inflated;
    }
    Located::Record(RawRecord {
        bytes,
        schema: schema.map(|schema| &**schema),
    })
}
