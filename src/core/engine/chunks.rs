//! Words of open records in chunks: a slot is dropped chunk by chunk, without visiting its records.
//!
//! ```text
//! handle  31 ───────────── 14 │ 13 ─────────── 0
//!         number of the page  │ place in it ÷ 16 bytes
//!
//! pages   1 [ list │ list │ … ]     2 dead     3 [ list ┆ ][ click ┆ ][ list │ list ][ … ]
//!           one chunk                            parts: small chunks of one size
//! ```
//! A full chunk has a page of its own. Smaller ones share a page as its parts: memory is exhausted before page numbers are,
//! even if slots hold little. Numbers are reused in turn, as late as possible. A handle that outlived its slot names a dead
//! chunk until its number is reused. Code that follows an old handle must therefore check the record there.

use super::prefetch::prefetch;

/// Location of a record. Valid until its chunk is closed; 0 means none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkHandle(u32);

/// A chunk, by the handle of its first words. Valid until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkId(u32);

/// Words in a unit of places.
pub const UNIT: usize = 4;
const PLACE_BITS: u32 = 14;
/// Words of a full chunk: 256 KiB, and what is left to the allocator.
const CHUNK_WORDS: usize = (UNIT << PLACE_BITS) - LEFT_WORDS;
/// Words by which chunks stay below a power of two. The allocator took 350 KB for each of 256 KiB, and takes 256 KiB for
/// these.
const LEFT_WORDS: usize = 16;
const MAX_PAGES: usize = 1 << (32 - PLACE_BITS);
/// Places of the parts that a page may have, as powers of two: each kind of part four times as long as the one before.
const PART_BITS: [u32; 5] = [4, 6, 8, 10, 12];
/// Full chunks kept for the next slots, besides a quarter of the pages in use: fresh memory costs a page fault.
const SPARE: usize = 16;
/// A turn ends after opening this many times the chunks in use; it shows which spare chunks are not needed.
const TURNS: usize = 2;
/// Growth factor of an owner's chunks, in words.
const GROWTH: usize = 4;
/// Words of a cache line.
const LINE_WORDS: usize = 16;
/// Spare chunks given back at a time.
const GIVE_BACK: usize = 32;

impl ChunkHandle {
    pub const NONE: ChunkHandle = ChunkHandle(0);

    fn new(chunk: ChunkId, word: usize) -> ChunkHandle {
        ChunkHandle(chunk.0 + (word / UNIT) as u32)
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the handle as a word of a record.
    pub fn to_word(self) -> u32 {
        self.0
    }

    pub fn of_word(word: u32) -> ChunkHandle {
        ChunkHandle(word)
    }

    fn page(self) -> usize {
        (self.0 >> PLACE_BITS) as usize
    }

    fn place(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }
}

impl ChunkId {
    fn first(self) -> ChunkHandle {
        ChunkHandle(self.0)
    }
}

#[derive(Debug)]
struct Chunk {
    /// The used ones; the capacity is never exceeded, and 0 once the chunk is closed.
    words: Vec<u32>,
    /// The owner of the chunk: a number of its choice.
    owner: u32,
}

#[derive(Debug)]
enum Page {
    Dead,
    Whole(Chunk),
    Small(Box<SmallChunks>),
}

/// Small chunks of one size, opened one after another.
#[derive(Debug)]
struct SmallChunks {
    /// Places of each, as a power of two.
    bits: u32,
    chunks: Vec<Chunk>,
    n_open: usize,
}

impl SmallChunks {
    fn is_full(&self) -> bool {
        self.chunks.len() == 1 << (PLACE_BITS - self.bits)
    }
}

impl Page {
    /// Returns the chunk at a place, and the word in it. `None` if there never was one.
    #[inline(always)]
    fn at(&self, place: usize) -> Option<(&Chunk, usize)> {
        match self {
            Page::Whole(chunk) => Some((chunk, place * UNIT)),
            Page::Small(parts) => {
                let chunk = parts.chunks.get(place >> parts.bits)?;
                Some((chunk, (place & ((1 << parts.bits) - 1)) * UNIT))
            }
            Page::Dead => None,
        }
    }

