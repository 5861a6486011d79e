//! Resuming an engine: the stored part of its state, and the part that is replayed from the logs.

use super::{Engine, copies_from_ms, new_list};
use crate::engine::Rules;
use crate::engine::arms::{Arm, Arms};
use crate::engine::checkpoint::{Accepted, Checkpoint, LogCheckpoint, ResumeError};
use crate::engine::copies::{Copied, Copies, CopiesCheckpoint, CopiesReach};
use crate::engine::event::{Batch, Body, Event, Position, Served, Side};
use crate::engine::gather::{GatherCheckpoint, Gathering};
use crate::engine::lists::{ListRelation, NewList};
use crate::engine::open_events::{Digest, ResumePoint, hash_of_click, hash_of_list};
use crate::engine::outcome::Outcome;
use crate::engine::replay::{Replay, Replayed};
use crate::engine::store::Tag;
use crate::metrics::Ranking;

impl Engine {
    /// Creates an engine that resumes from a checkpoint, with the arms that were admitted then, in their order. Each topic is
    /// to be read from its resume point. Records before the position are `replayed`: they restore what is open, and are not
    /// counted again. From the position on, everything is as it would have been without a pause.
    ///
    /// Records before the resume points no longer have any effect. The argument uses R, the border past which no later copy
    /// reaches: start(F), or after silence max(served watermark, start(F)) − `same_list`, if that is earlier. Before the resume
    /// points, no list with a time ≥ R was accepted, and no click whose time plus `click_skew` is ≥ start(F).
    /// - M at the resume point is stored. It depends only on the topic's records up to there, so every later record has the
    ///   same outcome as before: M and its own timestamp decide whether it is late or in the future.
    /// - A list before the resume points is of a slot < R ≤ F. It is settled, so it is in the ledger and no longer changes. No
    ///   list behind the position is a copy of it. A list between resume point and position may be: then the original's id and
    ///   time are stored ([`Copied`]), and the original is kept.
    /// - A list between the two, of a slot ≥ F, was accepted unless it is a copy of a stored list or of another one in between.
    /// - A list between the two, of a slot ≥ R and < F, was accepted likewise, unless it was before F when it came. How far
    ///   silence had moved F is stored too ([`Refusal`]). The list is in the ledger, and is kept again for its copies.
    /// - A list between the two, of a slot < R, has no effect.
    /// - A click before the resume points has a time plus `click_skew` < start(F). A list that it counts for has a time no
    ///   later than that, so it is of a slot < F.
    /// - A refused click is read again like an accepted one. It counts when its list settles. If the list is read again, the click is
    ///   found again. If not, the click is already in the ledger.
    /// - Arms are stored in the order of their admission, with hashes of the folded ones, so that each is counted once.
    ///
    /// Ids and times of originals must be stored, because reading them again is not enough: whether an original was accepted
    /// depends on the list before it, and so on without end if lists of one id follow one another.
    ///
    /// [`Copied`]: crate::engine::Copied
    /// [`Refusal`]: crate::engine::LateRefusal
    ///
    /// If the log of lists no longer reaches back to R, it is read from the first list of a slot ≥ F instead
    /// ([`Self::give_up_copies`]): everything open is restored, but copies of settled lists are no longer recognized.
    ///
    /// During a replay, F is never behind what the watermarks allow, because they are no further than they were. So the same
    /// events are accepted in whatever order the topics are read (D2), even if one is ahead of its position.
    ///
    /// Anything that is not stored starts over. An idle move keeps its effect on F, but adds nothing to later watermarks. A
    /// catalogue counts for the slots that it opens again. A kept click no longer has the number of lists of settled slots that
    /// have taken it: if it falls to more than `max_lists_per_click` lists on both sides of F, it may count for more of the
    /// later ones. For the same reason, a click that a list of a settled slot may have taken does not wait in
    /// [`Self::n_waiting`].
    ///
    /// # Errors
    /// [`ResumeError`] if these rules cannot have made it.
    pub fn resume(
        rules: Rules,
        ranking: Ranking,
        from: &Checkpoint,
        arms: &[Arm],
    ) -> Result<Engine, ResumeError> {
        let slot_ms = rules.slot_ms;
        let is_border = |ms: i64| ms % slot_ms == 0;
        if ![from.until_ms, from.begin_ms]
            .into_iter()
            .flatten()
            .all(is_border)
        {
            return Err(ResumeError::Until);
        }
        let logs: Vec<LogCheckpoint> = from.logs_for_copies().collect();
        let sides = logs.iter().map(|log| log.side);
        let n_topics = if rules.one_topic { 1 } else { 2 };
        let is_read_again = |log: &LogCheckpoint| log.resume.offset <= log.position.offset;
        if !sides.eq(Side::BOTH.into_iter().take(n_topics)) || !logs.iter().all(is_read_again) {
            return Err(ResumeError::Logs);
        }
        let arms = Arms::resume(rules.max_arms, arms).ok_or(ResumeError::Arms)?;
        let mut engine = Engine::new(rules, ranking, from.begin_ms);
        engine.arms = arms;
        engine.arms.resume_folded(&from.folded);
        // Never before the start of counting, at which `Engine::new` has put the frontier.
        engine.frontier = engine.frontier.max(from.until_ms.map(|ms| ms / slot_ms));
        engine.has_shed = !from.is_exact;
        if let Some(accepted) = from.accepted {
            engine.first_accepted_ms = Some(accepted.first_ms);
            engine.last_accepted_ms = Some(accepted.last_ms);
            engine.last_record_ms = accepted.last_record_ms;
        }
        engine.keep_originals(from);
        engine.is_replaying = true;
        engine.without_copies = from.copies.reach.map(|_| {
            let copies = CopiesCheckpoint {
                reach: None,
                ..from.copies.clone()
            };
            Box::new(Checkpoint {
                copies,
                ..from.clone()
            })
        });
        for log in &logs {
            engine.marks.resume(log.side, log.resume.newest_ms);
            engine.replays.push(Replay::new(log));
        }
        for log in &logs {
            // Only once all replays exist: the engine is replaying until every one of them has ended.
            engine.reached(log.side, log.resume.offset);
        }
        Ok(engine)
    }

