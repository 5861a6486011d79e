//! Keys of the state topic: readable text, with one spelling for each key.
//!
//! ```text
//! 1|NS|claim|E|U       NS, U: 16 hexadecimal digits
//! 1|NS|seal|E|U|I      E, I, K: decimal
//! 1|NS|blob|U|K
//! ```
//! The format of a claim's key never changes.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::Writer;

/// Owner of keys: the state of one group, counted by one set of rules. Namespaces never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(u64);

impl Namespace {
    /// Hashes the consumer group and the text that decides how events count.
    pub fn of(fingerprint: &str, group: &str) -> Namespace {
        // Each text is preceded by its length, so the border between the two is part of the hash.
        let mut to = Writer::default();
        to.text(fingerprint);
        to.text(group);
        Namespace(xxh3_64(to.as_bytes()))
    }

    /// Returns the namespace in the text of a key, even if no version of the program writes that key.
    pub(super) fn of_key(text: &[u8]) -> Option<Namespace> {
        String::from_utf8_lossy(text).split('|').nth(1)?.parse().ok()
    }
}

/// Error: a text is not the name of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNamespace;

impl FromStr for Namespace {
    type Err = NoNamespace;

    fn from_str(text: &str) -> Result<Namespace, NoNamespace> {
        hexadecimal(text).map(Namespace).ok_or(NoNamespace)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A claim on the pair. The greater of two sessions holds it: by epoch, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// e: one more than the highest that was read or tried.
    pub epoch: u64,
    /// u: random, new with each claim.
    pub unique: u64,
}

impl Session {
    /// Epochs from which on no instance claims. A pair that is claimed every millisecond gets there in 146 million years, so such
    /// an epoch was written by another program. Claiming above it would leave no room for the next claim.
    pub const UNSURPASSABLE_EPOCH: u64 = 1 << 62;

    /// Returns true if no instance claims above this session.
    pub fn is_unsurpassable(self) -> bool {
        self.epoch >= Self::UNSURPASSABLE_EPOCH
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{:016x}", self.epoch, self.unique)
    }
}

/// Id of a seal. The greater of two seals is the later state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealId {
    pub session: Session,
    /// i: counts the seals of a session.
    pub number: u64,
}

impl fmt::Display for SealId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}", self.session, self.number)
    }
}

/// Id of a blob. Epochs are not part of it, because u is new with each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    /// u of the session that wrote it.
    pub unique: u64,
    /// k: counts the blobs of a session.
    pub number: u64,
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}|{}", self.unique, self.number)
    }
}

/// Subject of a record within its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    Claim(Session),
    Seal(SealId),
    Blob(BlobId),
}

impl RecordKey {
    pub fn text(self, namespace: Namespace) -> String {
        match self {
            RecordKey::Claim(session) => format!("1|{namespace}|claim|{session}"),
            RecordKey::Seal(id) => format!("1|{namespace}|seal|{id}"),
            RecordKey::Blob(id) => format!("1|{namespace}|blob|{id}"),
        }
    }

    /// The session of a claim or a seal.
    pub fn session(self) -> Option<Session> {
        match self {
            RecordKey::Claim(session) | RecordKey::Seal(SealId { session, .. }) => Some(session),
            RecordKey::Blob(_) => None,
        }
    }

    /// Parses a key; `None` if [`RecordKey::text`] does not print any key like this.
    pub fn parse(text: &[u8]) -> Option<(Namespace, RecordKey)> {
        // To the broker, another spelling would be another key. So each key has exactly one.
        let mut parts = std::str::from_utf8(text).ok()?.split('|');
        let mut next = || parts.next();
        let (version, namespace, kind) = (next()?, Namespace(hexadecimal(next()?)?), next()?);
        let key = match kind {
            "claim" => RecordKey::Claim(session(&mut next)?),
            "seal" => RecordKey::Seal(SealId {
                session: session(&mut next)?,
                number: decimal(next()?)?,
            }),
            "blob" => RecordKey::Blob(BlobId {
                unique: hexadecimal(next()?)?,
                number: decimal(next()?)?,
            }),
            _ => return None,
        };
        // Text after the last field would give a key a second spelling.
        let is_whole = version == "1" && next().is_none();
        is_whole.then_some((namespace, key))
    }
}

