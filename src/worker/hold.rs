//! Pairs that are held: a batch of theirs cannot be read, so they stand where they are, numbers and all, while the others go
//! on. The damage may be one replica's, so the batch is looked at again and again; once it can be read, the pair goes on.

use std::time::Duration;

use tracing::info;

use super::Worker;
use super::looks::Standing;
use super::pair::{Log, Pair};
use crate::engine::event::Side;
use crate::engine::outcome::{Counts, Outcome};
use crate::ingest::skips::range_at;
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
    /// In plain words, with what to do about it.
    pub fn message(&self, topic: &str, partition: i32) -> String {
        let Held { first, last, .. } = *self;
        let (why, remedy) = match self.damage {
            Damage::Checksum => (
                "cannot be read: their checksum is wrong".to_owned(),
                "restore the log from another replica, or let one lead",
            ),
            Damage::Compression => (
                "cannot be decompressed, or not within kafka.properties.\"receive.message.max.bytes\""
                    .to_owned(),
                "raise that, if they are sound but many",
            ),
            Damage::TooLarge { bytes } => {
                let bytes = bytes.map_or(String::new(), |bytes| format!(" ({bytes})"));
                let why = "come in an answer of more bytes";
                (
                    format!("{why}{bytes} than kafka.properties.\"receive.message.max.bytes\" allows"),
                    "raise that",
                )
            }
        };
        let range = match last {
            Some(last) if last != first => format!("{first}-{last}"),
            _ => first.to_string(),
        };
        let (which, or) = match last {
            Some(_) => (
                format!("offsets {range}"),
                format!(
                    ", or leave them out with ingest.skip_records = [\"{topic}/{partition}/{range}\"], which costs \
                     exactness"
                ),
            ),
            None => (format!("the records from offset {first} on"), String::new()),
        };
        format!(
            "partition {partition} of topic `{topic}` is held: {which} {why}; {remedy}{or}. The numbers of the partition stand \
             still, the others go on"
        )
    }
}

impl Worker {
    /// A batch of a partition cannot be read: the pair is held, unless the operator leaves the batch out.
    pub(super) fn damaged(&mut self, (side, partition): TopicPartition, first: i64, damage: Damage) {
        if self.pass_over((side, partition)) {
            return self.assign_pairs();
        }
        let held = Held {
            side,
            first,
            last: None,
            damage,
        };
        let Some(pair) = self.shards.get_mut(partition).filter(|pair| !pair.is_held()) else {
            return;
        };
        let offset = pair.log(side).map(|log| log.position);
        pair.held = Some(held);
        self.report.held(
            &held.message(self.setup.topic(side), partition),
            partition,
            self.clocks.uptime(),
        );
        self.assign_pairs();
        if let Some(offset) = offset {
            self.look(Look {
                partition: (side, partition),
                offset,
                to_its_end: true,
            });
        }
    }

    /// Moves behind what cannot be read, where the operator leaves that out; says whether he does.
    fn pass_over(&mut self, (side, partition): TopicPartition) -> bool {
        let skips = self.setup.skips.of((side, partition));
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
        let mut counts = Counts::default();
        counts.count_many(side, Outcome::Skipped, n_skipped);
        self.report.counts(&counts);
        let topic = self.setup.topic(side);
        self.report.passed_over(topic, partition, first, n_skipped);
        true
    }

    /// An answer to [`Order::Look`].
    pub(super) fn seen(&mut self, look: Look, seen: Result<Batch, Fault>) {
        self.looks.end();
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
                let message = held.message(self.setup.topic(side), partition);
                self.report.held(&message, partition, self.clocks.uptime());
            }
            (Ok(Batch::Damaged { first, damage, .. }), None) if stands => {
                self.damaged(look.partition, first, damage);
            }
            (Ok(_), _) => {}
        }
    }

    /// Looks at what is held, and at what stands still for no known reason: one at a time.
    pub(super) fn look_around(&mut self) {
        let standing: Vec<Standing> = self
            .shards
            .pairs()
            .flat_map(|(partition, pair)| standing(partition, pair))
            .collect();
        if let Some(look) = self.looks.due(&standing, self.clocks.uptime()) {
            self.look(look);
        }
    }

    fn look(&mut self, look: Look) {
        if self.looks.begin(look, self.clocks.uptime()) {
            self.orders.push(Order::Look(look));
        }
    }

    /// Reads all pairs but those that are held, from where they stand.
    pub(super) fn assign_pairs(&mut self) {
        let mut positions = Vec::new();
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| !pair.is_held()) {
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
        let message = |(partition, pair): (i32, &Pair)| {
            let held = pair.held?;
            Some(held.message(self.setup.topic(held.side), partition))
        };
        self.shards.pairs().filter_map(message).collect()
    }
}

/// Logs of a pair that more is to come of.
fn standing(partition: i32, pair: &Pair) -> Vec<Standing> {
    let standing = |log: &Log, after: Duration, to_its_end: bool| Standing {
        look: Look {
            partition: (log.side, partition),
            offset: log.position,
            to_its_end,
        },
        after,
    };
    let logs = pair.logs.iter();
    match pair.held {
        Some(held) => logs
            .filter(|log| log.side == held.side)
            .map(|log| standing(log, AGAIN, held.last.is_none()))
            .collect(),
        None => logs
            .filter(|log| !log.paused && log.lag() > Some(0))
            .map(|log| standing(log, STALLED, false))
            .collect(),
    }
}
