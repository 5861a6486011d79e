//! Sums by arm: those of one slot, with what is new in them since the last hand-over, and rows on their way to the board.

use std::num::NonZeroU32;

use super::arms::ArmId;
use super::contributions::{Contributions, MAX_POSITIONS};
use super::first_clicks::{self, FirstClicks};
use super::prefetch::prefetch;

/// Arms in a page of [`RowsByArm`].
const PAGE: usize = 16;
const NO_ROW: u32 = u32::MAX;
const NO_LENGTH: u32 = u32::MAX;

/// The sums of one slot.
///
/// ```text
/// head of an arm │ lists of one length: fresh, handed over │ first clicks ─▶ │ sums ─▶ │ fresh │ handed over │
/// ```
/// New lists of one length all add the same: those of the length that an arm's first one has are only counted, and so are
/// their first clicks, by position. An arm has sums once anything else is added: a list of another length, what the catalogue
/// says, a click that is not its list's first or on one of more than [`MAX_POSITIONS`] items.
#[derive(Debug)]
pub struct SlotTally {
    width: usize,
    rows: RowsByArm,
    heads: Vec<Head>,
    /// Each a width of what is fresh, and one of what was handed over.
    sums: Vec<i64>,
    first_clicks: FirstClicks,
    /// Rows with anything fresh.
    fresh: Vec<u32>,
    bytes: u64,
    overflowed: bool,
}

/// Half a line of the cache. No number of lists runs over: each stands with the arm in an open list, and no chunks hold 2^32
/// words.
#[derive(Debug)]
#[repr(align(32))]
struct Head {
    arm: ArmId,
    is_fresh: bool,
    /// One more than the largest time of a fresh list in the slot, or 0.
    after_last_list_ms: u32,
    /// Which of the sums are its own, if any.
    sums: Option<NonZeroU32>,
    /// The length of lists that are only counted; [`NO_LENGTH`] before there is one.
    n_items: u32,
    /// How many of them are not in the sums: fresh ones, and those handed over.
    n_fresh: u32,
    n_before: u32,
    /// First clicks on them that are not in the sums, if there has been any.
    first_clicks: Option<first_clicks::Start>,
}

impl Head {
    /// Notes the time of a list in the slot.
    fn saw(&mut self, list_ms: u32) {
        self.after_last_list_ms = self.after_last_list_ms.max(list_ms + 1);
    }

    fn take_last_list_ms(&mut self) -> Option<u32> {
        std::mem::take(&mut self.after_last_list_ms).checked_sub(1)
    }
}

impl SlotTally {
    pub fn new(width: usize) -> SlotTally {
        SlotTally {
            width,
            rows: RowsByArm::new(),
            heads: Vec::new(),
            sums: Vec::new(),
            first_clicks: FirstClicks::default(),
            fresh: Vec::new(),
            bytes: 0,
            overflowed: false,
        }
    }

    /// What an arm's row takes in bytes, at the most.
    pub fn max_row_bytes(width: usize) -> u64 {
        HEAD_BYTES + sums_bytes(width) + FirstClicks::bytes(MAX_POSITIONS)
    }

    /// What all rows take, in bytes.
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

