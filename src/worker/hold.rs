//! Pairs that are held: a batch of theirs cannot be read, so they stand where they are, numbers and all, while the others go
//! on. The damage may be one replica's, so the batch is looked at again and again; once it can be read, the pair goes on.

use std::ops::RangeInclusive;
use std::time::Duration;

use tracing::info;

use super::Worker;
use super::pair::Log;
use crate::engine::event::Side;
use crate::engine::outcome::{Counts, Outcome};
use crate::ingest::skips::{Skips, range_at, range_text};
use crate::ingest::{Batch, Damage, Fault, Look, Order, TopicPartition};

/// A batch that cannot be read is looked at again after this time.
const AGAIN: Duration = Duration::from_secs(10);
/// A log of which nothing comes for this long, though it has more, is looked at.
const STALLED: Duration = Duration::from_secs(5);

/// Why a pair is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub side: Side,
    /// Offsets of the batch that cannot be read, the last one once it is found.
    pub first: i64,
    pub last: Option<i64>,
    pub damage: Damage,
}

impl Held {
    /// In plain words, with what to do about it. It `has_numbers` where its pair has ever caught up.
    fn message(&self, topics: &[String; 2], partition: i32, skips: &Skips, has_numbers: bool) -> String {
        let Held {
            side, first, last, ..
        } = *self;
        let topic = &topics[side as usize];
        let (why, remedy) = match self.damage {
            Damage::Checksum => (
                "cannot be read: their checksum is wrong".to_owned(),
                "restore the log from another replica, make another replica the leader",
            ),
            Damage::Compression => (
                "cannot be decompressed, or not within kafka.properties.\"receive.message.max.bytes\""
                    .to_owned(),
                "increase it, if they are sound but many",
            ),
            Damage::TooLarge { bytes } => {
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
                    true => ", whose range must cover the whole batch, as now it does not",
                    false => "",
                };
                (
                    format!("offsets {}", range_text(&batch)),
                    format!(", or skip them with {setting}{part}, which costs exactness"),
                )
            }
            None => (format!("the records from offset {first} on"), String::new()),
        };
        let numbers = match has_numbers {
            true => "The numbers of the partition stand still, the others go on",
            false => "It has not caught up yet: its lists and clicks are missing from all numbers",
        };
        format!("partition {partition} of topic `{topic}` is held: {which} {why}; {remedy}{or}. {numbers}")
    }
}

/// Whether two ranges share offsets, or stand side by side.
fn touches(one: &RangeInclusive<i64>, other: &RangeInclusive<i64>) -> bool {
    *one.start() <= other.end().saturating_add(1) && *other.start() <= one.end().saturating_add(1)
}

impl Worker {
    /// A batch of a partition cannot be read: the pair is held, unless the operator leaves the batch out.
    pub(super) fn damaged(&mut self, (side, partition): TopicPartition, first: i64, damage: Damage) {
        if self.pass_over((side, partition), first) {
            return self.assign_pairs();
        }
        let held = Held {
            side,
            first,
            last: None,
            damage,
        };
        let Some(pair) = self.shards.get_mut(partition).filter(|pair| pair.held.is_none()) else {
            return;
        };
        pair.held = Some(held);
        self.tell_held(partition);
        self.assign_pairs();
        self.look((side, partition), true);
    }

    /// Logs why a partition is held, if it is.
    fn tell_held(&mut self, partition: i32) {
        if let Some(message) = self.held_message(partition) {
            self.report.held(&message, partition, self.uptime);
        }
    }

    fn held_message(&self, partition: i32) -> Option<String> {
        let (_, pair) = self.shards.pairs().find(|(number, _)| *number == partition)?;
        let message = |held: Held| held.message(&self.topics, partition, &self.skips, pair.caught_up);
        pair.held.map(message)
    }

