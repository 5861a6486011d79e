//! The arms that a pair of partitions has admitted, in the order of its offsets.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::event::{ArmName, Batch};

/// Stands for everything beyond the bound on arms. No event may carry it.
pub const OTHER: &str = "__other__";

/// Index of an admitted arm, dense from 0 in the order of admission.
pub type ArmId = u32;

const RECENT: usize = 64;

/// Folded arms that are remembered across restarts: 256 KiB of stored state.
const MAX_STORED_FOLDED: usize = 16_384;

/// Names of an admitted arm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arm {
    pub experiment: Arc<str>,
    pub arm: Arc<str>,
}

/// Admits up to `max` arms for good; a later one is folded into `__other__` of its experiment if that has an
/// admitted arm, else into `__other__` of the experiment `__other__`.
#[derive(Debug)]
pub struct Arms {
    max: usize,
    n_admitted: usize,
    arms: Vec<Arm>,
    /// Admitted arms, and the first `max` folded ones under the arm that they fold into.
    by_hash: HashMap<u128, ArmId>,
    /// Last lookups, by the last bits of the hash: most lists are in one of few arms.
    recent: [Option<(u128, ArmId)>; RECENT],
    /// Hashes of the folded arms that are remembered, in the order of their first lists.
    folded: Vec<u128>,
    /// Folded arms of earlier processes that this one has not read yet.
    folded_before: HashSet<u128>,
    /// The `__other__` arm of an experiment, once it has one.
    other_of: HashMap<Arc<str>, Option<ArmId>>,
    /// Admitted arms that were known before a record named them, by experiment and arm.
    by_name: HashMap<Arc<str>, HashMap<Arc<str>, ArmId>>,
}

impl Arms {
    pub fn new(max: u32) -> Arms {
        Arms {
            max: max as usize,
            n_admitted: 0,
            arms: Vec::new(),
            by_hash: HashMap::default(),
            recent: [None; RECENT],
            folded: Vec::new(),
            folded_before: HashSet::default(),
            other_of: HashMap::default(),
            by_name: HashMap::default(),
        }
    }

    /// Restores arms that were admitted under the same bound, in their order; `None` if that is impossible.
    pub fn resume(max: u32, arms: &[Arm]) -> Option<Arms> {
        let mut resumed = Arms::new(max);
        for Arm { experiment, arm } in arms {
            let id = resumed.push(Arc::clone(experiment), Arc::clone(arm));
            let standing = if &**arm == OTHER {
                resumed
                    .other_of
                    .insert(Arc::clone(experiment), Some(id))
                    .flatten()
            } else {
                resumed.n_admitted += 1;
                resumed.other_of.entry(Arc::clone(experiment)).or_insert(None);
                let of_experiment = resumed.by_name.entry(Arc::clone(experiment)).or_default();
                of_experiment.insert(Arc::clone(arm), id)
            };
            if standing.is_some() {
                return None;
            }
        }
        (resumed.n_admitted <= resumed.max).then_some(resumed)
    }

    /// Remembers arms that earlier processes have folded.
    pub fn resume_folded(&mut self, folded: &[u128]) {
        self.folded = folded[..folded.len().min(self.max)].to_vec();
        self.folded_before = self.folded.iter().copied().collect();
    }

    /// An arm that was admitted before a record of this process named it.
    fn resumed(&self, name: &ArmName, batch: &Batch) -> Option<ArmId> {
        // The common case.
        if self.by_name.is_empty() {
            return None;
        }
        let arms = self.by_name.get(batch.text_of(&name.experiment))?;
        arms.get(batch.text_of(&name.arm)).copied()
    }

    /// The arm that lists of this name count in.
    pub fn admit(&mut self, name: &ArmName, batch: &Batch) -> ArmId {
        let recent = &mut self.recent[name.hash as usize % RECENT];
        if let Some((_, id)) = recent.filter(|(hash, _)| *hash == name.hash) {
            return id;
        }
        if let Some(id) = self.by_hash.get(&name.hash) {
            *recent = Some((name.hash, *id));
            return *id;
        }
        if let Some(id) = self.resumed(name, batch) {
            self.by_hash.insert(name.hash, id);
            return id;
        }
        let experiment = batch.text_of(&name.experiment);
        if self.n_admitted < self.max {
            self.n_admitted += 1;
            let experiment: Arc<str> = experiment.into();
            self.other_of.entry(Arc::clone(&experiment)).or_insert(None);
            let id = self.push(experiment, batch.text_of(&name.arm).into());
            self.by_hash.insert(name.hash, id);
            return id;
        }
        let id = self.other(experiment);
        // Remembered so that each is counted once, as far as the bound on memory goes.
        if self.folded_before.remove(&name.hash) {
            self.by_hash.insert(name.hash, id);
        } else if self.folded.len() < self.max {
            self.folded.push(name.hash);
            self.by_hash.insert(name.hash, id);
        }
        id
    }

    /// Admits an arm of another pair if there is room, and returns its number.
    pub fn learn(&mut self, arm: &Arm) -> Option<ArmId> {
        if let Some(known) = self.arms.iter().position(|known| known == arm) {
            return Some(known as ArmId);
        }
        if self.n_admitted == self.max {
            return None;
        }
        self.n_admitted += 1;
        let Arm { experiment, arm } = arm.clone();
        self.other_of.entry(Arc::clone(&experiment)).or_insert(None);
        let id = self.push(Arc::clone(&experiment), Arc::clone(&arm));
        // Its hash is known once a record names it.
        self.by_name.entry(experiment).or_default().insert(arm, id);
        Some(id)
    }

