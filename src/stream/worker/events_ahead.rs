//! Detection of events that are further ahead of our clock than `join.lateness`, which make later ones in their partition
//! late.
//!
//! They are reported from their arrival until the records lost because of them have left the longest window. The report
//! names the setting that skips all of them.

use std::cmp::Reverse;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::watermark::Ahead;
use abgauge_core::nouns::number_of;

use super::Worker;
use super::pair::Pair;
use crate::settings::skips::{Skips, range_text};
use crate::stream::TopicPartition;

/// Bound on the partitions with such events that are listed individually.
const MAX_TOLD: usize = 4;
/// Bound on the ranges of offsets named in a sentence.
const MAX_NAMED: usize = 3;
/// Bound on the partitions named in the setting that skips all such events.
const MAX_TO_SKIP: usize = 16;

/// Notes about such events of one topic partition, in addition to those of its engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventsAhead {
    /// Lead of the newest event when it arrived.
    furthest_ms: i64,
    /// Number of events when they were last logged.
    n_logged: u64,
    /// Wall time at which the clock had reached them.
    over_ms: Option<i64>,
}

impl Worker {
    /// Lets the engines note events from too far ahead.
    pub(super) fn note_ahead(&mut self) {
        let ahead_of_ms = self.clock.now_ms() + self.setup.rules.lateness_ms;
        for (_, pair) in self.shards.pairs_mut() {
            pair.tracker.watermarks_mut().note_ahead_of(ahead_of_ms);
        }
    }

    /// Looks for such events, and logs new ones.
    pub(super) fn look_ahead(&mut self) {
        let (sides, now_ms) = (self.setup.sides(), self.clock.now_ms());
        let (lateness_ms, keep_ms) = (self.setup.rules.lateness_ms, self.setup.start.reach_ms());
        for (partition, pair) in self.shards.pairs_mut() {
            for side in sides {
                if pair.look_ahead(*side, now_ms, lateness_ms, keep_ms) {
                    self.report.event_ahead((*side, partition), pair, now_ms);
                }
            }
        }
    }
}

impl Pair {
    /// Looks for events that have moved M more than `lateness_ms` ahead of `now_ms`. They are forgotten `keep_ms` after the
    /// clock has reached them, or immediately if nothing was lost. Returns whether to log: if there are twice as many as
    /// were logged, or if they are over.
    fn look_ahead(&mut self, side: Side, now_ms: i64, lateness_ms: i64, keep_ms: i64) -> bool {
        let place = &mut self.ahead[side as usize];
        let marks = self.tracker.watermarks_mut();
        let (Some(ahead), Some(newest_ms)) = (marks.ahead(side), marks.newest_ms(side)) else {
            *place = None;
            return false;
        };
        let known = place.get_or_insert_default();
        let ahead_ms = newest_ms - now_ms;
        // M does not fall, so the lead shrinks only as the clock advances.
        known.furthest_ms = known.furthest_ms.max(ahead_ms);
        if ahead_ms > lateness_ms {
            let is_new = known.over_ms.take().is_some() || ahead.n_records >= (2 * known.n_logged).max(1);
            if is_new {
                known.n_logged = ahead.n_records;
            }
            return is_new;
        }
        let is_new = known.over_ms.is_none();
        let over_ms = *known.over_ms.get_or_insert(now_ms);
        // Nothing was lost because of these events, or it has left every window.
        if ahead.n_late == 0 || now_ms - over_ms > keep_ms {
            *place = None;
            marks.forget_ahead(side);
            return false;
        }
        is_new
    }

    /// Returns how far the newest event is ahead of the clock, if it makes others late.
    pub fn ahead_ms(&self, side: Side, now_ms: i64) -> Option<i64> {
        self.ahead[side as usize].filter(|known| known.over_ms.is_none())?;
        Some(self.engine().newest_ms(side)? - now_ms)
    }
}

/// Events ahead of the clock in one topic partition, for a message.
pub struct AheadWarning<'a> {
    of: TopicPartition,
    known: EventsAhead,
    noted: &'a Ahead,
    /// M: the time of the event that is furthest ahead.
    newest_ms: i64,
}

