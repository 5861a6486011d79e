//! What a pair offers to be sealed: a header that is read here, and roles whose bytes are not.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::bytes::{Malformed, Reader, Writer};

/// Bytes that many may hold.
pub type Bytes = Arc<[u8]>;

/// Names a part of the state, such as `totals` or `cell 0 29393280`.
pub type Role = Arc<str>;

/// The log that is counted: what it is called, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    pub id: u128,
}

/// What state is of. State of another one is not gone on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What decides where an event counts, in words.
    pub fingerprint: String,
    /// Of lists, then of clicks; or one for both.
    pub topics: Vec<Topic>,
    pub n_partitions: u32,
}

/// Stands for the accepted events that are read again: their number, and the sum of their hashes, which wraps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digest {
    pub n_events: u64,
    pub sum: u64,
}

/// How far a topic partition was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// What lies before it was read.
    pub read_position: i64,
    /// Where open lists are read again from.
    pub resume_offset: i64,
    /// M as of the resume offset, epoch ms.
    pub resume_max_ms: Option<i64>,
    /// Of the accepted events that are open, up to the read position.
    pub digest: Digest,
}

/// Something that has been counted since a time of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub id: String,
    /// Epoch ms.
    pub since_ms: i64,
}

/// All of a state but the bytes of its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub identity: Identity,
    /// Where counting began, epoch ms; none before the first record.
    pub begin_ms: Option<i64>,
    /// start(F), epoch ms; none before the first record.
    pub frontier_ms: Option<i64>,
    /// By topic of the identity.
    pub reaches: Vec<Reach>,
    /// The pair has reached the ends of its logs once. Before that it is in no view.
    pub was_caught_up: bool,
    /// Nothing was shed.
    pub is_exact: bool,
    pub columns: Vec<Column>,
}

impl Header {
    /// Whether it was read at least as far as the other, in each topic.
    pub fn reaches(&self, other: &Header) -> bool {
        let mut pairs = self.reaches.iter().zip(&other.reaches);
        self.reaches.len() == other.reaches.len()
            && pairs.all(|(here, there)| here.read_position >= there.read_position)
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        let Identity {
            fingerprint,
            topics,
            n_partitions,
        } = &self.identity;
        to.text(fingerprint);
        to.number(u64::from(*n_partitions));
        to.number(topics.len() as u64);
        for (topic, reach) in topics.iter().zip(&self.reaches) {
            to.text(&topic.name);
            to.bytes(&topic.id.to_le_bytes());
            reach.encode(to);
        }
        encode_time(self.begin_ms, to);
        encode_time(self.frontier_ms, to);
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
            topics.push(Topic {
                name: from.text()?.to_owned(),
                id: u128::from_le_bytes(from.array()?),
            });
            reaches.push(Reach::decode(from)?);
        }
        Ok(Header {
            identity: Identity {
                fingerprint,
                topics,
                n_partitions,
            },
            reaches,
            begin_ms: decode_time(from)?,
            frontier_ms: decode_time(from)?,
            was_caught_up: from.flag()?,
            is_exact: from.flag()?,
            columns: decode_columns(from)?,
        })
    }
}

impl Reach {
    fn encode(&self, to: &mut Writer) {
        to.signed(self.read_position.into());
        to.signed(self.resume_offset.into());
        encode_time(self.resume_max_ms, to);
        to.number(self.digest.n_events);
        to.bytes(&self.digest.sum.to_le_bytes());
    }

    fn decode(from: &mut Reader) -> Result<Reach, Malformed> {
        Ok(Reach {
            read_position: decode_i64(from)?,
            resume_offset: decode_i64(from)?,
            resume_max_ms: decode_time(from)?,
            digest: Digest {
                n_events: from.number()?,
                sum: u64::from_le_bytes(from.array()?),
            },
        })
    }
}

fn encode_time(ms: Option<i64>, to: &mut Writer) {
    to.byte(u8::from(ms.is_some()));
    ms.iter().for_each(|ms| to.signed((*ms).into()));
}

fn decode_time(from: &mut Reader) -> Result<Option<i64>, Malformed> {
    from.flag()?.then(|| decode_i64(from)).transpose()
}

fn decode_i64(from: &mut Reader) -> Result<i64, Malformed> {
    i64::try_from(from.signed()?).map_err(|_| Malformed::Number)
}

fn decode_columns(from: &mut Reader) -> Result<Vec<Column>, Malformed> {
    let mut columns = Vec::new();
    for _ in 0..from.length()? {
        columns.push(Column {
            id: from.text()?.to_owned(),
            since_ms: decode_i64(from)?,
        });
    }
    Ok(columns)
}

/// The bytes of a role, and what is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub bytes: Bytes,
    pub hash: u128,
}

/// What is sealed: the state of a pair at a border of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub header: Header,
    pub parts: BTreeMap<Role, Part>,
    /// Stands for all of it: equal states have equal contents, whoever writes them.
    pub content: u128,
}

impl State {
    /// Each role must fit into a record: what is larger is more than one role.
    pub fn new(header: Header, roles: BTreeMap<Role, Bytes>) -> State {
        let parts: BTreeMap<Role, Part> = roles
            .into_iter()
            .map(|(role, bytes)| {
                let hash = xxh3_128(&bytes);
                (role, Part { bytes, hash })
            })
            .collect();
        let lines = parts.iter();
        let lines = lines.map(|(role, part)| (role, part.bytes.len() as u64, part.hash));
        let content = content_of(&header, lines);
        State {
            header,
            parts,
            content,
        }
    }
}

/// Hash of a header and of the lines of its table: role, length, hash.
pub(super) fn content_of<'a>(header: &Header, lines: impl Iterator<Item = (&'a Role, u64, u128)>) -> u128 {
    let mut to = Writer::default();
    header.encode(&mut to);
    for (role, length, hash) in lines {
        to.text(role);
        to.number(length);
        to.bytes(&hash.to_le_bytes());
    }
    xxh3_128(to.as_bytes())
}