    /// Lets the row of an arm be fetched, if it has one.
    pub fn prefetch(&self, arm: ArmId) {
        let row = self.rows.get(arm);
        self.heads
            .get(row as usize)
            .iter()
            .for_each(|head| prefetch(*head));
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
            is_fresh: false,
            after_last_list_ms: 0,
            sums: None,
            n_items: NO_LENGTH,
            n_fresh: 0,
            n_before: 0,
            first_clicks: None,
        });
        self.bytes += HEAD_BYTES;
        row
    }

    fn fresh_head(&mut self, row: usize) -> &mut Head {
        let head = &mut self.heads[row];
        if !head.is_fresh {
            head.is_fresh = true;
            self.fresh.push(row as u32);
        }
        head
    }

    /// Where the sums of a row begin, which it has from now on.
    fn sums_of(&mut self, row: usize) -> usize {
        let (sums, n, bytes) = (&mut self.sums, 2 * self.width, &mut self.bytes);
        let own = *self.heads[row].sums.get_or_insert_with(|| {
            sums.resize(sums.len() + n, 0);
            *bytes += sums_bytes(n / 2);
            // Counted from 1.
            NonZeroU32::new((sums.len() / n) as u32).expect("they have just grown")
        });
        self.start_of(own)
    }

    fn start_of(&self, own: NonZeroU32) -> usize {
        (own.get() as usize - 1) * 2 * self.width
    }

    /// Counts a new list, of a length whose contribution is remembered, at a time in the slot.
    pub fn count(&mut self, row: usize, n_items: u32, list_ms: u32, contributions: &Contributions) {
        let head = self.fresh_head(row);
        if head.n_items == NO_LENGTH {
            head.n_items = n_items;
        }
        if head.n_items == n_items {
            head.saw(list_ms);
            head.n_fresh += 1;
        } else {
            self.add(row, 0, contributions.remembered(n_items as usize), Some(list_ms));
        }
    }

    /// Counts a click, the first one of a list of this length, whose contribution is remembered.
    pub fn count_click(
        &mut self,
        row: usize,
        n_items: usize,
        position: usize,
        contributions: &Contributions,
    ) {
        self.fresh_head(row);
        let head = &mut self.heads[row];
        if head.n_items as usize == n_items {
            if head.first_clicks.is_none() {
                self.bytes += FirstClicks::bytes(n_items);
            }
            self.first_clicks.count(&mut head.first_clicks, n_items, position);
        } else {
            self.add(row, 0, contributions.of_first_click(n_items, position), None);
        }
    }

    /// Adds what is counted of a row to its sums.
    fn add_counted(&mut self, row: usize, contributions: &Contributions) {
        let head = &mut self.heads[row];
        let n_fresh = std::mem::take(&mut head.n_fresh);
        let n_before = std::mem::take(&mut head.n_before);
        let (n_items, clicks) = (head.n_items as usize, head.first_clicks);
        if (n_fresh, n_before) == (0, 0) && clicks.is_none() {
            return;
        }
        let start = self.sums_of(row);
        let (fresh, before) = self.sums[start..start + 2 * self.width].split_at_mut(self.width);
        let first_clicks = &mut self.first_clicks;
        for (sums, n, clicks) in [
            (fresh, n_fresh, first_clicks.fresh(clicks, n_items)),
            (before, n_before, first_clicks.before(clicks, n_items)),
        ] {
            self.overflowed |= add_times(sums, n, contributions.remembered(n_items));
            self.overflowed |= add_first_clicks(sums, n_items, clicks, contributions);
        }
        first_clicks.clear(clicks, n_items);
    }

    /// Adds to the columns of a row from `first` on; notes the time in the slot of a new list.
    pub fn add(&mut self, row: usize, first: usize, terms: &[i64], list_ms: Option<u32>) {
        let head = self.fresh_head(row);
        list_ms.into_iter().for_each(|list_ms| head.saw(list_ms));
        let start = self.sums_of(row);
        self.overflowed |= add(&mut self.sums[start..start + self.width][first..], terms);
    }

    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Hands each fresh row over: arm, largest time of a fresh list, sums up to the last column that is needed. `room`
    /// is for sums that nobody keeps.
    pub fn hand_over(
        &mut self,
        contributions: &Contributions,
        room: &mut Vec<i64>,
        mut to: impl FnMut(ArmId, Option<u32>, &[i64]),
    ) {
        let fresh = std::mem::take(&mut self.fresh);
        for row in fresh.iter().map(|row| *row as usize) {
            let head = &mut self.heads[row];
            head.is_fresh = false;
            let (arm, last_list_ms) = (head.arm, head.take_last_list_ms());
            if head.sums.is_none() {
                let (clicks, n_items) = (head.first_clicks, head.n_items as usize);
                let n_fresh = std::mem::take(&mut head.n_fresh);
                head.n_before += n_fresh;
                let fresh_clicks = self.first_clicks.fresh(clicks, n_items);
                self.overflowed |=
                    set_counted(room, self.width, n_fresh, n_items, fresh_clicks, contributions);
                self.first_clicks.hand_over(clicks, n_items);
                to(arm, last_list_ms, room);
                continue;
            }
            self.add_counted(row, contributions);
            let start = self.sums_of(row);
            let (fresh, before) = self.sums[start..start + 2 * self.width].split_at_mut(self.width);
            to(arm, last_list_ms, fresh);
            self.overflowed |= add(before, fresh);
            fresh.fill(0);
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    /// Tells the sums of each arm, up to the last column that is needed, once all is handed over.
    pub fn each_row(
        &mut self,
        contributions: &Contributions,
        room: &mut Vec<i64>,
        mut to: impl FnMut(ArmId, &[i64]),
    ) {
        debug_assert!(!self.has_fresh());
        for head in &self.heads {
            if let Some(own) = head.sums {
                let start = self.start_of(own);
                // All that is counted was added to them when it was handed over.
                to(head.arm, &self.sums[start + self.width..start + 2 * self.width]);
                continue;
            }
            let n_items = head.n_items as usize;
            let clicks = self.first_clicks.before(head.first_clicks, n_items);
            self.overflowed |= set_counted(room, self.width, head.n_before, n_items, clicks, contributions);
            to(head.arm, room);
        }
    }

    /// Whether a sum has left 64 bits: the numbers are no longer exact.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }
}

/// A head, and what leads to it; at the most a page for each.
const HEAD_BYTES: u64 = (size_of::<Head>() + (PAGE + 2) * size_of::<u32>()) as u64;

/// The sums of a row, fresh ones and those that were handed over.
fn sums_bytes(width: usize) -> u64 {
    (2 * width * size_of::<i64>()) as u64
}

/// Sets `sums` to what `n` lists of a length add, and the first clicks on them, up to the last column that is needed, of
/// `width`; says whether one has run over.
fn set_counted(
    sums: &mut Vec<i64>,
    width: usize,
    n: u32,
    n_items: usize,
    clicks: &[u32],
    contributions: &Contributions,
) -> bool {
    let terms = contributions.remembered(n_items);
    let is_clicked = clicks.iter().any(|n| *n > 0);
    sums.clear();
    sums.resize(if is_clicked { width } else { terms.len() }, 0);
    add_times(sums, n, terms) | add_first_clicks(sums, n_items, clicks, contributions)
}

/// Adds what first clicks on lists of this length add, by position; says whether a sum has run over.
fn add_first_clicks(sums: &mut [i64], n_items: usize, clicks: &[u32], contributions: &Contributions) -> bool {
    let mut overflowed = false;
    for (position, n) in clicks.iter().enumerate().filter(|(_, n)| **n > 0) {
        let terms = contributions.of_first_click(n_items, position);
        overflowed |= add_times(sums, *n, terms);
    }
    overflowed
}

/// Adds `n` times the terms; says whether a sum has run over.
fn add_times(sums: &mut [i64], n: u32, terms: &[i64]) -> bool {
    match n {
        0 => return false,
        1 => return add(sums, terms),
        _ => {}
    }
    let mut overflowed = false;
    for (sum, term) in sums.iter_mut().zip(terms) {
        let more = term.checked_mul(n.into()).and_then(|more| sum.checked_add(more));
        overflowed |= more.is_none();
        *sum = more.unwrap_or(*sum);
    }
    overflowed
}

/// Rows by arm. Arms are dense from 0, but a slot may have few of them: pages of 16, the first one of which is empty.
#[derive(Debug)]
struct RowsByArm {
    /// Where in `rows` the page of each 16 arms begins.
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
        if self.pages[page] == 0 {
            self.pages[page] = self.rows.len() as u32;
            self.rows.resize(self.rows.len() + PAGE, NO_ROW);
        }
        self.rows[self.pages[page] as usize + arm as usize % PAGE] = row;
    }
}

