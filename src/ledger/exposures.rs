//! When each user was first seen in an arm: who counts where in the sample ratio, and who was seen in two arms.

use std::collections::BTreeMap;

use super::book::{Aggregate, ByArm, Keep, Users, insert_last};
use super::bytes::{LedgerError, Reader, Writer};
use crate::engine::ranking::Ranking;
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};

/// Half of the keyed hash of a user, and the time of the first list (epoch ms). Of a million users some hundred share one.
pub type FirstSeen = BTreeMap<u32, i64>;

#[derive(Debug)]
pub struct Exposures {
    users: Users,
    /// By arm: where its users are told apart, the start of the first slot that counts, epoch ms.
    starts_ms: Vec<Option<i64>>,
    /// The current slot.
    slot: ByArm<FirstSeen>,
}

fn see(seen: &mut FirstSeen, user: u32, ts_ms: i64) {
    let first_ms = seen.entry(user).or_insert(ts_ms);
    *first_ms = (*first_ms).min(ts_ms);
}

impl Aggregate for Exposures {
    type Cell = FirstSeen;
    type Slot = ByArm<FirstSeen>;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Exposures {
        Exposures {
            users: keep.users.clone(),
            starts_ms: Vec::new(),
            slot: ByArm::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        let starts_ms = arms.iter().map(|arm| self.users.start_ms(&arm.experiment));
        self.starts_ms.extend(starts_ms);
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        arms.iter().for_each(|arm| self.starts_ms[*arm as usize] = None);
    }

    fn add(&mut self, list: &SettledList) {
        let Some(user) = list.user.filter(|_| self.users != Users::Nobody) else {
            return;
        };
        for arm in list.arms {
            let start_ms = self.starts_ms[*arm as usize];
            if start_ms.is_some_and(|start_ms| list.start_ms >= start_ms) {
                see(self.slot.entry(*arm).or_default(), user.get(), list.ts_ms);
            }
        }
    }

    fn end_slot(&mut self) -> ByArm<FirstSeen> {
        std::mem::take(&mut self.slot)
    }

    fn add_slot(&self, slot: &ByArm<FirstSeen>, cells: &mut ByArm<FirstSeen>) {
        for (arm, seen) in slot {
            Exposures::merge(cells.entry(*arm).or_default(), seen);
        }
    }

    fn merge(cell: &mut FirstSeen, more: &FirstSeen) {
        more.iter().for_each(|(user, ts_ms)| see(cell, *user, *ts_ms));
    }

    fn encode(cell: &FirstSeen, to: &mut Writer) {
        to.number(cell.len() as u64);
        for (user, ts_ms) in cell {
            to.number((*user).into());
            to.signed((*ts_ms).into());
        }
    }

    fn decode(&self, from: &mut Reader) -> Result<FirstSeen, LedgerError> {
        let mut cell = FirstSeen::new();
        for _ in 0..from.length()? {
            let user = u32::try_from(from.number()?).map_err(|_| LedgerError::Number)?;
            let ts_ms = i64::try_from(from.signed()?).map_err(|_| LedgerError::Number)?;
            insert_last(&mut cell, user, ts_ms)?;
        }
        Ok(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_counts_at_the_first_list_in_whatever_order_they_come() {
        let mut seen = FirstSeen::new();
        for (user, ts_ms) in [(1, 50), (2, 40), (1, 30), (1, 60)] {
            see(&mut seen, user, ts_ms);
        }
        Exposures::merge(&mut seen, &[(2, 45), (3, 5)].into());
        assert_eq!(seen, [(1, 30), (2, 40), (3, 5)].into());
    }
}
