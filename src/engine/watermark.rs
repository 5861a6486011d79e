//! How far event time has come in each topic partition of a pair, and which events that refuses.
//!
//! Rules D1 and D7 of docs/rules.md: M is the largest time that passed the checks, the watermark is M − lateness. A
//! topic partition that is idle lends the frontier a higher watermark, but never moves M.

use super::event::{Position, Side};
use super::outcome::Outcome;

#[derive(Debug, Clone)]
pub struct Watermarks {
    lateness_ms: i64,
    max_future_ms: i64,
    one_topic: bool,
    /// M, by side.
    newest_ms: [Option<i64>; 2],
    /// The offset of the record that moved it last.
    newest_offset: [i64; 2],
    /// What an idle move raised the watermark to, by side, until a record comes.
    idle_ms: [Option<i64>; 2],
}

impl Watermarks {
    pub fn new(lateness_ms: i64, max_future_ms: i64, one_topic: bool) -> Watermarks {
        Watermarks {
            lateness_ms,
            max_future_ms,
            one_topic,
            newest_ms: [None; 2],
            newest_offset: [0; 2],
            idle_ms: [None; 2],
        }
    }

    fn index(&self, side: Side) -> usize {
        if self.one_topic { 0 } else { side as usize }
    }

    /// Checks an event that parsed against the future and the watermark, and takes its time.
    ///
    /// # Errors
    /// [`Outcome::Future`] or [`Outcome::Late`], and the event moves nothing.
    pub fn check(&mut self, at: Position, ts_ms: i64) -> Result<(), Outcome> {
        if ts_ms > at.record_ts_ms.saturating_add(self.max_future_ms) {
            return Err(Outcome::Future);
        }
        let index = self.index(at.side);
        match self.newest_ms[index] {
            Some(newest) if ts_ms < newest - self.lateness_ms => return Err(Outcome::Late),
            Some(newest) if ts_ms <= newest => {}
            _ => {
                self.newest_ms[index] = Some(ts_ms);
                self.newest_offset[index] = at.offset;
            }
        }
        Ok(())
    }

    /// M.
    pub fn newest_ms(&self, side: Side) -> Option<i64> {
        self.newest_ms[self.index(side)]
    }

    /// The offset of the record that moved M last.
    pub fn newest_offset(&self, side: Side) -> Option<i64> {
        let index = self.index(side);
        self.newest_ms[index].map(|_| self.newest_offset[index])
    }

    /// M − lateness: no event before it is accepted.
    pub fn watermark_ms(&self, side: Side) -> Option<i64> {
        self.newest_ms(side).map(|newest| newest - self.lateness_ms)
    }

    /// The watermark as the frontier sees it, idle moves included.
    pub fn effective_ms(&self, side: Side) -> Option<i64> {
        self.watermark_ms(side).max(self.idle_ms[self.index(side)])
    }

    /// A record came: the topic partition is not idle any more, and its watermark is its own again.
    pub fn busy(&mut self, side: Side) {
        let index = self.index(side);
        self.idle_ms[index] = None;
    }

    /// Makes an idle move (D7): `live_end_ms` only where both are idle. No time after `until_ms` has passed.
    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>, until_ms: i64) {
        let own = self.newest_ms(side);
        let twin = self.newest_ms(side.twin());
        let (Some(known), index) = (own.max(twin), self.index(side)) else {
            return; // A pair that never had a record has no frontier and takes no part.
        };
        let passed = known.max(live_end_ms.unwrap_or(i64::MIN)).min(until_ms);
        let raised = passed - self.lateness_ms;
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
    fn an_idle_side_takes_its_twins_time_and_both_take_the_live_end() {
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
    fn an_idle_side_does_not_follow_what_lies_ahead_of_the_clock() {
        let mut marks = Watermarks::new(100, 30, false);
        assert_eq!(marks.check(at(Side::Served, 9000), 9000), Ok(()));
        marks.idle(Side::Clicks, Some(9000), 2000);
        assert_eq!(marks.effective_ms(Side::Clicks), Some(1900));
    }

    #[test]
    fn tells_which_record_moved_it_last() {
        let mut marks = Watermarks::new(100, 30, false);
        assert_eq!(marks.newest_offset(Side::Served), None);
        for (offset, ts_ms) in [(5, 1000), (6, 1010), (7, 1010), (8, 950), (9, 500)] {
            let at = Position {
                offset,
                ..at(Side::Served, 1000)
            };
            let _ = marks.check(at, ts_ms);
        }
        assert_eq!(marks.newest_offset(Side::Served), Some(6));
        assert_eq!(marks.newest_offset(Side::Clicks), None);
    }
}
