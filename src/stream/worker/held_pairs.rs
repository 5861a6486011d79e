//! Pairs on hold: one of their batches is unreadable, or the schema of a record is not known yet. They keep their position and
//! numbers while the others continue.
//!
//! The damage may be on one replica only, so the batch is read again from time to time. Once it is readable, the pair resumes.

use std::ops::RangeInclusive;
use std::time::Duration;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::{Counts, Outcome};
use tracing::info;

use super::Worker;
use super::awaited_schema::AwaitedSchema;
use super::inspections::StalledLog;
use super::pair::{Pair, PartitionLog};
use crate::settings::skips::{Skips, range_at, range_text};
use crate::stream::{BatchDamage, Fault, Inspection, OffsetState, Order, TopicPartition};

/// Time until an unreadable batch is read again.
const AGAIN: Duration = Duration::from_secs(10);
/// Time after which a log is checked if it delivers nothing although it has more records.
const STALLED: Duration = Duration::from_secs(5);

/// Reason why a pair is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub side: Side,
    pub by: HeldBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// Unreadable batch.
    Batch(DamagedBatch),
    /// Record whose schema is not known yet.
    Schema(AwaitedSchema),
}

/// Offsets of an unreadable batch; the last one is set once it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedBatch {
    pub first: i64,
    pub last: Option<i64>,
    pub damage: BatchDamage,
}

impl Held {
    /// Returns whether it is worth a report. Most schemas arrive at once.
    pub fn is_reported(&self) -> bool {
        match self.by {
            HeldBy::Batch(_) => true,
            HeldBy::Schema(awaited) => awaited.is_reported,
        }
    }

    /// Returns the unreadable batch that it is held by.
    pub fn batch(&mut self) -> Option<&mut DamagedBatch> {
        match &mut self.by {
            HeldBy::Batch(batch) => Some(batch),
            HeldBy::Schema(_) => None,
        }
    }
}

impl DamagedBatch {
    /// Describes the problem in plain words, with the remedy.
    fn message(&self, topics: &[String; 2], (side, partition): TopicPartition, skips: &Skips) -> String {
        let DamagedBatch { first, last, damage } = *self;
        let (why, remedy) = match damage {
            BatchDamage::Checksum => (
                "cannot be read: their checksum is wrong".to_owned(),
                "restore the log from another replica, make another replica the leader",
            ),
            BatchDamage::Compression => (
                "cannot be decompressed, or not within kafka.properties.\"receive.message.max.bytes\""
                    .to_owned(),
                "increase it, if they are valid but many",
            ),
            BatchDamage::TooLarge { bytes } => {
                let bytes = bytes.map_or(String::new(), |bytes| format!(" ({bytes} bytes)"));
                let why = "arrive in a response larger";
                (
                    format!("{why}{bytes} than kafka.properties.\"receive.message.max.bytes\" allows"),
                    "increase it",
                )
            }
        };
        let (which, or) = match last {
            Some(last) => {
                let batch = first..=last;
                let setting = skips.and([((side, partition), batch.clone())]).setting(topics);
                let is_cut = skips
                    .of((side, partition))
                    .iter()
                    .any(|skip| touches(skip, &batch));
                let part = match is_cut {
                    true => ", whose range must cover the whole batch, but currently does not",
                    false => "",
                };
                (
                    format!("offsets {}", range_text(&batch)),
                    format!(", or skip them with {setting}{part}, which costs exactness"),
                )
            }
            None => (format!("the records from offset {first} on"), String::new()),
        };
        format!("{which} {why}; {remedy}{or}")
    }
}

/// Returns whether two ranges overlap or are adjacent.
fn touches(one: &RangeInclusive<i64>, other: &RangeInclusive<i64>) -> bool {
    *one.start() <= other.end().saturating_add(1) && *other.start() <= one.end().saturating_add(1)
}

impl Worker {
    /// Holds the pair of an unreadable batch, unless the operator skips that batch.
    pub(super) fn damaged(&mut self, (side, partition): TopicPartition, first: i64, damage: BatchDamage) {
        if self.skip_unreadable((side, partition), first) {
            return self.assign_pairs();
        }
        let batch = DamagedBatch {
            first,
            last: None,
            damage,
        };
        let held = Held {
            side,
            by: HeldBy::Batch(batch),
        };
        let Some(pair) = self.shards.get_mut(partition).filter(|pair| !pair.is_held()) else {
            return;
        };
        // The report may lack the end of the batch, which the remedy needs. The inspection finds it.
        let offset = pair.log(side).map(|log| log.position);
        pair.held = Some(held);
        self.log_held(partition);
        self.assign_pairs();
        if let Some(offset) = offset {
            self.inspect(Inspection {
                partition: (side, partition),
                offset,
                to_its_end: true,
            });
        }
    }

    /// Logs why a partition is held, if it is.
    pub(super) fn log_held(&mut self, partition: i32) {
        if let Some(message) = self.held_message(partition) {
            self.report.held(&message, partition, self.clocks.uptime());
        }
    }

