//! Sums by arm: sums of one slot since the last hand-over, and rows on their way from there.

use std::num::NonZeroU32;

use super::arms::ArmId;
use super::contributions::{Contributions, MAX_POSITIONS};
use super::first_clicks::{self, FirstClicks};

/// Arms in a page of [`RowsByArm`].
const PAGE: usize = 16;
const NO_ROW: u32 = u32::MAX;
const NO_LENGTH: u32 = u32::MAX;

/// Sums of the lists and clicks of one slot, until they are handed over.
///
/// ```text
/// head of an arm │ lists of one length │ first clicks ─▶ │ sums ─▶ │
/// ```
/// All new lists of one length add the same. So lists with the length of an arm's first one are only counted, and so are their
/// first clicks, by position. An arm gets sums once anything else is added: a list of another length, terms of the catalogue, a
/// click that is not its list's first, or a click on a list of more than [`MAX_POSITIONS`] items.
#[derive(Debug)]
pub struct SlotTally {
    width: usize,
    rows: RowsByArm,
    heads: Vec<Head>,
    /// A width for each arm that has them.
    sums: Vec<i64>,
    first_clicks: FirstClicks,
    bytes: u64,
    overflowed: bool,
}

/// Head of an arm, half a cache line. The counter of lists cannot overflow: each list takes at least one word in an open chunk,
/// and chunks hold fewer than 2^32 words.
#[derive(Debug)]
#[repr(align(32))]
struct Head {
    arm: ArmId,
    /// One more than the largest time of a list in the slot, or 0.
    after_last_list_ms: u32,
    /// Which of the sums are its own, if any.
    sums: Option<NonZeroU32>,
    /// The length of lists that are only counted; [`NO_LENGTH`] before there is one.
    n_items: u32,
    /// Number of these lists that are not in the sums.
    n_lists: u32,
    /// First clicks on them that are not in the sums, if there were any.
    first_clicks: Option<first_clicks::CountsStart>,
}

impl SlotTally {
    pub fn new(width: usize) -> SlotTally {
        SlotTally {
            width,
            rows: RowsByArm::new(),
            heads: Vec::new(),
            sums: Vec::new(),
            first_clicks: FirstClicks::default(),
            bytes: 0,
            overflowed: false,
        }
    }

