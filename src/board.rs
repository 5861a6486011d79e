//! Sums of all arms: the only shared mutable state, written by workers and read by scrapes.
//!
//! ```text
//!                       ┌ gate ─────────────────────────────────────────────────────────────┐
//! hand-over ─ shared ─▶ │ (experiment, arm) ─▶ its windows, by pair     a lock for each arm │
//! scrape    ─ alone  ─▶ │ how far each pair has come                    a lock              │
//!                       └───────────────────────────────────────────────────────────────────┘
//! ```
//! Hand-overs share the gate and lock one arm at a time. A hand-over with new arms holds the gate exclusively, and so does
//! a scrape while it copies the sums, so that it sees whole deltas only. A worker that meets a scrape hands over later,
//! within a second. Nothing behind the gate can be reached without it, and neither of the two inner locks is held while the
//! other is taken.

mod arm;
mod base;
mod covering;
mod progress;
pub mod snapshot;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use abgauge_core::engine::View;
use abgauge_core::engine::window::{Cell, N_CELLS, Overflow};
use abgauge_core::engine::{Arm, ArmId, ArmInSlot};
use abgauge_core::ledger::{CountingProgress, Ledger, PairDelta, PairId};
use abgauge_core::metrics::Ranking;
use abgauge_core::metrics::catalogue::Catalogue;
use dashmap::DashMap;

use self::arm::{ArmWindows, WindowShape};
use self::base::Bases;
use self::covering::Covering;
use self::progress::{BoardProgress, ShownPairs, WindowEnds};
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use crate::settings::{self, Config};

/// Maximum number of arms whose cells a snapshot holds.
const MAX_TIMELINES: usize = 200;

pub struct Board {
    width: usize,
    shape: WindowShape,
    /// Start of each experiment (Unix ms). Slots that begin earlier do not count in its `total`.
    experiment_starts: BTreeMap<String, i64>,
    gate: RwLock<Gated>,
    /// Cleared when a sum overflows.
    exact: AtomicBool,
    n_arms_without_coverage: AtomicU64,
}

/// State behind the gate.
struct Gated {
    arms: DashMap<Arm, ArmWindows>,
    progress: Mutex<BoardProgress>,
    /// Arms of each pair, indexed by their number in that pair. Like all fields below, changed only with exclusive access
    /// to the gate.
    pairs: BTreeMap<PairId, Vec<Arm>>,
    /// Arms in the order of snapshots.
    order: BTreeSet<Arm>,
    covering: Option<Covering>,
    lease: Option<Lease>,
}

/// Callback that returns, by view, whether a pair may be shown at this moment.
pub type Lease = Arc<dyn Fn(PairId) -> [bool; 2] + Send + Sync>;

impl Board {
    /// Creates an empty board for tallies of this ranking.
    pub fn new(config: &Config, ranking: &Ranking) -> Board {
        let covering = |columns| {
            let max_bytes = config.limits.max_coverage_bytes;
            Covering::new(columns, config.join.slot_ms, max_bytes)
        };
        Board {
            width: ranking.width(),
            shape: WindowShape {
                cells_ms: config.windows.iter().map(settings::WindowSpan::cell_ms).collect(),
                n_ahead: AtomicUsize::new(0),
            },
            experiment_starts: config.experiment_starts(),
            gate: RwLock::new(Gated {
                arms: DashMap::new(),
                progress: Mutex::default(),
                pairs: BTreeMap::new(),
                order: BTreeSet::new(),
                covering: ranking.coverage().cloned().map(covering),
                lease: None,
            }),
            exact: AtomicBool::new(true),
            n_arms_without_coverage: AtomicU64::new(0),
        }
    }

    /// Merges the changes of a pair. All deltas of a pair must arrive in order, from the first one until the pair is
    /// [removed](Self::remove).
    pub fn merge(&self, pair: PairId, delta: &PairDelta) {
        if delta.arms.is_empty() {
            self.merge_into(&self.shared(), pair, delta);
        } else {
            // Exclusive access, so that no scrape sees the new arms without their sums.
            let mut shared = self.alone();
            self.admit(&mut shared, pair, &delta.arms);
            self.merge_into(&shared, pair, delta);
        }
    }

