//! Counts refused lists and clicks by arm, in clusters. If arms lose different shares of them, the rest cannot be compared.
//!
//! Lists of one user depend on each other, so refused lists and clicks with a user are counted by user bucket. The others are counted by
//! hour of the week. Accepted lists are counted by hour too, to distinguish a broken hour from a busy one.

use std::collections::BTreeMap;

use super::book::{Aggregate, ByArm};
use super::bucket_sums::N_BUCKETS;
use super::buckets::{bucket, salt};
use super::keep::{Keep, Users};
use super::stored::StoredLedger;
use super::{LedgerError, decode_count};
use crate::bytes::{Reader, Writer, insert_last};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId, RefusedArm, RefusedEvent};
use crate::metrics::Ranking;

/// Hours of a week.
pub const N_HOURS: usize = 7 * 24;
const HOUR_MS: i64 = 60 * 60 * 1000;
/// Arms without an accepted list whose refused lists are counted: at most 4 MiB. Further ones are not counted.
const MAX_UNLISTED: usize = 256;

/// Refused lists of an arm, and refused clicks on its lists, since the start of its experiment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedCounts {
    /// By user bucket, of lists and clicks whose user is known.
    pub by_bucket: BTreeMap<u8, u64>,
    /// By hour of the week.
    pub by_hour: BTreeMap<u8, HourCounts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HourCounts {
    /// Refused lists and clicks whose user is not known.
    pub refused: u64,
    pub accepted: u64,
}

impl RefusedCounts {
    /// Approximate maximum size in bytes.
    pub const MAX_BYTES: u64 =
        2 * (N_BUCKETS * size_of::<(u8, u64)>() + N_HOURS * size_of::<(u8, HourCounts)>()) as u64;

    pub fn add(&mut self, more: &RefusedCounts) {
        for (bucket, n) in &more.by_bucket {
            *self.by_bucket.entry(*bucket).or_default() += n;
        }
        for (hour, n) in &more.by_hour {
            let own = self.by_hour.entry(*hour).or_default();
            own.refused += n.refused;
            own.accepted += n.accepted;
        }
    }

    /// Returns the number of refused lists and clicks.
    pub fn refused(&self) -> u64 {
        let of_hours = self.by_hour.values().map(|hour| hour.refused);
        self.by_bucket.values().sum::<u64>() + of_hours.sum::<u64>()
    }

    fn refuse(&mut self, list: &RefusedEvent, salt: u64) {
        match list.user {
            Some(user) => *self.by_bucket.entry(bucket(user.get().into(), salt)).or_default() += 1,
            None => self.by_hour.entry(hour(list.ts_ms)).or_default().refused += 1,
        }
    }

    /// Approximate size in bytes.
    pub fn bytes(&self) -> u64 {
        let of_bucket = size_of::<(u8, u64)>();
        let of_hour = size_of::<(u8, HourCounts)>();
        (2 * (self.by_bucket.len() * of_bucket + self.by_hour.len() * of_hour)) as u64
    }

    /// n, (bucket, refused)…, n, (hour, refused, accepted)…, ascending.
    pub fn encode(&self, to: &mut Writer) {
        to.number(self.by_bucket.len() as u64);
        for (bucket, n) in &self.by_bucket {
            to.number((*bucket).into());
            to.number(*n);
        }
        to.number(self.by_hour.len() as u64);
        for (hour, n) in &self.by_hour {
            to.number((*hour).into());
            to.number(n.refused);
            to.number(n.accepted);
        }
    }

