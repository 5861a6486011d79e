//! Cells of many windows, with room for what each needs: where arms are many, most cells never see a click.
//!
//! ```text
//! narrow │ lists, items shown, …  │              what a list adds to before its first click
//! wide   │ lists, items shown, …  │ clicks, … │  a narrow cell becomes one once it needs to
//! ```

use super::ranking::LINE;

/// Columns that are added together, and skipped where they are all zero.
pub type Line = [i64; LINE];

/// Rows of a chunk.
const CHUNK: usize = 64;

/// Rows of sums, given out and taken back; nothing is allocated for those that are used again.
#[derive(Debug)]
pub struct Cells {
    /// By whether they are wide.
    rows: [Rows; 2],
}

/// One of [`Cells`]: its row twice, and one more if it is wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell(u32);

impl Cell {
    fn of(row: u32, is_wide: bool) -> Cell {
        Cell(row << 1 | u32::from(is_wide))
    }

    fn is_wide(self) -> bool {
        self.0 & 1 == 1
    }

    fn row(self) -> u32 {
        self.0 >> 1
    }
}

impl Cells {
    /// Wide cells have `width` columns, and narrow ones as many as a new list adds to, both in whole lines.
    pub fn new(width: usize, n_of_new_list: usize) -> Cells {
        Cells {
            rows: [n_of_new_list, width].map(|width| Rows::new(n_lines(width))),
        }
    }

    /// A cell of zeros with room for these lines, of which the last ones may be zero.
    pub fn take(&mut self, lines: &[Line]) -> Cell {
        let is_wide = self.needs_width(lines);
        Cell::of(self.rows[usize::from(is_wide)].take(), is_wide)
    }

    /// The same cell with room for these lines.
    pub fn with_room(&mut self, cell: Cell, lines: &[Line]) -> Cell {
        if cell.is_wide() || !self.needs_width(lines) {
            return cell;
        }
        let [narrow, wide] = &mut self.rows;
        let (from, to) = (narrow.row(cell.row()), wide.take());
        wide.row_mut(to)[..from.len()].copy_from_slice(from);
        self.give_back(cell);
        Cell::of(to, true)
    }

    fn needs_width(&self, lines: &[Line]) -> bool {
        let more = lines.get(self.rows[0].width..).unwrap_or_default();
        more.iter().any(is_filled)
    }

    pub fn give_back(&mut self, cell: Cell) {
        self.rows[usize::from(cell.is_wide())].free.push(cell.row());
    }

    /// As many as it has room for; the others are zero.
    pub fn lines(&self, cell: Cell) -> &[Line] {
        self.rows[usize::from(cell.is_wide())].row(cell.row())
    }

    pub fn lines_mut(&mut self, cell: Cell) -> &mut [Line] {
        self.rows[usize::from(cell.is_wide())].row_mut(cell.row())
    }

    /// How many narrow and wide cells there have been at a time.
    #[cfg(test)]
    pub fn n_rows(&self) -> [u32; 2] {
        [0, 1].map(|is_wide| self.rows[is_wide].n_rows)
    }
}

/// In chunks that never move.
#[derive(Debug)]
struct Rows {
    /// In lines.
    width: usize,
    chunks: Vec<Box<[Line]>>,
    n_rows: u32,
    /// Rows given back; they hold what they held.
    free: Vec<u32>,
}

impl Rows {
    fn new(width: usize) -> Rows {
        Rows {
            width,
            chunks: Vec::new(),
            n_rows: 0,
            free: Vec::new(),
        }
    }

    /// A row of zeros.
    fn take(&mut self) -> u32 {
        if let Some(row) = self.free.pop() {
            self.row_mut(row).fill([0; LINE]);
            return row;
        }
        let row = self.n_rows;
        if row as usize == self.chunks.len() * CHUNK {
            self.chunks.push(vec![[0; LINE]; CHUNK * self.width].into());
        }
        self.n_rows += 1;
        row
    }

    fn row(&self, row: u32) -> &[Line] {
        let start = row as usize % CHUNK * self.width;
        &self.chunks[row as usize / CHUNK][start..start + self.width]
    }

    fn row_mut(&mut self, row: u32) -> &mut [Line] {
        let start = row as usize % CHUNK * self.width;
        &mut self.chunks[row as usize / CHUNK][start..start + self.width]
    }
}

/// Whether a line is not all zero.
pub fn is_filled(line: &Line) -> bool {
    line.iter().fold(0, |any, term| any | term) != 0
}

/// How many lines so many columns are.
pub fn n_lines(width: usize) -> usize {
    debug_assert!(width.is_multiple_of(LINE), "{width} columns");
    width / LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that are zero but for their first columns.
    fn lines(firsts: &[i64]) -> Vec<Line> {
        let line = |first: &i64| std::array::from_fn(|column| if column == 0 { *first } else { 0 });
        firsts.iter().map(line).collect()
    }

    #[test]
    fn a_cell_is_wide_once_it_needs_to_be_and_keeps_its_sums() {
        let mut cells = Cells::new(3 * LINE, LINE);
        let cell = cells.take(&lines(&[7, 0, 0]));
        assert_eq!(cells.lines(cell), lines(&[0]));
        cells.lines_mut(cell)[0][0] = 7;
        assert_eq!(cells.with_room(cell, &lines(&[1])), cell);
        assert_eq!(cells.with_room(cell, &lines(&[1, 0, 0])), cell);
        let cell = cells.with_room(cell, &lines(&[1, 0, 2]));
        assert_eq!(cells.lines(cell), lines(&[7, 0, 0]));
        assert_eq!(cells.with_room(cell, &lines(&[1])), cell, "it stays wide");
        cells.take(&lines(&[1]));
        assert_eq!(cells.n_rows(), [1, 1], "its narrow row is used again");
    }

    #[test]
    fn cells_that_are_taken_again_are_empty() {
        let mut cells = Cells::new(2 * LINE, LINE);
        for _ in 0..3 {
            for firsts in [[5, 0], [5, 6]] {
                let cell = cells.take(&lines(&firsts));
                let n_lines = cells.lines(cell).len();
                assert_eq!(cells.lines(cell), lines(&[0, 0][..n_lines]));
                cells.lines_mut(cell).fill([9; LINE]);
                cells.give_back(cell);
            }
        }
        assert_eq!(cells.n_rows(), [1, 1]);
    }
}
