//! Contributions of lists to the sums, cached by outcome: most lists of a stream have one of few lengths and click patterns.

use foldhash::HashMap;

use crate::metrics::{ListOutcome, Ranking};

/// Bytes of rows that are remembered: of first clicks, and of all others.
const MAX_BYTES: usize = 1 << 20;
/// Longest list whose outcome is remembered: its mask is a number.
const MAX_ITEMS: u32 = 64;

/// Longest list whose first click is counted only by position.
pub const MAX_POSITIONS: usize = 32;

/// An outcome of a list as a key: length, mask, clicks off the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutcomeKey {
    n_items: u32,
    n_off_list: u32,
    mask: u64,
}

/// A list as it was before a click.
#[derive(Debug, Clone, Copy)]
pub enum ListBeforeClick {
    Short(OutcomeKey),
    /// A longer list. Its contribution is kept in the [`Contributions`].
    Long,
}

#[derive(Debug)]
pub struct Contributions {
    width: usize,
    n_of_new_list: usize,
    /// Contribution of a list without a click, by length.
    of_new_list: Vec<Option<Box<[i64]>>>,
    /// Contribution of the first click on a list of one length, by length and position.
    of_first_click: Vec<Option<Box<[i64]>>>,
    /// Rows with the changes caused by clicks, by outcome before and after.
    differences: HashMap<(OutcomeKey, OutcomeKey), u32>,
    values: Vec<i64>,
    /// A row that is not remembered, and room to work another out.
    other: Vec<i64>,
    scratch: Vec<i64>,
    no_clicks: Vec<u32>,
}

impl Contributions {
    pub fn new(ranking: &Ranking) -> Contributions {
        Contributions {
            width: ranking.width(),
            n_of_new_list: ranking.n_of_new_list(),
            of_new_list: Vec::new(),
            of_first_click: Vec::new(),
            differences: HashMap::default(),
            values: Vec::new(),
            other: vec![0; ranking.width()],
            scratch: vec![0; ranking.width()],
            no_clicks: Vec::new(),
        }
    }

    /// Caches the contribution of a list of this length without a click to the first columns. Returns whether it is short
    /// enough.
    pub fn remember_new_list(&mut self, n_items: usize, ranking: &Ranking) -> bool {
        if matches!(self.of_new_list.get(n_items), Some(Some(_))) {
            return true;
        }
        let is_short = n_items <= MAX_ITEMS as usize;
        if is_short {
            self.remember_length(n_items, ranking);
        }
        is_short
    }

    #[cold]
    fn remember_length(&mut self, n_items: usize, ranking: &Ranking) {
        let n_rows = self.of_new_list.len().max(n_items + 1);
        self.of_new_list.resize(n_rows, None);
        self.of_new_list[n_items] = Some(self.of_new_list(n_items, ranking).into());
    }

    /// Returns the cached contribution of a list of this length.
    pub fn remembered(&self, n_items: usize) -> &[i64] {
        let row = self.of_new_list.get(n_items).and_then(Option::as_deref);
        row.expect("it was remembered before it was counted")
    }

    /// Returns the contribution of a list of this length without a click to the first columns.
    pub fn of_new_list(&mut self, n_items: usize, ranking: &Ranking) -> &[i64] {
        let n_words = n_items.div_ceil(u32::BITS as usize);
        self.no_clicks.resize(n_words.max(self.no_clicks.len()), 0);
        let list = ListOutcome {
            n_items: n_items as u32,
            clicked: &self.no_clicks[..n_words],
            n_off_list: 0,
        };
        ranking.contribute(&list, &mut self.other);
        &self.other[..self.n_of_new_list]
    }

    /// Caches the contribution of the first click at this position on a list of this length. Returns whether there is room for
    /// it.
    pub fn remember_first_click(&mut self, n_items: usize, position: usize, ranking: &Ranking) -> bool {
        let place = place_of_first_click(n_items, position);
        let is_known = matches!(self.of_first_click.get(place), Some(Some(_)));
        is_known || self.remember_click(n_items, position, ranking)
    }

    #[cold]
    fn remember_click(&mut self, n_items: usize, position: usize, ranking: &Ranking) -> bool {
        let place = place_of_first_click(n_items, position);
        // If rows are wide, the longest lists are left out.
        if (place + 1) * self.width * size_of::<i64>() > MAX_BYTES {
            return false;
        }
        let n_rows = self.of_first_click.len().max(place + 1);
        self.of_first_click.resize(n_rows, None);
        let without = OutcomeKey {
            n_items: n_items as u32,
            n_off_list: 0,
            mask: 0,
        };
        let with = OutcomeKey {
            mask: 1 << position,
            ..without
        };
        self.work_out(without, with, ranking);
        self.of_first_click[place] = Some(self.other.as_slice().into());
        true
    }

