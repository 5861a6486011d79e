//! Open lists and kept clicks of a pair of partitions, by request id.
//!
//! ```text
//! index   ──▶ tag of the id ─▶ handle: page and place
//! chunks  ──▶ [ id, 4 words │ kind, … │ … ]
//! ```
//! Both kinds share one index, so a new record costs one access to uncached memory. For each id the index holds at most one
//! list and one click, which lead to the others.

use std::hash::{BuildHasher, RandomState};

use super::chunks::{ChunkHandle, Chunks};
use super::index::Index;

pub use super::index::Tag;

/// Words of an id.
pub const ID: usize = 4;
/// Word whose first bits hold the kind.
pub const KIND: usize = 4;

/// Role of a record in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexedKind {
    /// The list of its id.
    List = 0,
    /// Another list of an id, which the index does not hold.
    FurtherList = 1,
    /// The first click of its id.
    Click = 2,
    /// A further click of an id.
    FurtherClick = 3,
}

impl IndexedKind {
    /// Number of bits below the kind.
    pub const SHIFT: u32 = 30;

    pub fn to_bits(self) -> u32 {
        (self as u32) << IndexedKind::SHIFT
    }
}

/// An id as it is looked up, and as it is stored in records.
#[derive(Debug, Clone, Copy)]
pub struct LookupKey {
    tag: Tag,
    pub id: [u32; ID],
}

/// Entries of the index for an id.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Handles {
    pub list: ChunkHandle,
    /// The first click that was kept.
    pub click: ChunkHandle,
}

#[derive(Debug)]
pub struct Store {
    /// Added to ids, so that an attacker can neither send items that look like an id in a record, nor ids of one line of the
    /// index.
    secret: u128,
    pub chunks: Chunks,
    index: Index,
}

impl Store {
    pub fn new() -> Store {
        let random = RandomState::new();
        let [low, high] = [0, 1].map(|n| u128::from(random.hash_one(n)));
        Store {
            secret: high << 64 | low,
            chunks: Chunks::new(),
            index: Index::new(),
        }
    }

    /// Returns the tag by which an id is looked up.
    pub fn tag(&self, id: u128) -> Tag {
        self.index.tag(self.stored(id))
    }

    /// An id, whose tag is known.
    pub fn key(&self, id: u128, tag: Tag) -> LookupKey {
        let stored = self.stored(id);
        LookupKey {
            tag,
            id: [0, 32, 64, 96].map(|shift| (stored >> shift) as u32),
        }
    }

    fn stored(&self, id: u128) -> u128 {
        id.wrapping_add(self.secret)
    }

    /// The key of a record.
    pub fn key_of(&self, record: ChunkHandle) -> LookupKey {
        let id: [u32; ID] = *self
            .chunks
            .words(record)
            .first_chunk()
            .expect("a record has an id");
        let stored = id.iter().rev().fold(0, |id, word| id << 32 | u128::from(*word));
        LookupKey {
            tag: self.index.tag(stored),
            id,
        }
    }

    /// Prefetches the line that [`Self::find`] reads first.
    pub fn prefetch_line(&self, tag: Tag) {
        self.index.prefetch_line(tag);
    }

    /// Prefetches the records that [`Self::find`] compares, once the line is cached.
    pub fn prefetch_records(&self, tag: Tag) {
        self.index.find(tag, |handle| self.chunks.prefetch_record(handle));
    }

    pub fn find(&self, key: &LookupKey) -> Handles {
        let mut found = Handles::default();
        self.index.find(key.tag, |handle| {
            // An old handle may point anywhere: the record there decides.
            let Some([id @ .., kind]) = self.chunks.get(handle).and_then(<[u32]>::first_chunk::<5>) else {
                return;
            };
            if *id == key.id {
                match kind >> IndexedKind::SHIFT {
                    0 => found.list = handle,
                    2 => found.click = handle,
                    _ => {}
                }
            }
        });
        found
    }

    /// Adds a record to the index: the first of its id and kind.
    pub fn index(&mut self, key: &LookupKey, record: ChunkHandle) {
        let chunks = &self.chunks;
        self.index
            .insert(key.tag, record, &|other| chunks.may_live(other));
    }

    /// Replaces a record in the index by another of its id.
    pub fn replace(&mut self, old: ChunkHandle, new: ChunkHandle) {
        let key = self.key_of(new);
        if !self.index.replace(key.tag, old, new) {
            self.index(&key, new);
        }
    }

    /// Frees some memory after a spike, given that `n` records are indexed. Takes bounded time.
    pub fn tidy(&mut self, n: u64) {
        self.chunks.tidy();
        let chunks = &self.chunks;
        self.index.tidy(n as usize, &|record| chunks.may_live(record));
    }
}