    #[inline(always)]
    fn at_mut(&mut self, place: usize) -> Option<(&mut Chunk, usize)> {
        match self {
            Page::Whole(chunk) => Some((chunk, place * UNIT)),
            Page::Small(parts) => {
                let bits = parts.bits;
                let chunk = parts.chunks.get_mut(place >> bits)?;
                Some((chunk, (place & ((1 << bits) - 1)) * UNIT))
            }
            Page::Dead => None,
        }
    }
}

#[derive(Debug)]
pub struct Chunks {
    /// Pages by number. Number 0 is never used.
    pages: Vec<Page>,
    /// One bit a page: small enough for the innermost cache.
    alive: Vec<u64>,
    n_alive: usize,
    /// Number at which the search for a dead one continues.
    cursor: usize,
    /// Numbers of the pages whose parts are being opened, by kind of part; 0 for none.
    filling: [u32; PART_BITS.len()],
    spare: Vec<Vec<u32>>,
    /// The fewest that were spare in this turn, and how many full chunks were opened in it.
    fewest_spare: usize,
    n_opened: usize,
    /// Chunks that the last turn did not need and that are not given back yet.
    unneeded: usize,
}

impl Chunks {
    pub fn new() -> Chunks {
        let mut chunks = Chunks {
            pages: Vec::new(),
            alive: Vec::new(),
            n_alive: 0,
            cursor: 1,
            filling: [0; PART_BITS.len()],
            spare: Vec::new(),
            fewest_spare: 0,
            n_opened: 0,
            unneeded: 0,
        };
        chunks.grow();
        chunks
    }

    /// Returns whether no further page can be numbered, which is at 64 GiB of full chunks.
    pub fn is_full(&self) -> bool {
        self.n_alive + 1 == MAX_PAGES
    }

    /// Twice as many numbers.
    fn grow(&mut self) {
        let n = (self.pages.len() * 2).max(64);
        self.pages.resize_with(n, || Page::Dead);
        self.alive.resize(n / 64, 0);
    }

    /// Returns whether the page of a handle is in use. Its number may have been reused, or another part of the page may be
    /// open. Parts that are opened together are closed together, so few pages hold dead ones.
    #[inline(always)]
    pub fn may_live(&self, handle: ChunkHandle) -> bool {
        has(&self.alive, handle.page())
    }

    /// Opens the next chunk of an owner who has these, for at least `n_words`. The first has `first_words` at least, and each
    /// next one several times the words of the last, until they are full ones: a quiet slot stays small, and nothing is copied
    /// when it grows.
    ///
    /// # Panics
    /// Panics if [`Self::is_full`].
    pub fn open(&mut self, owner: u32, those: &[ChunkId], n_words: usize, first_words: usize) -> ChunkId {
        let last = those.last().map(|last| self.chunk(*last).words.capacity());
        let grown = |last| GROWTH * (last + LEFT_WORDS) - LEFT_WORDS;
        let n_wanted = last.map_or(first_words, grown).min(CHUNK_WORDS);
        let n_words = n_wanted.max(n_words);
        match PART_BITS.iter().position(|bits| n_words <= UNIT << bits) {
            Some(kind) => {
                let words = Vec::with_capacity(n_words);
                self.open_part(kind, Chunk { words, owner })
            }
            None => {
                let words = match n_words {
                    CHUNK_WORDS => self.take_spare(),
                    n_words => Vec::with_capacity(n_words),
                };
                let page = self.take_page(Page::Whole(Chunk { words, owner }));
                ChunkId(page << PLACE_BITS)
            }
        }
    }

