//! The experiments and arms of a list on their way into a batch.
//!
//! Few objects come over and over. So what each means is remembered, and lists that spell their arms alike share what the
//! first of them put there: with every object read anew a list took 460 instructions more.

use std::ops::Range;

use super::hash::Hashes;
use super::range;
use crate::engine::event::{ArmName, Batch, Reason};

/// Longer objects are read each time, so that what is remembered has a bound.
const MAX_REMEMBERED: usize = 256;

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

/// An experiment whose arm cannot be one, until [`drop_bad`]; no other arm is empty.
pub(super) fn push_bad(experiment: &str, batch: &mut Batch) {
    let start = batch.text.len();
    batch.text.push_str(experiment);
    batch.arms.push(ArmName {
        hash: 0,
        experiment: range(start, batch.text.len()),
        arm: 0..0,
    });
}

pub(super) fn drop_bad(start: usize, batch: &mut Batch) {
    let mut arms = batch.arms.split_off(start);
    arms.retain(|arm| !arm.arm.is_empty());
    batch.arms.append(&mut arms);
}

/// Drops the experiments that an array names more than once, and counts them: it is not known which arm was meant.
pub(super) fn drop_doubles(start: usize, batch: &mut Batch) {
    let text_of = |batch: &Batch, name: &Range<u32>| batch.text_of(name).to_owned();
    let names = batch.arms[start..].iter();
    let mut names: Vec<String> = names.map(|arm| text_of(batch, &arm.experiment)).collect();
    names.sort_unstable();
    let mut doubles: Vec<String> = names
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0].clone())
        .collect();
    doubles.dedup();
    if doubles.is_empty() {
        return;
    }
    let mut arms = batch.arms.split_off(start);
    arms.retain(|arm| !doubles.contains(&text_of(batch, &arm.experiment)));
    batch.arms.append(&mut arms);
    doubles.iter().for_each(|name| batch.count_bad_arm(name));
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

/// What the text begins with, up to its first `}`: all of an object without `}` in its strings. No object begins with
/// another one, so that what follows does not matter.
#[inline(always)]
pub(super) fn object(text: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'}', &text[..text.len().min(MAX_REMEMBERED)])?;
    // With `..=end` it would be a call.
    text.get(..end + 1)
}

/// Remembers the arms that an object means. Its list must have entered the batch: what is cut off again
/// must not be remembered.
#[cold]
#[inline(never)]
pub(super) fn remember(object: &[u8], arms: Range<u32>, batch: &mut Batch) {
    batch.arms_by_json.insert(object.into(), arms);
}
