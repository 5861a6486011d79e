//! Refused lists whose arms can be read, and refused clicks whose request id can be read.
//!
//! A refused click counts in the arms of its list, which may be read before it or after it. It is found as an accepted click
//! is: by request id and time, among open lists, and by later lists while it is kept. If its time is unknown, late or in the
//! future, it is moved into the range of times that are neither. With such a time, the reasons for which the join is symmetric
//! (D2) hold for it too: a slot that the clicks watermark allows to settle has no list that may take it, and a list that comes
//! after the click is gone is late.
//!
//! The refused clicks of a list settle with it. So if logs are read again from stored state, they are counted once: clicks
//! on open lists are found again, and clicks on settled lists are in the ledger.

use std::num::NonZeroU32;
use std::ops::Range;

use super::arms::{Arm, ArmId};
use super::clicks::{ANY_TIME_MS, KeptClick, KeptClicks, REFUSED};
use super::event::{ArmName, Batch, Click, Position, RefusedClick, Served, Side, Unreadable};
use super::join::{Engine, Rules};
use super::lists::{ChunkHandle, Crowded};
use super::open_events::ResumePoint;
use super::open_list::half_of_user;
use super::outcome::Outcome;

/// The arm of a refused list. A refused list admits no arm, so that names in broken records cannot use up `max_arms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedArm {
    Admitted(ArmId),
    /// Name of an arm without an accepted list so far.
    Unlisted(Arm),
}

/// A list, or a click on one, that would have counted in an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEvent {
    pub arm: RefusedArm,
    /// Half of the keyed hash of its user, if that can be read.
    pub user: Option<NonZeroU32>,
    /// Time of the list, or its record's time if it has none, Unix ms. For a click, start of the slot of its list.
    pub ts_ms: i64,
    /// Start of the first slot that it may count with, Unix ms. It counts with the next slot that has a list, never with one
    /// that has ended, whatever the batches.
    pub with_ms: i64,
}

/// A refused click in an arm of its list.
#[derive(Debug, Clone, Copy)]
pub struct RefusedInArm {
    pub arm: ArmId,
    /// Half of the keyed hash of the list's user or, without one, of the click's.
    pub user: Option<NonZeroU32>,
}

impl RefusedInArm {
    /// Returns it as an event of the slot that starts at this time.
    pub fn in_slot(self, start_ms: i64) -> RefusedEvent {
        RefusedEvent {
            arm: RefusedArm::Admitted(self.arm),
            user: self.user,
            ts_ms: start_ms,
            with_ms: start_ms,
        }
    }
}

impl Outcome {
    /// Returns whether a list with this outcome is missing from the numbers of its arms.
    pub(super) fn is_refusal(self) -> bool {
        matches!(
            self,
            Outcome::Late | Outcome::Future | Outcome::AfterSettled | Outcome::LateRow | Outcome::Shed
        )
    }
}

impl Engine {
    /// Takes the events refused since the last call. Refused clicks that settle with their list are
    /// [visited](Self::visit_settled) instead.
    pub fn take_refused(&mut self) -> Vec<RefusedEvent> {
        std::mem::take(&mut self.refused)
    }

    /// Admits an arm that another pair has admitted, so that its refused lists count here too. Returns its number, unless
    /// `max_arms` is reached.
    pub fn learn_arm(&mut self, arm: &Arm) -> Option<ArmId> {
        self.arms.learn(arm)
    }

    #[cold]
    pub(super) fn refuse(&mut self, at: Position, list: &Served, batch: &Batch) {
        self.refuse_in_arms(at.side, &list.arms, (list.user, list.ts_ms), batch);
    }

    /// Notes a list that cannot be read.
    #[cold]
    pub(super) fn refuse_unreadable(&mut self, at: Position, place: u32, batch: &Batch) {
        if let Some(Unreadable::List(list)) = batch.unreadable.get(place as usize) {
            let ts_ms = list.ts_ms.unwrap_or_else(|| self.time_of(at));
            self.refuse_in_arms(at.side, &list.arms, (list.user, ts_ms), batch);
        }
    }