    /// Notes from when on lists are read again, and keeps those before it that have copies among them.
    fn keep_originals(&mut self, from: &Checkpoint) {
        let Rules {
            lateness_ms,
            same_list_ms,
            ..
        } = self.rules;
        let served = from.logs.iter().find(|log| log.side == Side::Served);
        let watermark_ms = served
            .and_then(|log| log.position.newest_ms)
            .map(|newest_ms| newest_ms - lateness_ms - self.gather_ms());
        if let Some(until_ms) = from.until_ms {
            let next_ms = until_ms.max(watermark_ms.unwrap_or(i64::MIN));
            let copies_ms = copies_from_ms(next_ms, same_list_ms, self.settle_ms);
            self.again_from_ms = from.copies.reach.map_or(until_ms, |_| until_ms.min(copies_ms));
        }
        self.copies = Copies::resume(&from.copies, self.gather_ms());
        let gather = self.rules.gather;
        self.gathering =
            gather.map(|gather| Box::new(Gathering::resume(gather, &from.gathered, self.again_from_ms)));
        let again_from_ms = self.again_from_ms;
        let is_across = |copied: &&Copied| copied.is_across(again_from_ms);
        for copied in from.copies.copied.iter().filter(is_across) {
            let key = self.store.key(copied.id, self.store.tag(copied.id));
            let found = self.store.find(&key);
            let standing = self
                .lists
                .look_up(&self.store, copied.id, found, copied.original_ms);
            // Only its id and its time matter: conflicts were counted before.
            let original = NewList {
                id: copied.id,
                user: None,
                ts_ms: copied.original_ms,
                arms: &[],
                folded: 0,
                items: &[],
            };
            // One original may have several copies.
            if !matches!(standing, ListRelation::CopyOf(_)) {
                self.lists
                    .insert_settled(&mut self.store, &key, found, standing, &original);
            }
        }
    }

