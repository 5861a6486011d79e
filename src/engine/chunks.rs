//! Words of open records in chunks, so that a slot leaves chunk by chunk and nobody visits its records.
//!
//! ```text
//! handle  31 ───────────── 14 │ 13 ─────────── 0
//!         number of the chunk │ place in it ÷ 16 bytes
//!
//! chunks  1 [ list │ list │ … ]   2 [ click │ click ┆ unused ]   3 dead   4 [ … ]
//! ```
//! Numbers are given anew in turns, as late as can be: a handle that outlived its slot names a dead chunk, until its number
//! comes round again. So whoever follows an old handle must check what stands there.

use super::prefetch::prefetch;

/// Where a record stands. Valid until its chunk is closed; 0 is none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u32);

/// Words in a unit of places.
pub const UNIT: usize = 4;
const PLACE_BITS: u32 = 14;
/// Words of a full chunk: 256 KiB, and what is left to the allocator.
const CHUNK_WORDS: usize = (UNIT << PLACE_BITS) - LEFT_WORDS;
/// Words by which chunks stay below a power of two. The allocator took 350 KB for each of 256 KiB, and takes 256 KiB for
/// these.
const LEFT_WORDS: usize = 16;
const MAX_CHUNKS: usize = 1 << (32 - PLACE_BITS);
/// Full chunks that may be kept for the next slots, beside a quarter of those in use: fresh memory costs a page fault.
const SPARE: usize = 16;
/// So many times what is in use may be opened until it shows which of the spare chunks are not needed.
const TURNS: usize = 2;
/// How many times the words of the last chunk the next one has.
const GROWTH: usize = 4;
/// Words of a cache line.
const LINE_WORDS: usize = 16;
/// Spare chunks given back at a time.
const GIVE_BACK: usize = 32;

impl Handle {
    pub const NONE: Handle = Handle(0);

    fn new(number: u32, word: usize) -> Handle {
        Handle(number << PLACE_BITS | (word / UNIT) as u32)
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// As a word of a record.
    pub fn to_word(self) -> u32 {
        self.0
    }

    pub fn of_word(word: u32) -> Handle {
        Handle(word)
    }

    fn number(self) -> usize {
        (self.0 >> PLACE_BITS) as usize
    }

    fn word(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize * UNIT
    }
}

#[derive(Debug, Default)]
struct Chunk {
    /// The used ones; the capacity is never exceeded.
    words: Vec<u32>,
    /// Whose chunk it is: a place of its owner's choice.
    owner: u32,
}

#[derive(Debug)]
pub struct Chunks {
    /// By number; dead ones are empty. Number 0 is never used.
    chunks: Vec<Chunk>,
    /// One bit a number: small enough for the innermost cache.
    alive: Vec<u64>,
    n_alive: usize,
    /// Where the search for a dead number goes on.
    cursor: usize,
    spare: Vec<Vec<u32>>,
    /// The fewest that were spare in this turn, and how many full chunks were opened in it.
    fewest_spare: usize,
    n_opened: usize,
    /// What the last turn has not needed, as far as it was not given back.
    unneeded: usize,
}

impl Chunks {
    pub fn new() -> Chunks {
        let mut chunks = Chunks {
            chunks: Vec::new(),
            alive: Vec::new(),
            n_alive: 0,
            cursor: 1,
            spare: Vec::new(),
            fewest_spare: 0,
            n_opened: 0,
            unneeded: 0,
        };
        chunks.grow();
        chunks
    }

    /// Whether no further chunk can be numbered.
    pub fn is_full(&self) -> bool {
        self.n_alive + 1 == MAX_CHUNKS
    }

    /// Twice as many numbers.
    fn grow(&mut self) {
        let n = (self.chunks.len() * 2).max(64);
        self.chunks.resize_with(n, Chunk::default);
        self.alive.resize(n / 64, 0);
    }

    fn is_alive(&self, number: usize) -> bool {
        self.alive[number / 64] >> (number % 64) & 1 != 0
    }

