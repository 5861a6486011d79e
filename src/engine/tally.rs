//! Sums by arm: those of one slot, with what is new in them since the last hand-over, and rows on their way to the board.

use hashbrown::HashMap;

use super::arms::ArmId;
use super::hashed::Hashed;

/// The sums of one slot.
///
/// ```text
/// row of an arm ──▶ │ fresh: since the last hand-over │ handed over before │
/// ```
#[derive(Debug)]
pub struct SlotTally {
    width: usize,
    rows: HashMap<ArmId, u32, Hashed>,
    heads: Vec<Head>,
    sums: Vec<i64>,
    /// Rows with anything fresh.
    fresh: Vec<u32>,
    overflowed: bool,
}

#[derive(Debug)]
struct Head {
    arm: ArmId,
    is_fresh: bool,
    /// The largest time of a fresh list in the slot.
    last_list_ms: Option<u32>,
}

impl SlotTally {
    pub fn new(width: usize) -> SlotTally {
        SlotTally {
            width,
            rows: HashMap::default(),
            heads: Vec::new(),
            sums: Vec::new(),
            fresh: Vec::new(),
            overflowed: false,
        }
    }

    /// What an arm's row costs in bytes.
    pub fn row_bytes(width: usize) -> u64 {
        (2 * width * size_of::<i64>() + size_of::<Head>() + 16) as u64
    }

    /// The row of an arm, and whether it is a new one.
    pub fn row(&mut self, arm: ArmId) -> (usize, bool) {
        if let Some(row) = self.rows.get(&arm) {
            return (*row as usize, false);
        }
        let row = self.heads.len();
        self.rows.insert(arm, row as u32);
        self.heads.push(Head {
            arm,
            is_fresh: false,
            last_list_ms: None,
        });
        self.sums.resize(self.sums.len() + 2 * self.width, 0);
        (row, true)
    }

    /// Adds to the first columns of a row; notes the time in the slot of a new list.
    pub fn add(&mut self, row: usize, contribution: &[i64], list_ms: Option<u32>) {
        let head = &mut self.heads[row];
        head.last_list_ms = head.last_list_ms.max(list_ms);
        if !head.is_fresh {
            head.is_fresh = true;
            self.fresh.push(row as u32);
        }
        let start = 2 * row * self.width;
        self.overflowed |= add(&mut self.sums[start..start + self.width], contribution);
    }

    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Hands each fresh row over: arm, largest time of a fresh list, sums.
    pub fn hand_over(&mut self, mut to: impl FnMut(ArmId, Option<u32>, &[i64])) {
        for row in self.fresh.drain(..) {
            let head = &mut self.heads[row as usize];
            let start = 2 * row as usize * self.width;
            let (fresh, before) = self.sums[start..start + 2 * self.width].split_at_mut(self.width);
            to(head.arm, head.last_list_ms, fresh);
            self.overflowed |= add(before, fresh);
            fresh.fill(0);
            head.is_fresh = false;
            head.last_list_ms = None;
        }
    }

    /// The sums of each arm, once all is handed over.
    pub fn rows(&self) -> impl Iterator<Item = (ArmId, &[i64])> {
        debug_assert!(!self.has_fresh());
        let sums = self.sums.chunks_exact(2 * self.width);
        self.heads
            .iter()
            .map(|head| head.arm)
            .zip(sums.map(|row| &row[self.width..]))
    }

    /// Whether a sum has left 64 bits: the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}

/// Rows of `width` integers, each with its key: in one arena, which is filled anew again and again.
#[derive(Debug)]
pub struct Rows<K> {
    keys: Vec<K>,
    width: usize,
    sums: Vec<i64>,
}

impl<K: Copy> Rows<K> {
    pub fn new(width: usize) -> Rows<K> {
        Rows {
            keys: Vec::new(),
            width,
            sums: Vec::new(),
        }
    }

    pub fn push(&mut self, key: K, sums: &[i64]) {
        debug_assert_eq!(sums.len(), self.width);
        self.keys.push(key);
        self.sums.extend_from_slice(sums);
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &[i64])> {
        self.keys.iter().copied().zip(self.sums.chunks_exact(self.width))
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.sums.clear();
    }
}

/// Adds term by term; says whether a sum has run over.
fn add(row: &mut [i64], contribution: &[i64]) -> bool {
    let mut carried = 0;
    for (sum, term) in row.iter_mut().zip(contribution) {
        let before = *sum;
        *sum = before.wrapping_add(*term);
        // The sign bit is set where both had one sign and the result has the other.
        carried |= (before ^ *sum) & (*term ^ *sum);
    }
    carried < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arm, largest time, sums.
    type Handed = (ArmId, Option<u32>, Vec<i64>);

    fn handed_over(tally: &mut SlotTally) -> Vec<Handed> {
        let mut rows = Vec::new();
        tally.hand_over(|arm, last, sums| rows.push((arm, last, sums.to_vec())));
        rows
    }

    fn add_to(tally: &mut SlotTally, arm: ArmId, contribution: &[i64]) -> bool {
        let (row, is_new) = tally.row(arm);
        tally.add(row, contribution, None);
        is_new
    }

    #[test]
    fn hands_over_what_is_fresh_and_keeps_the_whole() {
        let mut tally = SlotTally::new(3);
        assert!(add_to(&mut tally, 7, &[1, 2]));
        assert!(!add_to(&mut tally, 7, &[10, 20, 30]));
        assert!(add_to(&mut tally, 4, &[5]));
        tally.add(0, &[], Some(40));
        tally.add(0, &[], Some(30));
        let expected = [(7, Some(40), vec![11, 22, 30]), (4, None, vec![5, 0, 0])];
        assert_eq!(handed_over(&mut tally), expected);
        assert!(!tally.has_fresh() && handed_over(&mut tally).is_empty());
        add_to(&mut tally, 4, &[1, 1, -1]);
        assert_eq!(handed_over(&mut tally), [(4, None, vec![1, 1, -1])]);
        let rows: Vec<_> = tally.rows().collect();
        assert_eq!(rows, [(7, &[11, 22, 30][..]), (4, &[6, 1, -1])]);
        assert!(!tally.overflowed());
    }

    #[test]
    fn a_sum_that_runs_over_says_so_at_once_or_when_it_is_handed_over() {
        for (first, second) in [(i64::MAX, 1), (i64::MIN, -1)] {
            for between in [false, true] {
                let mut tally = SlotTally::new(2);
                add_to(&mut tally, 0, &[0, first]);
                if between {
                    handed_over(&mut tally);
                }
                add_to(&mut tally, 0, &[0, second]);
                assert_eq!(tally.overflowed(), !between);
                handed_over(&mut tally);
                assert!(tally.overflowed());
            }
        }
    }
}
