//! What all arms add up to: the only shared mutable state, written by workers, read by scrapes.
//!
//! Each pair of partitions has its own part, so that a pair that is taken away takes its numbers with it at once. A
//! hand-over locks the part of its pair, once, and shares the gate with those of other pairs; a scrape has the gate
//! alone for as long as it takes to copy the sums, so it sees whole batches only. A worker that meets one hands over
//! later, within a second. Distinct counts do not add up: each arm keeps what each pair has shown of the catalogue,
//! within a bound on memory, and their union is counted at a scrape.

mod ahead;
mod covered;
mod part;
mod runs;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use dashmap::DashMap;

use covered::{Covered, Covering, Instant};
use part::{Part, Row};

use crate::config::{self, Config};
use crate::engine::catalogue::Catalogue;
use crate::engine::ranking::{LISTS, Ranking};
use crate::engine::window::{N_CELLS, Overflow};
use crate::engine::{Arm, ArmId, ArmInSlot};
use crate::ledger::{PairDelta, Reach};
use crate::snapshot::{ArmSnapshot, Snapshot, Source, Timeline, View};

/// Arms whose cells a snapshot holds at most.
const MAX_TIMELINES: usize = 200;

/// The partition number that both topics of a pair share.
pub type Pair = i32;

pub struct Board {
    windows: Vec<config::Window>,
    width: usize,
    n_of_new_list: usize,
    /// By experiment: slots that begin before this (epoch ms) do not count in its `total`.
    experiment_starts: BTreeMap<String, i64>,
    covering: Option<Covering>,
    /// The gate: shared by hand-overs, each of which locks one part; a scrape has it alone.
    parts: RwLock<Parts>,
    /// No sum has run over.
    exact: AtomicBool,
    /// Every arm that a part has, by name.
    arms: DashMap<Arm, Arc<Entry>>,
    order: Mutex<Order>,
    progress: Mutex<Progress>,
}

type Parts = BTreeMap<Pair, Mutex<Part>>;

/// An arm, whichever pairs add to it.
#[derive(Debug)]
struct Entry {
    arm: Arm,
    /// Slots that begin before this (epoch ms) do not count in its total.
    total_from_ms: i64,
    /// Its number in each pair that has it.
    parts: Mutex<Vec<(Pair, ArmId)>>,
    covered: Mutex<Covered>,
}

/// All arms by name, as snapshots show them.
#[derive(Debug, Default)]
struct Order {
    entries: Vec<Arc<Entry>>,
    /// Arms have come or gone since it was put in order.
    stale: bool,
    /// How often it was.
    version: u64,
}

/// How far the pairs have come.
#[derive(Debug, Default)]
struct Progress {
    live_end_ms: Option<i64>,
    /// The furthest that a shown pair has ever settled: windows do not slide back when that pair is taken away.
    settled_end_ms: Option<i64>,
    /// No window is shown to end after this, by view.
    until_ms: [Option<i64>; 2],
    /// The furthest ends that were shown, by view.
    shown_ends_ms: [Option<i64>; 2],
    pairs: HashMap<Pair, PairProgress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PairProgress {
    /// Caught up, and owned.
    shown: bool,
    reach: Reach,
}

impl Board {
    /// An empty board for tallies of this ranking.
    pub fn new(config: &Config, ranking: &Ranking) -> Board {
        let cells_ms = config.windows.iter().map(config::Window::cell_ms).collect();
        let max_bytes = config.limits.max_coverage_bytes;
        let columns = ranking.coverage().cloned();
        Board {
            windows: config.windows.clone(),
            width: ranking.width(),
            n_of_new_list: ranking.n_of_new_list(),
            experiment_starts: config.experiment_starts.clone(),
            covering: columns.map(|columns| Covering::new(columns, config.join.slot_ms, cells_ms, max_bytes)),
            parts: RwLock::default(),
            arms: DashMap::new(),
            order: Mutex::default(),
            progress: Mutex::default(),
            exact: AtomicBool::new(true),
        }
    }

