//! CTR by rank, at the resolution of the cut-offs: values between two cut-offs are the difference of their sums.

use abgauge_core::metrics::{CTR, Column, Ranking};
use serde::Serialize;

use crate::board::snapshot::Timeline;

/// Ranks from one cut-off to the next, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ranks {
    from: u32,
    /// Last rank, inclusive. Absent for the end of the list.
    to: Option<u32>,
}

/// Cut-offs that separate the ranks.
pub struct ByRank<'a> {
    /// Columns by cut-off, ascending, whole lists last.
    columns: Vec<&'a Column>,
}

impl<'a> ByRank<'a> {
    /// Returns none if the profile does not measure CTR at any cut-off.
    pub fn of(ranking: &'a Ranking, profile: usize) -> Option<ByRank<'a>> {
        let columns = ranking.columns().iter();
        // The sums of CTR at a cut-off are counts of items, so they can be subtracted.
        let columns = columns.filter(|column| column.metric.id == CTR.id && column.profile == profile);
        let mut columns: Vec<&Column> = columns.collect();
        columns.sort_by_key(|column| (column.k.is_none(), column.k));
        (columns.len() > 1).then_some(ByRank { columns })
    }

    pub fn ranks(&self) -> Vec<Ranks> {
        let mut from = 1;
        let ranks = self.columns.iter().map(|column| {
            let to = column.k.map(u32::from);
            let ranks = Ranks { from, to };
            from = to.map_or(from, |to| to + 1);
            ranks
        });
        ranks.collect()
    }

    /// Returns the ratio of clicked to shown items at each group of ranks, over all cells, or none if no list is that long.
    pub fn values(&self, line: &Timeline) -> Vec<Option<f64>> {
        let mut before = (0.0, 0);
        let values = self.columns.iter().map(|column| {
            let cells = || line.cells.iter().flatten();
            let clicked: f64 = cells().map(|sums| column.numerator(sums)).sum();
            let shown: i128 = cells().map(|sums| column.denominator(sums)).sum();
            let (clicked_before, shown_before) = std::mem::replace(&mut before, (clicked, shown));
            let n = shown - shown_before;
            (n > 0).then(|| (clicked - clicked_before) / n as f64)
        });
        values.collect()
    }
}