    fn merge_into(&self, shared: &Gated, pair: PairId, delta: &PairDelta) {
        // The lock on the progress is released before an arm is locked.
        let until_ms = shared.with_progress(|progress| {
            progress.set_reach(pair, delta.reach);
            progress.until_ms()
        });
        // Without the records that were shed, sums are not exact either.
        if !delta.reach.is_exact {
            self.note(Err(Overflow));
        }
        let Some(arms) = shared.pairs.get(&pair) else {
            return;
        };
        // Each arm is locked once per delta, so its tallies have to be adjacent.
        let mut rows: Vec<ArmTally> = rows(delta).collect();
        rows.sort_by_key(|row| row.of.arm);
        for rows in rows.chunk_by(|one, next| one.of.arm == next.of.arm) {
            shared.with_windows(arms, rows[0].of.arm, |windows| {
                for row in rows {
                    let until_ms = until_ms[row.view as usize];
                    self.note(windows.add(pair, row.view, &row.of, row.tally, until_ms, &self.shape));
                }
            });
        }
        if let Some(covering) = &shared.covering {
            let settled = delta.settled.iter().map(|slot| (View::Settled, &slot.shown));
            for (view, shown) in std::iter::once((View::Live, &delta.shown)).chain(settled) {
                for (arm, lists) in shown.by_arm() {
                    shared.with_windows(arms, arm, |windows| {
                        windows.covered.observe(pair, view, lists, covering.catalogue());
                    });
                }
            }
        }
    }

    /// Adds a pair with the settled numbers of its ledger: totals, and spans as long as the cells of each window. The
    /// deltas that follow continue from there.
    pub fn resume(&self, pair: PairId, ledger: &Ledger, reach: CountingProgress) {
        // Computed before the gate is taken, to keep scrapes waiting as briefly as possible.
        let base = base::of(ledger, &self.shape.cells_ms);
        // Both views start with the settled numbers. Lists that are read again add to the live view only as far as they had not
        // settled.
        self.begin(&mut self.alone(), pair, ledger, reach, base, &View::BOTH);
    }

    /// Replaces the state of a pair with settled numbers. The pair must not be in the live view. No scrape sees an intermediate
    /// state, and a pair that was shown stays shown.
    pub fn replace(&self, pair: PairId, ledger: &Ledger, reach: CountingProgress) {
        let base = base::of(ledger, &self.shape.cells_ms);
        let mut shared = self.alone();
        // The new state may have settled less far than the old one, and ends must not move back.
        of(&mut shared.progress).note_settled_end();
        self.drop_sums(&mut shared, pair, ledger.arms());
        self.begin(&mut shared, pair, ledger, reach, base, &[View::Settled]);
    }

    /// Adds a pair with the numbers of its ledger in these views.
    fn begin(
        &self,
        shared: &mut Gated,
        pair: PairId,
        ledger: &Ledger,
        reach: CountingProgress,
        base: Bases,
        views: &[View],
    ) {
        self.admit(shared, pair, ledger.arms());
        let until_ms = shared.with_progress(|progress| {
            progress.set_reach(pair, reach);
            progress.until_ms()
        });
        if !reach.is_exact {
            self.note(Err(Overflow));
        }
        let (bases, exact) = base;
        self.note(exact);
        for (arm, base) in &bases {
            shared.with_windows(ledger.arms(), *arm, |windows| {
                self.note(windows.resume(pair, base, views, until_ms, &self.shape));
            });
        }
        if let Some(covering) = &shared.covering {
            self.resume_coverage(shared, covering, pair, ledger, views);
        }
    }

    fn resume_coverage(
        &self,
        shared: &Gated,
        covering: &Covering,
        pair: PairId,
        ledger: &Ledger,
        views: &[View],
    ) {
        let windows = base::windows(ledger, &self.shape.cells_ms);
        for (cell_ms, span) in windows.iter().map(|(_, cell_ms, span)| (*cell_ms, *span)) {
            for (number, cell) in ledger.cells(span) {
                for (arm, items) in cell.seen {
                    shared.with_windows(ledger.arms(), *arm, |windows| {
                        windows
                            .covered
                            .resume(pair, views, number * cell_ms, items, covering.catalogue());
                    });
                }
            }
        }
        // The ledger holds which items were shown, but not when. They are dated before all windows, so that they count only
        // in the total.
        let cell_ms = self.shape.cells_ms.iter().max().copied().unwrap_or_default();
        let before_ms = ledger.until_ms().unwrap_or_default() - (N_CELLS + 1) * cell_ms;
        for (arm, items) in ledger.total().seen {
            shared.with_windows(ledger.arms(), *arm, |windows| {
                let start_ms = windows.total_from_ms.max(before_ms);
                windows
                    .covered
                    .resume(pair, views, start_ms, items, covering.catalogue());
            });
        }
    }

