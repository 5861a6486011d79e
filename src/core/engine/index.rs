//! Finds a record by its request id: a hash table of cache lines that forgets nothing and stalls nowhere.
//!
//! ```text
//! tag of an id (32 bits) ──▶ first bits: place in the directory;  all of them, mixed: line of the segment
//!
//! directory ──▶ segment: 511 lines ──▶ line, 64 bytes: [ 7 tags │ displaced ][ 7 handles │ turn ]
//!                                                                   │
//!                            how many entries that belong here stand 7 … 1 lines further on
//! ```
//! An entry is not removed when its record is dropped: its handle is then dead, and its place is free for another entry (most
//! dead handles are detected from the chunks, without reading the record). A full segment is cleared of dead entries or split
//! in two, 3577 entries at a time: no insertion ever waits for the whole table. Two halves that a spike has left almost empty
//! are merged again, one pair at a time.
//!
//! Ids are hashes whose input outsiders may choose. A secret is added before they come here, and tags use a random seed, so
//! that an attacker cannot aim at a line.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::quality::RandomState;

use super::chunks::ChunkHandle;
use super::prefetch::prefetch;

/// Lines of a segment: with its alignment it fills a block of 32 KiB. The allocator took 43 KB for 512 of them.
const N_LINES: usize = 511;
/// Entries of a line.
const N_ENTRIES: usize = 7;
/// Index of the word that counts the displaced entries of a line: four bits for each distance in lines. A search reads only the
/// lines that hold any.
const DISPLACED: usize = 7;
const DISPLACED_BITS: usize = 4;
/// Lines that are tried for an entry. With 4 of them segments were split at 62% of their places, with these at 74%; with 12
/// joins took a tenth longer.
const MAX_LINES: usize = 8;
/// Living entries above which a segment is split.
const MAX_LIVING: usize = N_LINES * N_ENTRIES / 2;
/// Segments are merged if the table has places for more than this many times the living entries.
const ROOMY: usize = 8;

/// Key by which an id is looked up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tag(u32);

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct CacheLine {
    tags: [u32; 8],
    handles: [ChunkHandle; N_ENTRIES],
    /// The entry to replace next: the oldest one, which dies first.
    turn: u32,
}

const EMPTY: CacheLine = CacheLine {
    tags: [0; 8],
    handles: [ChunkHandle::NONE; N_ENTRIES],
    turn: 0,
};

#[derive(Debug)]
struct Segment {
    /// Bits of the directory that it stands for.
    depth: u32,
    lines: Box<[CacheLine; N_LINES]>,
}

#[derive(Debug)]
pub struct Index {
    random: RandomState,
    /// Bits of a tag that choose a segment.
    depth: u32,
    /// Places in `segments`, 2^depth of them.
    directory: Vec<u32>,
    segments: Vec<Segment>,
    /// The segment that [`Self::tidy`] looks at next.
    cursor: usize,
}

impl Index {
    pub fn new() -> Index {
        Index {
            random: RandomState::default(),
            depth: 0,
            directory: vec![0],
            segments: vec![Segment::new(0)],
            cursor: 0,
        }
    }

    pub fn tag(&self, id: u128) -> Tag {
        Tag(self.random.hash_one(id) as u32)
    }

    fn place(&self, tag: Tag) -> usize {
        // An outsider must not be able to choose any of the 32 bits.
        let slot = (u64::from(tag.0) << self.depth >> 32) as usize;
        self.directory[slot] as usize
    }

    /// Prefetches the line of this tag.
    pub fn prefetch_line(&self, tag: Tag) {
        prefetch(&self.segments[self.place(tag)].lines[home(tag)]);
    }

