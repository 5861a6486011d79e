//! Rows of gathered lists, in front of the join: each is checked as a list is, waits, and has the outcome of its list.

use super::Engine;
use crate::engine::event::{Batch, Event, Position, Reason, Served, Side};
use crate::engine::gather::{CompleteList, GatherCheckpoint, Gathering};
use crate::engine::open_events::hash_of_row;
use crate::engine::outcome::Outcome;

impl Engine {
    /// The served watermark as the join sees it: all lists before it have been opened.
    pub(super) fn lists_watermark_ms(&self) -> Option<i64> {
        let watermark_ms = self.marks.watermark_ms(Side::Served)?;
        Some(watermark_ms - self.gather_ms())
    }

    /// The same with idle moves.
    pub(super) fn effective_lists_watermark_ms(&self) -> Option<i64> {
        let watermark_ms = self.marks.effective_ms(Side::Served)?;
        Some(watermark_ms - self.gather_ms())
    }

    /// Span of gathered lists; 0 if lists are whole records.
    pub(super) fn gather_ms(&self) -> i64 {
        self.rules.gather.map_or(0, |gather| gather.span_ms)
    }

    /// Rows of lists that are not complete, by [`Event::is_part`].
    pub fn n_waiting_rows(&self) -> [u64; 2] {
        self.gathering.as_ref().map_or([0; 2], |stage| stage.n_waiting())
    }

    /// Gathered lists so far, and those among them without an arm; `None` if lists are whole records.
    pub fn n_gathered(&self) -> Option<(u64, u64)> {
        self.gathering.as_ref().map(|stage| stage.n_lists())
    }

    /// Applies a row. One that waits has its outcome later.
    #[cold]
    pub(super) fn apply_row(&mut self, event: &Event, row: &Served, batch: &Batch) {
        let at = event.at;
        let is_again = self.is_reading_again(at.side, at.offset);
        // The first row at or behind the position ends the replay, before the row is decided.
        if self.is_replaying && !is_again {
            self.reached(at.side, at.offset);
        }
        self.is_again = is_again;
        let outcome = self.decide_row(event, row, batch);
        self.is_again = false;
        match outcome {
            None => {}
            Some(_) if is_again => self.count_outcome(event, Outcome::Replayed),
            Some(outcome) => {
                if outcome == Outcome::Invalid {
                    self.changes.counts.count_reason(at.side, Reason::TooManyItems);
                }
                if outcome.is_refusal() || outcome == Outcome::Invalid {
                    self.refuse(at, row, batch);
                }
                self.count_outcome(event, outcome);
            }
        }
    }

    /// Returns true if a record of this offset is read again.
    fn is_reading_again(&self, side: Side, offset: i64) -> bool {
        let replay = self.replays.get(side as usize);
        self.is_replaying && replay.is_some_and(|replay| replay.covers(offset))
    }

    /// Returns true until the topic of lists has reached the position that it is read again to.
    pub(super) fn are_lists_read_again(&self) -> bool {
        let replay = self.replays.first();
        replay.is_some_and(|replay| !replay.has_ended())
    }

    /// Checks a row in the order of D1, and adds it to its list; `None` if it waits there.
    fn decide_row(&mut self, event: &Event, row: &Served, batch: &Batch) -> Option<Outcome> {
        let at = event.at;
        self.marks.busy(at.side);
        if self.is_again {
            self.repeat_silences(at.offset);
        } else {
            self.end_silence(at.offset);
        }
        // Number refused rows too: places must be the same when the log is read again.
        let place = self.gathering.as_mut()?.place(at.offset);
        if let Err(refused) = self.check_time(at, row.ts_ms) {
            return Some(refused);
        }
        if let Some(refused) = self.refuse_row(at, row) {
            return Some(refused);
        }
        let item = batch.row_item(row);
        let head_ms = self.gathering.as_ref()?.list_of(row, place);
        // A list before the border has no effect, and its head may not have been read again.
        if head_ms.is_none() && self.is_again && row.ts_ms < self.again_from_ms {
            return Some(Outcome::AfterSettled);
        }
        self.note_heads(row, head_ms);
        let stage = self.gathering.as_ref()?;
        if let Some(refused) = head_ms.and_then(|head_ms| stage.refusal(row, head_ms, item)) {
            return Some(refused);
        }
        if !self.has_room(stage.cost(row, head_ms.is_none(), batch)) {
            self.has_shed = true;
            return Some(Outcome::Shed);
        }
        let stage = self.gathering.as_mut()?;
        if head_ms.is_none() {
            stage.insert(at, row, place, batch);
        }
        let head_ms = head_ms.unwrap_or(row.ts_ms);
        stage.push(row, head_ms, item, event.is_part);
        // It settles with its list.
        let hash = hash_of_row(row, item);
        self.open[Side::Served as usize].see(head_ms, hash, self.marks.resume_at(at));
        if self.is_again {
            self.replays[at.side as usize].accept(hash);
        }
        None
    }

    /// Refuses a row before the frontier. When it is read again, it is refused as it was.
    fn refuse_row(&mut self, at: Position, row: &Served) -> Option<Outcome> {
        if self.is_again {
            let is_before_start = Some(row.ts_ms) < self.begin_ms;
            return match is_before_start || self.copies.refused(at.offset, row.ts_ms) {
                true => Some(Outcome::AfterSettled),
                false => None,
            };
        }
        let refused = self.refused_by_frontier(row.ts_ms)?;
        if let (Outcome::AfterSettled, Some(until_ms)) = (refused, self.frontier_ms()) {
            self.copies.refuse(at.offset, until_ms);
        }
        Some(refused)
    }