    /// Takes over what has changed in a pair. All deltas of a pair come in their order, from the first one on, until it is
    /// [removed](Self::remove).
    pub fn merge(&self, pair: Pair, delta: &PairDelta) {
        let live = delta.live.iter().map(|(of, sums)| Row { of, sums });
        let settled = delta.settled.iter().flat_map(|slot| {
            let of = |arm| ArmInSlot {
                arm,
                start_ms: slot.start_ms,
                last_list_ms: None,
            };
            let rows = slot.tallies.iter();
            rows.map(move |(arm, sums)| Row { of: of(arm), sums })
        });
        let (live, settled) = (part::in_order(live), part::in_order(settled));
        let until_ms = self.progress().until_ms();
        let parts = self.shared_with(pair);
        let mut part = lock(&parts[&pair]);
        self.admit(pair, &mut part, &delta.arms);
        let mut exact = delta.reach.is_exact.then_some(()).ok_or(Overflow);
        for (view, rows) in View::BOTH.into_iter().zip([&live, &settled]) {
            exact = exact.and(part.add_all(view, rows, until_ms[view as usize]));
        }
        if let Some(covering) = &self.covering {
            covering.note(pair, &part, delta);
        }
        if exact.is_err() {
            self.exact.store(false, Ordering::Relaxed);
        }
        self.progress().pairs.entry(pair).or_default().reach = delta.reach;
    }

    /// The gate, shared, and a part of this pair behind it.
    fn shared_with(&self, pair: Pair) -> RwLockReadGuard<'_, Parts> {
        let shared = || self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let parts = shared();
        if parts.contains_key(&pair) {
            return parts;
        }
        drop(parts);
        let new = || Mutex::new(Part::new(&self.windows, self.width, self.n_of_new_list));
        self.alone().entry(pair).or_insert_with(new);
        shared()
    }

    /// Before the gate: so that what is counted of the catalogue does not change meanwhile.
    fn turn_to_count(&self) -> Option<MutexGuard<'_, ()>> {
        self.covering.as_ref().map(Covering::turn)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Parts> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a part the arms that its pair has admitted since.
    fn admit(&self, pair: Pair, part: &mut Part, arms: &[Arm]) {
        for arm in arms {
            let entry = self.entry(arm);
            lock(&entry.parts).push((pair, part.n_arms() as ArmId));
            if let Some(covering) = &self.covering {
                // An arm whose lists show nothing has a count too: 0.
                covering.admit(&mut lock(&entry.covered), pair, &covering.catalogue());
            }
            part.push(entry);
        }
    }

    fn entry(&self, arm: &Arm) -> Arc<Entry> {
        let new = || {
            let start = self.experiment_starts.get(&*arm.experiment);
            let entry = Arc::new(Entry {
                arm: arm.clone(),
                total_from_ms: start.copied().unwrap_or(i64::MIN),
                parts: Mutex::default(),
                covered: Mutex::default(),
            });
            let mut order = lock(&self.order);
            order.entries.push(Arc::clone(&entry));
            order.stale = true;
            entry
        };
        Arc::clone(&*self.arms.entry(arm.clone()).or_insert_with(new))
    }

    /// Counts coverage by this catalogue from now on. Engines take it after the board.
    pub fn set_catalogue(&self, catalogue: Arc<Catalogue>) {
        let _turn = self.turn_to_count();
        let _alone = self.alone();
        if let Some(covering) = &self.covering {
            covering.set_catalogue(catalogue);
            let arms = self.arms.iter();
            arms.for_each(|entry| covering.readmit(&mut lock(&entry.covered)));
        }
    }

