//! Contiguous storage of drafts, without an allocation per draft.

use std::ops::Range;

use abgauge_core::engine::event::Side;

use super::draft::RecordKind;
use super::draft::{Content, Origin, RecordDraft};

/// Drafts in insertion order.
#[derive(Debug, Default)]
pub struct Block {
    entries: Vec<DraftEntry>,
    /// Items of all lists, concatenated.
    items: Vec<u16>,
    /// Text of all drafts that have text, concatenated.
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct DraftEntry {
    arrival_ms: i64,
    side: Side,
    kind: RecordKind,
    origin: Origin,
    content: PackedContent,
}

/// [`Content`] whose items or text start at `start` in the block. A block covers a short time, so 32 bits are enough.
#[derive(Debug, Clone, Copy)]
enum PackedContent {
    List { stamp_ms: i64, start: u32, len: u16 },
    Click { stamp_ms: i64, item: u16 },
    Text { start: u32, len: u32 },
}

impl Block {
    pub fn put(&mut self, draft: RecordDraft) {
        let content = match draft.content {
            Content::List { stamp_ms, items } => {
                let start = self.items.len() as u32;
                self.items.extend_from_slice(items);
                PackedContent::List {
                    stamp_ms,
                    start,
                    len: items.len() as u16,
                }
            }
            Content::Click { stamp_ms, item } => PackedContent::Click { stamp_ms, item },
            Content::Text(text) => {
                let start = self.text.len() as u32;
                self.text.extend_from_slice(text);
                PackedContent::Text {
                    start,
                    len: text.len() as u32,
                }
            }
        };
        self.entries.push(DraftEntry {
            arrival_ms: draft.arrival_ms,
            side: draft.side,
            kind: draft.kind,
            origin: draft.origin,
            content,
        });
    }

    /// Returns the draft with this number, counted from 0 in insertion order.
    ///
    /// # Panics
    /// There is no such draft.
    pub fn draft(&self, number: usize) -> RecordDraft<'_> {
        self.read(&self.entries[number])
    }

    /// Returns only the time of a [`draft`](Block::draft).
    pub fn arrival_ms(&self, number: usize) -> i64 {
        self.entries[number].arrival_ms
    }

    pub fn arrivals_ms(&self) -> impl Iterator<Item = i64> {
        self.entries.iter().map(|entry| entry.arrival_ms)
    }

    pub fn drafts(&self) -> impl Iterator<Item = RecordDraft<'_>> {
        self.entries.iter().map(|entry| self.read(entry))
    }

    fn read(&self, entry: &DraftEntry) -> RecordDraft<'_> {
        let part = |start: u32, len: u32| -> Range<usize> { start as usize..(start + len) as usize };
        let content = match entry.content {
            PackedContent::List { stamp_ms, start, len } => Content::List {
                stamp_ms,
                items: &self.items[part(start, len.into())],
            },
            PackedContent::Click { stamp_ms, item } => Content::Click { stamp_ms, item },
            PackedContent::Text { start, len } => Content::Text(&self.text[part(start, len)]),
        };
        RecordDraft {
            arrival_ms: entry.arrival_ms,
            side: entry.side,
            kind: entry.kind,
            origin: entry.origin,
            content,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reserves as much room as another block uses.
    pub fn grow_like(&mut self, other: &Block) {
        grow(&mut self.entries, other.entries.len());
        grow(&mut self.items, other.items.len());
    }

    /// Removes all drafts but keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.items.clear();
        self.text.clear();
    }
}

fn grow<T>(list: &mut Vec<T>, len: usize) {
    list.reserve(len.saturating_sub(list.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most drafts wait for minutes, and all traffic of that time waits with them.
    #[test]
    fn a_draft_takes_56_bytes_plus_its_items() {
        assert_eq!(size_of::<DraftEntry>(), 56);
    }
}