/// Rows of integers, each with its key: in one arena, which is filled anew again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<K> {
    /// With the end of each row.
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

/// Adds term by term; says whether a sum has run over.
fn add(row: &mut [i64], terms: &[i64]) -> bool {
    let mut carried = 0;
    for (sum, term) in row.iter_mut().zip(terms) {
        let before = *sum;
        *sum = before.wrapping_add(*term);
        // The sign bit is set where both had one sign and the result has the other.
        carried |= (before ^ *sum) & (*term ^ *sum);
    }
    carried < 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ranking::{Measures, Ranking};
    use super::*;

    /// Arm, largest time, sums.
    type Handed = (ArmId, Option<u32>, Vec<i64>);

    /// Of lists without a click and with their first one.
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

    /// With the columns that are left out.
    fn whole(sums: &[i64], width: usize) -> Vec<i64> {
        let rest = std::iter::repeat_n(&0, width - sums.len());
        sums.iter().chain(rest).copied().collect()
    }

    fn handed_over(tally: &mut SlotTally) -> Vec<Handed> {
        let mut rows = Vec::new();
        let width = tally.width;
        tally.hand_over(&contributions(), &mut Vec::new(), |arm, last, sums| {
            rows.push((arm, last, whole(sums, width)))
        });
        rows
    }

    fn settled(tally: &mut SlotTally) -> Vec<(ArmId, Vec<i64>)> {
        let mut rows = Vec::new();
        let width = tally.width;
        tally.each_row(&contributions(), &mut Vec::new(), |arm, sums| {
            rows.push((arm, whole(sums, width)))
        });
        rows
    }

    fn add_to(tally: &mut SlotTally, arm: ArmId, contribution: &[i64]) {
        let row = tally.row(arm);
        tally.add(row, 0, contribution, None);
    }

    #[test]
    fn hands_over_what_is_fresh_and_keeps_the_whole() {
        let mut tally = SlotTally::new(3);
        add_to(&mut tally, 7, &[1, 2]);
        add_to(&mut tally, 7, &[10, 20, 30]);
        add_to(&mut tally, 4, &[5]);
        tally.add(0, 0, &[], Some(40));
        tally.add(0, 0, &[], Some(30));
        let expected = [(7, Some(40), vec![11, 22, 30]), (4, None, vec![5, 0, 0])];
        assert_eq!(handed_over(&mut tally), expected);
        assert!(!tally.has_fresh() && handed_over(&mut tally).is_empty());
        add_to(&mut tally, 4, &[1, 1, -1]);
        assert_eq!(handed_over(&mut tally), [(4, None, vec![1, 1, -1])]);
        assert_eq!(settled(&mut tally), [(7, vec![11, 22, 30]), (4, vec![6, 1, -1])]);
        assert!(!tally.overflowed());
    }

    /// What happens to a tally: a list of an arm with so many items, a click on such a list of ten, a hand-over.
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
        /// Two tallies of the same lists and clicks: one counts what can be counted, the other adds all.
        #[test]
        fn what_is_counted_adds_what_it_would_one_by_one(steps in prop::collection::vec(step(), 0..300)) {
            let contributions = contributions();
            let [mut counted, mut added] =
                [0, 1].map(|_| SlotTally::new(contributions.of_first_click(10, 0).len()));
            for (n, step) in (0..).zip(steps) {
                match step {
                    Step::List(arm, n_items) => {
                        let row = counted.row(arm);
                        counted.count(row, n_items, n, &contributions);
                        let row = added.row(arm);
                        added.add(row, 0, contributions.remembered(n_items as usize), Some(n));
                    }
                    Step::Click(arm, position) => {
                        let row = counted.row(arm);
                        counted.count_click(row, 10, position, &contributions);
                        let row = added.row(arm);
                        added.add(row, 0, contributions.of_first_click(10, position), None);
                    }
                    Step::HandOver => {
                        prop_assert_eq!(handed_over(&mut counted), handed_over(&mut added));
                    }
                }
            }
            prop_assert_eq!(handed_over(&mut counted), handed_over(&mut added));
            prop_assert_eq!(settled(&mut counted), settled(&mut added));
        }
    }

    #[test]
    fn an_arm_whose_lists_are_of_one_length_and_clicked_once_has_no_sums() {
        let contributions = contributions();
        let mut tally = SlotTally::new(contributions.of_first_click(10, 0).len());
        let row = tally.row(3);
        tally.count(row, 10, 5, &contributions);
        handed_over(&mut tally);
        let click = contributions.of_first_click(10, 4);
        for n in [1, 1, 70_000] {
            (0..n).for_each(|_| tally.count_click(row, 10, 4, &contributions));
            let times = click.iter().map(|term| term * n).collect();
            assert_eq!(handed_over(&mut tally), [(3, None, times)]);
        }
        assert!(tally.sums.is_empty() && !tally.has_fresh());
        tally.count(row, 20, 6, &contributions);
        assert!(!tally.sums.is_empty(), "a list of another length has to be added");
    }

    #[test]
    fn a_row_takes_what_the_chapter_on_sizing_says() {
        let sizing = include_str!("../../docs/sizing.md");
        let more = SlotTally::max_row_bytes(32) - 16 * 32;
        assert!(sizing.contains(&format!("(16*w* + {more})")), "{more}");
    }

    #[test]
    fn rows_take_more_as_more_is_kept_of_them_and_no_more_than_the_most() {
        let contributions = contributions();
        let width = contributions.of_first_click(10, 0).len();
        let mut tally = SlotTally::new(width);
        let row = tally.row(7);
        let mut bytes = vec![tally.bytes()];
        tally.count(row, 20, 5, &contributions);
        for (n_items, position) in [(20, 3), (20, 3), (20, 9), (10, 2), (10, 2)] {
            tally.count_click(row, n_items, position, &contributions);
            bytes.push(tally.bytes());
        }
        handed_over(&mut tally);
        bytes.push(tally.bytes());
        let [head, clicks, all] = [104, 104 + 160, 104 + 160 + 16 * width as u64];
        assert_eq!(bytes, [head, clicks, clicks, clicks, all, all, all]);
        assert!(all <= SlotTally::max_row_bytes(width));
    }

    #[test]
    fn an_arm_has_its_row_however_far_apart_arms_are() {
        let mut tally = SlotTally::new(1);
        let arms = [70_000, 3, 15, 16, 0, 69_999];
        assert_eq!(arms.map(|arm| tally.row(arm)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(arms.map(|arm| tally.row(arm)), [0, 1, 2, 3, 4, 5]);
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
