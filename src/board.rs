//! What all arms add up to: the only shared mutable state, written by workers, read by scrapes.
//!
//! Each pair of partitions has its own part of every arm, so that a pair that is taken away takes its numbers with it
//! at once. A merge shares the gate with other merges and locks one arm at a time; a scrape has the gate alone, so it
//! sees whole batches only. Distinct counts do not add up: each arm keeps what each pair has shown of the
//! catalogue, within a bound on memory, and their union is counted at a scrape.

mod covered;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use dashmap::DashMap;

use covered::{Covered, Covering};

use crate::config::{self, Config};
use crate::engine::catalogue::Catalogue;
use crate::engine::ranking::{LISTS, Ranking};
use crate::engine::window::{N_CELLS, Overflow, Window};
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
    arms: DashMap<Arm, Entry>,
    gate: RwLock<()>,
    progress: Mutex<Progress>,
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

/// What all pairs add to one arm.
#[derive(Debug, Default)]
struct Entry {
    parts: Vec<Part>,
    covered: Covered,
}

/// What one pair adds to one arm.
#[derive(Debug)]
struct Part {
    pair: Pair,
    last_list_ms: i64,
    /// By `View as usize`.
    views: [Sums; 2],
}

#[derive(Debug)]
struct Sums {
    windows: Vec<Window>,
    total: Box<[i128]>,
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
            arms: DashMap::new(),
            gate: RwLock::new(()),
            progress: Mutex::new(Progress {
                exact: true,
                ..Progress::default()
            }),
        }
    }

    /// Takes over what has changed in the engine of a pair; the caller clears the engine's changes after it.
    pub fn merge(&self, pair: Pair, engine: &Engine) {
        let _shared = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let changes = engine.changes();
        let mut overflow = if changes.overflowed() {
            Err(Overflow)
        } else {
            Ok(())
        };
        let shown = shown_lists(changes);
        let mut rows: Vec<(ArmId, View, i64, &[i64])> = changes
            .live
            .iter()
            .map(|((arm, start_ms), sums)| (arm, View::Live, start_ms, sums))
            .collect();
        for slot in &changes.settled {
            rows.extend(
                slot.tallies
                    .iter()
                    .map(|(arm, sums)| (*arm, View::Settled, slot.start_ms, &**sums)),
            );
        }
        rows.sort_unstable_by_key(|(arm, view, start_ms, _)| (*arm, *view, *start_ms));
        for rows in rows.chunk_by(|a, b| a.0 == b.0) {
            let arm = engine.arm(rows[0].0);
            let total_from_ms = self.total_from_ms(arm);
            let mut entry = self.arms.entry(arm.clone()).or_default();
            self.cover(&mut entry.covered, rows[0].0, &shown, pair);
            let part = self.part(&mut entry.parts, pair);
            if let Some(last) = changes.last_lists.get(&rows[0].0) {
                part.last_list_ms = part.last_list_ms.max(*last);
            }
            for (_, view, start_ms, sums) in rows {
                let into = &mut part.views[*view as usize];
                overflow = overflow.and(into.add(*start_ms, sums, *start_ms >= total_from_ms));
            }
        }
        let mut progress = self.progress();
        progress.exact &= overflow.is_ok();
        let of_pair = progress.pairs.entry(pair).or_default();
        of_pair.settled_end_ms = engine.frontier_ms().map(|frontier_ms| frontier_ms - 1);
        of_pair.begin_ms = engine.begin_ms();
        of_pair.first_accepted_ms = engine.accepted_ms().map(|(first, _)| first);
        of_pair.n_folded = engine.n_folded_arms();
    }

    /// Notes what a pair's lists in one arm have shown of the catalogue.
    fn cover(&self, covered: &mut Covered, arm: ArmId, shown: &[Shown], pair: Pair) {
        let Some(covering) = &self.covering else {
            return;
        };
        let catalogue = covering.catalogue();
        // An arm whose lists show nothing has a count too: 0.
        covering.admit(covered, pair, &catalogue);
        let Covered::Counted(views) = covered else {
            return;
        };
        let start = shown.partition_point(|(other, ..)| *other < arm);
        let of_arm = shown[start..].iter().take_while(|(other, ..)| *other == arm);
        for (_, view, start_ms, places) in of_arm {
            views[*view as usize].see(pair, *start_ms, places, &catalogue);
        }
    }

    /// Counts coverage by this catalogue from now on. Engines take it after the board.
    pub fn set_catalogue(&self, catalogue: Arc<Catalogue>) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(covering) = &self.covering {
            covering.set_catalogue(catalogue);
            self.arms
                .iter_mut()
                .for_each(|mut entry| covering.readmit(&mut entry.covered));
        }
    }

    /// Arms without coverage because of its bound on memory.
    pub fn n_arms_without_coverage(&self) -> u64 {
        self.covering.as_ref().map_or(0, Covering::n_left_out)
    }

    fn part<'a>(&self, parts: &'a mut Vec<Part>, pair: Pair) -> &'a mut Part {
        let place = parts
            .iter()
            .position(|part| part.pair == pair)
            .unwrap_or_else(|| {
                let views = View::BOTH.map(|_| Sums {
                    windows: self
                        .windows
                        .iter()
                        .map(|window| Window::new(window.cell_ms(), self.width))
                        .collect(),
                    total: vec![0; self.width].into(),
                });
                parts.push(Part {
                    pair,
                    last_list_ms: i64::MIN,
                    views,
                });
                parts.len() - 1
            });
        &mut parts[place]
    }

    /// Slots of an arm that begin before this do not count in its total.
    fn total_from_ms(&self, arm: &Arm) -> i64 {
        let start = self.experiment_starts.get(&*arm.experiment);
        start.copied().unwrap_or(i64::MIN)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the end of the live windows on; it never falls.
    pub fn set_live_end(&self, ms: i64) {
        let mut progress = self.progress();
        progress.live_end_ms = progress.live_end_ms.max(Some(ms));
    }

    /// Lets a pair that is caught up into the views.
    pub fn show(&self, pair: Pair) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.progress().pairs.entry(pair).or_default().shown = true;
    }

    /// Takes a pair's part out of the views at once, and keeps it.
    pub fn hide(&self, pair: Pair) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut progress = self.progress();
        progress.note_settled_end();
        if let Some(progress) = progress.pairs.get_mut(&pair) {
            progress.shown = false;
        }
    }

    /// Forgets a pair.
    pub fn remove(&self, pair: Pair) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut progress = self.progress();
        progress.note_settled_end();
        progress.pairs.remove(&pair);
        drop(progress);
        self.arms.retain(|_, entry| {
            entry.parts.retain(|part| part.pair != pair);
            let is_left = !entry.parts.is_empty();
            match &self.covering {
                Some(covering) if is_left => covering.remove(&mut entry.covered, pair),
                Some(covering) => covering.forget(&entry.covered),
                None => {}
            }
            is_left
        });
    }

    /// Whether every sum is exact: none has run over.
    pub fn is_exact(&self) -> bool {
        self.progress().exact
    }
}

