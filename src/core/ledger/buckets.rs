//! Sums of metrics by user bucket. Their variance across buckets gives the confidence in a difference between arms.
//!
//! ```text
//! arm ─▶ bucket 0 │ sums of the ranking … │ lists with a click │
//!        bucket 7 │ …                                             only buckets that have a list
//! ```
//! Lists of one user fall into the same bucket of an experiment, in every arm. A list without a user is a unit of its own.

use std::collections::btree_map::Entry;

use foldhash::{HashMap, HashMapExt};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::LedgerError;
use super::book::{Aggregate, ByArm};
use super::bucket_sums::{BucketSums, N_BUCKETS};
use super::keep::{Keep, Users};
use super::stored::StoredLedger;
use super::sums::SlotSums;
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::tally::Rows;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

#[derive(Debug)]
pub struct Buckets {
    users: Users,
    /// Bucket salt and start of each arm.
    salts: Vec<Salt>,
    /// Sums of the current slot.
    sums: SlotSums,
    /// Lists with a click in the current slot.
    n_clicked: HashMap<RowId, i64>,
    /// Rows of the current list.
    rows: Vec<RowId>,
}

/// Sums added by one slot, with a row for each arm and bucket.
#[derive(Debug)]
pub struct BucketSlot {
    sums: Rows<RowId>,
    n_clicked: HashMap<RowId, i64>,
}

/// Row number: arm × 256 + bucket.
type RowId = ArmId;

/// Bucket salt and start of an arm.
#[derive(Debug)]
struct Salt {
    /// Salt of its experiment.
    salt: u64,
    /// Start of counting, Unix ms. Earlier slots do not count. It is `i64::MAX` if users are not tracked.
    start_ms: i64,
}

/// Returns the bucket salt of an experiment. Salts differ, so that an unlucky grouping of users is not repeated in other
/// experiments.
pub(super) fn salt(experiment: &str) -> u64 {
    xxh3_64_with_seed(experiment.as_bytes(), xxh3_64(b"bucket"))
}

/// Returns a number for the user of a list, or for the list itself if it has no user.
fn unit(list: &SettledList) -> u64 {
    match list.user {
        Some(user) => user.get().into(),
        None => list.tags.iter().fold(list.ts_ms as u64, |hash, tag| {
            xxh3_64_with_seed(&tag.to_le_bytes(), hash)
        }),
    }
}

pub(super) fn bucket(unit: u64, salt: u64) -> u8 {
    (xxh3_64_with_seed(&unit.to_le_bytes(), salt) % N_BUCKETS as u64) as u8
}

impl Buckets {
    /// Returns whether a sum has exceeded 64 bits.
    pub fn overflowed(&self) -> bool {
        self.sums.overflowed()
    }

    /// Returns the number of columns, without the one for lists with a click.
    fn width(&self) -> usize {
        self.sums.width()
    }
}

