//! Restart with all pairs as they are stored, as of the latest look that any of them contains.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::PairUsers;
use super::stored::{AsOf, StoredSequences, StoredUsers};
use super::{ExperimentProgress, GivenUp, Looks};
use crate::engine::Arm;
use crate::ledger::{Cell, PairId};

/// A pair as it is stored.
#[derive(Debug)]
pub struct Resumed {
    pub pair: PairId,
    /// Random id of the pair's incarnation.
    pub incarnation_id: u64,
    /// True if looks wait for it.
    pub holds: bool,
    /// Arms by number, complete.
    pub arms: Vec<Arm>,
    /// Complete cells that are still kept, by number.
    pub cells: Vec<(i64, Cell)>,
    /// No list before this can still settle, Unix ms.
    pub until_ms: Option<i64>,
    /// Time from which sums are whole, Unix ms. None if they are whole from the start.
    pub whole_from_ms: Option<i64>,
    /// Time from which the users of each experiment are tracked, Unix ms.
    pub users_since_ms: BTreeMap<String, i64>,
    /// Stored looks. None before the first look.
    pub as_of: Option<AsOf>,
}

/// A finding when looks resume or pairs make progress.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResumeFinding {
    /// Given up, either before the restart or because waiting cells take too much memory.
    GivenUp(GivenUp),
    /// The sums of an experiment restart: the stored ones have other users, epochs or metrics.
    BeginsAnew(String),
    /// The settings of an experiment changed: its tests restart over the same sums.
    AsksAnew(String),
}

impl Looks {
    /// Returns the findings since the last call, each once.
    pub fn take_found(&mut self) -> Vec<ResumeFinding> {
        std::mem::take(&mut self.found)
    }

    pub(super) fn find(&mut self, found: ResumeFinding) {
        if self.all_found.insert(found.clone()) {
            self.found.push(found);
        }
    }

    pub(super) fn resume(&mut self, pairs: Vec<Resumed>) {
        let restarted = self.restarted_experiments(&pairs);
        self.pairs.clear();
        self.next = None;
        self.has_looked = false;
        self.courses
            .values_mut()
            .for_each(|course| *course = ExperimentProgress::default());
        let mut latest: Option<StoredSequences> = None;
        let mut users_of: Vec<(PairId, Option<StoredUsers>)> = Vec::new();
        for resumed in pairs {
            let id = resumed.pair;
            let (pair, as_of) = self.known(resumed);
            self.pairs.insert(id, pair);
            let (users, sequences) = as_of.map(|AsOf { users, sequences }| (users, sequences)).unzip();
            users_of.push((id, users));
            latest = later(latest, sequences);
        }
        // `adopt` removes experiments that were given up, so their users must be restored after it.
        latest
            .into_iter()
            .for_each(|sequences| self.adopt(sequences, &restarted));
        for (id, users) in users_of {
            if let (Some(users), Some(pair)) = (users, self.pairs.get_mut(&id)) {
                pair.resume(users, &self.rules, &restarted);
            }
        }
        for pair in self.pairs.values_mut() {
            let without_window = self.without_window.iter();
            without_window.for_each(|experiment| pair.forget_window(experiment));
        }
    }

    /// Creates a pair from its stored state without the sums as of a look, which are returned for later.
    fn known(&self, resumed: Resumed) -> (PairUsers, Option<AsOf>) {
        let every_ms = self.rules.every_ms;
        let mut pair = PairUsers::default();
        (pair.incarnation_id, pair.holds) = (resumed.incarnation_id, resumed.holds);
        let whole_from_ms = resumed.whole_from_ms;
        // Round up: a cell that starts before this time is incomplete.
        pair.counts_from = whole_from_ms.map(|ms| (ms + every_ms - 1).div_euclid(every_ms));
        pair.reached(resumed.arms, resumed.cells, resumed.until_ms);
        (pair, resumed.as_of)
    }

    /// Returns the experiments that restart in all pairs, because one pair cannot continue its stored sums: its users are
    /// tracked, or all metrics summed, only from a time after the stored sums end.
    fn restarted_experiments(&mut self, pairs: &[Resumed]) -> BTreeSet<String> {
        let every_ms = self.rules.every_ms;
        let mut restarted = BTreeSet::new();
        let stored = pairs.iter().filter_map(|pair| Some((pair, pair.as_of.as_ref()?)));
        for (pair, AsOf { users, .. }) in stored {
            let end_ms = users.up_to.end.saturating_mul(every_ms);
            let is_whole = users.has_columns && pair.whole_from_ms <= Some(end_ms);
            let continues = |name: &&String| is_whole && pair.users_since_ms.get(*name) < Some(&end_ms);
            let known = users.experiments.keys();
            restarted.extend(known.filter(|name| !continues(name)).cloned());
        }
        // An experiment that is no longer configured has nothing to restart.
        restarted.retain(|name| self.rules.experiments.contains_key(name));
        restarted
            .iter()
            .for_each(|name| self.find(ResumeFinding::BeginsAnew(name.clone())));
        restarted
    }

    /// Restores the state of the experiments.
    fn adopt(&mut self, stored: StoredSequences, restarted: &BTreeSet<String>) {
        // The look that was stored is taken again.
        self.next = Some(stored.look);
        let as_of_ms = (stored.look + 1) * self.rules.every_ms;
        // With more memory than before, experiments that were given up may return.
        if self.rules.max_bytes <= stored.max_bytes {
            for experiment in stored.given_up {
                if self.rules.experiments.contains_key(&experiment) {
                    self.give_up_experiment(&experiment);
                    self.find(ResumeFinding::GivenUp(GivenUp::Experiment(experiment)));
                }
            }
        }
        for experiment in stored.without_window {
            if self.rules.experiments.contains_key(&experiment) && !self.without_window.contains(&experiment)
            {
                self.give_up_window(&experiment);
                self.find(ResumeFinding::GivenUp(GivenUp::Window(experiment)));
            }
        }
        for (name, stored) in stored.courses {
            let Some(experiment) = self
                .rules
                .experiments
                .get(&name)
                .filter(|_| !restarted.contains(&name))
            else {
                continue;
            };
            let (course, is_same) = stored.resume(experiment.settings.as_ref(), as_of_ms);
            self.courses.insert(name.clone(), course);
            if !is_same {
                self.find(ResumeFinding::AsksAnew(name));
            }
        }
    }
}

/// Returns the later of the two. At the same look it is the first.
fn later(one: Option<StoredSequences>, other: Option<StoredSequences>) -> Option<StoredSequences> {
    let look = |sequences: &Option<StoredSequences>| sequences.as_ref().map(|sequences| sequences.look);
    if look(&other) > look(&one) { other } else { one }
}
