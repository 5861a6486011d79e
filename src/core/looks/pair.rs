//! Sums over the users of one pair: cells that wait for their look, and sums by epoch and over the window as of the last look.

use std::collections::{BTreeMap, BTreeSet};

use super::LookRules;
use super::stored::{StoredUsers, UpTo};
use super::waiting::{WaitingArm, WaitingCell};
use super::window::WindowSums;
use crate::engine::{Arm, ArmId};
use crate::ledger::{
    BucketSums, CAPPED_USER_BYTES, Cell, Exposed, FrequentUsers, RefusedCounts, USER_BYTES, UnitCounts,
};

#[derive(Debug)]
pub(super) struct PairUsers {
    /// True if looks wait for it.
    pub holds: bool,
    /// Random id of the pair's incarnation.
    pub incarnation_id: u64,
    /// No list before this can still settle, Unix ms.
    pub until_ms: Option<i64>,
    arms: Vec<Arm>,
    /// First cell that its sums may lack.
    pub end: i64,
    /// Cells below this number were dropped before the pair was resumed.
    pub let_go: i64,
    /// Cells below this number are incomplete, and skipped.
    pub counts_from: Option<i64>,
    /// Cells by number.
    pub waiting: BTreeMap<i64, WaitingCell>,
    /// Sums by experiment name.
    pub experiments: BTreeMap<String, ExperimentUsers>,
}

/// Sums over the users of an experiment, as of the last look.
#[derive(Debug, Default)]
pub(super) struct ExperimentUsers {
    /// Sums by arm, then epoch.
    pub arms: BTreeMap<ArmId, BTreeMap<usize, ArmUsers>>,
    /// Sums over all epochs. Empty if the window was given up.
    pub window: WindowSums,
}

/// Sums over the users of an arm in an epoch.
#[derive(Debug, Default)]
pub(super) struct ArmUsers {
    pub sums: BucketSums,
    pub exposed: Exposed,
    pub units: UnitCounts,
    pub refused: RefusedCounts,
    pub frequent: FrequentUsers,
}

/// Memory of an experiment, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExperimentBytes {
    /// Window.
    pub window: u64,
    /// Everything else as of the last look.
    pub own: u64,
    /// Cells that wait for later looks. It depends on when it is read.
    pub waiting: u64,
}

impl Default for PairUsers {
    /// Creates a pair without any data.
    fn default() -> PairUsers {
        PairUsers {
            holds: true,
            incarnation_id: 0,
            until_ms: None,
            arms: Vec::new(),
            end: i64::MIN,
            let_go: i64::MIN,
            counts_from: None,
            waiting: BTreeMap::new(),
            experiments: BTreeMap::new(),
        }
    }
}

impl PairUsers {
    pub fn reached(&mut self, arms: Vec<Arm>, cells: Vec<(i64, Cell)>, until_ms: Option<i64>) {
        self.arms.extend(arms);
        let counts_from = self.counts_from;
        let whole = cells
            .into_iter()
            .filter(|(number, _)| Some(*number) >= counts_from);
        self.waiting
            .extend(whole.map(|(number, cell)| (number, WaitingCell::new(&cell))));
        self.until_ms = self.until_ms.max(until_ms);
    }

    /// Restores the stored sums of these experiments, except `but`. Cells that they already contain count in windows only.
    pub fn resume(&mut self, stored: StoredUsers, rules: &LookRules, but: &BTreeSet<String>) {
        let UpTo {
            look,
            end,
            cells_from,
        } = stored.up_to;
        (self.end, self.let_go) = (end, cells_from);
        // Cells before `end` are part of the stored sums. Adding them again would count them twice.
        let later = self.waiting.split_off(&end);
        let inside = std::mem::replace(&mut self.waiting, later);
        let continues = |name: &str| rules.experiments.contains_key(name) && !but.contains(name);
        let begin = rules.window.as_ref().map(|window| window.begin(look));
        if let Some(begin) = begin {
            for (number, cell) in inside.into_iter().filter(|(number, _)| *number >= begin) {
                for (arm, waiting) in cell.into_arms() {
                    let name = &*self.arms[arm as usize].experiment;
                    if let Some(sums) = waiting.sums.filter(|_| continues(name)) {
                        let users = self.experiments.entry(name.to_owned()).or_default();
                        let unpacked = sums.unpack();
                        users.window.add(number, arm, (sums, &unpacked), begin);
                    }
                }
            }
        }
        for (name, arms) in stored.experiments {
            if continues(&name) {
                self.experiments.entry(name).or_default().arms = arms;
            }
        }
    }