impl AheadWarning<'_> {
    pub fn of(of: TopicPartition, pair: &Pair) -> Option<AheadWarning<'_>> {
        let side = of.0;
        Some(AheadWarning {
            of,
            known: pair.ahead[side as usize]?,
            noted: pair.engine().watermarks().ahead(side)?,
            newest_ms: pair.engine().newest_ms(side)?,
        })
    }

    /// Returns whether later events are lost because of the events ahead.
    pub fn has_losses(&self) -> bool {
        self.noted.n_late > 0
    }

    fn sentence(&self, topics: &[String; 2], now_ms: i64) -> String {
        let (side, partition) = self.of;
        let topic = &topics[side as usize];
        let n = self.noted.n_records;
        let ranges = &self.noted.ranges;
        let offsets = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) if ranges.len() > MAX_NAMED => {
                format!("between {} and {}", first.start(), last.end())
            }
            _ => ranges.iter().map(range_text).collect::<Vec<_>>().join(", "),
        };
        let (which, lie, lay, it) = match n {
            1 => (format!("the event at offset {offsets}"), "lies", "lay", "it"),
            _ => (
                format!("{n} events at offsets {offsets}"),
                "lie up to",
                "lay up to",
                "them",
            ),
        };
        let late = match self.noted.n_late {
            1 => "1 later event in that partition has been counted as late because of".to_owned(),
            n_late => format!("{n_late} later events in that partition have been counted as late because of"),
        };
        let begin = format!("topic `{topic}`, partition {partition}: {which}");
        if self.known.over_ms.is_some() {
            let ahead = about(self.known.furthest_ms);
            return format!(
                "{begin} {lay} {ahead} ahead of the clock when read; no more events are late because of {it}, but {late} {it}, \
                 and numbers lack these"
            );
        }
        let ahead = about(self.newest_ms - now_ms);
        format!("{begin} {lie} {ahead} ahead of the clock; {late} {it}")
    }
}

/// Returns the remedy for all of them.
fn remedy(reported: &[AheadWarning], topics: &[String; 2], skips: &Skips) -> String {
    let reported = &reported[..reported.len().min(MAX_TO_SKIP)];
    let ranges = reported.iter().flat_map(|reported| {
        let ranges = reported.noted.ranges.iter();
        ranges.map(|range| (reported.of, range.clone()))
    });
    let setting = skips.and(ranges).setting(topics);
    let n_records: u64 = reported.iter().map(|reported| reported.noted.n_records).sum();
    let n_between: u64 = reported.iter().map(|reported| reported.noted.n_between()).sum();
    let (whose, they) = match n_records {
        1 => ("its producer", "it"),
        _ => ("their producers", "they"),
    };
    let records = number_of(n_records, "record");
    let between = match n_between {
        0 => String::new(),
        n => format!(", and up to {n} others between them that are lost with them"),
    };
    format!(
        "Fix the clock of {whose}, or of this machine; to undo what {they} did, set {setting} and restart: that ignores {records}{between}"
    )
}

/// Returns one sentence each, the furthest ahead first. The first one includes the remedy for all.
pub fn messages(
    mut reported: Vec<AheadWarning>,
    topics: &[String; 2],
    skips: &Skips,
    now_ms: i64,
) -> Vec<String> {
    // Current ones come before past ones.
    reported.sort_by_key(|reported| (reported.known.over_ms.is_some(), Reverse(reported.newest_ms)));
    let mut messages: Vec<String> = reported
        .iter()
        .take(MAX_TOLD)
        .map(|reported| reported.sentence(topics, now_ms))
        .collect();
    if let Some(first) = messages.first_mut() {
        *first = format!("{first}. {}", remedy(&reported, topics, skips));
    }
    if reported.len() > MAX_TOLD {
        let more = reported.len() - MAX_TOLD;
        messages.push(format!(
            "{more} more partitions have or had events ahead of the clock: see the log"
        ));
    }
    messages
}

/// Formats a span in its largest fitting unit, such as `47 hours`.
fn about(ms: i64) -> String {
    let units = [("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)];
    let fitting = units.into_iter().find(|(_, length_ms)| ms >= 2 * length_ms);
    let (unit, length_ms) = fitting.unwrap_or(("seconds", 1000));
    format!("{} {unit}", ms / length_ms)
}
