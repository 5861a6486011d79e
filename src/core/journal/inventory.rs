//! Inventory of a state partition with the records of all namespaces, for tools that own nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use super::content::{Header, Role, SharedBytes};
use super::key::{Namespace, RecordKey, SealId, Session};
use super::record::{Claim, RecordError, Seal};
use super::rules::JournalRules;
use super::view::{DamagedBlob, EndQuestion, NamespaceEnd, PartitionView};
use crate::nouns::number_of;

/// The records of a partition by namespace.
#[derive(Debug, Default)]
pub struct Inventory {
    namespaces: BTreeMap<Namespace, NamespaceContents>,
    /// Records taken; it never falls.
    n_taken: u64,
}

impl Inventory {
    /// Takes the next record of the partition, with the time that the log has for it (Unix ms), if it has one.
    pub fn take(&mut self, text: &[u8], value: Option<&[u8]>, written_ms: Option<i64>) {
        self.n_taken += 1;
        let key = RecordKey::parse(text);
        // The view of a namespace notes malformed keys and keys of later versions, so it gets them, too.
        let namespace = key.map_or_else(|| Namespace::of_key(text), |(namespace, _)| Some(namespace));
        if let Some(namespace) = namespace {
            let contents = self.namespaces.entry(namespace);
            contents
                .or_insert_with(|| NamespaceContents::new(namespace))
                .take(text, key.map(|(_, key)| key), value, written_ms);
        }
    }

    /// The partition is read from its first record again.
    pub fn start_over(&mut self) {
        self.namespaces.clear();
        // Answers to earlier questions are void.
        self.n_taken += 1;
    }

    /// Returns a question for the end of the partition. Ask it now: it covers the records handed in so far.
    pub fn question(&self, now_ms: i64) -> EndQuestion {
        EndQuestion {
            asked_ms: now_ms,
            n_taken: self.n_taken,
        }
    }

    /// Returns whether nothing was read since the question. If so, this is the end once everything below the answer is read.
    pub fn is_end(&self, question: EndQuestion) -> bool {
        question.n_taken == self.n_taken
    }

    /// Returns the namespaces with live records.
    pub fn namespaces(&self) -> impl Iterator<Item = Namespace> {
        let live = self
            .namespaces
            .iter()
            .filter(|(_, contents)| !contents.is_empty());
        live.map(|(namespace, _)| *namespace)
    }

    /// Returns the records of a namespace, if anything was ever written there.
    pub fn of(&self, namespace: Namespace) -> Option<&NamespaceContents> {
        self.namespaces.get(&namespace)
    }
}

/// Records of one namespace in a partition, at an end.
#[derive(Debug)]
pub struct NamespaceContents {
    namespace: Namespace,
    view: PartitionView,
    claims: BTreeMap<Session, Result<Claim, RecordError>>,
    /// All keys that were written, including deleted ones.
    written: BTreeMap<RecordKey, WrittenKey>,
    written_ms: Option<i64>,
}

#[derive(Debug)]
struct WrittenKey {
    /// Bytes of the key and its value; `None` if deleted.
    n_bytes: Option<u64>,
    /// Hash of the first value found.
    content: Option<u128>,
    has_two_contents: bool,
}

/// Bytes of keys and values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// The highest claim, the highest seal and its blobs.
    pub live: u64,
    /// Bytes that the next owner's garbage collection deletes.
    pub garbage: u64,
    pub n_garbage: usize,
}

/// Violation of the rules, or a state that is not at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breach {
    /// A key of a later version: a newer program has written here.
    Newer(String),
    /// A key that no version writes.
    Malformed(String),
    /// A claim or a seal with an epoch that no instance claims above.
    Unsurpassable(String),
    /// I3.
    TwoContents(RecordKey),
    /// I10: the highest seal cannot be read.
    Seal { id: SealId, error: RecordError },
    /// I10: a blob of the highest seal is absent or damaged.
    Damage { id: SealId, damage: DamagedBlob },
    /// I2: between two seals of one session, a value that only grows has decreased.
    Back {
        earlier: SealId,
        later: SealId,
        what: &'static str,
    },
    /// A claim whose value cannot be read. The claim itself is still valid.
    Claim { session: Session, error: RecordError },
    /// A claim waits for its seal.
    Waits(Session),
    /// I11: not at rest.
    Garbage(Weight),
}

