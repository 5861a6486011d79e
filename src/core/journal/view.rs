//! Records of one namespace in a state partition, as a reader holds them, and what they prove at the end (S1).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::content::{Role, SharedBytes};
use super::key::{BlobId, Namespace, RecordKey, SealId, Session};
use super::record::{Entry, RecordError, Seal};
use super::rules::{Clause, JournalRules};

/// Place of a record in its partition.
type Offset = i64;

/// A seal as it was read.
pub type ReadSeal = Result<Arc<Seal>, RecordError>;

/// The records of a namespace in a partition, by key. Between ends it may lack records that compaction has removed, so only an
/// [`NamespaceEnd`] shows the current state.
#[derive(Debug)]
pub struct PartitionView {
    namespace: Namespace,
    rules: JournalRules,
    claims: BTreeMap<Session, Offset>,
    seals: BTreeMap<SealId, (Offset, ReadSeal)>,
    blobs: BTreeMap<BlobId, (Offset, SharedBytes)>,
    others: BTreeSet<Namespace>,
    /// Keys of this namespace that cannot be parsed.
    newer: BTreeMap<String, Offset>,
    malformed: BTreeMap<String, Offset>,
    /// Records taken, of any namespace; it never falls.
    n_taken: u64,
}

/// Request for the end of the partition: when it was made, and how many records had been read by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndQuestion {
    pub asked_ms: i64,
    pub(super) n_taken: u64,
}

/// State of the namespace at the end of the partition.
#[derive(Debug, Clone)]
pub struct NamespaceEnd {
    pub asked_ms: i64,
    /// The highest claim.
    pub claim: Option<Session>,
    /// The highest.
    pub seal: Option<(SealId, ReadSeal)>,
    current: bool,
}

impl NamespaceEnd {
    /// S1: the highest seal, if no claim is higher than its session's.
    pub fn current(&self) -> Option<&(SealId, ReadSeal)> {
        self.seal.as_ref().filter(|_| self.current)
    }

    /// Returns whether a record acknowledged at that time must lie below this end.
    pub(super) fn was_asked_after(&self, acknowledged_ms: Option<i64>) -> bool {
        acknowledged_ms.is_some_and(|acknowledged_ms| acknowledged_ms < self.asked_ms)
    }
}

/// A blob that a seal names is missing or has other bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedBlob {
    pub role: Role,
    pub blob: BlobId,
}

impl fmt::Display for DamagedBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DamagedBlob { role, blob } = self;
        write!(f, "blob {blob} ({role}) is absent or damaged")
    }
}

impl std::error::Error for DamagedBlob {}

impl PartitionView {
    pub fn new(namespace: Namespace, rules: JournalRules) -> PartitionView {
        PartitionView {
            namespace,
            rules,
            claims: BTreeMap::new(),
            seals: BTreeMap::new(),
            blobs: BTreeMap::new(),
            others: BTreeSet::new(),
            newer: BTreeMap::new(),
            malformed: BTreeMap::new(),
            n_taken: 0,
        }
    }

    pub(super) fn rules(&self) -> JournalRules {
        self.rules
    }