    /// Decides on a list of a settled slot that is read again. One that had been accepted is kept, as long as copies of it may
    /// come.
    pub(super) fn keep_again(&mut self, at: Position, list: &Served, tag: Tag, batch: &Batch) -> Outcome {
        // No later list is a copy of it, or it was refused when it first came.
        if list.ts_ms < self.again_from_ms || self.copies.refused(at.offset, list.ts_ms) {
            return Outcome::AfterSettled;
        }
        let key = self.store.key(list.id, tag);
        let found = self.store.find(&key);
        let standing = self.lists.look_up(&self.store, list.id, found, list.ts_ms);
        if let ListRelation::CopyOf(_) = standing {
            self.note_copy(list, found);
            return Outcome::Duplicate;
        }
        let (items, names) = (batch.items_of(list), batch.arms_of(list));
        if !self.has_room(self.lists.cost(items.len(), names.len())) || self.store.chunks.is_full() {
            self.has_shed = true;
            return Outcome::Shed;
        }
        let arms = &mut self.arms;
        let arm_ids = &mut self.scratch.arms;
        arm_ids.clear();
        arm_ids.extend(names.iter().map(|name| arms.admit(name, batch)));
        let folded = arms.count_once(names, arm_ids);
        if self.gathering.is_none() {
            let at = self.marks.resume_at(at);
            self.open[Side::Served as usize].see(list.ts_ms, hash_of_list(list), at);
        }
        let list = new_list(list, &self.scratch.arms, folded, items);
        self.lists
            .insert_settled(&mut self.store, &key, found, standing, &list);
        Outcome::Accepted
    }

    /// Returns the checkpoint, given the offset of the next record of each topic, the topic of lists first. `None` during a
    /// replay, and while settled lists wait for their visit, because it is not yet known what is settled.
    pub fn checkpoint(&self, positions: &[(Side, i64)]) -> Option<Checkpoint> {
        if self.is_replaying || self.has_settled() {
            return None;
        }
        let log = |(side, offset): &(Side, i64)| {
            let position = ResumePoint {
                offset: *offset,
                newest_ms: self.newest_ms(*side),
            };
            LogCheckpoint {
                side: *side,
                position,
                // With nothing open, reading continues at the position.
                resume: self.resume_point(*side).unwrap_or(position),
                open: self.open_digest(*side),
            }
        };
        let accepted = self.accepted_ms().map(|(first_ms, last_ms)| Accepted {
            first_ms,
            last_ms,
            last_record_ms: self.last_record_ms,
        });
        let logs: Vec<LogCheckpoint> = positions.iter().map(log).collect();
        let copies = self.copies_checkpoint(positions);
        let gathered = self.gathered_checkpoint(&logs, &copies);
        Some(Checkpoint {
            until_ms: self.frontier_ms(),
            begin_ms: self.begin_ms,
            accepted,
            is_exact: !self.has_shed && !self.changes.overflowed,
            logs,
            copies,
            gathered,
            folded: self.arms.stored_folded().to_vec(),
        })
    }

    fn gathered_checkpoint(&self, logs: &[LogCheckpoint], copies: &CopiesCheckpoint) -> GatherCheckpoint {
        let Some(log) = logs.iter().find(|log| log.side == Side::Served) else {
            return GatherCheckpoint::default();
        };
        let resume = copies.reach.map_or(log.resume, |reach| reach.resume);
        let borders = self.needed_from_ms(Side::Served).zip(self.settled_until_ms());
        let borders = borders.map(|(from_ms, until_ms)| [from_ms, until_ms]);
        self.gather_checkpoint(borders, resume.offset, log.position.offset)
    }

    fn copies_checkpoint(&self, positions: &[(Side, i64)]) -> CopiesCheckpoint {
        let needed_from_ms = self.needed_from_ms(Side::Served);
        let borders = needed_from_ms.zip(self.settled_until_ms());
        let reaches_further = borders.is_some_and(|(from_ms, until_ms)| from_ms < until_ms);
        let position = positions.iter().find(|(side, _)| *side == Side::Served);
        let reach = position.filter(|_| reaches_further).map(|(side, offset)| {
            let (resume, open) = self.reach_for_copies(*side);
            let resume = resume.unwrap_or(ResumePoint {
                offset: *offset,
                newest_ms: self.newest_ms(*side),
            });
            CopiesReach { resume, open }
        });
        CopiesCheckpoint {
            reach,
            ..self
                .copies
                .checkpoint(borders.map(|(from_ms, until_ms)| [from_ms, until_ms]))
        }
    }

    /// Returns where a topic must be replayed from, given what is settled and visited: at the first accepted list that is not,
    /// or at the first accepted click that may belong to such a list. `None` if there is neither. M at that record makes later
    /// decisions the same as the first time.
    pub fn resume_point(&self, side: Side) -> Option<ResumePoint> {
        self.first_from(side, |_| self.settled_until_ms())
    }

    /// Digest of a topic's accepted events from [`Self::resume_point`] on.
    pub fn open_digest(&self, side: Side) -> Digest {
        self.digest_from(side, |_| self.settled_until_ms())
    }

