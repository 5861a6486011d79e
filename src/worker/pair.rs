//! One pair of partitions as the worker sees it: what it has counted, and how far each topic has been read.

use std::ops::RangeInclusive;

use super::ahead::EventsAhead;
use super::hold::Held;
use crate::engine::Engine;
use crate::engine::event::Side;
use crate::ingest::skips::Offsets;
use crate::ingest::{LogEnd, LogStart};
use crate::ledger::PairTracker;

/// A topic this far ahead of its twin in event time is paused if memory requires it.
const FAR_MS: i64 = 5 * 60 * 1000;

#[derive(Debug)]
pub struct Pair {
    pub tracker: PairTracker,
    /// One for each topic; only the side of served lists if both kinds share a topic.
    pub logs: Vec<PartitionLog>,
    /// Set while an unreadable batch keeps it at its position.
    pub held: Option<Held>,
    /// Its position was reported as no longer in the log, and it has not caught up since.
    pub position_lost: bool,
    /// It holds changes that the board has not seen.
    pub changed: bool,
    /// By `Side as usize`.
    pub ahead: [Option<EventsAhead>; 2],
    /// Bytes that its engine kept for each of two logs when neither was far ahead of the other.
    abreast_bytes: [u64; 2],
}

/// A position that its log does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strayed {
    pub side: Side,
    pub position: i64,
    /// Where the log begins and ends.
    pub low: i64,
    pub high: i64,
}

/// How far one topic partition has been read.
#[derive(Debug)]
pub struct PartitionLog {
    pub side: Side,
    /// Offset of the next record.
    pub position: i64,
    /// The end as it was at the assignment.
    pub noted_end: i64,
    /// The end as of the last answer.
    pub end: Option<i64>,
    pub paused: bool,
    /// Steady time since which it is known to be at its end.
    pub idle_since_ms: Option<i64>,
    /// The transaction that it waits for.
    open: Option<OpenTransaction>,
    /// Offsets whose records are left out.
    skips: Offsets,
}

impl PartitionLog {
    pub fn new(side: Side, position: i64, noted_end: i64) -> PartitionLog {
        PartitionLog {
            side,
            position,
            noted_end,
            end: Some(noted_end),
            paused: false,
            idle_since_ms: None,
            open: None,
            skips: Offsets::new(),
        }
    }

    /// The same, without these records.
    pub fn skipping(self, skips: &[RangeInclusive<i64>]) -> PartitionLog {
        PartitionLog {
            skips: skips.to_vec(),
            ..self
        }
    }

    /// What is left out of these offsets.
    pub fn skips_within(&self, offsets: &RangeInclusive<i64>) -> Offsets {
        let first = self.skips.partition_point(|skip| skip.end() < offsets.start());
        let within = self.skips[first..]
            .iter()
            .take_while(|skip| skip.start() <= offsets.end());
        within.cloned().collect()
    }

    /// Resumes reading at its position; its part of a start is complete at `noted_end`.
    pub fn resume(&mut self, noted_end: i64) {
        self.noted_end = noted_end;
        self.end = Some(noted_end);
        self.paused = false;
        self.idle_since_ms = None;
        self.open = None;
    }

    /// Reads it no further, if it is read.
    fn pause(&mut self) -> Option<Flow> {
        if std::mem::replace(&mut self.paused, true) {
            return None;
        }
        self.idle_since_ms = None;
        Some(Flow::Pause(self.side))
    }

    /// Reads it on, if it is paused.
    fn go_on(&mut self) -> Option<Flow> {
        std::mem::take(&mut self.paused).then_some(Flow::Resume(self.side))
    }

    pub fn lag(&self) -> Option<i64> {
        self.end.map(|end| (end - self.position).max(0))
    }

    fn at_end(&self) -> bool {
        self.end.is_some_and(|end| self.position >= end)
    }

    /// Takes an answer, asked at `asked_ms`, about its end. Returns whether it is there, with no transaction open.
    pub fn ends(&mut self, answer: LogEnd) -> bool {
        // The client skips what it does not deliver, such as transaction markers, but never the end.
        let passed = answer.position.filter(|position| *position <= answer.end);
        self.position = self.position.max(passed.unwrap_or(i64::MIN));
        self.end = Some(answer.end);
        self.position >= answer.end && !self.paused
    }

    /// Looks for a transaction that blocks it, in an answer asked at `asked_ms`.
    pub fn look_for_open_transaction(&mut self, answer: &LogEnd, asked_ms: i64) {
        let stable = answer
            .stable
            .filter(|stable| self.position >= *stable && *stable < answer.end);
        self.open = stable.map(|stable| match self.open {
            Some(open) if open.stable == stable => open,
            _ => OpenTransaction {
                stable,
                since_ms: asked_ms,
            },
        });
    }

    /// Steady time since which an open transaction blocks it, if that is at least `after_ms` before `now_ms`.
    pub fn held_up_since_ms(&self, now_ms: i64, after_ms: i64) -> Option<i64> {
        let since_ms = self.open?.since_ms;
        (now_ms - since_ms >= after_ms).then_some(since_ms)
    }

    /// Whether it had been at its end for `after_ms` when the answer was asked for.
    pub fn stands(&mut self, at_end: bool, asked_ms: i64, after_ms: i64) -> bool {
        if !at_end {
            self.idle_since_ms = None;
            return false;
        }
        let since_ms = *self.idle_since_ms.get_or_insert(asked_ms);
        asked_ms - since_ms >= after_ms
    }
}