    /// Takes the next record of the partition, for readers that do not track where the log begins. Returns its key if it has a
    /// value and belongs to this namespace.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> Option<RecordKey> {
        self.take_at(Offset::MAX, key, value)
    }

    /// Takes the next record of the partition. [`PartitionView::starts_at`] forgets it once the log begins behind its offset.
    pub fn take_at(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) -> Option<RecordKey> {
        // Any record makes earlier questions void, even one of another namespace.
        self.n_taken += 1;
        let Some((namespace, key)) = RecordKey::parse(key) else {
            self.take_strange(offset, key, value.is_some());
            return None;
        };
        if namespace != self.namespace {
            self.others.insert(namespace);
            return None;
        }
        let Some(value) = value else {
            self.remove(key);
            return None;
        };
        self.put(offset, key, value);
        Some(key)
    }

    fn take_strange(&mut self, offset: Offset, key: &[u8], is_put: bool) {
        // Other programs may use the topic. Only keys with our namespace matter.
        if Namespace::of_key(key) != Some(self.namespace) {
            return;
        }
        let text = String::from_utf8_lossy(key);
        let place = match is_of_newer_version(&text) {
            true => &mut self.newer,
            false => &mut self.malformed,
        };
        match is_put {
            true => place.insert(text.into_owned(), offset),
            false => place.remove(&*text),
        };
    }

    fn put(&mut self, offset: Offset, key: RecordKey, value: &[u8]) {
        match key {
            RecordKey::Claim(session) => {
                // The value is not decoded: the key alone is the claim.
                self.claims.insert(session, offset);
            }
            RecordKey::Seal(id) => {
                self.seals.insert(id, (offset, Seal::decode(value).map(Arc::new)));
            }
            RecordKey::Blob(id) => match self.blobs.get_mut(&id) {
                // Keep the allocation if the bytes are the same: an owner compares pointers to see that no one has replaced them.
                Some((at, bytes)) if bytes[..] == *value => *at = offset,
                _ => _ = self.blobs.insert(id, (offset, value.into())),
            },
        }
    }

    /// Forgets all records before an offset: the log now begins there, so the next reader does not find them.
    pub fn starts_at(&mut self, offset: i64) {
        self.claims.retain(|_, at| *at >= offset);
        self.seals.retain(|_, (at, _)| *at >= offset);
        self.blobs.retain(|_, (at, _)| *at >= offset);
        self.newer.retain(|_, at| *at >= offset);
        self.malformed.retain(|_, at| *at >= offset);
    }

    fn remove(&mut self, key: RecordKey) {
        match key {
            RecordKey::Claim(session) => drop(self.claims.remove(&session)),
            RecordKey::Seal(id) => drop(self.seals.remove(&id)),
            RecordKey::Blob(id) => drop(self.blobs.remove(&id)),
        }
    }

    /// Forgets all: the partition is read from its first record again.
    pub fn start_over(&mut self) {
        // Keep counting, so that answers to earlier questions do not match any more.
        let n_taken = self.n_taken + 1;
        *self = PartitionView {
            n_taken,
            ..PartitionView::new(self.namespace, self.rules)
        };
    }

    /// Returns a question, to be asked of the broker now: where does the partition end?
    pub fn question(&self, now_ms: i64) -> EndQuestion {
        EndQuestion {
            asked_ms: now_ms,
            n_taken: self.n_taken,
        }
    }

    /// Returns the state at the end, once everything below the answer to the question is read. `None` if records were read
    /// since the question: compaction may have removed a record below that end and its replacement may lie behind it.
    pub fn end(&self, question: EndQuestion) -> Option<NamespaceEnd> {
        let is_end = question.n_taken == self.n_taken;
        if !is_end && self.rules.hold(Clause::EndIsAskedForAfterTheLastRecord) {
            return None;
        }
        let claim = self.highest_claim();
        let seal = self.seals.last_key_value();
        let seal = seal.map(|(id, (_, seal))| (*id, seal.clone()));
        let session = seal.as_ref().map(|(id, _)| id.session);
        // A seal without any claim is in force: its claim may have been deleted.
        let current = claim <= session || !self.rules.hold(Clause::NoClaimIsHigher);
        Some(NamespaceEnd {
            asked_ms: question.asked_ms,
            claim,
            seal,
            current,
        })
    }

    /// Returns the highest claim read so far.
    pub fn highest_claim(&self) -> Option<Session> {
        self.claims.last_key_value().map(|(session, _)| *session)
    }

    /// Returns the claim or the seal of the highest session read so far. A claim may have been deleted while its seals remain.
    pub fn top(&self) -> Option<RecordKey> {
        let claim = self.highest_claim().map(RecordKey::Claim);
        let seal = self.seals.last_key_value().map(|(id, _)| RecordKey::Seal(*id));
        match (claim, seal) {
            (Some(claim), Some(seal)) if claim.session() >= seal.session() => Some(claim),
            (claim, seal) => seal.or(claim),
        }
    }

    pub fn has_claim(&self, session: Session) -> bool {
        self.claims.contains_key(&session)
    }

    /// Returns all seals, in ascending order.
    pub(super) fn seals(&self) -> impl Iterator<Item = (SealId, &ReadSeal)> + Clone {
        self.seals.iter().map(|(id, (_, seal))| (*id, seal))
    }

    pub fn has_seal(&self, id: SealId) -> bool {
        self.seals.contains_key(&id)
    }

    /// The bytes of all roles of a seal.
    ///
    /// # Errors
    /// [`DamagedBlob`], if one of them is absent, or not of the length and the hash that the seal has.
    pub fn roles(&self, seal: &Seal) -> Result<BTreeMap<Role, SharedBytes>, DamagedBlob> {
        let roles = seal.table.iter().map(|(role, entries)| {
            let parts = entries.iter().map(|entry| {
                self.part(entry).ok_or_else(|| DamagedBlob {
                    role: role.clone(),
                    blob: entry.blob,
                })
            });
            let parts: Vec<&SharedBytes> = parts.collect::<Result<_, _>>()?;
            Ok((role.clone(), join(&parts)))
        });
        roles.collect()
    }

    /// The bytes of a part; none if they are absent, or not of its length and hash.
    pub fn part(&self, entry: &Entry) -> Option<&SharedBytes> {
        let bytes = self.blob(entry.blob);
        bytes.filter(|bytes| bytes.len() as u64 == entry.length && xxh3_128(bytes) == entry.hash)
    }

    /// A blob as it was read, whatever it holds.
    pub fn blob(&self, id: BlobId) -> Option<&SharedBytes> {
        self.blobs.get(&id).map(|(_, bytes)| bytes)
    }

    /// Returns all keys held.
    pub fn keys(&self) -> impl Iterator<Item = RecordKey> {
        let claims = self.claims.keys().map(|session| RecordKey::Claim(*session));
        let seals = self.seals.keys().map(|id| RecordKey::Seal(*id));
        let blobs = self.blobs.keys().map(|id| RecordKey::Blob(*id));
        claims.chain(seals).chain(blobs)
    }

    /// A blob with these bytes, for the control of [`Clause::NameBlobsOfTheLastSeal`].
    pub(super) fn any_blob_of(&self, bytes: &[u8]) -> Option<BlobId> {
        let mut blobs = self.blobs.iter();
        blobs
            .find(|(_, (_, known))| known[..] == *bytes)
            .map(|(id, _)| *id)
    }

    /// A key of this namespace that a newer version of this program has written.
    pub fn newer_key(&self) -> Option<&str> {
        self.newer.keys().next().map(String::as_str)
    }

    /// Returns a key of this namespace that no version of the program writes. It is ignored.
    pub fn malformed_key(&self) -> Option<&str> {
        self.malformed.keys().next().map(String::as_str)
    }

    /// Other namespaces found in the partition.
    pub fn others(&self) -> &BTreeSet<Namespace> {
        &self.others
    }
}

