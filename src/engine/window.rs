//! A sliding window: sixty cells of event time with a running total, exact under addition and removal.
//!
//! ```text
//!        ┌ oldest cell inside                        ┌ cell of the window's end, as far as filled
//!  … │ n−59 │ n−58 │              …              │  n  │        only cells that were touched exist
//! ```

use std::collections::VecDeque;

/// Cells of a window.
pub const N_CELLS: i64 = 60;

#[derive(Debug, Clone)]
pub struct Window {
    cell_ms: i64,
    /// Number of the cell that holds the window's end: epoch ms ÷ cell length.
    newest: i64,
    /// Touched cells inside, ascending.
    cells: VecDeque<(i64, Box<[i64]>)>,
    sums: Box<[i128]>,
}

/// A cell's 64-bit sum has run over: the numbers are no longer exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl Window {
    pub fn new(cell_ms: i64, width: usize) -> Window {
        Window {
            cell_ms,
            newest: i64::MIN,
            cells: VecDeque::new(),
            sums: vec![0; width].into(),
        }
    }

    /// Adds a tally at `ts_ms`, if its cell is still inside.
    ///
    /// # Errors
    /// [`Overflow`] where a sum of the cell left 64 bits; that sum stays at the border.
    pub fn add(&mut self, ts_ms: i64, tally: &[i64]) -> Result<(), Overflow> {
        let number = ts_ms.div_euclid(self.cell_ms);
        self.advance_to_cell(number);
        if number <= self.newest - N_CELLS {
            return Ok(());
        }
        let place = self.cells.partition_point(|(other, _)| *other < number);
        if self.cells.get(place).is_none_or(|(other, _)| *other != number) {
            self.cells.insert(place, (number, vec![0; tally.len()].into()));
        }
        let mut exact = Ok(());
        for ((cell, sum), term) in self.cells[place].1.iter_mut().zip(&mut self.sums).zip(tally) {
            let before = *cell;
            *cell = cell.checked_add(*term).unwrap_or_else(|| {
                exact = Err(Overflow);
                cell.saturating_add(*term)
            });
            // What is in the cell is in the sum, so that it can be taken away again.
            *sum += i128::from(*cell) - i128::from(before);
        }
        exact
    }

    /// Moves the end of the window on; it never goes back.
    pub fn advance(&mut self, end_ms: i64) {
        self.advance_to_cell(end_ms.div_euclid(self.cell_ms));
    }

    fn advance_to_cell(&mut self, number: i64) {
        if number <= self.newest {
            return;
        }
        self.newest = number;
        while self
            .cells
            .front()
            .is_some_and(|(oldest, _)| *oldest <= number - N_CELLS)
        {
            if let Some((_, cell)) = self.cells.pop_front() {
                for (sum, term) in self.sums.iter_mut().zip(&cell) {
                    *sum -= i128::from(*term);
                }
            }
        }
    }

    /// Sums over the cells inside.
    pub fn sums(&self) -> &[i128] {
        &self.sums
    }

    /// Touched cells inside, by number, ascending.
    pub fn cells(&self) -> impl Iterator<Item = (i64, &[i64])> {
        self.cells.iter().map(|(number, cell)| (*number, &**cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A recount of every event that lies in the last sixty cells.
        #[test]
        fn a_window_equals_a_recount_of_its_cells(
            events in prop::collection::vec((0_i64..20_000, -1000_i64..1000, 0_i64..500), 1..200),
        ) {
            let cell_ms = 50;
            let mut window = Window::new(cell_ms, 1);
            let mut end_ms = 0;
            let mut seen: Vec<(i64, i64)> = Vec::new();
            for (ts_ms, term, step_ms) in events {
                end_ms = end_ms.max(ts_ms) + step_ms;
                // An event outside at its arrival is dropped for good.
                if ts_ms / cell_ms > window.newest.saturating_sub(N_CELLS) {
                    seen.push((ts_ms, term));
                }
                prop_assert_eq!(window.add(ts_ms, &[term]), Ok(()));
                window.advance(end_ms);
                let inside = |ts: &i64| ts / cell_ms > end_ms / cell_ms - N_CELLS;
                let recount: i64 = seen.iter().filter(|(ts, _)| inside(ts)).map(|(_, term)| term).sum();
                prop_assert_eq!(window.sums(), &[i128::from(recount)]);
            }
        }
    }

    #[test]
    fn an_empty_week_costs_nothing_but_what_was_touched() {
        let mut window = Window::new(1000, 1);
        assert_eq!(window.add(0, &[7]), Ok(()));
        window.advance(i64::MAX / 2);
        assert_eq!(window.sums(), [0]);
        assert_eq!(window.cells().count(), 0);
    }

    #[test]
    fn a_cell_that_runs_over_says_so() {
        let mut window = Window::new(1000, 1);
        assert_eq!(window.add(0, &[i64::MAX]), Ok(()));
        assert_eq!(window.add(0, &[1]), Err(Overflow));
        window.advance(61_000);
        assert_eq!(window.sums(), [0], "and is still taken away exactly");
    }
}