/// An open transaction: all records before it are read, and none after it can be.
#[derive(Debug, Clone, Copy)]
struct OpenTransaction {
    /// Where it begins.
    stable: i64,
    /// Steady time when that was first known.
    since_ms: i64,
}

/// What to do about a topic that runs ahead of its twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Pause(Side),
    Resume(Side),
}

impl Pair {
    pub fn new(tracker: PairTracker, logs: Vec<PartitionLog>) -> Pair {
        Pair {
            tracker,
            logs,
            held: None,
            position_lost: false,
            changed: true,
            ahead: [None; 2],
            abreast_bytes: [0; 2],
        }
    }

    pub fn engine(&self) -> &Engine {
        self.tracker.engine()
    }

    pub fn log(&mut self, side: Side) -> Option<&mut PartitionLog> {
        self.logs.iter_mut().find(|log| log.side == side)
    }

    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub fn with_position_lost(self, position_lost: bool) -> Pair {
        Pair {
            position_lost,
            ..self
        }
    }

    /// Whether these logs still have its next records.
    pub fn stands_within(&self, logs: &[(Side, LogStart)]) -> bool {
        self.strayed(logs).is_none()
    }

    /// Reads the log of lists from the first open list on, if it no longer holds what only copies need; returns whether it does.
    /// Nothing was read yet.
    pub fn give_up_copies(&mut self, logs: &[(Side, LogStart)]) -> bool {
        let Pair {
            tracker, logs: own, ..
        } = self;
        let Some(log) = own.iter_mut().find(|log| log.side == Side::Served) else {
            return false;
        };
        let mut starts = logs.iter().filter(|(side, _)| *side == Side::Served);
        let is_gone = starts.any(|(_, start)| log.position < start.low);
        let offset = is_gone.then(|| tracker.give_up_copies()).flatten();
        offset.into_iter().for_each(|offset| log.position = offset);
        offset.is_some()
    }

    /// The first of its positions that is not in one of these logs, which hold all that it reads.
    pub fn strayed(&self, logs: &[(Side, LogStart)]) -> Option<Strayed> {
        self.logs.iter().find_map(|log| {
            let start = logs.iter().find(|(side, _)| *side == log.side);
            let (low, high) = start.map_or((0, -1), |(_, start)| (start.low, start.high));
            let strayed = Strayed {
                side: log.side,
                position: log.position,
                low,
                high,
            };
            (!(low..=high).contains(&log.position)).then_some(strayed)
        })
    }

    /// The same, resumed at its positions; it has caught up at the ends of these logs.
    pub fn resumed(mut self, logs: &[(Side, LogStart)]) -> Pair {
        for (side, start) in logs {
            if let Some(log) = self.log(*side) {
                log.resume(start.high);
            }
        }
        self.held = None;
        self.position_lost = false;
        self.changed = true;
        self
    }

    pub fn has_reached_noted_ends(&self) -> bool {
        self.logs.iter().all(|log| log.position >= log.noted_end)
    }

    /// Records to read until it has reached the noted ends.
    pub fn n_left(&self) -> i64 {
        let left = |log: &PartitionLog| (log.noted_end - log.position).max(0);
        self.logs.iter().map(left).sum()
    }

    /// Whether it has read what was written since the start noted its ends.
    pub fn goes_on(&self) -> bool {
        self.logs.iter().any(|log| log.position > log.noted_end)
    }

    /// Pauses the topic whose events are far ahead of its twin's, once its state has grown by `room_bytes` meanwhile.
    /// Resumes it when the twin has caught up. While the pair `waits` both are paused.
    ///
    /// It does not pause earlier because a pause is expensive: the client discards the records that it has fetched for a
    /// paused partition, and fetches them again. For an hour of lists and clicks it read 1.4 times the records, and the
    /// daemon used 10% more CPU time.
    pub fn balance(&mut self, room_bytes: u64, waits: bool) -> Option<Flow> {
        if waits {
            return self.logs.iter_mut().find_map(PartitionLog::pause);
        }
        let Pair {
            tracker,
            logs,
            abreast_bytes,
            ..
        } = self;
        let engine = tracker.engine();
        let [one, two] = logs.as_mut_slice() else {
            return logs.iter_mut().find_map(PartitionLog::go_on);
        };
        let ahead = |log: &PartitionLog, twin: &PartitionLog| -> i64 {
            if twin.at_end() {
                return 0; // Nothing to wait for.
            }
            match (engine.newest_ms(log.side), engine.newest_ms(twin.side)) {
                (Some(own), Some(other)) => own - other,
                (Some(_), None) => i64::MAX,
                (None, _) => 0,
            }
        };
        let ahead = [ahead(one, two), ahead(two, one)];
        let kept_bytes = [&*one, &*two].map(|log| engine.bytes_of(log.side));
        if ahead.into_iter().all(|ahead_ms| ahead_ms < FAR_MS / 2) {
            *abreast_bytes = kept_bytes;
        }
        for (n, log) in [one, two].into_iter().enumerate() {
            let has_room = kept_bytes[n].saturating_sub(abreast_bytes[n]) < room_bytes;
            let flow = match ahead[n] {
                ahead_ms if ahead_ms > FAR_MS && !has_room => log.pause(),
                ahead_ms if ahead_ms < FAR_MS / 2 => log.go_on(),
                _ => None,
            };
            if flow.is_some() {
                return flow;
            }
        }
        None
    }
}