    fn open_part(&mut self, kind: usize, chunk: Chunk) -> ChunkId {
        let bits = PART_BITS[kind];
        // Its number may have come round.
        let has_room =
            |page: &Page| matches!(page, Page::Small(parts) if parts.bits == bits && !parts.is_full());
        if !has_room(&self.pages[self.filling[kind] as usize]) {
            let chunks = Vec::new();
            let n_open = 0;
            let parts = SmallChunks { bits, chunks, n_open };
            self.filling[kind] = self.take_page(Page::Small(Box::new(parts)));
        }
        let page = self.filling[kind];
        let Page::Small(parts) = &mut self.pages[page as usize] else {
            unreachable!("a page that is filled has parts")
        };
        let place = (parts.chunks.len() as u32) << bits;
        parts.chunks.push(chunk);
        parts.n_open += 1;
        ChunkId(page << PLACE_BITS | place)
    }

    /// The number that this page has from now on.
    fn take_page(&mut self, page: Page) -> u32 {
        // Keep half of the numbers free: the later a number is reused, the longer old handles are detected.
        if 2 * self.n_alive >= self.pages.len() && self.pages.len() < MAX_PAGES {
            self.grow();
        }
        let n = self.pages.len();
        let in_turn = (self.cursor..n).chain(1..self.cursor);
        let dead = in_turn.into_iter().find(|number| !has(&self.alive, *number));
        let number = dead.expect("there are fewer pages than numbers");
        self.cursor = if number + 1 == n { 1 } else { number + 1 };
        self.n_alive += 1;
        set(&mut self.alive, number, true);
        self.pages[number] = page;
        number as u32
    }

    fn drop_page(&mut self, number: usize) -> Page {
        set(&mut self.alive, number, false);
        self.n_alive -= 1;
        std::mem::replace(&mut self.pages[number], Page::Dead)
    }

    fn take_spare(&mut self) -> Vec<u32> {
        let words = self.spare.pop();
        self.fewest_spare = self.fewest_spare.min(self.spare.len());
        self.n_opened += 1;
        words.unwrap_or_else(|| Vec::with_capacity(CHUNK_WORDS))
    }

    /// A chunk that is open, and the word in it that a valid handle names.
    #[inline(always)]
    fn at(&self, handle: ChunkHandle) -> (&Chunk, usize) {
        let found = self.pages[handle.page()].at(handle.place());
        found.expect("its chunk is open")
    }

    #[inline(always)]
    fn at_mut(&mut self, handle: ChunkHandle) -> (&mut Chunk, usize) {
        let found = self.pages[handle.page()].at_mut(handle.place());
        found.expect("its chunk is open")
    }

    fn chunk(&self, id: ChunkId) -> &Chunk {
        self.at(id.first()).0
    }

    /// Returns whether a chunk has room for `n_words` more.
    pub fn has_room(&self, id: ChunkId, n_words: usize) -> bool {
        self.n_unused(id) >= n_words
    }

    /// Words at the end of a chunk that will stay unused.
    pub fn n_unused(&self, id: ChunkId) -> usize {
        let words = &self.chunk(id).words;
        words.capacity() - words.len()
    }

    /// Appends a record of `n_words`, whole units, to a chunk that has room: all of them are 0, and the caller's to write.
    #[inline(always)]
    pub fn append(&mut self, id: ChunkId, n_words: usize) -> (ChunkHandle, &mut [u32]) {
        let words = &mut self.at_mut(id.first()).0.words;
        let start = words.len();
        debug_assert!(
            start + n_words <= words.capacity(),
            "the caller has looked for room"
        );
        words.resize(start + n_words, 0);
        (ChunkHandle::new(id, start), &mut words[start..])
    }

    /// The words from a handle on, which may be an old one: then they are arbitrary.
    pub fn get(&self, handle: ChunkHandle) -> Option<&[u32]> {
        let (chunk, word) = self.pages[handle.page()].at(handle.place())?;
        chunk.words.get(word..)
    }

    /// Prefetches the record at a handle, which may be an old one.
    pub fn prefetch_record(&self, handle: ChunkHandle) {
        let Some((chunk, start)) = self.pages[handle.page()].at(handle.place()) else {
            return;
        };
        // A usual record lies in two cache lines.
        for ahead in [0, LINE_WORDS] {
            if let Some(word) = chunk.words.get(start + ahead) {
                prefetch(word);
            }
        }
    }

