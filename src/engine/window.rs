//! Sliding windows: sixty cells of event time with a running total, exact under addition and removal.
//!
//! ```text
//!        ┌ oldest cell inside                        ┌ cell of the window's end, as far as filled
//!  … │ n−59 │ n−58 │              …              │  n  │
//!        └ number mod 60 ─▶ cell of the store, only where it was touched
//! ```
//! Cells of many windows live in one [`Cells`], which are used again; so hardly anything is allocated once windows slide.
//! Most tallies are zero in most columns: these are skipped a line at a time, and memory that is not touched is what
//! makes an addition cheap.

use super::cells::{Cell, Cells, Line, is_filled, n_lines};
use super::ranking::LINE;

/// Cells of a window.
pub const N_CELLS: i64 = 60;

/// A cell's 64-bit sum has run over: the numbers are no longer exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// Rows of sums that cannot run over: 64 bits each, and what was carried out of them, which is rare.
#[derive(Debug, Clone)]
pub struct WideSums {
    /// In lines.
    width: usize,
    low: Box<[Line]>,
    /// Multiples of 2^64; absent as long as they are all 0.
    carried: Option<Box<[Line]>>,
}

impl WideSums {
    /// Rows of `width` columns, which are whole lines.
    pub fn new(n_rows: usize, width: usize) -> WideSums {
        WideSums {
            width: n_lines(width),
            low: vec![[0; LINE]; n_rows * n_lines(width)].into(),
            carried: None,
        }
    }

    /// Adds to the columns of a row.
    #[inline]
    pub fn add(&mut self, row: usize, tally: &[i64]) {
        for (at, terms) in filled(lines(tally)) {
            self.add_line(row * self.width + at, terms);
        }
    }

    #[inline(always)]
    fn add_line(&mut self, at: usize, terms: &Line) {
        let sums = &mut self.low[at];
        let mut over = 0;
        for (sum, term) in sums.iter_mut().zip(terms) {
            let before = *sum;
            *sum = before.wrapping_add(*term);
            over |= (before ^ *sum) & (*term ^ *sum);
        }
        if over < 0 {
            self.carry(at, terms, 1);
        }
    }

    fn subtract(&mut self, row: usize, tally: &[Line]) {
        for (at, terms) in filled(tally) {
            let at = row * self.width + at;
            let mut over = 0;
            for (sum, term) in self.low[at].iter_mut().zip(terms) {
                let before = *sum;
                *sum = before.wrapping_sub(*term);
                over |= (before ^ *term) & (before ^ *sum);
            }
            if over < 0 {
                self.carry(at, terms, -1);
            }
        }
    }

    /// Notes what left the 64 bits when `sign` times these terms were added.
    #[cold]
    fn carry(&mut self, at: usize, terms: &Line, sign: i64) {
        let none = || vec![[0; LINE]; self.low.len()].into();
        let carried = &mut self.carried.get_or_insert_with(none)[at];
        for ((sum, carried), term) in self.low[at].iter().zip(carried).zip(terms) {
            let added = i128::from(*term) * i128::from(sign);
            // What is left of the exact sum, which the low bits are of.
            let before = (i128::from(*sum) - added) as i64;
            *carried += ((i128::from(before) + added - i128::from(*sum)) >> 64) as i64;
        }
    }

    /// Adds all rows to 64-bit sums, unless one would run over: what is in `sums` is then of no use.
    #[must_use]
    pub fn add_to_low(&self, sums: &mut [i64]) -> bool {
        let mut over = 0;
        for (sum, term) in sums.iter_mut().zip(self.low.as_flattened()) {
            let before = *sum;
            *sum = before.wrapping_add(*term);
            over |= (before ^ *sum) & (*term ^ *sum);
        }
        over >= 0 && self.carried.is_none()
    }

