//! What the users of one pair add up to: cells that wait for their look, and sums by epoch as of the last one.

use std::collections::BTreeMap;

use super::Rules;
use super::users::SeenUsers;
use crate::engine::{Arm, ArmId};
use crate::ledger::{BucketSums, Cell, FirstSeen, merge_buckets};

#[derive(Debug)]
pub(super) struct PairUsers {
    /// Whether looks wait for it.
    pub holds: bool,
    /// No list before this can still settle, epoch ms.
    pub until_ms: Option<i64>,
    arms: Vec<Arm>,
    /// By number.
    waiting: BTreeMap<i64, Cell>,
    /// By experiment.
    experiments: BTreeMap<String, ExperimentUsers>,
}

/// What the users of an experiment add up to, as of the last look.
#[derive(Debug, Default)]
pub(super) struct ExperimentUsers {
    /// By arm, then epoch.
    pub sums: BTreeMap<ArmId, BTreeMap<usize, BucketSums>>,
    pub seen: SeenUsers,
}

impl Default for PairUsers {
    /// Nothing is known of it.
    fn default() -> PairUsers {
        PairUsers {
            holds: true,
            until_ms: None,
            arms: Vec::new(),
            waiting: BTreeMap::new(),
            experiments: BTreeMap::new(),
        }
    }
}

impl PairUsers {
    pub fn reached(&mut self, arms: Vec<Arm>, cells: Vec<(i64, Cell)>, until_ms: Option<i64>) {
        self.arms.extend(arms);
        self.waiting.extend(cells);
        self.until_ms = self.until_ms.max(until_ms);
    }

    /// The first cell that waits and has anything.
    pub fn first_number(&self) -> Option<i64> {
        let mut waiting = self.waiting.iter();
        let first = waiting.find(|(_, cell)| !cell.numbers().buckets.is_empty());
        first.map(|(number, _)| *number)
    }

    /// Adds the cells up to this number.
    pub fn settle(&mut self, number: i64, rules: &Rules) {
        let later = self.waiting.split_off(&(number + 1));
        for (number, cell) in std::mem::replace(&mut self.waiting, later) {
            let start_ms = number * rules.every_ms;
            for (name, arms) in self.arms_of(&cell) {
                if let Some(asked) = rules.experiments.get(&name) {
                    self.add(name, &arms, asked.epoch_of(start_ms), &cell, rules);
                }
            }
        }
    }

    /// The arms that a cell has, by experiment.
    fn arms_of(&self, cell: &Cell) -> BTreeMap<String, Vec<ArmId>> {
        let mut experiments: BTreeMap<String, Vec<ArmId>> = BTreeMap::new();
        for id in cell.numbers().buckets.keys() {
            let experiment = &*self.arms[*id as usize].experiment;
            experiments.entry(experiment.to_owned()).or_default().push(*id);
        }
        experiments
    }

    fn add(&mut self, experiment: String, arms: &[ArmId], epoch: usize, cell: &Cell, rules: &Rules) {
        let users = self.experiments.entry(experiment).or_default();
        let numbers = cell.numbers();
        for arm in arms {
            let sums = users.sums.entry(*arm).or_default().entry(epoch).or_default();
            merge_buckets(sums, &numbers.buckets[arm]);
        }
        if rules.counts_users {
            let seen = arms.iter().filter_map(|arm| {
                let seen: &FirstSeen = numbers.exposures.get(arm)?;
                Some((*arm, &*self.arms[*arm as usize].arm, seen))
            });
            users.seen.add(epoch, &seen.collect::<Vec<_>>());
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

    /// Adds the bytes of each experiment.
    pub fn add_bytes<'a>(&'a self, bytes: &mut BTreeMap<&'a str, u64>) {
        for (name, users) in &self.experiments {
            *bytes.entry(name).or_default() += users.bytes();
        }
        for cell in self.waiting.values() {
            for (arm, sums) in cell.numbers().buckets {
                *bytes.entry(&self.arms[*arm as usize].experiment).or_default() += bucket_bytes(sums);
            }
        }
    }
}

impl ExperimentUsers {
    fn bytes(&self) -> u64 {
        let sums = self.sums.values().flat_map(BTreeMap::values);
        sums.map(bucket_bytes).sum::<u64>() + self.seen.bytes()
    }
}

fn bucket_bytes(sums: &BucketSums) -> u64 {
    let n_columns = sums.values().next().map_or(0, |row| row.len());
    sums.len() as u64 * row_bytes(n_columns)
}

/// Of the sums of one bucket and their place in the map.
pub fn row_bytes(n_columns: usize) -> u64 {
    (n_columns * size_of::<i128>() + 32) as u64
}
