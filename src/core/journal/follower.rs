//! Reads the state of all pairs without owning any, for the global view.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::content::{Role, SharedBytes};
use super::key::{Namespace, SealId};
use super::owner::Refusal;
use super::record::Seal;
use super::rules::JournalRules;
use super::view::{EndQuestion, PartitionView};
use crate::nouns::number_of;

/// A state that was in force.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub id: SealId,
    pub seal: Arc<Seal>,
    pub roles: BTreeMap<Role, SharedBytes>,
}

/// Reason why there is no view of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// Number of partitions not yet read to an end with a current seal, or without any.
    Reading { n_partitions: usize },
    /// Time since the oldest of the last ends was asked for.
    Behind { ms: i64 },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::Reading { n_partitions } => {
                write!(
                    f,
                    "the state of {} is still being read",
                    number_of(n_partitions, "partition")
                )
            }
            Unavailable::Behind { ms } => write!(f, "the state was last read to its end {ms} ms ago"),
        }
    }
}

/// Follows all partitions of a state topic.
#[derive(Debug)]
pub struct Follower {
    partitions: Vec<FollowedPartition>,
    lease_ms: i64,
}

#[derive(Debug)]
struct FollowedPartition {
    view: PartitionView,
    /// Time of the question for the last end.
    asked_ms: Option<i64>,
    /// True once an end was read with a current seal, or without any.
    is_known: bool,
    sealed: Option<Sealed>,
}

impl Follower {
    pub fn new(namespace: Namespace, n_partitions: usize, lease_ms: i64) -> Follower {
        Follower::with_rules(namespace, n_partitions, lease_ms, JournalRules::default())
    }

    /// Creates a follower with weakened rules, for tests.
    #[doc(hidden)]
    pub fn with_rules(
        namespace: Namespace,
        n_partitions: usize,
        lease_ms: i64,
        rules: JournalRules,
    ) -> Follower {
        let partition = || FollowedPartition {
            view: PartitionView::new(namespace, rules),
            asked_ms: None,
            is_known: false,
            sealed: None,
        };
        Follower {
            partitions: (0..n_partitions).map(|_| partition()).collect(),
            lease_ms,
        }
    }

    /// Takes the next record of a partition.
    pub fn take(&mut self, partition: usize, key: &[u8], value: Option<&[u8]>) {
        self.partitions[partition].view.take(key, value);
    }

    /// Returns a question for the end of a partition. Ask it now: it covers the records handed in so far.
    pub fn question(&self, partition: usize, now_ms: i64) -> EndQuestion {
        self.partitions[partition].view.question(now_ms)
    }

    /// Handles an end: everything below it has been read. Returns the current state if it differs from the one at the last end.
    ///
    /// # Errors
    /// Fails if the current state cannot be read, or is incomplete. The last state stays.
    pub fn end(&mut self, partition: usize, question: EndQuestion) -> Result<Option<&Sealed>, Refusal> {
        self.partitions[partition].end(question)
    }

    /// Restarts a partition from its first record, because its end lies before the read position.
    pub fn start_over(&mut self, partition: usize) {
        self.partitions[partition].view.start_over();
    }

    /// The states of all partitions; none for a pair that was never sealed.
    ///
    /// # Errors
    /// [`Unavailable`] until all are read, or if one has not been read to an end within the lease.
    pub fn shown(&self, now_ms: i64) -> Result<impl Iterator<Item = Option<&Sealed>>, Unavailable> {
        let is_known = |partition: &&FollowedPartition| !partition.is_known;
        let n_partitions = self.partitions.iter().filter(is_known).count();
        if n_partitions > 0 {
            return Err(Unavailable::Reading { n_partitions });
        }
        // Every known partition has had an end, so the age is known.
        let ms = self.behind_ms(now_ms).unwrap_or(0);
        if ms > self.lease_ms {
            return Err(Unavailable::Behind { ms });
        }
        Ok(self.partitions.iter().map(|partition| partition.sealed.as_ref()))
    }

    /// The state of a pair that was last found in force.
    pub fn sealed(&self, partition: usize) -> Option<&Sealed> {
        self.partitions[partition].sealed.as_ref()
    }

    /// Returns whether a partition was read to an end with a current seal, or without any.
    pub fn is_known(&self, partition: usize) -> bool {
        self.partitions[partition].is_known
    }

    /// Returns the time since all partitions were last read to their ends; `None` before the first time.
    pub fn behind_ms(&self, now_ms: i64) -> Option<i64> {
        let asked = self.partitions.iter().map(|partition| partition.asked_ms);
        // `None` is less than any time, so one partition without an end makes the age unknown.
        let oldest = asked.min().flatten()?;
        Some(now_ms - oldest)
    }
}

