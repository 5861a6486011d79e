//! Clicks for which a list may still arrive, matched or not: by request id in offset order, and by time.
//!
//! ```text
//! buckets of time ──▶ chunks ──▶ [ click │ click │ … ]
//! store           ──▶ first click of an id ─▶ next ─▶ … ─▶ last, which the first one knows
//! ```
//! A bucket is dropped as a whole. A click that is the only one of its id, as most are, needs no further access.

use std::collections::BTreeMap;

use super::chunks::{ChunkHandle, ChunkId, UNIT};
use super::event::Click;
use super::lists::INDEX_BYTES;
use super::store::{Handles, ID, IndexedKind, KIND, LookupKey, Store};

const TIME: usize = KIND + 1;
const ITEM: usize = TIME + 2;
/// The next click of the id.
const NEXT: usize = ITEM + 2;
/// The click before, or the last one if this is the first.
const BACK: usize = NEXT + 1;
/// Word with the number of clicks kept before it: the order among clicks of different ids.
const ORDER: usize = BACK + 1;
/// Words of a click, in whole units.
const N_WORDS: usize = (ORDER + 1).next_multiple_of(UNIT);
/// Flag next to the kind: it does not wait for a list.
const DECIDED: u32 = 1;
/// Flag: no further list takes it, and it has left the chain of its id.
const LEFT: u32 = 1 << 1;
/// Flag: an earlier process has counted it, whatever its result was.
const COUNTED: u32 = 1 << 2;
/// First bit of the number of lists that have taken the click.
const TAKEN_SHIFT: u32 = 3;
const TAKEN: u32 = (1 << IndexedKind::SHIFT) - (1 << TAKEN_SHIFT);
/// Bit of the number of lists that marks a refused click, which has no result. It makes the number exceed every limit, so lists
/// with only accepted clicks need no further check.
pub const REFUSED: u32 = 1 << (IndexedKind::SHIFT - TAKEN_SHIFT - 1);
/// Time of a refused click that may belong to a list of any time.
pub const ANY_TIME_MS: i64 = i64::MAX;
/// Bits that stay with a click, whatever its kind in the index.
const STAYS: u32 = DECIDED | COUNTED | TAKEN;
/// Words of a bucket's first chunk at the start.
const FIRST_WORDS: usize = 4 * N_WORDS;
const NO_BUCKET: (i64, u32) = (i64::MIN, 0);
/// Bytes of a bucket besides its clicks.
const BUCKET_BYTES: u64 = 128 + 4 * FIRST_WORDS as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptClick {
    /// The item; for a refused click half of the hash of its user, or 0.
    pub item: u64,
    pub ts_ms: i64,
}

/// A click that an earlier process has counted.
#[derive(Debug, Clone, Copy)]
pub struct EarlierClick {
    /// A list that is not replayed may have taken it.
    pub may_be_decided: bool,
}

/// Clicks that wait for a list.
#[derive(Debug, Default)]
struct WaitingClicks {
    n: u64,
    /// Waiting clicks that an earlier process has counted.
    n_counted: u64,
}

impl WaitingClicks {
    /// Notes that a click waits no longer; returns whether its result is to be counted here.
    fn decide(&mut self, words: &mut [u32]) -> bool {
        let (waited, is_counted) = (words[KIND] & DECIDED == 0, words[KIND] & COUNTED != 0);
        words[KIND] |= DECIDED;
        self.n -= u64::from(waited);
        self.n_counted -= u64::from(waited && is_counted);
        waited && !is_counted
    }
}

#[derive(Debug, Default)]
struct Bucket {
    chunks: Vec<ChunkId>,
    bytes: u64,
}

#[derive(Debug)]
pub struct KeptClicks {
    bucket_ms: i64,
    /// Places of buckets by their start, Unix ms.
    by_start: BTreeMap<i64, u32>,
    /// Start and place of the last bucket that a click joined: many clicks join the same one.
    last: (i64, u32),
    places: Vec<Bucket>,
    free: Vec<u32>,
    n_kept: u64,
    waiting: WaitingClicks,
    /// Clicks that were ever kept, modulo 2³².
    n_ever: u32,
    bytes: u64,
}

impl KeptClicks {
    /// Maximum bytes of a kept click.
    pub const COST: u64 = 4 * N_WORDS as u64 + INDEX_BYTES + BUCKET_BYTES;

    /// Clicks that leave together are at most `bucket_ms` apart.
    pub fn new(bucket_ms: i64) -> KeptClicks {
        KeptClicks {
            bucket_ms,
            by_start: BTreeMap::new(),
            last: NO_BUCKET,
            places: Vec::new(),
            free: Vec::new(),
            n_kept: 0,
            waiting: WaitingClicks::default(),
            n_ever: 0,
            bytes: 0,
        }
    }

