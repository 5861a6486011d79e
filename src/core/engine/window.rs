//! Sliding windows: sixty cells of event time with a running total, exact under addition and removal.
//!
//! ```text
//!        ┌ oldest cell inside                        ┌ cell of the window's end, as far as filled
//!  … │ n−59 │ n−58 │              …              │  n  │
//! ```
//! Cells exist only if they were touched, with as many columns as their tallies had.

use std::collections::BTreeMap;

/// Cells of a window.
pub const N_CELLS: i64 = 60;

/// A 64-bit sum has overflowed: the numbers are no longer exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

/// Sums of 64 bits by column; those that are left out at the end are zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell(Vec<i64>);

impl Cell {
    /// Adds a tally, column by column.
    ///
    /// # Errors
    /// [`Overflow`] if a sum exceeds 64 bits; that sum saturates.
    pub fn add(&mut self, tally: &[i64]) -> Result<(), Overflow> {
        self.add_and_report(tally, |_, _| ())
    }

    /// Adds a tally, and reports the change of each column to `reported`.
    fn add_and_report(
        &mut self,
        tally: &[i64],
        mut reported: impl FnMut(usize, i64),
    ) -> Result<(), Overflow> {
        make_room(&mut self.0, tally.len());
        let mut exact = Ok(());
        for (column, (sum, term)) in self.0.iter_mut().zip(tally).enumerate() {
            let after = sum.checked_add(*term).unwrap_or_else(|| {
                exact = Err(Overflow);
                sum.saturating_add(*term)
            });
            reported(column, after - *sum);
            *sum = after;
        }
        exact
    }

    pub fn sums(&self) -> &[i64] {
        &self.0
    }
}

/// Adds a tally to sums that cannot overflow, and makes room for it.
pub fn add_wide(sums: &mut Vec<i128>, tally: &[i64]) {
    make_room(sums, tally.len());
    sums.iter_mut()
        .zip(tally)
        .for_each(|(sum, term)| *sum += i128::from(*term));
}

/// Exactly as many columns as are needed, without spare capacity: there are many of these.
fn make_room<T: Default + Clone>(sums: &mut Vec<T>, n_columns: usize) {
    if sums.len() < n_columns {
        sums.reserve_exact(n_columns - sums.len());
        sums.resize(n_columns, T::default());
    }
}

#[derive(Debug, Clone)]
pub struct Window {
    cell_ms: i64,
    /// Number of the cell that holds the window's end: Unix ms ÷ cell length.
    newest: i64,
    /// Cells that were changed, by number.
    cells: BTreeMap<i64, Cell>,
    /// Sum of the cells.
    sums: Vec<i128>,
}

impl Window {
    /// An empty one, of cells that are `cell_ms` long.
    pub fn new(cell_ms: i64) -> Window {
        Window {
            cell_ms,
            newest: i64::MIN,
            cells: BTreeMap::new(),
            sums: Vec::new(),
        }
    }

    /// Adds the tally of a slot, if that is still inside. A later one moves the window on.
    ///
    /// # Errors
    /// [`Overflow`] if a sum of its cell exceeds 64 bits; that sum saturates.
    pub fn add(&mut self, start_ms: i64, tally: &[i64]) -> Result<(), Overflow> {
        self.advance(start_ms);
        let number = start_ms.div_euclid(self.cell_ms);
        if number <= self.newest.saturating_sub(N_CELLS) {
            return Ok(());
        }
        make_room(&mut self.sums, tally.len());
        let sums = &mut self.sums;
        let cell = self.cells.entry(number).or_default();
        // Add to the sum exactly what the cell takes, so that it can be subtracted again.
        cell.add_and_report(tally, |column, added| sums[column] += i128::from(added))
    }

    /// Moves the end of the window forward (Unix ms). It never moves back.
    pub fn advance(&mut self, end_ms: i64) {
        self.newest = self.newest.max(end_ms.div_euclid(self.cell_ms));
        let last_past = self.newest.saturating_sub(N_CELLS);
        while let Some(first) = self.cells.first_entry().filter(|first| *first.key() <= last_past) {
            let columns = self.sums.iter_mut().zip(first.remove().0);
            columns.for_each(|(sum, term)| *sum -= i128::from(term));
        }
    }

    /// Returns the sum of the cells; omitted columns at the end are zero.
    pub fn sums(&self) -> &[i128] {
        &self.sums
    }

    /// Touched cells inside, by number, ascending.
    pub fn cells(&self) -> impl Iterator<Item = (i64, &Cell)> {
        self.cells.iter().map(|(number, cell)| (*number, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CELL_MS: i64 = 50;

    proptest! {
        /// A recount of every event that lies in the last sixty cells; tallies have several lengths, and one column is large.
        #[test]
        fn a_window_equals_a_recount_of_its_cells(
            events in prop::collection::vec((0_i64..20_000, -1000_i64..1000, 0_usize..12, 0_i64..500), 1..200),
        ) {
            let mut window = Window::new(CELL_MS);
            let mut end_ms = 0;
            let mut seen: Vec<(i64, Vec<i64>)> = Vec::new();
            for (ts_ms, term, column, step_ms) in events {
                end_ms = end_ms.max(ts_ms) + step_ms;
                let mut tally = vec![0; column.max(3) + 1];
                tally[column] = term;
                tally[3] = term * (i64::MAX / 300_000);
                prop_assert_eq!(window.add(ts_ms, &tally), Ok(()));
                seen.push((ts_ms, tally));
                window.advance(end_ms);
                let inside = |ts: &i64| ts / CELL_MS > end_ms / CELL_MS - N_CELLS;
                let recount = |column: usize| {
                    let inside = seen.iter().filter(|(ts, _)| inside(ts));
                    inside.filter_map(|(_, tally)| tally.get(column)).map(|term| i128::from(*term)).sum::<i128>()
                };
                for column in 0..12 {
                    prop_assert_eq!(window.sums().get(column).copied().unwrap_or(0), recount(column));
                }
                let cells: i128 = window.cells().map(|(_, cell)| i128::from(cell.sums()[3])).sum();
                prop_assert_eq!(cells, recount(3));
            }
        }
    }

    #[test]
    fn an_empty_week_leaves_nothing() {
        let mut window = Window::new(CELL_MS);
        assert_eq!(window.add(0, &[7]), Ok(()));
        window.advance(i64::MAX / 2);
        assert_eq!(window.sums(), [0]);
        assert_eq!(window.cells().count(), 0);
    }

    #[test]
    fn an_overflowing_cell_is_reported_and_still_subtracted_exactly() {
        let mut window = Window::new(CELL_MS);
        assert_eq!(window.add(0, &[i64::MAX]), Ok(()));
        assert_eq!(window.add(0, &[1, 5]), Err(Overflow));
        assert_eq!(window.sums(), [i128::from(i64::MAX), 5]);
        assert_eq!(window.add(0, &[-3]), Ok(()));
        assert_eq!(window.sums(), [i128::from(i64::MAX - 3), 5]);
        window.advance(61_000);
        assert_eq!(window.sums(), [0, 0]);
    }

    #[test]
    fn sums_of_several_cells_go_beyond_64_bits() {
        let mut window = Window::new(CELL_MS);
        let mut total = Vec::new();
        for start_ms in [0, CELL_MS] {
            assert_eq!(window.add(start_ms, &[i64::MAX]), Ok(()));
            add_wide(&mut total, &[i64::MAX]);
        }
        assert_eq!(window.sums(), [2 * i128::from(i64::MAX)]);
        assert_eq!(total, window.sums());
    }
}
