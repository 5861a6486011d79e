//! The watermarks of a pair's topic partitions, and which events they refuse.
//!
//! Rules D1 and D7 of docs/rules.md: M is the largest time that passed the checks, the watermark is M − lateness. A
//! topic partition that is idle lends the frontier a higher watermark, but never moves M.

use std::ops::RangeInclusive;

use super::event::{Position, Side};
use super::open_events::ResumePoint;
use super::outcome::Outcome;

/// An event that is later than this comes from an old log rather than from a slow producer.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum number of offset ranges kept for [`Ahead`] records.
const MAX_RANGES: usize = 32;

#[derive(Debug, Clone)]
pub struct Watermarks {
    lateness_ms: i64,
    max_future_ms: i64,
    one_topic: bool,
    /// M, by side.
    newest_ms: [Option<i64>; 2],
    /// M before the last event that was not refused, of its side.
    before_ms: Option<i64>,
    /// Watermark after an idle move, by side, until a record comes.
    idle_ms: [Option<i64>; 2],
    /// Time after which events are noted as ahead.
    ahead_of_ms: i64,
    ahead: [Option<Ahead>; 2],
}

/// Records that were too far ahead on arrival, late or not: without one, the next would have the same effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Their offsets, ascending. If there would be more than 32 ranges, the nearest two are merged, including the gap between
    /// them.
    pub ranges: Vec<RangeInclusive<i64>>,
    pub n_records: u64,
    /// Number of events that are late only because of these records.
    pub n_late: u64,
    /// M as it would be without them.
    newest_without_ms: Option<i64>,
}

impl Ahead {
    /// Offsets within the ranges that are none of these records.
    pub fn n_between(&self) -> u64 {
        let length = |range: &RangeInclusive<i64>| range.end().abs_diff(*range.start()) + 1;
        let n_covered: u64 = self.ranges.iter().map(length).sum();
        n_covered.saturating_sub(self.n_records)
    }

    /// One more, behind all before.
    fn push(&mut self, offset: i64) {
        self.n_records += 1;
        match self.ranges.last_mut() {
            Some(last) if last.end().saturating_add(1) >= offset => *last = *last.start()..=offset,
            _ => self.ranges.push(offset..=offset),
        }
        if self.ranges.len() > MAX_RANGES {
            let gap = |n: &usize| self.ranges[n + 1].start().abs_diff(*self.ranges[*n].end());
            let nearest = (0..self.ranges.len() - 1).min_by_key(gap).unwrap_or_default();
            let next = self.ranges.remove(nearest + 1);
            let range = &mut self.ranges[nearest];
            *range = *range.start()..=*next.end();
        }
    }
}

impl Watermarks {
    pub fn new(lateness_ms: i64, max_future_ms: i64, one_topic: bool) -> Watermarks {
        Watermarks {
            lateness_ms,
            max_future_ms,
            one_topic,
            newest_ms: [None; 2],
            before_ms: None,
            idle_ms: [None; 2],
            ahead_of_ms: i64::MAX,
            ahead: [None, None],
        }
    }

    fn index(&self, side: Side) -> usize {
        if self.one_topic { 0 } else { side as usize }
    }

    /// Checks an event that parsed against the future and the watermark, and takes its time.
    ///
    /// # Errors
    /// [`Outcome::Future`] or [`Outcome::Late`]. The watermark does not move then.
    pub fn check(&mut self, at: Position, ts_ms: i64) -> Result<(), Outcome> {
        if ts_ms > at.record_ts_ms.saturating_add(self.max_future_ms) {
            return Err(Outcome::Future);
        }
        let index = self.index(at.side);
        // Before M moves, because the note compares the event with the old M.
        if ts_ms > self.ahead_of_ms || self.ahead[index].is_some() {
            self.note(index, at.offset, ts_ms);
        }
        if self.is_late(self.newest_ms[index], ts_ms) {
            return Err(Outcome::Late);
        }
        // A replay that starts with this record needs M as it was before it.
        self.before_ms = self.newest_ms[index];
        self.newest_ms[index] = self.before_ms.max(Some(ts_ms));
        Ok(())
    }

    fn is_late(&self, newest_ms: Option<i64>, ts_ms: i64) -> bool {
        newest_ms.is_some_and(|newest_ms| ts_ms < newest_ms - self.lateness_ms)
    }

    /// Returns whether an event lies more than a day behind the newest one.
    pub fn is_days_late(&self, side: Side, ts_ms: i64) -> bool {
        let newest_ms = self.newest_ms[self.index(side)];
        newest_ms.is_some_and(|newest_ms| ts_ms < newest_ms - DAY_MS)
    }

