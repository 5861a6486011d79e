//! Shard: a part of the pairs and the queue of their records, used by one thread at a time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::framing::SchemaId;
use abgauge_core::engine::event::{Batch, Body, Event, Kind, Position, Reason, Side};

use super::phase::Phase;
use crate::settings::skips::range_at;
use crate::stream::keys::{KeySample, KeySampler};
use crate::stream::schemas::{Located, SchemaReader, Schemas};
use crate::stream::{Input, Record, Source, TopicPartition};

/// Receiver of unreadable records, which never blocks.
pub type DeadLetterSink = Arc<dyn Fn(&Record, Reason) + Send + Sync>;

pub struct Shard {
    source: Box<dyn Source>,
    reader: RecordReader,
    news: ShardReport,
}

/// Report of a shard to the worker after reading.
#[derive(Debug, Default)]
pub struct ShardReport {
    pub n_records: usize,
    pub unreadable: Vec<UnreadableRecord>,
    /// Inputs other than records.
    pub inputs: Vec<Input>,
    /// Samples of the keys, by topic.
    pub keys: Vec<Vec<KeySample>>,
}

/// Record that cannot be read.
#[derive(Debug, Clone, Copy)]
pub struct UnreadableRecord {
    pub at: TopicPartition,
    pub offset: i64,
    pub reason: Reason,
}

/// Reader that decodes records and applies them to their pairs.
struct RecordReader {
    decoder: Decoder,
    /// Readers of the framing, by `Side as usize`.
    schemas: [SchemaReader; 2],
    /// Kind of the records in each topic, by `Side as usize`; `None` if both kinds share one.
    topic_kinds: [Option<Kind>; 2],
    dead_letters: Option<DeadLetterSink>,
    /// Pairs of this shard, read or not.
    pairs: BTreeMap<i32, Phase>,
    /// Samplers, one for each topic, once the topics are known.
    samplers: Vec<KeySampler>,
    /// Decoded records that are not applied yet; empty between two slices.
    batch: Batch,
    unreadable: Vec<UnreadableRecord>,
    /// Bytes by which all states together may still grow.
    free_bytes: u64,
}

impl Shard {
    pub fn new(source: Box<dyn Source>, decoder: Decoder, schemas: &Arc<Schemas>, one_topic: bool) -> Shard {
        let topic_kinds = [Kind::Served, Kind::Click].map(|kind| (!one_topic).then_some(kind));
        Shard {
            source,
            reader: RecordReader {
                decoder,
                schemas: Side::BOTH.map(|side| schemas.reader(side)),
                topic_kinds,
                dead_letters: None,
                pairs: BTreeMap::new(),
                samplers: Vec::new(),
                batch: Batch::default(),
                unreadable: Vec::new(),
                free_bytes: 0,
            },
            news: ShardReport::default(),
        }
    }

    pub fn set_dead_letters(&mut self, dead_letters: Option<DeadLetterSink>) {
        self.reader.dead_letters = dead_letters;
    }

    pub fn set_samplers(&mut self, samplers: Vec<KeySampler>) {
        self.reader.samplers = samplers;
    }

    #[cfg(test)]
    pub fn set_source(&mut self, source: Box<dyn Source>) {
        self.source = source;
    }

    pub fn phases(&self) -> &BTreeMap<i32, Phase> {
        &self.reader.pairs
    }

    pub fn phases_mut(&mut self) -> &mut BTreeMap<i32, Phase> {
        &mut self.reader.pairs
    }

    pub fn n_waiting(&self) -> usize {
        self.source.n_waiting()
    }

    /// Processes waiting records, at most a batch, while its pairs' states grow by no more than `free_bytes`. Returns the
    /// bytes that are left.
    pub fn read(&mut self, free_bytes: u64) -> u64 {
        let Shard { source, reader, news } = self;
        reader.free_bytes = free_bytes;
        news.n_records += source.read(&mut |records| reader.take(records), &mut news.inputs);
        reader.free_bytes
    }

    /// Returns whether an input arrived that the worker must handle before more is read.
    pub fn has_inputs(&self) -> bool {
        !self.news.inputs.is_empty()
    }

    /// Returns the news since the last call.
    pub fn take_news(&mut self) -> ShardReport {
        let mut news = std::mem::take(&mut self.news);
        news.unreadable = std::mem::take(&mut self.reader.unreadable);
        news.keys = self.reader.samplers.iter_mut().map(KeySampler::take).collect();
        news
    }
}