    /// Moves behind what cannot be read, where the operator leaves that out; says whether he does. The batch begins at
    /// `unreadable`.
    fn pass_over(&mut self, (side, partition): TopicPartition, unreadable: i64) -> bool {
        let skips = self.skips.of((side, partition));
        let Some(log) = self.shards.get_mut(partition).and_then(|pair| pair.log(side)) else {
            return false;
        };
        let end = log.end.unwrap_or(log.noted_end).max(log.noted_end);
        let Some(range) = range_at(skips, log.position).filter(|_| log.position < end) else {
            return false;
        };
        let first = log.position;
        log.position = range.end().saturating_add(1).min(end);
        let n_skipped = log.position.abs_diff(first);
        let last = log.position - 1;
        let mut counts = Counts::default();
        counts.count_many(side, Outcome::Skipped, n_skipped);
        self.report.counts(&counts);
        let topic = &self.topics[side as usize];
        self.report
            .passed_over(topic, partition, unreadable, &(first..=last));
        true
    }

    /// An answer to [`Order::Look`].
    pub(super) fn seen(&mut self, look: Look, seen: Result<Batch, Fault>) {
        self.looking = false;
        let (side, partition) = look.partition;
        let Some(pair) = self.shards.get_mut(partition) else {
            return;
        };
        let stands = pair.log(side).is_some_and(|log| log.position == look.offset);
        match (seen, &mut pair.held) {
            // That the brokers do not answer is told by others.
            (Err(_), _) => {}
            (Ok(Batch::Readable), Some(held)) if held.side == side => {
                pair.held = None;
                self.report.goes_on(partition);
                info!(partition, "the batch can be read: the partition goes on");
                self.assign_pairs();
            }
            (Ok(Batch::Damaged { first, last, damage }), Some(held)) if held.side == side => {
                let last = last.or(held.last.filter(|_| held.first == first));
                *held = Held {
                    side,
                    first,
                    last,
                    damage,
                };
                self.tell_held(partition);
            }
            (Ok(Batch::Damaged { first, damage, .. }), None) if stands => {
                self.damaged(look.partition, first, damage);
            }
            (Ok(_), _) => {}
        }
    }

    /// Looks at what is held, and at what stands still for no known reason: one at a time.
    pub(super) fn look_around(&mut self) {
        let uptime = self.uptime;
        let mut due = Vec::new();
        for (partition, pair) in self.shards.pairs() {
            if let Some(held) = pair.held {
                due.push(((held.side, partition), AGAIN, held.last.is_none()));
                continue;
            }
            let is_waited_for = |log: &&Log| !log.paused && log.lag() > Some(0);
            let waited_for = pair.logs.iter().filter(is_waited_for);
            due.extend(waited_for.map(|log| ((log.side, partition), STALLED, false)));
        }
        self.standing
            .retain(|key, _| due.iter().any(|(other, ..)| other == key));
        let mut next = None;
        for (key, after, to_its_end) in due {
            let Some(position) = self.position(key) else {
                continue;
            };
            let since = self.standing.entry(key).or_insert((position, uptime));
            if since.0 != position {
                *since = (position, uptime);
            }
            if next.is_none() && !self.looking && uptime.saturating_sub(since.1) >= after {
                next = Some((key, to_its_end));
            }
        }
        if let Some((key, to_its_end)) = next {
            self.look(key, to_its_end);
        }
    }

    fn look(&mut self, partition: TopicPartition, to_its_end: bool) {
        let Some(offset) = self.position(partition).filter(|_| !self.looking) else {
            return;
        };
        self.looking = true;
        self.standing.insert(partition, (offset, self.uptime));
        self.orders.push(Order::Look(Look {
            partition,
            offset,
            to_its_end,
        }));
    }

    fn position(&self, (side, partition): TopicPartition) -> Option<i64> {
        let (_, pair) = self.shards.pairs().find(|(number, _)| *number == partition)?;
        pair.logs
            .iter()
            .find(|log| log.side == side)
            .map(|log| log.position)
    }

    /// Reads all pairs but those that are held, from where they stand.
    pub(super) fn assign_pairs(&mut self) {
        let mut positions = Vec::new();
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| pair.held.is_none()) {
            for log in &mut pair.logs {
                positions.push(((log.side, partition), log.position));
                // An assignment reads all: what was paused goes on.
                log.paused = false;
            }
        }
        self.orders.push(Order::Assign(positions));
    }

    /// Pairs that are held, each with what to do about it.
    pub(super) fn held(&self) -> Vec<String> {
        let partitions = self.shards.pairs().map(|(partition, _)| partition);
        partitions
            .filter_map(|partition| self.held_message(partition))
            .collect()
    }
}
