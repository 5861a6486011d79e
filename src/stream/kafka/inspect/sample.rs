//! Sample of the last records of a topic: how they are keyed, and whether they are readable.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::framing::{Headers, SchemaId};
use abgauge_core::engine::event::{Batch, Body, Event, Kind, Position, Reason, Side};
use abgauge_core::engine::float_times::FloatTimes;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::{Offset, TopicPartitionList};

use super::{Asker, Failure, Trouble};
use crate::clock::Clock;
use crate::settings::{Config, UnusableFile};
use crate::stream::keys::KeyAudit;
use crate::stream::schemas::{Located, RegistryClient, SchemaReader, Schemas};

/// Size of a sample, divided evenly among the partitions with records. With two partitions, half of the records reveal the
/// partitioner.
const N_RECORDS: i64 = 600;
/// Maximum time for reading. Whatever has arrived by then is the sample.
const WITHIN: Duration = Duration::from_secs(5);
/// Maximum silence while a whole topic is read.
const SILENCE: Duration = Duration::from_secs(60);

/// Condition for giving up reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCondition {
    /// After some seconds, with whatever has arrived.
    Seconds,
    /// After a long silence.
    Silence,
}

/// Completeness of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadCompleteness {
    /// Up to the ends, or as far as requested.
    All,
    Part,
}

#[derive(Debug)]
pub struct Sample {
    pub n_records: u64,
    pub keys: KeyAudit,
    pub unreadable: BTreeMap<Reason, u64>,
    /// Number of records whose schema could not be fetched.
    pub n_without_schema: u64,
    /// Records of another `type`.
    pub n_ignored: u64,
    /// Number of records of a message that is not wanted.
    pub n_other_messages: u64,
    /// Sentence that names the messages of the records, if none has the wanted one.
    pub other_messages: Option<String>,
    pub times: FloatTimes,
    /// Reason why the registry gave no answer.
    pub registry_failure: Option<String>,
    /// Schemas that the records name.
    pub schemas: BTreeMap<SchemaId, SchemaUse>,
    /// Reasons why records do not fit the settings of their encoding, each with the fix.
    pub record_faults: Vec<String>,
}

/// Records of a sample with one schema.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SchemaUse {
    pub n_records: u64,
    /// Reason why records with this schema cannot be read.
    pub problem: Option<String>,
    /// Settings and paths that need a field which it does not have.
    pub lacks: Vec<String>,
    /// Fields that it has, if it lacks some.
    pub has: Vec<String>,
}

/// Means to read the records of a sample.
pub struct SampleReader {
    decoder: Decoder,
    /// Kind of records without a `type`.
    topic_kind: Option<Kind>,
    side: Side,
    schemas: Arc<Schemas>,
    framing: SchemaReader,
    registry: Option<RegistryClient>,
    /// Failure of the registry. No further schema is requested, because each request would fail.
    failure: Option<String>,
}

impl SampleReader {
    /// Makes a reader for a topic.
    ///
    /// # Errors
    /// A file of `[registry]` or `[schemas]` cannot be used.
    pub fn new(config: &Config, side: Side, topic_kind: Option<Kind>) -> Result<SampleReader, UnusableFile> {
        let schemas = Arc::new(Schemas::open(config)?);
        Ok(SampleReader {
            decoder: config.join.decoder().reading(config.events.as_ref()),
            topic_kind,
            side,
            framing: schemas.reader(side),
            // One denial is enough for a report.
            registry: RegistryClient::open(&schemas)?.map(|client| client.denying_after(Duration::ZERO)),
            failure: None,
            schemas,
        })
    }

    /// Returns a record as JSON, or the reason why it cannot be read.
    ///
    /// # Errors
    /// The schema of the record is not known, or its bytes do not fit the schema.
    pub fn json(&mut self, payload: &[u8], headers: &dyn Headers) -> Result<Vec<u8>, String> {
        let named = self.fetch(payload, headers);
        let unusable = named.and_then(|(id, problem)| Some(format!("schema {id}: {}", problem?)));
        let unreadable = |reason: Reason| unusable.unwrap_or_else(|| reason.name().to_owned());
        match self.framing.locate(payload, headers) {
            Located::Record(raw) => match raw.to_json().into_owned() {
                json if json.is_empty() => Err(unreadable(Reason::Malformed)),
                json => Ok(json),
            },
            Located::Ignored => Err("they have another message".to_owned()),
            Located::Invalid(reason) => Err(unreadable(reason)),
            Located::Awaits(_) => Err(unreadable(Reason::UnknownSchema)),
        }
    }