impl Aggregate for Buckets {
    type Cell = BucketSums;
    type Slot = BucketSlot;
    const ID: &str = "buckets";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(ranking: &Ranking, keep: &Keep) -> Buckets {
        Buckets {
            users: keep.users.clone(),
            salts: Vec::new(),
            sums: SlotSums::new(ranking),
            n_clicked: HashMap::new(),
            rows: Vec::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        let known = self.salts.len();
        let salts = arms.iter().zip(known..).map(|(arm, id)| {
            // Arms beyond 2²⁴ have no row number.
            let epochs = self.users.epochs(&arm.experiment).filter(|_| id < 1 << 24);
            let start_ms = epochs.map(|epochs| epochs.start_ms.unwrap_or(i64::MIN));
            Salt {
                salt: salt(&arm.experiment),
                start_ms: start_ms.unwrap_or(i64::MAX),
            }
        });
        self.salts.extend(salts);
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        arms.iter()
            .for_each(|arm| self.salts[*arm as usize].start_ms = i64::MAX);
    }

    fn add(&mut self, list: &SettledList) {
        if self.users == Users::Nobody {
            return;
        }
        self.rows.clear();
        let unit = unit(list);
        for arm in list.arms {
            let of = &self.salts[*arm as usize];
            if list.start_ms >= of.start_ms && !list.capped.contains(arm) {
                self.rows.push(*arm << 8 | u32::from(bucket(unit, of.salt)));
            }
        }
        if self.rows.is_empty() {
            return;
        }
        self.sums.add(&self.rows, list);
        if list.outcome.clicked.iter().any(|word| *word != 0) {
            for row in &self.rows {
                *self.n_clicked.entry(*row).or_default() += 1;
            }
        }
    }

    fn end_slot(&mut self) -> BucketSlot {
        BucketSlot {
            sums: self.sums.end_slot(),
            n_clicked: std::mem::take(&mut self.n_clicked),
        }
    }

    fn add_slot(&self, slot: &BucketSlot, cells: &mut ByArm<BucketSums>) {
        let mut rows: Vec<(RowId, &[i64])> = slot.sums.iter().collect();
        // By arm and then by bucket, because buckets are appended in ascending order.
        rows.sort_unstable_by_key(|(row, _)| *row);
        let n_columns = self.width() + 1;
        for of_arm in rows.chunk_by(|(one, _), (other, _)| one >> 8 == other >> 8) {
            let mut sums = BucketSums::with_capacity(of_arm.len(), n_columns);
            for (row, terms) in of_arm {
                let n_clicked = slot.n_clicked.get(row).copied().unwrap_or(0);
                // Sums of a slot end with the last column that was needed, so pad the row with zeros.
                let ranked = terms
                    .iter()
                    .copied()
                    .chain(std::iter::repeat(0))
                    .take(self.width());
                sums.push(*row as u8, ranked.chain(std::iter::once(n_clicked)));
            }
            match cells.entry(of_arm[0].0 >> 8) {
                Entry::Vacant(cell) => _ = cell.insert(sums),
                Entry::Occupied(cell) => cell.into_mut().merge(&sums),
            }
        }
    }

    fn merge(cell: &mut BucketSums, more: &BucketSums) {
        cell.merge(more);
    }

    fn encode(&self, cell: &BucketSums, to: &mut Writer) {
        cell.encode(to);
    }

    fn decode(&self, from: &mut Reader, stored: &StoredLedger) -> Result<Option<BucketSums>, LedgerError> {
        let width = self.width();
        let cell = BucketSums::decode(from, |from| {
            let mut sums = stored.row(from, width + 1)?;
            sums[width] = from.sum()?;
            Ok(sums)
        })?;
        Ok(Some(cell))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::ledger::Epochs;
    use crate::metrics::{CLICKS, LISTS, ListOutcome, Measures};

    fn list(user: u32, arms: &[u32], clicked: u32, reported: impl FnOnce(&SettledList)) {
        reported(&SettledList {
            start_ms: 0,
            ts_ms: 7,
            user: NonZeroU32::new(user),
            arms,
            capped: &[],
            tags: &[1, 2, 3],
            off_list: &[],
            outcome: ListOutcome {
                n_items: 3,
                clicked: &[clicked],
                n_off_list: 0,
            },
            items: None,
        });
    }

    #[test]
    fn a_user_has_one_bucket_in_all_arms_and_another_in_other_experiments() {
        let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
        let keep = Keep {
            users: Users::Everybody(Epochs::default()),
            ..Keep::default()
        };
        let mut buckets = Buckets::new(&ranking, &keep);
        let arm = |experiment: &str, arm: &str| Arm {
            experiment: experiment.into(),
            arm: arm.into(),
        };
        buckets.admit(&[arm("e", "a"), arm("e", "b"), arm("f", "a")]);
        list(5, &[0, 2], 0b101, |list| buckets.add(list));
        list(5, &[1], 0, |list| buckets.add(list));
        list(5, &[0], 0, |list| buckets.add(list));
        list(6, &[0], 0b1, |list| buckets.add(list));
        let slot = buckets.end_slot();
        let mut cells = ByArm::new();
        buckets.add_slot(&slot, &mut cells);
        let sums = |arm: u32| -> Vec<(u8, [i128; 3])> {
            let columns = [LISTS, CLICKS, ranking.width()];
            let rows = cells[&arm].rows();
            rows.map(|(bucket, sums)| (bucket, columns.map(|column| sums.get(column))))
                .collect()
        };
        let [of_five, of_six] = [5, 6].map(|user| bucket(user, salt("e")));
        let mut expected = vec![(of_five, [2, 2, 1]), (of_six, [1, 1, 1])];
        expected.sort_unstable();
        assert_eq!(sums(0), expected);
        assert_eq!(sums(1), [(of_five, [1, 0, 0])]);
        assert_eq!(sums(2), [(bucket(5, salt("f")), [1, 2, 1])]);
        assert_ne!(of_five, bucket(5, salt("f")));
    }

    #[test]
    fn users_spread_evenly_over_buckets() {
        let mut n = [0; N_BUCKETS];
        for user in 0..256_000 {
            n[usize::from(bucket(user, salt("e")))] += 1;
        }
        // 1000 ± 5 standard deviations.
        assert!(n.iter().all(|n| (842..1158).contains(n)), "{n:?}");
    }
}