    /// The words from a valid handle on, and whose they are.
    #[inline]
    pub fn owned(&self, handle: ChunkHandle) -> (u32, &[u32]) {
        let (chunk, word) = self.at(handle);
        (chunk.owner, &chunk.words[word..])
    }

    /// The words from a valid handle on.
    #[inline]
    pub fn words(&self, handle: ChunkHandle) -> &[u32] {
        self.owned(handle).1
    }

    #[inline]
    pub fn words_mut(&mut self, handle: ChunkHandle) -> &mut [u32] {
        let (chunk, word) = self.at_mut(handle);
        &mut chunk.words[word..]
    }

    /// Returns all words of a chunk.
    pub fn all(&self, id: ChunkId) -> &[u32] {
        &self.chunk(id).words
    }

    /// Returns the handle of the record that starts at a word of a chunk, which may have been [taken](Self::take).
    pub fn handle_of(id: ChunkId, word: usize) -> ChunkHandle {
        ChunkHandle::new(id, word)
    }

    /// Handles of the records of a chunk that all have `n_words`.
    pub fn handles(&self, id: ChunkId, n_words: usize) -> impl Iterator<Item = ChunkHandle> + use<> {
        let n_used = self.chunk(id).words.len();
        (0..n_used)
            .step_by(n_words)
            .map(move |word| ChunkHandle::new(id, word))
    }

    /// Takes a chunk out of use.
    pub fn close(&mut self, id: ChunkId) {
        let words = self.take(id);
        self.give_back(words);
    }

    /// Takes a chunk out of use and returns its words: no handle reaches them any more.
    pub fn take(&mut self, id: ChunkId) -> Vec<u32> {
        let words = std::mem::take(&mut self.at_mut(id.first()).0.words);
        let number = id.first().page();
        // Places of parts are not reused, so a page dies with its last open part.
        let is_last = match &mut self.pages[number] {
            Page::Small(parts) => {
                parts.n_open -= 1;
                parts.n_open == 0
            }
            Page::Whole(_) | Page::Dead => true,
        };
        if is_last {
            self.drop_page(number);
        }
        words
    }

    /// Gives back the words of a chunk that was [taken](Self::take), for the next one that is opened.
    pub fn give_back(&mut self, mut words: Vec<u32>) {
        // Only full chunks are kept: small and shrunk ones have all kinds of sizes.
        if words.capacity() == CHUNK_WORDS {
            words.clear();
            self.spare.push(words);
        }
    }

    /// Gives back the unused end of a chunk that is complete.
    pub fn shrink(&mut self, id: ChunkId) {
        self.at_mut(id.first()).0.words.shrink_to_fit();
    }

