//! The experiments and arms of a list on their way into a batch. Lists that spell them alike share what the first of
//! them put there:
//!
//! ```text
//! …,"experiments":{"ranker":"neural"},…      the spelling: from `{` to the first `}`
//!                  │ hash
//!       spelt  │ · │ ● │ · │ …               one place each, the latest spelling stays
//!              text ─┘ └─ arms               compared with the text, so that no collision is believed
//! ```
//!
//! Of 2443 instructions for a list of ten items and one arm this saves 385.

use std::ops::Range;

use super::hash::SeededHash;
use super::range;
use crate::engine::event::{ArmName, Batch, Reason, SpeltArms};

/// Places for spellings in a batch.
const N_PLACES: usize = 128;
/// Longer spellings are read each time.
const MAX_SPELLING: usize = 256;

pub(super) fn push(hash: &SeededHash, experiment: &str, arm: &str, batch: &mut Batch) {
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

/// What the text begins with, up to its first `}`. Where the text is an object without `}` in its strings, that is all
/// of the object; and no object begins with another one, so that what follows does not matter.
#[inline(always)]
pub(super) fn spelling(text: &[u8]) -> Option<&[u8]> {
    let window = &text[..text.len().min(MAX_SPELLING)];
    window.get(..=memchr::memchr(b'}', window)?)
}

/// What an earlier list of the batch that was spelt so has in [`Batch::arms`].
#[inline(always)]
pub(super) fn known(spelling: &[u8], batch: &Batch) -> Option<Range<u32>> {
    let spelt = batch.spelt.get(place(spelling))?;
    let text = batch.text.as_bytes();
    let known = text.get(spelt.text.start as usize..spelt.text.end as usize)?;
    (known == spelling).then(|| spelt.arms.clone())
}

/// Remembers an object that is spelt so and means these arms. Its list must have entered the batch: what is cut off
/// again must not be remembered.
#[cold]
#[inline(never)]
pub(super) fn remember(spelling: &[u8], arms: Range<u32>, batch: &mut Batch) {
    let Ok(spelling) = std::str::from_utf8(spelling) else {
        return;
    };
    if batch.spelt.is_empty() {
        batch.spelt.resize(N_PLACES, SpeltArms::default());
    }
    let start = batch.text.len();
    batch.text.push_str(spelling);
    let text = range(start, batch.text.len());
    batch.spelt[place(spelling.as_bytes())] = SpeltArms { text, arms };
}

/// By all of the text, eight bytes at a time, the last eight of them perhaps again.
#[inline(always)]
fn place(spelling: &[u8]) -> usize {
    let (words, _) = spelling.as_chunks::<8>();
    let mixed = words
        .iter()
        .chain(spelling.last_chunk())
        .fold(0_u64, |mixed, word| {
            (mixed.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
    (mixed >> 57) as usize % N_PLACES
}
