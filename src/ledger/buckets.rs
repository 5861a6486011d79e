//! The sums of metrics by user bucket: how they spread from bucket to bucket says how sure a difference between arms is.
//!
//! ```text
//! arm ─▶ bucket 0 │ sums of the ranking … │ lists with a click │
//!        bucket 7 │ …                                             only buckets that have a list
//! ```
//! All lists of a user are in one bucket of an experiment, whatever the arm. A list without a user is a unit of its own.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::book::{Aggregate, ByArm, Keep};
use super::bytes::{LedgerError, Reader, Writer};
use crate::engine::Arm;
use crate::engine::ranking::{Ranking, RankingBuffers, Relevant};
use crate::engine::settling::SettledList;

/// Buckets of an experiment.
pub const N_BUCKETS: usize = 256;

/// The sums of one arm: as wide as the ranking, and lists with a click as one more.
pub type BucketSums = BTreeMap<u8, Box<[i128]>>;

#[derive(Debug)]
pub struct Buckets {
    /// None where users are not told apart.
    terms: Option<Terms>,
    /// By arm: that of its experiment.
    salts: Vec<u64>,
    /// The current slot.
    slot: ByArm<BucketSums>,
}

/// What one list adds.
#[derive(Debug)]
struct Terms {
    ranking: Ranking,
    buffers: RankingBuffers,
    relevant: Relevant,
    row: Vec<i64>,
}

impl Terms {
    fn new(ranking: &Ranking) -> Terms {
        Terms {
            buffers: ranking.scratch(),
            relevant: Relevant::default(),
            row: vec![0; ranking.width() + 1],
            ranking: ranking.clone(),
        }
    }

    fn of(&mut self, list: &SettledList) -> &[i64] {
        let Terms {
            ranking,
            buffers,
            relevant,
            row,
        } = self;
        let (sums, is_clicked) = row.split_at_mut(ranking.width());
        ranking.contribute(&list.outcome, sums);
        if let Some(items) = &list.items {
            let of_catalogue = &mut sums[ranking.columns_of_catalogue()];
            ranking.contribute_places(items.places, items.catalogue, buffers, of_catalogue);
            let of_aspects = &mut sums[ranking.columns_of_aspects()];
            of_aspects.fill(0);
            if ranking.needs_aspects() {
                relevant.set(&list.outcome, items.places, list.off_list, items.catalogue);
                ranking.contribute_aspects(relevant, items.catalogue, 1, buffers, of_aspects);
            }
        }
        is_clicked[0] = i64::from(list.outcome.clicked.iter().any(|word| *word != 0));
        row
    }
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

fn add_row(sums: &mut BucketSums, bucket: u8, row: impl ExactSizeIterator<Item = i128>) {
    let n_columns = row.len();
    let sums = sums.entry(bucket).or_insert_with(|| vec![0; n_columns].into());
    sums.iter_mut().zip(row).for_each(|(sum, term)| *sum += term);
}

impl Buckets {
    /// Columns of a bucket.
    fn width(&self) -> usize {
        self.terms.as_ref().map_or(0, |terms| terms.row.len())
    }
}

impl Aggregate for Buckets {
    type Cell = BucketSums;
    type Slot = ByArm<BucketSums>;

    fn new(ranking: &Ranking, keep: &Keep) -> Buckets {
        Buckets {
            terms: keep.by_user.then(|| Terms::new(ranking)),
            salts: Vec::new(),
            slot: ByArm::new(),
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        self.salts.extend(arms.iter().map(|arm| salt(&arm.experiment)));
    }

    fn add(&mut self, list: &SettledList) {
        let Some(terms) = &mut self.terms else { return };
        let row = terms.of(list);
        for arm in list.arms {
            let bucket = bucket(unit(list), self.salts[*arm as usize]);
            let sums = self.slot.entry(*arm).or_default();
            add_row(sums, bucket, row.iter().map(|term| i128::from(*term)));
        }
    }

    fn end_slot(&mut self) -> ByArm<BucketSums> {
        std::mem::take(&mut self.slot)
    }

    fn add_slot(&self, slot: &ByArm<BucketSums>, cells: &mut ByArm<BucketSums>) {
        for (arm, sums) in slot {
            Buckets::merge(cells.entry(*arm).or_default(), sums);
        }
    }

    fn merge(cell: &mut BucketSums, more: &BucketSums) {
        for (bucket, sums) in more {
            add_row(cell, *bucket, sums.iter().copied());
        }
    }

    fn encode(cell: &BucketSums, to: &mut Writer) {
        to.number(cell.len() as u64);
        for (bucket, sums) in cell {
            to.byte(*bucket);
            sums.iter().for_each(|sum| to.signed(*sum));
        }
    }

    fn decode(&self, from: &mut Reader) -> Result<BucketSums, LedgerError> {
        let mut cell = BucketSums::new();
        for _ in 0..from.length()? {
            let bucket = from.byte()?;
            let sums = (0..self.width()).map(|_| from.sum()).collect::<Result<_, _>>()?;
            super::book::insert_last(&mut cell, bucket, sums)?;
        }
        Ok(cell)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::engine::ranking::{CLICKS, LISTS, ListOutcome, Measures};

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
            by_user: true,
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
        let sums = |arm: u32| -> Vec<(u8, [i128; 3])> {
            let columns = [LISTS, CLICKS, ranking.width()];
            let sums = slot[&arm].iter();
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
