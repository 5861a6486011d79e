//! Pair of partitions as the worker sees it: its counts, and the read position of each topic.

use std::ops::RangeInclusive;

use abgauge_core::engine::Engine;
use abgauge_core::engine::event::Side;
use abgauge_core::ledger::PairTracker;

use super::events_ahead::EventsAhead;
use super::held_pairs::Held;
use super::stored_pair::StoredPair;
use crate::settings::skips::Offsets;
use crate::stream::{LogEnd, LogStart};

/// Lead in event time over its twin from which a topic is paused, if memory requires it.
const FAR_MS: i64 = 5 * 60 * 1000;

#[derive(Debug)]
pub struct Pair {
    pub tracker: PairTracker,
    /// Logs, one for each topic; only the side of served lists if both kinds share a topic.
    pub logs: Vec<PartitionLog>,
    /// Facts about its stored state, if pairs are stored.
    pub stored: Option<StoredPair>,
    /// Set while an unreadable batch keeps it at its position.
    pub held: Option<Held>,
    /// Set from the report that its position is no longer in the log until it has caught up.
    pub position_lost: bool,
    /// Set if it holds changes that the board has not seen.
    pub changed: bool,
    /// Events ahead of the clock, by `Side as usize`.
    pub ahead: [Option<EventsAhead>; 2],
    /// Bytes that its engine kept for each log when neither was far ahead of the other.
    abreast_bytes: [u64; 2],
}

/// Position that its log does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostPosition {
    pub side: Side,
    pub position: i64,
    /// First offset and end of the log.
    pub low: i64,
    pub high: i64,
}

/// Progress of one topic partition.
#[derive(Debug)]
pub struct PartitionLog {
    pub side: Side,
    /// Offset of the next record.
    pub position: i64,
    /// End of the log at the assignment.
    pub noted_end: i64,
    /// End of the log as of the last answer.
    pub end: Option<i64>,
    pub paused: bool,
    /// Steady time since which it is known to be at its end.
    pub idle_since_ms: Option<i64>,
    /// Transaction that it waits for.
    open: Option<OpenTransaction>,
    /// Offsets of the records to leave out.
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

    /// Leaves out these records.
    pub fn skipping(self, skips: &[RangeInclusive<i64>]) -> PartitionLog {
        PartitionLog {
            skips: skips.to_vec(),
            ..self
        }
    }

    /// Returns the ranges to leave out that overlap these offsets.
    pub fn skips_within(&self, offsets: &RangeInclusive<i64>) -> Offsets {
        // Ranges ascend, so the first candidate is found by bisection.
        let first = self.skips.partition_point(|skip| skip.end() < offsets.start());
        let within = self.skips[first..]
            .iter()
            .take_while(|skip| skip.start() <= offsets.end());
        within.cloned().collect()
    }

    /// Resumes reading at its position. Its part of a start is complete at `noted_end`.
    pub fn resume(&mut self, noted_end: i64) {
        self.noted_end = noted_end;
        self.end = Some(noted_end);
        self.paused = false;
        self.idle_since_ms = None;
        self.open = None;
    }

    /// Pauses reading, unless it is paused.
    fn pause(&mut self) -> Option<Flow> {
        if std::mem::replace(&mut self.paused, true) {
            return None;
        }
        // A paused log is not silent.
        self.idle_since_ms = None;
        Some(Flow::Pause(self.side))
    }

    /// Resumes reading if it is paused.
    fn go_on(&mut self) -> Option<Flow> {
        std::mem::take(&mut self.paused).then_some(Flow::Resume(self.side))
    }

    pub fn lag(&self) -> Option<i64> {
        self.end.map(|end| (end - self.position).max(0))
    }

    fn at_end(&self) -> bool {
        self.end.is_some_and(|end| self.position >= end)
    }

    /// Takes an answer about its end. Returns whether it has reached the end, which no open transaction delays then.
    pub fn ends(&mut self, answer: LogEnd) -> bool {
        // The client's position passes records that it does not deliver, such as transaction markers, but it must not pass
        // the end.
        let passed = answer.position.filter(|position| *position <= answer.end);
        self.position = self.position.max(passed.unwrap_or(i64::MIN));
        self.end = Some(answer.end);
        self.position >= answer.end && !self.paused
    }