    pub fn len(&self) -> u64 {
        self.n_kept
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Clicks that wait for a list.
    pub fn n_waiting(&self) -> u64 {
        self.waiting.n
    }

    /// Waiting clicks that this process has accepted: their result is not known.
    pub fn n_own_waiting(&self) -> u64 {
        self.waiting.n - self.waiting.n_counted
    }

    /// Keeps a click that `n_lists` lists have taken. `found` is the store's result for its id. Clicks of one id keep their
    /// order. A click that was `decided` does not wait. One that an earlier process has counted gets no result here.
    pub fn keep(
        &mut self,
        store: &mut Store,
        key: &LookupKey,
        found: Handles,
        click: &Click,
        n_lists: u32,
        earlier: Option<EarlierClick>,
    ) -> ChunkHandle {
        let place = self.bucket_of(click.ts_ms);
        let bucket = &mut self.places[place];
        let mut cost = 4 * N_WORDS as u64 + INDEX_BYTES;
        let chunk = match bucket.chunks.last() {
            Some(chunk) if store.chunks.has_room(*chunk, N_WORDS) => *chunk,
            last => {
                cost += last.map_or(BUCKET_BYTES, |chunk| 4 * store.chunks.n_unused(*chunk) as u64);
                let chunk = store.chunks.open(0, &bucket.chunks, N_WORDS, FIRST_WORDS);
                bucket.chunks.push(chunk);
                chunk
            }
        };
        bucket.bytes += cost;
        self.bytes += cost;
        self.n_kept += 1;
        let waits = n_lists == 0 && earlier.is_none_or(|earlier| !earlier.may_be_decided);
        self.waiting.n += u64::from(waits);
        self.waiting.n_counted += u64::from(waits && earlier.is_some());
        let first = found.click;
        let kind = if first.is_none() {
            IndexedKind::Click
        } else {
            IndexedKind::FurtherClick
        };
        let (kept, words) = store.chunks.append(chunk, N_WORDS);
        words[..ID].copy_from_slice(&key.id);
        let decided = if waits { 0 } else { DECIDED };
        let counted = if earlier.is_some() { COUNTED } else { 0 };
        words[KIND] = kind.to_bits() | taken(n_lists) | decided | counted;
        set(words, TIME, click.ts_ms as u64);
        set(words, ITEM, click.item);
        words[NEXT] = ChunkHandle::NONE.to_word();
        words[ORDER] = self.n_ever;
        self.n_ever = self.n_ever.wrapping_add(1);
        if first.is_none() {
            set_link(store, kept, BACK, kept);
            store.index(key, kept);
            return kept;
        }
        // The back link of the first click leads to the last one, so appending needs no walk.
        let last = link(store, first, BACK);
        set_link(store, kept, BACK, last);
        set_link(store, last, NEXT, kept);
        set_link(store, first, BACK, kept);
        kept
    }

    /// The place of the bucket of a time.
    fn bucket_of(&mut self, ts_ms: i64) -> usize {
        // One comparison for times that are not before it.
        if ts_ms.wrapping_sub(self.last.0) as u64 >= self.bucket_ms as u64 {
            let start_ms = ts_ms.div_euclid(self.bucket_ms) * self.bucket_ms;
            let place = *self.by_start.entry(start_ms).or_insert_with(|| {
                self.free.pop().unwrap_or_else(|| {
                    self.places.push(Bucket::default());
                    (self.places.len() - 1) as u32
                })
            });
            self.last = (start_ms, place);
        }
        self.last.1 as usize
    }

    /// A click, and the next one of its id.
    pub fn get(&self, store: &Store, click: ChunkHandle) -> (KeptClick, ChunkHandle) {
        let words = store.chunks.words(click);
        (read(words), ChunkHandle::of_word(words[NEXT]))
    }

    /// Sorts clicks of any ids by the order in which they were kept.
    pub fn sort(&self, store: &Store, clicks: &mut [(ChunkHandle, bool)]) {
        // Counted from the oldest that may still be kept: the counter wraps, and fewer than 2³² are.
        let order = |click: ChunkHandle| store.chunks.words(click)[ORDER].wrapping_sub(self.n_ever);
        clicks.sort_unstable_by_key(|(click, _)| order(*click));
    }

    /// Returns the number of lists that have taken the click.
    pub fn n_lists(&self, store: &Store, click: ChunkHandle) -> u32 {
        (store.chunks.words(click)[KIND] & TAKEN) >> TAKEN_SHIFT
    }

    /// Returns whether an earlier process has counted the click.
    pub fn is_counted(&self, store: &Store, click: ChunkHandle) -> bool {
        store.chunks.words(click)[KIND] & COUNTED != 0
    }

    /// Notes that one more list takes it; returns whether this decides its result.
    pub fn take(&mut self, store: &mut Store, click: ChunkHandle) -> bool {
        let n_lists = self.n_lists(store, click);
        let words = store.chunks.words_mut(click);
        let decides = self.waiting.decide(words);
        words[KIND] = words[KIND] & !TAKEN | taken(n_lists + 1);
        decides
    }

    /// Removes a click that has had all its lists from the chain of its id, so that further lists skip it. The only one of an
    /// id stays.
    pub fn leave(&mut self, store: &mut Store, click: ChunkHandle) {
        let words = store.chunks.words(click);
        let is_first = words[KIND] >> IndexedKind::SHIFT == IndexedKind::Click as u32;
        if is_first && ChunkHandle::of_word(words[NEXT]).is_none() {
            return;
        }
        take_out(store, click);
        let words = store.chunks.words_mut(click);
        words[KIND] = IndexedKind::FurtherClick.to_bits() | words[KIND] & STAYS | LEFT;
    }

    /// Decides every click before `limit_ms`, and passes those that no list took to `untaken`. Decided clicks are dropped with
    /// their bucket.
    pub fn expire(&mut self, store: &mut Store, limit_ms: i64, mut untaken: impl FnMut(&KeptClick)) {
        while let Some(first) = self.by_start.first_entry() {
            let (start_ms, place) = (*first.key(), *first.get());
            if start_ms >= limit_ms {
                break;
            }
            let ends = start_ms.saturating_add(self.bucket_ms) <= limit_ms;
            for chunk in &self.places[place as usize].chunks {
                for click in store.chunks.handles(*chunk, N_WORDS) {
                    let words = store.chunks.words_mut(click);
                    let kept = read(words);
                    if kept.ts_ms < limit_ms && self.waiting.decide(words) {
                        untaken(&kept);
                    }
                    if ends {
                        self.n_kept -= 1;
                        // Unlink clicks before their chunk is closed: clicks of the same id in later buckets link to them.
                        take_out(store, click);
                    }
                }
            }
            if !ends {
                break; // It contains the limit: all later buckets are after it.
            }
            first.remove();
            let bucket = std::mem::take(&mut self.places[place as usize]);
            bucket.chunks.iter().for_each(|chunk| store.chunks.close(*chunk));
            self.bytes -= bucket.bytes;
            self.free.push(place);
            // The cached bucket may be this one.
            self.last = NO_BUCKET;
        }
    }
}

/// Takes a click out of the chain of its id.
fn take_out(store: &mut Store, click: ChunkHandle) {
    let words = store.chunks.words(click);
    if words[KIND] & LEFT != 0 {
        return;
    }
    let is_first = words[KIND] >> IndexedKind::SHIFT == IndexedKind::Click as u32;
    let [next, back] = [NEXT, BACK].map(|at| ChunkHandle::of_word(words[at]));
    match (is_first, next.is_none()) {
        (true, true) => {} // The only one: its index entry dies with its chunk.
        (true, false) => {
            let words = store.chunks.words_mut(next);
            words[KIND] = IndexedKind::Click.to_bits() | words[KIND] & STAYS;
            set_link(store, next, BACK, back);
            // The index holds only the first click of an id.
            store.replace(click, next);
        }
        (false, true) => {
            set_link(store, back, NEXT, ChunkHandle::NONE);
            // The first click must find the new last one.
            let first = store.find(&store.key_of(click)).click;
            set_link(store, first, BACK, back);
        }
        (false, false) => {
            set_link(store, back, NEXT, next);
            set_link(store, next, BACK, back);
        }
    }
}

fn link(store: &Store, click: ChunkHandle, at: usize) -> ChunkHandle {
    ChunkHandle::of_word(store.chunks.words(click)[at])
}

fn set_link(store: &mut Store, click: ChunkHandle, at: usize, to: ChunkHandle) {
    store.chunks.words_mut(click)[at] = to.to_word();
}

fn set(words: &mut [u32], at: usize, value: u64) {
    words[at] = value as u32;
    words[at + 1] = (value >> 32) as u32;
}

fn read(words: &[u32]) -> KeptClick {
    let value = |at: usize| u64::from(words[at + 1]) << 32 | u64::from(words[at]);
    KeptClick {
        item: value(ITEM),
        ts_ms: value(TIME) as i64,
    }
}

/// The word of a click that `n` lists have taken.
fn taken(n_lists: u32) -> u32 {
    n_lists << TAKEN_SHIFT | if n_lists > 0 { DECIDED } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    struct World {
        store: Store,
        clicks: KeptClicks,
    }

    impl World {
        fn new(bucket_ms: i64) -> World {
            World {
                store: Store::new(),
                clicks: KeptClicks::new(bucket_ms),
            }
        }

        fn keep(&mut self, id: u128, ts_ms: i64) -> ChunkHandle {
            let key = self.store.key(id, self.store.tag(id));
            let found = self.store.find(&key);
            let click = Click {
                id,
                user: None,
                ts_ms,
                item: ts_ms as u64,
            };
            self.clicks.keep(&mut self.store, &key, found, &click, 0, None)
        }

        /// Times of an id's clicks, which are their items too.
        fn times_of(&self, id: u128) -> Vec<i64> {
            let first = self.store.find(&self.store.key(id, self.store.tag(id))).click;
            let mut next = first;
            let mut times = Vec::new();
            while !next.is_none() {
                let (click, after) = self.clicks.get(&self.store, next);
                assert_eq!(click.item, click.ts_ms as u64);
                times.push(click.ts_ms);
                next = after;
            }
            times
        }

        fn expire(&mut self, limit_ms: i64) -> Vec<i64> {
            let mut untaken = Vec::new();
            self.clicks
                .expire(&mut self.store, limit_ms, |click| untaken.push(click.ts_ms));
            untaken.sort_unstable();
            untaken
        }
    }

    #[test]
    fn keeps_the_order_of_an_id_while_clicks_leave_from_anywhere() {
        let mut world = World::new(10);
        for ts_ms in [25, 3, 14, 40] {
            world.keep(1, ts_ms);
        }
        let taken = world.keep(2, 4);
        assert!(
            world.clicks.take(&mut world.store, taken),
            "the first list to take it"
        );
        assert!(!world.clicks.take(&mut world.store, taken));
        assert_eq!(world.clicks.n_lists(&world.store, taken), 2);
        assert_eq!(world.times_of(1), [25, 3, 14, 40]);
        assert_eq!(world.expire(20), [3, 14], "a decided click leaves without a word");
        assert_eq!(world.times_of(1), [25, 40]);
        assert_eq!(world.clicks.n_waiting(), 2);
        world.keep(1, 31);
        assert_eq!(world.times_of(1), [25, 40, 31]);
        assert_eq!(world.expire(i64::MAX), [25, 31, 40]);
        let clicks = &world.clicks;
        assert_eq!((clicks.bytes(), clicks.n_waiting(), clicks.len()), (0, 0, 0));
        assert_eq!(world.times_of(1), Vec::<i64>::new());
    }

    #[test]
    fn a_click_at_the_limit_stays_and_expires_once() {
        let mut world = World::new(10);
        world.keep(1, 15);
        assert_eq!(world.expire(15), Vec::<i64>::new());
        assert_eq!(world.times_of(1), [15]);
        assert_eq!(world.expire(16), [15]);
        assert_eq!(world.expire(20), Vec::<i64>::new());
        assert_eq!(world.times_of(1), Vec::<i64>::new());
    }

    #[test]
    fn a_hot_id_takes_one_index_entry() {
        let mut world = World::new(100);
        for ts_ms in 0..20_000 {
            world.keep(7, ts_ms);
            world.expire(ts_ms - 5000);
        }
        let expected: Vec<i64> = (14_900..20_000).collect();
        assert_eq!(world.times_of(7), expected);
    }

    proptest! {
        /// Compares with a map of lists, while clicks come and leave in any order.
        #[test]
        fn chains_behave_like_a_plain_map(steps in prop::collection::vec((0_u128..6, 0_i64..60), 1..400)) {
            let mut world = World::new(7);
            let mut twin: BTreeMap<u128, Vec<i64>> = BTreeMap::new();
            let mut now_ms = 0;
            for (id, after_ms) in steps {
                now_ms += i64::from(id == 0);
                world.keep(id, now_ms + after_ms);
                twin.entry(id).or_default().push(now_ms + after_ms);
                world.expire(now_ms);
                // Whole buckets leave.
                let left_ms = now_ms.div_euclid(7) * 7;
                twin.values_mut().for_each(|times| times.retain(|ts_ms| *ts_ms >= left_ms));
                for (id, times) in &twin {
                    prop_assert_eq!(&world.times_of(*id), times);
                }
                prop_assert_eq!(world.clicks.len(), twin.values().map(|times| times.len() as u64).sum::<u64>());
            }
        }
    }
}