    /// Counts an invalid click in the arms of its lists.
    #[cold]
    pub(super) fn refuse_unreadable_click(&mut self, at: Position, place: u32, batch: &Batch) {
        if let Some(Unreadable::Click(click)) = batch.unreadable.get(place as usize) {
            self.refuse_click(at, *click);
        }
    }

    /// Counts a late click or one of the future in the arms of its lists.
    #[cold]
    pub(super) fn refuse_untimely_click(&mut self, at: Position, click: &Click, is_partial: bool) {
        let refused = RefusedClick {
            id: click.id,
            is_partial,
            user: click.user,
            ts_ms: Some(click.ts_ms),
        };
        self.refuse_click(at, refused);
    }

    /// Counts a click for which there is no room in the arms of these lists.
    #[cold]
    pub(super) fn refuse_shed_click(&mut self, click: &Click, lists: &[Crowded]) {
        let user = user_of(click.user);
        for other in lists {
            self.refuse_at_once(other.list, user);
        }
    }

    /// Counts a refused click in the arms of its lists, and keeps it for further lists.
    fn refuse_click(&mut self, at: Position, click: RefusedClick) {
        let Some(ts_ms) = self.time_of_refused(at, click.ts_ms) else {
            return;
        };
        let rules = &self.rules;
        let (from_ms, until_ms) = match ts_ms {
            ANY_TIME_MS => (i64::MIN, i64::MAX),
            ts_ms => (ts_ms - rules.attribution_ms, ts_ms + rules.click_skew_ms),
        };
        let max_lists = rules.max_lists_per_click as usize;
        let from_ms = from_ms.max(self.frontier_ms().unwrap_or(i64::MIN));
        if until_ms < from_ms {
            return;
        }
        let key = self.store.key(click.id, self.store.tag(click.id));
        let found = self.store.find(&key);
        let mut lists = Vec::new();
        match click.is_partial {
            // Its item may be unreadable, so it belongs to all lists whose id has the parts that it names.
            true => lists.extend(self.partial.lists_of(click.id, from_ms..=until_ms)),
            false => self
                .lists
                .add_of_times(&self.store, click.id, found, from_ms..=until_ms, &mut lists),
        }
        lists.sort_unstable_by_key(|other| other.arrival);
        let user = user_of(click.user);
        for other in lists.iter().take(max_lists) {
            self.refuse_on(other.list, user);
        }
        // Files are not read again.
        if ts_ms != ANY_TIME_MS {
            let newest_ms = self.newest_ms(at.side);
            let offset = at.offset;
            self.open[Side::Clicks as usize].note(until_ms, ResumePoint { offset, newest_ms });
        }
        if lists.len() < max_lists && self.has_room(KeptClicks::COST) && !self.store.chunks.is_full() {
            let kept = Click {
                id: click.id,
                user: None,
                ts_ms,
                item: user.map_or(0, |user| user.get().into()),
            };
            let n_lists = REFUSED | lists.len() as u32;
            self.clicks
                .keep(&mut self.store, &key, found, &kept, n_lists, None);
        }
    }

    /// Counts a kept refused click on a list that arrived after it.
    pub(super) fn take_refused_click(
        &mut self,
        place: ChunkHandle,
        click: KeptClick,
        handle: ChunkHandle,
        list: &Served,
    ) {
        if click.ts_ms != ANY_TIME_MS && !self.attributable(list.ts_ms, click.ts_ms) {
            return;
        }
        if self.clicks.n_lists(&self.store, place) - REFUSED >= self.rules.max_lists_per_click {
            return self.clicks.leave(&mut self.store, place);
        }
        self.clicks.take(&mut self.store, place);
        self.refuse_on(handle, NonZeroU32::new(click.item as u32));
    }

