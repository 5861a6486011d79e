//! Time of the last list of each arm.

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::keep::Keep;
use super::stored::StoredLedger;
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Latest time of a list by arm, Unix ms.
#[derive(Debug)]
pub struct Latest {
    is_kept: bool,
    /// Latest time in the current slot by arm, or [`NONE`] without a list.
    slot: Vec<i64>,
    /// Arms with a list in the current slot.
    arms: Vec<ArmId>,
}

const NONE: i64 = i64::MIN;

impl Aggregate for Latest {
    type Cell = i64;
    type Slot = ByArm<i64>;
    const ID: &str = "latest";
    const VERSION: u64 = 1;
    const BEFORE_START: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Latest {
        let mut kept = keep
            .total
            .into_iter()
            .chain(keep.spans.iter().map(|span| span.kept));
        Latest {
            is_kept: kept.any(|kept| kept.has(Latest::BY_USER)),
            slot: Vec::new(),
            arms: Vec::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        self.slot.resize(self.slot.len() + arms.len(), NONE);
    }

    fn add(&mut self, list: &SettledList) {
        if !self.is_kept {
            return;
        }
        for arm in list.arms {
            let latest = &mut self.slot[*arm as usize];
            if *latest == NONE {
                self.arms.push(*arm);
            }
            *latest = list.ts_ms.max(*latest);
        }
    }

    fn end_slot(&mut self) -> ByArm<i64> {
        let arms = self.arms.drain(..);
        arms.map(|arm| (arm, std::mem::replace(&mut self.slot[arm as usize], NONE)))
            .collect()
    }

    fn add_slot(&self, slot: &ByArm<i64>, cells: &mut ByArm<i64>) {
        for (arm, ms) in slot {
            Latest::merge(cells.entry(*arm).or_insert(*ms), ms);
        }
    }

    fn merge(cell: &mut i64, more: &i64) {
        *cell = (*cell).max(*more);
    }

    fn encode(&self, cell: &i64, to: &mut Writer) {
        to.signed((*cell).into());
    }

    fn decode(&self, from: &mut Reader, _: &StoredLedger) -> Result<Option<i64>, LedgerError> {
        Ok(Some(from.ms()?))
    }
}