    /// Passes every entry of this tag to `to`, including dead ones and those of other ids.
    pub fn find(&self, tag: Tag, mut to: impl FnMut(ChunkHandle)) {
        let lines: &[CacheLine; N_LINES] = &self.segments[self.place(tag)].lines;
        let home = home(tag);
        let mut displaced = lines[home].tags[DISPLACED];
        let mut at = home;
        loop {
            let line = &lines[at];
            let mut found = line.places_of(tag);
            while found != 0 {
                let handle = line.handles[found.trailing_zeros() as usize / 8];
                if !handle.is_none() {
                    to(handle);
                }
                found &= found - 1;
            }
            if displaced == 0 {
                return; // Almost always after the first line.
            }
            let n_passed = displaced.trailing_zeros() as usize / DISPLACED_BITS;
            displaced &= !(0xf << (DISPLACED_BITS * n_passed));
            at = (home + n_passed) % N_LINES;
        }
    }

    /// Replaces the handle `old` by `new`; returns whether it was there.
    pub fn replace(&mut self, tag: Tag, old: ChunkHandle, new: ChunkHandle) -> bool {
        let place = self.place(tag);
        let lines = &mut self.segments[place].lines;
        for n_passed in 0..MAX_LINES {
            let line = &mut lines[(home(tag) + n_passed) % N_LINES];
            let entry =
                (0..N_ENTRIES).find(|entry| (line.tags[*entry], line.handles[*entry]) == (tag.0, old));
            if let Some(entry) = entry {
                line.handles[entry] = new;
                return true;
            }
        }
        false
    }

    /// Adds an entry in the place of a dead one.
    pub fn insert(&mut self, tag: Tag, handle: ChunkHandle, is_living: &impl Fn(ChunkHandle) -> bool) {
        loop {
            let place = self.place(tag);
            if self.segments[place].insert(tag, handle, |line| line.take_turn(is_living)) {
                return;
            }
            self.make_room(place, is_living);
        }
    }

    /// Drops the dead entries of a segment, and splits it if many are alive. Living entries stay in their line; displaced ones
    /// move to their own line if it has room.
    #[cold]
    fn make_room(&mut self, place: usize, is_living: &impl Fn(ChunkHandle) -> bool) {
        let handles = self.segments[place].lines.iter().flat_map(|line| line.handles);
        let (n_entries, n_living) = handles.fold((0, 0), |(n_entries, n_living), handle| {
            let is_there = !handle.is_none();
            (
                n_entries + usize::from(is_there),
                n_living + usize::from(is_there && is_living(handle)),
            )
        });
        // Without a dead entry, clearing would free no place.
        if n_living > MAX_LIVING || n_living == n_entries {
            self.split(place);
        }
        let mut displaced = Vec::new();
        for at in 0..N_LINES {
            let line = std::mem::replace(&mut self.segments[place].lines[at], EMPTY);
            for (tag, handle) in line.oldest_first().filter(|(_, handle)| is_living(*handle)) {
                if home(tag) == at {
                    let place = self.place(tag);
                    self.segments[place].lines[at].push(tag, handle);
                } else {
                    displaced.push((tag, handle));
                }
            }
        }
        self.refill(displaced, is_living);
    }

    /// Puts living entries back.
    fn refill(&mut self, living: Vec<(Tag, ChunkHandle)>, is_living: &impl Fn(ChunkHandle) -> bool) {
        for (tag, handle) in living {
            let place = self.place(tag);
            if !self.segments[place].insert(tag, handle, CacheLine::take_free) {
                self.insert(tag, handle, is_living);
            }
        }
    }