    /// Whether the chunk of a handle is in use, though its number may have come round.
    pub fn may_live(&self, handle: Handle) -> bool {
        self.is_alive(handle.number())
    }

    /// Opens the next chunk of an owner who has these, for at least `n_words`, and tells its number. The first has
    /// `first_words` at least, and each next one several times those of the last, until they are full ones: a quiet slot
    /// stays small, and nothing is copied when it grows.
    ///
    /// # Panics
    /// Where [`Self::is_full`].
    pub fn open(&mut self, owner: u32, those: &[u32], n_words: usize, first_words: usize) -> u32 {
        if 2 * self.n_alive >= self.chunks.len() && self.chunks.len() < MAX_CHUNKS {
            self.grow();
        }
        let n = self.chunks.len();
        let in_turn = (self.cursor..n).chain(1..self.cursor);
        let dead = in_turn.into_iter().find(|number| !self.is_alive(*number));
        let number = dead.expect("there are fewer chunks than numbers");
        self.cursor = if number + 1 == n { 1 } else { number + 1 };
        self.alive[number / 64] |= 1 << (number % 64);
        self.n_alive += 1;
        let last = those
            .last()
            .map(|last| self.chunks[*last as usize].words.capacity());
        let grown = |last| GROWTH * (last + LEFT_WORDS) - LEFT_WORDS;
        let n_wanted = last.map_or(first_words, grown).min(CHUNK_WORDS);
        let words = match n_wanted.max(n_words) {
            CHUNK_WORDS => self.take_spare(),
            n_words => Vec::with_capacity(n_words),
        };
        self.chunks[number] = Chunk { words, owner };
        number as u32
    }

    fn take_spare(&mut self) -> Vec<u32> {
        let words = self.spare.pop();
        self.fewest_spare = self.fewest_spare.min(self.spare.len());
        self.n_opened += 1;
        words.unwrap_or_else(|| Vec::with_capacity(CHUNK_WORDS))
    }

    /// Whether a chunk takes `n_words` more.
    pub fn has_room(&self, number: u32, n_words: usize) -> bool {
        self.n_unused(number) >= n_words
    }

    /// Words at the end of a chunk that nothing will stand in.
    pub fn n_unused(&self, number: u32) -> usize {
        let chunk = &self.chunks[number as usize];
        chunk.words.capacity() - chunk.words.len()
    }

    /// Appends a record of `n_words`, whole units, to a chunk that has room: all of them are 0, and the caller's to write.
    #[inline(always)]
    pub fn append(&mut self, number: u32, n_words: usize) -> (Handle, &mut [u32]) {
        let words = &mut self.chunks[number as usize].words;
        let start = words.len();
        debug_assert!(
            start + n_words <= words.capacity(),
            "the caller has looked for room"
        );
        words.resize(start + n_words, 0);
        (Handle::new(number, start), &mut words[start..])
    }

    /// The words from a handle on, which may be an old one: whatever stands there now.
    pub fn get(&self, handle: Handle) -> Option<&[u32]> {
        self.chunks[handle.number()].words.get(handle.word()..)
    }

    /// Has fetched what stands at a handle, which may be an old one.
    pub fn prefetch(&self, handle: Handle) {
        let words = &self.chunks[handle.number()].words;
        // A usual record lies in two cache lines.
        for ahead in [0, LINE_WORDS] {
            if let Some(word) = words.get(handle.word() + ahead) {
                prefetch(word);
            }
        }
    }

    /// The words from a valid handle on, and whose they are.
    pub fn owned(&self, handle: Handle) -> (u32, &[u32]) {
        let chunk = &self.chunks[handle.number()];
        (chunk.owner, &chunk.words[handle.word()..])
    }

    /// The words from a valid handle on.
    pub fn words(&self, handle: Handle) -> &[u32] {
        &self.chunks[handle.number()].words[handle.word()..]
    }

    pub fn words_mut(&mut self, handle: Handle) -> &mut [u32] {
        &mut self.chunks[handle.number()].words[handle.word()..]
    }

    /// All words of a chunk.
    pub fn all(&self, number: u32) -> &[u32] {
        &self.chunks[number as usize].words
    }