impl Breach {
    /// Returns whether it is damage. Otherwise it is temporary or harmless.
    pub fn is_damage(&self) -> bool {
        !matches!(
            self,
            Breach::Malformed(_) | Breach::Claim { .. } | Breach::Waits(_) | Breach::Garbage(_)
        )
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Newer(key) => write!(f, "a newer version wrote the key `{key}`"),
            Breach::Malformed(key) => {
                write!(
                    f,
                    "no version of abgauge writes the key `{key}`: another program wrote it"
                )
            }
            Breach::Unsurpassable(key) => write!(
                f,
                "another program wrote the key `{key}`, and no claim can be above it: nothing more can be stored"
            ),
            Breach::TwoContents(key) => write!(f, "the key {key:?} was written with two different contents"),
            Breach::Seal { id, error } => write!(f, "the seal {id} cannot be read: {error}"),
            Breach::Damage { id, damage } => write!(f, "the seal {id} is incomplete: {damage}"),
            Breach::Back { earlier, later, what } => {
                write!(
                    f,
                    "{what} of the seal {later} is less than that of the earlier seal {earlier}"
                )
            }
            Breach::Claim { session, error } => {
                write!(f, "the words of the claim {session} cannot be read: {error}")
            }
            Breach::Waits(session) => write!(f, "the claim {session} waits for its first seal"),
            Breach::Garbage(Weight {
                garbage, n_garbage, ..
            }) => {
                write!(
                    f,
                    "garbage that was not removed yet: {}, {garbage} bytes",
                    number_of(n_garbage, "key")
                )
            }
        }
    }
}

impl NamespaceContents {
    fn new(namespace: Namespace) -> NamespaceContents {
        NamespaceContents {
            namespace,
            view: PartitionView::new(namespace, JournalRules::default()),
            claims: BTreeMap::new(),
            written: BTreeMap::new(),
            written_ms: None,
        }
    }

