//! What all arms add up to: the only shared mutable state, written by workers, read by scrapes.
//!
//! Each pair of partitions has its own part, so that a pair that is taken away takes its numbers with it at once. A
//! hand-over locks the part of its pair, once, and shares the gate with those of other pairs; a scrape has the gate
//! alone for as long as it takes to copy the sums, so it sees whole batches only. Distinct counts do not add up: each
//! arm keeps what each pair has shown of the catalogue, within a bound on memory, and their union is counted at a
//! scrape.

mod covered;
mod part;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use dashmap::DashMap;

use covered::{Covered, Covering};
use part::Part;

use crate::config::{self, Config};
use crate::engine::catalogue::Catalogue;
use crate::engine::ranking::{LISTS, Ranking};
use crate::engine::window::{N_CELLS, Overflow};
use crate::engine::{Arm, ArmId, Changes, Engine};
use crate::snapshot::{ArmSnapshot, Snapshot, Source, Timeline, View};

/// Arms whose cells a snapshot holds at most.
const MAX_TIMELINES: usize = 200;

/// The partition number that both topics of a pair share.
pub type Pair = i32;

pub struct Board {
    windows: Vec<config::Window>,
    width: usize,
    /// By experiment: slots that begin before this (epoch ms) do not count in its `total`.
    experiment_starts: BTreeMap<String, i64>,
    covering: Option<Covering>,
    /// The gate: shared by hand-overs, each of which locks one part; a scrape has it alone.
    parts: RwLock<Parts>,
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
    n_parts: AtomicUsize,
    /// Where it stands in the [`Order`].
    place: AtomicUsize,
    covered: Mutex<Covered>,
}

/// All arms by name, as snapshots show them.
#[derive(Debug, Default)]
struct Order {
    entries: Vec<Arc<Entry>>,
    /// Arms have come or gone since places were given.
    stale: bool,
    /// How often places were given.
    version: u64,
}

