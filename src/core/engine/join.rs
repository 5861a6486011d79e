//! One pair of partitions: joins its clicks to its lists and settles slots, deterministically.
//!
//! Rules D1 to D5 of docs/rules.md. Nothing here depends on how the two topics interleave, on a clock or on another pair.

use std::sync::Arc;

use super::arms::{Arm, ArmId, Arms};
use super::checkpoint::Checkpoint;
use super::clicks::{EarlierClick, KeptClick, KeptClicks, REFUSED};
use super::contributions::{Contributions, ListBeforeClick};
use super::copies::{Copied, Copies};
use super::event::{Batch, Body, Click, Event, Position, Served, Side};
use super::float_times::is_on_step;
use super::gather::{GatherRules, Gathering};
use super::lists::{
    ArmInSlot, ChunkHandle, Crowded, Hit, LengthContribution, ListRelation, NewList, OFF_LIST_BYTES,
    OpenLists, UnclickedContribution,
};
use super::open_events::{OpenEvents, hash_of_click, hash_of_list};
use super::outcome::{ClickResult, Counts, Outcome};
use super::partial_ids::PartialIds;
use super::refused::RefusedEvent;
use super::repeats::Repeats;
use super::replay::Replay;
use super::settling::{Settled, Settling};
use super::shared_id::SharedId;
use super::shown::ShownLists;
use super::store::{Handles, LookupKey, Store, Tag};
use super::tally::Rows;
use super::watermark::Watermarks;
use crate::metrics::catalogue::Catalogue;
use crate::metrics::{self, Ranking, Relevant};

/// Events per prefetched group. Lines of the index are fetched two groups ahead, and records one group ahead: cache misses
/// overlap with work and with each other.
const GROUP: usize = 16;
/// Ratio of open lists to waiting clicks above which few new lists have a waiting click.
const FEW_WAITING: u64 = 16;
/// Kept clicks expire in parts of a slot, small enough that no batch takes long. With 256 parts each held a click or two,
/// and with a chunk of its own a click took twice as long to join.
const CLICK_BUCKETS: i64 = 32;
/// Clicks are kept for at least the lateness. Maximum number of parts if that is long.
const CLICK_BUCKETS_OF_LATENESS: i64 = 4096;

/// Rules by which clicks belong to lists. Times are ms of event time.
#[derive(Debug, Clone)]
pub struct Rules {
    pub attribution_ms: i64,
    pub click_skew_ms: i64,
    /// A list is a copy of an accepted one of its id with a lower offset and a time no farther away.
    pub same_list_ms: i64,
    pub lateness_ms: i64,
    pub max_future_ms: i64,
    pub slot_ms: i64,
    pub max_off_list: u32,
    /// Maximum number of lists that a click counts for, lowest offsets first; at least 1.
    pub max_lists_per_click: u32,
    pub max_arms: u32,
    /// True if both kinds come from one topic partition.
    pub one_topic: bool,
    /// Rules for lists of one record per shown item; `None` if a record is a whole list.
    pub gather: Option<GatherRules>,
}

/// The changes of one pair since the last hand-over.
#[derive(Debug, Default)]
pub struct Changes {
    pub counts: Counts,
    /// Sums that lists and clicks added to their arms in open slots.
    pub live: Rows<ArmInSlot>,
    /// Items shown by new lists, if coverage is measured.
    pub shown: ShownLists,
    /// A sum has exceeded 64 bits since the engine began: its numbers are no longer exact.
    pub overflowed: bool,
}

/// The engine of one pair: served partition p and clicks partition p.
#[derive(Debug)]
pub struct Engine {
    pub(super) rules: Rules,
    /// Span that settles at once: a slot, or several.
    pub(super) settle_ms: i64,
    ranking: Ranking,
    marks: Watermarks,
    pub(super) store: Store,
    pub(super) lists: OpenLists,
    settling: Settling,
    pub(super) clicks: KeptClicks,
    pub(super) partial: PartialIds,
    pub(super) arms: Arms,
    shared_id: SharedId,
    /// Start of counting, Unix ms, at the border of a slot: earlier events are replayed.
    begin_ms: Option<i64>,
    /// F: the first slot that is not settled.
    frontier: Option<i64>,
    /// The first slot whose spare capacity has not been given back.
    closed_before: Option<i64>,
    first_accepted_ms: Option<i64>,
    last_accepted_ms: Option<i64>,
    /// The timestamp of the record that it was read from.
    last_record_ms: i64,
    /// Open lists and clicks, by `Side as usize`, even if they share a topic.
    pub(super) open: [OpenEvents; 2],
    copies: Copies,
    /// Stage in front of the join, if lists are gathered.
    gathering: Option<Box<Gathering>>,
    /// Refused events since they were last taken.
    pub(super) refused: Vec<RefusedEvent>,
    /// Lists before this time, Unix ms, have no effect if they are replayed.
    again_from_ms: i64,
    /// The checkpoint to resume from if retention has deleted records that only copies need.
    without_copies: Option<Box<Checkpoint>>,
    /// Replays by `Side as usize`, one per topic; empty if the engine was not resumed.
    replays: Vec<Replay>,
    /// A topic has not reached its position yet.
    is_replaying: bool,
    /// The record that is being applied has had its outcome.
    pub(super) is_again: bool,
    /// A record found no room.
    has_shed: bool,
    /// Bytes that the state may take, as of the last batch.
    room_bytes: u64,
    changes: Changes,
    scratch: Scratch,
}

