//! The last look as readers see it: a value that is replaced as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::{ExperimentLook, GivenUp, Look};
use crate::ledger::PairId;

/// Results of all experiments with settings.
#[derive(Debug, Clone, Default)]
pub struct PublishedLooks {
    /// Time of the last look, Unix ms. None before the first look.
    pub as_of_ms: Option<i64>,
    /// Results by experiment name. Absent before an experiment's first list.
    pub experiments: BTreeMap<String, Arc<ExperimentLook>>,
    /// Experiments that were given up because all of them took too much memory.
    pub given_up: Vec<String>,
    /// Pair that delays the next look.
    pub waits_for: Option<PairId>,
}

/// Holder of the last look. Readers never wait for a look in progress.
#[derive(Debug, Default)]
pub struct Published(RwLock<Arc<PublishedLooks>>);

impl Published {
    /// Returns the last look.
    pub fn shown(&self) -> Arc<PublishedLooks> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes a look. An earlier look than the published one was retaken after a restart, and does not replace it.
    pub fn show(&self, looked: Look, waits_for: Option<PairId>) {
        let mut shown = PublishedLooks::clone(&self.shown());
        if shown.as_of_ms <= Some(looked.as_of_ms) {
            shown.as_of_ms = Some(looked.as_of_ms);
            shown.experiments = looked.experiments;
        }
        note(&mut shown, looked.given_up.as_ref());
        shown.waits_for = waits_for;
        self.set(shown);
    }

    /// Publishes a loss that happened before looks resumed.
    pub fn give_up(&self, given_up: &GivenUp) {
        let mut shown = PublishedLooks::clone(&self.shown());
        note(&mut shown, Some(given_up));
        self.set(shown);
    }

    /// Publishes the pair that delays the next look.
    pub fn wait_for(&self, pair: Option<PairId>) {
        if self.shown().waits_for != pair {
            let mut shown = PublishedLooks::clone(&self.shown());
            shown.waits_for = pair;
            self.set(shown);
        }
    }

    fn set(&self, shown: PublishedLooks) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
    }
}

fn note(shown: &mut PublishedLooks, given_up: Option<&GivenUp>) {
    if let Some(GivenUp::Experiment(name)) = given_up {
        shown.given_up.push(name.clone());
    }
}
