//! Values in the state topic: the canonical, checksummed bytes of seals and claims. The value of a blob is just bytes of its
//! role.

use std::collections::BTreeMap;
use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::content::{Header, Role, content_of};
use super::key::BlobId;
use crate::bytes::{Malformed, Reader, Writer};

/// First byte of a seal.
const SEAL_VERSION: u8 = 1;
/// First byte of a claim's value.
const CLAIM_VERSION: u8 = 1;

/// Reason that a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The value has this version, which this program does not know.
    Version(u8),
    /// The checksum, or the hash of the content, does not match.
    Damaged,
    Malformed(Malformed),
}

impl From<Malformed> for RecordError {
    fn from(malformed: Malformed) -> RecordError {
        RecordError::Malformed(malformed)
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Version(version) => {
                write!(f, "it is of version {version}, which this program does not read")
            }
            RecordError::Damaged => f.write_str("it is damaged: its checksum is wrong"),
            RecordError::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

/// Upper bound of any record: 512 KiB. A state with a longer table is not sealed; it would take about 4 GB.
pub const MAX_RECORD_BYTES: usize = 1 << 19;

/// Location of a part of a role, with its expected length and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub blob: BlobId,
    pub length: u64,
    pub hash: u128,
}

/// Stored state of a pair, except the bytes of its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    pub header: Header,
    /// Parts of each role, in the order of its bytes.
    pub table: BTreeMap<Role, Vec<Entry>>,
    /// Content hash of the [`State`](super::State). Equal states have equal hashes, wherever their blobs are.
    pub content: u128,
}

impl Seal {
    pub fn new(header: Header, table: BTreeMap<Role, Vec<Entry>>) -> Seal {
        let lines = table.iter().map(|(role, entries)| {
            let entries = entries.iter();
            (role, entries.map(|entry| (entry.length, entry.hash)))
        });
        let content = content_of(&header, lines);
        Seal {
            header,
            table,
            content,
        }
    }

    /// Returns all blobs that the seal names.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.table.values().flatten()
    }

    /// Encodes the seal:
    /// ```text
    /// 1 │ header │ table: n, (role │ n, parts…)… │ content, 16 bytes │ checksum, 8 bytes
    /// part      u, 8 bytes │ k │ length │ hash, 16 bytes
    /// header    fingerprint │ P │ n, topics… │ begin │ F │ caught up │ exact │ n, (column │ since)…
    /// topic     name │ id, 16 bytes │ read position │ resume offset │ M there │ digest: n │ sum, 8 bytes
    /// ```
    /// Whole numbers are LEB128, signed ones zigzag, and numbers of a fixed length little-endian. Texts are preceded by their
    /// length. A time that may be absent is 0, or 1 and the number. Roles ascend. No part is empty. All parts of a role but the
    /// last have the same length, which the last does not exceed. The checksum is XXH3 (64 bits) of all preceding bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.byte(SEAL_VERSION);
        self.header.encode(&mut to);
        to.number(self.table.len() as u64);
        for (role, entries) in &self.table {
            to.text(role);
            to.number(entries.len() as u64);
            entries.iter().for_each(|entry| entry.encode(&mut to));
        }
        to.bytes(&self.content.to_le_bytes());
        with_checksum(to)
    }

    /// Decodes a seal.
    ///
    /// # Errors
    /// [`RecordError`] if no seal is [encoded](Seal::encode) to these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Seal, RecordError> {
        let mut from = body(bytes, SEAL_VERSION)?;
        let header = Header::decode(&mut from)?;
        let table = decode_table(&mut from)?;
        let content = u128::from_le_bytes(from.array()?);
        from.end()?;
        // The content is computed again, so a wrong one is noticed even if the checksum is right.
        let seal = Seal::new(header, table);
        (seal.content == content)
            .then_some(seal)
            .ok_or(RecordError::Damaged)
    }
}

impl Entry {
    fn encode(&self, to: &mut Writer) {
        to.bytes(&self.blob.unique.to_le_bytes());
        to.number(self.blob.number);
        to.number(self.length);
        to.bytes(&self.hash.to_le_bytes());
    }

    fn decode(from: &mut Reader) -> Result<Entry, Malformed> {
        Ok(Entry {
            blob: BlobId {
                unique: u64::from_le_bytes(from.array()?),
                number: from.number()?,
            },
            length: from.number()?,
            hash: u128::from_le_bytes(from.array()?),
        })
    }
}

