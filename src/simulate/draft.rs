//! Records before their text is written: most wait long for their arrival, and as drafts they take a quarter of the memory.

use super::design::Combination;
use super::record::RecordKind;
use crate::engine::event::Side;

/// What a record will be made of.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// When it reaches the topic (epoch ms).
    pub arrival_ms: i64,
    pub side: Side,
    pub kind: RecordKind,
    pub origin: Origin,
    pub content: Content<'a>,
}

/// The request that a record belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// Counted from 1.
    pub request: u64,
    pub user: u32,
    /// The arms.
    pub combination: Combination,
    /// Murmur2 of the key, which decides the partition.
    pub key_hash: i32,
}

/// What the payload says. Its stamp is by the clock that stamps all of the request (epoch ms).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    List {
        stamp_ms: i64,
        items: &'a [u16],
    },
    Click {
        stamp_ms: i64,
        item: u16,
    },
    /// This, as it is.
    Text(&'a [u8]),
}