    /// Frees some spare chunks if there are too many, or if a whole turn has not needed them. Call it often: each call takes
    /// bounded time.
    pub fn tidy(&mut self) {
        if self.n_opened > TURNS * (self.n_alive + SPARE) {
            self.unneeded = self.fewest_spare;
            self.fewest_spare = self.spare.len();
            self.n_opened = 0;
        }
        let n_spare = self.spare.len();
        let too_many = n_spare.saturating_sub(self.n_alive / 4 + SPARE);
        let n_given_back = too_many.max(self.unneeded).min(GIVE_BACK).min(n_spare);
        self.spare.truncate(n_spare - n_given_back);
        self.unneeded = self.unneeded.saturating_sub(n_given_back);
        self.fewest_spare = self.fewest_spare.min(self.spare.len());
    }
}

fn has(bits: &[u64], number: usize) -> bool {
    bits[number / 64] >> (number % 64) & 1 != 0
}

fn set(bits: &mut [u64], number: usize, value: bool) {
    let bit = 1 << (number % 64);
    match value {
        true => bits[number / 64] |= bit,
        false => bits[number / 64] &= !bit,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn append(chunks: &mut Chunks, chunk: ChunkId, words: &[u32]) -> ChunkHandle {
        let n_words = words.len().next_multiple_of(UNIT);
        let (handle, into) = chunks.append(chunk, n_words);
        into[..words.len()].copy_from_slice(words);
        handle
    }

    #[test]
    fn handles_find_their_words_until_the_chunk_closes() {
        let mut chunks = Chunks::new();
        let one = chunks.open(7, &[], 4, CHUNK_WORDS);
        let two = chunks.open(8, &[], CHUNK_WORDS + UNIT, UNIT);
        let handles = [
            append(&mut chunks, one, &[1, 2, 3]),
            append(&mut chunks, one, &[4]),
        ];
        let long = append(&mut chunks, two, &vec![5; CHUNK_WORDS + 1]);
        assert_eq!(&chunks.words(handles[0])[..4], [1, 2, 3, 0]);
        assert_eq!(chunks.handles(one, UNIT).collect::<Vec<_>>(), handles);
        assert_eq!(&chunks.words(handles[1])[..4], [4, 0, 0, 0]);
        assert_eq!((chunks.owned(handles[1]).0, chunks.owned(long).0), (7, 8));
        assert!(chunks.has_room(one, CHUNK_WORDS - 8) && !chunks.has_room(one, CHUNK_WORDS - 4));
        assert!(!chunks.has_room(two, 1));
        chunks.close(one);
        assert!(!chunks.may_live(handles[0]) && chunks.may_live(long));
        assert_eq!(chunks.get(handles[1]), None);
        assert_eq!(chunks.words(long)[CHUNK_WORDS], 5);
    }

    #[test]
    fn chunk_numbers_are_reused_as_late_as_possible() {
        let mut chunks = Chunks::new();
        let first = chunks.open(0, &[], 4, CHUNK_WORDS);
        chunks.close(first);
        let between = (0..).take_while(|_| {
            let number = chunks.open(0, &[], 4, CHUNK_WORDS);
            chunks.close(number);
            number != first
        });
        assert_eq!(between.count(), 62, "of 63 numbers");
    }

    #[test]
    fn reused_chunks_hide_the_words_of_their_previous_owner() {
        let mut chunks = Chunks::new();
        let old = chunks.open(0, &[], 4, CHUNK_WORDS);
        let handles = [append(&mut chunks, old, &[1]), append(&mut chunks, old, &[2])];
        chunks.close(old);
        // Until its number comes round.
        loop {
            let chunk = chunks.open(0, &[], 4, CHUNK_WORDS);
            if chunk == old {
                break;
            }
            chunks.close(chunk);
        }
        append(&mut chunks, old, &[3]);
        assert_eq!(chunks.get(handles[0]), Some(&[3, 0, 0, 0][..]));
        assert_eq!(chunks.get(handles[1]), Some(&[][..]));
    }

    #[test]
    fn chunks_of_an_owner_grow_up_to_the_full_size() {
        let mut chunks = Chunks::new();
        let mut those = Vec::new();
        for _ in 0..6 {
            those.push(chunks.open(0, &those, 4, 512 - LEFT_WORDS));
        }
        let sizes = those.iter().map(|number| chunks.n_unused(*number) + LEFT_WORDS);
        assert!(sizes.eq([512, 2048, 8192, 32_768, 65_536, 65_536]));
    }

    #[test]
    fn chunk_numbers_grow_with_the_number_of_open_chunks() {
        let mut chunks = Chunks::new();
        let numbers: Vec<ChunkId> = (0..200)
            .map(|owner| chunks.open(owner, &[], 4, CHUNK_WORDS))
            .collect();
        for (owner, number) in numbers.iter().enumerate() {
            let handle = append(&mut chunks, *number, &[owner as u32]);
            let (whose, words) = chunks.owned(handle);
            assert_eq!((whose, words[0]), (owner as u32, owner as u32));
        }
    }

    #[test]
    fn small_chunks_share_pages_so_numbers_do_not_run_out() {
        let mut chunks = Chunks::new();
        let n = MAX_PAGES + 100;
        let small: Vec<ChunkId> = (0..n as u32)
            .map(|owner| chunks.open(owner, &[], 4, UNIT))
            .collect();
        assert!(!chunks.is_full());
        assert!(chunks.n_alive <= 1 + n / 1024, "{} pages", chunks.n_alive);
        assert_eq!(chunks.chunk(small[n - 1]).owner, n as u32 - 1);
    }

    #[test]
    fn a_closed_part_is_empty_while_its_page_lives() {
        let mut chunks = Chunks::new();
        let [one, two] = [1, 2].map(|owner| chunks.open(owner, &[], 4, 64));
        let [of_one, of_two] = [one, two].map(|chunk| append(&mut chunks, chunk, &[7]));
        assert_eq!(of_one.page(), of_two.page());
        chunks.close(one);
        assert_eq!(chunks.get(of_one), Some(&[][..]));
        assert!(chunks.may_live(of_two));
        chunks.close(two);
        assert!(!chunks.may_live(of_two));
        assert_eq!(chunks.get(of_two), None);
        assert_eq!(chunks.n_alive, 0);
    }

    proptest! {
        /// Opens and closes chunks of all sizes, and compares them with a map of vectors.
        #[test]
        fn chunks_behave_like_plain_vectors(steps in prop::collection::vec((0_usize..40, 0_usize..400), 1..300)) {
            let mut chunks = Chunks::new();
            let mut twin: Vec<(ChunkId, Vec<(ChunkHandle, u32)>)> = Vec::new();
            let mut closed: Vec<ChunkHandle> = Vec::new();
            for (step, (at, size)) in steps.into_iter().enumerate() {
                let n_words = UNIT * (1 + size * size / 9);
                if let Some((chunk, held)) = twin.get_mut(at) {
                    if chunks.has_room(*chunk, UNIT) {
                        held.push((append(&mut chunks, *chunk, &[step as u32]), step as u32));
                    }
                    if size % 4 == 0 {
                        let (chunk, held) = twin.swap_remove(at);
                        chunks.close(chunk);
                        closed = held.into_iter().map(|(handle, _)| handle).collect();
                        let is_gone = |handle: &ChunkHandle| chunks.get(*handle).is_none_or(<[u32]>::is_empty);
                        prop_assert!(closed.iter().all(is_gone));
                    }
                } else {
                    let those: Vec<ChunkId> = twin.last().map(|(chunk, _)| *chunk).into_iter().collect();
                    twin.push((chunks.open(at as u32, &those, n_words, UNIT), Vec::new()));
                }
                for (handle, word) in twin.iter().flat_map(|(_, held)| held) {
                    prop_assert!(chunks.may_live(*handle));
                    prop_assert_eq!(chunks.words(*handle)[0], *word);
                }
                // Dead handles may be read too; the content does not matter.
                for handle in &closed {
                    let _ = chunks.get(*handle);
                    chunks.prefetch_record(*handle);
                }
            }
        }
    }

    #[test]
    fn tidy_frees_spare_pages_gradually_after_a_spike() {
        let mut chunks = Chunks::new();
        let numbers: Vec<ChunkId> = (0..100).map(|_| chunks.open(0, &[], 4, CHUNK_WORDS)).collect();
        numbers.iter().for_each(|number| chunks.close(*number));
        assert_eq!(chunks.spare.len(), 100);
        (0..3).for_each(|_| chunks.tidy());
        assert_eq!(chunks.spare.len(), SPARE);
    }

    #[test]
    fn tidy_keeps_only_the_spare_pages_in_recurring_use() {
        let mut chunks = Chunks::new();
        let full = |chunks: &mut Chunks| chunks.open(0, &[], 4, CHUNK_WORDS);
        let mut open: VecDeque<ChunkId> = (0..40).map(|_| full(&mut chunks)).collect();
        open.drain(..20).for_each(|number| chunks.close(number));
        chunks.tidy();
        assert_eq!(chunks.spare.len(), 20, "a quarter of those in use, and some");
        // Now three more are in use, now three fewer.
        for _ in 0..100 {
            (0..3).for_each(|_| open.push_back(full(&mut chunks)));
            chunks.tidy();
            open.drain(..3).for_each(|number| chunks.close(number));
            chunks.tidy();
        }
        assert_eq!(chunks.spare.len(), 3, "those that are needed again and again");
    }
}