    /// Counts a refused click on a list, with the list.
    fn refuse_on(&mut self, list: ChunkHandle, user: Option<NonZeroU32>) {
        match self.has_room(self.lists.cost_of_refused(&self.store, list)) {
            true => self.lists.refuse(&self.store, list, user),
            false => self.refuse_at_once(list, user),
        }
    }

    /// Counts a refused click on a list without keeping it, because there is no room.
    fn refuse_at_once(&mut self, list: ChunkHandle, user: Option<NonZeroU32>) {
        // A click that is read again was already counted.
        if self.is_again {
            return;
        }
        let start_ms = self.lists.start_ms(&self.store, list);
        let refused = self.lists.refused_in(&self.store, list, user);
        self.refused
            .extend(refused.map(|refused| refused.in_slot(start_ms)));
    }

    /// Returns the time at which a refused click looks for its lists: its own, or its record's if its own is unreadable or in the
    /// future, moved into the range that is neither late nor in the future. `None` before the topic has a time: records may have
    /// any timestamp, and one far ahead would be needed for a replay until then.
    fn time_of_refused(&self, at: Position, ts_ms: Option<i64>) -> Option<i64> {
        // Records of files have no timestamp, and none of their events is late or in the future.
        if at.record_ts_ms == i64::MAX {
            return Some(ts_ms.unwrap_or(ANY_TIME_MS));
        }
        let Rules {
            lateness_ms,
            max_future_ms,
            ..
        } = self.rules;
        let newest_ms = self.newest_ms(at.side)?;
        let latest_ms = at.record_ts_ms.saturating_add(max_future_ms);
        let ts_ms = ts_ms.filter(|ts_ms| *ts_ms <= latest_ms);
        let ts_ms = ts_ms.unwrap_or(at.record_ts_ms);
        Some(ts_ms.clamp(newest_ms - lateness_ms, newest_ms + max_future_ms))
    }

    /// Returns the time of a record. Records of files have no timestamp, so the last accepted time is used.
    fn time_of(&self, at: Position) -> i64 {
        match at.record_ts_ms {
            i64::MAX => self.accepted_ms().map_or(0, |(_, last_ms)| last_ms),
            ts_ms => ts_ms,
        }
    }

    fn refuse_in_arms(
        &mut self,
        side: Side,
        arms: &Range<u32>,
        (user, ts_ms): (Option<u64>, i64),
        batch: &Batch,
    ) {
        // A list before the start of counting is not missing from any number.
        if Some(ts_ms) < self.begin_ms() {
            return;
        }
        let with_ms = self.newest_ms(side).max(self.frontier_ms()).unwrap_or(ts_ms);
        let with_ms = with_ms.div_euclid(self.settle_ms) * self.settle_ms;
        let user = user_of(user);
        let names = &batch.arms[arms.start as usize..arms.end as usize];
        for name in names {
            let arm = match self.arms.find(name, batch) {
                Some(arm) => RefusedArm::Admitted(arm),
                None => RefusedArm::Unlisted(self.unlisted(name, batch)),
            };
            self.refused.push(RefusedEvent {
                arm,
                user,
                ts_ms,
                with_ms,
            });
        }
    }

    /// Returns the name of an arm. Lists of one arm are often refused in a row, and then share one copy of it.
    fn unlisted(&self, name: &ArmName, batch: &Batch) -> Arm {
        let (experiment, arm) = (batch.text_of(&name.experiment), batch.text_of(&name.arm));
        if let Some(RefusedArm::Unlisted(last)) = self.refused.last().map(|list| &list.arm)
            && (&*last.experiment, &*last.arm) == (experiment, arm)
        {
            return last.clone();
        }
        Arm {
            experiment: experiment.into(),
            arm: arm.into(),
        }
    }
}

fn user_of(hash: Option<u64>) -> Option<NonZeroU32> {
    NonZeroU32::new(half_of_user(hash?))
}