/// Returns whether a key begins with the number of a later version, as a newer program's would.
fn is_of_newer_version(key: &str) -> bool {
    let version = key.split('|').next().unwrap_or_default();
    version.parse::<u64>().is_ok_and(|version| version > 1)
}

fn join(parts: &[&SharedBytes]) -> SharedBytes {
    match parts {
        // A role of one part shares its bytes with the view.
        [one] => SharedBytes::clone(one),
        _ => parts
            .iter()
            .copied()
            .flat_map(|part| part.iter().copied())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fixture::header;
    use crate::journal::record::Claim;

    fn namespace() -> Namespace {
        Namespace::of("fingerprint", "group")
    }

    fn session(epoch: u64) -> Session {
        Session { epoch, unique: 5 }
    }

    fn seal(epoch: u64, number: u64) -> RecordKey {
        let session = session(epoch);
        RecordKey::Seal(SealId { session, number })
    }

    fn put(view: &mut PartitionView, key: RecordKey) -> Option<RecordKey> {
        let value = match key {
            RecordKey::Seal(_) => Seal::new(header(1), BTreeMap::new()).encode(),
            _ => Claim::default().encode(),
        };
        view.take(key.text(namespace()).as_bytes(), Some(&value))
    }

    /// Returns the current seal after these keys were read.
    fn current(keys: &[RecordKey]) -> Option<RecordKey> {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        for key in keys {
            put(&mut view, *key);
        }
        let end = view.end(view.question(7)).expect("nothing was read since");
        assert_eq!(end.asked_ms, 7);
        end.current().map(|(id, _)| RecordKey::Seal(*id))
    }

    #[test]
    fn the_highest_seal_is_in_force_if_no_claim_is_higher() {
        let claim = |epoch| RecordKey::Claim(session(epoch));
        assert_eq!(current(&[]), None);
        assert_eq!(current(&[claim(1)]), None);
        assert_eq!(current(&[claim(1), seal(1, 0)]), Some(seal(1, 0)));
        assert_eq!(current(&[seal(1, 1), claim(1), seal(1, 0)]), Some(seal(1, 1)));
        assert_eq!(current(&[claim(2), seal(1, 9), claim(1)]), None);
        assert_eq!(current(&[seal(1, 9), claim(2), seal(2, 0)]), Some(seal(2, 0)));
    }

    #[test]
    fn an_end_is_void_once_another_record_is_read() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let question = view.question(0);
        assert!(view.end(question).is_some());
        view.take(b"of somebody else", None);
        assert!(view.end(question).is_none());
    }

    #[test]
    fn other_namespaces_are_noted_but_ignored() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let other = Namespace::of("another", "group");
        let text = RecordKey::Claim(session(9)).text(other);
        assert_eq!(view.take(text.as_bytes(), Some(b"")), None);
        assert_eq!(view.highest_claim(), None);
        assert!(view.others().contains(&other));
    }

    #[test]
    fn keys_of_a_newer_version_are_noted_until_they_are_deleted() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let newer = RecordKey::Claim(session(9))
            .text(namespace())
            .replacen('1', "2", 1);
        view.take(b"2|of|somebody else", Some(b""));
        assert_eq!(view.newer_key(), None);
        view.take(newer.as_bytes(), Some(b""));
        assert_eq!((view.newer_key(), view.malformed_key()), (Some(&*newer), None));
        view.take(newer.as_bytes(), None);
        assert_eq!(view.newer_key(), None);
    }

    #[test]
    fn a_malformed_key_is_not_a_newer_version() {
        for key in [
            "1|NS|clam|3",
            "1|NS|claim|012|0000000000000007",
            "x|NS|claim",
            "0|NS|seal",
            "1|NS",
        ] {
            let mut view = PartitionView::new(namespace(), JournalRules::default());
            let key = key.replace("NS", &namespace().to_string());
            view.take(key.as_bytes(), Some(b"by hand"));
            assert_eq!((view.newer_key(), view.malformed_key()), (None, Some(&*key)));
            view.take(key.as_bytes(), None);
            assert_eq!(view.malformed_key(), None);
        }
    }

    #[test]
    fn forgets_records_before_the_start_of_the_log() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let blob = RecordKey::Blob(BlobId { unique: 5, number: 0 });
        let keys = [RecordKey::Claim(session(1)), seal(1, 0), blob];
        for (offset, key) in (10..).zip(keys) {
            view.take_at(offset, key.text(namespace()).as_bytes(), Some(b"value"));
        }
        view.starts_at(10);
        assert_eq!(view.keys().count(), 3);
        view.starts_at(12);
        assert_eq!(view.keys().collect::<Vec<_>>(), [blob]);
        view.take_at(20, blob.text(namespace()).as_bytes(), Some(b"value"));
        view.starts_at(20);
        assert_eq!(view.keys().count(), 1, "it was written again");
    }

    #[test]
    fn a_claim_counts_even_if_its_value_is_unreadable() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let key = RecordKey::Claim(session(9));
        let text = key.text(namespace());
        assert_eq!(view.take(text.as_bytes(), Some(b"of a newer version")), Some(key));
        assert_eq!(view.highest_claim(), Some(session(9)));
    }

    #[test]
    fn a_tombstone_deletes_its_key() {
        let mut view = PartitionView::new(namespace(), JournalRules::default());
        let blob = RecordKey::Blob(BlobId { unique: 5, number: 0 });
        let keys = [RecordKey::Claim(session(1)), seal(1, 0), blob];
        for key in keys {
            assert_eq!(put(&mut view, key), Some(key));
        }
        assert_eq!(view.keys().collect::<Vec<_>>(), keys);
        for key in keys {
            assert_eq!(view.take(key.text(namespace()).as_bytes(), None), None);
        }
        assert_eq!(view.keys().count(), 0);
    }
}