/// How far the pairs have come.
#[derive(Debug, Default)]
struct Progress {
    live_end_ms: Option<i64>,
    /// The furthest that a shown pair has ever settled: windows do not slide back when that pair is taken away.
    settled_end_ms: Option<i64>,
    pairs: HashMap<Pair, PairProgress>,
    exact: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct PairProgress {
    /// Caught up, and owned.
    shown: bool,
    settled_end_ms: Option<i64>,
    begin_ms: Option<i64>,
    first_accepted_ms: Option<i64>,
    n_folded: u64,
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
            experiment_starts: config.experiment_starts.clone(),
            covering: columns.map(|columns| Covering::new(columns, config.join.slot_ms, cells_ms, max_bytes)),
            parts: RwLock::default(),
            arms: DashMap::new(),
            order: Mutex::default(),
            progress: Mutex::new(Progress {
                exact: true,
                ..Progress::default()
            }),
        }
    }

    /// Takes over what has changed in the engine of a pair; the caller clears the engine's changes after it. A pair
    /// keeps its engine until it is [removed](Self::remove).
    pub fn merge(&self, pair: Pair, engine: &Engine) {
        let changes = engine.changes();
        let parts = self.shared_with(pair);
        let mut part = lock(&parts[&pair]);
        self.admit(pair, &mut part, engine);
        let mut exact = if changes.overflowed() {
            Err(Overflow)
        } else {
            Ok(())
        };
        for ((arm, start_ms), sums) in changes.live.iter() {
            exact = exact.and(part.add(arm, View::Live, start_ms, sums));
        }
        for slot in &changes.settled {
            for (arm, sums) in &slot.tallies {
                exact = exact.and(part.add(*arm, View::Settled, slot.start_ms, sums));
            }
        }
        for (arm, last_ms) in &changes.last_lists {
            part.had_list(*arm, *last_ms);
        }
        self.cover(pair, &part, changes);
        let mut progress = self.progress();
        progress.exact &= exact.is_ok();
        let of_pair = progress.pairs.entry(pair).or_default();
        of_pair.settled_end_ms = engine.frontier_ms().map(|frontier_ms| frontier_ms - 1);
        of_pair.begin_ms = engine.begin_ms();
        of_pair.first_accepted_ms = engine.accepted_ms().map(|(first, _)| first);
        of_pair.n_folded = engine.n_folded_arms();
    }

    /// The gate, shared, and a part of this pair behind it.
    fn shared_with(&self, pair: Pair) -> RwLockReadGuard<'_, Parts> {
        let shared = || self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let parts = shared();
        if parts.contains_key(&pair) {
            return parts;
        }
        drop(parts);
        let new = || Mutex::new(Part::new(&self.windows, self.width));
        self.alone().entry(pair).or_insert_with(new);
        shared()
    }

    fn alone(&self) -> RwLockWriteGuard<'_, Parts> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a part the arms that its engine has admitted since.
    fn admit(&self, pair: Pair, part: &mut Part, engine: &Engine) {
        let changes = engine.changes();
        let live = changes.live.iter().map(|((arm, _), _)| arm);
        let settled = changes.settled.iter().flat_map(|slot| &slot.tallies);
        let Some(last) = live.chain(settled.map(|(arm, _)| *arm)).max() else {
            return;
        };
        for id in part.n_arms()..=last as usize {
            let entry = self.entry(engine.arm(id as ArmId));
            entry.n_parts.fetch_add(1, Ordering::Relaxed);
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
                n_parts: AtomicUsize::new(0),
                place: AtomicUsize::new(0),
                covered: Mutex::default(),
            });
            let mut order = lock(&self.order);
            order.entries.push(Arc::clone(&entry));
            order.stale = true;
            entry
        };
        Arc::clone(&*self.arms.entry(arm.clone()).or_insert_with(new))
    }

    /// Notes what a pair's lists have shown of the catalogue.
    fn cover(&self, pair: Pair, part: &Part, changes: &Changes) {
        let Some(covering) = &self.covering else {
            return;
        };
        let catalogue = covering.catalogue();
        let see = |view: View, (arm, start_ms, places): (ArmId, i64, &[u32])| {
            if let Covered::Counted(views) = &mut *lock(&part.entry(arm).covered) {
                views[view as usize].see(pair, start_ms, places, &catalogue);
            }
        };
        changes.shown.iter().for_each(|list| see(View::Live, list));
        let settled = changes.settled.iter().flat_map(|slot| slot.shown.iter());
        settled.for_each(|list| see(View::Settled, list));
    }

    /// Counts coverage by this catalogue from now on. Engines take it after the board.
    pub fn set_catalogue(&self, catalogue: Arc<Catalogue>) {
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
        let mut parts = self.alone();
        let mut progress = self.progress();
        progress.note_settled_end();
        progress.pairs.remove(&pair);
        drop(progress);
        let Some(part) = parts.remove(&pair) else {
            return;
        };
        for entry in lock(&part).entries() {
            let is_left = entry.n_parts.fetch_sub(1, Ordering::Relaxed) > 1;
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
        order
            .entries
            .retain(|entry| entry.n_parts.load(Ordering::Relaxed) > 0);
        order.stale = true;
    }

    /// Whether every sum is exact: none has run over.
    pub fn is_exact(&self) -> bool {
        self.progress().exact
    }
}

impl Source for Board {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        // Most of it is laid out before the gate is taken; arms that come in between are seldom.
        let version = self.lay_out(&mut snapshot.arms);
        let mut parts = self.alone();
        if !lock(&self.order).is_still(version) {
            self.lay_out(&mut snapshot.arms);
        }
        let mut progress = self.progress();
        progress.note_settled_end();
        let settled_end_ms = progress.settled_end_ms;
        let shown = || progress.pairs.values().filter(|pair| pair.shown);
        let live_end_ms = progress.live_end_ms.max(settled_end_ms);
        let ends = [live_end_ms, settled_end_ms];
        let begin_ms = shown().filter_map(|pair| pair.begin_ms).max();
        let first_ms = shown().filter_map(|pair| pair.first_accepted_ms).min();
        let mut parts: Vec<(Pair, &mut Part)> = parts
            .iter_mut()
            .filter(|(pair, _)| progress.shows(**pair))
            .map(|(pair, part)| (*pair, part.get_mut().unwrap_or_else(PoisonError::into_inner)))
            .collect();
        snapshot.live_end_ms = live_end_ms;
        snapshot.settled_end_ms = settled_end_ms;
        snapshot.since_ms = begin_ms.or(first_ms);
        snapshot.folded_arms = shown().map(|pair| pair.n_folded).sum();
        snapshot.arms_without_coverage = self.n_arms_without_coverage();
        for (_, part) in &mut parts {
            add_part(part, ends, &mut snapshot.arms);
        }
        self.count_covered(&parts, ends, &mut snapshot.arms);
        if let Some(window) = timelines {
            self.add_timelines(&parts, ends, window, &mut snapshot.arms);
        }
        snapshot.arms.retain(|arm| arm.last_list_ms != i64::MIN);
    }
}

