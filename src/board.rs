//! What all arms add up to: the only shared mutable state, written by workers, read by scrapes.
//!
//! Each pair of partitions has its own part of every arm, so that a pair that is taken away takes its numbers with it
//! at once. A merge shares the gate with other merges and locks one arm at a time; a scrape has the gate alone, so it
//! sees whole batches only.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use dashmap::DashMap;

use crate::config;
use crate::engine::window::{N_CELLS, Overflow, Window};
use crate::engine::{Arm, ArmId, Engine};
use crate::snapshot::{ArmSnapshot, Snapshot, Source, Timeline, View};

/// The partition number that both topics of a pair share.
pub type Pair = i32;

pub struct Board {
    windows: Vec<config::Window>,
    width: usize,
    /// By experiment: slots that begin before this (epoch ms) do not count in its `total`.
    experiment_starts: BTreeMap<String, i64>,
    arms: DashMap<Arm, Vec<Part>>,
    gate: RwLock<()>,
    progress: Mutex<Progress>,
}

/// How far the pairs have come.
#[derive(Debug, Default)]
struct Progress {
    live_end_ms: Option<i64>,
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
    /// An empty board for tallies of `width` sums.
    pub fn new(windows: &[config::Window], width: usize, experiment_starts: BTreeMap<String, i64>) -> Board {
        Board {
            windows: windows.to_vec(),
            width,
            experiment_starts,
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
        let mut overflow = Ok(());
        let mut rows: Vec<(ArmId, View, i64, &[i64])> = changes
            .live
            .iter(self.width)
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
            let total_from_ms = self
                .experiment_starts
                .get(&*arm.experiment)
                .copied()
                .unwrap_or(i64::MIN);
            let mut parts = self.arms.entry(arm.clone()).or_default();
            let part = self.part(&mut parts, pair);
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
        self.progress().pairs.entry(pair).or_default().shown = true;
    }

    /// Takes a pair's part out of the views at once, and keeps it.
    pub fn hide(&self, pair: Pair) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(progress) = self.progress().pairs.get_mut(&pair) {
            progress.shown = false;
        }
    }

    /// Forgets a pair.
    pub fn remove(&self, pair: Pair) {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.progress().pairs.remove(&pair);
        self.arms.retain(|_, parts| {
            parts.retain(|part| part.pair != pair);
            !parts.is_empty()
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
        let progress = self.progress();
        let shown = || progress.pairs.values().filter(|pair| pair.shown);
        let settled_end_ms = shown().filter_map(|pair| pair.settled_end_ms).max();
        let live_end_ms = progress.live_end_ms.max(settled_end_ms);
        let ends = [live_end_ms, settled_end_ms];
        let begin_ms = shown().filter_map(|pair| pair.begin_ms).max();
        let first_ms = shown().filter_map(|pair| pair.first_accepted_ms).min();
        let mut arms = Vec::with_capacity(self.arms.len());
        for mut entry in self.arms.iter_mut() {
            let (arm, parts) = entry.pair_mut();
            let is_shown = |pair| progress.pairs.get(&pair).is_some_and(|pair| pair.shown);
            let mut parts: Vec<&mut Part> = parts.iter_mut().filter(|part| is_shown(part.pair)).collect();
            if !parts.is_empty() {
                arms.push(self.arm_snapshot(arm, &mut parts, ends, timelines));
            }
        }
        arms.sort_unstable_by(|a, b| (&a.experiment, &a.arm).cmp(&(&b.experiment, &b.arm)));
        Snapshot {
            live_end_ms,
            settled_end_ms,
            since_ms: begin_ms.or(first_ms),
            folded_arms: shown().map(|pair| pair.n_folded).sum(),
            arms,
        }
    }
}

impl Board {
    fn arm_snapshot(
        &self,
        arm: &Arm,
        parts: &mut [&mut Part],
        ends: [Option<i64>; 2],
        timelines: Option<usize>,
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
            sums
        });
        let timelines = timelines.map(|index| {
            View::BOTH.map(|view| self.timeline(parts, view, index, ends[view as usize].unwrap_or(0)))
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
            timelines,
        }
    }

    fn timeline(&self, parts: &[&mut Part], view: View, index: usize, end_ms: i64) -> Timeline {
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

fn add(sums: &mut [i128], more: &[i128]) {
    for (sum, term) in sums.iter_mut().zip(more) {
        *sum += term;
    }
}
