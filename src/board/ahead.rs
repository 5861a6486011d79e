//! Tallies of slots that lie further ahead than is shown: they wait here, so that one event ahead of its time does not slide a
//! window past everything else.

use std::collections::BTreeMap;

use super::part::Row;
use crate::engine::window::{Overflow, add_all};
use crate::engine::{ArmId, ArmInSlot};
use crate::snapshot::View;

/// Rows that wait at most in a part: some 30 MB with the usual metrics.
const MAX_ROWS: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// By view, then begin of the slot (epoch ms) and arm.
    rows: [BTreeMap<(i64, ArmId), Waiting>; 2],
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub of: ArmInSlot,
    pub sums: Vec<i64>,
}

impl Ahead {
    /// Keeps what a row adds.
    ///
    /// # Errors
    /// [`Overflow`] where a sum left 64 bits, or too much waits: what lies furthest ahead is then forgotten.
    pub fn hold(&mut self, view: View, row: &Row) -> Result<(), Overflow> {
        let rows = &mut self.rows[view as usize];
        let waiting = rows
            .entry((row.of.start_ms, row.of.arm))
            .or_insert_with(|| Waiting {
                of: row.of,
                sums: Vec::new(),
            });
        if waiting.sums.len() < row.sums.len() {
            waiting.sums.resize(row.sums.len(), 0);
        }
        waiting.of.last_list_ms = waiting.of.last_list_ms.max(row.of.last_list_ms);
        let fits = add_all(&mut waiting.sums, row.sums);
        let forgotten = (rows.len() > MAX_ROWS).then(|| rows.pop_last()).flatten();
        (fits && forgotten.is_none()).then_some(()).ok_or(Overflow)
    }

    /// Takes the first row that begins by `until_ms`, if there is one.
    pub fn take(&mut self, view: View, until_ms: i64) -> Option<Waiting> {
        let first = self.rows[view as usize].first_entry()?;
        (first.key().0 <= until_ms).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(ahead: &mut Ahead, start_ms: i64, sums: &[i64]) -> Result<(), Overflow> {
        let of = ArmInSlot {
            arm: 0,
            start_ms,
            last_list_ms: Some(start_ms + 1),
        };
        ahead.hold(View::Live, &Row { of, sums })
    }

    #[test]
    fn rows_of_a_slot_add_up_and_leave_in_the_order_of_time() {
        let mut ahead = Ahead::default();
        for (start_ms, sums) in [(20, &[1][..]), (10, &[2, 3]), (20, &[4, 5])] {
            hold(&mut ahead, start_ms, sums).expect("small sums");
        }
        let mut take = |until_ms| {
            ahead
                .take(View::Live, until_ms)
                .map(|row| (row.of.start_ms, row.sums))
        };
        assert_eq!(take(9), None);
        assert_eq!(take(10), Some((10, vec![2, 3])));
        assert_eq!(take(19), None);
        assert_eq!(take(20), Some((20, vec![5, 5])));
        assert_eq!(take(i64::MAX), None);
    }

    #[test]
    fn what_lies_furthest_ahead_is_forgotten_and_told_where_too_much_waits() {
        let mut ahead = Ahead::default();
        for start_ms in 0..MAX_ROWS as i64 {
            hold(&mut ahead, start_ms, &[1]).expect("there is room");
        }
        assert_eq!(hold(&mut ahead, i64::MAX - 1, &[1]), Err(Overflow));
        assert_eq!(hold(&mut ahead, -1, &[1]), Err(Overflow));
        assert_eq!(ahead.rows[0].len(), MAX_ROWS);
        let last = ahead.rows[0].last_key_value().map(|(key, _)| key.0);
        assert_eq!(last, Some(MAX_ROWS as i64 - 2));
    }
}
