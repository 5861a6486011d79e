//! The distinct counts of the board's arms, within their bound on memory.
//!
//! To count is a walk over the catalogue for each arm: too long for hand-overs to wait. So a scrape takes the turn,
//! then the gate; at the gate it notes what is queued, and lets go of that; then it counts, while lists that are handed
//! over queue up instead of changing what is counted. In what order lists are noted changes nothing.
//!
//! ```text
//! scrape    turn ├──────┤ gate ├──────────── counts ────────────┤
//! hand-over         notes │ waits │ queues   queues │    queues │ notes, and what is queued
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use super::part::Part;
use super::{Entry, Pair, lock};
use crate::engine::catalogue::Catalogue;
use crate::engine::coverage::Coverage;
use crate::engine::ranking::CoverageColumns;
use crate::engine::window::N_CELLS;
use crate::ledger::PairDelta;
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

/// What a scrape counts.
pub(super) struct Instant {
    /// Where each view ends.
    pub ends: [Option<i64>; 2],
    /// The pairs that are shown.
    pub shown: Vec<Pair>,
    pub catalogue: Arc<Catalogue>,
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
    /// Who holds it may change what is counted, or count. Taken before the gate, or not waited for.
    turn: Mutex<()>,
    /// What was handed over while a scrape counted.
    queue: Mutex<Queue>,
}

/// Lists that are yet to be noted: as many as come while one scrape counts.
#[derive(Debug, Default)]
struct Queue {
    lists: Vec<Queued>,
    places: Vec<u32>,
}

#[derive(Debug)]
struct Queued {
    entry: Arc<Entry>,
    pair: Pair,
    view: View,
    start_ms: i64,
    places: Range<usize>,
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
            turn: Mutex::default(),
            queue: Mutex::default(),
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

    /// Waits until nobody counts; to be called before the gate is taken.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Notes what a pair's lists have shown, or leaves that for later where a scrape counts.
    pub fn note(&self, pair: Pair, part: &Part, delta: &PairDelta) {
        let settled = delta.settled.iter().map(|slot| (View::Settled, &slot.shown));
        let lists = std::iter::once((View::Live, &delta.shown)).chain(settled);
        let by_arm = lists.flat_map(|(view, shown)| shown.by_arm().map(move |of_arm| (view, of_arm)));
        let by_arm = by_arm.map(|(view, (arm, lists))| (part.entry(arm), view, lists));
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let mut queue = lock(&self.queue);
                return by_arm.for_each(|(entry, view, lists)| {
                    for (start_ms, places) in lists {
                        queue.push(pair, entry, view, start_ms, places);
                    }
                });
            }
        };
        self.note_queued();
        let catalogue = self.catalogue();
        by_arm.for_each(|(entry, view, lists)| see(entry, pair, view, lists, &catalogue));
    }

    /// Notes what was left for later; to be called by who has the turn.
    pub fn note_queued(&self) {
        let mut queue = lock(&self.queue);
        if queue.lists.is_empty() {
            return;
        }
        let Queue { lists, places } = std::mem::take(&mut *queue);
        let catalogue = self.catalogue();
        for list in lists {
            let shown = [(list.start_ms, &places[list.places])];
            see(&list.entry, list.pair, list.view, shown, &catalogue);
        }
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
            views.iter_mut().for_each(Coverage::forget_counts);
            let bytes = views[0].n_parts() as u64 * self.part_bytes(&catalogue);
            if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.max_bytes {
                self.leave_out(covered, &catalogue);
            }
        }
    }

    /// Writes the counts of an arm in a view into its sums: of each window, then of the total, which begins at
    /// `total_from_ms`.
    pub fn fill(
        &self,
        instant: &Instant,
        covered: &mut Covered,
        view: View,
        total_from_ms: i64,
        sums: &mut [Box<[i128]>],
    ) {
        let Instant {
            ends,
            shown,
            catalogue,
        } = instant;
        let end_ms = ends[view as usize];
        let Covered::Counted(views) = covered else {
            return;
        };
        let first_cell =
            |cell_ms: i64| end_ms.map_or(i64::MIN, |end_ms| end_ms.div_euclid(cell_ms) - N_CELLS + 1);
        let windows = self.cells_ms.iter();
        let windows = windows.map(|cell_ms| first_cell(*cell_ms).saturating_mul(*cell_ms));
        let from_ms: Vec<i64> = windows.chain([total_from_ms]).collect();
        let counts = views[view as usize].counts(&from_ms, shown, catalogue);
        for (counts, sums) in counts.iter().zip(sums) {
            for (sum, count) in sums[self.columns.seen.clone()].iter_mut().zip(counts) {
                *sum = i128::from(*count);
            }
            sums[self.columns.size] = catalogue.len() as i128;
        }
    }
}

impl Queue {
    fn push(&mut self, pair: Pair, entry: &Arc<Entry>, view: View, start_ms: i64, places: &[u32]) {
        let start = self.places.len();
        self.places.extend_from_slice(places);
        self.lists.push(Queued {
            entry: Arc::clone(entry),
            pair,
            view,
            start_ms,
            places: start..self.places.len(),
        });
    }
}

/// Notes lists of one arm: the begin of the slot of each, and the places of its items.
fn see<'a>(
    entry: &Entry,
    pair: Pair,
    view: View,
    lists: impl IntoIterator<Item = (i64, &'a [u32])>,
    catalogue: &Catalogue,
) {
    if let Covered::Counted(views) = &mut *lock(&entry.covered) {
        views[view as usize].see(pair, lists, catalogue);
    }
}
