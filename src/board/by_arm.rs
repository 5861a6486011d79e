//! The rows of a hand-over by their arm, so that all that goes to one arm goes there at once.
//!
//! ```text
//! row                0 │ 1 │ 2 │ 3 │ 4
//! its arm            0 │ 2 │ 0 │ 1 │ 0       arms, as they come: 0, 2, 1
//! the one before     – │ – │ 0 │ – │ 2       newest: of arm 0 row 4, of arm 1 row 3, of arm 2 row 1
//! ```

use super::part::Row;
use crate::engine::ArmId;

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub struct ByArm {
    /// Arms that have rows, as they come.
    arms: Vec<ArmId>,
    /// By arm; that of an arm without rows is none.
    newest: Vec<u32>,
    /// By row: the one before it of the same arm.
    before: Vec<u32>,
}

impl ByArm {
    /// Takes in the rows of arms below `n_arms`.
    pub fn set(&mut self, rows: &[Row], n_arms: usize) {
        self.arms
            .drain(..)
            .for_each(|arm| self.newest[arm as usize] = NONE);
        self.newest.resize(n_arms, NONE);
        self.before.clear();
        for (index, row) in rows.iter().enumerate() {
            let newest = &mut self.newest[row.arm as usize];
            if *newest == NONE {
                self.arms.push(row.arm);
            }
            self.before.push(std::mem::replace(newest, index as u32));
        }
    }

    pub fn arms(&self) -> &[ArmId] {
        &self.arms
    }

    /// The rows of an arm, as indices, from the last one back.
    pub fn newest_first(&self, arm: ArmId) -> impl Iterator<Item = usize> + Clone {
        let there = |index: u32| (index != NONE).then_some(index);
        let newest = there(self.newest[arm as usize]);
        let rows = std::iter::successors(newest, move |index| there(self.before[*index as usize]));
        rows.map(|index| index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(arm: ArmId) -> Row<'static> {
        Row {
            arm,
            start_ms: 0,
            sums: &[],
        }
    }

    #[test]
    fn each_arm_has_its_rows_from_the_last_one_back() {
        let mut by_arm = ByArm::default();
        by_arm.set(&[0, 2, 0, 1, 0].map(row), 3);
        assert_eq!(by_arm.arms(), [0, 2, 1]);
        let of_arm = |by_arm: &ByArm, arm| by_arm.newest_first(arm).collect::<Vec<_>>();
        assert_eq!(
            [0, 1, 2].map(|arm| of_arm(&by_arm, arm)),
            [vec![4, 2, 0], vec![3], vec![1]]
        );
        by_arm.set(&[3, 1].map(row), 4);
        assert_eq!(by_arm.arms(), [3, 1], "nothing is left of what was before");
        let rows = [0, 1, 2, 3].map(|arm| of_arm(&by_arm, arm));
        assert_eq!(rows, [vec![], vec![1], vec![], vec![0]]);
    }
}