    /// Makes room for the arms newly admitted by a pair.
    fn admit(&self, shared: &mut Gated, pair: PairId, admitted: &[Arm]) {
        let Gated {
            arms,
            pairs,
            order,
            covering,
            ..
        } = shared;
        // Arms are numbered in the order of admission, so new ones go to the end.
        pairs.entry(pair).or_default().extend_from_slice(admitted);
        for arm in admitted {
            let new = || {
                order.insert(arm.clone());
                let start_ms = self.experiment_starts.get(&*arm.experiment);
                ArmWindows::new(start_ms.copied().unwrap_or(i64::MIN))
            };
            let mut windows = arms.entry(arm.clone()).or_insert_with(new);
            windows.admit(pair, &self.shape);
            // Coverage has its own memory bound, which may leave the arm out.
            if let Some(covering) = covering {
                covering.admit(&mut windows.covered, pair);
            }
        }
        self.note_left_out(shared);
    }

    fn shared(&self) -> RwLockReadGuard<'_, Gated> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Gated> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, exact: Result<(), Overflow>) {
        if exact.is_err() {
            self.exact.store(false, Ordering::Relaxed);
        }
    }

    fn note_left_out(&self, shared: &Gated) {
        let n = shared.covering.as_ref().map_or(0, Covering::n_left_out);
        self.n_arms_without_coverage.store(n, Ordering::Relaxed);
    }

    /// Sets the catalogue with which coverage is measured from now on. Engines must take it after the board.
    pub fn set_catalogue(&self, catalogue: Arc<Catalogue>) {
        let mut shared = self.alone();
        let Gated {
            arms,
            order,
            covering,
            ..
        } = &mut *shared;
        if let Some(covering) = covering {
            covering.set_catalogue(catalogue);
            // The order is the same in every process, because it decides which arms have room.
            for name in &*order {
                if let Some(mut windows) = arms.get_mut(name) {
                    covering.readmit(&mut windows.covered);
                }
            }
        }
        self.note_left_out(&shared);
    }

    /// Returns the number of arms without coverage because its memory bound was reached. Never blocks.
    pub fn n_arms_without_coverage(&self) -> u64 {
        self.n_arms_without_coverage.load(Ordering::Relaxed)
    }

    /// Moves the end of the live windows forward. It never moves back.
    pub fn set_live_end(&self, ms: i64) {
        self.shared().with_progress(|progress| progress.set_live_end(ms));
    }

    /// Caps the shown windows at these ends, by view (Unix ms). Later slots wait.
    pub fn show_until(&self, until_ms: [i64; 2]) {
        self.shared()
            .with_progress(|progress| progress.show_until(until_ms));
    }

    /// Shows a pair that has caught up in both views.
    pub fn show(&self, pair: PairId) {
        View::BOTH.into_iter().for_each(|view| self.show_in(view, pair));
    }

    /// Sets a callback that every pair needs to be shown, from now on. It is called at each scrape and must not block.
    pub fn show_while(&self, lease: Lease) {
        self.alone().lease = Some(lease);
    }

    /// Returns whether this process may show the settled numbers of a pair: they are current, and ownership is certain.
    pub fn owns(&self, pair: PairId) -> bool {
        self.shared().lease.as_ref().is_some_and(|lease| lease(pair)[1])
    }

    /// Shows a pair in one view. A resumed pair is complete in the settled view before its log is re-read.
    pub fn show_in(&self, view: View, pair: PairId) {
        self.shared().with_progress(|progress| progress.show(pair, view));
    }

    /// Hides a pair from the views immediately, but keeps its sums.
    pub fn hide(&self, pair: PairId) {
        self.shared().with_progress(|progress| progress.hide(pair));
    }

    /// Removes a pair and its sums.
    pub fn remove(&self, pair: PairId) {
        let mut shared = self.alone();
        of(&mut shared.progress).remove(pair);
        self.drop_sums(&mut shared, pair, &[]);
        self.note_left_out(&shared);
    }

    /// Drops the sums of a pair, and arms left without any pair, unless they are about to be `kept`.
    fn drop_sums(&self, shared: &mut Gated, pair: PairId, kept: &[Arm]) {
        let Gated {
            arms,
            pairs,
            order,
            covering,
            ..
        } = shared;
        let kept: HashSet<&Arm> = kept.iter().collect();
        for arm in pairs.remove(&pair).unwrap_or_default() {
            let Some(mut windows) = arms.get_mut(&arm) else {
                continue;
            };
            windows.remove(pair, &self.shape);
            if let Some(covering) = covering {
                covering.remove(&mut windows.covered, pair);
            }
            // The arm stays if another pair has it, or if it is about to be admitted again.
            if windows.is_empty() && !kept.contains(&arm) {
                if let Some(covering) = covering {
                    covering.forget(&windows.covered);
                }
                // Release the entry before changing the map: DashMap would deadlock.
                drop(windows);
                arms.remove(&arm);
                order.remove(&arm);
            }
        }
    }

    /// Returns whether every sum is exact, that is, none has overflowed. Never blocks.
    pub fn is_exact(&self) -> bool {
        self.exact.load(Ordering::Relaxed)
    }

    /// Returns whether a scrape holds the gate, so that a hand-over would have to wait.
    pub fn is_being_copied(&self) -> bool {
        matches!(self.gate.try_read(), Err(TryLockError::WouldBlock))
    }

    /// Runs `go` with the gate held, as during a scrape.
    #[cfg(test)]
    pub fn while_copied(&self, go: impl FnOnce()) {
        let _shared = self.alone();
        go();
    }
}