    /// # Errors
    /// [`LedgerError`] if [`Self::encode`] would not have written these bytes.
    pub fn decode(from: &mut Reader) -> Result<RefusedCounts, LedgerError> {
        let mut counts = RefusedCounts::default();
        for _ in 0..from.length()? {
            let bucket = u8::try_from(from.number()?).map_err(|_| LedgerError::Number)?;
            insert_last(&mut counts.by_bucket, bucket, decode_count(from)?)?;
        }
        for _ in 0..from.length()? {
            let hour = from.number()?;
            let hour = u8::try_from(hour)
                .ok()
                .filter(|hour| usize::from(*hour) < N_HOURS);
            let n = HourCounts {
                refused: decode_count(from)?,
                accepted: decode_count(from)?,
            };
            insert_last(&mut counts.by_hour, hour.ok_or(LedgerError::Number)?, n)?;
        }
        Ok(counts)
    }
}

fn hour(ms: i64) -> u8 {
    ms.div_euclid(HOUR_MS).rem_euclid(N_HOURS as i64) as u8
}

#[derive(Debug)]
pub struct Refused {
    users: Users,
    /// Arms by number.
    arms: Vec<AdmittedArm>,
    /// The slot of the last list, Unix ms.
    start_ms: i64,
    /// Lists of its hour that are not in `slot` yet, by arm.
    accepted: Vec<u64>,
    /// The arms that have any.
    touched: Vec<ArmId>,
    /// Added when the next slot ends.
    slot: ByArm<RefusedCounts>,
    /// Refused lists and clicks that count with a later slot, by the start of the first one that may take them, Unix ms.
    waiting: BTreeMap<i64, ByArm<RefusedCounts>>,
    /// Refused lists of arms without an accepted list. They count with the first slot in which a list of the arm settles.
    unlisted: BTreeMap<Arm, RefusedCounts>,
}

/// An admitted arm.
#[derive(Debug, Clone)]
struct AdmittedArm {
    name: Arm,
    salt: u64,
    /// Earlier lists do not count, Unix ms.
    start_ms: i64,
}

impl Refused {
    /// Counts a refused list or click in a slot that has not ended, because its own slot may have.
    pub fn refuse(&mut self, list: &RefusedEvent) {
        match &list.arm {
            RefusedArm::Admitted(id) => {
                let arm = &self.arms[*id as usize];
                if list.ts_ms >= arm.start_ms {
                    let waiting = self.waiting.entry(list.with_ms).or_default();
                    waiting.entry(*id).or_default().refuse(list, arm.salt);
                }
            }
            RefusedArm::Unlisted(arm) => self.refuse_unlisted(arm, list),
        }
    }

    fn refuse_unlisted(&mut self, arm: &Arm, list: &RefusedEvent) {
        let has_room = self.unlisted.len() < MAX_UNLISTED || self.unlisted.contains_key(arm);
        if has_room && list.ts_ms >= self.users.start_ms(&arm.experiment) {
            let counts = self.unlisted.entry(arm.clone()).or_default();
            counts.refuse(list, salt(&arm.experiment));
        }
    }

    /// Returns the arms that have refused lists and no settled one, with the number of refused lists.
    pub fn unlisted(&self) -> impl Iterator<Item = (&Arm, u64)> {
        self.unlisted.iter().map(|(arm, counts)| (arm, counts.refused()))
    }

    /// Moves the earlier refused lists of an arm to the current slot, which has its first accepted list. Independent of batches,
    /// because that slot is the same however the records are read.
    #[cold]
    fn take_unlisted(&mut self, arm: ArmId) {
        if let Some(counts) = self.unlisted.remove(&self.arms[arm as usize].name) {
            self.slot.entry(arm).or_default().add(&counts);
        }
    }

    /// Counts the earlier refused lists of an arm with the next slot from this time on, Unix ms, although it has no accepted list.
    pub fn count_unlisted(&mut self, arm: ArmId, with_ms: i64) {
        if let Some(counts) = self.unlisted.remove(&self.arms[arm as usize].name) {
            let waiting = self.waiting.entry(with_ms).or_default();
            waiting.entry(arm).or_default().add(&counts);
        }
    }