fn session<'a>(next: &mut impl FnMut() -> Option<&'a str>) -> Option<Session> {
    Some(Session {
        epoch: decimal(next()?)?,
        unique: hexadecimal(next()?)?,
    })
}

/// Parses a number as it is printed: without sign and leading zeros.
fn decimal(text: &str) -> Option<u64> {
    // `parse` would accept a plus sign and leading zeros, too.
    let is_one_spelling = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_one_spelling)
}

/// Parses a number as it is printed: 16 lower-case digits.
fn hexadecimal(text: &str) -> Option<u64> {
    // `from_str_radix` would accept a sign, capitals, and other lengths, too.
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_one_spelling = text.len() == 16 && text.bytes().all(is_digit);
    u64::from_str_radix(text, 16).ok().filter(|_| is_one_spelling)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = RecordKey> {
        let session = || any::<(u64, u64)>().prop_map(|(epoch, unique)| Session { epoch, unique });
        prop_oneof![
            session().prop_map(RecordKey::Claim),
            (session(), any::<u64>())
                .prop_map(|(session, number)| RecordKey::Seal(SealId { session, number })),
            any::<(u64, u64)>().prop_map(|(unique, number)| RecordKey::Blob(BlobId { unique, number })),
        ]
    }

    proptest! {
        #[test]
        fn keys_survive_a_round_trip(namespace: u64, key in any_key()) {
            let text = key.text(Namespace(namespace));
            prop_assert_eq!(Namespace(namespace).to_string().parse(), Ok(Namespace(namespace)));
            prop_assert_eq!(RecordKey::parse(text.as_bytes()), Some((Namespace(namespace), key)));
        }

        /// Otherwise two texts could be one key.
        #[test]
        fn every_parsed_key_prints_as_the_same_text(key in any_key(), at in 0..60_usize, byte in b' '..b'~') {
            let mut text = key.text(Namespace(7)).into_bytes();
            let at = at % text.len();
            text[at] = byte;
            if let Some((namespace, key)) = RecordKey::parse(&text) {
                prop_assert_eq!(key.text(namespace).into_bytes(), text);
            }
        }
    }

    #[test]
    fn keys_have_the_documented_format() {
        let session = Session {
            epoch: 12,
            unique: 0xab,
        };
        let namespace = Namespace(0xf00d);
        for (key, text) in [
            (
                RecordKey::Claim(session),
                "1|000000000000f00d|claim|12|00000000000000ab",
            ),
            (
                RecordKey::Seal(SealId { session, number: 3 }),
                "1|000000000000f00d|seal|12|00000000000000ab|3",
            ),
            (
                RecordKey::Blob(BlobId {
                    unique: 0xab,
                    number: 0,
                }),
                "1|000000000000f00d|blob|00000000000000ab|0",
            ),
        ] {
            assert_eq!(key.text(namespace), text);
        }
    }

    #[test]
    fn rejects_malformed_keys() {
        for text in [
            "",
            "1",
            "2|000000000000f00d|claim|12|00000000000000ab",
            "1|000000000000f00d|claim|12",
            "1|000000000000f00d|claim|12|00000000000000ab|",
            "1|000000000000f00d|claim|12|00000000000000ab|0",
            "1|000000000000f00d|claim|012|00000000000000ab",
            "1|000000000000f00d|claim|+12|00000000000000ab",
            "1|000000000000f00d|claim|18446744073709551616|00000000000000ab",
            "1|000000000000f00d|claim|12|00000000000000AB",
            "1|000000000000f00d|claim|12|ab",
            "1|f00d|claim|12|00000000000000ab",
            "1|000000000000f00d|clam|12|00000000000000ab",
            "1|000000000000f00d|seal|12|00000000000000ab",
        ] {
            assert_eq!(RecordKey::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(RecordKey::parse(b"1|\xff"), None);
    }

    #[test]
    fn a_later_epoch_outranks_any_number() {
        let session = |epoch, unique| Session { epoch, unique };
        assert!(session(2, 0) > session(1, u64::MAX));
        assert!(session(2, 2) > session(2, 1));
    }

    #[test]
    fn a_namespace_depends_on_fingerprint_and_group() {
        assert_ne!(Namespace::of("a", "b"), Namespace::of("a", "c"));
        assert_ne!(Namespace::of("a", "b"), Namespace::of("ab", ""));
    }
}
