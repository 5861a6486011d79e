//! Begins over with all pairs as they are stored, as of the latest look that any of them knows.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::PairUsers;
use super::stored::{AsOf, StoredSequences, StoredUsers};
use super::{Course, GivenUp, Looks};
use crate::engine::Arm;
use crate::ledger::{Cell, PairId};

/// A pair that is stored.
#[derive(Debug)]
pub struct Resumed {
    pub pair: PairId,
    /// Tells it apart from the pair that begins anew.
    pub life: u64,
    /// Whether looks wait for it.
    pub holds: bool,
    /// All of its arms, by number.
    pub arms: Vec<Arm>,
    /// Its complete cells that are still kept, by number.
    pub cells: Vec<(i64, Cell)>,
    /// No list before this can still settle, epoch ms.
    pub until_ms: Option<i64>,
    /// Sums are whole from then on, epoch ms; none: from the begin on.
    pub whole_from_ms: Option<i64>,
    /// Since when the users of experiments are told apart, epoch ms.
    pub users_since_ms: BTreeMap<String, i64>,
    /// None where there was no look before.
    pub as_of: Option<AsOf>,
}

/// What was found when looks went on, or pairs came further.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// This is given up: it had been before, or cells that wait take too much memory.
    GivenUp(GivenUp),
    /// What an experiment adds up to begins anew: what was stored of it is of other users, epochs or metrics.
    BeginsAnew(String),
    /// Other things are asked of an experiment: its tests begin anew, over the same sums.
    AsksAnew(String),
}

impl Looks {
    /// What was found since the last call, each once.
    pub fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    pub(super) fn find(&mut self, found: Found) {
        if self.all_found.insert(found.clone()) {
            self.found.push(found);
        }
    }

    pub(super) fn resume(&mut self, pairs: Vec<Resumed>) {
        let anew = self.experiments_anew(&pairs);
        self.pairs.clear();
        self.next = None;
        self.has_looked = false;
        self.courses
            .values_mut()
            .for_each(|course| *course = Course::default());
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
        latest
            .into_iter()
            .for_each(|sequences| self.adopt(sequences, &anew));
        for (id, users) in users_of {
            if let (Some(users), Some(pair)) = (users, self.pairs.get_mut(&id)) {
                pair.resume(users, &self.rules, &anew);
            }
        }
        for pair in self.pairs.values_mut() {
            let without_window = self.without_window.iter();
            without_window.for_each(|experiment| pair.forget_window(experiment));
        }
    }

    /// What is known of a pair beside what was stored as of a look.
    fn known(&self, resumed: Resumed) -> (PairUsers, Option<AsOf>) {
        let every_ms = self.rules.every_ms;
        let mut pair = PairUsers::default();
        (pair.life, pair.holds) = (resumed.life, resumed.holds);
        let whole_from_ms = resumed.whole_from_ms;
        pair.counts_from = whole_from_ms.map(|ms| (ms + every_ms - 1).div_euclid(every_ms));
        pair.reached(resumed.arms, resumed.cells, resumed.until_ms);
        (pair, resumed.as_of)
    }

    /// The experiments that begin anew in all pairs, as what one of them has stored does not go on: its users are told apart, or
    /// all metrics summed, only since later than what was stored ends.
    fn experiments_anew(&mut self, pairs: &[Resumed]) -> BTreeSet<String> {
        let every_ms = self.rules.every_ms;
        let mut anew = BTreeSet::new();
        let stored = pairs.iter().filter_map(|pair| Some((pair, pair.as_of.as_ref()?)));
        for (pair, AsOf { users, .. }) in stored {
            let end_ms = users.up_to.end.saturating_mul(every_ms);
            let is_whole = users.has_columns && pair.whole_from_ms <= Some(end_ms);
            let goes_on = |name: &&String| is_whole && pair.users_since_ms.get(*name) < Some(&end_ms);
            let known = users.experiments.keys();
            anew.extend(known.filter(|name| !goes_on(name)).cloned());
        }
        anew.retain(|name| self.rules.experiments.contains_key(name));
        anew.iter()
            .for_each(|name| self.find(Found::BeginsAnew(name.clone())));
        anew
    }

    /// Goes on with what was kept of experiments.
    fn adopt(&mut self, stored: StoredSequences, anew: &BTreeSet<String>) {
        self.next = Some(stored.look);
        let as_of_ms = (stored.look + 1) * self.rules.every_ms;
        if self.rules.max_bytes <= stored.max_bytes {
            for experiment in stored.given_up {
                if self.rules.experiments.contains_key(&experiment) {
                    self.give_up_experiment(&experiment);
                    self.find(Found::GivenUp(GivenUp::Experiment(experiment)));
                }
            }
        }
        for experiment in stored.without_window {
            if self.rules.experiments.contains_key(&experiment) && !self.without_window.contains(&experiment)
            {
                self.give_up_window(&experiment);
                self.find(Found::GivenUp(GivenUp::Window(experiment)));
            }
        }
        for (name, stored) in stored.courses {
            let Some(experiment) = self
                .rules
                .experiments
                .get(&name)
                .filter(|_| !anew.contains(&name))
            else {
                continue;
            };
            let (course, is_same) = stored.resume(experiment.settings.as_ref(), as_of_ms);
            self.courses.insert(name.clone(), course);
            if !is_same {
                self.find(Found::AsksAnew(name));
            }
        }
    }
}

/// Of two of one look, the first.
fn later(one: Option<StoredSequences>, other: Option<StoredSequences>) -> Option<StoredSequences> {
    let look = |sequences: &Option<StoredSequences>| sequences.as_ref().map(|sequences| sequences.look);
    if look(&other) > look(&one) { other } else { one }
}
