//! Lists without a user: each is a unit of its own in the sums by bucket, so many of them make intervals too narrow.

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::keep::{Keep, Users};
use super::stored::Stored;
use crate::bytes::{Reader, Writer};
use crate::engine::ranking::Ranking;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};

/// Lists without a user by arm, of experiments whose users are told apart.
#[derive(Debug)]
pub struct Anonymous {
    users: Users,
    /// Slots that begin earlier do not count, by arm, Unix ms.
    starts_ms: Vec<i64>,
    /// Of the current slot, by arm.
    slot: Vec<u64>,
    /// The arms that have any in it.
    arms: Vec<ArmId>,
}

impl Aggregate for Anonymous {
    type Cell = u64;
    type Slot = ByArm<u64>;
    const ID: &str = "anonymous";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Anonymous {
        Anonymous {
            users: keep.users.clone(),
            starts_ms: Vec::new(),
            slot: Vec::new(),
            arms: Vec::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        for arm in arms {
            let epochs = self.users.epochs(&arm.experiment);
            let start_ms = epochs.map(|epochs| epochs.start_ms.unwrap_or(i64::MIN));
            self.starts_ms.push(start_ms.unwrap_or(i64::MAX));
        }
        self.slot.resize(self.starts_ms.len(), 0);
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        for arm in arms {
            self.starts_ms[*arm as usize] = i64::MAX;
        }
    }

    fn add(&mut self, list: &SettledList) {
        // Nearly always.
        if list.user.is_some() {
            return;
        }
        for arm in list.arms {
            let at = *arm as usize;
            if list.start_ms < self.starts_ms[at] {
                continue;
            }
            if self.slot[at] == 0 {
                self.arms.push(*arm);
            }
            self.slot[at] += 1;
        }
    }

    fn end_slot(&mut self) -> ByArm<u64> {
        let arms = self.arms.drain(..);
        arms.map(|arm| (arm, std::mem::take(&mut self.slot[arm as usize])))
            .collect()
    }

    fn add_slot(&self, slot: &ByArm<u64>, cells: &mut ByArm<u64>) {
        for (arm, more) in slot {
            *cells.entry(*arm).or_default() += more;
        }
    }

    fn merge(cell: &mut u64, more: &u64) {
        *cell += more;
    }

    fn encode(&self, cell: &u64, to: &mut Writer) {
        to.number(*cell);
    }

    fn decode(&self, from: &mut Reader, _: &Stored) -> Result<Option<u64>, LedgerError> {
        let count = from.number()?;
        // Sums of pairs stay within 64 bits.
        let is_sound = count > 0 && count < 1 << 56;
        is_sound.then_some(Some(count)).ok_or(LedgerError::Number)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::engine::ranking::{ListOutcome, Measures};
    use crate::ledger::Epochs;

    #[test]
    fn lists_without_a_user_count_from_the_start_on() {
        let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
        let epochs = |start_ms| Epochs {
            start_ms,
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
        let mut anonymous = Anonymous::new(&ranking, &keep);
        let arm = |experiment: &str| Arm {
            experiment: experiment.into(),
            arm: "a".into(),
        };
        anonymous.admit(&[arm("e"), arm("late"), arm("other")]);
        let mut slot = |start_ms: i64, users: &[u32]| {
            for user in users {
                anonymous.add(&SettledList {
                    start_ms,
                    ts_ms: start_ms,
                    user: NonZeroU32::new(*user),
                    arms: &[0, 1, 2],
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
            anonymous.end_slot()
        };
        assert_eq!(slot(0, &[0, 7, 0]), ByArm::from([(0, 2)]));
        assert_eq!(slot(5, &[0]), ByArm::from([(0, 1), (1, 1)]));
        assert_eq!(slot(10, &[7]), ByArm::new());
    }
}
