//! A cell that waits for its look, packed as it will be in the window.

use std::collections::BTreeMap;

use crate::engine::ArmId;
use crate::ledger::{Cell, Exposed, FrequentUsers, PackedBuckets, RefusedCounts, UnitCounts};

/// Sums over the users of a pair in a cell, by arm.
#[derive(Debug)]
pub(super) struct WaitingCell(BTreeMap<ArmId, WaitingArm>);

/// An arm in such a cell.
#[derive(Debug)]
pub(super) struct WaitingArm {
    /// Sums of the arm. None if it has no list in this cell, but has users from earlier cells that are now seen in two arms.
    pub sums: Option<PackedBuckets>,
    pub exposed: Exposed,
    pub units: UnitCounts,
    pub refused: RefusedCounts,
    pub frequent: FrequentUsers,
}

/// Overhead of a packed arm, in bytes: its place in a map that is at least half full, and its allocations.
const ARM_BYTES: u64 = 2 * size_of::<(ArmId, WaitingArm)>() as u64 + 16;

impl WaitingCell {
    pub fn new(cell: &Cell) -> WaitingCell {
        let numbers = cell.numbers();
        let arm = |id: &ArmId| WaitingArm {
            sums: numbers.buckets.get(id).map(PackedBuckets::new),
            exposed: numbers.exposures.get(id).copied().unwrap_or_default(),
            units: numbers.units.get(id).copied().unwrap_or_default(),
            refused: numbers.refused.get(id).cloned().unwrap_or_default(),
            frequent: numbers.frequent.get(id).cloned().unwrap_or_default(),
        };
        let ids = numbers
            .buckets
            .keys()
            .chain(numbers.exposures.keys())
            .chain(numbers.units.keys())
            .chain(numbers.refused.keys());
        WaitingCell(ids.map(|id| (*id, arm(id))).collect())
    }

    /// Reports whether any arm has a list.
    pub fn has_lists(&self) -> bool {
        self.0.values().any(|arm| arm.sums.is_some())
    }

    pub fn into_arms(self) -> impl Iterator<Item = (ArmId, WaitingArm)> {
        self.0.into_iter()
    }

    /// Returns the bytes of each arm.
    pub fn bytes(&self) -> impl Iterator<Item = (ArmId, u64)> {
        let bytes = |arm: &WaitingArm| {
            let sums = arm.sums.as_ref().map_or(0, |sums| sums.length() as u64);
            sums + arm.refused.bytes() + arm.frequent.bytes() + ARM_BYTES
        };
        self.0.iter().map(move |(id, arm)| (*id, bytes(arm)))
    }

    /// Drops the other arms.
    pub fn retain(&mut self, is_kept: impl Fn(ArmId) -> bool) {
        self.0.retain(|id, _| is_kept(*id));
    }
}