    /// Arms without coverage because of its bound on memory.
    pub fn n_arms_without_coverage(&self) -> u64 {
        self.covering.as_ref().map_or(0, Covering::n_left_out)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// Moves the end of the live windows on; it never falls.
    pub fn set_live_end(&self, ms: i64) {
        let mut progress = self.progress();
        progress.live_end_ms = progress.live_end_ms.max(Some(ms));
    }

    /// Shows no window beyond these ends, by view (epoch ms). What lies ahead of them waits.
    pub fn show_until(&self, until_ms: [i64; 2]) {
        self.progress().until_ms = until_ms.map(Some);
    }

    /// Lets a pair that is caught up into the views.
    pub fn show(&self, pair: Pair) {
        let _alone = self.alone();
        self.progress().pairs.entry(pair).or_default().shown = true;
    }

    /// Takes a pair's part out of the views at once, and keeps it.
    pub fn hide(&self, pair: Pair) {
        let _alone = self.alone();
        let mut progress = self.progress();
        progress.note_settled_end();
        if let Some(progress) = progress.pairs.get_mut(&pair) {
            progress.shown = false;
        }
    }

    /// Forgets a pair.
    pub fn remove(&self, pair: Pair) {
        let _turn = self.turn_to_count();
        let mut parts = self.alone();
        if let Some(covering) = &self.covering {
            covering.note_queued();
        }
        let mut progress = self.progress();
        progress.note_settled_end();
        progress.pairs.remove(&pair);
        drop(progress);
        let Some(part) = parts.remove(&pair) else {
            return;
        };
        for entry in lock(&part).entries() {
            let mut of_arm = lock(&entry.parts);
            of_arm.retain(|(other, _)| *other != pair);
            let is_left = !of_arm.is_empty();
            let mut covered = lock(&entry.covered);
            match &self.covering {
                Some(covering) if is_left => covering.remove(&mut covered, pair),
                Some(covering) => covering.forget(&covered),
                None => {}
            }
            if !is_left {
                self.arms.remove(&entry.arm);
            }
        }
        let mut order = lock(&self.order);
        order.entries.retain(|entry| !lock(&entry.parts).is_empty());
        order.stale = true;
    }

    /// Whether every sum is exact: none has run over. Never waits.
    pub fn is_exact(&self) -> bool {
        self.exact.load(Ordering::Relaxed)
    }

    /// Whether a scrape has the gate, so that whoever hands over would wait for it.
    pub fn is_being_copied(&self) -> bool {
        matches!(self.parts.try_read(), Err(TryLockError::WouldBlock))
    }

    /// Lets `go` happen while a scrape copies.
    #[cfg(test)]
    pub fn while_copied(&self, go: impl FnOnce()) {
        let _parts = self.alone();
        let _progress = self.progress();
        go();
    }
}

impl Source for Board {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        // Most of it is laid out before the gate is taken; arms that come in between are seldom.
        let version = self.lay_out(&mut snapshot.arms);
        let turn = self.turn_to_count();
        let mut parts = self.alone();
        if !lock(&self.order).is_still(version) {
            self.lay_out(&mut snapshot.arms);
        }
        let mut progress = self.progress();
        let ends = progress.ends();
        let [live_end_ms, settled_end_ms] = ends;
        let shown = || progress.pairs.values().filter(|pair| pair.shown);
        let begin_ms = shown().filter_map(|pair| pair.reach.begin_ms).max();
        let first_ms = shown().filter_map(|pair| pair.reach.first_accepted_ms).min();
        let mut shown_parts = progress.shown_parts(&mut parts);
        self.release(&mut shown_parts, progress.until_ms());
        snapshot.live_end_ms = live_end_ms;
        snapshot.settled_end_ms = settled_end_ms;
        snapshot.since_ms = begin_ms.or(first_ms);
        snapshot.folded_arms = shown().map(|pair| pair.reach.n_folded).sum();
        snapshot.arms_without_coverage = self.n_arms_without_coverage();
        let order = lock(&self.order);
        let mut low = vec![0; 2 * (self.windows.len() + 1) * self.width];
        for (entry, arm) in order.entries.iter().zip(&mut snapshot.arms) {
            add_up(entry, &mut shown_parts, ends, &mut low, arm);
        }
        if let Some(window) = timelines {
            self.add_timelines(&order.entries, &shown_parts, ends, window, &mut snapshot.arms);
        }
        if let Some(covering) = &self.covering {
            covering.note_queued();
            let instant = Instant {
                ends,
                shown: shown_parts.iter().map(|(pair, _)| *pair).collect(),
                catalogue: covering.catalogue(),
            };
            let entries = order.entries.clone();
            drop(order);
            drop(progress);
            drop(parts);
            count_covered(covering, &entries, &instant, &mut snapshot.arms);
        }
        drop(turn);
        snapshot.arms.retain(|arm| arm.last_list_ms != i64::MIN);
    }

    fn timelines(&self, window: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        let entry = |arm: &&ArmSnapshot| {
            let (experiment, arm) = (Arc::clone(&arm.experiment), Arc::clone(&arm.arm));
            let entry = self.arms.get(&Arm { experiment, arm })?;
            Some(Arc::clone(&entry))
        };
        let entries: Vec<Option<Arc<Entry>>> = arms.iter().map(entry).collect();
        let mut parts = self.alone();
        let mut progress = self.progress();
        let ends = progress.ends();
        let mut shown = progress.shown_parts(&mut parts);
        self.release(&mut shown, progress.until_ms());
        let entries = entries.iter();
        entries
            .map(|entry| {
                let entry = entry.as_ref()?;
                let is_shown = !parts_of(entry, &shown).is_empty();
                is_shown.then(|| self.timelines_of(entry, &shown, ends, window))
            })
            .collect()
    }
}