#[derive(Debug)]
struct Scratch {
    contributions: Contributions,
    /// Buffer for sums that are discarded.
    room: Vec<i64>,
    /// Terms of the catalogue for some columns.
    of_catalogue: Vec<i64>,
    ranking: metrics::RankingBuffers,
    relevant: Relevant,
    tags: Vec<Tag>,
    arms: Vec<ArmId>,
    repeats: Repeats,
    lists: Vec<Crowded>,
    /// Kept clicks of a list, and whether each names fewer parts of its id.
    clicks: Vec<(ChunkHandle, bool)>,
}

impl Engine {
    /// Creates an engine that counts from `begin_ms` on, or everything. `begin_ms` is the border of a slot.
    pub fn new(rules: Rules, ranking: Ranking, begin_ms: Option<i64>) -> Engine {
        let slot_ms = rules.slot_ms;
        Engine {
            marks: Watermarks::new(rules.lateness_ms, rules.max_future_ms, rules.one_topic),
            store: Store::new(),
            lists: OpenLists::new(slot_ms, rules.same_list_ms, rules.max_off_list, ranking.width()),
            settling: Settling::default(),
            clicks: KeptClicks::new(click_bucket_ms(&rules)),
            partial: PartialIds::default(),
            arms: Arms::new(rules.max_arms),
            shared_id: SharedId::default(),
            begin_ms,
            frontier: begin_ms.map(|begin| begin.div_euclid(slot_ms)),
            closed_before: None,
            first_accepted_ms: None,
            last_accepted_ms: None,
            last_record_ms: i64::MAX,
            open: [OpenEvents::new(slot_ms), OpenEvents::new(slot_ms)],
            copies: Copies::new(rules.gather.map_or(0, |gather| gather.span_ms)),
            gathering: rules.gather.map(|gather| Box::new(Gathering::new(gather))),
            refused: Vec::new(),
            again_from_ms: i64::MIN,
            without_copies: None,
            replays: Vec::new(),
            is_replaying: false,
            is_again: false,
            has_shed: false,
            room_bytes: 0,
            changes: Changes::default(),
            scratch: Scratch {
                contributions: Contributions::new(&ranking),
                room: Vec::new(),
                of_catalogue: vec![0; ranking.width()],
                ranking: ranking.scratch(),
                relevant: Relevant::default(),
                tags: Vec::new(),
                arms: Vec::new(),
                repeats: Repeats::new(),
                lists: Vec::new(),
                clicks: Vec::new(),
            },
            settle_ms: rules.slot_ms,
            rules,
            ranking,
        }
    }

    /// The same, but it keeps, adds up and settles several slots as one of `settle_ms`, a multiple of the slot. In a sparse
    /// stream, a slot takes more memory than its lists.
    pub fn settling_by(self, settle_ms: i64) -> Engine {
        debug_assert_eq!(settle_ms % self.rules.slot_ms, 0);
        let Rules {
            same_list_ms,
            max_off_list,
            ..
        } = self.rules;
        Engine {
            settle_ms,
            frontier: self.begin_ms.map(|begin| begin.div_euclid(settle_ms)),
            open: [OpenEvents::new(settle_ms), OpenEvents::new(settle_ms)],
            lists: OpenLists::new(settle_ms, same_list_ms, max_off_list, self.ranking.width()),
            ..self
        }
    }

    /// The same, without changes of open slots: for readers of settled lists only.
    pub fn without_live(self) -> Engine {
        Engine {
            lists: self.lists.without_live(),
            ..self
        }
    }

