//! Seals of a holder: the one that the next seal builds on, and the one in progress (S4).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{OwnerCommand, Refusal};
use crate::journal::content::State;
use crate::journal::key::{BlobId, RecordKey, SealId, Session};
use crate::journal::record::{Entry, MAX_RECORD_BYTES, Seal};
use crate::journal::rules::{Clause, JournalRules};
use crate::journal::view::{NamespaceEnd, PartitionView};

/// A session whose claim was the highest at an end.
#[derive(Debug)]
pub struct Holding {
    pub session: Session,
    rules: JournalRules,
    on_top_of: ContinuedState,
    attempt: Option<Attempt>,
    last_sent: Option<SealId>,
    /// i of the next seal.
    next_seal: u64,
    /// k of the next blob.
    next_blob: u64,
}

/// State that the next seal continues. It may name the same blobs.
#[derive(Debug)]
enum ContinuedState {
    /// No seal exists yet, or the last one is incomplete.
    Nothing,
    /// The state of an earlier session, to be sealed again first.
    Base(Arc<Seal>),
    /// The last own seal that was found in force.
    Own(SealId, Arc<Seal>),
}

/// A seal that is not yet found in force.
#[derive(Debug)]
enum Attempt {
    /// Some blobs are not acknowledged.
    Blobs {
        seal: Arc<Seal>,
        waiting: BTreeSet<BlobId>,
        /// Time of the last acknowledgement. A large state may take longer than the timeout for one answer.
        received_ms: i64,
    },
    /// The seal is sent.
    Seal {
        id: SealId,
        seal: Arc<Seal>,
        sent_ms: i64,
        acknowledged_ms: Option<i64>,
    },
}

/// Urgency of the next state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Urgency {
    #[default]
    No,
    /// Wanted when the interval is over, or a cell is complete.
    WhenDue,
    /// Wanted now: counting starts, or the last seal is in doubt.
    AtOnce,
}

impl Holding {
    /// Creates a holding. Without a base there is nothing to seal again.
    pub fn new(session: Session, base: Option<Arc<Seal>>, rules: JournalRules) -> Holding {
        Holding {
            session,
            rules,
            on_top_of: base.map_or(ContinuedState::Nothing, ContinuedState::Base),
            attempt: None,
            last_sent: None,
            next_seal: 0,
            next_blob: 0,
        }
    }

    /// Seals the base again with the same content and blobs, unless that is in progress.
    pub fn seal_base_again(&mut self, now_ms: i64, commands: &mut Vec<OwnerCommand>) {
        if let ContinuedState::Base(base) = &self.on_top_of
            && self.attempt.is_none()
            && self.rules.hold(Clause::SealTheBaseAgain)
        {
            let base = Arc::clone(base);
            self.send_seal(base, now_ms, commands);
        }
    }

    /// Returns whether a state is wanted. The base must be sealed first: if it were sealed after a state of this session, it
    /// would undo that state.
    pub fn wants(&self) -> Urgency {
        match &self.on_top_of {
            ContinuedState::Base(_) if !self.rules.hold(Clause::TheBaseComesFirst) => Urgency::AtOnce,
            // One attempt at a time: the next state builds on its outcome.
            _ if self.attempt.is_some() => Urgency::No,
            ContinuedState::Nothing => Urgency::AtOnce,
            ContinuedState::Base(_) if self.rules.hold(Clause::SealTheBaseAgain) => Urgency::No,
            // The last seal that was sent is in force, so the next one may wait for its interval.
            ContinuedState::Own(id, _) if self.last_sent == Some(*id) => Urgency::WhenDue,
            // The last seal was given up but may still land, so another one must follow.
            _ => Urgency::AtOnce,
        }
    }

    /// Returns whether a seal is in progress, or a base is to be sealed again.
    pub fn awaits_end(&self) -> bool {
        self.attempt.is_some() || matches!(self.on_top_of, ContinuedState::Base(_))
    }

    /// Returns whether to seal this state: it must be the next one, and differ from the last.
    pub fn takes(&self, state: &State) -> bool {
        let is_next = match &self.on_top_of {
            ContinuedState::Nothing => {
                let is_start = state.header.frontier_ms == state.header.begin_ms;
                !is_start || self.rules.hold(Clause::SealTheBegin)
            }
            ContinuedState::Base(seal) => self.continues(seal, state) && seal.content != state.content,
            ContinuedState::Own(id, seal) => {
                // Equal content is sealed again only while the last seal sent is not known to be in force.
                let is_same = seal.content == state.content && self.last_sent == Some(*id);
                self.continues(seal, state) && !is_same
            }
        };
        self.wants() != Urgency::No && is_next
    }

    fn continues(&self, seal: &Seal, state: &State) -> bool {
        state.header.reaches(&seal.header) || !self.rules.hold(Clause::SealNoLessThanTheBase)
    }