/// The parts that are shown, by pair.
type ShownParts<'a> = Vec<(Pair, &'a mut Part)>;

/// The shown parts that an arm has, as their index, and its number there.
fn parts_of(entry: &Entry, shown: &ShownParts) -> Vec<(usize, ArmId)> {
    let parts = lock(&entry.parts);
    let places = parts.iter().filter_map(|(pair, id)| {
        let place = shown.binary_search_by_key(pair, |(pair, _)| *pair).ok()?;
        Some((place, *id))
    });
    places.collect()
}

/// Adds up what the shown pairs have of an arm; without any, it keeps no last list. `low` is as wide as all sums.
fn add_up(
    entry: &Entry,
    shown: &mut ShownParts,
    ends: [Option<i64>; 2],
    low: &mut [i64],
    arm: &mut ArmSnapshot,
) {
    let parts = parts_of(entry, shown);
    low.fill(0);
    let mut is_low = true;
    for (place, id) in &parts {
        let part = &mut shown[*place].1;
        part.advance(*id, ends);
        let (sums, last_list_ms) = part.sums(*id);
        arm.last_list_ms = arm.last_list_ms.max(last_list_ms);
        is_low &= sums.add_to_low(low);
    }
    let rows = arm.sums.iter_mut().flatten().enumerate();
    for (row, sums) in rows {
        if is_low {
            let low = &low[row * sums.len()..];
            let columns = sums.iter_mut().zip(low);
            columns.for_each(|(sum, low)| *sum = i128::from(*low));
            continue;
        }
        sums.fill(0);
        for (place, id) in &parts {
            shown[*place].1.sums(*id).0.add_to(row, sums);
        }
    }
}

/// Counts the distinct items of each arm.
fn count_covered(covering: &Covering, entries: &[Arc<Entry>], instant: &Instant, arms: &mut [ArmSnapshot]) {
    for (entry, arm) in entries.iter().zip(arms) {
        let mut covered = lock(&entry.covered);
        for view in View::BOTH {
            let sums = &mut arm.sums[view as usize];
            covering.fill(instant, &mut covered, view, entry.total_from_ms, sums);
        }
    }
}

impl Order {
    fn put_in_order(&mut self) {
        if std::mem::take(&mut self.stale) {
            self.version += 1;
            // What was in order stays so: a merge of two runs, not a sort.
            self.entries.sort_by(|a, b| a.arm.cmp(&b.arm));
        }
    }

    fn is_still(&self, version: u64) -> bool {
        !self.stale && self.version == version
    }
}

impl Progress {
    /// Takes note of how far the shown pairs have settled, before one is taken away: distinct counts have slid that far.
    fn note_settled_end(&mut self) {
        let shown = self.pairs.values().filter(|pair| pair.shown);
        let furthest_ms = shown.filter_map(|pair| pair.reach.settled_end_ms).max();
        self.settled_end_ms = self.settled_end_ms.max(furthest_ms);
    }

    fn until_ms(&self) -> [i64; 2] {
        self.until_ms.map(|until_ms| until_ms.unwrap_or(i64::MAX))
    }

    /// Where the windows end that are shown, by view. They do not fall.
    fn ends(&mut self) -> [Option<i64>; 2] {
        self.note_settled_end();
        let ends = [self.live_end_ms.max(self.settled_end_ms), self.settled_end_ms];
        let until_ms = self.until_ms();
        for (shown, (end, until_ms)) in self.shown_ends_ms.iter_mut().zip(ends.into_iter().zip(until_ms)) {
            *shown = (*shown).max(end.map(|end| end.min(until_ms)));
        }
        self.shown_ends_ms
    }

    fn shows(&self, pair: Pair) -> bool {
        self.pairs.get(&pair).is_some_and(|pair| pair.shown)
    }

