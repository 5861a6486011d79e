//! Sample of the last records of a topic: how they are keyed, and whether they are readable.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use abgauge_core::decode::Decoder;
use abgauge_core::engine::event::{Batch, Body, Kind, Position, Reason, Side};
use abgauge_core::engine::float_times::FloatTimes;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::{Asker, Failure, Trouble};
use crate::clock::Clock;
use crate::settings::Config;
use crate::stream::keys::KeyAudit;

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
    /// Records of another `type`.
    pub n_ignored: u64,
    pub times: FloatTimes,
}

impl Sample {
    pub fn new(topic: &str, n_partitions: NonZeroU32) -> Sample {
        Sample {
            n_records: 0,
            keys: KeyAudit::new(topic, n_partitions),
            unreadable: BTreeMap::new(),
            n_ignored: 0,
            times: FloatTimes::default(),
        }
    }

    /// Adds a record of a topic. Records without a `type` are of the kind `topic_kind`.
    pub fn take(
        &mut self,
        decoder: &Decoder,
        topic_kind: Option<Kind>,
        partition: i32,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
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
        decoder.decode(payload, topic_kind, at, &mut batch);
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
        config: &Config,
        topic: &str,
        n_partitions: NonZeroU32,
        topic_kind: Option<Kind>,
    ) -> Result<Sample, Failure> {
        let begins = self.offsets(topic, n_partitions, Offset::Beginning)?;
        let ends = self.offsets(topic, n_partitions, Offset::End)?;
        let starts = starts(&begins, &ends);
        let mut sample = Sample::new(topic, n_partitions);
        if starts.is_empty() {
            return Ok(sample);
        }
        let decoder = config.join.decoder().reading(config.events.as_ref());
        self.read(
            topic,
            &starts,
            &ends,
            StopCondition::Seconds,
            |partition, key, payload| {
                sample.take(&decoder, topic_kind, partition, key, payload);
                true
            },
        )?;
        Ok(sample)
    }

    /// Passes the records from `starts` up to `ends` to `take`, until it returns that it has enough.
    pub(super) fn read(
        &self,
        topic: &str,
        starts: &BTreeMap<i32, i64>,
        ends: &[i64],
        patience: StopCondition,
        mut take: impl FnMut(i32, Option<&[u8]>, Option<&[u8]>) -> bool,
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
                        if !take(partition, record.key(), record.payload()) {
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

/// Assignment that is revoked when dropped, so that later polls see no record.
struct Assigned<'a>(&'a Asker);

impl Drop for Assigned<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.consumer.unassign() {
            tracing::debug!(%error, "could not give the sampled partitions back");
        }
    }
}

/// Returns where to start reading each partition with records.
fn starts(begins: &[i64], ends: &[i64]) -> BTreeMap<i32, i64> {
    let filled: Vec<_> = (0..)
        .zip(begins.iter().zip(ends))
        .filter(|(_, (begin, end))| begin < end)
        .collect();
    let each = (N_RECORDS / (filled.len() as i64).max(1)).max(1);
    filled
        .into_iter()
        .map(|(partition, (begin, end))| (partition, (*begin).max(end - each)))
        .collect()
}