    /// Sends the blobs that the seal below does not have, and once they are acknowledged, the seal.
    ///
    /// # Errors
    /// Fails if the seal does not fit into a record. Nothing is sent then.
    pub fn seal(
        &mut self,
        state: State,
        view: &PartitionView,
        now_ms: i64,
        commands: &mut Vec<OwnerCommand>,
    ) -> Result<(), Refusal> {
        // Only blobs of the last seal may be named again: any other one may be deleted as garbage.
        let mut known = self.known();
        let mut blobs = Vec::new();
        let mut table = BTreeMap::new();
        for (role, parts) in state.parts {
            let entries = parts.into_iter().map(|part| {
                let length = part.bytes.len() as u64;
                let same = match self.rules.hold(Clause::NameBlobsOfTheLastSeal) {
                    true => known.get(&(length, part.hash)).copied(),
                    false => view.any_blob_of(&part.bytes),
                };
                let blob = same.unwrap_or_else(|| {
                    let blob = self.new_blob();
                    blobs.push((blob, part.bytes));
                    blob
                });
                // Equal parts of this state share a blob.
                known.insert((length, part.hash), blob);
                Entry {
                    blob,
                    length,
                    hash: part.hash,
                }
            });
            let entries = entries.collect();
            table.insert(role, entries);
        }
        let seal = Arc::new(Seal::new(state.header, table));
        // Checked before anything is sent, since blobs without a seal would be garbage.
        let n_bytes = seal.encode().len();
        if n_bytes >= MAX_RECORD_BYTES {
            return Err(Refusal::TooLarge { n_bytes });
        }
        let waiting: BTreeSet<_> = blobs.iter().map(|(blob, _)| *blob).collect();
        let sends = blobs.into_iter();
        commands.extend(sends.map(|(blob, bytes)| OwnerCommand::send(RecordKey::Blob(blob), bytes)));
        // Send the seal only after its blobs are acknowledged, so that no reader finds a seal whose blobs are missing.
        if waiting.is_empty() || !self.rules.hold(Clause::BlobsComeFirst) {
            self.send_seal(seal, now_ms, commands);
        } else {
            self.attempt = Some(Attempt::Blobs {
                seal,
                waiting,
                received_ms: now_ms,
            });
        }
        Ok(())
    }

    /// Returns the blobs of the seal below, by length and hash: the same bytes are named again, in any role.
    fn known(&self) -> HashMap<(u64, u128), BlobId> {
        let seal = match &self.on_top_of {
            ContinuedState::Nothing => return HashMap::new(),
            ContinuedState::Base(seal) | ContinuedState::Own(_, seal) => seal,
        };
        let entries = seal.entries();
        entries
            .map(|entry| ((entry.length, entry.hash), entry.blob))
            .collect()
    }

    fn new_blob(&mut self) -> BlobId {
        let number = self.next_blob;
        self.next_blob += 1;
        BlobId {
            unique: self.session.unique,
            number,
        }
    }

    fn send_seal(&mut self, seal: Arc<Seal>, now_ms: i64, commands: &mut Vec<OwnerCommand>) {
        let id = SealId {
            session: self.session,
            number: self.next_seal,
        };
        self.next_seal += 1;
        self.last_sent = Some(id);
        commands.push(OwnerCommand::send(RecordKey::Seal(id), seal.encode().into()));
        self.attempt = Some(Attempt::Seal {
            id,
            seal,
            sent_ms: now_ms,
            acknowledged_ms: None,
        });
    }

    pub fn blob_acknowledged(&mut self, blob: BlobId, now_ms: i64, commands: &mut Vec<OwnerCommand>) {
        let Some(Attempt::Blobs {
            seal,
            waiting,
            received_ms,
        }) = &mut self.attempt
        else {
            return;
        };
        if !waiting.remove(&blob) {
            return;
        }
        *received_ms = now_ms;
        if waiting.is_empty() {
            let seal = Arc::clone(seal);
            self.send_seal(seal, now_ms, commands);
        }
    }

    /// Notes an acknowledgement. Returns the seal, if it is in progress.
    pub fn seal_acknowledged(&mut self, acknowledged: SealId, now_ms: i64) -> Option<Arc<Seal>> {
        match &mut self.attempt {
            Some(Attempt::Seal {
                id,
                seal,
                acknowledged_ms,
                ..
            }) if *id == acknowledged => {
                // The first answer counts: an end asked for after it must contain the seal.
                acknowledged_ms.get_or_insert(now_ms);
                Some(Arc::clone(seal))
            }
            _ => None,
        }
    }

    /// Notes that an own seal is current.
    pub fn found(&mut self, found: SealId, seal: &Arc<Seal>) {
        self.on_top_of = ContinuedState::Own(found, Arc::clone(seal));
        // A seal that was given up may land after all. A later one that is in flight stays in progress.
        if let Some(Attempt::Seal { id, .. }) = &self.attempt
            && *id <= found
        {
            self.attempt = None;
        }
    }

