//! Most active user of each arm: one crawler with a third of an arm's lists decides the result.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use foldhash::{HashMap, HashMapExt};

use crate::engine::ArmId;
use crate::engine::settling::SettledList;

/// Number of lists by arm and user.
#[derive(Debug)]
pub struct TopUsers(HashMap<(ArmId, NonZeroU32), u32>);

impl Default for TopUsers {
    fn default() -> TopUsers {
        TopUsers(HashMap::new())
    }
}

impl TopUsers {
    pub fn see(&mut self, list: &SettledList) {
        let Some(user) = list.user else {
            return;
        };
        for arm in list.arms {
            let n_lists = self.0.entry((*arm, user)).or_default();
            *n_lists = n_lists.saturating_add(1);
        }
    }

    /// Returns the lists of the most active user, by arm. Arms without users are absent.
    pub fn most(&self) -> BTreeMap<ArmId, u32> {
        let mut most = BTreeMap::new();
        for ((arm, _), n_lists) in &self.0 {
            let of_arm: &mut u32 = most.entry(*arm).or_default();
            *of_arm = (*of_arm).max(*n_lists);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ListOutcome;

    #[test]
    fn the_user_with_most_lists_counts_in_each_arm() {
        let mut users = TopUsers::default();
        for (user, arms) in [(1, &[0, 1][..]), (1, &[0]), (2, &[1]), (2, &[1]), (0, &[2])] {
            users.see(&SettledList {
                start_ms: 0,
                ts_ms: 0,
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
        assert_eq!(users.most(), BTreeMap::from([(0, 2), (1, 2)]));
    }
}
