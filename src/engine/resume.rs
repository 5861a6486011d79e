//! Where a log is to be read again from, so that all that is not settled comes back.
//!
//! ```text
//! offset      7      9      12     13     20
//! slot        3 *    3      5 *    4      6 *       * noted: no earlier one is of its slot or a later one
//! ```
//! While F ≤ 3 the log is read from 7 again, from 12 with F at 4 or 5, from 20 with F at 6. An event that is not noted has an
//! earlier one before it that is settled no sooner, so it is never the first.

use std::collections::VecDeque;

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// Of the next record.
    pub offset: i64,
    /// M of the topic partition before that record.
    pub newest_ms: Option<i64>,
}

/// Accepted events of one kind that may be the first to be read again.
#[derive(Debug)]
pub struct FirstOpen {
    slot_ms: i64,
    /// With the end of the slot of each, epoch ms. Offsets and ends ascend.
    noted: VecDeque<(i64, ResumePoint)>,
    /// The largest of these ends, also after it was dropped.
    noted_until_ms: i64,
}

impl FirstOpen {
    pub fn new(slot_ms: i64) -> FirstOpen {
        FirstOpen {
            slot_ms,
            noted: VecDeque::new(),
            noted_until_ms: i64::MIN,
        }
    }

    /// Sees an accepted event, whose lists can have no later time than this (epoch ms).
    #[inline(always)]
    pub fn see(&mut self, reach_ms: i64, at: ResumePoint) {
        if reach_ms >= self.noted_until_ms {
            self.note(reach_ms, at);
        }
    }

    /// Once a slot.
    #[cold]
    fn note(&mut self, reach_ms: i64, at: ResumePoint) {
        let number = reach_ms.div_euclid(self.slot_ms);
        self.noted_until_ms = (number + 1).saturating_mul(self.slot_ms);
        self.noted.push_back((self.noted_until_ms, at));
    }

    /// Forgets events of slots before this border, epoch ms.
    pub fn drop_before(&mut self, settled_until_ms: i64) {
        while self
            .noted
            .front()
            .is_some_and(|(end_ms, _)| *end_ms <= settled_until_ms)
        {
            self.noted.pop_front();
        }
    }

    /// The first event that is of no slot before this border, epoch ms; without one the first of all.
    pub fn first(&self, settled_until_ms: Option<i64>) -> Option<ResumePoint> {
        let mut noted = self.noted.iter();
        let first = noted.find(|(end_ms, _)| Some(*end_ms) > settled_until_ms);
        first.map(|(_, at)| *at)
    }
}