    /// Returns the state that the next seal continues, if it is complete.
    pub fn below(&self) -> Option<&Arc<Seal>> {
        match &self.on_top_of {
            ContinuedState::Nothing => None,
            ContinuedState::Base(seal) | ContinuedState::Own(_, seal) => Some(seal),
        }
    }

    /// Returns whether an own seal was found current, and is not lost.
    pub fn has_sealed(&self) -> bool {
        matches!(self.on_top_of, ContinuedState::Own(..))
    }

    /// Returns whether there is nothing to continue and no seal in progress.
    pub fn has_nothing(&self) -> bool {
        matches!(self.on_top_of, ContinuedState::Nothing) && self.attempt.is_none()
    }

    /// Returns whether this session has sent the seal. If it has not, another writer uses the same session.
    pub fn has_sent(&self, id: SealId) -> bool {
        id.session == self.session && Some(id) <= self.last_sent
    }

    /// Returns whether this own seal is the last one that was found, or a later one.
    pub fn is_no_earlier(&self, found: SealId) -> bool {
        match &self.on_top_of {
            ContinuedState::Own(id, _) => *id <= found,
            ContinuedState::Nothing | ContinuedState::Base(_) => true,
        }
    }

    /// Returns whether the end lacks the last seal that was found, or has another value under its key.
    pub fn lacks_its_seal(&self, end: &NamespaceEnd) -> bool {
        let own = end.seal.as_ref().filter(|(id, _)| id.session == self.session);
        match &self.on_top_of {
            // A later own seal may be at the end. An earlier, changed or unreadable one is a loss.
            ContinuedState::Own(id, seal) => !own.is_some_and(|(read, value)| {
                value.is_ok() && read >= id && (read > id || value.as_ref() == Ok(seal))
            }),
            // Nothing of this session is known to be in force yet, so only an unreadable own seal is a fault.
            ContinuedState::Nothing | ContinuedState::Base(_) => own.is_some_and(|(_, value)| value.is_err()),
        }
    }

    /// Drops the current state after the topic has lost it: the next seal names none of its blobs.
    pub fn lose(&mut self) {
        (self.on_top_of, self.attempt) = (ContinuedState::Nothing, None);
    }

    /// Gives up an attempt that was unanswered for so long that its answer may come late or never. The next attempt uses other
    /// keys.
    pub fn doubt(&mut self, now_ms: i64, answer_ms: i64) {
        let since_ms = match &self.attempt {
            Some(Attempt::Blobs { received_ms, .. }) => *received_ms,
            Some(Attempt::Seal {
                sent_ms,
                acknowledged_ms: None,
                ..
            }) => *sent_ms,
            _ => return,
        };
        if now_ms - since_ms < answer_ms || !self.rules.hold(Clause::SealAgainInDoubt) {
            return;
        }
        if !self.rules.hold(Clause::NewKeysInDoubt) {
            self.next_seal = self.next_seal.saturating_sub(1);
        }
        self.attempt = None;
    }

    /// Gives up a seal that was acknowledged but is missing at an end asked for since then: a replica that lacked it
    /// has become the leader. If it exists after all, past that end, it counts as a seal that lands late.
    pub fn miss(&mut self, end: &NamespaceEnd, view: &PartitionView) {
        if let Some(Attempt::Seal {
            id, acknowledged_ms, ..
        }) = &self.attempt
            && end.was_asked_after(*acknowledged_ms)
            && !view.has_seal(*id)
            && self.rules.hold(Clause::SealAgainOnceLost)
        {
            self.attempt = None;
        }
    }

    /// Drops unsent records because the pair is revoked.
    pub fn rest(&mut self) {
        self.attempt = None;
    }

    /// S5: returns whether everything except this current seal and its blobs is garbage.
    pub fn may_collect(&self, current: SealId) -> bool {
        // A later seal that was sent may name blobs that the seal in force does not.
        let is_last = self.last_sent == Some(current) || !self.rules.hold(Clause::CollectAfterTheLastSeal);
        // Blobs of the next seal may be in the log already, and no seal names them yet.
        let is_between = !matches!(self.attempt, Some(Attempt::Blobs { .. }))
            || !self.rules.hold(Clause::CollectBetweenSeals);
        is_last && is_between && self.rules.hold(Clause::CollectGarbage)
    }

    /// Returns whether this seal or its session needs a key.
    pub fn needs(&self, key: RecordKey, current: SealId, blobs: &BTreeSet<BlobId>) -> bool {
        match key {
            RecordKey::Claim(session) => session == self.session && self.rules.hold(Clause::KeepTheClaim),
            RecordKey::Seal(id) => id == current,
            RecordKey::Blob(id) => blobs.contains(&id),
        }
    }
}