/// Tally of an arm in a slot, on its way to the windows.
struct ArmTally<'a> {
    view: View,
    of: ArmInSlot,
    tally: &'a [i64],
}

fn rows(delta: &PairDelta) -> impl Iterator<Item = ArmTally<'_>> {
    let live = delta.live.iter().map(|(of, tally)| ArmTally {
        view: View::Live,
        of,
        tally,
    });
    let settled = delta.settled.iter().flat_map(|slot| {
        slot.tallies.iter().map(|(arm, tally)| {
            let of = ArmInSlot {
                arm,
                start_ms: slot.start_ms,
                last_list_ms: None,
            };
            ArmTally {
                view: View::Settled,
                of,
                tally,
            }
        })
    });
    live.chain(settled)
}

impl Gated {
    /// Runs `act` on the progress under its lock. The closure sees only the progress, so it cannot take another lock.
    fn with_progress<T>(&self, act: impl FnOnce(&mut BoardProgress) -> T) -> T {
        act(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `act` on the windows of an arm, given by its number in the pair, under their lock. The closure sees only these
    /// windows, so it cannot take another lock.
    fn with_windows(&self, arms: &[Arm], arm: ArmId, act: impl FnOnce(&mut ArmWindows)) {
        let windows = self.arms.get_mut(&arms[arm as usize]);
        act(&mut windows.expect("an arm is admitted before anything is added to it"));
    }
}

/// Returns the value, even of a poisoned lock: nothing panics between two changes that belong together, so the value is
/// valid.
fn of<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl SnapshotSource for Board {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        // Exclusive access, so that no hand-over is half done while the sums are copied.
        let mut shared = self.alone();
        let Gated {
            arms,
            progress,
            order,
            covering,
            lease,
            ..
        } = &mut *shared;
        let progress = of(progress);
        let ends = progress.ends();
        let shown = progress.shown(lease.as_ref());
        [snapshot.live_end_ms, snapshot.settled_end_ms] = ends.ends_ms;
        let begin_ms = progress.reaches().filter_map(|reach| reach.begin_ms).max();
        let first_ms = progress
            .reaches()
            .filter_map(|reach| reach.first_accepted_ms)
            .min();
        // Sums are complete only from the latest start of any pair on.
        snapshot.since_ms = begin_ms.or(first_ms);
        snapshot.folded_arms = progress.reaches().map(|reach| reach.n_folded).sum();
        snapshot.arms_without_coverage = self.n_arms_without_coverage();
        // Rows of the earlier snapshot are reused, place by place.
        snapshot.arms.truncate(order.len());
        for (place, name) in order.iter().enumerate() {
            if place == snapshot.arms.len() {
                snapshot.arms.push(self.blank());
            }
            let arm = &mut snapshot.arms[place];
            arm.experiment.clone_from(&name.experiment);
            arm.arm.clone_from(&name.arm);
            arm.timelines = None;
            let Some(mut windows) = arms.get_mut(name) else {
                continue;
            };
            // A window without new lists has to slide to the current end as well, before it is added up.
            self.note(windows.advance(&shown, &ends, &self.shape));
            windows.add_up(&shown, &ends, arm);
            if let Some(covering) = covering {
                let total_from_ms = windows.total_from_ms;
                let covered = &mut windows.covered;
                covering.fill(covered, total_from_ms, &shown, &self.shape.cells_ms, &ends, arm);
            }
        }
        // Arms without a list in any shown pair still have the blank time.
        snapshot.arms.retain(|arm| arm.last_list_ms != i64::MIN);
        if let Some(window) = timelines {
            for arm in with_most_lists(&mut snapshot.arms) {
                let windows = arms.get(&name_of(arm));
                arm.timelines = windows.map(|windows| self.timelines_of(&windows, &shown, &ends, window));
            }
        }
    }

    fn timelines(&self, window: usize, reported: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        let mut shared = self.alone();
        let Gated {
            arms,
            progress,
            lease,
            ..
        } = &mut *shared;
        let progress = of(progress);
        let (ends, shown) = (progress.ends(), progress.shown(lease.as_ref()));
        let of_arm = |arm: &&ArmSnapshot| {
            let mut windows = arms
                .get_mut(&name_of(arm))
                .filter(|windows| windows.is_of(&shown))?;
            self.note(windows.advance(&shown, &ends, &self.shape));
            Some(self.timelines_of(&windows, &shown, &ends, window))
        };
        reported.iter().map(of_arm).collect()
    }
}

fn name_of(arm: &ArmSnapshot) -> Arm {
    Arm {
        experiment: Arc::clone(&arm.experiment),
        arm: Arc::clone(&arm.arm),
    }
}

/// Returns the arms whose cells go into a snapshot. Cells of ten thousand arms would take gigabytes.
fn with_most_lists(arms: &mut [ArmSnapshot]) -> impl Iterator<Item = &mut ArmSnapshot> {
    let mut arms: Vec<&mut ArmSnapshot> = arms.iter_mut().collect();
    // The sort is stable, so equal arms keep their order by name.
    arms.sort_by_key(|arm| Reverse(arm.n_lists()));
    arms.into_iter().take(MAX_TIMELINES)
}

impl Board {
    fn blank(&self) -> ArmSnapshot {
        let n_rows = self.shape.cells_ms.len() + 1;
        let of_view = || vec![vec![0; self.width].into_boxed_slice(); n_rows];
        ArmSnapshot {
            experiment: "".into(),
            arm: "".into(),
            last_list_ms: i64::MIN,
            sums: View::BOTH.map(|_| of_view()),
            timelines: None,
        }
    }