    /// Notes an event that lies ahead, or the outcome of one that follows it.
    #[cold]
    fn note(&mut self, index: usize, offset: i64, ts_ms: i64) {
        let newest_ms = self.newest_ms[index];
        let mut ahead = self.ahead[index].take().unwrap_or_else(|| Ahead {
            newest_without_ms: newest_ms,
            ..Ahead::default()
        });
        if ts_ms > self.ahead_of_ms {
            ahead.push(offset);
        } else if !self.is_late(ahead.newest_without_ms, ts_ms) {
            ahead.n_late += u64::from(self.is_late(newest_ms, ts_ms));
            ahead.newest_without_ms = ahead.newest_without_ms.max(Some(ts_ms));
        }
        self.ahead[index] = Some(ahead);
    }

    /// Sets the time after which events are noted as ahead.
    pub fn note_ahead_of(&mut self, ahead_of_ms: i64) {
        self.ahead_of_ms = ahead_of_ms;
    }

    /// Returns the events noted since they were last forgotten.
    pub fn ahead(&self, side: Side) -> Option<&Ahead> {
        self.ahead[self.index(side)].as_ref()
    }

    pub fn forget_ahead(&mut self, side: Side) {
        let index = self.index(side);
        self.ahead[index] = None;
    }

    /// Sets M to its value at the resume point of a topic.
    pub fn resume(&mut self, side: Side, newest_ms: Option<i64>) {
        let index = self.index(side);
        self.newest_ms[index] = newest_ms;
    }

    /// M.
    pub fn newest_ms(&self, side: Side) -> Option<i64> {
        self.newest_ms[self.index(side)]
    }

    /// The place of the last event that was [checked](Self::check) and not refused.
    pub fn resume_at(&self, at: Position) -> ResumePoint {
        ResumePoint {
            offset: at.offset,
            newest_ms: self.before_ms,
        }
    }

    /// M − lateness: no event before it is accepted.
    pub fn watermark_ms(&self, side: Side) -> Option<i64> {
        self.newest_ms(side).map(|newest| newest - self.lateness_ms)
    }

    /// The watermark as the frontier sees it, idle moves included.
    pub fn effective_ms(&self, side: Side) -> Option<i64> {
        self.watermark_ms(side).max(self.idle_ms[self.index(side)])
    }

    /// A record arrived: the topic partition is no longer idle, and its own watermark applies again.
    pub fn busy(&mut self, side: Side) {
        let index = self.index(side);
        self.idle_ms[index] = None;
    }