impl Source for Board {
    fn snapshot(&self, timelines: Option<usize>) -> Snapshot {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut progress = self.progress();
        progress.note_settled_end();
        let settled_end_ms = progress.settled_end_ms;
        let shown = || progress.pairs.values().filter(|pair| pair.shown);
        let live_end_ms = progress.live_end_ms.max(settled_end_ms);
        let ends = [live_end_ms, settled_end_ms];
        let begin_ms = shown().filter_map(|pair| pair.begin_ms).max();
        let first_ms = shown().filter_map(|pair| pair.first_accepted_ms).min();
        let mut arms = Vec::with_capacity(self.arms.len());
        for mut entry in self.arms.iter_mut() {
            let (arm, entry) = entry.pair_mut();
            let parts = entry.parts.iter_mut();
            let mut parts: Vec<&mut Part> = parts.filter(|part| progress.shows(part.pair)).collect();
            if !parts.is_empty() {
                arms.push(self.arm_snapshot(arm, &mut parts, &entry.covered, ends));
            }
        }
        if let Some(window) = timelines {
            self.add_timelines(&mut arms, &progress, ends, window);
        }
        arms.sort_unstable_by(|a, b| (&a.experiment, &a.arm).cmp(&(&b.experiment, &b.arm)));
        Snapshot {
            live_end_ms,
            settled_end_ms,
            since_ms: begin_ms.or(first_ms),
            folded_arms: shown().map(|pair| pair.n_folded).sum(),
            arms_without_coverage: self.n_arms_without_coverage(),
            arms,
        }
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
    fn arm_snapshot(
        &self,
        arm: &Arm,
        parts: &mut [&mut Part],
        covered: &Covered,
        ends: [Option<i64>; 2],
    ) -> ArmSnapshot {
        let sums = View::BOTH.map(|view| {
            let mut sums = vec![vec![0; self.width].into_boxed_slice(); self.windows.len() + 1];
            for part in parts.iter_mut() {
                let of_view = &mut part.views[view as usize];
                if let Some(end_ms) = ends[view as usize] {
                    of_view
                        .windows
                        .iter_mut()
                        .for_each(|window| window.advance(end_ms));
                }
                for (sum, window) in sums.iter_mut().zip(&of_view.windows) {
                    add(sum, window.sums());
                }
                add(&mut sums[self.windows.len()], &of_view.total);
            }
            if let Some(covering) = &self.covering {
                let shown = |pair| parts.iter().any(|part| part.pair == pair);
                let total_from_ms = self.total_from_ms(arm);
                covering.fill(
                    covered,
                    view,
                    ends[view as usize],
                    total_from_ms,
                    shown,
                    &mut sums,
                );
            }
            sums
        });
        ArmSnapshot {
            experiment: arm.experiment.clone(),
            arm: arm.arm.clone(),
            last_list_ms: parts
                .iter()
                .map(|part| part.last_list_ms)
                .max()
                .unwrap_or(i64::MIN),
            sums,
            timelines: None,
        }
    }

    /// Adds the cells of one window to the arms with the most lists: those of ten thousand arms would be gigabytes.
    fn add_timelines(
        &self,
        arms: &mut [ArmSnapshot],
        progress: &Progress,
        ends: [Option<i64>; 2],
        window: usize,
    ) {
        let total = self.windows.len();
        arms.sort_by_cached_key(|arm| Reverse(arm.sums(View::Live, total)[LISTS]));
        for arm in arms.iter_mut().take(MAX_TIMELINES) {
            let name = Arm {
                experiment: arm.experiment.clone(),
                arm: arm.arm.clone(),
            };
            let Some(entry) = self.arms.get(&name) else {
                continue;
            };
            let parts: Vec<&Part> = entry
                .parts
                .iter()
                .filter(|part| progress.shows(part.pair))
                .collect();
            let of = |view: View| self.timeline(&parts, view, window, ends[view as usize].unwrap_or(0));
            arm.timelines = Some(View::BOTH.map(of));
        }
    }

    fn timeline(&self, parts: &[&Part], view: View, index: usize, end_ms: i64) -> Timeline {
        let cell_ms = self.windows[index].cell_ms();
        let first = end_ms.div_euclid(cell_ms) - (N_CELLS - 1);
        let mut cells: Vec<Option<Box<[i128]>>> = vec![None; N_CELLS as usize];
        for part in parts {
            for (number, cell) in part.views[view as usize].windows[index].cells() {
                if let Some(sums) = usize::try_from(number - first)
                    .ok()
                    .and_then(|place| cells.get_mut(place))
                {
                    let sums = sums.get_or_insert_with(|| vec![0; self.width].into());
                    sums.iter_mut()
                        .zip(cell)
                        .for_each(|(sum, term)| *sum += i128::from(*term));
                }
            }
        }
        Timeline {
            start_ms: first * cell_ms,
            cell_ms,
            cells,
        }
    }
}

impl Sums {
    fn add(&mut self, start_ms: i64, tally: &[i64], in_total: bool) -> Result<(), Overflow> {
        if in_total {
            self.total
                .iter_mut()
                .zip(tally)
                .for_each(|(sum, term)| *sum += i128::from(*term));
        }
        let results = self.windows.iter_mut().map(|window| window.add(start_ms, tally));
        results.fold(Ok(()), Result::and)
    }
}

/// A list of an arm: its view, the begin of its slot, and the places of its items in rank order.
type Shown<'a> = (ArmId, View, i64, &'a [u32]);

/// What has been shown, by arm.
fn shown_lists(changes: &Changes) -> Vec<Shown<'_>> {
    let live = changes.shown.iter();
    let mut shown: Vec<Shown> = live
        .map(|(arm, start_ms, places)| (arm, View::Live, start_ms, places))
        .collect();
    for slot in &changes.settled {
        let lists = slot.shown.iter();
        shown.extend(lists.map(|(arm, start_ms, places)| (arm, View::Settled, start_ms, places)));
    }
    shown.sort_by_key(|(arm, ..)| *arm);
    shown
}

fn add(sums: &mut [i128], more: &[i128]) {
    for (sum, term) in sums.iter_mut().zip(more) {
        *sum += term;
    }
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