    /// Adds a row to `sums`, which are as wide.
    pub fn add_to(&self, row: usize, sums: &mut [i128]) {
        let range = row * self.width..(row + 1) * self.width;
        for (sum, low) in sums.iter_mut().zip(self.low[range.clone()].as_flattened()) {
            *sum += i128::from(*low);
        }
        if let Some(carried) = &self.carried {
            for (sum, carried) in sums.iter_mut().zip(carried[range].as_flattened()) {
                *sum += i128::from(*carried) << 64;
            }
        }
    }
}

fn lines(tally: &[i64]) -> &[Line] {
    tally.as_chunks().0
}

/// The lines of a tally that are not all zero, with their places.
fn filled(tally: &[Line]) -> impl Iterator<Item = (usize, &Line)> {
    tally.iter().enumerate().filter(|(_, line)| is_filled(line))
}

#[derive(Debug, Clone)]
pub struct Window {
    /// Number of the cell that holds the window's end: epoch ms ÷ cell length.
    newest: i64,
    /// Those that have a cell of the store, a bit each by number mod 60.
    touched: u64,
    /// By number mod 60: that cell.
    cells: [Cell; N_CELLS as usize],
}

/// Where a window keeps its numbers: cells among those of other windows, and a row of sums.
pub struct Room<'a> {
    pub cells: &'a mut Cells,
    pub sums: &'a mut WideSums,
    pub row: usize,
}

impl Window {
    pub fn new() -> Window {
        Window {
            newest: i64::MIN,
            touched: 0,
            cells: [Cell::default(); N_CELLS as usize],
        }
    }

    /// Adds a tally to the cell of this number, if that is still inside.
    ///
    /// # Errors
    /// [`Overflow`] where a sum of the cell left 64 bits; that sum stays at the border.
    pub fn add(&mut self, number: i64, tally: &[i64], room: &mut Room) -> Result<(), Overflow> {
        self.advance(number, room);
        if self.is_past(number) {
            return Ok(());
        }
        let place = place(number);
        let tally = lines(tally);
        self.cells[place] = if self.touched & 1 << place == 0 {
            room.cells.take(tally)
        } else {
            room.cells.with_room(self.cells[place], tally)
        };
        self.touched |= 1 << place;
        let cell = room.cells.lines_mut(self.cells[place]);
        let sums = room.row * room.sums.width;
        let mut exact = Ok(());
        for (at, terms) in filled(tally) {
            let line = &mut cell[at];
            if add_line(line, terms) {
                room.sums.add_line(sums + at, terms);
            } else {
                exact = Err(Overflow);
                // What is in the cell is in the sum, so that it can be taken away again.
                let before = *line;
                let columns = line.iter_mut().zip(terms);
                columns.for_each(|(cell, term)| *cell = cell.saturating_add(*term));
                let added = std::array::from_fn(|column| line[column] - before[column]);
                room.sums.add_line(sums + at, &added);
            }
        }
        exact
    }

    /// Moves the end of the window on to the cell of this number; it never goes back.
    pub fn advance(&mut self, number: i64, room: &mut Room) {
        if number <= self.newest {
            return;
        }
        let leaving = self.leaving(number);
        self.newest = number;
        self.touched &= !leaving;
        for place in bits(leaving) {
            let cell = self.cells[place];
            room.sums.subtract(room.row, room.cells.lines(cell));
            room.cells.give_back(cell);
        }
    }

    /// Touched cells that leave when the window's end moves on to the cell of this number.
    fn leaving(&self, number: i64) -> u64 {
        self.touched & places_from(self.newest.wrapping_add(1), number.abs_diff(self.newest))
    }

    /// Whether the cell of this number has left.
    pub fn is_past(&self, number: i64) -> bool {
        number <= self.newest.saturating_sub(N_CELLS)
    }

    /// Touched cells inside, by number, ascending: their first columns, the others are zero.
    pub fn cells<'a>(&self, cells: &'a Cells) -> impl Iterator<Item = (i64, &'a [i64])> {
        let numbers = self.newest.saturating_sub(N_CELLS - 1)..=self.newest;
        let touched = numbers.filter(|number| self.touched & 1 << place(*number) != 0);
        touched.map(|number| (number, cells.lines(self.cells[place(number)]).as_flattened()))
    }
}

