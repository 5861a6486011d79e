//! Records written by the holder (S4, S5): seals, and tombstones for garbage.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Owner, OwnerCommand, OwnerPhase, Urgency};
use crate::journal::content::State;
use crate::journal::key::{BlobId, RecordKey, SealId};
use crate::journal::record::Seal;
use crate::journal::rules::Clause;
use crate::journal::view::NamespaceEnd;

impl Owner {
    /// Returns how urgently a state is wanted at the next border of a batch.
    pub fn wants(&self) -> Urgency {
        match &self.phase {
            OwnerPhase::Holding(holding) => holding.wants(),
            _ => Urgency::No,
        }
    }

    /// S4.
    pub(super) fn state(&mut self, state: State) {
        let OwnerPhase::Holding(holding) = &mut self.phase else {
            return;
        };
        // The offer may be older than the owner's last change, so it is checked here.
        if !holding.takes(&state) {
            return;
        }
        let content = state.content;
        let session = holding.session;
        let sealed = holding.seal(state, &self.view, self.now_ms, &mut self.commands);
        if let Err(refusal) = sealed {
            return self.refuse(refusal);
        }
        // Memory has passed through this state, whether its seal lands or not.
        if let Some(passed) = &mut self.memory {
            passed.push(content);
        }
        if !self.rules.hold(Clause::ShowNothingUnsealed) {
            self.show(
                SealId {
                    session,
                    number: u64::MAX,
                },
                content,
            );
        }
    }

    pub(super) fn blob_acknowledged(&mut self, id: BlobId) {
        if let OwnerPhase::Holding(holding) = &mut self.phase {
            holding.blob_acknowledged(id, self.now_ms, &mut self.commands);
        }
    }

    pub(super) fn seal_acknowledged(&mut self, id: SealId) {
        let OwnerPhase::Holding(holding) = &mut self.phase else {
            return;
        };
        let Some(seal) = holding.seal_acknowledged(id, self.now_ms) else {
            return;
        };
        if !self.rules.hold(Clause::ShowWhatIsInForce) {
            self.show(id, seal.content);
        }
        if !self.rules.hold(Clause::CollectOnceInForce) {
            self.collect(id, &seal);
        }
    }

    pub(super) fn end_of_holder(&mut self, end: &NamespaceEnd) {
        let OwnerPhase::Holding(holding) = &mut self.phase else {
            return;
        };
        // A higher claim would have been noticed when it was read, so another result means that the log has lost ours.
        let is_claimed = end.claim == Some(holding.session);
        let seal = end.seal.as_ref();
        let is_topped = seal.is_some_and(|(id, _)| id.session >= holding.session && !holding.has_sent(*id));
        if !is_claimed || is_topped {
            return self.lose_the_pair();
        }
        // An end that lacks an acknowledged seal ends the wait for it.
        holding.miss(end, &self.view);
        let own = match end.current() {
            Some((id, Ok(seal))) if id.session == holding.session => Some((*id, Arc::clone(seal))),
            _ => None,
        };
        // If only an earlier own seal is found, the log has lost the later one: `look_for_loss` handles that.
        let own = own.filter(|(id, _)| holding.is_no_earlier(*id));
        if let Some((id, seal)) = &own {
            holding.found(*id, seal);
            self.keep();
        }
        // A damaged state must be repaired before it is shown again, or anything is collected as garbage.
        let is_lost = self.look_for_loss(end);
        let Some((id, seal)) = own.filter(|_| !is_lost) else {
            return self.has_the_pair(end);
        };
        // Show first, because the lease is renewed only if the shown state is the highest seal.
        self.show(id, seal.content);
        self.has_the_pair(end);
        self.collect(id, &seal);
    }

    /// S5: sends tombstones for all that the seal in force and the claim do not need.
    pub(super) fn collect(&mut self, current: SealId, seal: &Seal) {
        let OwnerPhase::Holding(holding) = &self.phase else {
            return;
        };
        if !holding.may_collect(current) {
            return;
        }
        let named: BTreeSet<_> = seal.entries().map(|entry| entry.blob).collect();
        let keys = self.view.keys();
        let garbage: BTreeSet<RecordKey> = keys.filter(|key| !holding.needs(*key, current, &named)).collect();
        // Those that were read are gone from the view; others may be lost.
        self.buried.retain(|key, _| garbage.contains(key));
        for key in garbage {
            // Tombstones may be lost too, so they are repeated until they are read.
            let sent_ms = self.buried.get(&key);
            if sent_ms.is_none_or(|sent_ms| self.now_ms - sent_ms >= self.settings.answer_ms) {
                self.buried.insert(key, self.now_ms);
                self.commands.push(OwnerCommand::Send { key, value: None });
            }
        }
    }
}
