//! What the users of one pair add up to: cells that wait for their look, and sums by epoch and over the window as of the last one.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::stored::{StoredUsers, UpTo};
use super::window::WindowSums;
use crate::engine::{Arm, ArmId};
use crate::ledger::{BucketSums, Cell, Exposed, USER_BYTES};

#[derive(Debug)]
pub(super) struct PairUsers {
    /// Whether looks wait for it.
    pub holds: bool,
    /// Tells it apart from the pair that begins anew.
    pub life: u64,
    /// No list before this can still settle, epoch ms.
    pub until_ms: Option<i64>,
    arms: Vec<Arm>,
    /// The first cell that its sums may lack.
    pub end: i64,
    /// Cells below this number were let go before it was resumed.
    pub let_go: i64,
    /// Cells below this number are not whole, and left out.
    pub counts_from: Option<i64>,
    /// By number.
    waiting: BTreeMap<i64, Cell>,
    /// By experiment.
    pub experiments: BTreeMap<String, ExperimentUsers>,
}

/// What the users of an experiment add up to, as of the last look.
#[derive(Debug, Default)]
pub(super) struct ExperimentUsers {
    /// By arm, then epoch.
    pub arms: BTreeMap<ArmId, BTreeMap<usize, ArmUsers>>,
    /// Over all epochs; nothing where its window was given up.
    pub window: WindowSums,
}

/// What the users of an arm add up to in an epoch.
#[derive(Debug, Default)]
pub(super) struct ArmUsers {
    pub sums: BucketSums,
    pub exposed: Exposed,
}

/// What an experiment takes, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes {
    /// Of its window.
    pub window: u64,
    /// Of all the rest.
    pub own: u64,
}

impl Default for PairUsers {
    /// Nothing is known of it.
    fn default() -> PairUsers {
        PairUsers {
            holds: true,
            life: 0,
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
        self.waiting.extend(whole);
        self.until_ms = self.until_ms.max(until_ms);
    }

    /// Goes on with what was stored of the users of these experiments; cells that are in it count in windows alone.
    pub fn resume(&mut self, stored: StoredUsers, rules: &Rules, but: &BTreeSet<String>) {
        let UpTo {
            look,
            end,
            cells_from,
        } = stored.up_to;
        (self.end, self.let_go) = (end, cells_from);
        let later = self.waiting.split_off(&end);
        let inside = std::mem::replace(&mut self.waiting, later);
        let goes_on = |name: &str| rules.experiments.contains_key(name) && !but.contains(name);
        let begin = rules.window.as_ref().map(|window| window.begin(look));
        if let Some(begin) = begin {
            for (number, cell) in inside.range(begin..) {
                for (name, arms) in self.arms_of(cell) {
                    if goes_on(&name) {
                        self.add_to_window(&name, &arms, (*number, begin), cell);
                    }
                }
            }
        }
        for (name, arms) in stored.experiments {
            if goes_on(&name) {
                self.experiments.entry(name).or_default().arms = arms;
            }
        }
    }

    /// The first cell that waits and has anything.
    pub fn first_number(&self) -> Option<i64> {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|(_, cell)| !cell.numbers().buckets.is_empty());
        first.map(|(number, _)| *number)
    }

    /// Adds the cells up to that of this look; the window of an experiment moves on to end with it, unless it was given up.
    pub fn settle(&mut self, look: i64, rules: &Rules, without_window: &BTreeSet<String>) {
        let begin = rules.window.as_ref().map(|window| window.begin(look));
        let later = self.waiting.split_off(&(look + 1));
        for (number, cell) in std::mem::replace(&mut self.waiting, later) {
            let inside = begin.filter(|begin| *begin <= number);
            let start_ms = number * rules.every_ms;
            for (name, arms) in self.arms_of(&cell) {
                let Some(asked) = rules.experiments.get(&name) else {
                    continue;
                };
                if let Some(begin) = inside.filter(|_| !without_window.contains(&name)) {
                    self.add_to_window(&name, &arms, (number, begin), &cell);
                }
                self.add(name, &arms, asked.epoch_of(start_ms), &cell);
            }
        }
        let n_covered = self.until_ms.map(|until_ms| until_ms.div_euclid(rules.every_ms));
        let end = n_covered.map_or(i64::MIN, |n_covered| n_covered.min(look + 1));
        self.end = self.end.max(end);
        if let Some(begin) = begin {
            let windows = self.experiments.values_mut().map(|users| &mut users.window);
            windows.for_each(|window| window.begin_at(begin));
        }
    }