/// Adds what a pair has to each arm.
fn add_part(part: &mut Part, ends: [Option<i64>; 2], arms: &mut [ArmSnapshot]) {
    for index in 0..part.n_arms() {
        let (place, last_list_ms) = part.place(index);
        let arm = &mut arms[place];
        arm.last_list_ms = arm.last_list_ms.max(last_list_ms);
        for view in View::BOTH {
            part.add_to(index, view, ends[view as usize], &mut arm.sums[view as usize]);
        }
    }
}

impl Order {
    fn give_places(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.version += 1;
        // What was in order stays so: a merge of two runs, not a sort.
        self.entries.sort_by(|a, b| a.arm.cmp(&b.arm));
        for (place, entry) in self.entries.iter().enumerate() {
            entry.place.store(place, Ordering::Relaxed);
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
        let furthest_ms = shown.filter_map(|pair| pair.settled_end_ms).max();
        self.settled_end_ms = self.settled_end_ms.max(furthest_ms);
    }

    fn shows(&self, pair: Pair) -> bool {
        self.pairs.get(&pair).is_some_and(|pair| pair.shown)
    }
}

impl Board {
    /// Makes `arms` those of the board, by name, with sums of 0; what stands there already is used again. Returns the
    /// version of the order that they stand in.
    fn lay_out(&self, arms: &mut Vec<ArmSnapshot>) -> u64 {
        let mut order = lock(&self.order);
        order.give_places();
        arms.truncate(order.entries.len());
        for (place, entry) in order.entries.iter().enumerate() {
            match arms.get_mut(place) {
                Some(arm) => {
                    arm.experiment.clone_from(&entry.arm.experiment);
                    arm.arm.clone_from(&entry.arm.arm);
                    arm.last_list_ms = i64::MIN;
                    for sums in arm.sums.iter_mut().flatten() {
                        sums.fill(0);
                    }
                    arm.timelines = None;
                }
                None => arms.push(self.blank(&entry.arm)),
            }
        }
        order.version
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

    /// Counts the distinct items of each arm over the parts that are shown.
    fn count_covered(&self, parts: &[(Pair, &mut Part)], ends: [Option<i64>; 2], arms: &mut [ArmSnapshot]) {
        let Some(covering) = &self.covering else {
            return;
        };
        let order = lock(&self.order);
        let shown = |pair| parts.iter().any(|(other, _)| *other == pair);
        for (entry, arm) in order.entries.iter().zip(arms) {
            let covered = lock(&entry.covered);
            for view in View::BOTH {
                let (end_ms, sums) = (ends[view as usize], &mut arm.sums[view as usize]);
                covering.fill(&covered, view, end_ms, entry.total_from_ms, shown, sums);
            }
        }
    }

    /// Adds the cells of one window to the arms with the most lists: those of ten thousand arms would be gigabytes.
    fn add_timelines(
        &self,
        parts: &[(Pair, &mut Part)],
        ends: [Option<i64>; 2],
        window: usize,
        arms: &mut [ArmSnapshot],
    ) {
        let total = self.windows.len();
        let shown = (0..arms.len()).filter(|place| arms[*place].last_list_ms != i64::MIN);
        let mut places: Vec<usize> = shown.collect();
        places.sort_by_key(|place| Reverse(arms[*place].sums(View::Live, total)[LISTS]));
        for place in places.into_iter().take(MAX_TIMELINES) {
            arms[place].timelines = Some(ends.map(|end_ms| self.timeline(window, end_ms.unwrap_or(0))));
        }
        for (_, part) in parts {
            for index in 0..part.n_arms() {
                let Some(timelines) = &mut arms[part.place(index).0].timelines else {
                    continue;
                };
                for (view, timeline) in View::BOTH.into_iter().zip(timelines) {
                    timeline.add(part.cells(index, view, window));
                }
            }
        }
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
    /// Adds cells by their number: epoch ms ÷ cell length.
    fn add<'a>(&mut self, cells: impl Iterator<Item = (i64, &'a [i64])>) {
        let first = self.start_ms / self.cell_ms;
        for (number, cell) in cells {
            let place = usize::try_from(number - first).ok();
            let Some(sums) = place.and_then(|place| self.cells.get_mut(place)) else {
                continue;
            };
            let sums = sums.get_or_insert_with(|| vec![0; cell.len()].into());
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
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::engine::Rules;
    use crate::engine::event::{ArmName, Batch, Body, Event, Position, Served, Side};
    use crate::engine::ranking::Measures;

    const T0: i64 = 1_763_596_800_000;

    fn board(starts: &[(&str, i64)]) -> Board {
        let window = |name: &str, span_ms| config::Window {
            name: name.into(),
            span_ms,
        };
        let starts = starts.iter().map(|(name, ms)| (name.to_string(), *ms)).collect();
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let mut config = config::load(None, [brokers].into_iter()).expect("the defaults are valid");
        config.windows = vec![window("1m", 60_000), window("1h", 3_600_000)];
        config.experiment_starts = starts;
        Board::new(&config, &ranking())
    }

    fn ranking() -> Ranking {
        Ranking::new(&Measures::usual(&[NonZeroU32::MIN]))
    }

    /// An engine that has read lists of `(arm, time after T0)`, in the experiment `e`.
    fn engine(lists: &[(&str, i64)]) -> Engine {
        let rules = Rules {
            attribution_ms: 10_000,
            click_skew_ms: 0,
            lateness_ms: 0,
            max_future_ms: 0,
            slot_ms: 1000,
            max_off_list: 0,
            max_arms: 10,
            one_topic: true,
        };
        let mut engine = Engine::new(rules, ranking(), None);
        let mut batch = Batch::default();
        for (n, (arm, after_ms)) in lists.iter().enumerate() {
            let start = batch.text.len() as u32;
            batch.text.push_str(&format!("e{arm}"));
            let hash = arm
                .bytes()
                .fold(1, |hash: u128, byte| hash * 257 + u128::from(byte));
            let end = batch.text.len() as u32;
            batch.arms.push(ArmName {
                hash,
                experiment: start..start + 1,
                arm: start + 1..end,
            });
            let n = n as u32;
            let list = Served {
                id: u128::from(n),
                user: None,
                ts_ms: T0 + after_ms,
                items: 0..0,
                arms: n..n + 1,
            };
            let at = Position {
                side: Side::Served,
                offset: i64::from(n),
                record_ts_ms: i64::MAX,
            };
            batch.events.push(Event {
                at,
                body: Body::Served(list),
            });
        }
        engine.apply(&batch, u64::MAX);
        engine.gather_changes();
        engine
    }

    /// Lists by arm in one view and window.
    fn lists(board: &Board, view: View, window: usize) -> Vec<(String, i128)> {
        let arms = board.snapshot(None).arms;
        arms.iter()
            .map(|arm| (arm.arm.to_string(), arm.sums(view, window)[LISTS]))
            .collect()
    }

    fn named(expected: &[(&str, i128)]) -> Vec<(String, i128)> {
        expected.iter().map(|(arm, n)| (arm.to_string(), *n)).collect()
    }

    #[test]
    fn adds_up_what_the_shown_pairs_have() {
        let board = board(&[]);
        board.merge(0, &engine(&[("a", 0), ("a", 100), ("b", 200)]));
        board.merge(1, &engine(&[("b", 0)]));
        board.set_live_end(T0 + 200);
        assert_eq!(lists(&board, View::Live, 2), []);
        board.show(0);
        assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 1)]));
        board.show(1);
        assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 2)]));
        board.hide(0);
        assert_eq!(lists(&board, View::Live, 2), named(&[("b", 1)]));
        board.remove(1);
        board.show(0);
        assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 1)]));
    }

    #[test]
    fn a_settled_window_ends_with_the_furthest_pair_and_holds_what_the_others_have_inside() {
        let board = board(&[]);
        board.merge(0, &engine(&[("a", 0), ("a", 20_000)]));
        board.merge(1, &engine(&[("a", 0), ("a", 100_000)]));
        board.set_live_end(T0 + 100_000);
        board.show(0);
        board.show(1);
        let snapshot = board.snapshot(None);
        assert_eq!(snapshot.settled_end_ms, Some(T0 + 89_999));
        let arm = &snapshot.arms[0];
        assert_eq!(
            arm.sums(View::Settled, 0)[LISTS],
            0,
            "both settled lists are more than a minute back"
        );
        assert_eq!(arm.sums(View::Settled, 1)[LISTS], 2);
        assert_eq!(arm.sums(View::Live, 0)[LISTS], 1, "the list at 100 s");
    }

    #[test]
    fn a_settled_window_does_not_slide_back_when_the_furthest_pair_is_taken_away() {
        let board = board(&[]);
        board.merge(0, &engine(&[("a", 0), ("a", 20_000)]));
        board.merge(1, &engine(&[("a", 0), ("a", 100_000)]));
        board.show(0);
        board.show(1);
        let before = board.snapshot(None);
        board.hide(1);
        let after = board.snapshot(None);
        assert_eq!(after.settled_end_ms, before.settled_end_ms);
        assert_eq!(
            after.arms[0].sums(View::Settled, 0)[LISTS],
            0,
            "its cells left with the window"
        );
        assert_eq!(after.arms[0].sums(View::Settled, 1)[LISTS], 1);
    }

    /// Coverage slid with the pair's settled slots at once, the sums only if a scrape came between.
    #[test]
    fn a_settled_window_ends_alike_whether_a_scrape_came_before_its_furthest_pair_left_or_not() {
        for leave in [Board::hide, Board::remove] {
            let board = board(&[]);
            board.merge(0, &engine(&[("a", 0), ("a", 20_000)]));
            board.merge(1, &engine(&[("a", 0), ("a", 100_000)]));
            board.show(0);
            board.show(1);
            leave(&board, 1);
            let snapshot = board.snapshot(None);
            assert_eq!(snapshot.settled_end_ms, Some(T0 + 89_999));
            assert_eq!(snapshot.arms[0].sums(View::Settled, 0)[LISTS], 0);
        }
    }

    #[test]
    fn a_total_begins_where_the_experiment_was_begun_afresh() {
        let board = board(&[("e", T0 + 5000)]);
        board.merge(0, &engine(&[("a", 0), ("a", 5000), ("a", 6000)]));
        board.set_live_end(T0 + 6000);
        board.show(0);
        assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2)]));
        assert_eq!(
            lists(&board, View::Live, 1),
            named(&[("a", 3)]),
            "windows slide over it"
        );
    }

    #[test]
    fn a_time_line_has_the_cells_of_its_window() {
        let board = board(&[]);
        board.merge(0, &engine(&[("a", 0), ("a", 500), ("a", 3000)]));
        board.set_live_end(T0 + 3000);
        board.show(0);
        let snapshot = board.snapshot(Some(0));
        let [live, _] = snapshot.arms[0].timelines.as_ref().expect("it was asked for");
        assert_eq!(
            (live.start_ms, live.cell_ms, live.cells.len()),
            (T0 - 56_000, 1000, 60)
        );
        let cells = live
            .cells
            .iter()
            .map(|cell| cell.as_ref().map_or(0, |sums| sums[LISTS]));
        assert_eq!(cells.skip(56).collect::<Vec<_>>(), [2, 0, 0, 1]);
    }
}