    /// The arm that lists of this name would count in, if there is one already.
    pub fn find(&self, name: &ArmName, batch: &Batch) -> Option<ArmId> {
        let known = self.by_hash.get(&name.hash).copied();
        known.or_else(|| self.resumed(name, batch)).or_else(|| {
            // While there is room, a new arm is admitted and not folded.
            let is_full = self.n_admitted == self.max;
            let other = self
                .other_of
                .get(batch.text_of(&name.experiment))
                .or_else(|| self.other_of.get(OTHER));
            other.copied().flatten().filter(|_| is_full)
        })
    }

    /// Keeps each of a list's arms once if several of its names fold into one. Returns a number that distinguishes the folded
    /// names, or 0 if no name is folded.
    #[inline(always)]
    pub fn count_once(&self, names: &[ArmName], arms: &mut Vec<ArmId>) -> u32 {
        // Usually no arm was ever folded.
        match self.arms.len() == self.n_admitted {
            true => 0,
            false => self.fold_into_one(names, arms),
        }
    }

    #[inline(never)]
    fn fold_into_one(&self, names: &[ArmName], arms: &mut Vec<ArmId>) -> u32 {
        let is_other = |arm: ArmId| &*self.get(arm).arm == OTHER;
        let of_other = names.iter().zip(&*arms).filter(|(_, arm)| is_other(**arm));
        let hash = of_other
            .map(|(name, _)| name.hash as u32)
            .reduce(|hash, name| hash.rotate_left(5) ^ name);
        // A list has one arm per experiment, so two can meet only in the experiment `__other__`.
        let of_all = self.other_of.get(OTHER).copied().flatten();
        let mut n_of_all = 0;
        arms.retain(|arm| {
            n_of_all += u32::from(Some(*arm) == of_all);
            Some(*arm) != of_all || n_of_all == 1
        });
        hash.map_or(0, |hash| hash | 1)
    }

    fn other(&mut self, experiment: &str) -> ArmId {
        let (experiment, known) = match self.other_of.get_key_value(experiment) {
            Some((name, id)) => (Arc::clone(name), *id),
            None => (OTHER.into(), self.other_of.get(OTHER).copied().flatten()),
        };
        known.unwrap_or_else(|| {
            let id = self.push(Arc::clone(&experiment), OTHER.into());
            self.other_of.insert(experiment, Some(id));
            id
        })
    }

    fn push(&mut self, experiment: Arc<str>, arm: Arc<str>) -> ArmId {
        self.arms.push(Arm { experiment, arm });
        (self.arms.len() - 1) as ArmId
    }

    pub fn get(&self, id: ArmId) -> &Arm {
        &self.arms[id as usize]
    }

    /// Returns all arms by id.
    pub fn all(&self) -> &[Arm] {
        &self.arms
    }

    /// Returns the number of distinct arms folded, at most `max`: further ones are not distinguished.
    pub fn n_folded(&self) -> u64 {
        self.folded.len() as u64
    }

    /// Returns the hashes of the first folded arms, as many as are stored.
    pub fn stored_folded(&self) -> &[u128] {
        &self.folded[..self.folded.len().min(MAX_STORED_FOLDED)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits "experiment/arm" names in turn and checks the arm of each.
    fn check(max: u32, names: &[&str], expected: &[&str]) -> Arms {
        let mut arms = Arms::new(max);
        assert_eq!(admit_all(&mut arms, names), expected);
        arms
    }

    fn admit_all(arms: &mut Arms, names: &[&str]) -> Vec<String> {
        names
            .iter()
            .map(|name| {
                let (experiment, arm) = name.split_once('/').expect("a test name has a slash");
                let batch = Batch {
                    text: format!("{experiment}{arm}"),
                    ..Batch::default()
                };
                let cut = experiment.len() as u32;
                let hash = name
                    .bytes()
                    .fold(7_u128, |hash, byte| hash * 257 + u128::from(byte));
                let name = ArmName {
                    hash,
                    experiment: 0..cut,
                    arm: cut..batch.text.len() as u32,
                };
                let id = arms.admit(&name, &batch);
                format!("{}/{}", arms.get(id).experiment, arms.get(id).arm)
            })
            .collect()
    }

    #[test]
    fn admits_arms_in_order_and_folds_later_ones() {
        let arms = check(
            2,
            &["a/x", "b/x", "a/y", "c/z", "a/x", "c/z", "a/q"],
            &[
                "a/x",
                "b/x",
                "a/__other__",
                "__other__/__other__",
                "a/x",
                "__other__/__other__",
                "a/__other__",
            ],
        );
        assert_eq!(
            arms.n_folded(),
            2,
            "a/y and c/z are remembered, a/q is beyond the bound"
        );
    }

    #[test]
    fn arms_folded_before_a_restart_count_once() {
        let before = check(1, &["a/x", "a/y"], &["a/x", "a/__other__"]);
        let mut arms = Arms::resume(1, before.all()).expect("they were admitted under this bound");
        arms.resume_folded(before.stored_folded());
        assert_eq!(arms.n_folded(), 1, "before it is read again");
        admit_all(&mut arms, &["a/y", "a/y"]);
        assert_eq!(
            (arms.n_folded(), arms.stored_folded()),
            (1, before.stored_folded())
        );
    }

    #[test]
    fn an_admitted_arm_stays() {
        let arms = check(1, &["a/x", "a/y", "a/x"], &["a/x", "a/__other__", "a/x"]);
        assert_eq!(arms.n_folded(), 1);
    }
}
