//! The experiments and arms of a list on their way into a batch.

use super::hash::SeededHash;
use super::range;
use crate::engine::event::{ArmName, Batch, Reason};

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
