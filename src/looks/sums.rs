//! Sums by user bucket as the statistics take them: a column for each term, 0 where a bucket has no list.

use crate::engine::ranking::{CLICKS, Column, LISTS, Ranking};
use crate::ledger::{BucketSums, N_BUCKETS};
use crate::statistics::{ArmTotals, Terms};

/// The metrics that are compared: those of the first profile whose sums add up over users. Coverage has none.
pub fn compared(ranking: &Ranking) -> impl Iterator<Item = &Column> {
    let columns = ranking.columns().iter();
    columns.filter(|column| column.profile == 0 && column.metric.is_additive())
}

/// What an arm adds up to in an epoch. `users` are its first exposures, where they are counted.
pub fn arm_totals(sums: &BucketSums, users: Option<f64>, ranking: &Ranking) -> ArmTotals {
    let by_bucket = |of: &dyn Fn(&[i128]) -> f64| {
        let mut column = vec![0.0; N_BUCKETS];
        sums.iter()
            .for_each(|(bucket, sums)| column[usize::from(*bucket)] = of(sums));
        column
    };
    let terms = |column: &Column| Terms {
        numerators: by_bucket(&|sums| column.numerator(sums)),
        denominators: by_bucket(&|sums| column.denominator(sums) as f64),
    };
    ArmTotals {
        lists: by_bucket(&|sums| sums[LISTS] as f64),
        hits: by_bucket(&|sums| sums[ranking.width()] as f64),
        clicks: by_bucket(&|sums| sums[CLICKS] as f64),
        users,
        metrics: compared(ranking)
            .map(|column| (column.key(), terms(column)))
            .collect(),
    }
}
