//! The experiments and arms of a list on their way into a batch. Lists that spell them alike share what the first of
//! them put there:
//!
//! ```text
//! …,"experiments":{"ranker":"neural"},…      the spelling: from `{` to the first `}`
//!                  │ hash, 128 bits
//!       spelt  │ · │ ● │ ● │ · │ …           looked for in a few places from there on
//!                    └─ arms
//! ```
//!
//! The hash takes two random factors of the batch, folding products as wyhash does: with 64 bits of each a collision is as
//! unlikely as one of ids, and cannot be aimed at. So a spelling that is known costs one look into memory that may not be at
//! hand: it is asked for before the items are read, and looked at behind them.
//!
//! The places double as spellings come, and outlive the batch that they came in: a list of ten items in one of 10,000 arms
//! took 2900 instructions where it was the first of its batch to spell them so, and 2070 where it was not.

use std::ops::Range;

use super::digits::zeros;
use super::hash::Hashes;
use super::range;
use crate::engine::event::{ArmName, Batch, Reason, SpeltArms};
use crate::engine::hashed::{GOLDEN, folded};

/// Places for spellings in a batch. Up to the greatest number there are at least twice as many as spellings.
const MIN_PLACES: usize = 128;
const MAX_PLACES: usize = 65_536;
/// The places that a spelling may have, one behind the other; few, so that chosen collisions cost no more than reading.
const N_TRIED: usize = 8;
/// Longer spellings are read each time.
const MAX_SPELLING: usize = 256;

pub(super) fn push(hash: &Hashes, experiment: &str, arm: &str, batch: &mut Batch) {
    let hash = hash.arm(experiment, arm);
    let mut copied = |name: &str| {
        let start = batch.text.len();
        batch.text.push_str(name);
        range(start, batch.text.len())
    };
    let (experiment, arm) = (copied(experiment), copied(arm));
    batch.arms.push(ArmName {
        hash,
        experiment,
        arm,
    });
}

/// Sorts the arms of one list by experiment.
///
/// # Errors
/// [`Reason::NotJson`] where an experiment comes twice.
pub(super) fn sort(start: usize, batch: &mut Batch) -> Result<(), Reason> {
    let text = &batch.text;
    let experiment = |arm: &ArmName| &text[arm.experiment.start as usize..arm.experiment.end as usize];
    let arms = &mut batch.arms[start..];
    arms.sort_unstable_by(|one, other| experiment(one).cmp(experiment(other)));
    let mut pairs = arms.windows(2);
    if pairs.any(|pair| experiment(&pair[0]) == experiment(&pair[1])) {
        return Err(Reason::NotJson);
    }
    Ok(())
}

/// How a list spells its experiments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    pub n_bytes: usize,
    hash: [u64; 2],
}

impl Spelling {
    /// What the text begins with, up to its first `}`. Where the text is an object without `}` in its strings, that is
    /// all of the object; and no object begins with another one, so that what follows does not matter.
    #[inline(always)]
    pub fn at_start_of(text: &[u8], batch: &Batch) -> Option<Self> {
        let (words, _) = text.as_chunks::<8>();
        let [one, other] = batch.spelling_factors;
        let mut hash = [other, one];
        for (i, word) in words.iter().take(MAX_SPELLING / 8).enumerate() {
            let word = u64::from_le_bytes(*word);
            let braces = zeros(word ^ 0x7d7d_7d7d_7d7d_7d7d);
            if braces != 0 {
                return Some(Self::ending(8 * i, word, braces, batch, hash));
            }
            hash = mixed(hash, word, batch);
        }
        // What is left at the end of a record is less than a word.
        let start = 8 * words.len();
        let n_missing = 8 - (text.len() - start) as u32;
        let word = u64::from_le_bytes(*text.last_chunk()?).checked_shr(8 * n_missing)?;
        let braces = zeros(word ^ 0x7d7d_7d7d_7d7d_7d7d);
        (braces != 0 && start < MAX_SPELLING).then(|| Self::ending(start, word, braces, batch, hash))
    }

    /// The spelling that ends with the first of these braces, which are in the word that begins at `start`.
    #[inline(always)]
    fn ending(start: usize, word: u64, braces: u64, batch: &Batch, hash: [u64; 2]) -> Self {
        let up_to_brace = word & (braces ^ (braces - 1));
        let [one, other] = mixed(hash, up_to_brace, batch);
        Spelling {
            n_bytes: start + braces.trailing_zeros() as usize / 8 + 1,
            // The first half chooses the place, and is spread once more; no hash is that of a free place.
            hash: [folded(one, GOLDEN), other | 1],
        }
    }

    /// Begins to look for it among those that are remembered; none where there are none.
    #[inline(always)]
    pub fn search(self, spelt: &[SpeltArms]) -> Option<Search<'_>> {
        let places: &[_; N_TRIED] = spelt.get(first_place(spelt.len(), self.hash)..)?.first_chunk()?;
        Some(Search {
            hash: self.hash,
            places,
        })
    }

    /// Remembers an object that is spelt so and means these arms. Its list must have entered the batch: what is cut off
    /// again must not be remembered.
    #[cold]
    #[inline(never)]
    pub fn remember(self, arms: Range<u32>, batch: &mut Batch) {
        let hash = self.hash;
        batch.n_spelt += 1;
        if 2 * batch.n_spelt > batch.spelt.len() && batch.spelt.len() < MAX_PLACES {
            grow(batch);
        }
        put(SpeltArms { hash, arms }, &mut batch.spelt);
    }
}

/// A look into memory that may not be at hand yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'a> {
    hash: [u64; 2],
    places: &'a [SpeltArms; N_TRIED],
}

impl Search<'_> {
    /// What an earlier list that was spelt so has in [`Batch::arms`].
    #[inline(always)]
    pub fn known(self) -> Option<Range<u32>> {
        let known = self.places.iter().find(|spelt| spelt.hash == self.hash)?;
        Some(known.arms.clone())
    }
}

/// Makes room for twice as many spellings.
fn grow(batch: &mut Batch) {
    let n_places = (2 * batch.spelt.len()).max(MIN_PLACES);
    let known = std::mem::replace(&mut batch.spelt, vec![SpeltArms::default(); n_places]);
    let known = known.into_iter().filter(|spelt| !spelt.is_free());
    known.for_each(|spelt| put(spelt, &mut batch.spelt));
}

/// In a free place or in that of the last one tried.
fn put(new: SpeltArms, places: &mut [SpeltArms]) {
    let start = first_place(places.len(), new.hash);
    let tried = &mut places[start..][..N_TRIED];
    let free = tried.iter().position(SpeltArms::is_free);
    tried[free.unwrap_or(N_TRIED - 1)] = new;
}

/// So many places that enough are behind it.
#[inline(always)]
fn first_place(n_places: usize, [hash, _]: [u64; 2]) -> usize {
    ((u128::from(hash) * n_places.saturating_sub(N_TRIED) as u128) >> 64) as usize
}

#[inline(always)]
fn mixed(hash: [u64; 2], word: u64, batch: &Batch) -> [u64; 2] {
    let [one, other] = batch.spelling_factors;
    [folded(hash[0] ^ word, one), folded(hash[1] ^ word, other)]
}
