//! Records that lie in a row: one costs no allocation.

use super::record::{RecordKind, RecordRef};
use crate::engine::event::Side;

/// Records in the order in which they were put in.
#[derive(Debug, Default)]
pub struct Block {
    /// Each record's key and payload, one after the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    arrival_ms: i64,
    side: Side,
    kind: RecordKind,
    /// Where in the block's bytes the key begins; the payload follows it.
    key: usize,
    payload: usize,
    end: usize,
}

impl Block {
    pub fn put(&mut self, record: RecordRef) {
        let key = self.bytes.len();
        self.bytes.extend_from_slice(record.key);
        let payload = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.entries.push(Entry {
            arrival_ms: record.arrival_ms,
            side: record.side,
            kind: record.kind,
            key,
            payload,
            end: self.bytes.len(),
        });
    }

    /// The record that was put in as this one, from 0.
    ///
    /// # Panics
    /// There are not as many.
    pub fn record(&self, number: usize) -> RecordRef<'_> {
        self.read(&self.entries[number])
    }

    /// Like [`record`](Block::record), its time alone.
    pub fn arrival_ms(&self, number: usize) -> i64 {
        self.entries[number].arrival_ms
    }

    pub fn arrivals_ms(&self) -> impl Iterator<Item = i64> {
        self.entries.iter().map(|entry| entry.arrival_ms)
    }

    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        self.entries.iter().map(|entry| self.read(entry))
    }

    fn read(&self, entry: &Entry) -> RecordRef<'_> {
        RecordRef {
            arrival_ms: entry.arrival_ms,
            side: entry.side,
            kind: entry.kind,
            key: &self.bytes[entry.key..entry.payload],
            payload: &self.bytes[entry.payload..entry.end],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Makes room for as many bytes and records as another block holds, where it has not got it.
    pub fn grow_like(&mut self, other: &Block) {
        self.bytes
            .reserve(other.bytes.len().saturating_sub(self.bytes.len()));
        self.entries
            .reserve(other.entries.len().saturating_sub(self.entries.len()));
    }

    /// Forgets all records; their room serves the next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}