    /// Returns the cached contribution of the first click, as wide as the ranking.
    pub fn of_first_click(&self, n_items: usize, position: usize) -> &[i64] {
        let place = place_of_first_click(n_items, position);
        let row = self.of_first_click.get(place).and_then(Option::as_deref);
        row.expect("it was remembered before it was counted")
    }

    /// Returns the difference that the clicks on this list make, as wide as the ranking. Its length must be cached.
    pub fn of_clicks(&mut self, list: &ListOutcome, ranking: &Ranking) -> &[i64] {
        let without = OutcomeKey {
            n_items: list.n_items,
            n_off_list: 0,
            mask: 0,
        };
        self.difference(ListBeforeClick::Short(without), list, ranking)
    }

    /// Notes the outcome before a click; pass the result to [`Self::difference`] after it.
    pub fn before(&mut self, list: &ListOutcome, ranking: &Ranking) -> ListBeforeClick {
        match short(list) {
            Some(short) => ListBeforeClick::Short(short),
            None => {
                ranking.contribute(list, &mut self.other);
                ListBeforeClick::Long
            }
        }
    }

    /// Returns the difference that a click makes, as wide as the ranking.
    pub fn difference(&mut self, before: ListBeforeClick, after: &ListOutcome, ranking: &Ranking) -> &[i64] {
        // A click does not change the length, so a long list was long before. Its old contribution is still in `other`.
        let (ListBeforeClick::Short(before), Some(after)) = (before, short(after)) else {
            ranking.contribute(after, &mut self.scratch);
            subtract(&self.scratch, &mut self.other);
            return &self.other;
        };
        let key = (before, after);
        let row = match self.differences.get(&key) {
            Some(row) => *row as usize,
            None => self.remember(key, ranking),
        };
        &self.values[row * self.width..][..self.width]
    }

    #[cold]
    fn remember(&mut self, key: (OutcomeKey, OutcomeKey), ranking: &Ranking) -> usize {
        if (self.values.len() + self.width) * size_of::<i64>() > MAX_BYTES {
            // Start over if full: frequent outcomes are soon cached again, and hits need no bookkeeping.
            self.differences.clear();
            self.values.clear();
        }
        let row = self.differences.len();
        self.differences.insert(key, row as u32);
        self.work_out(key.0, key.1, ranking);
        self.values.extend_from_slice(&self.other);
        row
    }

    /// Sets the other row to the difference between two outcomes.
    fn work_out(&mut self, before: OutcomeKey, after: OutcomeKey, ranking: &Ranking) {
        before.contribute(ranking, &mut self.other);
        after.contribute(ranking, &mut self.scratch);
        subtract(&self.scratch, &mut self.other);
    }
}

impl ListBeforeClick {
    /// Returns the length of a list without a click, if its first click can be counted by position.
    pub fn without_click(&self) -> Option<usize> {
        match self {
            ListBeforeClick::Short(short) if short.mask == 0 && short.n_off_list == 0 => {
                Some(short.n_items as usize).filter(|n_items| *n_items <= MAX_POSITIONS)
            }
            _ => None,
        }
    }
}

/// Returns the index of the row for a position in a list of up to [`MAX_POSITIONS`].
fn place_of_first_click(n_items: usize, position: usize) -> usize {
    n_items * MAX_POSITIONS + position
}

impl OutcomeKey {
    fn contribute(&self, ranking: &Ranking, tally: &mut [i64]) {
        let words = [self.mask as u32, (self.mask >> 32) as u32];
        let list = ListOutcome {
            n_items: self.n_items,
            clicked: &words[..self.n_items.div_ceil(u32::BITS) as usize],
            n_off_list: self.n_off_list,
        };
        ranking.contribute(&list, tally);
    }
}

fn short(list: &ListOutcome) -> Option<OutcomeKey> {
    let mask = list.clicked.iter().rev();
    (list.n_items <= MAX_ITEMS).then(|| OutcomeKey {
        n_items: list.n_items,
        n_off_list: list.n_off_list,
        mask: mask.fold(0, |mask, word| mask << 32 | u64::from(*word)),
    })
}