    fn start_slot(&mut self, start_ms: i64) {
        // `accepted` holds the counts of a single hour.
        if hour(start_ms) != hour(self.start_ms) {
            self.end_hour();
        }
        self.start_ms = start_ms;
        while let Some(waiting) = self.waiting.first_entry() {
            if *waiting.key() > start_ms {
                break;
            }
            for (arm, counts) in waiting.remove() {
                self.slot.entry(arm).or_default().add(&counts);
            }
        }
    }

    /// Counts the lists of an hour that is over.
    fn end_hour(&mut self) {
        let hour = hour(self.start_ms);
        for arm in self.touched.drain(..) {
            let n = std::mem::take(&mut self.accepted[arm as usize]);
            let counts = self.slot.entry(arm).or_default();
            counts.by_hour.entry(hour).or_default().accepted += n;
        }
    }
}

impl Aggregate for Refused {
    type Cell = RefusedCounts;
    type Slot = ByArm<RefusedCounts>;
    const ID: &str = "refused";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Refused {
        Refused {
            users: keep.users.clone(),
            arms: Vec::new(),
            start_ms: i64::MIN,
            accepted: Vec::new(),
            touched: Vec::new(),
            slot: ByArm::new(),
            waiting: BTreeMap::new(),
            unlisted: BTreeMap::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        let known = arms.iter().map(|arm| AdmittedArm {
            name: arm.clone(),
            salt: salt(&arm.experiment),
            start_ms: self.users.start_ms(&arm.experiment),
        });
        self.arms.extend(known);
        self.accepted.resize(self.arms.len(), 0);
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        self.unlisted.retain(|arm, _| &*arm.experiment != experiment);
        for arm in arms {
            self.arms[*arm as usize].start_ms = i64::MAX;
            self.slot.remove(arm);
            self.waiting
                .values_mut()
                .for_each(|waiting| _ = waiting.remove(arm));
        }
    }

    #[inline]
    fn add(&mut self, list: &SettledList) {
        if list.start_ms != self.start_ms {
            self.start_slot(list.start_ms);
        }
        for arm in list.arms {
            if list.start_ms >= self.arms[*arm as usize].start_ms {
                let accepted = &mut self.accepted[*arm as usize];
                let is_first = *accepted == 0;
                *accepted += 1;
                if is_first {
                    self.touched.push(*arm);
                    if !self.unlisted.is_empty() {
                        self.take_unlisted(*arm);
                    }
                }
            }
        }
    }

    fn end_slot(&mut self) -> ByArm<RefusedCounts> {
        // Accepted lists of the current hour belong to the slot that ends.
        self.end_hour();
        std::mem::take(&mut self.slot)
    }

    fn add_slot(&self, slot: &ByArm<RefusedCounts>, cells: &mut ByArm<RefusedCounts>) {
        for (arm, more) in slot {
            cells.entry(*arm).or_default().add(more);
        }
    }

    fn merge(cell: &mut RefusedCounts, more: &RefusedCounts) {
        cell.add(more);
    }

    fn encode(&self, cell: &RefusedCounts, to: &mut Writer) {
        cell.encode(to);
    }

    fn decode(&self, from: &mut Reader, _: &StoredLedger) -> Result<Option<RefusedCounts>, LedgerError> {
        RefusedCounts::decode(from).map(Some)
    }

    /// Refused lists that no slot has taken yet: n, (time, n, (arm, cell)…)…, ascending. Those of arms without an accepted list
    /// follow if there are any: n, (experiment, arm, cell)…, ascending.
    fn encode_memory(&self, to: &mut Writer) {
        to.number(self.waiting.len() as u64);
        for (with_ms, waiting) in &self.waiting {
            to.signed((*with_ms).into());
            to.number(waiting.len() as u64);
            for (arm, counts) in waiting {
                to.number((*arm).into());
                counts.encode(to);
            }
        }
        if !self.unlisted.is_empty() {
            to.number(self.unlisted.len() as u64);
            for (arm, counts) in &self.unlisted {
                to.text(&arm.experiment);
                to.text(&arm.arm);
                counts.encode(to);
            }
        }
    }

    fn decode_memory(&mut self, from: &mut Reader, stored: &StoredLedger) -> Result<(), LedgerError> {
        self.waiting.clear();
        for _ in 0..from.length()? {
            let with_ms = from.ms()?;
            let mut waiting = ByArm::new();
            for _ in 0..from.length()? {
                let arm = from.number()?;
                let arm = ArmId::try_from(arm).map_err(|_| LedgerError::Number)?;
                insert_last(&mut waiting, arm, RefusedCounts::decode(from)?)?;
            }
            if waiting
                .keys()
                .any(|arm| *arm as usize >= stored.users_go_on.len())
            {
                return Err(LedgerError::Number);
            }
            waiting.retain(|arm, _| stored.users_go_on[*arm as usize]);
            insert_last(&mut self.waiting, with_ms, waiting)?;
        }
        self.unlisted.clear();
        if !from.rest().is_empty() {
            for _ in 0..from.length()? {
                let arm = Arm {
                    experiment: from.text()?.into(),
                    arm: from.text()?.into(),
                };
                insert_last(&mut self.unlisted, arm, RefusedCounts::decode(from)?)?;
            }
            self.unlisted
                .retain(|arm, _| stored.users_go_on_in(&arm.experiment));
        }
        Ok(())
    }

    fn merge_memory(&mut self, other: &Refused, ids: &[ArmId]) {
        for (with_ms, waiting) in &other.waiting {
            let own = self.waiting.entry(*with_ms).or_default();
            for (arm, counts) in waiting {
                own.entry(ids[*arm as usize]).or_default().add(counts);
            }
        }
        for (arm, counts) in &other.unlisted {
            self.unlisted.entry(arm.clone()).or_default().add(counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::ledger::Epochs;
    use crate::metrics::{ListOutcome, Measures};

    /// Arm 0 of `e`, and arm 1 of `late`, which starts with the second hour.
    fn refused() -> Refused {
        let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
        let epochs = |start_ms| Epochs {
            start_ms,
            ..Epochs::default()
        };
        let experiments = [
            ("e".to_owned(), epochs(None)),
            ("late".to_owned(), epochs(Some(HOUR_MS))),
        ];
        let keep = Keep {
            users: Users::Of(experiments.into()),
            ..Keep::default()
        };
        let mut refused = Refused::new(&ranking, &keep);
        refused.admit(&["e", "late"].map(|experiment| Arm {
            experiment: experiment.into(),
            arm: "a".into(),
        }));
        refused
    }

    fn accept(refused: &mut Refused, start_ms: i64) {
        accept_in(refused, start_ms, &[0, 1]);
    }

    fn accept_in(refused: &mut Refused, start_ms: i64, arms: &[ArmId]) {
        refused.add(&SettledList {
            start_ms,
            ts_ms: start_ms,
            user: None,
            arms,
            capped: &[],
            tags: &[],
            off_list: &[],
            outcome: ListOutcome {
                n_items: 0,
                clicked: &[],
                n_off_list: 0,
            },
            items: None,
        });
    }

    fn refuse(refused: &mut Refused, user: u32, ts_ms: i64) {
        for arm in [0, 1] {
            let user = NonZeroU32::new(user);
            refused.refuse(&RefusedEvent {
                arm: RefusedArm::Admitted(arm),
                user,
                ts_ms,
                with_ms: i64::MIN,
            });
        }
    }

    #[test]
    fn refused_lists_count_by_user_and_by_hour() {
        let mut refused = refused();
        refuse(&mut refused, 7, 0);
        refuse(&mut refused, 7, HOUR_MS);
        refuse(&mut refused, 0, HOUR_MS - 1);
        [0, 0, HOUR_MS, 2 * HOUR_MS]
            .iter()
            .for_each(|start_ms| accept(&mut refused, *start_ms));
        let mut cells = ByArm::new();
        let slot = refused.end_slot();
        refused.add_slot(&slot, &mut cells);
        let hours = |counts: &RefusedCounts| -> Vec<(u8, u64, u64)> {
            let hours = counts.by_hour.iter();
            hours.map(|(hour, n)| (*hour, n.refused, n.accepted)).collect()
        };
        let bucket = |experiment| bucket(7, salt(experiment));
        assert_eq!(cells[&0].by_bucket, BTreeMap::from([(bucket("e"), 2)]));
        assert_eq!(hours(&cells[&0]), [(0, 1, 2), (1, 0, 1), (2, 0, 1)]);
        assert_eq!(cells[&1].by_bucket, BTreeMap::from([(bucket("late"), 1)]));
        assert_eq!(hours(&cells[&1]), [(1, 0, 1), (2, 0, 1)]);
        assert!(refused.end_slot().is_empty());
    }

    fn refuse_unlisted(refused: &mut Refused, arm: &Arm, user: u32, ts_ms: i64) {
        refused.refuse(&RefusedEvent {
            arm: RefusedArm::Unlisted(arm.clone()),
            user: NonZeroU32::new(user),
            ts_ms,
            with_ms: i64::MIN,
        });
    }

    fn named(experiment: &str, arm: &str) -> Arm {
        Arm {
            experiment: experiment.into(),
            arm: arm.into(),
        }
    }

    #[test]
    fn lists_refused_before_the_first_of_their_arm_count_with_its_first_slot() {
        let mut refused = refused();
        refuse_unlisted(&mut refused, &named("e", "new"), 7, 0);
        refuse_unlisted(&mut refused, &named("e", "new"), 0, HOUR_MS);
        // Before the start of its experiment, and of one whose users are not tracked.
        refuse_unlisted(&mut refused, &named("late", "new"), 7, 0);
        refuse_unlisted(&mut refused, &named("untracked", "new"), 7, 0);
        assert_eq!(refused.unlisted().collect::<Vec<_>>(), [(&named("e", "new"), 2)]);
        // A slot without the arm takes nothing, also once the arm is admitted.
        refused.admit(&[named("e", "new")]);
        accept_in(&mut refused, 0, &[0]);
        assert_eq!(refused.end_slot().keys().collect::<Vec<_>>(), [&0]);
        accept_in(&mut refused, HOUR_MS, &[2]);
        let slot = refused.end_slot();
        let counts = &slot[&2];
        assert_eq!(counts.by_bucket, BTreeMap::from([(bucket(7, salt("e")), 1)]));
        let of_hour = HourCounts {
            refused: 1,
            accepted: 1,
        };
        assert_eq!(counts.by_hour, BTreeMap::from([(1, of_hour)]));
        assert_eq!(counts.refused(), 2);
        assert_eq!(refused.unlisted().count(), 0);
    }

    #[test]
    fn arms_without_a_list_are_bounded_and_forgotten_with_their_experiment() {
        let mut refused = refused();
        for arm in 0..=MAX_UNLISTED {
            refuse_unlisted(&mut refused, &named("e", &arm.to_string()), 7, 0);
        }
        refuse_unlisted(&mut refused, &named("e", "0"), 7, 0);
        let n_lists: Vec<u64> = refused.unlisted().map(|(_, n)| n).collect();
        assert_eq!(n_lists.len(), MAX_UNLISTED);
        assert_eq!(n_lists.iter().sum::<u64>(), MAX_UNLISTED as u64 + 1);
        refused.forget_users("e", &[0]);
        assert_eq!(refused.unlisted().count(), 0);
    }

    #[test]
    fn hours_repeat_after_a_week() {
        assert_eq!(hour(N_HOURS as i64 * HOUR_MS), 0);
        assert_eq!(hour(-1), N_HOURS as u8 - 1);
    }
}
