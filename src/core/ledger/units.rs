//! Lists by their tie to users: lists without a user, and lists beyond the cap on counted lists per user.
//!
//! A list without a user is a unit of its own in the sums by bucket, so many of them make intervals too narrow. A cap on the
//! lists of a user limits the effect of heavy users. A slot settles its lists in order of offset and slots settle in order of
//! time, so the log alone determines which lists count.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::book::{Aggregate, ByArm};
use super::keep::{Epochs, Keep, Users};
use super::stored::StoredLedger;
use super::{LedgerError, decode_count};
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Lists of an arm since the start of its experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnitCounts {
    pub without_user: u64,
    /// Lists left out of the sums by bucket.
    pub capped: u64,
}

impl UnitCounts {
    pub fn add(&mut self, more: UnitCounts) {
        self.without_user += more.without_user;
        self.capped += more.capped;
    }
}

/// Maximum bytes per user in an experiment with a cap: twice an entry, for a table that is half full.
pub const CAPPED_USER_BYTES: u64 = 2 * size_of::<((u32, NonZeroU32), u32)>() as u64;

#[derive(Debug)]
pub struct Units {
    users: Users,
    arms: Vec<UnitsArm>,
    experiments: HashMap<Arc<str>, u32>,
    has_caps: bool,
    /// Lists counted so far, by experiment and user. Only experiments with a cap have entries.
    counted: HashMap<(u32, NonZeroU32), u32>,
    /// Counts of the current slot by arm.
    slot: Vec<UnitCounts>,
    /// Arms with counts in the current slot.
    touched: Vec<ArmId>,
    /// Spare buffer for the arms in which a list is left out.
    over: Vec<ArmId>,
}

/// Experiment and limits of an arm.
#[derive(Debug, Clone, Copy)]
struct UnitsArm {
    experiment: u32,
    /// Start of counting, Unix ms. Earlier slots do not count.
    start_ms: i64,
    max_lists: Option<NonZeroU32>,
}

impl Units {
    /// Returns whether any experiment has a cap.
    pub fn has_caps(&self) -> bool {
        self.has_caps
    }

    /// Returns the arms in which a list is left out because its user has reached the cap, and counts the list in the others.
    /// Call it once per list. [`Self::reuse`] takes the buffer back.
    pub fn cap(&mut self, list: &SettledList) -> Vec<ArmId> {
        let mut over = std::mem::take(&mut self.over);
        over.clear();
        let Some(user) = list.user else {
            return over;
        };
        let mut seen: Option<(u32, bool)> = None;
        for arm in list.arms {
            let known = self.arms[*arm as usize];
            let Some(max_lists) = known.max_lists.filter(|_| list.start_ms >= known.start_ms) else {
                continue;
            };
            // A list in two arms of an experiment still is a single list of its user.
            let is_over = match seen.filter(|(experiment, _)| *experiment == known.experiment) {
                Some((_, is_over)) => is_over,
                None => {
                    let counted = self.counted.entry((known.experiment, user)).or_default();
                    let is_over = *counted >= max_lists.get();
                    *counted += u32::from(!is_over);
                    is_over
                }
            };
            seen = Some((known.experiment, is_over));
            if is_over {
                over.push(*arm);
            }
        }
        over
    }

    pub fn reuse(&mut self, over: Vec<ArmId>) {
        self.over = over;
    }

    fn count_list(&mut self, list: &SettledList) {
        if list.user.is_none() {
            for arm in list.arms {
                if list.start_ms >= self.arms[*arm as usize].start_ms {
                    self.count(*arm, |counts| counts.without_user += 1);
                }
            }
        }
        for arm in list.capped {
            self.count(*arm, |counts| counts.capped += 1);
        }
    }

    fn count(&mut self, arm: ArmId, add: impl FnOnce(&mut UnitCounts)) {
        let counts = &mut self.slot[arm as usize];
        if *counts == UnitCounts::default() {
            self.touched.push(arm);
        }
        add(counts);
    }

    /// Returns the cap of each experiment that has one, by experiment number.
    fn caps(&self) -> BTreeMap<u32, NonZeroU32> {
        let caps = self
            .arms
            .iter()
            .filter_map(|arm| Some((arm.experiment, arm.max_lists?)));
        caps.collect()
    }
}

