//! Arms with refused lists but no accepted one in a pair. If another pair has lists of the arm, the refused ones are counted. If
//! none has, the arm has no numbers, and a warning names it.

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::engine::Arm;
use abgauge_core::table::visible;

use super::shards::Shards;
use crate::telemetry::Warning;

/// Maximum number of arms that are named.
const MAX_NAMED: usize = 10;

/// Lets each pair count refused lists of arms that another pair has admitted.
pub fn learn_arms(shards: &mut Shards) {
    let unlisted: BTreeSet<Arm> = unlisted(shards).into_keys().cloned().collect();
    if unlisted.is_empty() {
        return;
    }
    let listed = listed(shards);
    let arms: BTreeSet<Arm> = unlisted.into_iter().filter(|arm| listed.contains(arm)).collect();
    if !arms.is_empty() {
        for (_, pair) in shards.pairs_mut() {
            pair.tracker.learn_arms(&arms);
            pair.changed = true;
        }
    }
}

/// Warns of arms whose lists were all refused, the first ones by name.
pub fn warnings(shards: &Shards) -> Vec<Warning> {
    let mut unlisted = unlisted(shards);
    if unlisted.is_empty() {
        return Vec::new();
    }
    let listed = listed(shards);
    unlisted.retain(|arm, _| !listed.contains(arm));
    let warning = |message| Warning::new(message).see("AbgaugeRefusedLists");
    let named = unlisted.iter().take(MAX_NAMED).map(|(arm, n)| {
        warning(format!(
            "lists of arm `{}` of experiment `{}`: all {n} were refused, so the arm has no numbers and is not compared: fix their \
             producer; abgauge_invalid_records_total and abgauge_records_total show why",
            visible(&arm.arm),
            visible(&arm.experiment)
        ))
    });
    let more = unlisted.len().saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| warning(format!("arms whose lists were all refused: {more} more")));
    named.chain(more).collect()
}

/// Returns the number of refused lists by arm, over the pairs that have no accepted list of the arm.
fn unlisted(shards: &Shards) -> BTreeMap<&Arm, u64> {
    let mut unlisted = BTreeMap::new();
    let of_pairs = shards
        .pairs()
        .flat_map(|(_, pair)| pair.tracker.ledger().unlisted());
    for (arm, n) in of_pairs {
        *unlisted.entry(arm).or_default() += n;
    }
    unlisted
}

/// Returns the arms that any pair has admitted.
fn listed(shards: &Shards) -> BTreeSet<Arm> {
    let arms = shards.pairs().flat_map(|(_, pair)| pair.engine().arms());
    arms.cloned().collect()
}