    /// Notes the heads without which a later part of the log would be gathered differently.
    fn note_heads(&mut self, row: &Served, head_ms: Option<i64>) {
        if !self.lists.tracks_live() {
            // Files are not read again.
            return;
        }
        let slot_ms = row.ts_ms.div_euclid(self.settle_ms) * self.settle_ms;
        let heads = match &self.gathering {
            Some(stage) => stage.earlier_heads(row, head_ms, slot_ms),
            None => return,
        };
        if !self.has_room(Gathering::cost_of_heads(&heads)) {
            self.has_shed = true;
        } else if let Some(stage) = &mut self.gathering {
            stage.note_heads(&heads);
        }
    }

    /// Notes a silence that the row at this offset ends, if it had completed lists.
    fn end_silence(&mut self, offset: i64) {
        let Some(mut stage) = self.gathering.take() else {
            return;
        };
        stage.end_silence(offset, || Some(self.reach_for_copies(Side::Served).0?.offset));
        self.gathering = Some(stage);
    }

    /// Completes lists as silence had before this offset.
    pub(super) fn repeat_silences(&mut self, offset: i64) {
        while let Some(until_ms) = self
            .gathering
            .as_mut()
            .and_then(|stage| stage.next_silence(offset))
        {
            self.open_complete(until_ms, true);
        }
    }

    /// Opens the lists that were complete at the end of the replayed records.
    pub(super) fn end_of_reading_again(&mut self, position: i64) {
        self.open_passed();
        self.repeat_silences(position);
    }

    /// Opens all lists that the served watermark has passed, idle moves included: none is made while the log is read again.
    pub(super) fn gather(&mut self) {
        self.open_passed();
        let own_ms = self.marks.watermark_ms(Side::Served);
        let effective_ms = self.marks.effective_ms(Side::Served);
        // Only silence raises the effective watermark above the topic's own. Note it, so that a replay completes the same
        // lists.
        if let Some(until_ms) = effective_ms.filter(|_| effective_ms > own_ms)
            && self.open_complete(until_ms, false) > 0
            && let Some(stage) = &mut self.gathering
        {
            stage.silent(until_ms);
        }
        if let (Some(own_ms), Some(stage)) = (own_ms, &mut self.gathering) {
            stage.forget(own_ms);
        }
    }

    /// Opens the lists that the topic's own watermark has passed.
    #[cold]
    pub(super) fn open_passed(&mut self) {
        if let Some(watermark_ms) = self.marks.watermark_ms(Side::Served) {
            self.open_complete(watermark_ms, self.are_lists_read_again());
        }
    }

    /// Opens all lists that are gathered, as at the end of a file.
    pub fn close_gathered(&mut self) {
        self.open_complete(i64::MAX, false);
        if let Some(stage) = &mut self.gathering {
            stage.forget(i64::MAX);
        }
    }

    /// Opens the lists whose time + span lies before this, and returns their number.
    fn open_complete(&mut self, until_ms: i64, is_again: bool) -> u64 {
        let watermark_ms = self.marks.watermark_ms(Side::Served).unwrap_or(i64::MIN);
        let mut n = 0;
        let mut batch = Batch::default();
        while let Some(stage) = &mut self.gathering
            && let Some(list) = stage.take_complete(until_ms, watermark_ms, &mut batch)
        {
            self.open_gathered(&list, &batch, is_again);
            batch = Batch::default();
            n += 1;
        }
        n
    }

    /// Opens a list, and counts the outcome for each of its rows.
    fn open_gathered(&mut self, complete: &CompleteList, batch: &Batch, is_again: bool) {
        let CompleteList { at, list, n_events } = complete;
        let was_again = std::mem::replace(&mut self.is_again, is_again);
        // A list that is read again has been counted before: the counters that opening it changes are restored below.
        let of_lists = self.changes.counts.of_lists();
        let tag = self.store.tag(list.id);
        let outcome = match self.refused_by_frontier(list.ts_ms) {
            None => self.open(*at, list, &self.store.key(list.id, tag), batch),
            Some(Outcome::AfterSettled) if is_again => self.keep_again(*at, list, tag, batch),
            Some(refused) => refused,
        };
        if is_again {
            self.changes.counts.set_of_lists(of_lists);
        } else if outcome.is_refusal() {
            self.refuse(*at, list, batch);
        }
        self.is_again = was_again;
        let outcome = if is_again { Outcome::Replayed } else { outcome };
        let counts = &mut self.changes.counts;
        if !is_again {
            counts.further_rows += n_events.iter().sum::<u64>() - 1;
        }
        counts.count_many(at.side, outcome, n_events[0]);
        counts.count_many_parts(at.side, outcome, n_events[1]);
    }

    /// Returns the heads and silences that are needed to read the log again from `resume_offset` to the position.
    pub(super) fn gather_checkpoint(
        &self,
        borders: Option<[i64; 2]>,
        resume_offset: i64,
        position: i64,
    ) -> GatherCheckpoint {
        let stage = self.gathering.as_ref();
        stage.map_or_else(GatherCheckpoint::default, |stage| {
            stage.checkpoint(borders, resume_offset, position)
        })
    }
}
