//! Goes on with pairs that were stored, as of the latest look that any of them knows.

use super::pair::PairUsers;
use super::stored::{AsOf, StoredSequences};
use super::{Course, GivenUp, Looks};
use crate::engine::Arm;
use crate::ledger::{Cell, PairId};

/// A pair that was stored.
#[derive(Debug)]
pub struct Resumed {
    pub pair: PairId,
    /// All of its arms, by number.
    pub arms: Vec<Arm>,
    /// Its complete cells that are still kept, by number.
    pub cells: Vec<(i64, Cell)>,
    /// No list before this can still settle, epoch ms.
    pub until_ms: Option<i64>,
    /// Sums are whole from then on, epoch ms; none: from the begin on.
    pub whole_from_ms: Option<i64>,
    /// Experiments whose users are told apart only from `until_ms` on.
    pub begin_anew: Vec<String>,
    /// None where there was no look before.
    pub as_of: Option<AsOf>,
}

/// What was found when looks went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This had been given up, and stays so.
    GivenUp(GivenUp),
    /// What an experiment adds up to begins anew: what was stored of it is of other users, epochs or metrics.
    BeginsAnew(String),
    /// Other things are asked of an experiment: its tests begin anew, over the same sums.
    AsksAnew(String),
}

impl Looks {
    /// What was found since the last call.
    pub fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    pub(super) fn resume(&mut self, resumed: Resumed) {
        let Resumed {
            pair: id,
            arms,
            cells,
            until_ms,
            whole_from_ms,
            mut begin_anew,
            as_of,
        } = resumed;
        let holds = self.pairs.get(&id).is_none_or(|pair| pair.holds);
        let every_ms = self.rules.every_ms;
        let mut pair = PairUsers::default();
        pair.holds = holds;
        pair.counts_from = whole_from_ms.map(|ms| (ms + every_ms - 1).div_euclid(every_ms));
        pair.reached(arms, cells, until_ms);
        if let Some(AsOf { users, sequences }) = as_of {
            if !users.has_columns {
                begin_anew.extend(self.rules.experiments.keys().cloned());
            }
            pair.resume(users, &self.rules, &self.anew);
            self.adopt(sequences);
        }
        for experiment in self.without_window.iter() {
            pair.forget_window(experiment);
        }
        self.pairs.insert(id, pair);
        begin_anew
            .iter()
            .for_each(|experiment| self.begin_anew(id, experiment));
    }

    /// The latest sequences stand.
    fn adopt(&mut self, stored: StoredSequences) {
        if self.next.is_some_and(|next| next >= stored.look) {
            return;
        }
        self.next = Some(stored.look);
        self.has_looked = false;
        if self.rules.max_bytes <= stored.max_bytes {
            for experiment in stored.given_up {
                if self.rules.experiments.contains_key(&experiment) {
                    self.give_up_experiment(&experiment);
                    self.found.push(Found::GivenUp(GivenUp::Experiment(experiment)));
                }
            }
        }
        for experiment in stored.without_window {
            if self.rules.experiments.contains_key(&experiment) && !self.without_window.contains(&experiment)
            {
                self.give_up_window(&experiment);
                self.found.push(Found::GivenUp(GivenUp::Window(experiment)));
            }
        }
        let mut courses = stored.courses;
        for (name, course) in &mut self.courses {
            let stored = courses.remove(name).filter(|_| !self.anew.contains(name));
            *course = Course::default();
            if let Some(stored) = stored {
                let settings = self.rules.experiments[name].settings.as_ref();
                let (resumed, is_same) = stored.resume(settings);
                *course = resumed;
                let found = Found::AsksAnew(name.clone());
                if !is_same && !self.found.contains(&found) {
                    self.found.push(found);
                }
            }
        }
    }

    /// What was stored of an experiment does not go on: in no pair, as long as no look was taken with what was stored.
    fn begin_anew(&mut self, pair: PairId, experiment: &str) {
        let Some(course) = self.courses.get_mut(experiment) else {
            return;
        };
        let mut pairs: Vec<&mut PairUsers> = if self.has_looked {
            self.pairs.get_mut(&pair).into_iter().collect()
        } else {
            self.pairs.values_mut().collect()
        };
        let is_known = pairs.iter().any(|pair| pair.of(experiment).is_some())
            || !self.has_looked && course.start_ms.is_some();
        if !is_known {
            return;
        }
        pairs.iter_mut().for_each(|pair| pair.forget(experiment));
        if !self.has_looked {
            *course = Course::default();
            self.anew.insert(experiment.to_owned());
        }
        self.found.push(Found::BeginsAnew(experiment.to_owned()));
    }
}