    /// Fetches the schema that a record names, if it is not known. Returns its id, and the reason if it cannot be used.
    fn fetch(&mut self, payload: &[u8], headers: &dyn Headers) -> Option<(SchemaId, Option<String>)> {
        let id = self.framing.named_schema(payload, headers)?;
        // The reader asks for the schema, so that the client fetches it.
        self.framing.locate(payload, headers);
        Some((id, self.problem(id)))
    }

    fn problem(&mut self, id: SchemaId) -> Option<String> {
        if self.schemas.is_known(id) {
            return self.schemas.fault(id);
        }
        if self.failure.is_some() {
            // Only the schema that was requested has a problem of its own.
            let own = self.schemas.problem(id);
            return Some(own.unwrap_or_else(|| "not requested, because the registry failed".to_owned()));
        }
        let fetched = self.registry.as_mut()?.fetch_once();
        let failure = fetched.err().map(|error| format!("{error:#}"));
        self.failure = failure.or_else(|| self.schemas.problem(id));
        self.failure.clone().or_else(|| self.schemas.fault(id))
    }
}

impl Sample {
    pub fn new(topic: &str, n_partitions: NonZeroU32) -> Sample {
        Sample {
            n_records: 0,
            keys: KeyAudit::new(topic, n_partitions),
            unreadable: BTreeMap::new(),
            n_without_schema: 0,
            n_ignored: 0,
            n_other_messages: 0,
            other_messages: None,
            times: FloatTimes::default(),
            registry_failure: None,
            schemas: BTreeMap::new(),
            record_faults: Vec::new(),
        }
    }

    /// Adds a record of a topic.
    pub fn take(
        &mut self,
        reader: &mut SampleReader,
        partition: i32,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
        headers: &dyn Headers,
    ) {
        self.n_records += 1;
        self.keys.observe(key, partition);
        // The result does not depend on the position.
        let at = Position {
            side: Side::Served,
            offset: 0,
            record_ts_ms: 0,
        };
        let mut batch = Batch::default();
        let named = payload.and_then(|payload| reader.fetch(payload, headers));
        let mut of_schema = named.map(|(id, problem)| {
            let of_schema = self.schemas.entry(id).or_default();
            of_schema.n_records += 1;
            of_schema.problem = problem;
            of_schema
        });
        let located = payload.map(|payload| reader.framing.locate(payload, headers));
        let invalid = |reason| Event::new(at, Body::Invalid(reason, None));
        match located {
            None => reader.decoder.decode(None, reader.topic_kind, at, &mut batch),
            Some(Located::Record(raw)) => {
                if let (Some(of_schema), Some(schema)) = (&mut of_schema, raw.schema) {
                    of_schema.lacks = reader.schemas.lacks(reader.side, schema);
                    if !of_schema.lacks.is_empty() {
                        of_schema.has = schema.field_paths();
                    }
                }
                reader.decoder.decode_raw(raw, reader.topic_kind, at, &mut batch);
            }
            Some(Located::Invalid(reason)) => {
                if let (Some(of_schema), Reason::UnknownSchema) = (&mut of_schema, reason) {
                    let other = || "it has another format, or lacks the message of these records".to_owned();
                    of_schema.problem.get_or_insert_with(other);
                }
                batch.events.push(invalid(reason));
            }
            Some(Located::Ignored) => self.n_other_messages += 1,
            Some(Located::Awaits(_)) => self.n_without_schema += 1,
        }
        self.other_messages = reader.schemas.other_messages(reader.side);
        self.registry_failure.clone_from(&reader.failure);
        self.record_faults = reader.schemas.record_faults(reader.side);
        if batch.events.is_empty() {
            return;
        }
        for event in &batch.events {
            match &event.body {
                Body::Served(list) => self.times.see(list.ts_ms),
                Body::Click(click) | Body::PartialClick(click) => self.times.see(click.ts_ms),
                Body::Invalid(..) | Body::Ignored | Body::Skipped => {}
            }
        }
        match batch.first_reason(0) {
            Some(reason) => *self.unreadable.entry(reason).or_default() += 1,
            None if batch.events.iter().all(|event| event.body == Body::Ignored) => self.n_ignored += 1,
            None => {}
        }
    }
}

