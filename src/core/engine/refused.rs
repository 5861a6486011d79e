//! Refused lists whose arms can be read.

use std::num::NonZeroU32;
use std::ops::Range;

use super::arms::{Arm, ArmId};
use super::event::{ArmName, Batch, Position, Served, Side};
use super::join::Engine;
use super::open_list::half_of_user;
use super::outcome::Outcome;

/// The arm of a refused list. A refused list admits no arm, so that names in broken records cannot use up `max_arms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedArm {
    Admitted(ArmId),
    /// Name of an arm without an accepted list so far.
    Unlisted(Arm),
}

/// A list that would have counted in an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedList {
    pub arm: RefusedArm,
    /// Half of the keyed hash of its user, if that can be read.
    pub user: Option<NonZeroU32>,
    /// Time of the list, or its record's time if it has none, Unix ms.
    pub ts_ms: i64,
    /// Start of the first slot that it may count with, Unix ms. It counts with the next slot that has a list, never with one
    /// that has ended, whatever the batches.
    pub with_ms: i64,
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
    /// Takes the lists refused since the last call.
    pub fn take_refused(&mut self) -> Vec<RefusedList> {
        std::mem::take(&mut self.refused)
    }

    #[cold]
    pub(super) fn refuse(&mut self, at: Position, list: &Served, batch: &Batch) {
        self.refuse_in_arms(at.side, &list.arms, (list.user, list.ts_ms), batch);
    }

    /// Notes a list that cannot be read.
    #[cold]
    pub(super) fn refuse_unreadable(&mut self, at: Position, place: u32, batch: &Batch) {
        if let Some(list) = batch.unreadable_lists.get(place as usize) {
            let ts_ms = list.ts_ms.unwrap_or_else(|| self.time_of(at));
            self.refuse_in_arms(at.side, &list.arms, (list.user, ts_ms), batch);
        }
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
        let user = user.and_then(|user| NonZeroU32::new(half_of_user(user)));
        let names = &batch.arms[arms.start as usize..arms.end as usize];
        for name in names {
            let arm = match self.arms.find(name, batch) {
                Some(arm) => RefusedArm::Admitted(arm),
                None => RefusedArm::Unlisted(self.unlisted(name, batch)),
            };
            self.refused.push(RefusedList {
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
