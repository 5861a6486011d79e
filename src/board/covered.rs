//! The distinct counts of the board's arms, within their bound on memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Pair;
use crate::engine::catalogue::Catalogue;
use crate::engine::coverage::{Coverage, Layout};
use crate::engine::ranking::CoverageColumns;
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

    /// Counts by this catalogue from now on; each arm is to be [recounted](Self::recount).
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
    pub fn admit(
        &self,
        covered: &mut Covered,
        pair: Pair,
        shown: bool,
        total_from_ms: i64,
        catalogue: &Catalogue,
    ) {
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
            let layout = || Layout {
                ks: self.columns.ks.clone(),
                slot_ms: self.slot_ms,
                cells_ms: self.cells_ms.clone(),
                total_from_ms,
            };
            *covered = Covered::Counted(Box::new(View::BOTH.map(|_| Coverage::new(layout()))));
        }
        if let Covered::Counted(views) = covered {
            views.iter_mut().for_each(|view| view.add_part(pair, shown));
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

    /// Lets a pair's part into the counts of an arm, or out of them.
    pub fn set_shown(&self, covered: &mut Covered, pair: Pair, shown: bool) {
        if let Covered::Counted(views) = covered {
            let catalogue = self.catalogue();
            views
                .iter_mut()
                .for_each(|view| view.set_shown(pair, shown, &catalogue));
        }
    }

    /// Forgets a pair's part of an arm.
    pub fn remove(&self, covered: &mut Covered, pair: Pair) {
        let catalogue = self.catalogue();
        if let Covered::Counted(views) = covered
            && views[0].has_part(pair)
        {
            views
                .iter_mut()
                .for_each(|view| view.remove_part(pair, &catalogue));
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

    /// Counts an arm by the catalogue that was [set](Self::set_catalogue).
    pub fn recount(&self, covered: &mut Covered) {
        let catalogue = self.catalogue();
        let Covered::Counted(views) = covered else {
            return;
        };
        let bytes = views[0].n_parts() as u64 * self.part_bytes(&catalogue);
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes {
            return self.leave_out(covered, &catalogue);
        }
        views.iter_mut().for_each(|view| view.recount(&catalogue));
    }

    /// Writes the counts of a view into its sums: of each window, then of the total.
    pub fn fill(&self, covered: &mut Covered, view: View, end_ms: Option<i64>, sums: &mut [Box<[i128]>]) {
        let Covered::Counted(views) = covered else {
            return;
        };
        let coverage = &mut views[view as usize];
        if let Some(end_ms) = end_ms {
            coverage.advance(end_ms);
        }
        let size = self.catalogue().len() as i128;
        let windows = (0..self.cells_ms.len()).map(Some).chain([None]);
        for (window, sums) in windows.zip(sums) {
            let counts = coverage.counts(window);
            for (sum, count) in sums[self.columns.seen.clone()].iter_mut().zip(counts) {
                *sum = i128::from(*count);
            }
            sums[self.columns.size] = size;
        }
    }
}
