//! State of a pair as it is offered for sealing: a header, which this module reads, and roles with opaque bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::identity::{CountedTopic, LogIdentity};
use crate::bytes::{Malformed, Reader, Writer};

/// The most that a blob holds: 256 KiB.
pub const MAX_PART_BYTES: usize = 1 << 18;

/// Bytes that many may hold.
pub type SharedBytes = Arc<[u8]>;

/// Names a part of the state, such as `totals` or `cell 0 29393280`.
pub type Role = Arc<str>;

/// Digest of the accepted events that are read again: their number, and the wrapping sum of their hashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayDigest {
    pub n_events: u64,
    pub sum: u64,
}

/// Read progress in a topic partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicProgress {
    /// Offset below which all records were read.
    pub read_position: i64,
    /// Offset from which open lists are replayed.
    pub resume_offset: i64,
    /// M as of the resume offset, Unix ms.
    pub resume_max_ms: Option<i64>,
    /// Digest of the accepted events before the read position that are open.
    pub digest: ReplayDigest,
}

/// Column and the time since which it has been counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedColumn {
    pub id: String,
    /// Epoch ms.
    pub since_ms: i64,
}

/// A state without the bytes of its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub identity: LogIdentity,
    /// Time at which counting started, Unix ms; `None` before the first record.
    pub begin_ms: Option<i64>,
    /// start(F), Unix ms; `None` before the first record.
    pub frontier_ms: Option<i64>,
    /// Read progress by topic, in the order of the identity.
    pub reaches: Vec<TopicProgress>,
    /// The pair has reached the ends of its logs once. Before that it is in no view.
    pub was_caught_up: bool,
    /// True if no record was shed.
    pub is_exact: bool,
    pub columns: Vec<CountedColumn>,
}

impl Header {
    /// Returns whether this state was read at least as far as the other one, in each topic.
    pub fn reaches(&self, other: &Header) -> bool {
        let mut pairs = self.reaches.iter().zip(&other.reaches);
        // Comparing the lengths matters: `zip` ends with the shorter one.
        self.reaches.len() == other.reaches.len()
            && pairs.all(|(here, there)| here.read_position >= there.read_position)
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        let LogIdentity {
            fingerprint,
            topics,
            n_partitions,
        } = &self.identity;
        to.text(fingerprint);
        to.number(u64::from(*n_partitions));
        to.number(topics.len() as u64);
        // There is one reach per topic, so one count serves both.
        for (topic, reach) in topics.iter().zip(&self.reaches) {
            to.text(&topic.name);
            to.bytes(&topic.id.to_le_bytes());
            reach.encode(to);
        }
        to.time(self.begin_ms);
        to.time(self.frontier_ms);
        to.byte(u8::from(self.was_caught_up));
        to.byte(u8::from(self.is_exact));
        to.number(self.columns.len() as u64);
        for column in &self.columns {
            to.text(&column.id);
            to.signed(column.since_ms.into());
        }
    }

    pub(super) fn decode(from: &mut Reader) -> Result<Header, Malformed> {
        let fingerprint = from.text()?.to_owned();
        let n_partitions = u32::try_from(from.number()?).map_err(|_| Malformed::Number)?;
        let (mut topics, mut reaches) = (Vec::new(), Vec::new());
        for _ in 0..from.length()? {
            topics.push(CountedTopic {
                name: from.text()?.to_owned(),
                id: u128::from_le_bytes(from.array()?),
            });
            reaches.push(TopicProgress::decode(from)?);
        }
        Ok(Header {
            identity: LogIdentity {
                fingerprint,
                topics,
                n_partitions,
            },
            reaches,
            begin_ms: from.time()?,
            frontier_ms: from.time()?,
            was_caught_up: from.flag()?,
            is_exact: from.flag()?,
            columns: decode_columns(from)?,
        })
    }
}

impl TopicProgress {
    fn encode(&self, to: &mut Writer) {
        to.signed(self.read_position.into());
        to.signed(self.resume_offset.into());
        to.time(self.resume_max_ms);
        to.number(self.digest.n_events);
        to.bytes(&self.digest.sum.to_le_bytes());
    }

    fn decode(from: &mut Reader) -> Result<TopicProgress, Malformed> {
        Ok(TopicProgress {
            read_position: from.ms()?,
            resume_offset: from.ms()?,
            resume_max_ms: from.time()?,
            digest: ReplayDigest {
                n_events: from.number()?,
                sum: u64::from_le_bytes(from.array()?),
            },
        })
    }
}

fn decode_columns(from: &mut Reader) -> Result<Vec<CountedColumn>, Malformed> {
    let mut columns = Vec::new();
    for _ in 0..from.length()? {
        columns.push(CountedColumn {
            id: from.text()?.to_owned(),
            since_ms: from.ms()?,
        });
    }
    Ok(columns)
}

