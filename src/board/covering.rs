//! Catalogue items shown by each arm, within a memory bound. Distinct counts do not add up, so each arm keeps the items of
//! every pair, and a scrape counts their union.

use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::engine::coverage::Coverage;
use abgauge_core::engine::window::N_CELLS;
use abgauge_core::ledger::{Classes, PairId};
use abgauge_core::metrics::CoverageColumns;
use abgauge_core::metrics::catalogue::Catalogue;

use super::progress::{ShownPairs, WindowEnds};
use crate::board::snapshot::ArmSnapshot;

/// Items of the catalogue that one arm has shown.
#[derive(Debug, Default)]
pub(super) enum Covered {
    /// No list so far.
    #[default]
    Empty,
    /// Counts by `View as usize`.
    Counted(Box<[Coverage; 2]>),
    /// Left out because no memory was left.
    LeftOut,
}

/// State shared by the counts of all arms.
#[derive(Debug)]
pub(super) struct Covering {
    columns: CoverageColumns,
    slot_ms: i64,
    max_bytes: u64,
    bytes: u64,
    n_left_out: u64,
    catalogue: Arc<Catalogue>,
}

impl Covered {
    /// Records lists of a pair: for each one the start of its slot and the places of its items.
    pub fn observe<'a>(
        &mut self,
        pair: PairId,
        view: View,
        lists: impl IntoIterator<Item = (i64, &'a [u32])>,
        catalogue: &Catalogue,
    ) {
        if let Covered::Counted(views) = self {
            views[view as usize].observe(pair, lists, catalogue);
        }
    }
}

impl Covered {
    /// Records items that a pair showed in a span starting at `start_ms` (Unix ms), in these views.
    pub fn resume(
        &mut self,
        pair: PairId,
        resumed: &[View],
        start_ms: i64,
        items: &Classes,
        catalogue: &Catalogue,
    ) {
        if let Covered::Counted(views) = self {
            for view in resumed {
                let view = &mut views[*view as usize];
                let items = items
                    .shown()
                    .map(|(place, class)| (place, usize::from(class) - 1));
                view.observe_items(pair, start_ms, items, catalogue);
            }
        }
    }
}

impl Covering {
    pub fn new(columns: CoverageColumns, slot_ms: i64, max_bytes: u64) -> Covering {
        Covering {
            columns,
            slot_ms,
            max_bytes,
            bytes: 0,
            n_left_out: 0,
            catalogue: Arc::new(Catalogue::new(Vec::new(), 0, None)),
        }
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the number of arms that are not counted because no memory was left.
    pub fn n_left_out(&self) -> u64 {
        self.n_left_out
    }

    /// Returns the bytes taken by one pair in one arm, both views.
    fn part_bytes(&self) -> u64 {
        2 * Coverage::part_bytes(&self.catalogue, self.columns.ks.len())
    }

    fn bytes_of(&self, covered: &Covered) -> u64 {
        match covered {
            Covered::Counted(views) => views[0].n_parts() as u64 * self.part_bytes(),
            Covered::Empty | Covered::LeftOut => 0,
        }
    }

    /// Makes room for a pair in an arm. An arm whose lists show no item of the catalogue has a count too: 0.
    pub fn admit(&mut self, covered: &mut Covered, pair: PairId) {
        if let Covered::LeftOut = covered {
            return;
        }
        if self.bytes + self.part_bytes() > self.max_bytes {
            self.leave_out(covered);
            return;
        }
        self.bytes += self.part_bytes();
        if let Covered::Empty = covered {
            let coverage = |_| Coverage::new(self.columns.ks.clone(), self.slot_ms);
            *covered = Covered::Counted(Box::new(View::BOTH.map(coverage)));
        }
        if let Covered::Counted(views) = covered {
            views.iter_mut().for_each(|view| view.add_part(pair));
        }
    }

    /// Stops counting an arm: without one of its pairs the count would be too small.
    fn leave_out(&mut self, covered: &mut Covered) {
        self.bytes -= self.bytes_of(covered);
        *covered = Covered::LeftOut;
        self.n_left_out += 1;
    }

    /// Removes a pair from an arm.
    pub fn remove(&mut self, covered: &mut Covered, pair: PairId) {
        if let Covered::Counted(views) = covered {
            views.iter_mut().for_each(|view| view.remove_part(pair));
            self.bytes -= self.part_bytes();
        }
    }

    /// Removes an arm that has no pair left.
    pub fn forget(&mut self, covered: &Covered) {
        if let Covered::LeftOut = covered {
            self.n_left_out -= 1;
        }
    }

    /// Sets the catalogue to count with from now on. Every arm must then be [readmitted](Self::readmit).
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.catalogue = catalogue;
        self.bytes = 0;
    }

    /// Checks whether an arm still fits with the catalogue that was [set](Self::set_catalogue).
    pub fn readmit(&mut self, covered: &mut Covered) {
        // `set_catalogue` reset the sum to 0, so it is rebuilt arm by arm. An arm that no longer fits is left out.
        self.bytes += self.bytes_of(covered);
        if let Covered::Counted(views) = covered {
            views.iter_mut().for_each(Coverage::forget_counts);
        }
        if self.bytes > self.max_bytes {
            self.leave_out(covered);
        }
    }

    /// Writes the counts of an arm into its sums: for each window, then for the total.
    pub fn fill(
        &self,
        covered: &mut Covered,
        total_from_ms: i64,
        pairs: &ShownPairs,
        cells_ms: &[i64],
        ends: &WindowEnds,
        arm: &mut ArmSnapshot,
    ) {
        let Covered::Counted(views) = covered else {
            return;
        };
        let views = View::BOTH.into_iter().zip(views.iter_mut());
        for (((view, coverage), end_ms), rows) in views.zip(ends.ends_ms).zip(&mut arm.sums) {
            let first_cell =
                // The first cell of a window, as in the sums, so that coverage and sums cover the same lists.
                |cell_ms: i64| end_ms.map_or(i64::MIN, |end_ms| end_ms.div_euclid(cell_ms) - N_CELLS + 1);
            let of_windows = cells_ms
                .iter()
                .map(|cell_ms| first_cell(*cell_ms).saturating_mul(*cell_ms));
            let from_ms: Vec<i64> = of_windows.chain([total_from_ms]).collect();
            let counts = coverage.counts(&from_ms, pairs.of(view), &self.catalogue);
            for (counts, sums) in counts.iter().zip(rows) {
                for (sum, count) in sums[self.columns.seen.clone()].iter_mut().zip(counts) {
                    *sum = i128::from(*count);
                }
                // The size of the catalogue is the denominator of coverage.
                sums[self.columns.size] = self.catalogue.len() as i128;
            }
        }
    }
}
