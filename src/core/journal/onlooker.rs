//! Finds the states of a pair as they become current, for readers that do not own it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{Role, SharedBytes};
use super::key::SealId;
use super::owner::Refusal;
use super::record::Seal;
use super::view::{EndQuestion, PartitionView};

/// A state that was found current.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub id: SealId,
    pub seal: Arc<Seal>,
    pub roles: BTreeMap<Role, SharedBytes>,
}

/// Onlooker of one partition. It reads the same view as an owner of the pair, if there is one.
#[derive(Debug, Default)]
pub struct Onlooker {
    /// Time of the question for the last end.
    asked_ms: Option<i64>,
    /// True once an end was reached with a current seal, or without any seal.
    is_known: bool,
    /// The latest seal that was found current.
    newest: Option<SealId>,
}

impl Onlooker {
    /// Handles an end: everything below it has been read into the view. Returns the current state if it is later than the one found
    /// before.
    ///
    /// # Errors
    /// Fails if the current state cannot be read, or is incomplete.
    pub fn end(&mut self, view: &PartitionView, question: EndQuestion) -> Result<Option<Sealed>, Refusal> {
        let Some(end) = view.end(question) else {
            return Ok(None);
        };
        // The age counts from the question, because records appended after it may be missing.
        self.asked_ms = Some(end.asked_ms);
        if end.seal.is_none() {
            // There is no state to wait for, and none that the next one must be newer than.
            (self.is_known, self.newest) = (true, None);
        }
        // While a claim waits for its seal, the last state stays.
        let Some((id, seal)) = end.current() else {
            return Ok(None);
        };
        let id = *id;
        // The content of a key never changes (I3), so the same seal need not be decoded again. An earlier one is current only
        // if the log has lost later ones, which their owner writes again.
        if Some(id) <= self.newest {
            return Ok(None);
        }
        // If one of these fails, the last state stays in place.
        let seal = seal.clone().map_err(|error| Refusal::Seal { id, error })?;
        let roles = view.roles(&seal).map_err(Refusal::Damage)?;
        (self.is_known, self.newest) = (true, Some(id));
        Ok(Some(Sealed { id, seal, roles }))
    }

    /// Notes that the partition is read from its first record again. Its states may come from another log.
    pub fn start_over(&mut self) {
        self.newest = None;
    }

    /// Returns whether the partition was read to an end with a current seal, or without any seal.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns when the last end was asked for; `None` before the first one.
    pub fn asked_ms(&self) -> Option<i64> {
        self.asked_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fixture::header;
    use crate::journal::key::{BlobId, Namespace, RecordKey, Session};
    use crate::journal::record::{Claim, Entry};
    use crate::journal::rules::JournalRules;
    use crate::journal::view::DamagedBlob;

    fn namespace() -> Namespace {
        Namespace::of("fingerprint", "group")
    }

    /// A partition and its onlooker.
    struct Watched {
        view: PartitionView,
        onlooker: Onlooker,
        n_records: i64,
    }

    impl Watched {
        fn new() -> Watched {
            Watched {
                view: PartitionView::new(namespace(), JournalRules::default()),
                onlooker: Onlooker::default(),
                n_records: 0,
            }
        }

        fn put(&mut self, key: RecordKey, value: &[u8]) {
            let text = key.text(namespace());
            self.view.take_at(self.n_records, text.as_bytes(), Some(value));
            self.n_records += 1;
        }

        fn claim(&mut self, epoch: u64) {
            self.put(RecordKey::Claim(session(epoch)), &Claim::default().encode());
        }

        fn seal(&mut self, epoch: u64, read_position: i64) {
            let id = SealId {
                session: session(epoch),
                number: 0,
            };
            let seal = Seal::new(header(read_position), BTreeMap::new());
            self.put(RecordKey::Seal(id), &seal.encode());
        }

        fn end(&mut self) -> Result<Option<Sealed>, Refusal> {
            self.onlooker.end(&self.view, self.view.question(7))
        }

        /// Returns the read position of the state that is newly current at the end.
        #[track_caller]
        fn found(&mut self) -> Option<i64> {
            let sealed = self.end().expect("it is whole");
            sealed.map(|sealed| sealed.seal.header.reaches[0].read_position)
        }
    }

    fn session(epoch: u64) -> Session {
        Session { epoch, unique: 5 }
    }

    #[test]
    fn a_partition_without_seals_is_known_at_its_first_end() {
        let mut watched = Watched::new();
        assert_eq!(
            (watched.onlooker.is_known(), watched.onlooker.asked_ms()),
            (false, None)
        );
        watched.claim(1);
        assert_eq!(watched.found(), None);
        assert_eq!(
            (watched.onlooker.is_known(), watched.onlooker.asked_ms()),
            (true, Some(7))
        );
    }

    #[test]
    fn keeps_the_last_state_while_a_claim_waits_for_its_seal() {
        let mut watched = Watched::new();
        watched.claim(1);
        watched.seal(1, 40);
        assert_eq!(watched.found(), Some(40));
        assert_eq!(watched.found(), None, "once");
        watched.claim(2);
        watched.seal(1, 50);
        assert_eq!(watched.found(), None);
        watched.seal(2, 60);
        assert_eq!(watched.found(), Some(60));
    }

    /// Otherwise the pair would be missing from the view, though it has a state.
    #[test]
    fn a_new_onlooker_waits_for_a_pending_seal() {
        let mut watched = Watched::new();
        watched.seal(1, 40);
        watched.claim(2);
        assert_eq!(watched.found(), None);
        assert!(!watched.onlooker.is_known());
    }

    #[test]
    fn an_earlier_state_is_not_found_if_the_log_loses_the_last_one() {
        let mut watched = Watched::new();
        watched.claim(2);
        watched.seal(2, 60);
        assert_eq!(watched.found(), Some(60));
        watched.seal(1, 50);
        watched.view.starts_at(2);
        assert_eq!(watched.found(), None);
        watched.claim(3);
        watched.seal(3, 60);
        assert_eq!(watched.found(), Some(60));
    }

    /// Epochs start from 1 again if no state is left, or if the topic was re-created.
    #[test]
    fn the_states_of_another_log_are_found() {
        let mut watched = Watched::new();
        watched.seal(7, 60);
        assert_eq!(watched.found(), Some(60));
        watched.view.starts_at(1);
        assert_eq!(watched.found(), None);
        watched.seal(6, 10);
        assert_eq!(watched.found(), Some(10));
        watched.view.start_over();
        watched.onlooker.start_over();
        watched.seal(1, 20);
        assert_eq!(watched.found(), Some(20));
    }

    #[test]
    fn reports_an_incomplete_state_at_each_end() {
        let mut watched = Watched::new();
        watched.claim(1);
        watched.seal(1, 40);
        assert_eq!(watched.found(), Some(40));
        let session = session(1);
        let newer = |number| RecordKey::Seal(SealId { session, number });
        let role = "totals".into();
        let blob = BlobId { unique: 5, number: 0 };
        let entry = Entry {
            blob,
            length: 1,
            hash: 0,
        };
        let lacking = Seal::new(header(50), BTreeMap::from([(Role::clone(&role), vec![entry])]));
        watched.put(newer(1), &lacking.encode());
        for _ in 0..2 {
            let damage = DamagedBlob {
                role: Role::clone(&role),
                blob,
            };
            assert_eq!(watched.end().err(), Some(Refusal::Damage(damage)));
        }
        watched.put(newer(2), b"\x02 of a newer version");
        assert!(matches!(watched.end(), Err(Refusal::Seal { .. })));
        assert!(watched.onlooker.is_known(), "the last state stays");
    }
}