/// Bytes of a role that fit into a record, and their hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolePart {
    pub bytes: SharedBytes,
    pub hash: u128,
}

impl RolePart {
    fn new(bytes: SharedBytes) -> RolePart {
        RolePart {
            hash: xxh3_128(&bytes),
            bytes,
        }
    }
}

/// State to be sealed: a pair at a batch border.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub header: Header,
    /// Parts of each role, in the order of its bytes; empty if it has no bytes.
    pub parts: BTreeMap<Role, Vec<RolePart>>,
    /// Hash of everything: equal states have equal contents, no matter which process writes them.
    pub content: u128,
}

impl State {
    /// Creates a state. Roles may have any size: they are cut into parts of [`MAX_PART_BYTES`]. If a role only grows at its
    /// end, all its parts but the last stay the same.
    pub fn new(header: Header, roles: BTreeMap<Role, SharedBytes>) -> State {
        State::cut(header, roles, MAX_PART_BYTES)
    }

    /// Creates a state with parts of another size, for tests.
    #[doc(hidden)]
    pub fn cut(header: Header, roles: BTreeMap<Role, SharedBytes>, max_part_bytes: usize) -> State {
        let parts: BTreeMap<Role, Vec<RolePart>> = roles
            .into_iter()
            .map(|(role, bytes)| (role, parts(bytes, max_part_bytes)))
            .collect();
        // Blob ids are not part of the hash: equal states have equal contents, wherever their bytes are.
        let lines = parts.iter().map(|(role, parts)| {
            let parts = parts.iter();
            (role, parts.map(|part| (part.bytes.len() as u64, part.hash)))
        });
        let content = content_of(&header, lines);
        State {
            header,
            parts,
            content,
        }
    }
}

fn parts(bytes: SharedBytes, max_part_bytes: usize) -> Vec<RolePart> {
    match bytes.len() {
        0 => Vec::new(),
        // A role that fits into one part shares its bytes instead of copying them.
        n_bytes if n_bytes <= max_part_bytes => vec![RolePart::new(bytes)],
        _ => {
            // Parts start at fixed offsets, so bytes added at the end of a role leave its complete parts unchanged.
            let parts = bytes.chunks(max_part_bytes);
            parts.map(|part| RolePart::new(part.into())).collect()
        }
    }
}

/// Hash of a header and of the lines of its table: role, number of parts, length and hash of each.
pub(super) fn content_of<'a, P>(header: &Header, lines: impl Iterator<Item = (&'a Role, P)>) -> u128
where
    P: ExactSizeIterator<Item = (u64, u128)>,
{
    let mut to = Writer::default();
    header.encode(&mut to);
    for (role, parts) in lines {
        // Texts and counts are written with their lengths, so moving bytes between roles changes the hash.
        to.text(role);
        to.number(parts.len() as u64);
        for (length, hash) in parts {
            to.number(length);
            to.bytes(&hash.to_le_bytes());
        }
    }
    xxh3_128(to.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fixture::header;

    fn lengths(bytes: &[u8], max_part_bytes: usize) -> Vec<usize> {
        let roles = BTreeMap::from([("totals".into(), bytes.into())]);
        let state = State::cut(header(0), roles, max_part_bytes);
        let parts = &state.parts["totals"];
        let joined: Vec<u8> = parts.iter().flat_map(|part| part.bytes.to_vec()).collect();
        assert_eq!(joined, bytes);
        parts.iter().map(|part| part.bytes.len()).collect()
    }

    #[test]
    fn splits_a_role_into_parts_that_fit() {
        assert!(lengths(b"", 3).is_empty());
        assert_eq!(lengths(b"abc", 3), [3]);
        assert_eq!(lengths(b"abcd", 3), [3, 1]);
        assert_eq!(lengths(b"abcdef", 3), [3, 3]);
        let large = vec![7; 2 * MAX_PART_BYTES + 1];
        assert_eq!(
            lengths(&large, MAX_PART_BYTES),
            [MAX_PART_BYTES, MAX_PART_BYTES, 1]
        );
    }

    #[test]
    fn moving_bytes_between_roles_changes_the_content_hash() {
        let content = |roles: [(&str, &[u8]); 2]| {
            let roles = roles.map(|(role, bytes)| (role.into(), bytes.into()));
            State::cut(header(0), roles.into(), 1).content
        };
        assert_ne!(
            content([("a", b"xy"), ("b", b"z")]),
            content([("a", b"x"), ("b", b"yz")])
        );
        assert_ne!(
            content([("a", b""), ("b", b"x")]),
            content([("a", b"x"), ("b", b"")])
        );
    }
}