impl Asker {
    pub(super) fn sample(
        &self,
        reader: &mut SampleReader,
        topic: &str,
        n_partitions: NonZeroU32,
    ) -> Result<Sample, Failure> {
        let begins = self.offsets(topic, n_partitions, Offset::Beginning)?;
        let ends = self.offsets(topic, n_partitions, Offset::End)?;
        let starts = starts(&begins, &ends, N_RECORDS);
        let mut sample = Sample::new(topic, n_partitions);
        if starts.is_empty() {
            return Ok(sample);
        }
        self.read(topic, &starts, &ends, StopCondition::Seconds, |record| {
            let (key, payload) = (record.key(), record.payload());
            sample.take(reader, record.partition(), key, payload, &RecordHeaders(record));
            true
        })?;
        Ok(sample)
    }

    /// Passes the records from `starts` up to `ends` to `take`, until it returns that it has enough.
    pub(super) fn read(
        &self,
        topic: &str,
        starts: &BTreeMap<i32, i64>,
        ends: &[i64],
        patience: StopCondition,
        mut take: impl FnMut(&BorrowedMessage) -> bool,
    ) -> Result<ReadCompleteness, Failure> {
        let _assigned = self.assign(topic, starts)?;
        let mut open: BTreeSet<i32> = starts.keys().copied().collect();
        let mut n_taken = 0;
        let clock = Clock::system();
        let mut give_up = match patience {
            StopCondition::Seconds => WITHIN,
            StopCondition::Silence => SILENCE,
        };
        while !open.is_empty() && clock.uptime() < give_up {
            let partition = match self.consumer.poll(Duration::from_millis(100)) {
                None => continue,
                Some(Ok(record)) => {
                    let (partition, offset) = (record.partition(), record.offset());
                    let end = ends.get(partition.cast_unsigned() as usize).copied().unwrap_or(0);
                    if offset < end {
                        n_taken += 1;
                        if !take(&record) {
                            return Ok(ReadCompleteness::All);
                        }
                        // Each record extends the time, so that only silence ends the read.
                        if patience == StopCondition::Silence {
                            give_up = clock.uptime() + SILENCE;
                        }
                    }
                    if offset + 1 < end {
                        continue;
                    }
                    partition
                }
                // The last records may be transaction markers, which the client does not pass on.
                Some(Err(KafkaError::PartitionEOF(partition))) => partition,
                Some(Err(error)) => match Failure::of(&error, "") {
                    failure if failure.trouble == Trouble::TopicForbidden => return Err(failure),
                    _ => continue, // The client retries, and complaints are kept.
                },
            };
            open.remove(&partition);
        }
        // A part of the sample is enough to judge, but no record at all is a failure.
        if n_taken == 0 && !open.is_empty() && patience == StopCondition::Seconds {
            let silence = || Failure::new(Trouble::Unreachable, "no record came within 5 s");
            return Err(self.consumer.context().most_specific().unwrap_or_else(silence));
        }
        Ok(match open.is_empty() {
            true => ReadCompleteness::All,
            false => ReadCompleteness::Part,
        })
    }

    fn assign(&self, topic: &str, starts: &BTreeMap<i32, i64>) -> Result<Assigned<'_>, Failure> {
        let mut list = TopicPartitionList::new();
        let added = starts.iter().try_for_each(|(partition, start)| {
            list.add_partition_offset(topic, *partition, Offset::Offset(*start))
        });
        added
            .and_then(|()| self.consumer.assign(&list))
            .map_err(|error| Failure::of(&error, ""))?;
        Ok(Assigned(self))
    }
}

/// Headers of a record.
pub(super) struct RecordHeaders<'a>(pub &'a BorrowedMessage<'a>);

impl Headers for RecordHeaders<'_> {
    fn last(&self, name: &CStr) -> Option<&[u8]> {
        let headers = self.0.headers()?;
        let mut newest_first = (0..headers.count()).rev().map(|n| headers.get(n));
        newest_first
            .find(|header| header.key.as_bytes() == name.to_bytes())?
            .value
    }
}

impl fmt::Debug for RecordHeaders<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "headers at offset {}", self.0.offset())
    }
}

/// Assignment that is revoked when dropped, so that later polls see no record.
struct Assigned<'a>(&'a Asker);

impl Drop for Assigned<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.consumer.unassign() {
            tracing::debug!(%error, "could not give the sampled partitions back");
        }
    }
}

/// Returns where to start reading each partition with records, to read up to `n_records` in all.
pub(super) fn starts(begins: &[i64], ends: &[i64], n_records: i64) -> BTreeMap<i32, i64> {
    let filled: Vec<_> = (0..)
        .zip(begins.iter().zip(ends))
        .filter(|(_, (begin, end))| begin < end)
        .collect();
    let each = (n_records / (filled.len() as i64).max(1)).max(1);
    filled
        .into_iter()
        .map(|(partition, (begin, end))| (partition, (*begin).max(end - each)))
        .collect()
}