    fn take(&mut self, text: &[u8], key: Option<RecordKey>, value: Option<&[u8]>, written_ms: Option<i64>) {
        self.view.take(text, value);
        let Some(key) = key else { return };
        self.written_ms = self.written_ms.max(written_ms);
        let content = value.map(xxh3_128);
        let written = self.written.entry(key).or_insert(WrittenKey {
            n_bytes: None,
            content,
            has_two_contents: false,
        });
        // I3: The first content stays known across tombstones, so that a later write of other bytes is noticed.
        written.has_two_contents |=
            content.is_some_and(|content| *written.content.get_or_insert(content) != content);
        written.n_bytes = value.map(|value| (text.len() + value.len()) as u64);
        if let RecordKey::Claim(session) = key {
            match value {
                Some(value) => _ = self.claims.insert(session, Claim::decode(value)),
                None => _ = self.claims.remove(&session),
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys().next().is_none()
    }

    /// Returns the keys that are not deleted.
    pub fn keys(&self) -> impl Iterator<Item = RecordKey> {
        self.view.keys()
    }

    /// Returns when it was last written to, Unix ms, including tombstones. Compaction may have removed the last record.
    pub fn written_ms(&self) -> Option<i64> {
        self.written_ms
    }

    /// Returns the highest claim and its content.
    pub fn claim(&self) -> Option<(Session, &Result<Claim, RecordError>)> {
        self.claims
            .last_key_value()
            .map(|(session, claim)| (*session, claim))
    }

    /// Returns the state at the end.
    pub fn end(&self) -> Option<NamespaceEnd> {
        self.view.end(self.view.question(0))
    }

    /// Returns the bytes of all roles of a seal.
    ///
    /// # Errors
    /// [`DamagedBlob`] if a blob is missing or does not match the seal.
    pub fn roles(&self, seal: &Seal) -> Result<BTreeMap<Role, SharedBytes>, DamagedBlob> {
        self.view.roles(seal)
    }

    pub fn weight(&self) -> Weight {
        let end = self.end();
        let seal = end.as_ref().and_then(|end| end.seal.as_ref());
        // The highest claim is live even without a seal: without it, the pair would appear to have no owner.
        let mut live: BTreeSet<RecordKey> = self
            .claims
            .keys()
            .last()
            .map(|session| RecordKey::Claim(*session))
            .into_iter()
            .collect();
        if let Some((id, seal)) = seal {
            live.insert(RecordKey::Seal(*id));
            let entries = seal.iter().flat_map(|seal| seal.entries());
            live.extend(entries.map(|entry| RecordKey::Blob(entry.blob)));
        }
        let mut weight = Weight::default();
        for (key, written) in &self.written {
            let Some(n_bytes) = written.n_bytes else { continue };
            if live.contains(key) {
                weight.live += n_bytes;
            } else {
                weight.garbage += n_bytes;
                weight.n_garbage += 1;
            }
        }
        weight
    }

    /// Returns all violations. In a partition that is being written, some of them are temporary.
    pub fn breaches(&self) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let view = &self.view;
        breaches.extend(view.newer_key().map(|key| Breach::Newer(key.to_owned())));
        breaches.extend(view.malformed_key().map(|key| Breach::Malformed(key.to_owned())));
        // No instance claims above this epoch, whether a claim or a seal has it.
        let top = view.top();
        let top = top.filter(|top| top.session().is_some_and(Session::is_unsurpassable));
        breaches.extend(top.map(|top| Breach::Unsurpassable(top.text(self.namespace))));
        // A deleted key is harmless, whatever values it had.
        let with_two_contents = self
            .written
            .iter()
            .filter(|(_, written)| written.has_two_contents && written.n_bytes.is_some());
        breaches.extend(with_two_contents.map(|(key, _)| Breach::TwoContents(*key)));
        let end = self.end();
        match end.as_ref().and_then(|end| end.seal.as_ref()) {
            Some((id, Err(error))) => breaches.push(Breach::Seal {
                id: *id,
                error: *error,
            }),
            Some((id, Ok(seal))) => breaches.extend(
                self.roles(seal)
                    .err()
                    .map(|damage| Breach::Damage { id: *id, damage }),
            ),
            None => {}
        }
        breaches.extend(self.steps_back());
        if let Some((session, claim)) = self.claim() {
            breaches.extend(claim.as_ref().err().map(|error| Breach::Claim {
                session,
                error: *error,
            }));
            // If the claim has no seal in force, its owner has not sealed yet, or died before it did.
            let is_current = end.as_ref().is_some_and(|end| end.current().is_some());
            breaches.extend((!is_current).then_some(Breach::Waits(session)));
        }
        let weight = self.weight();
        breaches.extend((weight.n_garbage > 0).then_some(Breach::Garbage(weight)));
        breaches
    }

    /// Seals of other sessions need not have been in force, so they are not compared.
    fn steps_back(&self) -> impl Iterator<Item = Breach> {
        let readable = self.view.seals();
        let readable = readable.filter_map(|(id, seal)| Some((id, &seal.as_ref().ok()?.header)));
        // Ids ascend, so neighbors are consecutive seals.
        let pairs = readable.clone().zip(readable.skip(1));
        pairs.filter_map(|((earlier, from), (later, to))| {
            let what = falls(from, to).filter(|_| earlier.session == later.session)?;
            Some(Breach::Back { earlier, later, what })
        })
    }
}

/// Returns the value that only grows along a chain of states but is lower in the later one.
fn falls(earlier: &Header, later: &Header) -> Option<&'static str> {
    if !later.reaches(earlier) {
        return Some("a read position");
    }
    if later.frontier_ms < earlier.frontier_ms {
        return Some("the frontier");
    }
    // Nothing is counted before the first record.
    let has_restarted = earlier.begin_ms.is_some() && later.begin_ms != earlier.begin_ms;
    has_restarted.then_some("the begin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::content::State;
    use crate::journal::fixture::{header, roles};
    use crate::journal::key::BlobId;
    use crate::journal::record::Entry;

    fn namespace() -> Namespace {
        Namespace::of("fingerprint", "group")
    }

    const SESSION: Session = Session { epoch: 3, unique: 5 };

    fn seal_id(number: u64) -> SealId {
        SealId {
            session: SESSION,
            number,
        }
    }

    /// One state, sealed at rest.
    struct Desk {
        inventory: Inventory,
        blobs: Vec<BlobId>,
    }

    impl Desk {
        fn new() -> Desk {
            let mut desk = Desk {
                inventory: Inventory::default(),
                blobs: Vec::new(),
            };
            desk.put(RecordKey::Claim(SESSION), &Claim::default().encode());
            desk.seal(0, 40);
            desk
        }

        fn put(&mut self, key: RecordKey, value: &[u8]) {
            let text = key.text(namespace());
            self.inventory.take(text.as_bytes(), Some(value), Some(7));
        }

        fn delete(&mut self, key: RecordKey) {
            self.inventory.take(key.text(namespace()).as_bytes(), None, None);
        }

        fn seal(&mut self, number: u64, read_position: i64) {
            self.seal_of(number, header(read_position));
        }

        fn seal_of(&mut self, number: u64, header: Header) {
            let state = State::cut(header, roles(&[("totals", "all of it")]), 6);
            let mut table = BTreeMap::new();
            for (role, parts) in &state.parts {
                let mut entries = Vec::new();
                for part in parts {
                    let blob = BlobId {
                        unique: SESSION.unique,
                        number: self.blobs.len() as u64,
                    };
                    self.blobs.push(blob);
                    self.put(RecordKey::Blob(blob), &part.bytes);
                    entries.push(Entry {
                        blob,
                        length: part.bytes.len() as u64,
                        hash: part.hash,
                    });
                }
                table.insert(role.clone(), entries);
            }
            let seal = Seal::new(state.header, table);
            self.put(RecordKey::Seal(seal_id(number)), &seal.encode());
        }

        fn breaches(&self) -> Vec<Breach> {
            self.inventory
                .of(namespace())
                .map_or_else(Vec::new, NamespaceContents::breaches)
        }

        #[track_caller]
        fn check(&self, damage: &[Breach]) {
            let mut found = self.breaches();
            found.retain(Breach::is_damage);
            assert_eq!(found, damage);
        }
    }

    #[test]
    fn a_partition_at_rest_has_no_breaches() {
        let desk = Desk::new();
        assert_eq!(desk.breaches(), []);
        let namespace_contents = desk.inventory.of(namespace()).expect("it is written");
        assert_eq!(namespace_contents.weight().garbage, 0);
        assert_eq!(namespace_contents.keys().count(), 4);
        assert_eq!(namespace_contents.written_ms(), Some(7));
        assert!(
            namespace_contents
                .end()
                .is_some_and(|end| end.current().is_some())
        );
    }

    #[test]
    fn replaced_records_are_garbage_not_damage() {
        let mut desk = Desk::new();
        desk.seal(1, 50);
        let [Breach::Garbage(weight)] = desk.breaches()[..] else {
            panic!("{:?}", desk.breaches());
        };
        assert_eq!(weight.n_garbage, 3, "a seal and two blobs");
        desk.check(&[]);
    }

    #[test]
    fn a_claim_waiting_for_its_seal_is_not_damage() {
        let mut desk = Desk::new();
        let session = Session { epoch: 4, unique: 1 };
        desk.put(RecordKey::Claim(session), b"of a newer version");
        let found = desk.breaches();
        assert!(found.contains(&Breach::Waits(session)), "{found:?}");
        assert!(matches!(
            found[..],
            [Breach::Claim { .. }, Breach::Waits(_), Breach::Garbage(_)]
        ));
    }

    #[test]
    fn a_missing_or_changed_blob_is_damage() {
        let mut desk = Desk::new();
        let blob = desk.blobs[1];
        let damage = Breach::Damage {
            id: seal_id(0),
            damage: DamagedBlob {
                role: "totals".into(),
                blob,
            },
        };
        desk.delete(RecordKey::Blob(blob));
        desk.check(std::slice::from_ref(&damage));
        desk.put(RecordKey::Blob(blob), b"xyz");
        desk.check(&[Breach::TwoContents(RecordKey::Blob(blob)), damage]);
    }

    /// A tombstone in between does not reset the content.
    #[test]
    fn rewriting_a_key_with_other_content_is_a_breach() {
        let mut desk = Desk::new();
        let key = RecordKey::Claim(SESSION);
        desk.put(key, &Claim::default().encode());
        desk.delete(key);
        desk.put(key, &Claim::default().encode());
        desk.check(&[]);
        desk.delete(key);
        desk.put(key, b"another");
        desk.check(&[Breach::TwoContents(key)]);
    }

    #[test]
    fn an_unreadable_highest_seal_is_a_breach() {
        let mut desk = Desk::new();
        desk.put(RecordKey::Seal(seal_id(9)), b"\x02 of a newer version");
        let found = desk.breaches();
        assert!(matches!(found[..], [Breach::Seal { id, .. }, Breach::Garbage(_)] if id == seal_id(9)));
    }

    #[test]
    fn values_never_decrease_within_a_session() {
        let back = |change: fn(&mut Header)| {
            let mut desk = Desk::new();
            let mut header = header(40);
            change(&mut header);
            desk.seal_of(1, header);
            let mut found = desk.breaches();
            found.retain(Breach::is_damage);
            found
        };
        assert_eq!(back(|_| {}), []);
        assert_eq!(back(|header| header.reaches[1].read_position += 1), []);
        for (change, what) in [
            (
                (|header| header.reaches[1].read_position -= 1) as fn(&mut Header),
                "a read position",
            ),
            (|header| header.frontier_ms = None, "the frontier"),
            (|header| header.begin_ms = Some(1), "the begin"),
        ] {
            let expected = Breach::Back {
                earlier: seal_id(0),
                later: seal_id(1),
                what,
            };
            assert_eq!(back(change), [expected]);
        }
    }

    #[test]
    fn other_namespaces_are_ignored() {
        let mut desk = Desk::new();
        let other = Namespace::of("another", "group");
        desk.inventory
            .take(RecordKey::Claim(SESSION).text(other).as_bytes(), Some(b"x"), None);
        desk.inventory.take(b"of nobody", Some(b"x"), None);
        assert_eq!(desk.breaches(), []);
        let namespaces = |desk: &Desk| -> BTreeSet<Namespace> { desk.inventory.namespaces().collect() };
        assert_eq!(namespaces(&desk), [namespace(), other].into());
        assert_eq!(desk.inventory.of(other).map(|of| of.keys().count()), Some(1));
        desk.inventory
            .take(RecordKey::Claim(SESSION).text(other).as_bytes(), None, None);
        assert_eq!(namespaces(&desk), [namespace()].into());
    }

    #[test]
    fn reports_a_key_of_a_newer_version() {
        let mut desk = Desk::new();
        let newer = RecordKey::Claim(SESSION).text(namespace()).replacen('1', "2", 1);
        desk.inventory.take(newer.as_bytes(), Some(b"x"), None);
        desk.check(&[Breach::Newer(newer)]);
    }

    #[test]
    fn a_malformed_key_is_reported_but_harmless() {
        let mut desk = Desk::new();
        let malformed = format!("1|{}|clam|3", namespace());
        desk.inventory.take(malformed.as_bytes(), Some(b"x"), None);
        assert_eq!(desk.breaches(), [Breach::Malformed(malformed)]);
        desk.check(&[]);
    }

    #[test]
    fn a_claim_that_no_instance_claims_above_is_damage() {
        for epoch in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
            let mut desk = Desk::new();
            let key = RecordKey::Claim(Session { epoch, unique: 0 });
            desk.put(key, &Claim::default().encode());
            desk.check(&[Breach::Unsurpassable(key.text(namespace()))]);
        }
    }

    #[test]
    fn a_deleted_key_is_harmless() {
        let mut desk = Desk::new();
        let blob = RecordKey::Blob(BlobId {
            unique: 99,
            number: 0,
        });
        for value in [b"one", b"two"] {
            desk.put(blob, value);
        }
        desk.check(&[Breach::TwoContents(blob)]);
        desk.delete(blob);
        desk.check(&[]);
    }

    #[test]
    fn an_end_is_void_once_a_record_is_read_after_the_question() {
        let mut desk = Desk::new();
        let question = desk.inventory.question(1);
        assert!(desk.inventory.is_end(question));
        desk.delete(RecordKey::Claim(SESSION));
        assert!(!desk.inventory.is_end(question));
        let question = desk.inventory.question(1);
        desk.inventory.start_over();
        assert!(!desk.inventory.is_end(question));
        assert!(desk.inventory.of(namespace()).is_none());
    }
}