    /// Splits a segment in two; the caller distributes its entries.
    fn split(&mut self, place: usize) {
        let depth = self.segments[place].depth;
        // The directory has no bit left to distinguish the two halves, so it doubles.
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|place| [*place; 2]).collect();
            self.depth += 1;
        }
        self.segments[place].depth = depth + 1;
        let new = self.segments.len() as u32;
        self.segments.push(Segment::new(depth + 1));
        // The new segment takes the second half of the run in the directory.
        let run = self.run(place, depth);
        self.directory[run.start + run.len() / 2..run.end].fill(new);
    }

    /// The places of a segment of this depth in the directory.
    fn run(&self, place: usize, depth: u32) -> Range<usize> {
        let start = self.directory.iter().position(|other| *other as usize == place);
        let start = start.expect("each segment is in the directory");
        start..start + (1 << (self.depth - depth))
    }

    /// Merges at most two segments, if `n_living` entries need far fewer of them.
    pub fn tidy(&mut self, n_living: usize, is_living: &impl Fn(ChunkHandle) -> bool) {
        let n_segments = self.segments.len();
        if n_segments == 1 || n_living.saturating_mul(ROOMY) > n_segments * N_LINES * N_ENTRIES {
            return;
        }
        self.cursor = (self.cursor + 1) % n_segments;
        let depth = self.segments[self.cursor].depth;
        let run = self.run(self.cursor, depth);
        // Its other half at the time it was split.
        let twin = self.directory[run.start ^ run.len()] as usize;
        // The other half has been split further. Only halves of the same depth can be merged.
        if self.segments[twin].depth != depth {
            return;
        }
        let both = [self.cursor, twin].map(|place| &self.segments[place].lines);
        let of_both = both.into_iter().flat_map(|lines| entries(lines.as_slice()));
        let living: Vec<(Tag, ChunkHandle)> = of_both.filter(|(_, handle)| is_living(*handle)).collect();
        // Leave room, so that the merged segment is not split again soon.
        if living.len() <= MAX_LIVING / 2 {
            self.join(self.cursor, twin);
            self.refill(living, is_living);
        }
    }

    /// Merges two segments of the same depth into an empty one.
    fn join(&mut self, place: usize, twin: usize) {
        let depth = self.segments[place].depth;
        self.segments[place] = Segment::new(depth - 1);
        let runs = [place, twin].map(|place| self.run(place, depth));
        runs.into_iter()
            .for_each(|run| self.directory[run].fill(place as u32));
        // The last segment moves to the place that is free now.
        let last = self.segments.len() - 1;
        if last != twin {
            let run = self.run(last, self.segments[last].depth);
            self.directory[run].fill(twin as u32);
        }
        self.segments.swap_remove(twin);
    }
}

impl Segment {
    fn new(depth: u32) -> Segment {
        Segment {
            depth,
            lines: vec![EMPTY; N_LINES].try_into().expect("it has this length"),
        }
    }

    /// Adds an entry in the first place that `take` finds in its line or the following ones, if any.
    fn insert(
        &mut self,
        tag: Tag,
        handle: ChunkHandle,
        take: impl Fn(&mut CacheLine) -> Option<usize>,
    ) -> bool {
        let mut at = home(tag);
        for n_passed in 0..MAX_LINES {
            let line = &mut self.lines[at];
            if let Some(entry) = take(line) {
                let old = Tag(std::mem::replace(&mut line.tags[entry], tag.0));
                let was_there = !std::mem::replace(&mut line.handles[entry], handle).is_none();
                // The replaced entry was displaced, so its home line must no longer lead here.
                if was_there && home(old) != at {
                    let n_passed = (at + N_LINES - home(old)) % N_LINES;
                    self.lines[home(old)].tags[DISPLACED] -= one_displaced(n_passed);
                }
                if n_passed > 0 {
                    self.lines[home(tag)].tags[DISPLACED] += one_displaced(n_passed);
                }
                return true;
            }
            at = (at + 1) % N_LINES;
        }
        false
    }
}

impl CacheLine {
    /// An entry that is free or dead.
    fn take_turn(&mut self, is_living: &impl Fn(ChunkHandle) -> bool) -> Option<usize> {
        let turn = self.turn as usize;
        let is_open = |entry: &usize| {
            let handle = self.handles[*entry];
            handle.is_none() || !is_living(handle)
        };
        // Usually the first one.
        let entry = match is_open(&turn) {
            true => turn,
            false => (turn + 1..N_ENTRIES).chain(0..turn).find(is_open)?,
        };
        self.take(entry);
        Some(entry)
    }

