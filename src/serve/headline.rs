//! Headline of an experiment, from the latest look at it or, before the first look, from its sums.

use abgauge_core::engine::View;
use abgauge_core::looks::{Experiment, ExperimentLook, PublishedLooks};
use abgauge_core::metrics::LISTS;
use abgauge_core::verdict::{self, ComparedLook, Headline};

use crate::board::snapshot::{ArmSnapshot, Snapshot};

/// Event times that determine when something settles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Absent before the first list.
    settles_in_ms: Option<i64>,
    settle_after_ms: i64,
}

impl Moment {
    pub fn of(snapshot: &Snapshot, settle_after_ms: i64) -> Moment {
        let ends = snapshot.since_ms.zip(snapshot.live_end_ms);
        Moment {
            settles_in_ms: ends.map(|(since_ms, end_ms)| since_ms + settle_after_ms - end_ms),
            settle_after_ms,
        }
    }
}

/// Returns the headline of an experiment with these arms. There must be at least one.
pub(super) fn of(
    name: &str,
    asked: Option<&Experiment>,
    shown: &PublishedLooks,
    arms: &[&ArmSnapshot],
    moment: Moment,
) -> Headline {
    let look = shown.experiments.get(name).map(AsRef::as_ref);
    let has_settled = arms.iter().any(|arm| has_settled(arm));
    let is_compared = asked.is_some_and(|asked| asked.settings.is_some());
    match look.and_then(|look| looked(asked, look)) {
        // Checked first, because the result of an earlier look may still be there.
        _ if shown.given_up.iter().any(|given_up| given_up == name) => verdict::given_up(),
        Some(look) => verdict::of_look(&look),
        None if is_compared || !has_settled => {
            verdict::waiting(has_settled, moment.settles_in_ms, moment.settle_after_ms)
        }
        None => verdict::uncompared(arms.len()),
    }
}

fn has_settled(arm: &ArmSnapshot) -> bool {
    let total = arm.sums[View::Settled as usize].last();
    total.is_some_and(|sums| sums.get(LISTS).is_some_and(|lists| *lists != 0))
}

fn looked<'a>(asked: Option<&Experiment>, look: &'a ExperimentLook) -> Option<ComparedLook<'a>> {
    let (settings, report) = look.comparison.as_ref()?;
    Some(ComparedLook {
        settings,
        report,
        sizes: look.sizes(),
        is_one_epoch: asked.is_none_or(|asked| asked.epochs.is_empty()),
    })
}