    /// Handles of the records of a chunk that all have `n_words`.
    pub fn handles(&self, number: u32, n_words: usize) -> impl Iterator<Item = Handle> + use<> {
        let n_used = self.chunks[number as usize].words.len();
        (0..n_used)
            .step_by(n_words)
            .map(move |word| Handle::new(number, word))
    }

    /// Takes a chunk out of use.
    pub fn close(&mut self, number: u32) {
        let number = number as usize;
        let mut words = std::mem::take(&mut self.chunks[number].words);
        self.alive[number / 64] &= !(1 << (number % 64));
        self.n_alive -= 1;
        if words.capacity() == CHUNK_WORDS {
            words.clear();
            self.spare.push(words);
        }
    }

    /// Gives back the unused end of a chunk that nothing is appended to any more.
    pub fn shrink(&mut self, number: u32) {
        self.chunks[number as usize].words.shrink_to_fit();
    }

    /// Gives some spare chunks back, where there are too many, or a whole turn has not needed them. To be called often: each
    /// call takes a bounded time.
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn append(chunks: &mut Chunks, number: u32, words: &[u32]) -> Handle {
        let n_words = words.len().next_multiple_of(UNIT);
        let (handle, into) = chunks.append(number, n_words);
        into[..words.len()].copy_from_slice(words);
        handle
    }

    #[test]
    fn words_stand_where_their_handle_says_until_their_chunk_is_closed() {
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
    fn a_number_comes_round_as_late_as_it_can() {
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
    fn what_an_earlier_slot_left_in_a_chunk_is_not_there() {
        let mut chunks = Chunks::new();
        let old = chunks.open(0, &[], 4, CHUNK_WORDS);
        let handles = [append(&mut chunks, old, &[1]), append(&mut chunks, old, &[2])];
        chunks.close(old);
        // Until its number comes round.
        while chunks.open(0, &[], 4, CHUNK_WORDS) != old {
            chunks.close(chunks.cursor as u32 - 1);
        }
        append(&mut chunks, old, &[3]);
        assert_eq!(chunks.get(handles[0]), Some(&[3, 0, 0, 0][..]));
        assert_eq!(chunks.get(handles[1]), Some(&[][..]));
    }

    #[test]
    fn each_chunk_of_an_owner_is_larger_until_they_are_full() {
        let mut chunks = Chunks::new();
        let mut those = Vec::new();
        for _ in 0..6 {
            those.push(chunks.open(0, &those, 4, 512 - LEFT_WORDS));
        }
        let sizes = those.iter().map(|number| chunks.n_unused(*number) + LEFT_WORDS);
        assert!(sizes.eq([512, 2048, 8192, 32_768, 65_536, 65_536]));
    }

    #[test]
    fn more_chunks_than_numbers_make_more_numbers() {
        let mut chunks = Chunks::new();
        let numbers: Vec<u32> = (0..200)
            .map(|owner| chunks.open(owner, &[], 4, CHUNK_WORDS))
            .collect();
        for (owner, number) in numbers.iter().enumerate() {
            let handle = append(&mut chunks, *number, &[owner as u32]);
            let (whose, words) = chunks.owned(handle);
            assert_eq!((whose, words[0]), (owner as u32, owner as u32));
        }
    }

    #[test]
    fn what_a_spike_left_is_given_back_bit_by_bit() {
        let mut chunks = Chunks::new();
        let numbers: Vec<u32> = (0..100).map(|_| chunks.open(0, &[], 4, CHUNK_WORDS)).collect();
        numbers.iter().for_each(|number| chunks.close(*number));
        assert_eq!(chunks.spare.len(), 100);
        (0..3).for_each(|_| chunks.tidy());
        assert_eq!(chunks.spare.len(), SPARE);
    }

    #[test]
    fn what_many_turns_do_not_need_is_given_back() {
        let mut chunks = Chunks::new();
        let full = |chunks: &mut Chunks| chunks.open(0, &[], 4, CHUNK_WORDS);
        let mut open: VecDeque<u32> = (0..40).map(|_| full(&mut chunks)).collect();
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