    /// Returns the cells of one window of an arm, by `View as usize`.
    fn timelines_of(
        &self,
        windows: &ArmWindows,
        shown: &ShownPairs,
        ends: &WindowEnds,
        window: usize,
    ) -> [Timeline; 2] {
        let mut timelines = ends
            .ends_ms
            .map(|end_ms| self.timeline(window, end_ms.unwrap_or(0)));
        windows.add_cells(shown, window, self.width, &mut timelines);
        timelines
    }

    /// Returns empty cells up to an end.
    fn timeline(&self, window: usize, end_ms: i64) -> Timeline {
        let cell_ms = self.shape.cells_ms[window];
        Timeline {
            start_ms: (end_ms.div_euclid(cell_ms) - (N_CELLS - 1)) * cell_ms,
            cell_ms,
            cells: vec![None; N_CELLS as usize],
        }
    }
}

impl Timeline {
    /// Adds cells by their number: Unix ms ÷ cell length. They have at most `width` columns.
    fn add<'a>(&mut self, width: usize, cells: impl Iterator<Item = (i64, &'a Cell)>) {
        let first = self.start_ms / self.cell_ms;
        for (number, cell) in cells {
            // Cells may lie before the start, or beyond the end.
            let place = usize::try_from(number - first).ok();
            let Some(sums) = place.and_then(|place| self.cells.get_mut(place)) else {
                continue;
            };
            let sums = sums.get_or_insert_with(|| vec![0; width].into());
            let columns = sums.iter_mut().zip(cell.sums());
            columns.for_each(|(sum, term)| *sum += i128::from(*term));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
