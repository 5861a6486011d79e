//! The distinct counts of the board's arms, within their bound on memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Pair;
use crate::engine::catalogue::Catalogue;
use crate::engine::coverage::Coverage;
use crate::engine::ranking::CoverageColumns;
use crate::engine::window::N_CELLS;
use crate::snapshot::View;

/// What one arm has shown of the catalogue.
#[derive(Debug, Default)]
pub(super) enum Covered {
    /// Nothing yet.
    #[default]
    Empty,
    /// By `View as usize`.
    Counted(Box<[Coverage; 2]>),
    /// There was no room for it.
    LeftOut,
}

/// What the counts of all arms share.
#[derive(Debug)]
pub(super) struct Covering {
    columns: CoverageColumns,
    slot_ms: i64,
    cells_ms: Vec<i64>,
    max_bytes: u64,
    bytes: AtomicU64,
    n_left_out: AtomicU64,
    catalogue: RwLock<Arc<Catalogue>>,
}

impl Covering {
    pub fn new(columns: CoverageColumns, slot_ms: i64, cells_ms: Vec<i64>, max_bytes: u64) -> Covering {
        Covering {
            columns,
            slot_ms,
            cells_ms,
            max_bytes,
            bytes: AtomicU64::new(0),
            n_left_out: AtomicU64::new(0),
            catalogue: RwLock::new(Arc::new(Catalogue::new(Vec::new(), 0, None))),
        }
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts by this catalogue from now on; each arm is to be [readmitted](Self::readmit).
    pub fn set_catalogue(&self, catalogue: Arc<Catalogue>) {
        *self.catalogue.write().unwrap_or_else(PoisonError::into_inner) = catalogue;
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Arms without a count for want of room.
    pub fn n_left_out(&self) -> u64 {
        self.n_left_out.load(Ordering::Relaxed)
    }

    /// Bytes of a pair's part of an arm, both views.
    fn part_bytes(&self, catalogue: &Catalogue) -> u64 {
        2 * Coverage::part_bytes(catalogue, self.columns.ks.len())
    }

    /// Makes room for a pair's part of an arm, if that has none.
    pub fn admit(&self, covered: &mut Covered, pair: Pair, catalogue: &Catalogue) {
        match covered {
            Covered::LeftOut => return,
            Covered::Counted(views) if views[0].has_part(pair) => return,
            Covered::Counted(_) | Covered::Empty => {}
        }
        let bytes = self.part_bytes(catalogue);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.max_bytes {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.leave_out(covered, catalogue);
            return;
        }
        if let Covered::Empty = covered {
            let coverage = |_| Coverage::new(self.columns.ks.clone(), self.slot_ms);
            *covered = Covered::Counted(Box::new(View::BOTH.map(coverage)));
        }
        if let Covered::Counted(views) = covered {
            views.iter_mut().for_each(|view| view.add_part(pair));
        }
    }

    /// A count without one of its pairs would be too small, so the arm has none.
    fn leave_out(&self, covered: &mut Covered, catalogue: &Catalogue) {
        self.free(covered, catalogue);
        *covered = Covered::LeftOut;
        self.n_left_out.fetch_add(1, Ordering::Relaxed);
    }

    fn free(&self, covered: &Covered, catalogue: &Catalogue) {
        if let Covered::Counted(views) = covered {
            let bytes = views[0].n_parts() as u64 * self.part_bytes(catalogue);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Forgets a pair's part of an arm.
    pub fn remove(&self, covered: &mut Covered, pair: Pair) {
        let catalogue = self.catalogue();
        if let Covered::Counted(views) = covered
            && views[0].has_part(pair)
        {
            views.iter_mut().for_each(|view| view.remove_part(pair));
            self.bytes
                .fetch_sub(self.part_bytes(&catalogue), Ordering::Relaxed);
        }
    }

    /// Forgets an arm.
    pub fn forget(&self, covered: &Covered) {
        self.free(covered, &self.catalogue());
        if let Covered::LeftOut = covered {
            self.n_left_out.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sees whether an arm still has room by the catalogue that was [set](Self::set_catalogue).
    pub fn readmit(&self, covered: &mut Covered) {
        let catalogue = self.catalogue();
        if let Covered::Counted(views) = covered {
            let bytes = views[0].n_parts() as u64 * self.part_bytes(&catalogue);
            if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes {
                self.leave_out(covered, &catalogue);
            }
        }
    }

    /// Writes the counts of a view that ends at `end_ms` into its sums, over the pairs that are `shown`: of each
    /// window, then of the total, which begins at `total_from_ms`.
    pub fn fill(
        &self,
        covered: &Covered,
        view: View,
        end_ms: Option<i64>,
        total_from_ms: i64,
        shown: impl Fn(Pair) -> bool,
        sums: &mut [Box<[i128]>],
    ) {
        let Covered::Counted(views) = covered else {
            return;
        };
        let catalogue = self.catalogue();
        let first_cell =
            |cell_ms: i64| end_ms.map_or(i64::MIN, |end_ms| end_ms.div_euclid(cell_ms) - N_CELLS + 1);
        let windows = self.cells_ms.iter();
        let windows = windows.map(|cell_ms| first_cell(*cell_ms).saturating_mul(*cell_ms));
        let from_ms: Vec<i64> = windows.chain([total_from_ms]).collect();
        let counts = views[view as usize].counts(&from_ms, shown, &catalogue);
        for (counts, sums) in counts.iter().zip(sums) {
            for (sum, count) in sums[self.columns.seen.clone()].iter_mut().zip(counts) {
                *sum = i128::from(*count);
            }
            sums[self.columns.size] = catalogue.len() as i128;
        }
    }
}