fn decode_table(from: &mut Reader) -> Result<BTreeMap<Role, Vec<Entry>>, Malformed> {
    let mut table = BTreeMap::<Role, Vec<Entry>>::new();
    for _ in 0..from.length()? {
        let role: Role = from.text()?.into();
        // Ascending roles make the encoding unique, and exclude duplicates.
        if table.last_key_value().is_some_and(|(last, _)| *last >= role) {
            return Err(Malformed::Number);
        }
        table.insert(role, decode_parts(from)?);
    }
    Ok(table)
}

fn decode_parts(from: &mut Reader) -> Result<Vec<Entry>, Malformed> {
    let mut entries = Vec::new();
    for _ in 0..from.length()? {
        entries.push(Entry::decode(from)?);
    }
    is_cut_alike(&entries).then_some(entries).ok_or(Malformed::Number)
}

/// Returns whether bytes are cut in the only valid way, so that equal states have equal content hashes.
fn is_cut_alike(entries: &[Entry]) -> bool {
    let Some((last, before)) = entries.split_last() else {
        return true;
    };
    // A single part may be short. Otherwise the first part sets the length.
    let length = before.first().unwrap_or(last).length;
    (1..=length).contains(&last.length) && before.iter().all(|entry| entry.length == length)
}

/// Claimant, for people to read. No rule depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    pub instance: String,
    /// Version of the program.
    pub version: String,
    /// Name of the group. Keys have only a hash of it.
    pub group: String,
    /// Settings that decide where an event counts. Together with the group they determine the namespace.
    pub fingerprint: String,
}

impl Claim {
    /// Encodes the claim:
    /// ```text
    /// 1 │ instance │ version │ group │ fingerprint │ checksum, 8 bytes
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.byte(CLAIM_VERSION);
        to.text(&self.instance);
        to.text(&self.version);
        to.text(&self.group);
        to.text(&self.fingerprint);
        with_checksum(to)
    }

    /// Decodes a claim.
    ///
    /// # Errors
    /// [`RecordError`] if no claim is [encoded](Claim::encode) to these bytes. The claim is valid nonetheless, because its key
    /// is enough.
    pub fn decode(bytes: &[u8]) -> Result<Claim, RecordError> {
        let mut from = body(bytes, CLAIM_VERSION)?;
        let claim = Claim {
            instance: from.text()?.to_owned(),
            version: from.text()?.to_owned(),
            group: from.text()?.to_owned(),
            fingerprint: from.text()?.to_owned(),
        };
        from.end()?;
        Ok(claim)
    }
}

fn with_checksum(mut to: Writer) -> Vec<u8> {
    let checksum = xxh3_64(to.as_bytes());
    to.bytes(&checksum.to_le_bytes());
    to.into_bytes()
}