    /// Maximum bytes of an arm's row.
    pub fn max_row_bytes(width: usize) -> u64 {
        HEAD_BYTES + sums_bytes(width) + FirstClicks::bytes(MAX_POSITIONS)
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The row of an arm.
    pub fn row(&mut self, arm: ArmId) -> usize {
        match self.rows.get(arm) {
            NO_ROW => self.new_row(arm),
            row => row as usize,
        }
    }

    #[cold]
    fn new_row(&mut self, arm: ArmId) -> usize {
        let row = self.heads.len();
        self.rows.set(arm, row as u32);
        // A slot of a quiet stream has one arm.
        if self.heads.is_empty() {
            self.heads.reserve_exact(1);
        }
        self.heads.push(Head {
            arm,
            after_last_list_ms: 0,
            sums: None,
            n_items: NO_LENGTH,
            n_lists: 0,
            first_clicks: None,
        });
        self.bytes += HEAD_BYTES;
        row
    }

    /// Returns where the sums of a row start, and adds them if the row has none yet.
    fn sums_of(&mut self, row: usize) -> usize {
        let (sums, width, bytes) = (&mut self.sums, self.width, &mut self.bytes);
        let own = *self.heads[row].sums.get_or_insert_with(|| {
            sums.resize(sums.len() + width, 0);
            *bytes += sums_bytes(width);
            // Counted from 1.
            NonZeroU32::new((sums.len() / width) as u32).expect("they have just grown")
        });
        (own.get() as usize - 1) * width
    }

    /// Counts a list without a click, of a length whose contribution is remembered.
    pub fn count(&mut self, row: usize, n_items: u32, contributions: &Contributions) {
        let head = &mut self.heads[row];
        if head.n_items == NO_LENGTH {
            head.n_items = n_items;
        }
        if head.n_items == n_items {
            head.n_lists += 1;
        } else {
            self.add(row, 0, contributions.remembered(n_items as usize));
        }
    }

    /// Notes that a list of a row came at a time in the slot.
    pub fn note_time(&mut self, row: usize, list_ms: u32) {
        let head = &mut self.heads[row];
        head.after_last_list_ms = head.after_last_list_ms.max(list_ms + 1);
    }

    /// Counts a click, the first one of a list of this length, whose contribution is remembered.
    pub fn count_click(
        &mut self,
        row: usize,
        n_items: usize,
        position: usize,
        contributions: &Contributions,
    ) {
        let head = &mut self.heads[row];
        if head.n_items == NO_LENGTH {
            head.n_items = n_items as u32;
        }
        if head.n_items as usize == n_items {
            if head.first_clicks.is_none() {
                self.bytes += FirstClicks::bytes(n_items);
            }
            self.first_clicks.count(&mut head.first_clicks, n_items, position);
        } else {
            self.add(row, 0, contributions.of_first_click(n_items, position));
        }
    }

    /// Adds to the columns of a row from `first` on.
    pub fn add(&mut self, row: usize, first: usize, terms: &[i64]) {
        let start = self.sums_of(row);
        self.overflowed |= add(&mut self.sums[start..start + self.width][first..], terms);
    }

    /// Hands each row over and clears the tally: arm, largest time of a list, sums up to the last column that is needed. `room`
    /// is scratch space for sums. Returns whether a sum has exceeded 64 bits: the numbers are no longer exact.
    #[must_use]
    pub fn hand_over(
        &mut self,
        contributions: &Contributions,
        room: &mut Vec<i64>,
        mut to: impl FnMut(ArmId, Option<u32>, &[i64]),
    ) -> bool {
        let mut overflowed = std::mem::take(&mut self.overflowed);
        for head in &self.heads {
            let clicks = self.first_clicks.of(head.first_clicks, head.n_items as usize);
            overflowed |= set_counted(room, self.width, head, clicks, contributions);
            if let Some(own) = head.sums {
                let start = (own.get() as usize - 1) * self.width;
                room.resize(self.width, 0);
                overflowed |= add(room, &self.sums[start..start + self.width]);
            }
            // The time is stored plus one, so that 0 means no list.
            to(head.arm, head.after_last_list_ms.checked_sub(1), room);
        }
        self.rows.clear();
        self.heads.clear();
        self.sums.clear();
        self.first_clicks.clear();
        self.bytes = 0;
        overflowed
    }
}

/// A head and its index: at most one page each.
const HEAD_BYTES: u64 = (size_of::<Head>() + (PAGE + 2) * size_of::<u32>()) as u64;

/// The sums of a row.
fn sums_bytes(width: usize) -> u64 {
    (width * size_of::<i64>()) as u64
}

/// Sets `sums` to the contributions of the lists and first clicks that a head counts, up to the last needed column of `width`.
/// Returns whether one has overflowed.
fn set_counted(
    sums: &mut Vec<i64>,
    width: usize,
    head: &Head,
    clicks: &[u32],
    contributions: &Contributions,
) -> bool {
    sums.clear();
    if head.n_items == NO_LENGTH {
        return false;
    }
    let (n, n_items) = (head.n_lists, head.n_items as usize);
    let terms = contributions.remembered(n_items);
    let is_clicked = clicks.iter().any(|n| *n > 0);
    // Without a click, only the first columns differ from zero.
    sums.resize(if is_clicked { width } else { terms.len() }, 0);
    add_times(sums, n, terms) | add_first_clicks(sums, n_items, clicks, contributions)
}

/// Adds the contributions of first clicks on lists of this length, by position; returns whether a sum has overflowed.
fn add_first_clicks(sums: &mut [i64], n_items: usize, clicks: &[u32], contributions: &Contributions) -> bool {
    let mut overflowed = false;
    for (position, n) in clicks.iter().enumerate().filter(|(_, n)| **n > 0) {
        let terms = contributions.of_first_click(n_items, position);
        overflowed |= add_times(sums, *n, terms);
    }
    overflowed
}

/// Adds `n` times the terms; returns whether a sum has overflowed.
fn add_times(sums: &mut [i64], n: u32, terms: &[i64]) -> bool {
    match n {
        0 => return false,
        1 => return add(sums, terms),
        _ => {}
    }
    let mut overflowed = false;
    for (sum, term) in sums.iter_mut().zip(terms) {
        // On overflow the sum keeps its value, because the flag already marks the numbers as inexact.
        let more = term.checked_mul(n.into()).and_then(|more| sum.checked_add(more));
        overflowed |= more.is_none();
        *sum = more.unwrap_or(*sum);
    }
    overflowed
}

/// Rows by arm. Arm ids are dense from 0, but a slot may have few arms, so they are stored in pages of 16. The first page is
/// empty.
#[derive(Debug)]
struct RowsByArm {
    /// Start of the page of each 16 arms in `rows`.
    pages: Vec<u32>,
    rows: Vec<u32>,
}

impl RowsByArm {
    fn new() -> RowsByArm {
        RowsByArm {
            pages: Vec::new(),
            rows: vec![NO_ROW; PAGE],
        }
    }