impl Aggregate for Units {
    type Cell = UnitCounts;
    type Slot = ByArm<UnitCounts>;
    const ID: &str = "units";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Units {
        Units {
            users: keep.users.clone(),
            arms: Vec::new(),
            experiments: HashMap::new(),
            has_caps: false,
            counted: HashMap::new(),
            slot: Vec::new(),
            touched: Vec::new(),
            over: Vec::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        for arm in arms {
            let n_experiments = self.experiments.len() as u32;
            let experiment = self.experiments.entry(Arc::clone(&arm.experiment));
            let epochs: Option<Epochs> = self.users.epochs(&arm.experiment);
            let max_lists = epochs.as_ref().and_then(|epochs| epochs.max_lists);
            self.has_caps |= max_lists.is_some();
            self.arms.push(UnitsArm {
                experiment: *experiment.or_insert(n_experiments),
                start_ms: self.users.start_ms(&arm.experiment),
                max_lists,
            });
        }
        self.slot.resize(self.arms.len(), UnitCounts::default());
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        for arm in arms {
            let known = &mut self.arms[*arm as usize];
            (known.start_ms, known.max_lists) = (i64::MAX, None);
        }
        if let Some(experiment) = self.experiments.get(experiment) {
            self.counted.retain(|(of, _), _| of != experiment);
        }
    }

    #[inline]
    fn add(&mut self, list: &SettledList) {
        if list.user.is_none() || !list.capped.is_empty() {
            self.count_list(list);
        }
    }

    fn end_slot(&mut self) -> ByArm<UnitCounts> {
        let arms = self.touched.drain(..);
        arms.map(|arm| (arm, std::mem::take(&mut self.slot[arm as usize])))
            .collect()
    }

    fn add_slot(&self, slot: &ByArm<UnitCounts>, cells: &mut ByArm<UnitCounts>) {
        for (arm, more) in slot {
            Units::merge(cells.entry(*arm).or_default(), more);
        }
    }

    fn merge(cell: &mut UnitCounts, more: &UnitCounts) {
        cell.add(*more);
    }

    fn encode(&self, cell: &UnitCounts, to: &mut Writer) {
        to.number(cell.without_user);
        to.number(cell.capped);
    }

    fn decode(&self, from: &mut Reader, _: &StoredLedger) -> Result<Option<UnitCounts>, LedgerError> {
        Ok(Some(UnitCounts {
            without_user: decode_count(from)?,
            capped: decode_count(from)?,
        }))
    }

    /// Writes the number of entries, then (experiment, user, counted lists) for each, ascending.
    fn encode_memory(&self, to: &mut Writer) {
        let mut counted: Vec<_> = self.counted.iter().collect();
        counted.sort_unstable();
        to.number(counted.len() as u64);
        for ((experiment, user), n_lists) in counted {
            to.number((*experiment).into());
            to.number(user.get().into());
            to.number((*n_lists).into());
        }
    }

    fn decode_memory(&mut self, from: &mut Reader, stored: &StoredLedger) -> Result<(), LedgerError> {
        let mut continues = vec![false; self.experiments.len()];
        for (arm, users_go_on) in self.arms.iter().zip(&stored.users_go_on) {
            continues[arm.experiment as usize] |= *users_go_on;
        }
        let caps = self.caps();
        let mut last = None;
        self.counted.clear();
        for _ in 0..from.length()? {
            let mut number = || u32::try_from(from.number()?).map_err(|_| LedgerError::Number);
            let (experiment, user, n_lists) = (number()?, number()?, number()?);
            let user = NonZeroU32::new(user).ok_or(LedgerError::Number)?;
            let continues = continues.get(experiment as usize).ok_or(LedgerError::Number)?;
            // The encoding has no empty entry, and its entries ascend.
            if n_lists == 0 || last >= Some((experiment, user)) {
                return Err(LedgerError::Number);
            }
            last = Some((experiment, user));
            // Drop counts of users that restart, and of experiments that no longer have a cap.
            if *continues && caps.contains_key(&experiment) {
                self.counted.insert((experiment, user), n_lists);
            }
        }
        Ok(())
    }

    /// Merges counted lists. A user is in one pair only, so a maximum suffices.
    fn merge_memory(&mut self, other: &Units, ids: &[ArmId]) {
        let mut own = vec![None; other.experiments.len()];
        for (arm, id) in other.arms.iter().zip(ids) {
            own[arm.experiment as usize] = Some(self.arms[*id as usize].experiment);
        }
        for ((experiment, user), n_lists) in &other.counted {
            if let Some(experiment) = own[*experiment as usize] {
                let counted = self.counted.entry((experiment, *user)).or_default();
                *counted = (*counted).max(*n_lists);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::{ListOutcome, Measures};

    fn list(start_ms: i64, user: u32, arms: &[ArmId], reported: impl FnOnce(&SettledList)) {
        reported(&SettledList {
            start_ms,
            ts_ms: start_ms,
            user: NonZeroU32::new(user),
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

    /// Arms 0 and 1 of `e`, arm 2 of `late`, which starts at 5 ms, and arm 3 of an experiment without tracked users.
    fn units(max_lists: Option<u32>) -> Units {
        let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
        let epochs = |start_ms| Epochs {
            start_ms,
            max_lists: max_lists.and_then(NonZeroU32::new),
            ..Epochs::default()
        };
        let experiments = [
            ("e".to_owned(), epochs(None)),
            ("late".to_owned(), epochs(Some(5))),
        ];
        let keep = Keep {
            users: Users::Of(experiments.into()),
            ..Keep::default()
        };
        let arm = |(experiment, arm): (&str, &str)| Arm {
            experiment: experiment.into(),
            arm: arm.into(),
        };
        let mut units = Units::new(&ranking, &keep);
        units.admit(&[("e", "a"), ("e", "b"), ("late", "a"), ("other", "a")].map(arm));
        units
    }

    #[test]
    fn lists_without_a_user_count_from_the_start() {
        let mut units = units(None);
        let mut slot = |start_ms: i64, users: &[u32]| {
            for user in users {
                list(start_ms, *user, &[0, 2, 3], |list| units.add(list));
            }
            let slot = units.end_slot();
            slot.into_iter()
                .map(|(arm, counts)| (arm, counts.without_user))
                .collect::<Vec<_>>()
        };
        assert_eq!(slot(0, &[0, 7, 0]), [(0, 2)]);
        assert_eq!(slot(5, &[0]), [(0, 1), (2, 1)]);
        assert_eq!(slot(10, &[7]), []);
    }

    #[test]
    fn the_first_lists_of_a_user_count_in_each_experiment() {
        let mut units = units(Some(2));
        let mut over = |start_ms, user, arms: &[ArmId]| {
            let mut over = Vec::new();
            list(start_ms, user, arms, |list| over = units.cap(list));
            over
        };
        assert_eq!(over(0, 7, &[0, 2]), [0; 0], "`late` has not started");
        assert_eq!(over(5, 7, &[1, 2]), [0; 0], "the second in `e`, whatever the arm");
        assert_eq!(
            over(5, 7, &[0, 1, 2]),
            [0, 1],
            "the third in `e`, the second in `late`"
        );
        assert_eq!(over(6, 7, &[0, 2]), [0, 2]);
        assert_eq!(over(6, 8, &[0, 2, 3]), [0; 0]);
        assert_eq!(
            [over(6, 0, &[0]), over(6, 0, &[0]), over(6, 0, &[0])],
            [[0; 0]; 3],
            "no user, no cap"
        );
    }

    proptest! {
        /// Twin: a list counts if its user had fewer than `max` lists before it.
        #[test]
        fn a_list_counts_if_fewer_than_the_cap_came_before(users in prop::collection::vec(0_u32..5, 0..60), max in 1_u32..6) {
            let mut units = units(Some(max));
            for (at, user) in users.iter().enumerate() {
                let before = users[..at].iter().filter(|other| *other == user).count();
                list(0, *user, &[0], |list| {
                    let is_over = !units.cap(list).is_empty();
                    assert_eq!(is_over, *user > 0 && before >= max as usize);
                });
            }
        }
    }
}