impl Default for Window {
    fn default() -> Window {
        Window::new()
    }
}

/// Where the cell of this number stands in the ring.
fn place(number: i64) -> usize {
    number.rem_euclid(N_CELLS) as usize
}

/// The places of so many cells, from the one of this number on.
fn places_from(number: i64, n: u64) -> u64 {
    let all = (1 << N_CELLS) - 1;
    let first = ((1_u128 << n.min(N_CELLS as u64)) - 1) << place(number);
    (first as u64 | (first >> N_CELLS) as u64) & all
}

/// The bits that are set, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS as usize).then_some(bit)
    })
}

/// Adds term by term, or nothing at all where a sum would leave 64 bits; says which.
pub fn add_all(sums: &mut [i64], terms: &[i64]) -> bool {
    let pairs = || sums.iter().zip(terms);
    let over = pairs().fold(0, |over, (sum, term)| {
        let after = sum.wrapping_add(*term);
        over | (sum ^ after) & (term ^ after)
    });
    if over >= 0 {
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    over >= 0
}

/// The same for a line.
fn add_line(sums: &mut Line, terms: &Line) -> bool {
    let mut after = *sums;
    let mut over = 0;
    for ((after, sum), term) in after.iter_mut().zip(&*sums).zip(terms) {
        *after = sum.wrapping_add(*term);
        over |= (sum ^ *after) & (term ^ *after);
    }
    if over >= 0 {
        *sums = after;
    }
    over >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CELL_MS: i64 = 50;

    /// A window with a store and sums of its own.
    struct Alone {
        width: usize,
        window: Window,
        cells: Cells,
        sums: WideSums,
    }

    impl Alone {
        fn new(width: usize) -> Alone {
            Alone {
                width,
                window: Window::new(),
                cells: Cells::new(width.next_multiple_of(LINE), LINE),
                sums: WideSums::new(2, width.next_multiple_of(LINE)),
            }
        }

        fn add(&mut self, ts_ms: i64, tally: &[i64]) -> Result<(), Overflow> {
            let Alone {
                window, cells, sums, ..
            } = self;
            let mut room = Room { cells, sums, row: 1 };
            window.add(ts_ms.div_euclid(CELL_MS), &padded(tally), &mut room)
        }

        fn advance(&mut self, end_ms: i64) {
            let Alone {
                window, cells, sums, ..
            } = self;
            let mut room = Room { cells, sums, row: 1 };
            window.advance(end_ms.div_euclid(CELL_MS), &mut room);
        }

        fn sums(&self) -> Vec<i128> {
            let mut sums = vec![0; self.width];
            self.sums.add_to(1, &mut sums);
            sums
        }
    }

    /// In whole lines.
    fn padded(tally: &[i64]) -> Vec<i64> {
        let mut tally = tally.to_vec();
        tally.resize(tally.len().next_multiple_of(LINE), 0);
        tally
    }

    proptest! {
        /// A recount of every event that lies in the last sixty cells; some columns are mostly zero, and one is large.
        #[test]
        fn a_window_equals_a_recount_of_its_cells(
            events in prop::collection::vec((0_i64..20_000, -1000_i64..1000, 0_usize..12, 0_i64..500), 1..200),
        ) {
            let mut alone = Alone::new(12);
            let mut end_ms = 0;
            let mut seen: Vec<(i64, Vec<i64>)> = Vec::new();
            for (ts_ms, term, column, step_ms) in events {
                end_ms = end_ms.max(ts_ms) + step_ms;
                let mut tally = vec![0; 12];
                tally[column] = term;
                tally[3] = term * (i64::MAX / 300_000);
                prop_assert_eq!(alone.add(ts_ms, &tally), Ok(()));
                seen.push((ts_ms, tally));
                alone.advance(end_ms);
                let inside = |ts: &i64| ts / CELL_MS > end_ms / CELL_MS - N_CELLS;
                let recount: Vec<i128> = (0..12)
                    .map(|column| {
                        let inside = seen.iter().filter(|(ts, _)| inside(ts));
                        inside.map(|(_, tally)| i128::from(tally[column])).sum()
                    })
                    .collect();
                prop_assert_eq!(alone.sums(), recount);
                let cells: i128 = alone.window.cells(&alone.cells).map(|(_, cell)| i128::from(cell[3])).sum();
                prop_assert_eq!(cells, alone.sums()[3]);
            }
        }

        /// Sums of any terms, beyond 64 bits too, forth and back.
        #[test]
        fn wide_sums_never_run_over(terms in prop::collection::vec((any::<i64>(), any::<bool>()), 1..50)) {
            let mut sums = WideSums::new(3, LINE);
            let mut expected = 0;
            for (term, add) in terms {
                if add {
                    sums.add(1, &padded(&[0, term]));
                    expected += i128::from(term);
                } else {
                    sums.subtract(1, lines(&padded(&[0, term])));
                    expected -= i128::from(term);
                }
                let mut row = [1, 1];
                sums.add_to(1, &mut row);
                prop_assert_eq!(row, [1, 1 + expected]);
                let mut low = [0; 3 * LINE];
                low[LINE + 1] = 1;
                if sums.add_to_low(&mut low) {
                    let mut all = [0; 3 * LINE];
                    all[LINE + 1] = 1 + expected;
                    prop_assert_eq!(low.map(i128::from), all);
                } else {
                    prop_assert!(i64::try_from(expected + 1).is_err() || sums.carried.is_some());
                }
            }
        }
    }

    #[test]
    fn an_empty_week_costs_nothing_but_what_was_touched() {
        let mut alone = Alone::new(1);
        assert_eq!(alone.add(0, &[7]), Ok(()));
        alone.advance(i64::MAX / 2);
        assert_eq!(alone.sums(), [0]);
        assert_eq!(alone.window.cells(&alone.cells).count(), 0);
    }

    #[test]
    fn cells_are_used_again_narrow_widened_and_wide_ones() {
        let mut alone = Alone::new(9);
        let [narrow, wide] = [[1, 0], [1, 1]].map(|[first, last]| [first, 0, 0, 0, 0, 0, 0, 0, last]);
        for second in 0..1000 {
            for tally in [&[narrow][..], &[narrow, wide], &[wide]][second as usize % 3] {
                assert_eq!(alone.add(second * 1000, tally), Ok(()));
            }
        }
        let n_rows = alone.cells.n_rows();
        assert!(
            n_rows.iter().all(|n_rows| *n_rows <= 4),
            "{n_rows:?}: three seconds are inside"
        );
        assert_eq!(
            alone.sums(),
            [4, 0, 0, 0, 0, 0, 0, 0, 2],
            "three seconds are sixty cells of 50 ms"
        );
    }

    #[test]
    fn a_narrow_cell_that_runs_over_when_it_is_widened_says_so() {
        let mut alone = Alone::new(9);
        let tally = |first, last| [first, 0, 0, 0, 0, 0, 0, 0, last];
        assert_eq!(alone.add(0, &tally(i64::MAX, 0)), Ok(()));
        assert_eq!(alone.add(0, &tally(1, 5)), Err(Overflow));
        assert_eq!(alone.sums(), tally(i64::MAX, 5).map(i128::from));
        alone.advance(61_000);
        assert_eq!(alone.sums(), [0; 9], "and is still taken away exactly");
    }

    #[test]
    fn a_cell_that_runs_over_says_so() {
        let mut alone = Alone::new(1);
        assert_eq!(alone.add(0, &[i64::MAX]), Ok(()));
        assert_eq!(alone.add(0, &[1]), Err(Overflow));
        assert_eq!(alone.sums(), [i128::from(i64::MAX)]);
        alone.advance(61_000);
        assert_eq!(alone.sums(), [0], "and is still taken away exactly");
    }
}
