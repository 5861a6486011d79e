//! Faults of the state topic for readiness and for the page: records that are lost, and settings or records that let no state
//! be stored.

use std::collections::BTreeMap;

use abgauge_core::ledger::PairId;

use super::{StoredPairs, stored};
use crate::store::keeper::OwnerStatus;
use crate::stream::worker::Worker;
use crate::stream::worker::phase::Phase;
use crate::stream::worker::shards::Shards;
use crate::telemetry::{StoredState, Warning};

/// Time after which a pair without settled numbers is reported, ms. A pair that was just assigned or claimed again shows none
/// for a moment.
const HIDDEN_MS: i64 = 5_000;
/// Time for which a repaired loss is on the page.
const TELL_LOSS_SECONDS: f64 = 3_600.0;

impl StoredPairs {
    /// Collects the faults that keep the stored state of these pairs from being whole, in force and shown.
    pub fn rot(&self, shards: &Shards, now_ms: i64) -> Vec<String> {
        let mut found: Vec<String> = self.unfit.iter().cloned().collect();
        for (pair, phase) in shards.phases() {
            // A parked pair is not ours until the next assignment.
            if matches!(phase, Phase::Parked(_)) {
                continue;
            }
            let status = self.door.keeper.status(pair);
            // If a pair has a known fault, hidden numbers may be only its effect.
            if let Some(trouble) = &status.trouble {
                found.push(format!("partition {pair}: {trouble}"));
            } else if self.is_hidden(pair, phase, now_ms) && now_ms - status.since_ms > HIDDEN_MS {
                let why = match status.standing {
                    OwnerStatus::Holding => {
                        "its seal is missing from the state topic, or that topic has not been read for long"
                    }
                    OwnerStatus::Superseded => "another instance has claimed it",
                    _ => "its stored state is not claimed yet",
                };
                found.push(format!("partition {pair} shows no final numbers: {why}"));
            }
        }
        found
    }

    /// Returns whether a pair that was stored shows nothing settled.
    fn is_hidden(&self, pair: PairId, phase: &Phase, now_ms: i64) -> bool {
        let is_sealed = stored(phase).is_some_and(|own| own.is_sealed);
        is_sealed && self.door.keeper.shown(pair, now_ms).settled.is_none()
    }

    /// Returns an invalid key in our namespace, and its partition.
    pub fn malformed_key(&self, shards: &Shards) -> Option<(PairId, String)> {
        let mut pairs = shards.phases().map(|(pair, _)| pair);
        pairs.find_map(|pair| Some((pair, self.door.keeper.status(pair).malformed_key?)))
    }
}

impl Worker {
    /// Notes the last look at the state topic.
    pub(in crate::stream::worker) fn judge_state_topic(&mut self, fault: Option<String>) {
        if let Some(stored) = &mut self.stored {
            stored.unfit = fault;
        }
    }
}

/// Warns of a topic that has lost something which was written again.
pub fn lost(states: &BTreeMap<PairId, StoredState>) -> Option<Warning> {
    let recent = states.iter().filter_map(|(pair, state)| {
        let seconds = state.seconds_since_loss?;
        // While it is not whole, readiness reports it.
        (state.whole && seconds < TELL_LOSS_SECONDS).then_some((seconds, pair))
    });
    let (seconds, pair) = recent.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let n: u64 = states.values().map(|state| state.lost).sum();
    let warning = format!(
        "{seconds:.0} s ago the state topic had lost some of the stored state of partition {pair}, and abgauge rewrote it ({n} times since the \
         start). While no instance runs, nothing can: check that cleanup.policy is only compact, and which users may write to the topic or delete from it"
    );
    Some(Warning::new(warning).see("AbgaugeStateLost"))
}

/// Warns of records that are not ours.
pub fn malformed(key: Option<&(PairId, String)>) -> Option<Warning> {
    let (pair, key) = key?;
    let warning = format!(
        "another program wrote the key `{key}` into partition {pair} of the state topic: it is ignored; delete it with a record without a \
         value, and check which users may write there"
    );
    Some(Warning::new(warning).see("AbgaugeStateLost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_a_repaired_loss_for_an_hour() {
        let reported = |whole, seconds_since_loss| {
            let state = |lost, seconds_since_loss| StoredState {
                whole,
                lost,
                seconds_since_loss,
                ..StoredState::default()
            };
            let states = BTreeMap::from([(3, state(2, seconds_since_loss)), (4, state(0, None))]);
            lost(&states).map(|warning| warning.message)
        };
        let message = reported(true, Some(3_599.0)).expect("it is told");
        let words = "3599 s ago the state topic had lost some of the stored state of partition 3, and abgauge rewrote it (2 times";
        assert!(message.starts_with(words), "{message}");
        assert_eq!(reported(true, Some(3_600.0)), None);
        assert_eq!(reported(true, None), None);
        assert_eq!(reported(false, Some(1.0)), None, "readiness reports it");
    }
}
