//! Closed slots: each of their lists is visited once, a few at a time, so that no batch takes long.
//!
//! ```text
//! slots, oldest first   [ visited │ next ▶ … ] [ list │ list │ … ] …
//! ```
//! The settled view is the sum of these visits.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::HashMap;

use super::arms::ArmId;
use super::chunks::{ChunkHandle, ChunkId, Chunks};
use super::open_list::OpenList;
use super::refused::RefusedInArm;
use crate::metrics::ListOutcome;
use crate::metrics::catalogue::Catalogue;

/// A list whose outcome is final.
#[derive(Debug, Clone, Copy)]
pub struct SettledList<'a> {
    /// Start of its slot, Unix ms.
    pub start_ms: i64,
    /// Time of the list, Unix ms.
    pub ts_ms: i64,
    /// Half of the keyed hash of its user, if it has one.
    pub user: Option<NonZeroU32>,
    /// Distinct arms.
    pub arms: &'a [ArmId],
    /// Arms among `arms` in which it does not count for users, because its user has reached the maximum number of lists. Only
    /// the ledger fills this in.
    pub capped: &'a [ArmId],
    /// Tags of its items in rank order, copies included: the lower half of each hash. The same item has the same tag in every
    /// list, pair and process with the same `hash_seed`. Among 10,000 distinct items two share a tag in 1% of cases.
    pub tags: &'a [u32],
    /// Hashes of the distinct clicked items that it does not show, as far as they are remembered. The lower half of each is its
    /// tag.
    pub off_list: &'a [u64],
    /// The clicked ranks: the item at rank r has the tag `tags[r − 1]`.
    pub outcome: ListOutcome<'a>,
    /// Set if its slot uses a catalogue.
    pub items: Option<SettledItems<'a>>,
}

/// Catalogue items that a list has shown.
#[derive(Debug, Clone, Copy)]
pub struct SettledItems<'a> {
    pub catalogue: &'a Catalogue,
    /// Places of its items in rank order.
    pub places: &'a [u32],
}

/// A step of the walk over settled lists.
#[derive(Debug)]
pub enum Settled<'a> {
    List(SettledList<'a>),
    /// A click that was refused, in the slot with this start, Unix ms. These come before the lists of the slot.
    Refused {
        start_ms: i64,
        click: RefusedInArm,
    },
    /// Marks that all lists of the slot between these times (Unix ms) have been visited.
    Slot {
        start_ms: i64,
        end_ms: i64,
    },
}

/// A slot that takes no further list or click.
#[derive(Debug)]
pub struct ClosedSlot {
    /// Start and end of the slot, Unix ms.
    pub start_ms: i64,
    pub end_ms: i64,
    pub catalogue: Option<Arc<Catalogue>>,
    /// Chunks, each with its words; `None` if it still holds them itself.
    pub chunks: VecDeque<(ChunkId, Option<Vec<u32>>)>,
    /// Distinct off-list items clicked, by list.
    pub off_list: HashMap<ChunkHandle, Vec<u64>>,
    /// Refused clicks that are not visited yet.
    pub refused: Vec<RefusedInArm>,
    pub bytes: u64,
}

/// Closed slots that wait for their visit.
#[derive(Debug, Default)]
pub struct Settling {
    slots: VecDeque<ClosedSlot>,
    /// Word of the first chunk at which the next list starts.
    word: usize,
    bytes: u64,
}

impl Settling {
    pub fn push(&mut self, slot: ClosedSlot) {
        self.bytes += slot.bytes;
        self.slots.push_back(slot);
    }

    /// Returns the start of the first slot that is not completely visited, Unix ms.
    pub fn start_ms(&self) -> Option<i64> {
        self.slots.front().map(|slot| slot.start_ms)
    }

    /// Bytes of the waiting slots; the first one counts until its last list is visited.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Visits up to `n` lists, and each slot after its last list; returns the number of lists. Visited slots are dropped.
    pub fn visit(&mut self, chunks: &mut Chunks, n: usize, mut visit: impl FnMut(Settled)) -> usize {
        let mut left = n;
        while let Some(slot) = self.slots.front_mut() {
            if !slot.refused.is_empty() {
                slot.visit_refused(&mut visit);
            }
            while let Some((chunk, taken)) = slot.chunks.front() {
                let words = taken.as_deref().unwrap_or_else(|| chunks.all(*chunk));
                self.word = slot.visit(*chunk, words, self.word, &mut left, &mut visit);
                // The budget is used up inside this chunk: the next call continues at `word`.
                if self.word < words.len() {
                    return n;
                }
                self.word = 0;
                if let Some((_, Some(words))) = slot.chunks.pop_front() {
                    chunks.give_back(words);
                }
            }
            let (start_ms, end_ms) = (slot.start_ms, slot.end_ms);
            self.bytes -= slot.bytes;
            visit(Settled::Slot { start_ms, end_ms });
            self.slots.pop_front();
        }
        n - left
    }
}

impl ClosedSlot {
    /// Visits the refused clicks. Lists without any must not pay for this, so the visitor is not inlined here.
    #[cold]
    fn visit_refused(&mut self, visit: &mut dyn FnMut(Settled)) {
        let start_ms = self.start_ms;
        for click in std::mem::take(&mut self.refused) {
            visit(Settled::Refused { start_ms, click });
        }
    }

    /// Visits the lists of a chunk from a word on, while any are `left`; returns the word of the next one.
    fn visit(
        &self,
        chunk: ChunkId,
        words: &[u32],
        mut word: usize,
        left: &mut usize,
        visit: &mut impl FnMut(Settled),
    ) -> usize {
        let catalogue = self.catalogue.as_deref();
        while word < words.len() && *left > 0 {
            let list = OpenList::at(&words[word..], catalogue.is_some());
            let parts = list.parts();
            let off_list = self.off_list_of(chunk, word);
            visit(Settled::List(SettledList {
                start_ms: self.start_ms,
                ts_ms: self.start_ms + i64::from(list.ts_in_slot_ms()),
                user: list.user(),
                arms: parts.arms,
                capped: &[],
                tags: parts.tags,
                off_list,
                outcome: ListOutcome {
                    n_items: parts.n_items,
                    clicked: parts.mask,
                    n_off_list: off_list.len() as u32,
                },
                items: catalogue.map(|catalogue| SettledItems {
                    catalogue,
                    places: parts.places,
                }),
            }));
            word += parts.n_words;
            *left -= 1;
        }
        word
    }

    fn off_list_of(&self, chunk: ChunkId, word: usize) -> &[u64] {
        // The common case.
        if self.off_list.is_empty() {
            return &[];
        }
        let list = Chunks::handle_of(chunk, word);
        self.off_list.get(&list).map_or(&[], Vec::as_slice)
    }
}