    /// An entry that was never used since the segment was last empty: until one dies, they are used in turn.
    fn take_free(&mut self) -> Option<usize> {
        let turn = self.turn as usize;
        self.handles[turn].is_none().then(|| self.take(turn))?;
        Some(turn)
    }

    /// Adds an entry; a place must be free.
    fn push(&mut self, tag: Tag, handle: ChunkHandle) {
        let entry = self.turn as usize;
        self.tags[entry] = tag.0;
        self.handles[entry] = handle;
        self.take(entry);
    }

    /// Returns its entries, usually oldest first.
    fn oldest_first(&self) -> impl Iterator<Item = (Tag, ChunkHandle)> {
        let entry = |n| {
            let entry = self.turn as usize + n;
            if entry < N_ENTRIES {
                entry
            } else {
                entry - N_ENTRIES
            }
        };
        let entries = (0..N_ENTRIES).map(entry);
        let entries = entries.map(|entry| (Tag(self.tags[entry]), self.handles[entry]));
        entries.filter(|(_, handle)| !handle.is_none())
    }

    fn take(&mut self, entry: usize) {
        self.turn = if entry + 1 == N_ENTRIES {
            0
        } else {
            entry as u32 + 1
        };
    }

    /// One bit in the byte of each entry that may be of this tag.
    fn places_of(&self, tag: Tag) -> u64 {
        // One byte each: the compiler turns this into a few vector instructions.
        let bytes = self.tags.map(|other| u8::from(other == tag.0));
        u64::from_le_bytes(bytes) & ((1 << (8 * N_ENTRIES)) - 1)
    }
}

/// Returns the home line of a tag. It depends on other bits than the directory: the product's high ones, which depend on all
/// low ones of the tag.
fn home(tag: Tag) -> usize {
    // 2^32 ÷ the golden ratio, whose bits follow no pattern.
    let mixed = tag.0.wrapping_mul(0x9e37_79b9);
    ((u64::from(mixed) * N_LINES as u64) >> 32) as usize
}

/// The count of one entry displaced by this many lines, fewer than [`MAX_LINES`]; at most [`N_ENTRIES`] of a line are.
fn one_displaced(n_passed: usize) -> u32 {
    1 << (DISPLACED_BITS * n_passed)
}

