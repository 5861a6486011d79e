//! Facts that decide on replayed lists but are not replayed themselves: originals that are settled, and how far silence had
//! moved the frontier.
//!
//! ```text
//! offset   3           7           9             20
//! list     A at 4 s    B at 6 s    A at 8 s      resume at B: without this, the copy of A would count
//!          original                copy
//! ```
//! A log is replayed from its first list at or after a border. A copy behind the border may have its original before it.

use std::collections::BTreeSet;

use super::open_events::{Digest, ResumePoint};

/// A copy and its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copied {
    /// Start of the copy's slot, Unix ms.
    pub slot_ms: i64,
    pub id: u128,
    /// Time of the original, Unix ms.
    pub original_ms: i64,
}

impl Copied {
    /// Returns true if reading lists from `from_ms` on brings back the copy without its original.
    pub fn is_across(&self, from_ms: i64) -> bool {
        (self.original_ms..self.slot_ms).contains(&(from_ms - 1))
    }
}

/// Offset from which lists before a time came after their slot was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateRefusal {
    pub offset: i64,
    /// start(F), Unix ms.
    pub until_ms: i64,
}

/// The part of a checkpoint about copies.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CopiesCheckpoint {
    /// Ascending.
    pub copied: Vec<Copied>,
    /// Offsets and times ascend.
    pub refusals: Vec<LateRefusal>,
    /// `None` if copies need no earlier records than open lists do.
    pub reach: Option<CopiesReach>,
}

/// Resume point for copies, further back than the one for open lists: the first list that may still get a copy. Used if the log
/// still reaches back that far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiesReach {
    pub resume: ResumePoint,
    /// Digest of the accepted events from `resume` to the position that are open or may still be copied.
    pub open: Digest,
}

/// Copies and refusals, as far as lists may be replayed.
#[derive(Debug, Default)]
pub struct Copies {
    /// Time before a border within which rows may belong to gathered lists behind it.
    gather_ms: i64,
    copied: BTreeSet<Copied>,
    refusals: Vec<LateRefusal>,
}

impl Copies {
    /// Bytes of a copy, including the empty space in nodes of the tree.
    pub const COST: u64 = 80;

    pub fn new(gather_ms: i64) -> Copies {
        Copies {
            gather_ms,
            ..Copies::default()
        }
    }

    pub fn resume(from: &CopiesCheckpoint, gather_ms: i64) -> Copies {
        Copies {
            gather_ms,
            copied: from.copied.iter().copied().collect(),
            refusals: from.refusals.clone(),
        }
    }

    /// Returns the entries needed to replay lists from either border (Unix ms). `None` means that all lists are replayed.
    pub fn checkpoint(&self, from_ms: Option<[i64; 2]>) -> CopiesCheckpoint {
        let Some(from_ms) = from_ms else {
            return CopiesCheckpoint::default();
        };
        let copied = self.copied.iter().copied();
        let refusals = self.refusals.iter().copied();
        CopiesCheckpoint {
            copied: copied
                .filter(|copied| from_ms.iter().any(|from_ms| copied.is_across(*from_ms)))
                .collect(),
            refusals: refusals
                .filter(|refusal| self.is_needed(refusal, from_ms[0]))
                .collect(),
            reach: None,
        }
    }

    pub fn bytes(&self) -> u64 {
        Copies::COST * self.copied.len() as u64
    }

    pub fn contains(&self, copied: &Copied) -> bool {
        self.copied.contains(copied)
    }

    pub fn insert(&mut self, copied: Copied) {
        self.copied.insert(copied);
    }

    /// Notes that a list came after its slot was settled, with start(F) at this time.
    pub fn refuse(&mut self, offset: i64, until_ms: i64) {
        let last = self.refusals.last();
        // The frontier never falls, so a new entry is needed only if it has moved since the last one.
        if last.is_none_or(|last| last.until_ms < until_ms) {
            self.refusals.push(LateRefusal { offset, until_ms });
        }
    }

    /// Returns true if a list arrived after its slot had settled.
    pub fn refused(&self, offset: i64, ts_ms: i64) -> bool {
        let mut refusals = self.refusals.iter();
        refusals.any(|refusal| refusal.offset <= offset && ts_ms < refusal.until_ms)
    }

    /// Forgets what no longer matters once lists are replayed from this border, Unix ms, or from a later one.
    pub fn forget_before(&mut self, from_ms: i64) {
        while self.copied.first().is_some_and(|copied| copied.slot_ms < from_ms) {
            self.copied.pop_first();
        }
        // Times ascend: if the first entry is needed, all of them are.
        let first = self.refusals.first();
        if first.is_some_and(|first| !self.is_needed(first, from_ms)) {
            let mut refusals = std::mem::take(&mut self.refusals);
            refusals.retain(|refusal| self.is_needed(refusal, from_ms));
            self.refusals = refusals;
        }
    }

    fn is_needed(&self, refusal: &LateRefusal, from_ms: i64) -> bool {
        refusal.until_ms > from_ms - self.gather_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_keep_copies_whose_original_is_across_the_border() {
        let copied = |slot_ms, original_ms| Copied {
            slot_ms,
            id: 7,
            original_ms,
        };
        let mut copies = Copies::default();
        [copied(10, 4), copied(20, 4), copied(20, 12)]
            .into_iter()
            .for_each(|copied| copies.insert(copied));
        assert_eq!(copies.checkpoint(None), CopiesCheckpoint::default());
        let at = |copies: &Copies, from_ms| copies.checkpoint(Some([from_ms; 2])).copied;
        assert_eq!(at(&copies, 0), []);
        assert_eq!(at(&copies, 5), [copied(10, 4), copied(20, 4)]);
        assert_eq!(at(&copies, 10), [copied(10, 4), copied(20, 4)]);
        assert_eq!(at(&copies, 15), [copied(20, 4), copied(20, 12)]);
        assert_eq!(at(&copies, 20), [copied(20, 4), copied(20, 12)]);
        assert_eq!(at(&copies, 25), []);
        copies.forget_before(20);
        assert_eq!(copies.bytes(), 2 * Copies::COST);
    }

    #[test]
    fn refusals_apply_from_their_offset_until_the_frontier_passes() {
        let mut copies = Copies::default();
        copies.refuse(5, 100);
        copies.refuse(6, 100);
        copies.refuse(9, 200);
        assert!(!copies.refused(4, 99));
        assert!(copies.refused(5, 99) && !copies.refused(5, 100));
        assert!(!copies.refused(8, 150));
        assert!(copies.refused(9, 150) && copies.refused(9, 50));
        copies.forget_before(100);
        let left = LateRefusal {
            offset: 9,
            until_ms: 200,
        };
        assert_eq!(copies.checkpoint(Some([100; 2])).refusals, [left]);
    }
}