    /// Adds a cell to the window from `begin` on.
    fn add_to_window(&mut self, experiment: &str, arms: &[ArmId], (number, begin): (i64, i64), cell: &Cell) {
        let users = self.experiments.entry(experiment.to_owned()).or_default();
        for arm in arms {
            if let Some(sums) = cell.numbers().buckets.get(arm) {
                users.window.add(number, *arm, sums, begin);
            }
        }
    }

    /// The arms that a cell has, by experiment.
    fn arms_of(&self, cell: &Cell) -> BTreeMap<String, Vec<ArmId>> {
        let mut experiments: BTreeMap<String, Vec<ArmId>> = BTreeMap::new();
        let numbers = cell.numbers();
        // One that had its list in an earlier cell has users here who are now in two arms.
        let ids: BTreeSet<&ArmId> = numbers.buckets.keys().chain(numbers.exposures.keys()).collect();
        for id in ids {
            let experiment = &*self.arms[*id as usize].experiment;
            experiments.entry(experiment.to_owned()).or_default().push(*id);
        }
        experiments
    }

    fn add(&mut self, experiment: String, arms: &[ArmId], epoch: usize, cell: &Cell) {
        let users = self.experiments.entry(experiment).or_default();
        let numbers = cell.numbers();
        for arm in arms {
            let own = users.arms.entry(*arm).or_default().entry(epoch).or_default();
            if let Some(sums) = numbers.buckets.get(arm) {
                own.sums.merge(sums);
            }
            own.exposed
                .add(numbers.exposures.get(arm).copied().unwrap_or_default());
        }
    }

    /// What the users of an experiment add up to.
    pub fn of(&self, experiment: &str) -> Option<&ExperimentUsers> {
        self.experiments.get(experiment)
    }

    /// The name of an arm.
    pub fn name(&self, arm: ArmId) -> &str {
        &self.arms[arm as usize].arm
    }

    /// Drops what is known of an experiment.
    pub fn forget(&mut self, experiment: &str) {
        self.experiments.remove(experiment);
    }

    /// Drops what is known of the window of an experiment.
    pub fn forget_window(&mut self, experiment: &str) {
        if let Some(users) = self.experiments.get_mut(experiment) {
            users.window = WindowSums::default();
        }
    }

    /// Adds the bytes of each experiment, as of the last look: what waits for the next one depends on when it is asked.
    pub fn add_bytes<'a>(&'a self, bytes: &mut BTreeMap<&'a str, Bytes>) {
        for (name, users) in &self.experiments {
            let of = bytes.entry(name).or_default();
            of.own += users.own_bytes();
            of.window += users.window.bytes();
        }
    }
}

impl ExperimentUsers {
    /// Users seen in two arms within one epoch.
    pub fn n_in_two(&self) -> u64 {
        self.all().map(|arm| arm.exposed.in_two).sum()
    }

    fn all(&self) -> impl Iterator<Item = &ArmUsers> {
        self.arms.values().flat_map(BTreeMap::values)
    }

    fn own_bytes(&self) -> u64 {
        let arms = self.all();
        arms.map(|arm| arm.sums.bytes() + arm.exposed.first * USER_BYTES)
            .sum()
    }
}

/// Of the sums of one bucket, and its number, as long as they fit into 64 bits.
pub fn row_bytes(n_columns: usize) -> u64 {
    (n_columns * size_of::<i64>() + size_of::<u8>()) as u64
}