    /// Counts lists with this catalogue, starting with the next slot that opens. Open slots keep theirs.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        if self.ranking.needs_places() {
            self.lists.set_catalogue(catalogue);
        }
    }

    /// Processes a batch while the state stays within `room_bytes`. Events that do not fit are shed.
    pub fn apply(&mut self, batch: &Batch, room_bytes: u64) {
        self.room_bytes = room_bytes;
        self.changes.counts.skipped_elements += batch.skipped_elements;
        self.changes.counts.add_bad_arms(&batch.bad_arms);
        for side in Side::BOTH {
            let n = batch.several[side as usize];
            self.changes.counts.count_many(side, Outcome::Several, n);
        }
        let mut tags = std::mem::take(&mut self.scratch.tags);
        tags.clear();
        // Only a hint for prefetching: it affects speed, never a result.
        let lists_have_clicks = self.clicks.n_waiting() * FEW_WAITING > self.lists.len();
        let events = &batch.events;
        // Prefetch index lines two groups ahead and records one group ahead, so that memory latency overlaps with other events.
        tags.extend(events.iter().map(|event| self.tag_of(event)));
        let groups = || events.chunks(GROUP).zip(tags.chunks(GROUP));
        let (mut index_of, mut records_of) = (groups(), groups());
        (0..2).for_each(|_| self.prefetch_lines(index_of.next()));
        self.prefetch_records(records_of.next(), lists_have_clicks);
        for (events, tags) in groups() {
            self.prefetch_lines(index_of.next());
            self.prefetch_records(records_of.next(), lists_have_clicks);
            for (event, tag) in events.iter().zip(tags) {
                self.apply_event(event, *tag, batch);
            }
        }
        self.scratch.tags = tags;
        self.advance();
    }

    /// Returns the tag by which an event is looked up, if it is.
    fn tag_of(&self, event: &Event) -> Tag {
        match &event.body {
            Body::Served(Served { id, .. })
            | Body::Click(Click { id, .. })
            | Body::PartialClick(Click { id, .. }) => self.store.tag(*id),
            Body::Invalid(..) | Body::Ignored | Body::Skipped => Tag::default(),
        }
    }

    /// Prefetches the lines of the index for a group.
    fn prefetch_lines(&self, group: Option<EventGroup>) {
        let tags = group.into_iter().flat_map(|(_, tags)| tags);
        tags.for_each(|tag| self.store.prefetch_line(*tag));
    }

    /// Prefetches the records that these lines point to: the lists of clicks and, if it pays, the clicks that came before
    /// their lists.
    fn prefetch_records(&self, group: Option<EventGroup>, lists_have_clicks: bool) {
        let Some((events, tags)) = group else { return };
        for (event, tag) in events.iter().zip(tags) {
            if lists_have_clicks || matches!(event.body, Body::Click(_)) {
                self.store.prefetch_records(*tag);
            }
        }
    }

    fn apply_event(&mut self, event: &Event, tag: Tag, batch: &Batch) {
        if self.gathering.is_some() {
            // Before each event, so that the result does not depend on batches.
            self.open_passed();
            if let Body::Served(row) = &event.body {
                return self.apply_row(event, row, batch);
            }
        }
        if self.is_replaying {
            self.replay_event(event, tag, batch);
        } else {
            self.count_event(event, tag, batch);
        }
    }

    #[inline(always)]
    fn count_event(&mut self, event: &Event, tag: Tag, batch: &Batch) {
        let outcome = self.decide(event, tag, batch);
        match &event.body {
            Body::Invalid(reason, list) => {
                self.changes.counts.count_reason(event.at.side, *reason);
                list.iter()
                    .for_each(|list| self.refuse_unreadable(event.at, *list, batch));
            }
            Body::Served(list) if outcome.is_refusal() => self.refuse(event.at, list, batch),
            _ => {}
        }
        self.count_outcome(event, outcome);
    }

    fn count_outcome(&mut self, event: &Event, outcome: Outcome) {
        match event.is_part {
            true => self.changes.counts.count_part(event.at.side, outcome),
            false => self.changes.counts.count(event.at.side, outcome),
        }
    }

    #[inline(always)]
    fn decide(&mut self, event: &Event, tag: Tag, batch: &Batch) -> Outcome {
        let at = event.at;
        // Any record ends the silence of its topic (D7), even one that is refused or ignored.
        self.marks.busy(at.side);
        match &event.body {
            Body::Served(list) => self.apply_list(at, list, tag, batch),
            Body::Click(click) => self.apply_click(at, click, tag, false),
            Body::PartialClick(click) => self.apply_click(at, click, tag, true),
            Body::Invalid(_, unreadable) => {
                if let Some(place) = unreadable {
                    self.refuse_unreadable_click(at, *place, batch);
                }
                Outcome::Invalid
            }
            Body::Ignored => Outcome::Ignored,
            Body::Skipped => Outcome::Skipped,
        }
    }

    #[inline(always)]
    fn apply_list(&mut self, at: Position, list: &Served, tag: Tag, batch: &Batch) -> Outcome {
        if let Err(refused) = self.check_time(at, list.ts_ms) {
            return refused;
        }
        // M has moved by now, as D1 demands even if this check refuses the list.
        if let Some(refused) = self.refused_by_frontier(list.ts_ms) {
            return match refused {
                Outcome::AfterSettled => self.apply_settled_list(at, list, tag, batch),
                other => other,
            };
        }
        self.open(at, list, &self.store.key(list.id, tag), batch)
    }

    /// Checks a time against the future and the watermark, and counts times that look wrong.
    #[inline(always)]
    fn check_time(&mut self, at: Position, ts_ms: i64) -> Result<(), Outcome> {
        let counts = &mut self.changes.counts;
        counts.on_float_steps[at.side as usize] += u64::from(is_on_step(ts_ms));
        let checked = self.marks.check(at, ts_ms);
        if checked == Err(Outcome::Late) {
            counts.days_late[at.side as usize] += u64::from(self.marks.is_days_late(at.side, ts_ms));
        }
        checked
    }

    /// A list of a slot that is settled. It comes too late, unless it had come in time and is read again.
    #[cold]
    fn apply_settled_list(&mut self, at: Position, list: &Served, tag: Tag, batch: &Batch) -> Outcome {
        if self.is_again {
            return self.keep_again(at, list, tag, batch);
        }
        if let Some(until_ms) = self.frontier_ms() {
            self.copies.refuse(at.offset, until_ms);
        }
        Outcome::AfterSettled
    }

    fn open(&mut self, at: Position, list: &Served, key: &LookupKey, batch: &Batch) -> Outcome {
        let items = batch.items_of(list);
        let names = batch.arms_of(list);
        let arm_ids = &mut self.scratch.arms;
        arm_ids.clear();
        let found = self.store.find(key);
        let standing = self.lists.look_up(&self.store, list.id, found, list.ts_ms);
        if standing != ListRelation::Only && self.shared_id.observe(list.id) {
            self.changes.counts.shared_id_lists += 1;
        }
        if let ListRelation::CopyOf(original) = standing {
            // A list that does not count does not admit an arm either.
            arm_ids.extend(names.iter().map_while(|name| self.arms.find(name, batch)));
            let are_known = arm_ids.len() == names.len();
            let folded = self.arms.count_once(names, arm_ids);
            let copy = new_list(list, arm_ids, folded, items);
            if !are_known || !self.lists.same_content(&self.store, original, &copy) {
                self.changes.counts.conflicting_lists += 1;
            }
            self.note_copy(list, found);
            return Outcome::Duplicate;
        }
        // Kept clicks may turn out to be off the list, and these are remembered up to a bound.
        let max_off_list = self.rules.max_off_list as usize;
        let n_kept = self.kept_of(found).take(max_off_list).count() as u64;
        let partial_ids = batch.partial_ids_of(list);
        let cost = self.lists.cost(items.len(), names.len())
            + n_kept * OFF_LIST_BYTES
            + partial_ids.len() as u64 * PartialIds::COST;
        if !self.has_room(cost) || self.store.chunks.is_full() {
            self.has_shed = true;
            return Outcome::Shed;
        }
        // Admit arms only now: a list that is shed must not use up one of the places for arms.
        let arms = &mut self.arms;
        self.scratch
            .arms
            .extend(names.iter().map(|name| arms.admit(name, batch)));
        let folded = arms.count_once(names, &mut self.scratch.arms);
        self.accept(at, list.ts_ms);
        // Rows of a gathered list were noted when they arrived, under the time of their head.
        if self.gathering.is_none() {
            let at = self.marks.resume_at(at);
            self.open[Side::Served as usize].see(list.ts_ms, hash_of_list(list), at);
        }
        self.changes.counts.repeated_items += self.scratch.repeats.count(items);
        let handle = self.add_new_list(key, (found, standing), list, folded, items);
        match partial_ids.is_empty() {
            true => self.take_kept_clicks(handle, list, found),
            false => self.open_to_partial_clicks(handle, list, found, partial_ids),
        }
        Outcome::Accepted
    }

    /// Makes a list of a composite id known to clicks that name fewer of its parts. It takes the kept ones together with those
    /// that name all parts, in the order of their offsets.
    #[cold]
    fn open_to_partial_clicks(
        &mut self,
        handle: ChunkHandle,
        list: &Served,
        found: Handles,
        partial_ids: &[u128],
    ) {
        let mut clicks = std::mem::take(&mut self.scratch.clicks);
        clicks.clear();
        clicks.extend(self.kept_of(found).map(|click| (click, false)));
        for id in partial_ids {
            self.partial.add(*id, list.ts_ms, self.settle_ms, handle);
            let found = self.store.find(&self.store.key(*id, self.store.tag(*id)));
            clicks.extend(self.kept_of(found).map(|click| (click, true)));
        }
        self.clicks.sort(&self.store, &mut clicks);
        for (place, is_partial) in &clicks {
            let (click, _) = self.clicks.get(&self.store, *place);
            let is_refused = self.clicks.n_lists(&self.store, *place) >= REFUSED;
            if !is_partial || is_refused || self.lists.shows(&self.store, handle, click.item) {
                self.take_kept_click(*place, click, handle, list);
            }
        }
        self.scratch.clicks = clicks;
    }

    /// Notes a copy, so that it is one again if its log is read from a place behind its original.
    fn note_copy(&mut self, list: &Served, found: Handles) {
        let slot_ms = list.ts_ms.div_euclid(self.settle_ms) * self.settle_ms;
        let original_ms = self
            .lists
            .latest_original_ms(&self.store, list.id, found, list.ts_ms);
        // If the original is not before the copy's slot, it is read again with it. And files are not read again.
        let Some(original_ms) = original_ms.filter(|ms| *ms < slot_ms && self.lists.tracks_live()) else {
            return;
        };
        let copied = Copied {
            slot_ms,
            id: list.id,
            original_ms,
        };
        if self.copies.contains(&copied) {
            return;
        }
        if self.has_room(Copies::COST) {
            self.copies.insert(copied);
        } else {
            self.has_shed = true;
        }
    }

    /// Kept clicks of an id in the order of their offsets.
    fn kept_of(&self, found: Handles) -> impl Iterator<Item = ChunkHandle> {
        let existing = |click: ChunkHandle| (!click.is_none()).then_some(click);
        std::iter::successors(existing(found.click), move |click| {
            existing(self.clicks.get(&self.store, *click).1)
        })
    }

    /// A list takes the kept clicks of its id, in the order of their offsets. A click that has had all its lists is removed.
    fn take_kept_clicks(&mut self, handle: ChunkHandle, list: &Served, found: Handles) {
        let mut next = found.click;
        while !next.is_none() {
            let place = next;
            // Read the link first: taking the click may remove it from the chain.
            let (click, after) = self.clicks.get(&self.store, place);
            next = after;
            self.take_kept_click(place, click, handle, list);
        }
    }

    #[inline(always)]
    fn take_kept_click(&mut self, place: ChunkHandle, click: KeptClick, handle: ChunkHandle, list: &Served) {
        let n_lists = self.clicks.n_lists(&self.store, place);
        if n_lists >= self.rules.max_lists_per_click {
            return self.leave_kept_click(place, click, handle, list);
        }
        if !self.attributable(list.ts_ms, click.ts_ms) {
            return;
        }
        // Lists take a click in the order of their offsets, so the first one decides its result (D3).
        let result = self.record_click(handle, click.item);
        if self.clicks.take(&mut self.store, place) {
            self.changes.counts.count_result(result);
        }
    }

    /// Removes a kept click that has had all its lists, unless it is a refused one.
    #[cold]
    fn leave_kept_click(&mut self, place: ChunkHandle, click: KeptClick, handle: ChunkHandle, list: &Served) {
        let n_lists = self.clicks.n_lists(&self.store, place);
        if n_lists >= REFUSED {
            return self.take_refused_click(place, click, handle, list);
        }
        if !self.attributable(list.ts_ms, click.ts_ms) {
            return;
        }
        if n_lists == self.rules.max_lists_per_click {
            let is_counted = self.clicks.is_counted(&self.store, place);
            self.changes.counts.cut_clicks += u64::from(!is_counted);
            // Exactly one more than it counts for: it is counted as cut only once.
            self.clicks.take(&mut self.store, place);
        }
        self.clicks.leave(&mut self.store, place);
    }

    fn apply_click(&mut self, at: Position, click: &Click, tag: Tag, is_partial: bool) -> Outcome {
        if let Err(refused) = self.check_time(at, click.ts_ms) {
            self.refuse_untimely_click(at, click, is_partial);
            return refused;
        }
        if let Some(refused) = self.refused_by_frontier(click.ts_ms + self.rules.click_skew_ms) {
            return refused;
        }
        let key = self.store.key(click.id, tag);
        let found = self.store.find(&key);
        let mut lists = std::mem::take(&mut self.scratch.lists);
        lists.clear();
        let Rules {
            attribution_ms,
            click_skew_ms,
            ..
        } = self.rules;
        // Lists of settled slots may be kept for copies of them, and take no click.
        let first_ms = (click.ts_ms - attribution_ms).max(self.frontier_ms().unwrap_or(i64::MIN));
        let times_ms = first_ms..=click.ts_ms + click_skew_ms;
        if is_partial {
            let shows = |list| self.lists.shows(&self.store, list, click.item);
            lists.extend(
                self.partial
                    .lists_of(click.id, times_ms)
                    .filter(|other| shows(other.list)),
            );
        } else {
            self.lists
                .add_of_times(&self.store, click.id, found, times_ms, &mut lists);
        }
        // A click counts for the lists with the lowest offsets, and the first of them decides its result (D2, D3).
        if lists.len() > 1 {
            lists.sort_unstable_by_key(|other| other.arrival);
        }
        let outcome = self.take(at, click, &key, found, &lists);
        self.scratch.lists = lists;
        outcome
    }

    /// Counts a click for its lists, in the order of their offsets. Keeps it for further lists, unless it has had the
    /// maximum.
    fn take(
        &mut self,
        at: Position,
        click: &Click,
        key: &LookupKey,
        found: Handles,
        lists: &[Crowded],
    ) -> Outcome {
        let max_lists = self.rules.max_lists_per_click as usize;
        let is_cut = lists.len() > max_lists;
        let lists = &lists[..lists.len().min(max_lists)];
        let costs = lists
            .iter()
            .map(|other| self.lists.cost_of_click(&self.store, other.list));
        let cost = KeptClicks::COST + costs.sum::<u64>();
        if !self.has_room(cost) || self.store.chunks.is_full() {
            self.has_shed = true;
            self.refuse_shed_click(click, lists);
            return Outcome::Shed;
        }
        self.accept(at, click.ts_ms);
        let reach_ms = click.ts_ms + self.rules.click_skew_ms;
        self.open[Side::Clicks as usize].see(reach_ms, hash_of_click(click), self.marks.resume_at(at));
        // A click that is cut is not kept, as no further list may take it. With exactly the maximum it is kept: one more
        // list would cut it.
        if is_cut {
            self.changes.counts.cut_clicks += u64::from(!self.is_again);
        } else {
            let n_lists = lists.len() as u32;
            let earlier = self.is_again.then(|| self.earlier(click.ts_ms));
            self.clicks
                .keep(&mut self.store, key, found, click, n_lists, earlier);
        }
        // It counts for each, and has the result of the one with the lowest offset.
        let mut result = None;
        for Crowded { list, .. } in lists {
            let hit = self.record_click(*list, click.item);
            result.get_or_insert(hit);
        }
        if let Some(result) = result.filter(|_| !self.is_again) {
            self.changes.counts.count_result(result);
        }
        Outcome::Accepted
    }

    /// Settled lists are not read again: a click that one of them may have taken is not known to wait.
    fn earlier(&self, click_ts_ms: i64) -> EarlierClick {
        let first_list_ms = click_ts_ms - self.rules.attribution_ms;
        EarlierClick {
            may_be_decided: self
                .frontier_ms()
                .is_some_and(|frontier_ms| first_list_ms < frontier_ms),
        }
    }

    pub(super) fn has_room(&self, more_bytes: u64) -> bool {
        self.state_bytes() + more_bytes <= self.room_bytes
    }

    /// Refusals of D1 by the frontier: a list in a settled slot, or a click that no open list can take.
    fn refused_by_frontier(&self, latest_list_ms: i64) -> Option<Outcome> {
        if latest_list_ms >= self.frontier_ms()? {
            return None;
        }
        match self.begin_ms {
            Some(begin_ms) if latest_list_ms < begin_ms => Some(Outcome::Replayed),
            _ => Some(Outcome::AfterSettled),
        }
    }

    pub(super) fn attributable(&self, list_ts_ms: i64, click_ts_ms: i64) -> bool {
        let after_ms = click_ts_ms - list_ts_ms;
        -self.rules.click_skew_ms <= after_ms && after_ms <= self.rules.attribution_ms
    }

    /// Records a click on a list and adds the difference that it makes.
    fn record_click(&mut self, handle: ChunkHandle, item: u64) -> ClickResult {
        if !self.lists.tracks_live() {
            return self.lists.click(&mut self.store, handle, item).result();
        }
        let with_aspects = self.ranking.needs_aspects();
        // Skip a repeat early: it changes nothing, and computing aspects is expensive.
        if with_aspects && self.lists.has_click(&self.store, handle, item) {
            return ClickResult::Repeat;
        }
        let list = self.lists.outcome(&self.store, handle);
        let n_off_list = list.n_off_list;
        // Must precede the click, which sets a bit of the list: the sums get the difference.
        let before = self.scratch.contributions.before(&list, &self.ranking);
        let aspects = self.ranking.columns_of_aspects();
        if with_aspects {
            self.scratch.of_catalogue[..aspects.len()].fill(0);
            // Subtract the old aspect terms now and add the new ones after the click, so that the buffer then holds the
            // change.
            self.add_aspects(handle, -1);
        }
        let hit = self.lists.click(&mut self.store, handle, item);
        let n_off_list_now = || self.lists.outcome(&self.store, handle).n_off_list;
        let changed = match hit {
            Hit::First(_) => true,
            // An off-list item beyond the remembered ones leaves the outcome of the list as it was.
            Hit::OffList => self.ranking.counts_off_list() && n_off_list_now() != n_off_list,
            Hit::Repeat => false,
        };
        if changed {
            self.add_change(handle, hit, before);
            if with_aspects && self.add_aspects(handle, 1) {
                let terms = &self.scratch.of_catalogue[..aspects.len()];
                self.lists.add(&self.store, handle, aspects.start, terms);
            }
        }
        hit.result()
    }

    /// Adds the change that a click made to a list's outcome.
    #[inline(always)]
    fn add_change(&mut self, handle: ChunkHandle, hit: Hit, before: ListBeforeClick) {
        let contributions = &mut self.scratch.contributions;
        // The usual case: the first click of its list, given by its position.
        if let (Hit::First(position), Some(n_items)) = (hit, before.without_click())
            && contributions.remember_first_click(n_items, position, &self.ranking)
        {
            self.lists
                .count_click(&self.store, handle, n_items, position, contributions);
        } else {
            let after = self.lists.outcome(&self.store, handle);
            let difference = contributions.difference(before, &after, &self.ranking);
            self.lists.add(&self.store, handle, 0, difference);
        }
    }

    /// Adds `sign` times the aspect contribution of a list's relevant items to the scratch. Returns whether there is any.
    fn add_aspects(&mut self, handle: ChunkHandle, sign: i64) -> bool {
        let Some((catalogue, places)) = self.lists.places(&self.store, handle) else {
            return false;
        };
        let Scratch {
            of_catalogue,
            ranking: scratch,
            relevant,
            ..
        } = &mut self.scratch;
        let list = self.lists.outcome(&self.store, handle);
        let off_list = self.lists.off_list(&self.store, handle);
        relevant.set(&list, places, off_list, catalogue);
        let has_any = !relevant.shown.is_empty();
        if has_any {
            self.ranking
                .contribute_aspects(relevant, catalogue, sign, scratch, of_catalogue);
        }
        has_any
    }

    /// Opens a list and adds its contribution before the first click.
    fn add_new_list(
        &mut self,
        key: &LookupKey,
        (found, standing): (Handles, ListRelation),
        list: &Served,
        folded: u32,
        items: &[u64],
    ) -> ChunkHandle {
        let Engine {
            store,
            lists,
            ranking,
            scratch,
            changes,
            ..
        } = self;
        let Scratch {
            arms,
            contributions,
            of_catalogue,
            ranking: scratch,
            ..
        } = scratch;
        let list = &new_list(list, arms, folded, items);
        let n_items = items.len();
        let of_length = if contributions.remember_new_list(n_items, ranking) {
            LengthContribution::Remembered(contributions)
        } else {
            LengthContribution::Terms(contributions.of_new_list(n_items, ranking))
        };
        let mut worth = UnclickedContribution {
            of_length,
            places: &[],
            of_catalogue: &[],
            first: 0,
        };
        // Start of this list's places among the shown ones.
        let mut shown = None;
        if ranking.needs_places()
            && let (start_ms, Some(catalogue)) = lists.slot_at(list.ts_ms)
        {
            let places = changes.shown.places_mut();
            let start = places.len();
            let columns = ranking.columns_of_catalogue();
            let of_catalogue = &mut of_catalogue[..columns.len()];
            ranking.contribute_items(list.items, catalogue, scratch, places, of_catalogue);
            worth.places = &places[start..];
            worth.of_catalogue = of_catalogue;
            worth.first = columns.start;
            shown = Some((start, start_ms));
        }
        let handle = lists.insert(store, key, found, standing, list, &worth);
        if let Some((start, start_ms)) = shown {
            match ranking.coverage().filter(|_| lists.tracks_live()) {
                Some(_) => changes.shown.add_from(start, list.arms, start_ms),
                // Without coverage, the places were needed only for the terms of the catalogue.
                None => changes.shown.places_mut().truncate(start),
            }
        }
        handle
    }

    fn accept(&mut self, at: Position, ts_ms: i64) {
        self.first_accepted_ms = Some(self.first_accepted_ms.map_or(ts_ms, |first| first.min(ts_ms)));
        if self.last_accepted_ms < Some(ts_ms) {
            self.last_accepted_ms = Some(ts_ms);
            self.last_record_ms = at.record_ts_ms;
        }
    }

    /// Makes an idle move (rule D7): `side` has been at its end for long enough. `live_end_ms` is set if both have. It does not
    /// move beyond `until_ms`. During a replay it does nothing, because missing events may still come.
    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>, until_ms: i64) {
        if self.is_replaying {
            return;
        }
        self.marks.idle(side, live_end_ms, until_ms);
        self.advance();
    }

    /// Closes the slots that the watermarks allow to settle, and decides clicks for which no list can arrive.
    fn advance(&mut self) {
        if self.gathering.is_some() {
            // Complete lists must open before the frontier can pass their slots.
            self.gather();
        }
        self.move_frontier();
        while self.close_next() {}
        if let Some(frontier_ms) = self.frontier_ms() {
            self.partial.forget_before(frontier_ms);
        }
        for kind in Side::BOTH {
            if let Some(until_ms) = self.needed_from_ms(kind) {
                self.open[kind as usize].drop_before(until_ms);
            }
        }
        self.forget_lists();
        self.trim_slots();
        // After the frontier has moved: start(F) also limits how long a click waits.
        self.expire_clicks();
        let n_lists = self.lists.len() + self.lists.n_settled();
        self.store.tidy(n_lists + self.clicks.len());
    }

    /// Returns the time from which on events of a kind are needed, at the border of a slot, Unix ms: clicks as long as a list
    /// that they may belong to is not settled, lists also as long as a copy of them may come. `None` before the pair had a
    /// record: all are needed.
    fn needed_from_ms(&self, kind: Side) -> Option<i64> {
        let settled_until_ms = self.settled_until_ms()?;
        Some(match kind {
            Side::Served => settled_until_ms.min(self.copies_from_ms()?),
            Side::Clicks => settled_until_ms,
        })
    }

    /// Returns the border of a slot, Unix ms, such that no later list is a copy of a list before it. It is start(F) or later,
    /// unless silence has moved F past the served topic's own watermark.
    fn copies_from_ms(&self) -> Option<i64> {
        let next_ms = self.lists_watermark_ms().max(self.frontier_ms());
        next_ms.map(|next_ms| copies_from_ms(next_ms, self.rules.same_list_ms, self.settle_ms))
    }

    /// Forgets settled lists that can get no more copies. Does nothing during a replay, whose records may not be complete yet.
    fn forget_lists(&mut self) {
        if self.is_replaying {
            return;
        }
        if let Some(from_ms) = self.needed_from_ms(Side::Served) {
            self.lists.forget_before(&mut self.store, from_ms);
            self.copies.forget_before(from_ms);
            if let Some(stage) = &mut self.gathering {
                stage.forget_heads(from_ms);
            }
        }
    }

    /// Closes the oldest slot before the frontier, and returns whether there was one. Its live sums are added to the
    /// changes.
    fn close_next(&mut self) -> bool {
        let copies_from_ms = self.copies_from_ms();
        let next = self
            .frontier
            .and_then(|frontier| self.lists.take_before(frontier));
        let Some((place, mut slot)) = next else {
            return false;
        };
        let Engine {
            lists,
            changes,
            scratch,
            ..
        } = self;
        let Scratch {
            contributions, room, ..
        } = scratch;
        changes.overflowed |= lists.hand_over_slot(&mut slot, contributions, room, |of, sums| {
            changes.live.push(of, sums)
        });
        // Keep lists of a settled slot in the index while copies of them may still come.
        let copies_may_come = Some(self.lists.end_ms(&slot)) > copies_from_ms;
        self.settling.push(match copies_may_come {
            true => self.lists.keep(&mut self.store, (place, slot)),
            false => self.lists.close(&mut self.store, (place, slot)),
        });
        true
    }

    /// Visits up to `n` lists with a final outcome, slot by slot, oldest first, each exactly once. Returns their number.
    pub fn visit_settled(&mut self, n: usize, visit: impl FnMut(Settled)) -> usize {
        let n_reported = self.settling.visit(&mut self.store.chunks, n, visit);
        // A visit moves the border up to which lists are settled, so more of them may be forgotten.
        if self.lists.n_settled() > 0 || self.copies.bytes() > 0 || self.gathering.is_some() {
            self.forget_lists();
        }
        n_reported
    }

    /// Returns whether lists wait for [`Self::visit_settled`].
    pub fn has_settled(&self) -> bool {
        self.settling.start_ms().is_some()
    }

    /// Moves the frontier. Slot s settles when the served watermark ≥ end(s) + max(click_skew, same_list) and the clicks
    /// watermark ≥ end(s) + A.
    fn move_frontier(&mut self) {
        let served = self.effective_lists_watermark_ms();
        let clicks = self.marks.effective_ms(Side::Clicks);
        if let (Some(served), Some(clicks)) = (served, clicks) {
            let Rules {
                attribution_ms,
                click_skew_ms,
                same_list_ms,
                ..
            } = self.rules;
            let settled_ms = (served - click_skew_ms.max(same_list_ms)).min(clicks - attribution_ms);
            // F never falls (D4), although the effective watermark does when a record ends a silence.
            self.frontier = self.frontier.max(Some(settled_ms.div_euclid(self.settle_ms)));
        }
    }

    /// Gives back the spare capacity of slots behind the served watermark, which take no further lists.
    fn trim_slots(&mut self) {
        let Some(watermark_ms) = self.lists_watermark_ms() else {
            return;
        };
        let open_from = watermark_ms.div_euclid(self.settle_ms);
        let closed_before = self.closed_before.replace(open_from).unwrap_or(open_from);
        // After a jump, visiting empty slots would gain nothing.
        for number in closed_before.max(open_from - 1000)..open_from {
            self.lists.trim(&mut self.store, number);
        }
    }

    /// Decides the clicks for which no list can arrive any more. One can arrive until the served watermark or start(F) exceeds
    /// the click's time + click_skew.
    fn expire_clicks(&mut self) {
        let Some(limit_ms) = self.lists_watermark_ms().max(self.frontier_ms()) else {
            return;
        };
        let Engine {
            store,
            clicks,
            changes,
            begin_ms,
            rules,
            ..
        } = self;
        clicks.expire(store, limit_ms - rules.click_skew_ms, |click| {
            // The click's list may be older than the first counted record, so that its absence proves nothing.
            let before_start = begin_ms.is_some_and(|begin| click.ts_ms <= begin + rules.attribution_ms);
            let result = if before_start {
                ClickResult::Undecided
            } else {
                ClickResult::Unmatched
            };
            changes.counts.count_result(result);
        });
    }

    /// Closes every slot and decides every click, as at the end of a file.
    pub fn close_all(&mut self) {
        self.close_gathered();
        // Not `i64::MAX`: the start of this slot must still fit 64 bits.
        self.frontier = Some(i64::MAX / self.settle_ms);
        self.advance();
    }

    /// Closes everything slot by slot, oldest first, and visits the lists, so that no second copy of a long file is in memory.
    pub fn close_each(&mut self, mut visit: impl FnMut(Settled)) {
        self.close_gathered();
        self.frontier = Some(i64::MAX / self.settle_ms);
        while self.close_next() {
            self.visit_settled(usize::MAX, &mut visit);
        }
        self.advance();
    }

    /// Returns the number of clicks whose list may still arrive, including clicks that an earlier process has accepted.
    pub fn n_waiting(&self) -> u64 {
        self.clicks.n_waiting()
    }

    /// Returns how many of them this process has accepted. They stay undecided if it ends.
    pub fn n_own_waiting(&self) -> u64 {
        self.clicks.n_own_waiting()
    }

    /// Returns the outcomes of records since [`Self::take_changes`].
    pub fn counts(&self) -> &Counts {
        &self.changes.counts
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let Engine {
            lists,
            changes,
            scratch,
            ..
        } = self;
        let Scratch {
            contributions, room, ..
        } = scratch;
        let overflowed = lists.hand_over(contributions, room, |of, sums| changes.live.push(of, sums));
        changes.overflowed |= overflowed;
        // An overflow is permanent, so the flag is carried over.
        let next = Changes {
            overflowed: changes.overflowed,
            ..Changes::default()
        };
        std::mem::replace(changes, next)
    }

    /// Returns the end of the visited settled lists: start(F), or the start of the slot that is being visited.
    pub fn settled_until_ms(&self) -> Option<i64> {
        self.settling.start_ms().or(self.frontier_ms())
    }

    /// Returns whether a record was shed since the engine started, so that its numbers are no longer exact.
    pub fn has_shed(&self) -> bool {
        self.has_shed
    }

    /// start(F): everything before it is final. None before the pair had a record.
    pub fn frontier_ms(&self) -> Option<i64> {
        self.frontier
            .map(|frontier| frontier.saturating_mul(self.settle_ms))
    }

    /// M of one topic partition.
    pub fn newest_ms(&self, side: Side) -> Option<i64> {
        self.marks.newest_ms(side)
    }

    pub fn watermarks(&self) -> &Watermarks {
        &self.marks
    }

    pub fn watermarks_mut(&mut self) -> &mut Watermarks {
        &mut self.marks
    }

    pub fn watermark_ms(&self, side: Side) -> Option<i64> {
        self.marks.effective_ms(side)
    }

    pub fn begin_ms(&self) -> Option<i64> {
        self.begin_ms
    }

    /// The smallest and the largest accepted time.
    pub fn accepted_ms(&self) -> Option<(i64, i64)> {
        self.first_accepted_ms.zip(self.last_accepted_ms)
    }

    /// The largest accepted time, and the timestamp of the record that it was read from.
    pub fn last_accepted(&self) -> Option<(i64, i64)> {
        Some((self.last_accepted_ms?, self.last_record_ms))
    }

    pub fn arm(&self, id: ArmId) -> &Arm {
        self.arms.get(id)
    }

    /// The arms that were admitted, by number.
    pub fn arms(&self) -> &[Arm] {
        self.arms.all()
    }

    pub fn n_folded_arms(&self) -> u64 {
        self.arms.n_folded()
    }

    pub fn n_open_lists(&self) -> u64 {
        self.lists.len()
    }

    /// Bytes of lists, until they are visited as settled and no copy of them can come, and of kept clicks: `max_state` bounds
    /// them.
    pub fn state_bytes(&self) -> u64 {
        self.bytes_of(Side::Served) + self.bytes_of(Side::Clicks)
    }

    /// Bytes of lists, or of kept clicks.
    pub fn bytes_of(&self, side: Side) -> u64 {
        match side {
            Side::Served => {
                let of_lists = self.lists.bytes() + self.partial.bytes();
                let of_rows = self.gathering.as_ref().map_or(0, |stage| stage.bytes());
                of_rows + of_lists + self.settling.bytes() + self.copies.bytes()
            }
            Side::Clicks => self.clicks.bytes(),
        }
    }
}

fn click_bucket_ms(rules: &Rules) -> i64 {
    let of_slot = rules.slot_ms / CLICK_BUCKETS;
    of_slot.max(rules.lateness_ms / CLICK_BUCKETS_OF_LATENESS).max(1)
}

/// No list from `next_ms` on is a copy of one before this border, Unix ms.
fn copies_from_ms(next_ms: i64, same_list_ms: i64, slot_ms: i64) -> i64 {
    (next_ms - same_list_ms).div_euclid(slot_ms) * slot_ms
}

/// Consecutive events, and the tag of each.
type EventGroup<'a> = (&'a [Event], &'a [Tag]);

fn new_list<'a>(list: &Served, arms: &'a [ArmId], folded: u32, items: &'a [u64]) -> NewList<'a> {
    NewList {
        id: list.id,
        user: list.user,
        ts_ms: list.ts_ms,
        arms,
        folded,
        items,
    }
}

mod gathering;
mod restore;
#[cfg(test)]
mod tests;