/// Replaces `row` by `whole − row`.
fn subtract(whole: &[i64], row: &mut [i64]) {
    row.iter_mut()
        .zip(whole)
        .for_each(|(term, whole)| *term = whole - *term);
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::metrics::Measures;

    fn ranking() -> Ranking {
        let ks = [1, 5].map(|k| NonZeroU32::new(k).expect("not 0"));
        Ranking::new(&Measures::usual(&ks))
    }

    fn contribution(list: &ListOutcome, ranking: &Ranking) -> Vec<i64> {
        let mut row = vec![0; ranking.width()];
        ranking.contribute(list, &mut row);
        row
    }

    #[test]
    fn cached_differences_equal_computed_ones() {
        let ranking = ranking();
        let mut contributions = Contributions::new(&ranking);
        for seed in 0..20_000_u32 {
            let words = [seed.wrapping_mul(2_654_435_761), seed >> 7, 1];
            let n_items = seed % 96;
            let n_words = n_items.div_ceil(32) as usize;
            let before = ListOutcome {
                n_items,
                clicked: &words[..n_words],
                n_off_list: seed % 3,
            };
            let more = [words[0] | seed >> 3, words[1], words[2] | 8];
            let after = ListOutcome {
                clicked: &more[..n_words],
                n_off_list: seed % 5,
                ..before
            };
            let rows = [before, after].map(|list| contribution(&list, &ranking));
            let expected: Vec<i64> = rows[1]
                .iter()
                .zip(&rows[0])
                .map(|(after, before)| after - before)
                .collect();
            let noted = contributions.before(&before, &ranking);
            assert_eq!(
                contributions.difference(noted, &after, &ranking),
                expected,
                "{before:?} {after:?}"
            );
            assert!(contributions.values.len() * size_of::<i64>() <= MAX_BYTES);
        }
    }

    #[test]
    fn counted_first_clicks_add_the_computed_difference() {
        let ranking = ranking();
        let mut contributions = Contributions::new(&ranking);
        for n_items in [32_u32, 10, 1, 31] {
            for position in (0..n_items as usize).rev() {
                let list = |clicked| ListOutcome {
                    n_items,
                    clicked,
                    n_off_list: 0,
                };
                let before = contributions.before(&list(&[0]), &ranking);
                assert_eq!(before.without_click(), Some(n_items as usize));
                let mask = [1 << position];
                let difference = contributions.difference(before, &list(&mask), &ranking).to_vec();
                assert!(contributions.remember_first_click(n_items as usize, position, &ranking));
                assert_eq!(
                    contributions.of_first_click(n_items as usize, position),
                    difference
                );
            }
        }
        for (n_items, clicked, n_off_list) in
            [(10, [1, 0], 0), (10, [0, 0], 1), (33, [0, 0], 0), (70, [0, 0], 0)]
        {
            let list = ListOutcome {
                n_items,
                clicked: &clicked[..n_items.div_ceil(32).min(2) as usize],
                n_off_list,
            };
            let before = contributions.before(&list, &ranking);
            assert_eq!(before.without_click(), None, "{n_items} {clicked:?} {n_off_list}");
        }
    }

    #[test]
    fn rows_of_first_clicks_stay_within_their_bound() {
        let ks: Vec<NonZeroU32> = (1..=30).filter_map(NonZeroU32::new).collect();
        let ranking = Ranking::new(&Measures::usual(&ks));
        let mut contributions = Contributions::new(&ranking);
        let mut is_remembered =
            |n_items: usize, position| contributions.remember_first_click(n_items, position, &ranking);
        assert!(is_remembered(1, 0) && !is_remembered(32, 31));
        for n_items in 1..=32 {
            for position in 0..n_items {
                is_remembered(n_items, position);
            }
        }
        let rows = contributions.of_first_click.iter().flatten();
        let bytes: usize = rows.map(|row| size_of_val(&row[..])).sum();
        assert!((MAX_BYTES / 4..=MAX_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn lists_without_clicks_add_only_to_the_first_columns() {
        let ranking = ranking();
        let mut contributions = Contributions::new(&ranking);
        for n_items in [0_u32, 1, 10, 64, 65, 10] {
            let list = ListOutcome {
                n_items,
                clicked: &vec![0; n_items.div_ceil(32) as usize],
                n_off_list: 0,
            };
            let whole = contribution(&list, &ranking);
            let (first, rest) = whole.split_at(ranking.n_of_new_list());
            assert_eq!(contributions.of_new_list(n_items as usize, &ranking), first);
            if contributions.remember_new_list(n_items as usize, &ranking) {
                assert_eq!(contributions.remembered(n_items as usize), first);
            }
            assert!(rest.iter().all(|term| *term == 0), "{n_items} {rest:?}");
        }
    }
}