/// Returns a reader for the bytes between version and checksum.
fn body(bytes: &[u8], version: u8) -> Result<Reader<'_>, RecordError> {
    let (before, checksum) = bytes.split_last_chunk().ok_or(Malformed::Length)?;
    let mut from = Reader::new(before);
    // The version comes first, because another version may have another checksum.
    let found = from.byte()?;
    if found != version {
        return Err(RecordError::Version(found));
    }
    if xxh3_64(before) != u64::from_le_bytes(*checksum) {
        return Err(RecordError::Damaged);
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::content::State;
    use crate::journal::fixture::{self, header, state};

    /// Roles of the test state. The last one has two parts.
    const ROLES: [(&str, &str); 3] = [("arms", ""), ("cell 0 7", "seven"), ("totals", "all of it")];

    fn seal() -> Seal {
        let state = State::cut(header(40), fixture::roles(&ROLES), 6);
        let blob = |number| BlobId { unique: 5, number };
        let entries = (300..)
            .zip(&state.parts)
            .map(|(number, (role, parts))| {
                let entries = parts.iter().map(|part| Entry {
                    blob: blob(number),
                    length: part.bytes.len() as u64,
                    hash: part.hash,
                });
                (role.clone(), entries.collect())
            })
            .collect();
        Seal::new(state.header, entries)
    }

    fn claim() -> Claim {
        Claim {
            instance: "gauge-1".to_owned(),
            version: "0.1.0".to_owned(),
            group: "abgauge".to_owned(),
            fingerprint: "slot_ms 5000, key user".to_owned(),
        }
    }

    #[test]
    fn records_survive_a_round_trip() {
        assert_eq!(Seal::decode(&seal().encode()), Ok(seal()));
        assert_eq!(Claim::decode(&claim().encode()), Ok(claim()));
        let bare = Claim::default();
        assert_eq!(Claim::decode(&bare.encode()), Ok(bare));
        let mut young = header(0);
        (young.begin_ms, young.frontier_ms, young.reaches[0].resume_max_ms) = (None, None, None);
        let young = Seal::new(young, BTreeMap::new());
        assert_eq!(Seal::decode(&young.encode()), Ok(young));
    }

    #[test]
    fn detects_every_damaged_byte() {
        let (seal, claim) = (seal().encode(), claim().encode());
        for (bytes, is_read) in [
            (seal, (|bytes| Seal::decode(bytes).is_ok()) as fn(&[u8]) -> bool),
            (claim, |bytes| Claim::decode(bytes).is_ok()),
        ] {
            for at in 0..bytes.len() {
                for change in 1..=255 {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= change;
                    assert!(!is_read(&damaged), "byte {at} of {} ^ {change}", bytes.len());
                }
                assert!(!is_read(&bytes[..at]), "cut at {at}");
            }
            assert!(!is_read(&[&bytes[..], &[0]].concat()));
        }
    }

    /// Changed bytes get a correct checksum, as another program might write them.
    #[test]
    fn accepts_only_canonical_bytes() {
        let bytes = seal().encode();
        let body = &bytes[..bytes.len() - 8];
        for at in 1..body.len() {
            for change in [1, 2, 0x40, 0x80, 0xff] {
                let mut other = body.to_vec();
                other[at] ^= change;
                let mut to = Writer::default();
                to.bytes(&other);
                let other = with_checksum(to);
                if let Ok(read) = Seal::decode(&other) {
                    assert_eq!(read.encode(), other, "byte {at} ^ {change}");
                }
            }
        }
    }

    #[test]
    fn reports_an_unknown_version() {
        let mut bytes = seal().encode();
        bytes[0] = 2;
        assert_eq!(Seal::decode(&bytes), Err(RecordError::Version(2)));
    }

    #[test]
    fn the_content_hash_does_not_depend_on_blob_ids() {
        let one = seal();
        let mut elsewhere = one.table.clone();
        for entry in elsewhere.values_mut().flatten() {
            entry.blob.unique += 1;
        }
        assert_eq!(Seal::new(one.header.clone(), elsewhere).content, one.content);
        let state = State::cut(header(40), fixture::roles(&ROLES), 6);
        assert_eq!(state.content, one.content);
    }

    #[test]
    fn rejects_parts_of_uneven_length() {
        let seal = |lengths: &[u64]| {
            let entries = lengths.iter().map(|length| Entry {
                blob: BlobId { unique: 5, number: 0 },
                length: *length,
                hash: 0,
            });
            Seal::new(header(40), BTreeMap::from([("totals".into(), entries.collect())]))
        };
        for lengths in [&[][..], &[7], &[7, 7], &[7, 7, 1]] {
            assert_eq!(Seal::decode(&seal(lengths).encode()), Ok(seal(lengths)));
        }
        let refused = Err(RecordError::Malformed(Malformed::Number));
        for lengths in [&[0][..], &[7, 0], &[7, 8], &[7, 6, 7]] {
            assert_eq!(Seal::decode(&seal(lengths).encode()), refused, "{lengths:?}");
        }
    }

    #[test]
    fn different_states_have_different_content_hashes() {
        let content = |number, roles: &[(&str, &str)]| state(number, roles).content;
        let one = content(40, &[("a", "b")]);
        assert_ne!(one, content(41, &[("a", "b")]));
        assert_ne!(one, content(40, &[("b", "b")]));
        assert_ne!(one, content(40, &[("a", "c")]));
        assert_ne!(one, content(40, &[]));
        let mut caught_up = header(40);
        caught_up.was_caught_up = !caught_up.was_caught_up;
        assert_ne!(State::new(caught_up, BTreeMap::new()).content, content(40, &[]));
    }
}