    /// Resume point and digest, extended to settled lists that may still be copied.
    pub fn reach_for_copies(&self, side: Side) -> (Option<ResumePoint>, Digest) {
        let from_ms = |kind| self.needed_from_ms(kind);
        (self.first_from(side, from_ms), self.digest_from(side, from_ms))
    }

    /// The first event of a topic that is of no slot before the border of its kind.
    fn first_from(&self, side: Side, from_ms: impl Fn(Side) -> Option<i64>) -> Option<ResumePoint> {
        let firsts = self
            .kinds_of(side)
            .filter_map(|kind| self.open[kind as usize].first(from_ms(kind)));
        firsts.min_by_key(|first| first.offset)
    }

    fn digest_from(&self, side: Side, from_ms: impl Fn(Side) -> Option<i64>) -> Digest {
        let mut digest = Digest::default();
        for kind in self.kinds_of(side) {
            digest.merge(self.open[kind as usize].digest(from_ms(kind)));
        }
        digest
    }

    /// Gives up what only copies need, because the log of lists no longer has it, and returns the offset that open lists need.
    /// Must be called before the replay starts. Later copies of lists that are gone count as lists.
    pub fn give_up_copies(&mut self) -> Option<i64> {
        let without_copies = self.without_copies.take()?;
        let log = without_copies.logs.iter().find(|log| log.side == Side::Served)?;
        let offset = log.resume.offset;
        let (rules, ranking) = (self.rules.clone(), self.ranking.clone());
        // Nothing has been read yet, so starting over from the other checkpoint loses nothing.
        *self = Engine::resume(rules, ranking, &without_copies, self.arms.all()).ok()?;
        Some(offset)
    }

    /// Returns the kinds of events in a topic.
    fn kinds_of(&self, side: Side) -> impl Iterator<Item = Side> + use<> {
        let one_topic = self.rules.one_topic;
        Side::BOTH
            .into_iter()
            .filter(move |kind| one_topic || *kind == side)
    }

    /// Returns whether a topic is still replayed up to its position. Until then the engine makes neither idle moves nor
    /// checkpoints.
    pub fn is_replaying(&self) -> bool {
        self.is_replaying
    }

    /// Returns the result of a topic's replay; `None` if the engine was not resumed.
    pub fn replayed(&self, side: Side) -> Option<Replayed> {
        let replay = self.replays.get(side as usize)?;
        Some(replay.outcome(self.has_shed))
    }

    /// Notes that all records of a topic before this offset were read. A record at the position or behind it implies this too,
    /// but there may be none: offsets have gaps, so the caller must report its position.
    pub fn reached(&mut self, side: Side, offset: i64) {
        let newest_ms = self.newest_ms(side);
        // End this reading first, before new rows join their lists.
        if side == Side::Served && self.are_lists_read_again() && !self.replays[0].covers(offset) {
            self.end_of_reading_again(offset);
        }
        if let Some(replay) = self.replays.get_mut(side as usize) {
            replay.reach(ResumePoint { offset, newest_ms });
        }
        self.is_replaying = !self.replays.iter().all(Replay::has_ended);
    }

    /// Applies a record that may have had its outcome.
    #[cold]
    pub(super) fn replay_event(&mut self, event: &Event, tag: Tag, batch: &Batch) {
        let (side, offset) = (event.at.side, event.at.offset);
        let replay = self.replays.get(side as usize);
        if !replay.is_some_and(|replay| replay.covers(offset)) {
            // A record at the position or behind it shows that all earlier ones were read.
            self.reached(side, offset);
            return self.count_event(event, tag, batch);
        }
        // The record was counted before the restart. It only restores state, so the counters keep their values.
        let of_lists = self.changes.counts.of_lists();
        self.is_again = true;
        let outcome = self.decide(event, tag, batch);
        self.is_again = false;
        self.changes.counts.set_of_lists(of_lists);
        self.count_outcome(event, Outcome::Replayed);
        // The digest of accepted records shows whether this is still the log that the checkpoint was taken from.
        if outcome == Outcome::Accepted {
            let hash = match &event.body {
                Body::Served(list) => hash_of_list(list),
                Body::Click(click) | Body::PartialClick(click) => hash_of_click(click),
                Body::Invalid(..) | Body::Ignored | Body::Skipped => return,
            };
            self.replays[side as usize].accept(hash);
        }
    }
}
