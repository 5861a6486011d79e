//! The sums of metrics by user bucket: how they spread from bucket to bucket says how sure a difference between arms is.
//!
//! ```text
//! arm ─▶ bucket 0 │ sums of the ranking … │ lists with a click │
//!        bucket 7 │ …                                             only buckets that have a list
//! ```
//! All lists of a user are in one bucket of an experiment, whatever the arm. A list without a user is a unit of its own.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::book::{Aggregate, ByArm, insert_last};
use super::bytes::{LedgerError, Reader, Writer};
use super::keep::{Keep, Users};
use super::stored::Stored;
use super::sums::SlotSums;
use crate::engine::ranking::{LISTS, Ranking};
use crate::engine::settling::SettledList;
use crate::engine::tally::Rows;
use crate::engine::{Arm, ArmId};

/// Buckets of an experiment.
pub const N_BUCKETS: usize = 256;

/// The sums of one arm: as wide as the ranking, and lists with a click as one more.
pub type BucketSums = BTreeMap<u8, Box<[i128]>>;

#[derive(Debug)]
pub struct Buckets {
    users: Users,
    /// By arm.
    salts: Vec<Salt>,
    /// Since the last end of a slot.
    sums: SlotSums,
    /// Likewise, lists with a click.
    n_clicked: HashMap<RowId, i64>,
    /// Of the current list.
    rows: Vec<RowId>,
}

/// What one slot adds: an arm and a bucket have one row.
#[derive(Debug)]
pub struct BucketSlot {
    sums: Rows<RowId>,
    n_clicked: HashMap<RowId, i64>,
}

/// arm × 256 + bucket.
type RowId = ArmId;

/// Of an arm.
#[derive(Debug)]
struct Salt {
    /// That of its experiment.
    salt: u64,
    /// Earlier slots do not count, epoch ms: none does where users are not told apart.
    start_ms: i64,
}

/// Different in each experiment, so that a user who is at odds in one is not so in all.
fn salt(experiment: &str) -> u64 {
    xxh3_64_with_seed(experiment.as_bytes(), xxh3_64(b"bucket"))
}

/// What stands for the user of a list: without one, the list itself.
fn unit(list: &SettledList) -> u64 {
    match list.user {
        Some(user) => user.get().into(),
        None => list.tags.iter().fold(list.ts_ms as u64, |hash, tag| {
            xxh3_64_with_seed(&tag.to_le_bytes(), hash)
        }),
    }
}

fn bucket(unit: u64, salt: u64) -> u8 {
    (xxh3_64_with_seed(&unit.to_le_bytes(), salt) % N_BUCKETS as u64) as u8
}

/// The sums of a bucket, and after them its lists with a click.
fn add_row(sums: &mut BucketSums, bucket: u8, width: usize, row: impl Iterator<Item = i128>) {
    let sums = sums.entry(bucket).or_insert_with(|| vec![0; width + 1].into());
    sums.iter_mut().zip(row).for_each(|(sum, term)| *sum += term);
}

/// Adds what another span of time, or the arm in another pair, adds up to.
pub fn merge_buckets(sums: &mut BucketSums, more: &BucketSums) {
    Buckets::merge(sums, more);
}

/// Takes away what was added before. A bucket that has no list left is none.
pub fn subtract_buckets(sums: &mut BucketSums, less: &BucketSums) {
    for (bucket, less) in less {
        if let Some(sums) = sums.get_mut(bucket) {
            sums.iter_mut().zip(less).for_each(|(sum, term)| *sum -= term);
        }
    }
    sums.retain(|_, sums| sums[LISTS] != 0);
}

/// The buckets that have a list, each with its sums.
pub(super) fn encode_buckets(cell: &BucketSums, to: &mut Writer) {
    to.number(cell.len() as u64);
    for (bucket, sums) in cell {
        to.byte(*bucket);
        sums.iter().for_each(|sum| to.signed(*sum));
    }
}

/// Buckets whose sums are read by `row`.
///
/// # Errors
/// Where the bytes are none.
pub(super) fn decode_buckets(
    from: &mut Reader,
    row: impl Fn(&mut Reader) -> Result<Box<[i128]>, LedgerError>,
) -> Result<BucketSums, LedgerError> {
    let mut cell = BucketSums::new();
    for _ in 0..from.length()? {
        insert_last(&mut cell, from.byte()?, row(from)?)?;
    }
    Ok(cell)
}

impl Buckets {
    /// Whether a sum has left 64 bits.
    pub fn overflowed(&self) -> bool {
        self.sums.overflowed()
    }

    /// Columns of a bucket but for lists with a click.
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
            // Rows beyond have no number.
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
            if list.start_ms >= of.start_ms {
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
        let width = self.width();
        let mut add = |row: RowId, terms: &mut dyn Iterator<Item = i128>| {
            add_row(cells.entry(row >> 8).or_default(), row as u8, width, terms);
        };
        for (row, terms) in slot.sums.iter() {
            add(row, &mut terms.iter().map(|term| i128::from(*term)));
        }
        for (row, n) in &slot.n_clicked {
            let clicked = std::iter::once(i128::from(*n));
            add(*row, &mut std::iter::repeat_n(0, width).chain(clicked));
        }
    }

    fn merge(cell: &mut BucketSums, more: &BucketSums) {
        // Once an experiment has run for a while, mostly all buckets.
        if cell.keys().eq(more.keys()) {
            for (sums, more) in cell.values_mut().zip(more.values()) {
                sums.iter_mut().zip(more).for_each(|(sum, term)| *sum += term);
            }
            return;
        }
        for (bucket, sums) in more {
            add_row(cell, *bucket, sums.len() - 1, sums.iter().copied());
        }
    }

    fn encode(&self, cell: &BucketSums, to: &mut Writer) {
        encode_buckets(cell, to);
    }

    fn decode(&self, from: &mut Reader, stored: &Stored) -> Result<Option<BucketSums>, LedgerError> {
        let width = self.width();
        let cell = decode_buckets(from, |from| {
            let mut sums = stored.row(from, width + 1)?;
            sums[width] = from.sum()?;
            Ok(sums.into())
        })?;
        Ok(Some(cell))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::engine::ranking::{CLICKS, ListOutcome, Measures};
    use crate::ledger::Epochs;

    fn list(user: u32, arms: &[u32], clicked: u32, told: impl FnOnce(&SettledList)) {
        told(&SettledList {
            start_ms: 0,
            ts_ms: 7,
            user: NonZeroU32::new(user),
            arms,
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
    fn a_user_has_one_bucket_of_an_experiment_in_all_arms_and_another_in_others() {
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
            let sums = cells[&arm].iter();
            sums.map(|(bucket, sums)| (*bucket, columns.map(|column| sums[column])))
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
    fn buckets_of_users_are_about_equal() {
        let mut n = [0; N_BUCKETS];
        for user in 0..256_000 {
            n[usize::from(bucket(user, salt("e")))] += 1;
        }
        // 1000 ± 5 standard deviations.
        assert!(n.iter().all(|n| (842..1158).contains(n)), "{n:?}");
    }
}