fn entries(lines: &[CacheLine]) -> impl Iterator<Item = (Tag, ChunkHandle)> {
    lines.iter().flat_map(CacheLine::oldest_first)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::chunks::{Chunks, UNIT};
    use super::*;
    use crate::engine::chunks::ChunkId;

    /// Entries in chunks, each with its id, as for lists.
    struct World {
        chunks: Chunks,
        index: Index,
        /// Living entries by id.
        twin: HashMap<u32, ChunkHandle>,
        open: Vec<ChunkId>,
    }

    impl World {
        fn new() -> World {
            World {
                chunks: Chunks::new(),
                index: Index::new(),
                twin: HashMap::new(),
                open: Vec::new(),
            }
        }

        fn add(&mut self, id: u32) {
            let number = *self.open.last().expect("a chunk is open");
            let (handle, words) = self.chunks.append(number, UNIT);
            words.fill(id);
            let tag = self.index.tag(u128::from(id));
            self.index
                .insert(tag, handle, &|other| self.chunks.may_live(other));
            self.twin.insert(id, handle);
        }

        fn forget_the_dead(&mut self) {
            let is_there = |handle| self.chunks.get(handle).is_some_and(|words| !words.is_empty());
            self.twin.retain(|_, handle| is_there(*handle));
        }

        fn find(&self, id: u32) -> Option<ChunkHandle> {
            let mut found = None;
            self.index.find(self.index.tag(u128::from(id)), |handle| {
                let words = self.chunks.get(handle);
                if words.is_some_and(|words| words.first() == Some(&id)) {
                    found = Some(handle);
                }
            });
            found
        }
    }

    #[test]
    fn finds_only_live_entries_as_chunks_open_and_close() {
        let mut world = World::new();
        let (mut next, mut n_kept) = (0, 0);
        for round in 0..300_u32 {
            let number = world.chunks.open(round, &[], UNIT, 1 << 14);
            world.open.push(number);
            // Now few chunks live, now many.
            let n_open = if round % 100 < 50 { 60 } else { 5 };
            (0..1000).for_each(|_| {
                next += 1;
                world.add(next);
            });
            while world.open.len() > n_open {
                let gone = world.open.remove(0);
                world.chunks.close(gone);
                world.forget_the_dead();
            }
            if round % 10 == 0 {
                assert!(
                    world
                        .twin
                        .iter()
                        .all(|(id, handle)| world.find(*id) == Some(*handle))
                );
                assert_eq!(world.find(next + 1), None);
            }
            if round % 75 == 74 {
                assert!((1..=next).filter(|id| world.find(*id).is_some()).count() == world.twin.len());
            }
            n_kept = n_kept.max(world.twin.len());
        }
        let n_bytes = world.index.segments.len() * N_LINES * size_of::<CacheLine>();
        let bytes = n_bytes as f64 / n_kept as f64;
        assert!(bytes < 30.0, "{bytes} bytes an entry at the most that lived");
    }

    #[test]
    fn segments_merge_gradually_after_a_spike() {
        let mut world = World::new();
        for round in 0..80_u32 {
            let number = world.chunks.open(round, &[], UNIT, 1 << 16);
            world.open.push(number);
            (0..1000).for_each(|n| world.add(round * 1000 + n));
        }
        assert!(world.index.segments.len() > 20);
        for gone in world.open.drain(1..) {
            world.chunks.close(gone);
        }
        world.forget_the_dead();
        for _ in 0..400 {
            let before = world.index.segments.len();
            world
                .index
                .tidy(world.twin.len(), &|other| world.chunks.may_live(other));
            assert!(before - world.index.segments.len() <= 1);
            assert!(
                world
                    .twin
                    .iter()
                    .all(|(id, handle)| world.find(*id) == Some(*handle))
            );
        }
        assert!(world.index.segments.len() <= 2, "1000 of 80,000 are left");
        assert_eq!((0..80_000).filter(|id| world.find(*id).is_some()).count(), 1000);
    }

    /// A fixed hash would send all ids with the same low bits to the same lines.
    #[test]
    fn colliding_ids_take_no_extra_room() {
        for shift in [0, 9, 32, 64, 96] {
            let mut world = World::new();
            let number = world.chunks.open(0, &[], UNIT, 1 << 16);
            for n in 0..16_000_u128 {
                let (handle, _) = world.chunks.append(number, UNIT);
                let tag = world.index.tag(n << shift);
                world.index.insert(tag, handle, &|_| true);
            }
            let n_segments = world.index.segments.len();
            assert!(n_segments <= 16, "{n_segments} segments at {shift}");
        }
    }

    #[test]
    fn displaced_entries_are_counted_until_removed() {
        let mut world = World::new();
        for round in 0..200_u32 {
            let number = world.chunks.open(round, &[], UNIT, 1 << 14);
            world.open.push(number);
            (0..500).for_each(|n| world.add(round * 500 + n));
            if world.open.len() > 30 {
                let gone = world.open.remove(0);
                world.chunks.close(gone);
            }
        }
        for segment in &world.index.segments {
            let mut displaced = [0; N_LINES];
            for (at, line) in segment.lines.iter().enumerate() {
                let of_line = entries(std::slice::from_ref(line)).map(|(tag, _)| home(tag));
                of_line
                    .filter(|home| *home != at)
                    .for_each(|home| displaced[home] += one_displaced((at + N_LINES - home) % N_LINES));
            }
            let counted: Vec<u32> = segment.lines.iter().map(|line| line.tags[DISPLACED]).collect();
            assert_eq!(counted, displaced);
        }
    }
}
