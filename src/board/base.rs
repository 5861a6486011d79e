//! Initial numbers of a resumed pair on the board: the settled sums in its ledger, arm by arm.

use std::collections::BTreeMap;

use abgauge_core::engine::ArmId;
use abgauge_core::engine::window::Overflow;
use abgauge_core::ledger::Ledger;

use super::arm::Base;

/// Returns the windows for which a ledger has cells: place of the window, cell length in ms, and place of the span in the
/// ledger.
pub(super) fn windows(ledger: &Ledger, cells_ms: &[i64]) -> Vec<(usize, i64, usize)> {
    let of = |(place, cell_ms): (usize, &i64)| {
        let mut spans = ledger.spans().iter();
        let span = spans.position(|span| span.kept.has(false) && span.cell_ms == *cell_ms)?;
        Some((place, *cell_ms, span))
    };
    cells_ms.iter().enumerate().filter_map(of).collect()
}

/// Base of each arm, and an error if a sum of a cell exceeds 64 bits.
pub(super) type Bases = (BTreeMap<ArmId, Base>, Result<(), Overflow>);

pub(super) fn of(ledger: &Ledger, cells_ms: &[i64]) -> Bases {
    let mut bases: BTreeMap<ArmId, Base> = BTreeMap::new();
    let mut exact = Ok(());
    for (window, cell_ms, span) in windows(ledger, cells_ms) {
        for (number, cell) in ledger.cells(span) {
            for (arm, sums) in cell.sums {
                let tally = narrow(sums, &mut exact);
                bases
                    .entry(*arm)
                    .or_default()
                    .cells
                    .push((window, number * cell_ms, tally));
            }
        }
    }
    for (arm, sums) in ledger.total().sums {
        bases.entry(*arm).or_default().total = without_zeros(sums).to_vec();
    }
    for (arm, latest_ms) in ledger.total().latest {
        bases.entry(*arm).or_default().last_list_ms = Some(*latest_ms);
    }
    (bases, exact)
}

fn narrow(sums: &[i128], exact: &mut Result<(), Overflow>) -> Vec<i64> {
    let narrow = |sum: &i128| {
        i64::try_from(*sum).unwrap_or_else(|_| {
            *exact = Err(Overflow);
            // Saturate, to be wrong by as little as possible. The numbers are marked as inexact.
            if *sum < 0 { i64::MIN } else { i64::MAX }
        })
    };
    without_zeros(sums).iter().map(narrow).collect()
}

/// Strips zeros at the end, because missing columns count as zero.
fn without_zeros(sums: &[i128]) -> &[i128] {
    let n_columns = sums.iter().rposition(|sum| *sum != 0).map_or(0, |last| last + 1);
    &sums[..n_columns]
}
