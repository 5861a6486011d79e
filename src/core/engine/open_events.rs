//! Accepted events that are not settled: the point from which a log must be replayed to get all of them back, and the digest
//! that shows whether they came back.
//!
//! ```text
//! offset      7      9      12     13     20
//! slot        3 *    3      5 *    4      6 *       * noted: no earlier one is of its slot or a later one
//! ```
//! While F ≤ 3 the log is replayed from 7, with F at 4 or 5 from 12, with F at 6 from 20. An event that is not noted has an
//! earlier one before it that is settled no sooner, so it is never the first.

use std::collections::{BTreeMap, VecDeque};

use super::event::{Click, Served};
use super::gather::RowItem;

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// Offset of the next record.
    pub offset: i64,
    /// M of the topic partition before that record.
    pub newest_ms: Option<i64>,
}

/// Number of events, and a hash of them that does not depend on their order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    pub n: u64,
    /// The wrapping sum of their hashes.
    pub hash: u64,
}

impl Digest {
    #[inline(always)]
    pub fn add(&mut self, hash: u64) {
        self.merge(Digest { n: 1, hash });
    }

    #[inline(always)]
    pub fn merge(&mut self, other: Digest) {
        self.n += other.n;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Hashes a list's id, time and length. The hash is the same in all processes with the same `hash_seed`.
#[inline(always)]
pub fn hash_of_list(list: &Served) -> u64 {
    let n_items = list.items.end - list.items.start;
    hash(list.id, list.ts_ms, u64::from(n_items) << 44)
}

/// Hashes a row of a gathered list, including its item.
pub fn hash_of_row(row: &Served, (item, position): RowItem) -> u64 {
    let item = item.map_or(1, |item| item ^ (position as u64).rotate_left(40));
    hash(row.id, row.ts_ms, item)
}

/// Hashes a click's id, time and item.
#[inline(always)]
pub fn hash_of_click(click: &Click) -> u64 {
    hash(click.id, click.ts_ms, click.item)
}

/// The id is a hash: its halves need no mixing.
#[inline(always)]
fn hash(id: u128, ts_ms: i64, more: u64) -> u64 {
    let (low, high) = (id as u64, (id >> 64) as u64);
    (low ^ ts_ms as u64 ^ more).wrapping_mul(high | 1)
}

/// Accepted events of one kind that are not settled.
#[derive(Debug)]
pub struct OpenEvents {
    slot_ms: i64,
    /// Start of the slot of the last event, Unix ms: most events are of the same slot as the one before.
    start_ms: i64,
    /// Digest of the last events in a row that were of this slot.
    run: Digest,
    /// Digests by start of the slot, Unix ms, without the run.
    by_slot: BTreeMap<i64, Digest>,
    /// Events that may be the first to be replayed, with the end of the slot of each, Unix ms. Offsets and ends ascend.
    noted: VecDeque<(i64, ResumePoint)>,
    /// The largest of these ends, even after it was dropped.
    noted_until_ms: i64,
}

impl OpenEvents {
    pub fn new(slot_ms: i64) -> OpenEvents {
        OpenEvents {
            slot_ms,
            start_ms: i64::MIN,
            run: Digest::default(),
            by_slot: BTreeMap::new(),
            noted: VecDeque::new(),
            noted_until_ms: i64::MIN,
        }
    }

    /// Notes an accepted event, whose lists can have no later time than `reach_ms` (Unix ms).
    #[inline(always)]
    pub fn see(&mut self, reach_ms: i64, hash: u64, at: ResumePoint) {
        // One unsigned comparison covers both ends of the slot: times before it wrap around to large numbers.
        if reach_ms.wrapping_sub(self.start_ms) as u64 >= self.slot_ms as u64 {
            self.change_slot(reach_ms, at);
        }
        self.run.add(hash);
    }

    /// Notes a refused click, so that it is read again as long as a list that it may belong to is not settled. It is not in the
    /// digest, which covers only accepted events.
    pub fn note(&mut self, reach_ms: i64, at: ResumePoint) {
        if reach_ms >= self.noted_until_ms {
            self.noted_until_ms = reach_ms.div_euclid(self.slot_ms) * self.slot_ms + self.slot_ms;
            self.noted.push_back((self.noted_until_ms, at));
        }
    }

    /// Changes the slot. Only an event of another slot than the last one may have to be noted.
    #[inline(never)]
    fn change_slot(&mut self, reach_ms: i64, at: ResumePoint) {
        let run = std::mem::take(&mut self.run);
        if run.n > 0 {
            self.by_slot.entry(self.start_ms).or_default().merge(run);
        }
        self.start_ms = reach_ms.div_euclid(self.slot_ms) * self.slot_ms;
        // An event before this border comes after a noted one that settles no sooner, so a replay never starts with it.
        self.note(reach_ms, at);
    }

    /// Forgets events of slots before this border, Unix ms.
    pub fn drop_before(&mut self, settled_until_ms: i64) {
        while self
            .noted
            .front()
            .is_some_and(|(end_ms, _)| *end_ms <= settled_until_ms)
        {
            self.noted.pop_front();
        }
        while let Some(first) = self.by_slot.first_entry()
            && *first.key() < settled_until_ms
        {
            first.remove();
        }
    }

    /// Returns the first event in a slot from this border on, Unix ms; without a border, the first of all.
    pub fn first(&self, settled_until_ms: Option<i64>) -> Option<ResumePoint> {
        let mut noted = self.noted.iter();
        let first = noted.find(|(end_ms, _)| Some(*end_ms) > settled_until_ms);
        first.map(|(_, at)| *at)
    }

    /// Returns the digest of all events in slots from this border on, Unix ms; of all events without a border.
    pub fn digest(&self, settled_until_ms: Option<i64>) -> Digest {
        let from_ms = settled_until_ms.unwrap_or(i64::MIN);
        let mut digest = Digest::default();
        let slots = self.by_slot.range(from_ms..);
        slots.for_each(|(_, slot)| digest.merge(*slot));
        if self.start_ms >= from_ms {
            digest.merge(self.run);
        }
        digest
    }
}