    /// Returns the number of the first waiting cell with lists.
    pub fn first_number(&self) -> Option<i64> {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|(_, cell)| cell.has_lists());
        first.map(|(number, _)| *number)
    }

    /// Adds the cells up to this look. Windows advance to end with it, except those that were given up.
    pub fn settle(&mut self, look: i64, rules: &LookRules, without_window: &BTreeSet<String>) {
        let begin = rules.window.as_ref().map(|window| window.begin(look));
        let later = self.waiting.split_off(&(look + 1));
        for (number, cell) in std::mem::replace(&mut self.waiting, later) {
            let inside = begin.filter(|begin| *begin <= number);
            let start_ms = number * rules.every_ms;
            for (arm, waiting) in cell.into_arms() {
                let name = &*self.arms[arm as usize].experiment;
                let Some(asked) = rules.experiments.get(name) else {
                    continue;
                };
                let begin = inside.filter(|_| !without_window.contains(name));
                let users = self.experiments.entry(name.to_owned()).or_default();
                users.add(
                    arm,
                    asked.epoch_of(start_ms),
                    waiting,
                    begin.map(|begin| (number, begin)),
                );
            }
        }
        let n_covered = self.until_ms.map(|until_ms| until_ms.div_euclid(rules.every_ms));
        // If looks do not wait for this pair, it may not have settled everything up to the look.
        let end = n_covered.map_or(i64::MIN, |n_covered| n_covered.min(look + 1));
        self.end = self.end.max(end);
        if let Some(begin) = begin {
            // Windows move on even in experiments that got no cell.
            let windows = self.experiments.values_mut().map(|users| &mut users.window);
            windows.for_each(|window| window.start_at(begin));
        }
    }

    /// Returns the sums over the users of an experiment.
    pub fn of(&self, experiment: &str) -> Option<&ExperimentUsers> {
        self.experiments.get(experiment)
    }

    /// Returns the name of an arm.
    pub fn name(&self, arm: ArmId) -> &str {
        &self.arms[arm as usize].arm
    }

    /// Drops the sums of an experiment, and its part of waiting cells.
    pub fn forget(&mut self, experiment: &str) {
        self.experiments.remove(experiment);
        let is_other = |arm: ArmId| &*self.arms[arm as usize].experiment != experiment;
        self.waiting.values_mut().for_each(|cell| cell.retain(is_other));
    }

    /// Drops the window sums of an experiment.
    pub fn forget_window(&mut self, experiment: &str) {
        if let Some(users) = self.experiments.get_mut(experiment) {
            users.window = WindowSums::default();
        }
    }

    /// Adds the bytes of each experiment.
    pub fn add_bytes<'a>(&'a self, rules: &LookRules, bytes: &mut BTreeMap<&'a str, ExperimentBytes>) {
        for (arm, n_bytes) in self.waiting.values().flat_map(WaitingCell::bytes) {
            let experiment = &*self.arms[arm as usize].experiment;
            bytes.entry(experiment).or_default().waiting += n_bytes;
        }
        for (name, users) in &self.experiments {
            let of = bytes.entry(name).or_default();
            let asked = rules.experiments.get(name);
            let is_capped = asked.is_some_and(|asked| asked.max_lists_per_user.is_some());
            of.own += users.own_bytes(USER_BYTES + if is_capped { CAPPED_USER_BYTES } else { 0 });
            of.window += users.window.bytes();
        }
    }
}

impl ExperimentUsers {
    /// Adds a cell of an arm in an epoch. `in_window` is the cell's number and the first cell of the window, if it counts there.
    fn add(&mut self, arm: ArmId, epoch: usize, cell: WaitingArm, in_window: Option<(i64, i64)>) {
        let own = self.arms.entry(arm).or_default().entry(epoch).or_default();
        own.exposed.add(cell.exposed);
        own.units.add(cell.units);
        own.refused.add(&cell.refused);
        own.frequent.merge(&cell.frequent);
        if let Some(sums) = cell.sums {
            let unpacked = sums.unpack();
            own.sums.merge(&unpacked);
            if let Some((number, begin)) = in_window {
                self.window.add(number, arm, (sums, &unpacked), begin);
            }
        }
    }

    /// Counts users seen in two arms within one epoch.
    pub fn n_in_two(&self) -> u64 {
        self.all().map(|arm| arm.exposed.in_two).sum()
    }

    fn all(&self) -> impl Iterator<Item = &ArmUsers> {
        self.arms.values().flat_map(BTreeMap::values)
    }

    fn own_bytes(&self, user_bytes: u64) -> u64 {
        let arms = self.all();
        arms.map(|arm| {
            arm.sums.bytes() + arm.refused.bytes() + arm.frequent.bytes() + arm.exposed.first * user_bytes
        })
        .sum()
    }
}
