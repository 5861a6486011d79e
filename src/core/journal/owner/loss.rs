//! Records of a pair that the topic has lost behind its owner, and how they are written again (S8).

use super::interface::{Loss, StateFault};
use super::kept_seal::KeptSeal;
use super::{Owner, OwnerPhase};
use crate::journal::key::RecordKey;
use crate::journal::view::NamespaceEnd;

impl Owner {
    /// Returns the fault that keeps the stored state from being complete and current, for the operator.
    pub fn trouble(&self) -> Option<StateFault> {
        if let Some(key) = self.view.newer_key() {
            return Some(StateFault::Newer(key.to_owned()));
        }
        if let Some(key) = self.unsurpassable() {
            return Some(StateFault::Unsurpassable(key.text(self.settings.namespace)));
        }
        self.lost.map(StateFault::Lost)
    }

    /// Counts how often something was lost.
    pub fn n_lost(&self) -> u64 {
        self.n_lost
    }

    /// Returns the record above which no instance claims.
    fn unsurpassable(&self) -> Option<RecordKey> {
        let top = self.view.top()?;
        let is_in_the_way = match &self.phase {
            OwnerPhase::Away(_) | OwnerPhase::Refused => false,
            // A holder is blocked only by records above its own claim.
            OwnerPhase::Holding(holding) => top.session() > Some(holding.session),
            OwnerPhase::Reading(_) | OwnerPhase::Claiming { .. } | OwnerPhase::Superseded { .. } => true,
        };
        (is_in_the_way && top.session()?.is_unsurpassable()).then_some(top)
    }

    /// Claims again, above all records: the own claim is gone, or another writer has put a seal above it.
    pub(super) fn lose_the_pair(&mut self) {
        self.note_loss(Loss::Claim);
        self.claim();
    }

    /// Notes that the log was replaced, or is shorter than it was.
    pub(super) fn lose_the_log(&mut self) {
        if let OwnerPhase::Holding(_) = self.phase {
            self.note_loss(Loss::Log);
        }
    }

    /// Returns whether the topic has lost a part of the current state, at an end that has the own claim. The loss is then
    /// repaired.
    pub(super) fn look_for_loss(&mut self, end: &NamespaceEnd) -> bool {
        let OwnerPhase::Holding(holding) = &mut self.phase else {
            return false;
        };
        let loss = if holding.lacks_its_seal(end) {
            Loss::Seal
        } else if self.kept.as_ref().is_none_or(|kept| kept.is_whole(&self.view)) {
            // A loss is over once an own seal is in force again, or if there is no state that could be lost.
            if holding.has_sealed() || self.kept.is_none() {
                self.lost = None;
            }
            return false;
        } else if holding.has_sealed() {
            Loss::Parts
        } else {
            return false; // It is on its way.
        };
        // The next seal must not name blobs of the damaged one.
        holding.lose();
        self.note_loss(loss);
        self.write_again();
        true
    }

    /// Counts a loss once, until everything is restored.
    fn note_loss(&mut self, loss: Loss) {
        self.n_lost += u64::from(self.lost.is_none());
        self.lost = Some(loss);
    }

    /// Seals the last current state again, with all of its blobs, unless memory has a newer one, which is then wanted at once.
    /// A replaying worker cannot offer a state, so the kept bytes are used.
    pub(super) fn write_again(&mut self) {
        let OwnerPhase::Holding(holding) = &mut self.phase else {
            return;
        };
        // Memory may have offered a newer state. Writing an older one back would undo it, so that state is wanted
        // instead.
        let newest = self.memory.as_ref().and_then(|passed| passed.last());
        let is_newest = |kept: &&KeptSeal| newest == Some(kept.content());
        if !holding.has_nothing() {
            return;
        }
        let Some(state) = self.kept.as_ref().filter(is_newest).and_then(KeptSeal::state) else {
            return;
        };
        if let Err(refusal) = holding.seal(state, &self.view, self.now_ms, &mut self.commands) {
            self.refuse(refusal);
        }
    }

    /// Keeps the bytes of the state that the next seal continues.
    pub(super) fn keep(&mut self) {
        let OwnerPhase::Holding(holding) = &self.phase else {
            return;
        };
        let Some(seal) = holding.below() else { return };
        if self.kept.as_ref().is_none_or(|kept| !kept.is_of(seal)) {
            self.kept = Some(KeptSeal::of(seal, &self.view, self.kept.as_ref()));
        }
    }

    /// Drops everything kept of the memory: it must not be sealed any more.
    pub(super) fn forget_memory(&mut self) {
        (self.memory, self.kept, self.lost) = (None, None, None);
    }
}
