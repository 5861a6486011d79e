//! CTR by rank, as far as cut-offs tell ranks apart: what lies between two of them is the difference of their sums.

use serde::Serialize;

use crate::engine::ranking::{Column, Ranking};
use crate::snapshot::Timeline;

/// The metric whose sums at a cut-off are counts of items.
const METRIC: &str = "ctr";

/// Ranks from one cut-off to the next, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ranks {
    from: u32,
    /// Itself included; none: to the end of the list.
    to: Option<u32>,
}

/// What tells ranks apart.
pub struct ByRank<'a> {
    /// By their cut-off, ascending, whole lists last.
    columns: Vec<&'a Column>,
}

impl<'a> ByRank<'a> {
    /// None where a profile does not measure it, or at no cut-off.
    pub fn of(ranking: &'a Ranking, profile: usize) -> Option<ByRank<'a>> {
        let columns = ranking.columns().iter();
        let columns = columns.filter(|column| column.metric.id == METRIC && column.profile == profile);
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

    /// Items clicked of those shown at each of the ranks, over all cells; none where no list is so long.
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
