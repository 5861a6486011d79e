//! The last look, as whoever shows it reads it: a value that is exchanged as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::{ExperimentLook, GivenUp, Looked};
use crate::ledger::PairId;

/// What is shown of all experiments that something is asked of.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The time of the last look, epoch ms; none before the first one.
    pub as_of_ms: Option<i64>,
    /// By name; none of an experiment before its first list.
    pub experiments: BTreeMap<String, Arc<ExperimentLook>>,
    /// Experiments that were given up, because all of them took too much memory.
    pub given_up: Vec<String>,
    /// The pair that the next look waits for.
    pub waits_for: Option<PairId>,
}

/// Where the last look is found. Readers never wait for a look that is being taken.
#[derive(Debug, Default)]
pub struct Published(RwLock<Arc<Shown>>);

impl Published {
    /// The last look.
    pub fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows a look. One that is earlier than what is shown was taken again, and does not take its place.
    pub fn show(&self, looked: Looked, waits_for: Option<PairId>) {
        let mut shown = Shown::clone(&self.shown());
        if shown.as_of_ms <= Some(looked.as_of_ms) {
            shown.as_of_ms = Some(looked.as_of_ms);
            shown.experiments = looked.experiments;
        }
        note(&mut shown, looked.given_up.as_ref());
        shown.waits_for = waits_for;
        self.set(shown);
    }

    /// Says what had been given up when looks went on.
    pub fn give_up(&self, given_up: &GivenUp) {
        let mut shown = Shown::clone(&self.shown());
        note(&mut shown, Some(given_up));
        self.set(shown);
    }

    /// Says which pair the next look waits for.
    pub fn wait_for(&self, pair: Option<PairId>) {
        if self.shown().waits_for != pair {
            let mut shown = Shown::clone(&self.shown());
            shown.waits_for = pair;
            self.set(shown);
        }
    }

    fn set(&self, shown: Shown) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
    }
}

fn note(shown: &mut Shown, given_up: Option<&GivenUp>) {
    if let Some(GivenUp::Experiment(name)) = given_up {
        shown.given_up.push(name.clone());
    }
}