impl FollowedPartition {
    fn end(&mut self, question: EndQuestion) -> Result<Option<&Sealed>, Refusal> {
        let Some(end) = self.view.end(question) else {
            return Ok(None);
        };
        // The age counts from the question, because records appended after it may be missing.
        self.asked_ms = Some(end.asked_ms);
        // Without any seal there is no state to wait for.
        self.is_known |= end.seal.is_none();
        // While a claim waits for its seal, the last state stays.
        let Some((id, seal)) = end.current() else {
            return Ok(None);
        };
        let id = *id;
        // A key never gets another content (I3), so the same seal need not be decoded again.
        if self.sealed.as_ref().is_some_and(|sealed| sealed.id == id) {
            return Ok(None);
        }
        // If one of these fails, the last state stays in place.
        let seal = seal.clone().map_err(|error| Refusal::Seal { id, error })?;
        let roles = self.view.roles(&seal).map_err(Refusal::Damage)?;
        self.is_known = true;
        self.sealed = Some(Sealed { id, seal, roles });
        Ok(self.sealed.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fixture::header;
    use crate::journal::key::{BlobId, RecordKey, Session};
    use crate::journal::record::{Claim, Entry};
    use crate::journal::view::DamagedBlob;

    const LEASE_MS: i64 = 15_000;

    fn namespace() -> Namespace {
        Namespace::of("fingerprint", "group")
    }

    fn follower(n_partitions: usize) -> Follower {
        Follower::new(namespace(), n_partitions, LEASE_MS)
    }

    fn session(epoch: u64) -> Session {
        Session { epoch, unique: 5 }
    }

    fn put(follower: &mut Follower, key: RecordKey, value: &[u8]) {
        follower.take(0, key.text(namespace()).as_bytes(), Some(value));
    }

    fn claim(follower: &mut Follower, epoch: u64) {
        put(
            follower,
            RecordKey::Claim(session(epoch)),
            &Claim::default().encode(),
        );
    }

    fn seal(follower: &mut Follower, epoch: u64, read_position: i64) {
        let id = SealId {
            session: session(epoch),
            number: 0,
        };
        let seal = Seal::new(header(read_position), BTreeMap::new());
        put(follower, RecordKey::Seal(id), &seal.encode());
    }

    fn end(follower: &mut Follower, partition: usize, now_ms: i64) {
        let question = follower.question(partition, now_ms);
        follower.end(partition, question).expect("it is whole");
    }

    /// Returns the read positions of the pairs, as shown.
    fn positions(follower: &Follower, now_ms: i64) -> Result<Vec<Option<i64>>, Unavailable> {
        let position = |sealed: &Sealed| sealed.seal.header.reaches[0].read_position;
        let shown = follower.shown(now_ms)?;
        Ok(shown.map(|sealed| sealed.map(position)).collect())
    }

    #[test]
    fn shows_nothing_until_all_partitions_are_read() {
        let mut follower = follower(2);
        claim(&mut follower, 1);
        seal(&mut follower, 1, 40);
        end(&mut follower, 0, 0);
        assert_eq!(
            positions(&follower, 0),
            Err(Unavailable::Reading { n_partitions: 1 })
        );
        end(&mut follower, 1, 0);
        assert_eq!(positions(&follower, 0), Ok(vec![Some(40), None]));
    }

    #[test]
    fn keeps_the_last_state_while_a_claim_waits_for_its_seal() {
        let mut follower = follower(1);
        claim(&mut follower, 1);
        seal(&mut follower, 1, 40);
        end(&mut follower, 0, 0);
        claim(&mut follower, 2);
        seal(&mut follower, 1, 50);
        end(&mut follower, 0, 0);
        assert_eq!(positions(&follower, 0), Ok(vec![Some(40)]));
        seal(&mut follower, 2, 60);
        assert_eq!(positions(&follower, 0), Ok(vec![Some(40)]), "that is no end");
        end(&mut follower, 0, 0);
        assert_eq!(positions(&follower, 0), Ok(vec![Some(60)]));
    }

    /// Otherwise the pair would be missing from the view, though it has a state.
    #[test]
    fn a_new_onlooker_waits_for_a_pending_seal() {
        let mut follower = follower(1);
        seal(&mut follower, 1, 40);
        claim(&mut follower, 2);
        end(&mut follower, 0, 0);
        assert_eq!(
            positions(&follower, 0),
            Err(Unavailable::Reading { n_partitions: 1 })
        );
    }

    #[test]
    fn withholds_states_older_than_a_lease() {
        let mut follower = follower(2);
        assert_eq!(follower.behind_ms(0), None);
        end(&mut follower, 0, 0);
        end(&mut follower, 1, 10);
        assert_eq!(positions(&follower, LEASE_MS), Ok(vec![None, None]));
        let ms = LEASE_MS + 1;
        assert_eq!(positions(&follower, ms), Err(Unavailable::Behind { ms }));
        end(&mut follower, 0, ms);
        assert_eq!(positions(&follower, ms), Ok(vec![None, None]));
        assert_eq!(follower.behind_ms(ms), Some(ms - 10));
    }

    #[test]
    fn reports_an_incomplete_state_and_keeps_the_last_one() {
        let mut follower = follower(1);
        claim(&mut follower, 1);
        seal(&mut follower, 1, 40);
        end(&mut follower, 0, 0);
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
        put(&mut follower, newer(1), &lacking.encode());
        let question = follower.question(0, 0);
        let refusal = follower.end(0, question).err();
        assert_eq!(refusal, Some(Refusal::Damage(DamagedBlob { role, blob })));
        put(&mut follower, newer(2), b"\x02 of a newer version");
        let question = follower.question(0, 0);
        assert!(matches!(follower.end(0, question), Err(Refusal::Seal { .. })));
        assert_eq!(positions(&follower, 0), Ok(vec![Some(40)]));
    }
}