    fn shown_parts<'a>(&self, parts: &'a mut Parts) -> ShownParts<'a> {
        let shown = parts.iter_mut().filter(|(pair, _)| self.shows(**pair));
        shown
            .map(|(pair, part)| (*pair, part.get_mut().unwrap_or_else(PoisonError::into_inner)))
            .collect()
    }
}

impl Board {
    /// Makes `arms` those of the board, by name, without lists; what stands there already is used again. Returns the
    /// version of the order that they stand in.
    fn lay_out(&self, arms: &mut Vec<ArmSnapshot>) -> u64 {
        let mut order = lock(&self.order);
        order.put_in_order();
        arms.truncate(order.entries.len());
        for (place, entry) in order.entries.iter().enumerate() {
            match arms.get_mut(place) {
                Some(arm) => {
                    arm.experiment.clone_from(&entry.arm.experiment);
                    arm.arm.clone_from(&entry.arm.arm);
                    arm.last_list_ms = i64::MIN;
                    arm.timelines = None;
                }
                None => arms.push(self.blank(&entry.arm)),
            }
        }
        order.version
    }

    /// Adds what waited for its time to the windows.
    fn release(&self, parts: &mut ShownParts, until_ms: [i64; 2]) {
        let released = parts.iter_mut().map(|(_, part)| part.release(until_ms));
        if released.fold(Ok(()), Result::and).is_err() {
            self.exact.store(false, Ordering::Relaxed);
        }
    }

    fn blank(&self, arm: &Arm) -> ArmSnapshot {
        let of_view = || vec![vec![0; self.width].into_boxed_slice(); self.windows.len() + 1];
        ArmSnapshot {
            experiment: arm.experiment.clone(),
            arm: arm.arm.clone(),
            last_list_ms: i64::MIN,
            sums: View::BOTH.map(|_| of_view()),
            timelines: None,
        }
    }

    /// Adds the cells of one window to the arms with the most lists: those of ten thousand arms would be gigabytes.
    fn add_timelines(
        &self,
        entries: &[Arc<Entry>],
        parts: &ShownParts,
        ends: [Option<i64>; 2],
        window: usize,
        arms: &mut [ArmSnapshot],
    ) {
        let total = self.windows.len();
        let shown = (0..arms.len()).filter(|place| arms[*place].last_list_ms != i64::MIN);
        let mut places: Vec<usize> = shown.collect();
        places.sort_by_key(|place| Reverse(arms[*place].sums(View::Live, total)[LISTS]));
        for place in places.into_iter().take(MAX_TIMELINES) {
            arms[place].timelines = Some(self.timelines_of(&entries[place], parts, ends, window));
        }
    }

    /// The cells of one window of an arm, by `View as usize`.
    fn timelines_of(
        &self,
        entry: &Entry,
        parts: &ShownParts,
        ends: [Option<i64>; 2],
        window: usize,
    ) -> [Timeline; 2] {
        let mut timelines = ends.map(|end_ms| self.timeline(window, end_ms.unwrap_or(0)));
        for (part, id) in parts_of(entry, parts) {
            for (view, timeline) in View::BOTH.into_iter().zip(&mut timelines) {
                timeline.add(self.width, parts[part].1.cells(id, view, window));
            }
        }
        timelines
    }

    /// Empty cells up to an end.
    fn timeline(&self, window: usize, end_ms: i64) -> Timeline {
        let cell_ms = self.windows[window].cell_ms();
        Timeline {
            start_ms: (end_ms.div_euclid(cell_ms) - (N_CELLS - 1)) * cell_ms,
            cell_ms,
            cells: vec![None; N_CELLS as usize],
        }
    }
}

impl Timeline {
    /// Adds cells by their number: epoch ms ÷ cell length. Of `width` columns each has the first ones, the others are zero.
    fn add<'a>(&mut self, width: usize, cells: impl Iterator<Item = (i64, &'a [i64])>) {
        let first = self.start_ms / self.cell_ms;
        for (number, cell) in cells {
            let place = usize::try_from(number - first).ok();
            let Some(sums) = place.and_then(|place| self.cells.get_mut(place)) else {
                continue;
            };
            let sums = sums.get_or_insert_with(|| vec![0; width].into());
            let columns = sums.iter_mut().zip(cell);
            columns.for_each(|(sum, term)| *sum += i128::from(*term));
        }
    }
}

/// Nothing panics between two states that belong together, so what a lock guards is sound whoever panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
