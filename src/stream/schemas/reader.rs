//! Reader of framed records, one for each shard and topic.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abgauge_core::decode::framing::{Format, Framed, Framing, Headers, SchemaId};
use abgauge_core::decode::schema::{RawRecord, Schema};
use abgauge_core::engine::event::{Reason, Side};
use flate2::read::ZlibDecoder;

use super::other_messages::REPORTED_AT;
use super::schema_file::RecordType;
use super::{Known, RecordFault, SchemaFile, Schemas};
use crate::settings::TopicFormat;

/// Bound on the record types that a reader remembers.
const MAX_REMEMBERED: usize = 4096;
/// Time for which a reader remembers that the registry denies a schema. Checking again takes a lock.
const ASK_AGAIN: Duration = Duration::from_secs(1);
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
    /// The most recent schema that was requested ahead of its records.
    asked_ahead: Option<SchemaId>,
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
            asked_ahead: None,
            inflated: Vec::new(),
        }
    }

    /// Returns whether a record is JSON without framing, as most are: its bytes are decoded as they are.
    #[inline]
    pub fn is_plain_json(&self, record: &[u8]) -> bool {
        match (self.topic.format, self.topic.framing) {
            // No other format or framing starts with these bytes.
            (Format::Json, Framing::Detect) => record.first().is_none_or(|first| starts_text(*first)),
            (Format::Json, Framing::None) => true,
            _ => false,
        }
    }

    /// Finds the payload of a record, and its schema.
    pub fn locate<'a>(&'a mut self, record: &'a [u8], headers: &'a dyn Headers) -> Located<'a> {
        if self.is_plain_json(record) {
            return Located::Record(record.into());
        }
        match (self.topic.format, self.topic.framing, record.first()) {
            // No JSON starts with these bytes.
            (Format::Json, Framing::Detect, Some(0 | 3)) => self.framed_json(record, headers),
            (Format::Json, Framing::Detect, _) => self.binary(record, headers),
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

    /// Requests the schema of a record that is read later.
    pub fn ask_ahead(&mut self, record: &[u8], headers: &dyn Headers) {
        let id = self.named_schema(record, headers);
        if let Some(id) = id.filter(|_| id != self.asked_ahead) {
            self.asked_ahead = Some(id);
            self.schemas.ask_ahead(id, self.topic.format);
        }
    }

    /// Skips the framing of JSON. Its schema is not needed.
    fn framed_json<'a>(&'a mut self, record: &'a [u8], headers: &'a dyn Headers) -> Located<'a> {
        let framing = self.topic.framing;
        match framing.of(Format::Json, record, headers) {
            Some(framed) => {
                if !framed.is_compressed && framed.payload.first().is_some_and(|first| !starts_text(*first)) {
                    self.report(RecordFault::FramedBinary);
                }
                read(framed, None, &mut self.inflated)
            }
            None if framing == Framing::Detect => self.binary(record, headers),
            None => self.faulty(RecordFault::Unframed),
        }
    }

    /// Reports a record that is not JSON, because it is binary. Avro may start with any byte, and have its schema in a header.
    #[cold]
    fn binary<'a>(&self, record: &'a [u8], headers: &dyn Headers) -> Located<'a> {
        self.report(match Framing::Detect.of(Format::Avro, record, headers) {
            Some(_) => RecordFault::FramedBinary,
            None => RecordFault::Binary,
        });
        Located::Record(record.into()) // The decoder refuses it.
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
            Some(framed) => match self.fault_of_file(framed.id) {
                Some(fault) => return self.faulty(fault),
                None => None,
            },
            None if is_json_object(record) => return self.faulty(RecordFault::IsJson),
            None if !matches!(framing, Framing::Detect | Framing::None) => {
                return self.faulty(RecordFault::Unframed);
            }
            None => None,
        };
        let framed = framed.unwrap_or_else(|| Framed::bare(record));
        let is_current = |((schema, message), record_type): &(TypeKey, RecordType)| {
            *schema == id && **message == *framed.message && !record_type.is_outdated()
        };
        if !self.last.as_ref().is_some_and(is_current) {
            match self.record_type((id, framed.message.into()), &framed) {
                Ok(last) => self.last = Some(last),
                Err(unknown) => return Located::Awaits(unknown),
            }
        }
        // The bytes that look like an id are the start of a record without framing.
        let is_denied = matches!(self.last, Some((_, RecordType::Denied { .. })));
        if is_denied && framing == Framing::Detect && self.is_unframed(record) {
            return self.by_file(record);
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
            Some((_, RecordType::Faulty(fault))) => Located::Invalid(fault.reason()),
            Some((_, RecordType::Denied { .. } | RecordType::Unparsable)) | None => {
                Located::Invalid(Reason::UnknownSchema)
            }
        }
    }

    /// Reports a fault of a record, which is invalid because of it.
    fn faulty(&self, fault: RecordFault) -> Located<'static> {
        self.report(fault);
        Located::Invalid(fault.reason())
    }

    fn report(&self, fault: RecordFault) {
        self.schemas.faults[self.side as usize].report(fault, self.file.as_deref());
    }

    /// Returns whether a record that looks framed is a whole record of the file without any framing. Only Avro is ambiguous: no
    /// message of Protobuf begins with these bytes.
    fn is_unframed(&self, record: &[u8]) -> bool {
        match self.file.as_deref() {
            Some(SchemaFile::Avro { schema, .. }) => schema.passed(record) == Some(record.len()),
            _ => false,
        }
    }

    /// Reads a whole record with the schema of the file.
    fn by_file<'a>(&'a self, record: &'a [u8]) -> Located<'a> {
        match self.file.as_deref() {
            Some(SchemaFile::Avro { schema, .. }) => Located::Record(RawRecord {
                bytes: record,
                schema: Some(schema),
            }),
            _ => Located::Invalid(Reason::UnknownSchema),
        }
    }

    /// Returns why the file cannot have the schema with this id.
    fn fault_of_file(&self, id: SchemaId) -> Option<RecordFault> {
        match (id, self.file.as_deref()) {
            (SchemaId::Fingerprint(id), Some(SchemaFile::Avro { fingerprints, .. })) => {
                (!fingerprints.contains(&id)).then_some(RecordFault::Fingerprint)
            }
            (SchemaId::Fingerprint(_), None) => Some(RecordFault::Fingerprint),
            (SchemaId::Glue(_), None) => Some(RecordFault::OfGlue),
            (SchemaId::Azure(_), None) => Some(RecordFault::OfAzure),
            // Its framing does not tell whether it is another schema.
            _ => None,
        }
    }

    /// Finds the type of a record. The error is the id of a schema that is not known yet.
    #[cold]
    fn record_type(&mut self, key: TypeKey, framed: &Framed) -> Result<(TypeKey, RecordType), SchemaId> {
        if let Some(seen) = self.seen.get(&key).filter(|seen| !seen.is_outdated()) {
            return Ok((key, seen.clone()));
        }
        let known = match (key.0, &self.file) {
            (None, Some(file)) => Known::Usable(Arc::clone(file)),
            (None, None) => {
                let fault = RecordFault::NamesNoSchema;
                self.faulty(fault);
                return Ok((key, RecordType::Faulty(fault)));
            }
            (Some(id), _) => self.schemas.ask(id, self.topic.format).ok_or(id)?,
        };
        let record_type = match known {
            Known::Usable(file) => {
                let record_type = file.record_type(framed, &self.topic);
                match &record_type {
                    RecordType::Wanted(schema) => self.schemas.report_lacks(self.side, key.0, schema),
                    RecordType::Faulty(fault) => {
                        self.schemas.faults[self.side as usize].report(*fault, Some(&file));
                    }
                    _ => {}
                }
                record_type
            }
            Known::Unusable { until: None, .. } => RecordType::Unparsable,
            // A denied schema may be registered later.
            Known::Unusable { until: Some(_), .. } => RecordType::Denied {
                until: Instant::now() + ASK_AGAIN,
            },
        };
        self.schemas.other_messages[self.side as usize].see(&record_type);
        if self.seen.len() == MAX_REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(key.clone(), record_type.clone());
        Ok((key, record_type))
    }
}

/// Returns whether text can start with this byte. `EF` starts a byte order mark.
fn starts_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0xef)
}

/// Returns whether a record is a JSON object. Records of other formats hardly ever have its first and last byte.
fn is_json_object(record: &[u8]) -> bool {
    let is_braced = record.first() == Some(&b'{') && record.trim_ascii_end().last() == Some(&b'}');
    is_braced && serde_json::from_slice::<serde::de::IgnoredAny>(record).is_ok()
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
