//! Serving times of the arms in a set of files.

use std::collections::BTreeMap;

use crate::engine::ArmId;
use crate::engine::settling::SettledList;
use crate::statistics::LookSpan;

/// Time of each arm from its first list to its last one.
#[derive(Debug, Default)]
pub struct ArmTimes(BTreeMap<ArmId, LookSpan>);

impl ArmTimes {
    pub fn see(&mut self, list: &SettledList) {
        let here = LookSpan {
            start_ms: list.ts_ms,
            as_of_ms: list.ts_ms,
        };
        for arm in list.arms {
            let time = self.0.entry(*arm).or_insert(here);
            *time = both(*time, here);
        }
    }

    pub fn of(&self, arms: impl Iterator<Item = ArmId>) -> LookSpan {
        let times = arms.filter_map(|arm| self.0.get(&arm).copied());
        times.reduce(both).unwrap_or(LookSpan {
            start_ms: 0,
            as_of_ms: 0,
        })
    }
}

fn both(one: LookSpan, other: LookSpan) -> LookSpan {
    LookSpan {
        start_ms: one.start_ms.min(other.start_ms),
        as_of_ms: one.as_of_ms.max(other.as_of_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ListOutcome;

    #[test]
    fn a_group_of_arms_spans_from_its_first_to_its_last_list() {
        let mut times = ArmTimes::default();
        for (ts_ms, arms) in [(50, [0, 1]), (20, [1, 2]), (90, [3, 3])] {
            times.see(&SettledList {
                start_ms: 0,
                ts_ms,
                user: None,
                arms: &arms,
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
        let of = |arms: &[ArmId]| {
            let LookSpan { start_ms, as_of_ms } = times.of(arms.iter().copied());
            (start_ms, as_of_ms)
        };
        assert_eq!(of(&[0]), (50, 50));
        assert_eq!(of(&[0, 2]), (20, 50));
        assert_eq!(of(&[0, 1, 2, 3]), (20, 90));
    }
}