    fn held_message(&self, partition: i32) -> Option<String> {
        let phase = self.shards.phase(partition)?;
        let (topics, skips) = (&self.setup.topics, &self.setup.skips);
        let held = phase.reading()?.held.filter(Held::is_reported)?;
        let why = match held.by {
            HeldBy::Batch(batch) => batch.message(topics, (held.side, partition), skips),
            HeldBy::Schema(awaited) => awaited.message(&self.schemas),
        };
        let topic = &topics[held.side as usize];
        let numbers = match phase.serving() {
            Some(_) => "The numbers of this partition do not advance, all others do",
            None => "It has not caught up yet: its lists and clicks are missing from all numbers",
        };
        Some(format!(
            "partition {partition} of topic `{topic}` is held: {why}. {numbers}"
        ))
    }

    /// Moves past the unreadable batch that begins at `unreadable`, if the operator skips it. Returns whether it did.
    fn skip_unreadable(&mut self, (side, partition): TopicPartition, unreadable: i64) -> bool {
        let skips = self.setup.skips.of((side, partition));
        let Some(log) = self.shards.get_mut(partition).and_then(|pair| pair.log(side)) else {
            return false;
        };
        let end = log.end.unwrap_or(log.noted_end).max(log.noted_end);
        let Some(range) = range_at(skips, log.position).filter(|_| log.position < end) else {
            return false;
        };
        let first = log.position;
        // A range may reach beyond the end of the log. Records appended later must still be read.
        log.position = range.end().saturating_add(1).min(end);
        let n_skipped = log.position.abs_diff(first);
        let last = log.position - 1;
        let mut counts = Counts::default();
        counts.count_many(side, Outcome::Skipped, n_skipped);
        self.report.counts(&counts);
        let topic = self.setup.topic(side);
        self.report
            .passed_over(topic, partition, unreadable, &(first..=last));
        true
    }

    /// Handles an answer to [`Order::Inspect`].
    pub(super) fn inspected(&mut self, inspection: Inspection, seen: Result<OffsetState, Fault>) {
        self.inspections.end();
        let (side, partition) = inspection.partition;
        let Some(pair) = self.shards.get_mut(partition) else {
            return;
        };
        // The pair may have moved since the inspection was ordered.
        let is_at_rest = pair
            .log(side)
            .is_some_and(|log| log.position == inspection.offset);
        let is_held = pair.is_held();
        let of_side = |held: &&mut Held| held.side == side;
        let batch = pair.held.as_mut().filter(of_side).and_then(Held::batch);
        match (seen, batch) {
            // The probe reports brokers that do not answer.
            (Err(_), _) => {}
            (Ok(OffsetState::Readable), Some(_)) => {
                pair.held = None;
                self.report.continues(partition);
                info!(partition, "the batch can be read: the partition continues");
                self.assign_pairs();
            }
            (Ok(OffsetState::Damaged { first, last, damage }), Some(batch)) => {
                // An end that was found before stays known while the same batch is reported.
                let last = last.or(batch.last.filter(|_| batch.first == first));
                *batch = DamagedBatch { first, last, damage };
                self.log_held(partition);
            }
            (Ok(OffsetState::Damaged { first, damage, .. }), None) if is_at_rest && !is_held => {
                self.damaged(inspection.partition, first, damage);
            }
            (Ok(_), _) => {}
        }
    }

    /// Checks the held batches and the logs that are stalled for no known reason, one at a time.
    pub(super) fn inspect_stalled_logs(&mut self) {
        let standing: Vec<StalledLog> = self
            .shards
            .pairs()
            .flat_map(|(partition, pair)| standing(partition, pair))
            .collect();
        if let Some(inspection) = self.inspections.due(&standing, self.clocks.uptime()) {
            self.inspect(inspection);
        }
    }

    fn inspect(&mut self, inspection: Inspection) {
        if self.inspections.begin(inspection, self.clocks.uptime()) {
            self.orders.push(Order::Inspect(inspection));
        }
    }

    /// Assigns all pairs that are not held, from their current positions.
    pub(super) fn assign_pairs(&mut self) {
        // The client's own position is not reliable. After a damaged batch it may continue in the middle of that batch, and
        // take arbitrary bytes for an offset.
        self.questions.start_epoch();
        let mut positions = Vec::new();
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| !pair.is_held()) {
            for log in &mut pair.logs {
                positions.push(((log.side, partition), log.position));
                // An assignment resumes paused partitions.
                log.paused = false;
            }
        }
        self.orders.push(Order::Assign(positions));
    }

    /// Returns the messages about pairs on hold, each with its remedy.
    pub(super) fn held(&self) -> Vec<String> {
        let partitions = self.shards.pairs().map(|(partition, _)| partition);
        partitions
            .filter_map(|partition| self.held_message(partition))
            .collect()
    }
}

/// Returns the logs of a pair to check: the held one, or else those that have more records.
fn standing(partition: i32, pair: &Pair) -> Vec<StalledLog> {
    let standing = |log: &PartitionLog, after: Duration, to_its_end: bool| StalledLog {
        inspection: Inspection {
            partition: (log.side, partition),
            offset: log.position,
            to_its_end,
        },
        after,
    };
    let logs = pair.logs.iter();
    match pair.held {
        Some(Held {
            side,
            by: HeldBy::Batch(batch),
        }) => logs
            .filter(|log| log.side == side)
            .map(|log| standing(log, AGAIN, batch.last.is_none()))
            .collect(),
        // Its client is not expected to deliver anything.
        Some(_) => Vec::new(),
        None => logs
            .filter(|log| !log.paused && log.lag() > Some(0))
            .map(|log| standing(log, STALLED, false))
            .collect(),
    }
}
