//! Facts about the stored state of a pair that is in memory: data of its phases.

use std::ops::Range;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::{Checkpoint, View};
use abgauge_core::journal::{Header, LogIdentity};
use abgauge_core::ledger::EncodedLedger;
use abgauge_core::looks::{PairLooks, UpTo};

use crate::store::keeper::Roles;
use crate::store::stored::codec;

/// Facts about the stored state of a pair in memory.
#[derive(Debug)]
pub struct StoredPair {
    /// The pair has reached the ends of its logs once, here or in another instance. Until then it is in no view.
    pub was_caught_up: bool,
    /// No record of the pair had been shed as of its last state.
    pub is_exact: bool,
    /// A state of this memory is current.
    pub is_sealed: bool,
    /// End of the settled range when a state was last offered, Unix ms.
    pub offered_until_ms: Option<i64>,
    /// Random id shared by all states in one chain; a pair that restarts from scratch gets a new one.
    pub incarnation_id: u64,
    /// Sums of the last known look; `None` before the first one. The stored ones are carried over until a later look arrives,
    /// because this memory continues the chain of states it was restored from.
    pub looks: Option<(PairLooks, UpTo)>,
    /// Identity in the state it was restored from, which may contain ids that the brokers do not report now.
    pub known: Option<LogIdentity>,
    /// Offsets of its logs that were counted and are read again.
    pub counted: Vec<(Side, Range<i64>)>,
}

impl StoredPair {
    pub fn new(incarnation_id: u64) -> StoredPair {
        StoredPair {
            incarnation_id,
            was_caught_up: false,
            is_exact: true,
            is_sealed: false,
            offered_until_ms: None,
            looks: None,
            known: None,
            counted: Vec::new(),
        }
    }

    /// Notes that the pair has reached the ends of its logs. Returns the views in which it is complete.
    pub fn caught_up(&mut self) -> &'static [View] {
        if !std::mem::replace(&mut self.was_caught_up, true) {
            // Offer this even if no more lists settle, so that the next owner shows the pair at once.
            self.offered_until_ms = None;
        }
        if self.is_sealed {
            &View::BOTH
        } else {
            &[View::Live]
        }
    }

    /// Notes that a state of this memory is current. Returns whether its settled numbers are complete.
    pub fn sealed(&mut self) -> bool {
        self.is_sealed = true;
        self.is_complete()
    }

    /// Returns whether the settled view may show the pair. One that has never caught up is in no view, although its state is
    /// stored.
    pub fn is_complete(&self) -> bool {
        self.is_sealed && self.was_caught_up
    }

    /// Encodes the pair at a checkpoint, with the parts of its ledger.
    pub fn state(
        &mut self,
        checkpoint: &Checkpoint,
        parts: EncodedLedger,
        now: &LogIdentity,
    ) -> (Header, Roles) {
        (self.offered_until_ms, self.is_exact) = (checkpoint.until_ms, checkpoint.is_exact);
        // Ids that the brokers do not report now are kept, so that a recreated topic is still noticed later.
        let identity = self.known.as_ref().map(|known| now.knowing(known));
        codec::stored(
            checkpoint,
            parts,
            self.incarnation_id,
            self.looks.as_ref().map(|(looks, _)| looks),
            identity.as_ref().unwrap_or(now),
            self.was_caught_up,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_complete_once_it_has_caught_up_and_a_state_of_it_is_current() {
        let mut early = StoredPair::new(7);
        assert!(!early.sealed());
        assert_eq!(early.caught_up(), View::BOTH);
        assert!(early.is_complete());
        let mut late = StoredPair::new(7);
        assert_eq!(late.caught_up(), [View::Live]);
        assert!(!late.is_complete());
        assert!(late.sealed());
    }

    #[test]
    fn catching_up_for_the_first_time_is_offered_even_if_nothing_has_settled() {
        let mut pair = StoredPair {
            offered_until_ms: Some(5),
            ..StoredPair::new(7)
        };
        pair.caught_up();
        assert_eq!(pair.offered_until_ms, None);
        pair.offered_until_ms = Some(5);
        pair.caught_up();
        assert_eq!(pair.offered_until_ms, Some(5), "once");
    }
}