impl RecordReader {
    /// Processes records of one partition of one topic.
    fn take(&mut self, records: &[Record]) {
        let Some(&Record { side, partition, .. }) = records.first() else {
            return;
        };
        // Records fetched before a revocation or a hold may arrive after it. They are not counted.
        let pair = self.pairs.get_mut(&partition).and_then(Phase::reading_mut);
        let Some(pair) = pair else { return };
        if pair.is_held() {
            // They are read again. Their schemas are fetched meanwhile.
            return self.ask_for_schemas(side, records);
        }
        let Some(log) = pair.log(side) else { return };
        // Records that are fetched again after a pause have been counted already.
        let n_counted = records.partition_point(|record| record.offset < log.position);
        let records = &records[n_counted..];
        let Some(last) = records.last() else { return };
        // `skips` is almost always empty.
        let skips = log.skips_within(&(records[0].offset..=last.offset));
        // Keys are sampled from all records, readable or not.
        if let Some(sampler) = self.samplers.get_mut(side as usize) {
            sampler.observe(records.len(), partition, |place| records[place].key);
        }
        let awaited = self.decode(side, records, &skips);
        let next = awaited.map_or(last.offset + 1, |(n_read, _)| records[n_read].offset);
        self.apply(partition, side, next);
        if let Some((n_read, schema)) = awaited {
            let pair = self.pairs.get_mut(&partition).and_then(Phase::reading_mut);
            pair.into_iter()
                .for_each(|pair| pair.hold_for_schema(side, next, schema));
            self.ask_for_schemas(side, &records[n_read..]);
        }
    }

    /// Asks for the schemas of records that are not read yet.
    fn ask_for_schemas(&mut self, side: Side, records: &[Record]) {
        for record in records {
            if let Some(payload) = record.payload {
                self.schemas[side as usize].ask_ahead(payload, record.headers);
            }
        }
    }

    /// Decodes records, up to the first one whose schema is not known. Returns its place and the id of the schema.
    fn decode(
        &mut self,
        side: Side,
        records: &[Record],
        skips: &[RangeInclusive<i64>],
    ) -> Option<(usize, SchemaId)> {
        let topic_kind = self.topic_kinds[side as usize];
        for (n_read, record) in records.iter().enumerate() {
            let at = Position {
                side,
                offset: record.offset,
                record_ts_ms: record.timestamp_ms,
            };
            // D1, step 0: the record counts as skipped, and its payload is not read.
            if range_at(skips, record.offset).is_some() {
                let body = Body::Skipped;
                self.batch.events.push(Event::new(at, body));
                continue;
            }
            let start = self.batch.events.len();
            let reader = &mut self.schemas[side as usize];
            let batch = &mut self.batch;
            match record.payload.filter(|payload| !reader.is_plain_json(payload)) {
                // Also a tombstone.
                None => self.decoder.decode(record.payload, topic_kind, at, batch),
                Some(payload) => match reader.locate(payload, record.headers) {
                    Located::Record(raw) => self.decoder.decode_raw(raw, topic_kind, at, batch),
                    Located::Invalid(reason) => {
                        batch.events.push(Event::new(at, Body::Invalid(reason, None)));
                    }
                    Located::Ignored => batch.events.push(Event::new(at, Body::Ignored)),
                    Located::Awaits(schema) => return Some((n_read, schema)),
                },
            }
            // One unreadable event is enough to report the whole record.
            if let Some(reason) = self.batch.first_reason(start) {
                self.unreadable.push(UnreadableRecord {
                    at: (side, record.partition),
                    offset: record.offset,
                    reason,
                });
                if let Some(bury) = &self.dead_letters {
                    bury(record, reason);
                }
            }
        }
        None
    }

    /// Applies the decoded records of one topic, then moves its position to the next offset.
    fn apply(&mut self, partition: i32, side: Side, next: i64) {
        if let Some(pair) = self.pairs.get_mut(&partition).and_then(Phase::reading_mut) {
            if let Some(log) = pair.log(side) {
                log.position = next;
                log.idle_since_ms = None;
            }
            // All states share one bound, so this pair may grow by all that is free now.
            let room_bytes = pair.engine().state_bytes() + self.free_bytes;
            pair.tracker.apply(&self.batch, room_bytes);
            self.free_bytes = room_bytes.saturating_sub(pair.engine().state_bytes());
            pair.changed = true;
        }
        self.batch.clear();
    }
}
