//! Words of open lists in chunks, so that a slot leaves chunk by chunk and nobody visits its lists.
//!
//! ```text
//! handle  31 ───────────── 14 │ 13 ─────────── 0
//!         number of the chunk │ place in it ÷ 16 bytes
//!
//! chunks  1 [ list │ list │ … ]   2 [ list │ list ┆ spare ]   3 dead   4 [ … ]
//! ```
//! Numbers are given anew in turns, as late as can be: a handle that outlived its slot names a dead chunk, until its number
//! comes round again. So whoever follows an old handle must check what stands there.

/// Where a list stands. Valid until its slot leaves; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(u32);

/// Words in a unit of places.
pub const UNIT: usize = 4;
const PLACE_BITS: u32 = 14;
/// Words of a full chunk: 256 KiB.
const CHUNK_WORDS: usize = UNIT << PLACE_BITS;
/// Words of a slot's first chunk at the start, so that a quiet slot stays small.
const FIRST_WORDS: usize = 256;
const MAX_CHUNKS: usize = 1 << (32 - PLACE_BITS);
/// Full chunks that are kept for the next slots, beside a quarter of those in use: fresh memory costs a page fault.
const SPARE: usize = 16;
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

    fn number(self) -> usize {
        (self.0 >> PLACE_BITS) as usize
    }

    fn word(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize * UNIT
    }
}

#[derive(Debug)]
struct Chunk {
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
}

impl Chunks {
    pub fn new() -> Chunks {
        let mut chunks = Chunks {
            chunks: Vec::new(),
            alive: Vec::new(),
            n_alive: 0,
            cursor: 1,
            spare: Vec::new(),
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
        let dead = || Chunk {
            words: Vec::new(),
            owner: 0,
        };
        self.chunks.resize_with(n, dead);
        self.alive.resize(n / 64, 0);
    }

    fn is_alive(&self, number: usize) -> bool {
        self.alive[number / 64] >> (number % 64) & 1 != 0
    }

    /// Whether the chunk of a handle is in use, though its number may have come round.
    pub fn may_live(&self, handle: Handle) -> bool {
        self.is_alive(handle.number())
    }

    /// Opens a chunk for at least `n_words`, and tells its number. `is_first` of its owner.
    ///
    /// # Panics
    /// Where [`Self::is_full`].
    pub fn open(&mut self, owner: u32, n_words: usize, is_first: bool) -> u32 {
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
        let words = match n_words {
            CHUNK_WORDS.. => Vec::with_capacity(n_words),
            _ if is_first => Vec::with_capacity(n_words.max(FIRST_WORDS)),
            _ => self
                .spare
                .pop()
                .unwrap_or_else(|| Vec::with_capacity(CHUNK_WORDS)),
        };
        self.chunks[number] = Chunk { words, owner };
        number as u32
    }

    /// Whether a chunk takes `n_words` more.
    pub fn has_room(&self, number: u32, n_words: usize) -> bool {
        self.chunks[number as usize].words.len() + n_words <= CHUNK_WORDS
    }

    /// Words at the end of a chunk that nothing will stand in.
    pub fn n_unused(&self, number: u32) -> usize {
        CHUNK_WORDS.saturating_sub(self.chunks[number as usize].words.len())
    }

    /// Appends to a chunk that has room: `write` extends the words, which are then filled to a whole unit.
    pub fn append(&mut self, number: u32, n_words: usize, write: impl FnOnce(&mut Vec<u32>)) -> Handle {
        let words = &mut self.chunks[number as usize].words;
        let start = words.len();
        let end = start + n_words;
        if end > words.capacity() {
            let capacity = (2 * words.capacity()).min(CHUNK_WORDS).max(end);
            words.reserve_exact(capacity - start);
        }
        write(words);
        debug_assert!(words.len() <= end);
        words.resize(end, 0);
        Handle::new(number, start)
    }

    /// The words from a handle on, which may be an old one: whatever stands there now.
    pub fn get(&self, handle: Handle) -> Option<&[u32]> {
        self.chunks[handle.number()].words.get(handle.word()..)
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

    /// Whose chunk a valid handle names.
    pub fn owner(&self, handle: Handle) -> u32 {
        self.chunks[handle.number()].owner
    }

    /// All words of a chunk.
    pub fn all(&self, number: u32) -> &[u32] {
        &self.chunks[number as usize].words
    }

    /// Takes a chunk out of use.
    pub fn close(&mut self, number: u32) {
        let number = number as usize;
        let words = std::mem::take(&mut self.chunks[number].words);
        self.alive[number / 64] &= !(1 << (number % 64));
        self.n_alive -= 1;
        if words.capacity() == CHUNK_WORDS {
            let mut words = words;
            words.clear();
            self.spare.push(words);
        }
    }

    /// Gives back the spare capacity of a chunk that nothing is appended to any more.
    pub fn shrink(&mut self, number: u32) {
        self.chunks[number as usize].words.shrink_to_fit();
    }

    /// Gives some spare chunks back, where there are too many. To be called often: each call takes a bounded time.
    pub fn tidy(&mut self) {
        let enough = self.n_alive / 4 + SPARE;
        let excess = self.spare.len().saturating_sub(enough).min(GIVE_BACK);
        self.spare.truncate(self.spare.len() - excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(chunks: &mut Chunks, number: u32, words: &[u32]) -> Handle {
        let n_words = words.len().next_multiple_of(UNIT);
        chunks.append(number, n_words, |into| into.extend_from_slice(words))
    }

    #[test]
    fn words_stand_where_their_handle_says_until_their_chunk_is_closed() {
        let mut chunks = Chunks::new();
        let one = chunks.open(7, 4, true);
        let two = chunks.open(8, CHUNK_WORDS + 1, false);
        let handles = [
            append(&mut chunks, one, &[1, 2, 3]),
            append(&mut chunks, one, &[4]),
        ];
        let long = append(&mut chunks, two, &vec![5; CHUNK_WORDS + 1]);
        assert_eq!(&chunks.words(handles[0])[..4], [1, 2, 3, 0]);
        assert_eq!(&chunks.words(handles[1])[..4], [4, 0, 0, 0]);
        assert_eq!((chunks.owner(handles[1]), chunks.owner(long)), (7, 8));
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
        let first = chunks.open(0, 4, true);
        chunks.close(first);
        let between = (0..).take_while(|_| {
            let number = chunks.open(0, 4, true);
            chunks.close(number);
            number != first
        });
        assert_eq!(between.count(), 62, "of 63 numbers");
    }

    #[test]
    fn more_chunks_than_numbers_make_more_numbers() {
        let mut chunks = Chunks::new();
        let numbers: Vec<u32> = (0..200).map(|owner| chunks.open(owner, 4, true)).collect();
        for (owner, number) in numbers.iter().enumerate() {
            let handle = append(&mut chunks, *number, &[owner as u32]);
            let (whose, words) = chunks.owned(handle);
            assert_eq!((whose, words[0]), (owner as u32, owner as u32));
        }
    }

    #[test]
    fn what_a_spike_left_is_given_back_bit_by_bit() {
        let mut chunks = Chunks::new();
        let numbers: Vec<u32> = (0..100).map(|_| chunks.open(0, 4, false)).collect();
        numbers.iter().for_each(|number| chunks.close(*number));
        assert_eq!(chunks.spare.len(), 100);
        (0..3).for_each(|_| chunks.tidy());
        assert_eq!(chunks.spare.len(), SPARE);
    }
}