    /// Looks for an open transaction that blocks it, in an answer asked at `asked_ms`.
    pub fn look_for_open_transaction(&mut self, answer: &LogEnd, asked_ms: i64) {
        // All readable records are read, but the log has more: an open transaction hides them.
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

    /// Returns the steady time since which an open transaction blocks it, if that is at least `after_ms` before `now_ms`.
    pub fn held_up_since_ms(&self, now_ms: i64, after_ms: i64) -> Option<i64> {
        let since_ms = self.open?.since_ms;
        (now_ms - since_ms >= after_ms).then_some(since_ms)
    }

    /// Returns whether it had been at its end for `after_ms` when the answer was asked for.
    pub fn is_at_rest(&mut self, at_end: bool, asked_ms: i64, after_ms: i64) -> bool {
        if !at_end {
            self.idle_since_ms = None;
            return false;
        }
        let since_ms = *self.idle_since_ms.get_or_insert(asked_ms);
        asked_ms - since_ms >= after_ms
    }
}

/// Open transaction: all records before it are read, and none after it can be.
#[derive(Debug, Clone, Copy)]
struct OpenTransaction {
    /// Offset at which it begins.
    stable: i64,
    /// Steady time at which that was first known.
    since_ms: i64,
}

/// Action for a topic that runs ahead of its twin.
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
            stored: None,
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

    /// Returns the read position of each of its topics.
    pub fn positions(&self) -> impl Iterator<Item = (Side, i64)> {
        self.logs.iter().map(|log| (log.side, log.position))
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

    /// Returns whether these logs still have its next records.
    pub fn is_within(&self, logs: &[(Side, LogStart)]) -> bool {
        self.strayed(logs).is_none()
    }

    /// Starts reading the log of lists at the first open list, if the log no longer has the earlier ones, which only copies
    /// need. Returns whether it did. Nothing must have been read yet.
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

    /// Returns the first of its positions that is outside its log. `logs` must include all that it reads.
    pub fn strayed(&self, logs: &[(Side, LogStart)]) -> Option<LostPosition> {
        self.logs.iter().find_map(|log| {
            let start = logs.iter().find(|(side, _)| *side == log.side);
            // A log without bounds has no valid position.
            let (low, high) = start.map_or((0, -1), |(_, start)| (start.low, start.high));
            let strayed = LostPosition {
                side: log.side,
                position: log.position,
                low,
                high,
            };
            (!(low..=high).contains(&log.position)).then_some(strayed)
        })
    }

    /// Resumes at its positions. It has caught up at the ends of these logs.
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

    /// Returns the number of records to read until the noted ends.
    pub fn n_left(&self) -> i64 {
        let left = |log: &PartitionLog| (log.noted_end - log.position).max(0);
        self.logs.iter().map(left).sum()
    }

    /// Returns whether it has read records beyond the noted ends, that is, written since the start.
    pub fn continues(&self) -> bool {
        self.logs.iter().any(|log| log.position > log.noted_end)
    }

    /// Pauses the topic whose events are far ahead of its twin's, once its state has grown by `room_bytes` meanwhile.
    /// Resumes it when the twin has caught up. Both are paused while the pair `waits`.
    ///
    /// A pause is expensive, so it does not come earlier: the client discards the records that it has fetched for a paused
    /// partition, and fetches them again. For an hour of lists and clicks it read 1.4 times the records, and the daemon
    /// used 10% more CPU time.
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
        // A shared topic has no twin to wait for.
        let [one, two] = logs.as_mut_slice() else {
            return logs.iter_mut().find_map(PartitionLog::go_on);
        };
        let ahead = |log: &PartitionLog, twin: &PartitionLog| -> i64 {
            if twin.at_end() {
                return 0; // Nothing to wait for.
            }
            match (engine.newest_ms(log.side), engine.newest_ms(twin.side)) {
                (Some(own), Some(other)) => own - other,
                // The twin has not delivered any event yet.
                (Some(_), None) => i64::MAX,
                (None, _) => 0,
            }
        };
        let ahead = [ahead(one, two), ahead(two, one)];
        let kept_bytes = [&*one, &*two].map(|log| engine.bytes_of(log.side));
        // Only growth beyond what the engine keeps anyway is caused by reading ahead.
        if ahead.into_iter().all(|ahead_ms| ahead_ms < FAR_MS / 2) {
            *abreast_bytes = kept_bytes;
        }
        for (n, log) in [one, two].into_iter().enumerate() {
            let has_room = kept_bytes[n].saturating_sub(abreast_bytes[n]) < room_bytes;
            // A topic resumes at half the lead at which it pauses, so that it does not alternate between the two.
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