    fn clear(&mut self) {
        self.pages.clear();
        self.rows.truncate(PAGE);
    }

    fn get(&self, arm: ArmId) -> u32 {
        let page = self
            .pages
            .get(arm as usize / PAGE)
            .map_or(0, |start| *start as usize);
        self.rows[page + arm as usize % PAGE]
    }

    fn set(&mut self, arm: ArmId, row: u32) {
        let page = arm as usize / PAGE;
        if page >= self.pages.len() {
            self.pages.resize(page + 1, 0);
        }
        // Page 0 is shared by all arms without a row, so it must stay empty.
        if self.pages[page] == 0 {
            self.pages[page] = self.rows.len() as u32;
            self.rows.resize(self.rows.len() + PAGE, NO_ROW);
        }
        self.rows[self.pages[page] as usize + arm as usize % PAGE] = row;
    }
}

/// Rows of integers, each with its key, in one arena that is reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<K> {
    /// Keys, each with the end of its row.
    keys: Vec<(K, usize)>,
    sums: Vec<i64>,
}

impl<K: Copy> Rows<K> {
    pub fn new() -> Rows<K> {
        Rows {
            keys: Vec::new(),
            sums: Vec::new(),
        }
    }

    pub fn push(&mut self, key: K, sums: &[i64]) {
        self.sums.extend_from_slice(sums);
        self.keys.push((key, self.sums.len()));
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &[i64])> {
        let mut start = 0;
        self.keys.iter().map(move |(key, end)| {
            let row = &self.sums[start..*end];
            start = *end;
            (*key, row)
        })
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the memory taken by the rows.
    pub fn bytes(&self) -> u64 {
        let n_bytes =
            self.keys.capacity() * size_of::<(K, usize)>() + self.sums.capacity() * size_of::<i64>();
        n_bytes as u64
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.sums.clear();
    }
}

impl<K: Copy> Default for Rows<K> {
    fn default() -> Rows<K> {
        Rows::new()
    }
}

/// Adds term by term; returns whether a sum has overflowed.
fn add(row: &mut [i64], terms: &[i64]) -> bool {
    let mut carried = 0;
    for (sum, term) in row.iter_mut().zip(terms) {
        let before = *sum;
        *sum = before.wrapping_add(*term);
        // The sign bit is set if both terms had the same sign and the result has the other one.
        carried |= (before ^ *sum) & (*term ^ *sum);
    }
    carried < 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::{Measures, Ranking};

    /// Arm, largest time, sums.
    type Handed = (ArmId, Option<u32>, Vec<i64>);

    /// Caches lists without a click and with their first one.
    fn contributions() -> Contributions {
        let ks = [NonZeroU32::MIN];
        let ranking = Ranking::new(&Measures::usual(&ks));
        let mut contributions = Contributions::new(&ranking);
        for n_items in [0, 10, 20] {
            assert!(contributions.remember_new_list(n_items, &ranking));
            let mut positions = 0..n_items;
            assert!(
                positions.all(|position| contributions.remember_first_click(n_items, position, &ranking))
            );
        }
        contributions
    }

    /// Appends the omitted columns as zeros.
    fn whole(sums: &[i64], width: usize) -> Vec<i64> {
        let rest = std::iter::repeat_n(&0, width - sums.len());
        sums.iter().chain(rest).copied().collect()
    }

    fn handed_over(tally: &mut SlotTally) -> (Vec<Handed>, bool) {
        let mut rows = Vec::new();
        let width = tally.width;
        let overflowed = tally.hand_over(&contributions(), &mut Vec::new(), |arm, last, sums| {
            rows.push((arm, last, whole(sums, width)))
        });
        (rows, overflowed)
    }

    fn add_to(tally: &mut SlotTally, arm: ArmId, contribution: &[i64]) {
        let row = tally.row(arm);
        tally.add(row, 0, contribution);
    }

    #[test]
    fn hands_over_only_changes_since_the_last_time() {
        let mut tally = SlotTally::new(3);
        add_to(&mut tally, 7, &[1, 2]);
        add_to(&mut tally, 7, &[10, 20, 30]);
        add_to(&mut tally, 4, &[5]);
        tally.note_time(0, 40);
        tally.note_time(0, 30);
        let expected = vec![(7, Some(40), vec![11, 22, 30]), (4, None, vec![5, 0, 0])];
        assert_eq!(handed_over(&mut tally), (expected, false));
        assert_eq!(handed_over(&mut tally), (Vec::new(), false));
        add_to(&mut tally, 4, &[1, 1, -1]);
        assert_eq!(handed_over(&mut tally), (vec![(4, None, vec![1, 1, -1])], false));
    }

    /// Step of a tally: a list of an arm with this many items, a click on such a list of ten, a hand-over.
    #[derive(Debug, Clone)]
    enum Step {
        List(ArmId, u32),
        Click(ArmId, usize),
        HandOver,
    }

    fn step() -> impl Strategy<Value = Step> {
        let n_items = prop_oneof![3 => Just(10), 1 => Just(20), 1 => Just(0)];
        prop_oneof![
            20 => (0..12_u32, n_items).prop_map(|(arm, n_items)| Step::List(arm, n_items)),
            10 => (0..12_u32, 0..10_usize).prop_map(|(arm, position)| Step::Click(arm, position)),
            1 => Just(Step::HandOver),
        ]
    }

    proptest! {
        /// Feeds two tallies with the same lists and clicks: one counts where it can, the other adds all terms.
        #[test]
        fn counting_equals_adding_each_term(steps in prop::collection::vec(step(), 0..300)) {
            let contributions = contributions();
            let [mut counted, mut added] =
                [0, 1].map(|_| SlotTally::new(contributions.of_first_click(10, 0).len()));
            for (n, step) in (0..).zip(steps) {
                match step {
                    Step::List(arm, n_items) => {
                        let row = counted.row(arm);
                        counted.count(row, n_items, &contributions);
                        counted.note_time(row, n);
                        let row = added.row(arm);
                        added.add(row, 0, contributions.remembered(n_items as usize));
                        added.note_time(row, n);
                    }
                    Step::Click(arm, position) => {
                        let row = counted.row(arm);
                        counted.count_click(row, 10, position, &contributions);
                        let row = added.row(arm);
                        added.add(row, 0, contributions.of_first_click(10, position));
                    }
                    Step::HandOver => {
                        prop_assert_eq!(handed_over(&mut counted), handed_over(&mut added));
                    }
                }
            }
            prop_assert_eq!(handed_over(&mut counted), handed_over(&mut added));
        }
    }

    #[test]
    fn arms_with_one_list_length_and_single_clicks_need_no_sums() {
        let contributions = contributions();
        let mut tally = SlotTally::new(contributions.of_first_click(10, 0).len());
        let click = contributions.of_first_click(10, 4);
        for n in [1, 1, 70_000] {
            let row = tally.row(3);
            (0..n).for_each(|_| tally.count_click(row, 10, 4, &contributions));
            assert!(tally.sums.is_empty());
            let times = click.iter().map(|term| term * n).collect();
            assert_eq!(handed_over(&mut tally), (vec![(3, None, times)], false));
        }
        let row = tally.row(3);
        tally.count(row, 10, &contributions);
        tally.count(row, 20, &contributions);
        assert!(!tally.sums.is_empty(), "a list of another length has to be added");
    }

    #[test]
    fn row_size_matches_the_sizing_chapter() {
        let sizing = include_str!("../../../docs/sizing.md");
        let more = SlotTally::max_row_bytes(32) - 8 * 32;
        assert!(sizing.contains(&format!("(8*w* + {more})")), "{more}");
    }

    #[test]
    fn rows_grow_with_their_content_up_to_the_maximum() {
        let contributions = contributions();
        let width = contributions.of_first_click(10, 0).len();
        let mut tally = SlotTally::new(width);
        let row = tally.row(7);
        let mut bytes = vec![tally.bytes()];
        tally.count(row, 20, &contributions);
        for (n_items, position) in [(20, 3), (20, 3), (20, 9), (10, 2), (10, 2)] {
            tally.count_click(row, n_items, position, &contributions);
            bytes.push(tally.bytes());
        }
        handed_over(&mut tally);
        bytes.push(tally.bytes());
        let [head, clicks, all] = [104, 104 + 80, 104 + 80 + 8 * width as u64];
        assert_eq!(bytes, [head, clicks, clicks, clicks, all, all, 0]);
        assert!(all <= SlotTally::max_row_bytes(width));
    }

    #[test]
    fn arms_with_distant_numbers_find_their_rows() {
        let mut tally = SlotTally::new(1);
        let arms = [70_000, 3, 15, 16, 0, 69_999];
        assert_eq!(arms.map(|arm| tally.row(arm)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(arms.map(|arm| tally.row(arm)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn overflow_is_reported_at_the_hand_over() {
        for (first, second) in [(i64::MAX, 1), (i64::MIN, -1)] {
            let mut tally = SlotTally::new(2);
            add_to(&mut tally, 0, &[0, first]);
            assert!(!handed_over(&mut tally).1);
            add_to(&mut tally, 0, &[0, first]);
            add_to(&mut tally, 0, &[0, second]);
            assert!(handed_over(&mut tally).1);
            assert!(!handed_over(&mut tally).1, "it was said");
        }
    }
}