    /// Makes an idle move (D7). `live_end_ms` is set only if both sides are idle. The watermark stays at or below `until_ms` −
    /// lateness.
    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>, until_ms: i64) {
        let own = self.newest_ms(side);
        let twin = self.newest_ms(side.twin());
        let (Some(known), index) = (own.max(twin), self.index(side)) else {
            return; // A pair that never had a record has no frontier and takes no part.
        };
        let passed = known.max(live_end_ms.unwrap_or(i64::MIN)).min(until_ms);
        let raised = passed - self.lateness_ms;
        // A later call may pass an earlier live end: an idle move never goes back.
        self.idle_ms[index] = self.idle_ms[index].max(Some(raised));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(side: Side, record_ts_ms: i64) -> Position {
        Position {
            side,
            offset: 0,
            record_ts_ms,
        }
    }

    #[test]
    fn refuses_the_future_before_it_can_move_the_watermark() {
        let mut marks = Watermarks::new(100, 30, false);
        assert_eq!(marks.check(at(Side::Served, 1000), 1031), Err(Outcome::Future));
        assert_eq!(marks.newest_ms(Side::Served), None);
        assert_eq!(marks.check(at(Side::Served, 1000), 1030), Ok(()));
        assert_eq!(marks.newest_ms(Side::Served), Some(1030));
    }

    #[test]
    fn an_event_at_the_watermark_is_in_time() {
        let mut marks = Watermarks::new(100, 30, false);
        assert_eq!(marks.check(at(Side::Served, 1000), 1000), Ok(()));
        assert_eq!(marks.check(at(Side::Served, 1000), 900), Ok(()));
        assert_eq!(marks.check(at(Side::Served, 1000), 899), Err(Outcome::Late));
        assert_eq!(
            marks.check(at(Side::Clicks, 1000), 1),
            Ok(()),
            "the other topic has its own"
        );
    }

    #[test]
    fn one_topic_has_one_watermark() {
        let mut marks = Watermarks::new(100, 30, true);
        assert_eq!(marks.check(at(Side::Served, 1000), 1000), Ok(()));
        assert_eq!(marks.watermark_ms(Side::Clicks), Some(900));
    }

    #[test]
    fn an_idle_side_takes_the_time_of_the_other_and_two_idle_sides_the_live_end() {
        let mut marks = Watermarks::new(100, 30, false);
        marks.idle(Side::Clicks, Some(9000), i64::MAX);
        assert_eq!(marks.effective_ms(Side::Clicks), None, "never had a record");
        assert_eq!(marks.check(at(Side::Served, 1000), 1000), Ok(()));
        marks.idle(Side::Clicks, None, i64::MAX);
        assert_eq!(marks.effective_ms(Side::Clicks), Some(900));
        marks.idle(Side::Clicks, Some(5000), i64::MAX);
        marks.idle(Side::Clicks, Some(4000), i64::MAX);
        assert_eq!(marks.effective_ms(Side::Clicks), Some(4900), "it never falls");
        assert_eq!(marks.newest_ms(Side::Clicks), None, "M does not move");
    }

    #[test]
    fn an_idle_side_does_not_advance_beyond_the_clock() {
        let mut marks = Watermarks::new(100, 30, false);
        assert_eq!(marks.check(at(Side::Served, 9000), 9000), Ok(()));
        marks.idle(Side::Clicks, Some(9000), 2000);
        assert_eq!(marks.effective_ms(Side::Clicks), Some(1900));
    }

    /// Feeds served events by offset and time.
    fn feed(marks: &mut Watermarks, events: impl IntoIterator<Item = (i64, i64)>) {
        for (offset, ts_ms) in events {
            let at = Position {
                offset,
                ..at(Side::Served, ts_ms)
            };
            let _ = marks.check(at, ts_ms);
        }
    }

    #[test]
    fn events_ahead_are_noted_even_if_they_are_late() {
        let mut marks = Watermarks::new(100, 30, false);
        marks.note_ahead_of(2000);
        feed(&mut marks, [(1, 1000), (2, 2000)]);
        assert_eq!(marks.ahead(Side::Served), None);
        feed(
            &mut marks,
            [(5, 9000), (6, 8990), (7, 1500), (8, 5000), (9, 9001)],
        );
        let ahead = marks.ahead(Side::Served).expect("they lie ahead");
        assert_eq!(ahead.ranges, [5..=6, 8..=9]);
        assert_eq!((ahead.n_records, ahead.n_between()), (4, 0));
        assert_eq!(marks.ahead(Side::Clicks), None);
        marks.forget_ahead(Side::Served);
        assert_eq!(marks.ahead(Side::Served), None);
    }

    #[test]
    fn events_ahead_are_blamed_only_for_lateness_they_cause() {
        let mut marks = Watermarks::new(100, 30, false);
        marks.note_ahead_of(2000);
        // After the one ahead: 1500 moves M as it would be, so that 1399 is late and 1400 is not.
        feed(
            &mut marks,
            [(1, 1000), (2, 9000), (3, 899), (4, 1500), (5, 1399), (6, 1400)],
        );
        assert_eq!(marks.ahead(Side::Served).map(|ahead| ahead.n_late), Some(2));
        // The clock has reached it.
        marks.note_ahead_of(10_000);
        feed(&mut marks, [(7, 9000), (8, 8899)]);
        assert_eq!(marks.ahead(Side::Served).map(|ahead| ahead.n_late), Some(2));
    }

    #[test]
    fn ranges_of_events_ahead_are_bounded() {
        let mut marks = Watermarks::new(100, 30, false);
        marks.note_ahead_of(2000);
        let offsets = (0..1000).map(|n| 10 * n).chain([9992]);
        feed(&mut marks, offsets.map(|offset| (offset, 9000)));
        let ahead = marks.ahead(Side::Served).expect("they lie ahead");
        assert_eq!(ahead.ranges.len(), MAX_RANGES);
        assert_eq!(
            (ahead.ranges[0].start(), ahead.ranges[MAX_RANGES - 1].end()),
            (&0, &9992)
        );
        let is_covered = |offset: i64| ahead.ranges.iter().any(|range| range.contains(&offset));
        assert!((0..1000).all(|n| is_covered(10 * n)));
        assert_eq!(ahead.n_records, 1001);
        let n_covered = (0..9993).filter(|offset| is_covered(*offset)).count() as u64;
        assert_eq!(ahead.n_between(), n_covered - 1001);
    }
}
