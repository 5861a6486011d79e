//! Experiments and arms of a list, on their way into a batch.
//!
//! Producers repeat few different objects. So the arms of each are remembered, and lists with the same text share the arms
//! of the first one. Reading every object again took 460 more instructions per list.

use std::ops::Range;

use super::hash::Hashes;
use super::range;
use crate::engine::event::{ArmName, Batch, Reason};

/// Length from which objects are read each time, so that the memory for them is bounded.
pub(super) const MAX_REMEMBERED: usize = 256;

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

/// Appends an experiment with an invalid arm, until [`drop_bad`]. No valid arm is empty.
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

/// Drops and counts the experiments that an array names more than once: the intended arm is unknown.
///
/// Returns whether there were any.
pub(super) fn drop_doubles(start: usize, batch: &mut Batch) -> bool {
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
        return false;
    }
    let mut arms = batch.arms.split_off(start);
    arms.retain(|arm| !doubles.contains(&text_of(batch, &arm.experiment)));
    batch.arms.append(&mut arms);
    doubles.iter().for_each(|name| batch.count_bad_arm(name));
    true
}

/// Sorts the arms of one list by experiment.
///
/// # Errors
/// [`Reason::NotJson`] if an experiment is there twice.
pub(super) fn sort(start: usize, batch: &mut Batch) -> Result<(), Reason> {
    let text = &batch.text;
    let experiment = |arm: &ArmName| &text[arm.experiment.start as usize..arm.experiment.end as usize];
    let arms = &mut batch.arms[start..];
    arms.sort_unstable_by(|one, other| experiment(one).cmp(experiment(other)));
    // In sorted order, equal experiments are neighbors.
    let mut pairs = arms.windows(2);
    if pairs.any(|pair| experiment(&pair[0]) == experiment(&pair[1])) {
        return Err(Reason::NotJson);
    }
    Ok(())
}

/// Returns the text up to its first `}`. That is the whole object if its strings contain no `}`. No object is a prefix of
/// another one, so the text after it does not matter.
#[inline(always)]
pub(super) fn object(text: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'}', &text[..text.len().min(MAX_REMEMBERED)])?;
    // `..=end` would compile to a call.
    text.get(..end + 1)
}

/// Remembers the arms of an object. Its list must have entered the batch: arms that are cut off again must not be
/// remembered.
#[cold]
#[inline(never)]
pub(super) fn remember(object: &[u8], arms: Range<u32>, batch: &mut Batch) {
    batch.arms_by_json.insert(object.into(), arms);
}
